//! What a run may be a part of: an experiment, several sessions, the conditions of another run.

use crate::cell::WorkloadSource;
use serde::{Deserialize, Serialize};

/// The part of an experiment that a run is: one run for each data size, memory, storage and repetition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentPart {
    /// Name of this execution of the experiment: all its runs have it in common.
    pub execution: String,
    /// Name of the experiment, from its file.
    pub experiment: String,
    /// The file, as it was.
    pub source: WorkloadSource,
    /// The scale it was carried out at; absent: as written.
    pub scale: Option<String>,
    /// Which part, from 1.
    pub part: u32,
    pub of: u32,
    /// Which group of its servers, from 1, and of how many: each group is a run with the base. Absent: all
    /// servers are in one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<(u32, u32)>,
    /// Which of the repetitions of these coordinates, from 1; each has a load of its own.
    pub repetition: u32,
    /// Where it stands on the axes that no run can vary by itself, in the order of the file: `("rows",
    /// "1000000")`, `("memory", "1GB")`, `("storage", "gp3-3000")`.
    pub coordinates: Vec<(String, String)>,
    /// Optional servers that this host or build cannot do: name and why.
    #[serde(default)]
    pub left_out: Vec<(String, String)>,
}

/// The session of a comparison that is measured in several of them, each with a load of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionPart {
    /// The run that is the first session; it stands for all of them.
    pub first: String,
    /// Which session, from 1.
    pub number: u32,
    pub of: u32,
    /// Seconds from the end of a session to the start of the next, at least.
    pub gap_seconds: f64,
}

/// One of the conditions of a run that are changed to see whether a ratio depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Varied {
    /// The client on a core of its own, not on the server's.
    OwnCore,
    /// Connections over TCP, not over a local socket.
    Tcp,
    /// Commits that wait for the disk, where they did not.
    Commits,
    /// Slices of 10 ms.
    Slices10,
    /// Slices of 40 ms.
    Slices40,
    /// Slices of 200 ms.
    Slices200,
}

impl Varied {
    /// All of them, in report order.
    pub const ALL: [Self; 6] = [
        Self::OwnCore,
        Self::Tcp,
        Self::Commits,
        Self::Slices10,
        Self::Slices40,
        Self::Slices200,
    ];

    /// Milliseconds of a slice, where that is what is changed.
    pub fn slice_ms(self) -> Option<u32> {
        match self {
            Self::OwnCore | Self::Tcp | Self::Commits => None,
            Self::Slices10 => Some(10),
            Self::Slices40 => Some(40),
            Self::Slices200 => Some(200),
        }
    }

    /// The word in files and in names of runs.
    pub fn word(self) -> &'static str {
        match self {
            Self::OwnCore => "own-core",
            Self::Tcp => "tcp",
            Self::Commits => "commits",
            Self::Slices10 => "slices-10",
            Self::Slices40 => "slices-40",
            Self::Slices200 => "slices-200",
        }
    }

    /// What is changed, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::OwnCore => "client on its own core",
            Self::Tcp => "over TCP",
            Self::Commits => "commits that wait",
            Self::Slices10 => "slices of 10 ms",
            Self::Slices40 => "slices of 40 ms",
            Self::Slices200 => "slices of 200 ms",
        }
    }
}

/// That a run measures changed cells of another one under another condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SensitivityPart {
    /// The run whose cells these are.
    pub of: String,
    pub varied: Varied,
}
