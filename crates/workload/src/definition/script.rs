//! Scripts and their steps, as the file says them.

use super::parameter::{MAX_SLOTS, Parameter};
use crate::executable::TableChoice;
use crate::section::Section;
use crate::template::{Named, Shape, Template};
use deltabench_model::problem::Problem;

/// Repetitions of one step.
const MAX_REPEAT: u32 = 1000;
/// Weight of one script.
const MAX_WEIGHT: u32 = 1_000_000;

/// One of the things that an operation can be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptDefinition {
    pub(super) name: Option<String>,
    pub(super) weight: u32,
    pub(super) steps: Vec<StepDefinition>,
}

impl ScriptDefinition {
    /// Statements of one operation.
    pub(super) fn statements(&self) -> u32 {
        self.steps.iter().map(|step| step.repeat).sum()
    }
}

/// A statement of an operation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StepDefinition {
    pub(super) called: String,
    pub(super) template: Template,
    pub(super) repeat: u32,
    pub(super) table: TableChoice,
    pub(super) prepared: bool,
    pub(super) line: u64,
}

/// Reads `[[step]]`, or `[[script]]` with a `[[script.step]]` for each step.
pub(super) fn scripts(
    root: &Section<'_>,
    parameters: &[Parameter],
    own_tables: bool,
) -> Result<Vec<ScriptDefinition>, Problem> {
    let reader = Reader {
        named: parameters.iter().map(named).collect(),
        own_tables,
    };
    let sections = root.sections("script", "script", "script")?;
    if sections.is_empty() {
        let steps = reader.steps(root, "step", "step")?;
        return Ok(vec![ScriptDefinition {
            name: None,
            weight: 1,
            steps,
        }]);
    }
    if let Some((_, at)) = root.value("step") {
        return Err(root.wrap(
            at,
            Problem::new("there are [[script]]s and a [[step]] that belongs to none")
                .hint("write [[script.step]] below the [[script]] that it belongs to"),
        ));
    }
    sections
        .iter()
        .map(|section| reader.script(section))
        .collect()
}

fn named(parameter: &Parameter) -> Named<'_> {
    Named {
        name: &parameter.name,
        shape: parameter.shape(),
    }
}

/// What the steps of a file may use.
struct Reader<'a> {
    named: Vec<Named<'a>>,
    own_tables: bool,
}

impl Reader<'_> {
    fn script(&self, section: &Section<'_>) -> Result<ScriptDefinition, Problem> {
        section.allow(&["name", "weight", "step"])?;
        let name = section.optional_text("name")?;
        let weight = section.number::<u32>("weight", 1..=i64::from(MAX_WEIGHT))?;
        let called = format!("{}, step", section.name());
        Ok(ScriptDefinition {
            name: name.map(|(name, _)| name.to_owned()),
            weight: weight.ok_or_else(|| section.problem("key `weight` is missing"))?,
            steps: self.steps(section, &called, "script.step")?,
        })
    }

    fn steps(
        &self,
        parent: &Section<'_>,
        called: &str,
        header: &str,
    ) -> Result<Vec<StepDefinition>, Problem> {
        let sections = parent.sections("step", called, header)?;
        if sections.is_empty() {
            return Err(parent.problem("key `step` is missing"));
        }
        let mut steps: Vec<StepDefinition> = Vec::new();
        for section in sections {
            let chosen = steps.iter().any(|step| step.table != TableChoice::Keep);
            steps.push(self.step(&section, chosen)?);
        }
        Ok(steps)
    }

    fn step(&self, section: &Section<'_>, chosen: bool) -> Result<StepDefinition, Problem> {
        section.allow(&["sql", "repeat", "table", "prepared"])?;
        let (sql, at) = section.required_text("sql")?;
        let template = Template::parse(sql.trim(), &self.named)
            .map_err(|problem| section.wrap(at, problem))?;
        let slots = self.slots(&template);
        if slots > u64::from(MAX_SLOTS) {
            let what = format!("{slots} placeholders, more than the {MAX_SLOTS} that fit");
            return Err(section.problem_at(at, what));
        }
        if self.own_tables && template.has_table {
            let problem = Problem::new("{table} in SQL, but the file has its own tables");
            return Err(section.wrap(at, problem.hint("write the name of one of its [[table]]s")));
        }
        Ok(StepDefinition {
            called: section.name().to_owned(),
            table: table(section, &template, chosen)?,
            repeat: section
                .size("repeat", 1..=i64::from(MAX_REPEAT))?
                .unwrap_or(1),
            prepared: section.flag("prepared")?.unwrap_or(true),
            template,
            line: section.line(),
        })
    }

    /// Placeholders of a statement.
    fn slots(&self, template: &Template) -> u64 {
        let parameters = template.parameters.iter();
        parameters
            .filter_map(|&place| self.named.get(place))
            .map(|named| match named.shape {
                Shape::Scalar => 1,
                Shape::Range => 2,
                Shape::List(count) => u64::from(count),
            })
            .sum()
    }
}

/// How the step comes to its table; `chosen` says that an earlier one has one.
fn table(section: &Section<'_>, template: &Template, chosen: bool) -> Result<TableChoice, Problem> {
    let choices = [
        ("draw", TableChoice::Draw),
        ("keep", TableChoice::Keep),
        ("client", TableChoice::Client),
        ("turn", TableChoice::Turn),
    ];
    let at = section.value("table").map_or(0, |(_, at)| at);
    match section.word("table", &choices)? {
        None if template.has_table => Ok(TableChoice::Draw),
        None => Ok(TableChoice::Keep),
        Some(_) if !template.has_table => {
            Err(section.problem_at(at, "`table` is set, but the statement has no {table}"))
        }
        Some(TableChoice::Keep) if !chosen => {
            Err(section.problem_at(at, "no table to keep: no earlier step chooses one"))
        }
        Some(choice) => Ok(choice),
    }
}
