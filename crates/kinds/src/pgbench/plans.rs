//! How a server plans the statements of scripts, so that plans that differ are told.

use super::script::program;
use deltabench_driver::admin::Client;
use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::{PgbenchScript, PgbenchSetup};
use deltabench_run::readback::shape;
use deltabench_workload::executable::Draws;
use deltabench_workload::pgbench::{Action, Player, Program, SqlStatement};

/// Statements of one script that are looked at: one that loops by \\if cannot be longer than its text.
const ACTIONS_MAX: u32 = 1000;

/// What EXPLAIN takes.
const EXPLAINED: [&str; 7] = [
    "select", "with", "insert", "update", "delete", "values", "merge",
];

/// The plans of a mix, without costs, each shape once for each script: of the way through it that one draw
/// takes. A statement that cannot be explained by itself, for example because it needs what one before it
/// makes, is left out.
///
/// Errors: a script that does not read, a connection that is lost.
pub(crate) fn plans(
    client: &mut Client,
    setup: &PgbenchSetup,
    seed: u64,
    name: &str,
) -> Result<Vec<String>, Problem> {
    let mut found = Vec::new();
    let mix = setup.mixes.iter().find(|mix| mix.name == name);
    for script in mix.iter().flat_map(|mix| &mix.scripts) {
        for shape in of_script(client, setup, script, seed)? {
            if found.last() != Some(&shape) {
                found.push(shape);
            }
        }
    }
    Ok(found)
}

fn of_script(
    client: &mut Client,
    setup: &PgbenchSetup,
    script: &PgbenchScript,
    seed: u64,
) -> Result<Vec<String>, Problem> {
    let mut shapes = Vec::new();
    let (program, mut player) = program(setup, &script.source, setup.mode)?;
    player.begin(&program, &mut Draws::new(seed, 0));
    for _ in 0..ACTIONS_MAX {
        match player.next(&program) {
            Ok(Action::Send(number)) => {
                let Some(statement) = program.statements().get(number) else {
                    break;
                };
                let mut sql = Vec::new();
                player.write_sql(&program, &mut sql);
                let sql = String::from_utf8_lossy(&sql).into_owned();
                // EXPLAIN would be for the first part only, and the others would be carried out.
                if statement.parts == 1 {
                    shapes.extend(explained(client, &sql)?);
                }
                if statement.capture.is_some()
                    && !captured(client, &program, &mut player, statement, &sql)?
                {
                    break;
                }
            }
            Ok(Action::Done) | Err(_) => break,
            Ok(_) => {}
        }
    }
    Ok(shapes)
}

fn explained(client: &mut Client, sql: &str) -> Result<Option<String>, Problem> {
    let verb = sql.split_ascii_whitespace().next().unwrap_or_default();
    if !EXPLAINED.contains(&&*verb.to_ascii_lowercase()) {
        return Ok(None);
    }
    let asked = client.query(&format!("EXPLAIN (COSTS OFF) {sql}"));
    Ok(answer(asked)?.map(shape))
}

/// Gives a player what its statement would have answered, if reading alone tells; false if it does not.
fn captured(
    client: &mut Client,
    program: &Program,
    player: &mut Player,
    statement: &SqlStatement,
    sql: &str,
) -> Result<bool, Problem> {
    if statement.parts != 1 {
        return Ok(false);
    }
    // Without names of columns they cannot be captured: the server gives them with the values, as JSON.
    let asked = format!(
        "BEGIN READ ONLY; SELECT row_to_json(r) FROM ({}) AS r LIMIT 2",
        sql.trim_end().trim_end_matches(';')
    );
    let rows = answer(client.query(&asked));
    // Ends the transaction, failed or not.
    let ended = answer(client.query("ROLLBACK"));
    let (Some(rows), Some(_)) = (rows?, ended?) else {
        return Ok(false);
    };
    for row in rows {
        let json = row.into_iter().next().flatten().unwrap_or_default();
        let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(&json) else {
            return Ok(false);
        };
        let (names, values): (Vec<Vec<u8>>, Vec<Option<Vec<u8>>>) = fields
            .into_iter()
            .map(|(name, value)| (name.into_bytes(), plain(value)))
            .unzip();
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
        if player.capture(program, 0, &names, &values).is_err() {
            return Ok(false);
        }
    }
    Ok(player.end_capture(program).is_ok())
}

/// A value as a column has it, as text.
fn plain(value: serde_json::Value) -> Option<Vec<u8>> {
    match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text.into_bytes()),
        other => Some(other.to_string().into_bytes()),
    }
}

/// What a server answered; `None` if it refused.
fn answer(
    asked: Result<deltabench_driver::admin::TextRows, deltabench_driver::WireError>,
) -> Result<Option<deltabench_driver::admin::TextRows>, Problem> {
    match asked {
        Ok(rows) => Ok(Some(rows)),
        Err(deltabench_driver::WireError::Server(_)) => Ok(None),
        Err(lost) => Err(
            Problem::new("a server was lost while deltabench read its plans")
                .detail(lost.to_string()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgbench::tests::{setup, source};
    use deltabench_model::work::pgbench::QueryMode;

    #[test]
    fn statements_of_a_pipeline_have_their_values_in_them() {
        let text = "\\set x 7\n\\startpipeline\nSELECT :x;\nSELECT 2;\n\\endpipeline\n";
        let mut setup = setup(text);
        setup.mode = QueryMode::Prepared;
        let (program, mut player) = program(&setup, &source(text), setup.mode).unwrap();
        player.begin(&program, &mut Draws::new(0, 0));
        let mut found = Vec::new();
        loop {
            match player.next(&program).unwrap() {
                Action::Send(_) => {
                    let mut sql = Vec::new();
                    player.write_sql(&program, &mut sql);
                    found.push(String::from_utf8(sql).unwrap());
                }
                Action::Done => break,
                _ => {}
            }
        }
        assert_eq!(found, ["SELECT 7;", "SELECT 2;"]);
    }
}
