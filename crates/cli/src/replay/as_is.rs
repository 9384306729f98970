//! Replays on servers that somebody else runs: what cannot be asked of them, and how they are reached.

use super::clock;
use crate::arguments::conditions::Checksums;
use crate::arguments::replay::ReplayArguments;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_replay::Wish;
use deltabench_run::remote::{Readable, readable};

/// Refuses what servers that already run do not allow, and a replay without tables.
///
/// Errors: some of the servers already run and others not; an option for servers of our own.
pub fn check(arguments: &ReplayArguments, specs: &[TargetSpec]) -> Result<(), Problem> {
    let is_theirs = |spec: &TargetSpec| matches!(spec, TargetSpec::Dsn(_));
    if !specs.iter().any(is_theirs) {
        if arguments.data.is_some() {
            return Ok(());
        }
        return Err(Problem::new("there are no tables to replay on")
            .detail("deltabench loads a dump into new servers of these versions")
            .hint(
                "name the dump with --data, or name servers that have the tables: dsn:postgres://…",
            ));
    }
    if !specs.iter().all(is_theirs) {
        return Err(Problem::new("these servers cannot be compared")
            .detail(
                "some already run (dsn:…) and some would be started here, with another data set",
            )
            .hint("name two restores of one snapshot with dsn:, or versions with --data DUMP"));
    }
    match refused(arguments, specs)
        .into_iter()
        .find(|(is_given, _, _)| *is_given)
    {
        None => Ok(()),
        Some((_, option, why)) => Err(Problem::new(format!(
            "{option} does not apply to servers that already run"
        ))
        .detail(why)
        .hint("leave it out")),
    }
}

/// Options for servers of our own: whether each is given, and why it does not apply to others.
fn refused(
    arguments: &ReplayArguments,
    specs: &[TargetSpec],
) -> [(bool, &'static str, &'static str); 10] {
    let agent = |spec: &TargetSpec| match spec {
        TargetSpec::Dsn(remote) => remote.agent.is_some(),
        _ => false,
    };
    [
        (arguments.data.is_some(), "--data", "they have the tables"),
        (
            !arguments.settings.is_empty(),
            "--set",
            "deltabench changes no setting there",
        ),
        (
            !arguments.candidate_settings.is_empty(),
            "--candidate-set",
            "deltabench changes no setting there",
        ),
        (
            arguments.configuration.is_some() || arguments.candidate_configuration.is_some(),
            "--config",
            "deltabench changes no setting there",
        ),
        (
            arguments.mix.is_some(),
            "--mix",
            "many clients at once would be a load on servers that others may use",
        ),
        (
            arguments.copy_limit.is_some(),
            "--copy-limit",
            "deltabench writes nothing there, and makes no copy",
        ),
        (
            clock::is_set_by(arguments),
            "--clock",
            "deltabench does not start them, and so cannot give them another time",
        ),
        (
            arguments.checksums != Checksums::Default,
            "--checksums",
            "deltabench makes no data directory there",
        ),
        (
            arguments.draws.is_some(),
            "--draws",
            "deltabench does not analyse tables there, and takes the statistics that they have",
        ),
        (
            specs.iter().any(agent),
            "agent=",
            "a replay does not measure CPU",
        ),
    ]
}

/// The servers, each with its login. Passwords come from where libpq looks for them.
///
/// Errors: a server that cannot be reached, or is too old or another product.
pub fn wishes(specs: &[TargetSpec]) -> Result<Vec<Wish>, Problem> {
    let wish = |spec: &TargetSpec| {
        let TargetSpec::Dsn(remote) = spec else {
            return Err(Problem::new(format!(
                "{spec} is not a server that already runs"
            )));
        };
        let Readable {
            installation,
            endpoint,
            login,
        } = readable(remote)?;
        Ok(Wish {
            installation,
            settings: Vec::new(),
            named_settings: Vec::new(),
            theirs: Some((endpoint, login)),
        })
    };
    specs.iter().map(wish).collect()
}

/// How to log in again to a server of a plan that already ran; absent for one that is started here.
///
/// Errors: it cannot be reached, or is another version now.
pub fn access(known: &Installation) -> Result<Option<(Endpoint, Login)>, Problem> {
    let Some(remote) = &known.remote else {
        return Ok(None);
    };
    let found = readable(remote)?;
    if found.installation.version_num != known.version_num {
        return Err(Problem::new(format!(
            "{} is now {}",
            known.resolved, found.installation.version
        ))
        .hint("start a new replay"));
    }
    Ok(Some((found.endpoint, found.login)))
}
