//! Builds the libraries that are loaded into a server without a compiler on its machine: another time, and
//! marks of a counter. They go into the binary.

use std::path::PathBuf;

/// The libraries, each of one source.
const NAMES: [&str; 2] = ["clock", "mark"];

fn main() {
    for name in NAMES {
        build(name);
    }
}

fn build(name: &str) {
    let source = format!("src/{name}.c");
    println!("cargo::rerun-if-changed={source}");
    let library = std::env::var_os("OUT_DIR").map(PathBuf::from);
    let library = library
        .unwrap_or_default()
        .join(format!("libdeltabench_{name}.so"));
    let mut command = cc::Build::new().opt_level(2).get_compiler().to_command();
    command
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        // The library of `dlsym` before glibc 2.34, an empty one since.
        .arg("-ldl");
    match command.status() {
        Ok(status) if status.success() => {}
        other => {
            eprintln!("cannot build {source}: {other:?}");
            std::process::exit(1);
        }
    }
}
