//! What people install without Rust: the stripped binary, man pages and completions as an archive and as a
//! Debian package, with checksums.
//!
//! The binary is linked against an old glibc, so that one file runs on every distribution with a newer one.
//! It cannot be fully static: RocksDB's library is loaded while the program runs, and a static program
//! cannot load one (docs/decisions/0016-one-binary-for-an-old-glibc.md).

use anyhow::{Context, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The linker for an old glibc and cargo's way to it, as Python packages.
const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.1"];

/// Target of the build, with the oldest glibc that it runs on.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const OLDEST_GLIBC: (u32, u32) = (2, 17);

/// Bytes that the stripped binary may have.
const LARGEST: u64 = 20_000_000;

/// Builds everything into `target/dist`.
pub fn dist(root: &Path) -> anyhow::Result<()> {
    let out = root.join("target/dist");
    let binary = build(root, &out.join("tools"))?;
    check(&binary)?;
    let version = version(&binary)?;
    let name = format!("deltabench-{version}-x86_64-linux");
    let tree = out.join(&name);
    fill(root, &binary, &tree)?;
    let archive = pack(&out, &name)?;
    let package = debian_package(&out, &tree, &version)?;
    let mut sums = Command::new("sha256sum");
    let names = [&archive, &package].map(|path| path.file_name().unwrap_or_default());
    let sums = output(sums.args(names).current_dir(&out))?;
    write(&out.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    println!("dist: {}", out.display());
    Ok(())
}

/// The stripped binary.
fn build(root: &Path, tools: &Path) -> anyhow::Result<PathBuf> {
    let bin = tools.join("bin");
    // What it has been asked for: another pin is installed over it.
    let pinned = tools.join("pinned");
    if fs::read_to_string(&pinned).ok() != Some(TOOLS.join("\n")) {
        run(Command::new("python3").args(["-m", "venv"]).arg(tools))?;
        let mut pip = Command::new(bin.join("pip"));
        run(pip
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(TOOLS))?;
        write(&pinned, &TOOLS.join("\n"))?;
    }
    let (major, minor) = OLDEST_GLIBC;
    let mut paths = vec![bin.clone()];
    paths.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let mut cargo = Command::new(bin.join("cargo-zigbuild"));
    cargo
        .args([
            "zigbuild",
            "--locked",
            "--profile",
            "dist",
            "--package",
            "deltabench",
        ])
        .args(["--target", &format!("{TARGET}.{major}.{minor}")])
        .env("PATH", std::env::join_paths(paths)?)
        .current_dir(root);
    run(&mut cargo)?;
    Ok(root.join(format!("target/{TARGET}/dist/deltabench")))
}

/// Refuses a binary that is too large or needs a newer glibc.
fn check(binary: &Path) -> anyhow::Result<()> {
    let bytes = fs::metadata(binary)
        .with_context(|| format!("cannot read {}", binary.display()))?
        .len();
    if bytes > LARGEST {
        bail!("{} has {bytes} bytes; at most {LARGEST}", binary.display());
    }
    let symbols = output(Command::new("objdump").arg("-T").arg(binary))?;
    let newest = newest_glibc(&symbols).context("no symbol of glibc in the binary")?;
    if newest > OLDEST_GLIBC {
        bail!("{} needs glibc {}.{}", binary.display(), newest.0, newest.1);
    }
    println!(
        "dist: {bytes} bytes, glibc {}.{} or newer",
        newest.0, newest.1
    );
    Ok(())
}

/// The newest version of glibc among dynamic symbols as `objdump -T` lists them.
fn newest_glibc(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let mut numbers = rest.get(..end)?.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    versions.max()
}

fn version(binary: &Path) -> anyhow::Result<String> {
    let line = output(Command::new(binary).arg("--version"))?;
    let version = line.split_whitespace().nth(1).map(str::to_owned);
    version.with_context(|| format!("no version in {line:?}"))
}

/// The tree of the archive, as below `/usr`.
fn fill(root: &Path, binary: &Path, tree: &Path) -> anyhow::Result<()> {
    if tree.exists() {
        fs::remove_dir_all(tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    }
    copy(binary, &tree.join("bin/deltabench"), 0o755)?;
    for (from, to) in [("LICENSE", "LICENSE"), ("README.md", "README.md")] {
        copy(
            &root.join(from),
            &tree.join("share/doc/deltabench").join(to),
            0o644,
        )?;
    }
    let man = tree.join("share/man/man1");
    fs::create_dir_all(&man).with_context(|| format!("cannot make {}", man.display()))?;
    run(Command::new(binary).arg("reference").arg("--man").arg(&man))?;
    for (shell, place) in [
        ("bash", "share/bash-completion/completions/deltabench"),
        ("zsh", "share/zsh/site-functions/_deltabench"),
        ("fish", "share/fish/vendor_completions.d/deltabench.fish"),
    ] {
        let text = output(Command::new(binary).args(["completions", shell]))?;
        write(&tree.join(place), &text)?;
    }
    Ok(())
}

/// The archive: the same bytes from the same files, whoever packs it.
fn pack(out: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u=rwX,go=rX",
    ])
    .args(["--use-compress-program=gzip -n9", "-cf"])
    .arg(&archive)
    .arg("-C")
    .arg(out)
    .arg(name);
    run(&mut tar)?;
    Ok(archive)
}

fn debian_package(out: &Path, tree: &Path, version: &str) -> anyhow::Result<PathBuf> {
    let staged = out.join("deb");
    if staged.exists() {
        fs::remove_dir_all(&staged)
            .with_context(|| format!("cannot remove {}", staged.display()))?;
    }
    fs::create_dir_all(staged.join("DEBIAN"))
        .with_context(|| format!("cannot make {}", staged.display()))?;
    run(Command::new("cp")
        .arg("-r")
        .arg(tree)
        .arg(staged.join("usr")))?;
    // Debian's zsh looks there, and not in site-functions.
    let zsh = staged.join("usr/share/zsh");
    fs::rename(zsh.join("site-functions"), zsh.join("vendor-completions"))
        .with_context(|| format!("cannot move completions below {}", zsh.display()))?;
    let (major, minor) = OLDEST_GLIBC;
    let control = format!(
        "Package: deltabench\nVersion: {version}\nArchitecture: amd64\nMaintainer: the deltabench authors\n\
         Section: database\nPriority: optional\nDepends: libc6 (>= {major}.{minor})\n\
         Suggests: maven, npm, valgrind\n\
         Description: compares PostgreSQL servers, with error bars\n \
         Runs the same workloads on several servers in alternating slices and says which is slower,\n \
         where, by how much, and why.\n"
    );
    write(&staged.join("DEBIAN/control"), &control)?;
    run(Command::new("chmod")
        .args(["-R", "u=rwX,go=rX"])
        .arg(&staged))?;
    let package = out.join(format!("deltabench_{version}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&staged)
        .arg(&package);
    run(build.env("SOURCE_DATE_EPOCH", "0"))?;
    Ok(package)
}

fn copy(from: &Path, to: &Path, mode: u32) -> anyhow::Result<()> {
    make_parent(to)?;
    fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", to.display()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    make_parent(path)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn make_parent(path: &Path) -> anyhow::Result<()> {
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed");
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn versions_of_glibc_compare_as_numbers() {
        let symbols = "0 DF *UND* 0 (GLIBC_2.9) poll\n0 DF *UND* 0 (GLIBC_2.17) clock_gettime\n\
                       0 DF *UND* 0 (GLIBC_2.2.5) free\n";
        assert_eq!(newest_glibc(symbols), Some((2, 17)));
        assert_eq!(newest_glibc("nothing of it"), None);
    }
}
