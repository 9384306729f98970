//! Whose fault another plan is, in words.

use deltabench_model::replayed::{OldPlan, PlanCause, ReplayVerdict, TimeRatio, TimeVerdict};

/// What the old plan says of a statement; nothing where nobody asked.
pub(crate) fn texts(verdict: &ReplayVerdict) -> Vec<String> {
    let Some(old) = &verdict.old_plan else {
        return Vec::new();
    };
    if old.settings.is_empty() {
        return vec![format!(
            "no setting brings the old plan back ({} tried)",
            old.tried
        )];
    }
    let time = verdict.time.as_ref().map(|time| time.verdict);
    let faster = time == Some(TimeVerdict::Faster);
    let mut texts = Vec::new();
    if let Some(ratio) = &old.ratio {
        texts.push(format!("{}: {}", cause(old.cause, faster), times(ratio)));
    }
    let what = match (old.cause, faster) {
        (PlanCause::Planner | PlanCause::Both, false) => "workaround, brings the old plan back",
        _ => "brings the old plan back",
    };
    texts.push(format!("{what}: {}", statements(old)));
    texts
}

fn cause(cause: PlanCause, faster: bool) -> &'static str {
    match (cause, faster) {
        (PlanCause::Planner, false) => "as fast as before with the old plan: the planner",
        (PlanCause::Planner, true) => "as slow as before with the old plan: the planner",
        (PlanCause::Executor, false) => "slower with the old plan, too: the executor",
        (PlanCause::Executor, true) => "faster with the old plan, too: the executor",
        (PlanCause::Both, _) => "the old plan undoes a part: the planner and the executor",
        (PlanCause::Open, _) => {
            "with the old plan; too few blocks to say whether it is the planner"
        }
    }
}

/// `1.010 [0.980, 1.040] of the base's time with it`.
fn times(ratio: &TimeRatio) -> String {
    let interval = ratio.low.zip(ratio.high);
    let interval =
        interval.map_or_else(String::new, |(low, high)| format!(" [{low:.3}, {high:.3}]"));
    format!("{:.3}{interval} of the base's time with it", ratio.estimate)
}

/// `SET random_page_cost = '4';`.
fn statements(old: &OldPlan) -> String {
    let set = |(name, value): &(String, String)| format!("SET {name} = '{value}';");
    let all: Vec<String> = old.settings.iter().map(set).collect();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::replayed::{ErrorVerdict, PlanVerdict, ResultVerdict};

    fn verdict(
        settings: &[(&str, &str)],
        ratio: Option<TimeRatio>,
        cause: PlanCause,
    ) -> ReplayVerdict {
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ReplayVerdict {
            server: 1,
            errors: ErrorVerdict::None,
            plans: PlanVerdict::Changed,
            changed: 1,
            changed_share: 1.0,
            changes: Vec::new(),
            results: ResultVerdict::Same,
            differing: 0,
            causes: Vec::new(),
            time: None,
            old_plan: Some(OldPlan {
                settings: settings.collect(),
                tried: 30,
                ratio,
                cause,
            }),
        }
    }

    #[test]
    fn a_workaround_can_be_pasted() {
        let ratio = TimeRatio {
            estimate: 1.01,
            low: Some(0.98),
            high: Some(1.04),
        };
        let two = [("enable_seqscan", "off"), ("work_mem", "8MB")];
        let texts = texts(&verdict(&two, Some(ratio), PlanCause::Planner));
        assert_eq!(
            texts,
            [
                "as fast as before with the old plan: the planner: 1.010 [0.980, 1.040] of the base's time \
                 with it",
                "workaround, brings the old plan back: SET enable_seqscan = 'off'; SET work_mem = '8MB';"
            ]
        );
    }

    #[test]
    fn without_a_setting_that_is_said() {
        let texts = texts(&verdict(&[], None, PlanCause::Open));
        assert_eq!(texts, ["no setting brings the old plan back (30 tried)"]);
    }
}
