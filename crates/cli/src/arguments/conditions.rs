//! What is held on all servers, how they run here, and where the results go.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The word for a device without limits.
pub const AS_IS: &str = "as-is";

/// What is held on all servers, and where the results go.
#[derive(Debug, Args)]
pub struct Conditions {
    /// How the client reaches the servers
    #[arg(long, value_enum, default_value_t = TransportWord::Socket)]
    pub transport: TransportWord,
    /// Seed of all random choices [default: from the clock, printed and stored; 1 for count and explain]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Compare a target with itself on purpose (an A/A run)
    #[arg(long)]
    pub same_target: bool,
    /// A setting of every server; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// Configuration of every server: a name from `deltabench configs`, or a .conf file [default: the steady
    /// configuration]
    #[arg(long = "config", value_name = "NAME|FILE")]
    pub configuration: Option<String>,
    /// Configuration of the candidates only, to measure what it changes
    #[arg(long = "candidate-config", value_name = "NAME|FILE")]
    pub candidate_configuration: Option<String>,
    /// A setting of the candidates only, to measure what it changes; may be repeated
    #[arg(long = "candidate-set", value_name = "NAME=VALUE")]
    pub candidate_settings: Vec<String>,
    /// Collect no counters and no one-second series
    #[arg(long)]
    pub no_counters: bool,
    /// Data checksums of the servers
    #[arg(long, value_enum, default_value_t = Checksums::On)]
    pub checksums: Checksums,
    /// What servers may use of the machine, and what their caches hold
    #[command(flatten, next_help_heading = "Memory and storage")]
    pub limits: LimitArguments,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
    /// Where the results go
    #[command(flatten, next_help_heading = "Output")]
    pub output: Output,
}

/// How servers run here.
#[derive(Debug, Clone, Args)]
pub struct Servers {
    /// Unprivileged user that runs the servers when deltabench is root [default: postgres, else nobody]
    #[arg(long, value_name = "USER")]
    pub server_user: Option<String>,
    /// Directory for data directories and sockets, which are removed at the end [default: in the lab, for
    /// root in /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub cluster_dir: Option<PathBuf>,
    /// Huge pages for shared buffers, as production servers often have them
    #[arg(long, value_enum, default_value_t = HugePagesWord::Try)]
    pub huge_pages: HugePagesWord,
}

/// The version of the JSON report that nobody has to ask for.
pub const JSON_VERSION: u8 = 2;

/// Where the results go.
#[derive(Debug, Default, Args)]
pub struct Output {
    /// Write the JSON report here; `-` is stdout [default: in the lab directory]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the HTML report here [default: in the lab directory]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Version of the JSON report; 1 is for older scripts
    #[arg(long, value_name = "N", default_value_t = JSON_VERSION,
          value_parser = clap::value_parser!(u8).range(1..=2))]
    pub json_version: u8,
    /// Print every note and the whole reason of each cell, not only the five most important notes
    #[arg(long)]
    pub verbose: bool,
}

/// What servers may use of the machine, and what their caches hold.
#[derive(Debug, Clone, Args)]
pub struct LimitArguments {
    /// Memory of each server with its page cache, for example 512MB; data beyond it is read from the disk
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Speed of the disk of each server: gp3-3000, gp3-10000, io2-16000, your own .toml file, or as-is (not
    /// limited)
    #[arg(long, value_name = "NAME|FILE", default_value = AS_IS)]
    pub storage: String,
    /// Contents of page cache and shared buffers when a visit to a cell starts
    #[arg(long, value_enum, default_value_t = CacheWord::AsIs)]
    pub cache_state: CacheWord,
    /// Leave out limits that this machine does not allow; the report says so
    #[arg(long)]
    pub limits_optional: bool,
}

/// How the client reaches the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportWord {
    /// Local socket.
    Socket,
    /// TCP on the loopback address.
    Tcp,
    /// TLS over TCP on the loopback address.
    Tls,
}

/// Data checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Checksums {
    /// On for every server.
    On,
    /// Off for every server.
    Off,
    /// Each version's own default.
    Default,
}

/// Huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HugePagesWord {
    /// If the machine allows them.
    Try,
    /// Always; refuse to run without them.
    On,
    /// Never.
    Off,
}

/// States of the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheWord {
    /// What earlier visits left there
    AsIs,
    /// Nothing: before each visit the server restarts and its data leaves the page cache
    Cold,
    /// As much as fits: before each visit tables and indexes are read
    Prewarmed,
}
