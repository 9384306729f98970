//! Named configurations: which there are, what each sets, and what becomes of it on a given server.

mod adaptation;
mod catalogue;
mod enquiry;
mod entry;
mod history;
mod libraries;
mod reading;
mod translation;
mod values;

pub use adaptation::{Adaptation, adapt, is_auto, tell};
pub use catalogue::{Catalogue, check_known};
pub use entry::{Entry, Kind};
pub use history::changes;
pub(crate) use history::period;
pub(crate) use reading::setting_of;
pub use translation::{Translation, translations};
pub use values::check_values;

use crate::check_settings;
use crate::failure::failed;
use deltabench_model::problem::{Problem, nearest};
use reading::Statement;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Files of `configs/`, by name.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../configs/", $name, ".conf")))),*]
    };
}

const BUILTIN: &[(&str, &str)] = files!(
    "cx-common",
    "cx10-common",
    "cx10a",
    "cx10a_c24r64",
    "cx10a_c32r128",
    "cx10a_c8r32",
    "cx10b",
    "cx10b_c24r64",
    "cx10b_c32r128",
    "cx10b_c8r32",
    "cx10c",
    "cx10c_c24r64",
    "cx10c_c32r128",
    "cx10c_c8r32",
    "cx10d",
    "cx10d_c24r64",
    "cx10d_c32r128",
    "cx10d_c8r32",
    "cx7",
    "needed",
    "planetscale",
    "steady",
    "vondra",
    "vondra_128mb",
);

/// Files that are only there to be included.
const PARTS: &[&str] = &["cx-common", "cx10-common", "needed"];

/// A configuration of an experiment's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnConfiguration {
    /// Configurations that it takes in, in order; later ones win.
    pub include: Vec<String>,
    /// Settings over them.
    pub set: Vec<(String, String)>,
    /// Settings of the included ones that are left at the server's default.
    pub unset: Vec<String>,
}

/// All configurations that can be named.
#[derive(Debug, Clone)]
pub struct Configurations {
    known: BTreeMap<String, Definition>,
}

#[derive(Debug, Clone)]
struct Definition {
    title: Option<String>,
    statements: Vec<Statement>,
}

/// A setting with the configuration that it came from.
struct Line {
    name: String,
    value: String,
    from: String,
    /// What it won over: value and configuration.
    over: Option<(String, String)>,
}

impl Configurations {
    /// The files of `configs/`.
    ///
    /// Errors: none but a mistake in one of the files.
    pub fn builtin() -> Result<Self, Problem> {
        let mut known = BTreeMap::new();
        for (name, text) in BUILTIN {
            let definition = Definition::read(&format!("configs/{name}.conf"), text)?;
            known.insert((*name).to_owned(), definition);
        }
        Ok(Self { known })
    }

    /// These and an experiment's own, by name.
    ///
    /// Errors: a name that is taken or does not fit, an included one that there is not, one that includes
    /// itself, a setting that cannot be chosen, one to unset that nothing sets.
    pub fn with(mut self, own: &[(String, OwnConfiguration)]) -> Result<Self, Problem> {
        for (name, definition) in own {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || !name.chars().all(fits) {
                return Err(Problem::new(format!(
                    "`{name}` is not a valid name of a configuration"
                ))
                .hint("use letters, digits, - and _"));
            }
            let statements = definition.statements(name)?;
            self.add(
                name,
                Definition {
                    title: None,
                    statements,
                },
            )?;
        }
        for (name, _) in own {
            self.resolve(name)?;
        }
        Ok(self)
    }

    /// These and a file of the user's in the form of `postgresql.conf`, under `name`. Its `include` takes in
    /// what is known already.
    ///
    /// Errors: as [`Configurations::with`]; a line that is no setting.
    pub fn with_text(mut self, name: &str, text: &str) -> Result<Self, Problem> {
        let definition = Definition::read(name, text)?;
        self.add(name, definition)?;
        self.resolve(name)?;
        Ok(self)
    }

    /// As [`Configurations::with_text`], read from a file.
    ///
    /// Errors: as there; the file cannot be read.
    pub fn with_file(self, name: &str, path: &Path) -> Result<Self, Problem> {
        let text = std::fs::read_to_string(path).map_err(|error| failed("read", path, &error))?;
        self.with_text(name, &text)
    }

    /// Whether a name is that of a file to read rather than of something known.
    pub fn is_file(name: &str) -> bool {
        Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "conf")
    }

    fn add(&mut self, name: &str, definition: Definition) -> Result<(), Problem> {
        if self.known.contains_key(name) {
            return Err(
                Problem::new(format!("a configuration `{name}` already exists"))
                    .hint("give it another name; `include` uses the existing one"),
            );
        }
        self.known.insert(name.to_owned(), definition);
        Ok(())
    }

    /// Names that can be chosen, sorted.
    pub fn names(&self) -> Vec<&str> {
        let names = self.known.keys().map(String::as_str);
        names.filter(|name| !PARTS.contains(name)).collect()
    }

    /// What a configuration is, in one line, if its file says so.
    pub fn title(&self, name: &str) -> Option<&str> {
        self.known.get(name)?.title.as_deref()
    }

    /// What a configuration sets, with all it includes, each setting once, names in lower case.
    ///
    /// Errors: there is none of that name, with the nearest.
    pub fn get(&self, name: &str) -> Result<Vec<(String, String)>, Problem> {
        let lines = self.resolve(name)?;
        Ok(lines
            .into_iter()
            .map(|line| (line.name, line.value))
            .collect())
    }

    /// A configuration in the form of `postgresql.conf`, with where each setting came from.
    ///
    /// Errors: there is none of that name, with the nearest.
    pub fn describe(&self, name: &str) -> Result<String, Problem> {
        let lines = self.resolve(name)?;
        let mut text = format!("# {}\n", self.title(name).unwrap_or(name));
        let assignments: Vec<String> = lines
            .iter()
            .map(|line| {
                format!(
                    "{} = '{}'",
                    line.name,
                    line.value.replace('\\', "\\\\").replace('\'', "''")
                )
            })
            .collect();
        let width = assignments.iter().map(String::len).max().unwrap_or(0);
        for (line, assignment) in lines.iter().zip(&assignments) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{assignment:width$}  # {}", line.from);
            if let Some((value, from)) = &line.over {
                let _ = write!(text, ", over '{value}' of {from}");
            }
            text.push('\n');
        }
        Ok(text)
    }

    fn resolve(&self, name: &str) -> Result<Vec<Line>, Problem> {
        let mut lines = Vec::new();
        self.take_in(name, &mut Vec::new(), &mut lines)?;
        let pairs: Vec<(String, String)> = lines
            .iter()
            .map(|line: &Line| (line.name.clone(), line.value.clone()))
            .collect();
        check_settings(&pairs).map_err(|mut problem| {
            problem.error = format!("configuration `{name}`: {}", problem.error);
            problem
        })?;
        Ok(lines)
    }

    fn take_in(
        &self,
        name: &str,
        way: &mut Vec<String>,
        lines: &mut Vec<Line>,
    ) -> Result<(), Problem> {
        let name = self.known_name(name, way.last())?;
        if way.contains(&name) {
            way.push(name.clone());
            return Err(
                Problem::new(format!("configuration `{name}` includes itself"))
                    .detail(way.join(" -> ")),
            );
        }
        let statements = self
            .known
            .get(&name)
            .map_or(&[][..], |definition| &definition.statements);
        way.push(name.clone());
        for statement in statements {
            match statement {
                Statement::Include(other) => self.take_in(other, way, lines)?,
                Statement::Set(setting, value) => set(lines, setting, value, &name),
                Statement::Unset(setting) => unset(lines, setting, &name)?,
            }
        }
        way.pop();
        Ok(())
    }

    /// The name as it is known; in an include `.conf` may be there or not.
    fn known_name(&self, name: &str, by: Option<&String>) -> Result<String, Problem> {
        let bare = name.trim_end_matches(".conf");
        let found = [name, bare]
            .into_iter()
            .find(|name| self.known.contains_key(*name));
        if let Some(found) = found {
            return Ok(found.to_owned());
        }
        let what = by.map_or_else(
            || format!("there is no configuration `{name}`"),
            |by| format!("configuration `{by}` includes `{name}`, which does not exist"),
        );
        let problem = Problem::new(what).detail(format!("there are {}", self.names().join(", ")));
        Err(match nearest(bare, self.known.keys().map(String::as_str)) {
            Some(near) => problem.hint(format!("did you mean {near}?")),
            None => problem.hint("name one of these, or a file that ends in .conf"),
        })
    }
}

/// The later one wins, in the earlier one's place.
fn set(lines: &mut Vec<Line>, name: &str, value: &str, from: &str) {
    let new = Line {
        name: name.to_owned(),
        value: value.to_owned(),
        from: from.to_owned(),
        over: None,
    };
    match lines.iter_mut().find(|line| line.name == name) {
        Some(line) => {
            let before = std::mem::replace(line, new);
            line.over = Some((before.value, before.from));
        }
        None => lines.push(new),
    }
}

fn unset(lines: &mut Vec<Line>, name: &str, by: &str) -> Result<(), Problem> {
    let before = lines.len();
    let known: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    lines.retain(|line| line.name != name);
    if lines.len() < before {
        return Ok(());
    }
    let problem = Problem::new(format!(
        "configuration `{by}` unsets {name}, which nothing sets"
    ));
    Err(match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => problem.hint(format!("did you mean {near}?")),
        None => problem.hint("unset takes back what an included configuration sets"),
    })
}

impl Definition {
    fn read(file: &str, text: &str) -> Result<Self, Problem> {
        let (title, statements) = reading::read(file, text)?;
        Ok(Self { title, statements })
    }
}

impl OwnConfiguration {
    fn statements(&self, name: &str) -> Result<Vec<Statement>, Problem> {
        let lower = |name: &String| name.to_ascii_lowercase();
        let both = self.unset.iter().find(|unset| {
            let mut set = self.set.iter();
            set.any(|(set, _)| set.eq_ignore_ascii_case(unset))
        });
        if let Some(both) = both {
            return Err(Problem::new(format!(
                "configuration `{name}` sets and unsets {both}"
            )));
        }
        let include = self.include.iter().cloned().map(Statement::Include);
        let unset = self.unset.iter().map(|name| Statement::Unset(lower(name)));
        let set = self
            .set
            .iter()
            .map(|(name, value)| Statement::Set(lower(name), value.clone()));
        Ok(include.chain(unset).chain(set).collect())
    }
}

#[cfg(test)]
mod tests;
