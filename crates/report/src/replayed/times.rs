//! The times of a replay: one list of rows, for the terminal and for the page.

use super::findings::verdicts;
use super::parting::Parting;
use super::{made_up, short, why, writes};
use crate::lines::wrapped;
use crate::words::plural;
use deltabench_model::replayed::{
    PlanVerdict, ReplayVerdict, Replayed, ReplayedStatement, StatementTime, TimeRatio, TimeVerdict,
    WeightedBy, WorkloadTime,
};
use deltabench_model::units::count;

/// Characters of a statement's name in a row.
const NAME_SHOWN: usize = 28;
/// Indent of what belongs to a row.
const INDENT: usize = 4;

/// What the times of a statement say of a candidate, in words.
pub(super) struct Row {
    pub sign: &'static str,
    pub name: String,
    pub text: String,
    pub share: String,
    pub ratio: String,
    /// Of an execution, base → candidate.
    pub milliseconds: String,
    pub plan: &'static str,
    pub workload: String,
    /// Further lines: where plans part, what is missing.
    pub below: Vec<String>,
}

/// What the columns say.
pub(super) const LEGEND: &str = "time on candidate / base [95 % interval], of all values together; workload: \
                                 what it adds to the time of the workload";

/// The names of the columns, as the rows have them.
pub(super) fn columns(replayed: &Replayed) -> [&'static str; 6] {
    let share = share_name(replayed.covered.weighted_by);
    [
        "statement",
        share,
        "time on candidate",
        "ms",
        "plan",
        "workload",
    ]
}

/// What a statement's share is a share of.
pub(super) fn share_name(by: WeightedBy) -> &'static str {
    match by {
        WeightedBy::Time => "share",
        WeightedBy::Calls => "of calls",
    }
}

/// `the workload takes +1.9 % [+1.2, +2.6] server time; 4 statements slower, …`; absent without times.
pub(super) fn head(replayed: &Replayed, place: usize) -> Option<String> {
    let times = replayed.times.as_ref()?;
    let mut workload = times.workload.iter();
    let total = match workload.find(|whole| whole.server == Some(place)) {
        Some(whole) => total(replayed, whole),
        None => "no total of the workload: too little of it was measured".to_owned(),
    };
    let verdicts = timed(replayed, place);
    let of = |wanted: TimeVerdict| {
        verdicts
            .iter()
            .filter(move |(_, verdict)| *verdict == wanted)
    };
    let slower = of(TimeVerdict::Slower).count();
    let regressions = of(TimeVerdict::Slower)
        .filter(|(changed, _)| *changed)
        .count();
    let mut parts = vec![match (slower, regressions) {
        (slower, 0) => format!("{} slower", plural(count(slower), "statement")),
        (slower, plans) => format!(
            "{} slower ({plans} with another plan)",
            plural(count(slower), "statement")
        ),
    }];
    let more = [
        (TimeVerdict::Faster, "faster"),
        (TimeVerdict::NoChange, "no change"),
        (TimeVerdict::Inconclusive, "inconclusive"),
        (TimeVerdict::Unfit, "without a verdict"),
    ];
    for (verdict, words) in more {
        match of(verdict).count() {
            0 if verdict == TimeVerdict::Unfit => {}
            many => parts.push(format!("{many} {words}")),
        }
    }
    match of(TimeVerdict::DoesNotMatter).count() {
        0 => {}
        1 => parts.push("1 that does not matter".to_owned()),
        many => parts.push(format!("{many} that do not matter")),
    }
    let placebo = times.placebo.as_ref().map_or_else(String::new, |placebo| {
        format!("; placebo {}", change(&placebo.ratio))
    });
    Some(format!("{total}: {}{placebo}", parts.join(", ")))
}

/// `server time of the workload (93.1 % of the captured time) +1.9 % [+1.2, +2.6], slower`.
fn total(replayed: &Replayed, whole: &WorkloadTime) -> String {
    let what = match (replayed.covered.weighted_by, whole.share) {
        (WeightedBy::Time, Some(share)) => {
            format!("{:.1} % of the captured time", share * 100.0)
        }
        _ => format!("{}, by their calls", plural(whole.statements, "statement")),
    };
    let (change, verdict) = (change(&whole.ratio), whole_words(whole));
    format!("server time of the workload ({what}) {change}{verdict}")
}

fn whole_words(whole: &WorkloadTime) -> String {
    let words = match whole.verdict {
        TimeVerdict::Slower => ", slower",
        TimeVerdict::Faster => ", faster",
        TimeVerdict::NoChange => {
            return format!(", no change beyond ±{} %", rounded(whole.delta * 100.0));
        }
        TimeVerdict::Inconclusive | TimeVerdict::DoesNotMatter => ", inconclusive",
        TimeVerdict::Unfit => ", not trusted",
    };
    words.to_owned()
}

/// `5`, `2.5`.
pub(super) fn rounded(percent: f64) -> String {
    let text = format!("{percent:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// The rows of a candidate: slower with another plan first, then what moves the workload most.
pub(super) fn rows(replayed: &Replayed, place: usize) -> Vec<Row> {
    let timed = verdicts(replayed, place).filter_map(|(statement, verdict)| {
        let time = verdict.time.as_ref()?;
        (time.verdict != TimeVerdict::DoesNotMatter).then_some((statement, verdict, time))
    });
    let mut timed: Vec<_> = timed.collect();
    let rank = |(_, verdict, time): &(&ReplayedStatement, &ReplayVerdict, &StatementTime)| {
        let impact = time.impact.map_or(0.0, |impact| impact.estimate.abs());
        (group(verdict, time), impact)
    };
    timed.sort_by(|one, other| {
        let (one, other) = (rank(one), rank(other));
        one.0.cmp(&other.0).then(other.1.total_cmp(&one.1))
    });
    timed
        .into_iter()
        .map(|(statement, verdict, time)| row(replayed, (statement, verdict), time))
        .collect()
}

fn group(verdict: &ReplayVerdict, time: &StatementTime) -> u8 {
    match (time.verdict, verdict.plans) {
        (TimeVerdict::Slower, PlanVerdict::Changed) => 0,
        (TimeVerdict::Slower, _) => 1,
        (TimeVerdict::Faster, _) => 2,
        (TimeVerdict::Inconclusive, _) => 3,
        (TimeVerdict::NoChange | TimeVerdict::DoesNotMatter, _) => 4,
        (TimeVerdict::Unfit, _) => 5,
    }
}

fn row(
    replayed: &Replayed,
    (statement, verdict): (&ReplayedStatement, &ReplayVerdict),
    time: &StatementTime,
) -> Row {
    let share = statement.share;
    Row {
        sign: sign(time.verdict),
        name: statement
            .name
            .clone()
            .unwrap_or_else(|| statement.id.clone()),
        text: statement.text.clone(),
        share: share.map_or_else(String::new, |share| format!("{:.1} %", share * 100.0)),
        ratio: ratio(&time.ratio),
        milliseconds: format!(
            "{} → {}",
            milliseconds(time.base_ms),
            milliseconds(time.candidate_ms)
        ),
        plan: plan_word(verdict.plans),
        workload: time.impact.as_ref().map_or_else(String::new, part),
        below: below(replayed, (statement, verdict), time),
    }
}

/// The sign of a verdict.
fn sign(verdict: TimeVerdict) -> &'static str {
    match verdict {
        TimeVerdict::Slower => "▼",
        TimeVerdict::Faster => "▲",
        TimeVerdict::NoChange | TimeVerdict::DoesNotMatter => "=",
        TimeVerdict::Inconclusive => "?",
        TimeVerdict::Unfit => "–",
    }
}

fn plan_word(verdict: PlanVerdict) -> &'static str {
    match verdict {
        PlanVerdict::Same => "same",
        PlanVerdict::Changed => "changed",
        PlanVerdict::UnstableBase | PlanVerdict::UnstableCandidate => "unstable",
        PlanVerdict::Unknown => "unknown",
    }
}

/// What is said below a row: all of what is slower, the reason where there is no verdict.
fn below(
    replayed: &Replayed,
    (statement, verdict): (&ReplayedStatement, &ReplayVerdict),
    time: &StatementTime,
) -> Vec<String> {
    let mut below = Vec::new();
    let is_told = matches!(time.verdict, TimeVerdict::Slower | TimeVerdict::Faster);
    // Without a name nobody knows it but by its text.
    if is_told || statement.name.is_none() {
        below.push(short(&statement.text));
    }
    if is_told {
        if let Some(parts) = &time.parts {
            let same = statement.tuples.saturating_sub(parts.changed_tuples);
            below.push(format!(
                "values with another plan ({} of {}): {}; the other {same}: {}",
                parts.changed_tuples,
                statement.tuples,
                times_as_long(parts.changed),
                times_as_long(parts.same)
            ));
        }
        let changes = verdict.changes.iter().take(1);
        below.extend(
            changes.map(|change| Parting::of(replayed, &change.from, &change.to).sentence()),
        );
        below.extend(why::texts(verdict));
    }
    below.extend(time.why.clone());
    below.extend(made_up::words(statement));
    below.extend(writes::words(statement));
    if time.executions <= u64::from(time.blocks) {
        below.push(
            "executed once in each of its blocks: it takes longer than its part of the time"
                .to_owned(),
        );
    }
    below
}

fn times_as_long(ratio: f64) -> String {
    format!("{ratio:.3} times as long")
}

/// `1.318 [1.290, 1.350]`.
fn ratio(ratio: &TimeRatio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.3} [{low:.3}, {high:.3}]", ratio.estimate),
        _ => format!("{:.3}", ratio.estimate),
    }
}

/// `+1.9 % [+1.2, +2.6]` of a ratio.
pub(super) fn change(ratio: &TimeRatio) -> String {
    let less = |value: f64| value - 1.0;
    part(&TimeRatio {
        estimate: less(ratio.estimate),
        low: ratio.low.map(less),
        high: ratio.high.map(less),
    })
}

/// `+1.9 % [+1.2, +2.6]` of shares.
fn part(shares: &TimeRatio) -> String {
    let (estimate, low, high) = (shares.estimate, shares.low, shares.high);
    // So that what hardly moves the workload is not all zeros.
    let digits = match [low, high, Some(estimate)]
        .into_iter()
        .flatten()
        .fold(0.0, |most: f64, one| most.max(one.abs()))
    {
        far if far < 0.01 => 2,
        _ => 1,
    };
    // Never `-0.00`.
    let unit = if digits == 2 { 1e4 } else { 1e3 };
    let percent = |share: f64| ((share * unit).round() + 0.0) / unit * 100.0;
    match (low, high) {
        (Some(low), Some(high)) => format!(
            "{:+.digits$} % [{:+.digits$}, {:+.digits$}]",
            percent(estimate),
            percent(low),
            percent(high)
        ),
        _ => format!("{:+.digits$} %", percent(estimate)),
    }
}

/// Three digits that count.
fn milliseconds(value: f64) -> String {
    match value {
        value if value < 1.0 => format!("{value:.3}"),
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// Whether a statement is slower or faster: then its row has its plans.
pub(super) fn is_told(verdict: &ReplayVerdict) -> bool {
    let time = verdict.time.as_ref().map(|time| time.verdict);
    matches!(time, Some(TimeVerdict::Slower | TimeVerdict::Faster))
}

/// Plans that changed and verdicts on a candidate.
fn timed(replayed: &Replayed, place: usize) -> Vec<(bool, TimeVerdict)> {
    let timed = verdicts(replayed, place).filter_map(|(_, verdict)| {
        let changed = verdict.plans == PlanVerdict::Changed;
        Some((changed, verdict.time.as_ref()?.verdict))
    });
    timed.collect()
}

/// The table for a terminal, below an empty line; nothing without times.
pub(super) fn lines(replayed: &Replayed, place: usize, width: usize) -> Vec<String> {
    let rows = rows(replayed, place);
    if rows.is_empty() {
        return Vec::new();
    }
    let [name, share, time, ms, plan, workload] = columns(replayed);
    let line = |sign: &str, name: &str, cells: [&str; 5]| {
        let [share, ratio, ms, plan, workload] = cells;
        let line = format!(
            "{sign:<2}{name:<NAME_SHOWN$} {share:>8}  {ratio:<21}  {ms:<15}  {plan:<8}  {workload}"
        );
        line.trim_end().to_owned()
    };
    let mut lines = vec![
        String::new(),
        line("", name, [share, time, ms, plan, workload]),
    ];
    for row in &rows {
        let cells = [
            &row.share,
            &row.ratio,
            &row.milliseconds,
            row.plan,
            &row.workload,
        ];
        lines.push(line(row.sign, &cut(&row.name), cells));
        for text in &row.below {
            lines.extend(wrapped(text, width, INDENT, INDENT + 2));
        }
    }
    lines.push(LEGEND.to_owned());
    lines
}

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME_SHOWN {
        return name.to_owned();
    }
    let cut: String = name.chars().take(NAME_SHOWN - 1).collect();
    format!("{cut}…")
}

/// How it was measured, and what it does not cover; empty without times.
pub(super) fn notes(replayed: &Replayed) -> Vec<String> {
    let Some(times) = &replayed.times else {
        return Vec::new();
    };
    let mut notes = times.notes.clone();
    let blocks = plural(u64::from(times.blocks), "block");
    let blocks = match times.blocks < times.planned_blocks {
        true => format!("{blocks}, of {} planned", times.planned_blocks),
        false => blocks,
    };
    let begins = match replayed.data {
        Some(_) => "in each all servers restart and draw new statistics",
        None => "in each all connections are new",
    };
    notes.extend(writes::times_note(replayed));
    notes.push(format!(
        "times: {blocks}; {begins}; caches are warm; a statement that moves the workload by less than \
         {:.2} % does not matter",
        times.impact * 100.0
    ));
    if times.placebo_different > 0 {
        notes.push(format!(
            "placebo: {} called different on a second copy of the base: expect as many false answers among \
             the candidates",
            plural(times.placebo_different, "statement")
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hardly_moves_the_workload_has_two_digits_and_no_minus_zero() {
        let shares = |estimate, low, high| TimeRatio {
            estimate,
            low: Some(low),
            high: Some(high),
        };
        assert_eq!(
            part(&shares(-0.000_02, -0.000_9, 0.000_8)),
            "+0.00 % [-0.09, +0.08]"
        );
        assert_eq!(part(&shares(0.019, -0.000_1, 0.026)), "+1.9 % [+0.0, +2.6]");
    }
}
