//! Studies as several runs would give them, made by hand.

use crate::fixture::{Noise, ratio};
use deltabench_compare::comparison::{Metric, Ratio, Verdict};
use deltabench_compare::study::{
    Axis, Column, Figure, GroupSpread, Spread, SpreadOf, Study, StudyRow, StudyTable,
};
use deltabench_model::plan::{Group, WorkloadSource};
use deltabench_report::{StudyContext, StudyRunFacts};

const POINT: [&str; 9] = [
    "hot-points",
    "point-query",
    "points-covered-pk",
    "points-covered-si",
    "points-notcovered-pk",
    "points-notcovered-si",
    "random-points-10",
    "random-points-100",
    "random-points-1000",
];
const RANGE: [&str; 5] = [
    "range-covered-pk",
    "range-covered-si",
    "range-notcovered-pk",
    "range-notcovered-si",
    "scan",
];
const RANGE_AGG: [&str; 8] = [
    "read-only-10",
    "read-only-100",
    "read-only-10000",
    "read-only-count",
    "read-only-distinct",
    "read-only-order",
    "read-only-simple",
    "read-only-sum",
];
const WRITE: [&str; 10] = [
    "delete",
    "insert",
    "read-write-10",
    "read-write-100",
    "update-index",
    "update-inlist",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
];

fn workloads() -> Vec<(&'static str, Group)> {
    let of = |names: &'static [&'static str], group| names.iter().map(move |name| (*name, group));
    of(&POINT, Group::Point)
        .chain(of(&RANGE, Group::Range))
        .chain(of(&RANGE_AGG, Group::RangeAgg))
        .chain(of(&WRITE, Group::Write))
        .collect()
}

/// A figure with the change and half-width given, judged by the usual rules at δ = 3 %.
pub fn judged(change: f64, half: f64, absolute: f64) -> Figure {
    let ratio = ratio(change, half);
    let (low, high) = ratio.ci95.unwrap();
    let (low90, high90) = ratio.ci90.unwrap();
    let verdict = if high < 1.0 / 1.03 {
        Verdict::Regression
    } else if low > 1.03 {
        Verdict::Improvement
    } else if low90 > 1.0 / 1.03 && high90 < 1.03 {
        Verdict::NoChange
    } else {
        Verdict::Inconclusive
    };
    Figure {
        verdict: Some(verdict),
        ..plain(ratio, absolute * ratio.estimate)
    }
}

fn plain(ratio: Ratio, absolute: f64) -> Figure {
    Figure {
        ratio,
        absolute,
        relative: None,
        verdict: None,
        repetitions: 1,
        efficiency: None,
        cpu: None,
        switches: None,
        per_cost: None,
    }
}

fn one() -> Ratio {
    Ratio {
        estimate: 1.0,
        ci95: None,
        ci90: None,
    }
}

fn columns(names: &[&str]) -> Vec<Column> {
    names
        .iter()
        .map(|name| Column {
            name: (*name).to_owned(),
            cost_per_month: None,
            measured: Vec::new(),
        })
        .collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// A small table of each kind, with every kind of figure in it.
pub fn small() -> Study {
    let servers = servers();
    let spreads = spreads(&servers);
    Study {
        name: "small-server-cached".to_owned(),
        tables: vec![servers, clients(), storage()],
        grids: Vec::new(),
        spreads,
        notes: vec![
            "of 2 parts 1 is missing: storage gp3-16000".to_owned(),
            "every figure comes from one load of the data".to_owned(),
        ],
    }
}

fn servers() -> StudyTable {
    let row = |name: &str, group, base: f64, figures: [Option<Figure>; 3]| {
        let mut all = vec![Some(plain(one(), base))];
        all.extend(figures);
        StudyRow {
            name: name.to_owned(),
            group,
            figures: all,
        }
    };
    let unfit = Figure {
        verdict: Some(Verdict::Unfit),
        ..judged(-0.02, 0.02, 5230.0)
    };
    let mut alone = judged(0.01, 0.02, 3020.0);
    (alone.ratio.ci95, alone.verdict) = (None, Some(Verdict::Inconclusive));
    let figure = |change, half, base| Some(judged(change, half, base));
    StudyTable {
        axis: Axis::Servers,
        axis_name: "server".to_owned(),
        title: "throughput relative to postgres:14.0, 1 client".to_owned(),
        metric: Metric::Throughput,
        worker: "client",
        coordinates: pairs(&[("clients", "1")]),
        columns: columns(&[
            "postgres:14.0",
            "postgres:17.5",
            "postgres:18.6 cx10b_c8r32",
            "postgres:18.6 cx10c_c8r32 io_workers=16",
        ]),
        base: 0,
        of_ratios: false,
        rows: vec![
            row(
                "point-query",
                Group::Point,
                21_400.0,
                [
                    figure(0.004, 0.006, 21_400.0),
                    figure(-0.07, 0.004, 21_400.0),
                    figure(0.08, 0.005, 21_400.0),
                ],
            ),
            row(
                "hot-points",
                Group::Point,
                5230.0,
                [Some(unfit), None, figure(-0.055, 0.03, 5230.0)],
            ),
            row(
                "range-covered-si",
                Group::Range,
                6890.0,
                [
                    figure(-0.055, 0.009, 6890.0),
                    figure(-0.061, 0.08, 6890.0),
                    Some(plain(ratio(-0.01, 0.02), 6800.0)),
                ],
            ),
            row(
                "update-index",
                Group::Write,
                2210.0,
                [
                    figure(-0.014, 0.045, 2210.0),
                    Some(alone),
                    figure(1.4, 0.12, 2210.0),
                ],
            ),
        ],
        notes: vec!["hot-points on postgres:17.5 is withdrawn: another job ran".to_owned()],
    }
}

fn clients() -> StudyTable {
    let figure = |clients: f64, efficiency: f64, cpu: f64, half: f64| {
        let scaled = clients * efficiency;
        let mut figure = plain(ratio(scaled - 1.0, half), 5000.0 * scaled);
        figure.efficiency = Some(efficiency);
        figure.cpu = Some(ratio(cpu, half));
        Some(figure)
    };
    let row = |name: &str, group, loss: f64| {
        let mut first = plain(one(), 5000.0);
        first.efficiency = Some(1.0);
        StudyRow {
            name: name.to_owned(),
            group,
            figures: vec![
                Some(first),
                figure(4.0, 1.0 - loss, loss / 2.0, 0.006),
                figure(16.0, 1.0 - 3.0 * loss, loss, 0.012),
            ],
        }
    };
    StudyTable {
        axis: Axis::Clients,
        axis_name: "clients".to_owned(),
        title: "throughput of postgres:18.6 relative to 1 client".to_owned(),
        metric: Metric::Throughput,
        worker: "client",
        coordinates: pairs(&[("server", "postgres:18.6")]),
        columns: columns(&["1", "4", "16"]),
        base: 0,
        of_ratios: false,
        rows: vec![
            row("point-query", Group::Point, 0.02),
            row("update-index", Group::Write, 0.17),
        ],
        notes: vec!["both sides are from different visits of one block".to_owned()],
    }
}

fn storage() -> StudyTable {
    let prices = [
        ("gp3-3000", 442.32),
        ("gp3-10000", 492.32),
        ("nvme", 551.15),
    ];
    let row = |name: &str, base: f64, changes: [f64; 2]| {
        let figure = |(place, change): (usize, f64)| {
            let mut figure = plain(ratio(change, 0.05), base * (1.0 + change));
            figure.per_cost = Some(figure.absolute / prices[place].1);
            Some(figure)
        };
        let mut first = plain(one(), base);
        first.per_cost = Some(base / prices[0].1);
        let mut figures = vec![Some(first)];
        figures.extend((1..).zip(changes).map(figure));
        StudyRow {
            name: name.to_owned(),
            group: Group::RangeAgg,
            figures,
        }
    };
    StudyTable {
        axis: Axis::Part,
        axis_name: "storage".to_owned(),
        title: "throughput of postgres:18.6 relative to storage gp3-3000, 10 clients".to_owned(),
        metric: Metric::Throughput,
        worker: "client",
        coordinates: pairs(&[("server", "postgres:18.6"), ("clients", "10")]),
        columns: prices
            .iter()
            .map(|(name, cost)| Column {
                name: (*name).to_owned(),
                cost_per_month: Some(*cost),
                measured: Vec::new(),
            })
            .collect(),
        base: 0,
        of_ratios: false,
        rows: vec![
            row("read-only-100", 310.0, [1.1, 3.7]),
            row("read-only-10000", 4.2, [0.9, 2.2]),
        ],
        notes: vec!["different runs: the machine's state differs too".to_owned()],
    }
}

/// The spreads of a table as [`deltabench_compare::study`] would make them.
fn spreads(table: &StudyTable) -> Vec<GroupSpread> {
    let of = |of: SpreadOf| GroupSpread {
        table: table.title.clone(),
        of,
        columns: (0..table.columns.len())
            .map(|column| {
                let rows = table.rows.iter();
                let rows = rows.filter(|row| of.has(row.group));
                let figures = rows.filter_map(|row| row.figures[column]);
                let usable = figures.filter(|figure| figure.verdict != Some(Verdict::Unfit));
                spread(
                    &usable
                        .map(|figure| figure.ratio.estimate)
                        .collect::<Vec<_>>(),
                )
            })
            .collect(),
    };
    let has = |group: Group| table.rows.iter().any(|row| row.group == group);
    let both = has(Group::Range) && has(Group::RangeAgg);
    let all = SpreadOf::EACH.into_iter();
    let all = all.filter(|of| *of != SpreadOf::Ranges || both).map(of);
    all.filter(|spread| spread.columns.iter().any(Option::is_some))
        .collect()
}

fn spread(ratios: &[f64]) -> Option<Spread> {
    let mut sorted = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = f64::from(u32::try_from(sorted.len()).unwrap());
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let average = sorted.iter().sum::<f64>() / n;
    let squares: f64 = sorted.iter().map(|one| (one - average).powi(2)).sum();
    let mean = sorted.iter().map(|one| one.ln()).sum::<f64>() / n;
    Some(Spread {
        count: u32::try_from(sorted.len()).unwrap(),
        average,
        median: (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0,
        min,
        max,
        stddev: (sorted.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
        geometric: Some(ratio(mean.exp_m1(), 0.003)),
    })
}

const SERVERS: [&str; 15] = [
    "postgres:14.0 cx10a_c8r32",
    "postgres:14.18 cx10a_c8r32",
    "postgres:15.0 cx10a_c8r32",
    "postgres:15.13 cx10a_c8r32",
    "postgres:16.0 cx10a_c8r32",
    "postgres:16.9 cx10a_c8r32",
    "postgres:17.0 cx10a_c8r32",
    "postgres:17.5 cx10a_c8r32",
    "postgres:18.6 cx10b_c8r32",
    "postgres:18.6 cx10c_c8r32 io_workers=2",
    "postgres:18.6 cx10c_c8r32 io_workers=4",
    "postgres:18.6 cx10c_c8r32 io_workers=8",
    "postgres:18.6 cx10c_c8r32 io_workers=16",
    "postgres:18.6 cx10c_c8r32 io_workers=32",
    "postgres:18.6 cx10d_c8r32",
];

/// Fifteen servers, 32 workloads, three numbers of clients, storage with prices, two machines.
pub fn large() -> Study {
    let mut noise = Noise(5);
    let mut tables = Vec::new();
    for clients in ["1", "4", "16"] {
        for metric in [Metric::Throughput, Metric::ServerCpuPerOperation] {
            tables.push(large_servers(clients, metric, &mut noise));
        }
    }
    for server in [0, 7, 9] {
        tables.push(large_clients(SERVERS[server], &mut noise));
    }
    tables.push(storage());
    tables.push(between_hosts(&mut noise));
    let spreads = tables.iter().filter(|table| table.axis == Axis::Servers);
    Study {
        name: "small-server-cached".to_owned(),
        spreads: spreads.flat_map(spreads_of).collect(),
        tables,
        grids: Vec::new(),
        notes: small().notes,
    }
}

fn spreads_of(table: &StudyTable) -> Vec<GroupSpread> {
    spreads(table)
}

fn large_servers(clients: &str, metric: Metric, noise: &mut Noise) -> StudyTable {
    let name = if metric == Metric::Throughput {
        "throughput"
    } else {
        "CPU per operation"
    };
    let rows = workloads().into_iter().map(|(name, group)| {
        let base = 3000.0 + 200.0 * noise.next();
        let mut figures = vec![Some(plain(one(), base))];
        figures.extend((1..SERVERS.len()).map(|server| {
            let drift = if server > 7 && group == Group::Range {
                -0.06
            } else {
                0.0
            };
            let half = 0.004 + 0.01 * noise.next().abs();
            Some(judged(drift + 0.03 * noise.next(), half, base))
        }));
        StudyRow {
            name: name.to_owned(),
            group,
            figures,
        }
    });
    StudyTable {
        axis: Axis::Servers,
        axis_name: "server".to_owned(),
        title: format!("{name} relative to postgres:14.0 cx10a_c8r32, {clients} clients"),
        metric,
        worker: "client",
        coordinates: pairs(&[("clients", clients)]),
        columns: columns(&SERVERS),
        base: 0,
        of_ratios: false,
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

fn large_clients(server: &str, noise: &mut Noise) -> StudyTable {
    let counts = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 32.0, 40.0, 48.0];
    let rows = workloads().into_iter().map(|(name, group)| {
        let loss = 0.006 + 0.004 * noise.next().abs();
        let figures = counts.iter().map(|clients: &f64| {
            let efficiency = 1.0 / (1.0 + loss * (clients - 1.0));
            let scaled = clients * efficiency;
            let value = if *clients > 1.0 {
                ratio(scaled - 1.0, 0.01)
            } else {
                one()
            };
            let mut figure = plain(value, 3000.0 * scaled);
            figure.efficiency = Some(efficiency);
            figure.cpu = Some(ratio(1.0 / efficiency - 1.0, 0.01));
            Some(figure)
        });
        StudyRow {
            name: name.to_owned(),
            group,
            figures: figures.collect(),
        }
    });
    StudyTable {
        title: format!("throughput of {server} relative to 1 client"),
        coordinates: pairs(&[("server", server)]),
        columns: columns(&["1", "2", "4", "8", "12", "16", "20", "24", "32", "40", "48"]),
        rows: rows.collect(),
        ..clients()
    }
}

fn between_hosts(noise: &mut Noise) -> StudyTable {
    let rows = workloads().into_iter().map(|(name, group)| {
        let figure = |change: f64| {
            let mut figure = plain(ratio(change, 0.012), 3000.0);
            figure.relative = Some(ratio(0.02 + change, 0.008));
            Some(figure)
        };
        let mut first = figure(0.0).unwrap();
        first.ratio = one();
        StudyRow {
            name: name.to_owned(),
            group,
            figures: vec![Some(first), figure(0.02 * noise.next())],
        }
    });
    StudyTable {
        axis: Axis::Host,
        axis_name: "host".to_owned(),
        title: "relative throughput of postgres:18.6 cx10b_c8r32 at host xeon / at host epyc"
            .to_owned(),
        metric: Metric::Throughput,
        worker: "client",
        coordinates: pairs(&[("server", "postgres:18.6 cx10b_c8r32"), ("clients", "1")]),
        columns: columns(&["epyc, 8 cores", "xeon, 2 cores"]),
        base: 0,
        of_ratios: true,
        rows: rows.collect(),
        notes: vec!["machine, kernel and time all differ".to_owned()],
    }
}

pub fn study_context() -> StudyContext {
    let run = |part: u32, storage: &str, page: bool| StudyRunFacts {
        run: format!("20261121-104{part}-7f3a"),
        state: "finished".to_owned(),
        part: Some((part, 2)),
        group: None,
        repetition: 1,
        coordinates: pairs(&[("storage", storage)]),
        began_unix_ms: None,
        host: "Intel Xeon, 2 cores, Linux 6.8".to_owned(),
        page: page.then(|| format!("../20261121-104{part}-7f3a/report.html")),
        withdrawn: None,
    };
    StudyContext {
        deltabench_version: "0.1.0".to_owned(),
        execution: "small-server-cached-20261121".to_owned(),
        about: Some("sysbench microbenchmarks, 14 to 18, all in memory".to_owned()),
        source: Some("Small Datum, May 2025".to_owned()),
        scale: Some("tiny".to_owned()),
        command: ["deltabench", "run", "examples/small-server-cached.toml"]
            .map(str::to_owned)
            .to_vec(),
        file: Some(WorkloadSource {
            file: "examples/small-server-cached.toml".to_owned(),
            text: "format = \"deltabench.experiment\"\nversion = 1\n".to_owned(),
        }),
        runs: vec![run(1, "gp3-3000", true), run(2, "nvme", false)],
    }
}
