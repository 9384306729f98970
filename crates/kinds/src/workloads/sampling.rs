//! What can be sampled of where the servers' time goes, before anything is started.

use deltabench_model::plan::CacheState;
use deltabench_model::problem::Problem;
use deltabench_observe::profile::may_sample;
use deltabench_run::planning::{Request, ServerWish};

/// Refuses samples that the kernel does not allow, or that would not be of what is measured.
///
/// Errors: what stands in the way, and the way out.
pub(super) fn check(request: &Request) -> Result<(), Problem> {
    check_waits(request)?;
    let Some(plan) = request.observing.profile else {
        return Ok(());
    };
    if request.cache == CacheState::Cold {
        return Err(Problem::new("time from cold caches cannot be sampled")
            .detail("deltabench samples after the measured slices, when caches are warm")
            .hint("leave out --sample or --cache-state"));
    }
    may_sample(plan.forced).map(drop)
}

/// Refuses waits that nobody would keep, or that would not be those of what is measured.
fn check_waits(request: &Request) -> Result<(), Problem> {
    if request.observing.waits_per_second == 0 {
        return Ok(());
    }
    if !request.observing.counters {
        return Err(Problem::new("waits cannot be sampled without counters")
            .detail("deltabench stores them with the counters of a visit")
            .hint("leave out --waits or --no-counters"));
    }
    if request.cache == CacheState::Cold {
        return Err(Problem::new("waits from cold caches cannot be sampled")
            .detail("deltabench samples after the measured slices, when caches are warm")
            .hint("leave out --waits or --cache-state"));
    }
    Ok(())
}

/// Refuses samples of servers whose processes are not ours to look at.
///
/// Errors: a server that was there before.
pub(super) fn check_server(request: &Request, wish: &ServerWish) -> Result<(), Problem> {
    let installation = &wish.installation;
    if request.observing.profile.is_none() || installation.remote.is_none() {
        return Ok(());
    }
    let name = &installation.resolved;
    Err(
        Problem::new(format!("the time of {name} cannot be sampled"))
            .detail("deltabench samples on cores of this machine, and only servers that it starts")
            .hint("leave out --sample, or name a version or a build, for example postgres:18"),
    )
}
