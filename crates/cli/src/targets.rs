//! Targets, found.

use crate::config::Config;
use crate::console::say;
use deltabench_acquire::Cache;
use deltabench_kinds::targets::check_targets;
use deltabench_model::installation::{Installation, Origin};
use deltabench_model::plan::{Plan, PlannedServer};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_run::remote;
use std::collections::HashSet;

/// Finds every target. Downloads and builds happen here, and servers that already run say what they are.
pub fn resolve(specs: &[TargetSpec], config: &Config) -> Result<Vec<Installation>, Problem> {
    let cache = Cache::open(config.cache.clone())?;
    // Several targets have the same list of versions, and what is said of it is said once.
    let mut told = HashSet::new();
    let mut progress = |text: &str| {
        if told.insert(text.to_owned()) {
            say(text);
        }
    };
    let find = |spec: &TargetSpec, progress: &mut dyn FnMut(&str)| match spec {
        TargetSpec::Dsn(remote) => remote::installation(remote),
        spec => deltabench_acquire::resolve(spec, &cache, &config.sources, progress),
    };
    // What needs no download is looked at first: a wrong path should not cost a minute of fetching, nor a
    // missing compiler or any of these several minutes of building.
    deltabench_acquire::check(specs, &cache, &config.sources)?;
    let is_at_hand =
        |spec: &&TargetSpec| !matches!(spec.origin(), Origin::Prebuilt | Origin::Built);
    for spec in specs.iter().filter(is_at_hand) {
        find(spec, &mut progress)?;
    }
    deltabench_acquire::prefetch(specs, &cache, &config.sources, &mut progress)?;
    specs.iter().map(|spec| find(spec, &mut progress)).collect()
}

/// Finds targets of which all have to be servers.
///
/// Errors: those of [`resolve`], and before anything is fetched a target that is none.
pub fn resolve_servers(
    specs: &[TargetSpec],
    config: &Config,
) -> Result<Vec<Installation>, Problem> {
    check_targets(specs, false)?;
    resolve(specs, config)
}

/// What is here already, else something that bears the target's name.
pub fn known_or_named(target: &TargetSpec, config: &Config) -> Installation {
    let mut offline = config.clone();
    offline.sources.offline = true;
    let here = match target {
        // Looking at them would build or connect.
        TargetSpec::Built(_) | TargetSpec::Dsn(_) => None,
        _ => resolve(std::slice::from_ref(target), &offline)
            .ok()
            .and_then(|found| found.into_iter().next()),
    };
    here.unwrap_or_else(|| Installation {
        asked: target.to_string(),
        resolved: target.to_string(),
        origin: target.origin(),
        bin_dir: target.to_string().into(),
        version_num: target.version_num(),
        version: String::new(),
        binary_sha256: String::new(),
        build: None,
        recipe: None,
        remote: None,
        engine: target.engine(),
    })
}

/// A run's binaries must be the ones it began with. From here on no other deltabench removes those that are
/// builds of a cache.
pub fn hold_binaries(plan: &Plan) -> Result<(), Problem> {
    let own = |server: &&PlannedServer| server.installation.remote.is_none();
    for server in plan.servers.iter().filter(own) {
        let installation = &server.installation;
        deltabench_acquire::hold_build(installation)?;
        let binary = installation.binary();
        let now = deltabench_acquire::sha256_of(&binary)?;
        if now != installation.binary_sha256 {
            return Err(Problem::new(format!(
                "{} is now a different binary",
                installation.resolved
            ))
            .detail(format!(
                "{} had SHA-256 {}, now {now}",
                binary.display(),
                installation.binary_sha256
            ))
            .hint("start a new one: `deltabench compare` with the same arguments"));
        }
    }
    Ok(())
}
