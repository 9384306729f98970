//! Which workloads a study runs, at how many clients.

use crate::keys;
use crate::syntax;
use deltabench_document::{Placed, Section};
use deltabench_model::plan::{CellOrder, DataState};
use deltabench_model::problem::Problem;

/// Connections of one server.
const CLIENTS: std::ops::RangeInclusive<i64> = 1..=10_000;
/// Values of a parameter of a workload; its own bounds are the workload's.
const PARAMETER: std::ops::RangeInclusive<i64> = 0..=1_000_000_000_000;
/// Most variants of one entry.
const VARIANTS_MAX: usize = 1000;

/// Which workloads are measured, beside files and variants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Chosen {
    /// The few that stand for the rest.
    #[default]
    Quick,
    /// All of the published studies.
    Published,
    /// These; none, if only files and variants are measured.
    Named(Vec<String>),
}

impl Workloads {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.chosen == Chosen::NONE && self.files.is_empty() && self.variants.is_empty()
    }
}

impl Chosen {
    /// No built-in workload.
    pub const NONE: Self = Self::Named(Vec::new());
}

/// A built-in workload with other sizes: one of `[[workloads.variant]]`, or of its lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    pub of: String,
    /// Its parameters that have another value, in the order of the file.
    pub parameters: Vec<(String, i64)>,
}

/// All of `[workloads]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workloads {
    pub chosen: Chosen,
    /// Built-in workloads beside those of the set.
    pub also: Vec<String>,
    /// Files of the user's own, as written: relative to the experiment's file.
    pub files: Vec<String>,
    /// Concurrent connections; each is a cell for each workload.
    pub clients: Vec<u32>,
    /// Order of the cells in a block.
    pub order: CellOrder,
    /// The tables that they start from.
    pub state: DataState,
    /// Variants, with their lists expanded.
    pub variants: Vec<Variant>,
}

/// Reads `[workloads]`. Where scripts are measured, no other workload is unless the section names some; with
/// a benchmark `instead`, whose clients these are, there is no such section.
pub(crate) fn workloads(
    root: &Section<'_>,
    scripts: bool,
    instead: Option<Vec<u32>>,
) -> Result<Workloads, Problem> {
    let Some(section) = root.section("workloads", "[workloads]")? else {
        let elsewhere = scripts || instead.is_some();
        return Ok(Workloads {
            chosen: if elsewhere {
                Chosen::NONE
            } else {
                Chosen::Quick
            },
            clients: instead.unwrap_or(vec![1]),
            ..Workloads::default()
        });
    };
    section.allow(&keys::WORKLOADS)?;
    let files = section.owned_texts("files")?;
    let variants = variants(&section)?;
    let beside = !files.is_empty() || !variants.is_empty() || scripts;
    let chosen = chosen(&section, beside, scripts)?;
    let orders = [
        ("drawn", CellOrder::Drawn),
        ("published", CellOrder::Published),
    ];
    let states = [("fresh", DataState::Fresh), ("aged", DataState::Aged)];
    Ok(Workloads {
        chosen,
        also: also(&section)?,
        files,
        clients: section.numbers("clients", CLIENTS)?.unwrap_or(vec![1]),
        order: section.word("order", &orders)?.unwrap_or_default(),
        state: section.word("state", &states)?.unwrap_or_default(),
        variants,
    })
}

/// Built-in workloads beside the set.
///
/// Errors: no set, or an order that has its own.
fn also(section: &Section<'_>) -> Result<Vec<String>, Problem> {
    let names = section.owned_texts("also")?;
    let Some((_, at)) = section.value("also") else {
        return Ok(names);
    };
    if section.value("only").is_some() {
        let what = "`also` and `only` exclude each other: `also` is for a `set`";
        return Err(section
            .problem_at(at, what)
            .hint("write all names in `only`"));
    }
    if section
        .text("order")?
        .is_some_and(|(word, _)| word == "published")
    {
        let what = "`also` and order = \"published\" exclude each other";
        return Err(section
            .problem_at(at, what)
            .detail("the published order has its own tests, `delete` as published among them")
            .hint("leave out `also`"));
    }
    Ok(names)
}

/// `beside`: whether there is anything else to measure. `scripts`: whether none is meant when nothing is
/// said.
fn chosen(section: &Section<'_>, beside: bool, scripts: bool) -> Result<Chosen, Problem> {
    let sets = [("quick", false), ("published", true)];
    let set = section.word("set", &sets)?;
    let Some((_, at)) = section.value("only") else {
        return Ok(match set {
            Some(true) => Chosen::Published,
            None if scripts => Chosen::NONE,
            _ => Chosen::Quick,
        });
    };
    let names = section.owned_texts("only")?;
    if set.is_some() {
        let what = "`set` and `only` exclude each other: use one of them";
        return Err(section.problem_at(at, what));
    }
    if names.is_empty() && !beside {
        let problem =
            section.problem_at(at, "`only` is empty, and there are no files and variants");
        return Err(problem.hint("`deltabench workloads` lists the possible names"));
    }
    Ok(Chosen::Named(names))
}

fn variants(section: &Section<'_>) -> Result<Vec<Variant>, Problem> {
    let entries = section.sections(
        "variant",
        "[[workloads.variant]] entry",
        "workloads.variant",
    )?;
    let mut all: Vec<Variant> = Vec::new();
    for section in entries.unwrap_or_default() {
        for variant in variant(&section)? {
            if all.contains(&variant) {
                let parameters: Vec<String> = variant
                    .parameters
                    .iter()
                    .map(|(name, value)| format!("{name} = {value}"))
                    .collect();
                return Err(section.problem(format!(
                    "{} with {} appears twice",
                    variant.of,
                    parameters.join(", ")
                )));
            }
            all.push(variant);
        }
    }
    Ok(all)
}

/// The variants of one entry: the product of its lists; the last varies fastest.
fn variant(section: &Section<'_>) -> Result<Vec<Variant>, Problem> {
    let [of_key] = keys::VARIANT;
    let of = section.as_text(of_key, section.required(of_key)?)?;
    let mut variants = vec![Variant {
        of: of.to_owned(),
        parameters: Vec::new(),
    }];
    for ((name, at), value) in section.entries() {
        if name == of_key {
            continue;
        }
        syntax::name(name).map_err(|problem| section.wrap(at, problem))?;
        let read = |value: Placed<_>| Ok((section.as_whole(name, value, &PARAMETER)?, value.1));
        let values = section.as_list(name, value)?;
        let values = values
            .into_iter()
            .map(read)
            .collect::<Result<Vec<_>, Problem>>()?;
        section.all_different(name, &values)?;
        if variants.len().saturating_mul(values.len()) > VARIANTS_MAX {
            let what = format!("that makes more than {VARIANTS_MAX} workloads");
            return Err(section.problem_at(at, what));
        }
        let longer = |variant: &Variant, value: i64| {
            let mut variant = variant.clone();
            variant.parameters.push((name.to_owned(), value));
            variant
        };
        variants = variants
            .iter()
            .flat_map(|variant| values.iter().map(|(value, _)| longer(variant, *value)))
            .collect();
    }
    if variants.iter().any(|variant| variant.parameters.is_empty()) {
        return Err(section.problem("it changes nothing").hint(format!(
            "`deltabench workloads show {of}` shows its parameters"
        )));
    }
    Ok(variants)
}
