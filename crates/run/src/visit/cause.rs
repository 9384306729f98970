//! Why a visit could not go on with a server.

use deltabench_driver::SliceOutcome;
use deltabench_model::slice::VoidReason;

/// What a server says of a variable that nothing sets, in SQL that is sent as text.
const AT_A_COLON: &str = "at or near \":\"";

/// Why a server was lost to a visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    pub reason: VoidReason,
    /// The facts behind it, where there are some.
    pub detail: Option<String>,
}

impl Cause {
    /// Why a slice does not count; nothing where it does.
    pub(super) fn of(outcome: &SliceOutcome) -> Option<Self> {
        Some(Self {
            reason: outcome.void.clone()?,
            detail: outcome.void_detail.clone(),
        })
    }

    /// What happened to the server of this name, where; `more` is what else is known of it.
    ///
    /// Shape: `base was lost (stalled: no answer for 60 s) in block 0 at scan`.
    pub(crate) fn message(&self, name: &str, place: &str, more: &str) -> String {
        match (&self.reason, &self.detail) {
            (VoidReason::NothingDone, Some(detail)) => {
                format!("nothing succeeded on {name} {place}: {detail}{more}")
            }
            (reason, None) => format!("{name} was lost ({}{more}) {place}", reason.word()),
            (reason, Some(detail)) => {
                format!(
                    "{name} was lost ({}: {detail}{more}) {place}",
                    reason.word()
                )
            }
        }
    }

    /// What can be done about it, where that is known.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        let detail = self.detail.as_deref().unwrap_or_default();
        detail.contains(AT_A_COLON).then_some(
            "if the script does not set a variable, give it a value: `deltabench pgbench -f FILE -D \
             NAME=VALUE`",
        )
    }
}

impl From<VoidReason> for Cause {
    fn from(reason: VoidReason) -> Self {
        Self {
            reason,
            detail: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_always_fails_is_told_with_its_reason_and_no_server_is_called_lost() {
        let cause = |detail: &str| Cause {
            reason: VoidReason::NothingDone,
            detail: Some(detail.to_owned()),
        };
        let always = cause("division by zero (22012)");
        assert_eq!(
            always.message("base", "in block 0 at mine", ""),
            "nothing succeeded on base in block 0 at mine: division by zero (22012)"
        );
        assert_eq!(always.hint(), None);
        let unset = cause("syntax error at or near \":\" (42601)");
        assert!(unset.hint().unwrap().contains("-D NAME=VALUE"));
        let lost = Cause::from(VoidReason::Stalled);
        assert_eq!(
            lost.message("base", "in block 0 at mine", ", killed"),
            "base was lost (stalled, killed) in block 0 at mine"
        );
        let told = Cause {
            detail: Some("no answer for 60 s".to_owned()),
            ..lost
        };
        assert_eq!(
            told.message("base", "in block 0 at mine", ", killed"),
            "base was lost (stalled: no answer for 60 s, killed) in block 0 at mine"
        );
    }
}
