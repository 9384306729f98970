//! From samples to stacks of named functions.
//!
//! Servers are built without frame pointers, so callers are found by the rules for unwinding that every
//! program carries in `.eh_frame`, over the copy of the top of the stack that came with the sample. Stacks
//! are kept as numbers of names and how often each was seen; samples are not kept.
//!
//! A stack begins at the main function of its kind of process, `PostgresMain` for those that serve clients,
//! so that versions which start processes differently can be compared. What the kernel did is one frame at
//! its end: the system call.

mod binary;
mod kernel_call;
mod names;

pub use names::Names;

use crate::profile::Sample;
use binary::{Binaries, Binary};
use deltabench_proc::{CodeMapping, Process};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use kernel_call::KernelCalls;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as RuleCache, UnwinderAarch64 as NativeUnwinder};
#[cfg(not(target_arch = "aarch64"))]
use framehop::x86_64::{CacheX86_64 as RuleCache, UnwinderX86_64 as NativeUnwinder};

/// Deeper stacks are cut: none of a server's is, and damaged ones may have no end.
const DEPTH_MAX: usize = 400;

/// Where a stack begins that does not reach the main function of its process.
const TRUNCATED: &str = "[truncated]";

/// The main function of processes that serve a client.
const BACKEND: &str = "PostgresMain";

/// The main function of the process that starts all others: theirs are below it.
const POSTMASTER: &str = "PostmasterMain";

/// Everything that reading stacks takes and that servers share: files of programs, the kernel's functions,
/// names.
#[derive(Debug)]
pub struct StackReader {
    binaries: Binaries,
    kernel: KernelCalls,
    /// Names of functions and system calls, by their numbers in stacks.
    pub names: Names,
}

impl StackReader {
    /// One that has read nothing but the kernel's functions, which takes a tenth of a second.
    pub fn new() -> Self {
        Self {
            binaries: Binaries::default(),
            kernel: KernelCalls::of(&deltabench_proc::kernel::functions()),
            names: Names::default(),
        }
    }
}

impl Default for StackReader {
    fn default() -> Self {
        Self::new()
    }
}

/// How often each stack was seen in one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StackCounts {
    /// Samples by stack, the main function first. Numbers are those of [`StackReader::names`].
    pub stacks: BTreeMap<Vec<u32>, u64>,
    /// Those that do not reach the main function of their process.
    pub truncated: u64,
}

impl StackCounts {
    /// All samples.
    pub fn samples(&self) -> u64 {
        self.stacks.values().sum()
    }
}

/// The stacks of one running server: all its processes are copies of one, with the same files at the same
/// addresses.
pub struct ServerStacks {
    unwinder: NativeUnwinder<Arc<[u8]>>,
    rules: RuleCache,
    modules: Vec<LoadedFile>,
    /// Numbers of names by address, for those seen before.
    seen: HashMap<u64, u32>,
    counts: StackCounts,
}

/// A file's code where the server has it.
struct LoadedFile {
    mapping: CodeMapping,
    /// What is added to addresses in the file; absent where the file could not be read.
    binary: Option<(u64, Arc<Binary>)>,
}

impl ServerStacks {
    /// Of a server with these processes.
    pub fn of(pids: &[u32], reader: &mut StackReader) -> Self {
        let mut stacks = Self {
            unwinder: NativeUnwinder::new(),
            rules: RuleCache::new(),
            modules: Vec::new(),
            seen: HashMap::new(),
            counts: StackCounts::default(),
        };
        stacks.look_again(pids, reader);
        stacks
    }

    /// Looks for files that these processes have loaded since.
    pub fn look_again(&mut self, pids: &[u32], reader: &mut StackReader) {
        for &pid in pids {
            for mapping in Process::of(pid).code().unwrap_or_default() {
                if !self.has(&mapping) {
                    self.load(mapping, &mut reader.binaries);
                }
            }
        }
    }

    /// Whether it is known, or lies where something else is in another process.
    fn has(&self, mapping: &CodeMapping) -> bool {
        let overlaps = |other: &CodeMapping| mapping.start < other.end && other.start < mapping.end;
        self.modules.iter().any(|known| overlaps(&known.mapping))
    }

    fn load(&mut self, mapping: CodeMapping, binaries: &mut Binaries) {
        let binary = binaries.of(&mapping.file).and_then(|binary| {
            let bias = binary.bias(&mapping)?;
            Some((bias, binary))
        });
        if let Some((bias, binary)) = &binary {
            let sections = ExplicitModuleSectionInfo {
                base_svma: binary.base,
                text_svma: Some(binary.text.clone()),
                eh_frame_svma: binary.eh_frame.as_ref().map(|section| section.range()),
                eh_frame: binary.eh_frame.as_ref().map(|section| section.bytes()),
                eh_frame_hdr_svma: binary.eh_frame_hdr.as_ref().map(|section| section.range()),
                eh_frame_hdr: binary.eh_frame_hdr.as_ref().map(|section| section.bytes()),
                ..ExplicitModuleSectionInfo::default()
            };
            self.unwinder.add_module(Module::new(
                mapping.file.display().to_string(),
                mapping.start..mapping.end,
                bias.wrapping_add(binary.base),
                sections,
            ));
        }
        self.modules.push(LoadedFile { mapping, binary });
        // What had no name may have one now.
        self.seen.clear();
    }

    /// Whether code of an unknown file is running: time to look again.
    pub fn is_unknown(&self, sample: &Sample<'_>) -> bool {
        sample.registers.is_some_and(|registers| {
            !self
                .modules
                .iter()
                .any(|file| file.mapping.holds(registers.ip))
        })
    }

    /// Counts a sample of one of its processes.
    pub fn add(&mut self, sample: &Sample<'_>, reader: &mut StackReader) {
        let mut stack = self.callers(sample, &mut reader.names);
        let root = root(&stack, &reader.names);
        match root {
            Some(depth) => stack.truncate(depth + 1),
            None => {
                self.counts.truncated += 1;
                stack.push(reader.names.number(TRUNCATED));
            }
        }
        stack.reverse();
        if sample.in_kernel {
            let call = reader.kernel.call(sample.kernel_chain());
            stack.push(reader.names.number(call));
        }
        *self.counts.stacks.entry(stack).or_default() += 1;
    }

    /// What was counted; from here on it counts from 0.
    pub fn take(&mut self) -> StackCounts {
        std::mem::take(&mut self.counts)
    }

    /// Names of the program's functions on a stack, the innermost first.
    fn callers(&mut self, sample: &Sample<'_>, names: &mut Names) -> Vec<u32> {
        let Some(registers) = sample.registers else {
            return Vec::new();
        };
        let mut read_stack = |address: u64| {
            let from = usize::try_from(address.wrapping_sub(registers.sp)).map_err(drop)?;
            let word = sample.stack.get(from..).and_then(<[u8]>::first_chunk);
            word.copied().map(u64::from_le_bytes).ok_or(())
        };
        let mut addresses = Vec::with_capacity(32);
        let mut frames = self.unwinder.iter_frames(
            registers.ip,
            native_registers(registers),
            &mut self.rules,
            &mut read_stack,
        );
        while let Ok(Some(frame)) = frames.next() {
            addresses.push(frame);
            if addresses.len() >= DEPTH_MAX {
                break;
            }
        }
        let number = |frame: FrameAddress| self.number(frame.address_for_lookup(), names);
        addresses.into_iter().map(number).collect()
    }

    /// The number of the name of the function at an address.
    fn number(&mut self, address: u64, names: &mut Names) -> u32 {
        if let Some(known) = self.seen.get(&address) {
            return *known;
        }
        let number = names.number(&self.name(address));
        self.seen.insert(address, number);
        number
    }

    fn name(&self, address: u64) -> String {
        let file = self.modules.iter().find(|file| file.mapping.holds(address));
        let Some(file) = file else {
            return "[unknown]".to_owned();
        };
        let named = file
            .binary
            .as_ref()
            .and_then(|(bias, binary)| binary.function_at(address.wrapping_sub(*bias)));
        named.unwrap_or_else(|| {
            let name = file.mapping.file.file_name().unwrap_or_default();
            format!("[{}]", name.to_string_lossy().trim_matches(['[', ']']))
        })
    }
}

#[cfg(target_arch = "aarch64")]
fn native_registers(registers: crate::profile::Registers) -> framehop::aarch64::UnwindRegsAarch64 {
    // Addresses have 48 bits; what is above may be a signature of the pointer.
    let addresses = framehop::aarch64::PtrAuthMask(u64::MAX >> 16);
    framehop::aarch64::UnwindRegsAarch64::new_with_ptr_auth_mask(
        addresses,
        registers.lr,
        registers.sp,
        registers.fp,
    )
}

#[cfg(not(target_arch = "aarch64"))]
fn native_registers(registers: crate::profile::Registers) -> framehop::x86_64::UnwindRegsX86_64 {
    framehop::x86_64::UnwindRegsX86_64::new(registers.ip, registers.sp, registers.fp)
}

/// The place of the main function in a stack, the innermost first: that of a backend, else of another process
/// that the postmaster starts, else the postmaster's own.
fn root(stack: &[u32], names: &Names) -> Option<usize> {
    let place = |wanted: &dyn Fn(&str) -> bool| {
        stack
            .iter()
            .rposition(|&number| names.name(number).is_some_and(wanted))
    };
    place(&|name| name == BACKEND)
        .or_else(|| place(&|name| name.ends_with("Main") && name != POSTMASTER))
        .or_else(|| place(&|name| name == POSTMASTER))
}

#[cfg(test)]
mod tests;
