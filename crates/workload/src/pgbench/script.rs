//! One script: meta commands with branches turned into jumps, SQL commands put into the program's list.

use super::expression::Expression;
use super::parser::{self, Mistake};
use super::scan::{End, Opaque, Scanner, Source, Sql};
use super::sql::{Capture, MOST_PARAMETERS, SqlStatement, Template, copies_to_client, writes};
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::work::pgbench::QueryMode;
use std::time::Duration;

/// A step of a script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Command {
    /// Where it stands in its file.
    pub(crate) line: u32,
    pub(crate) kind: Kind,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Set {
        variable: usize,
        expression: Expression,
    },
    /// `\if` and `\elif`: on to `target` if the condition does not hold.
    Unless {
        condition: Expression,
        target: usize,
    },
    /// The end of a branch that was taken: on to the `\endif`.
    Jump(usize),
    /// Sends this statement of the program.
    Send(usize),
    Sleep(Time),
    /// `\startpipeline`.
    StartPipeline,
    /// `\syncpipeline`.
    SyncPipeline,
    /// `\endpipeline`.
    EndPipeline,
}

/// How long a `\sleep` is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Time {
    /// Always so long.
    Fixed(Duration),
    /// As many units as a variable says.
    Variable { variable: usize, unit_us: u64 },
}

/// A place where a variable is used, and must have a value.
#[derive(Debug, Clone)]
pub(crate) struct Use {
    pub(crate) variable: usize,
    pub(crate) script: usize,
    pub(crate) at: usize,
}

/// All scripts, as far as they have been read.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) mode: QueryMode,
    /// Of all variables, by number.
    pub(crate) names: Vec<String>,
    /// Variables that a `\set` sets.
    pub(crate) set: Vec<usize>,
    pub(crate) uses: Vec<Use>,
    pub(crate) statements: Vec<SqlStatement>,
    pub(crate) templates: Vec<Template>,
    /// Whether a statement changes data, for each.
    pub(crate) writes: Vec<bool>,
}

impl Builder {
    /// The number of a variable.
    pub(crate) fn intern(&mut self, name: &str) -> usize {
        let known = self.names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    /// Reads the script with this number.
    ///
    /// Errors: whatever is wrong with it, with file and line.
    pub(crate) fn script(
        &mut self,
        number: usize,
        source: Source<'_>,
    ) -> Result<Vec<Command>, Problem> {
        if let Some(at) = source.text.find('\0') {
            return Err(source.problem(at, "a zero byte", false));
        }
        let mut reading = Reading {
            builder: self,
            number,
            source,
            scanner: Scanner::new(source),
            commands: Vec::new(),
            open: Vec::new(),
            last: None,
            pipelined: false,
            counted: (0, 1),
        };
        reading.run()?;
        let commands = reading.commands;
        if commands.is_empty() {
            let what = format!("empty command list for script \"{}\"", source.file);
            return Err(Problem::new(what));
        }
        Ok(commands)
    }
}

/// Whether a variable can be called that.
pub fn is_variable_name(name: &str) -> bool {
    name.chars().all(parser::is_name_letter)
        && name.starts_with(|first: char| !first.is_ascii_digit())
}

/// An `\if` that is open.
struct Branches {
    at: usize,
    /// The condition that does not know yet where to go if it does not hold.
    condition: Option<usize>,
    /// The jumps that do not know yet where the `\endif` is.
    jumps: Vec<usize>,
}

struct Reading<'a, 's> {
    builder: &'a mut Builder,
    number: usize,
    source: Source<'s>,
    scanner: Scanner<'s>,
    commands: Vec<Command>,
    open: Vec<Branches>,
    /// The statement that `\gset` would follow, if it may.
    last: Option<usize>,
    pipelined: bool,
    /// A byte up to which lines have been counted, and its line.
    counted: (usize, u32),
}

const NO_UNIT_US: u64 = 1_000_000;
const META: [&str; 11] = [
    "set",
    "sleep",
    "if",
    "elif",
    "else",
    "endif",
    "gset",
    "aset",
    "startpipeline",
    "syncpipeline",
    "endpipeline",
];

impl Reading<'_, '_> {
    fn run(&mut self) -> Result<(), Problem> {
        loop {
            let (sql, end) = self.scanner.command()?;
            if !sql.text.trim().is_empty() {
                self.statement(&sql)?;
            }
            match end {
                End::Semicolon => {}
                End::Backslash(at) => self.meta(at)?,
                End::Script => break,
            }
        }
        match self.open.pop() {
            Some(branches) => Err(self.problem(branches.at, "\\if without matching \\endif")),
            None => Ok(()),
        }
    }

    fn problem(&self, at: usize, what: &str) -> Problem {
        self.source.problem(at, what, false)
    }

    /// The line of a byte. Commands come in order, so each line is counted once.
    fn line(&mut self, at: usize) -> u32 {
        let (known, line) = self.counted;
        self.counted = match self.source.text.as_bytes().get(known..at) {
            Some(between) => {
                let ends = between.iter().filter(|&&byte| byte == b'\n').count();
                (
                    at,
                    line.saturating_add(u32::try_from(ends).unwrap_or(u32::MAX)),
                )
            }
            None => (at, self.source.line(at)),
        };
        self.counted.1
    }

    fn push(&mut self, at: usize, kind: Kind) -> usize {
        let line = self.line(at);
        self.commands.push(Command { line, kind });
        self.commands.len() - 1
    }

    fn statement(&mut self, sql: &Sql) -> Result<(), Problem> {
        let (builder, script) = (&mut *self.builder, self.number);
        let mut uses = Vec::new();
        let template = Template::of(sql, &mut |name| {
            let variable = builder.intern(name);
            uses.push(Use {
                variable,
                script,
                at: sql.at,
            });
            variable
        });
        let extended = builder.mode != QueryMode::Simple;
        let filled = sql.statements.iter().filter(|words| !words.is_empty());
        let parts = u32::try_from(filled.count()).unwrap_or(u32::MAX).max(1);
        self.check(sql, &template, parts)?;
        let builder = &mut *self.builder;
        if extended {
            builder.uses.append(&mut uses);
        }
        builder.statements.push(SqlStatement {
            sql: template.sql(builder.mode),
            parameters: if extended {
                template.variables.len()
            } else {
                0
            },
            parts,
            capture: None,
            script,
            pipelined: self.pipelined,
            conditional: !self.open.is_empty(),
        });
        builder.templates.push(template);
        builder
            .writes
            .push(sql.statements.iter().any(|words| writes(words)));
        let statement = builder.statements.len() - 1;
        self.push(sql.at, Kind::Send(statement));
        self.last = Some(statement);
        Ok(())
    }

    /// Refuses what a server or pgbench would refuse whenever it is sent.
    fn check(&self, sql: &Sql, template: &Template, parts: u32) -> Result<(), Problem> {
        if sql.statements.iter().any(|words| copies_to_client(words)) {
            return Err(self
                .problem(sql.at, "COPY is not supported in pgbench")
                .hint("fill tables when you create them, or use INSERT"));
        }
        let mode = self.builder.mode;
        if mode == QueryMode::Simple {
            return Ok(());
        }
        if parts > 1 {
            let what = format!(
                "statements joined by \\; cannot be sent in {} mode",
                mode.word()
            );
            return Err(self
                .problem(sql.at, &what)
                .hint("use simple mode, or end each of them with a semicolon"));
        }
        if let Some((variable, kind)) = &template.hidden {
            let place = match kind {
                Opaque::Quotes => "quotes",
                Opaque::Comment => "a comment",
            };
            let what = format!(
                "`{variable}` is in {place}, where it cannot be a parameter in {} mode",
                mode.word()
            );
            return Err(self
                .problem(sql.at, &what)
                .detail("pgbench makes a parameter of it, and the server refuses that")
                .hint("use simple mode, or take the colon away"));
        }
        if template.variables.len() > MOST_PARAMETERS {
            let what = format!("statement has too many arguments (maximum is {MOST_PARAMETERS})");
            return Err(self.problem(sql.at, &what));
        }
        Ok(())
    }

    /// Reads a meta command, whose backslash is at this byte.
    fn meta(&mut self, at: usize) -> Result<(), Problem> {
        let Some((name, name_at)) = self.scanner.word() else {
            return Ok(());
        };
        let last = self.last.take();
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "set" => return self.set(at),
            "if" | "elif" => return self.condition(at, &lower),
            _ => {}
        }
        let mut words = Vec::new();
        while let Some(word) = self.scanner.word() {
            words.push(word);
        }
        let most = match lower.as_str() {
            "sleep" => 2,
            "gset" | "aset" => 1,
            _ => 0,
        };
        if META.contains(&lower.as_str())
            && let Some((_, at)) = words.get(most)
        {
            let what = if most == 0 {
                "unexpected argument"
            } else {
                "too many arguments"
            };
            let what = format!("{what} in command \"{lower}\"");
            return Err(self.source.problem(*at, &what, true));
        }
        let prefix = words.first().map_or("", |(word, _)| *word);
        match lower.as_str() {
            "sleep" => self.sleep(at, &words)?,
            "gset" | "aset" => self.capture(at, last, &lower, prefix)?,
            "else" => self.otherwise(at)?,
            "endif" => self.endif(at)?,
            "startpipeline" => self.start_pipeline(at)?,
            "syncpipeline" => {
                self.push(at, Kind::SyncPipeline);
            }
            "endpipeline" => {
                self.pipelined = false;
                self.push(at, Kind::EndPipeline);
            }
            _ => return Err(self.unknown(name_at, &lower, name)),
        }
        Ok(())
    }

    fn unknown(&self, at: usize, lower: &str, name: &str) -> Problem {
        let refused = |what: &str, hint: &str| self.source.problem(at, what, true).hint(hint);
        match lower {
            "shell" | "setshell" => refused(
                &format!("\\{lower} is not supported: it runs programs of the client's machine"),
                "what it computes can be given as a variable: -D name=value",
            ),
            "setrandom" => refused(
                "\\setrandom is not supported: PostgreSQL 10 removed it from pgbench",
                "write \\set name random(low, high)",
            ),
            _ => {
                let problem = self
                    .source
                    .problem(at, &format!("invalid command \"{name}\""), true);
                let hint = match nearest(lower, META) {
                    Some(near) => format!("did you mean \\{near}?"),
                    None => format!("pgbench has \\{}", META.join(" \\")),
                };
                problem.hint(hint)
            }
        }
    }

    fn expression(&mut self, command: &str) -> Result<Expression, Problem> {
        let (builder, script, start) = (&mut *self.builder, self.number, self.scanner.at);
        let mut used = Vec::new();
        let read = parser::expression(self.source.text, start, &mut |name| {
            let variable = builder.intern(name);
            used.push(variable);
            variable
        });
        let (expression, end) = read.map_err(|Mistake { what, at, hint }| {
            let what = format!("{what} in command \"{command}\"");
            let problem = self.source.problem(at, &what, true);
            Problem { hint, ..problem }
        })?;
        let uses = used.into_iter().map(|variable| Use {
            variable,
            script,
            at: start,
        });
        builder.uses.extend(uses);
        self.scanner.at = end;
        Ok(expression)
    }

    fn set(&mut self, at: usize) -> Result<(), Problem> {
        let Some((name, name_at)) = self.scanner.word() else {
            return Err(self.problem(at, "missing argument in command \"set\""));
        };
        if !is_variable_name(name) {
            let what = format!("set: invalid variable name: \"{name}\"");
            return Err(self.source.problem(name_at, &what, true));
        }
        let expression = self.expression("set")?;
        let variable = self.builder.intern(name);
        self.builder.set.push(variable);
        self.push(
            at,
            Kind::Set {
                variable,
                expression,
            },
        );
        Ok(())
    }

    /// `\if` and `\elif`.
    fn condition(&mut self, at: usize, command: &str) -> Result<(), Problem> {
        let condition = self.expression(command)?;
        if command == "elif" {
            self.branch(at, command)?;
        } else {
            self.open.push(Branches {
                at,
                condition: None,
                jumps: Vec::new(),
            });
        }
        let target = self.commands.len();
        let place = self.push(at, Kind::Unless { condition, target });
        if let Some(branches) = self.open.last_mut() {
            branches.condition = Some(place);
        }
        Ok(())
    }

    /// Ends the branch before an `\elif` or `\else`: what came to its end jumps, and the condition that did
    /// not hold goes on here.
    fn branch(&mut self, at: usize, command: &str) -> Result<(), Problem> {
        let condition = self.open.last().map(|branches| branches.condition);
        let condition = match condition {
            None => return Err(self.problem(at, &format!("\\{command} without matching \\if"))),
            Some(None) => return Err(self.problem(at, &format!("\\{command} after \\else"))),
            Some(Some(condition)) => condition,
        };
        let jump = self.push(at, Kind::Jump(0));
        self.aim(condition);
        if let Some(branches) = self.open.last_mut() {
            branches.jumps.push(jump);
            branches.condition = None;
        }
        Ok(())
    }

    fn otherwise(&mut self, at: usize) -> Result<(), Problem> {
        self.branch(at, "else")
    }

    fn endif(&mut self, at: usize) -> Result<(), Problem> {
        let Some(branches) = self.open.pop() else {
            return Err(self.problem(at, "\\endif without matching \\if"));
        };
        for command in branches.jumps.into_iter().chain(branches.condition) {
            self.aim(command);
        }
        Ok(())
    }

    /// Makes a jump or condition go on with the next command.
    fn aim(&mut self, command: usize) {
        let next = self.commands.len();
        let kind = self
            .commands
            .get_mut(command)
            .map(|command| &mut command.kind);
        if let Some(Kind::Jump(target) | Kind::Unless { target, .. }) = kind {
            *target = next;
        }
    }

    fn capture(
        &mut self,
        at: usize,
        last: Option<usize>,
        command: &str,
        prefix: &str,
    ) -> Result<(), Problem> {
        if !(prefix.is_empty() || is_variable_name(prefix)) {
            let what = format!("{command}: invalid variable name: \"{prefix}\"");
            return Err(self.problem(at, &what));
        }
        let statement = last.and_then(|last| self.builder.statements.get_mut(last));
        let Some(statement) = statement.filter(|statement| statement.capture.is_none()) else {
            return Err(self.problem(at, &format!("\\{command} must follow an SQL command")));
        };
        if statement.pipelined && self.open.is_empty() {
            let what = format!("\\{command} is not allowed in pipeline mode");
            return Err(self.problem(at, &what));
        }
        statement.capture = Some(Capture {
            all: command == "aset",
            prefix: prefix.to_owned(),
        });
        Ok(())
    }

    fn start_pipeline(&mut self, at: usize) -> Result<(), Problem> {
        if self.builder.mode == QueryMode::Simple {
            return Err(self
                .problem(
                    at,
                    "cannot use pipeline mode with the simple query protocol",
                )
                .hint("use -M extended or -M prepared"));
        }
        self.pipelined = true;
        self.push(at, Kind::StartPipeline);
        Ok(())
    }

    fn sleep(&mut self, at: usize, words: &[(&str, usize)]) -> Result<(), Problem> {
        let Some(&(amount, amount_at)) = words.first() else {
            return Err(self.problem(at, "missing argument in command \"sleep\""));
        };
        let digits = amount.strip_prefix(['-', '+']).unwrap_or(amount);
        let length = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        let (number, glued) = amount.split_at(amount.len() - digits.len() + length);
        let is_variable = amount.starts_with(':');
        let unit = match words.get(1) {
            Some(unit) => Some(*unit),
            None if is_variable || glued.is_empty() => None,
            None => Some((glued, amount_at + number.len())),
        };
        if !is_variable && (length == 0 || (words.len() > 1 && !glued.is_empty())) {
            let what =
                format!("invalid sleep time, must be an integer ({amount}) in command \"sleep\"");
            return Err(self.source.problem(amount_at, &what, true));
        }
        let unit_us = match unit {
            None => NO_UNIT_US,
            Some((unit, unit_at)) => unit_us(unit).ok_or_else(|| {
                let what = format!(
                    "unrecognized time unit, must be us, ms or s ({unit}) in command \"sleep\""
                );
                self.source.problem(unit_at, &what, true)
            })?,
        };
        let time = if is_variable {
            let variable = self.builder.intern(amount.get(1..).unwrap_or_default());
            self.builder.uses.push(Use {
                variable,
                script: self.number,
                at,
            });
            Time::Variable { variable, unit_us }
        } else {
            let too_long = || {
                self.source
                    .problem(amount_at, "sleep time is too large", true)
            };
            let number: i32 = number.parse().map_err(|_| too_long())?;
            // It is over when it begins.
            let number = u64::try_from(number).unwrap_or(0);
            Time::Fixed(Duration::from_micros(number.saturating_mul(unit_us)))
        };
        self.push(at, Kind::Sleep(time));
        Ok(())
    }
}

fn unit_us(unit: &str) -> Option<u64> {
    let units = [("us", 1), ("ms", 1000), ("s", NO_UNIT_US)];
    let mut units = units.into_iter();
    let (_, us) = units.find(|(word, _)| word.eq_ignore_ascii_case(unit))?;
    Some(us)
}
