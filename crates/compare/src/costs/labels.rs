//! Costs in words, as sentences need them.

use deltabench_model::metric::metric;
use std::borrow::Cow;

/// What a cost is called in a sentence, for example `user CPU`; an unknown key is its own label.
pub fn label(key: &str) -> Cow<'_, str> {
    if let Some(event) = key.strip_prefix("wait:") {
        return Cow::Owned(format!("wait for {event}"));
    }
    metric(key).map_or(Cow::Borrowed(key), |metric| Cow::Borrowed(metric.words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_and_unknown_keys_have_labels_too() {
        assert_eq!(label("user_cpu_us_per_op"), "user CPU");
        assert_eq!(label("wait:LWLock:WALWrite"), "wait for LWLock:WALWrite");
        assert_eq!(label("new_metric"), "new_metric");
    }
}
