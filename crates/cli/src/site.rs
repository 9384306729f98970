//! `publish` and `web`: the pages of a lab.

use crate::arguments::site::{PublishArguments, WebArguments};
use crate::clock::seed_from_clock;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::store::open_to_read;
use crate::trend::places::commits;
use deltabench_model::problem::Problem;
use deltabench_site::Lab;
use deltabench_site::web::Door;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `deltabench publish`.
pub fn publish(arguments: &PublishArguments, config: &Config) -> Result<u8, Failure> {
    let mut lab = open(config, arguments.with_hosts)?;
    let execution = arguments.execution.as_deref();
    let done =
        deltabench_site::publish(&mut lab, &arguments.directory, execution).map_err(failure)?;
    say(&format!(
        "{}: {} files written, {} unchanged, {} removed",
        arguments.directory.display(),
        done.written,
        done.unchanged,
        done.removed
    ));
    Ok(0)
}

fn open(config: &Config, shows_hosts: bool) -> Result<Lab, Failure> {
    let lab = Lab::open(&config.lab, shows_hosts);
    let lab = lab.map_err(|problem: Problem| {
        Failure::Refused(problem.hint("name the lab with --lab DIR"))
    })?;
    // Says which archived runs cannot be read: trends leave them out.
    open_to_read(config)?;
    Ok(lab.with_places(commits))
}

/// `deltabench web`.
pub fn web(arguments: &WebArguments, config: &Config) -> Result<u8, Failure> {
    let address = arguments.listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let door = door(address, arguments.token_file.as_deref()).map_err(Failure::Refused)?;
    let lab = open(config, true)?;
    let ready = |at: SocketAddr| {
        say(&format!(
            "{} is shown at http://{at}/",
            config.lab.display()
        ));
        if let Some(file) = &arguments.token_file {
            let file = file.display();
            say(&format!(
                "visitors open http://{at}/enter?token=TOKEN once, with the token of {file}"
            ));
        }
        say("Ctrl-C ends it");
    };
    let at = SocketAddr::new(address, arguments.port);
    deltabench_site::web::serve(lab, (at, door), Box::new(keep_off), ready).map_err(failure)?;
    Ok(0)
}

/// Who may come in. Visitors of other machines need a token.
///
/// Errors: an address of a network without a token, a token that is none.
fn door(address: IpAddr, token_file: Option<&Path>) -> Result<Door, Problem> {
    match token_file {
        None if address.is_loopback() => Ok(Door::own()),
        None => Err(
            Problem::new(format!("--listen {address} needs --token-file FILE"))
                .detail("everybody who reaches this address could read the lab")
                .hint(
                    "leave out --listen and use `ssh -L 7755:127.0.0.1:7755 HOST`, or name a file",
                ),
        ),
        Some(file) => {
            let random = deltabench_model::units::to_f64(seed_from_clock()).to_string();
            Ok(Door::with_token(&token(file)?, &random))
        }
    }
}

/// Letters that a token must have at least.
const TOKEN_LETTERS: usize = 16;

/// The token of a file, which is made for its owner alone if it is not there.
fn token(file: &Path) -> Result<String, Problem> {
    let refused = |error: std::io::Error| {
        Problem::new(format!("cannot use the token file {}", file.display()))
            .detail(error.to_string())
    };
    if !file.exists() {
        let mut bytes = [0; TOKEN_LETTERS];
        let random = std::fs::File::open("/dev/urandom");
        random
            .and_then(|mut random| random.read_exact(&mut bytes))
            .map_err(refused)?;
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let made = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file);
        made.and_then(|mut made| writeln!(made, "{token}"))
            .map_err(refused)?;
    }
    let text = std::fs::read_to_string(file).map_err(refused)?;
    let token = text.lines().next().unwrap_or_default().trim();
    let fits = token.len() >= TOKEN_LETTERS && token.chars().all(|c| c.is_ascii_alphanumeric());
    if !fits {
        return Err(Problem::new(format!("{} has no token", file.display()))
            .detail(format!(
                "its first line must have at least {TOKEN_LETTERS} letters and digits"
            ))
            .hint("remove the file, and deltabench makes one"));
    }
    Ok(token.to_owned())
}

/// Keeps this process off cores, as far as there are others.
fn keep_off(cores: &[usize]) {
    let online = 0..std::thread::available_parallelism()
        .map_or(1, usize::from)
        .max(ALL_CORES);
    let others: Vec<usize> = online.filter(|core| !cores.contains(core)).collect();
    // Where the kernel refuses, the server stays where it is: pages that need an analysis wait anyway.
    let _ = deltabench_observe::pin_tree(std::process::id(), &others);
}

/// Cores of a machine at most, as far as an affinity can name them; those that it does not have are ignored.
const ALL_CORES: usize = 1024;

fn failure(problem: Problem) -> Failure {
    match problem.of_machine {
        true => Failure::Failed(problem),
        false => Failure::Refused(problem),
    }
}
