//! The fleet file: which engine, which hosts, what must share one.

use deltabench_document::{Document, Section};
use deltabench_model::problem::Problem;
use std::path::PathBuf;

/// What carries lanes to hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineWord {
    /// Processes on this machine, one lane at a time.
    Local,
    Slurm,
}

/// How hosts get programs and servers, and how what they measured comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// A directory that all hosts see.
    Shared,
    /// `sbcast` into the local directory of each host, and back through steps of `srun`.
    Sbcast,
}

/// What shares a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// All parts of a repetition.
    Repetition,
    /// A part alone.
    Part,
}

/// What becomes of units of a lane that are measured when its host is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLoss {
    /// They stay; the report says that the lane has changed its host.
    Continue,
    /// They are measured again, so that all of the lane is of one host.
    Restart,
}

/// What is passed through to Slurm.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlurmOptions {
    pub partition: Option<String>,
    pub constraint: Option<String>,
    /// More options of `sbatch`, as they are.
    pub extra: Vec<String>,
}

/// A fleet file.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetFile {
    pub engine: EngineWord,
    /// Directory for the spool, programs and servers. All hosts see it, unless they get copies.
    pub shared: PathBuf,
    pub copy: Copying,
    /// Directory on a disk of each host, for what is measured there; absent: in `/var/tmp`.
    pub local: Option<PathBuf>,
    /// Whether a lane begins with a look at its host.
    pub check: bool,
    /// Whether the first lane on a host begins with a server against itself.
    pub admission: bool,
    pub slurm: SlurmOptions,
    pub by: By,
    pub on_loss: OnLoss,
    /// Whether repetitions of the same parts keep to different hosts while there are hosts without one.
    pub spread: bool,
    /// How many lanes may run at once; absent: as many as there are hosts.
    pub hosts: Option<u32>,
    /// The time limit of a lane is its estimate times this, and 30 minutes.
    pub margin: f64,
    /// Minutes that a lane waits for a host on which somebody measures.
    pub wait_minutes: u32,
}

const ROOT: [&str; 12] = [
    "format",
    "version",
    "engine",
    "shared",
    "spool",
    "copy",
    "local",
    "check",
    "admission",
    "slurm",
    "lanes",
    "about",
];

impl FleetFile {
    /// Reads the text of a file.
    ///
    /// Errors: with file, line and key.
    pub fn read(file: &str, text: &str) -> Result<Self, Problem> {
        let document = Document { file, text };
        let table = document.parse()?;
        let root = Section::new(document, "the file".to_owned(), 0, table.get_ref());
        root.allow(&ROOT)?;
        let format = root.required_text("format")?;
        if format.0 != "deltabench.fleet" {
            return Err(root
                .problem_at(format.1, format!("`format` is \"{}\"", format.0))
                .hint("a fleet file has format = \"deltabench.fleet\""));
        }
        root.required("version")?;
        root.number::<u32>("version", 1..=1)?;
        root.prose("about")?;
        root.required("engine")?;
        let engine = [("local", EngineWord::Local), ("slurm", EngineWord::Slurm)];
        let engine = root.word("engine", &engine)?.unwrap_or(EngineWord::Local);
        let (copy, shared) = place(&root, engine)?;
        let slurm = match root.section("slurm", "[slurm]")? {
            Some(section) => slurm(&section)?,
            None => SlurmOptions::default(),
        };
        let mut read = Self {
            engine,
            shared,
            copy,
            local: absolute(&root, "local")?,
            check: root.flag("check")?.unwrap_or(true),
            admission: root.flag("admission")?.unwrap_or(true),
            slurm,
            by: By::Repetition,
            on_loss: OnLoss::Continue,
            spread: false,
            hosts: None,
            margin: 2.0,
            wait_minutes: 10,
        };
        if let Some(section) = root.section("lanes", "[lanes]")? {
            read.lanes(&section)?;
        }
        Ok(read)
    }

    fn lanes(&mut self, section: &Section<'_>) -> Result<(), Problem> {
        section.allow(&["by", "on_loss", "spread", "hosts", "margin", "wait_minutes"])?;
        let words = [("repetition", By::Repetition), ("part", By::Part)];
        self.by = section.word("by", &words)?.unwrap_or(self.by);
        let words = [("continue", OnLoss::Continue), ("restart", OnLoss::Restart)];
        self.on_loss = section.word("on_loss", &words)?.unwrap_or(self.on_loss);
        self.spread = section.flag("spread")?.unwrap_or(self.spread);
        self.hosts = section.number("hosts", 1..=1000)?;
        self.margin = section
            .fraction("margin", 1.0..=20.0)?
            .unwrap_or(self.margin);
        let wait = section.number("wait_minutes", 0..=1440)?;
        self.wait_minutes = wait.unwrap_or(self.wait_minutes);
        Ok(())
    }
}

/// How things travel, and the directory that this needs.
fn place(root: &Section<'_>, engine: EngineWord) -> Result<(Copying, PathBuf), Problem> {
    let copy = root.word("copy", &[("sbcast", Copying::Sbcast)])?;
    let (copy, wanted, other) = match copy {
        Some(copy) => (copy, "spool", "shared"),
        None => (Copying::Shared, "shared", "spool"),
    };
    if copy == Copying::Sbcast && engine != EngineWord::Slurm {
        return Err(root
            .problem("`copy = \"sbcast\"` needs `engine = \"slurm\"`")
            .hint("the local engine needs no copies: name a directory with `shared`"));
    }
    if let Some((_, at)) = root.text(other)? {
        let with = match copy {
            Copying::Sbcast => "with",
            Copying::Shared => "without",
        };
        return Err(root
            .problem_at(at, format!("`{other}` has no meaning {with} `copy`"))
            .hint(format!("name the directory with `{wanted}`")));
    }
    let missing = || root.problem(format!("key `{wanted}` is missing"));
    Ok((copy, absolute(root, wanted)?.ok_or_else(missing)?))
}

fn slurm(section: &Section<'_>) -> Result<SlurmOptions, Problem> {
    section.allow(&["partition", "constraint", "extra"])?;
    let text = |key: &str| -> Result<Option<String>, Problem> {
        Ok(section.text(key)?.map(|(text, _)| text.to_owned()))
    };
    Ok(SlurmOptions {
        partition: text("partition")?,
        constraint: text("constraint")?,
        extra: section.owned_texts("extra")?,
    })
}

/// Hosts have other working directories: only whole paths mean the same everywhere.
fn absolute(section: &Section<'_>, key: &str) -> Result<Option<PathBuf>, Problem> {
    let Some((text, at)) = section.text(key)? else {
        return Ok(None);
    };
    let path = PathBuf::from(text);
    if !path.is_absolute() {
        return Err(section.problem_at(at, format!("`{key}` must be a path from / on")));
    }
    Ok(Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str =
        "format = \"deltabench.fleet\"\nversion = 1\nengine = \"slurm\"\nshared = \"/s\"\n";

    #[test]
    fn a_small_file_has_defaults_and_all_keys_are_read() {
        let small = FleetFile::read("f", SMALL).unwrap();
        assert_eq!(
            (small.by, small.hosts, small.check),
            (By::Repetition, None, true)
        );
        let text = format!(
            "{SMALL}local = \"/l\"\ncheck = false\nadmission = false\n[slurm]\npartition = \"bench\"\n\
             constraint = \"epyc&nvme\"\n\
             extra = [\"--account=perf\"]\n[lanes]\nby = \"part\"\non_loss = \"restart\"\n\
             spread = true\nhosts = 4\nmargin = 3\nwait_minutes = 0"
        );
        let file = FleetFile::read("f", &text).unwrap();
        assert_eq!((small.admission, file.admission), (true, false));
        assert_eq!((small.spread, file.spread), (false, true));
        assert_eq!(file.slurm.constraint.as_deref(), Some("epyc&nvme"));
        assert_eq!(file.slurm.extra, ["--account=perf"]);
        assert_eq!(
            (small.on_loss, file.on_loss),
            (OnLoss::Continue, OnLoss::Restart)
        );
        assert_eq!(
            (file.by, file.hosts, file.wait_minutes),
            (By::Part, Some(4), 0)
        );
        assert_eq!(file.local, Some(PathBuf::from("/l")));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let refused = |more: &str| FleetFile::read("f", &format!("{SMALL}{more}")).unwrap_err();
        assert_eq!(
            refused("local = \"l\"").error,
            "f:5: the file: `local` must be a path from / on"
        );
        let by = refused("[lanes]\nby = \"host\"");
        assert!(by.error.starts_with("f:6:"), "{by}");
        let copied = SMALL.replace("shared", "copy = \"sbcast\"\nspool");
        let read = FleetFile::read("f", &copied).unwrap();
        assert_eq!(
            (read.copy, read.shared),
            (Copying::Sbcast, PathBuf::from("/s"))
        );
        let both = refused("copy = \"sbcast\"");
        assert_eq!(both.hint.unwrap(), "name the directory with `spool`");
        let local = FleetFile::read("f", &copied.replace("\"slurm\"", "\"local\"")).unwrap_err();
        assert!(local.error.contains("needs `engine"), "{local}");
        let missing = FleetFile::read("f", &SMALL.replace("shared", "local")).unwrap_err();
        assert!(missing.error.contains("`shared` is missing"), "{missing}");
        let other = FleetFile::read("f", &SMALL.replace(".fleet", ".plan")).unwrap_err();
        assert!(other.hint.unwrap().contains("deltabench.fleet"));
    }
}
