//! From entries of a log to statements.

use crate::capture::Counted;
use crate::gathered::{Execution, Gathered, Key};
use crate::known::{Known, Texts};
use crate::log::entry::{Entry, time_of};
use crate::message::{Said, Sent, Values, is_foreign_duration, said, values};
use crate::sampling::{Sampling, is_kept};
use crate::session::State;
use crate::statement::{Protocol, Statement};
use deltabench_model::units::{count, to_f64};
use std::collections::{BTreeMap, HashMap};
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
    /// Parsing and planning of what comes next: durations alone.
    planned: Vec<f64>,
    /// Whether the log has durations of executions whose text it does not have. Text logs do not tell them
    /// from planning.
    has_others: bool,
    state: State,
    /// Bytes of the longest value that is certainly whole.
    longest: usize,
    /// Who it is: text logs name sessions by their process, and numbers come again.
    user: Option<String>,
    database: Option<String>,
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

/// The version from which values are cut.
const PARAMETERS_ARE_CUT: u32 = 13;

/// Durations before an execution in the extended protocol: of parsing and of planning.
const PLANNED: usize = 2;

/// Fewer executions say nothing of the log.
const ENOUGH: u64 = 100;

/// What kind of entry it is.
enum Gravity {
    Error,
    /// A warning, a notice, or for developers.
    Remark,
    Log,
}

/// By the word, which may be of another language, and by the SQLSTATE: classes 00 to 02 are no errors.
fn gravity(entry: &Entry) -> Gravity {
    // `RAISE LOG` of a function may say what it likes, and values of users with it.
    let log = match entry.has_context {
        true => Gravity::Remark,
        false => Gravity::Log,
    };
    match entry.severity.as_str() {
        "LOG" => log,
        "ERROR" | "FATAL" | "PANIC" => Gravity::Error,
        "WARNING" | "NOTICE" | "INFO" => Gravity::Remark,
        word if word.starts_with("DEBUG") => Gravity::Remark,
        _ => match entry.state.as_deref().and_then(|state| state.get(..2)) {
            None | Some("00") => log,
            Some("01" | "02") => Gravity::Remark,
            Some(_) => Gravity::Error,
        },
    }
}

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
        self.cover(&entry.time);
        self.meet(entry);
        match gravity(entry) {
            Gravity::Error => return self.failed(entry),
            Gravity::Remark => {
                self.counted.other += 1;
                return;
            }
            Gravity::Log => {}
        }
        match said(&entry.message) {
            Said::Executed { ms, sent } => {
                self.end_of_begun(entry, None);
                self.forget_planning(entry);
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
                self.leave_all();
                self.server_version = Some(version.to_owned());
                self.counted.other += 1;
            }
            Said::Connects => {
                self.leave(&entry.session);
                self.counted.other += 1;
            }
            Said::Ready => {
                self.leave_all();
                self.counted.other += 1;
            }
            Said::Other => {
                self.counted.foreign += u64::from(is_foreign_duration(&entry.message));
                self.counted.other += 1;
            }
        }
    }

    /// The period of the log has this time.
    fn cover(&mut self, time: &str) {
        let time = time_of(time);
        if time.is_empty() {
            return;
        }
        if self.from.as_deref().is_none_or(|from| from > time) {
            self.from = Some(time.to_owned());
        }
        if self.to.as_deref().is_none_or(|to| to < time) {
            self.to = Some(time.to_owned());
        }
    }

    /// Another user or database is another session with the same process.
    fn meet(&mut self, entry: &Entry) {
        let session = self.session(entry);
        let differ = |known: &Option<String>, new: &Option<String>| {
            known.is_some() && new.is_some() && known != new
        };
        if differ(&session.user, &entry.user) || differ(&session.database, &entry.database) {
            self.leave(&entry.session);
        }
        let session = self.session(entry);
        for (known, new) in [
            (&mut session.user, &entry.user),
            (&mut session.database, &entry.database),
        ] {
            if known.is_none() {
                known.clone_from(new);
            }
        }
    }

    /// A session has ended.
    fn leave(&mut self, id: &str) {
        let begun = self
            .sessions
            .get_mut(id)
            .and_then(|session| session.begun.take());
        if let Some(begun) = begun {
            self.end(id, begun, None);
        }
        let session = self.sessions.remove(id).unwrap_or_default();
        self.counted.stray_durations += count(session.planned.len());
    }

    /// All sessions have ended: the server was started, or started again after a crash.
    fn leave_all(&mut self) {
        let mut sessions: Vec<String> = self.sessions.keys().cloned().collect();
        sessions.sort();
        for session in sessions {
            self.leave(&session);
        }
    }

    fn session(&mut self, entry: &Entry) -> &mut Session {
        self.sessions.entry(entry.session.clone()).or_default()
    }

    /// What an entry says of an execution, with what its session is known for.
    fn begun(&mut self, entry: &Entry, sent: Sent<'_>, is_fetch: bool) -> Begun {
        let known = self.texts.known(sent.text);
        let values = self.whole(entry, values(entry.detail.as_deref()));
        let default = self.search_path.clone();
        let session = self.session(entry);
        let key = Key {
            hash: known.fingerprint.hash,
            protocol: sent.protocol,
            role: session
                .state
                .now
                .role
                .clone()
                .or_else(|| entry.user.clone()),
            database: entry.database.clone(),
            search_path: session.state.now.path.clone().or(default),
            is_temporary: known.uses(&session.state.now.temporary),
        };
        let is_several = known.is_several;
        Begun {
            known,
            key,
            values,
            is_lossy: entry.is_lossy,
            query_id: entry.query_id.filter(|_| !is_several),
            is_fetch,
        }
    }

    /// `log_parameter_max_length` cuts all values of a session to about one length: one that is shorter than
    /// others is whole, though it ends in `...`. Before 13 none is cut.
    fn whole(&mut self, entry: &Entry, values: Values) -> Values {
        let version = self.server_version.as_deref();
        let major: Option<u32> = version
            .and_then(|version| version.split('.').next()?.parse().ok())
            .filter(|major| *major < PARAMETERS_ARE_CUT);
        let session = self.session(entry);
        let (Values::Whole(sent) | Values::Dotted(sent)) = &values else {
            return values;
        };
        let (dotted, whole): (Vec<&String>, Vec<&String>) = sent
            .iter()
            .flatten()
            .partition(|value| value.ends_with("..."));
        let length = |values: &[&String]| values.iter().map(|value| value.len()).max();
        session.longest = session.longest.max(length(&whole).unwrap_or(0));
        // With the dots a cut one has the limit's length at least.
        let longest = session.longest;
        let is_whole = major.is_some() || dotted.iter().all(|value| value.len() < longest);
        match values {
            Values::Dotted(sent) if is_whole => Values::Whole(sent),
            values => values,
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
        if begun.key.protocol == Protocol::Simple || session.has_others {
            return self.forget_planning(entry);
        }
        // An execution that is logged has one duration of parsing and one of planning at most.
        let mut planned = std::mem::take(&mut session.planned);
        let own = planned.split_off(planned.len().saturating_sub(PLANNED));
        self.counted.stray_durations += count(planned.len());
        if !own.is_empty() {
            self.gathered(begun).add_planning(own.iter().sum());
        }
    }

    /// Planning of something else than what comes next.
    fn forget_planning(&mut self, entry: &Entry) {
        let session = self.session(entry);
        // Planning that no statement follows was none, in a text log.
        session.has_others |= entry.tag.is_none() && !session.planned.is_empty();
        let planned = std::mem::take(&mut session.planned);
        self.counted.stray_durations += count(planned.len());
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
        let session = self.session(entry);
        let is_planning = matches!(tag, Some("PARSE" | "BIND"));
        if session.begun.is_some() && !is_planning {
            self.end_of_begun(entry, Some(ms));
            self.forget_planning(entry);
        } else if is_planning || tag.is_none() {
            // Text logs do not say of what it is: in the extended protocol this can only be planning.
            // Sampling does not matter: a duration that it chooses has its text.
            session.planned.push(ms);
            session.has_others |= tag.is_none() && session.planned.len() > PLANNED;
        } else {
            self.counted.stray_durations += 1;
            self.forget_planning(entry);
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
        if !known.effects.is_empty() {
            let session = self.sessions.entry(session.to_owned()).or_default();
            for effect in &known.effects {
                session.state.apply(effect);
            }
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
        let session = self.session(entry);
        session.begun = None;
        session.state.fail();
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
        self.leave_all();
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
mod tests;
