//! `deltabench bisect`: the commit, or the release, that changed a cell.

mod by_time;
mod convict;
mod evidence;
mod in_time;
mod learnt;
mod prior;
mod question;
mod range;
mod search;
mod shown;
mod shown_by_time;
mod told;

use crate::arguments::bisect::BisectArguments;
use crate::arguments::conditions::Servers;
use crate::arguments::results::{Format, Report};
use crate::bench::Bench;
use crate::clock::{now, run_names};
use crate::config::Config;
use crate::console::{is_stdout, print_stdout, say, width, write_file};
use crate::failure::Failure;
use crate::host::swept_host;
use crate::interrupt;
use crate::output::check_files;
use crate::request::{percent, time};
use crate::store::{open, open_store, store_problem};
use deltabench_bisect::{Known, Sequence, forecast};
use deltabench_model::bisection::{Asked, BisectedBy, Bisection, Happened, Point, Question};
use deltabench_model::exit;
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use deltabench_report::{Bisected, bisected_html, bisected_json, bisected_text};
use deltabench_run::session::SessionEnd;
use deltabench_server::Counter;
use deltabench_store::{Store, StoreError};
use question::Wanted;
use search::{Ended, Search};
use std::path::PathBuf;
use std::time::Instant;

/// Where the JSON and the page go; absent: in the lab.
type Files = (Option<PathBuf>, Option<PathBuf>);

/// The smallest step that counts can tell: starts of one server differ by up to a few hundredths of a
/// percent.
const LEAST: f64 = 0.000_5;

/// Seconds of a look on two cores: counting, and a build of PostgreSQL. Only for the forecast before the ends
/// are counted; a build far from the one before takes that long, a near one some seconds.
const COUNT_SECONDS: f64 = 25.0;
const BUILD_SECONDS: f64 = 150.0;

/// Seconds of a run of a look in time, with three or four servers.
const RUN_SECONDS: f64 = 70.0;

/// Seconds of a block with a culprit, its parent and the placebo, and of starting them.
const BLOCK_SECONDS: f64 = 5.0;
const SET_UP_SECONDS: f64 = 25.0;

/// Searches, or continues a search of the same question.
pub fn bisect(arguments: &BisectArguments, config: &Config) -> Result<u8, Failure> {
    let began = Instant::now();
    let mut asked = asked(arguments).map_err(Failure::Refused)?;
    let files = (arguments.json.as_deref(), arguments.html.as_deref());
    check_files(files.0, files.1).map_err(Failure::Refused)?;
    let wanted = Wanted::read(arguments, config)?;
    asked.cpu_of_run = wanted.cpu_of_run;
    asked.skip = skipped(&arguments.skip, &wanted.points.points).map_err(Failure::Refused)?;
    let outlook = outlook(&wanted.points.points, &asked);
    let tell = || outlook.iter().for_each(|line| say(line));
    if arguments.dry_run {
        tell();
        return Ok(0);
    }
    // What is refused is refused before the plan. Only a build takes so long that the plan comes first.
    find_counter(&asked)?;
    let store = open_store(config)?;
    let host = swept_host(&arguments.servers, config)?;
    let builds = { wanted.points.points.iter() }.any(|point| point.target.starts_with("git:"));
    if builds {
        tell();
    }
    let question = wanted.question(arguments, config)?;
    if !builds {
        tell();
    }
    let mut bench = Bench {
        store,
        host,
        interrupted: interrupt::flag()?,
    };
    let bisection = begun(&mut bench.store, question, now())?;
    let asked = (asked, began);
    let files = (arguments.json.clone(), arguments.html.clone());
    carry_out(&mut bench, bisection, asked, files, config)
}

/// Continues a bisection by its name.
pub fn resume(
    name: &str,
    servers: &Servers,
    (json, html): Files,
    config: &Config,
) -> Result<u8, Failure> {
    let began = Instant::now();
    let host = swept_host(servers, config)?;
    let mut bench = Bench {
        store: open(config)?,
        host,
        interrupted: interrupt::flag()?,
    };
    let bisection = bench.store.bisection(name).map_err(store_problem)?;
    let asked = bisection.asked().cloned();
    let asked = asked.ok_or_else(|| {
        Failure::Refused(
            Problem::new(format!("{name} ended before anything was asked"))
                .hint("run the command again that started it"),
        )
    })?;
    find_counter(&asked)?;
    // Its time is over: who goes on wants it to end.
    let asked = Asked {
        budget_seconds: None,
        ..asked
    };
    carry_out(&mut bench, bisection, (asked, began), (json, html), config)
}

/// Refuses to begin on a machine that cannot count, if points are counted.
fn find_counter(asked: &Asked) -> Result<(), Failure> {
    match asked.metric.is_in_time() {
        true => Ok(()),
        false => Counter::find().map(drop).map_err(Failure::Refused),
    }
}

/// `deltabench report` of a bisection.
pub fn report(name: &str, arguments: &Report, config: &Config) -> Result<u8, Failure> {
    let store = open(config)?;
    let bisection = store.bisection(name).map_err(store_problem)?;
    let bisected = shown::shown(&bisection, None, &store)?;
    let text = match arguments.format {
        Format::House(deltabench_report::Format::Text) => bisected_text(&bisected, width()),
        Format::House(deltabench_report::Format::Json(_)) => bisected_json(&bisected),
        Format::House(deltabench_report::Format::Html) => bisected_html(&bisected),
        _ => {
            return Err(Failure::Refused(
                Problem::new(format!("{name} is a bisection"))
                    .detail("its report has three forms: text, json and html")
                    .hint("write --format text, json or html, or name one of its runs for other forms"),
            ));
        }
    };
    match &arguments.out {
        Some(path) => write_file(path, &text)?,
        None => print_stdout(&text)?,
    }
    Ok(code(&bisected))
}

/// A bisection in `deltabench list`.
pub fn line(bisection: &Bisection) -> String {
    let points = &bisection.question.points;
    let name = |point: Option<&Point>| point.map_or_else(String::new, |point| point.name.clone());
    let cell = bisection.question.plan.cells.first();
    format!(
        "{}  bisection  {} .. {}  {}  {} points, {} looks",
        bisection.name,
        name(points.first()),
        name(points.last()),
        cell.map_or("", |cell| cell.workload.as_str()),
        points.len(),
        bisection.looked()
    )
}

/// Searches to the end, and publishes what is found.
fn carry_out(
    bench: &mut Bench,
    bisection: Bisection,
    (asked, began): (Asked, Instant),
    (json, html): Files,
    config: &Config,
) -> Result<u8, Failure> {
    let name = bisection.name.clone();
    let happened = Happened::Asked(asked.clone());
    bench
        .store
        .add_to_bisection(&name, &happened, now().1)
        .map_err(store_problem)?;
    let mut search = Search::new(bench, config, bisection, asked, began)?;
    search.bisection.happened.push(happened);
    let ended = search.go_on()?;
    // The culprits stand by their counts, however far this comes.
    let convicted = search.convict(ended)?;
    let bisection = search.bisection;
    let bisected = shown::shown(&bisection, Some(ended), &bench.store)?;
    let text = bisected_text(&bisected, width());
    let own = |ending: &str| config.lab.join(format!("{name}.{ending}"));
    let file = json.unwrap_or_else(|| own("json"));
    let mut files = vec![(
        html.unwrap_or_else(|| own("html")),
        bisected_html(&bisected),
    )];
    if is_stdout(&file) {
        say(&text);
        print_stdout(&bisected_json(&bisected))?;
    } else {
        print_stdout(&text)?;
        files.push((file, bisected_json(&bisected)));
    }
    for (file, text) in files {
        write_file(&file, &text)?;
        say(&format!("wrote {}", file.display()));
    }
    if ended == Ended::Interrupted || convicted == SessionEnd::Interrupted {
        return Ok(exit::INTERRUPTED);
    }
    Ok(code(&bisected))
}

/// The exit code of an answer.
fn code(bisected: &Bisected) -> u8 {
    let is_measured = bisected.change.is_some();
    code_of(bisected.end, bisected.convicted(), is_measured)
}

fn code_of(end: &str, culprits: usize, is_measured: bool) -> u8 {
    match end {
        // Even if the time was over before all of them were found.
        _ if culprits > 0 => 0,
        "interrupted" if !is_measured => exit::NOT_MEASURED,
        _ => exit::INCONCLUSIVE,
    }
}

/// The bisection of this question that is in the lab, or a new one.
fn begun(
    store: &mut Store,
    question: Question,
    (seconds, started): (u64, i64),
) -> Result<Bisection, Failure> {
    let mut names = run_names(seconds, question.plan.seed);
    loop {
        if let Some(known) = asked_before(store, &question)? {
            say(&format!(
                "continuing {}: {} looks are known",
                known.name,
                known.looked()
            ));
            return Ok(known);
        }
        let name = format!("bisect-{}", names.next().unwrap_or_default());
        match store.create_bisection(&name, &question, started) {
            // Of another question, which began in the same second, or of this one by another process.
            Err(StoreError::Taken { .. }) => {}
            Err(error) => return Err(store_problem(error)),
            Ok(()) => {
                say(&format!("bisection {name}"));
                return Ok(Bisection {
                    name,
                    question,
                    happened: Vec::new(),
                });
            }
        }
    }
}

/// The bisection of this question that is in the lab.
fn asked_before(store: &Store, question: &Question) -> Result<Option<Bisection>, Failure> {
    for name in store.bisections().map_err(store_problem)? {
        let known = store.bisection(&name).map_err(store_problem)?;
        if known.question == *question {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

/// What the options say, without the points to leave out.
fn asked(arguments: &BisectArguments) -> Result<Asked, Problem> {
    let min = percent(&arguments.min)?;
    if min < LEAST {
        return Err(Problem::new(format!(
            "--min {} is less than counts can tell",
            arguments.min
        ))
        .detail("starts of one server differ by up to a few hundredths of a percent")
        .hint("write --min 0.05% or more"));
    }
    let metric = BisectedBy::from(arguments.metric);
    if arguments.count_only && metric.is_in_time() {
        return Err(
            Problem::new("--count-only and --metric contradict each other")
                .detail("without time there are only counts")
                .hint("leave one of them out"),
        );
    }
    Ok(Asked {
        metric,
        cpu_of_run: None,
        min,
        culprits: arguments.culprits,
        skip: Vec::new(),
        keep_builds: arguments.keep_builds,
        budget_seconds: arguments.budget.as_deref().map(time).transpose()?,
        count_only: arguments.count_only,
        blocks: arguments.blocks,
    })
}

/// The points that are named by a release or by the beginning of a commit.
fn skipped(names: &[String], points: &[Point]) -> Result<Vec<usize>, Problem> {
    /// Letters of a commit that name it well enough.
    const LETTERS: usize = 7;
    let mut skipped = Vec::new();
    for name in names {
        let commit = format!("@{name}");
        let named = |(_, point): &(usize, &Point)| {
            let of_commit = point.date.is_some() && name.len() >= LETTERS;
            point.name == *name
                || point.target == *name
                || of_commit && point.target.contains(&commit)
        };
        let mut found = points.iter().enumerate().filter(named);
        let number = found.next().map(|(number, _)| number);
        let number = number.ok_or_else(|| {
            Problem::new(format!("--skip {name} is none of the points"))
                .hint("name a release, a target, or at least seven letters of a commit")
        })?;
        // Documents after it have its server: it stands for them as the end.
        let may_differ = points.iter().rposition(|point| point.may_differ);
        if number == 0 || may_differ.is_none_or(|last| number >= last) {
            return Err(
                Problem::new(format!("--skip {name} is an end of the range"))
                    .detail("both ends are measured first")
                    .hint("name a smaller range"),
            );
        }
        skipped.push(number);
    }
    Ok(skipped)
}

/// What is going to be done, before any server is looked for.
fn outlook(points: &[Point], asked: &Asked) -> Vec<String> {
    let differ = points
        .iter()
        .skip(1)
        .filter(|point| point.may_differ)
        .count();
    let builds = points.iter().any(|point| point.target.contains('+'));
    let noun = match points.iter().any(|point| point.date.is_some()) {
        true => "commits",
        false => "servers",
    };
    let places = vec![Known::Unknown; differ + 1];
    let culprits = usize::try_from(asked.culprits).unwrap_or(usize::MAX);
    let looks = forecast(&Sequence::plain(&places), culprits);
    let is_by_time = asked.metric.is_in_time();
    let look = if is_by_time {
        RUN_SECONDS
    } else {
        COUNT_SECONDS
    };
    let each = look + if builds { BUILD_SECONDS } else { 0.0 };
    let time = |looks: usize| crate::amounts::span(to_f64(count(looks + 2)) * each);
    let what = match (builds, is_by_time) {
        (true, false) => "builds and counts",
        (false, false) => "counts",
        (true, true) => "builds and runs",
        (false, true) => "runs",
    };
    let mut lines = vec![
        format!(
            "{} {noun} after the base, {differ} of them may have another server than the one before",
            points.len().saturating_sub(1)
        ),
        match asked.culprits {
            1 => format!(
                "both ends, then about {} looks: at most about {} of {what} on two cores",
                looks.one,
                time(looks.one)
            ),
            several if looks.one == looks.all => format!(
                "both ends, then about {} looks for {several} culprits or one: at most about {} of {what} on \
                 two cores",
                looks.one,
                time(looks.one)
            ),
            several => format!(
                "both ends, then about {} looks for one culprit, {} for {several}: at most about {} to {} of \
                 {what} on two cores",
                looks.one,
                looks.all,
                time(looks.one),
                time(looks.all)
            ),
        },
    ];
    lines.extend(cut(asked, to_f64(count(looks.one + 2)) * each));
    if !asked.count_only {
        let undone = match noun {
            "commits" => "; the candidate without it takes a build and a count",
            _ => "",
        };
        lines.push(format!(
            "then each culprit next to its parent in time, the largest first: about {} each{undone}",
            crate::amounts::span(f64::from(asked.blocks) * BLOCK_SECONDS + SET_UP_SECONDS)
        ));
    }
    lines
}

/// That the time allowed ends the search before these seconds are over, if it does.
fn cut(asked: &Asked, seconds: f64) -> Option<String> {
    let budget = asked.budget_seconds.filter(|budget| *budget < seconds)?;
    Some(format!(
        "--budget ends the search after about {}, with what is known by then; `deltabench resume last` \
         continues it",
        crate::amounts::span(budget)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::bisection::BISECTION_FORMAT;

    fn commit(id: &str) -> Point {
        Point {
            target: format!("git:/src@{id}+def"),
            name: id.get(..10).unwrap().to_owned(),
            date: Some("2024-09-21".to_owned()),
            subject: None,
            may_differ: true,
        }
    }

    #[test]
    fn points_to_skip_are_named_by_enough_letters_and_are_no_ends() {
        let ids = ["1aaaaaaaaaaaaaaa", "2bbbbbbbbbbbbbbb", "2bbbbbbbbcccccccc"];
        let points = ids.map(commit);
        let find = |name: &str| skipped(&[name.to_owned()], &points);
        assert_eq!(find("2bbbbbbb").unwrap(), [1]);
        assert_eq!(find("2bbbbbbbbb").unwrap(), [1]);
        assert!(
            find("2bb")
                .unwrap_err()
                .error
                .contains("none of the points")
        );
        assert!(find("1aaaaaaaa").unwrap_err().error.contains("end"));
        assert!(find("2bbbbbbbbc").unwrap_err().error.contains("end"));
        let mut points = points.clone();
        points[2].may_differ = false;
        let found = skipped(&["2bbbbbbbbb".to_owned()], &points);
        assert!(
            found.unwrap_err().error.contains("end"),
            "it is what is measured"
        );
    }

    #[test]
    fn other_questions_of_the_same_second_have_other_names_and_the_same_question_goes_on() {
        let place = tempfile::tempdir().unwrap();
        let mut store = Store::open(place.path()).unwrap();
        let of = |ids: [&str; 2]| Question {
            format: BISECTION_FORMAT.0.to_owned(),
            version: BISECTION_FORMAT.1,
            points: ids.map(commit).to_vec(),
            base_alone: None,
            plan: deltabench_testkit::small_run::plan(),
        };
        let one = of(["1aaaaaaaaaaaaaaa", "2bbbbbbbbbbbbbbb"]);
        let other = of(["1aaaaaaaaaaaaaaa", "3ccccccccccccccc"]);
        let mut name = |question: &Question| {
            let begun = begun(&mut store, question.clone(), (1_795_260_000, 5)).unwrap();
            assert_eq!(&begun.question, question);
            begun.name
        };
        let first = name(&one);
        assert!(first.starts_with("bisect-20261121-112000-"), "{first}");
        let second = name(&other);
        assert!(second.starts_with("bisect-20261121-112001-"), "{second}");
        assert_eq!([name(&one), name(&other)], [first, second]);
    }

    #[test]
    fn a_culprit_is_an_answer_even_if_the_time_ended_the_search() {
        assert_eq!(code_of("undecided", 1, true), 0);
        assert_eq!(code_of("undecided", 0, true), exit::INCONCLUSIVE);
        assert_eq!(code_of("interrupted", 0, true), exit::INCONCLUSIVE);
        assert_eq!(code_of("interrupted", 0, false), exit::NOT_MEASURED);
    }

    #[test]
    fn the_outlook_counts_what_may_differ() {
        let mut points = ["1aaaaaaaaaaaaaaa", "2bbbbbbbbbbbbbbb", "3ccccccccccccccc"].map(commit);
        points[1].may_differ = false;
        let asked = Asked {
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
        let lines = outlook(&points, &asked).join("\n");
        assert!(
            lines.starts_with("2 commits after the base, 1 of them"),
            "{lines}"
        );
        assert!(lines.contains("builds and counts"), "{lines}");
        assert!(
            lines.contains("the candidate without it takes a build"),
            "{lines}"
        );
        let by_count = Asked {
            count_only: true,
            ..asked
        };
        let lines = outlook(&points, &by_count).join("\n");
        assert!(!lines.contains("in time"), "{lines}");
    }
}
