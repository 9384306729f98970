//! What matters more to a reader.

use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::Plan;

/// What a note changes for the reader, from most to least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// The figures are worth nothing.
    Unfit,
    /// An answer could be another one.
    Answer,
    /// The sides differ in something else, too.
    Confounder,
    /// An answer is less certain than it looks.
    Doubt,
    /// What the figures mean.
    Figures,
    /// What the machine does to them.
    Host,
    /// How the answers were found.
    Method,
    /// Lists in which somebody may look something up.
    Lists,
}

impl Weight {
    pub(crate) const ALL: [Self; 8] = [
        Self::Unfit,
        Self::Answer,
        Self::Confounder,
        Self::Doubt,
        Self::Figures,
        Self::Host,
        Self::Method,
        Self::Lists,
    ];

    /// The heading above notes of this weight.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Unfit => "Do not use these figures",
            Self::Answer => "What can change an answer",
            Self::Confounder => "What else differs between the sides",
            Self::Doubt => "What makes an answer less certain",
            Self::Figures => "What the figures mean",
            Self::Host => "The host",
            Self::Method => "How the answers were found",
            Self::Lists => "Settings of one side only, and defaults",
        }
    }

    /// The word before a note in the short form.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Unfit => "unfit",
            Self::Confounder => "confounder",
            _ => "note",
        }
    }

    /// The weight of a finding.
    pub(crate) fn of(finding: &Finding, plan: &Plan) -> Self {
        use FindingKind as Kind;
        let alone = plan.cells.iter().all(|cell| cell.clients == 1);
        match (finding.severity, &finding.kind) {
            (Severity::Unfit, _) => Self::Unfit,
            (_, Kind::GoesWithHostSpeed | Kind::RowsDiffer | Kind::ServerLost | Kind::Stalls) => {
                Self::Answer
            }
            (Severity::Confounder, _) => Self::Confounder,
            (_, Kind::Contended | Kind::ClientLimited | Kind::HostSpeed | Kind::ShortLivedCpu) => {
                Self::Doubt
            }
            (_, Kind::FewCores) if alone => Self::Host,
            (
                _,
                Kind::OtherLoad
                | Kind::CpuPressure
                | Kind::Steal
                | Kind::CpuQuota
                | Kind::CpuGovernor
                | Kind::Turbo
                | Kind::Smt
                | Kind::Numa
                | Kind::CoreSpeed
                | Kind::VirtualMachine
                | Kind::ClockSource
                | Kind::HardwareCounters
                | Kind::FreeMemory
                | Kind::Swap
                | Kind::TransparentHugePages
                | Kind::HugePages
                | Kind::NoHugePages
                | Kind::FileSystem
                | Kind::DiskSpace
                | Kind::Fsync,
            ) => Self::Host,
            (
                _,
                Kind::SettingsDifferHarmless
                | Kind::DefaultsDiffer
                | Kind::SettingsOnlyInBase
                | Kind::SettingsOnlyInCandidate,
            ) => Self::Lists,
            (_, Kind::CountLeavesOut | Kind::LoadsDiffer) => Self::Method,
            (_, Kind::CountAndTime) => Self::Doubt,
            _ => Self::Figures,
        }
    }
}
