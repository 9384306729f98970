//! What the rounds of a workload say: same SQL, same counts, same rows, as fast.

use deltabench_model::units::{count, micros, to_f64};
use deltabench_run::crosscheck::packaged::Packaged;
use deltabench_run::crosscheck::statements::{
    Difference, Profile, StatementRate, differences, find,
};
use deltabench_run::crosscheck::{CrosscheckRound, CrosscheckRow, Measured, Turn};
use deltabench_stats::student::{t_interval, welch};
use deltabench_stats::summary::mean;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// How far the two sides may be apart in speed, as a share.
///
/// Not less, because the server does not do quite the same for both: libpq asks for a description of the
/// rows with every execution and sends parameters as text. That is 0.4 to 1.5 us for each short
/// statement, which without the client takes 10 to 25 (postgres:18 on two cores, one of them shared).
pub(crate) const MARGIN: f64 = 0.10;

/// Level of the interval that must hold 0 when rows are compared. There are some seventy comparisons in a
/// run: less than one run in a thousand finds a difference where there is none.
const ROWS_LEVEL: f64 = 0.99999;

/// Difference of rows for each call that is none, as a share: a range cut off at the table's end.
const ROWS_EQUAL: f64 = 0.002;

/// Rows in all that say nothing: two runs of a few operations may both miss the same number by chance.
const ROWS_FEW: f64 = 10.0;

/// How far plans for each call may be apart.
const PLANS_EQUAL: f64 = 0.1;

/// What the other side is called, but for pgbench's scripts.
const SYSBENCH: &str = "sysbench";

/// One workload.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) workload: String,
    /// Why there is nothing to compare with.
    pub(crate) no_script: Option<&'static str>,
    pub(crate) script: Option<&'static str>,
    pub(crate) sysbench_arguments: Option<String>,
    #[serde(flatten)]
    pub(crate) finding: Option<Finding>,
}

/// What was found of a workload that has a script.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) operations: u64,
    pub(crate) same_sql: bool,
    pub(crate) same_counts: bool,
    /// What differs, in words.
    pub(crate) differences: Vec<String>,
    /// What does not count as a difference, but may explain one in speed.
    pub(crate) remarks: Vec<String>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) once_per_connection: Both<Vec<String>>,
    pub(crate) calls_per_operation: Both<f64>,
    pub(crate) transactions_per_operation: Both<Option<f64>>,
    pub(crate) operations_per_second: Both<f64>,
    pub(crate) client_cpu_us_per_op: Both<f64>,
    pub(crate) server_us_per_op: Both<f64>,
    #[serde(flatten)]
    pub(crate) throughput: Throughput,
    pub(crate) server_time_ratio: f64,
    pub(crate) server_time_ci95: Option<[f64; 2]>,
    pub(crate) client_cpu_ratio: f64,
    pub(crate) client_cpu_ci95: Option<[f64; 2]>,
    pub(crate) speed: Speed,
}

/// The ratio of throughput, as it is and without what the clients themselves cost.
#[derive(Debug, Serialize)]
pub(crate) struct Throughput {
    pub(crate) throughput_ratio: f64,
    pub(crate) throughput_ci95: Option<[f64; 2]>,
    pub(crate) less_client_ratio: f64,
    pub(crate) less_client_ci95: Option<[f64; 2]>,
}

/// A value of each side.
#[derive(Debug)]
pub(crate) struct Both<T> {
    pub(crate) own: T,
    pub(crate) peer: T,
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
pub(crate) struct Statement {
    pub(crate) sql: String,
    #[serde(flatten)]
    pub(crate) rates: Both<Option<Rates>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Rates {
    pub(crate) query_id: String,
    pub(crate) calls_per_operation: f64,
    pub(crate) rows_per_call: Option<f64>,
    pub(crate) plans_per_call: Option<f64>,
}

/// Whether the two are equally fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Speed {
    /// The interval of the throughput is within the margin.
    Within,
    /// It is not, but is without the CPU of the clients themselves.
    ClientCost,
    /// Both intervals are outside of the margin.
    Apart,
    /// The intervals are too wide to tell.
    Open,
}

impl Row {
    pub(crate) fn of(row: &CrosscheckRow) -> Self {
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
    pub(crate) fn differs(&self) -> bool {
        self.finding.as_ref().is_some_and(Finding::differs)
    }
}

impl Finding {
    /// What was found; `name` is what the other side is called.
    pub(crate) fn of(measured: &Measured, name: &'static str) -> Self {
        let (own, peer) = (&measured.own, &measured.peer);
        let found = differences(own, peer);
        let rows = other_rows((own, peer), name, to_f64(measured.operations));
        let ratios = |value: fn(&Turn) -> f64| ratio(&logs(&measured.rounds, value));
        let both = |value: fn(&Turn) -> f64| Both::means(&measured.rounds, name, value);
        let throughput = Throughput::of(ratios(rate), ratios(rate_less_client));
        let (server_time_ratio, server_time_ci95) = ratios(server_us);
        let (client_cpu_ratio, client_cpu_ci95) = ratios(client_us);
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
            server_time_ratio,
            server_time_ci95,
            client_cpu_ratio,
            client_cpu_ci95,
        }
    }

    /// Whether SQL or counts differ.
    pub(crate) fn differs(&self) -> bool {
        !(self.same_sql && self.same_counts)
    }
}

type Ratio = (f64, Option<[f64; 2]>);

impl Throughput {
    fn of(plain: Ratio, less_client: Ratio) -> Self {
        Self {
            throughput_ratio: plain.0,
            throughput_ci95: plain.1,
            less_client_ratio: less_client.0,
            less_client_ci95: less_client.1,
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

/// Geometric mean of the rounds' ratios with its t interval; absent with fewer than two rounds.
fn ratio(logs: &[f64]) -> Ratio {
    let interval = t_interval(logs, 0.95).ok();
    (
        mean(logs).unwrap_or_default().exp(),
        interval.map(|found| [found.low.exp(), found.high.exp()]),
    )
}

/// Where an interval of a ratio is.
#[derive(PartialEq, Eq)]
enum Place {
    Inside,
    Outside,
    Across,
}

fn place(interval: Option<[f64; 2]>) -> Place {
    let (least, most) = (1.0 / (1.0 + MARGIN), 1.0 + MARGIN);
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
        let close = apart <= ROWS_EQUAL * a.max(b) || in_all <= ROWS_FEW;
        let told_apart = match welch(&own.rows, &peer.rows, ROWS_LEVEL) {
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
        ((a - b).abs() > PLANS_EQUAL)
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
            ratio(&logs(&rounds, rate)),
            ratio(&logs(&rounds, rate_less_client)),
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
        let wide = || (1.0, Some([0.8, 1.2]));
        assert_eq!(speed(&Throughput::of(wide(), wide())), Speed::Open);
        assert_eq!(
            speed(&Throughput::of((1.0, None), (1.0, None))),
            Speed::Open
        );
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
