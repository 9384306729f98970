//! Sizes: as they are written, and as presets have them.

use super::arguments::PublishedWord;
use deltabench_document::amounts::whole_number;
use deltabench_model::problem::Problem;
use deltabench_model::work::insert::{self, Pacing};

/// Sizes that hold where nothing else is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    pub clients: u32,
    pub rows: u64,
    /// Rows that each writes in l.i1 and l.i2.
    pub write_rows: u64,
    /// Seconds of a step of queries.
    pub seconds: u32,
    /// Least seconds to settle; absent: as published.
    pub settle_seconds: Option<u32>,
    /// How rates are kept.
    pub pacing: Pacing,
    pub passes: u32,
}

/// A few hours in all.
const USUAL: Preset = Preset {
    clients: 1,
    rows: insert::ROWS,
    write_rows: insert::WRITE_ROWS,
    seconds: insert::QUERY_SECONDS,
    settle_seconds: None,
    pacing: Pacing::Spread,
    passes: 6,
};

/// Minutes in all.
const QUICK: Preset = Preset {
    rows: 400_000,
    write_rows: 200_000,
    seconds: 20,
    settle_seconds: Some(10),
    passes: 3,
    ..USUAL
};

/// Source: docs/sources/insert-benchmark.md#steps.
const PUBLISHED: Preset = Preset {
    clients: 1,
    rows: 20_000_000,
    write_rows: 50_000_000,
    seconds: 1800,
    settle_seconds: None,
    pacing: Pacing::Burst,
    passes: 6,
};

impl Preset {
    /// The sizes of `--quick`, of a published study, or those that are usual.
    pub fn of(quick: bool, published: Option<PublishedWord>) -> Self {
        match published {
            None if quick => QUICK,
            None => USUAL,
            Some(PublishedWord::SmallCached) => PUBLISHED,
            Some(PublishedWord::SmallIo) => Self {
                rows: 800_000_000,
                write_rows: 5_000_000,
                ..PUBLISHED
            },
            Some(PublishedWord::Large) => Self {
                clients: 20,
                rows: 200_000_000,
                write_rows: 5_000_000,
                ..PUBLISHED
            },
        }
    }
}

/// A number of rows as people write it: `400k`, `20M`, `1.5G`, `4000000`.
///
/// Errors: it cannot be read.
pub fn rows(text: &str, option: &str) -> Result<u64, Problem> {
    whole_number(text).ok_or_else(|| {
        Problem::new(format!("`{}` is not a number of rows", text.trim()))
            .hint(format!("write for example {option} 400k, 20M or 4000000"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults::help;

    #[test]
    fn rows_are_read_as_people_write_them() {
        for (text, expected) in [
            ("400k", 400_000),
            ("20M", 20_000_000),
            ("20m", 20_000_000),
            ("1.5G", 1_500_000_000),
            ("0.4 M", 400_000),
            ("4000000", 4_000_000),
            ("4_000", 4000),
        ] {
            assert_eq!(rows(text, "--rows").unwrap(), expected, "{text}");
        }
        for bad in [
            "", "k", "-1", "1.5", "many", "1e400k", "infM", "0.0001k", "3T",
        ] {
            let problem = rows(bad, "--rows").unwrap_err();
            assert!(problem.hint.unwrap().contains("--rows 400k"), "{bad}");
        }
    }

    #[test]
    fn help_says_what_is_usual_and_what_quick() {
        let (usual, quick) = (Preset::of(false, None), Preset::of(true, None));
        help::says_delta("insert", "step");
        let says = |option: &str, usual: String, quick: String| {
            help::says("insert", option, &format!("{usual}, with --quick {quick}"));
        };
        let millions = |rows: u64| format!("{}M", rows / 1_000_000);
        let rows = format!("{}k", quick.rows / 1000);
        help::says("insert", "clients", &usual.clients.to_string());
        says("rows", millions(usual.rows), rows.clone());
        let written = format!("{}k", quick.write_rows / 1000);
        says("write_rows", millions(usual.write_rows), written);
        says(
            "seconds",
            usual.seconds.to_string(),
            quick.seconds.to_string(),
        );
        says("passes", usual.passes.to_string(), quick.passes.to_string());
        let settling = format!("with --quick {}]", quick.settle_seconds.unwrap());
        assert!(help::of("insert", "settle_seconds").ends_with(&settling));
        let Preset {
            clients,
            seconds,
            passes,
            ..
        } = quick;
        let scaled =
            format!("{clients} client, {rows} rows, steps of {seconds} s, {passes} passes;");
        assert!(help::of("insert", "quick").contains(&scaled));
        let rates = insert::RATES.map(|rate| rate.to_string()).join(",");
        assert_eq!(help::default("insert", "rates"), rates);
    }

    #[test]
    fn published_sizes_burst() {
        let large = Preset::of(false, Some(PublishedWord::Large));
        assert_eq!((large.clients, large.pacing), (20, Pacing::Burst));
    }
}
