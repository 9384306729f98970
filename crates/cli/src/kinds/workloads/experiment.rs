//! From a part of an experiment to a request: as `deltabench compare` would have it with the same options.

use super::arguments::{Compare, OrderWord, StateWord};
use super::request;
use crate::arguments::conditions::{CacheWord, Checksums, TransportWord};
use crate::arguments::shape::{CountArguments, JobsWord, PlacementWord};
use clap::Parser;
use deltabench_experiment as experiment;
use deltabench_experiment::{Chosen, Experiment, Part};
use deltabench_model::plan::{CacheState, CellOrder, DataState, Placement, Transport};
use deltabench_model::problem::Problem;
use deltabench_run::planning::{Request, Selection};
use deltabench_workload::{Definition, Library};
use std::path::Path;

/// The request of one part. `directory` is that of the experiment's file: what the file names is relative to
/// it.
///
/// Errors: files that cannot be read, workloads and parameters that are not there, shares and times that
/// mean nothing.
pub fn request_of(
    experiment: &Experiment,
    part: &Part,
    seed: u64,
    directory: &Path,
    library: &Library,
) -> Result<Request, Problem> {
    let mut compare = by_default()?;
    workloads(experiment, directory, &mut compare);
    measurement(experiment, &mut compare);
    compare.rows = Some(part.rows);
    compare.tables = part.tables;
    compare.conditions.limits.memory.clone_from(&part.memory);
    if let Some(storage) = &part.storage {
        compare.conditions.limits.storage = beside(storage, directory);
    }
    compare.conditions.limits.cache_state = match experiment.cache {
        CacheState::AsIs => CacheWord::AsIs,
        CacheState::Cold => CacheWord::Cold,
        CacheState::Prewarmed => CacheWord::Prewarmed,
    };
    compare.conditions.limits.limits_optional = experiment.limits_optional;
    compare.conditions.seed = Some(seed);
    let mut request = request(&compare)?;
    request.timing.rotated = experiment.measurement.rotated;
    request.selection = match &experiment.workloads.chosen {
        Chosen::Quick => Selection::Quick,
        Chosen::Published => Selection::All,
        Chosen::Named(names) => Selection::Named(names.clone()),
    };
    if !experiment.workloads.also.is_empty() {
        let name = |definition: &Definition| definition.name.clone();
        let mut names: Vec<String> = match &experiment.workloads.chosen {
            Chosen::Published => library.published().into_iter().map(name).collect(),
            Chosen::Quick => library.quick().into_iter().map(name).collect(),
            Chosen::Named(names) => names.clone(),
        };
        let also = experiment.workloads.also.iter();
        names.extend(
            also.filter(|also| !names.contains(also))
                .cloned()
                .collect::<Vec<_>>(),
        );
        request.selection = Selection::Named(names);
    }
    for variant in &experiment.workloads.variants {
        let source = library.variant(&variant.of, &variant.parameters)?;
        request.sources.push(source);
    }
    Ok(request)
}

/// `deltabench compare` alone.
#[derive(Debug, Parser)]
struct Alone {
    /// Its options
    #[command(flatten)]
    compare: Compare,
}

/// Options as they are when nothing is said.
fn by_default() -> Result<Compare, Problem> {
    let parsed = Alone::try_parse_from(["compare", "base", "candidate"]);
    parsed.map(|alone| alone.compare).map_err(|error| {
        Problem::new("the options of `compare` have changed").detail(error.to_string())
    })
}

fn workloads(experiment: &Experiment, directory: &Path, compare: &mut Compare) {
    let wanted = &experiment.workloads;
    let files = wanted.files.iter();
    compare.workloads = files.map(|file| directory.join(file)).collect();
    compare.clients.clone_from(&wanted.clients);
    compare.order = match wanted.order {
        CellOrder::Drawn => OrderWord::Drawn,
        CellOrder::Published => OrderWord::Published,
    };
    compare.state = match wanted.state {
        DataState::Fresh => StateWord::Fresh,
        DataState::Aged => StateWord::Aged,
    };
}

fn measurement(experiment: &Experiment, compare: &mut Compare) {
    let wanted = &experiment.measurement;
    compare.shape.blocks = wanted.blocks;
    compare.shape.ending.fixed = wanted.fixed;
    compare.shape.ending.precision.clone_from(&wanted.precision);
    compare.shape.ending.budget.clone_from(&wanted.budget);
    compare.shape.delta.clone_from(&wanted.delta);
    compare.shape.visit_seconds = wanted.visit_seconds;
    compare.shape.write_seconds = wanted.write_seconds;
    compare.shape.warmup.clone_from(&wanted.warmup);
    compare.shape.slice_ms = wanted.slice_ms;
    compare.rate = wanted.rate;
    compare.shape.probes = wanted.probes;
    compare.shape.waits = (wanted.waits > 0).then_some(wanted.waits);
    compare.shape.counts = CountArguments {
        count: wanted.count,
        no_count: !wanted.count,
    };
    compare.conditions.no_counters = !wanted.counters;
    compare.conditions.transport = match wanted.transport {
        Transport::Socket => TransportWord::Socket,
        Transport::Tcp => TransportWord::Tcp,
        Transport::Tls => TransportWord::Tls,
    };
    compare.conditions.checksums = match wanted.checksums {
        experiment::Checksums::On => Checksums::On,
        experiment::Checksums::Off => Checksums::Off,
        experiment::Checksums::AsShipped => Checksums::Default,
    };
    compare.shape.jobs = wanted.jobs.map(JobsWord::Count);
    compare.shape.placement = wanted.placement.map(|placement| match placement {
        Placement::SameCore => PlacementWord::SameCore,
        Placement::Split => PlacementWord::Split,
        Placement::Free => PlacementWord::Free,
    });
}

/// A storage profile's name as it is, or a file next to the experiment's.
fn beside(storage: &str, directory: &Path) -> String {
    let is_file = storage.contains('/') || Path::new(storage).extension().is_some();
    if is_file {
        directory.join(storage).display().to_string()
    } else {
        storage.to_owned()
    }
}
