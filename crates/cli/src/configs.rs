//! `deltabench configs`, and the settings that a named configuration comes to for a server.

use crate::arguments::catalogue::ConfigsArguments;
use crate::config::Config;
use crate::console::print_stdout;
use crate::failure::Failure;
use crate::targets::resolve_servers;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Adapted, ConfigurationUse};
use deltabench_model::problem::Problem;
use deltabench_observe::read_host;
use deltabench_server::{
    Catalogue, Configurations, OwnConfiguration, adapt, check_known, check_settings, check_values,
    is_auto, tell,
};
use std::path::Path;

/// Memory of a machine whose memory cannot be read.
const MEMORY_UNKNOWN: u64 = 8 << 30;

/// `deltabench configs`.
pub fn configs(arguments: &ConfigsArguments, config: &Config) -> Result<u8, Failure> {
    let chooser = Chooser::new(&[], None).map_err(Failure::Refused)?;
    let Some(name) = &arguments.name else {
        let known = &chooser.configurations;
        let names = known.names();
        let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
        let line = |name: &&str| format!("{name:<width$}  {}", known.title(name).unwrap_or(""));
        let lines: Vec<String> = names.iter().map(line).collect();
        print_stdout(&lines.join("\n"))?;
        return Ok(0);
    };
    let chooser = chooser
        .knowing(name, Path::new(""))
        .map_err(Failure::Refused)?;
    let text = match &arguments.target {
        None => chooser
            .configurations
            .describe(name)
            .map_err(Failure::Refused)?,
        Some(target) => {
            let spec = target.parse().map_err(Failure::Refused)?;
            let found = resolve_servers(&[spec], config).map_err(Failure::Refused)?;
            let installation = found
                .first()
                .ok_or_else(|| Failure::Refused(Problem::new("no target given")))?;
            let fitted = chooser
                .fitted(Some(name), &[], &[], installation)
                .map_err(Failure::Refused)?;
            shown(name, installation, &fitted)
        }
    };
    print_stdout(text.trim_end_matches('\n'))?;
    Ok(0)
}

fn shown(name: &str, installation: &Installation, fitted: &Fitted) -> String {
    let mut lines = vec![format!("# {name} as adapted to {}", installation.resolved)];
    let adapted = fitted.configuration.iter().flat_map(|used| &used.adapted);
    lines.extend(adapted.map(|adapted| format!("# {}", tell(adapted))));
    let settings = fitted.settings.iter();
    lines.extend(settings.map(|(name, value)| format!("{name} = '{}'", value.replace('\'', "''"))));
    lines.join("\n")
}

/// Refuses configurations that there are not, before any server is looked for.
///
/// Errors: those of [`Chooser::knowing`].
pub fn check_named(names: [Option<&str>; 2]) -> Result<(), Problem> {
    let mut chooser = Chooser::new(&[], None)?;
    for name in names.into_iter().flatten() {
        chooser = chooser.knowing(name, Path::new(""))?;
    }
    Ok(())
}

/// What a server gets of a configuration and of its own settings.
pub struct Fitted {
    /// The configuration, as it was used; absent where the steady settings stay.
    pub configuration: Option<ConfigurationUse>,
    /// All settings of the server's own, in order.
    pub settings: Vec<(String, String)>,
}

impl Chooser {
    /// Whether there is a configuration of this name.
    ///
    /// Errors: it cannot, with the nearest name.
    pub fn check(&self, name: &str) -> Result<(), Problem> {
        self.configurations.get(name).map(drop)
    }

    /// What a configuration and settings of a server's own would be before they are fitted to a version.
    ///
    /// Errors: a configuration that there is not.
    pub fn unfitted(
        &self,
        name: Option<&str>,
        own: &[(String, String)],
    ) -> Result<Fitted, Problem> {
        let mut settings = match name {
            Some(name) => self.configurations.get(name)?,
            None => Vec::new(),
        };
        settings.extend(own.iter().cloned());
        settings.retain(|(name, value)| !is_auto(name, value));
        Ok(Fitted {
            configuration: name.map(|name| ConfigurationUse {
                name: name.to_owned(),
                adapted: Vec::new(),
            }),
            settings,
        })
    }
}

/// Knows the configurations that can be named, and fits them.
pub struct Chooser {
    configurations: Configurations,
    /// Memory that one server gets, bytes.
    memory_bytes: u64,
}

impl Chooser {
    /// The built-in configurations and an experiment's own, for servers of so much memory; absent: all of the
    /// machine's.
    ///
    /// Errors: names that clash, includes of what is not there.
    pub fn new(
        own: &[(String, OwnConfiguration)],
        memory_bytes: Option<u64>,
    ) -> Result<Self, Problem> {
        let machine = || read_host().memory_bytes.unwrap_or(MEMORY_UNKNOWN);
        Ok(Self {
            configurations: Configurations::builtin()?.with(own)?,
            memory_bytes: memory_bytes.unwrap_or_else(machine),
        })
    }

    /// Knows a `.conf` file too, if `name` is one: relative to `directory`.
    ///
    /// Errors: a file that cannot be read; a name that is none of a configuration, with the nearest.
    pub fn knowing(mut self, name: &str, directory: &Path) -> Result<Self, Problem> {
        let known = self.configurations.names().contains(&name);
        if Configurations::is_file(name) && !known {
            self.configurations = self.configurations.with_file(name, &directory.join(name))?;
        }
        self.check(name)?;
        Ok(self)
    }

    /// Knows a configuration with these settings, too.
    ///
    /// Errors: a setting that cannot be chosen, or has more than one line.
    pub fn knowing_settings(
        mut self,
        name: &str,
        settings: &[(String, String)],
    ) -> Result<Self, Problem> {
        let line = |(name, value): &(String, String)| {
            let value = value.replace('\\', "\\\\").replace('\'', "''");
            format!("{name} = '{value}'")
        };
        let lines: Vec<String> = settings.iter().map(line).collect();
        self.configurations = self.configurations.with_text(name, &lines.join("\n"))?;
        Ok(self)
    }

    /// What a server gets: the configuration, except what is asked of all servers, and then its own
    /// settings.
    ///
    /// Errors: a configuration or a setting that there is not; a value that this build does not take.
    pub fn fitted(
        &self,
        name: Option<&str>,
        own: &[(String, String)],
        of_all: &[(String, String)],
        installation: &Installation,
    ) -> Result<Fitted, Problem> {
        if installation.remote.is_some() && name.is_none() {
            return Ok(Fitted {
                configuration: None,
                settings: own.to_vec(),
            });
        }
        let catalogue = Catalogue::of(installation)?;
        check_settings(own)?;
        check_known(own, &catalogue)?;
        check_known(of_all, &catalogue)?;
        let mut asked = match name {
            Some(name) => self.configurations.get(name)?,
            None => Vec::new(),
        };
        let is_of_all = |name: &str| of_all.iter().any(|(other, _)| other == name);
        asked.retain(|(name, _)| !is_of_all(name));
        asked.extend(own.iter().cloned());
        let adaptation = adapt(&asked, installation, &catalogue, self.memory_bytes)?;
        let mut settings = adaptation.settings;
        settings.retain(|(name, value)| !is_auto(name, value));
        // A configuration is fitted to a version; a setting of its own is meant as it is.
        let is_own = |adapted: &&Adapted| own.iter().any(|(name, _)| *name == adapted.asked.0);
        if let Some(other) = adaptation.adapted.iter().find(is_own) {
            return Err(Problem::new(format!(
                "{} cannot have {} = {}",
                installation.resolved, other.asked.0, other.asked.1
            ))
            .detail(tell(other))
            .hint(
                "give this server another value, or put it into a configuration, which deltabench \
                 adapts",
            ));
        }
        check_settings(&settings)?;
        let all: Vec<(String, String)> = of_all.iter().chain(&settings).cloned().collect();
        check_values(&all, &catalogue)?;
        Ok(Fitted {
            configuration: name.map(|name| ConfigurationUse {
                name: name.to_owned(),
                adapted: adaptation.adapted,
            }),
            settings,
        })
    }
}
