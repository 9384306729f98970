//! What is found on a candidate, in sections: one list, for the text and for the page.

use super::parting::Parting;
use super::why;
use super::{changed_for, error_texts, result_texts, unstable_texts};
use deltabench_model::replayed::{
    ErrorVerdict, PlanVerdict, ReplayVerdict, Replayed, ReplayedLoadFailure, ReplayedStatement,
    ResultVerdict,
};
use deltabench_model::units::count;

/// Plans of a statement that the text describes.
const CHANGES_SHOWN: usize = 3;

/// What is wrong with a statement or an object of the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Fails,
    TimeOut,
    OtherError,
    Plan,
    Result,
    Unstable,
    Order,
    Varies,
    Moved,
    Unknown,
    FailsOnBoth,
    FailsOnBase,
}

/// What a section says something about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Finding<'a> {
    Object(&'a ReplayedLoadFailure),
    Statement(&'a ReplayedStatement, &'a ReplayVerdict),
}

impl Section {
    /// As a reader needs them: what is worst comes first.
    pub(crate) const ALL: [Self; 12] = [
        Self::Fails,
        Self::TimeOut,
        Self::OtherError,
        Self::Plan,
        Self::Result,
        Self::Unstable,
        Self::Order,
        Self::Varies,
        Self::Moved,
        Self::Unknown,
        Self::FailsOnBoth,
        Self::FailsOnBase,
    ];

    /// The word before each line of the text.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::TimeOut => "time-out",
            Self::OtherError => "error",
            Self::Plan => "plan",
            Self::Result => "result",
            Self::Unstable => "unstable",
            Self::Order => "order",
            Self::Varies => "varies",
            Self::Moved => "moved",
            Self::Unknown => "unknown",
            Self::FailsOnBoth => "both",
            Self::FailsOnBase => "base",
        }
    }

    /// The heading on the page.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Fails => "Fails on the candidate only",
            Self::TimeOut => "Ends in time on the base only",
            Self::OtherError => "Other errors",
            Self::Plan => "Other plans",
            Self::Result => "Other results",
            Self::Unstable => "Plans that change with the statistics",
            Self::Order => "The same rows in another order",
            Self::Varies => "Results that also differ on the base",
            Self::Moved => "Too few rows to compare",
            Self::Unknown => "Without an answer",
            Self::FailsOnBoth => "Fails on both, and is not compared",
            Self::FailsOnBase => "Fails on the base only",
        }
    }

    /// Whether it is about something that a server did not do.
    pub(crate) fn is_failure(self) -> bool {
        match self {
            Self::Fails
            | Self::TimeOut
            | Self::OtherError
            | Self::Unknown
            | Self::FailsOnBoth
            | Self::FailsOnBase => true,
            Self::Plan
            | Self::Result
            | Self::Unstable
            | Self::Order
            | Self::Varies
            | Self::Moved => false,
        }
    }

    /// Whether a statement is in it.
    pub(crate) fn has(self, verdict: &ReplayVerdict) -> bool {
        let of = [
            of_errors(verdict.errors),
            of_plans(verdict.plans),
            of_results(verdict.results),
        ];
        of.contains(&Some(self))
    }

    /// Everything in it: objects of the dump, then statements.
    pub(crate) fn findings(self, replayed: &Replayed, place: usize) -> Vec<Finding<'_>> {
        let objects = self.objects(replayed, place).map(Finding::Object);
        let statements = verdicts(replayed, place).filter(|(_, verdict)| self.has(verdict));
        let statements = statements.map(|(one, verdict)| Finding::Statement(one, verdict));
        objects.chain(statements).collect()
    }

    /// Objects of the dump that servers refused.
    pub(crate) fn objects(
        self,
        replayed: &Replayed,
        place: usize,
    ) -> impl Iterator<Item = &ReplayedLoadFailure> {
        // Whether the base refused it, and whether the candidate did.
        let wanted = match self {
            Self::Fails => Some((false, true)),
            Self::FailsOnBoth => Some((true, true)),
            Self::FailsOnBase => Some((true, false)),
            _ => None,
        };
        let failures = replayed.load_failures.iter();
        failures.filter(move |failure| {
            let by = |place: usize| failure.servers.contains(&place);
            wanted == Some((by(0), by(place)))
        })
    }

    /// How many statements are in it.
    pub(crate) fn statements(self, replayed: &Replayed, place: usize) -> u64 {
        let all = verdicts(replayed, place);
        count(all.filter(|(_, verdict)| self.has(verdict)).count())
    }

    /// What it says of a statement.
    pub(crate) fn texts(
        self,
        replayed: &Replayed,
        statement: &ReplayedStatement,
        verdict: &ReplayVerdict,
    ) -> Vec<String> {
        match self {
            Self::Fails
            | Self::TimeOut
            | Self::OtherError
            | Self::Unknown
            | Self::FailsOnBoth
            | Self::FailsOnBase => error_texts(statement, verdict),
            Self::Plan => plan_texts(replayed, statement, verdict),
            Self::Unstable => unstable_texts(statement, verdict),
            Self::Result | Self::Order | Self::Varies | Self::Moved => {
                result_texts(statement, verdict)
            }
        }
    }
}

/// The statements with their verdicts on one candidate.
pub(crate) fn verdicts(
    replayed: &Replayed,
    place: usize,
) -> impl Iterator<Item = (&ReplayedStatement, &ReplayVerdict)> {
    replayed.statements.iter().filter_map(move |statement| {
        let mut verdicts = statement.verdicts.iter();
        let verdict = verdicts.find(|verdict| verdict.server == place)?;
        Some((statement, verdict))
    })
}

fn of_errors(verdict: ErrorVerdict) -> Option<Section> {
    match verdict {
        ErrorVerdict::None => None,
        ErrorVerdict::New => Some(Section::Fails),
        ErrorVerdict::TooLong => Some(Section::TimeOut),
        ErrorVerdict::Differs => Some(Section::OtherError),
        ErrorVerdict::Both => Some(Section::FailsOnBoth),
        ErrorVerdict::Resolved => Some(Section::FailsOnBase),
        ErrorVerdict::Unknown => Some(Section::Unknown),
    }
}

fn of_plans(verdict: PlanVerdict) -> Option<Section> {
    match verdict {
        PlanVerdict::Changed => Some(Section::Plan),
        PlanVerdict::UnstableBase | PlanVerdict::UnstableCandidate => Some(Section::Unstable),
        // One side has none: an error says why.
        PlanVerdict::Same | PlanVerdict::Unknown => None,
    }
}

fn of_results(verdict: ResultVerdict) -> Option<Section> {
    match verdict {
        ResultVerdict::RowsDiffer | ResultVerdict::ResultsDiffer => Some(Section::Result),
        ResultVerdict::OrderDiffers => Some(Section::Order),
        ResultVerdict::NotRepeatable => Some(Section::Varies),
        ResultVerdict::Moved => Some(Section::Moved),
        // Those that were not executed are counted by their reasons.
        ResultVerdict::Same | ResultVerdict::NotExecuted => None,
    }
}

/// For which values a plan changed, and what it is now.
fn plan_texts(
    replayed: &Replayed,
    statement: &ReplayedStatement,
    verdict: &ReplayVerdict,
) -> Vec<String> {
    let mut texts = vec![changed_for(statement, verdict)];
    for change in verdict.changes.iter().take(CHANGES_SHOWN) {
        let parting = Parting::of(replayed, &change.from, &change.to);
        let of = match verdict.changes.len() {
            1 => String::new(),
            _ => format!("{} of them: ", change.tuples),
        };
        texts.push(format!("{of}{}", parting.sentence()));
    }
    texts.extend(why::texts(verdict));
    texts
}
