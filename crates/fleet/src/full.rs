//! A disk that is full, by what programs say.

use deltabench_model::problem::Problem;

/// How the system, servers, SQLite and Slurm say that nothing more can be written; lower case.
const SAID: [&str; 3] = [
    "no space left",
    "disk quota exceeded",
    "database or disk is full",
];

/// What a command says that meets such a disk, or one that fails: what it has not taken in stays where it is.
const AGAIN: &str = "make space or mend the disk, then give the command again: nothing is lost";

/// The problem of a command for a fleet, with what helps: always if a disk is full, and if the machine failed
/// and nothing else is said to help.
#[must_use]
pub fn with_way_out(problem: Problem) -> Problem {
    let is_untold = problem.of_machine && problem.hint.is_none();
    match is_untold || is_full(&problem) {
        true => problem.hint(AGAIN),
        false => problem,
    }
}

/// Whether a problem says that a disk is full.
pub fn is_full(problem: &Problem) -> bool {
    let detail = problem.detail.as_deref().unwrap_or_default();
    let text = format!("{}\n{detail}", problem.error).to_lowercase();
    SAID.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole_file::failed;
    use std::io;
    use std::path::Path;

    #[test]
    fn each_program_has_its_own_words() {
        let full = [
            (
                "Slurm refuses sbcast",
                "REQUEST_FILE_BCAST(n1): No space left on device",
            ),
            ("cannot write /x", "Disk quota exceeded (os error 122)"),
            ("no space left to write /x/lab.sqlite", ""),
            (
                "the results could not be stored",
                "database or disk is full",
            ),
        ];
        for (error, detail) in full {
            assert!(is_full(&Problem::new(error).detail(detail)), "{error}");
        }
        let other = Problem::new("Slurm refuses srun").detail("Required node not available");
        assert!(!is_full(&other));
    }

    #[test]
    fn a_full_disk_has_one_way_out_whichever_write_meets_it() {
        let path = Path::new("/lab/archive/x.sqlite.gz");
        // ENOSPC.
        let no_space = io::Error::from_raw_os_error(28);
        let no_lab = "no space left to write /lab/deltabench.sqlite";
        let met = [
            // A file in the lab or the spool.
            failed("write", path, &no_space),
            // The store, where sealed files are merged and where events are kept.
            Problem::new(no_lab).of_machine(),
            // The store, as all commands say it.
            Problem::new("the results could not be read or stored")
                .detail(no_lab)
                .hint("free some space, then `deltabench resume`")
                .of_machine(),
            // A report.
            Problem::new("cannot write /lab/x.html").detail(no_space.to_string()),
            // A disk that fails.
            Problem::new("cannot read /lab/deltabench.sqlite").of_machine(),
        ];
        for problem in met {
            let error = problem.error.clone();
            assert_eq!(with_way_out(problem).hint.unwrap(), AGAIN, "{error}");
        }
        let others = [
            Problem::new("this lab has no execution `x` on a fleet"),
            Problem::new("/lab/deltabench.sqlite was written by a newer deltabench; upgrade")
                .hint("upgrade deltabench")
                .of_machine(),
        ];
        for problem in others {
            assert_eq!(with_way_out(problem.clone()), problem);
        }
    }
}
