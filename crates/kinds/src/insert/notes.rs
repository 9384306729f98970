//! What to mind about a run of the benchmark, in words.

use super::{
    INSERT_METRICS, InsertReport, NAMED, PassFigures, ServerFigures, StepColumn, StepFigures,
};
use deltabench_compare::thresholds::{DELETE_CPU_FACTOR, LAG_SECONDS};
use deltabench_model::plan::Plan;
use deltabench_model::work::insert::{InsertSetup, Pacing, SLA_SHARE};

/// In the order of what matters most for the verdicts.
pub(super) fn notes(plan: &Plan, setup: &InsertSetup, report: &InsertReport) -> Vec<String> {
    let few = few_passes(report);
    let placebo = plan.placebo().is_none() && !plan.candidates().is_empty();
    let placebo = placebo.then(|| {
        "no placebo: this run cannot show what it says about two equal servers".to_owned()
    });
    let late = listed(
        report,
        |at| at.missed(),
        "SLA missed (below 95 % of the requested rate): ",
    );
    let lines = [
        few,
        placebo,
        in_turns(setup),
        late,
        listed(
            report,
            |at| at.single_passes(),
            "below 95 % of the rate in single passes: ",
        ),
        listed(report, |at| at.void(), "void, not in any figure: "),
        delete_cpu(report),
        listed(report, |at| at.lag(), "statements were sent late: "),
        listed(report, |at| at.never_sent(setup), "statements never sent: "),
        listed(
            report,
            |at| at.cut_short(),
            "ended early, because the server could not keep the rate: ",
        ),
        listed(
            report,
            |at| at.short(),
            "deletes that removed another number of rows: ",
        ),
        listed(report, |at| at.failed(), "statements that failed: "),
    ];
    lines.into_iter().flatten().collect()
}

/// What is different in turns.
fn in_turns(setup: &InsertSetup) -> Option<String> {
    (setup.turns > 0).then(|| {
        format!(
            "in turns: all servers were there at once, one worked at a time, and the others were frozen. \
             Their clocks went on, so autovacuum_naptime and checkpoint_timeout were longer by the number of \
             servers. The seconds of a step leave out those in which its server was frozen. Compare absolute \
             figures only with other runs of {} turns on as many servers",
            setup.turns
        )
    })
}

fn few_passes(report: &InsertReport) -> Option<String> {
    let most = report
        .servers
        .iter()
        .flat_map(|row| &row.steps)
        .filter_map(|step| step.relative.as_ref())
        .map(|relative| relative.passes)
        .max()?;
    let needed = report.passes_needed;
    (most < needed).then(|| {
        let passes = if most == 1 {
            "1 pass"
        } else {
            &format!("{most} passes")
        };
        format!(
            "{passes} measured, but a verdict needs {needed}: there are no relative figures yet"
        )
    })
}

/// The step of each server in which deletes cost the most against inserts.
fn delete_cpu(report: &InsertReport) -> Option<String> {
    let worst = |row: &ServerFigures| {
        let places = row.steps.iter().zip(&report.steps);
        let of = |(figures, column)| {
            let at = At {
                row,
                column,
                figures,
            };
            let (delete, insert) = (at.metric("delete_cpu")?, at.metric("insert_cpu")?);
            let found = insert > 0.0 && delete >= DELETE_CPU_FACTOR * insert;
            found.then(|| {
                let times = delete / insert;
                let text = format!(
                    "{} {delete:.1} against {insert:.1} µs/row, {times:.0} times",
                    at.name()
                );
                (times, text)
            })
        };
        let all = places.filter_map(of);
        all.max_by(|(one, _), (two, _)| one.total_cmp(two))
            .map(|(_, text)| text)
    };
    let texts: Vec<String> = report.servers.iter().filter_map(worst).collect();
    (!texts.is_empty()).then(|| {
        format!(
            "deletes cost much more CPU than inserts (planning looks through dead index entries), at \
             most: {}",
            texts.join("; ")
        )
    })
}

/// One place of the tables.
struct At<'a> {
    row: &'a ServerFigures,
    column: &'a StepColumn,
    figures: &'a StepFigures,
}

/// A line that names the places of which there is something to say.
fn listed(
    report: &InsertReport,
    says: impl Fn(&At<'_>) -> Option<String>,
    head: &str,
) -> Option<String> {
    let mut texts = Vec::new();
    for (place, column) in report.steps.iter().enumerate() {
        for row in &report.servers {
            let at = row.steps.get(place).map(|figures| At {
                row,
                column,
                figures,
            });
            let text = at.and_then(|at| Some(format!("{} {}", at.name(), says(&at)?)));
            texts.extend(text);
        }
    }
    let more = texts.len().saturating_sub(NAMED);
    texts.truncate(NAMED);
    if more > 0 {
        texts.push(format!("{more} more"));
    }
    (!texts.is_empty()).then(|| format!("{head}{}", texts.join("; ")))
}

impl At<'_> {
    fn name(&self) -> String {
        format!("{} on {}", self.column.name, self.row.name)
    }

    fn metric(&self, key: &str) -> Option<f64> {
        let place = INSERT_METRICS.iter().position(|metric| metric.key == key)?;
        self.figures.metrics.get(place).copied().flatten()
    }

    fn missed(&self) -> Option<String> {
        let service = self.figures.service.filter(|service| !service.met)?;
        Some(format!(
            "{:.0} of {:.0} rows/s",
            service.rate, service.target
        ))
    }

    fn single_passes(&self) -> Option<String> {
        let service = self.figures.service.filter(|service| service.met)?;
        let slowest = self
            .figures
            .passes
            .iter()
            .filter_map(|pass| pass.background)
            .fold(f64::INFINITY, f64::min);
        (service.short_passes > 0).then(|| {
            let needed = SLA_SHARE * service.target;
            format!(
                "{} of {} (slowest {slowest:.0}, needs {needed:.0} rows/s)",
                service.short_passes, service.passes
            )
        })
    }

    fn void(&self) -> Option<String> {
        let void = |pass: &PassFigures| {
            let why = pass.void.as_ref()?;
            Some(format!("pass {} ({why})", pass.pass + 1))
        };
        let texts: Vec<String> = self.figures.passes.iter().filter_map(void).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    fn lag(&self) -> Option<String> {
        let lag = self
            .metric("schedule_lag")
            .filter(|lag| *lag >= LAG_SECONDS)?;
        Some(format!("up to {lag:.1} s"))
    }

    fn never_sent(&self, setup: &InsertSetup) -> Option<String> {
        let missed = self.metric("missed").filter(|missed| *missed > 0.0)?;
        let why = match setup.pacing {
            Pacing::Burst => "a late second is not made up, as published",
            Pacing::Spread => "the step was cut short",
        };
        Some(format!("{missed:.0} ({why})"))
    }

    fn cut_short(&self) -> Option<String> {
        self.metric("cut_short")
            .filter(|passes| *passes > 0.0)
            .map(|passes| format!("in {passes:.0} of {} passes", self.figures.passes.len()))
    }

    fn short(&self) -> Option<String> {
        self.metric("short_deletes")
            .filter(|short| *short > 0.0)
            .map(|short| format!("{short:.0}"))
    }

    fn failed(&self) -> Option<String> {
        self.metric("failed")
            .filter(|failed| *failed > 0.0)
            .map(|failed| format!("{failed:.0}"))
    }
}
