//! The settings that a server itself lists.

use super::enquiry::{self, Answer};
use super::entry::{Entry, Kind};
use super::history::{self, branch};
use super::translation;
use deltabench_model::installation::Installation;
use deltabench_model::problem::{Problem, nearest};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The settings of one server program, asked of the program itself without starting a server.
pub struct Catalogue {
    server: String,
    version_num: u32,
    /// Absent in tests on text.
    postgres: Option<PathBuf>,
    /// By name in lower case.
    entries: BTreeMap<String, Entry>,
    /// What was asked about names that are not listed.
    asked: Mutex<BTreeMap<String, bool>>,
}

/// By directory and hash of the program, for as long as this process lives.
type Known = Mutex<BTreeMap<(PathBuf, String), Arc<Catalogue>>>;
static KNOWN: LazyLock<Known> = LazyLock::new(Known::default);

impl Catalogue {
    /// The settings of this server; each program is asked once.
    ///
    /// Errors: it is a remote server, or its program does not answer.
    pub fn of(installation: &Installation) -> Result<Arc<Self>, Problem> {
        if installation.remote.is_some() {
            return Err(Problem::new(format!(
                "the settings of {} cannot be chosen",
                installation.resolved
            ))
            .detail("it is a server that deltabench does not start")
            .hint("leave out configuration and settings for it"));
        }
        let key = (
            installation.bin_dir.clone(),
            installation.binary_sha256.clone(),
        );
        if let Some(known) = known().get(&key) {
            return Ok(Arc::clone(known));
        }
        let postgres = installation.bin_dir.join("postgres");
        let text = enquiry::describe(&postgres)?;
        let mut catalogue = Self::parse(&installation.resolved, installation.version_num, &text);
        catalogue.postgres = Some(postgres);
        let catalogue = Arc::new(catalogue);
        known().insert(key, Arc::clone(&catalogue));
        Ok(catalogue)
    }

    /// From what `postgres --describe-config` printed.
    pub(super) fn parse(server: &str, version_num: u32, text: &str) -> Self {
        let entries = text.lines().filter_map(parse_line);
        Self {
            server: server.to_owned(),
            version_num,
            postgres: None,
            entries: entries
                .map(|entry| (entry.name.to_ascii_lowercase(), entry))
                .collect(),
            asked: Mutex::default(),
        }
    }

    /// The server, as problems call it: `postgres:17.11`.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// `server_version_num`.
    pub fn version_num(&self) -> u32 {
        self.version_num
    }

    /// All settings that it lists, by name. Some 50, mostly for developers, it has but does not list.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// What it lists of a setting, whatever the case of the name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(&name.to_ascii_lowercase())
    }

    /// Whether the server has a setting, listed or not.
    ///
    /// Errors: its program cannot be run.
    pub fn has(&self, name: &str) -> Result<bool, Problem> {
        let name = name.to_ascii_lowercase();
        if self.entries.contains_key(&name) {
            return Ok(true);
        }
        // Some programs still take names that are gone, and do nothing for them.
        if history::period(&name).is_some_and(|period| !period.covers(self.version_num)) {
            return Ok(false);
        }
        let Some(postgres) = &self.postgres else {
            return Ok(false);
        };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = asked.get(&name) {
            return Ok(*known);
        }
        let known = match enquiry::ask(postgres, &name, &[])? {
            Answer::Taken => true,
            Answer::Refused(why) if enquiry::is_unknown(&why) => false,
            // Some are worked out from the data directory, which it goes on to look for.
            Answer::Refused(why) if why.contains("data directory") => true,
            Answer::Refused(why) => return Err(self.silent(&why)),
        };
        asked.insert(name, known);
        Ok(known)
    }

    /// Whether a setting that the server has takes `kB`, `MB` and `GB`.
    ///
    /// Errors: its program cannot be run.
    pub(super) fn takes_memory(&self, name: &str) -> Result<bool, Problem> {
        // In the answer to a unit that does not exist it lists those that do.
        let nonsense = [(name.to_owned(), "1deltabench".to_owned())];
        Ok(match self.ask(name, &nonsense)? {
            Answer::Taken => false,
            Answer::Refused(why) => why.contains("\"kB\""),
        })
    }

    /// Asks the program whether it takes these values.
    pub(super) fn ask(&self, name: &str, values: &[(String, String)]) -> Result<Answer, Problem> {
        match &self.postgres {
            Some(postgres) => enquiry::ask(postgres, name, values),
            None => Ok(Answer::Taken),
        }
    }

    fn silent(&self, why: &str) -> Problem {
        Problem::new(format!("{} does not list its settings", self.server)).detail(why)
    }

    /// That the server has no such setting, and what may have been meant.
    pub(super) fn unknown(&self, name: &str) -> Problem {
        let problem = Problem::new(format!("{} has no setting `{name}`", self.server));
        let lower = name.to_ascii_lowercase();
        if let Some(renaming) = translation::renaming(&lower, self.version_num) {
            let (version, name) = (branch(self.version_num), renaming.name());
            return problem.hint(format!("{version} calls it {name}"));
        }
        if let Some(period) = history::period(&lower) {
            let when = translation::when(period, self.version_num);
            return problem.detail(when).hint(
                "set it only for the servers that have it; a named configuration leaves it out \
                 automatically",
            );
        }
        let other_versions = history::periods()
            .filter(|period| period.covers(self.version_num))
            .map(|period| period.name);
        let listed = self.entries.keys().map(String::as_str);
        match nearest(&lower, listed.chain(other_versions)) {
            Some(near) => problem.hint(format!("did you mean {near}?")),
            None => problem.hint("an extension's setting has a dot: auto_explain.log_min_duration"),
        }
    }
}

/// Checks that a server has all of these settings, before anything is started. Those of extensions (with a
/// dot) pass; nobody knows them before the extension is loaded.
///
/// Errors: a name that this version does not have, with the nearest one or with the versions that have it.
pub fn check_known(settings: &[(String, String)], catalogue: &Catalogue) -> Result<(), Problem> {
    for (name, _) in settings {
        if !name.contains('.') && !catalogue.has(name)? {
            return Err(catalogue.unknown(name));
        }
    }
    Ok(())
}

fn known() -> std::sync::MutexGuard<'static, BTreeMap<(PathBuf, String), Arc<Catalogue>>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn parse_line(line: &str) -> Option<Entry> {
    let mut fields = line.split('\t');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let context = fields.next()?;
    let kind = match fields.nth(1)? {
        "BOOLEAN" => Kind::Boolean,
        "INTEGER" => Kind::Integer,
        "REAL" => Kind::Real,
        "ENUM" => Kind::Enum,
        "STRING" => Kind::Text,
        _ => return None,
    };
    // The default is what it is before anything is initialised, and says nothing.
    let mut bound = || fields.next().and_then(|text| text.parse().ok());
    let _ = bound();
    Some(Entry {
        name: name.to_owned(),
        context: context.to_owned(),
        kind,
        minimum: bound(),
        maximum: bound(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "work_mem\tuser\tResource Usage / Memory\tINTEGER\t0\t64\t2147483647\tSets.\t\n\
        DateStyle\tuser\tClient\tSTRING\t\t\t\tSets.\t\n\
        jit\tuser\tQuery Tuning\tBOOLEAN\tFALSE\t\t\tAllow JIT.\t\n\
        wal_compression\tsuperuser\tWAL\tENUM\toff\t\t\tCompresses.\t\n\
        max_wal_size\tsighup\tWAL\tINTEGER\t0\t2\t2147483647\tSets.\t\n\
        seq_page_cost\tuser\tPlanner\tREAL\t0\t0\t1.79769e+308\tSets.\t\n";

    fn catalogue() -> Catalogue {
        Catalogue::parse("postgres:17.11", 170_011, LISTED)
    }

    fn refusal(name: &str) -> Problem {
        check_known(&[(name.to_owned(), "1".to_owned())], &catalogue()).unwrap_err()
    }

    #[test]
    fn types_and_bounds_are_as_listed() {
        let catalogue = catalogue();
        assert_eq!(catalogue.entries().count(), 6);
        let work_mem = catalogue.entry("Work_Mem").unwrap();
        assert_eq!(
            (work_mem.kind, work_mem.minimum, work_mem.maximum),
            (Kind::Integer, Some(64.0), Some(2_147_483_647.0))
        );
        assert_eq!(work_mem.context, "user");
        let kind = |name| catalogue.entry(name).unwrap().kind;
        assert_eq!(
            (kind("jit"), kind("wal_compression"), kind("datestyle")),
            (Kind::Boolean, Kind::Enum, Kind::Text)
        );
        assert_eq!(kind("seq_page_cost"), Kind::Real);
        assert_eq!(catalogue.entry("jit").unwrap().maximum, None);
    }

    #[test]
    fn a_misspelt_name_is_refused_with_the_nearest() {
        let problem = refusal("wrok_mem");
        assert_eq!(problem.error, "postgres:17.11 has no setting `wrok_mem`");
        assert_eq!(problem.hint.unwrap(), "did you mean work_mem?");
        let problem = refusal("Debug_Paralel_Query");
        assert_eq!(problem.hint.unwrap(), "did you mean debug_parallel_query?");
        assert!(
            refusal("no_such_thing_at_all")
                .hint
                .unwrap()
                .contains("extension")
        );
    }

    #[test]
    fn a_name_of_another_version_is_refused_with_the_versions() {
        let problem = refusal("io_workers");
        assert_eq!(
            problem.detail.unwrap(),
            "17 has no io_workers; 18 introduced it"
        );
        for (name, when) in [
            ("old_snapshot_threshold", "only 9.6 to 16 have it"),
            ("vacuum_defer_cleanup_age", "15 was the last to have it"),
        ] {
            let told = refusal(name).detail.unwrap_or_default();
            assert!(told.ends_with(when), "{told}");
        }
        let problem = refusal("checkpoint_segments");
        assert_eq!(problem.hint.unwrap(), "17 calls it max_wal_size");
    }

    #[test]
    fn settings_of_extensions_pass() {
        let settings = [("pg_stat_statements.max".to_owned(), "100".to_owned())];
        check_known(&settings, &catalogue()).unwrap();
    }
}
