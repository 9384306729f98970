//! From a request to a plan that can be carried out here, and to its end.

use crate::afterwards::{checked, follow};
use crate::arguments::conditions::Conditions;
use crate::arguments::shape::Shape;
use crate::bench::{Bench, Measured};
use crate::config::Config;
use crate::configs::Chooser;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use crate::host::{check_fits, swept_host};
use crate::interrupt;
use crate::kinds::outlook::{Follows, comparison};
use crate::output::{Destinations, write_reports};
use crate::request::{check_pins, first_given, pause, settings};
use crate::sessions;
use crate::store::open_store;
use crate::targets::resolve_servers;
use deltabench_kinds::run_half;
use deltabench_lab::Analysed;
use deltabench_model::counts::CountedAfter;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Gate, Limits, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_model::units::{count, to_u64};
use deltabench_run::fleet::Host;
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::session::SessionEnd;
use deltabench_server::{Counter, check_settings};
use deltabench_workload::Library;
use std::path::Path;

/// The servers that a command is about, and what is held on them.
pub struct Sides<'a> {
    /// The side that the others are compared with, as the user named it.
    pub base: &'a str,
    /// The sides in question; may be none where the command allows it.
    pub candidates: &'a [String],
    pub conditions: &'a Conditions,
}

impl<'a> Sides<'a> {
    fn targets(&self) -> impl Iterator<Item = &'a str> {
        let candidates = self.candidates.iter().map(String::as_str);
        std::iter::once(self.base).chain(candidates)
    }
}

/// Checks a request, finds its servers, measures and publishes.
pub fn carry_out(
    request: Request,
    sides: &Sides<'_>,
    shape: &Shape,
    config: &Config,
) -> Result<u8, Failure> {
    let (ending, hours) = (&shape.ending, &shape.sessions);
    let gap = hours.gap.as_deref().map(pause).transpose();
    let gap = gap.map_err(Failure::Refused)?;
    if gap.is_some() && hours.sessions.is_none() && !ending.confirm {
        return Err(Failure::Refused(
            Problem::new("--gap is the pause before a session or a confirming run")
                .hint("add --sessions 4, or --confirm"),
        ));
    }
    let sessions = hours.sessions;
    let sessions = sessions.map(|of| (of, gap.unwrap_or(sessions::GAP_SECONDS)));
    let asked = [
        (ending.confirm, "--confirm"),
        (hours.sensitivity, "--sensitivity"),
    ];
    check_compared(sides.candidates.is_empty(), &asked).map_err(Failure::Refused)?;
    if hours.sensitivity && sides.targets().any(|target| target.starts_with("dsn:")) {
        return Err(Failure::Refused(
            Problem::new("--sensitivity needs servers that deltabench starts")
                .detail("deltabench cannot change the cores and settings of a server that already runs")
                .hint("leave out --sensitivity, or name versions or directories instead of `dsn:` targets"),
        ));
    }
    let mut ready = Ready::of(request, sides, config)?;
    // Stored, so that `resume` measures them, too.
    ready.plan.observing.sensitivity = hours.sensitivity;
    ready.plan.observing.confirmed_after = ending.confirm.then(|| whole_seconds(gap));
    let note = ready.fit_the_time(shape).map_err(Failure::Refused)?;
    let pilot = !ending.no_pilot;
    if let Some(note) = note.as_ref().filter(|_| !hours.dry_run) {
        say(note);
    }
    match sessions {
        _ if hours.dry_run => {
            let follows = Follows {
                sessions,
                confirm: ending.confirm,
                sensitivity: hours.sensitivity,
            };
            let lines = comparison(&ready.plan, &ready.host, &follows);
            let mut lines = lines.map_err(Failure::Refused)?;
            lines.extend(note.map(|note| format!("  note     {note}")));
            print_stdout(&lines.join("\n"))?;
            Ok(0)
        }
        Some(sessions) => ready.measure_sessions(sessions, pilot, config),
        None => ready.measure(pilot, config),
    }
}

/// A plan that can be carried out here.
pub struct Ready {
    /// What is going to be done.
    pub plan: Plan,
    /// Where its servers live.
    pub host: Host,
    library: Library,
    destinations: Destinations,
}

impl Ready {
    /// Checks a request, finds its servers and makes the plan.
    pub fn of(request: Request, sides: &Sides<'_>, config: &Config) -> Result<Self, Failure> {
        let conditions = sides.conditions;
        let destinations =
            Destinations::check(&conditions.output, config).map_err(Failure::Refused)?;
        let library = check(&request, sides)?;
        let kind = run_half(&request.work);
        let host = swept_host(&conditions.servers, config)?;
        let mut plan = make_plan(request, sides, config, &library)
            .and_then(checked)
            .map_err(Failure::Refused)?;
        let servers = count(plan.servers.len());
        kind.fit_to_servers(&mut plan, servers);
        check_fits(&plan, &host).map_err(Failure::Refused)?;
        Ok(Self {
            plan,
            host,
            library,
            destinations,
        })
    }

    /// Makes the plan fit into the time allowed, as far as the user left its visits open.
    fn fit_the_time(&mut self, shape: &Shape) -> Result<Option<String>, Problem> {
        let plan = &mut self.plan;
        let may_shorten = shape.visit_seconds.is_none()
            && shape.write_seconds.is_none()
            && shape.warmup.is_none()
            && !plan.has_whole_steps()
            && !plan.timing.sustained
            && plan.limits == Limits::default();
        let kind = run_half(&plan.work);
        planning::fit(plan, kind, may_shorten)
    }

    /// A plan that was checked, and where it is carried out.
    pub fn made(plan: Plan, host: Host, library: Library, destinations: Destinations) -> Self {
        Self {
            plan,
            host,
            library,
            destinations,
        }
    }

    /// Measures as a new run, and writes its page and its JSON report.
    pub fn measure_only(self, config: &Config) -> Result<(Analysed, SessionEnd), Failure> {
        let mut bench = Bench {
            store: open_store(config)?,
            host: self.host,
            interrupted: interrupt::flag()?,
        };
        let measured = bench.measure_new(&self.plan, &self.library, None, false)?;
        let analysed = bench.analysed(measured.judged, None)?;
        write_reports(&analysed, &self.destinations)?;
        Ok((analysed, measured.end))
    }

    /// Measures in several sessions with a gap in seconds between them, and publishes the result over all.
    fn measure_sessions(
        self,
        sessions: (u32, f64),
        pilot: bool,
        config: &Config,
    ) -> Result<u8, Failure> {
        let mut bench = Bench {
            store: open_store(config)?,
            host: self.host,
            interrupted: interrupt::flag()?,
        };
        sessions::measure(&mut bench, &self.plan, sessions, pilot, &self.destinations)
    }

    /// Measures, also what the plan wants afterwards, and publishes.
    pub fn measure(self, pilot: bool, config: &Config) -> Result<u8, Failure> {
        let Self {
            plan,
            host,
            library,
            destinations,
        } = self;
        let mut bench = Bench {
            store: open_store(config)?,
            host,
            interrupted: interrupt::flag()?,
        };
        let Measured { end, judged } = bench.measure_new(&plan, &library, None, pilot)?;
        follow(&mut bench, judged, &library, end, &destinations)
    }
}

/// Refuses what no server could be measured with, before one is looked for; returns the workloads.
///
/// Errors: a question about candidates where there are none, workloads that are not there, sizes, clients and
/// settings that cannot be.
pub fn check(request: &Request, sides: &Sides<'_>) -> Result<Library, Failure> {
    let conditions = sides.conditions;
    let [worse, metrics, hours, gate] = asked_of_gate(&request.gate);
    let asked = [
        worse,
        metrics,
        hours,
        gate,
        (!conditions.candidate_settings.is_empty(), "--candidate-set"),
        (
            conditions.candidate_configuration.is_some(),
            "--candidate-config",
        ),
        (request.same_target, "--same-target"),
        (
            request.observing.counted_after == Some(CountedAfter::All),
            "--count",
        ),
    ];
    check_compared(sides.candidates.is_empty(), &asked).map_err(Failure::Refused)?;
    let library = Library::builtin().map_err(Failure::Failed)?;
    let library = library
        .extended(&request.sources, &request.work)
        .map_err(Failure::Refused)?;
    let kind = run_half(&request.work);
    kind.check(request, &library).map_err(Failure::Refused)?;
    check_clients(request, sides).map_err(Failure::Refused)?;
    let servers_here = sides.targets().any(|target| !target.starts_with("dsn:"));
    check_pins(request.pins.as_ref(), servers_here).map_err(Failure::Refused)?;
    if request.observing.counted_after == Some(CountedAfter::All) {
        deltabench_kinds::check_counted_after(&request.work)
            .and_then(|()| Counter::find())
            .map_err(Failure::Refused)?;
    }
    settings(&conditions.candidate_settings)
        .and_then(|settings| check_settings(&settings))
        .map_err(Failure::Refused)?;
    Ok(library)
}

/// The options that make a gate, and whether they are given.
pub fn asked_of_gate(gate: &Gate) -> [(bool, &'static str); 4] {
    [
        (gate.not_worse_than.is_some(), "--not-worse-than"),
        (!gate.metrics.is_empty(), "--gate-on"),
        (gate.another_hour, "--gate-hours"),
        (gate.on, "--gate"),
    ]
}

/// Refuses options that ask something of candidates if the base `is_alone`: a gate would pass without an
/// answer.
///
/// Errors: the first of them that is given.
pub fn check_compared(is_alone: bool, asked: &[(bool, &'static str)]) -> Result<(), Problem> {
    match first_given(asked).filter(|_| is_alone) {
        None => Ok(()),
        Some(option) => Err(Problem::new(format!("{option} needs a candidate"))
            .detail("the base alone is compared with nothing")
            .hint("name a candidate after the base; to compare settings, name the base twice")),
    }
}

/// Seconds of a pause, which may only become longer.
fn whole_seconds(pause: Option<f64>) -> u32 {
    let seconds = to_u64(pause.unwrap_or(0.0).ceil());
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// Refuses too many clients before anything is fetched, where our own servers and no configuration decide.
fn check_clients(request: &Request, sides: &Sides<'_>) -> Result<(), Problem> {
    let targets = sides.targets();
    let mut own = targets.filter(|target| !target.starts_with("dsn:"));
    let configured = sides.conditions.configuration.is_some()
        || sides.conditions.candidate_configuration.is_some();
    if configured || own.next().is_none() {
        return Ok(());
    }
    planning::check_connections(request, run_half(&request.work), &[])
}

/// What a server with a named configuration is called: its version, and what sets it apart from the others.
fn label(found: &Installation, name: Option<&str>, own: &[(String, String)]) -> String {
    let settings = own.iter().map(|(name, value)| format!("{name} = {value}"));
    let words: Vec<String> = name
        .map(str::to_owned)
        .into_iter()
        .chain(settings)
        .collect();
    match words.as_slice() {
        [] => found.resolved.clone(),
        _ => format!("{} ({})", found.resolved, words.join(", ")),
    }
}

/// Refuses a target that is named twice, before it is fetched or built. Candidates have the same settings,
/// and the base may have others.
fn check_distinct(specs: &[TargetSpec], is_like_base: bool) -> Result<(), Problem> {
    let mut seen: Vec<&TargetSpec> = Vec::new();
    for spec in specs.iter().skip(usize::from(!is_like_base)) {
        if seen.contains(&spec) {
            return Err(Problem::new(format!("{spec} and {spec} are the same server"))
                .detail("both have the same settings")
                .hint("to compare a server with itself on purpose (an A/A run), add --same-target"));
        }
        seen.push(spec);
    }
    Ok(())
}

fn make_plan(
    request: Request,
    sides: &Sides<'_>,
    config: &Config,
    library: &Library,
) -> Result<Plan, Problem> {
    let specs = sides
        .targets()
        .map(|text| text.parse::<TargetSpec>())
        .collect::<Result<Vec<_>, _>>()?;
    let here = Path::new("");
    let of_base = sides.conditions.configuration.as_deref();
    let of_candidates = sides
        .conditions
        .candidate_configuration
        .as_deref()
        .or(of_base);
    let mut chooser = Chooser::new(&[], request.limits.memory_bytes)?;
    for name in [of_base, of_candidates].into_iter().flatten() {
        chooser = chooser.knowing(name, here)?;
    }
    let own = settings(&sides.conditions.candidate_settings)?;
    if !request.same_target {
        let is_like_base = own.is_empty() && of_base == of_candidates;
        check_distinct(&specs, is_like_base)?;
    }
    let wish = |name: Option<&str>, own: &[(String, String)], found: &Installation| {
        let fitted = chooser.fitted(name, own, &request.settings, found)?;
        Ok(ServerWish {
            label: name.map(|name| label(found, (of_base != of_candidates).then_some(name), own)),
            configuration: fitted.configuration,
            settings: fitted.settings,
            ..ServerWish::plain(found.clone())
        })
    };
    match resolve_servers(&specs, config)?.as_slice() {
        [base, candidates @ ..] => {
            let base = wish(of_base, &[], base)?;
            let candidates = candidates
                .iter()
                .map(|candidate| wish(of_candidates, &own, candidate))
                .collect::<Result<Vec<_>, Problem>>()?;
            let kind = run_half(&request.work);
            planning::plan(request, kind, (&base, &candidates), library)
        }
        [] => Err(Problem::new("no base given")),
    }
}
