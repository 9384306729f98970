//! A replay from its servers to its answers.

use crate::asked::Asked;
use crate::asking::{Asking, Shapes};
use crate::request::{Data, Request};
use crate::safety::Volatile;
use crate::servers::Servers;
use crate::timed::{TimedJob, TimedServers, jobs, statements};
use crate::watched::watched;
use crate::why::old_plans;
use crate::work::{Job, Work};
use crate::writes::obstacle;
use deltabench_capture::Kind;
use deltabench_model::problem::Problem;
use deltabench_model::replayed::Replayed;
use deltabench_model::work::replay::{DataSet, TimedStatement};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// What a replay has found out before any time is measured.
pub struct Answer {
    pub replayed: Replayed,
    /// Absent where no time is wanted, and where no statement can be measured.
    pub kept: Option<Kept>,
    /// Why not all servers were asked everything, or why they cannot be measured.
    pub broken: Option<Problem>,
}

/// A replay whose servers are ready to be measured.
pub struct Kept {
    pub servers: TimedServers,
    /// Of servers that somebody else runs, the base first.
    pub data_sets: Vec<DataSet>,
    /// What is measured.
    pub statements: Vec<TimedStatement>,
    /// What is sent of each of them.
    pub jobs: Vec<TimedJob>,
}

/// Loads the dump into servers of its own, or takes those of somebody else as they are, asks them, and says
/// how the candidates differ. It keeps the servers if times are wanted and can be measured, else it takes
/// them down. `tell` hears how it goes on.
///
/// Must be called on a thread that outlives the servers.
///
/// Errors: whatever makes an answer impossible. What fails after the first plans only ends the rest.
pub fn replay(request: &Request<'_>, tell: &mut dyn FnMut(&str)) -> End<Answer> {
    on_servers(
        request,
        |work, servers| {
            let (asked, roles) = load_and_ask(request, work, servers, tell)?;
            let replayed = asked.report(request, work, servers);
            let timed = match request.timed && asked.broken.is_none() {
                true => statements(work, &replayed, |job, tuple| asked.facts((job, tuple))),
                false => Vec::new(),
            };
            let answer = Answer {
                replayed,
                kept: None,
                broken: asked.broken,
            };
            Ok((answer, timed, roles))
        },
        |work, servers, (mut answer, timed, roles)| {
            let left = match timed.is_empty() {
                true => servers.dismantle().err(),
                false => {
                    let end = keep(request, work, (servers, &roles), timed);
                    match end.answer {
                        Ok(kept) => answer.kept = Some(kept),
                        // What is known stays known.
                        Err(Stopped::Refused(problem) | Stopped::Failed(problem)) => {
                            answer.broken = Some(problem);
                        }
                        Err(Stopped::Interrupted) => {}
                    }
                    end.left
                }
            };
            let Answer {
                replayed, broken, ..
            } = &mut answer;
            broken
                .iter()
                .for_each(|problem| replayed.break_off(problem));
            End {
                answer: Ok(answer),
                left,
            }
        },
    )
}

/// Loads servers for a replay that was interrupted, to measure the rest of it.
///
/// Errors: as [`replay`]; a capture that lacks the statements.
pub fn load_again(
    request: &Request<'_>,
    statements: Vec<TimedStatement>,
    tell: &mut dyn FnMut(&str),
) -> End<Kept> {
    on_servers(
        request,
        |work, servers| {
            load(request, servers, tell)?;
            servers.prepare_roles(&wanted_roles(work))
        },
        |work, servers, roles| keep(request, work, (servers, &roles), statements),
    )
}

/// Does something on new servers, and then what remains to be done with them.
fn on_servers<'a, T, U>(
    request: &'a Request<'_>,
    what: impl FnOnce(&Work<'_>, &mut Servers<'a>) -> Result<T, Problem>,
    then: impl FnOnce(&Work<'_>, Servers<'a>, T) -> End<U>,
) -> End<U> {
    let work = Work::of(request.capture);
    let servers = check(&work).and_then(|()| Servers::prepare(request));
    let mut servers = match servers {
        Ok(servers) => servers,
        Err(problem) => return End::refused(problem),
    };
    let started = servers.start(request).map_err(Stopped::Refused);
    let answer = started.and_then(|()| what(&work, &mut servers).map_err(Stopped::Failed));
    match ended(answer, request.interrupted.load(Ordering::Relaxed)) {
        Ok(done) => then(&work, servers, done),
        Err(stopped) => End {
            answer: Err(stopped),
            left: servers.dismantle().err(),
        },
    }
}

/// Servers that are stopped, with what they will be asked.
fn keep(
    request: &Request<'_>,
    work: &Work<'_>,
    (servers, roles): (Servers<'_>, &BTreeSet<String>),
    statements: Vec<TimedStatement>,
) -> End<Kept> {
    let kept = jobs(work, &statements, roles).and_then(|jobs| {
        Ok(Kept {
            jobs,
            data_sets: servers.data_sets.clone(),
            servers: TimedServers::of(servers, request)?,
            statements,
        })
    });
    End {
        answer: kept.map_err(Stopped::Failed),
        left: None,
    }
}

fn wanted_roles(work: &Work<'_>) -> BTreeSet<String> {
    let wanted = |job: &Job<'_>| job.statement.role.clone();
    work.jobs.iter().filter_map(wanted).collect()
}

/// How a replay ended.
#[derive(Debug)]
pub struct End<T> {
    pub answer: Result<T, Stopped>,
    /// What of its servers could not be removed; absent if nothing is left behind.
    pub left: Option<Problem>,
}

/// Why a replay has no answer.
#[derive(Debug)]
pub enum Stopped {
    /// It cannot be done with these servers on this host; nothing was loaded.
    Refused(Problem),
    /// Loading or asking failed.
    Failed(Problem),
    /// The user interrupted it.
    Interrupted,
}

impl<T> End<T> {
    fn refused(problem: Problem) -> Self {
        Self {
            answer: Err(Stopped::Refused(problem)),
            left: None,
        }
    }

    /// The same with another answer.
    pub fn map<U>(self, what: impl FnOnce(T) -> U) -> End<U> {
        End {
            answer: self.answer.map(what),
            left: self.left,
        }
    }
}

/// An answer that was whole before the interruption stays; else the interruption is the reason why there is
/// none, whatever failed because of it.
fn ended<T>(answer: Result<T, Stopped>, interrupted: bool) -> Result<T, Stopped> {
    answer.map_err(|stopped| match interrupted {
        true => Stopped::Interrupted,
        false => stopped,
    })
}

fn check(work: &Work<'_>) -> Result<(), Problem> {
    if !work.jobs.is_empty() {
        return Ok(());
    }
    Err(Problem::new("there is nothing to replay")
        .detail("the capture has no statement that reads or writes tables and has its values")
        .hint("`deltabench capture` says what it left out, and why"))
}

fn load_and_ask(
    request: &Request<'_>,
    work: &Work<'_>,
    servers: &mut Servers<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<(Asked, BTreeSet<String>), Problem> {
    load(request, servers, tell)?;
    let wanted = wanted_roles(work);
    let roles = servers.prepare_roles(&wanted)?;
    let mut asked = Asked::new(work, servers.members.len());
    asked.missing_roles = wanted.difference(&roles).cloned().collect();
    let members = servers.members.iter();
    let roots = members.map(|member| member.roots());
    let roots = roots.collect::<Result<Vec<_>, _>>()?;
    let members = servers.members.iter().zip(&roots);
    let asking = members.map(|(member, roots)| Asking {
        reach: &member.reach,
        version_num: member.wish.installation.version_num,
        roots,
        roles: &roles,
        timeout_seconds: request.timeout_seconds,
        interrupted: request.interrupted,
    });
    let asking: Vec<Asking<'_>> = asking.collect();
    let mut all = explain(request, work, (&asking, &mut asked), tell);
    if all.is_ok() && request.why {
        all = why(request, work, &asking, &mut asked, tell);
    }
    if all.is_ok() && request.consent.reads {
        tell("reads are executed once for each of their values");
        all = execute(request, work, &asking, &mut asked);
    }
    if all.is_ok() && request.consent.reads && request.consent.writes {
        all = write(request, work, &asking, &mut asked, tell);
    }
    match all {
        Err(problem) if request.interrupted.load(Ordering::Relaxed) => Err(problem),
        // Nothing to compare.
        Err(problem) if asked.shapes.is_empty() => Err(problem),
        all => {
            asked.broken = all.err();
            Ok((asked, roles))
        }
    }
}

/// Loads the dump if there is one, and says what of it is left out.
fn load(
    request: &Request<'_>,
    servers: &mut Servers<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<(), Problem> {
    let Some((dump, survey)) = request.data.dump() else {
        return Ok(());
    };
    let (path, tables) = (dump.path().display(), survey.tables);
    tell(&format!("loading {path} with {tables} tables of rows"));
    servers.load(request, dump)?;
    for member in &servers.members {
        let left_out = &member.loaded.settings_left_out;
        if left_out.is_empty() {
            continue;
        }
        let names: Vec<&str> = left_out.iter().map(String::as_str).collect();
        tell(&format!(
            "{} does not know these settings of the dump, left out: {}",
            member.wish.installation.resolved,
            names.join(", ")
        ));
    }
    Ok(())
}

/// Explains every tuple on all servers, once for each draw of statistics.
fn explain(
    request: &Request<'_>,
    work: &Work<'_>,
    (asking, asked): (&[Asking<'_>], &mut Asked),
    tell: &mut dyn FnMut(&str),
) -> Result<(), Problem> {
    for draw in 0..request.draws() {
        tell(&match request.data {
            Data::Dump { .. } => format!(
                "statistics {} of {}: every statement is explained",
                draw + 1,
                request.draws
            ),
            Data::AsIs => "every statement is explained".to_owned(),
        });
        // The first statistics came with the load.
        let explained = side_by_side(request, asking, |asking| {
            if draw > 0 {
                asking.reach.analyze()?;
            }
            let mut shapes = Shapes::new();
            let plans = asking.explain(&work.jobs, &mut shapes)?;
            Ok((plans, shapes))
        });
        let explained: Vec<_> = explained.into_iter().collect::<Result<_, _>>()?;
        for (place, (plans, shapes)) in explained.into_iter().enumerate() {
            asked.explained(place, &plans);
            asked.shapes.extend(shapes);
        }
    }
    Ok(())
}

/// Looks for settings that bring the plans of the base back on the candidates.
fn why(
    request: &Request<'_>,
    work: &Work<'_>,
    asking: &[Asking<'_>],
    asked: &mut Asked,
    tell: &mut dyn FnMut(&str),
) -> Result<(), Problem> {
    let Some((base, candidates)) = asking.split_first() else {
        return Ok(());
    };
    tell(
        "statements with another plan are explained with other settings, to bring the old plan back",
    );
    for (server, candidate) in (1..).zip(candidates) {
        let both = (base, candidate);
        let found = side_by_side(request, std::slice::from_ref(candidate), |_| {
            old_plans(&work.jobs, both, |job| asked.base_plans(job, server))
        });
        for found in found {
            asked.old_plans.insert(server, found?);
        }
    }
    Ok(())
}

/// Executes what may be executed on all servers, and again on the base what differs.
fn execute(
    request: &Request<'_>,
    work: &Work<'_>,
    asking: &[Asking<'_>],
    asked: &mut Asked,
) -> Result<(), Problem> {
    let mut volatile = Volatile::default();
    for server in asking {
        volatile.merge(Volatile::of(&mut server.reach.own()?)?);
    }
    let base = asking.first().filter(|_| request.consent.writes);
    let obstacle = base.map(|base| obstacle(request, base.reach)).transpose()?;
    let obstacle = obstacle.flatten();
    asked.object(work, (&volatile, obstacle.as_deref()), request.consent);
    let reads = |job: usize| is_kind(work, job, |kind| kind == Kind::Read);
    let may = |job: usize, tuple: usize| reads(job) && asked.may_execute(job, tuple);
    let rows = side_by_side(request, asking, |asking| asking.execute(&work.jobs, &may));
    let mut all = Ok(());
    for (place, rows) in rows.into_iter().enumerate() {
        match rows {
            Ok(rows) => asked.executed(place, rows),
            Err(problem) => all = all.and(Err(problem)),
        }
    }
    all?;
    if let Some(base) = asking.first() {
        let differs = |job: usize, tuple: usize| reads(job) && asked.differs(work, job, tuple);
        let again = base.execute(&work.jobs, &differs)?;
        asked.again(work, again);
    }
    Ok(())
}

/// Executes writes and locks on copies of all servers: first on the base, which says what can be executed.
fn write(
    request: &Request<'_>,
    work: &Work<'_>,
    asking: &[Asking<'_>],
    asked: &mut Asked,
    tell: &mut dyn FnMut(&str),
) -> Result<(), Problem> {
    let writes = |job: usize| is_kind(work, job, |kind| kind != Kind::Read);
    let any = |asked: &Asked| {
        let all = work.jobs.iter().enumerate();
        let mut all = all.flat_map(|(job, it)| (0..it.tuples.len()).map(move |tuple| (job, tuple)));
        all.any(|(job, tuple)| writes(job) && asked.may_execute(job, tuple))
    };
    if !any(asked) {
        return Ok(());
    }
    tell("writes are executed on a copy of the tables, once for each of their values");
    let copied = side_by_side(request, asking, |asking| {
        asking.reach.copy(asking.version_num)
    });
    copied.into_iter().collect::<Result<(), _>>()?;
    let (base, others) = asking.split_at(asking.len().min(1));
    for (from, servers, first) in [(0, base, true), (1, others, false)] {
        let may = |job: usize, tuple: usize| writes(job) && asked.may_execute(job, tuple);
        let found = side_by_side(request, servers, |asking| {
            asking.write(&work.jobs, &may, first)
        });
        for (place, written) in (from..).zip(found) {
            match first {
                true => asked.written(written?),
                false => asked.executed(place, written?.rows),
            }
        }
    }
    let gone = side_by_side(request, asking, |asking| asking.reach.drop_copy());
    gone.into_iter().collect()
}

fn is_kind(work: &Work<'_>, job: usize, what: impl Fn(Kind) -> bool) -> bool {
    work.jobs
        .get(job)
        .is_some_and(|job| what(job.statement.kind))
}

/// Asks all servers something at the same time.
fn side_by_side<T: Send>(
    request: &Request<'_>,
    asking: &[Asking<'_>],
    what: impl Fn(&Asking<'_>) -> Result<T, Problem> + Sync,
) -> Vec<Result<T, Problem>> {
    let end = || asking.iter().for_each(|asking| asking.reach.end_sessions());
    watched(asking, request.interrupted, what, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_throws_no_whole_answer_away() {
        assert!(matches!(ended(Ok(1), true), Ok(1)));
        let failed = || Err::<u32, _>(Stopped::Failed(Problem::new("a connection ended")));
        assert!(matches!(ended(failed(), true), Err(Stopped::Interrupted)));
        assert!(matches!(ended(failed(), false), Err(Stopped::Failed(_))));
    }
}
