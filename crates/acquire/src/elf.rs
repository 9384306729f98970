//! What a compiled file says of itself: compilers, symbols, strings.

use object::elf::SHF_ALLOC;
use object::read::elf::ElfFile64;
use object::{Architecture, Endianness, Object, ObjectSection, ObjectSymbol, SectionFlags};
use std::collections::BTreeSet;

/// The facts of one ELF file.
pub(crate) struct Elf {
    /// Every compiler that parts of it were made with, for example `GCC (GNU) 7.3.1 20180303 (Red Hat
    /// 7.3.1-5)`; empty where that was taken out.
    pub compilers: Vec<String>,
    /// Names of the functions that it defines for others.
    pub exported: BTreeSet<String>,
    /// Names of all functions and variables that it defines or wants.
    pub mentioned: BTreeSet<String>,
    /// Read-only data.
    pub constants: Vec<u8>,
}

impl Elf {
    /// Reads a file made for the machine that this program was built for.
    ///
    /// Errors: what is wrong with the file.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let file: ElfFile64<'_, Endianness> =
            ElfFile64::parse(bytes).map_err(|error| format!("not a 64-bit ELF file: {error}"))?;
        let (here, made_for) = (std::env::consts::ARCH, file.architecture());
        let fits = match made_for {
            Architecture::X86_64 => here == "x86_64",
            Architecture::Aarch64 => here == "aarch64",
            _ => false,
        };
        if !fits {
            return Err(format!(
                "it is made for {made_for:?}, and this machine is {here}"
            ));
        }
        let named = |symbol: &object::read::elf::ElfSymbol64<'_, '_, Endianness>| {
            symbol.name().ok().map(str::to_owned)
        };
        let exported = file
            .dynamic_symbols()
            .filter(|symbol| symbol.is_definition() && symbol.is_global())
            .filter_map(|symbol| named(&symbol))
            .collect();
        let mentioned = file
            .dynamic_symbols()
            .chain(file.symbols())
            .filter_map(|symbol| named(&symbol))
            .collect();
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            section.data().ok()
        };
        Ok(Self {
            compilers: compilers(section(".comment").unwrap_or_default()),
            exported,
            mentioned,
            constants: section(".rodata").unwrap_or_default().to_owned(),
        })
    }

    /// The text that follows `label` in the read-only data, up to the end of that string.
    pub fn labelled(&self, label: &str) -> Option<String> {
        let start = self
            .constants
            .windows(label.len())
            .position(|window| window == label.as_bytes())?;
        let rest = self.constants.get(start + label.len()..)?;
        let text = rest.split(|byte| *byte == 0).next()?;
        String::from_utf8(text.to_owned()).ok()
    }
}

/// What a file is when it runs: its sections that are loaded, without notes such as the build's id. Absent
/// for what is no ELF file.
pub(crate) fn loaded(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let file: ElfFile64<'_, Endianness> = ElfFile64::parse(bytes).ok()?;
    let is_loaded = |flags| match flags {
        SectionFlags::Elf { sh_flags } => sh_flags & u64::from(SHF_ALLOC) != 0,
        _ => false,
    };
    let mut parts = Vec::new();
    for section in file.sections().filter(|one| is_loaded(one.flags())) {
        let name = section.name_bytes().unwrap_or_default();
        if !name.starts_with(b".note") {
            parts.push(name);
            parts.push(section.data().unwrap_or_default());
        }
    }
    Some(parts)
}

/// The compilers among the strings of a `.comment` section, which holds linkers and copyrights too.
fn compilers(comment: &[u8]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in comment.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(text);
        let compiler = match text.strip_prefix("GCC: ") {
            Some(version) => format!("GCC {version}"),
            None if text.contains("clang version") => text.into_owned(),
            None => continue,
        };
        if !found.contains(&compiler) {
            found.push(compiler);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_told_from_what_else_is_in_the_comment() {
        let comment = b"GCC: (GNU) 4.4.7 20120313\0GCC: (GNU) 7.3.1 20180303\0$Id$\0\
                        GCC: (GNU) 4.4.7 20120313\0Debian clang version 14.0.6\0LLD 14\0";
        assert_eq!(
            compilers(comment),
            [
                "GCC (GNU) 4.4.7 20120313",
                "GCC (GNU) 7.3.1 20180303",
                "Debian clang version 14.0.6"
            ]
        );
        assert!(compilers(b"").is_empty());
    }

    #[test]
    fn our_own_program_is_read() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::read(&bytes).unwrap();
        assert!(!elf.mentioned.is_empty());
        assert!(!elf.exported.contains("rocksdb_open"));
        // Backwards, so that this file's own text is not what is found.
        let label: String = "=tset-siht-fo-lebal".chars().rev().collect();
        assert_eq!(elf.labelled(&label), None);
    }

    #[test]
    fn files_of_other_kinds_and_machines_are_refused() {
        assert!(Elf::read(b"#!/bin/sh\n").is_err());
        assert!(Elf::read(b"").is_err());
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        // e_machine: 8 is MIPS.
        bytes[18] = 8;
        bytes[19] = 0;
        assert!(Elf::read(&bytes).err().unwrap().contains("this machine is"));
        bytes.truncate(100);
        assert!(Elf::read(&bytes).is_err());
    }
}
