//! Which scripts are sent, with what weights, and what their workloads are called.

use super::arguments::Scripts;
use crate::request::source;
use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchScript};
use deltabench_workload::pgbench::builtin;
use std::path::Path;

/// Longest name that is made of the names of several scripts.
const NAME_MAX: usize = 40;

/// What a mix with a longer one is called.
const MIX: &str = "pgbench-mix";

/// The workloads that the scripts make.
///
/// Errors: a built-in script that is not known, a file that cannot be read, a weight that is no number.
pub fn mixes(asked: &Scripts) -> Result<Vec<PgbenchMix>, Problem> {
    let mut scripts: Vec<(String, PgbenchScript)> = Vec::new();
    for text in builtins(asked) {
        let (name, weight) = weighted(&text)?;
        scripts.push(built_in(name, weight)?);
    }
    for text in &asked.files {
        let (path, weight) = weighted(text)?;
        scripts.push(of_file(Path::new(path), weight)?);
    }
    if asked.each {
        let alone = |(name, script)| PgbenchMix {
            name,
            scripts: vec![script],
        };
        return Ok(scripts.into_iter().map(alone).collect());
    }
    let (names, scripts): (Vec<String>, Vec<PgbenchScript>) = scripts.into_iter().unzip();
    Ok(vec![PgbenchMix {
        name: mix_name(&names),
        scripts,
    }])
}

fn builtins(asked: &Scripts) -> Vec<String> {
    let mut names = asked.builtins.clone();
    names.extend(asked.select_only.then(|| "select-only".to_owned()));
    names.extend(asked.skip_some_updates.then(|| "simple-update".to_owned()));
    if names.is_empty() && asked.files.is_empty() {
        names.push("tpcb-like".to_owned());
    }
    names
}

/// A script of the user's as a workload.
///
/// Errors: a file that cannot be read.
pub fn alone(path: &Path) -> Result<PgbenchMix, Problem> {
    let (name, script) = of_file(path, 1)?;
    Ok(PgbenchMix {
        name,
        scripts: vec![script],
    })
}

/// A script of the user's: what its workload is called, and the script.
pub fn of_file(path: &Path, weight: u32) -> Result<(String, PgbenchScript), Problem> {
    let source = source(path).map_err(|problem| Problem {
        hint: Some(
            "`deltabench workloads show pgbench-select-only` prints a script to start from"
                .to_owned(),
        ),
        ..problem
    })?;
    Ok((name_of(path), PgbenchScript { source, weight }))
}

pub fn built_in(name: &str, weight: u32) -> Result<(String, PgbenchScript), Problem> {
    let found = builtin(name)?;
    let names = ["tpcb-like", "simple-update", "select-only"];
    let whole = names.iter().find(|known| known.starts_with(name));
    let name = format!("pgbench-{}", whole.unwrap_or(&name));
    Ok((
        name,
        PgbenchScript {
            source: found.source,
            weight,
        },
    ))
}

/// `NAME@3`: what stands before the last `@`, and the number after it; 1 without one.
fn weighted(text: &str) -> Result<(&str, u32), Problem> {
    let Some((name, weight)) = text.rsplit_once('@') else {
        return Ok((text, 1));
    };
    match weight.parse() {
        Ok(weight) if !name.is_empty() && weight <= i32::MAX.cast_unsigned() => Ok((name, weight)),
        _ => Err(Problem::new(format!("`{text}` has no weight after its @"))
            .hint("write for example --file my.sql@3; a name with an @ in it needs @1 at its end")),
    }
}

/// The name of a file without its ending, with what a name of a workload may have.
fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let allowed = |c: char| match c {
        'a'..='z' | '0'..='9' | '-' | '_' | '.' => c,
        'A'..='Z' => c.to_ascii_lowercase(),
        _ => '-',
    };
    let name: String = stem.chars().map(allowed).collect();
    match name.trim_matches(['-', '.']) {
        "" => "script".to_owned(),
        name => name.to_owned(),
    }
}

fn mix_name(names: &[String]) -> String {
    match names {
        [name] => name.clone(),
        names => {
            let joined = names.join("+");
            if joined.len() <= NAME_MAX {
                joined
            } else {
                MIX.to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(builtins: &[&str]) -> Scripts {
        Scripts {
            builtins: builtins.iter().map(|name| (*name).to_owned()).collect(),
            ..Scripts::default()
        }
    }

    fn shape(scripts: &Scripts) -> Vec<(String, Vec<u32>)> {
        let mixes = mixes(scripts).unwrap();
        mixes
            .into_iter()
            .map(|mix| {
                let weights = mix.scripts.iter().map(|script| script.weight).collect();
                (mix.name, weights)
            })
            .collect()
    }

    #[test]
    fn scripts_are_one_workload_unless_each_is_one() {
        assert_eq!(shape(&asked(&[])), [("pgbench-tpcb-like".into(), vec![1])]);
        let mut two = asked(&["se@3", "simple"]);
        assert_eq!(shape(&two), [("pgbench-mix".into(), vec![3, 1])]);
        two.each = true;
        assert_eq!(
            shape(&two),
            [
                ("pgbench-select-only".into(), vec![3]),
                ("pgbench-simple-update".into(), vec![1])
            ]
        );
    }

    #[test]
    fn a_weight_stands_after_the_last_at() {
        assert_eq!(weighted("a@b@3").unwrap(), ("a@b", 3));
        assert_eq!(weighted("a").unwrap(), ("a", 1));
        for bad in ["a@", "a@-1", "@3", "a@x", "a@4294967295"] {
            assert!(
                weighted(bad).unwrap_err().hint.unwrap().contains("@3"),
                "{bad}"
            );
        }
    }

    #[test]
    fn names_of_files_become_names_of_workloads() {
        let name = |path: &str| name_of(Path::new(path));
        assert_eq!(name("/tmp/My Script.sql"), "my-script");
        assert_eq!(name("a.b.sql"), "a.b");
        assert_eq!(name("ü.sql"), "script");
    }

    #[test]
    fn a_script_that_is_not_known_is_refused_with_those_that_are() {
        let refused = mixes(&asked(&["tpcc"])).unwrap_err();
        assert!(refused.to_string().contains("simple-update"), "{refused}");
    }
}
