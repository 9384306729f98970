//! Under which conditions was measured, where they are not the usual ones.

use crate::context::resolved;
use crate::{origin, words};
use deltabench_compare::comparison::CellComparison;
use deltabench_model::plan::{CacheState, Cell, CellOrder, DataState, Plan, ServerId, Transport};

/// The conditions of a plan: what all cells share is said once, what they do not at each cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conditions<'a> {
    plan: &'a Plan,
    /// Whether the cells start from different states.
    states: bool,
    /// Whether the cells have different rates.
    rates: bool,
}

impl<'a> Conditions<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        let first = plan.cells.first();
        let differ = |same: fn(&Cell, &Cell) -> bool| {
            first.is_some_and(|first| plan.cells.iter().any(|cell| !same(first, cell)))
        };
        Self {
            plan,
            states: differ(|a, b| a.state == b.state),
            rates: differ(|a, b| rate(a) == rate(b)),
        }
    }

    /// The plan.
    pub(crate) fn plan(&self) -> &'a Plan {
        self.plan
    }

    /// A workload's name, with state and rate where other cells have others.
    pub(crate) fn label(&self, cell: &CellComparison) -> String {
        match self.plan.cell(cell.cell) {
            Some(planned) => self.of(planned, &cell.workload),
            None => cell.workload.clone(),
        }
    }

    /// The longest label of the plan.
    pub(crate) fn widest(&self) -> usize {
        let labels = self.plan.cells.iter();
        labels
            .map(|cell| self.of(cell, &cell.workload).chars().count())
            .max()
            .unwrap_or(0)
    }

    /// A cell's label and clients, for sentences.
    pub(crate) fn name(&self, cell: &CellComparison) -> String {
        let clients = words::workers(self.plan, cell.clients);
        format!("{} at {clients}", self.label(cell))
    }

    /// The same of a cell of the plan.
    pub(crate) fn planned_name(&self, cell: &Cell) -> String {
        let clients = words::workers(self.plan, cell.clients);
        format!("{} at {clients}", self.of(cell, &cell.workload))
    }

    fn of(&self, cell: &Cell, workload: &str) -> String {
        let state = if self.states && cell.state != DataState::default() {
            format!(" ({})", cell.state.word())
        } else {
            String::new()
        };
        format!("{workload}{state}{}", self.rate_of(cell))
    }

    /// A workload's name, with the rate where other cells have others: for tables with a column for states.
    pub(crate) fn label_without_state(&self, cell: &CellComparison) -> String {
        let planned = self.plan.cell(cell.cell);
        let rate = planned.map_or_else(String::new, |planned| self.rate_of(planned));
        format!("{}{rate}", cell.workload)
    }

    fn rate_of(&self, cell: &Cell) -> String {
        rate(cell)
            .filter(|_| self.rates)
            .map_or_else(String::new, |rate| format!(" {rate}/s"))
    }

    /// Whether a cell starts from anything but freshly loaded tables.
    pub(crate) fn any_state(&self) -> bool {
        let mut cells = self.plan.cells.iter();
        cells.any(|cell| cell.state != DataState::default())
    }

    /// What is not as usual and the same for all cells, in words; empty when all is as usual.
    pub(crate) fn unusual(&self) -> Vec<String> {
        let mut list = Vec::new();
        let first = self.plan.cells.first();
        if let Some(state) = first.map(|cell| cell.state).filter(|_| !self.states)
            && state == DataState::Aged
        {
            list.push("aged tables: after the published write phase".to_owned());
        }
        if let Some(rate) = first.and_then(rate).filter(|_| !self.rates) {
            list.push(format!(
                "open loop at {rate} ops/s, latency from the scheduled start"
            ));
        }
        match self.plan.transport {
            Transport::Socket => {}
            Transport::Tcp => list.push("over TCP".to_owned()),
            Transport::Tls => list.push("over TLS".to_owned()),
        }
        if self.plan.order == CellOrder::Published && !self.plan.work.is_embedded() {
            list.push(
                "published order: each cell starts from the tables that earlier cells left"
                    .to_owned(),
            );
        }
        if let Some(pins) = &self.plan.pins {
            // What works an embedded engine is in its own process.
            list.push(if self.plan.work.is_embedded() {
                format!("pinned to core {}", cores(&pins.server))
            } else {
                format!(
                    "pinned: server to core {}, client to core {}",
                    cores(&pins.server),
                    cores(&pins.client)
                )
            });
        }
        if !self.plan.jobs.is_one() {
            let threads = self.plan.jobs.most;
            list.push(format!("up to {threads} threads of the client"));
        }
        list.extend(self.limits());
        list.extend(self.burns());
        list.extend(self.plan.experiment.as_ref().map(origin::part));
        if let Some(run) = &self.plan.confirms {
            list.push(format!("measures the changes of run {run} again"));
        }
        if let Some(part) = &self.plan.sensitivity {
            list.push(format!(
                "measures what changed in run {} {}",
                part.of,
                part.varied.words()
            ));
        }
        list
    }

    /// What servers may use of the machine, and what their caches hold.
    fn limits(&self) -> Vec<String> {
        let limits = &self.plan.limits;
        let mut list = Vec::new();
        let optional = if limits.or_without {
            ", where the machine allows it"
        } else {
            ""
        };
        if let Some(bytes) = limits.memory_bytes {
            list.push(format!(
                "{} MB of memory for each {}, page cache included{optional}",
                bytes >> 20,
                words::server(self.plan)
            ));
        }
        if let Some(storage) = &limits.storage {
            list.push(format!("storage {}{optional}", storage.name));
        }
        match self.plan.cache {
            CacheState::AsIs => {}
            CacheState::Cold => list.push("cold: caches emptied before each visit".to_owned()),
            CacheState::Prewarmed => list.push("prewarmed before each visit".to_owned()),
        }
        list
    }

    /// Servers that are made slower on purpose.
    fn burns(&self) -> Vec<String> {
        let servers = ServerId::each().zip(&self.plan.servers);
        servers
            .filter_map(|(id, server)| {
                let burn_ns = server.burn_ns.filter(|burn_ns| *burn_ns > 0)?;
                let (name, target) = (self.plan.server_name(id), resolved(self.plan, id));
                let of = match name == target {
                    true => name,
                    false => format!("{name} ({target})"),
                };
                Some(format!(
                    "{of} burns {burn_ns} ns of CPU more for each message, on purpose"
                ))
            })
            .collect()
    }
}

/// The scheduled rate of a cell as it is printed.
fn rate(cell: &Cell) -> Option<String> {
    cell.rate.map(|rate| {
        let text = format!("{rate:.1}");
        text.strip_suffix(".0").unwrap_or(&text).to_owned()
    })
}

fn cores(cores: &[usize]) -> String {
    let texts: Vec<String> = cores.iter().map(ToString::to_string).collect();
    texts.join(",")
}
