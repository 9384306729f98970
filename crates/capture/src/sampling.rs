//! How many executions an entry of the log stands for.

/// Which executions the server logs: all from a duration on, and a share of the others.
///
/// Source: PostgreSQL documentation, "When to Log": 13 and newer sample executions of at least
/// `log_min_duration_sample`; `log_transaction_sample_rate` logs all executions of a share of the
/// transactions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampling {
    /// Executions of at least this many milliseconds are logged whatever the rate.
    pub always_above_ms: Option<f64>,
    /// Times that the log says that it changed, and that it matters.
    pub changes: u64,
    /// Share of the executions, 0 to 1; absent if nobody says it.
    rate: Option<f64>,
    /// Shorter executions are not sampled; absent if not known, infinite if none is.
    sampled_above_ms: Option<f64>,
    transactions: f64,
    /// What the user says holds, whatever the log says.
    rate_is_fixed: bool,
    above_is_fixed: bool,
}

impl Sampling {
    pub(crate) fn new(rate: Option<f64>, always_above_ms: Option<f64>) -> Self {
        Self {
            always_above_ms,
            changes: 0,
            rate,
            sampled_above_ms: None,
            transactions: 0.0,
            rate_is_fixed: rate.is_some(),
            above_is_fixed: always_above_ms.is_some(),
        }
    }

    /// Executions that one of this duration stands for.
    pub(crate) fn weight(&self, ms: f64) -> f64 {
        let always = self.always_above_ms.is_some_and(|above| ms >= above);
        let share = self.share(ms);
        // A share of 0 logs nothing but what is always logged.
        if always || share <= 0.0 {
            1.0
        } else {
            1.0 / share
        }
    }

    /// The share of the executions that the log has, of those that are sampled at all.
    pub(crate) fn rate(&self) -> f64 {
        self.share(f64::MAX)
    }

    /// Whether durations are known to be a sample.
    pub(crate) fn is_sample(&self) -> bool {
        self.rate() < 1.0
    }

    fn share(&self, ms: f64) -> f64 {
        if self.rate_is_fixed {
            return self.rate.unwrap_or(1.0);
        }
        let is_sampled = self.sampled_above_ms.is_none_or(|above| ms >= above);
        let own = match self.rate {
            Some(rate) if is_sampled => rate,
            Some(_) => 0.0,
            // Only whole transactions, as far as is known.
            None if self.transactions > 0.0 => 0.0,
            None => return 1.0,
        };
        1.0 - (1.0 - own) * (1.0 - self.transactions)
    }

    /// Takes over a setting that the server changed; without a value it is the default again.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) {
        let before = *self;
        let share = |default: f64| match value {
            None => Some(default),
            Some(value) => value.parse::<f64>().ok().map(|rate| rate.clamp(0.0, 1.0)),
        };
        let above = || value.and_then(milliseconds).filter(|ms| *ms >= 0.0);
        match name {
            "log_statement_sample_rate" => self.rate = share(1.0).or(self.rate),
            "log_transaction_sample_rate" => {
                self.transactions = share(0.0).unwrap_or(self.transactions);
            }
            "log_min_duration_sample" => {
                self.sampled_above_ms = Some(above().unwrap_or(f64::INFINITY));
            }
            "log_min_duration_statement" if !self.above_is_fixed => {
                self.always_above_ms = above();
            }
            _ => return,
        }
        if self.rate_is_fixed {
            self.rate = before.rate;
        }
        let is_other = |ms: f64| (self.weight(ms) - before.weight(ms)).abs() > f64::EPSILON;
        let matters = self.rate_is_fixed && self.above_is_fixed;
        let thresholds = [Some(0.0), before.always_above_ms, self.always_above_ms];
        let mut durations = thresholds.into_iter().flatten();
        self.changes += u64::from(!matters && durations.any(is_other));
    }
}

/// A duration as in `postgresql.conf`, `250ms` or `2s`; without a unit in milliseconds.
pub(crate) fn milliseconds(value: &str) -> Option<f64> {
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
        sampling.set("log_statement_sample_rate", Some("0.5"));
        sampling.set("log_min_duration_statement", Some("2s"));
        assert!((sampling.weight(1.0) - 2.0).abs() < 1e-9);
        assert!((sampling.weight(2000.0) - 1.0).abs() < 1e-9);
        sampling.set("log_min_duration_statement", Some("-1"));
        assert_eq!(sampling.always_above_ms, None);
        sampling.set("log_statement_sample_rate", None);
        assert!((sampling.weight(1.0) - 1.0).abs() < 1e-9);
        assert!(sampling.changes >= 2, "{sampling:?}");
        let mut fixed = Sampling::new(Some(0.1), Some(5.0));
        fixed.set("log_statement_sample_rate", Some("1"));
        fixed.set("log_min_duration_statement", Some("0"));
        assert_eq!(fixed, Sampling::new(Some(0.1), Some(5.0)));
    }

    #[test]
    fn whole_transactions_and_a_least_duration_of_the_sample_count() {
        let mut sampling = Sampling::new(None, None);
        sampling.set("log_transaction_sample_rate", Some("0.25"));
        assert!((sampling.weight(1.0) - 4.0).abs() < 1e-9);
        sampling.set("log_statement_sample_rate", Some("0.5"));
        sampling.set("log_min_duration_sample", Some("100"));
        // 1 - 0.75 * 0.5 of the long ones.
        assert!((sampling.weight(100.0) - 1.6).abs() < 1e-9);
        assert!((sampling.weight(99.0) - 4.0).abs() < 1e-9);
        // No sampling of executions at all.
        sampling.set("log_min_duration_sample", Some("-1"));
        assert!((sampling.weight(100.0) - 4.0).abs() < 1e-9);
        sampling.set("log_transaction_sample_rate", None);
        assert!((sampling.weight(100.0) - 1.0).abs() < 1e-9);
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
