//! What a connection does for a pgbench script: what is sent, and what its answers mean to the script.
//!
//! The messages are those of libpq, one for one, also where they could be spared (Describe before each
//! Execute, results as text), so that the server has the same work as from pgbench. As there, everything of
//! a pipeline is sent when it ends.

use crate::error::ServerError;
use crate::kept::KeptResult;
use crate::request::{TooLarge, message, statement_name, zero_ended};
use crate::scan::{Described, Scanner};
use deltabench_model::work::pgbench::QueryMode;
use deltabench_workload::executable::Draws;
use deltabench_workload::pgbench::{Action, Player, Program, ScriptError, SqlStatement};
use std::collections::HashMap;
use std::time::Duration;

/// SQLSTATE of ours: an expression, variable or result of a script that cannot be. No server uses this class.
const SCRIPT_ERROR: &str = "PB001";
/// SQLSTATE of ours: `\gset` got no row, or several.
const NOT_ONE_ROW: &str = "PB002";
/// "Program limit exceeded": more than a message can hold.
const TOO_LARGE: &str = "54000";

/// Result formats (one, for all columns: text), then Describe of the unnamed portal and Execute of it
/// without a limit of rows.
const AFTER_PARAMETERS: &[u8] = b"\0\x01\0\0";
const DESCRIBE_AND_EXECUTE: &[u8] = b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0";
const SYNC: &[u8] = b"S\0\0\0\x04";

/// What an operation needs before it can go on.
#[derive(Debug)]
pub enum Turn {
    /// The answer to what was sent.
    Answer,
    /// Time to pass.
    Rest(Duration),
    Done,
    /// Nothing: it has failed, perhaps inside a transaction that is still open.
    Failed(Box<ServerError>),
}

/// One connection's part in a program.
#[derive(Debug)]
pub struct Performer {
    player: Player,
    mode: QueryMode,
    forms: Vec<Form>,
    out: Vec<u8>,
    pipeline: Option<Pipeline>,
    /// Statements whose Parse is under way because it could not be made before.
    parsing: Vec<usize>,
    /// The statement that was sent last, if a script wants its rows.
    capturing: Option<usize>,
}

/// How a statement is sent.
#[derive(Debug)]
struct Form {
    /// Parse; empty in simple mode.
    parse: Vec<u8>,
    /// Body of Bind before its parameters.
    bind: Vec<u8>,
    parameters: usize,
    /// The statement whose name it has, and so whose plan on the server: its own, or the first with its text.
    first: usize,
    /// Whether the server knows it, by name; of the first with its text.
    prepared: bool,
    /// Whether a script wants its rows.
    captured: bool,
}

/// What has been queued.
#[derive(Debug, Default)]
struct Pipeline {
    executions: u32,
    syncs: u32,
}

impl Performer {
    /// The part of the client with that number.
    pub fn new(program: &Program, client: u32) -> Result<Self, TooLarge> {
        let mut known = HashMap::new();
        let forms = (0..)
            .zip(program.statements())
            .map(|(index, statement)| {
                let first = match program.shared_names {
                    true => *known.entry(statement.sql.as_str()).or_insert(index),
                    false => index,
                };
                Form::new(program.mode, first, statement)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            player: Player::new(program, client),
            mode: program.mode,
            forms,
            out: Vec::with_capacity(1024),
            pipeline: None,
            parsing: Vec::new(),
            capturing: None,
        })
    }

    /// Parse and Sync for a statement, if it is to be prepared and is the first with its text.
    pub fn preparation(&self, statement: usize) -> Option<Vec<u8>> {
        let form = self.forms.get(statement)?;
        let wanted = self.mode == QueryMode::Prepared && form.first == statement;
        wanted.then(|| [form.parse.as_slice(), SYNC].concat())
    }

    /// The server knows a statement now.
    pub fn prepared(&mut self, statement: usize) {
        if let Some(form) = self.forms.get_mut(statement) {
            form.prepared = true;
        }
    }

    /// Draws the next operation.
    #[inline]
    pub fn draw(&mut self, program: &Program, draws: &mut Draws) {
        self.player.begin(program, draws);
    }

    /// The script of the operation.
    #[inline]
    pub fn script(&self) -> usize {
        self.player.script()
    }

    /// Back to where the operation began.
    pub fn retry(&mut self, program: &Program) {
        self.player.retry(program);
    }

    /// What is to be sent.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// The same, given away.
    #[cold]
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// The answer to what was sent has come without an error: the script has its rows.
    #[inline]
    pub fn answered(
        &mut self,
        program: &Program,
        scanner: &Scanner,
    ) -> Result<(), Box<ServerError>> {
        self.parsing.clear();
        match self.capturing.take() {
            None => Ok(()),
            Some(statement) => self.capture(program, statement, scanner),
        }
    }

    /// The operation has failed: what was queued is forgotten. What was being parsed is parsed again.
    #[cold]
    pub fn give_up(&mut self) {
        self.pipeline = None;
        self.capturing = None;
        for statement in self.parsing.drain(..) {
            if let Some(form) = self.forms.get_mut(statement) {
                form.prepared = false;
            }
        }
    }

    /// Goes on with the script until there is something to wait for. With [`Turn::Answer`],
    /// [`Performer::bytes`] are to be sent, and the scanner knows what to expect.
    #[inline]
    pub fn go_on(&mut self, program: &Program, scanner: &mut Scanner) -> Turn {
        loop {
            let action = match self.player.next(program) {
                Ok(action) => action,
                Err(error) => return Turn::Failed(of_script(&error)),
            };
            let turn = match action {
                Action::Send(statement) => self.send(program, statement, scanner),
                Action::Sleep(time) => Some(Turn::Rest(time)),
                Action::Done => Some(Turn::Done),
                Action::StartPipeline => {
                    self.out.clear();
                    self.pipeline = Some(Pipeline::default());
                    None
                }
                Action::SyncPipeline | Action::EndPipeline => self.sync(action, scanner),
            };
            if let Some(turn) = turn {
                return turn;
            }
        }
    }

    /// The first bytes that the operation would send; none if it sends nothing.
    pub fn first_bytes(&mut self, program: &Program) -> &[u8] {
        match self.go_on(program, &mut Scanner::new()) {
            Turn::Answer => &self.out,
            _ => &[],
        }
    }

    #[inline]
    fn send(&mut self, program: &Program, statement: usize, scanner: &mut Scanner) -> Option<Turn> {
        if self.pipeline.is_none() {
            self.out.clear();
        }
        let written = match self.mode {
            QueryMode::Simple => self.write_query(program),
            QueryMode::Extended | QueryMode::Prepared => self.write_execution(program, statement),
        };
        if let Err(error) = written {
            let error = error_of_ours(TOO_LARGE, error.to_string());
            return Some(Turn::Failed(error));
        }
        let captured = self.forms.get(statement).is_some_and(|form| form.captured);
        match &mut self.pipeline {
            Some(pipeline) => {
                pipeline.executions += 1;
                None
            }
            None => {
                let described = match self.mode {
                    QueryMode::Simple => Described::Query,
                    QueryMode::Extended | QueryMode::Prepared => {
                        self.out.extend_from_slice(SYNC);
                        Described::Bound
                    }
                };
                match (captured, described) {
                    (true, _) => {
                        self.capturing = Some(statement);
                        scanner.expect_rows(described);
                    }
                    (false, Described::Query) => scanner.expect_query(),
                    (false, Described::Bound) => scanner.expect_described(1, 1),
                }
                Some(Turn::Answer)
            }
        }
    }

    fn write_query(&mut self, program: &Program) -> Result<(), TooLarge> {
        message(&mut self.out, b'Q', |out| {
            self.player.write_sql(program, out);
            out.push(0);
        })
    }

    #[inline]
    fn write_execution(&mut self, program: &Program, statement: usize) -> Result<(), TooLarge> {
        let Some(form) = self.forms.get(statement) else {
            return Err(TooLarge::Statements);
        };
        let first = form.first;
        let known = self.forms.get(first).is_some_and(|first| first.prepared);
        if !known {
            if self.mode == QueryMode::Prepared {
                // An earlier try may have got as far as to make the name known.
                message(&mut self.out, b'C', |out| {
                    out.push(b'S');
                    out.extend_from_slice(form.name());
                })?;
                self.parsing.push(first);
            }
            self.out.extend_from_slice(&form.parse);
        }
        let mut too_large = false;
        message(&mut self.out, b'B', |out| {
            out.extend_from_slice(&form.bind);
            for n in 0..form.parameters {
                too_large |= !write_parameter(&self.player, program, n, out);
            }
            out.extend_from_slice(AFTER_PARAMETERS);
        })?;
        if too_large {
            return Err(TooLarge::Message);
        }
        self.out.extend_from_slice(DESCRIBE_AND_EXECUTE);
        if !known && self.mode == QueryMode::Prepared {
            self.prepared(first);
        }
        Ok(())
    }

    fn sync(&mut self, action: Action, scanner: &mut Scanner) -> Option<Turn> {
        self.out.extend_from_slice(SYNC);
        let pipeline = self.pipeline.get_or_insert_default();
        pipeline.syncs += 1;
        if action != Action::EndPipeline {
            return None;
        }
        scanner.expect_described(pipeline.executions, pipeline.syncs);
        self.pipeline = None;
        Some(Turn::Answer)
    }

    /// Gives the script the rows it wants.
    fn capture(
        &mut self,
        program: &Program,
        statement: usize,
        scanner: &Scanner,
    ) -> Result<(), Box<ServerError>> {
        let statement = program.statements().get(statement);
        let all = statement.and_then(|statement| Some(statement.capture.as_ref()?.all));
        let parts = statement.map_or(1, |statement| statement.parts);
        let results = scanner.kept().results();
        match all {
            Some(true) => {
                for (part, result) in (0..).zip(results) {
                    if result.rows() > 0 {
                        self.take_row(program, part, result)?;
                    }
                }
            }
            _ => {
                // A second row is an error, whatever is in it.
                if let Some(result) = results.last() {
                    for _ in 0..result.rows().min(2) {
                        self.take_row(program, parts.saturating_sub(1), result)?;
                    }
                }
            }
        }
        let ended = self.player.end_capture(program);
        ended.map_err(|error| of_script(&error))
    }

    fn take_row(
        &mut self,
        program: &Program,
        part: u32,
        result: &KeptResult,
    ) -> Result<(), Box<ServerError>> {
        let Some((columns, values)) = result.fields() else {
            let what = "a row that does not fit its description".to_owned();
            return Err(error_of_ours(SCRIPT_ERROR, what));
        };
        let taken = self.player.capture(program, part, &columns, &values);
        taken.map_err(|error| match error {
            ScriptError::Rows { at, .. } => of_script(&ScriptError::Rows {
                at,
                // The script counts what it is given, which is the last row and perhaps once more.
                rows: u32::try_from(result.rows()).unwrap_or(u32::MAX),
            }),
            error => of_script(&error),
        })
    }
}

impl Form {
    /// A statement that the server knows by the name of the `first` with its text.
    fn new(mode: QueryMode, first: usize, statement: &SqlStatement) -> Result<Self, TooLarge> {
        let mut form = Self {
            parse: Vec::new(),
            bind: Vec::new(),
            parameters: statement.parameters,
            first,
            prepared: false,
            captured: statement.capture.is_some(),
        };
        if mode == QueryMode::Simple {
            return Ok(form);
        }
        let count = u16::try_from(statement.parameters).map_err(|_| TooLarge::Placeholders)?;
        let mut name = Vec::new();
        if mode == QueryMode::Prepared {
            name.extend_from_slice(&statement_name(first)?);
        }
        message(&mut form.parse, b'P', |out| {
            zero_ended(out, &name);
            zero_ended(out, statement.sql.as_bytes());
            // The server finds out the types.
            out.extend_from_slice(&[0, 0]);
        })?;
        // The unnamed portal; no formats: all parameters are text.
        form.bind.push(0);
        zero_ended(&mut form.bind, &name);
        form.bind.extend_from_slice(&[0, 0]);
        form.bind.extend_from_slice(&count.to_be_bytes());
        Ok(form)
    }

    /// Its name with the final zero.
    fn name(&self) -> &[u8] {
        // Before it is the portal's final zero, behind it the formats and the number of parameters.
        let end = self.bind.len().saturating_sub(4);
        self.bind.get(1..end).unwrap_or(b"\0")
    }
}

/// Appends a parameter with its length; false if it is too large for a message.
#[inline]
fn write_parameter(player: &Player, program: &Program, n: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    if !player.write_parameter(program, n, out) {
        out.truncate(start + 4);
        return true;
    }
    let length = i32::try_from(out.len() - start - 4);
    match (length, out.get_mut(start..start + 4)) {
        (Ok(length), Some(place)) => {
            place.copy_from_slice(&length.to_be_bytes());
            true
        }
        _ => false,
    }
}

#[cold]
fn error_of_ours(sqlstate: &str, message: String) -> Box<ServerError> {
    Box::new(ServerError {
        severity: "ERROR".to_owned(),
        sqlstate: sqlstate.to_owned(),
        message,
        detail: None,
        hint: None,
        routine: None,
    })
}

#[cold]
fn of_script(error: &ScriptError) -> Box<ServerError> {
    let sqlstate = match error {
        ScriptError::Script { .. } => SCRIPT_ERROR,
        ScriptError::Rows { .. } => NOT_ONE_ROW,
    };
    error_of_ours(sqlstate, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::plan::WorkloadSource;
    use deltabench_model::work::pgbench::{PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables};

    fn program(mode: QueryMode, text: &str) -> Program {
        let setup = PgbenchSetup {
            tables: PgbenchTables::default(),
            mixes: Vec::new(),
            mode,
            variables: Vec::new(),
            max_tries: 1,
            shared_names: false,
            reconnects: false,
            latency_limit_ms: None,
            writes: false,
        };
        let source = WorkloadSource {
            file: "script.sql".to_owned(),
            text: text.to_owned(),
        };
        let mix = PgbenchMix {
            name: "mix".to_owned(),
            scripts: vec![PgbenchScript { source, weight: 1 }],
        };
        Program::parse(&setup, &mix).unwrap()
    }

    /// What a client sends first, once all is prepared.
    fn sent(mode: QueryMode, text: &str) -> Vec<u8> {
        let program = program(mode, text);
        let mut performer = Performer::new(&program, 0).unwrap();
        for statement in 0..program.statements().len() {
            performer.prepared(statement);
        }
        performer.draw(&program, &mut Draws::new(1, 0));
        performer.first_bytes(&program).to_vec()
    }

    #[test]
    fn statements_of_one_text_share_a_name_only_if_the_program_says_so() {
        let script = "\\set a 1\n\\set b 2\nSELECT :a;\nSELECT :b;\nSELECT 'x', :a;\n";
        let mut program = program(QueryMode::Prepared, script);
        let prepared = |program: &Program| {
            let performer = Performer::new(program, 0).unwrap();
            let all = (0..3).map(|statement| performer.preparation(statement).is_some());
            let binds: Vec<Vec<u8>> = performer
                .forms
                .iter()
                .map(|form| form.bind.clone())
                .collect();
            (
                all.collect::<Vec<_>>(),
                binds[0] == binds[1],
                binds[0] == binds[2],
            )
        };
        assert_eq!(prepared(&program), (vec![true; 3], false, false));
        program.shared_names = true;
        assert_eq!(prepared(&program), (vec![true, false, true], true, false));
        // The second copy is executed without Parse once the first is known, and parsed if it is not.
        let mut performer = Performer::new(&program, 0).unwrap();
        performer.draw(&program, &mut Draws::new(1, 0));
        assert!(
            performer
                .first_bytes(&program)
                .windows(6)
                .any(|part| part == b"SELECT")
        );
        performer.give_up();
        assert!(!performer.forms[0].prepared);
        performer.prepared(0);
        performer.draw(&program, &mut Draws::new(1, 0));
        assert!(
            !performer
                .first_bytes(&program)
                .windows(6)
                .any(|part| part == b"SELECT")
        );
    }

    /// As strace shows it of pgbench 15, but that it calls the statements P_0 and P_1.
    #[test]
    fn what_is_sent_is_what_pgbench_sends() {
        let script = "\\set id 6549\nSELECT c FROM sbtest1 WHERE id=:id;\n";
        assert_eq!(
            sent(QueryMode::Prepared, script),
            [
                &b"B\0\0\0\x1a\x000000\0\0\0\0\x01\0\0\0\x046549\0\x01\0\0"[..],
                b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
            ]
            .concat()
        );
        let script = "\\set id 1032\nSELECT c FROM sbtest1 WHERE id=:id;\n";
        assert_eq!(
            sent(QueryMode::Simple, script),
            b"Q\0\0\0)SELECT c FROM sbtest1 WHERE id=1032;\0"
        );
        let script = "\\set x 1\n\\startpipeline\nselect :x;\nselect 2;\n\\endpipeline\n";
        assert_eq!(
            sent(QueryMode::Prepared, script),
            [
                &b"B\0\0\0\x17\x000000\0\0\0\0\x01\0\0\0\x011\0\x01\0\0"[..],
                b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0B\0\0\0\x12\x000001\0\0\0\0\0\0\x01\0\0",
                b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
            ]
            .concat()
        );
    }

    #[test]
    fn an_extended_statement_is_parsed_each_time_without_a_name() {
        let script = "\\set id 9648\nSELECT c FROM sbtest1 WHERE id=:id;\n";
        let program = program(QueryMode::Extended, script);
        let mut performer = Performer::new(&program, 0).unwrap();
        for _ in 0..2 {
            performer.draw(&program, &mut Draws::new(1, 0));
            let expected = [
                &b"P\0\0\0*\0SELECT c FROM sbtest1 WHERE id=$1;\0\0\0"[..],
                b"B\0\0\0\x16\0\0\0\0\0\x01\0\0\0\x049648\0\x01\0\0",
                b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04",
            ];
            assert_eq!(performer.first_bytes(&program), expected.concat());
        }
    }

    #[test]
    fn a_variable_that_was_never_set_is_a_null_parameter() {
        let bytes = sent(
            QueryMode::Prepared,
            "\\if false\n\\set x 1\n\\endif\nselect :x;\n",
        );
        assert_eq!(bytes[11..23], *b"\0\0\0\x01\xff\xff\xff\xff\0\x01\0\0");
    }

    #[test]
    fn a_statement_that_was_being_parsed_when_something_failed_is_parsed_again() {
        let program = program(QueryMode::Prepared, "select 1;\n");
        let mut performer = Performer::new(&program, 0).unwrap();
        let mut sends_parse = |failed: bool| {
            performer.draw(&program, &mut Draws::new(1, 0));
            let parse = performer
                .first_bytes(&program)
                .starts_with(b"C\0\0\0\x0aS0000\0P");
            if failed {
                performer.give_up();
            } else {
                performer.answered(&program, &Scanner::new()).unwrap();
            }
            parse
        };
        assert_eq!(
            [true, false, false].map(&mut sends_parse),
            [true, true, false]
        );
    }
}
