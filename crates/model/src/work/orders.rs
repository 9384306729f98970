//! Order entry: transactions that look like those of TPC-C, on tables of their own.

use super::pgbench::PgbenchSetup;
use serde::{Deserialize, Serialize};

/// Where the transactions are programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrdersForm {
    /// The client sends each statement.
    #[default]
    Statements,
    /// The client calls one function in the server for each transaction.
    Functions,
}

impl OrdersForm {
    /// All of them, the default first.
    pub const ALL: [Self; 2] = [Self::Statements, Self::Functions];

    /// The word in files and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Statements => "statements",
            Self::Functions => "functions",
        }
    }
}

/// All that a run does with order entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrdersSetup {
    /// Size: about 100 MB each.
    pub warehouses: u32,
    pub form: OrdersForm,
    /// Whether the tables have the foreign keys of the specification.
    pub foreign_keys: bool,
    /// The transactions and how they are sent; its tables are none.
    pub scripts: PgbenchSetup,
}

/// The variable of the scripts that has the number of warehouses.
const VARIABLE: &str = "warehouses";

/// The workload of deliveries alone.
pub const DELIVERIES: &str = "orders-delivery";

/// Deliveries for each warehouse. It has 900 orders in each district that wait for one, and a delivery takes
/// one of each; the rest is room for warehouses that are drawn more often.
const DELIVERIES_EACH: u64 = 800;

impl OrdersSetup {
    /// Operations that the tables have for a workload which uses them up; absent: any number.
    pub(super) fn operations_max(&self, workload: &str) -> Option<u64> {
        (workload == DELIVERIES).then(|| DELIVERIES_EACH * u64::from(self.warehouses))
    }

    /// The same with another number of warehouses.
    pub fn resize(&mut self, warehouses: u32) {
        self.warehouses = warehouses;
        self.scripts.variables = vec![(VARIABLE.to_owned(), warehouses.to_string())];
    }
}
