//! What the kernel was asked for.
//!
//! Inside the kernel samples fall where interrupts come on again, not where time is spent, so its own
//! functions are not told.

use std::collections::BTreeMap;

/// What functions of the kernel begin with that carry out a system call.
const CALLS: [&str; 6] = [
    "__x64_sys_",
    "__arm64_sys_",
    "__ia32_sys_",
    "__se_sys_",
    "__do_sys_",
    "ksys_",
];

/// Parts of names, and what a stack with such a function is told as: the outermost says what it was.
const OTHERS: [(&str, &str); 8] = [
    ("page_fault", "[page fault]"),
    ("do_user_addr_fault", "[page fault]"),
    ("do_mem_abort", "[page fault]"),
    ("sysvec_", "[interrupt]"),
    ("common_interrupt", "[interrupt]"),
    ("el0_interrupt", "[interrupt]"),
    ("exit_to_user_mode", "[return to the program]"),
    ("ret_from_fork", "[new process]"),
];

/// What is told where nothing says more.
const KERNEL: &str = "[kernel]";

/// What each of the kernel's functions is told as.
#[derive(Debug, Default)]
pub(super) struct KernelCalls {
    /// First address, and the place of the label where the function has one; ascending.
    functions: Vec<(u64, Option<usize>)>,
    labels: Vec<String>,
}

impl KernelCalls {
    /// From the kernel's functions by address, ascending.
    pub(super) fn of(functions: &[(u64, String)]) -> Self {
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut labels = Vec::new();
        let mut place_of = |label: String| {
            *places.entry(label).or_insert_with_key(|label| {
                labels.push(label.clone());
                labels.len() - 1
            })
        };
        let functions = functions
            .iter()
            .map(|(address, name)| (*address, label(name).map(&mut place_of)))
            .collect();
        Self { functions, labels }
    }

    /// What a stack of the kernel is told as; addresses from the innermost on.
    pub(super) fn call(&self, chain: impl DoubleEndedIterator<Item = u64>) -> &str {
        let labels = chain.rev().filter_map(|address| self.label_at(address));
        let mut last = None;
        for label in labels {
            // The way back is on stacks of calls and faults too, as is an interrupt during them.
            if !matches!(label, "[return to the program]") {
                return label;
            }
            last = Some(label);
        }
        last.unwrap_or(KERNEL)
    }

    fn label_at(&self, address: u64) -> Option<&str> {
        let behind = self
            .functions
            .partition_point(|(first, _)| *first <= address);
        let (_, label) = self.functions.get(behind.checked_sub(1)?)?;
        self.labels.get((*label)?).map(String::as_str)
    }
}

fn label(name: &str) -> Option<String> {
    if let Some(call) = CALLS.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        return Some(format!("[{call}]"));
    }
    let (_, label) = OTHERS.iter().find(|(part, _)| name.contains(part))?;
    Some((*label).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> KernelCalls {
        let names = [
            "entry_SYSCALL_64_after_hwframe",
            "do_syscall_64",
            "__x64_sys_epoll_wait",
            "schedule",
            "finish_task_switch",
            "asm_exc_page_fault",
            "asm_sysvec_apic_timer_interrupt",
            "syscall_exit_to_user_mode",
        ];
        let functions: Vec<(u64, String)> = (1..)
            .zip(names)
            .map(|(n, name)| (0x1000 * n, name.to_owned()))
            .collect();
        KernelCalls::of(&functions)
    }

    #[test]
    fn a_stack_is_told_as_its_outermost_call() {
        let kernel = kernel();
        let call = |chain: &[u64]| kernel.call(chain.iter().copied()).to_owned();
        assert_eq!(
            call(&[0x5010, 0x4020, 0x3333, 0x2001, 0x1002]),
            "[epoll_wait]"
        );
        assert_eq!(call(&[0x5010, 0x6001]), "[page fault]");
        assert_eq!(call(&[0x5010, 0x7001]), "[interrupt]");
        assert_eq!(
            call(&[0x7010, 0x3001, 0x2001]),
            "[epoll_wait]",
            "interrupted"
        );
        assert_eq!(call(&[0x8010, 0x2001]), "[return to the program]");
        assert_eq!(call(&[0x5010, 0x2001]), "[kernel]");
        assert_eq!(call(&[0x10]), "[kernel]");
        assert_eq!(call(&[]), "[kernel]");
        assert_eq!(KernelCalls::default().call([1, 2].into_iter()), "[kernel]");
    }
}
