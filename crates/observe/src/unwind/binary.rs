//! What a program's file says of its functions: their names, and how to unwind them.

use deltabench_proc::{CodeMapping, Process};
use object::read::elf::{ElfFile64, ElfSymbol64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files by path, read once: versions of a server have files of their own.
#[derive(Debug, Default)]
pub(super) struct Binaries {
    files: HashMap<PathBuf, Option<Arc<Binary>>>,
}

impl Binaries {
    /// The file; absent if it cannot be read as a program.
    pub(super) fn of(&mut self, file: &Path) -> Option<Arc<Binary>> {
        if let Some(known) = self.files.get(file) {
            return known.clone();
        }
        let bytes = if file == Path::new(CodeMapping::VDSO) {
            own_vdso()
        } else {
            std::fs::read(file).ok()
        };
        let read = bytes.and_then(|bytes| Binary::read(&bytes)).map(Arc::new);
        self.files.insert(file.to_owned(), read.clone());
        read
    }
}

/// The kernel's library as we have it: it is the same in every process.
fn own_vdso() -> Option<Vec<u8>> {
    let own = Process::of(std::process::id());
    let code = own.code()?;
    let vdso = Path::new(CodeMapping::VDSO);
    let mapping = code.iter().find(|mapping| mapping.file == vdso)?;
    let length = usize::try_from(mapping.end - mapping.start).ok()?;
    own.memory(mapping.start, length)
}

/// A program or library. Addresses are those in the file.
#[derive(Debug)]
pub(super) struct Binary {
    /// The first address of its code.
    pub(super) base: u64,
    /// Addresses of its code.
    pub(super) text: Range<u64>,
    pub(super) eh_frame: Option<Section>,
    pub(super) eh_frame_hdr: Option<Section>,
    /// Places of its code: offset in the file, length, address.
    segments: Vec<(u64, u64, u64)>,
    functions: Vec<Function>,
    /// Whether functions that only their own file sees have names.
    has_static_names: bool,
}

/// A section's address and bytes.
#[derive(Debug)]
pub(super) struct Section {
    address: u64,
    bytes: Arc<[u8]>,
}

impl Section {
    pub(super) fn range(&self) -> Range<u64> {
        let length = u64::try_from(self.bytes.len()).unwrap_or(0);
        self.address..self.address.saturating_add(length)
    }

    pub(super) fn bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }
}

#[derive(Debug)]
struct Function {
    start: u64,
    /// 0 where it is not known.
    length: u64,
    name: String,
}

type File<'a> = ElfFile64<'a, Endianness>;

impl Binary {
    fn read(bytes: &[u8]) -> Option<Self> {
        let file: File<'_> = ElfFile64::parse(bytes).ok()?;
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            Some(Section {
                address: section.address(),
                bytes: section.data().ok().filter(|data| !data.is_empty())?.into(),
            })
        };
        let endian = file.endian();
        let headers = file.elf_header().program_headers(endian, bytes).ok()?;
        let segments: Vec<(u64, u64, u64)> = headers
            .iter()
            .filter(|header| header.p_type(endian) == object::elf::PT_LOAD)
            .filter(|header| header.p_flags(endian) & object::elf::PF_X != 0)
            .map(|header| {
                let (offset, length) = (header.p_offset(endian), header.p_filesz(endian));
                (offset, length, header.p_vaddr(endian))
            })
            .collect();
        let text = file.section_by_name(".text")?;
        let mut functions = functions(file.symbols());
        let has_static_names = !functions.is_empty();
        if !has_static_names {
            functions = self::functions(file.dynamic_symbols());
        }
        Some(Self {
            base: segments.iter().map(|(_, _, address)| *address).min()?,
            text: text.address()..text.address().saturating_add(text.size()),
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            segments,
            functions,
            has_static_names,
        })
    }

    /// What is added to the file's addresses where it is mapped so.
    pub(super) fn bias(&self, mapping: &CodeMapping) -> Option<u64> {
        let page = deltabench_proc::page_bytes();
        // Mappings begin at the page that a segment begins in.
        let (offset, _, address) = self.segments.iter().find(|(offset, length, _)| {
            let begin = offset - offset % page;
            (begin..offset.saturating_add(*length)).contains(&mapping.offset)
        })?;
        let in_file = address.wrapping_add(mapping.offset).wrapping_sub(*offset);
        Some(mapping.start.wrapping_sub(in_file))
    }

    /// The name of the function at an address; absent before the first one.
    pub(super) fn function_at(&self, address: u64) -> Option<String> {
        let behind = self
            .functions
            .partition_point(|function| function.start <= address);
        let function = self.functions.get(behind.checked_sub(1)?)?;
        let is_inside = address - function.start < function.length;
        if is_inside || (function.length == 0 && self.has_static_names) {
            return Some(function.name.clone());
        }
        if !self.text.contains(&address) {
            // Jumps to other files, which have no names of their own.
            return None;
        }
        Some(format!("[static after {}]", function.name))
    }
}

/// Functions with an address, one for each, ascending.
fn functions<'d: 'f, 'f>(
    symbols: impl Iterator<Item = ElfSymbol64<'d, 'f, Endianness>>,
) -> Vec<Function> {
    let mut all: Vec<Function> = symbols
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
        .filter_map(|symbol| {
            Some(Function {
                start: symbol.address(),
                length: symbol.size(),
                name: symbol
                    .name()
                    .ok()
                    .filter(|name| !name.is_empty())?
                    .to_owned(),
            })
        })
        .collect();
    // Of several names for one function the plainest: longest code, fewest underscores in front, shortest.
    all.sort_by(|a, b| {
        let plainness = |function: &Function| {
            let name = &function.name;
            let underscores = name.len() - name.trim_start_matches('_').len();
            (underscores, name.len())
        };
        let order =
            (a.start, std::cmp::Reverse(a.length)).cmp(&(b.start, std::cmp::Reverse(b.length)));
        order
            .then_with(|| plainness(a).cmp(&plainness(b)))
            .then_with(|| a.name.cmp(&b.name))
    });
    all.dedup_by_key(|function| function.start);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(has_static_names: bool) -> Binary {
        let function = |start, length, name: &str| Function {
            start,
            length,
            name: name.to_owned(),
        };
        Binary {
            base: 0,
            text: 0x1000..0x2000,
            eh_frame: None,
            eh_frame_hdr: None,
            segments: vec![(0x9c0, 0x1640, 0x19c0), (0x3000, 0x100, 0x6000)],
            functions: vec![
                function(0x1000, 0x100, "ExecScan"),
                function(0x1200, 0, "_start"),
                function(0x1300, 0x80, "send"),
            ],
            has_static_names,
        }
    }

    #[test]
    fn an_address_has_the_name_of_the_function_around_it() {
        let at = |address| binary(true).function_at(address);
        assert_eq!(at(0x10ff).unwrap(), "ExecScan");
        assert_eq!(at(0x1100).unwrap(), "[static after ExecScan]");
        assert_eq!(at(0x12ff).unwrap(), "_start");
        assert_eq!(at(0x0fff), None);
        assert_eq!(at(0x2100), None, "not code of this file");
        let stripped = binary(false).function_at(0x12ff).unwrap();
        assert_eq!(stripped, "[static after _start]");
    }

    #[test]
    fn a_mapping_says_by_how_much_addresses_are_moved() {
        let mapping = |start, offset| CodeMapping {
            start,
            end: start + 0x2000,
            offset,
            file: PathBuf::new(),
        };
        // The page of the segment: 0x9c0 is at 0x19c0, so the page at 0 is at 0x1000.
        let of_page = mapping(0x55_0000_1000, 0);
        assert_eq!(binary(true).bias(&of_page), Some(0x55_0000_0000));
        assert_eq!(
            binary(true).bias(&mapping(0x7000_3000, 0x3000)),
            Some(0x6fff_d000)
        );
        assert_eq!(binary(true).bias(&mapping(0x7000_3000, 0x9000)), None);
    }

    #[test]
    fn this_program_and_the_kernels_library_are_read_once() {
        let mut binaries = Binaries::default();
        let exe = std::env::current_exe().unwrap();
        let read = binaries.of(&exe).unwrap();
        assert!(Arc::ptr_eq(&read, &binaries.of(&exe).unwrap()));
        assert!(read.eh_frame.is_some() && read.functions.len() > 100);
        let starts: Vec<u64> = read
            .functions
            .iter()
            .map(|function| function.start)
            .collect();
        assert!(starts.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(binaries.of(Path::new("/no/such/file")).is_none());
        assert!(binaries.of(Path::new("/proc/self/stat")).is_none());
        if let Some(vdso) = binaries.of(Path::new(CodeMapping::VDSO)) {
            let has = |part: &str| vdso.functions.iter().any(|f| f.name.contains(part));
            assert!(has("clock_gettime"));
        }
    }
}
