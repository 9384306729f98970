//! What a report of a study says besides its tables.

use deltabench_model::plan::WorkloadSource;

/// Facts of a study that its tables do not hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StudyContext {
    /// Version of deltabench that makes the report.
    pub deltabench_version: String,
    /// Name of this execution of the experiment; empty where there is none.
    pub execution: String,
    /// What the experiment says of itself.
    pub about: Option<String>,
    /// Who published the study that it reproduces.
    pub source: Option<String>,
    /// The scale it was carried out at; absent: as written.
    pub scale: Option<String>,
    /// The command that makes it again.
    pub command: Vec<String>,
    /// The experiment's file, as it was.
    pub file: Option<WorkloadSource>,
    /// Its runs, in the order of their parts.
    pub runs: Vec<StudyRunFacts>,
}

/// A run of a study, for the list that leads to each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StudyRunFacts {
    /// Its name in the lab.
    pub run: String,
    /// How far it has come: `finished`, `interrupted`, …
    pub state: String,
    /// Which part of the experiment, from 1, and of how many; absent outside of one.
    pub part: Option<(u32, u32)>,
    /// Which group of its servers, from 1, and of how many; absent where all are in one run.
    pub group: Option<(u32, u32)>,
    /// Which repetition of these coordinates, from 1.
    pub repetition: u32,
    /// Where it stands on the axes of the experiment.
    pub coordinates: Vec<(String, String)>,
    /// The machine, in a few words.
    pub host: String,
    /// When it was first measured, milliseconds since 1970; absent where that is not known.
    pub began_unix_ms: Option<i64>,
    /// Where its own page is, relative to the study's page; absent where there is none.
    pub page: Option<String>,
    /// Why it is withdrawn; absent where it is not.
    pub withdrawn: Option<String>,
}

impl StudyRunFacts {
    /// `part 2 of 4, repetition 1, storage gp3-3000`.
    pub(crate) fn place(&self) -> String {
        let mut texts = Vec::new();
        if let Some((part, of)) = self.part {
            texts.push(format!("part {part} of {of}"));
        }
        if let Some((group, of)) = self.group {
            texts.push(format!("group {group} of {of}"));
        }
        if self.repetition > 0 {
            texts.push(format!("repetition {}", self.repetition));
        }
        texts.extend(
            self.coordinates
                .iter()
                .map(|(axis, value)| format!("{axis} {value}")),
        );
        texts.join(", ")
    }
}
