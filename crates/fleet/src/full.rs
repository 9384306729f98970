//! A disk that is full, by what programs say.

use deltabench_model::problem::Problem;

/// How the system, servers, SQLite and Slurm say that nothing more can be written; lower case.
const SAID: [&str; 3] = [
    "no space left",
    "disk quota exceeded",
    "database or disk is full",
];

/// Whether a problem says that a disk is full.
pub fn is_full(problem: &Problem) -> bool {
    let detail = problem.detail.as_deref().unwrap_or_default();
    let text = format!("{}\n{detail}", problem.error).to_lowercase();
    SAID.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
