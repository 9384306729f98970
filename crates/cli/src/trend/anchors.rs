//! `deltabench anchor`: the versions that levels are relative to, and which follows which.

use super::{hosts, known_version, places, publish, shown, wide};
use crate::arguments::trend::{AnchorArguments, AnchorWhat, ReplaceArguments, Which};
use crate::clock::now;
use crate::config::Config;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use crate::store::open;
use crate::text::{paragraph, table};
use deltabench_compare::comparison::{Metric, Ratio};
use deltabench_compare::words::first_of;
use deltabench_lab::HostTrend;
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::words;
use deltabench_store::AnchorChange;
use deltabench_trend::{Difference, HOURS, Overlap};
use serde_json::{Value, json};

/// Lists anchors, or lets one follow another.
pub fn anchor(arguments: &AnchorArguments, config: &Config) -> Result<u8, Failure> {
    match &arguments.what {
        AnchorWhat::List(which) => list(which, config),
        AnchorWhat::Replace(replace) => self::replace(replace, config),
    }
}

fn list(which: &Which, config: &Config) -> Result<u8, Failure> {
    super::check(which)?;
    let store = open(config)?;
    let hosts = hosts(&store, &[Metric::Throughput], which.host.as_deref())?;
    let (mut lines, mut all) = (Vec::new(), Vec::new());
    for host in &hosts {
        lines.extend(shown::host(host));
        lines.extend(table(&rows(host)));
        lines.extend(followed(host));
        lines.push(String::new());
        all.push(value(host));
    }
    if hosts.is_empty() {
        lines = shown::nothing();
    }
    publish(which, &lines, &super::json::file("deltabench.anchors", all))?;
    Ok(0)
}

fn name(host: &HostTrend, version: usize) -> &str {
    let known = host.versions.get(version);
    known.map_or("", |version| version.name.as_str())
}

fn rows(host: &HostTrend) -> Vec<Vec<String>> {
    let head = ["base", "runs", "newest run", "followed by"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (base, (runs, newest)) in host.all_bases() {
        let next = host.eras().iter().find(|era| era.before == base);
        rows.push(vec![
            name(host, base).to_owned(),
            runs.to_string(),
            words::date(newest),
            next.map_or_else(String::new, |era| name(host, era.after).to_owned()),
        ]);
    }
    rows
}

/// The shift of each cell where an anchor followed another.
fn followed(host: &HostTrend) -> Vec<String> {
    let mut lines = Vec::new();
    for era in host.eras() {
        let text = format!(
            "{} follows {} since {}; new relative to old:",
            name(host, era.after),
            name(host, era.before),
            words::date(era.at_unix_ms)
        );
        lines.extend(paragraph("", &text, wide()));
        lines.extend(table(&shifts(
            host,
            &host.overlaps(era.before, era.after, HOURS),
        )));
    }
    lines
}

fn shifts(host: &HostTrend, overlaps: &[(usize, Overlap)]) -> Vec<Vec<String>> {
    let head = ["cell", "shift", "nights with both", "missing"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (cell, overlap) in overlaps {
        let known = host.cells.get(*cell).map_or("", |cell| cell.name.as_str());
        rows.push(vec![
            known.to_owned(),
            overlap
                .shift
                .as_ref()
                .map_or_else(|| "not known".to_owned(), figure),
            overlap.hours.to_string(),
            overlap.missing.to_string(),
        ]);
    }
    rows
}

fn value(host: &HostTrend) -> Value {
    let base = |(base, (runs, newest)): (usize, (usize, i64))| {
        let version = name(host, base);
        json!({"version": version, "runs": runs, "newest_unix_ms": newest})
    };
    let era = |era: &deltabench_lab::Era| {
        let shift = |(cell, overlap): &(usize, Overlap)| {
            deltabench_model::json::known(json!({
                "cell": host.cells.get(*cell).map(|cell| &cell.name),
                "ratio": overlap.shift.map(|shift| shift.value.exp()),
                "ci95": overlap.shift.map(|shift| (shift.ci95.0.exp(), shift.ci95.1.exp())),
                "hours": overlap.hours,
                "missing": overlap.missing,
            }))
        };
        let overlaps = host.overlaps(era.before, era.after, HOURS);
        json!({
            "before": name(host, era.before),
            "after": name(host, era.after),
            "at_unix_ms": era.at_unix_ms,
            "shifts": overlaps.iter().map(shift).collect::<Value>(),
        })
    };
    json!({
        "host": host.machine,
        "bases": host.all_bases().into_iter().map(base).collect::<Value>(),
        "followed": host.eras().iter().map(era).collect::<Value>(),
    })
}

fn replace(arguments: &ReplaceArguments, config: &Config) -> Result<u8, Failure> {
    if arguments.nights == 0 {
        return Err(Failure::Refused(
            Problem::new("--nights 0: without a night with both, nothing connects the two anchors")
                .hint("leave it out, and deltabench asks for as many as it takes"),
        ));
    }
    let mut store = open(config)?;
    let hosts = hosts(&store, &[Metric::Throughput], arguments.host.as_deref())?;
    let Some(first) = hosts.first() else {
        return Err(Failure::Refused(
            Problem::new("no run of this lab has an anchor")
                .hint("measure nights first: deltabench nightly --anchor OLD TARGET"),
        ));
    };
    let mut meant = Vec::new();
    for host in &hosts {
        let ends = known_version(host, &arguments.old)
            .ok()
            .zip(known_version(host, &arguments.new).ok());
        meant.extend(ends.map(|(old, new)| (host, old, new)));
    }
    if meant.is_empty() {
        known_version(first, &arguments.old).map_err(Failure::Refused)?;
        known_version(first, &arguments.new).map_err(Failure::Refused)?;
        return Err(Failure::Refused(
            Problem::new("no host has measured both")
                .hint("measure both in several nights first: deltabench nightly --anchor OLD NEW"),
        ));
    }
    for (host, old, new) in &meant {
        check(host, (*old, *new), arguments.nights).map_err(Failure::Refused)?;
    }
    let mut lines = Vec::new();
    for (host, old, new) in meant {
        let identity = |at: usize| {
            host.versions
                .get(at)
                .map(|version| version.identity.clone())
        };
        let change = AnchorChange {
            host: host.machine.clone(),
            before: identity(old).unwrap_or_default(),
            after: identity(new).unwrap_or_default(),
            at_unix_ms: now().1,
        };
        store
            .replace_anchor(&change)
            .map_err(|error| Failure::Failed(error.into()))?;
        lines.extend(shown::host(host));
        let overlaps = host.overlaps(old, new, arguments.nights);
        lines.extend(table(&shifts(host, &overlaps)));
    }
    print_stdout(&lines.join("\n"))?;
    say(&format!(
        "{new} follows {old}: levels go on relative to {old}. Name --anchor {new} from now on",
        new = arguments.new,
        old = arguments.old
    ));
    Ok(0)
}

/// Whether one may follow the other on a host.
fn check(host: &HostTrend, (old, new): (usize, usize), nights: usize) -> Result<(), Problem> {
    let (before, after) = (name(host, old), name(host, new));
    if old == new {
        return Err(Problem::new("both are the same version")
            .hint("name the anchor so far, then the one that follows it: deltabench anchor replace OLD NEW"));
    }
    let is_base = host.all_bases().contains_key(&old);
    if !is_base {
        return Err(Problem::new(format!("no run has {before} as base"))
            .hint("`deltabench anchor list` shows the bases"));
    }
    if let Some(era) = host.eras().iter().find(|era| era.before == old) {
        return Err(Problem::new(format!(
            "{before} was followed by {} already",
            name(host, era.after)
        ))
        .hint("`deltabench anchor list` shows the anchor that is used now"));
    }
    if host.eras().iter().any(|era| era.before == new) {
        return Err(Problem::new(format!("{after} was an anchor before"))
            .detail("levels that go round in a circle have no beginning")
            .hint("name a version that was never replaced"));
    }
    let overlaps = host.overlaps(old, new, nights);
    let Some((_, worst)) = overlaps.iter().max_by_key(|(_, overlap)| overlap.missing) else {
        return Err(
            Problem::new(format!("no cell has two runs with {before} as base"))
                .hint("an anchor is the base of many nights: deltabench nightly --anchor OLD NEW"),
        );
    };
    if worst.missing == 0 {
        return Ok(());
    }
    let short = overlaps.iter().filter(|(_, overlap)| overlap.missing > 0);
    let told: Vec<String> = short
        .map(|(cell, overlap)| detail(host, *cell, overlap))
        .collect();
    let (from, to) = (target(host, old), target(host, new));
    Err(Problem::new(format!(
        "{before} and {after} were measured together in too few nights: {} missing",
        words::plural(count(worst.missing), "night")
    ))
    .detail(first_of(&told))
    .hint(format!(
        "measure both in other hours, with the options of your nights: deltabench compare {from} {to}"
    )))
}

/// `scan@1: 2 nights, the shift +1.2 % [+0.1, +2.3] is known to 0.5 %, 0.2 % is enough; 9 nights missing`.
fn detail(host: &HostTrend, cell: usize, overlap: &Overlap) -> String {
    let known = host.cells.get(cell).map_or("", |cell| cell.name.as_str());
    let nights = words::plural(count(overlap.hours), "night");
    let percent = |log: f64| format!("{:.2} %", 100.0 * log);
    let size = match (&overlap.shift, overlap.most) {
        (Some(shift), Some(most)) if shift.error > most => format!(
            ", its shift {} has an error of {}, and may have {}",
            figure(shift),
            percent(shift.error),
            percent(most)
        ),
        _ => String::new(),
    };
    format!("{known}: {nights}{size}; {} missing", overlap.missing)
}

fn target(host: &HostTrend, version: usize) -> String {
    let known = host.versions.get(version);
    known.map_or_else(String::new, |version| places::target(&version.installation))
}

fn figure(found: &Difference) -> String {
    words::change_interval(&Ratio {
        estimate: found.value.exp(),
        ci95: Some((found.ci95.0.exp(), found.ci95.1.exp())),
        ci90: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_store::Store;
    use deltabench_testkit::labs;

    fn host(store: &Store) -> HostTrend {
        super::super::hosts(store, &[Metric::Throughput], None)
            .unwrap()
            .remove(0)
    }

    fn version(host: &HostTrend, name: &str) -> usize {
        known_version(host, name).unwrap()
    }

    #[test]
    fn an_anchor_follows_when_both_were_measured_often_enough_and_levels_go_on() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = labs::lab(directory.path(), 12);
        let before = host(&store);
        let ends = |host: &HostTrend| (version(host, "17.11"), version(host, "18.3"));
        let refused = check(&before, ends(&before), HOURS)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("too few nights"), "{refused}");
        assert!(
            refused.contains("point-query@1: 1 night") && refused.contains(" missing"),
            "{refused}"
        );
        assert!(refused.contains("deltabench compare"), "{refused}");
        for night in 0..60 {
            if check(&host(&store), ends(&host(&store)), HOURS).is_ok() {
                break;
            }
            labs::again(
                &mut store,
                (&format!("night-{night:02}"), 3),
                20 + night,
                1.02,
            );
        }
        let known = host(&store);
        check(&known, ends(&known), HOURS).unwrap();
        let (old, new) = ends(&known);
        let change = AnchorChange {
            host: known.machine.clone(),
            before: known.versions[old].identity.clone(),
            after: known.versions[new].identity.clone(),
            at_unix_ms: 7,
        };
        store.replace_anchor(&change).unwrap();
        let after = host(&store);
        let (old, new) = ends(&after);
        let again = check(&after, (old, new), HOURS).unwrap_err().to_string();
        assert!(
            again.contains("was followed by postgres:18.3 already"),
            "{again}"
        );
        let back = check(&after, (new, old), HOURS).unwrap_err().to_string();
        assert!(back.contains("no run has postgres:18.3 as base"), "{back}");
        assert_eq!(after.chain(&after.versions[new].identity).len(), 2);
        assert_eq!(after.usual_base(0), Some(old));
        assert_eq!(rows(&after)[1][3], "postgres:18.3");
        assert!(followed(&after)[0].contains("postgres:18.3 follows postgres:17.11"));
        assert_eq!(
            value(&after)["followed"][0]["shifts"]
                .as_array()
                .unwrap()
                .len(),
            3
        );
    }
}
