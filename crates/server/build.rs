//! Builds the library that gives a server another time. It goes into the binary: whoever runs deltabench need
//! not have a compiler.

use std::path::PathBuf;

/// The source of the library.
const SOURCE: &str = "src/clock.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    let library = std::env::var_os("OUT_DIR").map(PathBuf::from);
    let library = library.unwrap_or_default().join("libdeltabench_clock.so");
    let mut command = cc::Build::new().opt_level(2).get_compiler().to_command();
    command
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(SOURCE)
        // The library of `dlsym` before glibc 2.34, an empty one since.
        .arg("-ldl");
    match command.status() {
        Ok(status) if status.success() => {}
        other => {
            eprintln!("cannot build {SOURCE}: {other:?}");
            std::process::exit(1);
        }
    }
}
