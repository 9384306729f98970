//! What the rounds of a workload say: same SQL, same counts, same rows, as fast.

use super::packaged::Packaged;
use super::statements::{Difference, Profile, StatementRate, differences, find};
use super::{CrosscheckRound, Measured, Turn, WorkloadCrosscheck};
use crate::MeanRatio;
use deltabench_compare::thresholds::{
    CROSSCHECK_MARGIN, CROSSCHECK_PLANS, CROSSCHECK_ROWS, CROSSCHECK_ROWS_FEW,
    CROSSCHECK_ROWS_LEVEL,
};
use deltabench_model::units::{count, micros, to_f64};
use deltabench_stats::student::welch;
use deltabench_stats::summary::mean;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// What the other side is called, but for pgbench's scripts.
const SYSBENCH: &str = "sysbench";

/// One workload.
#[derive(Debug, Serialize)]
pub struct WorkloadFinding {
    pub workload: String,
    /// Why there is nothing to compare with.
    pub no_script: Option<&'static str>,
    /// The script that it is compared with.
    pub script: Option<&'static str>,
    /// What one would type after `sysbench`.
    pub sysbench_arguments: Option<String>,
    #[serde(flatten)]
    pub finding: Option<Finding>,
}

/// What was found of a workload that has a script.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Operations of each side in each round.
    pub operations: u64,
    /// Whether both send the same statements.
    pub same_sql: bool,
    /// Whether they send them as often, for as many rows.
    pub same_counts: bool,
    /// What differs, in words.
    pub differences: Vec<String>,
    /// What does not count as a difference, but may explain one in speed.
    pub remarks: Vec<String>,
    /// What is sent again and again.
    pub statements: Vec<Statement>,
    /// What is sent once for each connection.
    pub once_per_connection: Both<Vec<String>>,
    pub calls_per_operation: Both<f64>,
    /// Transactions of an operation, where they were counted.
    pub transactions_per_operation: Both<Option<f64>>,
    pub operations_per_second: Both<f64>,
    pub client_cpu_us_per_op: Both<f64>,
    /// Execution time by the server's own account.
    pub server_us_per_op: Both<f64>,
    #[serde(flatten)]
    pub throughput: Throughput,
    /// The ratio of execution time.
    pub server_time_ratio: f64,
    pub server_time_ci95: Option<[f64; 2]>,
    pub client_cpu_ratio: f64,
    pub client_cpu_ci95: Option<[f64; 2]>,
    /// What the ratio of throughput comes to.
    pub speed: Speed,
}

/// The ratio of throughput, as it is and without what the clients themselves cost.
#[derive(Debug, Serialize)]
pub struct Throughput {
    pub throughput_ratio: f64,
    pub throughput_ci95: Option<[f64; 2]>,
    /// The same if the clients cost nothing.
    pub less_client_ratio: f64,
    pub less_client_ci95: Option<[f64; 2]>,
}

/// A value of each side.
#[derive(Debug)]
pub struct Both<T> {
    pub own: T,
    /// That of the other tool.
    pub peer: T,
    /// What the other side is called.
    name: &'static str,
}

impl<T: Serialize> Serialize for Both<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("deltabench", &self.own)?;
        map.serialize_entry(self.name, &self.peer)?;
        map.end()
    }
}

/// A statement that both sides send, or one.
#[derive(Debug, Serialize)]
pub struct Statement {
    pub sql: String,
    /// How often each side sends it.
    #[serde(flatten)]
    pub rates: Both<Option<Rates>>,
}

/// How often a statement was sent, and what it came to.
#[derive(Debug, Serialize)]
pub struct Rates {
    /// What the server calls it.
    pub query_id: String,
    pub calls_per_operation: f64,
    /// Rows touched or returned.
    pub rows_per_call: Option<f64>,
    pub plans_per_call: Option<f64>,
}

/// Whether the two are equally fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speed {
    /// The interval of the throughput is within the margin.
    Within,
    /// It is not, but is without the CPU of the clients themselves.
    ClientCost,
    /// Both intervals are outside of the margin.
    Apart,
    /// The intervals are too wide to tell.
    Open,
}

impl WorkloadFinding {
    /// What was measured of a workload, judged.
    pub fn of(row: &WorkloadCrosscheck) -> Self {
        let (script, no_script) = match row.packaged {
            Packaged::Script { script, .. } => (Some(script), None),
            Packaged::Nothing(why) => (None, Some(why)),
        };
        Self {
            workload: row.workload.clone(),
            no_script,
            script,
            sysbench_arguments: row.measured.as_ref().map(|found| found.arguments.join(" ")),
            finding: row
                .measured
                .as_ref()
                .map(|found| Finding::of(found, SYSBENCH)),
        }
    }

    /// Whether SQL or counts differ.
    pub fn differs(&self) -> bool {
        self.finding.as_ref().is_some_and(Finding::differs)
    }
}

impl Finding {
    /// What was found; `name` is what the other side is called.
    pub fn of(measured: &Measured, name: &'static str) -> Self {
        let (own, peer) = (&measured.own, &measured.peer);
        let found = differences(own, peer);
        let rows = other_rows((own, peer), name, to_f64(measured.operations));
        let ratio = |value| MeanRatio::of_logs(&logs(&measured.rounds, value));
        let both = |value: fn(&Turn) -> f64| Both::means(&measured.rounds, name, value);
        let throughput = Throughput::of(ratio(rate), ratio(rate_less_client));
        let (server_time, client_cpu) = (ratio(server_us), ratio(client_us));
        let words = found.iter().map(|difference| in_words(difference, name));
        Self {
            operations: measured.operations,
            same_sql: found.iter().all(Difference::is_of_counts),
            same_counts: rows.is_empty() && !found.iter().any(Difference::is_of_counts),
            differences: words.chain(rows).collect(),
            remarks: other_plans((own, peer), name),
            statements: statements((own, peer), name),
            once_per_connection: Both {
                own: own.once.clone(),
                peer: peer.once.clone(),
                name,
            },
            calls_per_operation: Both {
                own: own.calls(),
                peer: peer.calls(),
                name,
            },
            transactions_per_operation: Both {
                own: own.transactions,
                peer: peer.transactions,
                name,
            },
            operations_per_second: both(rate),
            client_cpu_us_per_op: both(client_us),
            server_us_per_op: both(server_us),
            speed: speed(&throughput),
            throughput,
            server_time_ratio: server_time.estimate,
            server_time_ci95: server_time.ci95,
            client_cpu_ratio: client_cpu.estimate,
            client_cpu_ci95: client_cpu.ci95,
        }
    }

    /// Whether SQL or counts differ.
    pub fn differs(&self) -> bool {
        !(self.same_sql && self.same_counts)
    }
}

impl Throughput {
    fn of(plain: MeanRatio, less_client: MeanRatio) -> Self {
        Self {
            throughput_ratio: plain.estimate,
            throughput_ci95: plain.ci95,
            less_client_ratio: less_client.estimate,
            less_client_ci95: less_client.ci95,
        }
    }
}

impl Both<f64> {
    fn means(rounds: &[CrosscheckRound], name: &'static str, value: fn(&Turn) -> f64) -> Self {
        let of = |turn: fn(&CrosscheckRound) -> &Turn| {
            let values: Vec<f64> = rounds.iter().map(|round| value(turn(round))).collect();
            mean(&values).unwrap_or_default()
        };
        Self {
            own: of(|round| &round.own),
            peer: of(|round| &round.peer),
            name,
        }
    }
}

fn operations(turn: &Turn) -> f64 {
    to_f64(turn.outcome.operations).max(1.0)
}

/// Operations per second.
fn rate(turn: &Turn) -> f64 {
    1e6 / (micros(turn.outcome.duration_ns) / operations(turn)).max(1e-3)
}

fn client_us(turn: &Turn) -> f64 {
    micros(turn.outcome.client_cpu_ns) / operations(turn)
}

/// Operations per second if the client cost nothing: client and server share a core, so what one of them
/// uses the other waits for.
fn rate_less_client(turn: &Turn) -> f64 {
    let us = micros(turn.outcome.duration_ns) / operations(turn) - client_us(turn);
    1e6 / us.max(1e-3)
}

fn server_us(turn: &Turn) -> f64 {
    (turn.server_ms * 1e3 / operations(turn)).max(1e-6)
}

/// Logarithms of the ratios of the rounds.
fn logs(rounds: &[CrosscheckRound], value: fn(&Turn) -> f64) -> Vec<f64> {
    let log = |round: &CrosscheckRound| (value(&round.own) / value(&round.peer)).ln();
    rounds.iter().map(log).collect()
}

/// Where an interval of a ratio is.
#[derive(PartialEq, Eq)]
enum Place {
    Inside,
    Outside,
    Across,
}

fn place(interval: Option<[f64; 2]>) -> Place {
    let (least, most) = (1.0 / (1.0 + CROSSCHECK_MARGIN), 1.0 + CROSSCHECK_MARGIN);
    match interval {
        Some([low, high]) if low >= least && high <= most => Place::Inside,
        Some([low, high]) if high < least || low > most => Place::Outside,
        _ => Place::Across,
    }
}

fn speed(throughput: &Throughput) -> Speed {
    let less_client = place(throughput.less_client_ci95);
    match place(throughput.throughput_ci95) {
        Place::Inside => Speed::Within,
        _ if less_client == Place::Inside => Speed::ClientCost,
        Place::Outside if less_client == Place::Outside => Speed::Apart,
        _ => Speed::Open,
    }
}

fn in_words(difference: &Difference, name: &str) -> String {
    match difference {
        Difference::OnlyOn { own, text } => {
            let side = if *own { "deltabench" } else { name };
            format!("only {side} sends: {text}")
        }
        Difference::OtherTypes { text } => {
            format!("the server sees two statements, parameters of other types: {text}")
        }
        Difference::Calls { text, own, peer } => {
            format!("{own:.2} calls per operation, {name} {peer:.2}: {text}")
        }
        Difference::Transactions { own, peer } => {
            format!("{own:.2} transactions per operation, {name} {peer:.2}")
        }
    }
}

/// What our own client sends, and the other side.
type Profiles<'a> = (&'a Profile, &'a Profile);

/// Pairs of a statement that both sides send.
fn shared<'a>(
    (own, peer): Profiles<'a>,
) -> impl Iterator<Item = (&'a StatementRate, &'a StatementRate)> {
    let pair = |statement: &'a StatementRate| Some((statement, find(peer, statement)?));
    own.statements.iter().filter_map(pair)
}

/// Statements that touch or return another number of rows, in words.
fn other_rows(profiles: Profiles<'_>, name: &str, operations: f64) -> Vec<String> {
    let differ = |(own, peer): (&StatementRate, &StatementRate)| {
        let (a, b) = (mean(&own.rows)?, mean(&peer.rows)?);
        let apart = (a - b).abs();
        let in_all = apart * own.calls * operations * to_f64(count(own.rows.len()));
        let close = apart <= CROSSCHECK_ROWS * a.max(b) || in_all <= CROSSCHECK_ROWS_FEW;
        let told_apart = match welch(&own.rows, &peer.rows, CROSSCHECK_ROWS_LEVEL) {
            Ok(found) => !found.interval.contains(0.0),
            Err(_) => false,
        };
        (told_apart && !close).then(|| format!("{a:.3} rows per call, {name} {b:.3}: {}", own.text))
    };
    shared(profiles).filter_map(differ).collect()
}

/// Statements that one side has planned more often, in words.
fn other_plans(profiles: Profiles<'_>, name: &str) -> Vec<String> {
    let differ = |(own, peer): (&StatementRate, &StatementRate)| {
        let (a, b) = (own.plans?, peer.plans?);
        ((a - b).abs() > CROSSCHECK_PLANS)
            .then(|| format!("{a:.2} plans per call, {name} {b:.2}: {}", own.text))
    };
    shared(profiles).filter_map(differ).collect()
}

fn statements((own, peer): Profiles<'_>, name: &'static str) -> Vec<Statement> {
    let ours = own.statements.iter().map(|statement| Statement {
        sql: statement.text.clone(),
        rates: Both {
            own: Some(Rates::of(statement)),
            peer: find(peer, statement).map(Rates::of),
            name,
        },
    });
    let theirs = peer.statements.iter();
    let theirs = theirs
        .filter(|statement| find(own, statement).is_none())
        .map(|statement| Statement {
            sql: statement.text.clone(),
            rates: Both {
                own: None,
                peer: Some(Rates::of(statement)),
                name,
            },
        });
    ours.chain(theirs).collect()
}

impl Rates {
    fn of(statement: &StatementRate) -> Self {
        Self {
            query_id: statement.id.clone(),
            calls_per_operation: statement.calls,
            rows_per_call: mean(&statement.rows),
            plans_per_call: statement.plans,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_driver::peer::PeerOutcome;

    fn statement(rows: &[f64]) -> StatementRate {
        StatementRate {
            id: "1".to_owned(),
            text: "SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2".to_owned(),
            calls: 1.0,
            rows: rows.to_vec(),
            plans: Some(1.0),
        }
    }

    fn profile(rows: &[f64]) -> Profile {
        Profile {
            statements: vec![statement(rows)],
            once: Vec::new(),
            transactions: Some(1.0),
        }
    }

    /// Turns of 1000 operations: microseconds for each, and of those the client's.
    fn turn(us: u64, client_us: u64) -> Turn {
        Turn {
            outcome: PeerOutcome {
                operations: 1000,
                duration_ns: us * 1_000_000,
                client_cpu_ns: client_us * 1_000_000,
            },
            server_ms: 10.0,
        }
    }

    fn speed_of(own: (u64, u64), sysbench: (u64, u64)) -> Speed {
        // Rounds are slower and faster by the same factor on both sides.
        let round = |times: u64| CrosscheckRound {
            own: turn(own.0 * times, own.1 * times),
            peer: turn(sysbench.0 * times, sysbench.1 * times),
        };
        let rounds: Vec<CrosscheckRound> = [10, 11, 9, 10].into_iter().map(round).collect();
        speed(&Throughput::of(
            MeanRatio::of_logs(&logs(&rounds, rate)),
            MeanRatio::of_logs(&logs(&rounds, rate_less_client)),
        ))
    }

    #[test]
    fn a_cheaper_client_explains_more_throughput_and_a_cheaper_server_does_not() {
        assert_eq!(speed_of((30, 5), (30, 5)), Speed::Within);
        assert_eq!(speed_of((30, 5), (40, 15)), Speed::ClientCost);
        assert_eq!(speed_of((30, 5), (40, 5)), Speed::Apart);
    }

    #[test]
    fn an_interval_across_the_margin_decides_nothing() {
        let found = |ci95| {
            let ratio = MeanRatio {
                estimate: 1.0,
                ci95,
            };
            speed(&Throughput::of(ratio, ratio))
        };
        assert_eq!(found(Some([0.8, 1.2])), Speed::Open);
        assert_eq!(found(None), Speed::Open);
    }

    #[test]
    fn a_range_with_one_row_more_is_told_apart_and_noise_is_not() {
        let found = |own: &[f64], sysbench: &[f64]| {
            other_rows((&profile(own), &profile(sysbench)), SYSBENCH, 100.0)
        };
        assert_eq!(
            found(&[99.95, 99.97, 99.96], &[99.97, 99.95, 99.95]),
            [""; 0]
        );
        let more = found(&[100.95, 100.97, 100.96], &[99.97, 99.95, 99.95]);
        assert!(more[0].starts_with("100.960 rows per call, sysbench 99.957: SELECT c"));
        assert_eq!(found(&[1.0, 1.0], &[1.0, 1.0]), [""; 0]);
        assert_eq!(found(&[1.0, 1.0], &[2.0, 2.0]).len(), 1);
    }

    #[test]
    fn deletes_that_miss_a_row_or_two_by_chance_are_no_difference() {
        let (own, sysbench) = (profile(&[0.95, 0.95]), profile(&[1.0, 1.0]));
        assert_eq!(other_rows((&own, &sysbench), SYSBENCH, 20.0), [""; 0]);
        assert_eq!(other_rows((&own, &sysbench), SYSBENCH, 200.0).len(), 1);
    }

    #[test]
    fn plans_are_a_remark_and_no_difference() {
        let mut own = profile(&[1.0, 1.0]);
        own.statements[0].plans = Some(0.0);
        let theirs = profile(&[1.0, 1.0]);
        assert_eq!(differences(&own, &theirs), []);
        assert!(
            other_plans((&own, &theirs), SYSBENCH)[0]
                .starts_with("0.00 plans per call, sysbench 1.00")
        );
    }
}
