//! Golden cases: every command's help and every error that a user can cause without a server.
//!
//! A case is `tests/cmd/NAME.toml`, or `.trycmd`; `TRYCMD=overwrite cargo test -p deltabench` re-writes them,
//! and the difference is to be read before it is committed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

#[test]
fn a_path_that_is_no_text_is_an_argument_like_others() {
    for targets in [
        ["rocksdb", "6.29.5", "10.2.1"],
        ["compare", "postgres:17", "postgres:18"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_deltabench"))
            .args(targets)
            .args(["--offline", "--cache", "/tmp/dbt-golden-cache", "--html"])
            .arg(OsStr::from_bytes(b"/nonexistent/\xff.html"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot write /nonexistent/"), "{said}");
    }
}

#[test]
fn golden_commands_say_what_they_said() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}
