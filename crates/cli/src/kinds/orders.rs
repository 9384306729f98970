//! `deltabench orders`: order entry on two servers or more.

pub mod arguments;
pub mod experiment;
mod passes;

use self::arguments::OrdersArguments;
use crate::config::Config;
use crate::failure::Failure;
use crate::kinds::factor::{Growth, factor};
use crate::kinds::sustained::{self, Typed};
use crate::ready::{Sides, carry_out};
use crate::request::without_workloads;
use deltabench_document::amounts;
use deltabench_experiment::kinds::ScaleFactor;
use deltabench_kinds::orders::setup::{
    MIX, WAREHOUSES, WAREHOUSES_MAX, Wanted, check, mean_cycle_seconds, setup,
};
use deltabench_model::plan::DataSize;
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use deltabench_model::work::Work;
use deltabench_model::work::orders::OrdersSetup;
use deltabench_run::planning::Request;
use deltabench_workload::orders::tables::{OrdersTable, estimate_bytes};

/// Transactions of a visit at least, at a pace.
const PACED_LEAST: f64 = 20.0;

/// Warehouses with `--quick`: their tables are made again faster, and deliveries last for a short visit.
const QUICK_WAREHOUSES: u32 = 2;

/// Warehouses from which on what each table takes at least no longer matters.
const WAREHOUSES_MEASURED: u32 = 100;

/// Measures order entry.
pub fn orders(mut arguments: OrdersArguments, config: &Config) -> Result<u8, Failure> {
    let asked = arguments.sustained.as_deref();
    sustained::configure(asked, &mut arguments.conditions).map_err(Failure::Refused)?;
    let request = request(&arguments).map_err(Failure::Refused)?;
    let sides = Sides {
        base: &arguments.base,
        candidates: &arguments.candidates,
        conditions: &arguments.conditions,
    };
    carry_out(request, &sides, &arguments.shape, config)
}

fn request(arguments: &OrdersArguments) -> Result<Request, Problem> {
    let request = without_workloads(&arguments.shape, &arguments.conditions, arguments.quick)?;
    let typed = Typed::new(
        arguments.sustained.as_ref(),
        arguments.quick,
        &arguments.shape,
        (&arguments.base, &arguments.candidates),
    );
    let request = sustained::sustained(&typed, request)?;
    let scale = match &arguments.warehouses {
        Some(text) => warehouses(text)?,
        None if arguments.quick => ScaleFactor::Factor(QUICK_WAREHOUSES),
        None => ScaleFactor::Factor(WAREHOUSES),
    };
    let only = passes::only(arguments.sustained.is_some(), &arguments.only)?;
    let rate = rate(arguments, &only, request.timing.visit_seconds)?;
    let setup = setup(&Wanted {
        warehouses: factor(scale, request.limits.memory_bytes, growth())?,
        form: arguments.form.into(),
        only,
        foreign_keys: arguments.foreign_keys,
        mode: arguments.protocol.into(),
        max_tries: arguments.max_tries,
        latency_limit_ms: arguments.latency_limit,
    })?;
    check(&setup, &arguments.clients)?;
    Ok(Request {
        rate,
        clients: arguments.clients.clone(),
        data: data(&setup),
        work: Work::Orders(setup),
        ..request
    })
}

/// `10`, `half-memory`, `twice-memory`.
fn warehouses(text: &str) -> Result<ScaleFactor, Problem> {
    match text.trim() {
        "half-memory" => Ok(ScaleFactor::HalfMemory),
        "twice-memory" => Ok(ScaleFactor::TwiceMemory),
        number => match amounts::whole_number(number).map(u32::try_from) {
            Some(Ok(number)) => Ok(ScaleFactor::Factor(number)),
            _ => Err(
                Problem::new(format!("`{number}` is not a number of warehouses"))
                    .hint("write for example --warehouses 10, half-memory or twice-memory"),
            ),
        },
    }
}

/// The rate of all clients together.
///
/// Errors: a pace for several numbers of clients, whose rates differ; one that means nothing.
fn rate(
    arguments: &OrdersArguments,
    only: &[String],
    visit_seconds: f64,
) -> Result<Option<f64>, Problem> {
    let Some(pace) = arguments.pace else {
        return Ok(arguments.rate);
    };
    if only != [MIX] {
        return Err(Problem::new(
            "--pace is that of the mix, and other workloads are measured too",
        )
        .hint("add --only mix, or use --rate"));
    }
    let [clients] = arguments.clients.as_slice() else {
        return Err(Problem::new(
            "--pace depends on the clients, and there are several numbers of them",
        )
        .hint("give one number of clients, or --rate"));
    };
    if !(pace.is_finite() && pace > 0.0) {
        return Err(Problem::new(format!("a pace of {pace} means nothing"))
            .hint("write for example --pace 1, or --pace 100 for a hundred times as fast"));
    }
    let rate = f64::from(*clients) * pace / mean_cycle_seconds();
    if rate * visit_seconds < PACED_LEAST {
        let what = format!(
            "{rate:.2} transactions per second are {:.0} in a visit",
            rate * visit_seconds
        );
        return Err(Problem::new(what)
            .detail(format!(
                "a visit lasts {visit_seconds} s, and {PACED_LEAST:.0} are needed"
            ))
            .hint("use more clients, a larger --pace, or --sustained 5m"));
    }
    Ok(Some(rate))
}

/// How the tables grow with the warehouses.
fn growth() -> Growth {
    Growth {
        unit_bytes: to_f64(estimate_bytes(WAREHOUSES_MEASURED)) / f64::from(WAREHOUSES_MEASURED),
        most: WAREHOUSES_MAX,
    }
}

/// All rows, as if they were in one table.
fn data(setup: &OrdersSetup) -> DataSize {
    let all = OrdersTable::ALL.into_iter();
    DataSize {
        tables: 1,
        rows: all.map(|table| table.nominal_rows(setup.warehouses)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warehouses_are_a_number_or_a_share_of_the_memory() {
        assert_eq!(warehouses("12"), Ok(ScaleFactor::Factor(12)));
        assert_eq!(warehouses("half-memory"), Ok(ScaleFactor::HalfMemory));
        for bad in ["many", "-1", "1.5", ""] {
            assert!(warehouses(bad).unwrap_err().hint.is_some(), "{bad}");
        }
        // The specification: a warehouse is about 100 MB.
        assert!((6e7..2e8).contains(&growth().unit_bytes));
    }
}
