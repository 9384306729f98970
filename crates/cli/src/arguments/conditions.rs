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
    /// Seed of every order, key and draw [default: from the clock; it is printed and stored]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Compare a target with itself on purpose (an A/A run)
    #[arg(long)]
    pub same_target: bool,
    /// A setting for every server; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// A named configuration for every server instead of the steady one: see `deltabench configs`, or a .conf
    /// file
    #[arg(long = "config", value_name = "NAME|FILE")]
    pub configuration: Option<String>,
    /// A named configuration for the candidates only; the question is then what it does
    #[arg(long = "candidate-config", value_name = "NAME|FILE")]
    pub candidate_configuration: Option<String>,
    /// A setting for the candidates only; may be repeated: the question is then what it does
    #[arg(long = "candidate-set", value_name = "NAME=VALUE")]
    pub candidate_settings: Vec<String>,
    /// What servers may use of the machine, and what their caches hold
    #[command(flatten)]
    pub limits: LimitArguments,
    /// Collect no counters and no one-second series
    #[arg(long)]
    pub no_counters: bool,
    /// Data checksums: the same on every server, or each version's own default
    #[arg(long, value_enum, default_value_t = Checksums::On)]
    pub checksums: Checksums,
    /// How servers run here
    #[command(flatten)]
    pub servers: Servers,
    /// Where the results go
    #[command(flatten)]
    pub output: Output,
}

/// How servers run here.
#[derive(Debug, Clone, Args)]
pub struct Servers {
    /// Unprivileged user that runs the servers when deltabench is root [default: postgres, else nobody]
    #[arg(long, value_name = "USER")]
    pub server_user: Option<String>,
    /// Directory for data directories and sockets, removed afterwards [default: in the lab, for root in
    /// /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub cluster_dir: Option<PathBuf>,
    /// Huge pages for shared buffers: they halve the spread between restarts
    #[arg(long, value_enum, default_value_t = HugePagesWord::Try)]
    pub huge_pages: HugePagesWord,
}

/// Where the results go.
#[derive(Debug, Default, Args)]
pub struct Output {
    /// Write the JSON report here; `-` is stdout [default: in the lab directory]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the HTML report here [default: in the lab directory]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Version of the JSON report: 1 for scripts that were written for it
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub json_version: u8,
    /// Print every note and each cell's whole reason, not the five notes that matter most
    #[arg(long)]
    pub verbose: bool,
}

/// What servers may use of the machine, and what their caches hold.
#[derive(Debug, Clone, Args)]
pub struct LimitArguments {
    /// Memory of each server, page cache included, for example 512MB: what does not fit is really read
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Device of each server: gp3-3000, gp3-10000, io2-16000, a .toml file of your own, or the disk as it is
    #[arg(long, value_name = "NAME|FILE", default_value = AS_IS)]
    pub storage: String,
    /// What page cache and shared buffers hold when a visit to a cell starts
    #[arg(long, value_enum, default_value_t = CacheWord::AsIs)]
    pub cache_state: CacheWord,
    /// Run without the limits that this machine does not allow, and say so in the report
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
    /// Where the machine gives them.
    Try,
    /// Or refuse.
    On,
    /// Never.
    Off,
}

/// States of the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheWord {
    /// What the visits before have left
    AsIs,
    /// Nothing: each server is restarted and its data's pages are dropped before each visit
    Cold,
    /// As much as fits: tables and indexes are read before each visit
    Prewarmed,
}
