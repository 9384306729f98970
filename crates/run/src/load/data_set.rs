//! Which tables a plan needs.

use crate::session::benchmark::OwnTables;
use crate::site::{SCHEMA, Site, Tables};
use deltabench_driver::admin::Client;
use deltabench_model::plan::{DataState, Plan};
use deltabench_model::problem::Problem;
use deltabench_workload::{Library, Sbtest, TableDefinition};
use std::sync::Arc;

/// States that the plan's cells start from, the fresh one first.
///
/// Shape: the fresh one is always there, since the aged one is made from it.
pub fn states(plan: &Plan) -> Vec<DataState> {
    let aged = plan.cells.iter().any(|cell| cell.state == DataState::Aged);
    let all = [Some(DataState::Fresh), aged.then_some(DataState::Aged)];
    all.into_iter().flatten().collect()
}

/// The tables that a plan's workloads run on.
#[derive(Debug, Clone, Default)]
pub struct DataSet {
    /// Those of sysbench; absent when no cell needs them.
    pub(super) sbtest: Option<Sbtest>,
    /// Those that users' workloads bring along.
    pub(super) own: Vec<TableDefinition>,
    /// Those that the kind of benchmark makes.
    pub(super) of_kind: Option<Arc<dyn OwnTables>>,
}

impl DataSet {
    /// All tables that some cell of the plan needs. The write phase is on those of sysbench; others are in
    /// the aged state as they were loaded.
    ///
    /// Errors: unknown workloads; two tables of one name that are not the same.
    pub fn of(
        plan: &Plan,
        library: &Library,
        of_kind: Option<Arc<dyn OwnTables>>,
    ) -> Result<Self, Problem> {
        if plan.work.has_passes() {
            // Its first step makes its tables.
            return Ok(Self::default());
        }
        let wanted = of_kind.as_ref().is_some_and(|own| own.needs_usual());
        let mut usual = wanted || states(plan).contains(&DataState::Aged);
        let mut own: Vec<TableDefinition> = Vec::new();
        for cell in &plan.cells {
            let definition = library.get(&cell.workload)?;
            usual |= definition.tables().is_none();
            for table in definition.tables().unwrap_or_default() {
                match own.iter().find(|known| known.name == table.name) {
                    Some(known) if !same(known, table, plan)? => {
                        return Err(clash(&table.name, "two workloads define"));
                    }
                    Some(_) => {}
                    None => own.push(table.clone()),
                }
            }
        }
        if usual && let Some(taken) = own.iter().find(|table| table.name.starts_with("sbtest")) {
            return Err(clash(&taken.name, "a workload and sysbench define"));
        }
        let sbtest = usual.then(|| Sbtest::new(plan.data.clone(), plan.seed));
        Ok(Self {
            sbtest,
            own,
            of_kind,
        })
    }

    /// Statements that make the tables anew in a schema, which is the search path, each ready to be measured;
    /// `fill` gives the one that fills a table, by its name.
    ///
    /// Errors: those of `fill`.
    pub(crate) fn anew_sql(
        &self,
        plan: &Plan,
        (schema, version_num): (&str, u32),
        mut fill: impl FnMut(&str) -> Result<String, Problem>,
    ) -> Result<Vec<String>, Problem> {
        let mut statements = Vec::new();
        if let Some(data) = &self.sbtest {
            for table in 1..=plan.data.tables {
                statements.extend(data.create_sql(schema, table));
                statements.push(fill(&format!("sbtest{table}"))?);
                statements.extend(data.index_sql(schema, table));
                statements.extend(data.settle_sql(schema, table));
            }
        }
        for table in &self.own {
            statements.push(table.create_sql(schema));
            statements.push(fill(&table.name)?);
            statements.extend(table.index_sql(schema));
            statements.extend(table.settle_sql(schema));
        }
        if let Some(data) = &self.of_kind {
            statements.extend(data.anew_sql(version_num, &mut fill)?);
        }
        Ok(statements)
    }

    /// Rows of all tables whose number is known before they are made.
    pub fn rows(&self, plan: &Plan) -> u64 {
        let usual = match self.sbtest {
            Some(_) => plan.data.rows.saturating_mul(u64::from(plan.data.tables)),
            None => 0,
        };
        let own = self
            .own
            .iter()
            .filter_map(|table| table.rows(&plan.data).ok());
        let of_kind = self.of_kind.as_ref().map_or(0, |tables| tables.rows());
        own.fold(usual.saturating_add(of_kind), u64::saturating_add)
    }

    /// Bytes of all tables and indexes of one server when freshly loaded.
    ///
    /// Errors: a table of the user's with a number of rows that cannot be.
    pub fn bytes(&self, plan: &Plan) -> Result<u64, Problem> {
        let mut bytes = match self.sbtest {
            Some(_) => Sbtest::estimate_bytes(&plan.data),
            None => 0,
        };
        for table in &self.own {
            bytes = bytes.saturating_add(table.estimate_bytes(&plan.data)?);
        }
        let of_kind = self.of_kind.as_ref().map_or(0, |tables| tables.bytes());
        Ok(bytes.saturating_add(of_kind))
    }

    /// Refuses to go on with tables of a site that a crash has emptied.
    pub(super) fn check_crash(&self, site: &Site, tables: Tables) -> Result<(), Problem> {
        match &self.of_kind {
            Some(own) => own.check_crash(&mut site.open(tables)?),
            None => Ok(()),
        }
    }

    /// What must hold of the kind's tables after any workload and does not.
    pub(crate) fn broken(&self, client: &mut Client) -> Result<Vec<String>, Problem> {
        match &self.of_kind {
            Some(own) => own.broken(client),
            None => Ok(Vec::new()),
        }
    }

    /// The shapes of the plans of a workload whose definition does not have them.
    pub(crate) fn plans(
        &self,
        client: &mut Client,
        seed: u64,
        workload: &str,
    ) -> Result<Vec<String>, Problem> {
        match &self.of_kind {
            Some(own) => own.plans(client, seed, workload),
            None => Ok(Vec::new()),
        }
    }
}

/// Whether two tables come out the same.
fn same(one: &TableDefinition, other: &TableDefinition, plan: &Plan) -> Result<bool, Problem> {
    let of = |table: &TableDefinition| -> Result<_, Problem> {
        let fill = table.fill_sql(SCHEMA, &plan.data)?;
        Ok((table.create_sql(SCHEMA), fill, table.index_sql(SCHEMA)))
    };
    Ok(of(one)? == of(other)?)
}

fn clash(table: &str, who: &str) -> Problem {
    Problem::new(format!("{who} different tables called {table}"))
        .detail("all tables of a run are in one schema")
        .hint("change the table's `name` in one of the workload files")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::plan;
    use deltabench_model::plan::WorkloadSource;

    fn source(name: &str, table: &str, rows: &str) -> WorkloadSource {
        let text = format!(
            "format = \"deltabench.workload\"\nversion = 1\nname = \"{name}\"\ngroup = \"point\"\n\
             label = \"1\"\nwrites = false\ndescription = \"x\"\nsource = \"x\"\n\
             [[table]]\nname = \"{table}\"\ncreate = \"CREATE TABLE {{table}} (id integer)\"\n\
             rows = \"{rows}\"\nrow_bytes = 50\n\
             fill = \"INSERT INTO {{table}} SELECT generate_series(1, {{rows}})\"\n\
             [[step]]\nsql = \"SELECT count(*) FROM {table}\"\n"
        );
        WorkloadSource {
            file: format!("{name}.toml"),
            text,
        }
    }

    fn set(sources: &[WorkloadSource], cells: &[(&str, bool, DataState)]) -> Result<u64, Problem> {
        let plan = plan(cells);
        let library = Library::builtin()?.with_sources(sources)?;
        DataSet::of(&plan, &library, None)?.bytes(&plan)
    }

    #[test]
    fn tables_of_users_come_beside_those_of_sysbench_once_each() {
        let (fresh, aged) = (DataState::Fresh, DataState::Aged);
        let sources = [source("one", "t", "rows"), source("two", "t", "rows")];
        let own = [("one", false, fresh), ("two", false, fresh)];
        // 1000 rows of 50 bytes.
        assert_eq!(set(&sources, &own), Ok(50_000));
        let sysbench = set(&[], &[("point-query", false, fresh)]).unwrap();
        let with = [("one", false, fresh), ("point-query", false, fresh)];
        assert_eq!(set(&sources, &with), Ok(50_000 + sysbench));
        assert_eq!(
            set(&sources, &[("one", false, aged)]),
            Ok(50_000 + sysbench)
        );
    }

    #[test]
    fn two_tables_of_one_name_are_refused_unless_they_are_the_same() {
        let fresh = DataState::Fresh;
        let sources = [source("one", "t", "rows"), source("two", "t", "rows * 2")];
        let refused = set(&sources, &[("one", false, fresh), ("two", false, fresh)]).unwrap_err();
        assert!(refused.error.contains("called t"), "{refused}");
        let sources = [source("one", "sbtest1", "rows")];
        let cells = [("one", false, fresh), ("point-query", false, fresh)];
        assert!(
            set(&sources, &cells)
                .unwrap_err()
                .error
                .contains("called sbtest1")
        );
        assert!(set(&sources, &[("one", false, fresh)]).is_ok());
    }
}
