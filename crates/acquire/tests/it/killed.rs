//! A build whose deltabench is killed.

use crate::child;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const CONFIGURE: &str = r#"#!/bin/sh
PACKAGE_VERSION='17.99'
for word in "$@"; do
    case "$word" in --prefix=*) prefix=${word#--prefix=} ;; *) said="$said '$word'" ;; esac
done
printf 'PREFIX = %s\nSAID = %s\n' "$prefix" "$said" >config.mk
"#;

/// Tells GATE its process and waits there, unless the gate is gone.
const MAKEFILE: &str = r#"include config.mk
all: half
	if [ -p GATE ]; then echo $$PPID >GATE; read -r word <GATE; fi
	printf '#!/bin/sh\necho "postgres (PostgreSQL) 17.99"\n' >postgres
	printf '#!/bin/sh\ncase $$1 in --version) echo PostgreSQL 17.99 ;;\n' >pg_config
	printf '%s\n' "*) echo \"$(SAID)\" ;; esac" >>pg_config
half:
	echo half >$@
install:
	test "`cat half`" = half
	mkdir -p $(DESTDIR)$(PREFIX)/bin
	cp postgres pg_config $(DESTDIR)$(PREFIX)/bin
	cp postgres $(DESTDIR)$(PREFIX)/bin/initdb
	chmod +x $(DESTDIR)$(PREFIX)/bin/*
"#;

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A source archive whose build waits at `gate`, and a machine without the libraries of the real one.
fn world(dir: &Path, gate: &Path) -> (String, PathBuf) {
    let tree = dir.join("tree");
    write(&tree.join("configure"), CONFIGURE);
    let gate = gate.to_str().unwrap();
    write(&tree.join("Makefile"), &MAKEFILE.replace("GATE", gate));
    write(&tree.join("contrib/Makefile"), "all:\ninstall:\n");
    write(&tree.join("src/backend/parser/gram.c"), "");
    let file = dir.join("fake.tar.gz");
    let packed = GzEncoder::new(std::fs::File::create(&file).unwrap(), Compression::fast());
    let mut tar = tar::Builder::new(packed);
    tar.append_dir_all("fake", &tree).unwrap();
    tar.into_inner().unwrap().finish().unwrap();
    let tools = dir.join("tools");
    for (name, script) in [
        ("gcc", "echo 'gcc 99'"),
        ("pkg-config", "exit 0"),
        ("perl", ""),
    ] {
        write(&tools.join(name), &format!("#!/bin/sh\n{script}\n"));
    }
    let own = std::env::var_os("PATH").unwrap();
    let path = [tools].into_iter().chain(std::env::split_paths(&own));
    let path = std::env::join_paths(path).unwrap();
    (format!("src:{}+def", file.display()), PathBuf::from(path))
}

#[test]
fn a_killed_build_ends_with_its_deltabench_and_leaves_nothing_that_counts() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, gate) = (dir.path().join("cache"), dir.path().join("gate"));
    assert!(
        Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    let (target, path) = world(dir.path(), &gate);
    let mut first = child::start(&target, &cache, Some(&path));
    let mut told = String::new();
    std::fs::File::open(&gate)
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    let make: u32 = told.trim().parse().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    std::fs::remove_file(&gate).unwrap();
    let names = |place: &str| -> Vec<String> {
        let entries = std::fs::read_dir(cache.join(place)).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let left = names("built");
    assert!(
        left.iter().all(|name| name.starts_with(".partial-")),
        "{left:?}"
    );
    // The next one gets the lock when make has ended, and begins anew.
    let (said, found) = child::finish(child::start(&target, &cache, Some(&path)));
    assert!(
        !Path::new(&format!("/proc/{make}/exe")).exists(),
        "make of the killed build lives on"
    );
    assert_eq!(found["version"], "17.99");
    assert!(said.iter().any(|line| line.contains("clean")), "{said:?}");
    let left = names("built");
    assert!(
        left.len() == 1 && left[0].starts_with("fake+def-"),
        "{left:?}"
    );
}
