//! What the looks of a bisection say together, whatever command took them.

use crate::failure::Failure;
use crate::store::store_problem;
use deltabench_bisect::{Known, Wish};
use deltabench_model::bisection::{
    Asked, BisectedBy, Bisection, Happened, Look, Outcome, Point, Question,
};
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::profile::Profile;
use deltabench_model::target::{BuildSource, TargetSpec};
use deltabench_model::units::{count, to_f64};
use deltabench_store::Store;
use std::collections::BTreeSet;
use std::f64::consts::SQRT_2;
use std::path::PathBuf;

/// Looks in a row that may fail: then it is not the commits.
pub const FAILURES: usize = 12;

/// The smallest step that is searched is at least this many times what starts of one server differ by.
const SPANS: f64 = 3.0;

/// The smallest step that is searched by time, as a share: the layout of code does as much.
pub const LEAST_BY_TIME: f64 = 0.01;

/// Counts are what changed if they are at least this share of the change of CPU, both as natural logarithms.
const SHARE_OF_COUNTS: f64 = 1.0 / 3.0;

/// The points that may differ from the one before, as a search sees them: `places[0]` is the base.
pub fn places(question: &Question) -> Vec<usize> {
    let points = question.points.iter().enumerate();
    let differs = |(number, point): &(usize, &Point)| *number == 0 || point.may_differ;
    points.filter(differs).map(|(number, _)| number).collect()
}

/// What is known of each place.
pub fn known(bisection: &Bisection, asked: &Asked, places: &[usize]) -> Vec<Known> {
    let again = looked_at_again(bisection);
    let of = |point: &usize| match (bisection.ratio(*point), bisection.look(*point)) {
        // Also one that was looked at: the user does not believe it.
        _ if asked.skip.contains(point) => Known::Skipped,
        (Some(ratio), _) => Known::Cost(ratio.ln()),
        (None, Some(look)) => match look.outcome {
            Outcome::Skipped { .. } if !again.contains(point) => Known::Skipped,
            // Of a server that is not counted: that of a look in time.
            _ => Known::Unknown,
        },
        (None, None) => Known::Unknown,
    };
    places.iter().map(of).collect()
}

/// The points that failed one after the other until a command gave up: a later command looks at them again,
/// because it was probably not they.
pub fn looked_at_again(bisection: &Bisection) -> BTreeSet<usize> {
    let (mut again, mut failed) = (BTreeSet::new(), BTreeSet::new());
    for happened in &bisection.happened {
        match happened {
            Happened::Look(look) => {
                again.remove(&look.point);
                match look.outcome {
                    Outcome::Skipped { .. } => failed.insert(look.point),
                    Outcome::Counted { .. } | Outcome::Timed { .. } | Outcome::Same { .. } => {
                        failed.clear();
                        false
                    }
                };
            }
            Happened::Together(_) => failed.clear(),
            Happened::Asked(_) => {
                let gave_up = failed.len() >= FAILURES;
                again.extend(std::mem::take(&mut failed).into_iter().filter(|_| gave_up));
            }
            Happened::Building { .. }
            | Happened::OutOfTime
            | Happened::Timing { .. }
            | Happened::Without { .. } => {}
        }
    }
    again
}

/// Whether the time of the last command was over before the search was; culprits may have been measured after
/// that.
pub fn is_out_of_time(bisection: &Bisection) -> bool {
    let mut latest = bisection.happened.iter().rev();
    let told = latest.find(|one| {
        matches!(
            one,
            Happened::Asked(_) | Happened::Look(_) | Happened::Together(_) | Happened::OutOfTime
        )
    });
    matches!(told, Some(Happened::OutOfTime))
}

/// What is searched: never less than what the counts themselves can tell.
pub fn wish(bisection: &Bisection, asked: &Asked) -> Wish {
    let (mut span, mut bases) = (0.0_f64, Vec::new());
    for look in bisection.looks() {
        if let Outcome::Counted {
            span: own, base, ..
        } = look.outcome
        {
            span = span.max(own.unwrap_or(0.0));
            // Both ends were counted in one run, with one base.
            if look.point != 0 {
                bases.push(base);
            }
        }
    }
    // The base is counted in every look, and any two looks may be compared.
    let spread = spread(bases) * SQRT_2;
    Wish {
        min: (asked.min.max(span * SPANS) + spread).ln_1p(),
        steps: usize::try_from(asked.culprits).unwrap_or(usize::MAX),
    }
}

/// What counts of the base differ by, as a share. With enough of them it leaves out the one that is farthest
/// from the others: one disturbed look must not withdraw culprits that all others show.
fn spread(mut bases: Vec<f64>) -> f64 {
    /// Looks below which any of them may be the odd one.
    const ENOUGH: usize = 5;
    bases.sort_by(f64::total_cmp);
    let width = |bases: &[f64]| match (bases.first(), bases.last()) {
        (Some(lowest), Some(highest)) if *lowest > 0.0 => highest / lowest - 1.0,
        _ => 0.0,
    };
    match bases.as_slice() {
        [_, lower @ ..] if bases.len() >= ENOUGH => {
            let upper = bases.split_last().map_or(&[][..], |(_, upper)| upper);
            width(lower).min(width(upper))
        }
        all => width(all),
    }
}

/// A point that is a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The directory of its repository.
    pub repository: PathBuf,
    /// The whole name.
    pub id: String,
    /// How it is built.
    pub variant: String,
}

/// The commit that a point of a history is; nothing for other points.
pub fn commit(bisection: &Bisection, point: usize) -> Option<Commit> {
    let point = bisection.question.points.get(point)?;
    point.date.as_ref()?;
    let TargetSpec::Built(spec) = point.target.parse().ok()? else {
        return None;
    };
    match spec.source {
        BuildSource::Git {
            directory,
            reference,
        } => Some(Commit {
            repository: directory,
            id: reference,
            variant: spec.variant,
        }),
        BuildSource::Release(_) | BuildSource::Named(_) | BuildSource::Archive(_) => None,
    }
}

/// Where the instructions of a point went; nothing without a count.
pub fn profile_of(
    bisection: &Bisection,
    point: usize,
    store: &Store,
) -> Result<Option<Profile>, Failure> {
    let Some(look) = bisection.counted(point) else {
        return Ok(None);
    };
    let Outcome::Counted { run, .. } = &look.outcome else {
        return Ok(None);
    };
    let server = ServerId(u32::from(look.point != 0));
    let profile = store.count_profile(run, (server, CellId(0)));
    profile.map_err(store_problem)
}

/// Whether points are compared by time: if that is asked for, or if counts do not show what changed.
pub fn is_by_time(bisection: &Bisection, asked: &Asked, places: &[usize]) -> bool {
    let last = places.last().copied().unwrap_or(0);
    let counted = bisection.ratio(last).map(f64::ln);
    match asked.metric {
        BisectedBy::Count => false,
        BisectedBy::Cpu | BisectedBy::Throughput => true,
        BisectedBy::Auto => counted.is_some_and(|counted| {
            let hides = asked.cpu_of_run.is_some_and(|cpu| {
                let cpu = cpu.ln();
                cpu.abs() >= LEAST_BY_TIME && counted * cpu.signum() < cpu.abs() * SHARE_OF_COUNTS
            });
            // By the ends alone: what later looks say of the noise must not turn a search around.
            let span = match bisection.counted(last).map(|look| &look.outcome) {
                Some(Outcome::Counted { span, .. }) => span.unwrap_or(0.0),
                _ => 0.0,
            };
            let nothing = counted.abs() < asked.min.max(span * SPANS).ln_1p();
            let inside = |look: &Look| {
                let is_counted = matches!(look.outcome, Outcome::Counted { .. });
                is_counted && look.point != 0 && look.point != last
            };
            !asked.count_only && (hides || nothing) && !bisection.looks().any(inside)
        }),
    }
}

/// Whether both ends turned out to be one server, or nothing between them can differ.
pub fn is_same_server(bisection: &Bisection, places: &[usize]) -> bool {
    let last = places.last().copied().unwrap_or(0);
    let of_base = |look: &Look| look.outcome == Outcome::Same { point: 0 };
    last == 0 || bisection.look(last).is_some_and(of_base)
}

/// What another look will probably take, from those that were.
pub fn seconds_of_a_look(bisection: &Bisection, last: usize) -> f64 {
    let seconds = |look: &Look| look.acquire_seconds + look.count_seconds;
    let is_inside = |look: &&Look| look.point != 0 && look.point != last;
    let inside: Vec<f64> = bisection.looks().filter(is_inside).map(seconds).collect();
    match inside.as_slice() {
        // The ends were two servers to find, and each had two starts.
        [] => bisection.look(last).map_or(0.0, seconds) / 2.0,
        some => some.iter().sum::<f64>() / to_f64(count(some.len())),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use deltabench_model::bisection::{BISECTION_FORMAT, FailedStep};

    pub const ASKED: Asked = Asked {
        min: 0.005,
        culprits: 3,
        skip: Vec::new(),
        keep_builds: 20,
        budget_seconds: None,
        count_only: false,
        blocks: 14,
        metric: BisectedBy::Auto,
        cpu_of_run: None,
    };

    pub fn bisection(happened: Vec<Happened>) -> Bisection {
        let point = |number: usize| Point {
            target: format!("path:/opt/{number}"),
            name: number.to_string(),
            date: None,
            subject: None,
            may_differ: true,
        };
        Bisection {
            name: "bisect-a".to_owned(),
            question: Question {
                format: BISECTION_FORMAT.0.to_owned(),
                version: BISECTION_FORMAT.1,
                points: (0..20).map(point).collect(),
                base_alone: None,
                plan: deltabench_testkit::small_run::plan(),
            },
            happened,
        }
    }

    fn look(point: usize, outcome: Outcome) -> Happened {
        Happened::Look(Look {
            point,
            outcome,
            made_of: None,
            acquire_seconds: 60.0,
            count_seconds: 40.0,
            built: false,
        })
    }

    fn counted(base: f64, span: Option<f64>) -> Outcome {
        Outcome::Counted {
            run: "bisect-a-1".to_owned(),
            instructions: 1100.0,
            base,
            span,
        }
    }

    fn skipped(point: usize) -> Happened {
        let outcome = Outcome::Skipped {
            step: FailedStep::Run,
            why: "initdb failed".to_owned(),
        };
        look(point, outcome)
    }

    #[test]
    fn a_point_that_the_user_leaves_out_is_left_out_whatever_was_seen_of_it() {
        let mut asked = ASKED;
        asked.skip = vec![9, 2];
        let bisection = bisection(vec![
            look(9, counted(1000.0, None)),
            skipped(2),
            look(5, counted(1000.0, None)),
        ]);
        let known = known(&bisection, &asked, &places(&bisection.question));
        assert_eq!((known[2], known[9]), (Known::Skipped, Known::Skipped));
        assert!(matches!(known[5], Known::Cost(_)));
    }

    fn left_out(bisection: &Bisection) -> usize {
        let places = places(&bisection.question);
        let known = known(bisection, &ASKED, &places);
        known.iter().filter(|one| **one == Known::Skipped).count()
    }

    #[test]
    fn a_command_after_one_that_gave_up_looks_at_what_failed_again() {
        let asked = || Happened::Asked(ASKED);
        let begin = [asked(), skipped(18), look(19, counted(1000.0, None))];
        let failed = |many: usize| begin.iter().cloned().chain((1..=many).map(skipped));
        let few = failed(FAILURES - 1).chain([asked()]).collect();
        assert_eq!(left_out(&bisection(few)), FAILURES, "too few to give up");
        assert_eq!(
            left_out(&bisection(failed(FAILURES).collect())),
            FAILURES + 1
        );
        let mut later = bisection(failed(FAILURES).chain([asked()]).collect());
        assert_eq!(left_out(&later), 1, "the one before is left out still");
        later.happened.push(look(2, counted(1000.0, None)));
        later.happened.push(skipped(3));
        assert_eq!(left_out(&later), 2, "what failed again is left out");
    }

    #[test]
    fn the_smallest_step_is_more_than_chance_gives_in_a_start_or_in_the_base_of_all_looks() {
        let min = |looks: Vec<Happened>| wish(&bisection(looks), &ASKED).min.exp_m1();
        let ends = |span| look(19, counted(1000.0, Some(span)));
        assert!((min(vec![ends(0.000_1)]) - 0.005).abs() < 1e-9);
        assert!((min(vec![ends(0.01)]) - 0.03).abs() < 1e-9);
        let uneven = vec![ends(0.000_1), look(9, counted(1010.0, None))];
        assert!((min(uneven) - 0.005 - 0.01 * SQRT_2).abs() < 1e-9);
        let steady = [1, 2, 3, 4].map(|point| look(point, counted(1000.0, None)));
        let odd = [
            look(0, counted(1010.0, None)),
            look(19, counted(1010.0, None)),
        ];
        let one_run = odd.into_iter().chain(steady).collect();
        let found = min(one_run);
        assert!(
            (found - 0.005).abs() < 1e-9,
            "the ends are one odd run: {found}"
        );
    }

    #[test]
    fn one_disturbed_look_among_many_does_not_raise_the_smallest_step() {
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        let steady = vec![1000.0, 1001.0, 1000.0, 1001.0];
        let with = |base: f64| spread([steady.clone(), vec![base]].concat());
        assert!(near(with(1050.0), 0.001) && near(with(950.0), 0.001));
        assert!(
            near(spread(vec![1000.0, 1001.0, 1050.0]), 0.05),
            "any may be the odd one"
        );
        let two = [steady, vec![1050.0, 1051.0]].concat();
        assert!(near(spread(two), 0.05), "two are no chance");
    }

    #[test]
    fn a_search_that_its_time_ended_stays_so_while_its_culprits_are_measured() {
        let timing = Happened::Timing {
            before: 1,
            culprit: 2,
            run: "bisect-a-9".to_owned(),
        };
        let mut known = bisection(vec![skipped(9), Happened::OutOfTime, timing]);
        assert!(is_out_of_time(&known));
        known.happened.push(Happened::Asked(ASKED));
        assert!(!is_out_of_time(&known));
    }

    /// Whether `--metric auto` goes on by time: instructions of the candidate over the base, what two of its
    /// starts differ by, the CPU of a run, and what was looked at since.
    fn goes_on_by_time(ratio: f64, span: f64, cpu_of_run: Option<f64>, since: &[Happened]) -> bool {
        let ends = |point, instructions| {
            let outcome = Outcome::Counted {
                run: "bisect-a-1".to_owned(),
                instructions,
                base: 1000.0,
                span: Some(span),
            };
            look(point, outcome)
        };
        let both = [ends(0, 1000.0), ends(19, 1000.0 * ratio)];
        let known = bisection([&both[..], since].concat());
        let asked = Asked {
            cpu_of_run,
            ..ASKED
        };
        is_by_time(&known, &asked, &places(&known.question))
    }

    #[test]
    fn a_search_goes_on_by_time_where_the_ends_take_the_same_instructions() {
        assert!(goes_on_by_time(1.004, 0.000_1, None, &[]));
        assert!(!goes_on_by_time(1.006, 0.000_1, None, &[]));
        assert!(
            goes_on_by_time(1.006, 0.003, None, &[]),
            "starts differ by as much"
        );
        let inside = [look(9, counted(1000.0, None))];
        assert!(!goes_on_by_time(1.004, 0.000_1, None, &inside), "it counts");
        let same = [look(9, Outcome::Same { point: 0 })];
        assert!(goes_on_by_time(1.004, 0.000_1, None, &same));
    }

    #[test]
    fn a_search_after_a_run_goes_on_by_time_where_counts_are_less_than_a_third_of_its_cpu() {
        let of_run = |ratio: f64, cpu: f64| goes_on_by_time(ratio, 0.000_1, Some(cpu), &[]);
        assert!(of_run(1.009, 1.03));
        assert!(!of_run(1.011, 1.03));
        assert!(of_run(0.99, 1.03), "the other sign");
        assert!(of_run(1.01, 0.97), "the other sign");
        assert!(!of_run(0.98, 0.97));
        // The layout of code alone does as much.
        assert!(!of_run(0.99, 1.009));
    }

    #[test]
    fn a_metric_that_is_asked_for_is_not_left() {
        let known = bisection(vec![look(19, counted(1100.0, Some(0.0)))]);
        let by_time = |metric, count_only| {
            let asked = Asked {
                metric,
                count_only,
                ..ASKED
            };
            is_by_time(&known, &asked, &places(&known.question))
        };
        assert!(by_time(BisectedBy::Auto, false));
        assert!(!by_time(BisectedBy::Auto, true));
        assert!(!by_time(BisectedBy::Count, false));
        assert!(by_time(BisectedBy::Cpu, false) && by_time(BisectedBy::Throughput, false));
        let uncounted = bisection(Vec::new());
        assert!(!is_by_time(
            &uncounted,
            &ASKED,
            &places(&uncounted.question)
        ));
    }

    #[test]
    fn the_first_look_takes_half_of_what_the_ends_took() {
        let mut known = bisection(vec![look(19, counted(1000.0, None))]);
        assert!((seconds_of_a_look(&known, 19) - 50.0).abs() < 1e-9);
        known.happened.push(skipped(9));
        assert!((seconds_of_a_look(&known, 19) - 100.0).abs() < 1e-9);
    }
}
