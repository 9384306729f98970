//! The machine that servers and libraries are for.

use deltabench_model::problem::Problem;

/// The packages' names for one kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Platform {
    /// Suffix of the Maven artifact; also names our directories.
    pub maven: &'static str,
    /// Suffix of the npm package.
    pub npm: &'static str,
    /// Name of RocksDB's library in its package, which holds those of all machines.
    pub library: &'static str,
}

impl Platform {
    /// The machine this program was built for.
    pub fn here() -> Result<Self, Problem> {
        Self::of(std::env::consts::OS, std::env::consts::ARCH)
    }

    pub(crate) fn of(system: &str, machine: &str) -> Result<Self, Problem> {
        match (system, machine) {
            ("linux", "x86_64") => Ok(Self {
                maven: "linux-amd64",
                npm: "linux-x64",
                library: "librocksdbjni-linux64.so",
            }),
            ("linux", "aarch64") => Ok(Self {
                maven: "linux-arm64v8",
                npm: "linux-arm64",
                library: "librocksdbjni-linux-aarch64.so",
            }),
            _ => Err(Problem::new(format!(
                "there are no prebuilt servers for {system} on {machine}"
            ))
            .detail("prebuilt servers and libraries are used on Linux x86_64 and aarch64")
            .hint("use path:DIR, installed:MAJOR or rocksdb:path:LIB.so")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_told_what_they_can_use() {
        let problem = Platform::of("macos", "aarch64").unwrap_err();
        assert!(problem.hint.unwrap().contains("installed:MAJOR"));
    }
}
