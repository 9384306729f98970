//! Experiment files: what they say, what is refused, what they come to.
// The lints' exception for tests stops at helper functions.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod benchmarks;
mod examples;
mod expansion;
mod guide;
mod only;
mod refusals;
mod rocksdb;
mod scales;
mod starter;

use deltabench_experiment::Experiment;

/// The head of every file.
const HEAD: &str = "format = \"deltabench.experiment\"\nversion = 1\nname = \"x\"\n";

/// A study that uses most of the format.
const STUDY: &str = r#"format = "deltabench.experiment"
version = 1
name = "small-server-cached"
about = "14 to 18, all in memory"
source = "Small Datum, May 2025"
base = "postgres:14.0"

[[servers]]
target = ["postgres:14.0", "postgres:14"]
configuration = "cx10a_c8r32"

[[servers]]
target = "postgres:18"
configuration = ["cx10b_c8r32", "cx10c_c8r32"]
settings = { io_workers = [2, 4], Work_Mem = "64MB", jit = false, pg_stat_statements.track = "all" }
optional = true

[[servers]]
target = "postgres:18+mine"
label = "18 mine"

[configurations.tuned]
include = ["cx10a_c8r32"]
set = { work_mem = "64MB", shared_buffers = "25%", random_page_cost = 1.1 }
unset = ["vacuum_buffer_usage_limit"]

[builds.mine]
system = "meson"
cflags = "-O3"
ldflags = ""
options = ["-Dlz4=enabled"]
compiler = "gcc-12"
environment = { AR = "gcc-ar" }

[workloads]
set = "published"
files = ["my-workload.toml"]
clients = [1, 4]
order = "published"
state = "aged"

[[workloads.variant]]
of = "read-only-100"
range = [100, 10_000]

[data]
rows = [200_000, 50_000_000]
tables = 8

[limits]
storage = ["gp3-3000", "as-is"]
memory = ["2GB", "none"]
cache = "cold"
optional = true

[measurement]
repetitions = 2
blocks = 12
precision = "1%"
budget = "2h"
delta = "2%"
visit_seconds = 1.5
slice_ms = 40
rate = 1000
transport = "tls"
checksums = "default"
placement = "split"
jobs = 2
probes = true
waits = 10
counters = false
count = true
seed = 7

[scale.tiny]
data.rows = 20_000
limits = { memory = "none", storage = "as-is" }
workloads = { only = ["point-query"], clients = 1 }
measurement = { blocks = 6, fixed = true, visit_seconds = 0.4 }

[scale.small.measurement]
repetitions = 1
"#;

fn read(text: &str) -> Experiment {
    Experiment::read("x.toml", text, None).unwrap()
}

/// A file with this after its head.
fn with(rest: &str) -> Experiment {
    read(&format!("{HEAD}{rest}"))
}

fn names(experiment: &Experiment) -> Vec<String> {
    let servers = experiment.servers().iter();
    servers.map(|server| server.name()).collect()
}

/// What the user is told of a file that is refused.
fn refused(text: &str) -> String {
    Experiment::read("x.toml", text, None)
        .unwrap_err()
        .to_string()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}
