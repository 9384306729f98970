//! Resolving in a process of its own, with its own environment.

use deltabench_acquire::{Cache, Sources, resolve};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Not a test of its own: [`start`] runs it in another process.
#[test]
#[ignore = "other tests run it in a process of its own"]
fn resolves_as_told() {
    let target = std::env::var("ACQUIRE_TEST_TARGET").expect("only run by other tests");
    let cache = Cache::open(Cache::default_root()).unwrap();
    let mut say = |line: &str| println!("progress: {line}");
    let found = resolve(
        &target.parse().unwrap(),
        &cache,
        &Sources::default(),
        &mut say,
    )
    .unwrap();
    println!("result: {}", serde_json::to_string(&found).unwrap());
}

/// Starts a process that resolves `target` with a cache and a search path of its own.
pub(crate) fn start(target: &str, cache: &Path, search: Option<&Path>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "child::resolves_as_told",
        ])
        .env("ACQUIRE_TEST_TARGET", target)
        .env("DELTABENCH_CACHE", cache)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    if let Some(search) = search {
        command.env("PATH", search);
    }
    command.spawn().unwrap()
}

/// What the process said: its progress lines and the installation.
pub(crate) fn finish(child: Child) -> (Vec<String>, serde_json::Value) {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    // The test runner prints its own words in front of the first line.
    let after = |mark: &'static str| {
        said.lines()
            .filter_map(move |line| Some(line.split_once(mark)?.1.to_owned()))
    };
    let result = after("result: ")
        .next()
        .ok_or_else(|| format!("no result in {said}"))
        .unwrap();
    (
        after("progress: ").collect(),
        serde_json::from_str(&result).unwrap(),
    )
}
