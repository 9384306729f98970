//! One client's way through a program.

use super::SqlStatement;
use super::expression::Scope;
use super::program::Program;
use super::script::{Kind, Time, is_variable_name};
use super::sql::Piece;
use super::value::{Fault, Value};
use super::variable::Variable;
use crate::executable::Draws;
use crate::seed::{Random, uniform};
use rand::SeedableRng;
use std::time::Duration;

/// What the driver has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Send this statement, an index into [`Program::statements`].
    Send(usize),
    /// Rest this long; it counts as time of the transaction.
    Sleep(Duration),
    /// Queue what is sent from here on.
    StartPipeline,
    /// Queue a sync, and go on queueing.
    SyncPipeline,
    /// Send a sync and read all results.
    EndPipeline,
    Done,
}

/// Why a transaction cannot go on, other than for an error of the server.
///
/// pgbench gives up the client. The driver should fail the operation, leave the pipeline and the transaction
/// that are open, and go on with the next operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// An expression without a value, a variable that cannot be, a pipeline out of place.
    #[error("{at}: {what}")]
    Script {
        /// File and line.
        at: String,
        /// What is wrong, in pgbench's words.
        what: String,
    },
    /// A `\gset` whose statement has no row, or more than one.
    #[error("{at}: \\gset expected one row, got {rows}")]
    Rows {
        /// File and line of the statement.
        at: String,
        /// How many rows there were; 2 if there were more than one.
        rows: u32,
    },
}

/// One client's state: variables, place in the script, random numbers. No I/O.
///
/// Variables last from one transaction to the next, as in pgbench.
#[derive(Debug, Clone)]
pub struct Player {
    script: usize,
    /// The next command of the script.
    command: usize,
    /// The statement that was last to be sent.
    statement: usize,
    /// Rows that a `\gset` has taken.
    rows: u32,
    in_pipeline: bool,
    random: Random,
    /// [`Player::random`] when the transaction began.
    start: Random,
    variables: Vec<Variable>,
    /// What the variables that the script sets held when the transaction began.
    saved: Vec<Variable>,
}

impl Player {
    /// A client, by its number on its server from 0; no transaction has begun.
    pub fn new(program: &Program, client: u32) -> Self {
        let random = Random::seed_from_u64(0);
        let most = program.scripts.iter().map(|script| script.assigned.len());
        let mut variables = program.variables.clone();
        let own = program.client_id.and_then(|place| variables.get_mut(place));
        if let Some(own) = own {
            own.set(Value::Integer(i64::from(client)));
        }
        Self {
            script: 0,
            // At the end of every script.
            command: usize::MAX,
            statement: 0,
            rows: 0,
            in_pipeline: false,
            start: random.clone(),
            random,
            variables,
            saved: vec![Variable::UNSET; most.max().unwrap_or(0)],
        }
    }

    /// Begins the next transaction of these draws: which script it is and all its random numbers are a
    /// function of the seed and the number of the operation.
    #[inline]
    pub fn begin(&mut self, program: &Program, draws: &mut Draws) {
        (self.random, _) = draws.next();
        let script = if program.scripts.len() > 1 {
            draw_script(program, &mut self.random)
        } else {
            0
        };
        self.start_script(program, script);
    }

    /// Begins a transaction of this script, which is not drawn.
    pub(crate) fn begin_script(&mut self, program: &Program, script: usize, draws: &mut Draws) {
        (self.random, _) = draws.next();
        self.start_script(program, script);
    }

    #[inline]
    fn start_script(&mut self, program: &Program, script: usize) {
        self.script = script;
        self.start.clone_from(&self.random);
        self.command = 0;
        self.rows = 0;
        self.in_pipeline = false;
        if let Some(script) = program.scripts.get(self.script) {
            for (saved, &variable) in self.saved.iter_mut().zip(&script.assigned) {
                if let Some(variable) = self.variables.get(variable) {
                    saved.copy(variable);
                }
            }
        }
    }

    /// Back to the state at [`Player::begin`], for another try: same script, variables and random numbers.
    pub fn retry(&mut self, program: &Program) {
        self.random.clone_from(&self.start);
        self.command = 0;
        self.rows = 0;
        self.in_pipeline = false;
        if let Some(script) = program.scripts.get(self.script) {
            for (saved, &variable) in self.saved.iter().zip(&script.assigned) {
                if let Some(variable) = self.variables.get_mut(variable) {
                    variable.copy(saved);
                }
            }
        }
    }

    /// Which script was drawn, of [`Program::scripts`].
    pub fn script(&self) -> usize {
        self.script
    }

    /// Goes on to the next thing that the driver has to do. Meta commands in between are carried out.
    ///
    /// Errors: see [`ScriptError`]; the transaction cannot go on.
    #[inline]
    pub fn next(&mut self, program: &Program) -> Result<Action, ScriptError> {
        let Some(script) = program.scripts.get(self.script) else {
            return Ok(Action::Done);
        };
        while let Some(command) = script.commands.get(self.command) {
            let place = self.command;
            self.command += 1;
            match &command.kind {
                Kind::Set {
                    variable,
                    expression,
                } => {
                    let scope = Known(&self.variables, program);
                    let value = expression.evaluate(&scope, &mut self.random);
                    let value = value.map_err(|what| self.error(program, place, what))?;
                    if let Some(variable) = self.variables.get_mut(*variable) {
                        variable.set(value);
                    }
                }
                Kind::Unless { condition, target } => {
                    let scope = Known(&self.variables, program);
                    let value = condition.evaluate(&scope, &mut self.random);
                    let value = value.map_err(|what| self.error(program, place, what))?;
                    if !value.truth() {
                        self.command = *target;
                    }
                }
                Kind::Jump(target) => self.command = *target,
                Kind::Send(statement) => return self.send(program, place, *statement),
                Kind::Sleep(time) => {
                    let time = self.sleep(program, time);
                    return time.map_err(|what| self.error(program, place, what));
                }
                Kind::StartPipeline | Kind::SyncPipeline | Kind::EndPipeline => {
                    let action = self.pipeline(&command.kind);
                    return action.map_err(|what| self.error(program, place, what.to_owned()));
                }
            }
        }
        if self.in_pipeline {
            let place = script.commands.len().saturating_sub(1);
            let what = "end of script reached with pipeline open".to_owned();
            return Err(self.error(program, place, what));
        }
        Ok(Action::Done)
    }

    #[inline]
    fn send(
        &mut self,
        program: &Program,
        place: usize,
        statement: usize,
    ) -> Result<Action, ScriptError> {
        self.statement = statement;
        self.rows = 0;
        if self.in_pipeline {
            let sent = program.statements.get(statement);
            if let Some(capture) = sent.and_then(|sent| sent.capture.as_ref()) {
                let command = if capture.all { "aset" } else { "gset" };
                let what = format!("\\{command} is not allowed in pipeline mode");
                return Err(self.error(program, place, what));
            }
        }
        Ok(Action::Send(statement))
    }

    fn sleep(&self, program: &Program, time: &Time) -> Result<Action, Fault> {
        match time {
            Time::Fixed(time) => Ok(Action::Sleep(*time)),
            Time::Variable { variable, unit_us } => {
                let name = program.name(*variable);
                let mut text = Vec::new();
                let set = self.variables.get(*variable);
                if !set.is_some_and(|set| set.write(&mut text)) {
                    return Err(format!("sleep: undefined variable \"{name}\""));
                }
                let text = String::from_utf8_lossy(&text);
                let number = leading_integer(&text).ok_or_else(|| {
                    format!("sleep: invalid sleep time \"{text}\" for variable \"{name}\"")
                })?;
                // It is over when it begins.
                let number = u64::try_from(number).unwrap_or(0);
                Ok(Action::Sleep(Duration::from_micros(
                    number.saturating_mul(*unit_us),
                )))
            }
        }
    }

    fn pipeline(&mut self, kind: &Kind) -> Result<Action, &'static str> {
        let starts = *kind == Kind::StartPipeline;
        match (starts, self.in_pipeline) {
            (true, true) => return Err("already in pipeline mode"),
            (false, false) => return Err("not in pipeline mode"),
            _ => {}
        }
        self.in_pipeline = *kind != Kind::EndPipeline;
        Ok(match kind {
            Kind::StartPipeline => Action::StartPipeline,
            Kind::SyncPipeline => Action::SyncPipeline,
            _ => Action::EndPipeline,
        })
    }

    /// File and line of a command of the script.
    fn at(&self, program: &Program, command: usize) -> String {
        let Some(script) = program.scripts.get(self.script) else {
            return String::new();
        };
        let line = script
            .commands
            .get(command)
            .map_or(0, |command| command.line);
        format!("{}:{line}", script.name)
    }

    #[cold]
    fn error(&self, program: &Program, command: usize, what: Fault) -> ScriptError {
        ScriptError::Script {
            at: self.at(program, command),
            what,
        }
    }

    /// Appends the text of parameter `n` (from 0) of the statement that was last to be sent; false if it is
    /// null, because its variable was never set. A variable that is null is the text `NULL`, as in pgbench.
    #[inline]
    pub fn write_parameter(&self, program: &Program, n: usize, out: &mut Vec<u8>) -> bool {
        let variable = program
            .templates
            .get(self.statement)
            .and_then(|template| self.variables.get(*template.variables.get(n)?));
        variable.is_some_and(|variable| variable.write(out))
    }

    /// Appends the statement that was last to be sent with values in it, as simple mode sends it. A variable
    /// that was never set stays as it is written.
    #[inline]
    pub fn write_sql(&self, program: &Program, out: &mut Vec<u8>) {
        let Some(template) = program.templates.get(self.statement) else {
            return;
        };
        for piece in &template.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable { variable, written } => {
                    let variable = self.variables.get(*variable);
                    if !variable.is_some_and(|variable| variable.write(out)) {
                        out.extend_from_slice(written.as_bytes());
                    }
                }
            }
        }
    }

    /// Takes a row of the statement that was last to be sent, if it has a [`super::Capture`]: of part `part`
    /// (from 0), the names of columns and their texts. Rows of parts before the last are left by a `\gset`.
    ///
    /// Errors: the second row of a `\gset`; a column's name that cannot be a variable's.
    pub fn capture(
        &mut self,
        program: &Program,
        part: u32,
        columns: &[&[u8]],
        values: &[Option<&[u8]>],
    ) -> Result<(), ScriptError> {
        let Some((statement, capture)) = self.captured(program) else {
            return Ok(());
        };
        if !capture.all {
            if part.saturating_add(1) < statement.parts {
                return Ok(());
            }
            self.rows += 1;
            if self.rows > 1 {
                return Err(self.rows_error(program));
            }
        }
        for (column, value) in columns.iter().zip(values) {
            let named = program.names.iter().position(|name| {
                name.as_bytes().strip_prefix(capture.prefix.as_bytes()) == Some(*column)
            });
            match named.and_then(|named| self.variables.get_mut(named)) {
                // A null becomes an empty text, as in pgbench.
                Some(variable) => variable.set_text(value.unwrap_or_default()),
                // Nobody uses it; pgbench minds all the same if it cannot be a variable.
                None => self.check_name(program, &capture.prefix, column)?,
            }
        }
        Ok(())
    }

    /// Says that all rows of the statement that was last to be sent have been taken.
    ///
    /// Errors: a `\gset` without a row.
    pub fn end_capture(&mut self, program: &Program) -> Result<(), ScriptError> {
        match self.captured(program) {
            Some((_, capture)) if !capture.all && self.rows == 0 => Err(self.rows_error(program)),
            _ => Ok(()),
        }
    }

    /// What a variable holds.
    #[cfg(test)]
    pub(crate) fn value(&self, program: &Program, name: &str) -> Result<Value, Fault> {
        let place = program.names.iter().position(|known| known == name);
        Known(&self.variables, program).value(place.unwrap_or(usize::MAX))
    }

    fn captured<'a>(&self, program: &'a Program) -> Option<(&'a SqlStatement, &'a super::Capture)> {
        let statement = program.statements.get(self.statement)?;
        Some((statement, statement.capture.as_ref()?))
    }

    #[cold]
    fn rows_error(&self, program: &Program) -> ScriptError {
        ScriptError::Rows {
            at: self.at(program, self.command.saturating_sub(1)),
            rows: self.rows,
        }
    }

    fn check_name(
        &self,
        program: &Program,
        prefix: &str,
        column: &[u8],
    ) -> Result<(), ScriptError> {
        let name = format!("{prefix}{}", String::from_utf8_lossy(column));
        if is_variable_name(&name) {
            return Ok(());
        }
        let what = format!("invalid variable name: \"{name}\"");
        Err(self.error(program, self.command.saturating_sub(1), what))
    }
}

/// Draws a script by weight.
fn draw_script(program: &Program, random: &mut Random) -> usize {
    let weights = || {
        program
            .scripts
            .iter()
            .map(|script| i64::from(script.weight))
    };
    let mut place = uniform(random, 0, weights().sum::<i64>() - 1);
    for (script, weight) in weights().enumerate() {
        place -= weight;
        if place < 0 {
            return script;
        }
    }
    0
}

/// The integer that a text begins with, as C's `atoi` reads it; none if it does not begin with one.
fn leading_integer(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let length = digits
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(digits.len());
    text.get(..text.len() - digits.len() + length)?.parse().ok()
}

/// The variables of a client, for expressions.
struct Known<'a>(&'a [Variable], &'a Program);

impl Scope for Known<'_> {
    #[inline]
    fn value(&self, variable: usize) -> Result<Value, Fault> {
        match self.0.get(variable) {
            Some(known) => known.value(self.1.name(variable)),
            None => Err("undefined variable".to_owned()),
        }
    }
}
