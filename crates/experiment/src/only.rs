//! Parts of a study, picked by hand: `--only point-query --only clients=4 --only "server=postgres:18*"`.

use crate::experiment::Experiment;
use crate::pattern::matches;
use crate::server::Server;
use deltabench_model::problem::{Problem, nearest};

/// Axes of parts.
const PART_AXES: [&str; 8] = [
    "rows",
    "keys",
    "tables",
    "scale",
    "warehouses",
    "memory",
    "storage",
    "repetition",
];

/// What a filter looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Workload,
    Clients,
    /// Name of a server, or its target.
    Server,
    /// A coordinate of servers: `configuration`, `io_workers`.
    Coordinate(String),
    Part(String),
}

/// A filter, read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Filter {
    kind: Kind,
    pattern: String,
    /// As it was written.
    text: String,
}

impl Experiment {
    /// The part of the study that filters pick: `point-query` (a workload), `clients=4`,
    /// `server=postgres:18*` (by label, name or target), `rows=…`, `keys=…`, `tables=…`, `scale=…`,
    /// `warehouses=…`, `memory=…`, `storage=…`, `repetition=1`, or what servers differ in:
    /// `configuration=cx10c*`, `io_workers=4`. Several of one kind are alternatives, different kinds all must
    /// hold. The base always stays.
    ///
    /// Labels and coordinates stay those of the whole study. Workloads are not known here: they are kept in
    /// [`Experiment::only_workloads`], for [`Experiment::wants_workload`].
    ///
    /// Errors: a kind that is none, a filter that picks nothing.
    pub fn only(&self, filters: &[String]) -> Result<Self, Problem> {
        let filters = filters
            .iter()
            .map(|text| self.filter(text))
            .collect::<Result<Vec<_>, _>>()?;
        for filter in &filters {
            self.refuse_idle(filter)?;
        }
        let mut picked = self.clone();
        for alternatives in by_kind(&filters) {
            picked.keep(&alternatives);
        }
        picked.servers = self.picked_servers(&filters)?;
        Ok(picked)
    }

    /// The servers that filters pick, and the base.
    fn picked_servers(&self, filters: &[Filter]) -> Result<Vec<Server>, Problem> {
        let filters: Vec<Filter> = filters
            .iter()
            .filter(|filter| matches!(filter.kind, Kind::Server | Kind::Coordinate(_)))
            .cloned()
            .collect();
        let kinds = by_kind(&filters);
        let picked = |server: &Server| {
            kinds
                .iter()
                .all(|alternatives| alternatives.iter().any(|filter| picks(server, filter)))
        };
        if !self.servers.iter().any(picked) {
            let texts: Vec<&str> = filters.iter().map(|filter| filter.text.as_str()).collect();
            return Err(
                Problem::new(format!("no server matches all of {}", texts.join(", ")))
                    .detail(format!("servers: {}", self.server_names().join(", "))),
            );
        }
        let servers = self.servers.iter();
        Ok(servers
            .filter(|server| server.is_base || picked(server))
            .cloned()
            .collect())
    }

    /// Whether a workload is among those that were asked for.
    pub fn wants_workload(&self, name: &str) -> bool {
        self.only_workloads.is_empty() || self.only_workloads.iter().any(|only| matches(only, name))
    }

    /// Refuses a wish for workloads that none of the study's workloads fulfils.
    ///
    /// Errors: such a wish, with the nearest name.
    pub fn check_workloads(&self, names: &[&str]) -> Result<(), Problem> {
        let idle = |only: &&String| !names.iter().any(|name| matches(only, name));
        match self.only_workloads.iter().find(idle) {
            None => Ok(()),
            Some(only) => Err(nothing(only, "workloads", names, only)),
        }
    }

    fn filter(&self, text: &str) -> Result<Filter, Problem> {
        let read = |kind: Kind, pattern: &str| Filter {
            kind,
            pattern: pattern.trim().to_owned(),
            text: text.to_owned(),
        };
        let Some((word, pattern)) = text.split_once('=') else {
            if text.trim().is_empty() {
                return Err(Problem::new("`--only` is empty")
                    .hint("write for example --only point-query or --only clients=4"));
            }
            return Ok(read(Kind::Workload, text));
        };
        let coordinates = self.coordinate_names();
        Ok(match word.trim() {
            "workload" => read(Kind::Workload, pattern),
            "clients" => read(Kind::Clients, pattern),
            "server" => read(Kind::Server, pattern),
            word if PART_AXES.contains(&word) => read(Kind::Part(word.to_owned()), pattern),
            word if coordinates.contains(&word) => read(Kind::Coordinate(word.to_owned()), pattern),
            word => {
                let known = ["workload", "clients", "server"].into_iter();
                let known = known.chain(PART_AXES).chain(coordinates);
                match nearest(word, known) {
                    Some(near) => {
                        return Err(Problem::new(format!(
                            "`--only {text}` names nothing that exists"
                        ))
                        .hint(format!("did you mean --only {near}={pattern}?")));
                    }
                    // Names of variants hold an equals sign too.
                    None => read(Kind::Workload, text),
                }
            }
        })
    }

    /// Refuses a filter that picks nothing by itself.
    fn refuse_idle(&self, filter: &Filter) -> Result<(), Problem> {
        let (what, there) = match &filter.kind {
            Kind::Workload => return Ok(()),
            Kind::Clients => {
                let clients = self.workloads.clients.iter();
                ("clients", clients.map(u32::to_string).collect())
            }
            Kind::Server => ("servers", self.server_names()),
            Kind::Coordinate(name) => (name.as_str(), self.coordinate_values(name)),
            Kind::Part(axis) => (axis.as_str(), self.axes.words(axis)),
        };
        let picked = match &filter.kind {
            Kind::Server | Kind::Coordinate(_) => {
                self.servers.iter().any(|server| picks(server, filter))
            }
            _ => there.iter().any(|word| fits(filter, word)),
        };
        if picked {
            return Ok(());
        }
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        Err(nothing(&filter.text, what, &there, &filter.pattern))
    }

    /// Keeps what alternatives of one kind pick; servers are for [`Experiment::picked_servers`].
    fn keep(&mut self, alternatives: &[&Filter]) {
        let any = |word: &str| alternatives.iter().any(|filter| fits(filter, word));
        match alternatives.first().map(|filter| &filter.kind) {
            Some(Kind::Workload) => {
                let patterns = alternatives.iter().map(|filter| filter.pattern.clone());
                self.only_workloads.extend(patterns);
            }
            Some(Kind::Clients) => self.workloads.clients.retain(|n| any(&n.to_string())),
            Some(Kind::Part(axis)) => self.axes.keep(axis, any),
            Some(Kind::Server | Kind::Coordinate(_)) | None => {}
        }
    }

    fn server_names(&self) -> Vec<String> {
        self.servers.iter().map(Server::name).collect()
    }

    fn coordinate_names(&self) -> Vec<&str> {
        let all = self.servers.iter().flat_map(|server| &server.coordinates);
        let mut names: Vec<&str> = all.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn coordinate_values(&self, name: &str) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for (_, value) in self
            .servers
            .iter()
            .flat_map(|server| &server.coordinates)
            .filter(|(other, _)| other == name)
        {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        values
    }
}

/// Filters of one kind together, in the order in which the kinds come up.
fn by_kind(filters: &[Filter]) -> Vec<Vec<&Filter>> {
    let mut kinds: Vec<Vec<&Filter>> = Vec::new();
    for filter in filters {
        let same = |kind: &&mut Vec<&Filter>| kind.iter().any(|other| other.kind == filter.kind);
        match kinds.iter_mut().find(same) {
            Some(kind) => kind.push(filter),
            None => kinds.push(vec![filter]),
        }
    }
    kinds
}

/// Whether a filter of servers picks this one.
fn picks(server: &Server, filter: &Filter) -> bool {
    let pattern = filter.pattern.as_str();
    match &filter.kind {
        Kind::Server => {
            matches(pattern, &server.name()) || matches(pattern, &server.target.to_string())
        }
        Kind::Coordinate(name) => server
            .coordinates
            .iter()
            .any(|(other, value)| other == name && matches(pattern, value)),
        Kind::Workload | Kind::Clients | Kind::Part(_) => false,
    }
}

/// Whether a word is what the filter says; numbers may be written as in the file, `20_000`.
fn fits(filter: &Filter, word: &str) -> bool {
    match &filter.kind {
        Kind::Clients => matches(&filter.pattern.replace('_', ""), word),
        Kind::Part(axis) if is_number(axis) => matches(&filter.pattern.replace('_', ""), word),
        _ => matches(&filter.pattern, word),
    }
}

fn is_number(axis: &str) -> bool {
    matches!(
        axis,
        "rows" | "keys" | "tables" | "scale" | "warehouses" | "repetition"
    )
}

fn nothing(text: &str, what: &str, there: &[&str], wanted: &str) -> Problem {
    let problem = Problem::new(format!("`--only {text}` matches nothing"))
        .detail(format!("{what}: {}", there.join(", ")));
    match nearest(wanted, there.iter().copied()) {
        Some(near) => problem.hint(format!("did you mean {near}?")),
        None => problem.hint("name one of these; `*` matches anything"),
    }
}
