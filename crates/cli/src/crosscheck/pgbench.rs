//! `deltabench crosscheck --pgbench`: the built-in driver against pgbench itself.

use super::shown::{WIDEST, meanings, with_interval, word};
use super::{SEED, check, publish, resolved};
use crate::arguments::selfcheck::CrosscheckArguments;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::interrupt;
use crate::kinds::pgbench::arguments::ModeWord;
use crate::text::{paragraph, table};
use clap::ValueEnum;
use deltabench_compare::thresholds::CLIENT_CPU_GOAL;
use deltabench_driver::crosscheck::pgbench::{installed, pgbench_version};
use deltabench_model::exit;
use deltabench_model::work::pgbench::QueryMode;
use deltabench_selfcheck::crosscheck::finding::Speed;
use deltabench_selfcheck::crosscheck::json::{PgbenchCrosscheckJson, ScriptFinding};
use deltabench_selfcheck::crosscheck::pgbench::{PgbenchRequest, chosen, crosscheck_pgbench};

/// Compares what both sides make and send, and how fast.
pub(super) fn crosscheck(arguments: &CrosscheckArguments, config: &Config) -> Result<u8, Failure> {
    check(arguments).map_err(Failure::Refused)?;
    let scripts = chosen(&arguments.only).map_err(Failure::Refused)?;
    let (host, installation) = resolved(arguments, config)?;
    let program = installed(&installation).map_err(Failure::Refused)?;
    let pgbench = pgbench_version(&program).map_err(Failure::Refused)?;
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
        return Ok(exit::INTERRUPTED);
    };
    let found = PgbenchCrosscheckJson::of(&request, pgbench, measured);
    publish(&found, arguments, || text(&found))?;
    Ok(if found.differs() { exit::DIFFERENT } else { 0 })
}

fn modes(asked: &[ModeWord]) -> Vec<QueryMode> {
    let all = ModeWord::value_variants();
    let asked = if asked.is_empty() { all } else { asked };
    asked.iter().map(|word| (*word).into()).collect()
}

/// Everything, as lines.
fn text(found: &PgbenchCrosscheckJson) -> String {
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

fn tables(found: &PgbenchCrosscheckJson) -> Vec<Vec<String>> {
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

fn cells(row: &ScriptFinding) -> Vec<String> {
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
