//! Hashes of sources, for what must be made again after an update: nobody has to raise a number.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Gives a crate a variable with the hash of its sources and of those of all crates of ours that it uses.
/// `parts`: folders of each.
pub fn export(name: &str, parts: &[&str], variable: &str) {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = root.unwrap_or_default();
    let crates = here.join("..");
    let mut waiting = vec![name.to_owned()];
    let mut seen = BTreeSet::new();
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    while let Some(name) = waiting.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let manifest = crates.join(&name).join("Cargo.toml");
        let Ok(text) = fs::read_to_string(&manifest) else {
            eprintln!("cannot read {}", manifest.display());
            std::process::exit(1);
        };
        println!("cargo::rerun-if-changed={}", manifest.display());
        waiting.extend(dependencies(&text));
    }
    for name in &seen {
        for part in parts {
            let sources = crates.join(name).join(part);
            if sources.is_dir() {
                println!("cargo::rerun-if-changed={}", sources.display());
                add(&sources, &mut hash);
            }
        }
    }
    // Packages of others compute, too.
    let lock = crates.join("..").join("Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    hash.add(&fs::read(lock).unwrap_or_default());
    println!("cargo::rustc-env={variable}={:016x}", hash.0);
}

/// The crates of ours that a manifest names, without those of its tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let lines = manifest
        .lines()
        .take_while(|line| *line != "[dev-dependencies]");
    let named = lines.filter_map(|line| line.strip_prefix("deltabench-"));
    let name = |line: &str| {
        let letters = line.chars().take_while(|letter| letter.is_alphanumeric());
        letters.collect()
    };
    named.map(name).collect()
}

/// Adds all files below a folder, in the order of their names.
fn add(folder: &Path, hash: &mut Hash) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        hash.add(path.file_name().unwrap_or_default().as_encoded_bytes());
        match path.is_dir() {
            true => add(&path, hash),
            false => hash.add(&fs::read(&path).unwrap_or_default()),
        }
    }
}

/// FNV-1a, 64 bits.
struct Hash(u64);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
