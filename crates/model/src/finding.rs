//! Things worth knowing about a comparison that are not numbers of it: confounders, host facts, doubts.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// How much a finding matters to the conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// The comparison measures this difference too.
    Confounder,
    /// The numbers should not be used.
    Unfit,
}

/// What findings are about, each with its word in stores and reports.
macro_rules! kinds {
    ($($(#[doc = $meaning:literal])* $name:ident = $word:literal,)*) => {
        /// What a finding is about. The word is stable: stores and reports keep it.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum FindingKind {
            $($(#[doc = $meaning])* $name,)*
            /// A matter of one kind of benchmark, or of another version of deltabench: its word.
            Own(Cow<'static, str>),
        }

        impl FindingKind {
            /// The word stored and printed.
            pub fn word(&self) -> &str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Own(word) => word,
                }
            }
        }

        /// Every word that is not of one kind of benchmark, with what it means.
        pub const FINDINGS: &[(&str, &str)] = &[$(($word, concat!($($meaning),*)),)*];

        impl From<String> for FindingKind {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$name,)*
                    _ => Self::Own(Cow::Owned(word)),
                }
            }
        }
    };
}

kinds! {
    /// Two sides run the same files.
    SameBinary = "same-binary",
    /// How a side was compiled cannot be told.
    BuildUnknown = "build-unknown",
    /// Another compiler.
    CompilerDiffers = "compiler-differs",
    /// Other flags of the compiler.
    CflagsDiffer = "cflags-differ",
    /// A side is compiled with little optimisation.
    OptimisationLow = "optimisation-low",
    /// Other options of `configure`.
    ConfigureDiffers = "configure-differs",
    /// Data checksums on one side only.
    ChecksumsDiffer = "checksums-differ",
    /// Huge pages on one side only.
    HugePagesDiffer = "huge-pages-differ",
    /// A side checks its own assertions.
    AssertionsOn = "assertions-on",
    /// Settings in force differ that were not asked to.
    SettingsDiffer = "settings-differ",
    /// The same of settings that hardly move numbers.
    SettingsDifferHarmless = "settings-differ-harmless",
    /// Defaults differ, the values in force do not.
    DefaultsDiffer = "defaults-differ",
    /// Settings that the candidate does not know.
    SettingsOnlyInBase = "settings-only-in-base",
    /// Settings that the base does not know.
    SettingsOnlyInCandidate = "settings-only-in-candidate",
    /// The same rows take other room.
    RelationSizeDiffers = "relation-size-differs",
    /// Tables have other numbers of rows.
    RowsDiffer = "rows-differ",
    /// Candidates have loads of their own, base and placebo share one.
    LoadsDiffer = "loads-differ",
    /// Aging left other sizes.
    AgedSizeDiffers = "aged-size-differs",
    /// A statement is planned otherwise.
    PlanDiffers = "plan-differs",
    /// Ways to the servers take other times.
    NetworkDiffers = "network-differs",
    /// Settings were fitted to a version.
    ConfigurationAdapted = "configuration-adapted",
    /// Other load disturbed most rounds.
    Contended = "contended",
    /// Other processes were busy on cores that the servers did not have.
    Neighbours = "neighbours",
    /// Probes told how fast the core was while servers worked.
    Probes = "probes",
    /// Probes took longer beside one server than beside another.
    ProbesDiffer = "probes-differ",
    /// Servers had long operations under way together, and worked in turns.
    Turns = "turns",
    /// The host was not equally fast in all blocks.
    HostSpeed = "host-speed",
    /// A few long operations cost one side throughput.
    Stalls = "stalls",
    /// A difference that is not the same in fast and in slow blocks.
    GoesWithHostSpeed = "goes-with-host-speed",
    /// Cores were not always equally fast.
    CoreSpeed = "core-speed",
    /// CPU of processes that come and go is not in what is judged.
    ShortLivedCpu = "short-lived-cpu",
    /// The client, not the server, set the pace.
    ClientLimited = "client-limited",
    /// A server went away during a run.
    ServerLost = "server-lost",
    /// Servers were started for their turns only.
    Rotated = "rotated",
    /// Shared buffers are in small pages.
    NoHugePages = "no-huge-pages",
    /// Where the pages of executables lie was drawn once and not at each restart.
    ProgramsShared = "programs-shared",
    /// A limit of memory does not count huge pages.
    MemoryBesideHugePages = "memory-beside-huge-pages",
    /// A limit could not be set.
    LimitsMissing = "limits-missing",
    /// A limit of writes does not hold for all of them.
    WriteLimitsPartial = "write-limits-partial",
    /// The page cache could not be dropped.
    PageCacheKept = "page-cache-kept",
    /// An agent is far away.
    AgentFar = "agent-far",
    /// An agent may not read something.
    AgentRefused = "agent-refused",
    /// An agent went away.
    AgentLost = "agent-lost",
    /// CPU of somebody's server cannot be told.
    RemoteCpuUnknown = "remote-cpu-unknown",
    /// Settings and other work of somebody's server stay as they are.
    RemoteLeftAsItIs = "remote-left-as-it-is",
    /// Somebody's server is not restarted between blocks.
    RemoteNotRestarted = "remote-not-restarted",
    /// Somebody's server was restarted meanwhile.
    RemoteRestarted = "remote-restarted",
    /// Two servers that already run are one, under two names.
    RemoteSame = "remote-same",
    /// Servers and client have to share cores.
    FewCores = "few-cores",
    /// CPU time is limited.
    CpuQuota = "cpu-quota",
    /// The frequency of cores may change.
    CpuGovernor = "cpu-governor",
    /// Cores may run above their nominal frequency.
    Turbo = "turbo",
    /// Two hardware threads share a core.
    Smt = "smt",
    /// Memory is not equally near to all cores.
    Numa = "numa",
    /// The host is a virtual machine.
    VirtualMachine = "virtual-machine",
    /// The clock is slow to read.
    ClockSource = "clock-source",
    /// There are no hardware counters.
    HardwareCounters = "hardware-counters",
    /// Little memory is free.
    FreeMemory = "free-memory",
    /// The host swaps.
    Swap = "swap",
    /// The kernel makes huge pages as it likes.
    TransparentHugePages = "transparent-huge-pages",
    /// No huge pages are reserved.
    HugePages = "huge-pages",
    /// Something else is running.
    OtherLoad = "other-load",
    /// Tasks wait for cores.
    CpuPressure = "cpu-pressure",
    /// The hypervisor takes time.
    Steal = "steal",
    /// The file system bears on what is measured.
    FileSystem = "file-system",
    /// Little room on disk.
    DiskSpace = "disk-space",
    /// Syncing is unusually fast, slow or uneven.
    Fsync = "fsync",
    /// Counted operations had other rows.
    CountRowsDiffer = "count-rows-differ",
    /// Starts of one server differ in instructions.
    CountSpan = "count-span",
    /// Other keys give another ratio of counted instructions.
    CountKeys = "count-keys",
    /// Other processes of a server worked while its backend was counted.
    CountBeside = "count-beside",
    /// Counted instructions and measured time say different things.
    CountAndTime = "count-and-time",
    /// What a count beside times leaves out.
    CountLeavesOut = "count-leaves-out",
    /// The sealed file of an archived run cannot be read.
    ArchiveUnreadable = "archive-unreadable",
}

impl FindingKind {
    /// That of a kind of benchmark.
    pub const fn own(word: &'static str) -> Self {
        Self::Own(Cow::Borrowed(word))
    }

    /// Whether it bears on times alone, and on no count of instructions.
    pub fn is_of_time(&self) -> bool {
        matches!(
            self,
            Self::Contended
                | Self::HostSpeed
                | Self::GoesWithHostSpeed
                | Self::CoreSpeed
                | Self::NoHugePages
                | Self::ProgramsShared
                | Self::FewCores
                | Self::CpuQuota
                | Self::CpuGovernor
                | Self::Turbo
                | Self::Smt
                | Self::Numa
                | Self::VirtualMachine
                | Self::ClockSource
                | Self::HardwareCounters
                | Self::Swap
                | Self::TransparentHugePages
                | Self::HugePages
                | Self::OtherLoad
                | Self::CpuPressure
                | Self::Steal
                | Self::FileSystem
                | Self::Fsync
        )
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(self.word())
    }
}

impl From<FindingKind> for String {
    fn from(kind: FindingKind) -> Self {
        kind.word().to_owned()
    }
}

impl PartialEq<str> for FindingKind {
    fn eq(&self, word: &str) -> bool {
        self.word() == word
    }
}

impl PartialEq<&str> for FindingKind {
    fn eq(&self, word: &&str) -> bool {
        self.word() == *word
    }
}

/// One finding, kept with the run and printed with every report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    pub severity: Severity,
    /// One sentence with the facts in it.
    pub text: String,
}

impl Finding {
    /// A new finding.
    pub fn new(kind: FindingKind, severity: Severity, text: impl Into<String>) -> Self {
        Self {
            kind,
            severity,
            text: text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_its_word_in_json_and_unknown_words_stay() {
        for word in ["compiler-differs", "a-word-of-tomorrow"] {
            let finding = Finding::new(word.to_owned().into(), Severity::Note, "it is so");
            let json = serde_json::to_string(&finding).unwrap();
            let expected = format!(r#"{{"kind":"{word}","severity":"note","text":"it is so"}}"#);
            assert_eq!(json, expected);
            assert_eq!(serde_json::from_str::<Finding>(&json).unwrap(), finding);
        }
        assert_eq!(FindingKind::from("swap".to_owned()), FindingKind::Swap);
        assert_eq!(
            FindingKind::own("other"),
            FindingKind::from("other".to_owned())
        );
    }
}
