//! `deltabench crosscheck --pgbench`: the built-in driver against pgbench itself.

use super::finding::{Finding, Speed};
use super::shown::{WIDEST, meanings, with_interval, word};
use super::{DIFFERENT, SEED, check, resolved, write_out};
use crate::arguments::pgbench::ModeWord;
use crate::arguments::selfcheck::CrosscheckArguments;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::interrupt;
use crate::text::{paragraph, table};
use clap::ValueEnum;
use deltabench_driver::crosscheck::pgbench::{installed, pgbench_version};
use deltabench_model::pgbench::QueryMode;
use deltabench_model::problem::{Problem, nearest};
use deltabench_run::crosscheck::pgbench::{
    PgbenchRequest, PgbenchRow, SCRIPTS, crosscheck_pgbench,
};
use deltabench_run::crosscheck::tables::TablesFound;
use serde::Serialize;

/// Name and version of the JSON.
const FORMAT: (&str, u32) = ("deltabench.crosscheck-pgbench", 1);

/// What the other side is called.
const PGBENCH: &str = "pgbench";

/// The most of pgbench's client CPU that ours may take: the goal.
const CLIENT_CPU_GOAL: f64 = 0.75;

/// What is printed and written.
#[derive(Debug, Serialize)]
struct Found {
    format: &'static str,
    version: u32,
    target: String,
    pgbench: String,
    program: String,
    scale: u32,
    rounds: u32,
    seed: u64,
    tables: Vec<Tables>,
    rows: Vec<Row>,
}

/// One way to make the tables.
#[derive(Debug, Serialize)]
struct Tables {
    pgbench_arguments: String,
    same_facts: u64,
    only_deltabench: Vec<String>,
    only_pgbench: Vec<String>,
    skipped: Option<String>,
}

/// One script, mode and number of clients.
#[derive(Debug, Serialize)]
struct Row {
    script: &'static str,
    mode: QueryMode,
    clients: u32,
    pgbench_arguments: String,
    /// Clients divided by throughput, as pgbench computes its average.
    latency_ms: [f64; 2],
    #[serde(flatten)]
    finding: Finding,
}

/// Compares what both sides make and send, and how fast.
pub(super) fn crosscheck(arguments: &CrosscheckArguments, config: &Config) -> Result<u8, Failure> {
    check(arguments).map_err(Failure::Refused)?;
    let scripts = scripts(&arguments.only).map_err(Failure::Refused)?;
    let (host, installation) = resolved(arguments, config)?;
    let program = installed(&installation).map_err(Failure::Refused)?;
    let pgbench = pgbench_version(&program).map_err(Failure::Refused)?;
    let target = installation.resolved.clone();
    let options = &arguments.pgbench;
    let request = PgbenchRequest {
        installation,
        scripts,
        modes: modes(&options.protocol),
        clients: match options.client.as_slice() {
            [] => vec![1],
            counts => counts.to_vec(),
        },
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        scale: options.scale.unwrap_or(1),
        seed: SEED,
    };
    let interrupted = interrupt::flag()?;
    let measured = crosscheck_pgbench(&request, &host, &interrupted, &mut |text| say(&text));
    let Some(measured) = measured.map_err(Failure::Failed)? else {
        say("interrupted");
        return Ok(interrupt::STATUS);
    };
    let found = Found {
        format: FORMAT.0,
        version: FORMAT.1,
        target,
        pgbench,
        program: measured.program.display().to_string(),
        scale: request.scale,
        rounds: request.rounds,
        seed: SEED,
        tables: measured.tables.into_iter().map(Tables::of).collect(),
        rows: measured.rows.iter().map(Row::of).collect(),
    };
    write_out(&found, arguments, || text(&found))?;
    let differs = found.tables.iter().any(Tables::differ)
        || found.rows.iter().any(|row| row.finding.differs());
    Ok(if differs { DIFFERENT } else { 0 })
}

fn modes(asked: &[ModeWord]) -> Vec<QueryMode> {
    let all = ModeWord::value_variants();
    let asked = if asked.is_empty() { all } else { asked };
    asked.iter().map(|word| (*word).into()).collect()
}

fn scripts(only: &[String]) -> Result<Vec<&'static str>, Problem> {
    if only.is_empty() {
        return Ok(SCRIPTS.to_vec());
    }
    let mut found: Vec<&'static str> = Vec::new();
    for name in only {
        let script = SCRIPTS.into_iter().find(|known| known == name);
        match script {
            Some(script) if found.contains(&script) => {
                return Err(Problem::new(format!("{name} is asked for twice")));
            }
            Some(script) => found.push(script),
            None => {
                let problem = Problem::new(format!("no built-in script `{name}` of pgbench"))
                    .detail(format!("there are {}", SCRIPTS.join(", ")));
                return Err(match nearest(name, SCRIPTS) {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")),
                    None => problem.hint("leave --only out to compare all of them"),
                });
            }
        }
    }
    Ok(found)
}

impl Tables {
    fn of(found: TablesFound) -> Self {
        Self {
            pgbench_arguments: format!("-i {}", found.arguments.join(" ")),
            same_facts: found.same,
            only_deltabench: found.own_only,
            only_pgbench: found.peer_only,
            skipped: found.skipped,
        }
    }

    fn differ(&self) -> bool {
        !(self.only_deltabench.is_empty() && self.only_pgbench.is_empty())
    }
}

impl Row {
    fn of(row: &PgbenchRow) -> Self {
        let finding = Finding::of(&row.measured, PGBENCH);
        let latency = |rate: f64| f64::from(row.clients) * 1e3 / rate.max(1e-9);
        Self {
            script: row.script,
            mode: row.mode,
            clients: row.clients,
            pgbench_arguments: row.measured.arguments.join(" "),
            latency_ms: [
                latency(finding.operations_per_second.own),
                latency(finding.operations_per_second.peer),
            ],
            finding,
        }
    }
}

/// Everything, as lines.
fn text(found: &Found) -> String {
    let about = format!(
        "{} and {} in {}; scale {}, {} rounds; clients on the server's core; ratios are deltabench / pgbench \
         with 95 % interval; latency in ms, CPU in us per transaction; ! more than {CLIENT_CPU_GOAL} of \
         pgbench's client CPU",
        found.target, found.pgbench, found.program, found.scale, found.rounds
    );
    let mut lines = paragraph("", &about, WIDEST);
    lines.push(String::new());
    lines.extend(table(&tables(found)));
    lines.push(String::new());
    let mut rows = vec![heading()];
    rows.extend(found.rows.iter().map(cells));
    lines.extend(table(&rows));
    lines.push(String::new());
    for (number, tables) in (1..).zip(&found.tables) {
        let label = format!("tables {number}: ");
        if let Some(why) = &tables.skipped {
            lines.extend(paragraph(&label, why, WIDEST));
        }
        let sides = [
            ("deltabench", &tables.only_deltabench),
            ("pgbench", &tables.only_pgbench),
        ];
        for (side, facts) in sides {
            for fact in facts {
                lines.extend(paragraph(&label, &format!("only {side}: {fact}"), WIDEST));
            }
        }
    }
    for row in &found.rows {
        let label = format!("{}, {}, {}: ", row.script, row.mode.word(), row.clients);
        for told in row.finding.differences.iter().chain(&row.finding.remarks) {
            lines.extend(paragraph(&label, told, WIDEST));
        }
    }
    let speeds: Vec<Speed> = found.rows.iter().map(|row| row.finding.speed).collect();
    lines.extend(meanings(&speeds));
    lines.join("\n").trim_end().to_owned()
}

fn tables(found: &Found) -> Vec<Vec<String>> {
    let mut rows = vec![["tables", "", "facts alike"].map(str::to_owned).to_vec()];
    for (number, tables) in (1..).zip(&found.tables) {
        let (word, facts) = match &tables.skipped {
            Some(_) => ("not made".to_owned(), String::new()),
            None if tables.differ() => ("DIFFER".to_owned(), tables.same_facts.to_string()),
            None => ("same".to_owned(), tables.same_facts.to_string()),
        };
        let made = format!("{number}: pgbench {}", tables.pgbench_arguments);
        rows.push(vec![made, word, facts]);
    }
    rows
}

fn heading() -> Vec<String> {
    [
        "script",
        "mode",
        "clients",
        "SQL",
        "counts",
        "tps",
        "latency",
        "throughput",
        "client CPU",
        "ratio",
        "server time",
        "speed",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn cells(row: &Row) -> Vec<String> {
    let finding = &row.finding;
    let same = |same: bool| if same { "same" } else { "DIFFER" }.to_owned();
    let [own, peer] = row.latency_ms;
    let throughput = &finding.throughput;
    let cpu = &finding.client_cpu_us_per_op;
    let goal = if finding.client_cpu_ratio <= CLIENT_CPU_GOAL {
        ""
    } else {
        " !"
    };
    vec![
        row.script.to_owned(),
        row.mode.word().to_owned(),
        row.clients.to_string(),
        same(finding.same_sql),
        same(finding.same_counts),
        format!(
            "{:.0} / {:.0}",
            finding.operations_per_second.own, finding.operations_per_second.peer
        ),
        format!("{own:.3} / {peer:.3}"),
        with_interval(throughput.throughput_ratio, throughput.throughput_ci95),
        format!("{:.1} / {:.1}", cpu.own, cpu.peer),
        with_interval(finding.client_cpu_ratio, finding.client_cpu_ci95) + goal,
        with_interval(finding.server_time_ratio, finding.server_time_ci95),
        word(finding.speed).to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_asked_for_by_their_names() {
        let asked = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            scripts(&names)
        };
        assert_eq!(asked(&[]).unwrap(), SCRIPTS);
        assert_eq!(asked(&["tpcb-like"]).unwrap(), ["tpcb-like"]);
        let refused = |names: &[&str]| asked(names).unwrap_err().to_string();
        assert!(refused(&["select-onyl"]).contains("did you mean `select-only`?"));
        assert!(refused(&["select-only", "select-only"]).contains("twice"));
    }
}
