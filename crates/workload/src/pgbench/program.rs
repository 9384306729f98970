//! All scripts of a mix, read and made ready.

use super::scan::Source;
use super::script::{Builder, Command, Kind, is_variable_name};
use super::sql::{SqlStatement, Template};
use super::value::Value;
use super::variable::Variable;
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::units::to_u64;
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchScript, PgbenchSetup, QueryMode};

/// All scripts of a mix, parsed for a mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The scripts, in the order of the mix.
    pub scripts: Vec<ProgramScript>,
    /// How statements are sent.
    pub mode: QueryMode,
    /// Most tries of a transaction that failed for serialization or a deadlock; 1: none is tried again; 0:
    /// any number, until the latency limit.
    pub max_tries: u32,
    /// Whether statements with the same text share a name on a server.
    pub shared_names: bool,
    /// Whether each transaction has a connection of its own.
    pub reconnects: bool,
    /// Transactions that take longer count as late, nanoseconds.
    pub latency_limit_ns: Option<u64>,
    pub(crate) statements: Vec<SqlStatement>,
    pub(crate) templates: Vec<Template>,
    /// What variables are called, by number.
    pub(crate) names: Vec<String>,
    /// What they hold at first.
    pub(crate) variables: Vec<Variable>,
    /// The variable that says which client it is, if a script uses it.
    pub(crate) client_id: Option<usize>,
    writes: bool,
}

/// One script of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramScript {
    /// What its file is called.
    pub name: String,
    /// How often it is drawn, relative to the others.
    pub weight: u32,
    pub(crate) commands: Vec<Command>,
    /// The variables that it may set.
    pub(crate) assigned: Vec<usize>,
}

/// Scripts of one mix, as in pgbench.
const MOST_SCRIPTS: usize = 128;
/// Largest weight of a script, as in pgbench.
const MOST_WEIGHT: u32 = i32::MAX.cast_unsigned();
/// What `default_seed` and `random_seed` are unless the user says: always the same, so that every run and
/// every server hashes and permutes alike. pgbench draws them.
const SEED: i64 = 5_432;

impl Program {
    /// Parses the scripts of a mix.
    ///
    /// Errors: whatever is wrong with a script, with file and line; variables or weights that cannot be.
    pub fn parse(setup: &PgbenchSetup, mix: &PgbenchMix) -> Result<Self, Problem> {
        check(setup, mix)?;
        let mut builder = Builder {
            mode: setup.mode,
            ..Builder::default()
        };
        let sources: Vec<Source<'_>> = mix.scripts.iter().map(source).collect();
        let mut commands = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            commands.push(builder.script(number, *source)?);
        }
        let own: Vec<usize> = setup
            .variables
            .iter()
            .map(|(name, _)| builder.intern(name))
            .collect();
        let client_id = builder.names.iter().position(|name| name == "client_id");
        let client_id = client_id.filter(|place| !own.contains(place));
        let mut program = Self {
            scripts: Vec::new(),
            mode: setup.mode,
            max_tries: setup.max_tries,
            shared_names: setup.shared_names,
            reconnects: setup.reconnects,
            latency_limit_ns: setup.latency_limit_ms.map(|limit| to_u64(limit * 1e6)),
            variables: variables(setup, &builder.names, &own),
            names: std::mem::take(&mut builder.names),
            statements: std::mem::take(&mut builder.statements),
            templates: std::mem::take(&mut builder.templates),
            client_id,
            writes: setup.writes || builder.writes.contains(&true),
        };
        program.check_uses(&builder, &sources)?;
        for (commands, script) in commands.into_iter().zip(&mix.scripts) {
            let commands = program.folded(&builder, commands);
            program.scripts.push(ProgramScript {
                name: script.source.file.clone(),
                weight: script.weight,
                assigned: program.assigned(&commands),
                commands,
            });
        }
        Ok(program)
    }

    /// SQL commands of all scripts, numbered across them.
    pub fn statements(&self) -> &[SqlStatement] {
        &self.statements
    }

    /// Whether a statement changes data, as far as its words tell, or the user says that scripts do.
    ///
    /// Shape: what a function does is not seen.
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// SQL statements of one transaction, the mean over the scripts by weight; `BEGIN` and `END` count.
    ///
    /// Shape: all branches of an `\if` count, because which are taken is not known before.
    pub fn mean_statements(&self) -> f64 {
        let weight = |script: usize| {
            let script = self.scripts.get(script);
            script.map_or(0.0, |script| f64::from(script.weight))
        };
        let counts = self.statements.iter();
        let sum: f64 = counts
            .map(|statement| f64::from(statement.parts) * weight(statement.script))
            .sum();
        sum / (0..self.scripts.len()).map(weight).sum::<f64>().max(1.0)
    }

    /// What a variable is called.
    #[inline]
    pub(crate) fn name(&self, variable: usize) -> &str {
        self.names.get(variable).map_or("", String::as_str)
    }

    /// Whether a `\gset` or `\aset` may set a variable of that name: its columns are not known before.
    fn may_be_captured(&self, name: &str) -> bool {
        let captures = self
            .statements
            .iter()
            .filter_map(|statement| statement.capture.as_ref());
        let mut captures = captures.filter(|_| is_variable_name(name));
        captures.any(|capture| name.starts_with(&capture.prefix))
    }

    /// Refuses a variable that nothing can set.
    fn check_uses(&self, builder: &Builder, sources: &[Source<'_>]) -> Result<(), Problem> {
        let is_set = |variable: usize| {
            builder.set.contains(&variable)
                || self.client_id == Some(variable)
                || self.variables.get(variable).is_some_and(Variable::is_set)
        };
        for used in &builder.uses {
            let name = self.name(used.variable);
            if is_set(used.variable) || self.may_be_captured(name) {
                continue;
            }
            let Some(source) = sources.get(used.script) else {
                continue;
            };
            let problem = source.problem(used.at, &format!("undefined variable \"{name}\""), false);
            let known = (0..self.names.len()).filter(|&variable| is_set(variable));
            let near = nearest(name, known.map(|variable| self.name(variable)));
            return Err(match near {
                Some(near) => problem.hint(format!("did you mean :{near}?")),
                None => problem.hint(format!("set it before, or give it: -D {name}=value")),
            });
        }
        Ok(())
    }

    /// Commands with what is always the same computed.
    fn folded(&self, builder: &Builder, commands: Vec<Command>) -> Vec<Command> {
        let known = |variable: usize| {
            let changes = builder.set.contains(&variable)
                || self.client_id == Some(variable)
                || self.may_be_captured(self.name(variable));
            let constant = self.variables.get(variable).filter(|_| !changes)?;
            constant.value("").ok()
        };
        let fold = |command: Command| Command {
            kind: match command.kind {
                Kind::Set {
                    variable,
                    expression,
                } => Kind::Set {
                    variable,
                    expression: expression.fold(&known),
                },
                Kind::Unless { condition, target } => Kind::Unless {
                    condition: condition.fold(&known),
                    target,
                },
                other => other,
            },
            ..command
        };
        commands.into_iter().map(fold).collect()
    }

    /// The variables that a script may set.
    fn assigned(&self, commands: &[Command]) -> Vec<usize> {
        let mut captures = Vec::new();
        let mut assigned = Vec::new();
        for command in commands {
            match &command.kind {
                Kind::Set { variable, .. } => assigned.push(*variable),
                Kind::Send(statement) => {
                    let statement = self.statements.get(*statement);
                    captures.extend(statement.and_then(|statement| statement.capture.as_ref()));
                }
                _ => {}
            }
        }
        for (place, name) in self.names.iter().enumerate() {
            if captures
                .iter()
                .any(|capture| name.starts_with(&capture.prefix))
            {
                assigned.push(place);
            }
        }
        assigned.sort_unstable();
        assigned.dedup();
        assigned
    }
}

fn source(script: &PgbenchScript) -> Source<'_> {
    Source {
        file: &script.source.file,
        text: &script.source.text,
    }
}

/// Refuses what is not about one script.
fn check(setup: &PgbenchSetup, mix: &PgbenchMix) -> Result<(), Problem> {
    if mix.scripts.len() > MOST_SCRIPTS {
        let what = format!("at most {MOST_SCRIPTS} SQL scripts are allowed");
        return Err(Problem::new(what).detail(format!("{} has {}", mix.name, mix.scripts.len())));
    }
    for script in &mix.scripts {
        if script.weight > MOST_WEIGHT {
            return Err(Problem::new(format!(
                "weight specification out of range (0 .. {MOST_WEIGHT}): {} of {}",
                script.weight, script.source.file
            )));
        }
    }
    if mix.scripts.iter().all(|script| script.weight == 0) {
        return Err(Problem::new(format!(
            "total script weight of {} must not be zero",
            mix.name
        )));
    }
    if setup.max_tries == 0 && setup.latency_limit_ms.is_none() {
        let what = "an unlimited number of transaction tries needs a latency limit";
        return Err(Problem::new(what).hint("add --latency-limit, or say how many --max-tries"));
    }
    for (name, value) in &setup.variables {
        if !is_variable_name(name) || value.is_empty() {
            let what = format!("invalid variable definition: \"{name}={value}\"");
            return Err(Problem::new(what).hint("write -D name=value"));
        }
    }
    Ok(())
}

/// What variables hold at first: the user's, else pgbench's own. `own` are the numbers of the user's.
fn variables(setup: &PgbenchSetup, names: &[String], own: &[usize]) -> Vec<Variable> {
    let automatic = |name: &str| match name {
        // Without pgbench's tables it is pgbench's default.
        "scale" => Some(i64::from(setup.tables.scale.max(1))),
        "default_seed" | "random_seed" => Some(SEED),
        _ => None,
    };
    let first = |name: &String| {
        let mut variable = Variable::UNSET;
        if let Some(value) = automatic(name) {
            variable.set(Value::Integer(value));
        }
        variable
    };
    let mut variables: Vec<Variable> = names.iter().map(first).collect();
    for (&place, (name, text)) in own.iter().zip(&setup.variables) {
        if let Some(variable) = variables.get_mut(place) {
            *variable = Variable::of_text(name, text);
        }
    }
    variables
}
