//! A configuration, fitted to one server.

use super::catalogue::Catalogue;
use super::entry::Kind;
use super::history;
use super::libraries::Libraries;
use super::translation::{self, Case, Fit, RULES, Renaming};
use deltabench_model::installation::Installation;
use deltabench_model::plan::Adapted;
use deltabench_model::problem::Problem;
use deltabench_model::units::{to_f64, to_u64};

/// Settings that may be `auto`: as each run works them out from its data and this machine.
pub(crate) const WORKED_OUT: &[&str] = &["shared_buffers", "max_connections", "huge_pages"];

/// What a configuration came to for one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adaptation {
    /// What to ask the server for, each setting once. `auto` is still in it.
    pub settings: Vec<(String, String)>,
    /// What had to be changed.
    pub adapted: Vec<Adapted>,
}

/// Fits settings to a server: what it calls otherwise is translated, what it does not have is left out,
/// shares of memory (`25%`) become megabytes. Everything but the last is recorded.
///
/// What the server itself lists decides; tables only say what a setting was or will be called.
///
/// Units:  `memory_bytes` is the memory that one server gets.
/// Errors: a name that no version has; a share of something that is no amount of memory; a value that cannot
/// be translated; the server's program cannot be run.
pub fn adapt(
    asked: &[(String, String)],
    installation: &Installation,
    catalogue: &Catalogue,
    memory_bytes: u64,
) -> Result<Adaptation, Problem> {
    let asked = last_of_each(asked);
    let fitting = Fitting {
        asked: &asked,
        catalogue,
        libraries: Libraries::of(installation),
        memory_bytes,
    };
    let mut adaptation = Adaptation::default();
    for (name, value) in &asked {
        fitting.fit(name, value, &mut adaptation)?;
    }
    Ok(adaptation)
}

/// Whether the run works a setting out.
pub fn is_auto(name: &str, value: &str) -> bool {
    let named = WORKED_OUT
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name));
    named && value.trim().eq_ignore_ascii_case("auto")
}

/// What became of a setting, in one line.
pub fn tell(adapted: &Adapted) -> String {
    let pair = |(name, value): &(String, String)| format!("{name} = {value}");
    let became: Vec<String> = adapted.became.iter().map(pair).collect();
    let asked = pair(&adapted.asked);
    match became.as_slice() {
        [] => format!("{asked} left out: {}", adapted.why),
        [same] if *same == asked => format!("{asked}: {}", adapted.why),
        _ => format!("{asked} became {}: {}", became.join(", "), adapted.why),
    }
}

fn last_of_each(asked: &[(String, String)]) -> Vec<(String, String)> {
    let overridden = |place: usize, name: &str| {
        let mut later = asked.iter().skip(place + 1);
        later.any(|(other, _)| other.eq_ignore_ascii_case(name))
    };
    asked
        .iter()
        .enumerate()
        .filter(|(place, (name, _))| !overridden(*place, name))
        .map(|(_, (name, value))| (name.to_ascii_lowercase(), value.clone()))
        .collect()
}

struct Fitting<'a> {
    asked: &'a [(String, String)],
    catalogue: &'a Catalogue,
    libraries: Libraries,
    memory_bytes: u64,
}

impl Fitting<'_> {
    fn fit(&self, name: &str, value: &str, to: &mut Adaptation) -> Result<(), Problem> {
        if let Some((library, _)) = name.split_once('.') {
            if self.misses(library) {
                let why = format!("the installation has no {library}");
                to.record(name, value, None, why);
            } else {
                to.settings.push((name.to_owned(), value.to_owned()));
            }
            return Ok(());
        }
        if !self.catalogue.has(name)? {
            return self.translate(name, value, to);
        }
        if is_auto(name, value) {
            to.settings.push((name.to_owned(), value.to_owned()));
            return Ok(());
        }
        let resolved = self.resolve(name, value, None)?;
        let case = Case {
            name,
            value: &resolved,
            entry: self.catalogue.entry(name),
            version_num: self.catalogue.version_num(),
            libraries: &self.libraries,
        };
        match RULES.iter().find_map(|rule| (rule.fit)(&case)) {
            None => to.settings.push((name.to_owned(), resolved)),
            Some(Fit::Becomes(other, why)) => to.record(name, value, Some((name, other)), why),
            Some(Fit::Dropped(why)) => to.record(name, value, None, why),
        }
        Ok(())
    }

    /// For a setting that the server does not have under this name.
    fn translate(&self, name: &str, value: &str, to: &mut Adaptation) -> Result<(), Problem> {
        let (server, version_num) = (self.catalogue.server(), self.catalogue.version_num());
        let renaming = match translation::renaming(name, version_num) {
            Some(renaming) if self.catalogue.has(renaming.name())? => renaming,
            _ => {
                let period = history::period(name).ok_or_else(|| self.catalogue.unknown(name))?;
                to.record(name, value, None, translation::when(period, version_num));
                return Ok(());
            }
        };
        let other = renaming.name();
        if self.asked.iter().any(|(set, _)| set == other) {
            to.record(name, value, None, format!("{other} is set as well"));
            return Ok(());
        }
        let resolved = self.resolve(name, value, Some(renaming))?;
        let target = self.completion_target();
        let (converted, why) = translation::convert(renaming, &resolved, version_num, target)
            .ok_or_else(|| {
                Problem::new(format!(
                    "{name} = {value} cannot be translated for {server}"
                ))
                .detail(format!(
                    "it has {other}, but deltabench does not understand the value"
                ))
            })?;
        to.record(name, value, Some((other, converted)), why);
        Ok(())
    }

    /// The value with a share of memory worked out.
    fn resolve(
        &self,
        name: &str,
        value: &str,
        renaming: Option<Renaming>,
    ) -> Result<String, Problem> {
        let Some(share) = share(value) else {
            return Ok(value.to_owned());
        };
        let kind = self.catalogue.entry(name).map(|entry| entry.kind);
        if kind == Some(Kind::Text) {
            return Ok(value.to_owned());
        }
        let memory = match renaming {
            Some(renaming) => renaming.is_from_memory(),
            None => self.catalogue.takes_memory(name)?,
        };
        if !memory || share <= 0.0 {
            let what = if memory {
                "that is zero"
            } else {
                "it is not an amount of memory"
            };
            return Err(Problem::new(format!("{name} cannot be {value}"))
                .detail(format!("{value} is a share of the server's memory; {what}"))
                .hint(format!("write {name} as a number")));
        }
        let bytes = to_f64(self.memory_bytes) * share / 100.0;
        Ok(if bytes < 1_048_576.0 {
            format!("{}kB", to_u64((bytes / 1024.0).floor()))
        } else {
            format!("{}MB", to_u64((bytes / 1_048_576.0).floor()))
        })
    }

    /// The `checkpoint_completion_target` that the server will have.
    fn completion_target(&self) -> f64 {
        let name = "checkpoint_completion_target";
        let set = self.asked.iter().find(|(set, _)| set == name);
        let default = if self.catalogue.version_num() < 140_000 {
            0.5
        } else {
            0.9
        };
        set.and_then(|(_, value)| value.trim().parse().ok())
            .unwrap_or(default)
    }

    /// Whether this library would have been preloaded and is not there.
    fn misses(&self, library: &str) -> bool {
        self.asked
            .iter()
            .filter(|(name, _)| name == "shared_preload_libraries")
            .any(|(_, list)| {
                let (_, missing) = self.libraries.sort(list);
                missing
                    .iter()
                    .any(|name| name.rsplit('/').next() == Some(library))
            })
    }
}

impl Adaptation {
    fn record(&mut self, name: &str, value: &str, became: Option<(&str, String)>, why: String) {
        let became = became.map(|(name, value)| (name.to_owned(), value));
        self.settings.extend(became.clone());
        self.adapted.push(Adapted {
            asked: (name.to_owned(), value.to_owned()),
            became: became.into_iter().collect(),
            why,
        });
    }
}

/// The number of a value such as `25%`.
fn share(value: &str) -> Option<f64> {
    let number = value.trim().strip_suffix('%')?.trim_end();
    number.parse().ok().filter(|share: &f64| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configurations::Configurations;
    use deltabench_model::installation::Origin;

    fn installation() -> Installation {
        Installation {
            asked: "src:postgresql-9.4.26".into(),
            resolved: "src:postgresql-9.4.26+def".into(),
            origin: Origin::Built,
            bin_dir: "/no/such/bin".into(),
            version_num: 90_426,
            version: "9.4.26".into(),
            binary_sha256: String::new(),
            build: None,
            recipe: None,
            remote: None,
            engine: deltabench_model::installation::Engine::Postgres,
        }
    }

    /// Some of what a server from before 9.5 lists.
    fn catalogue() -> Catalogue {
        let integer = |name: &str| format!("{name}\tuser\tg\tINTEGER\t0\t0\t2147483647\t\t\n");
        let names = [
            "autovacuum_vacuum_cost_delay",
            "bgwriter_delay",
            "checkpoint_segments",
            "checkpoint_timeout",
            "checkpoint_warning",
            "log_autovacuum_min_duration",
            "shared_buffers",
        ];
        let text = "bgwriter_lru_maxpages\tsighup\tg\tINTEGER\t0\t0\t1000\t\t\n\
            checkpoint_completion_target\tsighup\tg\tREAL\t0\t0\t1\t\t\n\
            wal_level\tpostmaster\tg\tENUM\tminimal\t\t\t\t\n";
        let listed: String = names.iter().map(|name| integer(name)).collect();
        Catalogue::parse(
            "src:postgresql-9.4.26+def",
            90_426,
            &format!("{listed}{text}"),
        )
    }

    fn adapted(asked: &[(&str, &str)]) -> Result<Adaptation, Problem> {
        let asked: Vec<(String, String)> = asked
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        adapt(&asked, &installation(), &catalogue(), 4 << 30)
    }

    #[test]
    fn a_server_from_before_max_wal_size_gets_what_it_has() {
        let cx7 = Configurations::builtin().unwrap().get("cx7").unwrap();
        let asked: Vec<(&str, &str)> = cx7
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(name, _)| {
                // The others are in both, and not in this short list.
                let there = catalogue().entry(name).is_some();
                there || ["max_wal_size", "max_parallel_workers"].contains(name)
            })
            .collect();
        let told: Vec<String> = adapted(&asked).unwrap().adapted.iter().map(tell).collect();
        assert_eq!(
            told,
            [
                "max_parallel_workers = 0 left out: 9.4 has no max_parallel_workers; 10 introduced it",
                "wal_level = replica became wal_level = hot_standby: 9.4 calls it hot_standby",
                "bgwriter_lru_maxpages = 2000 became bgwriter_lru_maxpages = 1000: 9.4 accepts at most 1000",
                "max_wal_size = 40GB became checkpoint_segments = 1024: 9.4 calls it checkpoint_segments; \
                 checkpoints stay as far apart: segments of 16 MB / 2.5",
            ]
        );
    }

    #[test]
    fn names_that_a_version_has_neither_before_nor_after_are_left_out() {
        // It was renamed in 16, and 9.4 has neither.
        let adaptation = adapted(&[("debug_parallel_query", "on")]).unwrap();
        assert_eq!(adaptation.settings, []);
        let [only] = adaptation.adapted.as_slice() else {
            panic!("{:?}", adaptation.adapted);
        };
        assert_eq!(only.became, []);
        assert_eq!(
            only.why,
            "9.4 has no debug_parallel_query; 16 introduced it"
        );
    }

    #[test]
    fn a_share_of_memory_survives_the_change_of_name() {
        let adaptation = adapted(&[
            ("max_wal_size", "100%"),
            ("checkpoint_completion_target", "0.9"),
        ])
        .unwrap();
        let asked = &adaptation.adapted.first().unwrap().asked;
        assert_eq!(asked.1, "100%");
        // 256 segments / 2.9.
        let segments = ("checkpoint_segments".to_owned(), "88".to_owned());
        assert!(adaptation.settings.contains(&segments), "{adaptation:?}");
    }

    #[test]
    fn the_last_asking_counts_and_what_nobody_has_is_refused() {
        let adaptation = adapted(&[
            ("Checkpoint_Timeout", "5min"),
            ("checkpoint_timeout", "1h"),
            ("some.setting", "1"),
        ])
        .unwrap();
        let names: Vec<&str> = adaptation
            .settings
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["checkpoint_timeout", "some.setting"]);
        assert_eq!(adaptation.settings[0].1, "1h");
        let problem = adapted(&[("chekpoint_timeout", "1h")]).unwrap_err();
        assert_eq!(
            problem.hint.as_deref(),
            Some("did you mean checkpoint_timeout?")
        );
        let problem = adapted(&[("max_wal_size", "much")]).unwrap_err();
        assert!(
            problem
                .error
                .contains("cannot be translated for src:postgresql-9.4.26")
        );
    }
}
