//! The text of a configuration: `name = value` lines, as in `postgresql.conf`.

use deltabench_model::problem::Problem;

/// One thing that a configuration says, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    /// All of another configuration.
    Include(String),
    /// A setting; its name is in lower case.
    Set(String, String),
    /// Takes a setting back that was included.
    Unset(String),
}

/// Statements of a file, and its first line of comment: what it is, in words.
///
/// Errors: with file and line; what `postgresql.conf` may have and this may not.
/// Source: PostgreSQL manual, "Parameter Interaction via the Configuration File"; guc-file.l. Beside it a
/// number with `%`, a share of the machine's memory.
pub(super) fn read(file: &str, text: &str) -> Result<(Option<String>, Vec<Statement>), Problem> {
    let mut statements = Vec::new();
    for (line, number) in text.lines().zip(1_usize..) {
        let read = statement(line)
            .map_err(|why| Problem::new(format!("{file}, line {number}: {why}")).detail(line))?;
        statements.extend(read);
    }
    let title = text
        .lines()
        .map_while(|line| line.strip_prefix('#'))
        .map(str::trim)
        .find(|line| !line.is_empty());
    Ok((
        title.map(|title| title.trim_end_matches('.').to_owned()),
        statements,
    ))
}

/// The setting in a line of a server's own file, its name in lower case; `include_dir` and its like are
/// settings, too. Absent: the line has none, or one that cannot be read.
pub(crate) fn setting_of(line: &str) -> Option<(String, String)> {
    let (name, value) = match statement(line) {
        Ok(Some(Statement::Set(name, value))) => (name, value),
        Ok(Some(Statement::Include(value))) => ("include".to_owned(), value),
        Ok(_) => return None,
        Err(_) => {
            let (name, value) = line.trim().split_once([' ', '\t', '='])?;
            let value = value.trim_matches([' ', '\t', '=', '\'']);
            (name.to_ascii_lowercase(), value.to_owned())
        }
    };
    Some((name, value))
}

fn statement(line: &str) -> Result<Option<Statement>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.')))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at_checked(end).unwrap_or((line, ""));
    if !crate::configuration::is_name(name) {
        return Err("a setting starts with its name, as in `work_mem = 64MB`".to_owned());
    }
    let name = name.to_ascii_lowercase();
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let (value, rest) = match rest.strip_prefix('\'') {
        Some(quoted) => unquote(quoted)?,
        None => plain(rest)?,
    };
    let rest = rest.trim_start();
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err(format!(
            "text follows the value of {name}; quote the value: '...'"
        ));
    }
    match name.as_str() {
        "include" => Ok(Some(Statement::Include(value))),
        "include_if_exists" | "include_dir" => Err(format!(
            "{name} is not possible here; include = 'NAME' includes another configuration"
        )),
        _ => Ok(Some(Statement::Set(name, value))),
    }
}

/// A value without quotes, and what is behind it.
fn plain(text: &str) -> Result<(String, &str), String> {
    let end = text
        .find(|c: char| c.is_whitespace() || c == '#')
        .unwrap_or(text.len());
    let (value, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-._:/%$".contains(c);
    if value.is_empty() {
        return Err("a setting without a value".to_owned());
    }
    if !value.chars().all(fits) {
        return Err(format!("a value such as {value} needs quotes: '...'"));
    }
    Ok((value.to_owned(), rest))
}

/// A value whose opening quote has been taken off, and what is behind it.
///
/// Source: GUC_scanstr. Octal escapes are refused rather than read.
fn unquote(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' if rest.as_str().starts_with('\'') => {
                value.push('\'');
                rest.next();
            }
            '\'' => return Ok((value, rest.as_str())),
            '\\' => match rest.next() {
                Some('n' | 'r' | 'b' | 'f' | '0'..='7') => {
                    return Err("a value cannot contain control characters here".to_owned());
                }
                Some('t') => value.push('\t'),
                Some(other) => value.push(other),
                None => break,
            },
            _ => value.push(c),
        }
    }
    Err("a quote is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Statement {
        let (_, mut statements) = read("f", line).unwrap();
        assert_eq!(statements.len(), 1, "{line}");
        statements.remove(0)
    }

    #[test]
    fn lines_are_read_as_the_server_reads_them() {
        let set = |name: &str, value: &str| Statement::Set(name.to_owned(), value.to_owned());
        for (line, wanted) in [
            ("work_mem = 64MB", set("work_mem", "64MB")),
            ("  Work_Mem=64MB# enough", set("work_mem", "64MB")),
            ("work_mem 64MB", set("work_mem", "64MB")),
            ("shared_buffers = 25%", set("shared_buffers", "25%")),
            ("random_page_cost = 1.1", set("random_page_cost", "1.1")),
            (
                "log_line_prefix = '%m [%p] '",
                set("log_line_prefix", "%m [%p] "),
            ),
            (
                "log_line_prefix = 'it''s # \\\\ \\'x'",
                set("log_line_prefix", "it's # \\ 'x"),
            ),
            ("search_path = ''", set("search_path", "")),
            (
                "auto_explain.log_min_duration = -1",
                set("auto_explain.log_min_duration", "-1"),
            ),
            ("include = 'cx7'", Statement::Include("cx7".into())),
        ] {
            assert_eq!(one(line), wanted, "{line}");
        }
        assert_eq!(read("f", "\n  # nothing\n\n").unwrap().1, []);
    }

    #[test]
    fn what_is_no_setting_is_refused_with_its_place() {
        for (line, wanted) in [
            ("= 5", "starts with its name"),
            ("work mem = 5", "text follows"),
            ("work_mem =", "without a value"),
            ("work_mem", "without a value"),
            ("search_path = a, b", "needs quotes"),
            ("search_path = a b", "text follows"),
            ("log_line_prefix = 'x", "not closed"),
            ("log_line_prefix = 'x' y", "text follows"),
            (
                "log_line_prefix = 'x\\ny'",
                "a value cannot contain control characters here",
            ),
            ("include_dir = 'conf.d'", "include = 'NAME'"),
        ] {
            let problem = read("own.conf", &format!("# title\n{line}\n")).unwrap_err();
            assert!(problem.error.starts_with("own.conf, line 2: "), "{problem}");
            assert!(problem.error.contains(wanted), "{line}: {problem}");
        }
    }

    #[test]
    fn the_first_comment_says_what_it_is() {
        let (title, _) = read("f", "#\n# cx7, for 16 GB.\n# more\nwork_mem = 1MB\n").unwrap();
        assert_eq!(title.as_deref(), Some("cx7, for 16 GB"));
        assert_eq!(read("f", "work_mem = 1MB # x\n").unwrap().0, None);
    }
}
