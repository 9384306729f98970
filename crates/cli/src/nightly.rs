//! `deltabench nightly`: the newest version with an anchor and the version of the night before, then what
//! seems to have changed once more, in other hours.

mod tries;

use crate::arguments::global::Global;
use crate::arguments::trend::{NightlyArguments, TrendMetric, Which};
use crate::arguments::{Arguments, Command};
use crate::clock::now;
use crate::config::Config;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use crate::follow_up::FollowUp;
use crate::interrupt;
use crate::kinds;
use crate::pause;
use crate::request;
use crate::store::open_store;
use crate::targets::resolve_servers;
use crate::trend::{changes_of_runs, hosts, places};
use clap::{Args, Parser};
use deltabench_acquire::sha256_of;
use deltabench_lab::{HostTrend, Version, version_key, version_line};
use deltabench_model::installation::Installation;
use deltabench_model::plan::{PlannedServer, Role};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_observe::host_identity;
use deltabench_run::session::SessionEnd;
use std::collections::BTreeSet;
use tries::{Try, tries};

/// Exit codes of a comparison after which its result can be looked at.
const HAS_A_RESULT: [u8; 3] = [0, 1, 3];

/// Carries out a night.
pub fn nightly(arguments: &NightlyArguments, config: &Config) -> Result<u8, Failure> {
    let gap = request::pause(&arguments.gap).map_err(Failure::Refused)?;
    let options = &arguments.options;
    check(options).map_err(Failure::Refused)?;
    let specs = [&arguments.anchor, &arguments.new].map(|text| text.parse::<TargetSpec>());
    let specs = specs.into_iter().collect::<Result<Vec<_>, _>>();
    let specs = specs.map_err(Failure::Refused)?;
    let found = resolve_servers(&specs, config).map_err(Failure::Refused)?;
    let [anchor, new] = found.as_slice() else {
        return Err(Failure::Refused(Problem::new(
            "a night needs an anchor and a new version",
        )));
    };
    let (anchor, new) = (server(anchor), server(new));
    if version_key(&anchor) == version_key(&new) {
        return Err(Failure::Refused(
            Problem::new("the new version is the anchor: both are one build")
                .hint("name an older version with --anchor, one that stays"),
        ));
    }
    let is_dry = options.iter().any(|option| option == "--dry-run");
    let mut measured = BTreeSet::new();
    match beside(&anchor, &new, config)? {
        Beside::Same => say(&format!(
            "{} is the build of the night before: it is not measured again",
            new.installation.resolved
        )),
        before => {
            let mut targets = vec![arguments.anchor.clone()];
            targets.extend(before.target());
            targets.push(arguments.new.clone());
            let code = compare(&targets, options, config)?;
            if is_dry || !HAS_A_RESULT.contains(&code) {
                return Ok(code);
            }
            measured.extend(newest_run(config)?);
        }
    }
    if !is_dry {
        let end = try_again((arguments.tries, gap), options, config, &mut measured)?;
        if end == FollowUp::Interrupted {
            return Ok(interrupt::STATUS);
        }
    }
    conclude(&measured, config)
}

fn server(installation: &Installation) -> PlannedServer {
    PlannedServer::new(Role::Candidate, installation.clone())
}

/// Whether `compare` understands the options, and a night can use them.
fn check(options: &[String]) -> Result<(), Problem> {
    if let Some(name) = options
        .iter()
        .find(|option| option.starts_with("--candidate-set"))
    {
        return Err(
            Problem::new(format!("{name}: a night compares builds, not settings"))
                .hint("set it for all with --set, or measure it with `deltabench compare`"),
        );
    }
    if let Some(name) = options.iter().find(|option| is_global(option)) {
        return Err(Problem::new(format!("{name} stands after --"))
            .detail("it is for the whole night")
            .hint("write it before --"));
    }
    parsed(&["a".to_owned(), "b".to_owned()], options).map(|_| ())
}

/// Whether an option is one of every command.
fn is_global(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    let known = Global::augment_args(clap::Command::new("night"));
    let mut longs = known.get_arguments().filter_map(clap::Arg::get_long);
    longs.any(|long| name.strip_prefix("--") == Some(long))
}

/// A comparison as if it had been typed.
fn parsed(targets: &[String], options: &[String]) -> Result<kinds::Command, Problem> {
    let words = ["deltabench", "compare"].map(str::to_owned).into_iter();
    let words = words.chain(targets.iter().chain(options).cloned());
    match Arguments::try_parse_from(words).map(|parsed| parsed.command) {
        Ok(Command::Measure(measure)) => Ok(measure),
        Ok(_) => Err(Problem::new(
            "the options after -- are not those of `compare`",
        )),
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            Err(Problem::new(format!("after --: {first}"))
                .hint("write options of `deltabench compare` there, for example -- --quick"))
        }
    }
}

fn compare(targets: &[String], options: &[String], config: &Config) -> Result<u8, Failure> {
    say(&format!("deltabench compare {}", targets.join(" ")));
    let command = parsed(targets, options).map_err(Failure::Refused)?;
    kinds::measure(command, config)
}

/// The third version of a night.
enum Beside {
    /// The version that was measured last, by how it can be asked for.
    Before(String),
    /// None: it is the first night, or the build is gone.
    Nothing,
    /// The new version is that one.
    Same,
}

impl Beside {
    fn target(&self) -> Option<String> {
        match self {
            Self::Before(target) => Some(target.clone()),
            Self::Nothing | Self::Same => None,
        }
    }
}

/// Looks for the version of the night before.
fn beside(anchor: &PlannedServer, new: &PlannedServer, config: &Config) -> Result<Beside, Failure> {
    let Some(host) = this_host(TrendMetric::Throughput, config)? else {
        return Ok(Beside::Nothing);
    };
    let last = host.last_beside(&version_key(anchor), &version_line(new));
    let Some(last) = last.and_then(|at| host.versions.get(at)) else {
        return Ok(Beside::Nothing);
    };
    if last.identity == version_key(new) {
        return Ok(Beside::Same);
    }
    if is_gone(last) {
        say(&format!(
            "note: {} of the night before is not there any more; only anchor and new version are measured",
            last.name
        ));
        return Ok(Beside::Nothing);
    }
    Ok(Beside::Before(places::target(&last.installation)))
}

/// Whether a directory of the user now holds another build.
fn is_gone(version: &Version) -> bool {
    let build = &version.installation;
    let is_ours = build.recipe.is_some() || build.resolved.starts_with("postgres:");
    !is_ours && sha256_of(&build.binary()).ok().as_ref() != Some(&build.binary_sha256)
}

/// What the lab knows of this machine as it is now.
fn this_host(metric: TrendMetric, config: &Config) -> Result<Option<HostTrend>, Failure> {
    let store = open_store(config)?;
    let which = Which {
        host: None,
        json: None,
    };
    let all = hosts(&store, metric.metric(), &which)?;
    let Some(here) = host_identity() else {
        // It cannot keep an identifier: the newest runs are those of this lab's own machine.
        return Ok(all.into_iter().next());
    };
    let mut all = all.into_iter();
    Ok(all.find(|host| host.machine == here.uid && host.class == here.class))
}

/// The name of the newest run.
fn newest_run(config: &Config) -> Result<Option<String>, Failure> {
    let host = this_host(TrendMetric::Throughput, config)?;
    Ok(host.and_then(|host| host.runs.last().map(|run| run.name.clone())))
}

/// Measures again what is suspected, a run for each pair of versions.
fn try_again(
    (most, gap): (usize, f64),
    options: &[String],
    config: &Config,
    measured: &mut BTreeSet<String>,
) -> Result<FollowUp, Failure> {
    let flag = interrupt::flag()?;
    let mut done: BTreeSet<(String, String)> = BTreeSet::new();
    while done.len() < most {
        let all = [TrendMetric::Throughput, TrendMetric::Cpu].map(|of| this_host(of, config));
        let all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
        let known: Vec<&HostTrend> = all.iter().flatten().collect();
        let open = tries(&known, now().1);
        let is_new = |one: &&Try| !done.contains(&(one.from.clone(), one.to.clone()));
        let Some(next) = open.iter().find(is_new) else {
            break;
        };
        let ended = known
            .iter()
            .filter_map(|host| host.ended_ms())
            .max()
            .unwrap_or(0);
        let what = format!("the try of {} against {}", next.to, next.from);
        if pause::pause(ended, gap, (&what, "deltabench nightly"), &flag) == SessionEnd::Interrupted
        {
            return Ok(FollowUp::Interrupted);
        }
        done.insert((next.from.clone(), next.to.clone()));
        let options = tries::only(options, &next.workloads);
        let code = compare(&[next.from.clone(), next.to.clone()], &options, config)?;
        if code == interrupt::STATUS {
            return Ok(FollowUp::Interrupted);
        }
        if HAS_A_RESULT.contains(&code) {
            measured.extend(newest_run(config)?);
        }
    }
    Ok(FollowUp::Finished)
}

/// Says what changed, and returns the exit code of the night.
fn conclude(measured: &BTreeSet<String>, config: &Config) -> Result<u8, Failure> {
    let store = open_store(config)?;
    let mut code = 0;
    for metric in [TrendMetric::Throughput, TrendMetric::Cpu] {
        if let Some(host) = this_host(metric, config)? {
            let night = changes_of_runs(&host, measured, metric.metric(), &store)?;
            print_stdout(&night.lines.join("\n"))?;
            code = match (night.regressed, night.is_open) {
                (true, _) => 1,
                (false, true) if code == 0 => 3,
                _ => code,
            };
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn options_are_those_of_compare() {
        assert!(check(&words(&["--quick", "--only", "scan"])).is_ok());
        let wrong = check(&words(&["--quikc"])).unwrap_err().to_string();
        assert!(
            wrong.contains("after --: unexpected argument '--quikc'"),
            "{wrong}"
        );
        let lab = check(&words(&["--lab=x"])).unwrap_err();
        assert!(lab.to_string().contains("--lab=x stands after --"), "{lab}");
        let setting = check(&words(&["--candidate-set", "jit=on"])).unwrap_err();
        assert!(
            setting.to_string().contains("builds, not settings"),
            "{setting}"
        );
    }
}
