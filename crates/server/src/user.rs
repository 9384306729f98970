//! Who runs the servers.

use crate::kernel::{self, Account};
use crate::tree;
use deltabench_model::problem::Problem;
use std::path::Path;

/// The account that servers run as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUser {
    pub name: String,
    pub uid: u32,
    /// Primary group id; servers have no other groups.
    pub gid: u32,
    /// Whether we are root and start servers as this other user.
    pub switched: bool,
}

impl ServerUser {
    /// Root gets the account asked for, else `postgres`, else `nobody`; everybody else gets themselves.
    ///
    /// Errors: no such account, root asked for, or another account asked for without being root.
    pub fn choose(asked: Option<&str>) -> Result<Self, Problem> {
        let uid = kernel::effective_uid();
        let own = Account {
            name: kernel::account_by_uid(uid)
                .map_or_else(|| uid.to_string(), |account| account.name),
            uid,
            gid: kernel::effective_gid(),
        };
        choose_from(own, asked, kernel::account_by_name)
    }

    /// Makes a directory that only this account, and root, can enter.
    ///
    /// Errors: it exists already, or cannot be made.
    pub fn make_directory(&self, path: &Path) -> Result<(), Problem> {
        tree::make_directory(path, 0o700, self.owner())
    }

    /// Owner to give files to; `None` when they are ours anyway.
    pub(crate) fn owner(&self) -> Option<(u32, u32)> {
        self.switched.then_some((self.uid, self.gid))
    }
}

fn choose_from(
    own: Account,
    asked: Option<&str>,
    find: impl Fn(&str) -> Option<Account>,
) -> Result<ServerUser, Problem> {
    let ourselves = own.uid != 0;
    if ourselves {
        return match asked {
            Some(name) if name != own.name => {
                Err(Problem::new(format!("cannot run servers as `{name}`"))
                    .detail(format!(
                        "deltabench runs as {}; only root can start servers as another user",
                        own.name
                    ))
                    .hint("leave out --server-user, or run deltabench as root"))
            }
            _ => Ok(ServerUser {
                name: own.name,
                uid: own.uid,
                gid: own.gid,
                switched: false,
            }),
        };
    }
    let account = match asked {
        Some(name) => find(name).ok_or_else(|| {
            Problem::new(format!("there is no user `{name}` to run servers as"))
                .hint("name an account that exists, or leave out --server-user")
        })?,
        None => find("postgres").or_else(|| find("nobody")).ok_or_else(|| {
            Problem::new("there is no unprivileged user to run servers as")
                .detail(
                    "PostgreSQL refuses to run as root, and neither `postgres` nor `nobody` exists",
                )
                .hint("create an account and name it with --server-user")
        })?,
    };
    if account.uid == 0 {
        return Err(
            Problem::new(format!("cannot run servers as `{}`", account.name))
                .detail("PostgreSQL refuses to run as root")
                .hint("name an unprivileged account with --server-user"),
        );
    }
    Ok(ServerUser {
        name: account.name,
        uid: account.uid,
        gid: account.gid,
        switched: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str, uid: u32) -> Account {
        Account {
            name: name.to_owned(),
            uid,
            gid: uid,
        }
    }

    fn known<'a>(names: &'a [(&'a str, u32)]) -> impl Fn(&str) -> Option<Account> + 'a {
        |name| {
            names
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(n, uid)| account(n, *uid))
        }
    }

    #[test]
    fn root_prefers_the_asked_then_postgres_then_nobody() {
        let all = [("bench", 7), ("postgres", 8), ("nobody", 9)];
        for (asked, names, wanted) in [
            (Some("bench"), &all[..], "bench"),
            (None, &all[..], "postgres"),
            (None, &all[2..], "nobody"),
        ] {
            let user = choose_from(account("root", 0), asked, known(names)).unwrap();
            assert_eq!((user.name.as_str(), user.switched), (wanted, true));
        }
    }

    #[test]
    fn servers_never_run_as_root_whatever_it_is_called() {
        let names = [("toor", 0)];
        let problem = choose_from(account("root", 0), Some("toor"), known(&names)).unwrap_err();
        assert!(problem.detail.unwrap().contains("refuses to run as root"));
    }

    #[test]
    fn others_run_servers_as_themselves_and_as_nobody_else() {
        let me = choose_from(account("me", 5), Some("me"), known(&[])).unwrap();
        assert_eq!((me.uid, me.switched, me.owner()), (5, false, None));
        assert!(
            choose_from(
                account("me", 5),
                Some("postgres"),
                known(&[("postgres", 8)])
            )
            .is_err()
        );
    }

    #[test]
    fn an_unknown_account_is_refused_by_name() {
        let problem = choose_from(account("root", 0), Some("bnech"), known(&[])).unwrap_err();
        assert!(problem.error.contains("`bnech`"));
    }
}
