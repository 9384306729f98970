//! The metrics line of a step: published figures first, then those that show the known pitfalls.

use super::record::StepRecord;
use super::report::PassFigures;
use deltabench_model::metric::{Basis, Fold, MetricInfo};
use deltabench_model::units::{count, index, micros, seconds, to_f64, to_u64};
use deltabench_model::work::insert::{InsertRole, InsertSecond, InsertSetup, InsertStep};
use deltabench_stats::summary::{mean, median};

/// Where a figure that published reports print is defined.
const PUBLISHED: &str = "docs/sources/insert-benchmark.md#figures";

/// Whether published reports print it.
pub fn is_published(metric: &MetricInfo) -> bool {
    !metric.source.is_empty()
}

/// Rows of steps: key, unit, how passes become one, who prints it; meaning.
macro_rules! rows {
    ($($key:literal $unit:literal $fold:ident $source:expr; $meaning:literal;)+) => {
        &[$(MetricInfo::of_step($key, $unit, Fold::$fold, $source, $meaning)),+]
    };
}

/// Every figure of a metrics line, in order.
///
/// Source: docs/sources/insert-benchmark.md#figures. `q` is an insert in `l.*` steps (a row, for `l.x` an
///         indexed row) and a query in the others; `i` is an inserted row. Reads and writes
///         are those of the block device that the server's files are on, by any process; `process_rkb`
///         and `process_wkb` are its processes' own. Switches and CPU are of its processes, not of the whole
///         host.
pub const INSERT_METRICS: &[MetricInfo] = rows! {
    "ips" "rows/s" Mean PUBLISHED; "rows inserted; for l.x rows indexed";
    "qps" "queries/s" Mean PUBLISHED; "queries";
    "rps" "/s" Mean PUBLISHED; "reads of the block device by all processes";
    "rmbps" "MB/s" Mean PUBLISHED; "bytes read from the block device by all processes";
    "wps" "/s" Mean PUBLISHED; "writes of the block device by all processes";
    "wmbps" "MB/s" Mean PUBLISHED; "bytes written to the block device by all processes";
    "rpq" "" Mean PUBLISHED;
        "reads of the block device by all processes, for a row inserted, in query steps for a query";
    "rkbpq" "KB" Mean PUBLISHED; "bytes read from the block device by all processes, for the same";
    "wpi" "" Mean PUBLISHED; "writes of the block device by all processes, for a row inserted";
    "wkbpi" "KB" Mean PUBLISHED; "bytes written to the block device by all processes, for a row \
                                  inserted";
    "csps" "/s" Mean PUBLISHED; "times that a process of the server got a core";
    "cpups" "%" Mean PUBLISHED; "CPU of the server's processes, of all cores; published: of the whole host";
    "cspq" "" Mean PUBLISHED; "csps for a row inserted, in query steps for a query";
    "cpupq" "us" Mean PUBLISHED;
        "CPU of the server's processes for the same; published: of the whole host, client included";
    "dbgb1" "GB" Mean PUBLISHED; "size of the database at the end of the step";
    "dbgb2" "GB" Mean PUBLISHED; "size of the data directory then, WAL included";
    "rss" "GB" Mean PUBLISHED; "resident memory of the server's largest process";
    "maxop" "s" Max PUBLISHED; "longest response, from sending: of inserts in l.* steps, else of queries";
    "p50" "/s" Mean PUBLISHED;
        "rate of the middle second, all clients together; published: the first client alone";
    "p99" "/s" Mean PUBLISHED; "99 % of all seconds were at least this fast; clients as for p50";
    "rawait" "ms" Mean ""; "mean time of a read of the block device, as iostat has it";
    "wawait" "ms" Mean ""; "mean time of a write of the block device";
    "rareqsz" "KB" Mean ""; "mean size of a read of the block device";
    "wareqsz" "KB" Mean ""; "mean size of a write of the block device";
    "process_rkb" "KB" Mean "";
        "bytes that the server's processes read from storage, for the same as rkbpq";
    "process_wkb" "KB" Mean ""; "bytes that the server's processes dirtied for storage, for a row inserted";
    "client_min" "/s" Mean ""; "slowest client: rows inserted, in query steps queries";
    "client_median" "/s" Mean ""; "the client in the middle";
    "client_max" "/s" Mean ""; "the fastest client";
    "insert_cpu" "us/row" Mean ""; "CPU of the connections that insert, for a row";
    "delete_cpu" "us/row" Mean ""; "CPU of the connections that delete, for a row";
    "query_cpu" "us" Mean ""; "CPU of the connections that query, for a query";
    "look_ups" "" Mean ""; "look-ups of the oldest and newest key of a table, outside of the measured \
                            statements";
    "look_up" "ms" Mean ""; "mean response of those";
    "look_up_max" "ms" Max ""; "longest response of those";
    "long_transactions" "" Mean ""; "transactions that were held open";
    "autovacuums" "" Mean ""; "autovacuum runs that ended in the step";
    "autoanalyzes" "" Mean ""; "autoanalyze runs that ended in it";
    "checkpoints" "" Mean ""; "checkpoints that ended in it";
    "dead_rows" "rows" Mean ""; "dead rows at the end of the step";
    "table_gb" "GB" Mean ""; "size of the tables at the end of the step";
    "index_gb" "GB" Mean ""; "size of their indexes then";
    "wal_gb" "GB" Mean ""; "size of the WAL directory then";
    "short_deletes" "" Sum ""; "deletes that removed another number of rows than requested";
    "missed" "" Sum ""; "statements never sent, because the client does not make up a late second";
    "schedule_lag" "s" Max ""; "longest that a statement was sent after its time";
    "cut_short" "" Sum ""; "passes that ended because the server could not keep the rate";
    "retries" "" Sum ""; "statements tried again after a conflict";
    "failed" "" Sum ""; "statements that failed";
};

/// Nanoseconds.
const MS: f64 = 1e6;
const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1_073_741_824.0;
const KIB: f64 = 1024.0;

/// By metric, for one pass.
pub(super) fn of_pass(
    setup: &InsertSetup,
    step: InsertStep,
    record: &StepRecord,
    cores: Option<u32>,
) -> Vec<Option<f64>> {
    let pass = Pass {
        setup,
        step,
        record,
        cores,
        time: seconds(record.duration_ns),
    };
    let finite = |value: &f64| value.is_finite();
    INSERT_METRICS
        .iter()
        .map(|metric| pass.value(metric.key).filter(finite))
        .collect()
}

/// By metric, for several passes together; what none has is absent.
pub(super) fn folded(passes: &[&PassFigures]) -> Vec<Option<f64>> {
    let of = |(place, metric): (usize, &MetricInfo)| {
        let values: Vec<f64> = passes
            .iter()
            .filter_map(|pass| pass.metrics.get(place).copied().flatten())
            .collect();
        match metric.basis {
            Basis::Pass(Fold::Max) => values.into_iter().reduce(f64::max),
            Basis::Pass(Fold::Sum) => (!values.is_empty()).then(|| values.iter().sum()),
            _ => mean(&values),
        }
    };
    INSERT_METRICS.iter().enumerate().map(of).collect()
}

struct Pass<'a> {
    setup: &'a InsertSetup,
    step: InsertStep,
    record: &'a StepRecord,
    cores: Option<u32>,
    /// Seconds.
    time: f64,
}

impl Pass<'_> {
    fn value(&self, key: &str) -> Option<f64> {
        self.rate(key)
            .or_else(|| self.client(key))
            .or_else(|| self.device(key))
            .or_else(|| self.cpu(key))
            .or_else(|| self.size(key))
            .or_else(|| self.trouble(key))
    }

    fn rate(&self, key: &str) -> Option<f64> {
        match key {
            "ips" => Some(self.inserts()? / self.time),
            "qps" => Some(self.queries()? / self.time),
            "maxop" => {
                let slowest = self.record.primary()?.max_service_ns;
                Some(seconds(slowest)).filter(|_| self.step != InsertStep::Index)
            }
            "p50" => self.second(0.5),
            "p99" => self.second(0.99),
            _ => None,
        }
    }

    /// Of several clients: one is what all are.
    fn client(&self, key: &str) -> Option<f64> {
        let mut rates = self.record.clients.clone();
        rates.sort_by(f64::total_cmp);
        let several = rates.len() > 1 && self.step != InsertStep::Index;
        let rates = Some(rates).filter(|_| several)?;
        match key {
            "client_min" => rates.first().copied(),
            "client_median" => median(&rates),
            "client_max" => rates.last().copied(),
            _ => None,
        }
    }

    fn device(&self, key: &str) -> Option<f64> {
        let over = |counter: &str, by: f64| Some(self.counter(counter)? / by);
        match key {
            "rps" => over("device_reads", self.time),
            "rmbps" => over("device_read_bytes", MIB * self.time),
            "wps" => over("device_writes", self.time),
            "wmbps" => over("device_write_bytes", MIB * self.time),
            "rpq" => over("device_reads", self.operations()?),
            "rkbpq" => over("device_read_bytes", KIB * self.operations()?),
            "wpi" => over("device_writes", self.inserts()?),
            "wkbpi" => over("device_write_bytes", KIB * self.inserts()?),
            "rawait" => self.mean("device_read_ns", "device_reads", MS),
            "wawait" => self.mean("device_write_ns", "device_writes", MS),
            "rareqsz" => self.mean("device_read_bytes", "device_reads", KIB),
            "wareqsz" => self.mean("device_write_bytes", "device_writes", KIB),
            "process_rkb" => over("process_read_bytes", KIB * self.operations()?),
            "process_wkb" => over("process_write_bytes", KIB * self.inserts()?),
            _ => None,
        }
    }

    /// A counter for each request of the device; nothing without a request.
    fn mean(&self, counter: &str, requests: &str, unit: f64) -> Option<f64> {
        let requests = self.counter(requests).filter(|requests| *requests > 0.0)?;
        Some(self.counter(counter)? / requests / unit)
    }

    fn cpu(&self, key: &str) -> Option<f64> {
        let rows = |role| self.record.role(role).map(|tally| to_f64(tally.rows));
        match key {
            "csps" => Some(to_f64(self.record.switches?) / self.time),
            "cspq" => Some(to_f64(self.record.switches?) / self.operations()?),
            "cpups" => {
                let cores = f64::from(self.cores.filter(|cores| *cores > 0)?);
                Some(100.0 * seconds(self.record.server_cpu_ns?) / (self.time * cores))
            }
            "cpupq" => Some(micros(self.record.server_cpu_ns?) / self.operations()?),
            // The connections that insert are those that make the indexes.
            "insert_cpu" if self.step == InsertStep::Index => None,
            "insert_cpu" => Some(self.counter("insert_cpu_ns")? / 1e3 / rows(InsertRole::Insert)?),
            "delete_cpu" => Some(self.counter("delete_cpu_ns")? / 1e3 / rows(InsertRole::Delete)?),
            "query_cpu" => Some(self.counter("query_cpu_ns")? / 1e3 / self.queries()?),
            _ => None,
        }
    }

    fn size(&self, key: &str) -> Option<f64> {
        let size = |gauge: &str| Some(self.counter(gauge)? / GIB);
        match key {
            "dbgb1" => size("database_bytes"),
            "dbgb2" => size("data_dir_bytes"),
            "rss" => size("largest_rss_bytes"),
            "table_gb" => size("table_bytes"),
            "index_gb" => size("index_bytes"),
            "wal_gb" => size("wal_dir_bytes"),
            "dead_rows" => self.counter("dead_rows"),
            _ => None,
        }
    }

    fn trouble(&self, key: &str) -> Option<f64> {
        let roles = &self.record.roles;
        let sum = |of: fn(&deltabench_model::work::insert::RoleTally) -> u64| {
            (!roles.is_empty()).then(|| to_f64(roles.iter().map(of).sum()))
        };
        match key {
            "autovacuums" | "autoanalyzes" | "checkpoints" | "short_deletes" | "cut_short" => {
                self.counter(key)
            }
            // Steps and runs that have none are not about them.
            "look_ups" | "long_transactions" => self.counter(key).filter(|count| *count > 0.0),
            "look_up" => {
                let count = self.counter("look_ups").filter(|count| *count > 0.0)?;
                Some(self.counter("look_up_ns")? / 1e6 / count)
            }
            "look_up_max" => {
                let longest = self.counter("look_up_max_ns")?;
                Some(longest / 1e6).filter(|longest| *longest > 0.0)
            }
            "missed" => sum(|tally| tally.missed).filter(|_| self.step.rate().is_some()),
            "schedule_lag" => {
                let lags = roles.iter().filter_map(|tally| tally.schedule_lag_ns);
                lags.max().map(seconds)
            }
            "retries" => sum(|tally| tally.retries),
            "failed" => sum(|tally| tally.failed),
            _ => None,
        }
    }

    fn counter(&self, key: &str) -> Option<f64> {
        self.record.values.get(key).copied()
    }

    /// Rows inserted, or indexed in `l.x`.
    fn inserts(&self) -> Option<f64> {
        if self.step == InsertStep::Index {
            let rows = self.setup.published_per_operation(self.step);
            return Some(to_f64(self.record.operations) * rows);
        }
        let tally = self.record.role(InsertRole::Insert)?;
        Some(to_f64(tally.rows))
    }

    /// Queries; none in `l.*` steps.
    fn queries(&self) -> Option<f64> {
        let tally = self.record.role(InsertRole::Query);
        match tally {
            None if self.step.queries() => None,
            tally => Some(tally.map_or(0.0, |tally| to_f64(tally.statements))),
        }
    }

    /// What `q` stands for in published names.
    fn operations(&self) -> Option<f64> {
        if self.step.queries() {
            self.queries()
        } else {
            self.inserts()
        }
    }

    /// The rate of the second at this share of all, from the fastest on. The last one is left out where it
    /// is cut short.
    fn second(&self, share: f64) -> Option<f64> {
        if self.step == InsertStep::Index {
            return None;
        }
        let whole = index(self.record.duration_ns / 1_000_000_000);
        let seconds = &self.record.seconds;
        let seconds = seconds.get(..whole.min(seconds.len()))?;
        let mut rates: Vec<u64> = seconds
            .iter()
            .map(|second| self.operations_of(second))
            .collect();
        rates.sort_unstable_by(|a, b| b.cmp(a));
        let last = rates.len().checked_sub(1)?;
        let place = index(to_u64((share * to_f64(count(rates.len()))).floor())).min(last);
        rates.get(place).map(|rate| to_f64(*rate))
    }

    fn operations_of(&self, second: &InsertSecond) -> u64 {
        if self.step.queries() {
            second.queries
        } else {
            second.inserted
        }
    }
}
