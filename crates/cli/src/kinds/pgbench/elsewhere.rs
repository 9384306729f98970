//! Options of pgbench that have another name here, or no place: refused with what to use instead.

use super::arguments::Elsewhere;
use deltabench_model::problem::Problem;

impl Elsewhere {
    /// Refuses the first of them that was typed.
    ///
    /// Errors: its name, why it has no place here, and what has.
    pub fn check(&self) -> Result<(), Problem> {
        let refusals = [self.of_work(), self.of_tables(), self.of_reports()];
        refusals.into_iter().flatten().next().map_or(Ok(()), Err)
    }

    /// How much is done, and how.
    fn of_work(&self) -> Option<Problem> {
        if let Some(seconds) = &self.time {
            return Some(refused(
                "-T/--time",
                "deltabench measures slices that alternate between the servers, block after block \
                 until it has an answer",
                &format!(
                    "--visit-seconds {seconds} sets the time on each server in a block, --budget 15m \
                     limits the run"
                ),
            ));
        }
        if self.transactions.is_some() {
            return Some(refused(
                "-t/--transactions",
                "every server does the same number of transactions in a slice: as many as the base does \
                 in the time of a slice",
                "--slice-ms and --visit-seconds set how long deltabench measures a server, --blocks \
                 how often",
            ));
        }
        let seed = self.random_seed.as_ref()?;
        Some(refused(
            "--random-seed",
            "one seed determines all random choices: orders, keys, data",
            &format!("use --seed {seed}"),
        ))
    }

    /// How the tables are made and kept.
    fn of_tables(&self) -> Option<Problem> {
        if self.initialize {
            return Some(refused(
                "-i/--initialize",
                "every run creates its own tables on its own servers",
                "leave it out; --scale, --fillfactor, --foreign-keys and --partitions describe the \
                 tables",
            ));
        }
        if self.init_steps.is_some() {
            return Some(refused(
                "-I/--init-steps",
                "deltabench does all steps of `pgbench -i`: dtgvp, and f with --foreign-keys",
                "use --server-side for G and --foreign-keys for f",
            ));
        }
        if self.no_vacuum {
            return Some(refused(
                "-n/--no-vacuum",
                "deltabench does not vacuum before a slice: scripts that write get restored tables in \
                 each block",
                "leave it out",
            ));
        }
        if self.vacuum_all {
            return Some(refused(
                "-v/--vacuum-all",
                "deltabench vacuums new tables; scripts that write get restored tables in each block",
                "leave it out",
            ));
        }
        let elsewhere = self.tablespace.is_some() || self.index_tablespace.is_some();
        elsewhere.then(|| {
            refused(
                "--tablespace",
                "all servers of a run have their data in one directory",
                "use --cluster-dir DIR",
            )
        })
    }

    /// What pgbench would print.
    fn of_reports(&self) -> Option<Problem> {
        if self.progress.is_some() {
            return Some(refused(
                "-P/--progress",
                "deltabench prints a line for each block and stores a series of each second",
                "leave it out; `deltabench report RUN --format pgbench --progress 5` prints such lines",
            ));
        }
        if self.report_per_command {
            return Some(refused(
                "-r/--report-per-command",
                "deltabench measures latencies of transactions and of scripts",
                "leave it out; `deltabench report RUN --format pgbench --progress 5` shows each script",
            ));
        }
        if self.log {
            return Some(refused(
                "-l/--log",
                "deltabench stores a histogram of the latencies of each slice",
                "leave it out; `deltabench export` writes them",
            ));
        }
        let script = self.show_script.as_ref()?;
        Some(refused(
            "--show-script",
            "it measures nothing",
            &format!("deltabench workloads show pgbench-{script}"),
        ))
    }
}

fn refused(option: &str, why: &str, hint: &str) -> Problem {
    Problem::new(format!("{option} of pgbench does not apply here"))
        .detail(why)
        .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_refused_by_its_name() {
        assert_eq!(Elsewhere::default().check(), Ok(()));
        let typed = Elsewhere {
            random_seed: Some("7".to_owned()),
            ..Elsewhere::default()
        };
        let refused = typed.check().unwrap_err();
        assert_eq!(refused.hint.as_deref(), Some("use --seed 7"));
    }
}
