//! The servers of an experiment: found, labelled, and given their settings.

use crate::config::Config;
use crate::configs::Chooser;
use crate::console::say;
use crate::targets::{known_or_named, resolve};
use deltabench_acquire::{BuildSystem, Variant, unknown_source};
use deltabench_experiment as experiment;
use deltabench_experiment::{Experiment, OwnBuild, Server, labels};
use deltabench_model::installation::{Engine, Installation};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_run::occupancy::Machine;
use deltabench_run::planning::ServerWish;
use deltabench_server::OwnConfiguration;
use std::collections::HashSet;
use std::path::Path;

/// The servers of an experiment that are available here, the base first.
pub struct Found<'a> {
    experiment: &'a Experiment,
    directory: &'a Path,
    servers: Vec<(&'a Server, Installation)>,
    left_out: Vec<LeftOut>,
    /// Whether settings are only told, not checked against the servers' programs.
    outlook: bool,
    /// The machine that the servers are to run on, if that is not this one.
    machine: Option<Machine>,
}

impl<'a> Found<'a> {
    /// Fetches and builds what is needed. Leaves out an optional server that is not available, and says so.
    ///
    /// Errors: a server that is not optional is not available.
    pub fn find(
        experiment: &'a Experiment,
        directory: &'a Path,
        config: &Config,
    ) -> Result<Self, Problem> {
        let mut config = config.clone();
        let own = experiment
            .builds
            .iter()
            .map(|build| (build.name.clone(), variant(build)));
        config.sources.variants = config.sources.variants.with(own)?;
        let config = &config;
        let specs: Vec<TargetSpec> = experiment
            .servers()
            .iter()
            .filter(|server| !server.optional)
            .map(|server| server.target.clone())
            .collect();
        // Those that must be there first, and together: what is prebuilt is fetched at the same time.
        resolve(&specs, config)?;
        let mut servers = Vec::new();
        let mut left_out = Vec::new();
        for server in experiment.servers() {
            let found = resolve(std::slice::from_ref(&server.target), config);
            match (found, server.optional) {
                (Ok(found), _) => servers.extend(found.into_iter().map(|found| (server, found))),
                (Err(problem), true) => left_out.push(leave_out(server, &problem)),
                (Err(problem), false) => return Err(problem),
            }
        }
        let found = Self::of(experiment, directory, servers, false);
        Ok(Self { left_out, ..found })
    }

    /// The same without fetching or building anything: what is not here yet stands for itself.
    pub fn look(experiment: &'a Experiment, directory: &'a Path, config: &Config) -> Self {
        let servers = experiment.servers().iter();
        let mut said = HashSet::new();
        let unknown = servers
            .clone()
            .filter_map(|server| unknown_source(&server.target, &config.sources));
        for problem in unknown.filter(|problem| said.insert(problem.error.clone())) {
            let hint = problem.hint.unwrap_or_default();
            say(&format!(
                "note: {}, and a run needs one: {hint}",
                problem.error
            ));
        }
        let servers = servers
            .map(|server| (server, known_or_named(&server.target, config)))
            .collect();
        Self::of(experiment, directory, servers, true)
    }

    fn of(
        experiment: &'a Experiment,
        directory: &'a Path,
        mut servers: Vec<(&'a Server, Installation)>,
        outlook: bool,
    ) -> Self {
        servers.sort_by_key(|(server, _)| !server.is_base);
        Self {
            experiment,
            directory,
            servers,
            left_out: Vec::new(),
            outlook,
            machine: None,
        }
    }

    /// The same on a machine; absent: this one.
    pub fn on(self, machine: Option<Machine>) -> Self {
        Self { machine, ..self }
    }

    /// The servers as a plan wants them, where each has so much memory (absent: the machine's) and all have
    /// the settings `of_all`; and those that were left out.
    ///
    /// Errors: configurations and settings that a server that is not optional cannot have.
    pub fn wishes(
        &self,
        memory_bytes: Option<u64>,
        of_all: &[(String, String)],
    ) -> Result<(Vec<ServerWish>, Vec<LeftOut>), Problem> {
        let mut left_out = self.left_out.clone();
        let machine = self.machine.and_then(|machine| machine.memory_bytes);
        let chooser = self.chooser(memory_bytes.or(machine))?;
        let named: Vec<(&Server, &str)> = self
            .servers
            .iter()
            .map(|(server, found)| (*server, found.resolved.as_str()))
            .collect();
        let mut wishes = Vec::new();
        for ((server, found), label) in self.servers.iter().zip(labels(&named)) {
            let name = server.configuration.as_deref();
            let wish = ServerWish {
                label: Some(label),
                coordinates: server.coordinates.clone(),
                ..ServerWish::plain(found.clone())
            };
            if found.engine != Engine::Postgres {
                // Options of a library are for itself to judge.
                wishes.push(ServerWish {
                    settings: server.settings.clone(),
                    ..wish
                });
                continue;
            }
            if self.outlook && found.binary_sha256.is_empty() {
                // What its program would say of them is not known yet.
                let unfitted = chooser.unfitted(name, &server.settings)?;
                wishes.push(ServerWish {
                    configuration: unfitted.configuration,
                    settings: unfitted.settings,
                    ..wish
                });
                continue;
            }
            match chooser.fitted(name, &server.settings, of_all, found) {
                Ok(fitted) => wishes.push(ServerWish {
                    configuration: fitted.configuration,
                    settings: fitted.settings,
                    ..wish
                }),
                Err(problem) if server.optional => left_out.push(leave_out(server, &problem)),
                Err(problem) => return Err(problem),
            }
        }
        Ok((wishes, left_out))
    }

    /// Whether every configuration that is named exists: to be asked before anything is fetched or built.
    ///
    /// Errors: one that cannot.
    pub fn check(experiment: &'a Experiment, directory: &'a Path) -> Result<(), Problem> {
        let named = Self::of(experiment, directory, Vec::new(), true);
        let chooser = named.chooser(None)?;
        let names = experiment.servers().iter();
        names
            .filter_map(|server| server.configuration.as_deref())
            .try_for_each(|name| chooser.check(name))
    }

    fn chooser(&self, memory_bytes: Option<u64>) -> Result<Chooser, Problem> {
        let own: Vec<(String, OwnConfiguration)> = self
            .experiment
            .configurations
            .iter()
            .map(|own| {
                let definition = OwnConfiguration {
                    include: own.include.clone(),
                    set: own.set.clone(),
                    unset: own.unset.clone(),
                };
                (own.name.clone(), definition)
            })
            .collect();
        let mut chooser = Chooser::new(&own, memory_bytes)?;
        for server in self.experiment.servers() {
            if let Some(name) = &server.configuration {
                chooser = chooser.knowing(name, self.directory)?;
            }
        }
        Ok(chooser)
    }
}

/// A build of the experiment's own.
fn variant(own: &OwnBuild) -> Variant {
    Variant {
        system: match own.system {
            experiment::BuildSystem::Configure => BuildSystem::Configure,
            experiment::BuildSystem::Meson => BuildSystem::Meson,
        },
        options: own.options.clone(),
        options_since: Vec::new(),
        cflags: own.cflags.clone().unwrap_or_default(),
        ldflags: own.ldflags.clone().unwrap_or_default(),
        compiler: own.compiler.clone(),
        environment: own.environment.clone(),
    }
}

/// A server that was left out, and why.
pub type LeftOut = (String, String);

fn leave_out(server: &Server, problem: &Problem) -> LeftOut {
    say(&format!(
        "left out the optional server {}: {}",
        server.name(),
        problem.error
    ));
    if let Some(detail) = &problem.detail {
        say(&format!("  {detail}"));
    }
    (server.name(), problem.error.clone())
}
