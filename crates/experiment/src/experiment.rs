//! An experiment, read.

use crate::keys;
use crate::kinds::Kinds;
use crate::measurement::{Measurement, measurement};
use crate::own::{OwnBuild, OwnConfiguration, builds, configurations};
use crate::part::{Axes, Part};
use crate::scale;
use crate::server::{Server, servers};
use crate::syntax;
use crate::workloads::{Workloads, workloads};
use deltabench_document::{Document, Section};
use deltabench_model::plan::CacheState;
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use toml::de::DeTable;

/// Name and version of the file format.
pub const FORMAT: (&str, u32) = ("deltabench.experiment", 1);

/// A study: what it varies and what it holds.
///
/// All of it is as the file says at the scale that was asked for; [`Experiment::only`] makes it smaller.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    pub about: Option<String>,
    /// Whether `about` describes the file as written, and a scale was asked for.
    about_is_of_file: bool,
    /// Who published it.
    pub source: Option<String>,
    /// How problems call the file.
    pub file: String,
    pub text: String,
    /// The scale that was asked for; absent: as written.
    pub scale: Option<String>,
    /// All scales of the file, in its order.
    pub scales: Vec<String>,
    /// What the servers are sent.
    pub workloads: Workloads,
    /// What stands beside workloads, or in their place.
    pub kinds: Kinds,
    /// Workloads that [`Experiment::only`] was asked for, as patterns; empty: all of them.
    pub only_workloads: Vec<String>,
    /// What caches hold when a visit starts.
    pub cache: CacheState,
    /// Whether to go on without limits that the machine does not allow.
    pub limits_optional: bool,
    /// How long and how exactly is measured.
    pub measurement: Measurement,
    /// Configurations of the file's own.
    pub configurations: Vec<OwnConfiguration>,
    /// Build variants of the file's own.
    pub builds: Vec<OwnBuild>,
    pub(crate) servers: Vec<Server>,
    pub(crate) axes: Axes,
}

impl Experiment {
    /// Reads the text of a file that problems call `file`, at one of its scales or as written.
    ///
    /// The file must be right as written and at each of its scales, whichever is asked for.
    ///
    /// Errors: whatever is wrong with the file, with line and key; a scale that it does not have.
    pub fn read(file: &str, text: &str, scale: Option<&str>) -> Result<Self, Problem> {
        let document = Document { file, text };
        let table = document.parse()?.into_inner();
        // First of all: a newer file may have scales with other keys.
        check_format(&root_of(document, &table))?;
        let scales = scale::names(document, &table, &keys::ROOT)?;
        let read = |scale: Option<&str>| {
            let body = scale::at_scale(file, &table, scale)?;
            experiment(document, &body, scale, &scales)
                .map_err(|problem| scale::with_scale(problem, scale))
        };
        let written = read(None)?;
        let mut asked = match scale {
            None => Some(written.clone()),
            Some(name) if scales.iter().any(|known| known == name) => None,
            Some(_) => return read(scale),
        };
        for name in &scales {
            let at_scale = read(Some(name))?;
            if Some(name.as_str()) == scale {
                asked = Some(at_scale);
            }
        }
        match asked {
            Some(experiment) => Ok(experiment.beside(&written)),
            None => read(scale),
        }
    }

    /// Marks the words of the file as such, if the scale changes the study and has none of its own.
    fn beside(self, written: &Self) -> Self {
        let as_written = Self {
            scale: None,
            ..self.clone()
        };
        Self {
            about_is_of_file: self.about == written.about && as_written != *written,
            ..self
        }
    }

    /// What the file says of itself. A scale without words of its own may have other sizes and servers.
    pub fn subject(&self) -> Option<String> {
        let about = self.about.as_ref()?;
        Some(match self.about_is_of_file {
            true => format!("as written, without a scale: {about}"),
            false => about.clone(),
        })
    }

    /// The servers in the order of the file, each combination of targets, configurations and settings one.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The same study with these servers alone, the base first, each with its label where the file gave it
    /// one.
    ///
    /// Errors: servers that differ in more than their targets: nobody knows which settings a new one has.
    pub fn with_targets(&self, targets: &[(TargetSpec, Option<String>)]) -> Result<Self, Problem> {
        let base = self.servers.iter().find(|server| server.is_base);
        let base = base.ok_or_else(|| Problem::new("the experiment has no base"))?;
        let set = |server: &Server| (server.configuration.clone(), server.settings.clone());
        if let Some(other) = self.servers.iter().find(|other| set(other) != set(base)) {
            return Err(Problem::new(format!(
                "the servers of {} differ in more than their targets",
                self.name
            ))
            .detail(format!(
                "{} and {} have other configurations or settings",
                base.name(),
                other.name()
            ))
            .hint("add the new server to the file, and run it: deltabench run FILE"));
        }
        let mut study = self.clone();
        study.servers.clear();
        for (target, label) in targets {
            let of_file = { self.servers.iter() }.any(|server| server.label == *label);
            let label = label.clone().filter(|_| of_file);
            let mut server = base.with_target(target, label);
            server.is_base = study.servers.is_empty();
            study.servers.push(server);
        }
        Ok(study)
    }

    /// The same study with so many repetitions of each part, whatever the file says.
    ///
    /// Errors: more parts than a study has.
    pub fn repeated(mut self, repetitions: u32) -> Result<Self, Problem> {
        self.axes = self.axes.repeated(repetitions)?;
        self.measurement.repetitions = repetitions;
        Ok(self)
    }

    /// The runs: every combination of rows or keys, tables, scale, memory, storage and repetition.
    ///
    /// Shape: the axis that comes first in the file varies slowest, repetitions fastest.
    pub fn parts(&self) -> Vec<Part> {
        self.axes.parts()
    }
}

/// The whole file, as problems call it.
pub(crate) fn root_of<'a>(document: Document<'a>, table: &'a DeTable<'a>) -> Section<'a> {
    Section::new(document, "the experiment".to_owned(), 0, table)
}

/// Reads the file as it is at one scale.
fn experiment(
    document: Document<'_>,
    table: &DeTable<'_>,
    scale: Option<&str>,
    scales: &[String],
) -> Result<Experiment, Problem> {
    let root = root_of(document, table);
    root.allow(&keys::ROOT)?;
    let name = root.as_text("name", root.required("name")?)?;
    if let (Err(problem), Some((_, at))) = (syntax::name(name), root.value("name")) {
        return Err(root.wrap(at, problem));
    }
    let measurement = measurement(&root)?;
    // First: they say what cannot stand beside them.
    let kinds = Kinds::read(&root)?;
    let workloads = workloads(&root, kinds.beside(), kinds.instead())?;
    kinds.check_data(&root, !workloads.is_empty())?;
    let axes = Axes::read(&root, measurement.repetitions)?;
    let (cache, limits_optional) = limits(&root)?;
    Ok(Experiment {
        name: name.to_owned(),
        about: root.prose("about")?,
        about_is_of_file: false,
        source: root.prose("source")?,
        file: document.file.to_owned(),
        text: document.text.to_owned(),
        scale: scale.map(str::to_owned),
        scales: scales.to_vec(),
        workloads,
        kinds,
        only_workloads: Vec::new(),
        cache,
        limits_optional,
        measurement,
        configurations: configurations(&root)?,
        builds: builds(&root)?,
        servers: servers(&root)?,
        axes,
    })
}

fn check_format(root: &Section<'_>) -> Result<(), Problem> {
    let (value, at) = root.required("format")?;
    let format = root.as_text("format", (value, at))?;
    if format != FORMAT.0 {
        let what = format!("`format` is \"{format}\", not \"{}\"", FORMAT.0);
        return Err(root.problem_at(at, what));
    }
    let (_, at) = root.required("version")?;
    match root.number::<u32>("version", 1..=i64::from(u32::MAX))? {
        Some(version) if version > FORMAT.1 => {
            let what = format!(
                "version {version} is newer than this deltabench, which reads {}",
                FORMAT.1
            );
            Err(root.problem_at(at, what).hint("upgrade deltabench"))
        }
        _ => Ok(()),
    }
}

/// What `[limits]` holds for every part.
fn limits(root: &Section<'_>) -> Result<(CacheState, bool), Problem> {
    let Some(section) = root.section("limits", "[limits]")? else {
        return Ok((CacheState::default(), false));
    };
    section.allow(&keys::LIMITS)?;
    let states = [CacheState::AsIs, CacheState::Cold, CacheState::Prewarmed]
        .map(|state| (state.word(), state));
    let cache = section.word("cache", &states)?.unwrap_or_default();
    Ok((cache, section.flag("optional")?.unwrap_or(false)))
}
