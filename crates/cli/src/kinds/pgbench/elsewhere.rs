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
                "work is measured in slices that alternate between the servers, in blocks until the answer \
                 is there",
                &format!(
                    "--visit-seconds {seconds} is the time on each server in a block, --budget 15m the end"
                ),
            ));
        }
        if self.transactions.is_some() {
            return Some(refused(
                "-t/--transactions",
                "a slice has as many transactions as the base does in its length, the same for every server",
                "--slice-ms and --visit-seconds say how long a server is measured, --blocks how often",
            ));
        }
        if self.jobs.is_some() {
            return Some(refused(
                "-j/--jobs",
                "all connections are served by one thread",
                "leave it out; a report says if the client was short of CPU",
            ));
        }
        if self.connect {
            return Some(refused(
                "-C/--connect",
                "connections are opened before a slice and not measured",
                "leave it out; what a connection costs is not measured by this version",
            ));
        }
        let seed = self.random_seed.as_ref()?;
        Some(refused(
            "--random-seed",
            "one seed is for everything that is drawn: orders, keys, data",
            &format!("use --seed {seed}"),
        ))
    }

    /// How the tables are made and kept.
    fn of_tables(&self) -> Option<Problem> {
        if self.initialize {
            return Some(refused(
                "-i/--initialize",
                "every run makes its tables, on servers of its own",
                "leave it out; --scale, --fillfactor, --foreign-keys, --partitions say how",
            ));
        }
        if self.init_steps.is_some() {
            return Some(refused(
                "-I/--init-steps",
                "all steps of `pgbench -i` are done: dtgvp, and f with --foreign-keys",
                "use --server-side for G and --foreign-keys for f",
            ));
        }
        if self.no_vacuum {
            return Some(refused(
                "-n/--no-vacuum",
                "nothing is vacuumed before a slice: scripts that write get restored tables in each block",
                "leave it out",
            ));
        }
        if self.vacuum_all {
            return Some(refused(
                "-v/--vacuum-all",
                "tables are vacuumed when they are made; scripts that write get them restored in each block",
                "leave it out",
            ));
        }
        let elsewhere = self.tablespace.is_some() || self.index_tablespace.is_some();
        elsewhere.then(|| {
            refused(
                "--tablespace",
                "servers of a run have their data in one directory",
                "use --cluster-dir DIR",
            )
        })
    }

    /// What pgbench would print.
    fn of_reports(&self) -> Option<Problem> {
        if self.progress.is_some() {
            return Some(refused(
                "-P/--progress",
                "a line for each block tells where it stands, and a series of each second is kept",
                "leave it out; `deltabench report RUN --format pgbench --progress 5` prints such lines",
            ));
        }
        if self.report_per_command {
            return Some(refused(
                "-r/--report-per-command",
                "latencies are of transactions and of scripts",
                "leave it out; `deltabench report RUN --format pgbench --progress 5` has scripts apart",
            ));
        }
        if self.log {
            return Some(refused(
                "-l/--log",
                "latencies of each slice are kept as a histogram",
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
    Problem::new(format!("{option} of pgbench has no place here"))
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
        let typed = Elsewhere {
            connect: true,
            ..Elsewhere::default()
        };
        assert!(typed.check().unwrap_err().error.starts_with("-C/--connect"));
    }
}
