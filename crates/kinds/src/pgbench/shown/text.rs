//! What each server did, as pgbench 18 prints it at the end of a run, so that what reads that reads this.

use deltabench_compare::absolute::{CellResult, Progress, add, mean_and_stddev, progress};
use deltabench_model::plan::{Cell, CellId, Plan, Role, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::ScriptTally;
use deltabench_model::units::{to_f64, to_u64};
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchSetup};

/// For each cell and server the text of pgbench 18, with a `progress:` line for each `every` seconds of
/// measured time if wanted.
///
/// Shape: before each text stands a line that begins with `#` and tells cell and server, unless there is only
///        one of both. The placebo is left out: it is the base again. Two lines of pgbench are not there: the
///        initial connection time and the average schedule lag of a rate, which are not measured.
pub fn pgbench(plan: &Plan, results: &[CellResult], every: Option<f64>) -> String {
    let Some(setup) = plan.work.pgbench() else {
        return String::new();
    };
    let texts: Vec<(String, String)> = results
        .iter()
        .filter_map(|result| {
            let server = plan.server(result.server)?;
            let cell = plan.cell(result.cell)?;
            let mix = setup.mixes.iter().find(|mix| mix.name == cell.workload)?;
            let done = Done {
                setup,
                mix,
                cell,
                result,
                threads: plan.threads(cell),
            };
            let head = format!("# server {}, {}", server.name(), named(cell));
            (server.role != Role::Placebo).then(|| (head, done.text(every)))
        })
        .collect();
    if let [(_, only)] = texts.as_slice() {
        return only.clone();
    }
    let texts: Vec<String> = texts
        .into_iter()
        .map(|(head, text)| format!("{head}\n{text}"))
        .collect();
    texts.join("\n")
}

/// Refuses runs that have nothing to show in this form.
///
/// Errors: none of the run's cells is a pgbench script.
pub(super) fn check_pgbench(plan: &Plan) -> Result<(), Problem> {
    match plan.work.pgbench() {
        Some(_) => Ok(()),
        None => Err(Problem::new("this run has no report in pgbench's own form")
            .detail("none of its workloads is a pgbench script")
            .hint("leave out --format, or measure pgbench's scripts: deltabench pgbench")),
    }
}

fn named(cell: &Cell) -> String {
    let rate = cell
        .rate
        .map_or(String::new(), |rate| format!(", rate {rate}"));
    format!("{}, clients {}{rate}", cell.workload, cell.clients)
}

/// What a server did in a cell.
struct Done<'a> {
    setup: &'a PgbenchSetup,
    mix: &'a PgbenchMix,
    cell: &'a Cell,
    result: &'a CellResult,
    /// Threads of the client.
    threads: u32,
}

impl Done<'_> {
    fn text(&self, every: Option<f64>) -> String {
        let mut lines = Vec::new();
        if let Some(every) = every {
            let all = progress(&self.result.series, every).into_iter();
            lines.extend(all.map(|progress| self.progress(&progress)));
        }
        lines.extend(self.head());
        let all = self.all();
        if total(&all) > 0 {
            lines.extend(self.counts(&all, total(&all), ""));
            lines.extend(self.late(&all));
            lines.extend(latency(&all, ""));
            let connecting = match self.setup.reconnects {
                true => "including reconnection times",
                false => "without initial connection time",
            };
            lines.push(format!(
                "tps = {:.6} ({connecting})",
                self.tps(all.operations)
            ));
            if self.mix.scripts.len() > 1 {
                lines.extend(self.scripts(total(&all)));
            }
        }
        lines.join("\n") + "\n"
    }

    /// All scripts together.
    fn all(&self) -> ScriptTally {
        let mut all = nothing(0);
        for tally in &self.result.scripts {
            add(&mut all, tally);
        }
        all
    }

    fn tps(&self, operations: u64) -> f64 {
        let seconds = self.result.total.seconds;
        if seconds > 0.0 {
            to_f64(operations) / seconds
        } else {
            0.0
        }
    }

    fn head(&self) -> Vec<String> {
        let kind = match self.mix.scripts.as_slice() {
            [one] => one.source.file.as_str(),
            _ => "multiple scripts",
        };
        let tables = &self.setup.tables;
        let mut lines = vec![
            format!("transaction type: {kind}"),
            format!("scaling factor: {}", tables.scale),
        ];
        if tables.partitions > 0 {
            lines.push(format!(
                "partition method: {}",
                tables.partition_method.word()
            ));
            lines.push(format!("partitions: {}", tables.partitions));
        }
        lines.extend([
            format!("query mode: {}", self.setup.mode.word()),
            format!("number of clients: {}", self.cell.clients),
            format!("number of threads: {}", self.threads),
        ]);
        if self.setup.max_tries > 0 {
            lines.push(format!("maximum number of tries: {}", self.setup.max_tries));
        }
        lines.push(format!("duration: {} s", to_u64(self.result.total.seconds)));
        let processed = self.all().operations;
        lines.push(format!(
            "number of transactions actually processed: {processed}"
        ));
        lines
    }

    /// Failed, retried and skipped transactions.
    fn counts(&self, tally: &ScriptTally, total: u64, start: &str) -> Vec<String> {
        let share = |of: u64| format!("{of} ({:.3}%)", percent(of, total));
        let mut lines = vec![format!(
            "{start}number of failed transactions: {}",
            share(failed(tally))
        )];
        if self.setup.max_tries != 1 {
            lines.push(format!(
                "{start}number of transactions retried: {}",
                share(tally.retried)
            ));
            lines.push(format!("{start}total number of retries: {}", tally.retries));
        }
        if self.skips() {
            lines.push(format!(
                "{start}number of transactions skipped: {}",
                share(tally.skipped)
            ));
        }
        lines
    }

    fn skips(&self) -> bool {
        self.cell.rate.is_some() && self.setup.latency_limit_ms.is_some()
    }

    fn late(&self, all: &ScriptTally) -> Option<String> {
        let limit = self.setup.latency_limit_ms?;
        Some(format!(
            "number of transactions above the {limit:.1} ms latency limit: {}/{} ({:.3}%)",
            all.late,
            all.operations,
            percent(all.late, all.operations)
        ))
    }

    /// The block of each script.
    fn scripts(&self, all: u64) -> Vec<String> {
        let weights: u64 = self.weights().sum();
        let mut lines = Vec::new();
        for (number, script) in (0..).zip(&self.mix.scripts) {
            let tally = self.script(number);
            let done = total(&tally);
            lines.push(format!("SQL script {}: {}", number + 1, script.source.file));
            lines.push(format!(
                " - weight: {} (targets {:.1}% of total)",
                script.weight,
                percent(u64::from(script.weight), weights)
            ));
            lines.push(format!(
                " - {done} transactions ({:.1}% of total)",
                percent(done, all)
            ));
            if done > 0 {
                lines.push(format!(
                    " - number of transactions actually processed: {} (tps = {:.6})",
                    tally.operations,
                    self.tps(tally.operations)
                ));
                lines.extend(self.counts(&tally, done, " - "));
            }
            lines.extend(latency(&tally, " - "));
        }
        lines
    }

    /// What a script came to.
    fn script(&self, number: u32) -> ScriptTally {
        let known = self.result.scripts.iter().find(|one| one.script == number);
        known.cloned().unwrap_or_else(|| nothing(number))
    }

    fn weights(&self) -> impl Iterator<Item = u64> {
        let scripts = self.mix.scripts.iter();
        scripts.map(|script| u64::from(script.weight))
    }

    fn progress(&self, done: &Progress) -> String {
        let tps = if done.seconds > 0.0 {
            to_f64(done.operations) / done.seconds
        } else {
            0.0
        };
        let ms = |us: Option<f64>| us.unwrap_or(0.0) / 1e3;
        let mut line = format!(
            "progress: {:.1} s, {tps:.1} tps, lat {:.3} ms stddev {:.3}, {} failed",
            done.at_seconds,
            ms(done.average_us),
            ms(done.stddev_us),
            done.failed
        );
        if self.skips() {
            line.push_str(&format!(", {} skipped", done.skipped));
        }
        if self.setup.max_tries != 1 {
            let (retried, retries) = (done.retried, done.retries);
            line.push_str(&format!(", {retried} retried, {retries} retries"));
        }
        line
    }
}

fn nothing(script: u32) -> ScriptTally {
    ScriptTally {
        script,
        ..ScriptTally::default()
    }
}

/// Transactions that failed, for whatever reason.
pub(crate) fn failed(tally: &ScriptTally) -> u64 {
    tally.serialization_failures + tally.deadlock_failures + tally.other_failures
}

/// Transactions that succeeded, failed or were skipped.
pub(crate) fn total(tally: &ScriptTally) -> u64 {
    tally.operations + failed(tally) + tally.skipped
}

fn percent(part: u64, of: u64) -> f64 {
    if of == 0 {
        0.0
    } else {
        100.0 * to_f64(part) / to_f64(of)
    }
}

fn latency(tally: &ScriptTally, start: &str) -> Vec<String> {
    let sums = (tally.latency_sum_us, tally.latency_square_sum_us2);
    let found = mean_and_stddev(tally.operations, sums.0, sums.1);
    found.map_or_else(Vec::new, |(average, stddev)| {
        vec![
            format!("{start}latency average = {:.3} ms", average / 1e3),
            format!("{start}latency stddev = {:.3} ms", stddev / 1e3),
        ]
    })
}

/// What a script came to on a server in a cell.
pub(crate) struct ScriptResult {
    pub(crate) cell: CellId,
    pub(crate) server_id: ServerId,
    pub(crate) workload: String,
    pub(crate) clients: u32,
    pub(crate) server: String,
    pub(crate) script: String,
    pub(crate) weight: u32,
    /// Of all transactions of the cell on this server, failed and skipped ones included.
    pub(crate) share: f64,
    pub(crate) tps: f64,
    /// Mean and standard deviation.
    pub(crate) latency_us: Option<(f64, f64)>,
    pub(crate) failed: u64,
    pub(crate) tally: ScriptTally,
}

/// Every script of every mix on every server but the placebo.
pub(crate) fn script_rows(plan: &Plan, results: &[CellResult]) -> Vec<ScriptResult> {
    let Some(setup) = plan.work.pgbench() else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for result in results {
        let server = plan.server(result.server);
        let cell = plan.cell(result.cell);
        let (Some(server), Some(cell)) = (server, cell) else {
            continue;
        };
        let mix = setup.mixes.iter().find(|mix| mix.name == cell.workload);
        let Some(mix) = mix.filter(|_| server.role != Role::Placebo) else {
            continue;
        };
        let done = Done {
            setup,
            mix,
            cell,
            result,
            threads: plan.threads(cell),
        };
        let all = total(&done.all());
        for (number, script) in (0..).zip(&mix.scripts) {
            let tally = done.script(number);
            rows.push(ScriptResult {
                cell: result.cell,
                server_id: result.server,
                workload: cell.workload.clone(),
                clients: cell.clients,
                server: server.name(),
                script: script.source.file.clone(),
                weight: script.weight,
                share: percent(total(&tally), all) / 100.0,
                tps: done.tps(tally.operations),
                latency_us: mean_and_stddev(
                    tally.operations,
                    tally.latency_sum_us,
                    tally.latency_square_sum_us2,
                ),
                failed: failed(&tally),
                tally,
            });
        }
    }
    rows
}
