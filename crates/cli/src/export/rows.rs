//! The rows of an export: a run's records and its comparison, value by value.

use super::{schema, unwritten};
use crate::failure::Failure;
use deltabench_compare::comparison::{
    CellComparison, Comparison, Confirmation, Cost, MetricComparison, Moved, Verdict,
};
use deltabench_compare::exit_code;
use deltabench_lab::Analysed;
use deltabench_model::counter::{Sample, VisitCounters};
use deltabench_model::finding::Severity;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::metric::{self, Basis, Better};
use deltabench_model::plan::{Cell, CellId, Plan, PlannedServer, Role, ServerId, Stopping};
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::micros;
use deltabench_report::ReportContext;
use deltabench_store::export::{Export, ExportError, ExportRow};
use deltabench_store::row;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// What is the same for every run.
pub fn general(export: &mut Export) -> Result<(), ExportError> {
    let (format, version) = schema::FORMAT;
    let writer = env!("CARGO_PKG_VERSION");
    export.rows(&schema::EXPORT, [row![format, version, writer]])?;
    let metrics = metric::METRICS.iter().map(|metric| {
        row![
            metric.key,
            metric.name,
            metric.unit,
            metric.better.map(Better::word),
            basis(metric.basis),
            Some(metric.counter).filter(|key| !key.is_empty()),
            metric.scale,
            metric.source,
            metric.versions,
            metric.meaning,
        ]
    });
    export.rows(&schema::METRICS, metrics)
}

/// Everything of one run.
pub struct Rows<'a> {
    pub run: &'a str,
    pub plan: &'a Plan,
    /// What was measured, and what that says.
    pub analysed: &'a Analysed,
}

impl Rows<'_> {
    /// Writes the rows of all tables.
    pub fn write(&self, export: &mut Export) -> Result<(), Failure> {
        self.described(export).map_err(unwritten)?;
        self.compared(export).map_err(unwritten)?;
        self.measured(export)
    }

    fn comparison(&self) -> &Comparison {
        &self.analysed.comparison
    }

    fn context(&self) -> &ReportContext {
        &self.analysed.context
    }

    /// What the run was, and where.
    fn described(&self, export: &mut Export) -> Result<(), ExportError> {
        let run = self.run;
        export.rows(&schema::RUNS, [self.run_row()])?;
        let servers = ServerId::each().zip(&self.plan.servers);
        export.rows(
            &schema::SERVERS,
            servers.map(|(id, server)| self.server_row(id, server)),
        )?;
        let cells = CellId::each().zip(&self.plan.cells);
        export.rows(
            &schema::CELLS,
            cells.map(|(id, cell)| self.cell_row(id, cell)),
        )?;
        let findings = self.comparison().findings.iter();
        export.rows(
            &schema::FINDINGS,
            findings.map(|one| {
                row![
                    run,
                    one.kind.word(),
                    severity(one.severity),
                    one.text.as_str()
                ]
            }),
        )?;
        let settings = self.context().servers.iter().flat_map(|facts| {
            facts.settings.iter().map(|one| {
                row![
                    run,
                    facts.server,
                    one.name.as_str(),
                    one.value.as_str(),
                    one.unit.as_deref(),
                    one.boot_value.as_deref(),
                    one.source.as_str(),
                ]
            })
        });
        export.rows(&schema::SETTINGS, settings)?;
        let withdrawals = self.context().invalidations.iter();
        export.rows(
            &schema::WITHDRAWALS,
            withdrawals.map(|one| row![run, one.cell, one.reason.as_str(), one.at_unix_ms]),
        )
    }

    fn run_row(&self) -> ExportRow {
        let (plan, context) = (self.plan, self.context());
        row![
            self.run,
            context.state.as_str(),
            context.started_unix_ms,
            plan.seed.to_string(),
            plan.delta,
            match plan.stopping {
                Stopping::Fixed => "fixed",
                Stopping::Sequential { .. } => "sequential",
                Stopping::Precision { .. } => "precision",
            },
            plan.timing.blocks,
            plan.data.tables,
            plan.data.rows,
            plan.command.join(" "),
            json(&context.host),
            json(&context.conditions),
            self.comparison().host_ok,
            u32::from(exit_code(self.comparison())),
            self.withdrawn(None),
        ]
    }

    fn server_row(&self, id: ServerId, server: &PlannedServer) -> ExportRow {
        let told = self.context().servers.iter().find(|one| one.server == id);
        let installation = &server.installation;
        let build = told
            .and_then(|facts| facts.build.as_ref())
            .or(installation.build.as_ref());
        row![
            self.run,
            id,
            match server.role {
                Role::Base => "base",
                Role::Placebo => "placebo",
                Role::Candidate => "candidate",
            },
            self.plan.server_name(id),
            installation.asked.as_str(),
            installation.resolved.as_str(),
            installation.version.as_str(),
            installation.version_num,
            build.map(|build| build.compiler.as_str()),
            build.map(|build| build.cflags.as_str()),
            build.map(|build| build.configure.as_str()),
            installation.binary_sha256.as_str(),
            server.burn_ns,
        ]
    }

    fn cell_row(&self, id: CellId, cell: &Cell) -> ExportRow {
        row![
            self.run,
            id,
            cell.workload.as_str(),
            cell.group.word(),
            cell.clients,
            cell.state.word(),
            cell.rate,
            cell.writes,
            cell.statements_per_operation,
            cell.published.per_operation,
            cell.published.unit.as_str(),
            self.withdrawn(Some(id)),
        ]
    }

    /// The reasons for which a run, or a cell with its run, is withdrawn.
    fn withdrawn(&self, cell: Option<CellId>) -> Option<String> {
        let concerned = |one: &&Invalidation| one.cell.is_none() || one.cell == cell;
        let all = self.context().invalidations.iter().filter(concerned);
        let reasons: Vec<&str> = all.map(|one| one.reason.as_str()).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// What was found.
    fn compared(&self, export: &mut Export) -> Result<(), ExportError> {
        let run = self.run;
        let (own, placebo) = (&self.comparison().cells, &self.comparison().placebo_cells);
        let all = || own.iter().chain(placebo);
        export.rows(&schema::VERDICTS, all().map(|cell| self.verdict_row(cell)))?;
        let metrics = || all().flat_map(|cell| cell.metrics.iter().map(move |one| (cell, one)));
        export.rows(
            &schema::COMPARISONS,
            metrics().map(|(cell, one)| self.comparison_row(cell, one)),
        )?;
        let costs = all().flat_map(|cell| cell.costs.iter().map(move |one| (cell, one)));
        export.rows(
            &schema::COSTS,
            costs.map(|(cell, one)| self.cost_row(cell, one)),
        )?;
        let blocks = metrics().flat_map(|(cell, one)| {
            let values = (0_u32..).zip(&one.blocks);
            values.map(move |(position, value)| {
                row![
                    run,
                    cell.cell,
                    cell.candidate,
                    one.metric.key(),
                    position,
                    *value
                ]
            })
        });
        export.rows(&schema::BLOCKS, blocks)?;
        let rates = all().flat_map(|cell| {
            let rates = cell.rates.iter();
            rates.map(move |one| {
                row![
                    run,
                    cell.cell,
                    cell.candidate,
                    one.block,
                    one.base,
                    one.candidate
                ]
            })
        });
        export.rows(&schema::BLOCK_RATES, rates)?;
        let rounds = all().flat_map(|cell| {
            let rounds = cell.series.iter();
            rounds.map(move |one| {
                row![
                    run,
                    cell.cell,
                    cell.candidate,
                    one.block,
                    one.round,
                    one.throughput,
                    one.server_cpu,
                ]
            })
        });
        export.rows(&schema::ROUNDS, rounds)
    }

    fn verdict_row(&self, cell: &CellComparison) -> ExportRow {
        let speed = cell.host_speed.as_ref();
        row![
            self.run,
            cell.cell,
            cell.candidate,
            cell.verdict.word(),
            cell.alone.word(),
            cell.reason.as_str(),
            cell.delta,
            cell.p,
            cell.p_holm,
            cell.p_bh,
            cell.blocks,
            cell.rounds,
            cell.void_rounds,
            cell.interference.disturbed_rounds,
            cell.interference.contended,
            cell.drifting.as_deref(),
            cell.confirmation.map(Confirmation::word),
            cell.base_errors,
            cell.candidate_errors,
            cell.explanation.as_deref(),
            speed.map(|speed| speed.slowdown),
            speed.and_then(|speed| Some(speed.throughput?.p)),
        ]
    }

    fn comparison_row(&self, cell: &CellComparison, one: &MetricComparison) -> ExportRow {
        let (ci95, ci90) = (one.ratio.ci95, one.ratio.ci90);
        let hours = one.hours.as_ref();
        let another = hours.and_then(|hours| hours.another.ci95);
        let by = one.difference_us.as_ref();
        let by_ends = by.and_then(|by| by.ci95);
        row![
            self.run,
            cell.cell,
            cell.candidate,
            one.metric.key(),
            one.metric.unit(),
            one.metric.better().word(),
            one.base,
            one.candidate,
            one.ratio.estimate,
            ci95.map(|(low, _)| low),
            ci95.map(|(_, high)| high),
            ci90.map(|(low, _)| low),
            ci90.map(|(_, high)| high),
            one.verdict.map(Verdict::word),
            another.map(|(low, _)| low),
            another.map(|(_, high)| high),
            hours.map(|hours| hours.from.word()),
            hours.map(|hours| hours.assumed),
            by.map(|by| by.estimate),
            by_ends.map(|(low, _)| low),
            by_ends.map(|(_, high)| high),
        ]
    }

    fn cost_row(&self, cell: &CellComparison, one: &Cost) -> ExportRow {
        let moved: Option<&Moved> = cell.moved.iter().find(|moved| moved.key == one.key);
        let (difference, ratio) = (&one.difference, one.ratio.as_ref());
        let ci95 = ratio.and_then(|ratio| ratio.ci95);
        row![
            self.run,
            cell.cell,
            cell.candidate,
            one.key.as_str(),
            metric::metric(&one.key).map_or("us/op", |metric| metric.unit),
            one.base,
            one.candidate,
            difference.estimate,
            difference.ci95.map(|(low, _)| low),
            difference.ci95.map(|(_, high)| high),
            ratio.map(|ratio| ratio.estimate),
            ci95.map(|(low, _)| low),
            ci95.map(|(_, high)| high),
            one.blocks,
            moved.map(|moved| moved.surprise),
            moved.map(|moved| moved.p),
        ]
    }

    /// The records.
    fn measured(&self, export: &mut Export) -> Result<(), Failure> {
        let run = self.run;
        let (slices, counters) = (&self.analysed.slices, &self.analysed.counters);
        let samples = &self.context().samples;
        let marks = &self.context().marks;
        let mut reader = Deserializer::new();
        let mut write = || {
            let rows = slices.iter().map(|one| slice_row(run, one, &mut reader));
            export.rows(&schema::SLICES, rows)?;
            let errors = slices.iter().flat_map(|one| error_rows(run, one));
            export.rows(&schema::SLICE_ERRORS, errors)?;
            let counted = counters.iter().flat_map(|one| counter_rows(run, one));
            export.rows(&schema::COUNTERS, counted)?;
            let of_kind = self.analysed.shown.exported.as_ref();
            for (table, rows) in of_kind.map_or_else(Vec::new, |own| own.rows(run)) {
                export.rows(&table, rows)?;
            }
            let sampled = samples.iter().flat_map(|one| sample_rows(run, one));
            export.rows(&schema::SAMPLES, sampled)?;
            let marked = marks.iter().map(|one| {
                let (kind, text) = (one.kind.as_str(), one.text.as_str());
                row![run, one.at_ns, one.server, kind, text]
            });
            export.rows(&schema::MARKS, marked)
        };
        write().map_err(unwritten)
    }
}

fn slice_row(run: &str, slice: &Slice, reader: &mut Deserializer) -> ExportRow {
    let histogram: Option<Histogram<u64>> = reader
        .deserialize(&mut slice.latency_histogram.as_slice())
        .ok()
        .filter(|histogram: &Histogram<u64>| !histogram.is_empty());
    let quantile = |q| {
        let histogram = histogram.as_ref()?;
        Some(micros(histogram.value_at_quantile(q)))
    };
    row![
        run,
        slice.cell,
        slice.block,
        slice.round,
        slice.position,
        slice.server,
        slice.connection,
        slice.started_ns,
        slice.duration_ns,
        slice.operations,
        slice.failed,
        slice.rows,
        slice.server_cpu_ns,
        slice.run_queue_wait_ns,
        slice.client_cpu_ns,
        slice.foreign_cpu_ns,
        slice.steal_ns,
        slice.idle_cpu_ns,
        slice.background_cpu_ns,
        slice.probe_ns,
        slice.probing_ns,
        slice.switches,
        slice.cpu_pressure_ns,
        slice.schedule_lag_ns,
        slice.void.as_ref().map(VoidReason::word),
        quantile(0.5),
        quantile(0.99),
    ]
}

fn error_rows<'a>(run: &'a str, slice: &'a Slice) -> impl Iterator<Item = ExportRow> + 'a {
    slice.errors.iter().map(move |error| {
        row![
            run,
            slice.cell,
            slice.block,
            slice.round,
            slice.position,
            slice.server,
            error.sqlstate.as_str(),
            error.count,
            error.first_message.as_str(),
        ]
    })
}

fn counter_rows<'a>(
    run: &'a str,
    visit: &'a VisitCounters,
) -> impl Iterator<Item = ExportRow> + 'a {
    visit.values.iter().map(move |(key, value)| {
        row![
            run,
            visit.cell,
            visit.block,
            visit.server,
            visit.operations,
            key.as_str(),
            *value
        ]
    })
}

fn sample_rows<'a>(run: &'a str, sample: &'a Sample) -> impl Iterator<Item = ExportRow> + 'a {
    sample.values.iter().map(move |(key, value)| {
        let (series, server) = of_server(key);
        row![run, sample.at_ns, sample.over_ns, series, server, *value]
    })
}

/// `KEY@SERVER` in its parts; what is no number of a server is a part of the key.
fn of_server(key: &str) -> (&str, Option<ServerId>) {
    let parts = key.rsplit_once('@');
    match parts.and_then(|(series, server)| Some((series, server.parse().ok().map(ServerId)?))) {
        Some((series, server)) => (series, Some(server)),
        None => (key, None),
    }
}

/// JSON as text; null where nothing is known.
fn json(value: &serde_json::Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

/// The word of a basis.
fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Slices => "slices",
        Basis::SliceEnds => "slice-ends",
        Basis::Requests(_) => "requests",
        Basis::Visit => "visit",
        Basis::Pass(_) => "pass",
        Basis::Gauge => "gauge",
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Confounder => "confounder",
        Severity::Unfit => "unfit",
    }
}
