//! What a bisection says now, from its looks.

use super::evidence::{Evidence, LAYOUT};
use super::learnt::{is_by_time, is_out_of_time, is_same_server, places};
use super::search::Ended;
use super::told::Told;
use crate::failure::Failure;
use deltabench_model::bisection::{Asked, BisectedBy, Bisection};
use deltabench_report::{BISECTED_FORMAT, BaseAlone, Bisected, By};
use deltabench_store::Store;

/// What a bisection says now; `ended` is how its search ended, if that was just now.
pub fn shown(
    bisection: &Bisection,
    ended: Option<Ended>,
    store: &Store,
) -> Result<Bisected, Failure> {
    let none = Asked {
        min: 0.005,
        culprits: 1,
        skip: Vec::new(),
        keep_builds: 0,
        budget_seconds: None,
        count_only: false,
        blocks: 14,
        metric: BisectedBy::Auto,
        cpu_of_run: None,
    };
    let asked = bisection.asked().unwrap_or(&none);
    let (question, places) = (&bisection.question, places(&bisection.question));
    let is_by_time = is_by_time(bisection, asked, &places);
    let evidence = || Evidence::of(bisection, asked, &places, store);
    let told = Told {
        bisection,
        places: &places,
        by: match is_by_time {
            false => By::Instructions,
            true if asked.metric == BisectedBy::Throughput => By::Throughput,
            true => By::Cpu,
        },
        evidence: is_by_time.then(evidence).transpose()?,
        store,
    };
    let said = match &told.evidence {
        Some(evidence) => told.by_time(evidence)?,
        None => told.by_count(asked)?,
    };
    let last = places.last().copied().unwrap_or(0);
    let counted = |point| Some((told.instructions(0)?, told.instructions(point)?));
    let is_same = is_same_server(bisection, &places);
    let is_out_of_time = is_out_of_time(bisection);
    let ended = ended.unwrap_or(match said.ended {
        _ if is_same => Ended::SameServer,
        Ended::Interrupted if is_out_of_time => Ended::Budget,
        ended => ended,
    });
    Ok(Bisected {
        format: BISECTED_FORMAT.0,
        version: BISECTED_FORMAT.1,
        name: bisection.name.clone(),
        workload: workload(bisection),
        by: told.by,
        base: told.point(0),
        candidate: told.point(question.points.len().saturating_sub(1)),
        points: question.points.len(),
        may_differ: places.len(),
        base_alone: question.base_alone.as_ref().map(|alone| BaseAlone {
            commit: alone.commit.clone(),
            commits: alone.commits,
        }),
        min: said.min,
        layout: is_by_time.then_some(LAYOUT),
        instructions: counted(last),
        change: said.change,
        ci95: said.ci95,
        end: word(ended),
        culprits: said.culprits,
        open: said.open,
        quiet: said.quiet,
        looks: said.looks,
    })
}

fn workload(bisection: &Bisection) -> String {
    let cells = &bisection.question.plan.cells;
    cells
        .first()
        .map_or_else(String::new, |cell| cell.workload.clone())
}

fn word(ended: Ended) -> &'static str {
    match ended {
        Ended::Found => "found",
        Ended::NothingDiffers => "nothing-differs",
        Ended::SameServer => "same-server",
        Ended::Unsure => "unsure",
        Ended::Budget => "undecided",
        Ended::Interrupted => "interrupted",
    }
}
