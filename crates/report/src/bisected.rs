//! A bisection: which commits or releases changed a cell, as text and as JSON.
//!
//! The JSON is a contract (`docs/reference/bisection.schema.json`): fields are added, never renamed.

mod in_time;

pub use in_time::{InTime, TimeChange, TimeSays, Timed};

use crate::lines::wrapped;
use crate::words::plural;
use deltabench_model::units::count;
use serde::Serialize;
use std::collections::BTreeSet;

/// A bisection with its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bisected {
    pub format: &'static str,
    pub version: u32,
    pub name: String,
    /// The workload that was measured.
    pub workload: String,
    /// What points are compared by: all changes but those in time are of this.
    pub by: By,
    pub base: BisectedPoint,
    pub candidate: BisectedPoint,
    /// Points from the base to the candidate, both included.
    pub points: usize,
    /// Of them those that may differ from the point before, the base included.
    pub may_differ: usize,
    /// Commits of the base's branch that the candidate lacks; they were not searched. Absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_alone: Option<BaseAlone>,
    /// The smallest step that was searched, as a share.
    pub min: f64,
    /// Standard deviation of what the layout of code is assumed to do to a build, as a share; absent for
    /// instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<f64>,
    /// Instructions of an operation on both ends; absent until they are counted.
    pub instructions: Option<(f64, f64)>,
    /// Candidate over base - 1.
    pub change: Option<f64>,
    /// Its 95 % interval; absent for instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<(f64, f64)>,
    /// How the search ended: `found`, `nothing-differs`, `same-server`, `unsure`, `undecided`, `interrupted`.
    pub end: &'static str,
    /// The steps that are found, the largest first.
    pub culprits: Vec<Culprit>,
    /// Intervals that differ, and that were not searched to their end.
    pub open: Vec<OpenInterval>,
    /// What was left out.
    pub quiet: Quiet,
    /// In order of time.
    pub looks: Vec<BisectedLook>,
}

/// Name and version of the JSON.
pub const BISECTED_FORMAT: (&str, u32) = ("deltabench.bisected", 1);

/// A commit, a release or another server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct BisectedPoint {
    pub target: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// What points are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    Instructions,
    Cpu,
    /// More of it is less cost: changes are those of the time of an operation.
    Throughput,
}

impl Bisected {
    /// The culprits that stand: counts leave no doubt, a search by time needs fresh blocks that agree.
    pub fn convicted(&self) -> usize {
        let agrees = |culprit: &&Culprit| {
            let in_time = culprit.in_time.as_ref();
            self.by == By::Instructions || in_time.is_some_and(|it| it.says == TimeSays::Agrees)
        };
        self.culprits.iter().filter(agrees).count()
    }
}

impl By {
    /// What an operation takes.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Instructions => "instructions per operation",
            Self::Cpu => "CPU per operation",
            Self::Throughput => "time per operation",
        }
    }

    /// The heading of the staircase.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Instructions => "Instructions of an operation, point after point",
            Self::Cpu => "CPU of an operation, point after point",
            Self::Throughput => "Time of an operation, point after point",
        }
    }
}

/// What a base of another branch has alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BaseAlone {
    pub commit: String,
    pub commits: u64,
}

/// A step that is found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Culprit {
    /// The point before it, which was measured.
    pub parent: BisectedPoint,
    /// The point that made it; several where all but the last could not be measured: it is one of them.
    pub one_of: Vec<SuspectPoint>,
    /// Cost after it over that before - 1.
    pub change: f64,
    /// Its 95 % interval, with what the layout of code does; absent for instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<(f64, f64)>,
    /// How sure it is that the step is here, if all points are as likely; absent for instructions, which
    /// leave no doubt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Instructions of an operation before and after; absent if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<(f64, f64)>,
    /// What changed in which function, one text each; empty if that is not known.
    pub functions: Vec<String>,
    /// Next to its parent in time; absent if that was not begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_time: Option<InTime>,
    /// The candidate without it; absent if that was not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without: Option<WithoutCulprit>,
}

/// The candidate without a commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WithoutCulprit {
    /// Its cost over that of the base - 1; absent if there is no such server.
    pub change: Option<f64>,
    /// Its 95 % interval; absent for instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<(f64, f64)>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl WithoutCulprit {
    /// A sentence.
    fn words(&self) -> String {
        match (self.change, &self.why) {
            (Some(change), _) if self.ci95.is_some() => format!(
                "without it the candidate differs from the base by {}",
                TimeChange {
                    change,
                    ci95: self.ci95
                }
                .words()
            ),
            (Some(change), _) => format!(
                "without it the candidate has {} instructions, compared with the base",
                percent(change)
            ),
            (None, why) => format!(
                "the candidate without it: {}",
                why.as_deref().unwrap_or("not known")
            ),
        }
    }
}

/// A point that may have made a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuspectPoint {
    #[serde(flatten)]
    pub point: BisectedPoint,
    /// Why it could not be measured; absent if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// An interval that differs and was not searched to its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpenInterval {
    pub from: BisectedPoint,
    pub to: BisectedPoint,
    pub change: f64,
    /// Points that may have made it.
    pub points: usize,
    /// The likeliest part of it; absent for instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely: Option<LikelyInterval>,
}

/// A part of an interval, and how likely the step is there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LikelyInterval {
    pub from: BisectedPoint,
    pub to: BisectedPoint,
    pub probability: f64,
}

impl OpenInterval {
    fn words(&self) -> String {
        let between = format!(
            "{} between {} and {}",
            percent(self.change),
            self.from.name,
            self.to.name
        );
        match (&self.likely, self.points) {
            // There is nothing between them to look at.
            (Some(_), 1) => {
                format!("not decided: {between}, as much as the layout of code can do")
            }
            (likely, points) => format!(
                "not searched to the end: {between}, {}{}",
                plural(count(points), "point"),
                likely
                    .as_ref()
                    .map_or_else(String::new, LikelyInterval::words)
            ),
        }
    }
}

impl LikelyInterval {
    fn words(&self) -> String {
        format!(
            "; likeliest after {} and up to {} ({})",
            self.from.name,
            self.to.name,
            certainty(self.probability)
        )
    }
}

/// `97 %`; never 100 %.
fn certainty(probability: f64) -> String {
    match probability > 0.99 {
        true => "more than 99 %".to_owned(),
        false => format!("{:.0} %", probability * 100.0),
    }
}

/// What was not searched because it differs by too little.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quiet {
    pub intervals: usize,
    /// Points in them that were not measured.
    pub points: usize,
    /// What all small differences come to together, those of neighbours included, as a share.
    pub change: f64,
}

/// A look, as it was stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BisectedLook {
    /// The place of the point, from 0.
    pub number: usize,
    #[serde(flatten)]
    pub point: BisectedPoint,
    /// `counted`, `timed`, `same` or `skipped`.
    pub outcome: &'static str,
    /// Cost over that of the base - 1; absent if it was skipped.
    pub change: Option<f64>,
    /// Its 95 % interval, with what the layout of code does; absent for instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<(f64, f64)>,
    /// The run with the counts, or the runs in which it was measured in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Why it could not be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Whether its server was built for it.
    pub built: bool,
    /// Seconds until its server was there.
    pub acquire_seconds: f64,
    pub count_seconds: f64,
}

/// A bisection as JSON.
pub fn bisected_json(bisected: &Bisected) -> String {
    // Plain structs: there is nothing that JSON cannot hold.
    serde_json::to_string_pretty(bisected).unwrap_or_default()
}

/// A bisection as text for a terminal.
pub fn bisected_text(bisected: &Bisected, width: usize) -> String {
    let mut lines = wrapped(&head(bisected), width, 0, 2);
    lines.extend(wrapped(&searched(bisected), width, 0, 2));
    if let Some(alone) = &bisected.base_alone {
        let text = format!(
            "the base is on another branch: the search begins at {}, the newest commit that both have; {} of \
             the base alone were not searched",
            bisected.base.name,
            plural(alone.commits, "commit")
        );
        lines.extend(wrapped(&text, width, 0, 2));
    }
    if !bisected.culprits.is_empty() {
        lines.push(String::new());
    }
    for culprit in &bisected.culprits {
        lines.extend(of_culprit(culprit, bisected, width));
    }
    lines.push(String::new());
    lines.extend(
        left_out(bisected)
            .iter()
            .flat_map(|text| wrapped(text, width, 0, 2)),
    );
    lines.join("\n")
}

/// `scan, 17.0 → 17.11: +44.32 % instructions per operation (64765546 → 93468213)`.
pub(crate) fn head(bisected: &Bisected) -> String {
    let (base, candidate) = (&bisected.base.name, &bisected.candidate.name);
    let counted = bisected.instructions.filter(|(before, _)| *before > 0.0);
    let said = match (bisected.by, bisected.change, counted) {
        (By::Instructions, Some(change), Some((before, after))) => format!(
            "{} {} ({before:.0} → {after:.0})",
            percent(change),
            bisected.by.noun()
        ),
        (By::Instructions, ..) => "not counted".to_owned(),
        (_, Some(change), counted) => {
            let ci95 = bisected.ci95;
            let counted = counted.map_or_else(String::new, |(before, after)| {
                format!(
                    "; {} {}",
                    percent(after / before - 1.0),
                    By::Instructions.noun()
                )
            });
            format!(
                "{} {}{counted}",
                TimeChange { change, ci95 }.words(),
                bisected.by.noun()
            )
        }
        (_, None, _) => "not measured".to_owned(),
    };
    format!("{}, {base} → {candidate}: {said}", bisected.workload)
}

pub(crate) fn searched(bisected: &Bisected) -> String {
    // The last point that was measured is the end, though documents may come after it.
    let end = bisected.looks.iter().map(|look| look.number).max();
    let inside = |look: &&BisectedLook| look.number != 0 && Some(look.number) != end;
    let looks = bisected.looks.iter().filter(inside);
    let (looks, built) = looks.fold((0, 0), |(looks, built), look| {
        (looks + 1, built + u64::from(look.built))
    });
    let built = match built {
        0 => String::new(),
        builds => format!(", {}", plural(builds, "build")),
    };
    let looks = match bisected.by {
        By::Instructions => plural(looks, "look"),
        By::Cpu | By::Throughput => format!(
            "{} in time at {}",
            plural(looks_in_time(bisected), "look"),
            plural(count(timed(bisected).count()), "point"),
        ),
    };
    format!(
        "{}, {} of them may differ from the one before; {looks}{built}",
        plural(count(bisected.points), "point"),
        bisected.may_differ.saturating_sub(1),
    )
}

fn timed(bisected: &Bisected) -> impl Iterator<Item = &BisectedLook> {
    bisected.looks.iter().filter(|look| look.outcome == "timed")
}

/// Runs in time that searched; each measured several points.
fn looks_in_time(bisected: &Bisected) -> u64 {
    let runs = timed(bisected).filter_map(|look| look.run.as_deref());
    let runs: BTreeSet<&str> = runs.flat_map(|runs| runs.split(", ")).collect();
    count(runs.len())
}

fn of_culprit(culprit: &Culprit, bisected: &Bisected, width: usize) -> Vec<String> {
    let mut texts = Vec::new();
    let head = match culprit.one_of.as_slice() {
        [one] => words(&one.point),
        several => {
            for suspect in several {
                let why = suspect.skipped.as_ref();
                let why = why.map_or_else(String::new, |why| format!(" ({why})"));
                texts.push(format!("{}{why}", words(&suspect.point)));
            }
            format!(
                "one of these {}, of which only the last could be measured:",
                several.len()
            )
        }
    };
    let mut lines = wrapped(&head, width, 11, 13);
    // Blanks between columns: a line must not break there.
    if let Some(first) = lines.first_mut() {
        *first = format!("{:>9}  {}", percent(culprit.change), first.trim_start());
    }
    lines.extend(texts.iter().flat_map(|text| wrapped(text, width, 11, 13)));
    for text in &beside(culprit, bisected) {
        lines.extend(wrapped(text, width, 11, 13));
    }
    lines
}

/// What is known of a culprit beside its count: where, in time, and what is left without it.
pub(crate) fn beside(culprit: &Culprit, bisected: &Bisected) -> Vec<String> {
    let again = culprit.probability.is_some();
    let in_time = culprit
        .in_time
        .iter()
        .flat_map(|in_time| in_time.texts(again));
    let without = culprit.without.iter().map(WithoutCulprit::words);
    let functions = culprit.functions.iter().cloned();
    let sure = culprit.probability.map(|probability| {
        let ci95 = culprit.ci95.map_or_else(String::new, |(low, high)| {
            format!("between {:+.1} and {:+.1} %; ", low * 100.0, high * 100.0)
        });
        let layout = bisected.layout.map_or_else(String::new, |layout| {
            format!(" and builds scatter by {}", share(layout))
        });
        format!(
            "{ci95}the step is here with a probability of {}, if it is one step{layout}",
            certainty(probability)
        )
    });
    let known = sure.into_iter().chain(functions);
    known.chain(in_time).chain(without).collect()
}

/// What the end of a search means.
fn of_end(bisected: &Bisected) -> Vec<String> {
    let mut texts = Vec::new();
    let min = share(bisected.min);
    match bisected.end {
        "nothing-differs" => texts.push(format!(
            "nothing to bisect: the ends differ by less than {min}; steps between them that cancel are not \
             seen"
        )),
        "unsure" => texts.push(
            "the ends differ, and time cannot tell which point did it: builds differ by too much for no \
             reason, or by too little from each other"
                .to_owned(),
        ),
        "same-server" => texts.push(
            "nothing to bisect: both ends are the same server, and nothing was counted".to_owned(),
        ),
        "interrupted" => texts.push(format!(
            "interrupted; `deltabench resume {}` goes on",
            bisected.name
        )),
        "undecided" => texts.push(format!(
            "the time is up; the same command with a larger --budget goes on, `deltabench resume {}` without \
             a limit",
            bisected.name
        )),
        _ => {}
    }
    texts
}

/// What a search by time leaves open.
fn of_time(bisected: &Bisected) -> Vec<String> {
    let mut texts = Vec::new();
    if bisected.by == By::Instructions {
        return texts;
    }
    if bisected.end == "nothing-differs" && bisected.by == By::Cpu {
        texts.push(
            "what waits is not in CPU: `--metric throughput` searches what only throughput shows"
                .to_owned(),
        );
    }
    texts.extend(unaligned(bisected));
    for culprit in &bisected.culprits {
        let is_begun = culprit
            .in_time
            .as_ref()
            .is_some_and(|it| it.says != TimeSays::Unfinished);
        if let (false, Some(suspect)) = (is_begun, culprit.one_of.last()) {
            texts.push(format!(
                "{} is not convicted yet: fresh blocks next to its parent are missing; \
                 `deltabench resume {}` measures them",
                suspect.point.name, bisected.name
            ));
        }
        if let (None, Some(suspect)) = (culprit.instructions, culprit.one_of.last()) {
            texts.push(format!(
                "time names a build: `deltabench count {} {} --only {}` says whether its code does more, or \
                 only lies elsewhere",
                culprit.parent.target, suspect.point.target, bisected.workload
            ));
        }
    }
    texts
}

/// That commits were built with functions that lie anywhere, where a step by time was found among them.
fn unaligned(bisected: &Bisected) -> Option<String> {
    let target = &bisected.culprits.first()?.parent.target;
    let is_commit = target.starts_with("git:");
    (is_commit && !target.ends_with("+o2_aligned")).then(|| {
        "in builds without -falign-functions=64 a commit moves functions that it does not touch; in one \
         search equal code cost 10 % less for it: search again with +o2_aligned before you believe a step"
            .to_owned()
    })
}

/// What the reader must know beside the culprits.
pub(crate) fn left_out(bisected: &Bisected) -> Vec<String> {
    let min = share(bisected.min);
    let mut texts = of_end(bisected);
    texts.extend(bisected.open.iter().map(OpenInterval::words));
    let quiet = bisected.quiet;
    if quiet.points > 0 && bisected.end != "nothing-differs" {
        texts.push(format!(
            "not searched: {} with {} that differ by less than {min} each; all small differences together \
             are {}; steps that cancel inside them are not seen",
            plural(count(quiet.intervals), "interval"),
            plural(count(quiet.points), "point"),
            percent(quiet.change)
        ));
    }
    let by_count = bisected.by == By::Instructions;
    texts.extend(of_time(bisected));
    let untimed = bisected.culprits.iter().find(|one| one.in_time.is_none());
    if let Some((culprit, suspect)) = untimed
        .filter(|_| by_count)
        .and_then(|one| Some((one, one.one_of.last()?)))
    {
        texts.push(format!(
            "instructions are not time: `deltabench compare {} {} --only {}` measures {} next to its parent",
            culprit.parent.target, suspect.point.target, bisected.workload, suspect.point.name
        ));
    }
    let against = bisected.culprits.iter().filter(|culprit| {
        bisected
            .change
            .is_some_and(|whole| culprit.change.signum() * whole.signum() < 0.0)
    });
    let against = against.count();
    if against > 0 {
        texts.push(format!(
            "{} goes against the whole: a part of the others is cancelled by it",
            plural(count(against), "culprit")
        ));
    }
    texts
}

/// `c4d5cb71d2 2024-09-21 Increase the number of fast-path lock slots`.
pub(crate) fn words(point: &BisectedPoint) -> String {
    let parts = [
        Some(&point.name),
        point.date.as_ref(),
        point.subject.as_ref(),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    parts.join(" ")
}

/// `+1.93 %`.
pub(crate) fn percent(change: f64) -> String {
    format!("{:+.2} %", change * 100.0)
}

/// `0.5 %`.
fn share(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(name: &str) -> BisectedPoint {
        BisectedPoint {
            target: format!("postgres:{name}"),
            name: name.to_owned(),
            date: Some("2024-09-21".to_owned()),
            subject: Some("Do more".to_owned()),
        }
    }

    fn bisected() -> Bisected {
        let suspect = |name: &str, skipped: Option<&str>| SuspectPoint {
            point: point(name),
            skipped: skipped.map(str::to_owned),
        };
        let culprit = |change: f64, one_of: Vec<SuspectPoint>| Culprit {
            parent: point("17.1"),
            one_of,
            change,
            ci95: None,
            probability: None,
            instructions: Some((1e4, 1e4 * (1.0 + change))),
            functions: vec!["+116 LockAcquireExtended: 7 calls, each 16 more".to_owned()],
            in_time: None,
            without: None,
        };
        Bisected {
            format: BISECTED_FORMAT.0,
            version: BISECTED_FORMAT.1,
            name: "bisect-x".to_owned(),
            workload: "scan".to_owned(),
            by: By::Instructions,
            base: point("17.0"),
            candidate: point("17.9"),
            points: 10,
            may_differ: 9,
            base_alone: None,
            min: 0.005,
            layout: None,
            instructions: Some((10_000.0, 10_300.0)),
            change: Some(0.03),
            ci95: None,
            end: "found",
            culprits: vec![
                culprit(0.04, vec![suspect("17.2", None)]),
                culprit(
                    -0.01,
                    vec![
                        suspect("17.4", Some("does not build")),
                        suspect("17.5", None),
                    ],
                ),
            ],
            open: Vec::new(),
            quiet: Quiet {
                intervals: 2,
                points: 4,
                change: 0.001,
            },
            looks: Vec::new(),
        }
    }

    #[test]
    fn a_culprit_has_its_commit_and_a_run_of_skipped_ones_is_named_as_a_whole() {
        let text = bisected_text(&bisected(), 200);
        assert!(
            text.contains("scan, 17.0 → 17.9: +3.00 % instructions per operation (10000 → 10300)")
        );
        assert!(
            text.contains("  +4.00 %  17.2 2024-09-21 Do more\n"),
            "{text}"
        );
        assert!(text.contains("one of these 2, of which only the last could be measured"));
        assert!(
            text.contains("17.4 2024-09-21 Do more (does not build)"),
            "{text}"
        );
        assert!(text.contains("LockAcquireExtended"));
        let next = "`deltabench compare postgres:17.1 postgres:17.2 --only scan`";
        assert!(text.contains(next), "{text}");
    }

    #[test]
    fn what_time_says_and_what_is_left_without_it_stand_with_the_culprit() {
        let mut bisected = bisected();
        let change = |change: f64| TimeChange {
            change,
            ci95: Some((change - 0.004, change + 0.004)),
        };
        let timed = Timed {
            run: "bisect-x-7".to_owned(),
            is_finished: true,
            blocks: 12,
            clients: 1,
            rows: 20_000,
            by_throughput: false,
            cpu: Some(change(0.03)),
            throughput: Some(change(-0.03)),
            placebo: Some(change(0.0)),
            p: Some(1e-5),
            unfit: None,
        };
        bisected.culprits[0].in_time = Some(InTime::new(timed, 0.04));
        bisected.culprits[0].without = Some(WithoutCulprit {
            ci95: None,
            change: Some(0.001),
            why: None,
        });
        let text = bisected_text(&bisected, 300);
        assert!(
            text.contains(
                "in time: CPU per operation +3.0 % [+2.6, +3.4], throughput -3.0 % [-3.4, -2.6]"
            ),
            "{text}"
        );
        assert!(text.contains("\n           time shows it too\n"), "{text}");
        assert!(
            text.contains("without it the candidate has +0.10 % instructions"),
            "{text}"
        );
        // The other one was not measured in time: how to do that is said of it.
        assert!(text.contains("measures 17.5 next to its parent"), "{text}");
    }

    #[test]
    fn what_was_not_searched_and_what_cancels_is_told() {
        let text = bisected_text(&bisected(), 200);
        assert!(
            text.contains("2 intervals with 4 points that differ by less than 0.5 % each"),
            "{text}"
        );
        assert!(text.contains("1 culprit goes against the whole"), "{text}");
        let nothing = Bisected {
            end: "nothing-differs",
            culprits: Vec::new(),
            change: Some(0.001),
            ..bisected()
        };
        let text = bisected_text(&nothing, 200);
        assert!(!text.contains("deltabench compare"), "{text}");
        assert!(
            text.contains("nothing to bisect: the ends differ by less than 0.5 %"),
            "{text}"
        );
        assert!(!text.contains("not searched"), "{text}");
    }
}
