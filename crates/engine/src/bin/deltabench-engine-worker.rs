//! A worker alone, for tests: what the hidden `deltabench engine-worker` does.

use std::process::ExitCode;

fn main() -> ExitCode {
    match deltabench_engine::work(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
