//! Records that the kernel writes into the ring of an event.

/// Registers that a stack is unwound from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// The instruction that runs.
    pub ip: u64,
    /// The top of the stack.
    pub sp: u64,
    pub fp: u64,
    /// Where the function returns to; 0 on machines that keep it on the stack.
    pub lr: u64,
}

/// Bits of `sample_regs_user`. Source: `arch/x86/include/uapi/asm/perf_regs.h`: `BP` 6, `SP` 7, `IP` 8;
/// `arch/arm64/include/uapi/asm/perf_regs.h`: `X29` 29, `LR` 30, `SP` 31, `PC` 32.
#[cfg(not(target_arch = "aarch64"))]
pub(super) const WANTED_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
pub(super) const WANTED_REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

/// `PERF_SAMPLE_REGS_ABI_64`.
const ABI_64: u64 = 2;

/// Words of a chain from here on say what follows: `PERF_CONTEXT_MAX`, -4095.
const CONTEXT: u64 = u64::MAX - 4094;

/// `perf_event_header.misc & PERF_RECORD_MISC_CPUMODE_MASK` in the kernel.
const MODE_MASK: u16 = 7;
const MODE_KERNEL: u16 = 1;

/// One look at what a core does.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    pub pid: u32,
    pub tid: u32,
    /// When, nanoseconds of the kernel's own clock.
    pub time_ns: u64,
    pub in_kernel: bool,
    /// The kernel's functions on the stack, the innermost first, as addresses in words.
    chain: &'a [u8],
    /// What the program's registers held, or hold while the kernel works for it; absent where there is no
    /// program.
    pub registers: Option<Registers>,
    /// The top of the program's stack, from its stack pointer on.
    pub stack: &'a [u8],
}

impl Sample<'_> {
    /// Addresses of the kernel's functions on the stack, the innermost first; none outside of the kernel.
    pub fn kernel_chain(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let words = self.chain.chunks_exact(8);
        words
            .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)))
            .filter(|&address| address < CONTEXT)
    }
}

/// A record of a ring.
pub(super) enum Record<'a> {
    /// `PERF_RECORD_SAMPLE`.
    Sample(Sample<'a>),
    /// `PERF_RECORD_LOST`: so many records had no room.
    Lost(u64),
    /// Any other, or one that is not as it should be.
    Other,
}

/// The records in some bytes. `chains`: whether samples have the kernel's callers.
pub(super) fn records(bytes: &[u8], chains: bool) -> impl Iterator<Item = Record<'_>> {
    let mut rest = Fields(bytes);
    std::iter::from_fn(move || {
        let (kind, misc, size) = (rest.u32()?, rest.u16()?, rest.u16()?);
        let mut body = Fields(rest.bytes(u64::from(size).checked_sub(8)?)?);
        let record = match kind {
            2 => {
                body.u64()?;
                body.u64().map(Record::Lost)
            }
            9 => sample(body, misc, chains).map(Record::Sample),
            _ => None,
        };
        Some(record.unwrap_or(Record::Other))
    })
}

/// Fields in the order of perf_event_open(2): those that [`super::attributes`] asks for.
fn sample(mut body: Fields<'_>, misc: u16, chains: bool) -> Option<Sample<'_>> {
    let _ip = body.u64()?;
    let (pid, tid, time_ns) = (body.u32()?, body.u32()?, body.u64()?);
    let chain = if chains {
        let length = body.u64()?;
        body.bytes(length.checked_mul(8)?)?
    } else {
        &[]
    };
    let registers = match body.u64()? {
        0 => None,
        abi => {
            let read = registers(&mut body)?;
            (abi == ABI_64).then_some(read)
        }
    };
    let size = body.u64()?;
    let stack = body.bytes(size)?;
    let used = if size > 0 { body.u64()? } else { 0 };
    let used = usize::try_from(used).ok()?;
    Some(Sample {
        pid,
        tid,
        time_ns,
        in_kernel: misc & MODE_MASK == MODE_KERNEL,
        chain,
        registers,
        stack: stack.get(..used)?,
    })
}

/// In the order of their bits.
#[cfg(not(target_arch = "aarch64"))]
fn registers(body: &mut Fields<'_>) -> Option<Registers> {
    let (fp, sp, ip) = (body.u64()?, body.u64()?, body.u64()?);
    Some(Registers { ip, sp, fp, lr: 0 })
}

/// In the order of their bits.
#[cfg(target_arch = "aarch64")]
fn registers(body: &mut Fields<'_>) -> Option<Registers> {
    let (fp, lr, sp, ip) = (body.u64()?, body.u64()?, body.u64()?, body.u64()?);
    Some(Registers { ip, sp, fp, lr })
}

/// Bytes that are read from the front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, words: &[u64], tail: &[u8], used: Option<u64>) -> Vec<u8> {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        body.extend_from_slice(tail);
        body.extend(used.into_iter().flat_map(u64::to_ne_bytes));
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(u16::try_from(body.len() + 8).unwrap().to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    const PID_AND_TID: u64 = if cfg!(target_endian = "little") {
        8 << 32 | 7
    } else {
        7 << 32 | 8
    };

    #[cfg(not(target_arch = "aarch64"))]
    #[test]
    fn samples_lost_ones_and_throttling_are_told_and_the_rest_is_skipped() {
        let chain = [3, u64::MAX - 127, 0xfff1, 0xfff2];
        let mut words = vec![0xfff1, PID_AND_TID, 55];
        words.extend(chain);
        words.extend([ABI_64, 30, 20, 10, 16]);
        let mut bytes = record(9, 1, &words, &[1; 16], Some(12));
        bytes.extend(record(2, 0, &[1, 17], &[], None));
        bytes.extend(record(5, 0, &[1, 2, 3], &[], None));
        bytes.extend(record(3, 0, &[1], &[], None));
        // A thread of the kernel: no registers, no stack.
        bytes.extend(record(9, 1, &[1, PID_AND_TID, 56, 0, 0, 0], &[], None));
        let read: Vec<Record<'_>> = records(&bytes, true).collect();
        assert_eq!(read.len(), 5);
        let Record::Sample(first) = &read[0] else {
            panic!("a sample");
        };
        assert_eq!((first.pid, first.tid, first.time_ns), (7, 8, 55));
        assert!(first.in_kernel);
        assert_eq!(first.kernel_chain().collect::<Vec<_>>(), [0xfff1, 0xfff2]);
        let expected = Registers {
            ip: 10,
            sp: 20,
            fp: 30,
            lr: 0,
        };
        assert_eq!(first.registers, Some(expected));
        assert_eq!(first.stack, [1; 12]);
        assert!(matches!(read[1], Record::Lost(17)));
        assert!(matches!(read[2], Record::Other));
        assert!(matches!(read[3], Record::Other));
        assert!(matches!(&read[4], Record::Sample(sample)
            if sample.registers.is_none() && sample.stack.is_empty()));
    }

    #[test]
    fn bytes_that_are_cut_end_the_records_or_spoil_one() {
        let whole = record(9, 1, &[1, PID_AND_TID, 56, 0, 0, 0], &[], None);
        for cut in 0..whole.len() {
            assert_eq!(records(&whole[..cut], true).count(), 0, "{cut}");
        }
        let too_long = record(9, 1, &[1, PID_AND_TID, 56, u64::MAX, 0, 0], &[], None);
        assert!(records(&too_long, true).all(|record| matches!(record, Record::Other)));
        let of_no_size = [9, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(records(&of_no_size, true).count(), 0);
    }
}
