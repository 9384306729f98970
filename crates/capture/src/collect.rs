//! From entries of a log to statements.

use crate::capture::Counted;
use crate::gathered::{Execution, Gathered, Key};
use crate::known::{Known, Texts};
use crate::log::entry::Entry;
use crate::message::{Said, Sent, Values, is_foreign_duration, said, values};
use crate::sampling::{Sampling, is_kept};
use crate::statement::{Protocol, Statement};
use deltabench_model::units::to_f64;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Something that began and whose duration may follow.
struct Begun {
    known: Rc<Known>,
    key: Key,
    values: Values,
    is_lossy: bool,
    query_id: Option<i64>,
    /// Whether it fetches more rows of an execution that was counted.
    is_fetch: bool,
}

/// What is known of a session.
#[derive(Default)]
struct Session {
    begun: Option<Begun>,
    /// Parsing and planning of what comes next, and how many durations that is.
    plan_ms: f64,
    plan_durations: u64,
    search_path: Option<String>,
    temporary: BTreeSet<String>,
    /// The statement that was bound last.
    bound: Option<[u8; 32]>,
}

/// How many executions of the extended protocol have their binding in the log.
#[derive(Default)]
struct Bound {
    executions: u64,
    with_binding: u64,
}

/// Executions whose text was logged when they began, and those that their durations stand for.
#[derive(Default)]
struct Timed {
    begun: f64,
    timed: f64,
}

/// Durations of a sample stand for at least this share of the executions, with luck and losses.
const OF_A_SAMPLE: f64 = 0.5;

/// Milliseconds: a log without a shorter execution has only slow ones.
const SLOW: f64 = 1.0;

/// Fewer executions say nothing of the log.
const ENOUGH: u64 = 100;

/// Statements so far.
pub(crate) struct Collector {
    most_tuples: usize,
    seed: u64,
    search_path: Option<String>,
    pub sampling: Sampling,
    pub counted: Counted,
    pub settings: BTreeMap<String, String>,
    pub server_version: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    /// Durations in another language than English.
    pub foreign: u64,
    /// The shortest duration of an execution.
    least_ms: Option<f64>,
    timed: Timed,
    bound: Bound,
    texts: Texts,
    sessions: HashMap<String, Session>,
    errors: HashMap<[u8; 32], u64>,
    statements: HashMap<Key, Gathered>,
}

/// A statement and the fingerprint that it shares with others.
pub(crate) type Hashed = (Statement, [u8; 32]);

impl Collector {
    pub(crate) fn new(
        most_tuples: usize,
        seed: u64,
        search_path: Option<String>,
        sampling: Sampling,
    ) -> Self {
        Self {
            most_tuples,
            seed,
            search_path,
            sampling,
            counted: Counted::default(),
            settings: BTreeMap::new(),
            server_version: None,
            from: None,
            to: None,
            foreign: 0,
            least_ms: None,
            timed: Timed::default(),
            bound: Bound::default(),
            texts: Texts::default(),
            sessions: HashMap::new(),
            errors: HashMap::new(),
            statements: HashMap::new(),
        }
    }

    /// Takes the next entry, in the order of time.
    pub(crate) fn add(&mut self, entry: &Entry) {
        self.counted.not_utf8 += u64::from(entry.is_lossy);
        if self.from.as_ref().is_none_or(|from| *from > entry.time) {
            self.from = Some(entry.time.clone());
        }
        if self.to.as_ref().is_none_or(|to| *to < entry.time) {
            self.to = Some(entry.time.clone());
        }
        if matches!(entry.severity.as_str(), "ERROR" | "FATAL" | "PANIC") {
            return self.failed(entry);
        }
        match said(&entry.message) {
            Said::Executed { ms, sent } => {
                self.end_of_begun(entry, None);
                let begun = self.begun(entry, sent, false);
                self.count_bound(entry, &begun);
                self.executed(&entry.session, begun, Some(ms), self.sampling.weight(ms));
            }
            Said::Begins(sent) => {
                self.end_of_begun(entry, None);
                let begun = self.begun(entry, sent, false);
                self.planned_before(entry, &begun);
                self.session(entry).begun = Some(begun);
            }
            Said::BeginsFetch(sent) => {
                self.end_of_begun(entry, None);
                let begun = self.begun(entry, sent, true);
                self.session(entry).begun = Some(begun);
            }
            Said::Fetched { ms, sent } => {
                let begun = self.begun(entry, sent, true);
                let weight = self.sampling.weight(ms);
                self.gathered(&begun).add_time(ms * weight);
            }
            Said::Planned { ms, sent } => {
                let begun = self.begun(entry, sent, true);
                let weight = self.sampling.weight(ms);
                self.session(entry).bound = Some(begun.key.hash);
                self.gathered(&begun).add_planning(ms * weight);
            }
            Said::Ended { ms } => self.ended(entry, ms),
            Said::Setting { name, value } => {
                self.sampling.set(name, value);
                match value.filter(|_| is_kept(name)) {
                    Some(value) => self.settings.insert(name.to_owned(), value.to_owned()),
                    None => self.settings.remove(name),
                };
                self.counted.other += 1;
            }
            Said::Version(version) => {
                self.server_version = Some(version.to_owned());
                self.counted.other += 1;
            }
            Said::Disconnected => {
                self.end_of_begun(entry, None);
                let session = self.sessions.remove(&entry.session).unwrap_or_default();
                self.counted.stray_durations += session.plan_durations;
                self.counted.other += 1;
            }
            Said::Other => {
                self.foreign += u64::from(is_foreign_duration(&entry.message));
                self.counted.other += 1;
            }
        }
    }

    fn session(&mut self, entry: &Entry) -> &mut Session {
        self.sessions.entry(entry.session.clone()).or_default()
    }

    /// What an entry says of an execution, with what its session is known for.
    fn begun(&mut self, entry: &Entry, sent: Sent<'_>, is_fetch: bool) -> Begun {
        let known = self.texts.known(sent.text);
        let default = self.search_path.clone();
        let session = self.session(entry);
        let key = Key {
            hash: known.fingerprint.hash,
            protocol: sent.protocol,
            role: entry.user.clone(),
            database: entry.database.clone(),
            search_path: session.search_path.clone().or(default),
            is_temporary: known.uses(&session.temporary),
        };
        Begun {
            known,
            key,
            values: values(entry.detail.as_deref()),
            is_lossy: entry.is_lossy,
            query_id: entry.query_id,
            is_fetch,
        }
    }

    fn gathered(&mut self, begun: &Begun) -> &mut Gathered {
        let (most, seed) = (self.most_tuples, self.seed);
        let known = || Gathered::new(begun.known.clone(), most, seed);
        self.statements
            .entry(begun.key.clone())
            .or_insert_with(known)
    }

    /// Parsing and planning that only had durations.
    fn planned_before(&mut self, entry: &Entry, begun: &Begun) {
        let session = self.session(entry);
        let ms = std::mem::take(&mut session.plan_ms);
        let durations = std::mem::take(&mut session.plan_durations);
        if begun.key.protocol == Protocol::Simple {
            self.counted.stray_durations += durations;
        } else if durations > 0 {
            self.gathered(begun).add_planning(ms);
        }
    }

    fn count_bound(&mut self, entry: &Entry, begun: &Begun) {
        let bound = self.session(entry).bound.take();
        if begun.key.protocol != Protocol::Simple {
            self.bound.executions += 1;
            self.bound.with_binding += u64::from(bound == Some(begun.key.hash));
        }
    }

    /// Share of the executions in the extended protocol whose binding is in the log; absent if there are few.
    pub(crate) fn bound_share(&self) -> Option<f64> {
        let Bound {
            executions,
            with_binding,
        } = self.bound;
        (executions >= ENOUGH).then(|| to_f64(with_binding) / to_f64(executions))
    }

    /// The shortest duration in a log that seems to have only slow executions: none is as fast as most
    /// executions of any server are. Absent if it has faster ones, or texts of others.
    pub(crate) fn slow_above_ms(&self) -> Option<f64> {
        let has_texts = self.counted.without_duration > 0;
        self.least_ms.filter(|ms| *ms >= SLOW && !has_texts)
    }

    /// A duration alone: of parsing or planning, or of what began before.
    fn ended(&mut self, entry: &Entry, ms: f64) {
        let tag = entry.tag.as_deref();
        let weight = self.sampling.weight(ms);
        let session = self.session(entry);
        let is_planning = matches!(tag, Some("PARSE" | "BIND"));
        if session.begun.is_some() && !is_planning {
            self.end_of_begun(entry, Some(ms));
        } else if is_planning || tag.is_none() {
            // Text logs do not say of what it is: in the extended protocol this can only be planning.
            session.plan_ms += ms * weight;
            session.plan_durations += 1;
        } else {
            self.counted.stray_durations += 1;
        }
    }

    /// What began in a session has ended, perhaps with a duration. Its text was logged whatever the sampling.
    fn end_of_begun(&mut self, entry: &Entry, ms: Option<f64>) {
        let Some(begun) = self.session(entry).begun.take() else {
            return;
        };
        let session = entry.session.clone();
        self.end(&session, begun, ms);
    }

    fn end(&mut self, session: &str, begun: Begun, ms: Option<f64>) {
        if begun.is_fetch {
            let weight = ms.map_or(0.0, |ms| self.sampling.weight(ms));
            self.gathered(&begun).add_time(ms.unwrap_or(0.0) * weight);
            return;
        }
        self.timed.begun += 1.0;
        self.timed.timed += ms.map_or(0.0, |ms| self.sampling.weight(ms));
        self.executed(session, begun, ms, 1.0);
    }

    fn executed(&mut self, session: &str, begun: Begun, ms: Option<f64>, calls: f64) {
        self.counted.executions += 1;
        self.counted.without_duration += u64::from(ms.is_none());
        if let Some(ms) = ms {
            self.least_ms = Some(self.least_ms.map_or(ms, |least| least.min(ms)));
        }
        let known = begun.known.clone();
        let timed = ms.map_or(0.0, |ms| self.sampling.weight(ms));
        if known.path.is_some() || known.temporary.is_some() {
            let session = self.sessions.entry(session.to_owned()).or_default();
            if let Some(path) = &known.path {
                session.search_path.clone_from(path);
            }
            session.temporary.extend(known.temporary.clone());
        }
        let gathered = self.gathered(&begun);
        gathered.add(Execution {
            known,
            values: begun.values,
            is_lossy: begun.is_lossy,
            query_id: begun.query_id,
            ms,
            calls,
            timed,
        });
    }

    /// A statement that ended with an error: what began has no end.
    fn failed(&mut self, entry: &Entry) {
        self.session(entry).begun = None;
        let Some(text) = &entry.statement else {
            self.counted.other += 1;
            return;
        };
        self.counted.errors += 1;
        let known = self.texts.known(text);
        *self.errors.entry(known.fingerprint.hash).or_default() += 1;
    }

    /// All statements that were executed, and what was begun last in each session.
    pub(crate) fn finish(&mut self) -> Vec<Hashed> {
        for (id, session) in std::mem::take(&mut self.sessions) {
            self.counted.stray_durations += session.plan_durations;
            if let Some(begun) = session.begun {
                self.end(&id, begun, None);
            }
        }
        // Without a rate, durations that are missing are those below log_min_duration_statement.
        let Timed { begun, timed } = self.timed;
        let sample = self.sampling.is_sample() && timed >= OF_A_SAMPLE * begun;
        let gathered = std::mem::take(&mut self.statements);
        let executed = gathered
            .into_iter()
            .filter(|(_, gathered)| gathered.was_executed());
        let mut statements: Vec<Hashed> = executed
            .map(|(key, gathered)| {
                let hash = key.hash;
                (gathered.statement(key, sample), hash)
            })
            .collect();
        sort(&mut statements);
        // An error has no protocol: it is counted with the largest statement of its text.
        for (statement, hash) in &mut statements {
            statement.errors = self.errors.remove(hash).unwrap_or(0);
        }
        statements
    }
}

/// The most time first.
pub(crate) fn sort(statements: &mut [Hashed]) {
    let key = |(statement, _): &Hashed| (statement.total_ms.unwrap_or(0.0), statement.calls);
    statements.sort_by(|a, b| {
        let (one, other) = (key(a), key(b));
        let by_time = other.0.total_cmp(&one.0).then(other.1.cmp(&one.1));
        by_time.then_with(|| a.0.id.cmp(&b.0.id))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Weight;

    fn collector(rate: Option<f64>) -> Collector {
        Collector::new(64, 1, None, Sampling::new(rate, None))
    }

    fn entry(message: &str) -> Entry {
        Entry {
            time: "2026-11-02 10:00:00.000 UTC".to_owned(),
            user: Some("app".to_owned()),
            database: Some("shop".to_owned()),
            session: "1.2".to_owned(),
            severity: "LOG".to_owned(),
            message: message.to_owned(),
            ..Entry::default()
        }
    }

    fn collected(entries: &[Entry], rate: Option<f64>) -> (Vec<Statement>, Counted) {
        let mut collector = collector(rate);
        for entry in entries {
            collector.add(entry);
        }
        let statements = collector
            .finish()
            .into_iter()
            .map(|(statement, _)| statement);
        (statements.collect(), collector.counted)
    }

    fn tagged(message: &str, tag: &str) -> Entry {
        Entry {
            tag: Some(tag.to_owned()),
            ..entry(message)
        }
    }

    fn with_values(message: &str, detail: &str) -> Entry {
        Entry {
            detail: Some(format!("Parameters: {detail}")),
            ..entry(message)
        }
    }

    fn near(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|found| (found - wanted).abs() < 1e-9)
    }

    #[test]
    fn executions_with_one_text_are_one_statement_with_planning_and_tuples() {
        let text = "execute s1: select * from t where a = $1";
        let (statements, counted) = collected(
            &[
                entry("duration: 0.5 ms  parse s1: select * from t where a = $1"),
                with_values(
                    "duration: 1.5 ms  bind s1: select * from t where a = $1",
                    "$1 = 'x'",
                ),
                with_values(&format!("duration: 2 ms  {text}"), "$1 = 'x'"),
                with_values(&format!("duration: 4 ms  {text}"), "$1 = NULL"),
            ],
            None,
        );
        let [statement] = statements.as_slice() else {
            panic!("{statements:?}");
        };
        assert_eq!((statement.calls, counted.executions), (2, 2));
        assert!(
            near(statement.total_ms, 8.0) && near(statement.plan_ms, 2.0),
            "{statement:?}"
        );
        assert_eq!(statement.protocol, Protocol::Prepared);
        let values: Vec<_> = statement
            .tuples
            .iter()
            .map(|tuple| tuple.values.clone())
            .collect();
        assert_eq!(values, [vec![None], vec![Some("x".to_owned())]]);
        assert_eq!(statement.text, "select * from t where a = $1");
    }

    #[test]
    fn durations_follow_texts_where_both_are_logged_apart() {
        let (statements, counted) = collected(
            &[
                tagged("duration: 0.25 ms", "PARSE"),
                tagged("duration: 0.75 ms", "BIND"),
                tagged("execute <unnamed>: select 1", "SELECT"),
                tagged("duration: 3 ms", "SELECT"),
                tagged("duration: 9 ms", "idle"),
                tagged("statement: update t set a = 1", "UPDATE"),
                tagged("statement: select 2", "SELECT"),
            ],
            None,
        );
        assert_eq!(statements.len(), 3);
        assert!(near(statements[0].total_ms, 4.0) && near(statements[0].plan_ms, 1.0));
        assert_eq!(statements[1].total_ms, None);
        assert_eq!((counted.stray_durations, counted.without_duration), (1, 2));
    }

    #[test]
    fn in_text_logs_a_duration_alone_is_planning_only_before_an_extended_statement() {
        let (statements, counted) = collected(
            &[
                entry("duration: 0.5 ms"),
                entry("execute s1: select 1"),
                entry("duration: 2 ms"),
                entry("duration: 8 ms"),
                entry("statement: select 2, 3"),
                entry("duration: 1 ms"),
                entry("duration: 7 ms"),
            ],
            None,
        );
        assert_eq!(counted.stray_durations, 2);
        assert!(near(statements[0].total_ms, 2.5) && near(statements[1].total_ms, 1.0));
    }

    #[test]
    fn a_sampled_log_counts_what_it_leaves_out() {
        let (statements, _) =
            collected(&[entry("duration: 2 ms  statement: select 1")], Some(0.01));
        assert_eq!(statements[0].calls, 100);
        assert!(near(statements[0].total_ms, 200.0));
        // All texts are logged, but few durations.
        let mut entries = vec![entry("statement: select 1"); 9];
        entries.push(entry("duration: 2 ms"));
        let (statements, _) = collected(&entries, Some(0.01));
        assert_eq!(statements[0].calls, 9);
        assert!(near(statements[0].total_ms, 18.0));
    }

    #[test]
    fn durations_of_slow_executions_only_say_nothing_of_the_others() {
        let mut entries = vec![entry("statement: select 1"); 1000];
        entries.push(entry("duration: 1500 ms"));
        entries.push(entry("duration: 1 ms  statement: select a from b"));
        let (statements, _) = collected(&entries, None);
        assert_eq!(
            (statements[0].calls, statements[0].weight),
            (1000, Weight::AtLeast)
        );
        assert!(near(statements[0].total_ms, 1500.0), "{statements:?}");
        assert_eq!(statements[1].weight, Weight::Log);
        // A rate that does not explain what is missing.
        let (statements, _) = collected(&entries, Some(0.5));
        assert_eq!(statements[0].weight, Weight::AtLeast);
        // One of many was lost.
        let mut entries: Vec<Entry> = (0..9)
            .flat_map(|_| [entry("statement: select 1"), entry("duration: 2 ms")])
            .collect();
        entries.push(entry("statement: select 1"));
        let (statements, _) = collected(&entries, None);
        assert!(near(statements[0].total_ms, 20.0), "{statements:?}");
        assert_eq!(statements[0].weight, Weight::Log);
    }

    #[test]
    fn a_log_of_slow_executions_is_known_by_its_shortest_one() {
        let slow = |entries: &[Entry]| {
            let mut collector = collector(None);
            entries.iter().for_each(|entry| collector.add(entry));
            collector.finish();
            collector.slow_above_ms()
        };
        let mut entries = vec![
            entry("duration: 300 ms  statement: select 1"),
            entry("duration: 250.5 ms  statement: select 1"),
        ];
        assert!(near(slow(&entries), 250.5));
        entries.push(entry("statement: select 2"));
        assert_eq!(slow(&entries), None);
        entries.pop();
        entries.push(entry("duration: 0.2 ms  statement: select 1"));
        assert_eq!(slow(&entries), None);
    }

    #[test]
    fn what_cannot_be_executed_again_is_counted() {
        let text = "duration: 1 ms  execute <unnamed>: select $1::text";
        let mut lossy = entry("duration: 1 ms  statement: select 'x'");
        lossy.is_lossy = true;
        let (statements, counted) = collected(
            &[
                with_values(text, "$1 = 'abc...'"),
                with_values(text, "$1 = 'abc"),
                entry(text),
                entry("duration: 1 ms  statement: select 'cut"),
                lossy,
            ],
            None,
        );
        let found = |protocol| {
            statements
                .iter()
                .find(|s| s.protocol == protocol)
                .unwrap()
                .unusable
        };
        let extended = found(Protocol::Extended);
        assert_eq!(
            (extended.cut, extended.broken, extended.without_values),
            (1, 1, 1)
        );
        let simple = statements
            .iter()
            .filter(|statement| statement.protocol == Protocol::Simple);
        assert_eq!(
            simple
                .map(|statement| statement.unusable.broken)
                .sum::<u64>(),
            2
        );
        assert_eq!((counted.executions, counted.not_utf8), (5, 1));
        assert!(
            statements
                .iter()
                .all(|statement| statement.obstacle().is_some())
        );
    }

    #[test]
    fn a_sample_shows_because_bindings_are_missing() {
        let mut whole = collector(None);
        let mut sample = collector(None);
        for number in 0..400 {
            let bind = entry("duration: 1 ms  bind s1: select 1");
            let execute = entry("duration: 1 ms  execute s1: select 1");
            whole.add(&bind);
            whole.add(&execute);
            for (at, entry) in [bind, execute].iter().enumerate() {
                if (number + at * 3) % 5 == 0 {
                    sample.add(entry);
                }
            }
        }
        assert!(near(whole.bound_share(), 1.0));
        assert!(sample.bound_share().is_none(), "80 are too few");
        for _ in 0..100 {
            sample.add(&entry("duration: 1 ms  execute s1: select 1"));
        }
        assert!(sample.bound_share() < Some(0.5));
    }

    #[test]
    fn errors_are_counted_and_end_what_began() {
        let mut failed = entry("division by zero");
        failed.severity = "ERROR".to_owned();
        failed.statement = Some("select 1/0".to_owned());
        let (statements, counted) = collected(
            &[
                entry("statement: select 1/0"),
                failed,
                entry("duration: 1 ms  statement: select 4/2"),
            ],
            None,
        );
        assert_eq!(statements.len(), 1);
        assert_eq!(
            (statements[0].calls, statements[0].errors, counted.errors),
            (1, 1, 1)
        );
    }

    #[test]
    fn sessions_have_their_own_path_and_temporary_tables() {
        let mut other = entry("duration: 1 ms  statement: select * from scratch");
        other.session = "3.4".to_owned();
        let (statements, _) = collected(
            &[
                entry("duration: 1 ms  statement: set search_path = a"),
                entry("duration: 1 ms  statement: create temp table scratch (a int)"),
                entry("duration: 1 ms  statement: select * from scratch"),
                other,
            ],
            None,
        );
        let paths: Vec<_> = statements
            .iter()
            .filter(|statement| statement.normalised == "select * from scratch")
            .map(|statement| (statement.kind.word(), statement.search_path.as_deref()))
            .collect();
        assert!(paths.contains(&("temporary", Some("a"))), "{paths:?}");
        assert!(paths.contains(&("read", None)), "{paths:?}");
    }

    #[test]
    fn rows_that_are_fetched_later_are_time_and_no_execution() {
        let (statements, counted) = collected(
            &[
                entry("duration: 1 ms  execute <unnamed>/C_1: select 1"),
                entry("duration: 2 ms  execute fetch from <unnamed>/C_1: select 1"),
                entry("execute fetch from <unnamed>/C_1: select 1"),
                entry("duration: 3 ms"),
            ],
            None,
        );
        assert_eq!(
            (statements.len(), statements[0].calls, counted.executions),
            (1, 1, 1)
        );
        assert!(near(statements[0].total_ms, 6.0), "{statements:?}");
    }
}
