//! A known slowdown, made on purpose: CPU that every message from a client costs a server on top.

use crate::failure::failed;
use crate::preload::{self, PRELOAD};
use deltabench_model::problem::Problem;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library's source; it says how it burns and why so.
const SOURCE: &str = include_str!("burn.c");
/// File name of the library.
const LIBRARY: &str = "libdeltabench_burn.so";
/// The variable that the library reads.
const VARIABLE: &str = "DELTABENCH_BURN_NS";

/// A small library that is loaded into every process of a server, built on this machine.
///
/// After every successful `recv` on a stream socket it burns a number of nanoseconds of CPU: once for each
/// packet of messages from a client, which is once for each statement that is sent in one piece. It works
/// with every dynamically linked server.
///
/// Accuracy: about 0.01 µs at the median on a quiet machine. A packet of more than 8 KiB is received in
/// pieces and burns for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Burn {
    library: PathBuf,
}

impl Burn {
    /// Builds the library into a workspace's directory, with the C compiler called `cc`.
    ///
    /// Errors: no `cc` here, a directory that cannot be written or that the dynamic linker cannot take.
    pub fn build(workspace_dir: &Path) -> Result<Self, Problem> {
        let library = preload::place(workspace_dir, LIBRARY)?;
        let source = workspace_dir.join("burn.c");
        std::fs::write(&source, SOURCE).map_err(|error| failed("write", &source, &error))?;
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-o"])
            .arg(&library)
            .arg(&source)
            // The library of `dlsym` before glibc 2.34, an empty one since.
            .arg("-ldl")
            .output()
            .map_err(|error| {
                Problem::new("cannot build the library that slows a server down")
                    .detail(format!("cc: {error}"))
                    .hint("install a C compiler that can be called as `cc`")
            })?;
        if !output.status.success() {
            return Err(
                Problem::new("cannot build the library that slows a server down")
                    .detail(String::from_utf8_lossy(&output.stderr).into_owned())
                    .hint("install a C compiler with its headers (gcc, libc6-dev)"),
            );
        }
        let library = preload::readable(&library)?;
        Ok(Self { library })
    }

    /// Variables for [`Slot::environment`](crate::Slot) of a server that burns so many nanoseconds for each
    /// packet.
    ///
    /// Give all servers of a comparison one, those that are not slowed down with 0: then the library is in
    /// all of them, and their environments have the same size, which moves the stack and with it the timing.
    pub fn environment(&self, ns: u64) -> Vec<(String, String)> {
        vec![
            (PRELOAD.to_owned(), self.library.display().to_string()),
            (VARIABLE.to_owned(), format!("{ns:012}")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn environments_have_the_same_size_whatever_is_burnt() {
        let burn = Burn {
            library: PathBuf::from("/w/x.so"),
        };
        let size = |ns| -> usize {
            burn.environment(ns)
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum()
        };
        assert_eq!(size(0), size(123_456_789));
        assert_eq!(
            burn.environment(20_000),
            [
                ("LD_PRELOAD".to_owned(), "/w/x.so".to_owned()),
                (VARIABLE.to_owned(), "000000020000".to_owned())
            ]
        );
    }

    #[test]
    fn a_directory_that_the_linker_cannot_take_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let problem = Burn::build(&scratch.path().join("a b")).unwrap_err();
        assert!(problem.detail.unwrap().contains("blank"));
        let problem = Burn::build(&scratch.path().join("missing")).unwrap_err();
        assert!(problem.error.starts_with("cannot write"), "{problem}");
    }

    #[test]
    fn only_messages_on_stream_sockets_burn() {
        let scratch = tempfile::tempdir().unwrap();
        let burn = Burn::build(scratch.path()).unwrap();
        let program = scratch.path().join("program");
        let source = scratch.path().join("program.c");
        std::fs::write(
            &source,
            "#include <stdlib.h>\n#include <sys/socket.h>\n#include <unistd.h>\n\
             int main(int n, char **words) {\n\
             int pair[2]; char byte = 1;\n\
             socketpair(AF_UNIX, n > 1 ? SOCK_DGRAM : SOCK_STREAM, 0, pair);\n\
             for (int i = 0; i < 10; i++) {\n\
             if (write(pair[0], &byte, 1) != 1 || recv(pair[1], &byte, 1, 0) != 1) abort();\n\
             if (recv(pair[1], &byte, 1, MSG_DONTWAIT) != -1) abort(); } }\n",
        )
        .unwrap();
        let built = Command::new("cc")
            .arg("-o")
            .args([&program, &source])
            .status();
        assert!(built.unwrap().success());
        let run = |arguments: &[&str], ns| {
            let started = Instant::now();
            let status = Command::new(&program)
                .args(arguments)
                .envs(burn.environment(ns))
                .status();
            assert!(status.unwrap().success());
            started.elapsed().as_millis()
        };
        // Ten messages of 30 ms; the lower side is certain on a busy machine too, the upper only where one
        // message would burn more than a busy machine needs for the whole program.
        assert!(run(&[], 30_000_000) >= 300);
        assert!(run(&["datagram"], 30_000_000_000) < 30_000);
        assert!(run(&[], 0) < 30_000);
    }
}
