//! How many executions an entry of the log stands for.

/// Which executions the server logs: all from a duration on, and a share of the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampling {
    /// Share of the executions, 0 to 1.
    pub rate: f64,
    /// Executions of at least this many milliseconds are logged whatever the rate.
    pub always_above_ms: Option<f64>,
    /// What the user says holds, whatever the log says.
    rate_is_fixed: bool,
    above_is_fixed: bool,
}

impl Sampling {
    pub(crate) fn new(rate: Option<f64>, always_above_ms: Option<f64>) -> Self {
        Self {
            rate: rate.unwrap_or(1.0),
            always_above_ms,
            rate_is_fixed: rate.is_some(),
            above_is_fixed: always_above_ms.is_some(),
        }
    }

    /// Executions that one of this duration stands for.
    pub(crate) fn weight(&self, ms: f64) -> f64 {
        let always = self.always_above_ms.is_some_and(|above| ms >= above);
        // A rate of 0 logs nothing but what is always logged.
        if always || self.rate <= 0.0 {
            1.0
        } else {
            1.0 / self.rate
        }
    }

    /// Takes over a setting that the server changed.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        match name {
            "log_statement_sample_rate" if !self.rate_is_fixed => {
                if let Ok(rate) = value.parse::<f64>() {
                    self.rate = rate.clamp(0.0, 1.0);
                }
            }
            "log_min_duration_statement" if !self.above_is_fixed => {
                self.always_above_ms = milliseconds(value).filter(|ms| *ms >= 0.0);
            }
            _ => {}
        }
    }
}

/// A duration as in `postgresql.conf`, `250ms` or `2s`; without a unit in milliseconds.
pub fn milliseconds(value: &str) -> Option<f64> {
    let value = value.trim();
    let digits = value
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(value.len());
    let (number, unit) = value.split_at_checked(digits)?;
    let factor = match unit.trim() {
        "us" => 1e-3,
        "" | "ms" => 1.0,
        "s" => 1e3,
        "min" => 6e4,
        "h" => 3.6e6,
        "d" => 8.64e7,
        _ => return None,
    };
    number
        .trim()
        .parse::<f64>()
        .ok()
        .map(|number| number * factor)
}

/// Settings whose values a capture keeps: those that change plans, and those of the log. Others may hold
/// passwords.
pub(crate) fn is_kept(name: &str) -> bool {
    let begins = [
        "enable_",
        "jit",
        "geqo",
        "log_min_duration",
        "log_statement",
        "log_duration",
        "log_parameter_max",
        "max_parallel",
        "effective_",
        "constraint_exclusion",
        "cursor_tuple_fraction",
    ];
    let names = [
        "work_mem",
        "hash_mem_multiplier",
        "shared_buffers",
        "seq_page_cost",
        "random_page_cost",
        "default_statistics_target",
        "from_collapse_limit",
        "join_collapse_limit",
        "plan_cache_mode",
        "compute_query_id",
        "standard_conforming_strings",
        "log_transaction_sample_rate",
    ];
    let cost = name.starts_with("cpu_") || name.starts_with("parallel_");
    cost || names.contains(&name) || begins.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_that_is_always_logged_stands_for_itself() {
        let sampling = Sampling::new(Some(0.01), Some(1000.0));
        assert!((sampling.weight(5.0) - 100.0).abs() < 1e-9);
        assert!((sampling.weight(1000.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_log_says_the_rate_unless_the_user_does() {
        let mut sampling = Sampling::new(None, None);
        assert!((sampling.weight(1.0) - 1.0).abs() < 1e-9);
        sampling.set("log_statement_sample_rate", "0.5");
        sampling.set("log_min_duration_statement", "2s");
        assert!((sampling.weight(1.0) - 2.0).abs() < 1e-9);
        assert!((sampling.weight(2000.0) - 1.0).abs() < 1e-9);
        sampling.set("log_min_duration_statement", "-1");
        assert_eq!(sampling.always_above_ms, None);
        let mut fixed = Sampling::new(Some(0.1), Some(5.0));
        fixed.set("log_statement_sample_rate", "1");
        fixed.set("log_min_duration_statement", "0");
        assert_eq!(fixed, Sampling::new(Some(0.1), Some(5.0)));
    }

    #[test]
    fn durations_have_the_units_of_the_server() {
        let cases = [
            ("250", 250.0),
            ("250ms", 250.0),
            ("1 s", 1000.0),
            ("500us", 0.5),
            ("-1", -1.0),
        ];
        for (text, wanted) in cases {
            assert!(
                (milliseconds(text).unwrap() - wanted).abs() < 1e-9,
                "{text}"
            );
        }
        assert_eq!(milliseconds("much"), None);
    }

    #[test]
    fn settings_with_secrets_are_not_kept() {
        assert!(is_kept("random_page_cost") && is_kept("enable_seqscan"));
        assert!(!is_kept("primary_conninfo") && !is_kept("ssl_passphrase_command"));
    }
}
