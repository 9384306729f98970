//! What to do where the kernel does not let us sample.

use deltabench_model::problem::Problem;
use deltabench_model::sampled::ProfileScope;
use deltabench_proc::kernel;
use std::io::Error;

/// Kernels that hang where a `cpu-clock` event is disabled from its own interrupt.
///
/// Source: <https://github.com/async-profiler/async-profiler/issues/1578>.
const HANGING: [(u32, u32); 2] = [(6, 16), (6, 17)];

/// That an event could not be opened, and what would help.
pub(super) fn refused(error: &Error, scope: ProfileScope) -> Problem {
    problem_of(error, scope, kernel::perf_event_paranoid())
}

fn problem_of(error: &Error, scope: ProfileScope, paranoid: Option<i32>) -> Problem {
    let problem = Problem::new("the kernel does not allow sampling");
    let level = paranoid.map_or_else(
        || "kernel.perf_event_paranoid cannot be read".to_owned(),
        |level| format!("kernel.perf_event_paranoid is {level}"),
    );
    let problem = problem.detail(format!("perf_event_open: {error}; {level}"));
    let (may, enough) = match scope {
        ProfileScope::Core => ("sample a core", 0),
        ProfileScope::Process => ("sample your own programs", 2),
    };
    let is_low_enough = paranoid.is_some_and(|level| level <= enough);
    match error.raw_os_error() {
        // What a container's filter of system calls answers, or a kernel built without events.
        Some(libc::ENOSYS) => problem.hint(IN_CONTAINER),
        Some(libc::EPERM | libc::EACCES) if is_low_enough => problem.hint(IN_CONTAINER),
        Some(libc::EPERM | libc::EACCES) => problem.hint(format!(
            "to {may}: sudo sysctl kernel.perf_event_paranoid={enough}, or run as root or with \
             CAP_PERFMON; {IN_CONTAINER}"
        )),
        _ => problem,
    }
}

const IN_CONTAINER: &str = "in a container also allow perf_event_open, with --cap-add PERFMON or your \
    own seccomp profile";

/// That a kernel is known to hang when sampled in this way, unless the user insists.
///
/// Errors: it is such a kernel, and not `forced`.
pub(super) fn hanging_kernel(release: &str, forced: bool) -> Result<(), Problem> {
    let hangs = kernel::version(release).is_some_and(|version| HANGING.contains(&version));
    if forced || !hangs {
        return Ok(());
    }
    Err(Problem::new("this kernel may hang during sampling")
        .detail(format!(
            "Linux {release}: kernels 6.16 and 6.17 can hang when a cpu-clock event is switched off in its \
             own interrupt; deltabench asks for nothing that does that, but the kernel may by itself"
        ))
        .hint("sample with another kernel, count instructions instead, or insist with --force"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_what_stands_in_the_way() {
        let hint = |code, scope, paranoid| {
            let error = Error::from_raw_os_error(code);
            problem_of(&error, scope, paranoid).hint.unwrap_or_default()
        };
        let debian = hint(libc::EACCES, ProfileScope::Process, Some(3));
        assert!(debian.contains("kernel.perf_event_paranoid=2"), "{debian}");
        let core = hint(libc::EACCES, ProfileScope::Core, Some(2));
        assert!(core.contains("perf_event_paranoid=0") && core.contains("CAP_PERFMON"));
        let container = hint(libc::EPERM, ProfileScope::Core, Some(-1));
        assert!(container.contains("seccomp") && !container.contains("sysctl"));
        assert!(hint(libc::ENOSYS, ProfileScope::Core, None).contains("seccomp"));
        assert_eq!(hint(libc::EINVAL, ProfileScope::Core, Some(0)), "");
    }

    #[test]
    fn two_kernels_are_sampled_only_if_the_user_insists() {
        for release in ["6.16.0", "6.17.9-arch1-1"] {
            let problem = hanging_kernel(release, false).unwrap_err();
            assert!(problem.hint.unwrap().contains("--force"));
            assert!(hanging_kernel(release, true).is_ok());
        }
        for release in ["6.15.11", "6.18.44-fc-v669", "5.4.0", "odd"] {
            assert!(hanging_kernel(release, false).is_ok(), "{release}");
        }
    }
}
