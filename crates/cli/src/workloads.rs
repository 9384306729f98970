//! `deltabench workloads`: what can be measured, and what it sends.

use crate::arguments::catalogue::{Workloads, WorkloadsCommand};
use crate::console::print_stdout;
use crate::failure::Failure;
use deltabench_model::plan::DataSize;
use deltabench_workload::{Definition, Library};

/// The tables that samples are drawn for.
const SIZE: DataSize = DataSize {
    tables: 1,
    rows: crate::defaults::ROWS,
};

/// Longest SQL in the list, characters.
const SQL_WIDTH: usize = 100;

/// `deltabench workloads`.
pub fn workloads(arguments: &Workloads) -> Result<u8, Failure> {
    let library = Library::builtin().map_err(Failure::Failed)?;
    let text = match &arguments.what {
        None => list(&library)?,
        Some(WorkloadsCommand::Show { name }) => {
            let library = library.with_builtin_scripts().map_err(Failure::Failed)?;
            show(library.get(name).map_err(Failure::Refused)?)?
        }
    };
    print_stdout(text.trim_end())?;
    Ok(0)
}

fn list(library: &Library) -> Result<String, Failure> {
    let names = |definitions: Vec<&Definition>| -> Vec<String> {
        definitions.iter().map(|one| one.name.clone()).collect()
    };
    let (quick, all) = (names(library.quick()), names(library.published()));
    let mut lines = vec![format!(
        "{:<24} {:<10} {:>10}  {:<6} {:<9} sql",
        "workload", "group", "statements", "writes", "sets"
    )];
    for definition in library.all() {
        let mut sets = Vec::new();
        for (set, members) in [("quick", &quick), ("all", &all)] {
            if members.contains(&definition.name) {
                sets.push(set);
            }
        }
        lines.push(format!(
            "{:<24} {:<10} {:>10}  {:<6} {:<9} {}",
            definition.name,
            definition.group.word(),
            definition.statements_per_operation(),
            if definition.writes { "yes" } else { "no" },
            sets.join(","),
            one_line(definition)?
        ));
    }
    Ok(lines.join("\n"))
}

/// The different statements of an operation, shortened.
fn one_line(definition: &Definition) -> Result<String, Failure> {
    let mut statements: Vec<String> = Vec::new();
    for sample in definition.sample(&SIZE, 1).map_err(Failure::Failed)? {
        for sql in sample.statements {
            let shape: String = blank(&sql);
            if !statements.contains(&shape) {
                statements.push(shape);
            }
        }
    }
    let text = statements.join("; ");
    if text.chars().count() <= SQL_WIDTH {
        return Ok(text);
    }
    let cut: String = text.chars().take(SQL_WIDTH - 1).collect();
    Ok(format!("{cut}…"))
}

/// The statement with `?` for every number and string; a list of them becomes one.
fn blank(sql: &str) -> String {
    let mut text = String::new();
    let mut rest = sql.chars().peekable();
    while let Some(next) = rest.next() {
        let inside_a_name = text
            .chars()
            .last()
            .is_some_and(|last| last.is_alphanumeric() || last == '_');
        if next == '\'' {
            let _ = rest.by_ref().find(|other| *other == '\'');
            text.push('?');
        } else if next.is_ascii_digit() && !inside_a_name {
            while rest.next_if(|other| other.is_ascii_digit()).is_some() {}
            text.push('?');
        } else {
            text.push(next);
        }
    }
    while text.contains("?, ?") || text.contains("?,?") {
        text = text.replace("?, ?", "?").replace("?,?", "?");
    }
    text
}

fn show(definition: &Definition) -> Result<String, Failure> {
    let samples = definition.sample(&SIZE, 1).map_err(Failure::Failed)?;
    let mut text = definition.text().trim_end().to_owned();
    let (mark, size) = if definition.is_script() {
        ("--", "pgbench's tables at scale 1".to_owned())
    } else {
        let size = format!("{} table of {} rows", SIZE.tables, SIZE.rows);
        ("#", size)
    };
    if let Some(state) = definition.state() {
        text.push_str(&format!(
            "\n\n# {} runs on {} tables",
            definition.name,
            state.word()
        ));
    }
    for sample in samples {
        let which = sample.script.map_or(String::new(), |name| {
            format!(" of script {name} ({:.0} % of them)", sample.share * 100.0)
        });
        text.push_str(&format!("\n\n{mark} one operation{which} on {size}:\n"));
        for statement in sample.statements {
            text.push_str(&format!("{mark}   {statement}\n"));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_question_marks_and_lists_one_of_them() {
        assert_eq!(
            blank("SELECT c FROM sbtest1 WHERE id IN (1, 22, 3)"),
            "SELECT c FROM sbtest1 WHERE id IN (?)"
        );
        assert_eq!(
            blank("SELECT k FROM sbtest1 WHERE k BETWEEN 5 AND 105"),
            "SELECT k FROM sbtest1 WHERE k BETWEEN ? AND ?"
        );
        assert_eq!(
            blank("UPDATE sbtest1 SET c='12-3' WHERE id=7"),
            "UPDATE sbtest1 SET c=? WHERE id=?"
        );
    }
}
