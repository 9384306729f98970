//! Builds of a tiny source tree: a `configure` and a Makefile that make scripts, with a compiler that is
//! one too.

mod held;
mod named;
pub(super) mod world;

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;
use world::{CONFIGURE, MAKEFILE, World};

#[test]
fn an_archive_is_built_once_and_then_found() {
    let world = World::new();
    let target = world.packed("fast");
    let own = world.cache.root().join("build/own");
    make_directory(own.parent().unwrap()).unwrap();
    std::fs::write(&own, "").unwrap();
    let found = world.resolve(&target).unwrap();
    assert!(own.exists());
    assert_eq!(found.asked, target);
    assert_eq!(found.resolved, "src:fake-1.0+fast");
    assert_eq!(
        (found.version.as_str(), found.version_num),
        ("17.99", 170_099)
    );
    let recipe = found.recipe.clone().unwrap();
    assert_eq!(recipe.variant, "fast");
    assert_eq!(recipe.source.len(), 64);
    assert_eq!(recipe.cflags, "-O3 -funroll-loops");
    assert_eq!(recipe.compiler, "gcc 99.1");
    assert_eq!(recipe.options.len(), 3);
    assert!(
        world
            .said()
            .contains("building src:fake-1.0+fast with gcc 99.1"),
        "{}",
        world.said()
    );
    assert!(world.said().contains("make with 2 jobs"));
    let tree = found.bin_dir.parent().unwrap();
    let log = std::fs::read_to_string(tree.join("build.log")).unwrap();
    assert!(log.contains("'CFLAGS=-O3 -funroll-loops'"), "{log}");
    assert_eq!(world.names_in("built").len(), 1);
    assert_eq!(world.names_in("logs"), [""; 0]);
    assert!(!world.cache.root().join(".deltabench/build").exists());
    assert!(!tree.join("staging").exists());

    let again = world.resolve(&target).unwrap();
    assert_eq!(again, found);
    assert_eq!(world.said(), "");
}

#[test]
fn files_of_an_archive_keep_their_times_since_make_goes_by_them() {
    let world = World::new();
    let times = [("src/a.c", 1_000), ("configure", 2_000)];
    for (name, seconds) in times {
        let file = std::fs::File::open(world.path("fake-1.0").join(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds))
            .unwrap();
    }
    world.packed("plain");
    let archive = Archive::open(&world.path("fake-1.0.tar.gz"), &world.cache).unwrap();
    let into = world.path("into");
    std::fs::create_dir(&into).unwrap();
    archive.unpack(&into).unwrap();
    for (name, seconds) in times {
        let found = into.join(name).metadata().unwrap().modified().unwrap();
        assert_eq!(found, UNIX_EPOCH + Duration::from_secs(seconds), "{name}");
    }
    let configure = into.join("configure").metadata().unwrap();
    assert_eq!(configure.permissions().mode() & 0o777, 0o755);
}

#[test]
fn other_sources_flags_and_compilers_are_other_builds() {
    let world = World::new();
    let builds = |expected: usize| {
        assert_eq!(
            world.names_in("built").len(),
            expected,
            "{:?}",
            world.names_in("built")
        );
    };
    world.resolve(&world.packed("fast")).unwrap();
    world.resolve(&world.packed("plain")).unwrap();
    builds(2);
    world.write("src/a.c", "# a 2\n");
    world.resolve(&world.packed("plain")).unwrap();
    builds(3);
    world.tool("gcc", "case $1 in --version) echo 'gcc 99.2';; esac");
    let found = world.resolve(&world.packed("plain")).unwrap();
    builds(4);
    assert_eq!(found.recipe.unwrap().compiler, "gcc 99.2");
    let labels: Vec<String> = kept::all(&world.cache)
        .into_iter()
        .map(|build| build.stamp.label)
        .collect();
    assert_eq!(
        labels
            .iter()
            .filter(|label| *label == "src:fake-1.0+plain")
            .count(),
        3
    );
}

#[test]
fn a_build_for_this_cpu_says_for_which() {
    let world = World::new();
    let target = world.packed("own_cpu");
    world.resolve(&target).unwrap();
    world.resolve(&world.packed("fast")).unwrap();
    let cpu = |name: &str| {
        let build = kept::all(&world.cache)
            .into_iter()
            .find(|build| build.stamp.label.ends_with(name));
        build.unwrap().stamp.cpu
    };
    assert!(cpu("+own_cpu").is_some());
    assert_eq!(cpu("+fast"), None);
}

#[test]
fn neighbouring_commits_share_a_tree_and_only_what_differs_is_made() {
    let world = World::new();
    // Objects are made side by side, in no order.
    let sorted = |found: &Installation| {
        let mut work = world.work(found);
        work.sort();
        work
    };
    let first = world.resolve(&world.commit("plain")).unwrap();
    assert_eq!(
        sorted(&first),
        ["configured", "made src/a.o", "made src/b.o"]
    );
    world.write("src/b.c", "# b 2\n");
    let target = world.commit("plain");
    world.git(&["checkout", "-q", "HEAD~1"]);
    let second = world.resolve(&target).unwrap();
    assert!(
        world.said().contains("incremental, from "),
        "{}",
        world.said()
    );
    assert_eq!(
        sorted(&second),
        ["configured", "made src/a.o", "made src/b.o", "made src/b.o"]
    );
    let binary = std::fs::read_to_string(second.bin_dir.join("postgres")).unwrap();
    assert!(binary.ends_with("# a 1\n# b 2\n"));
    let id = target.split(['@', '+']).nth(1).unwrap();
    assert_eq!(second.resolved, format!("git:fake-1.0@{}+plain", &id[..10]));
    assert_eq!(second.recipe.unwrap().source, id);
    // Back again, and with other flags: another tree.
    let back = world.resolve(&world.at_head("plain")).unwrap();
    assert_eq!(
        back,
        Installation {
            asked: back.asked.clone(),
            ..first
        }
    );
    let other = world.resolve(&target.replace("+plain", "+fast")).unwrap();
    assert_eq!(world.work(&other).len(), 3);
    assert_eq!(world.names_in("trees").len(), 2);
}

#[test]
fn the_user_s_checkout_is_not_touched() {
    let world = World::new();
    let first = world.commit("plain");
    world.write("src/b.c", "# b 2\n");
    world.commit("plain");
    world.write("src/a.c", "# not committed\n");
    world.write("left.o", "of the user's own build");
    let before = (
        world.git(&["status", "--porcelain"]),
        world.git(&["for-each-ref"]),
        world.git(&["rev-parse", "HEAD"]),
        world.git(&["worktree", "list"]),
    );
    let found = world.resolve(&first).unwrap();
    let binary = std::fs::read_to_string(found.bin_dir.join("postgres")).unwrap();
    assert!(binary.ends_with("# a 1\n# b 1\n"));
    let after = (
        world.git(&["status", "--porcelain"]),
        world.git(&["for-each-ref"]),
        world.git(&["rev-parse", "HEAD"]),
        world.git(&["worktree", "list"]),
    );
    assert_eq!(before, after);
}

/// Every file below a directory with its bytes.
fn files_in(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files_in(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            all.push((path, bytes));
        }
    }
    all.sort();
    all
}

#[test]
fn a_sparse_clone_gives_whole_trees_and_nothing_is_written_into_it() {
    let world = World::new();
    let first = world.commit("plain");
    world.write("src/b.c", "# b 2\n");
    let second = world.commit("plain");
    world.git(&["sparse-checkout", "set", "--no-cone", "contrib"]);
    assert!(!world.path("fake-1.0/src/a.c").exists());
    world.git(&["config", "core.splitIndex", "true"]);
    world.git(&["config", "core.autocrlf", "true"]);
    let before = files_in(&world.path("fake-1.0/.git"));
    for (target, last) in [(&first, "# b 1\n"), (&second, "# b 2\n")] {
        let found = world.resolve(target).unwrap();
        let binary = std::fs::read_to_string(found.bin_dir.join("postgres")).unwrap();
        assert!(binary.ends_with(&format!("# a 1\n{last}")), "{binary:?}");
    }
    assert!(files_in(&world.path("fake-1.0/.git")) == before);
}

#[test]
fn a_clone_that_lacks_objects_is_not_filled() {
    let world = World::new();
    world.commit("plain");
    world.git(&["config", "uploadpack.allowFilter", "true"]);
    let (from, to) = (world.path("fake-1.0"), world.path("partial"));
    let from = format!("file://{}", from.display());
    let place = to.display().to_string();
    world.git(&["clone", "-q", "--filter=blob:none", "--bare", &from, &place]);
    let before = files_in(&to);
    let problem = world
        .resolve(&format!("git:{place}@HEAD+plain"))
        .unwrap_err();
    assert!(problem.error.contains("does not contain all files of HEAD"));
    assert!(problem.hint.unwrap().contains("without --filter"));
    assert!(files_in(&to) == before);
}

#[test]
fn a_tree_is_built_anew_when_what_configured_it_changed_or_the_increment_fails() {
    let world = World::new();
    world.resolve(&world.commit("plain")).unwrap();
    world.change("configure", "echo configured", "echo configured anew");
    let second = world.resolve(&world.commit("plain")).unwrap();
    assert!(
        world.said().contains("clean (configure differs"),
        "{}",
        world.said()
    );
    assert_eq!(world.work(&second)[0], "configured anew");
    // Only a tree that was made before fails with this.
    world.change("Makefile", "all: postgres", "all: guard postgres");
    let guard = "\nguard:\n\ttest ! -e postgres || { echo 'error: half made'; false; }\n";
    let text = std::fs::read_to_string(world.path("fake-1.0/Makefile")).unwrap();
    world.write(
        "Makefile",
        &(text.replace("install: all", "install:") + guard),
    );
    let third = world.resolve(&world.commit("plain")).unwrap();
    assert!(
        world
            .said()
            .contains("the incremental build failed; building everything again"),
        "{}",
        world.said()
    );
    assert!(
        world
            .said()
            .contains("clean (the incremental build failed)")
    );
    assert_eq!(world.work(&third).len(), 3);
}

#[test]
fn objects_beside_a_changed_makefile_are_made_anew() {
    let world = World::new();
    world.write("src/Makefile", "# flags 1\n");
    world.resolve(&world.commit("plain")).unwrap();
    world.write("src/Makefile", "# flags 2\n");
    let second = world.resolve(&world.commit("plain")).unwrap();
    assert!(world.said().contains("incremental"), "{}", world.said());
    assert_eq!(world.work(&second).len(), 5);
}

#[test]
fn a_failed_build_shows_the_end_of_its_log_and_leaves_nothing_that_counts() {
    let world = World::new();
    world.change(
        "Makefile",
        "	cat $< >$@",
        "	@seq=0; echo \"b.c:7: error: no such thing\"; false",
    );
    world.change(
        "Makefile",
        "%.o: %.c",
        "%.o: %.c\n	@for n in 1 2 3 4 5 6 7 8; do echo line $$n; done",
    );
    let target = world.packed("plain");
    let problem = world.resolve(&target).unwrap_err();
    assert_eq!(
        problem.error,
        "building src:fake-1.0+plain failed: make ended with exit status 2"
    );
    let detail = problem.detail.unwrap();
    assert!(detail.contains("b.c:7: error: no such thing"), "{detail}");
    assert!(detail.contains("line 8"), "{detail}");
    let log = problem.hint.unwrap();
    let log = PathBuf::from(log.strip_prefix("the whole log is ").unwrap());
    assert!(
        std::fs::read_to_string(log)
            .unwrap()
            .contains("# configure: cd ")
    );
    assert_eq!(world.names_in("built"), [""; 0]);
    world.write("Makefile", MAKEFILE);
    assert!(world.resolve(&world.packed("plain")).is_ok());
}

#[test]
fn a_commit_that_does_not_build_leaves_no_tree_that_the_next_one_trusts() {
    let world = World::new();
    world.change("Makefile", "	cat $< >$@", "	echo half >$@; false");
    assert!(world.resolve(&world.commit("plain")).is_err());
    world.write("Makefile", MAKEFILE);
    let found = world.resolve(&world.commit("plain")).unwrap();
    assert!(
        world
            .said()
            .contains("clean (there is no tree of an earlier commit"),
        "{}",
        world.said()
    );
    let binary = std::fs::read_to_string(found.bin_dir.join("postgres")).unwrap();
    assert!(!binary.contains("half"));
}

#[test]
fn a_build_that_is_not_what_was_asked_for_is_refused() {
    let world = World::new();
    world.change(
        "configure",
        "FLAGS = -Wall ${cflags:--O2}",
        "FLAGS = -Wall $cflags -O2",
    );
    let problem = world.resolve(&world.packed("fast")).unwrap_err();
    assert!(problem.error.contains("differs from the request"));
    assert!(problem.detail.unwrap().contains("-O2 comes after -O3"));
    assert_eq!(world.names_in("built"), [""; 0]);
    world.write(
        "configure",
        &CONFIGURE.replace("said=\"$said '$word'\"", ":"),
    );
    let problem = world.resolve(&world.packed("fast")).unwrap_err();
    assert!(
        problem
            .detail
            .unwrap()
            .contains("requested --without-readline")
    );
    world.write("configure", &CONFIGURE.replace("='17.99'", "='17.98'"));
    let problem = world.resolve(&world.packed("fast")).unwrap_err();
    assert!(
        problem
            .detail
            .unwrap()
            .contains("requested version 17.98, got PostgreSQL 17.99")
    );
}

#[test]
fn a_build_that_is_here_is_found_without_the_tools_that_made_it() {
    let world = World::new();
    let target = world.packed("plain");
    let found = world.resolve(&target).unwrap();
    std::fs::remove_file(world.path("bin/gcc")).unwrap();
    std::fs::remove_file(world.path("bin/make")).unwrap();
    assert_eq!(world.resolve(&target).unwrap(), found);
    let problem = world.resolve(&world.packed("fast")).unwrap_err();
    assert!(
        problem
            .error
            .ends_with("cannot be built here: gcc and make are missing")
    );
    assert!(problem.hint.unwrap().contains("apt-get install gcc make\n"));
    // A server that cannot be started any more is no find.
    let binary = found.bin_dir.join("postgres");
    let size = usize::try_from(binary.metadata().unwrap().len()).unwrap();
    std::fs::write(
        &binary,
        format!("#!/bin/sh\nexit 127 #{}", " ".repeat(size - 20)),
    )
    .unwrap();
    assert!(world.resolve(&target).is_err());
}

#[test]
fn what_is_wrong_with_a_target_is_said_before_anything_is_built() {
    let world = World::new();
    let refusal = |target: &str| {
        let spec = target.parse().unwrap();
        let checked = Builder::new(&world.cache, &world.sources, world.tools()).first_look(&spec);
        checked.err().unwrap()
    };
    assert!(
        refusal("postgres:17.11+fats")
            .hint
            .unwrap()
            .contains("+fast?")
    );
    assert!(
        refusal("src:/no/such.tar.gz+plain")
            .error
            .contains("/no/such.tar.gz")
    );
    assert!(
        refusal("git:/no/such@HEAD+plain")
            .error
            .contains("no git repository")
    );
    world.commit("plain");
    let at =
        |reference: &str| format!("git:{}@{reference}+plain", world.path("fake-1.0").display());
    world.git(&["tag", "REL_17_9"]);
    assert!(refusal(&at("REL_17_8")).hint.unwrap().contains("REL_17_9"));
    let directory = format!("src:{}+plain", world.path("fake-1.0").display());
    assert!(refusal(&directory).hint.unwrap().contains("git:"));
    let missing = refusal("postgres:18.6+o2_nofp");
    for name in ["bison", "flex", "lz4", "liburing", "pkg-config"] {
        assert!(missing.error.contains(name), "{}", missing.error);
    }
    let old = refusal("postgres:15.2+with_meson");
    assert!(old.error.contains("cannot be built with meson"));
    assert_eq!(world.names_in("built"), [""; 0]);
}

#[test]
fn an_archive_that_does_not_match_the_checksum_beside_it_is_refused() {
    let world = World::new();
    let target = world.packed("plain");
    let beside = world.path("fake-1.0.tar.gz.sha256");
    std::fs::write(&beside, "ab".repeat(32)).unwrap();
    let problem = world.resolve(&target).unwrap_err();
    assert!(problem.error.contains("does not match its checksum"));
    let sum = tree::sha256_of(&world.path("fake-1.0.tar.gz")).unwrap();
    std::fs::write(&beside, format!("{sum}  fake-1.0.tar.gz\n")).unwrap();
    assert!(world.resolve(&target).is_ok());
    std::fs::write(&beside, "").unwrap();
    assert!(
        world
            .resolve(&target)
            .unwrap_err()
            .error
            .contains("contains no checksum")
    );
}

#[test]
fn a_checksum_beside_the_name_or_the_real_file_counts_and_one_that_cannot_be_read_is_refused() {
    let world = World::new();
    world.packed("plain");
    let (real, name) = (world.path("fake-1.0.tar.gz"), world.path("link.tar.gz"));
    std::os::unix::fs::symlink(&real, &name).unwrap();
    let open = || Archive::open(&name, &world.cache).map(drop);
    open().unwrap();
    for beside in ["link.tar.gz.sha256", "fake-1.0.tar.gz.sha256"] {
        let beside = world.path(beside);
        std::fs::write(&beside, "ab".repeat(32)).unwrap();
        assert!(open().unwrap_err().error.contains("does not match"));
        std::fs::write(&beside, b"\xff\xfe\0").unwrap();
        assert!(open().unwrap_err().error.contains(".sha256"));
        std::fs::remove_file(&beside).unwrap();
        std::fs::create_dir(&beside).unwrap();
        assert!(open().unwrap_err().error.contains(".sha256"));
        std::fs::remove_dir(&beside).unwrap();
    }
    open().unwrap();
}

#[test]
fn an_archive_of_something_else_is_refused() {
    let world = World::new();
    std::fs::remove_file(world.path("fake-1.0/configure")).unwrap();
    let problem = world.resolve(&world.packed("plain")).unwrap_err();
    assert!(
        problem
            .detail
            .unwrap()
            .contains("neither `configure` nor `meson.build`")
    );
    let text = world.path("text.tar.gz");
    std::fs::write(&text, "no archive").unwrap();
    let problem = world
        .resolve(&format!("src:{}+plain", text.display()))
        .unwrap_err();
    assert!(
        problem
            .detail
            .unwrap()
            .contains("not packed with gzip, bzip2 or xz")
    );
}

/// Puts a release where a mirror has it.
fn publish(world: &World, version: &str) {
    // Archives of releases do not hold the parser any more.
    world.tool("bison", "");
    world.tool("flex", "");
    world.write("configure", &CONFIGURE.replace("17.99", version));
    world.write("Makefile", &MAKEFILE.replace("17.99", version));
    world.packed("plain");
    let dir = world.path("mirror").join(format!("v{version}"));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join(format!("postgresql-{version}.tar.bz2"));
    std::fs::copy(world.path("fake-1.0.tar.gz"), &file).unwrap();
    let sum = tree::sha256_of(&file).unwrap();
    std::fs::write(
        dir.join(format!("postgresql-{version}.tar.bz2.sha256")),
        sum,
    )
    .unwrap();
}

#[test]
fn releases_come_from_the_address_that_is_configured_and_are_kept() {
    let mut world = World::new();
    for version in ["17.9", "17.10"] {
        publish(&world, version);
    }
    let problem = world.resolve("postgres:17.9+plain").unwrap_err();
    let detail = problem.detail.unwrap();
    assert!(
        detail.contains("apt-get is not installed") && detail.contains("none is configured"),
        "{detail}"
    );
    assert!(problem.hint.unwrap().contains("git:DIR@REL_17_9+VARIANT"));

    world.sources.source_mirror = Some(format!("file://{}/", world.path("mirror").display()));
    let exact = world.resolve("postgres:17.9+plain").unwrap();
    assert_eq!(exact.resolved, "postgres:17.9+plain");
    let newest = world.resolve("postgres:17+plain").unwrap();
    assert_eq!(
        (newest.asked.as_str(), newest.resolved.as_str()),
        ("postgres:17+plain", "postgres:17.10+plain")
    );
    let absent = world.resolve("postgres:17.8+plain").unwrap_err();
    assert!(
        absent
            .detail
            .unwrap()
            .contains("/v17.8/postgresql-17.8.tar.bz2: No such file")
    );

    std::fs::remove_dir_all(world.path("mirror")).unwrap();
    world.sources.offline = true;
    assert_eq!(world.resolve("postgres:17.9+plain").unwrap(), exact);
    assert_eq!(world.resolve("postgres:17+plain").unwrap(), newest);
    let other = world.resolve("postgres:17.9+fast").unwrap();
    assert_eq!(other.recipe.unwrap().source, exact.recipe.unwrap().source);
    assert!(
        world
            .resolve("postgres:16+plain")
            .unwrap_err()
            .detail
            .unwrap()
            .contains("offline")
    );
}

#[test]
fn a_download_has_limits_and_its_password_is_neither_told_nor_kept() {
    // The password is long: two letters are in a compressed archive by chance.
    for (client, limits) in [
        (
            "curl",
            "--proto =https --retry 2 --connect-timeout 20 --speed-limit 1000 --speed-time 60",
        ),
        ("wget", "--tries=3 --timeout=60 --max-redirect=0"),
    ] {
        let mut world = World::new();
        publish(&world, "17.9");
        let (mirror, log) = (world.path("mirror"), world.path("log"));
        let script = format!(
            r#"echo "$@" >>{0}
while test $# -gt 0; do
  case $1 in --output*) into=$2;; --config|--input-file) list=$2;; esac; shift
done
stat -c "mode %a" "$list" >>{0}
address=$(sed 's/^url = "//; s/"$//' "$list")
cp "{1}/${{address#https://u:Long-Secret3@m.example/p/}}" "$into" ||
  {{ echo "no $address" >&2; exit 22; }}"#,
            log.display(),
            mirror.display()
        );
        world.tool(client, &script);
        world.sources.source_mirror = Some("https://u:Long-Secret3@m.example/p/".to_owned());
        world.resolve("postgres:17.9+plain").unwrap();
        assert!(
            world.said().contains("fetching https://m.example/p/v17.9/"),
            "{}",
            world.said()
        );
        let asked = std::fs::read_to_string(&log).unwrap();
        assert!(asked.contains(limits), "{asked}");
        // Other users see what a program is called with.
        assert!(!asked.contains("Long-Secret3"), "{asked}");
        assert!(
            asked
                .lines()
                .skip(1)
                .step_by(2)
                .all(|line| line == "mode 600"),
            "{asked}"
        );
        let problem = world.resolve("postgres:17.8+plain").unwrap_err();
        assert!(
            problem
                .to_string()
                .contains("no https://m.example/p/v17.8/")
        );
        assert!(!(problem.to_string() + &world.said()).contains("Long-Secret3"));
        for (path, bytes) in files_in(&world.cache.sources()) {
            assert!(
                !String::from_utf8_lossy(&bytes).contains("Long-Secret3"),
                "{}",
                path.display()
            );
        }
        let kept = std::fs::read_to_string(world.cache.sources().join("postgresql-17.9.json"));
        assert!(kept.unwrap().contains("https://m.example/p"));
    }
}

#[test]
fn an_address_that_others_on_the_way_can_change_is_refused_before_anything_is_fetched() {
    let mut world = World::new();
    world.tool("bison", "");
    world.tool("flex", "");
    for address in ["http://u:S3@m.example/p", "ftp://m.example", "/srv/mirror"] {
        world.sources.source_mirror = Some(address.to_owned());
        let spec = "postgres:17.9+plain".parse().unwrap();
        let builder = Builder::new(&world.cache, &world.sources, world.tools());
        let problem = builder.first_look(&spec).err().unwrap();
        assert!(problem.error.starts_with("source_mirror cannot be "));
        assert!(!problem.error.contains("S3"), "{}", problem.error);
        assert!(problem.hint.unwrap().contains("https://"));
    }
}

#[test]
fn a_release_that_is_not_what_was_published_is_refused_and_not_kept() {
    let mut world = World::new();
    publish(&world, "17.9");
    world.sources.source_mirror = Some(format!("file://{}", world.path("mirror").display()));
    let sums = world.path("mirror/v17.9/postgresql-17.9.tar.bz2.sha256");
    std::fs::write(&sums, "ab".repeat(32)).unwrap();
    let problem = world.resolve("postgres:17.9+plain").unwrap_err();
    assert!(problem.error.contains("does not match its checksum"));
    std::fs::remove_file(&sums).unwrap();
    let problem = world.resolve("postgres:17.9+plain").unwrap_err();
    assert!(problem.detail.unwrap().contains(".sha256: No such file"));
    // Right sum, wrong release.
    let (from, to) = (world.path("mirror/v17.9"), world.path("mirror/v17.8"));
    std::fs::rename(from, &to).unwrap();
    let file = to.join("postgresql-17.8.tar.bz2");
    std::fs::rename(to.join("postgresql-17.9.tar.bz2"), &file).unwrap();
    std::fs::write(
        to.join("postgresql-17.8.tar.bz2.sha256"),
        tree::sha256_of(&file).unwrap(),
    )
    .unwrap();
    let problem = world.resolve("postgres:17.8+plain").unwrap_err();
    assert!(problem.error.contains("not the source of 17.8"));
    let kept = world
        .names_in("sources")
        .into_iter()
        .filter(|name| name.starts_with("postgresql-"));
    assert_eq!(kept.count(), 0);
    assert!(!world.cache.root().join(".deltabench/fetch").exists());
}

#[test]
fn meson_gets_its_options_and_flags_and_installs_where_the_tree_will_be() {
    let world = World::new();
    world.write(
        "meson.build",
        "project('postgresql',\n  version: '17.99',\n)\n",
    );
    world.tool("bison", "");
    world.tool("flex", "");
    world.tool("ninja", "cd \"$2\" && echo built >>done");
    // `meson setup OUTPUT SOURCE --prefix=…`, later `meson install … -C OUTPUT`.
    world.tool(
        "meson",
        r#"case $1 in
setup)
    mkdir -p "$2"
    for word in "$@"; do case "$word" in --prefix=*) echo "${word#--prefix=}" >"$2/prefix" ;; esac; done
    cp "$3/postgres.in" "$2/postgres"
    printf '#!/bin/sh\ncase $1 in --version) echo PostgreSQL 17.99;; --cflags) echo "%s";; esac\n' \
        "-Wall $CFLAGS" >"$2/pg_config"
    echo "$CC" "$@" >"$2/said" ;;
install)
    for output in "$@"; do :; done
    read -r prefix <"$output/prefix"
    mkdir -p "$DESTDIR$prefix/bin" "$DESTDIR$prefix/share"
    cp "$output/postgres" "$output/pg_config" "$DESTDIR$prefix/bin"
    cp "$output/postgres" "$DESTDIR$prefix/bin/initdb"
    chmod +x "$DESTDIR$prefix/bin/"*
    cat "$output/said" "$output/done" >"$DESTDIR$prefix/share/work.log" ;;
esac"#,
    );
    world.write(
        "postgres.in",
        "#!/bin/sh\necho 'postgres (PostgreSQL) 17.99'\n",
    );
    let found = world.resolve(&world.packed("with_meson")).unwrap();
    let work = world.work(&found);
    let tree = found.bin_dir.parent().unwrap();
    assert!(work[0].starts_with("gcc setup "), "{work:?}");
    assert!(
        work[0].contains(&format!("--prefix={} --libdir=lib", tree.display())),
        "{work:?}"
    );
    assert!(
        work[0].contains("-Dauto_features=disabled -Dreadline=disabled"),
        "{work:?}"
    );
    assert_eq!(work[1], "built");
    assert_eq!(found.recipe.unwrap().system, "meson");
}

#[test]
fn ccache_is_put_in_front_of_the_compiler_and_does_not_show() {
    let world = World::new();
    world.tool("ccache", "exec cat");
    let tools = world
        .tools()
        .with_ccache("gcc", Some("cpu"), world.cache.root())
        .unwrap();
    let link = tools.find("gcc").unwrap();
    assert_eq!(std::fs::read_link(link).unwrap(), world.path("bin/ccache"));
    let has = |name: &str| tools.inherited.iter().any(|(known, _)| known == name);
    assert!(has("CCACHE_DIR") && has("CCACHE_NAMESPACE"));
    let own = world
        .tools()
        .with_ccache("/opt/gcc", None, world.cache.root())
        .unwrap();
    assert_eq!(own.path, world.tools().path);
}
