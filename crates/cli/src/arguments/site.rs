//! Pages of a lab: `publish`, `web`.

use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

/// `deltabench publish`.
#[derive(Debug, Args)]
pub struct PublishArguments {
    /// The directory of the site: empty, not there yet, or published before
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Only the runs of this execution of an experiment
    #[arg(long, value_name = "NAME")]
    pub execution: Option<String>,
    /// Also show names of hosts, command lines, paths and server addresses
    #[arg(long)]
    pub with_hosts: bool,
}

/// `deltabench web`.
#[derive(Debug, Args)]
pub struct WebArguments {
    /// The port
    #[arg(long, value_name = "N", default_value_t = 7755)]
    pub port: u16,
    /// Listen on this address instead of 127.0.0.1; one of another machine's network needs --token-file
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<IpAddr>,
    /// A file whose first line is the token that visitors need; it is made if it is not there
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}
