//! The definitions that come with deltabench.

use crate::Definition;
use deltabench_model::problem::{Problem, nearest};

macro_rules! sysbench {
    ($($name:literal),* $(,)?) => {
        &[$((
            concat!("workloads/sysbench/", $name, ".toml"),
            include_str!(concat!("../../../workloads/sysbench/", $name, ".toml")),
        )),*]
    };
}

/// Every built-in file and its text, in the order in which reports list them.
const BUILTIN: &[(&str, &str)] = sysbench![
    "point-query",
    "random-points-10",
    "random-points-100",
    "random-points-1000",
    "hot-points",
    "points-covered-pk",
    "points-notcovered-pk",
    "points-covered-si",
    "points-notcovered-si",
    "range-covered-pk",
    "range-notcovered-pk",
    "range-covered-si",
    "range-notcovered-si",
    "read-only-count",
    "read-only-distinct",
    "read-only-order",
    "read-only-simple",
    "read-only-sum",
    "read-only-10",
    "read-only-100",
    "read-only-10000",
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
];

/// All workloads that can be asked for by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Library {
    definitions: Vec<Definition>,
}

impl Library {
    /// The definitions compiled into this binary, in report order.
    ///
    /// Errors: a definition that does not parse; a test of this crate says that there is none.
    pub fn builtin() -> Result<Self, Problem> {
        let definitions = BUILTIN
            .iter()
            .map(|(file, text)| Definition::parse(file, text))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { definitions })
    }

    /// The names, in report order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions
            .iter()
            .map(|definition| definition.name.as_str())
    }

    /// All definitions, in report order.
    #[must_use]
    pub fn all(&self) -> &[Definition] {
        &self.definitions
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

    /// The few that stand for the rest when minutes count, in report order.
    #[must_use]
    pub fn quick(&self) -> Vec<&Definition> {
        self.definitions
            .iter()
            .filter(|definition| definition.quick)
            .collect()
    }
}
