//! Operating-system failures in the words a user sees.

use deltabench_model::problem::Problem;
use std::io;
use std::path::Path;

/// `cannot {action} {path}` with the system's reason, and a hint where the reason has a well-known way
/// out.
pub(crate) fn failed(action: &str, path: &Path, error: &io::Error) -> Problem {
    let problem = Problem::new(format!("cannot {action} {}", path.display()))
        .detail(error.to_string().to_lowercase())
        .caused_by(error);
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            problem.hint("free some disk space, or ask for fewer rows (--rows)")
        }
        io::ErrorKind::ReadOnlyFilesystem => problem.hint("name a writable place"),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_with_its_path_and_a_way_out() {
        let error = io::Error::from_raw_os_error(libc::ENOSPC);
        let problem = failed("write", Path::new("/data/x"), &error);
        assert_eq!(problem.error, "cannot write /data/x");
        assert!(problem.detail.unwrap().contains("no space left"));
        assert!(problem.of_machine && problem.hint.unwrap().contains("--rows"));
    }
}
