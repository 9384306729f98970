//! Configurations and builds that a file brings along.

use crate::keys;
use crate::server::STEADY;
use crate::settings::{self, Booleans};
use crate::syntax;
use deltabench_document::{Placed, Section};
use deltabench_model::problem::Problem;

/// A configuration of the file's own: `[configurations.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnConfiguration {
    /// What servers call it.
    pub name: String,
    /// Configurations that it starts from, in order; later ones win.
    pub include: Vec<String>,
    /// Settings on top of them. Sizes may be shares of memory (`25%`), some may be `auto`.
    pub set: Vec<(String, String)>,
    /// Settings of the included ones that are left out.
    pub unset: Vec<String>,
}

/// What runs the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuildSystem {
    /// `./configure && make`.
    #[default]
    Configure,
    /// `meson setup && ninja`.
    Meson,
}

/// A build variant of the file's own: `[builds.NAME]`, asked for as `postgres:17.11+NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnBuild {
    /// What targets have after their `+`.
    pub name: String,
    pub system: BuildSystem,
    /// Flags of the compiler; absent: the build system's own.
    pub cflags: Option<String>,
    /// Flags of the linker.
    pub ldflags: Option<String>,
    /// Options of `configure` or `meson setup`, in order.
    pub options: Vec<String>,
    /// The compiler; absent: the build system's own choice.
    pub compiler: Option<String>,
    /// Variables of the environment, in order.
    pub environment: Vec<(String, String)>,
}

/// All of `[configurations]`.
pub(crate) fn configurations(root: &Section<'_>) -> Result<Vec<OwnConfiguration>, Problem> {
    let sections = root.named_sections("configurations")?;
    sections
        .iter()
        .map(|(name, section)| configuration(*name, section))
        .collect()
}

fn configuration(
    (name, at): Placed<&str>,
    section: &Section<'_>,
) -> Result<OwnConfiguration, Problem> {
    syntax::name(name).map_err(|problem| section.wrap(at, problem))?;
    if name == STEADY {
        let what = "`steady` is the configuration of servers without one";
        return Err(section.problem_at(at, what));
    }
    section.allow(&keys::CONFIGURATION)?;
    let include = section.owned_texts("include")?;
    let set = match section.section("set", format!("`set` of configuration `{name}`"))? {
        Some(set) => settings::fixed(&set, Booleans::Switches)?,
        None => Vec::new(),
    };
    let mut unset = Vec::new();
    for (text, at) in section.list_of_texts("unset")?.unwrap_or_default() {
        let name = syntax::setting_name(text).map_err(|problem| section.wrap(at, problem))?;
        if set.iter().any(|(other, _)| *other == name) {
            return Err(section.problem_at(at, format!("`{name}` is both in `set` and in `unset`")));
        }
        unset.push(name);
    }
    if include.iter().any(|other| other == name) {
        return Err(section.problem(format!("`{name}` includes itself")));
    }
    if include.is_empty() && set.is_empty() {
        return Err(section
            .problem("it sets nothing")
            .hint("give it `include = [\"cx10a_c8r32\"]` or `set = { work_mem = \"64MB\" }`"));
    }
    Ok(OwnConfiguration {
        name: name.to_owned(),
        include,
        set,
        unset,
    })
}

/// All of `[builds]`.
pub(crate) fn builds(root: &Section<'_>) -> Result<Vec<OwnBuild>, Problem> {
    let sections = root.named_sections("builds")?;
    sections
        .iter()
        .map(|(name, section)| build(*name, section))
        .collect()
}

fn build((name, at): Placed<&str>, section: &Section<'_>) -> Result<OwnBuild, Problem> {
    syntax::name(name).map_err(|problem| section.wrap(at, problem))?;
    section.allow(&keys::BUILD)?;
    let systems = [
        ("configure", BuildSystem::Configure),
        ("meson", BuildSystem::Meson),
    ];
    let mut environment = Vec::new();
    if let Some(variables) =
        section.section("environment", format!("`environment` of build `{name}`"))?
    {
        for ((variable, at), value) in variables.entries() {
            syntax::variable_name(variable).map_err(|problem| variables.wrap(at, problem))?;
            let value = variables.as_text(variable, value)?;
            environment.push((variable.to_owned(), value.to_owned()));
        }
    }
    Ok(OwnBuild {
        name: name.to_owned(),
        system: section.word("system", &systems)?.unwrap_or_default(),
        cflags: section.flags("cflags")?,
        ldflags: section.flags("ldflags")?,
        options: section.owned_texts("options")?,
        compiler: section.text("compiler")?.map(|(text, _)| text.to_owned()),
        environment,
    })
}
