//! `deltabench bisect` over commits: a repository whose sources "compile" to servers that are here, so that a
//! build takes no time and all else is real.

use crate::bisecting::{OPTIONS, answer, prebuilt};
use crate::counting::untested;
use crate::lab::{Lab, text};
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Notes what it was told in a `pg_config`, as the real one ends up there.
const CONFIGURE: &str = r#"#!/bin/sh
PACKAGE_VERSION='NUMBER'
told=
for word in "$@"; do told="$told '$word'"; done
printf '#!/bin/sh\ncase $1 in --version) echo PostgreSQL NUMBER ;; --configure) echo "%s" ;; esac\n' \
    "$told" >pg_config
echo "$told" | sed "s/.*'--prefix=\([^']*\)'.*/\1/" >prefix
chmod +x pg_config
"#;

/// Installs the programs of the server that the commit names; the rest of its tree is linked.
const MAKEFILE: &str = r"INTO = $(DESTDIR)$(shell cat prefix)
SERVER = $(shell cat src/backend/server)
all:
	sh src/backend/compile
install: all
	mkdir -p $(INTO)
	cp -r $(SERVER)/bin $(INTO)/bin
	ln -s $(SERVER)/lib $(SERVER)/share $(INTO)
	rm -f $(INTO)/bin/pg_config
	cp pg_config $(INTO)/bin/pg_config
";

/// A repository in a lab, and tools that only say that they are there.
struct Fork<'a> {
    lab: &'a Lab,
    path: OsString,
}

impl<'a> Fork<'a> {
    fn new(lab: &'a Lab) -> Self {
        let tools = lab.path().join("tools");
        std::fs::create_dir(&tools).unwrap();
        for tool in ["gcc", "bison", "flex", "perl", "pkg-config"] {
            let file = tools.join(tool);
            std::fs::write(&file, "#!/bin/sh\necho 'gcc 99.1'\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut path = tools.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let fork = Self { lab, path };
        fork.write("Makefile", MAKEFILE);
        fork.write("contrib/Makefile", "all:\ninstall:\n");
        fork.write("src/backend/compile", "exit 0\n");
        fork.git(&["init", "-q", "-b", "master"]);
        fork
    }

    fn directory(&self) -> PathBuf {
        self.lab.path().join("fork")
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.directory().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.directory());
        git.args(["-c", "user.name=x", "-c", "user.email=x@example"]);
        let output = git.args(words).output().unwrap();
        assert!(output.status.success(), "{words:?} {output:?}");
    }

    /// Commits what was written under a tag of this name.
    fn commit(&self, name: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", name]);
        self.git(&["tag", name]);
    }

    /// From now on the sources compile to this server.
    fn become_server(&self, tree: &Path) {
        let said = Command::new(tree.join("bin/postgres"))
            .arg("--version")
            .output()
            .unwrap();
        let said = text(&said.stdout);
        let version = said.split_whitespace().nth(2).unwrap();
        self.write("configure", &CONFIGURE.replace("NUMBER", version));
        self.write("src/backend/server", &tree.display().to_string());
    }

    /// Bisects with the fork's tools and a cache of its own.
    fn command(&self, range: &str, more: &[&str]) -> Command {
        let range = format!("git:{}@{range}+def", self.directory().display());
        let arguments = [&["bisect", &range][..], &OPTIONS, more].concat();
        let mut command = self.lab.command(&arguments);
        command.env("PATH", &self.path);
        command.arg("--cache").arg(self.lab.path().join("cache"));
        command
    }

    fn bisect(&self, range: &str, more: &[&str]) -> Output {
        self.command(range, more).output().unwrap()
    }

    /// The tags of the commits whose builds are in the cache; `?` for one that is no commit of the fork.
    fn builds(&self) -> Vec<String> {
        let built = std::fs::read_dir(self.lab.path().join("cache/built")).unwrap();
        let tag = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let id = name.split(['@', '+']).nth(1).unwrap();
            let mut git = Command::new("git");
            git.arg("-C").arg(self.directory());
            let said = git
                .args(["describe", "--tags", "--exact-match", id])
                .output();
            match text(&said.unwrap().stdout).trim() {
                "" => "?".to_owned(),
                tag => tag.to_owned(),
            }
        };
        let mut tags: Vec<String> = built.map(tag).collect();
        tags.sort();
        tags
    }
}

fn subjects(points: &Value) -> Vec<&str> {
    let points = points.as_array().unwrap().iter();
    points
        .map(|point| point["subject"].as_str().unwrap())
        .collect()
}

#[test]
fn a_commit_that_does_not_compile_is_passed_over_and_the_one_that_did_it_is_named_and_measured() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let (old, new) = (prebuilt(&lab, "postgres:17"), prebuilt(&lab, "postgres:18"));
    let fork = Fork::new(&lab);
    fork.become_server(&old);
    fork.commit("base");
    for name in ["same-1", "same-2", "same-3", "same-4", "same-5"] {
        fork.write("src/backend/a.c", name);
        fork.commit(name);
    }
    fork.write(
        "src/backend/compile",
        "echo 'a.c:1: error: what' >&2; exit 1\n",
    );
    fork.commit("broken");
    fork.write("src/backend/compile", "exit 0\n");
    fork.commit("mended");
    fork.become_server(&new);
    fork.commit("slower");
    fork.write("src/backend/b.c", "later");
    fork.commit("later");
    fork.write("doc/a.sgml", "documents");
    fork.commit("documents");

    // An end that does not compile is no bad request, and nothing was measured.
    let ended = fork.bisect("base..broken", &[]);
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(5), "{said}");
    assert!(said.contains("a.c:1: error: what"), "{said}");

    // No look fits into the time; both ends are counted in any case.
    let short = fork.bisect("base..documents", &["--budget", "1s", "--json", "-"]);
    assert_eq!(short.status.code(), Some(3), "{}", text(&short.stderr));
    assert_eq!(answer(&short)["end"], "undecided");

    // Killed while the culprit is measured in time, and typed again.
    let whole = ["--keep-builds", "0", "--blocks", "6", "--json", "-"];
    let mut command = fork.command("base..documents", &whole);
    let errors = std::fs::File::create(lab.path().join("stderr")).unwrap();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .unwrap();
    lab.wait_for(&mut child, "block 1/6");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    let killed = lab.report();
    assert_eq!(killed["culprits"][0]["in_time"]["says"], "unfinished");
    let output = fork.bisect("base..documents", &whole);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let found = answer(&output);
    let looks = found["looks"].as_array().unwrap();
    let ends = answer(&short)["looks"].clone();
    assert_eq!(looks[..2], ends.as_array().unwrap()[..]);
    assert_eq!(
        subjects(&found["looks"]),
        ["base", "later", "same-4", "broken", "mended", "slower"]
    );
    assert_eq!(looks[3]["outcome"], "skipped");
    let skipped = looks[3]["skipped"].as_str().unwrap();
    assert!(skipped.contains("does not build"), "{skipped}");
    assert_eq!(looks[4]["outcome"], "same", "only the commit differs");
    let [culprit] = found["culprits"].as_array().unwrap().as_slice() else {
        panic!("{found:#}")
    };
    assert_eq!(subjects(&culprit["one_of"]), ["slower"]);
    assert_eq!(culprit["parent"]["subject"], "mended");
    // The end is not the last commit, which is one of documents.
    assert!(said.contains("4 looks, 3 builds"), "{said}");

    let in_time = &culprit["in_time"];
    assert_eq!(in_time["run"], killed["culprits"][0]["in_time"]["run"]);
    assert_ne!(in_time["says"], "unfinished");
    assert!(
        !said.contains("block 1/6"),
        "what was measured stays: {said}"
    );
    // On a busy machine all rounds of a block may be disturbed.
    let blocks = in_time["blocks"].as_u64().unwrap();
    for metric in ["cpu", "throughput", "placebo"] {
        let change = &in_time[metric];
        assert_eq!(change["change"].is_f64(), blocks > 0, "{in_time:#}");
        assert_eq!(change["ci95"].is_array(), blocks > 1, "{in_time:#}");
    }
    // Without it the candidate is the server of the base.
    let left = culprit["without"]["change"].as_f64().unwrap();
    assert!(left.abs() < 1e-9, "{left}");
    // Of the looks only the builds of the culprit and its parent stay, and those of the ends.
    assert_eq!(fork.builds(), ["base", "later", "mended", "slower"]);
    assert!(!said.contains("stays: "), "{said}");
    assert_eq!(lab.servers(), [0; 0], "{said}");
    assert!(lab.workspaces().is_empty(), "{:?} {said}", lab.workspaces());
}
