//! Whose fault a slower plan is: settings with which a candidate has the plans of the base.
//!
//! Only EXPLAIN is sent. Whether the candidate is as fast with the old plan is measured later.

use crate::asking::{Answer, Asking, Connected};
use crate::session::query;
use crate::verdict::Wanted;
use crate::work::Job;
use deltabench_model::problem::Problem;
use deltabench_model::replayed::{OldPlan, PlanCause};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A setting with a value.
type Setting = (String, String);

/// Settings that change a plan, beside all that the server itself files under query tuning.
const MORE: &str = "'work_mem', 'hash_mem_multiplier', 'max_parallel_workers_per_gather', 'jit', \
                    'parallel_leader_participation'";
/// Values that bring an old plan back where no other setting does.
const USUAL: [(&str, &str); 3] = [
    ("random_page_cost", "1.1"),
    ("random_page_cost", "4"),
    ("join_collapse_limit", "1"),
];
/// Settings that are tried with all others, of those that change the plan: a bitmap scan, for example, comes
/// back without both other scans. Three levels of joins have as many nodes.
const PAIRED: usize = 8;
/// The search for one statement ends after this: joins of many tables are planned for long.
const LIMIT: Duration = Duration::from_secs(10);

/// Looks for the settings of all statements with another plan on a candidate; `wanted` are the tuples of a
/// statement.
///
/// Errors: a lost connection, an interruption.
pub fn old_plans(
    jobs: &[Job<'_>],
    (base, candidate): (&Asking<'_>, &Asking<'_>),
    wanted: impl Fn(usize) -> Vec<Wanted>,
) -> Result<BTreeMap<usize, OldPlan>, Problem> {
    let alternatives = alternatives(base, candidate)?;
    let mut found = BTreeMap::new();
    for (number, job) in jobs.iter().enumerate() {
        let wanted = wanted(number);
        if let Some(first) = wanted.iter().find(|tuple| tuple.changed) {
            let mut search = Search {
                candidate,
                job,
                first,
                wanted: &wanted,
                connected: None,
                began: Instant::now(),
            };
            found.insert(number, search.carry_out(&alternatives)?);
        }
    }
    Ok(found)
}

struct Search<'a> {
    candidate: &'a Asking<'a>,
    job: &'a Job<'a>,
    first: &'a Wanted,
    wanted: &'a [Wanted],
    connected: Option<Connected>,
    began: Instant,
}

impl Search<'_> {
    /// One setting, or else two.
    fn carry_out(&mut self, alternatives: &[Setting]) -> Result<OldPlan, Problem> {
        let mut tried = 0;
        let now = self.plan(self.first, &[])?;
        let mut movers: Vec<&Setting> = Vec::new();
        for one in alternatives {
            tried += 1;
            let settings = [one.clone()];
            let plan = self.plan(self.first, &settings)?;
            if self.brings_back(plan.as_ref(), &settings)? {
                return Ok(told(&settings, tried));
            }
            if plan != now && movers.len() < PAIRED {
                movers.push(one);
            }
        }
        for one in movers {
            for other in alternatives.iter().filter(|other| other.0 != one.0) {
                if self.began.elapsed() > LIMIT {
                    return Ok(told(&[], tried));
                }
                tried += 1;
                let settings = [one.clone(), other.clone()];
                let plan = self.plan(self.first, &settings)?;
                if self.brings_back(plan.as_ref(), &settings)? {
                    return Ok(told(&settings, tried));
                }
            }
        }
        Ok(told(&[], tried))
    }

    /// Whether this plan of the first tuple is one of the base's, and those of all others are, too.
    fn brings_back(
        &mut self,
        plan: Option<&String>,
        settings: &[Setting],
    ) -> Result<bool, Problem> {
        if !plan.is_some_and(|plan| self.first.plans.contains(plan)) {
            return Ok(false);
        }
        for wanted in self.wanted {
            let plan = self.plan(wanted, settings)?;
            if !plan.is_some_and(|plan| wanted.plans.contains(&plan)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The plan of a tuple with these settings; absent if the server has none.
    fn plan(&mut self, wanted: &Wanted, settings: &[Setting]) -> Result<Option<String>, Problem> {
        let Some(tuple) = self.job.tuples.get(wanted.tuple) else {
            return Ok(None);
        };
        let shape = self
            .candidate
            .shape(&mut self.connected, self.job, (tuple, settings))?;
        Ok(match shape {
            Answer::Done(shape) => Some(shape.id()),
            _ => None,
        })
    }
}

fn told(settings: &[Setting], tried: u64) -> OldPlan {
    OldPlan {
        settings: settings.to_vec(),
        tried,
        ratio: None,
        cause: PlanCause::Open,
    }
}

/// What a server says of a setting.
struct Known {
    value: String,
    /// `bool`, `integer`, `real`, `enum`.
    kind: String,
    unit: Option<String>,
}

/// Settings that are tried one by one, the most likely ones first: what differs between the servers, what
/// only the candidate has, what switches a method off or on.
fn alternatives(base: &Asking<'_>, candidate: &Asking<'_>) -> Result<Vec<Setting>, Problem> {
    let (base, candidate) = (known(base)?, known(candidate)?);
    Ok(in_order(&base, &candidate))
}

fn in_order(base: &BTreeMap<String, Known>, candidate: &BTreeMap<String, Known>) -> Vec<Setting> {
    let (mut differing, mut new, mut switches) = (Vec::new(), Vec::new(), Vec::new());
    for (name, own) in candidate {
        let of_base = base.get(name);
        match of_base {
            Some(other) if other.unit == own.unit && other.value != own.value => {
                differing.push((name.clone(), other.in_unit()));
                continue;
            }
            _ => {}
        }
        if own.kind != "bool" || !name.starts_with("enable_") {
            continue;
        }
        let other = if own.value == "on" { "off" } else { "on" };
        let setting = (name.clone(), other.to_owned());
        match of_base {
            Some(_) => switches.push(setting),
            None => new.push(setting),
        }
    }
    let usual = USUAL.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut all = differing;
    all.extend(new);
    all.extend(switches);
    all.extend(usual);
    let mut seen = BTreeSet::new();
    all.retain(|setting| seen.insert(setting.clone()));
    all
}

impl Known {
    /// As it can be set.
    fn in_unit(&self) -> String {
        match self.unit.as_deref() {
            Some(unit @ ("kB" | "MB" | "ms" | "s")) if !self.value.starts_with('-') => {
                format!("{}{unit}", self.value)
            }
            _ => self.value.clone(),
        }
    }
}

/// The settings of a server that have a part in plans, and that every role may set.
fn known(asking: &Asking<'_>) -> Result<BTreeMap<String, Known>, Problem> {
    let mut client = asking.reach.own()?;
    let rows = query(
        &mut client,
        &format!(
            "SELECT name, setting, vartype, unit FROM pg_catalog.pg_settings WHERE context = 'user' \
             AND (category LIKE 'Query Tuning%' OR name IN ({MORE}))"
        ),
    )?;
    let one = |row: Vec<Option<String>>| match <[Option<String>; 4]>::try_from(row) {
        Ok([Some(name), Some(value), Some(kind), unit]) => {
            Some((name, Known { value, kind, unit }))
        }
        _ => None,
    };
    Ok(rows.into_iter().filter_map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(all: &[(&str, &str, &str, Option<&str>)]) -> BTreeMap<String, Known> {
        let one = |(name, value, kind, unit): &(&str, &str, &str, Option<&str>)| {
            let known = Known {
                value: (*value).to_owned(),
                kind: (*kind).to_owned(),
                unit: unit.map(str::to_owned),
            };
            ((*name).to_owned(), known)
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn what_differs_comes_first_then_what_is_new_then_switches() {
        let base = settings(&[
            ("enable_seqscan", "on", "bool", None),
            ("random_page_cost", "4", "real", None),
            ("work_mem", "4096", "integer", Some("kB")),
        ]);
        let candidate = settings(&[
            ("enable_memoize", "on", "bool", None),
            ("enable_seqscan", "on", "bool", None),
            ("geqo", "on", "bool", None),
            ("random_page_cost", "40", "real", None),
            ("work_mem", "8192", "integer", Some("kB")),
        ]);
        let order = in_order(&base, &candidate);
        let order: Vec<String> = order
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            order,
            [
                "random_page_cost=4",
                "work_mem=4096kB",
                "enable_memoize=off",
                "enable_seqscan=off",
                "random_page_cost=1.1",
                "join_collapse_limit=1"
            ]
        );
    }
}
