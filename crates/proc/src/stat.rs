//! A line of `/proc/PID/stat`.

/// What the kernel says of a process in one line.
///
/// Source: proc_pid_stat(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Field 3: `R` running, `S` asleep, `T` stopped, `Z` a zombie, `X` dead, and so on.
    pub state: u8,
    /// Field 4, the process that started it, or took it over.
    pub parent: u32,
    /// Field 10: page faults that needed no disk, of all its threads.
    pub minor_faults: u64,
    /// Field 11: those of its ended and awaited children.
    pub childrens_minor_faults: u64,
    /// Field 12: page faults that needed the disk.
    pub major_faults: u64,
    /// Field 13: those of its ended and awaited children.
    pub childrens_major_faults: u64,
    /// Field 14: clock ticks outside the kernel, of all its threads, ended ones included.
    pub user_ticks: u64,
    /// Field 15: clock ticks inside the kernel.
    pub system_ticks: u64,
    /// Field 16: ticks outside the kernel of its ended and awaited children.
    pub childrens_user_ticks: u64,
    /// Field 17: those inside the kernel.
    pub childrens_system_ticks: u64,
    /// Field 22: clock ticks from the start of the machine to its own.
    pub start_ticks: u64,
}

impl Stat {
    /// Reads the line.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let (_, rest) = split(line)?;
        let mut words = rest
            .split(|byte| byte.is_ascii_whitespace())
            .filter(|word| !word.is_empty());
        let state = *words.next()?.first()?;
        let mut next = |skipped: usize| -> Option<u64> {
            std::str::from_utf8(words.nth(skipped)?).ok()?.parse().ok()
        };
        Some(Self {
            state,
            parent: u32::try_from(next(0)?).ok()?,
            minor_faults: next(5)?,
            childrens_minor_faults: next(0)?,
            major_faults: next(0)?,
            childrens_major_faults: next(0)?,
            user_ticks: next(0)?,
            system_ticks: next(0)?,
            childrens_user_ticks: next(0)?,
            childrens_system_ticks: next(0)?,
            start_ticks: next(4)?,
        })
    }

    /// Whether it has run its last instruction.
    ///
    /// A zombie (`Z`) waits to be reaped by its parent; a dead process (`X`, before Linux 3.14 also `x`) has
    /// been, or needs nobody to do so, and is seen for a moment only. Neither works, holds memory or answers,
    /// and no signal reaches it, so to whoever waits for an end both are the same.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether it was stopped by a signal, or for whoever traces it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }
}

/// The name of the program in such a line.
pub(crate) fn name_in_stat(line: &[u8]) -> Option<String> {
    let (name, _) = split(line)?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The name, which may hold blanks and brackets itself, and the fields from the third on.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let opened = line.iter().position(|&byte| byte == b'(')?;
    let closed = line.iter().rposition(|&byte| byte == b')')?;
    Some((line.get(opened + 1..closed)?, line.get(closed + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A backend of PostgreSQL on Linux 6.1, field by field as it came.
    const BACKEND: &[u8] = b"2154 (postgres: a b (c)) S 2147 2154 2154 0 -1 4194368 1290 11 3 2 17 9 4 5 \
        20 0 1 0 81746 226971648 4608 18446744073709551615 94 95 140 0 0 0 0 16781312 536871425 1 0 0 17 1 0 \
        0 0 0 0 94 95 96 140 140 140 140 0\n";

    #[test]
    fn fields_are_counted_behind_a_name_with_blanks_and_brackets() {
        let stat = Stat::parse(BACKEND).unwrap();
        assert_eq!((stat.state, stat.parent), (b'S', 2147));
        assert_eq!((stat.minor_faults, stat.childrens_minor_faults), (1290, 11));
        assert_eq!((stat.major_faults, stat.childrens_major_faults), (3, 2));
        assert_eq!((stat.user_ticks, stat.system_ticks), (17, 9));
        assert_eq!(
            (stat.childrens_user_ticks, stat.childrens_system_ticks),
            (4, 5)
        );
        assert_eq!(stat.start_ticks, 81_746);
        assert_eq!(name_in_stat(BACKEND).unwrap(), "postgres: a b (c)");
    }

    #[test]
    fn a_kernel_thread_of_linux_2_6_is_read_too() {
        let line = b"3 (migration/0) S 2 0 0 0 -1 2216730816 0 0 0 0 0 12 0 0 -100 0 1 0 5 0 0 \
            18446744073709551615 0 0 0 0 0 0 0 2147483647 0 18446744071579294021 0 0 17 0 99 1 0 0 0\n";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(
            (stat.parent, stat.system_ticks, stat.start_ticks),
            (2, 12, 5)
        );
    }

    #[test]
    fn what_is_cut_short_or_no_such_line_is_nothing() {
        for line in ["", "garbage", "12 (short) S 1", "12 (a", ") ("] {
            assert_eq!(Stat::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn zombies_and_dead_processes_have_ended_and_stopped_ones_have_not() {
        let with = |state| Stat {
            state,
            ..Stat::parse(BACKEND).unwrap()
        };
        for ended in *b"ZXx" {
            assert!(with(ended).has_ended());
        }
        for alive in *b"RSDTtI" {
            assert!(!with(alive).has_ended());
        }
    }
}
