//! A tiny source tree, a machine with few tools, and a cache.

use super::super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::cell::RefCell;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

/// Writes down what it is told, as the real one does.
pub const CONFIGURE: &str = r#"#!/bin/sh
PACKAGE_VERSION='17.99'
said=
for word in "$@"; do
    said="$said '$word'"
    case "$word" in
    CFLAGS=*) cflags=${word#CFLAGS=} ;;
    LDFLAGS=*) ldflags=${word#LDFLAGS=} ;;
    --prefix=*) prefix=${word#--prefix=} ;;
    esac
done
echo configured >>work.log
cat >config.mk <<END
PREFIX = $prefix
SAID = $said
FLAGS = -Wall ${cflags:--O2}
LINK = $ldflags
END
"#;

/// `postgres` has in it what it was made of; `work.log` what was done for it.
pub const MAKEFILE: &str = r#"include config.mk
all: postgres pg_config
%.o: %.c
	echo made $@ >>work.log
	cat $< >$@
postgres: src/a.o src/b.o config.mk
	printf '#!/bin/sh\necho "postgres (PostgreSQL) 17.99"\n' >$@
	cat src/a.o src/b.o >>$@
	chmod +x $@
pg_config: config.mk
	printf '#!/bin/sh\ncase $$1 in\n--version) echo PostgreSQL 17.99 ;;\n' >$@
	printf '%s\n' "--cflags) echo $(FLAGS) ;;" "--ldflags) echo $(LINK) ;;" >>$@
	printf '%s\n' "--configure) echo \"$(SAID)\" ;;" esac >>$@
	chmod +x $@
install: all
	mkdir -p $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share
	cp postgres pg_config $(DESTDIR)$(PREFIX)/bin
	cp postgres $(DESTDIR)$(PREFIX)/bin/initdb
	cat work.log >$(DESTDIR)$(PREFIX)/share/work.log
"#;

/// A source tree, a machine with few tools, and a cache.
pub struct World {
    dir: tempfile::TempDir,
    pub cache: Cache,
    pub sources: Sources,
    said: RefCell<Vec<String>>,
}

impl World {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path().join("cache")).unwrap();
        let world = Self {
            sources: Sources {
                variants: fake_variants(),
                jobs: std::num::NonZeroUsize::new(2),
                ..Sources::default()
            },
            said: RefCell::default(),
            cache,
            dir,
        };
        for (name, text) in [
            ("configure", CONFIGURE),
            ("Makefile", MAKEFILE),
            ("contrib/Makefile", "all:\ninstall:\n"),
            ("src/a.c", "# a 1\n"),
            ("src/b.c", "# b 1\n"),
            ("src/backend/parser/gram.c", ""),
        ] {
            world.write(name, text);
        }
        std::fs::create_dir(world.path("bin")).unwrap();
        for tool in ["make", "git", "cat", "chmod", "cp", "mkdir", "mv"] {
            let found = Toolbox::here()
                .find(tool)
                .unwrap_or_else(|| panic!("{tool} is not installed"));
            symlink(found, world.path("bin").join(tool)).unwrap();
        }
        world.tool("gcc", "case $1 in --version) echo 'gcc 99.1';; esac");
        world.tool("perl", "");
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file of the source tree.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path("fake-1.0").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let mode = if name == "configure" { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    pub fn change(&self, name: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path("fake-1.0").join(name)).unwrap();
        assert!(text.contains(from), "{name}");
        self.write(name, &text.replace(from, to));
    }

    pub fn tool(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn tools(&self) -> Toolbox {
        Toolbox {
            path: self.path("bin").into_os_string(),
            inherited: Vec::new(),
        }
    }

    /// Packs the tree; returns the target that builds it.
    pub fn packed(&self, variant: &str) -> String {
        let file = self.path("fake-1.0.tar.gz");
        let mut tar = tar::Builder::new(GzEncoder::new(
            std::fs::File::create(&file).unwrap(),
            Compression::fast(),
        ));
        tar.append_dir_all("fake-1.0", self.path("fake-1.0"))
            .unwrap();
        tar.into_inner().unwrap().finish().unwrap();
        format!("src:{}+{variant}", file.display())
    }

    pub fn git(&self, words: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.path("fake-1.0"))
            .args(["-c", "user.name=x", "-c", "user.email=x@example"])
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?} {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Commits the tree; returns the target that builds this commit.
    pub fn commit(&self, variant: &str) -> String {
        if !self.path("fake-1.0/.git").exists() {
            self.git(&["init", "-q"]);
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "x"]);
        self.at_head(variant)
    }

    pub fn at_head(&self, variant: &str) -> String {
        let id = self.git(&["rev-parse", "HEAD"]);
        format!("git:{}@{id}+{variant}", self.path("fake-1.0").display())
    }

    pub fn resolve(&self, target: &str) -> Result<Installation, Problem> {
        self.said.borrow_mut().clear();
        let mut progress = |line: &str| self.said.borrow_mut().push(line.to_owned());
        Builder::new(&self.cache, &self.sources, self.tools())
            .resolve(&target.parse()?, &mut progress)
    }

    pub fn said(&self) -> String {
        self.said.borrow().join("\n")
    }

    /// What was done for an installation, since its tree was made.
    pub fn work(&self, found: &Installation) -> Vec<String> {
        let log = found.bin_dir.parent().unwrap().join("share/work.log");
        let text = std::fs::read_to_string(log).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub fn names_in(&self, dir: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.cache.root().join(dir))
            .into_iter()
            .flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// The built-in variants ask for libraries; these need nothing.
fn fake_variants() -> Variants {
    let none = ["--without-readline", "--without-icu", "--without-zlib"].map(str::to_owned);
    let variant = |cflags: &str| Variant {
        options: none.to_vec(),
        cflags: cflags.to_owned(),
        ..Variant::default()
    };
    let meson = Variant {
        system: BuildSystem::Meson,
        options: ["readline", "icu", "zlib"]
            .map(|name| format!("-D{name}=disabled"))
            .to_vec(),
        cflags: "-O3".to_owned(),
        ..Variant::default()
    };
    let own = [
        ("plain", variant("")),
        ("fast", variant("-O3 -funroll-loops")),
        ("own_cpu", variant("-O3 -march=native")),
        ("with_meson", meson),
    ];
    Variants::builtin()
        .with(own.map(|(name, variant)| (name.to_owned(), variant)))
        .unwrap()
}
