//! What the executions of one statement add up to.

use crate::id::id;
use crate::known::Known;
use crate::message::Values;
use crate::statement::{Protocol, Statement, Unusable, Weight};
use crate::strata::{Content, Strata};
use deltabench_model::units::to_u64;
use std::collections::BTreeSet;
use std::rc::Rc;

/// What executions of one statement have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub hash: [u8; 32],
    pub protocol: Protocol,
    pub role: Option<String>,
    pub database: Option<String>,
    pub search_path: Option<String>,
    /// Whether it uses a temporary table of its session.
    pub is_temporary: bool,
}

impl Key {
    fn id(&self) -> String {
        let part = |value: &Option<String>| value.clone().unwrap_or_default();
        let temporary = if self.is_temporary { "temporary" } else { "" };
        id(
            &self.hash,
            &[
                self.protocol.word(),
                &part(&self.role),
                &part(&self.database),
                &part(&self.search_path),
                temporary,
            ],
        )
    }
}

/// An execution of the log.
pub(crate) struct Execution {
    pub known: Rc<Known>,
    pub values: Values,
    /// Whether bytes of its entry were no UTF-8.
    pub is_lossy: bool,
    pub query_id: Option<i64>,
    /// Absent if the log does not say it.
    pub ms: Option<f64>,
    /// Executions that it stands for, and those that its duration stands for: a log of all texts may have a
    /// sample of the durations.
    pub calls: f64,
    pub timed: f64,
}

/// A statement that lacks no more durations than this lost them by chance: a session ended, the log began.
const MOST_TIMED: f64 = 0.9;

/// The executions of one statement.
pub(crate) struct Gathered {
    known: Rc<Known>,
    strata: Strata,
    calls: f64,
    /// Sum of the durations, and the executions that they stand for.
    ms: f64,
    timed: f64,
    plan_ms: Option<f64>,
    unusable: Unusable,
    query_ids: BTreeSet<i64>,
}

impl Gathered {
    pub(crate) fn new(known: Rc<Known>, most_tuples: usize, seed: u64) -> Self {
        // Statements have streams of their own, so that one does not change the choice of another.
        let own = known.fingerprint.hash.iter().take(8);
        let own = own.fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Self {
            strata: Strata::new(most_tuples, seed ^ own),
            known,
            calls: 0.0,
            ms: 0.0,
            timed: 0.0,
            plan_ms: None,
            unusable: Unusable::default(),
            query_ids: BTreeSet::new(),
        }
    }

    pub(crate) fn add(&mut self, execution: Execution) {
        let known = execution.known;
        self.calls += execution.calls;
        if let Some(ms) = execution.ms {
            self.ms += ms * execution.timed;
            self.timed += execution.timed;
        }
        self.query_ids.extend(execution.query_id);
        if !known.nature.kind.is_replayed() {
            return;
        }
        let values = match execution.values {
            // The servers of a replay read strings without escapes: they would execute another text.
            _ if known.is_cut || known.escapes || execution.is_lossy => {
                self.unusable.broken += 1;
                return;
            }
            Values::Broken => {
                self.unusable.broken += 1;
                return;
            }
            Values::Dotted(_) => {
                self.unusable.cut += 1;
                return;
            }
            Values::Whole(values) if values.len() < known.parameters => {
                self.unusable.without_values += 1;
                return;
            }
            Values::Whole(values) => values,
        };
        let text = known.text.clone();
        self.strata
            .add(execution.ms, execution.calls, || Content { text, values });
    }

    /// More time of executions that were added before.
    pub(crate) fn add_time(&mut self, ms: f64) {
        self.ms += ms;
    }

    /// Time of parsing and planning.
    pub(crate) fn add_planning(&mut self, ms: f64) {
        *self.plan_ms.get_or_insert_default() += ms;
    }

    /// Whether there was an execution, not only planning.
    pub(crate) fn was_executed(&self) -> bool {
        self.calls > 0.0
    }

    /// What it is in a capture. Whether durations of the log are a `sample`: executions without one took as
    /// long as the others. Else they are the long ones.
    pub(crate) fn statement(self, key: Key, sample: bool) -> Statement {
        let known = self.known;
        let kind = if key.is_temporary {
            crate::statement::Kind::Temporary
        } else {
            known.nature.kind
        };
        let (text, tuples) = if kind.is_replayed() {
            self.strata.tuples()
        } else {
            (None, Vec::new())
        };
        let is_sample = sample || self.timed >= MOST_TIMED * self.calls;
        let all = if is_sample { self.calls } else { self.timed };
        let ms = (self.timed > 0.0).then(|| self.ms / self.timed * all);
        let weight = if ms.is_some() && !is_sample {
            Weight::AtLeast
        } else {
            Weight::Log
        };
        let id = key.id();
        Statement {
            id,
            name: None,
            text: match text {
                Some(text) => text.to_string(),
                // Values can be made up for its parameters.
                None if known.may_get_values() => known.text.to_string(),
                None => known.fingerprint.normalised.clone(),
            },
            normalised: known.fingerprint.normalised.clone(),
            protocol: key.protocol,
            role: key.role,
            database: key.database,
            search_path: key.search_path,
            kind,
            calls: to_u64(self.calls),
            total_ms: ms.map(|ms| ms + self.plan_ms.unwrap_or(0.0)),
            plan_ms: self.plan_ms,
            rows: None,
            weight,
            volatile: known.nature.volatile.clone(),
            query_ids: self.query_ids.into_iter().collect(),
            // Not known of one protocol: the collector adds them.
            errors: 0,
            unusable: self.unusable,
            tuples,
        }
    }
}
