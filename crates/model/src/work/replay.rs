//! What a replay measures: statements of a workload with their values, by number.
//!
//! Nothing here holds a value of the user: tuples are known by their places in the capture.

use crate::id::CellId;
use crate::replayed::{ReplayedFile, WeightedBy};
use serde::{Deserialize, Serialize};

/// What the times of a replay are measured with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaySetup {
    /// Where the statements are from.
    pub capture: ReplayedFile,
    /// Where the tables are from; absent if the servers had them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ReplayedFile>,
    /// The database of a data directory, if the tables are from one; absent for a dump. The hash of the data
    /// is that of `pg_control` then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_database: Option<String>,
    /// What the shares of the statements are shares of.
    pub weighted_by: WeightedBy,
    /// A statement that moves the workload by less than this share is not measured on, 0.001 is 0.1 %.
    pub impact: f64,
    /// Seconds of measuring that are aimed for; the plan's deadline leaves more.
    pub budget_seconds: f64,
    /// Settings of each server, the base first: the user's, with those of his configuration. Later ones win.
    pub settings: Vec<Vec<(String, String)>>,
    /// Of servers that already ran, the base first; none if they are our own, and in older plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_sets: Vec<DataSet>,
    /// Where the clocks of the servers begin at each start, seconds since 1970; absent: they have that of the
    /// machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<i64>,
    /// Limit of a statement, seconds.
    pub timeout_seconds: u32,
    /// Whether values were made up where the capture has none; in older plans they were not.
    #[serde(default)]
    pub made_up: bool,
    /// Whether the user allowed functions of the database that reach files; in older plans nobody knows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub functions_allowed: bool,
    /// Hash of all texts and values that are sent: a replay that goes on sends the same. One for all of them,
    /// because that of a single value would give it away. Absent in older plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_sha256: Option<String>,
    /// Clients of the mix, which is the cell behind those of the statements; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<u32>,
    /// In the order of the plan's cells.
    pub statements: Vec<TimedStatement>,
}

impl ReplaySetup {
    /// The clients of the mix, if this is its cell.
    #[must_use]
    pub fn clients_of(&self, cell: CellId) -> Option<u32> {
        self.mix.filter(|_| cell.index() == self.statements.len())
    }
}

impl ReplaySetup {
    /// What a cell's work is, whenever and for however long it is measured: its own statement, or those of
    /// the mix. Paths, the budget and what was measured are not in it, nor what only candidates have.
    #[must_use]
    pub(crate) fn of_cell(&self, cell: CellId) -> Self {
        let of_mix = self.clients_of(cell).is_some();
        let own = |place: usize| of_mix || place == cell.index();
        let statements = self.statements.iter().enumerate();
        let statements = statements.filter(|(place, _)| own(*place));
        Self {
            capture: self.capture.content_only(),
            data: self.data.as_ref().map(ReplayedFile::content_only),
            directory_database: self.directory_database.clone(),
            weighted_by: self.weighted_by,
            impact: 0.0,
            budget_seconds: 0.0,
            settings: self.settings.iter().take(1).cloned().collect(),
            data_sets: self.data_sets.iter().take(1).cloned().collect(),
            clock: self.clock,
            timeout_seconds: self.timeout_seconds,
            made_up: self.made_up,
            functions_allowed: false,
            sent_sha256: None,
            mix: self.mix.filter(|_| of_mix),
            statements: statements.map(|(_, one)| one.work()).collect(),
        }
    }
}

impl TimedStatement {
    /// What is executed, without what is known of it.
    fn work(&self) -> Self {
        let tuple = |tuple: &TimedTuple| TimedTuple {
            changed: Vec::new(),
            slowest_seconds: None,
            ..tuple.clone()
        };
        Self {
            id: self.id.clone(),
            place: 0,
            share: None,
            calls: self.calls,
            tuples: self.tuples.iter().map(tuple).collect(),
            write: self.write,
            parallel: false,
            old_plans: Vec::new(),
            unfit: Vec::new(),
        }
    }
}

/// What tells the data of a server that already ran from those of another one. What the role may not ask is
/// absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSet {
    /// Identifier that the cluster got when it was initialized; its standbys, and restores of one snapshot of
    /// its files, have the same.
    pub system: Option<String>,
    /// Number of the database there (oid).
    pub database: Option<String>,
    /// When the server started, seconds since the Unix epoch.
    pub started: Option<String>,
}

impl DataSet {
    /// Whether it certainly is another one.
    #[must_use]
    pub fn is_other(&self, than: &Self) -> bool {
        differs(&self.system, &than.system) || differs(&self.database, &than.database)
    }

    /// Whether the server certainly is another one, or has restarted.
    #[must_use]
    pub fn is_other_start(&self, than: &Self) -> bool {
        differs(&self.started, &than.started)
    }

    /// Whether it certainly is the same one, and its server has not restarted.
    #[must_use]
    pub fn is_same_server(&self, as_that: &Self) -> bool {
        let all = self.system.is_some() && self.database.is_some() && self.started.is_some();
        all && self == as_that
    }
}

/// Whether both are known, and are not the same.
fn differs(one: &Option<String>, other: &Option<String>) -> bool {
    let known = one.as_ref().zip(other.as_ref());
    known.is_some_and(|(one, other)| one != other)
}

/// A statement that is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedStatement {
    /// As the capture has it.
    pub id: String,
    /// Its place among the statements of the report.
    pub place: u32,
    /// Share of the workload that its tuples are, 0 to 1; absent if the capture has no weight for it.
    pub share: Option<f64>,
    pub calls: u64,
    pub tuples: Vec<TimedTuple>,
    /// How it works on a copy of the tables; absent for a read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<TimedWrite>,
    /// Whether one of its plans has workers of its own, which need more than one core.
    pub parallel: bool,
    /// Settings with which candidates have the plans of the base: they are timed, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub old_plans: Vec<OldPlanSettings>,
    /// Why its times are no answer, for each candidate by its place among the plan's servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfit: Vec<(u32, String)>,
}

/// A write or lock that is committed on a copy of the tables, which is made anew for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedWrite {
    /// Whether a copy takes each tuple only once.
    pub once: bool,
}

/// Settings of a session with which a candidate has the plans of the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldPlanSettings {
    /// Its place among the plan's servers.
    pub server: u32,
    pub settings: Vec<(String, String)>,
}

/// A tuple that is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedTuple {
    /// Its place among the statement's tuples in the capture.
    pub place: u32,
    /// Executions that it stands for.
    pub weight: f64,
    /// Candidates that have another plan for it, by their places among the plan's servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<u32>,
    /// Its longest execution on any server when results were compared; absent in older plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_seconds: Option<f64>,
}

/// The place among a plan's servers of one in this place of the report: a plan has its placebo behind the
/// base.
pub fn plan_place(report: usize) -> usize {
    if report == 0 { 0 } else { report + 1 }
}

/// The place in the report of a server in this place of a plan; absent for the placebo.
pub fn report_place(plan: usize) -> Option<usize> {
    match plan {
        0 => Some(0),
        1 => None,
        plan => Some(plan - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setup of two statements that were measured.
    fn setup(path: &str, budget_seconds: f64, slowest_seconds: f64) -> ReplaySetup {
        let file = |sha256: &str| ReplayedFile {
            path: path.to_owned(),
            sha256: Some(sha256.to_owned()),
        };
        let statement = |place: u32| TimedStatement {
            id: format!("s{place}"),
            place,
            share: Some(0.5),
            calls: 7,
            tuples: vec![TimedTuple {
                place: 0,
                weight: 7.0,
                changed: vec![place],
                slowest_seconds: Some(slowest_seconds),
            }],
            write: None,
            parallel: false,
            old_plans: Vec::new(),
            unfit: Vec::new(),
        };
        ReplaySetup {
            capture: file("c"),
            data: Some(file("d")),
            directory_database: None,
            weighted_by: WeightedBy::Time,
            impact: 0.001,
            budget_seconds,
            settings: vec![vec![("work_mem".to_owned(), "1MB".to_owned())]],
            data_sets: Vec::new(),
            clock: None,
            timeout_seconds: 60,
            made_up: false,
            functions_allowed: false,
            sent_sha256: None,
            mix: Some(2),
            statements: vec![statement(0), statement(1)],
        }
    }

    #[test]
    fn the_work_of_a_cell_is_its_own_statement_and_nothing_that_was_measured() {
        let (one, other) = (setup("/a", 60.0, 0.1), setup("/b", 600.0, 0.2));
        for cell in [0, 1, 2].map(CellId) {
            assert_eq!(one.of_cell(cell), other.of_cell(cell));
        }
        let ids = |cell| -> Vec<String> {
            let statements = one.of_cell(CellId(cell)).statements;
            statements.into_iter().map(|one| one.id).collect()
        };
        assert_eq!((ids(0), ids(1)), (vec!["s0".into()], vec!["s1".into()]));
        assert_eq!(ids(2), ["s0", "s1"], "the mix");
        let mut others = setup("/a", 60.0, 0.1);
        others.statements[0].tuples[0].weight = 8.0;
        assert_ne!(one.of_cell(CellId(0)), others.of_cell(CellId(0)));
        assert_eq!(one.of_cell(CellId(1)), others.of_cell(CellId(1)));
        others.timeout_seconds = 5;
        assert_ne!(one.of_cell(CellId(1)), others.of_cell(CellId(1)));
    }

    #[test]
    fn a_data_set_is_another_one_or_the_same_only_if_that_is_known() {
        let some = |text: &str| Some(text.to_owned());
        let here = DataSet {
            system: some("7"),
            database: some("16384"),
            started: some("1"),
        };
        let restarted = DataSet {
            started: some("2"),
            ..here.clone()
        };
        let restored = DataSet {
            database: some("16999"),
            ..here.clone()
        };
        let silent = DataSet::default();
        assert!(restored.is_other(&here) && !restarted.is_other(&here) && !silent.is_other(&here));
        assert!(restarted.is_other_start(&here) && !silent.is_other_start(&here));
        assert!(here.is_same_server(&here) && !restarted.is_same_server(&here));
        assert!(!silent.is_same_server(&silent));
    }
}
