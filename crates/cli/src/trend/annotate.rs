//! `deltabench annotate`: what people know of versions and moments.

use super::{hosts, is_named, known_version};
use crate::arguments::trend::{AnnotateArguments, NoteKind};
use crate::clock::{moment, now};
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::store::{open, store_problem};
use crate::text::paragraph;
use deltabench_compare::comparison::Metric;
use deltabench_lab::HostTrend;
use deltabench_model::problem::{Problem, nearest};
use deltabench_report::words;
use deltabench_store::{Annotation, AnnotationKind, Store};
use serde_json::{Value, json};

/// Keeps an annotation, or takes one back.
pub fn annotate(arguments: &AnnotateArguments, config: &Config) -> Result<u8, Failure> {
    let text = arguments
        .text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if text.is_empty() {
        return Err(Failure::Refused(
            Problem::new("an annotation needs a text").hint("say what you know: trends show it"),
        ));
    }
    let at_unix_ms = about(arguments).map_err(Failure::Refused)?;
    let mut store = open(config)?;
    if let Some(number) = arguments.take_back {
        take_back(&mut store, number, &text)?;
        say(&format!("took annotation {number} back: {text}"));
        return Ok(0);
    }
    let annotation = asked(arguments, (text, at_unix_ms), &store)?;
    let number = store
        .annotate(&annotation)
        .map_err(|error| Failure::Failed(error.into()))?;
    say(&format!("annotation {number}: {}", line(&annotation)));
    Ok(0)
}

fn take_back(store: &mut Store, number: i64, reason: &str) -> Result<(), Failure> {
    let known = store.annotations().map_err(store_problem)?;
    if !known.iter().any(|(of, _)| *of == number) {
        let none = Problem::new(format!("there is no annotation {number} in this lab"));
        return Err(Failure::Refused(match known.last() {
            Some((last, one)) => none.hint(format!("the newest is {last}: {}", one.text)),
            None => none
                .hint("nobody has annotated anything yet: `deltabench annotate --help` says how"),
        }));
    }
    store
        .take_back(number, reason, now().1)
        .map_err(|error| Failure::Failed(error.into()))
}

/// The moment that it is about, if it is about one.
fn about(arguments: &AnnotateArguments) -> Result<Option<i64>, Problem> {
    let at = arguments.at.as_deref().map(moment).transpose()?;
    if arguments.version.is_none() && at.is_none() && arguments.take_back.is_none() {
        return Err(Problem::new("an annotation is about a version or a moment")
            .hint("name it with --version 18.4, or --at now"));
    }
    Ok(at)
}

/// What is asked for, if the lab has it.
fn asked(
    arguments: &AnnotateArguments,
    (text, at_unix_ms): (String, Option<i64>),
    store: &Store,
) -> Result<Annotation, Failure> {
    let known = hosts(store, &[Metric::Throughput], arguments.host.as_deref())?;
    let host = match (&arguments.host, known.as_slice()) {
        (None, _) => None,
        (Some(_), [first, rest @ ..]) if rest.iter().all(|one| one.machine == first.machine) => {
            Some(first.machine.clone())
        }
        (Some(asked), _) => {
            return Err(Failure::Refused(
                Problem::new(format!("`{asked}` means several hosts"))
                    .hint("write more characters of the identifier"),
            ));
        }
    };
    if let Some(version) = &arguments.version {
        check_version(&known, version).map_err(Failure::Refused)?;
    }
    if let Some(cell) = &arguments.cell {
        check_cell(&known, cell).map_err(Failure::Refused)?;
    }
    Ok(Annotation {
        kind: kind(arguments.kind),
        text,
        version: arguments.version.clone(),
        at_unix_ms,
        host,
        cell: arguments.cell.clone(),
        said_unix_ms: now().1,
    })
}

fn kind(kind: NoteKind) -> AnnotationKind {
    match kind {
        NoteKind::Expected => AnnotationKind::Expected,
        NoteKind::Environment => AnnotationKind::Environment,
        NoteKind::Note => AnnotationKind::Note,
    }
}

fn check_version(hosts: &[HostTrend], asked: &str) -> Result<(), Problem> {
    let found = hosts.iter().any(|host| is_named(host, asked));
    match (found, hosts.first()) {
        (true, _) => Ok(()),
        (false, Some(host)) => known_version(host, asked).map(|_| ()),
        (false, None) => Err(Problem::new(format!(
            "no finished run of this lab has the version `{asked}`"
        ))),
    }
}

fn check_cell(hosts: &[HostTrend], asked: &str) -> Result<(), Problem> {
    let names: Vec<&str> = { hosts.iter() }
        .flat_map(|host| &host.cells)
        .map(|cell| cell.name.as_str())
        .collect();
    if names.contains(&asked) {
        return Ok(());
    }
    let none = Problem::new(format!("no run of this lab has a cell `{asked}`"));
    Err(match nearest(asked, names) {
        Some(near) => none.hint(format!("did you mean {near}?")),
        None => none.hint("`deltabench trend` lists the cells"),
    })
}

/// `environment, 18.4: LTO on`.
fn line(one: &Annotation) -> String {
    let about = [
        one.version.clone(),
        one.at_unix_ms.map(words::date),
        one.cell.clone(),
        one.host
            .as_ref()
            .map(|uid| format!("host {}", uid.chars().take(12).collect::<String>())),
    ];
    let about: Vec<String> = about.into_iter().flatten().collect();
    format!("{}, {}: {}", one.kind.word(), about.join(", "), one.text)
}

/// Those of a host; of one cell, or all.
pub fn of_host<'a>(
    host: &'a HostTrend,
    cell: Option<&'a str>,
    all: &'a [(i64, Annotation)],
) -> impl Iterator<Item = &'a (i64, Annotation)> {
    all.iter().filter(move |(_, one)| {
        let here = one.host.as_ref().is_none_or(|uid| *uid == host.machine);
        let meant = one.cell.as_deref().zip(cell);
        here && meant.is_none_or(|(own, cell)| own == cell)
    })
}

/// As lines of a page.
pub fn lines<'a>(all: impl Iterator<Item = &'a (i64, Annotation)>, width: usize) -> Vec<String> {
    let lines =
        all.flat_map(|(number, one)| paragraph(&format!("note {number}: "), &line(one), width));
    lines.collect()
}

/// As JSON.
pub fn values<'a>(all: impl Iterator<Item = &'a (i64, Annotation)>) -> Value {
    let value = |(number, one): &(i64, Annotation)| {
        deltabench_model::json::known(json!({
            "number": number,
            "kind": one.kind.word(),
            "text": one.text,
            "version": one.version,
            "at_unix_ms": one.at_unix_ms,
            "cell": one.cell,
            "said_unix_ms": one.said_unix_ms,
        }))
    };
    all.map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::labs;

    fn arguments(
        version: Option<&str>,
        host: Option<&str>,
        cell: Option<&str>,
    ) -> AnnotateArguments {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        AnnotateArguments {
            text: String::new(),
            version: owned(version),
            at: None,
            take_back: None,
            host: owned(host),
            cell: owned(cell),
            kind: NoteKind::Environment,
        }
    }

    #[test]
    fn a_note_is_about_what_the_lab_has() {
        let directory = tempfile::tempdir().unwrap();
        let store = labs::lab(directory.path(), 3);
        let asked = |version, host, cell| {
            let given = arguments(Some(version), host, cell);
            super::asked(&given, ("LTO on".to_owned(), None), &store)
        };
        let found = asked("18.2", Some("0123"), Some("point-query@1")).unwrap();
        assert_eq!(found.host.as_deref(), Some("0123456789abcdef0123"));
        assert_eq!(
            line(&found),
            "environment, 18.2, point-query@1, host 0123456789ab: LTO on"
        );
        let refused = |version, host, cell| match asked(version, host, cell) {
            Err(failure) => failure.problem().to_string(),
            Ok(found) => panic!("{found:?}"),
        };
        assert!(refused("18.9", None, None).contains("no run of this host has the version `18.9`"));
        assert!(refused("18.2", Some("x"), None).contains("measured on host `x`"));
        let cell = refused("18.2", None, Some("point-qury@1"));
        assert!(cell.contains("did you mean point-query@1?"), "{cell}");
        assert!(about(&arguments(None, None, None)).is_err());
    }

    #[test]
    fn trends_have_the_notes_of_their_host_and_cell() {
        let directory = tempfile::tempdir().unwrap();
        let store = labs::lab(directory.path(), 2);
        let hosts = hosts(&store, &[Metric::Throughput], None).unwrap();
        let note = |host: Option<&str>, cell: Option<&str>| Annotation {
            kind: AnnotationKind::Note,
            text: "x".to_owned(),
            version: None,
            at_unix_ms: Some(1),
            host: host.map(str::to_owned),
            cell: cell.map(str::to_owned),
            said_unix_ms: 1,
        };
        let all = [
            (1, note(None, None)),
            (2, note(Some("another"), None)),
            (3, note(Some("0123456789abcdef0123"), Some("point-query@4"))),
        ];
        let of = |cell| {
            of_host(&hosts[0], cell, &all)
                .map(|(number, _)| *number)
                .collect::<Vec<i64>>()
        };
        assert_eq!(of(None), [1, 3]);
        assert_eq!(of(Some("point-query@1")), [1]);
        assert_eq!(
            values(of_host(&hosts[0], None, &all))
                .as_array()
                .unwrap()
                .len(),
            2
        );
        assert!(
            lines(of_host(&hosts[0], None, &all), 80)[0].starts_with("note 1: note, 1970-01-01")
        );
    }
}
