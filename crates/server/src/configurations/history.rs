//! Which settings which versions have, for those that not all have.

const HISTORY: &str = include_str!("history.txt");

/// One setting that some versions have and others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) name: &'static str,
    /// First version with it, as [`branch`] says; absent: all before have it.
    pub(crate) first: Option<&'static str>,
    /// Last version with it; absent: all since have it.
    pub(crate) last: Option<&'static str>,
}

impl Period {
    /// Whether the version has it.
    pub(crate) fn covers(self, version_num: u32) -> bool {
        let version = branch_number(version_num);
        let begun = self
            .first
            .and_then(number)
            .is_none_or(|first| first <= version);
        let ended = self
            .last
            .and_then(number)
            .is_some_and(|last| last < version);
        begun && !ended
    }
}

/// All of the table, by name.
pub(crate) fn periods() -> impl Iterator<Item = Period> {
    HISTORY.lines().filter_map(period_of)
}

/// A line of the table. One with a version that cannot be read is none: of its setting nothing is claimed.
fn period_of(line: &'static str) -> Option<Period> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next().filter(|word| !word.starts_with('#'))?;
    let mut version = || match words.next() {
        None | Some("-") => Some(None),
        Some(word) => number(word).map(|_| Some(word)),
    };
    Some(Period {
        name,
        first: version()?,
        last: version()?,
    })
}

/// When there is a setting of this name; `None` for one that all versions have and for one that none has.
pub(crate) fn period(name: &str) -> Option<Period> {
    periods().find(|period| period.name == name)
}

/// Settings by the version that brought them, and by the last version that had them, oldest first: what is
/// left out of configurations elsewhere.
pub fn changes() -> Vec<(&'static str, Vec<&'static str>, Vec<&'static str>)> {
    let mut versions: Vec<&str> = periods()
        .flat_map(|period| [period.first, period.last])
        .flatten()
        .collect();
    versions.sort_unstable_by_key(|version| number(version));
    versions.dedup();
    let named = |pick: &dyn Fn(&Period) -> bool| {
        let picked = periods().filter(|period| pick(period));
        picked.map(|period| period.name).collect::<Vec<_>>()
    };
    versions
        .into_iter()
        .map(|version| {
            let brought = named(&|period| period.first == Some(version));
            let last = named(&|period| period.last == Some(version));
            (version, brought, last)
        })
        .collect()
}

/// The branch of a version in words: `9.6`, `17`.
pub(super) fn branch(version_num: u32) -> String {
    let major = version_num / 10_000;
    if major < 10 {
        format!("{major}.{}", version_num / 100 % 100)
    } else {
        major.to_string()
    }
}

/// `version_num` of the first release of the version's branch.
fn branch_number(version_num: u32) -> u32 {
    if version_num < 100_000 {
        version_num / 100 * 100
    } else {
        version_num / 10_000 * 10_000
    }
}

/// `version_num` of the first release of a branch: 90600 for `9.6`, 170000 for `17`.
pub(super) fn number(branch: &str) -> Option<u32> {
    let (major, minor) = branch.split_once('.').unwrap_or((branch, "0"));
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    major
        .checked_mul(10_000)?
        .checked_add(minor.checked_mul(100)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_line_of_it_is_read() {
        let names: Vec<&str> = periods().map(|period| period.name).collect();
        assert!(names.is_sorted_by(|one, other| one < other));
        let lines = HISTORY.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(names.len(), lines.count());
        for period in periods() {
            assert!(
                period.first.is_some() || period.last.is_some(),
                "{period:?}"
            );
            for version in [period.first, period.last].into_iter().flatten() {
                assert_eq!(branch(number(version).unwrap()), version, "{period:?}");
            }
        }
    }

    #[test]
    fn a_branch_that_cannot_be_read_is_not_the_first_of_all() {
        for unreadable in ["x", "9.x", "", "9.", "4294967295"] {
            assert_eq!(number(unreadable), None, "{unreadable}");
        }
        assert_eq!(period_of("io_method 1x -"), None);
        assert_eq!(period_of("io_method - 1x"), None);
        assert!(period_of("io_method 18 -").is_some());
    }

    #[test]
    fn a_setting_is_there_from_its_first_version_to_its_last() {
        let covers = |name, version| period(name).unwrap().covers(version);
        for (name, version, there) in [
            ("io_method", 170_011, false),
            ("io_method", 180_000, true),
            ("io_method", 190_000, true),
            ("old_snapshot_threshold", 90_624, true),
            ("old_snapshot_threshold", 160_015, true),
            ("old_snapshot_threshold", 170_000, false),
            ("checkpoint_segments", 90_426, true),
            ("checkpoint_segments", 90_500, false),
            ("promote_trigger_file", 110_000, false),
            ("promote_trigger_file", 130_000, true),
        ] {
            assert_eq!(covers(name, version), there, "{name} {version}");
        }
        assert_eq!(period("work_mem"), None);
        assert_eq!(
            (branch(90_624), branch(180_006)),
            ("9.6".into(), "18".into())
        );
    }
}
