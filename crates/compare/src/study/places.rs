//! Where each run stands: what may be put into one study, and along which axes its runs differ.

use super::differences::differences;
use super::{Axis, StudyRun, distinct};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;

/// An axis along which runs differ.
pub(super) struct Dimension {
    pub(super) axis: Axis,
    pub(super) name: String,
    /// In the order of the parts.
    pub(super) values: Vec<String>,
}

/// The runs in the order of their parts, each with the index of its value on every dimension.
pub(super) struct Places<'a> {
    pub(super) dimensions: Vec<Dimension>,
    pub(super) runs: Vec<(StudyRun<'a>, Vec<usize>)>,
    /// Runs that belong to others: they confirm one, count or sample for it, measure it under another
    /// condition, or are a later session of it.
    pub(super) parts: Vec<StudyRun<'a>>,
    /// Runs in which nothing is measured yet.
    pub(super) unmeasured: Vec<StudyRun<'a>>,
    /// Whether its columns need dates: runs are not all parts of one execution.
    pub(super) several_times: bool,
}

impl<'a> Places<'a> {
    /// Errors: no run; one twice; runs of different bases; runs that stand in the same place and did not do
    /// the same.
    pub(super) fn new(runs: &[StudyRun<'a>]) -> Result<Self, Problem> {
        // A first session stands for all of them.
        let (parts, mut runs): (Vec<StudyRun<'a>>, Vec<StudyRun<'a>>) =
            runs.iter().partition(|run| run.plan.belongs_to().is_some());
        check(&runs, &parts)?;
        let hosts = distinct(runs.iter().map(|run| run.host.to_owned()));
        let place = |run: &StudyRun<'_>| {
            let part = run.plan.experiment.as_ref();
            part.map_or((0, None), |part| (part.part, part.group))
        };
        runs.sort_by_key(place);
        let (runs, unmeasured): (Vec<_>, Vec<_>) = runs.into_iter().partition(is_measured);
        let mut dimensions = part_dimensions(&runs);
        dimensions.push(Dimension {
            axis: Axis::Host,
            name: "host".to_owned(),
            values: hosts
                .into_iter()
                .filter(|host| runs.iter().any(|run| run.host == host))
                .collect(),
        });
        let place = |run: StudyRun<'a>| {
            let index = |dimension: &Dimension| {
                let value = value(&run, dimension);
                let found = dimension.values.iter().position(|one| *one == value);
                found.unwrap_or(0)
            };
            let position = dimensions.iter().map(index).collect();
            (run, position)
        };
        let runs: Vec<_> = runs.into_iter().map(place).collect();
        same_work(&runs)?;
        let execution = |run: &StudyRun<'_>| {
            let part = run.plan.experiment.as_ref();
            part.map_or(run.run.to_owned(), |part| part.execution.clone())
        };
        let executions = distinct(runs.iter().map(|(run, _)| execution(run)));
        Ok(Self {
            several_times: executions.len() > 1,
            dimensions,
            runs,
            parts,
            unmeasured,
        })
    }

    /// `, storage gp3-3000, host box`: the dimensions that vary, but for one of them.
    pub(super) fn words(&self, position: &[usize], except: Option<usize>) -> String {
        let varying = self.at(position, except);
        varying
            .filter(|(dimension, _)| dimension.values.len() > 1)
            .map(|(dimension, value)| format!(", {} {value}", dimension.name))
            .collect()
    }

    /// Names and values, but for one dimension; the host only where there are several.
    pub(super) fn coordinates(
        &self,
        position: &[usize],
        except: Option<usize>,
    ) -> impl Iterator<Item = (String, String)> {
        self.at(position, except)
            .filter(|(dimension, _)| dimension.axis != Axis::Host || dimension.values.len() > 1)
            .map(|(dimension, value)| (dimension.name.clone(), value.to_owned()))
    }

    fn at(
        &self,
        position: &[usize],
        except: Option<usize>,
    ) -> impl Iterator<Item = (&Dimension, &str)> {
        let places = self.dimensions.iter().zip(position).enumerate();
        places
            .filter(move |(at, _)| Some(*at) != except)
            .filter_map(|(_, (dimension, &index))| {
                Some((dimension, dimension.values.get(index)?.as_str()))
            })
    }
}

fn is_measured(run: &StudyRun<'_>) -> bool {
    let comparison = run.comparison;
    let mut sides = comparison.cells.iter().chain(&comparison.placebo_cells);
    let mut alone = run.results.iter();
    sides.any(|side| side.blocks > 0)
        || (run.plan.servers.len() == 1 && alone.any(|result| result.total.operations > 0))
}

/// What runs are placed by that are not parts of one experiment, if they differ in it.
const DERIVED: [&str; 5] = ["rows", "tables", "scale", "memory", "storage"];

/// The axes of the parts; of runs that are not parts of one experiment also what differs between them.
fn part_dimensions(runs: &[StudyRun<'_>]) -> Vec<Dimension> {
    let of_parts = runs.iter().filter_map(|run| run.plan.experiment.as_ref());
    let own = distinct(of_parts.flat_map(|part| part.coordinates.iter().map(|(n, _)| n.clone())));
    let mut names = own.clone();
    if !is_one_experiment(runs) {
        let more = DERIVED
            .into_iter()
            .filter(|name| own.iter().all(|own| own != name));
        names.extend(more.map(str::to_owned));
    }
    let dimension = |name: String| {
        let mut dimension = Dimension {
            axis: Axis::Part,
            name,
            values: Vec::new(),
        };
        dimension.values = distinct(runs.iter().map(|run| value(run, &dimension)));
        dimension
    };
    let all = names.into_iter().map(dimension);
    all.filter(|dimension| own.contains(&dimension.name) || dimension.values.len() > 1)
        .collect()
}

/// Whether all runs are parts of one experiment at one scale.
fn is_one_experiment(runs: &[StudyRun<'_>]) -> bool {
    let experiment = |run: &StudyRun<'_>| {
        let part = run.plan.experiment.as_ref()?;
        Some((part.experiment.clone(), part.scale.clone()))
    };
    let first = runs.first().and_then(experiment);
    first.is_some() && runs.iter().all(|run| experiment(run) == first)
}

/// Where a run stands on a dimension: as its part says, else as its plan does.
fn value(run: &StudyRun<'_>, dimension: &Dimension) -> String {
    if dimension.axis == Axis::Host {
        return run.host.to_owned();
    }
    let part = run.plan.experiment.as_ref();
    let named = part.and_then(|part| {
        let mut all = part.coordinates.iter();
        all.find(|(name, _)| *name == dimension.name)
    });
    named.map_or_else(
        || derived(run.plan, &dimension.name),
        |(_, value)| value.clone(),
    )
}

fn derived(plan: &Plan, name: &str) -> String {
    match name {
        "rows" => plan.data.rows.to_string(),
        "tables" => plan.data.tables.to_string(),
        "scale" | "warehouses" => match plan.work.scale() {
            Some(scale) => scale.to_string(),
            None => "none".to_owned(),
        },
        "memory" => plan.limits.memory_bytes.map_or("none".to_owned(), bytes),
        "storage" => match &plan.limits.storage {
            Some(profile) => profile.name.clone(),
            None => "as-is".to_owned(),
        },
        _ => "not said".to_owned(),
    }
}

/// As settings write it: `2GB`, `512MB`, else bytes.
fn bytes(bytes: u64) -> String {
    let units = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")];
    let whole = units.iter().find(|(size, _)| bytes.is_multiple_of(*size));
    whole.map_or_else(
        || bytes.to_string(),
        |(size, unit)| format!("{}{unit}", bytes / size),
    )
}

/// That no run is left, of those that were named.
fn nothing(parts: &[StudyRun<'_>]) -> Problem {
    let problem = Problem::new("there are no runs to make tables of");
    let of = |run: &StudyRun<'_>| {
        let whole = run.plan.belongs_to().unwrap_or_default();
        format!("{} belongs to {whole}", run.run)
    };
    let belong: Vec<String> = parts.iter().map(of).collect();
    match belong.is_empty() {
        true => problem,
        false => problem
            .detail(belong.join("\n"))
            .hint("name the runs that they belong to: deltabench report RUN"),
    }
}

fn check(runs: &[StudyRun<'_>], parts: &[StudyRun<'_>]) -> Result<(), Problem> {
    let Some(first) = runs.first() else {
        return Err(nothing(parts));
    };
    for (at, run) in runs.iter().enumerate() {
        let mut before = runs.iter().take(at);
        if before.any(|other| (other.run, other.host) == (run.run, run.host)) {
            return Err(Problem::new(format!("run {} is given twice", run.run))
                .hint("name each run once: the same data twice are not a repetition"));
        }
    }
    let listing = |what: &dyn Fn(&StudyRun<'_>) -> String| {
        let lines: Vec<String> = runs
            .iter()
            .map(|run| format!("{}: {}", run.run, what(run)))
            .collect();
        lines.join("\n")
    };
    let base = |run: &StudyRun<'_>| base_name(run.plan);
    if runs.iter().any(|run| base(run) != base(first)) {
        return Err(Problem::new("these runs have different bases")
            .detail(listing(&base))
            .hint("name a server that all of them have: `deltabench report … --base TARGET`"));
    }
    Ok(())
}

/// What the base is called in tables of several servers.
pub(super) fn base_name(plan: &Plan) -> String {
    let id = plan.base().index();
    plan.servers
        .get(id)
        .map_or_else(|| "base".to_owned(), |server| server.name())
}

/// Runs in the same place are taken for repetitions, so they must have done the same.
fn same_work(runs: &[(StudyRun<'_>, Vec<usize>)]) -> Result<(), Problem> {
    for (at, (run, position)) in runs.iter().enumerate() {
        let mut before = runs.iter().take(at);
        let Some((first, _)) = before.find(|(_, other)| other == position) else {
            continue;
        };
        let other: Vec<String> = differences(first.plan, run.plan)
            .into_iter()
            .filter(|difference| difference.other_work)
            .map(|difference| difference.what)
            .collect();
        if !other.is_empty() {
            return Err(Problem::new(format!(
                "runs {} and {} are not repetitions of each other",
                first.run, run.run
            ))
            .detail(format!("they differ in {}", other.join(", ")))
            .hint(
                "one table has one kind of work: make reports of their own, or compare servers that \
                 differ in one run, `deltabench compare BASE CANDIDATE …`, or in one experiment",
            ));
        }
    }
    Ok(())
}
