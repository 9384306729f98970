//! What is mapped into a process.

use crate::process::Process;
use std::path::{Path, PathBuf};

/// A stretch of a process's addresses that holds code of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMapping {
    /// Its first address.
    pub start: u64,
    /// The address behind its last one.
    pub end: u64,
    /// Where it begins in the file, bytes.
    pub offset: u64,
    /// The file, or `[vdso]`: what the kernel gives to every process.
    pub file: PathBuf,
}

impl CodeMapping {
    /// The name of the kernel's own library in every process.
    pub const VDSO: &'static str = "[vdso]";

    /// Whether an address lies in it.
    pub fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// A line of `maps`; `None` for what is not code, or of no file.
    ///
    /// Source: `proc_pid_maps`(5).
    fn parse(line: &str) -> Option<Self> {
        let mut rest = line;
        let mut word = || {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after.trim_start();
            word
        };
        let (range, access, offset) = (word(), word(), word());
        let (_device, _inode) = (word(), word());
        let file = Path::new(rest);
        let has_code = file.is_absolute() || rest == Self::VDSO;
        if access.as_bytes().get(2) != Some(&b'x') || !has_code {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let number = |hex: &str| u64::from_str_radix(hex, 16).ok();
        Some(Self {
            start: number(start)?,
            end: number(end)?,
            offset: number(offset)?,
            file: file.to_owned(),
        })
    }
}

impl Process {
    /// The code that is mapped into it, ascending; absent if it has ended or is not ours to look at.
    pub fn code(&self) -> Option<Vec<CodeMapping>> {
        let text = self.text("maps")?;
        Some(text.lines().filter_map(CodeMapping::parse).collect())
    }

    /// Bytes of its memory; absent if it has ended, is not ours to look at, or has none there.
    pub fn memory(&self, from: u64, length: usize) -> Option<Vec<u8>> {
        use std::os::unix::fs::FileExt;
        let file = std::fs::File::open(self.path("mem")).ok()?;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, from).ok()?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_code_is_read_and_other_lines_are_left_out() {
        let code = "55d0a1000000-55d0a1800000 r-xp 000c4000 fe:01 12 /opt/my servers/bin/postgres";
        let read = CodeMapping::parse(code).unwrap();
        assert_eq!(
            (read.start, read.end, read.offset),
            (0x55d0_a100_0000, 0x55d0_a180_0000, 0xc4000)
        );
        assert_eq!(read.file, Path::new("/opt/my servers/bin/postgres"));
        assert!(read.holds(read.start) && !read.holds(read.end));
        for other in [
            "7ffd0-7ffd1 rw-p 00000000 00:00 0                          [stack]",
            "7ffd0-7ffd1 r--p 00000000 fe:01 12                         /opt/bin/postgres",
            "7ffd0-7ffd1 r-xp 00000000 00:00 0 ",
            "nonsense",
            "",
        ] {
            assert_eq!(CodeMapping::parse(other), None, "{other}");
        }
        let vdso = "7ffd0000-7ffd2000 r-xp 00000000 00:00 0                          [vdso]";
        assert!(CodeMapping::parse(vdso).is_some());
    }

    #[test]
    fn this_program_has_code_and_can_read_it() {
        let own = Process::of(std::process::id());
        let code = own.code().unwrap();
        let exe = std::env::current_exe().unwrap().canonicalize().unwrap();
        let ours = code.iter().find(|mapping| mapping.file == exe).unwrap();
        let bytes = own.memory(ours.start, 16).unwrap();
        let file = std::fs::read(&exe).unwrap();
        let offset = usize::try_from(ours.offset).unwrap();
        assert_eq!(bytes, file[offset..offset + 16]);
        assert_eq!(own.memory(0, 16), None);
    }
}
