//! What a server does by itself while it works: checkpoints, autovacuum, growth.

use super::{Fleet, place_of};
use crate::admin::{number, query, text};
use crate::schedule::BlockSchedule;
use crate::site::tables_of;
use deltabench_model::plan::{Cell, ServerId};
use deltabench_model::problem::Problem;

/// Counts since a server's statistics began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Background {
    /// By the clock and by the amount of WAL.
    pub checkpoints: u64,
    /// Runs of autovacuum on tables of the database.
    pub vacuums: u64,
    pub analyzes: u64,
    /// Bytes of the database.
    pub bytes: u64,
}

impl Background {
    /// What came after an earlier count.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            checkpoints: self.checkpoints.saturating_sub(before.checkpoints),
            vacuums: self.vacuums.saturating_sub(before.vacuums),
            analyzes: self.analyzes.saturating_sub(before.analyzes),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// First version with a view of the checkpointer alone.
const CHECKPOINTER_SINCE: u32 = 170_000;

const CHECKPOINTS: &str = "SELECT num_timed + num_requested FROM pg_stat_checkpointer";
const CHECKPOINTS_BEFORE: &str = "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter";

const TABLES: &str = "SELECT coalesce(sum(autovacuum_count), 0)::bigint, \
                      coalesce(sum(autoanalyze_count), 0)::bigint FROM pg_stat_user_tables";
const SIZE: &str = "SELECT pg_database_size(current_database())";

impl Fleet<'_> {
    /// What a running server has counted of its own work, and the size of the database that a cell uses.
    ///
    /// Errors: whatever the server answered, with the tail of its log.
    pub fn background(
        &self,
        schedule: &BlockSchedule,
        server: ServerId,
        cell: &Cell,
    ) -> Result<Background, Problem> {
        let place = place_of(schedule, server);
        let version_num = self.planned(place)?.installation.version_num;
        let site = self.site(place, server.index())?;
        let checkpoints = match version_num >= CHECKPOINTER_SINCE {
            true => CHECKPOINTS,
            false => CHECKPOINTS_BEFORE,
        };
        let counted = site
            .open(tables_of(self.plan.order, cell))
            .and_then(|mut client| {
                let row = query(&mut client, TABLES)?.into_iter().next();
                let row = row.unwrap_or_default();
                let count = |place: usize| {
                    let field = row.get(place).cloned().flatten();
                    text(vec![field]).parse().unwrap_or(0)
                };
                Ok(Background {
                    checkpoints: number(&mut client, checkpoints)?,
                    vacuums: count(0),
                    analyzes: count(1),
                    bytes: number(&mut client, SIZE)?,
                })
            });
        counted.map_err(|problem| self.with_log(problem, place))
    }
}
