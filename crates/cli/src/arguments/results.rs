//! What is done with runs in the lab: `resume`, `confirm`, `report`, `notes`, `export`, `invalidate`,
//! `ledger`.

use super::conditions::{Output, Servers};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use deltabench_kinds::FORMS;
use deltabench_kinds::shown::Form;
use deltabench_report::JsonVersion;
use std::path::PathBuf;
use std::sync::LazyLock;

/// `deltabench resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The run, or the beginning of its name, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
    /// Where the results go
    #[command(flatten, next_help_heading = "Output")]
    pub output: Output,
}

/// `deltabench confirm`.
#[derive(Debug, Args)]
pub struct Confirm {
    /// The run, or the beginning of its name, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Start this long after the end of the run, for example 2h [default: at once]
    #[arg(long, value_name = "TIME")]
    pub gap: Option<String>,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
    /// Where the results go
    #[command(flatten, next_help_heading = "Output")]
    pub output: Output,
}

/// `deltabench report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Runs or experiments, or the beginning of a name, or `last`; LAB:RUN is a run of another lab; several
    /// make one report
    #[arg(default_value = "last", value_name = "RUN")]
    pub runs: Vec<String>,
    /// Only the tables along this axis
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Version of the JSON report; 1 is for older scripts
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub json_version: u8,
    /// Write it here instead of stdout
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What each operation cost (CPU, context switches, reads, KB read and written), as a table
    #[arg(long)]
    pub costs: bool,
    /// Judge again with this smallest change that matters
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<String>,
    /// Judge again relative to this target of the run, for example `postgres:17.5`
    #[arg(long, value_name = "TARGET")]
    pub base: Option<String>,
    /// In the text form: every note and the whole reason of each cell
    #[arg(long)]
    pub verbose: bool,
    /// With --format pgbench: a progress line for every SECONDS of measured time
    #[arg(long, value_name = "SECONDS")]
    pub progress: Option<f64>,
}

/// `deltabench notes`.
#[derive(Debug, Args)]
pub struct Notes {
    /// The run, or the beginning of its name, or `last`; of an experiment all its runs
    #[arg(default_value = "last")]
    pub run: String,
}

/// `deltabench export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The runs: names, beginnings of names, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub runs: Vec<String>,
    /// One SQLite file, or a directory with a CSV file for each table
    #[arg(long, value_enum, default_value_t = ExportFormat::Sqlite)]
    pub format: ExportFormat,
    /// The file or directory to write
    #[arg(long, value_name = "PATH")]
    pub out: PathBuf,
    /// Overwrite an earlier export
    #[arg(long)]
    pub force: bool,
}

/// `deltabench invalidate`.
#[derive(Debug, Args)]
pub struct InvalidateArguments {
    /// The run, or the beginning of its name, or `last`
    pub run: String,
    /// Only this cell, at all numbers of clients or at one; may be repeated [default: the whole run]
    #[arg(long = "cell", value_name = "NAME[@CLIENTS]")]
    pub cells: Vec<String>,
    /// The reason; every report shows it
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// `deltabench ledger`.
#[derive(Debug, Args)]
pub struct LedgerArguments {
    /// Also count runs of other hosts in this lab
    #[arg(long)]
    pub all_hosts: bool,
    /// Write JSON here; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What the columns of a study's table stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Versions, builds, configurations, settings.
    Server,
    /// Numbers of clients.
    Clients,
    /// What differs between parts: rows, memory, storage.
    Part,
    /// Machines.
    Host,
}

impl By {
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Clients => "clients",
            Self::Part => "part",
            Self::Host => "host",
        }
    }
}

impl From<By> for deltabench_compare::study::Axis {
    fn from(by: By) -> Self {
        match by {
            By::Server => Self::Servers,
            By::Clients => Self::Clients,
            By::Part => Self::Part,
            By::Host => Self::Host,
        }
    }
}

/// Form of a report.
#[derive(Debug, Clone, Copy)]
pub enum Format {
    /// One that every run has.
    House(deltabench_report::Format),
    /// One that some kind of benchmark has.
    OfKind(Form),
}

impl Format {
    /// Whether it is the table for a terminal.
    pub fn is_text(self) -> bool {
        matches!(self, Self::House(deltabench_report::Format::Text))
    }

    /// Whether it is the JSON contract.
    pub fn is_json(self) -> bool {
        matches!(self, Self::House(deltabench_report::Format::Json(_)))
    }
}

/// Every form, those of kinds last.
static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| {
    use deltabench_report::Format as House;
    let house = [
        House::Text,
        House::Json(JsonVersion::Two),
        House::Html,
        House::Markdown,
        House::Csv,
        House::Junit,
        House::Benchstat,
    ];
    let of_kinds = FORMS.map(Format::OfKind);
    house
        .map(Format::House)
        .into_iter()
        .chain(of_kinds)
        .collect()
});

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &FORMATS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        use deltabench_report::Format as House;
        let house = match self {
            Self::OfKind(form) => return Some(PossibleValue::new(form.name).help(form.about)),
            Self::House(house) => house,
        };
        let value = PossibleValue::new(house.word());
        Some(match house {
            House::Text => value.help("Table for a terminal").alias("terminal"),
            House::Json(_) => value.help("The JSON contract"),
            House::Html => value.help("One offline page"),
            House::Markdown => value.help("For a pull request or a blog post"),
            House::Csv => value.help("A row for each cell and metric"),
            House::Junit => value.help("Test cases for CI: JUnit's XML"),
            House::Benchstat => value.help("Go's benchmark format, for benchstat"),
            House::OfKind(_) => return None,
        })
    }
}

impl Report {
    /// The form that was asked for.
    pub fn form(&self) -> deltabench_report::Format {
        use deltabench_report::Format as House;
        match self.format {
            Format::House(House::Json(_)) => House::Json(JsonVersion::of(self.json_version)),
            Format::House(house) => house,
            Format::OfKind(form) => House::OfKind(form.name),
        }
    }
}

/// Form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A file that any SQLite client, pandas and DuckDB read.
    Sqlite,
    /// CSV files.
    CsvDir,
}
