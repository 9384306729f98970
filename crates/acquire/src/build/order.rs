//! One thing to be built: its source, its recipe, and the key that both come to.

use super::probe::Probed;
use super::variant::Variant;
use super::workplace::Source;
use crate::tree::hex;
use deltabench_model::installation::Recipe;
use deltabench_model::target::{BuildSource, BuildSpec, Release};
use deltabench_proc::cpu::{cpuinfo, first_core};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// What deltabench itself does in a build: when that changes, builds made before are not what would be made
/// now.
const PROCEDURE: u32 = 1;

/// What is to be built, and how.
#[derive(Debug, Clone)]
pub(super) struct Order {
    /// `postgres:17.11+o3`.
    pub label: String,
    /// The label as a file name.
    pub name: String,
    pub source: Source,
    pub variant: Variant,
    pub recipe: Recipe,
    /// The CPU that it is built for, if only for that.
    pub cpu: Option<String>,
    pub notes: Vec<String>,
    /// Checksum of everything that the result depends on.
    pub key: String,
    /// Checksum of what was asked: the source and the variant's own words.
    pub wish: String,
    /// Checksum of everything but the commit: trees of one such are each other's neighbours.
    pub neighbours: String,
}

impl Order {
    /// A build of this source by the spec; of a release where there is one.
    pub fn new(
        spec: &BuildSpec,
        release: Option<&Release>,
        source: Source,
        variant: &Variant,
        probed: &Probed,
    ) -> Self {
        let label = label(spec, release, &source);
        let id = source.id().to_owned();
        let recipe = Recipe {
            variant: spec.variant.clone(),
            source: id.clone(),
            system: variant.system.word().to_owned(),
            options: probed.options.clone(),
            cflags: variant.cflags.clone(),
            ldflags: variant.ldflags.clone(),
            compiler: probed.compiler.clone(),
            environment: variant.environment.clone(),
        };
        let cpu = variant.is_native().then(cpu);
        let machine = (PROCEDURE, std::env::consts::ARCH, &cpu);
        let repository = match &source {
            Source::Archive(_) => None,
            Source::Commit(commit) => Some(commit.repository()),
        };
        let without_source = Recipe {
            source: String::new(),
            ..recipe.clone()
        };
        Self {
            name: file_name(&label),
            key: checksum(&(machine, variant.compiler(), &recipe)),
            wish: checksum(&(machine, &id, &spec.variant, variant)),
            neighbours: checksum(&(machine, repository, variant.compiler(), &without_source)),
            label,
            source,
            variant: variant.clone(),
            recipe,
            cpu,
            notes: probed.notes.clone(),
        }
    }

    /// The version of the source.
    pub fn version(&self) -> &str {
        match &self.source {
            Source::Archive(archive) => &archive.contents.version,
            Source::Commit(commit) => &commit.contents.version,
        }
    }
}

/// What the target came to.
fn label(spec: &BuildSpec, release: Option<&Release>, source: &Source) -> String {
    let what = match (&spec.source, source) {
        (BuildSource::Release(wanted), _) => format!("postgres:{}", release.unwrap_or(wanted)),
        (BuildSource::Named(name), _) if name.version().is_some() => format!("postgres:{name}"),
        // A branch moves.
        (BuildSource::Named(name), _) => {
            let id = source.id();
            format!("postgres:{name}@{}", id.get(..10).unwrap_or(id))
        }
        (_, Source::Archive(archive)) => format!("src:{}", archive.name()),
        (_, Source::Commit(commit)) => format!("git:{}", commit.label()),
    };
    format!("{what}+{}", spec.variant)
}

/// The label without its kind, of letters that no shell minds.
fn file_name(label: &str) -> String {
    let (_, rest) = label.split_once(':').unwrap_or(("", label));
    rest.chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() || "._+-@".contains(c) => c,
            _ => '-',
        })
        .collect()
}

/// SHA-256 of a value's JSON.
fn checksum(value: &impl Serialize) -> String {
    // Plain structs and strings: there is nothing that JSON cannot hold.
    let text = serde_json::to_vec(value).unwrap_or_default();
    hex(&Sha256::digest(text))
}

/// What `-march=native` goes by: the name of the CPU and a checksum of its features.
fn cpu() -> String {
    cpu_of(&cpuinfo())
}

fn cpu_of(cpuinfo: &str) -> String {
    const TELLING: [&str; 9] = [
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "flags",
        "Features",
        "CPU implementer",
        "CPU variant",
        "CPU part",
    ];
    let lines: Vec<(&str, &str)> = first_core(cpuinfo)
        .filter(|(name, _)| TELLING.contains(name))
        .collect();
    let name = lines
        .iter()
        .find(|(name, _)| matches!(*name, "model name" | "CPU part"));
    let name = name.map_or("unknown CPU", |(_, value)| *value);
    let sum = checksum(&lines);
    format!("{name}, {}", super::kept::short(&sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_hold_nothing_that_a_shell_minds() {
        assert_eq!(file_name("postgres:17.11+o3"), "17.11+o3");
        assert_eq!(file_name("git:my repo@abc+o3"), "my-repo@abc+o3");
        assert_eq!(file_name("src:a/b'c+o3"), "a-b-c+o3");
    }

    #[test]
    fn another_cpu_has_another_name_even_when_only_its_features_differ() {
        let one = "processor\t: 0\nmodel name\t: X\nflags\t: a b\ncpu MHz : 1\n\nprocessor : 1\n";
        let same = one.replace("cpu MHz : 1", "cpu MHz : 2");
        assert_eq!(cpu_of(one), cpu_of(&same));
        assert!(cpu_of(one).starts_with("X, "));
        assert_ne!(cpu_of(one), cpu_of(&one.replace("a b", "a b avx512f")));
    }
}
