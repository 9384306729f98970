//! A replay from its servers to its answers.

use crate::asked::Asked;
use crate::asking::{Asking, Shapes};
use crate::made_up::make_up;
use crate::request::Request;
use crate::safety::Volatile;
use crate::servers::{Member, Servers};
use crate::shape::Roots;
use crate::substitutes::{MadeUp, wanting};
use crate::timed::{TimedJob, TimedServers, jobs, statements};
use crate::watched::watched;
use crate::why::old_plans;
use crate::work::Work;
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
        |servers| {
            let (roles, made_up) = load_and_make_up(request, servers, tell)?;
            let work = Work::with(request.capture, made_up.as_ref());
            let asked = ask(request, &work, (servers, &roles), tell)?;
            let replayed = asked.report(request, &work, servers);
            let timed = match request.timed && asked.broken.is_none() {
                true => statements(&work, &replayed, |job, tuple| asked.facts((job, tuple))),
                false => Vec::new(),
            };
            let answer = Answer {
                replayed,
                kept: None,
                broken: asked.broken,
            };
            Ok((answer, timed, (roles, made_up)))
        },
        |servers, (mut answer, timed, known)| {
            let left = match timed.is_empty() {
                true => servers.dismantle().err(),
                false => {
                    let end = keep(request, servers, &known, timed);
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
        |servers| load_and_make_up(request, servers, tell),
        |servers, known| keep(request, servers, &known, statements),
    )
}

/// Does something on new servers, and then what remains to be done with them.
fn on_servers<'a, T, U>(
    request: &'a Request<'_>,
    what: impl FnOnce(&mut Servers<'a>) -> Result<T, Problem>,
    then: impl FnOnce(Servers<'a>, T) -> End<U>,
) -> End<U> {
    let servers = check(request).and_then(|()| Servers::prepare(request));
    let mut servers = match servers {
        Ok(servers) => servers,
        Err(problem) => return End::refused(problem),
    };
    let started = servers.start(request).map_err(Stopped::Refused);
    let answer = started.and_then(|()| what(&mut servers).map_err(Stopped::Failed));
    match ended(answer, request.interrupted.load(Ordering::Relaxed)) {
        Ok(done) => then(servers, done),
        Err(stopped) => End {
            answer: Err(stopped),
            left: servers.dismantle().err(),
        },
    }
}

/// Servers that are stopped, with what they will be asked.
fn keep(
    request: &Request<'_>,
    servers: Servers<'_>,
    (roles, made_up): &RolesAndValues,
    statements: Vec<TimedStatement>,
) -> End<Kept> {
    let work = Work::with(request.capture, made_up.as_ref());
    let kept = jobs(&work, &statements, roles).and_then(|jobs| {
        Ok(Kept {
            data_sets: servers.data_sets.clone(),
            servers: TimedServers::of(servers, request, &jobs)?,
            jobs,
            statements,
        })
    });
    End {
        answer: kept.map_err(Stopped::Failed),
        left: None,
    }
}

/// Roles that may log in everywhere, and values that were made up, if any are wanted.
type RolesAndValues = (BTreeSet<String>, Option<MadeUp>);

fn wanted_roles(request: &Request<'_>) -> BTreeSet<String> {
    let work = Work::of(request.capture);
    let captured = work.jobs.iter().map(|job| job.statement);
    let wanting = wanting(request.capture).filter(|_| request.make_up);
    let all = captured.chain(wanting);
    all.filter_map(|statement| statement.role.clone()).collect()
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

fn check(request: &Request<'_>) -> Result<(), Problem> {
    let wanting = wanting(request.capture).count();
    if !Work::of(request.capture).jobs.is_empty() || request.make_up && wanting > 0 {
        return Ok(());
    }
    if wanting > 0 {
        return Err(Problem::new("there is nothing to replay")
            .detail("no statement of the capture has values")
            .hint("leave out --values captured, so that deltabench makes them up"));
    }
    Err(Problem::new("there is nothing to replay")
        .detail("the capture has no statement that reads or writes tables and has its values")
        .hint("`deltabench capture` says what it left out, and why"))
}

/// Loads the tables, makes the roles, and makes values up where the capture has none.
fn load_and_make_up(
    request: &Request<'_>,
    servers: &mut Servers<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<RolesAndValues, Problem> {
    load(request, servers, tell)?;
    let roles = servers.prepare_roles(&wanted_roles(request))?;
    let base = servers.members.first().filter(|_| request.make_up);
    let wanting = wanting(request.capture).count();
    let Some(base) = base.filter(|_| wanting > 0) else {
        return Ok((roles, None));
    };
    tell(&format!(
        "making up values for {wanting} statements, from the tables of {}",
        base.reach.name
    ));
    let roots = base.roots()?;
    let end = || base.reach.end_sessions();
    let made = watched(
        &[asking_of(request, base, (&roots, &roles))],
        request.interrupted,
        |asking| make_up(request, asking),
        end,
    );
    let made = made.into_iter().next().transpose()?;
    Ok((roles, made))
}

/// How a server is asked.
fn asking_of<'a>(
    request: &'a Request<'_>,
    member: &'a Member<'_>,
    (roots, roles): (&'a Roots, &'a BTreeSet<String>),
) -> Asking<'a> {
    Asking {
        reach: &member.reach,
        version_num: member.wish.installation.version_num,
        roots,
        roles,
        timeout_seconds: request.timeout_seconds,
        interrupted: request.interrupted,
    }
}

fn ask(
    request: &Request<'_>,
    work: &Work<'_>,
    (servers, roles): (&Servers<'_>, &BTreeSet<String>),
    tell: &mut dyn FnMut(&str),
) -> Result<Asked, Problem> {
    let mut asked = Asked::new(work, servers.members.len());
    let wanted = wanted_roles(request);
    asked.missing_roles = wanted.difference(roles).cloned().collect();
    let members = servers.members.iter();
    let roots = members.map(|member| member.roots());
    let roots = roots.collect::<Result<Vec<_>, _>>()?;
    let members = servers.members.iter().zip(&roots);
    let asking = members.map(|(member, roots)| asking_of(request, member, (roots, roles)));
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
            Ok(asked)
        }
    }
}

/// Loads the dump if there is one, and says what of it is left out.
fn load(
    request: &Request<'_>,
    servers: &mut Servers<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<(), Problem> {
    if let Some(adopted) = &servers.adopted {
        tell(&format!(
            "copies of the data directory are ready, with database {}; drawing statistics",
            adopted.database
        ));
        return servers.draw_first(request);
    }
    let Some((dump, survey)) = request.data.dump() else {
        return Ok(());
    };
    let (path, tables) = (dump.path().display(), survey.tables);
    tell(&format!("loading {path} with {tables} tables of rows"));
    servers.load(request, dump)?;
    for member in &servers.members {
        let unknown = [
            ("settings", &member.loaded.settings_left_out),
            ("predefined roles", &member.loaded.grants_left_out),
        ];
        for (what, left_out) in unknown {
            if left_out.is_empty() {
                continue;
            }
            let names: Vec<&str> = left_out.iter().map(String::as_str).collect();
            tell(&format!(
                "{} does not know these {what} of the dump, left out: {}",
                member.wish.installation.resolved,
                names.join(", ")
            ));
        }
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
        tell(&match request.data.is_ours() {
            true => format!(
                "statistics {} of {}: every statement is explained",
                draw + 1,
                request.draws
            ),
            false => "every statement is explained".to_owned(),
        });
        // The first statistics came with the load or the copy.
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
