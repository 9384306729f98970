//! Where the tables of a replay are from: a dump, a data directory, or servers that have them.

use super::read_dump;
use crate::arguments::conditions::Checksums;
use crate::arguments::replay::ReplayArguments;
use crate::config::Config;
use crate::failure::Failure;
use deltabench_model::problem::Problem;
use deltabench_model::work::replay::ReplaySetup;
use deltabench_replay::{Data, DirectoryData, DumpFile, Survey};
use deltabench_server::{DataDirectory, DirectorySettings, ServerUser, choose_apart};
use std::path::{Path, PathBuf};

/// What the path of a data directory begins with in `--data`.
const DIRECTORY: &str = "datadir:";
/// Names of settings that a line lists before the rest is counted.
const SHOWN: usize = 12;

/// Where the tables are from.
pub enum Source {
    Dump(Box<(DumpFile, Survey)>),
    Directory {
        directory: DataDirectory,
        database: Option<String>,
    },
    AsIs,
}

impl Source {
    /// Reads a dump, or looks at a data directory.
    ///
    /// Errors: either is not usable; an option that does not go with it.
    pub fn of(arguments: &ReplayArguments, config: &Config) -> Result<Self, Failure> {
        let data = arguments.data.as_deref();
        let Some(path) = data.and_then(directory) else {
            if arguments.database.is_some() {
                return Err(Failure::Refused(
                    Problem::new("--database does not apply here")
                        .detail("it names a database of a data directory")
                        .hint("leave it out, or name a data directory: --data datadir:DIR"),
                ));
            }
            return match data {
                Some(path) => Ok(Self::Dump(Box::new(read_dump(path)?))),
                None => Ok(Self::AsIs),
            };
        };
        if arguments.checksums != Checksums::Default {
            return Err(Failure::Refused(
                Problem::new("--checksums does not apply to a data directory")
                    .detail("its copies have checksums if it has them")
                    .hint("leave it out"),
            ));
        }
        let directory = DataDirectory::find(&path).map_err(Failure::Refused)?;
        let source = Self::Directory {
            directory,
            database: arguments.database.clone(),
        };
        let written = source.check_written(&config.lab, arguments.cluster_dir.as_deref());
        written.map_err(Failure::Refused)?;
        Ok(source)
    }

    /// That of a replay that began before.
    ///
    /// Errors: it cannot be read.
    pub fn again(setup: &ReplaySetup) -> Result<Self, Failure> {
        let Some(known) = &setup.data else {
            return Ok(Self::AsIs);
        };
        let path = Path::new(&known.path);
        let Some(database) = &setup.directory_database else {
            return Ok(Self::Dump(Box::new(read_dump(path)?)));
        };
        Ok(Self::Directory {
            directory: DataDirectory::find(path).map_err(Failure::Refused)?,
            database: Some(database.clone()),
        })
    }

    /// Refuses a lab, and a directory for clusters, inside the data directory.
    ///
    /// Errors: either is.
    pub fn check_written(&self, lab: &Path, cluster_dir: Option<&Path>) -> Result<(), Problem> {
        let Self::Directory { directory, .. } = self else {
            return Ok(());
        };
        let mut written = std::iter::once(lab).chain(cluster_dir);
        written.try_for_each(|place| check_outside(directory.path(), place))
    }

    /// For a request.
    pub fn data(&self) -> Data<'_> {
        match self {
            Self::Dump(dump) => Data::Dump {
                file: &dump.0,
                survey: &dump.1,
            },
            Self::Directory {
                directory,
                database,
            } => Data::Directory(DirectoryData {
                directory,
                database: database.as_deref(),
            }),
            Self::AsIs => Data::AsIs,
        }
    }

    /// The account for servers on copies of a data directory, which root chooses so that it cannot change the
    /// directory; absent for other tables. `asked` is the user's.
    ///
    /// Errors: those of [`choose_apart`].
    pub fn server_user(&self, asked: Option<&str>) -> Result<Option<ServerUser>, Problem> {
        match self {
            Self::Directory { directory, .. } => choose_apart(asked, directory).map(Some),
            Self::Dump(_) | Self::AsIs => Ok(None),
        }
    }

    /// What tells it from another one with the same path; absent if the servers had the tables.
    pub fn sha256(&self) -> Option<&str> {
        match self {
            Self::Dump(dump) => Some(&dump.1.sha256),
            Self::Directory { directory, .. } => Some(&directory.control().sha256),
            Self::AsIs => None,
        }
    }
}

/// Refuses a place for our own files inside the data directory, which is only read.
fn check_outside(directory: &Path, place: &Path) -> Result<(), Problem> {
    if !is_inside(place, directory) {
        return Ok(());
    }
    Err(
        Problem::new(format!("{} is inside the data directory", place.display()))
            .detail("deltabench only reads the data directory")
            .hint("name places outside of it with --lab and --cluster-dir"),
    )
}

/// Whether a place lies in a directory, whether it exists yet or not; links are followed.
fn is_inside(place: &Path, directory: &Path) -> bool {
    let absolute = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let inside = absolute.ancestors().find_map(real);
    let both = inside.zip(real(directory));
    both.is_some_and(|(inside, directory)| inside.starts_with(directory))
}

/// The path of a data directory in `--data`.
fn directory(data: &Path) -> Option<PathBuf> {
    data.to_str()?.strip_prefix(DIRECTORY).map(PathBuf::from)
}

/// Who runs the servers on copies, and what that means for the directory.
pub fn account_told(directory: &DataDirectory, user: &ServerUser, functions: bool) -> String {
    let (name, path) = (&user.name, directory.path().display());
    match (directory.changeable_by(user), functions) {
        (None, _) => format!("servers run as {name}, who cannot change {path}"),
        (Some(_), true) => format!(
            "warning: servers run as {name}, who may also write to {path}: a function of the database that \
             reaches files could change it, and --allow-functions lets it"
        ),
        (Some(_), false) => format!(
            "servers run as {name}, who may also write to {path}: if the database has an extension, language \
             or foreign server that reaches files or other machines, deltabench stops before it starts a \
             server with a socket"
        ),
    }
}

/// Settings with the name that reports give them.
type Named = (String, Vec<(String, String)>);

/// The configuration that a data directory has, by a name for reports; absent if it sets nothing.
///
/// Errors: a file that cannot be read.
pub fn configuration(source: &Source) -> Result<Option<Named>, Problem> {
    let Source::Directory { directory, .. } = source else {
        return Ok(None);
    };
    let taken = directory.settings()?.taken;
    let name = format!("postgresql.conf of {}", directory.path().display());
    Ok((!taken.is_empty()).then_some((name, taken)))
}

/// What of the settings of a data directory is taken over, in words; `has_own`: the user names others.
///
/// Errors: a file that cannot be read.
pub fn settings_told(directory: &DataDirectory, has_own: bool) -> Result<Vec<String>, Problem> {
    Ok(told(&directory.settings()?, has_own))
}

/// What of the settings of a directory is taken over.
fn told(settings: &DirectorySettings, has_own: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if has_own {
        lines.push("the settings of the data directory are not used: --config is given".to_owned());
    } else if !settings.has_file {
        lines.push(
            "the data directory has no postgresql.conf (Debian keeps it in /etc/postgresql): add --config \
             FILE, or plans are those of default settings"
                .to_owned(),
        );
    }
    if !has_own && !settings.taken.is_empty() {
        let pairs: Vec<String> = settings
            .taken
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        lines.push(format!(
            "settings of the data directory: {}",
            listed(&pairs)
        ));
    }
    if !settings.left.is_empty() {
        let names: Vec<String> = settings.left.iter().cloned().collect();
        lines.push(format!(
            "settings that are not taken over (deltabench chooses them, or plans do not need them): {}",
            listed(&names)
        ));
    }
    if !settings.libraries.is_empty() {
        lines.push(format!(
            "libraries that its server loaded and the copies do not: {}",
            listed(&settings.libraries)
        ));
    }
    if !settings.includes.is_empty() {
        lines.push(format!(
            "files that its postgresql.conf includes are not read: {}; if they have settings of the planner, \
             add --config FILE",
            listed(&settings.includes)
        ));
    }
    lines
}

fn listed(all: &[String]) -> String {
    let shown: Vec<&str> = all.iter().take(SHOWN).map(String::as_str).collect();
    match all.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_is_named_by_its_prefix() {
        assert_eq!(
            directory(Path::new("datadir:/d/17")),
            Some(PathBuf::from("/d/17"))
        );
        assert_eq!(directory(Path::new("shop.dump")), None);
    }

    #[test]
    fn places_inside_the_data_directory_are_refused_whether_they_are_there_or_not() {
        let data = tempfile::tempdir().unwrap();
        let inside = [data.path().to_owned(), data.path().join("new/clusters")];
        for place in &inside {
            let refused = check_outside(data.path(), place).unwrap_err();
            assert!(refused.error.contains("is inside the data directory"));
        }
        let beside = tempfile::tempdir().unwrap();
        check_outside(data.path(), beside.path()).unwrap();
        let link = beside.path().join("link");
        std::os::unix::fs::symlink(data.path(), &link).unwrap();
        check_outside(data.path(), &link.join("x")).unwrap_err();
    }

    #[test]
    fn what_is_taken_over_and_what_is_not_is_said() {
        let mut settings = DirectorySettings::default();
        assert!(told(&settings, false)[0].contains("/etc/postgresql"));
        settings.has_file = true;
        settings.taken = vec![("work_mem".to_owned(), "64MB".to_owned())];
        settings.left = (0..14).map(|number| format!("s{number:02}")).collect();
        settings.libraries = vec!["pg_cron".to_owned()];
        let lines = told(&settings, false);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].ends_with("work_mem = 64MB") && lines[1].ends_with("s11, and 2 more"));
        assert!(lines[2].ends_with("pg_cron"));
        assert!(told(&settings, true)[0].contains("--config is given"));
    }
}
