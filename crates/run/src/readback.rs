//! What a server and its data are, read back from it.

use crate::admin::{query, text};
use crate::aging::AgingReport;
use crate::build::build;
use crate::load::{DataSet, StateSize, size, states};
use crate::remote::round_trip_us;
use crate::site::{Home, Site, Tables};
use deltabench_compare::thresholds::SIZE_TOLERANCE;
use deltabench_driver::admin::Client;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::{Build, Setting};
use deltabench_model::plan::{DataState, Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use deltabench_workload::executable::Executable;

/// What one server is, read back from it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerReadback {
    pub build: Build,
    pub settings: Vec<Setting>,
    /// Bytes of its tables and indexes after loading.
    pub relation_bytes: u64,
    /// Rows and bytes of each state that the plan's cells start from, the fresh one first.
    pub sizes: Vec<StateSize>,
    /// What made the aged state; absent without one.
    pub aging: Option<AgingReport>,
    /// The server, by its place in the plan, whose data directory this one has a copy of; absent for one
    /// that was loaded itself.
    pub copy_of: Option<usize>,
    /// Microseconds of the shortest statement, from here and back; absent in a run without servers that were
    /// there before.
    pub round_trip_us: Option<f64>,
    /// For each cell of the plan, the shapes of its statements' plans, on the state it starts from.
    pub plans: Vec<Vec<String>>,
}

/// Reads a running server back; `executables` are those of the plan's cells, in order.
///
/// Errors: whatever the server answered.
pub(crate) fn read_back(
    site: &Site,
    (plan, tables): (&Plan, &DataSet),
    executables: &[Executable],
) -> Result<ServerReadback, Problem> {
    let mut sizes = Vec::new();
    for state in states(plan) {
        sizes.push(size(site, state)?);
    }
    let mut plans = Vec::new();
    for (cell, executable) in plan.cells.iter().zip(executables) {
        let client = &mut site.open(Tables::Kept(cell.state))?;
        plans.push(match executable.program {
            Some(_) => tables.plans(client, plan.seed, &cell.workload)?,
            None => self::plans(client, executable)?,
        });
    }
    let client = &mut site.open(Tables::Kept(DataState::Fresh))?;
    Ok(ServerReadback {
        build: build(client)?,
        settings: match &site.home {
            Home::Databases => settings(client)?,
            Home::Schemas(schemas) => discreet(settings(client)?, &schemas.login.options),
        },
        relation_bytes: sizes.first().map_or(0, |size| size.relation_bytes),
        sizes,
        aging: None,
        copy_of: None,
        round_trip_us: match plan.servers.iter().any(is_remote) {
            true => Some(round_trip_us(client)?),
            false => None,
        },
        plans,
    })
}

fn is_remote(server: &PlannedServer) -> bool {
    server.installation.remote.is_some()
}

/// Findings about data that should be the same on all servers: rows that differ in number, an aged state
/// that takes more or less room, candidates that have a load of their own. That the fresh state takes more or
/// less room is told by [`deltabench_compare::fairness()`].
pub fn data_findings(plan: &Plan, readbacks: &[ServerReadback]) -> Vec<Finding> {
    let base = plan.base();
    let Some(ours) = readbacks.get(base.index()) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (id, readback) in ServerId::each().zip(readbacks) {
        for (base, other) in ours.sizes.iter().zip(&readback.sizes) {
            findings.extend(size_finding(base, other, &plan.server_name(id)));
        }
    }
    findings.extend(own_loads(plan, readbacks));
    findings
}

/// That candidates were loaded by themselves, where base and placebo are copies of one load.
fn own_loads(plan: &Plan, readbacks: &[ServerReadback]) -> Option<Finding> {
    let placebo = plan.placebo()?;
    let load = |id: ServerId| {
        let readback = readbacks.get(id.index())?;
        Some(readback.copy_of.unwrap_or(id.index()))
    };
    let base = load(plan.base())?;
    let compared = plan.candidates().into_iter();
    let own: Vec<String> = compared
        .filter(|id| load(*id).is_some_and(|own| own != base))
        .map(|id| plan.server_name(id))
        .collect();
    let applies = load(placebo) == Some(base) && !own.is_empty() && !plan.work.has_passes();
    applies.then(|| {
        let (have, its) = match own.len() {
            1 => ("has", "its"),
            _ => ("have", "their"),
        };
        let text = format!(
            "{} {have} a load of {its} own, and base and placebo exchange two copies of another one: what \
             one more load would change is not in the interval of this hour, and the placebo does not show \
             it; the interval of another hour allows for it",
            own.join(", ")
        );
        Finding::new(FindingKind::LoadsDiffer, Severity::Note, text)
    })
}

fn size_finding(base: &StateSize, other: &StateSize, name: &str) -> Option<Finding> {
    let state = base.state.word();
    if base.rows != other.rows {
        let (ours, theirs) = (base.rows, other.rows);
        let text = format!("the {state} tables have {ours} rows in base, {theirs} in {name}");
        return Some(Finding::new(
            FindingKind::RowsDiffer,
            Severity::Confounder,
            text,
        ));
    }
    let change = to_f64(other.relation_bytes) / to_f64(base.relation_bytes.max(1)) - 1.0;
    let differs = base.state == DataState::Aged && change.abs() > SIZE_TOLERANCE;
    differs.then(|| {
        let mebibytes = |bytes: u64| to_f64(bytes) / 1_048_576.0;
        let text = format!(
            "after the same writes the {state} tables take {:.1} MiB in base, {:.1} MiB in {name} ({:+.1} %)",
            mebibytes(base.relation_bytes),
            mebibytes(other.relation_bytes),
            change * 100.0
        );
        Finding::new(FindingKind::AgedSizeDiffers, Severity::Confounder, text)
    })
}

/// The plan of every statement of `executable`, without costs: its shape.
///
/// Shape:  one text for each statement that the server plans, in the order of the operation.
/// Errors: whatever the server answered.
fn plans(client: &mut Client, executable: &Executable) -> Result<Vec<String>, Problem> {
    let mut plans = Vec::new();
    for sql in executable.sample_sql(1) {
        if ["BEGIN", "COMMIT", "ROLLBACK"].contains(&sql.trim()) {
            continue;
        }
        let shape = shape(query(client, &format!("EXPLAIN (COSTS OFF) {sql}"))?);
        if plans.last() != Some(&shape) {
            plans.push(shape);
        }
    }
    Ok(plans)
}

/// An answer to EXPLAIN without what depends on parameters.
pub fn shape(rows: Vec<Vec<Option<String>>>) -> String {
    let lines = rows.into_iter().map(text);
    let kept: Vec<String> = lines.filter(|line| !line.contains("Cond:")).collect();
    kept.join("\n")
}

/// All settings of a server.
///
/// Errors: whatever the server answered.
fn settings(client: &mut Client) -> Result<Vec<Setting>, Problem> {
    let sql = "SELECT name, setting, unit, boot_val, source FROM pg_settings ORDER BY name";
    let rows = query(client, sql)?;
    let setting = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter();
        let mut next = || fields.next().flatten();
        Some(Setting {
            name: next()?,
            value: next().unwrap_or_default(),
            unit: next(),
            boot_value: next(),
            source: next().unwrap_or_default(),
        })
    };
    Ok(rows.into_iter().filter_map(setting).collect())
}

/// Parts of the names of settings whose values may hold a secret.
const SECRETIVE: [&str; 6] = [
    "conninfo",
    "command",
    "passphrase",
    "password",
    "secret",
    "key_file",
];

/// What stands in the place of a value that is not kept.
const NOT_KEPT: &str = "(not kept)";

/// Settings of somebody else's server without the values that are nobody's business: they would end in the
/// store and in reports. What nobody has set and what our sessions were told to have is kept.
fn discreet(settings: Vec<Setting>, asked: &[(String, String)]) -> Vec<Setting> {
    let may_tell = |setting: &Setting| {
        let name = setting.name.to_ascii_lowercase();
        let known = |(asked, _): &(String, String)| asked.eq_ignore_ascii_case(&name);
        let unset = setting.source == "default" || ["", "(disabled)"].contains(&&*setting.value);
        let secretive = name.contains('.') || SECRETIVE.iter().any(|part| name.contains(part));
        unset || !secretive || asked.iter().any(known)
    };
    let blank = |setting: Setting| Setting {
        value: NOT_KEPT.to_owned(),
        boot_value: None,
        ..setting
    };
    let kept = |setting| match may_tell(&setting) {
        true => setting,
        false => blank(setting),
    };
    settings.into_iter().map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_not_kept() {
        let setting = |name: &str, value: &str, source: &str| Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            unit: None,
            boot_value: Some("b".to_owned()),
            source: source.to_owned(),
        };
        let told = |name: &str, value: &str, source: &str| {
            let asked = [("App.own".to_owned(), "1".to_owned())];
            let kept = discreet(vec![setting(name, value, source)], &asked);
            kept[0] == setting(name, value, source)
        };
        for name in [
            "primary_conninfo",
            "restore_command",
            "ssl_passphrase_command",
            "ssl_key_file",
            "vault.token",
            "Some.Thing",
        ] {
            assert!(!told(name, "x", "configuration file"), "{name}");
            assert!(told(name, "", "configuration file"), "{name}");
            assert!(told(name, "x", "default"), "{name}");
        }
        assert!(told("archive_command", "(disabled)", "override"));
        assert!(told("work_mem", "4096", "configuration file"));
        assert!(told("app.own", "1", "client"));
    }
}
