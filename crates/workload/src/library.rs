//! The definitions that come with deltabench, and the user's.

use crate::Definition;
use crate::pgbench::{builtin, builtin_names};
use crate::varied;
use deltabench_document::Document;
use deltabench_model::plan::{DataState, Plan, WorkloadSource};
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::work::Work;
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchSetup, PgbenchTables, QueryMode};

macro_rules! sysbench {
    ($($name:literal),* $(,)?) => {
        &[$((
            concat!("workloads/sysbench/", $name, ".toml"),
            include_str!(concat!("../../../workloads/sysbench/", $name, ".toml")),
        )),*]
    };
}

/// Every built-in file and its text, in the order of the rows of published reports.
const BUILTIN: &[(&str, &str)] = sysbench![
    "hot-points",
    "point-query",
    "points-covered-pk",
    "points-covered-si",
    "points-notcovered-pk",
    "points-notcovered-si",
    "random-points-1000",
    "random-points-100",
    "random-points-10",
    "range-covered-pk",
    "range-covered-si",
    "range-notcovered-pk",
    "range-notcovered-si",
    "scan",
    "read-only-count",
    "read-only-distinct",
    "read-only-order",
    "read-only-10000",
    "read-only-100",
    "read-only-10",
    "read-only-simple",
    "read-only-sum",
    "delete",
    "delete-existing",
    "insert",
    "read-write-100",
    "read-write-10",
    "update-index",
    "update-inlist",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
];

/// Built-in files that are no rows of published reports; they are asked for by name.
const BESIDE: &[(&str, &str)] = &[(
    "workloads/connect.toml",
    include_str!("../../../workloads/connect.toml"),
)];

/// The published test that another one stands in for, because its figures depend on how long it runs.
const NOT_BY_DEFAULT: &str = "delete";

/// Whether a definition is one of [`BESIDE`].
fn is_beside(definition: &Definition) -> bool {
    BESIDE.iter().any(|(file, _)| definition.file() == *file)
}

/// All workloads that can be asked for by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Library {
    definitions: Vec<Definition>,
    /// How many of them are built in; the user's come after.
    built_in: usize,
}

impl Library {
    /// The definitions compiled into this binary, in report order, after them the variants on fresh tables,
    /// and those that are no rows of reports.
    ///
    /// Errors: a definition that does not parse; a test of this crate says that there is none.
    pub fn builtin() -> Result<Self, Problem> {
        let mut definitions = BUILTIN
            .iter()
            .map(|(file, text)| Definition::parse(file, text))
            .collect::<Result<Vec<_>, _>>()?;
        let pre: Vec<Definition> = definitions.iter().filter_map(Definition::pre).collect();
        definitions.extend(pre);
        for (file, text) in BESIDE {
            definitions.push(Definition::parse(file, text)?);
        }
        let built_in = definitions.len();
        Ok(Self {
            definitions,
            built_in,
        })
    }

    /// What a plan's cells can name: the built-in definitions, the plan's own files and its pgbench scripts.
    ///
    /// Errors: those of [`Library::with_sources`] and [`Library::with_pgbench`].
    pub fn of_plan(plan: &Plan) -> Result<Self, Problem> {
        let mut library = Self::builtin()?;
        // Their names may be those of the user's own in a plan that was made before they were there.
        let own = plan.workloads.iter();
        let own = own.map(|source| Definition::parse(&source.file, &source.text));
        let own: Vec<String> = own
            .map(|definition| Ok(definition?.name))
            .collect::<Result<_, Problem>>()?;
        let before = library.definitions.len();
        library
            .definitions
            .retain(|one| !(own.contains(&one.name) && is_beside(one)));
        library.built_in -= before - library.definitions.len();
        library.extended(&plan.workloads, &plan.work)
    }

    /// This library with what a request or plan brings along: the user's files and pgbench's scripts.
    ///
    /// Errors: those of [`Library::with_sources`] and [`Library::with_pgbench`].
    pub fn extended(self, sources: &[WorkloadSource], work: &Work) -> Result<Self, Problem> {
        self.with_sources(sources)?.with_pgbench(work.pgbench())
    }

    /// This library with a definition for each mix of scripts.
    ///
    /// Errors: a script that does not read, a name that there is already.
    pub fn with_pgbench(mut self, setup: Option<&PgbenchSetup>) -> Result<Self, Problem> {
        if let Some(setup) = setup {
            for (number, mix) in setup.mixes.iter().enumerate() {
                let definition = Definition::of_pgbench(setup, mix)?;
                self.check_mix(setup.mixes.get(..number).unwrap_or_default(), mix)?;
                self.add(definition)?;
            }
        }
        Ok(self)
    }

    /// Refuses a mix that is called as another, or as a workload; `before` are those before it.
    fn check_mix(&self, before: &[PgbenchMix], mix: &PgbenchMix) -> Result<(), Problem> {
        let files = |mix: &PgbenchMix| {
            let files = mix.scripts.iter().map(|script| script.source.file.as_str());
            files.collect::<Vec<_>>().join(", ")
        };
        let sources = |mix: &PgbenchMix| {
            let scripts = mix.scripts.iter();
            scripts
                .map(|script| script.source.clone())
                .collect::<Vec<_>>()
        };
        let name = &mix.name;
        if let Some(other) = before.iter().find(|other| other.name == *name) {
            let what = if sources(other) == sources(mix) {
                let what = format!("{} is named twice", files(mix));
                return Err(Problem::new(what)
                    .hint("leave one of them out; FILE@2 or NAME@2 runs it more often"));
            } else {
                format!(
                    "{} and {} are both called `{name}`",
                    files(other),
                    files(mix)
                )
            };
            return Err(Problem::new(what).hint("rename one of the files, or leave --each out"));
        }
        if let Some(known) = self.definitions.iter().find(|known| known.name == *name) {
            let what = format!("{}: a workload `{name}` already exists", files(mix));
            return Err(Problem::new(what)
                .detail(format!("it is in {}", known.file()))
                .hint("rename the file"));
        }
        Ok(())
    }

    /// This library with pgbench's built-in scripts, each a mix of its own at scale 1 in simple mode, for
    /// people to read.
    ///
    /// Errors: a name that there is already.
    pub fn with_builtin_scripts(self) -> Result<Self, Problem> {
        let mix = |name: &str| {
            Ok(PgbenchMix {
                name: format!("pgbench-{name}"),
                scripts: vec![builtin(name)?],
            })
        };
        let mixes = builtin_names().into_iter().map(mix);
        let setup = PgbenchSetup {
            tables: PgbenchTables::default(),
            mixes: mixes.collect::<Result<_, Problem>>()?,
            mode: QueryMode::Simple,
            variables: Vec::new(),
            max_tries: 1,
            shared_names: false,
            reconnects: false,
            latency_limit_ms: None,
            writes: false,
        };
        self.with_pgbench(Some(&setup))
    }

    /// This library with the user's files added after its own.
    ///
    /// Errors: a file that does not read, or a name that there is already.
    pub fn with_sources(mut self, sources: &[WorkloadSource]) -> Result<Self, Problem> {
        for source in sources {
            let definition = Definition::parse(&source.file, &source.text)?;
            let pre = definition.pre();
            for definition in [Some(definition), pre].into_iter().flatten() {
                self.add(definition)?;
            }
        }
        Ok(self)
    }

    fn add(&mut self, definition: Definition) -> Result<(), Problem> {
        let name = &definition.name;
        if let Some(known) = self.definitions.iter().find(|known| known.name == *name) {
            let what = format!("{}: a workload `{name}` already exists", definition.file());
            return Err(Problem::new(what)
                .detail(format!("it is in {}", known.file()))
                .hint("change `name` in the file"));
        }
        self.definitions.push(definition);
        Ok(())
    }

    /// The names, in report order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions
            .iter()
            .map(|definition| definition.name.as_str())
    }

    /// All definitions, in report order.
    pub fn all(&self) -> &[Definition] {
        &self.definitions
    }

    /// The 32 rows of published reports, in report order; where the published test does not measure what
    /// its name says, the one that does.
    #[must_use]
    pub fn published(&self) -> Vec<&Definition> {
        self.definitions
            .iter()
            .take(BUILTIN.len())
            .filter(|definition| definition.name != NOT_BY_DEFAULT)
            .collect()
    }

    /// The published tests on freshly loaded tables, in report order.
    pub fn pre(&self) -> Vec<&Definition> {
        let built_in = self.definitions.iter().take(self.built_in);
        let fresh = |definition: &&Definition| definition.state().is_some();
        built_in.filter(fresh).collect()
    }

    /// The definition of that name.
    ///
    /// Errors: an unknown name, with the nearest known one.
    pub fn get(&self, name: &str) -> Result<&Definition, Problem> {
        if let Some(found) = self
            .definitions
            .iter()
            .find(|definition| definition.name == name)
        {
            return Ok(found);
        }
        let problem = Problem::new(format!("unknown workload `{name}`")).detail(format!(
            "known workloads: {}",
            self.names().collect::<Vec<_>>().join(", ")
        ));
        Err(match nearest(name, self.names()) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint("`deltabench workloads` lists them"),
        })
    }

    /// The workload `of` with other sizes: a definition of its own, for [`Library::with_sources`], under a
    /// name that says them, such as `read-only-range=500`. It is no row of published tables any more.
    ///
    /// Errors: an unknown workload or size, with the nearest known one; a value that is out of range.
    pub fn variant(&self, of: &str, values: &[(String, i64)]) -> Result<WorkloadSource, Problem> {
        let definition = self.get(of)?;
        if definition.state().is_some() {
            let base = of.trim_end_matches(".pre");
            return Err(Problem::new(format!("`{of}` cannot be varied")).hint(format!(
                "vary `{base}`: its variant also gets one on fresh tables, with `.pre` after the name"
            )));
        }
        let defaults = definition.varied();
        if defaults.is_empty() {
            let all = self.definitions.iter().filter(|d| d.state().is_none());
            let known = all.filter(|other| !other.varied().is_empty());
            let names: Vec<&str> = known.map(|other| other.name.as_str()).collect();
            return Err(Problem::new(format!("workload `{of}` has no size to vary"))
                .detail(format!("these have: {}", names.join(", "))));
        }
        if values.is_empty() {
            return Err(Problem::new(format!("a variant of `{of}` without a size"))
                .detail(format!("it has {}", varied::said(defaults))));
        }
        varied::check_asked(of, defaults, values)?;
        let name = varied::name(of, defaults, values);
        let document = Document {
            file: definition.file(),
            text: definition.text(),
        };
        let source = WorkloadSource {
            file: format!("{name}.toml"),
            text: varied::text(document, &name, values)?,
        };
        match Definition::parse(&source.file, &source.text) {
            Ok(_) => Ok(source),
            Err(problem) => Err(Problem::new(format!(
                "workload `{of}` cannot have {}",
                varied::said(values)
            ))
            .detail(problem.error)),
        }
    }

    /// Whether the workload of that name is one of ours: neither a user's nor a script.
    pub fn is_builtin(&self, name: &str) -> bool {
        let mut ours = self.definitions.iter().take(self.built_in);
        ours.any(|definition| definition.name == name)
    }

    /// The user's own, in the order in which they were added.
    pub fn own(&self) -> Vec<&Definition> {
        let own = self.definitions.iter().skip(self.built_in);
        own.filter(|definition| definition.state().is_none())
            .collect()
    }

    /// The state of the tables that the workload of that name must start from, if it must.
    pub fn state(&self, name: &str) -> Option<DataState> {
        let mut definitions = self.definitions.iter();
        definitions
            .find(|definition| definition.name == name)?
            .state()
    }

    /// The few that stand for the rest when minutes count, in report order.
    pub fn quick(&self) -> Vec<&Definition> {
        self.definitions
            .iter()
            .take(BUILTIN.len())
            .filter(|definition| definition.quick)
            .collect()
    }
}
