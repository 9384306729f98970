//! The `deltabench` binary.
fn main() {}
