//! From what was typed to the points that are searched and the plan that counts them.

use super::range::{Range, VARIANT, releases};
use crate::afterwards::plan_to_count;
use crate::arguments::bisect::BisectArguments;
use crate::arguments::conditions::{
    AS_IS, CacheWord, Checksums, Conditions, LimitArguments, Output, TransportWord,
};
use crate::arguments::count::Count;
use crate::config::Config;
use crate::console::say;
use crate::count;
use crate::defaults::COUNTED_ROWS;
use crate::failure::Failure;
use crate::invalidate::meant;
use crate::store::{open, store_problem};
use crate::targets::resolve_servers;
use deltabench_acquire::{Cache, did_not_compile, history, is_of_machine};
use deltabench_compare::comparison::Metric;
use deltabench_lab::{Judged, changed};
use deltabench_model::bisection::{BISECTION_FORMAT, BaseAlone, BisectedBy, Point, Question};
use deltabench_model::installation::Origin;
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role};
use deltabench_model::problem::Problem;
use deltabench_model::target::{Release, TargetSpec, release_tag};

/// The points of a search, before any server is looked for.
#[derive(Debug)]
pub struct Points {
    pub points: Vec<Point>,
    pub base_alone: Option<BaseAlone>,
}

/// What is asked of a bisection before its ends are found: its points, and the run that it is about.
pub struct Wanted {
    pub points: Points,
    /// A run, as its plan counts the cell in question.
    run: Option<Plan>,
    /// CPU per operation in that cell, candidate over base, if the run shows a change: the end of its 95 %
    /// interval that is nearest to 1.
    pub cpu_of_run: Option<f64>,
}

impl Wanted {
    /// Reads what was typed, the history between the ends or the list of releases, and the run.
    ///
    /// Errors: all that is refused before anything is fetched or built.
    pub fn read(arguments: &BisectArguments, config: &Config) -> Result<Self, Failure> {
        let range = Range::read(&arguments.what).map_err(Failure::Refused)?;
        let (range, run, cpu_of_run) = match range {
            Some(range) => {
                check_of_targets(arguments).map_err(Failure::Refused)?;
                (range, None, None)
            }
            None => {
                let (range, plan, cpu) = of_run(arguments, config)?;
                (range, Some(plan), cpu)
            }
        };
        let extensions = loads_extensions(&arguments.settings, run.as_ref());
        let points = Points::of(&range, extensions, config).map_err(Failure::Refused)?;
        Ok(Self {
            points,
            run,
            cpu_of_run,
        })
    }

    /// Finds the servers of both ends, which may take two builds, and makes the plan that counts them.
    pub fn question(
        self,
        arguments: &BisectArguments,
        config: &Config,
    ) -> Result<Question, Failure> {
        let Points { points, base_alone } = self.points;
        let [first, .., last] = points.as_slice() else {
            return Err(Failure::Refused(Problem::new(
                "there is nothing between the ends",
            )));
        };
        // Commits of documents at the end have the server of the last one that may differ: it is measured.
        let differ = points.iter().skip(1).rfind(|point| point.may_differ);
        let last = differ.unwrap_or(last);
        let mut plan = match self.run {
            None => {
                let count = count_of(first, last, arguments);
                let plan = match BisectedBy::from(arguments.metric).is_in_time() {
                    true => count::planned(&count, config),
                    false => count::ready(&count, config).map(|ready| ready.plan),
                };
                plan.map_err(of_end)?
            }
            Some(mut plan) => {
                let specs = [first, last].map(|point| point.target.parse::<TargetSpec>());
                let specs: Vec<_> = specs
                    .into_iter()
                    .collect::<Result<_, _>>()
                    .map_err(Failure::Refused)?;
                let found = resolve_servers(&specs, config);
                let found = found.map_err(Failure::Refused).map_err(of_end)?;
                for (server, installation) in plan.servers.iter_mut().zip(found) {
                    server.installation = installation;
                    server.label = None;
                }
                plan
            }
        };
        if plan.cells.len() != 1 {
            return Err(Failure::Refused(several(plan.cells.len())));
        }
        // Another command may go on with the same question.
        plan.command.clear();
        Ok(Question {
            format: BISECTION_FORMAT.0.to_owned(),
            version: BISECTION_FORMAT.1,
            points,
            base_alone,
            plan,
        })
    }
}

/// Whether the servers load libraries that are no part of them as they come.
fn loads_extensions(typed: &[String], run: Option<&Plan>) -> bool {
    let typed = typed.iter().map(String::as_str);
    let of_servers = run.into_iter().flat_map(|plan| &plan.servers);
    let of_servers = of_servers.flat_map(|server| &server.settings);
    let of_all = run.into_iter().flat_map(|plan| &plan.settings);
    let of_run = of_all.chain(of_servers);
    let mut names = typed.chain(of_run.map(|(name, _)| name.as_str()));
    names.any(|name| {
        name.split('=')
            .next()
            .unwrap_or_default()
            .trim()
            .ends_with("preload_libraries")
    })
}

/// An end that cannot be built is no bad request. A machine that fails is none either.
fn of_end(failure: Failure) -> Failure {
    match failure {
        Failure::Refused(problem) if did_not_compile(&problem) || is_of_machine(&problem) => {
            Failure::Failed(problem)
        }
        failure => failure,
    }
}

impl Points {
    fn of(range: &Range, extensions: bool, config: &Config) -> Result<Self, Problem> {
        let plain = |points| Self {
            points,
            base_alone: None,
        };
        match range {
            Range::Targets(targets) => Ok(plain(
                targets.iter().map(|text| point(text, text)).collect(),
            )),
            Range::Releases {
                base,
                candidate,
                variant,
            } => {
                let variant =
                    { variant.as_ref() }.map_or_else(String::new, |name| format!("+{name}"));
                let found = releases((base, candidate), &variant, &available(config)?)?;
                let named = |release: &Release| {
                    point(
                        &format!("postgres:{release}{variant}"),
                        &release.to_string(),
                    )
                };
                Ok(plain(found.iter().map(named).collect()))
            }
            Range::Commits {
                repository,
                base,
                candidate,
                variant,
            } => {
                config.sources.variants.get(variant)?;
                let directory =
                    std::path::absolute(repository).unwrap_or_else(|_| repository.clone());
                let found = history(&directory, (base, candidate), extensions)?;
                let commits = found.commits.iter();
                let points = commits.map(|commit| Point {
                    target: format!("git:{}@{}+{variant}", directory.display(), commit.id),
                    name: commit.id.get(..10).unwrap_or(&commit.id).to_owned(),
                    date: Some(commit.date.clone()),
                    subject: Some(commit.subject.clone()),
                    may_differ: commit.may_change_server,
                });
                Ok(Self {
                    points: points.collect(),
                    base_alone: found
                        .base_alone
                        .map(|(commit, commits)| BaseAlone { commit, commits }),
                })
            }
        }
    }
}

fn point(target: &str, name: &str) -> Point {
    Point {
        target: target.to_owned(),
        name: name.to_owned(),
        date: None,
        subject: None,
        may_differ: true,
    }
}

/// The releases that are prebuilt for this machine.
fn available(config: &Config) -> Result<Vec<Release>, Problem> {
    let cache = Cache::open(config.cache.clone())?;
    let listed = deltabench_acquire::list(&cache, &config.sources)?;
    let release = |target: &str| match target.parse() {
        Ok(TargetSpec::Prebuilt(release)) => Some(release),
        _ => None,
    };
    Ok(listed
        .iter()
        .filter_map(|one| release(&one.target))
        .collect())
}

/// Refuses options that only a run has a meaning for, and a range without a workload.
fn check_of_targets(arguments: &BisectArguments) -> Result<(), Problem> {
    let of_run = [
        (arguments.cell.is_some(), "--cell"),
        (arguments.repository.is_some(), "--repository"),
    ];
    if let Some((_, option)) = of_run.iter().find(|(given, _)| *given) {
        return Err(Problem::new(format!("{option} is for a run"))
            .hint("name the workload of a range with --only NAME or -f FILE"));
    }
    if arguments.only.is_none() && arguments.workloads.is_empty() {
        return Err(Problem::new("no workload is named")
            .detail("without a run, bisect does not know what to count")
            .hint("add --only point-query, or -f FILE; `deltabench workloads` lists them"));
    }
    match arguments.only.iter().count() + arguments.workloads.len() {
        1 => Ok(()),
        more => Err(several(more)),
    }
}

fn several(workloads: usize) -> Problem {
    Problem::new(format!("{workloads} workloads cannot be bisected together"))
        .detail("each of them may have other culprits")
        .hint("name one with --only NAME")
}

/// The count of both ends.
fn count_of(first: &Point, last: &Point, arguments: &BisectArguments) -> Count {
    Count {
        base: first.target.clone(),
        candidates: vec![last.target.clone()],
        all: false,
        only: arguments.only.iter().cloned().collect(),
        insert: false,
        workloads: arguments.workloads.clone(),
        not_more_than: None,
        starts: 2,
        clients: 1,
        tables: 1,
        rows: arguments.rows.unwrap_or(COUNTED_ROWS),
        conditions: Conditions {
            transport: TransportWord::Socket,
            seed: None,
            // The ends may be the same server, and then there is nothing to search.
            same_target: true,
            settings: arguments.settings.clone(),
            configuration: None,
            candidate_configuration: None,
            candidate_settings: Vec::new(),
            no_counters: false,
            checksums: Checksums::On,
            limits: LimitArguments {
                memory: None,
                storage: AS_IS.to_owned(),
                cache_state: CacheWord::AsIs,
                limits_optional: false,
            },
            servers: arguments.servers.clone(),
            output: Output::default(),
        },
    }
}

/// The range between the sides of a run, the plan that counts the cell in question, and the least that CPU
/// per operation changed there.
fn of_run(
    arguments: &BisectArguments,
    config: &Config,
) -> Result<(Range, Plan, Option<f64>), Failure> {
    check_of_run(arguments).map_err(Failure::Refused)?;
    let name = arguments.what.first().map_or("last", String::as_str);
    let store = open(config)?;
    let run = store.find(name).map_err(Failure::Refused)?;
    let plan = store.plan(&run).map_err(store_problem)?;
    let judged = Judged::of(&run, &plan, &store).map_err(Failure::Failed)?;
    let comparison = judged.standing(&store).map_err(Failure::Failed)?;
    let cell = match &arguments.cell {
        Some(cell) => {
            let meant = meant(&plan, &run, std::slice::from_ref(cell)).map_err(Failure::Refused)?;
            meant.into_iter().flatten().next()
        }
        None => changed(&comparison).first().copied(),
    };
    let Some(cell) = cell else {
        return Err(Failure::Refused(
            Problem::new(format!("no cell of {run} changed"))
                .hint("name one with --cell NAME to bisect it anyway"),
        ));
    };
    let (range, plan) = sides(&run, &plan, cell, arguments).map_err(Failure::Refused)?;
    if let Some(cell) = plan.cells.first() {
        say(&format!("{run}: bisecting {}", cell.workload));
    }
    let mut cells = comparison.cells.iter();
    let cpu = cells
        .find(|one| one.cell == cell)
        .and_then(|cell| cell.metric(Metric::ServerCpuPerOperation));
    let cpu = cpu.and_then(|cpu| nearest_to_equal(cpu.ratio.ci95?));
    Ok((range, plan, cpu))
}

/// The end of an interval of a ratio that is nearest to 1; nothing if 1 is inside.
fn nearest_to_equal((low, high): (f64, f64)) -> Option<f64> {
    match (low > 1.0, high < 1.0) {
        (true, _) => Some(low),
        (_, true) => Some(high),
        _ => None,
    }
}

/// Refuses options that only a range or targets have a meaning for.
fn check_of_run(arguments: &BisectArguments) -> Result<(), Problem> {
    let of_targets = [
        (arguments.only.is_some(), "--only"),
        (!arguments.workloads.is_empty(), "-f"),
        (!arguments.settings.is_empty(), "--set"),
        (arguments.rows.is_some(), "--rows"),
    ];
    match of_targets.iter().find(|(given, _)| *given) {
        Some((_, option)) => Err(
            Problem::new(format!("{option} is for a range or for targets"))
                .detail("a cell of a run is counted under the run's own conditions")
                .hint("leave it out; --cell names a cell of the run"),
        ),
        None => Ok(()),
    }
}

fn sides(
    run: &str,
    plan: &Plan,
    cell: CellId,
    arguments: &BisectArguments,
) -> Result<(Range, Plan), Problem> {
    let mut counting = plan_to_count(plan, &[cell])?;
    let refused = |why: &str| {
        Problem::new(format!("{run} cannot be bisected"))
            .detail(why)
            .hint(
                "name the range yourself: git:DIR@BASE..CANDIDATE+VARIANT or postgres:17.0..17.6, with \
                 --only NAME",
            )
    };
    counting
        .servers
        .sort_by_key(|server| server.role != Role::Base);
    let [base, candidate] = counting.servers.as_slice() else {
        return Err(refused("it does not have one base and one candidate"));
    };
    if base.settings != candidate.settings || base.configuration != candidate.configuration {
        return Err(refused("its sides differ in their settings too"));
    }
    let range = between(base, candidate, arguments.repository.as_deref());
    let range = range.ok_or_else(|| {
        refused("its sides are neither commits of one repository, with one variant, nor releases")
    })?;
    Ok((range, counting))
}

/// The range between two servers: of commits, of releases, or of the commits between the tags of releases.
fn between(
    base: &PlannedServer,
    candidate: &PlannedServer,
    repository: Option<&str>,
) -> Option<Range> {
    let (base, candidate) = (&base.installation, &candidate.installation);
    if let (Some(repository), Origin::Prebuilt, Origin::Prebuilt) =
        (repository, base.origin, candidate.origin)
    {
        let (directory, variant) = repository.rsplit_once('+').unwrap_or((repository, VARIANT));
        return Some(Range::Commits {
            repository: directory.into(),
            base: release_tag(&base.version),
            candidate: release_tag(&candidate.version),
            variant: variant.to_owned(),
        });
    }
    let spec = |asked: &str| asked.parse::<TargetSpec>().ok();
    match (spec(&base.asked)?, spec(&candidate.asked)?) {
        (TargetSpec::Prebuilt(_), TargetSpec::Prebuilt(_)) => Some(Range::Releases {
            base: base.version.parse().ok()?,
            candidate: candidate.version.parse().ok()?,
            variant: None,
        }),
        (TargetSpec::Built(one), TargetSpec::Built(other)) => {
            let directory = one.directory()?;
            (one.variant == other.variant && directory == other.directory()?).then_some(())?;
            let commit = |recipe: &Option<deltabench_model::installation::Recipe>| {
                recipe.as_ref().map(|recipe| recipe.source.clone())
            };
            Some(Range::Commits {
                repository: directory.to_owned(),
                base: commit(&base.recipe)?,
                candidate: commit(&candidate.recipe)?,
                variant: one.variant.clone(),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_loaded_by_what_is_typed_by_a_plan_or_by_one_of_its_servers() {
        let mut plan = deltabench_testkit::small_run::plan();
        let typed = |text: &str| loads_extensions(&[text.to_owned()], None);
        assert!(typed("shared_preload_libraries=pg_stat_statements") && !typed("work_mem=4MB"));
        assert!(!loads_extensions(&[], Some(&plan)));
        let setting = (
            "session_preload_libraries".to_owned(),
            "auto_explain".to_owned(),
        );
        plan.settings.push(setting.clone());
        assert!(loads_extensions(&[], Some(&plan)));
        plan.settings.clear();
        plan.servers[0].settings.push(setting);
        assert!(loads_extensions(&[], Some(&plan)));
    }

    #[test]
    fn a_run_shows_at_least_the_end_of_an_interval_that_is_nearest_to_no_change() {
        assert_eq!(nearest_to_equal((1.02, 1.05)), Some(1.02));
        assert_eq!(nearest_to_equal((0.93, 0.98)), Some(0.98));
        assert_eq!(nearest_to_equal((0.99, 1.05)), None);
    }
}
