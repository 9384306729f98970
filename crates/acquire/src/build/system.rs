//! What `configure` and `meson` are told, step by step.

use super::order::Order;
use super::probe::Toolbox;
use super::step::Log;
use super::variant::BuildSystem;
use crate::files::{failed, make_directory, remove_tree};
use deltabench_model::problem::Problem;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Where a tree believes it is, wherever the cache is: its programs find their files relative to themselves.
///
/// One place for all makes one binary of one recipe, and lets a tree that stays serve many commits. It has
/// `pgsql` in it, so that libraries are in `lib` and not in `lib/postgresql`.
const PREFIX: &str = "/opt/deltabench/pgsql";
/// Programs find their libraries beside themselves. `$$` is how a Makefile writes a dollar.
const RPATH: &str = "rpathdir=$$ORIGIN/../lib";

/// One build in one tree.
pub(super) struct Works<'a> {
    pub order: &'a Order,
    pub tools: &'a Toolbox,
    pub tree: &'a Path,
    /// Directory that gets the installed tree.
    pub into: &'a Path,
    /// Where the tree will be.
    pub final_place: &'a Path,
    pub jobs: usize,
}

/// How long the steps took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub configure: Duration,
    pub make: Duration,
    pub install: Duration,
}

impl Works<'_> {
    /// Configures if asked to, builds and installs.
    pub fn carry_out(
        &self,
        configure: bool,
        log: &mut Log,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Times, Problem> {
        match self.order.variant.system {
            BuildSystem::Configure => self.with_make(configure, log, progress),
            BuildSystem::Meson => self.with_meson(log, progress),
        }
    }

    fn with_make(
        &self,
        configure: bool,
        log: &mut Log,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Times, Problem> {
        let mut times = Times::default();
        if configure {
            progress(&format!("{}: configure", self.order.label));
            times.configure = log.run("configure", &mut self.configure(), progress)?;
        }
        progress(&format!(
            "{}: make with {} jobs",
            self.order.label, self.jobs
        ));
        let jobs = format!("-j{}", self.jobs);
        for (step, part) in [
            ("make", &["all"][..]),
            ("make contrib", &["-C", "contrib", "all"]),
        ] {
            let mut make = self.command("make");
            make.arg(&jobs).args(part).arg(RPATH);
            times.make += log.run(step, &mut make, progress)?;
        }
        let mut destination = std::ffi::OsString::from("DESTDIR=");
        destination.push(self.staging());
        for part in [&["install"][..], &["-C", "contrib", "install"]] {
            let mut make = self.command("make");
            make.args(part).arg(RPATH).arg(&destination);
            times.install += log.run("make install", &mut make, progress)?;
        }
        self.move_up(Path::new(PREFIX))?;
        Ok(times)
    }

    fn configure(&self) -> Command {
        let variant = &self.order.variant;
        let mut command = self.command("/bin/sh");
        command
            .arg("./configure")
            .arg(format!("--prefix={PREFIX}"))
            // Headers that change are noticed: what trees that stay live by.
            .arg("--enable-depend")
            .args(&self.order.recipe.options)
            .arg(format!("CC={}", variant.compiler()));
        for (name, flags) in [("CFLAGS", &variant.cflags), ("LDFLAGS", &variant.ldflags)] {
            if !flags.is_empty() {
                command.arg(format!("{name}={flags}"));
            }
        }
        command
    }

    fn with_meson(&self, log: &mut Log, progress: &mut dyn FnMut(&str)) -> Result<Times, Problem> {
        let mut times = Times::default();
        let variant = &self.order.variant;
        let output = self.tree.join("../output");
        let mut setup = self.command("meson");
        setup
            .arg("setup")
            .arg(&output)
            .arg(self.tree)
            .arg(format!("--prefix={}", self.final_place.display()))
            .arg("--libdir=lib")
            .args(&self.order.recipe.options)
            .env("CC", variant.compiler());
        for (name, flags) in [("CFLAGS", &variant.cflags), ("LDFLAGS", &variant.ldflags)] {
            if !flags.is_empty() {
                setup.env(name, flags);
            }
        }
        progress(&format!("{}: meson setup", self.order.label));
        times.configure = log.run("meson setup", &mut setup, progress)?;
        progress(&format!(
            "{}: ninja with {} jobs",
            self.order.label, self.jobs
        ));
        let mut ninja = self.command("ninja");
        ninja.arg("-C").arg(&output).arg(format!("-j{}", self.jobs));
        times.make = log.run("ninja", &mut ninja, progress)?;
        let mut install = self.command("meson");
        install
            .args(["install", "--no-rebuild", "--quiet", "-C"])
            .arg(&output)
            .env("DESTDIR", self.staging());
        times.install = log.run("meson install", &mut install, progress)?;
        self.move_up(self.final_place)?;
        Ok(times)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.tools.command(program, &self.order.variant);
        command.current_dir(self.tree);
        command
    }

    fn staging(&self) -> PathBuf {
        self.into.join("staging")
    }

    /// Takes the tree out of the directories that lead to its prefix.
    fn move_up(&self, prefix: &Path) -> Result<(), Problem> {
        let staging = self.staging();
        let installed = staging.join(prefix.strip_prefix("/").unwrap_or(prefix));
        make_directory(self.into)?;
        let entries =
            std::fs::read_dir(&installed).map_err(|error| failed("read", &installed, &error))?;
        for entry in entries {
            let from = entry
                .map_err(|error| failed("read", &installed, &error))?
                .path();
            let to = self.into.join(from.file_name().unwrap_or_default());
            std::fs::rename(&from, &to).map_err(|error| failed("rename", &from, &error))?;
        }
        remove_tree(&staging)
    }
}
