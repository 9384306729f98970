//! Which account runs servers on copies of a user's data directory: one that cannot change the directory.
//!
//! A copy has the functions of the original. What they can do outside of the database, they do as this
//! account: languages that are not trusted, C, a foreign table that runs a program.

use crate::directory::DataDirectory;
use crate::user::ServerUser;
use deltabench_model::problem::Problem;
use std::path::{Path, PathBuf};

/// Accounts that root uses, in this order. `postgres` often owns the directory or other servers of the
/// machine, so it is not the first.
const ACCOUNTS: [&str; 3] = ["nobody", "postgres", "daemon"];

/// The account for servers on copies of a data directory.
///
/// Shape:  root gets the account asked for, else the first of `nobody`, `postgres` and `daemon` that cannot
///         change the directory. Everybody else gets themselves, whether they can or not
///         ([`DataDirectory::changeable_by`] says it).
/// Errors: those of [`ServerUser::choose`]; the account asked for can change the directory, or all can.
pub fn choose_apart(asked: Option<&str>, directory: &DataDirectory) -> Result<ServerUser, Problem> {
    choose_among(asked, directory.path(), ServerUser::choose, |user| {
        directory.changeable_by(user)
    })
}

fn choose_among(
    asked: Option<&str>,
    directory: &Path,
    choose: impl Fn(Option<&str>) -> Result<ServerUser, Problem>,
    changeable: impl Fn(&ServerUser) -> Option<PathBuf>,
) -> Result<ServerUser, Problem> {
    let first = choose(asked)?;
    if !first.switched {
        return Ok(first);
    }
    let refused = |error: String, place: &Path| {
        Problem::new(error).detail(format!(
            "it may write to {}; functions of the copies run as the account of their server, and could \
             change the directory",
            place.display()
        ))
    };
    if asked.is_some() {
        return match changeable(&first) {
            None => Ok(first),
            Some(place) => Err(refused(
                format!(
                    "`{}` cannot run servers on copies of {}",
                    first.name,
                    directory.display()
                ),
                &place,
            )
            .hint("leave out --server-user, or name an account that has nothing to do with it")),
        };
    }
    let mut reasons = Vec::new();
    for user in ACCOUNTS.iter().filter_map(|name| choose(Some(name)).ok()) {
        match changeable(&user) {
            None => return Ok(user),
            Some(place) => reasons.push(format!("{} may write to {}", user.name, place.display())),
        }
    }
    Err(Problem::new(format!(
        "no account can run servers on copies of {}",
        directory.display()
    ))
    .detail(format!(
        "functions of the copies could change the directory: {}",
        reasons.join("; ")
    ))
    .hint("name an account that can write to none of these places with --server-user"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An account by its name; `switched` if root starts servers as another one.
    fn account(name: &str, switched: bool) -> ServerUser {
        ServerUser {
            name: name.to_owned(),
            uid: 5,
            gid: 5,
            switched,
        }
    }

    /// Who is chosen where these accounts exist and those of `owners` may change the directory.
    fn chosen(asked: Option<&str>, exist: &[&str], owners: &[&str]) -> Result<String, Problem> {
        let choose = |asked: Option<&str>| {
            let name = asked.unwrap_or("postgres");
            match exist.contains(&name) {
                true => Ok(account(name, true)),
                false => Err(Problem::new("no such account")),
            }
        };
        let changeable = |user: &ServerUser| {
            let may = owners.contains(&user.name.as_str());
            may.then(|| PathBuf::from("/d/base"))
        };
        choose_among(asked, Path::new("/d"), choose, changeable).map(|user| user.name)
    }

    #[test]
    fn root_takes_an_account_that_cannot_change_the_directory() {
        let all = ["postgres", "nobody", "daemon", "bench"];
        for (asked, owners, wanted) in [
            (None, &["postgres"][..], "nobody"),
            (None, &["nobody"], "postgres"),
            (None, &["nobody", "postgres"], "daemon"),
            (Some("bench"), &["postgres"], "bench"),
        ] {
            assert_eq!(chosen(asked, &all, owners).unwrap(), wanted, "{owners:?}");
        }
    }

    #[test]
    fn an_account_that_may_change_the_directory_is_refused_with_the_place() {
        let all = ["postgres", "nobody"];
        let asked = chosen(Some("postgres"), &all, &["postgres"]).unwrap_err();
        assert!(asked.detail.unwrap().contains("/d/base") && asked.hint.is_some());
        let none = chosen(None, &all, &all).unwrap_err();
        let detail = none.detail.unwrap();
        assert!(
            detail.ends_with("nobody may write to /d/base; postgres may write to /d/base"),
            "{detail}"
        );
        assert!(none.hint.unwrap().contains("--server-user"));
        assert!(chosen(Some("nosuch"), &all, &[]).is_err());
    }

    #[test]
    fn who_is_not_root_runs_servers_as_themselves() {
        let user = choose_among(
            None,
            Path::new("/d"),
            |_| Ok(account("me", false)),
            |_| Some(PathBuf::from("/d")),
        );
        assert_eq!(user.unwrap().name, "me");
    }
}
