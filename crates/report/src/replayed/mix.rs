//! What a replay says of all statements at once.

use super::times::{change, rounded};
use crate::words::plural;
use deltabench_model::replayed::{MixTime, Replayed, ReplayedMix, TimeVerdict};

fn of(replayed: &Replayed) -> Option<&ReplayedMix> {
    replayed.times.as_ref()?.mix.as_ref()
}

/// `mix of 57 statements by 4 clients: 4,210 → 4,100 statements per second, -2.6 % [-3.9, -1.2], slower; …`;
/// absent without a mix.
pub(super) fn sentence(replayed: &Replayed, place: usize) -> Option<String> {
    let mix = of(replayed)?;
    let mut candidates = mix.candidates.iter();
    let time = candidates.find(|time| time.server == Some(place))?;
    let placebo = mix.placebo.as_ref().map_or_else(String::new, |placebo| {
        format!("; placebo {}", change(&placebo.throughput))
    });
    Some(format!(
        "mix of {} by {}: {:.0} → {:.0} statements per second, {}{}{}{placebo}",
        plural(mix.statements, "statement"),
        plural(u64::from(mix.clients), "client"),
        time.base_per_second,
        time.candidate_per_second,
        change(&time.throughput),
        verdict(time),
        besides(time)
    ))
}

fn verdict(time: &MixTime) -> String {
    let words = match time.verdict {
        TimeVerdict::Slower => ", slower",
        TimeVerdict::Faster => ", faster",
        TimeVerdict::NoChange => {
            return format!(", no change beyond ±{} %", rounded(time.delta * 100.0));
        }
        TimeVerdict::Inconclusive | TimeVerdict::DoesNotMatter => ", inconclusive",
        TimeVerdict::Unfit => ", not trusted",
    };
    words.to_owned()
}

/// CPU, the slow end of the latency, and what did not succeed.
fn besides(time: &MixTime) -> String {
    let cpu = time
        .cpu
        .as_ref()
        .map(|cpu| format!("; CPU of a statement {}", change(cpu)));
    let p99 = time
        .p99
        .as_ref()
        .map(|p99| format!("; 99th percentile of latency {}", change(p99)));
    let failed = (time.base_failed > 0.0 || time.failed > 0.0).then(|| {
        format!(
            "; failed {} → {} of the statements",
            share(time.base_failed),
            share(time.failed)
        )
    });
    cpu.into_iter().chain(p99).chain(failed).collect()
}

/// A share in percent; with more digits where it is small.
fn share(share: f64) -> String {
    match share {
        small if small > 0.0 && small < 0.001 => format!("{:.3} %", small * 100.0),
        share => format!("{:.1} %", share * 100.0),
    }
}

/// What is in the mix, and what is not; nothing without one.
pub(super) fn note(replayed: &Replayed) -> Option<String> {
    let mix = of(replayed)?;
    let left = mix.of.saturating_sub(mix.statements);
    let left = match left {
        0 => String::new(),
        left => format!(
            "; {} left out, because a copy takes its values once or servers do other work",
            plural(left, "statement")
        ),
    };
    Some(format!(
        "mix: {} of the measured statements, {:.1} % of their calls, drawn by calls; all servers get the \
         same ones in the same order; clients do not wait between statements, and share all cores with the \
         servers{left}",
        mix.statements,
        mix.share_of_calls * 100.0
    ))
}
