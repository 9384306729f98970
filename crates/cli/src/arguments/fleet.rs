//! `deltabench fleet`.

use super::conditions::Servers;
use super::experiment::RunArguments;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `deltabench fleet`.
#[derive(Debug, Args)]
pub struct FleetArguments {
    /// What to do
    #[command(subcommand)]
    pub command: FleetCommand,
}

/// The commands of a fleet.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Plan an experiment as `deltabench run` does, hand its parts to hosts, watch them, and report
    Run(Box<FleetRun>),
    /// Show where each unit is until all have ended, then report; may be left and given again
    Watch(Watch),
    /// Show where each unit is now, how the execution ended, and what somebody has to do
    Status(NamedExecution),
    /// List the executions of this lab on fleets, and how each ended
    List,
    /// Hand in again what was lost, interrupted or cancelled, then watch; name a unit that failed to try it
    /// again
    Resume(Resume),
    /// Take what hosts have measured so far into the lab
    Gather(NamedExecution),
    /// End all lanes of an execution; what is measured stays, and `resume` goes on
    Cancel(NamedExecution),
    /// Print the output of the lane of a unit, or of all lanes
    Logs(NamedUnit),
    /// Ask each host whether it can measure: doctor's checks, its lock, its clock, what is shipped
    Check(Check),
    /// List the hosts of a fleet file
    Hosts(OnFleet),
    /// Avoid a host from now on, in all executions of a fleet file
    Drain(Drain),
    /// Print the script that Slurm runs as root before each job: steady clocks, huge pages
    NodeProlog,
    /// Print the script that Slurm runs as root after each job: puts back, removes what was left
    NodeEpilog,
    /// Print the script that Slurm runs on idle hosts: disk, clock, servers that were left
    NodeHealth,
    /// Measure a lane on this host; the engine starts it
    #[command(hide = true)]
    Lane(LaneArguments),
    /// Say what this host is like; the engine starts it
    #[command(hide = true)]
    Look(LookArguments),
    /// Gather and report after all lanes; the engine starts it
    #[command(hide = true)]
    After(AfterArguments),
}

/// `deltabench fleet run`.
#[derive(Debug, Args)]
pub struct FleetRun {
    /// The fleet file: engine, shared directory, which hosts
    #[arg(long, value_name = "FILE")]
    pub on: PathBuf,
    /// Hand the lanes in and stop; `deltabench fleet watch` shows how they go on. If hosts get copies, a
    /// process in the background watches them
    #[arg(long)]
    pub detach: bool,
    /// Do this instead of measuring: for tests of the machinery
    #[arg(long, hide = true, value_name = "WORDS")]
    pub engine_fixture: Option<String>,
    /// What to run
    #[command(flatten)]
    pub run: RunArguments,
}

/// `deltabench fleet watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// The execution, or the beginning of its name
    #[arg(value_name = "EXECUTION", default_value = "last")]
    pub execution: String,
    /// Watch in the background, unless a process does so already; `deltabench fleet logs` prints what it
    /// says
    #[arg(long)]
    pub detach: bool,
    /// Be the process in the background; its standard input is the lock
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub alone: bool,
}

/// `deltabench fleet resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The execution, and a unit that failed
    #[command(flatten)]
    pub named: NamedUnit,
    /// Hand the lanes in and stop. If hosts get copies, a process in the background watches them
    #[arg(long)]
    pub detach: bool,
}

/// An execution.
#[derive(Debug, Args)]
pub struct NamedExecution {
    /// The execution, or the beginning of its name
    #[arg(value_name = "EXECUTION", default_value = "last")]
    pub execution: String,
}

/// An execution, or a unit of it.
#[derive(Debug, Args)]
pub struct NamedUnit {
    /// The execution, or the beginning of its name
    #[arg(value_name = "EXECUTION", default_value = "last")]
    pub execution: String,
    /// Number of a unit
    #[arg(value_name = "UNIT")]
    pub unit: Option<u32>,
}

/// A fleet file.
#[derive(Debug, Args)]
pub struct OnFleet {
    /// The fleet file
    #[arg(long, value_name = "FILE")]
    pub on: PathBuf,
}

/// `deltabench fleet drain`.
#[derive(Debug, Args)]
pub struct Drain {
    /// The host, as the engine calls it
    #[arg(value_name = "HOST")]
    pub host: String,
    /// Why
    #[arg(value_name = "REASON")]
    pub reason: Option<String>,
    /// Use the host again, also where an execution found it unfit
    #[arg(long, conflicts_with = "reason")]
    pub undo: bool,
    /// The fleet file
    #[arg(long, value_name = "FILE")]
    pub on: PathBuf,
}

/// `deltabench fleet check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The fleet file
    #[arg(long, value_name = "FILE")]
    pub on: PathBuf,
    /// How long to wait for hosts that are busy
    #[arg(long, value_name = "MINUTES", default_value_t = 5)]
    pub wait_minutes: u32,
}

/// `deltabench fleet look`.
#[derive(Debug, Args)]
pub struct LookArguments {
    /// The shared directory
    pub shared: PathBuf,
    /// Where the answer goes
    pub answers: PathBuf,
    /// Number of the job's element
    pub element: u32,
    /// How the engine calls this host
    #[arg(long)]
    pub node: String,
    /// Print the answer, with the time here, instead of writing it
    #[arg(long)]
    pub print: bool,
    /// Directory on a disk of this host
    #[arg(long)]
    pub local: Option<PathBuf>,
}

/// `deltabench fleet lane`.
#[derive(Debug, Args)]
pub struct LaneArguments {
    /// The file with all lanes
    pub lanes: PathBuf,
    /// Number of the lane
    pub lane: u32,
    /// How servers run here
    #[command(flatten)]
    pub servers: Servers,
}

/// `deltabench fleet after`.
#[derive(Debug, Args)]
pub struct AfterArguments {
    /// The file with all lanes
    pub lanes: PathBuf,
    /// Number of the job's element
    pub element: u32,
}
