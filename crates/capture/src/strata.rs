//! Which executions of a statement are kept: a sample in strata of their duration, from one pass over the
//! log.
//!
//! A parameter that picks another plan is nearly always a slow one, so a quarter of the tuples each comes
//! from the slowest 1 % of the executions, the rest of the slowest 10 %, the next 40 % and the fast half.
//! Executions without a duration, if there are some, are a part of their own.
//! Shares are then weighted back. Each execution draws a number; the smallest ones of about the same
//! duration are kept, which is a uniform sample of them however long the log is (bottom-k sampling).

use crate::statement::Tuple;
use deltabench_model::units::{to_f64, truncated};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Where strata end, as shares of the executions from the slowest one on.
const ENDS: [f64; 3] = [0.01, 0.10, 0.50];
/// Those of a duration, and executions without one.
const STRATA: usize = ENDS.len() + 2;
/// Durations are told apart by steps of 9 %: one step is in one stratum as a whole.
const STEPS_PER_OCTAVE: f64 = 8.0;
/// The step of executions without a duration.
const UNTIMED: i64 = i64::MIN;
/// Bytes of values that are kept of a statement while the log is read. Statements with larger values keep
/// fewer executions of each step.
const ROOM: usize = 32 << 20;

/// What an execution sent: its text and its values.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Content {
    pub text: Rc<str>,
    pub values: Vec<Option<String>>,
}

struct Kept {
    ms: Option<f64>,
    weight: f64,
    content: Rc<Content>,
}

impl Content {
    fn bytes(&self) -> usize {
        let values = self.values.iter().flatten().map(String::len);
        self.text.len() + values.sum::<usize>()
    }
}

/// Executions of about the same duration.
#[derive(Default)]
struct Step {
    /// By the number that was drawn, the smallest ones.
    kept: BTreeMap<u64, Kept>,
    /// Whether executions were dropped.
    is_full: bool,
    /// All executions.
    weight: f64,
}

impl Step {
    /// Drops the execution with the largest number; returns how many bytes that frees.
    fn drop_last(&mut self) -> usize {
        let dropped = self.kept.pop_last().map(|(_, kept)| kept.content);
        let alone = dropped.filter(|content| Rc::strong_count(content) == 1);
        alone.map_or(0, |content| content.bytes())
    }
}

/// The executions of one statement.
pub(crate) struct Strata {
    most: usize,
    /// How many executions of each step are kept.
    kept: usize,
    /// Bytes of what is kept, and how many there may be.
    bytes: usize,
    room: usize,
    random: Xoshiro256PlusPlus,
    steps: BTreeMap<i64, Step>,
}

impl Strata {
    /// Chooses at most `most` tuples, from a seed.
    pub(crate) fn new(most: usize, seed: u64) -> Self {
        Self {
            most: most.max(1),
            kept: most.max(1),
            bytes: 0,
            room: ROOM,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            steps: BTreeMap::new(),
        }
    }

    /// Adds an execution that stands for `weight` of them. `content` is only made if it is kept for now.
    pub(crate) fn add(&mut self, ms: Option<f64>, weight: f64, content: impl FnOnce() -> Content) {
        let duration = |ms: f64| truncated((ms.max(1e-3).log2() * STEPS_PER_OCTAVE).floor());
        let step = self.steps.entry(ms.map_or(UNTIMED, duration)).or_default();
        step.weight += weight;
        let drawn = self.random.next_u64();
        if step.kept.len() >= self.kept {
            step.is_full = true;
            let last = step.kept.last_key_value().map_or(0, |(last, _)| *last);
            if drawn >= last {
                return;
            }
            self.bytes -= step.drop_last();
        }
        let content = content();
        // Many executions have the same values: they share them.
        let same = step.kept.values().find(|kept| *kept.content == content);
        let content = match same {
            Some(kept) => kept.content.clone(),
            None => {
                self.bytes += content.bytes();
                Rc::new(content)
            }
        };
        let kept = Kept {
            ms,
            weight,
            content,
        };
        step.kept.insert(drawn, kept);
        while self.bytes > self.room && self.kept > 1 {
            self.keep_half();
        }
    }

    /// Keeps half as many executions of each step: those with the smaller numbers, still a uniform sample.
    fn keep_half(&mut self) {
        self.kept /= 2;
        for step in self.steps.values_mut() {
            while step.kept.len() > self.kept {
                step.is_full = true;
                self.bytes -= step.drop_last();
            }
        }
    }

    /// The tuples with their shares, the slowest first, and the text that most of them have.
    pub(crate) fn tuples(&self) -> (Option<Rc<str>>, Vec<Tuple>) {
        let strata = self.strata();
        let quotas = self.quotas(&strata);
        let mut chosen: BTreeMap<&Content, Chosen> = BTreeMap::new();
        for (stratum, quota) in strata.iter().zip(quotas) {
            choose(stratum, quota, &mut chosen);
        }
        // A stratum without a tuple leaves its share to all others.
        let all: f64 = strata.iter().map(|stratum| stratum.weight).sum();
        let sum: f64 = chosen.values().map(|chosen| chosen.n).sum();
        for chosen in chosen.values_mut() {
            chosen.n *= all / sum;
        }
        written(chosen)
    }

    /// The steps in their strata, each with a uniform sample of at least `kept` executions, or with all.
    fn strata(&self) -> [Stratum<'_>; STRATA] {
        let timed = self.steps.iter().filter(|(step, _)| **step != UNTIMED);
        let all: f64 = timed.map(|(_, step)| step.weight).sum();
        let mut strata: [Stratum<'_>; STRATA] = Default::default();
        let mut slower = 0.0;
        for (number, step) in self.steps.iter().rev() {
            // Where the middle of its executions lies.
            let share = (slower + step.weight / 2.0) / all;
            slower += step.weight;
            let at = match ENDS.iter().position(|end| share < *end) {
                _ if *number == UNTIMED => STRATA - 1,
                Some(at) => at,
                None => ENDS.len(),
            };
            let Some(stratum) = strata.get_mut(at) else {
                continue;
            };
            stratum.weight += step.weight;
            // Steps that dropped executions are sampled more thinly than others.
            let last = step.kept.last_key_value().filter(|_| step.is_full);
            let limit = last.map_or(u64::MAX, |(last, _)| *last);
            stratum.limit = stratum.limit.min(limit);
            stratum
                .kept
                .extend(step.kept.iter().map(|(drawn, kept)| (*drawn, kept)));
        }
        for stratum in &mut strata {
            let limit = stratum.limit;
            stratum.kept.retain(|(drawn, _)| *drawn <= limit);
            stratum.kept.sort_by_key(|(drawn, _)| *drawn);
        }
        strata
    }

    /// How many tuples each stratum may have: a quarter each; what one cannot use goes to the slowest that
    /// can.
    fn quotas(&self, strata: &[Stratum<'_>; STRATA]) -> [usize; STRATA] {
        let distinct = strata.each_ref().map(|stratum| {
            let kept = stratum.kept.iter();
            let contents: BTreeSet<&Content> = kept.map(|(_, kept)| &*kept.content).collect();
            contents.len()
        });
        let mut quotas = [0; STRATA];
        for _ in 0..self.most {
            let open = (0..STRATA).filter(|&at| quotas.get(at) < distinct.get(at));
            // The one with the fewest so far, the slowest of equals.
            let next = open.min_by_key(|&at| quotas.get(at).copied());
            if let Some(quota) = next.and_then(|next| quotas.get_mut(next)) {
                *quota += 1;
            }
        }
        quotas
    }
}

/// A part of the executions, by duration.
struct Stratum<'a> {
    /// All its executions.
    weight: f64,
    /// A uniform sample in the order in which it was drawn.
    kept: Vec<(u64, &'a Kept)>,
    /// Executions that drew a larger number are not in the sample.
    limit: u64,
}

impl Default for Stratum<'_> {
    fn default() -> Self {
        Self {
            weight: 0.0,
            kept: Vec::new(),
            limit: u64::MAX,
        }
    }
}

/// What is known of a chosen tuple.
#[derive(Default)]
struct Chosen {
    /// Executions that it stands for.
    n: f64,
    /// Sum and number of durations seen.
    ms: f64,
    timed: u64,
}

/// Chooses `quota` tuples of a stratum in the order in which they were drawn; the executions drawn until then
/// give their shares.
fn choose<'a>(stratum: &Stratum<'a>, quota: usize, chosen: &mut BTreeMap<&'a Content, Chosen>) {
    let mut contents: BTreeSet<&Content> = BTreeSet::new();
    let mut drawn = Vec::new();
    for (_, kept) in &stratum.kept {
        let content = &*kept.content;
        if contents.len() == quota && !contents.contains(content) {
            break;
        }
        contents.insert(content);
        drawn.push(*kept);
    }
    let sum: f64 = drawn.iter().map(|kept| kept.weight).sum();
    for kept in drawn {
        let chosen = chosen.entry(&*kept.content).or_default();
        chosen.n += stratum.weight * kept.weight / sum;
        if let Some(ms) = kept.ms {
            chosen.ms += ms;
            chosen.timed += 1;
        }
    }
}

fn written(chosen: BTreeMap<&Content, Chosen>) -> (Option<Rc<str>>, Vec<Tuple>) {
    let mut texts: BTreeMap<&Rc<str>, f64> = BTreeMap::new();
    for (content, known) in &chosen {
        *texts.entry(&content.text).or_default() += known.n;
    }
    let most = texts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let text = most.map(|(text, _)| text.clone());
    let tuples = chosen.into_iter().map(|(content, known)| Tuple {
        text: (Some(&content.text) != text.as_ref()).then(|| content.text.to_string()),
        values: content.values.clone(),
        ms: (known.timed > 0).then(|| known.ms / to_f64(known.timed)),
        n: known.n,
    });
    let mut tuples: Vec<Tuple> = tuples.collect();
    tuples.sort_by(|a, b| b.ms.unwrap_or(0.0).total_cmp(&a.ms.unwrap_or(0.0)));
    (text, tuples)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str, value: u64) -> Content {
        Content {
            text: text.into(),
            values: vec![Some(value.to_string())],
        }
    }

    /// 100,000 executions: half take 1 ms, some 10 ms, one in 200 takes a second.
    fn skewed(seed: u64) -> Vec<Tuple> {
        let mut strata = Strata::new(64, seed);
        for number in 0..100_000 {
            let ms = match number % 200 {
                0 => 1000.0,
                1..100 => 10.0,
                _ => 1.0,
            };
            strata.add(Some(ms * (1.0 + to_f64(number % 7) / 100.0)), 1.0, || {
                content("q", number)
            });
        }
        strata.tuples().1
    }

    #[test]
    fn a_quarter_of_the_tuples_is_from_the_slowest_executions_with_their_share() {
        let tuples = skewed(7);
        assert_eq!(tuples.len(), 64);
        let slow: Vec<&Tuple> = tuples
            .iter()
            .filter(|tuple| tuple.ms > Some(500.0))
            .collect();
        assert!(slow.len() >= 15, "{}", slow.len());
        let all: f64 = tuples.iter().map(|tuple| tuple.n).sum();
        assert!((all - 100_000.0).abs() < 1.0, "{all}");
        // What 64 tuples say of the mean: 9.95 ms, and 5 ms of it from the slowest.
        let mean: f64 = tuples
            .iter()
            .map(|tuple| tuple.n * tuple.ms.unwrap())
            .sum::<f64>()
            / all;
        assert!((8.0..13.0).contains(&mean), "{mean}");
    }

    #[test]
    fn large_values_need_no_more_than_their_room() {
        let mut strata = Strata::new(64, 1);
        strata.room = 100_000;
        for number in 0..5000_u64 {
            let ms = 1.0 + to_f64(number % 50);
            strata.add(Some(ms), 1.0, || Content {
                text: "q".into(),
                values: vec![Some(format!("{number:01000}"))],
            });
            assert!(strata.bytes <= 100_000);
        }
        let (_, tuples) = strata.tuples();
        // One of each stratum at least.
        assert!(tuples.len() >= 4, "{}", tuples.len());
        let all: f64 = tuples.iter().map(|tuple| tuple.n).sum();
        assert!((all - 5000.0).abs() < 1e-6, "{all}");
    }

    #[test]
    fn a_few_durations_are_put_into_strata_among_themselves() {
        let mut strata = Strata::new(64, 1);
        for number in 0..100_000 {
            // One of 100 has a duration, and 5 % of these are slow.
            let ms = match number % 2000 {
                0 => Some(1000.0),
                rest if rest % 100 == 0 => Some(1.0),
                _ => None,
            };
            strata.add(ms, 1.0, || content("q", number));
        }
        let (_, tuples) = strata.tuples();
        let share = |wanted: fn(&Tuple) -> bool| {
            let found = tuples.iter().filter(|tuple| wanted(tuple));
            found.map(|tuple| tuple.n).sum::<f64>()
        };
        let slow = share(|tuple| tuple.ms > Some(500.0));
        let fast = share(|tuple| tuple.ms < Some(500.0) && tuple.ms.is_some());
        assert!((slow - 50.0).abs() < 1e-6, "{slow}");
        assert!((fast - 950.0).abs() < 1e-6, "{fast}");
        assert!((share(|_| true) - 100_000.0).abs() < 1e-6);
    }

    #[test]
    fn the_choice_is_a_function_of_the_seed() {
        assert_eq!(skewed(7), skewed(7));
        assert_ne!(skewed(7), skewed(8));
    }

    #[test]
    fn what_fits_is_kept_whole_and_counted_exactly() {
        let mut strata = Strata::new(64, 1);
        for number in 0..60 {
            strata.add(Some(to_f64(number % 5) + 1.0), 2.0, || {
                content("q", number % 5)
            });
        }
        let (text, tuples) = strata.tuples();
        assert_eq!(text.as_deref(), Some("q"));
        assert_eq!(tuples.len(), 5);
        for tuple in tuples {
            assert!((tuple.n - 24.0).abs() < 1e-9, "{}", tuple.n);
        }
    }

    #[test]
    fn one_value_that_most_executions_have_keeps_its_share() {
        let mut strata = Strata::new(8, 1);
        for number in 0..10_000 {
            let value = if number % 10 == 0 { number } else { 0 };
            strata.add(None, 1.0, || content("q", value));
        }
        let (_, tuples) = strata.tuples();
        let most = tuples.iter().map(|tuple| tuple.n).fold(0.0, f64::max);
        assert!((4000.0..10_000.0).contains(&most), "{most}");
    }

    #[test]
    fn the_text_that_most_executions_have_is_the_statements() {
        let mut strata = Strata::new(8, 1);
        for number in 0..6 {
            let text = if number == 0 { "in ($1)" } else { "in ($1,$2)" };
            strata.add(Some(1.0), 1.0, || content(text, number));
        }
        let (text, tuples) = strata.tuples();
        assert_eq!(text.as_deref(), Some("in ($1,$2)"));
        let own: Vec<_> = tuples
            .iter()
            .filter_map(|tuple| tuple.text.as_deref())
            .collect();
        assert_eq!(own, ["in ($1)"]);
    }
}
