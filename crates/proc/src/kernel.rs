//! The kernel itself: its version, what it lets others see, and the names of its functions.

use crate::file::word_in;
use std::path::Path;

/// Its release, such as `6.18.4-arch1-1`.
pub fn release() -> Option<String> {
    word_in(Path::new("/proc/sys/kernel/osrelease"))
}

/// Major and minor number of a release.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// What users without rights may count and sample: from -1 (everything) to 2 (their own programs outside of
/// the kernel), and 3 (nothing) on some distributions.
///
/// Source: perf_event_open(2), `/proc/sys/kernel/perf_event_paranoid`.
pub fn perf_event_paranoid() -> Option<i32> {
    word_in(Path::new("/proc/sys/kernel/perf_event_paranoid"))?
        .parse()
        .ok()
}

/// The kernel's functions by their first address, ascending; empty where it hides them.
///
/// Source: `proc_kallsyms`(5): addresses are 0 for those who may not see them (`kptr_restrict`).
pub fn functions() -> Vec<(u64, String)> {
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    functions_in(&text)
}

fn functions_in(text: &str) -> Vec<(u64, String)> {
    let mut functions: Vec<(u64, String)> = text.lines().filter_map(function).collect();
    functions.sort_unstable();
    functions
}

fn function(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    (is_code && address > 0).then_some((address, words.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_two_numbers_in_front() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("5.4.0-150-generic"), Some((5, 4)));
        assert_eq!(version("6"), None);
        assert!(release().is_some_and(|release| version(&release).is_some()));
    }

    #[test]
    fn functions_are_those_with_an_address_in_order() {
        let text = "ffffffff81000200 T __x64_sys_read\nffffffff81000000 t do_one\n\
            ffffffff82000000 D some_data\n0000000000000000 T hidden\nffffffff81000300 T f\t[module]\n";
        let names: Vec<String> = functions_in(text)
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        assert_eq!(names, ["do_one", "__x64_sys_read", "f"]);
    }
}
