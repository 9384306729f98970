//! A bisection: the points between a base and a candidate, and what was learnt of each.

use crate::plan::Plan;
use serde::{Deserialize, Serialize};

/// Name and version of the stored question.
pub const BISECTION_FORMAT: (&str, u32) = ("deltabench.bisection", 1);

/// What is bisected, stored first and never changed. Two bisections of the same question share their looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub format: String,
    pub version: u32,
    /// In order of time; the base is the first, the candidate the last.
    pub points: Vec<Point>,
    /// If the base is on another branch than the candidate: how many commits it has that the candidate lacks.
    /// The first point is then the newest commit that both have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_alone: Option<BaseAlone>,
    /// How both ends are counted: the base and the candidate, one cell. A look has another candidate.
    pub plan: Plan,
}

/// What a base of another branch has alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseAlone {
    /// The base that was asked for.
    pub commit: String,
    /// Its commits that the candidate lacks. They are not searched.
    pub commits: u64,
}

/// A server that may be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// As the user would name it: `postgres:17.5`, `git:DIR@COMMIT+o2_nofp`.
    pub target: String,
    /// What tables call it: `17.5`, the first ten letters of a commit.
    pub name: String,
    /// Of a commit: when it was committed, `2024-09-21`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Of a commit: the first line of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Whether it can differ from the point before: a commit of documents and tests cannot.
    pub may_differ: bool,
}

/// What was asked of a bisection: by its first command, or by a later one that went on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The smallest step that is searched, as a share.
    pub min: f64,
    /// How many steps at most.
    pub culprits: u32,
    /// Points that the user leaves out, by their numbers.
    pub skip: Vec<usize>,
    /// Builds of looks that are kept in the cache.
    pub keep_builds: u32,
    /// Seconds that one command may take; absent: as long as it takes.
    pub budget_seconds: Option<f64>,
    /// Whether culprits are only named by count, and not measured in time.
    #[serde(default)]
    pub count_only: bool,
    /// Restart blocks in which a culprit is measured next to its parent.
    #[serde(default = "default_blocks")]
    pub blocks: u32,
    /// What decides which points differ.
    #[serde(default)]
    pub metric: BisectedBy,
    /// CPU per operation of the candidate over the base in the run that is bisected, the end of its interval
    /// nearest to 1; absent without a run, and where that run does not show a change of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_of_run: Option<f64>,
}

/// What a bisection compares points by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BisectedBy {
    /// Counts, unless they do not show what changed; then CPU per operation.
    #[default]
    Auto,
    /// Instructions of an operation.
    Count,
    /// CPU of the server per operation.
    Cpu,
    Throughput,
}

impl BisectedBy {
    /// Whether points are measured in time from the start, and nothing is counted.
    #[must_use]
    pub fn is_in_time(self) -> bool {
        matches!(self, Self::Cpu | Self::Throughput)
    }
}

/// Blocks of a culprit where nothing else is asked for: those of a quick comparison, some two minutes.
pub const CULPRIT_BLOCKS: u32 = 14;

/// Fewer blocks of a culprit say too little: Student's t of four blocks or fewer is far from that of many,
/// and one odd restart is a large part of them.
pub const FEWEST_CULPRIT_BLOCKS: u32 = 6;

fn default_blocks() -> u32 {
    CULPRIT_BLOCKS
}

/// What was learnt of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Its number in the question.
    pub point: usize,
    pub outcome: Outcome,
    /// What its server is made of, as a checksum: points with the same one are the same server. Absent if
    /// there is no server.
    pub made_of: Option<String>,
    /// Seconds until its server was there: fetched, built or found.
    pub acquire_seconds: f64,
    /// Seconds of counting.
    pub count_seconds: f64,
    /// Whether its server was built for this look.
    pub built: bool,
}

/// A look in time: servers that are measured in the same restart blocks of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Together {
    pub run: String,
    /// Points in the order of the run's servers; the first is its base.
    pub points: Vec<usize>,
    /// What each of these servers is made of, as [`Look::made_of`].
    pub made_of: Vec<String>,
    /// Those that were built for this look.
    pub built: Vec<usize>,
    /// Seconds until all servers were there: fetched, built or found.
    pub acquire_seconds: f64,
}

/// How a look ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// Its instructions were counted, next to those of the base.
    Counted {
        /// The run with the counts; the point is its candidate, unless it is the base.
        run: String,
        /// Instructions of an operation.
        instructions: f64,
        /// Those of the base in the same run.
        base: f64,
        /// What starts of the point differ by, as a share; absent with one start.
        span: Option<f64>,
    },
    /// Its server is the same as that of another point, whose counts are its own.
    Same { point: usize },
    /// It was measured in time in this run, as the candidate.
    Timed { run: String },
    /// It could not be measured.
    Skipped {
        /// What failed.
        step: FailedStep,
        /// The first line of the reason.
        why: String,
    },
}

/// What a point could not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailedStep {
    /// Its source could not be built.
    Build,
    /// Its server did not start, load or answer.
    Run,
    /// The commit does not revert on the candidate.
    Revert,
}

impl FailedStep {
    /// What happened, for tables.
    pub fn words(self) -> &'static str {
        match self {
            Self::Build => "does not build",
            Self::Run => "does not run",
            Self::Revert => "does not revert",
        }
    }
}

/// What is appended to a bisection as it goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Happened {
    Asked(Asked),
    /// The server of a point is not here and is about to be built for a look, which may be killed before its
    /// end.
    Building {
        point: usize,
    },
    Look(Look),
    /// Points are about to be measured together in time.
    Together(Together),
    /// The command's time was over before the next look.
    OutOfTime,
    /// A culprit is about to be measured in time, next to its parent, as this run.
    Timing {
        /// The point before it.
        before: usize,
        /// The culprit, or the last of those that may be it.
        culprit: usize,
        run: String,
    },
    /// The candidate was counted without a culprit, or that cannot be.
    Without {
        culprit: usize,
        outcome: Outcome,
    },
}

/// A bisection as the lab has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Bisection {
    pub name: String,
    pub question: Question,
    /// In order of time.
    pub happened: Vec<Happened>,
}

impl Bisection {
    /// What was asked last.
    pub fn asked(&self) -> Option<&Asked> {
        self.happened.iter().rev().find_map(|one| match one {
            Happened::Asked(asked) => Some(asked),
            _ => None,
        })
    }

    /// The points whose servers were built for looks; the one that was built longest ago is first.
    pub fn built(&self) -> Vec<usize> {
        let mut built = Vec::new();
        for happened in self.happened.iter().rev() {
            let point = match happened {
                Happened::Building { point } => *point,
                // Earlier versions said it afterwards.
                Happened::Look(look) if look.built => look.point,
                _ => continue,
            };
            if !built.contains(&point) {
                built.push(point);
            }
        }
        built.reverse();
        built
    }

    /// Whether a run of this name was told, though perhaps never begun.
    pub fn names(&self, run: &str) -> bool {
        let of_outcome = |outcome: &Outcome| {
            matches!(outcome, Outcome::Counted { run: own, .. } |
        Outcome::Timed { run: own } if own == run)
        };
        self.happened.iter().any(|happened| match happened {
            Happened::Together(together) => together.run == run,
            Happened::Timing { run: own, .. } => own == run,
            Happened::Look(look) => of_outcome(&look.outcome),
            Happened::Without { outcome, .. } => of_outcome(outcome),
            Happened::Asked(_) | Happened::Building { .. } | Happened::OutOfTime => false,
        })
    }

    /// How many looks there are, by count and in time.
    pub fn looked(&self) -> usize {
        self.looks().count() + self.together().count()
    }

    /// The run that measures a culprit next to its parent in time, if that was begun.
    pub fn timing(&self, sides: (usize, usize)) -> Option<&str> {
        self.happened.iter().rev().find_map(|one| match one {
            Happened::Timing {
                before,
                culprit,
                run,
            } if (*before, *culprit) == sides => Some(run.as_str()),
            _ => None,
        })
    }

    /// What the candidate is without a culprit, if that was looked at.
    pub fn without(&self, point: usize) -> Option<&Outcome> {
        self.happened.iter().rev().find_map(|one| match one {
            Happened::Without { culprit, outcome } if *culprit == point => Some(outcome),
            _ => None,
        })
    }

    /// All looks, in order of time.
    pub fn looks(&self) -> impl Iterator<Item = &Look> {
        self.happened.iter().filter_map(|one| match one {
            Happened::Look(look) => Some(look),
            _ => None,
        })
    }

    /// All looks in time, in order of time.
    pub fn together(&self) -> impl Iterator<Item = &Together> {
        self.happened.iter().filter_map(|one| match one {
            Happened::Together(together) => Some(together),
            _ => None,
        })
    }

    /// Points that were measured in time, with what their servers are made of, in order of time.
    pub fn timed_servers(&self) -> impl Iterator<Item = (usize, &str)> {
        self.together().flat_map(|look| {
            let made_of = look.made_of.iter().map(String::as_str);
            look.points.iter().copied().zip(made_of)
        })
    }

    /// The latest look at a point.
    pub fn look(&self, point: usize) -> Option<&Look> {
        self.looks().filter(|look| look.point == point).last()
    }

    /// The look with the counts of a point: its own, or that at a point with the same server. What a search
    /// by time found later does not take its counts away.
    pub fn counted(&self, point: usize) -> Option<&Look> {
        let is_counted = |look: &&Look| matches!(look.outcome, Outcome::Counted { .. });
        let own = self.looks().filter(|look| look.point == point);
        if let Some(counted) = own.filter(is_counted).last() {
            return Some(counted);
        }
        let mut look = self.look(point)?;
        // As many steps as there are looks at most: who wrote this file may not have been us.
        for _ in self.looks() {
            match look.outcome {
                Outcome::Same { point } => look = self.look(point)?,
                Outcome::Counted { .. } => return Some(look),
                Outcome::Timed { .. } | Outcome::Skipped { .. } => return None,
            }
        }
        None
    }

    /// Instructions of a point over those of the base.
    pub fn ratio(&self, point: usize) -> Option<f64> {
        match self.counted(point)?.outcome {
            Outcome::Counted {
                instructions, base, ..
            } if base > 0.0 => Some(instructions / base),
            _ => None,
        }
    }
}
