//! `deltabench engine-worker`: the process that loads a library and works it for a run, which starts it.

use crate::failure::Failure;
use deltabench_model::problem::Problem;
use std::io::IsTerminal;

/// Carries out the orders on stdin and answers on stdout.
///
/// Errors: a stdin that is a terminal, where nobody orders anything; orders that are none.
pub fn engine_worker() -> Result<u8, Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::Refused(
            Problem::new("a run starts the worker of an engine")
                .detail("it reads orders from standard input, but that is a terminal")
                .hint("deltabench rocksdb rocksdb:6.29.5 rocksdb:10.2.1 --quick"),
        ));
    }
    match deltabench_engine::work(stdin.lock(), std::io::stdout().lock()) {
        Ok(()) => Ok(0),
        Err(error) => Err(Failure::Failed(
            Problem::new("the worker of an engine failed").detail(error.to_string()),
        )),
    }
}
