//! Which transactions are measured, how they are sent, and what is refused.

use deltabench_model::problem::{Problem, nearest};
use deltabench_model::units::to_u64;
use deltabench_model::work::orders::{OrdersForm, OrdersSetup};
use deltabench_model::work::pgbench::{
    PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables, QueryMode,
};
use deltabench_workload::orders::scripts::{Transaction, script};

/// Clients of one warehouse at most: the terminals that the specification gives it (clause 4.2.1).
pub const TERMINALS: u32 = 10;

/// Most warehouses: a run loads at most 10 billion rows. Their tables are about 2 TB.
pub const WAREHOUSES_MAX: u32 = 20_000;

/// Warehouses of a request that does not say how many: deliveries alone last for a visit.
pub const WAREHOUSES: u32 = 4;

/// Tries of a transaction that failed because of a deadlock: with the same numbers each time.
pub const MAX_TRIES: u32 = 10;

/// What the mix of all transactions is called.
pub const MIX: &str = "mix";

/// Before the name of each workload.
const PREFIX: &str = "orders-";

/// What a request says of order entry.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub warehouses: u32,
    pub form: OrdersForm,
    /// Names of transactions, and [`MIX`]; empty: all.
    pub only: Vec<String>,
    pub foreign_keys: bool,
    pub mode: QueryMode,
    /// Most tries of a transaction that failed for serialization or a deadlock.
    pub max_tries: u32,
    /// Transactions that take longer are late, milliseconds.
    pub latency_limit_ms: Option<f64>,
}

/// All that a run does, as a plan stores it.
///
/// Errors: a name that is no transaction's, one that is named twice.
pub fn setup(wanted: &Wanted) -> Result<OrdersSetup, Problem> {
    let form = wanted.form;
    let names = names(&wanted.only)?;
    let mut setup = OrdersSetup {
        warehouses: 0,
        form,
        foreign_keys: wanted.foreign_keys,
        scripts: PgbenchSetup {
            tables: PgbenchTables {
                scale: 0,
                ..PgbenchTables::default()
            },
            mixes: names.iter().map(|name| mix(name, form)).collect(),
            mode: wanted.mode,
            variables: Vec::new(),
            max_tries: wanted.max_tries,
            shared_names: true,
            reconnects: false,
            latency_limit_ms: wanted.latency_limit_ms,
            writes: false,
        },
    };
    setup.resize(wanted.warehouses);
    Ok(setup)
}

/// The mix, then each transaction.
pub fn all_names() -> Vec<&'static str> {
    let each = Transaction::ALL.into_iter().map(Transaction::name);
    std::iter::once(MIX).chain(each).collect()
}

fn names(only: &[String]) -> Result<Vec<&'static str>, Problem> {
    let known = all_names();
    if only.is_empty() {
        return Ok(known);
    }
    let mut found: Vec<&'static str> = Vec::new();
    for asked in only {
        let plain = asked.strip_prefix(PREFIX).unwrap_or(asked);
        let Some(&name) = known.iter().find(|name| **name == plain) else {
            let problem = Problem::new(format!("there is no transaction `{asked}`"))
                .detail(format!("there are {}", known.join(", ")));
            return Err(match nearest(plain, known) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem,
            });
        };
        if found.contains(&name) {
            return Err(
                Problem::new(format!("{name} is named twice")).hint("leave one of them out")
            );
        }
        found.push(name);
    }
    Ok(found)
}

fn mix(name: &str, form: OrdersForm) -> PgbenchMix {
    let drawn = |transaction: &Transaction| name == MIX || name == transaction.name();
    let scripts = Transaction::ALL.into_iter().filter(drawn);
    PgbenchMix {
        name: workload_of(name),
        scripts: scripts
            .map(|transaction| PgbenchScript {
                source: script(transaction, form),
                weight: transaction.weight(),
            })
            .collect(),
    }
}

/// The transaction that a workload consists of; absent for the mix.
pub fn transaction_of(workload: &str) -> Option<Transaction> {
    let name = workload.strip_prefix(PREFIX)?;
    let mut all = Transaction::ALL.into_iter();
    all.find(|transaction| transaction.name() == name)
}

/// The workload of a transaction, or of [`MIX`].
pub fn workload_of(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Whether a workload changes data.
pub fn writes(workload: &str) -> bool {
    transaction_of(workload).is_none_or(Transaction::writes)
}

/// Seconds from one transaction of a terminal to the next on average, without its response time.
///
/// Source: clause 5.2.5.7 of the specification, minimum keying times and mean think times, by weight.
pub fn mean_cycle_seconds() -> f64 {
    let seconds = |transaction| match transaction {
        Transaction::NewOrder => 18.0 + 12.0,
        Transaction::Payment => 3.0 + 12.0,
        Transaction::OrderStatus => 2.0 + 10.0,
        Transaction::Delivery | Transaction::StockLevel => 2.0 + 5.0,
    };
    let all = Transaction::ALL.into_iter();
    all.map(|transaction| f64::from(transaction.weight()) / 100.0 * seconds(transaction))
        .sum()
}

/// Statements of a workload's operation on average, those that no transaction leaves out: the branches of a
/// script are drawn by their shares.
///
/// Source: the scripts, with 10 lines of an order, 1 of 100 taken back, 60 of 100 customers by name.
fn statements(workload: &str, form: OrdersForm) -> f64 {
    let of = |transaction| match (form, transaction) {
        (OrdersForm::Functions, _) => 1.0,
        (_, Transaction::NewOrder) => 7.0 + 3.0 * 10.0 - 0.01 * 2.0,
        (_, Transaction::Payment) => 9.0 + 0.6,
        (_, Transaction::OrderStatus) => 5.0 + 0.6,
        (_, Transaction::Delivery) => 2.0 + 7.0 * 10.0,
        (_, Transaction::StockLevel) => 4.0,
    };
    let weighted =
        |transaction: Transaction| f64::from(transaction.weight()) / 100.0 * of(transaction);
    match transaction_of(workload) {
        Some(transaction) => of(transaction),
        None => Transaction::ALL.into_iter().map(weighted).sum(),
    }
}

/// Statements of a workload's operation on average, to the nearest.
pub fn whole_statements(workload: &str, form: OrdersForm) -> u32 {
    u32::try_from(to_u64(statements(workload, form).round())).unwrap_or(u32::MAX)
}

/// Refuses sizes that mean nothing.
///
/// Errors: no warehouse or too many, more clients than their terminals.
pub fn check(setup: &OrdersSetup, clients: &[u32]) -> Result<(), Problem> {
    let warehouses = setup.warehouses;
    if !(1..=WAREHOUSES_MAX).contains(&warehouses) {
        return Err(
            Problem::new(format!("{warehouses} warehouses are out of range"))
                .hint(format!("use --warehouses between 1 and {WAREHOUSES_MAX}")),
        );
    }
    let most = clients.iter().copied().max().unwrap_or(0);
    if u64::from(most) > u64::from(warehouses) * u64::from(TERMINALS) {
        let needed = most.div_ceil(TERMINALS);
        let what = format!("{warehouses} warehouses are too few for {most} clients");
        return Err(Problem::new(what)
            .detail(format!(
                "the specification gives each warehouse {TERMINALS} terminals; more clients would \
                 measure how they wait for each other's rows"
            ))
            .hint(format!(
                "use --warehouses {needed} or more, or fewer clients"
            )));
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn wanted(warehouses: u32) -> Wanted {
        Wanted {
            warehouses,
            form: OrdersForm::Statements,
            only: Vec::new(),
            foreign_keys: false,
            mode: QueryMode::Prepared,
            max_tries: MAX_TRIES,
            latency_limit_ms: None,
        }
    }

    #[test]
    fn the_mix_has_all_transactions_and_each_is_a_workload_of_its_own() {
        let setup = setup(&wanted(2)).unwrap();
        let mixes = &setup.scripts.mixes;
        let names: Vec<&str> = mixes.iter().map(|mix| mix.name.as_str()).collect();
        assert_eq!(
            names[..3],
            ["orders-mix", "orders-new-order", "orders-payment"]
        );
        assert_eq!(names.len(), 6);
        let weights = mixes[0].scripts.iter().map(|script| script.weight);
        assert_eq!(weights.sum::<u32>(), 100);
        assert!(mixes[1..].iter().all(|mix| mix.scripts.len() == 1));
        let read: Vec<&&str> = names.iter().filter(|name| !writes(name)).collect();
        assert_eq!(read, [&"orders-order-status", &"orders-stock-level"]);
    }

    #[test]
    fn a_terminal_begins_a_transaction_about_every_21_seconds() {
        assert!((mean_cycle_seconds() - 20.99).abs() < 1e-9);
    }

    #[test]
    fn a_function_is_one_statement_and_the_mix_about_24_of_the_client() {
        let mix = workload_of(MIX);
        assert!((statements(&mix, OrdersForm::Statements) - 24.03).abs() < 0.01);
        assert!((statements(&mix, OrdersForm::Functions) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn deliveries_alone_end_before_the_orders_of_their_warehouses_do() {
        use deltabench_model::work::Work;
        let work = Work::Orders(setup(&wanted(2)).unwrap());
        let most = |name: &str| work.operations_max(&workload_of(name));
        assert_eq!(most(Transaction::Delivery.name()), Some(1600));
        assert_eq!((most(MIX), most(Transaction::Payment.name())), (None, None));
        assert_eq!(
            work.on_small_tables()
                .operations_max(&workload_of("delivery")),
            Some(800)
        );
    }

    #[test]
    fn names_that_are_not_there_or_there_twice_are_refused() {
        let only = |names: &[&str]| {
            let only = names.iter().map(|&name| name.to_owned()).collect();
            setup(&Wanted { only, ..wanted(1) }).map(|setup| setup.scripts.mixes.len())
        };
        assert_eq!(only(&["mix", "orders-payment"]), Ok(2));
        let refused = only(&["new-oder"]).unwrap_err();
        assert_eq!(refused.hint.as_deref(), Some("did you mean `new-order`?"));
        assert!(only(&["payment", "orders-payment"]).is_err());
    }

    #[test]
    fn more_clients_than_terminals_are_refused_with_the_number_that_serves() {
        let setup = setup(&wanted(2)).unwrap();
        assert_eq!(check(&setup, &[1, 20]), Ok(()));
        let refused = check(&setup, &[1, 21]).unwrap_err();
        assert!(refused.hint.unwrap().contains("--warehouses 3"));
        let none = OrdersSetup {
            warehouses: 0,
            ..setup
        };
        assert!(check(&none, &[1]).is_err());
    }
}
