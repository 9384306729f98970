//! Small libraries of ours that the dynamic linker loads into every process of a server.

use crate::failure::failed;
use deltabench_model::problem::Problem;
use deltabench_proc::Process;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The variable of the dynamic linker.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";
/// Between two libraries in it.
pub(crate) const SEPARATOR: &str = ":";

/// Where a library of this name goes in a workspace's directory.
///
/// Errors: a directory that the dynamic linker cannot take.
pub(crate) fn place(workspace_dir: &Path, name: &str) -> Result<PathBuf, Problem> {
    let library = workspace_dir.join(name);
    if library
        .to_str()
        .is_some_and(|text| !text.contains([' ', ':']))
    {
        return Ok(library);
    }
    Err(Problem::new(format!(
        "cannot load a library from {}",
        workspace_dir.display()
    ))
    .detail("the dynamic linker accepts no path with a blank or a colon")
    .hint("name another directory with --cluster-dir"))
}

/// Lets the server user load a library, whatever our umask; the path as the kernel will name it where it is
/// loaded.
///
/// Errors: it is not there, or not ours.
pub(crate) fn readable(library: &Path) -> Result<PathBuf, Problem> {
    std::fs::set_permissions(library, std::fs::Permissions::from_mode(0o644))
        .map_err(|error| failed("change the mode of", library, &error))?;
    std::fs::canonicalize(library).map_err(|error| failed("find", library, &error))
}

/// Makes sure that a server has the libraries that its environment asks for: the dynamic linker goes on
/// without one that it cannot load, and the server would then be measured as slowed down, or at another time,
/// and is not.
pub(crate) fn check_preloaded(
    environment: &[(String, String)],
    postmaster_pid: u32,
) -> Result<(), Problem> {
    let Some((_, libraries)) = environment.iter().find(|(name, _)| name == PRELOAD) else {
        return Ok(());
    };
    let mapped = Process::of(postmaster_pid).mapped_files()?;
    let is_missing = |library: &&str| !mapped.iter().any(|file| file == library);
    let Some(library) = libraries.split(SEPARATOR).find(is_missing) else {
        return Ok(());
    };
    Err(
        Problem::new("the server did not load a library of deltabench")
            .detail(format!("{library} is not in /proc/{postmaster_pid}/maps"))
            .hint(
                "only dynamically linked servers load one, and not from a file system that is mounted \
                 noexec; the server's log says more",
            ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_the_library_is_told() {
        let own = std::process::id();
        let environment = [(PRELOAD.to_owned(), "/w/x.so".to_owned())];
        let problem = check_preloaded(&environment, own).unwrap_err();
        assert!(
            problem.detail.unwrap().contains("/w/x.so"),
            "what is missing"
        );
        check_preloaded(&[], own).unwrap();
    }
}
