//! Where the text of a dump comes from: a file, plain or compressed, or a program that makes text of it.

use deltabench_model::problem::Problem;
use flate2::read::MultiGzDecoder;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// What a dump is, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Gzip,
    Zstd,
    /// Custom format, tar or a directory: `pg_restore` makes text of it.
    Archive,
    /// Something that has to be unpacked first, with what.
    Other(&'static str),
}

/// First bytes of a form.
const MAGIC: [(&[u8], Form); 7] = [
    (b"\x1f\x8b", Form::Gzip),
    (b"\x28\xb5\x2f\xfd", Form::Zstd),
    (b"PGDMP", Form::Archive),
    (b"toc.dat\0", Form::Archive),
    (b"\x04\x22\x4d\x18", Form::Other("lz4 -d")),
    (b"BZh", Form::Other("bunzip2")),
    (b"\xfd7zXZ", Form::Other("unxz")),
];
const MAGIC_BYTES: u64 = 8;

/// A dump that can be read as often as needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpFile {
    path: PathBuf,
    form: Form,
}

impl DumpFile {
    /// Looks at a file or at a directory of `pg_dump --format directory`.
    ///
    /// Errors: it cannot be read, it is in a form that only another program reads, or that program is not
    /// there.
    pub fn find(path: &Path) -> Result<Self, Problem> {
        let form = form(path)?;
        if let Form::Other(program) = form {
            return Err(unread(path)
                .detail("deltabench does not read this compression")
                .hint(format!("unpack it first, with {program}")));
        }
        let dump = Self {
            path: path.to_owned(),
            form,
        };
        if let Some((program, hint)) = dump.program()
            && deltabench_proc::program(program, std::env::var_os("PATH").as_deref()).is_none()
        {
            return Err(unread(path)
                .detail(format!("it takes {program}, which is not in the PATH"))
                .hint(hint));
        }
        Ok(dump)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it from its beginning.
    ///
    /// Errors: the file or the program cannot be opened.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let reading = |arguments: &[&str]| -> io::Result<Box<dyn Read + Send>> {
            let (program, _) = self.program().unwrap_or_default();
            let arguments = arguments.iter().map(OsString::from);
            let arguments = arguments.chain([self.path.clone().into_os_string()]);
            Ok(Box::new(Output::of(program, arguments)?))
        };
        match self.form {
            Form::Gzip => Ok(Box::new(MultiGzDecoder::new(File::open(&self.path)?))),
            Form::Zstd => reading(&["-dcq", "--"]),
            Form::Archive => reading(&["--file=-", "--"]),
            Form::Plain | Form::Other(_) => Ok(Box::new(File::open(&self.path)?)),
        }
    }

    /// The program that reads it, if one does, and what to do without.
    fn program(&self) -> Option<(&'static str, String)> {
        let path = self.path.display();
        match self.form {
            Form::Zstd => Some((
                "zstd",
                "install zstd, or unpack the file elsewhere: `zstd -d`".to_owned(),
            )),
            Form::Archive => Some((
                "pg_restore",
                format!(
                    "where pg_restore is: `pg_restore --file=dump.sql {path}`, then name dump.sql; or dump \
                     with `pg_dump DATABASE > dump.sql`"
                ),
            )),
            _ => None,
        }
    }
}

fn unread(path: &Path) -> Problem {
    Problem::new(format!("cannot read {}", path.display()))
}

fn form(path: &Path) -> Result<Form, Problem> {
    if path.is_dir() {
        if path.join("toc.dat").is_file() || path.join("toc.dat.gz").is_file() {
            return Ok(Form::Archive);
        }
        return Err(unread(path)
            .detail("it is a directory, and not one of pg_dump")
            .hint("name the output of `pg_dump DATABASE > FILE`"));
    }
    let mut first = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAGIC_BYTES).read_to_end(&mut first))
        .map_err(|error| {
            unread(path)
                .detail(error.to_string())
                .hint("name the output of `pg_dump DATABASE > FILE`")
        })?;
    let known = MAGIC.iter().find(|(magic, _)| first.starts_with(magic));
    Ok(known.map_or(Form::Plain, |(_, form)| *form))
}

/// What a program writes; it fails at the end if the program does.
struct Output {
    child: Child,
    stdout: ChildStdout,
    program: &'static str,
}

impl Output {
    fn of(program: &'static str, arguments: impl Iterator<Item = OsString>) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let stdout = child.stdout.take();
        let stdout = stdout.ok_or_else(|| io::Error::other("its output is not there"))?;
        Ok(Self {
            child,
            stdout,
            program,
        })
    }
}

impl Read for Output {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.stdout.read(room)?;
        if read == 0 && !room.is_empty() {
            let status = self.child.wait()?;
            if !status.success() {
                return Err(io::Error::other(format!(
                    "{} ended with {status}",
                    self.program
                )));
            }
        }
        Ok(read)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Nobody reads any more: it would wait for ever, or has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn text(dump: &DumpFile) -> io::Result<String> {
        let mut text = String::new();
        dump.open()?.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn plain_and_gzipped_dumps_are_read_again_and_again() {
        let directory = tempfile::tempdir().unwrap();
        let plain = directory.path().join("a.sql");
        std::fs::write(&plain, "select 1;").unwrap();
        let dump = DumpFile::find(&plain).unwrap();
        assert_eq!(
            text(&dump).unwrap() + &text(&dump).unwrap(),
            "select 1;select 1;"
        );
        let packed = directory.path().join("a.sql.gz");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(b"select 2;").unwrap();
        let bytes = encoder.finish().unwrap();
        std::fs::write(&packed, &bytes).unwrap();
        assert_eq!(
            text(&DumpFile::find(&packed).unwrap()).unwrap(),
            "select 2;"
        );
        std::fs::write(&packed, &bytes[..bytes.len() - 6]).unwrap();
        assert!(text(&DumpFile::find(&packed).unwrap()).is_err(), "cut");
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let problem = |bytes: &[u8]| {
            let path = directory.path().join("a.dump");
            std::fs::write(&path, bytes).unwrap();
            DumpFile::find(&path).map(|dump| dump.form)
        };
        assert!(
            problem(b"BZh91AY")
                .unwrap_err()
                .hint
                .unwrap()
                .contains("bunzip2")
        );
        let missing = DumpFile::find(&directory.path().join("none")).unwrap_err();
        assert!(missing.error.contains("cannot read"));
        let empty = DumpFile::find(directory.path()).unwrap_err();
        assert!(empty.detail.unwrap().contains("directory"));
        assert_eq!(
            form(&directory.path().join("a.dump")).unwrap(),
            Form::Other("bunzip2")
        );
    }

    #[test]
    fn a_program_that_fails_is_no_end_of_the_dump() {
        let failing = ["-c", "echo 'select 1;'; exit 3"].map(OsString::from);
        let mut output = Output::of("sh", failing.into_iter()).unwrap();
        let mut text = String::new();
        let error = output.read_to_string(&mut text).unwrap_err();
        assert_eq!(text, "select 1;\n");
        assert!(error.to_string().contains("sh ended with"), "{error}");
    }
}
