//! Golden cases: every command's help and every error that a user can cause without a server.
//!
//! A case is `tests/cmd/NAME.toml`, or `.trycmd`; `TRYCMD=overwrite cargo test -p deltabench` re-writes them,
//! and the difference is to be read before it is committed.

#[test]
fn golden_commands_say_what_they_said() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}
