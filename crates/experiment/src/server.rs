//! The servers of a study: the products of `[[servers]]`, what tells them apart, and which one is the base.

use crate::keys;
use crate::kinds;
use crate::settings::{self, Booleans, Swept};
use deltabench_document::{Placed, Section};
use deltabench_model::installation::Engine;
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::target::TargetSpec;

/// What the configuration of a server without one is called.
pub const STEADY: &str = "steady";

/// Most servers of one file: a run restarts all of them for each block.
const SERVERS_MAX: usize = 200;

/// Longest label: it heads columns.
const LABEL_MAX: usize = 60;

/// Names that tables give to the base and to its copy.
const RESERVED: [&str; 2] = ["base", "placebo"];

/// One server of the study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// As the file has it.
    pub label: Option<String>,
    pub target: TargetSpec,
    /// Its named configuration; absent: the product's steady settings.
    pub configuration: Option<String>,
    /// Settings of its own, in the order of the file; they win over the configuration.
    pub settings: Vec<(String, String)>,
    /// Where it stands: `target` as asked for, `configuration`, and each setting that is an axis.
    pub coordinates: Vec<(String, String)>,
    /// Whether the study goes on without it where this host or build cannot do it.
    pub optional: bool,
    /// Whether the others are compared with it.
    pub is_base: bool,
    /// What its name has beside the target.
    marks: Vec<String>,
}

impl Server {
    /// Its label, else its target as asked for with what tells it apart from the other servers of the file:
    /// `postgres:18 cx10c_c8r32 io_workers=4`.
    pub fn name(&self) -> String {
        self.name_as(&self.target.to_string())
    }

    /// The same with another target, and another label or none.
    pub(crate) fn with_target(&self, target: &TargetSpec, label: Option<String>) -> Self {
        let mut other = self.clone();
        for (axis, value) in &mut other.coordinates {
            if axis == "target" {
                *value = target.to_string();
            }
        }
        Self {
            label,
            target: target.clone(),
            optional: false,
            is_base: false,
            ..other
        }
    }

    /// The same with the target written in another way.
    fn name_as(&self, target: &str) -> String {
        match &self.label {
            Some(label) => label.clone(),
            None => joined(target, &self.marks),
        }
    }

    /// Whether only settings can tell the two apart.
    fn is_like(&self, other: &Self) -> bool {
        self.target == other.target && self.configuration == other.configuration
    }
}

fn joined(target: &str, marks: &[String]) -> String {
    let mut name = target.to_owned();
    for mark in marks {
        name.push(' ');
        name.push_str(mark);
    }
    name
}

/// What tables call servers, each with the target that it came to (`postgres:18.6`).
///
/// Shape: one label for each server, in the same order; all are different. A server with a label of its own
/// keeps it. Where two targets came to the same version, what was asked for stands behind it in parentheses.
pub fn labels(servers: &[(&Server, &str)]) -> Vec<String> {
    let mut labels: Vec<String> = servers
        .iter()
        .map(|(server, resolved)| server.name_as(resolved))
        .collect();
    let own = |index: usize| {
        servers
            .get(index)
            .is_some_and(|(server, _)| server.label.is_some())
    };
    for (index, label) in clashing(&labels) {
        if let Some((server, resolved)) = servers.get(index).filter(|_| !own(index)) {
            let target = server.target.to_string();
            // Who asked for exactly this version keeps the plain name.
            if target != *resolved {
                replace(&mut labels, index, format!("{label} ({target})"));
            }
        }
    }
    // A label that reads like another server's name, also a longer one.
    for (index, label) in clashing(&labels) {
        if !own(index) {
            let mut number = index + 1;
            let mut longer = format!("{label} #{number}");
            while labels.contains(&longer) {
                number += servers.len();
                longer = format!("{label} #{number}");
            }
            replace(&mut labels, index, longer);
        }
    }
    labels
}

/// Those that are there more than once, with their places.
fn clashing(labels: &[String]) -> Vec<(usize, String)> {
    let twice = |label: &&String| labels.iter().filter(|other| other == label).count() > 1;
    let all = labels.iter().enumerate();
    all.filter(|(_, label)| twice(label))
        .map(|(index, label)| (index, label.clone()))
        .collect()
}

fn replace(labels: &mut [String], index: usize, with: String) {
    if let Some(label) = labels.get_mut(index) {
        *label = with;
    }
}

/// A server and the byte at which its entry stands.
struct Found {
    server: Server,
    at: usize,
    /// Names of the settings that its entry sweeps.
    swept: Vec<String>,
}

/// All servers of the file, in its order.
pub(crate) fn servers(root: &Section<'_>) -> Result<Vec<Server>, Problem> {
    let entries = root
        .sections("servers", "[[servers]] entry", "servers")?
        .unwrap_or_default();
    if entries.is_empty() {
        return Err(root
            .problem("there are no servers")
            .hint("write [[servers]] and under it target = \"postgres:18\""));
    }
    let mut found = Vec::new();
    let embedded = kinds::is_embedded(root);
    for section in &entries {
        found.extend(entry(section, embedded)?);
        if found.len() > SERVERS_MAX {
            return Err(section.problem(format!(
                "that makes {} servers, but a study has at most {SERVERS_MAX}",
                found.len()
            )));
        }
    }
    tell_apart(root, &mut found)?;
    let mut servers: Vec<Server> = found.iter().map(|found| found.server.clone()).collect();
    let base = base(root, &servers)?;
    if let (Some(server), Some(found)) = (servers.get_mut(base), found.get(base)) {
        if server.optional {
            let what = format!("the base, {}, cannot be optional", server.name());
            let problem = root.problem_at(found.at, what);
            return Err(problem.hint(
                "without it there is nothing to compare: name another `base`, or drop the key",
            ));
        }
        server.is_base = true;
    }
    Ok(servers)
}

/// The servers of one entry: target, then configuration, then each sweep; the last varies fastest.
/// `embedded`: whether the file measures an embedded engine.
fn entry(section: &Section<'_>, embedded: bool) -> Result<Vec<Found>, Problem> {
    section.allow(&keys::SERVER)?;
    let targets = targets(section)?;
    kinds::check_targets(section, &targets, embedded)?;
    let configurations: Vec<Option<String>> = match section.texts("configuration")? {
        None => vec![None],
        Some(names) => {
            let name = |(name, _): Placed<&str>| (name != STEADY).then(|| name.to_owned());
            names.into_iter().map(name).collect()
        }
    };
    let settings = match embedded {
        true => kinds::of_servers(section, &targets)?,
        false => settings::own(section, Booleans::Switches)?,
    };
    let combinations = combinations(&settings);
    let optional = section.flag("optional")?.unwrap_or(false);
    let count = targets
        .len()
        .saturating_mul(configurations.len())
        .saturating_mul(combinations);
    if count > SERVERS_MAX {
        return Err(section.problem(format!(
            "that makes {count} servers, but a study has at most {SERVERS_MAX}"
        )));
    }
    let label = label(section, count)?;
    let swept: Vec<String> = settings
        .iter()
        .filter(|(_, values)| values.len() > 1)
        .map(|(name, _)| name.clone())
        .collect();
    let product = product(&settings);
    let mut found = Vec::with_capacity(count);
    for target in &targets {
        for configuration in &configurations {
            for settings in &product {
                let server = Server {
                    label: label.clone(),
                    target: target.clone(),
                    configuration: configuration.clone(),
                    settings: settings.clone(),
                    coordinates: Vec::new(),
                    optional,
                    is_base: false,
                    marks: Vec::new(),
                };
                found.push(Found {
                    server,
                    at: section.place(),
                    swept: swept.clone(),
                });
            }
        }
    }
    Ok(found)
}

fn combinations(settings: &[Swept]) -> usize {
    settings
        .iter()
        .fold(1, |all, (_, values)| all.saturating_mul(values.len()))
}

fn product(settings: &[Swept]) -> Vec<Vec<(String, String)>> {
    let mut product = vec![Vec::new()];
    for (name, values) in settings {
        let longer = |settings: &Vec<(String, String)>, value: &String| {
            let mut settings = settings.clone();
            settings.push((name.clone(), value.clone()));
            settings
        };
        product = product
            .iter()
            .flat_map(|settings| values.iter().map(|value| longer(settings, value)))
            .collect();
    }
    product
}

fn targets(section: &Section<'_>) -> Result<Vec<TargetSpec>, Problem> {
    let texts = section.texts("target")?;
    let texts = texts.ok_or_else(|| section.problem("key `target` is missing"))?;
    let mut targets: Vec<(TargetSpec, usize)> = Vec::new();
    for (text, at) in texts {
        let target = text.parse().map_err(|problem| section.wrap(at, problem))?;
        targets.push((target, at));
    }
    section.all_different("target", &targets)?;
    Ok(targets.into_iter().map(|(target, _)| target).collect())
}

fn label(section: &Section<'_>, servers: usize) -> Result<Option<String>, Problem> {
    let Some((label, at)) = section.text("label")? else {
        return Ok(None);
    };
    let refuse = |what: String| Err(section.problem_at(at, what));
    if servers > 1 {
        return refuse(format!(
            "one `label` cannot name {servers} servers: leave it out, or split the entry"
        ));
    }
    if RESERVED.contains(&label.to_lowercase().as_str()) {
        return refuse(format!("tables already call another server \"{label}\""));
    }
    if label.chars().count() > LABEL_MAX {
        return refuse(format!(
            "`label` has more than {LABEL_MAX} characters, but it is the head of a column"
        ));
    }
    Ok(Some(label.to_owned()))
}

/// Gives every server its coordinates and marks, and refuses servers that nothing tells apart.
fn tell_apart(root: &Section<'_>, found: &mut [Found]) -> Result<(), Problem> {
    let axes = axes(found);
    let configuration = |server: &Server| {
        let name = server.configuration.as_deref();
        name.unwrap_or(STEADY).to_owned()
    };
    let first = found.first().map(|found| configuration(&found.server));
    let many = found
        .iter()
        .any(|found| Some(configuration(&found.server)) != first);
    for Found { server, .. } in found.iter_mut() {
        let configuration = configuration(server);
        let on_axes: Vec<(String, String)> = server
            .settings
            .iter()
            .filter(|(name, _)| axes.contains(name))
            .cloned()
            .collect();
        let settings = on_axes.iter().map(|(name, value)| kinds::mark(name, value));
        server.marks = many
            .then(|| configuration.clone())
            .into_iter()
            .chain(settings)
            .collect();
        server.coordinates = vec![("target".to_owned(), server.target.to_string())];
        if server.target.engine() == Engine::Postgres {
            let configuration = ("configuration".to_owned(), configuration);
            server.coordinates.push(configuration);
        }
        server.coordinates.extend(on_axes);
    }
    for (index, Found { server, at, .. }) in found.iter().enumerate() {
        let before = found.iter().take(index).map(|found| &found.server);
        for other in before {
            refuse_clash(root, *at, other, server)?;
        }
    }
    Ok(())
}

fn refuse_clash(root: &Section<'_>, at: usize, one: &Server, two: &Server) -> Result<(), Problem> {
    if one.target.engine() != two.target.engine() {
        let what = format!("{} is not compared with {}", two.target, one.target);
        return Err(root.problem_at(at, what).detail(
            "deltabench measures a library in turns, but a db_bench runs a whole step by \
                     itself",
        ));
    }
    if one.coordinates == two.coordinates {
        let name = joined(&two.target.to_string(), &two.marks);
        return Err(root
            .problem_at(at, format!("{name} appears twice"))
            .detail("servers differ by target, configuration or settings")
            .hint("every run compares the base with a copy of itself anyway"));
    }
    if one.name() == two.name() {
        return Err(root
            .problem_at(at, format!("two servers are called \"{}\"", two.name()))
            .hint("give one of them another `label`"));
    }
    Ok(())
}

/// The settings that are axes: those that an entry sweeps, and those that differ between servers with the
/// same target and configuration.
fn axes(found: &[Found]) -> Vec<String> {
    let mut axes: Vec<String> = Vec::new();
    let mut add = |name: &String| {
        if !axes.contains(name) {
            axes.push(name.clone());
        }
    };
    for (index, Found { server, swept, .. }) in found.iter().enumerate() {
        swept.iter().for_each(&mut add);
        let alike = found
            .iter()
            .take(index)
            .map(|found| &found.server)
            .filter(|other| other.is_like(server));
        for other in alike {
            let only = |one: &Server, two: &Server| {
                let settings = one.settings.iter();
                let differing = settings.filter(|setting| !two.settings.contains(setting));
                differing.map(|(name, _)| name.clone()).collect::<Vec<_>>()
            };
            only(server, other).iter().for_each(&mut add);
            only(other, server).iter().for_each(&mut add);
        }
    }
    axes
}

/// Which server is the base: the one that `base` names by its label or target, else the first.
fn base(root: &Section<'_>, servers: &[Server]) -> Result<usize, Problem> {
    let Some((asked, at)) = root.text("base")? else {
        return Ok(0);
    };
    let matching = |matches: &dyn Fn(&Server) -> bool| -> Vec<usize> {
        let all = servers.iter().enumerate();
        all.filter(|(_, server)| matches(server))
            .map(|(index, _)| index)
            .collect()
    };
    let target: Option<TargetSpec> = match asked.parse() {
        Ok(target) => Some(target),
        // What is wrong with an address may be its password, which must not be repeated.
        Err(problem) if asked.contains("//") || asked.contains('@') => {
            return Err(root.wrap(at, problem));
        }
        Err(_) => None,
    };
    let by_name = matching(&|server| server.name() == asked);
    let by_mark = matching(&|server| joined(&server.target.to_string(), &server.marks) == asked);
    let by_target = matching(&|server| Some(&server.target) == target.as_ref());
    let names = |which: &[usize]| -> Vec<String> {
        let chosen = which.iter().filter_map(|&index| servers.get(index));
        chosen.map(Server::name).collect()
    };
    for found in [by_name, by_mark, by_target] {
        match found.as_slice() {
            [] => {}
            [one] => return Ok(*one),
            several => {
                let what = format!("`base` \"{asked}\" may be {} servers", several.len());
                return Err(root
                    .problem_at(at, what)
                    .detail(format!("they are {}", names(several).join(", ")))
                    .hint("write one of these as `base`"));
            }
        }
    }
    let all: Vec<usize> = (0..servers.len()).collect();
    let all = names(&all);
    let problem = root
        .problem_at(at, format!("`base` \"{asked}\" is none of the servers"))
        .detail(format!("they are {}", all.join(", ")));
    Err(match nearest(asked, all.iter().map(String::as_str)) {
        Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
        None => {
            problem.hint("write one of these as `base`, also in each scale that has other servers")
        }
    })
}
