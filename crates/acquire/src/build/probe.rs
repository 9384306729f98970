//! What a build needs of this machine: tools and libraries, found out before anything is built.

use super::variant::{BuildSystem, Variant};
use crate::command;
use crate::files::{failed, make_directory};
use deltabench_model::problem::Problem;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tools and packages for which the name of the command says nothing.
const PACKAGES: [(&str, &str, &str); 12] = [
    ("gcc-ar", "gcc", "gcc"),
    ("gcc-ranlib", "gcc", "gcc"),
    ("llvm-ar", "llvm", "llvm"),
    ("llvm-ranlib", "llvm", "llvm"),
    ("pkg-config", "pkg-config", "pkgconf-pkg-config"),
    ("ninja", "ninja-build", "ninja-build"),
    ("readline", "libreadline-dev", "readline-devel"),
    ("zlib", "zlib1g-dev", "zlib-devel"),
    ("icu", "libicu-dev", "libicu-devel"),
    ("lz4", "liblz4-dev", "lz4-devel"),
    ("zstd", "libzstd-dev", "libzstd-devel"),
    ("liburing", "liburing-dev", "liburing-devel"),
];

/// How a library is looked for: as the build system itself will do it.
enum Found {
    /// `pkg-config --exists`.
    PkgConfig(&'static str),
    /// The compiler finds the header.
    Header(&'static str),
}

/// A library that a build may want.
struct Library {
    name: &'static str,
    found: Found,
    /// Words of `configure` that ask for it.
    on: &'static [&'static str],
    /// Word of `configure` that leaves it out.
    off: &'static str,
    /// First release that takes it unless told not to.
    default_since: Option<u32>,
    /// Left out where it is missing, unless asked for.
    optional: bool,
}

const LIBRARIES: [Library; 7] = [
    Library {
        name: "readline",
        found: Found::Header("readline/readline.h"),
        on: &["--with-readline"],
        off: "--without-readline",
        default_since: Some(0),
        optional: true,
    },
    Library {
        name: "zlib",
        found: Found::Header("zlib.h"),
        on: &["--with-zlib"],
        off: "--without-zlib",
        default_since: Some(0),
        optional: false,
    },
    Library {
        name: "icu",
        found: Found::PkgConfig("icu-i18n"),
        on: &["--with-icu"],
        off: "--without-icu",
        default_since: Some(1600),
        optional: true,
    },
    Library {
        name: "lz4",
        found: Found::PkgConfig("liblz4"),
        on: &["--with-lz4"],
        off: "--without-lz4",
        default_since: None,
        optional: false,
    },
    Library {
        name: "zstd",
        found: Found::PkgConfig("libzstd"),
        on: &["--with-zstd"],
        off: "--without-zstd",
        default_since: None,
        optional: false,
    },
    Library {
        name: "liburing",
        found: Found::PkgConfig("liburing"),
        on: &["--with-liburing"],
        off: "--without-liburing",
        default_since: None,
        optional: false,
    },
    Library {
        name: "openssl",
        found: Found::Header("openssl/ssl.h"),
        on: &["--with-openssl", "--with-ssl=openssl"],
        off: "--without-openssl",
        default_since: None,
        optional: false,
    },
];

/// Whether a build takes a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    No,
    ByDefault,
    Asked,
}

/// What a source is, as far as the needs of its build go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Needs {
    /// As [`deltabench_model::target::Release::major_rank`].
    pub major_rank: u32,
    /// Whether the parser's C files come with it: then bison and flex are not needed.
    pub has_parser: bool,
    /// Whether it is fetched from a git repository.
    pub is_git: bool,
}

/// What probing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Probed {
    /// Options of the build system: those asked for, and those that leave out what is missing.
    pub options: Vec<String>,
    /// What was left out, for the user.
    pub notes: Vec<String>,
    /// First line of `CC --version`; empty when there is no compiler.
    pub compiler: String,
    /// What must be installed first.
    pub missing: Vec<Missing>,
}

/// Something that a build needs and that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    /// `bison`, `lz4`.
    pub name: String,
    /// Where it was looked for, and for whom.
    pub why: String,
}

/// The programs and libraries of this machine, as a build sees them.
#[derive(Debug, Clone)]
pub(super) struct Toolbox {
    pub path: OsString,
    /// Variables that a build may see, besides its own.
    pub inherited: Vec<(OsString, OsString)>,
}

impl Toolbox {
    /// Those of this process.
    pub fn here() -> Self {
        // Not CC, CFLAGS, COPT, PROFILE and their like: a build is what its recipe says.
        const KEPT: [&str; 5] = ["HOME", "USER", "LOGNAME", "TMPDIR", "LD_LIBRARY_PATH"];
        let inherited = std::env::vars_os()
            .filter(|(name, _)| {
                name.to_str()
                    .is_some_and(|name| KEPT.contains(&name) || name.starts_with("CCACHE_"))
            })
            .collect();
        Self {
            path: std::env::var_os("PATH").unwrap_or_default(),
            inherited,
        }
    }

    /// The program of that name on the search path (or the file, for a name with a slash).
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let runs = |path: &Path| {
            path.metadata()
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| runs(path));
        }
        std::env::split_paths(&self.path)
            .map(|dir| dir.join(name))
            .find(|path| runs(path))
    }

    /// A command in the environment of a build.
    pub fn command(&self, program: impl AsRef<OsStr>, variant: &Variant) -> Command {
        let program = program.as_ref();
        // Found here, since `env_clear` would have it looked for elsewhere.
        let place = program.to_str().and_then(|name| self.find(name));
        let mut command = Command::new(place.as_deref().map_or(program, Path::as_os_str));
        command
            .env_clear()
            .envs(self.inherited.iter().map(|(name, value)| (name, value)))
            .env("PATH", &self.path)
            .env("LC_ALL", "C")
            .envs(
                variant
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            );
        command
    }

    /// The same with ccache in front of the compiler, if there is one.
    ///
    /// By a link that is called as the compiler: so `CC` is the same with and without it, and the binaries
    /// are too.
    pub fn with_ccache(
        &self,
        compiler: &str,
        cpu: Option<&str>,
        root: &Path,
    ) -> Result<Self, Problem> {
        let mut tools = self.clone();
        let Some(ccache) = self.find("ccache").filter(|_| !compiler.contains('/')) else {
            return Ok(tools);
        };
        let links = root.join("ccache-links");
        make_directory(&links)?;
        let link = links.join(compiler);
        if std::fs::read_link(&link).ok().as_deref() != Some(&*ccache) {
            let _ = std::fs::remove_file(&link);
            symlink(&ccache, &link).map_err(|error| failed("make", &link, &error))?;
        }
        let path = [links].into_iter().chain(std::env::split_paths(&self.path));
        if let Ok(path) = std::env::join_paths(path) {
            tools.path = path;
        }
        let given = |name: &str| self.inherited.iter().any(|(known, _)| known == name);
        if !given("CCACHE_DIR") {
            tools
                .inherited
                .push(("CCACHE_DIR".into(), root.join("ccache").into()));
        }
        // For ccache, `-march=native` is the same words on every CPU.
        if let Some(cpu) = cpu {
            tools
                .inherited
                .push(("CCACHE_NAMESPACE".into(), cpu.into()));
        }
        Ok(tools)
    }

    /// Looks for everything that `variant` needs to be built from such a source.
    pub fn probe(&self, variant: &Variant, needs: Needs) -> Probed {
        let mut probed = Probed {
            options: variant.options_for(needs.major_rank),
            notes: Vec::new(),
            compiler: String::new(),
            missing: self.missing_tools(variant, needs),
        };
        let mut pkg_config_for = Vec::new();
        let mut switches = Vec::new();
        for library in &LIBRARIES {
            let wish = library.wish(variant.system, &probed.options, needs.major_rank);
            if wish == Wish::No {
                continue;
            }
            let is_here = self.has(library, variant);
            if !is_here && wish == Wish::ByDefault && library.optional {
                probed.notes.push(format!(
                    "without {}: {} ({})",
                    library.name,
                    library.lacking(),
                    package_of(library.name).0
                ));
            } else {
                if let Found::PkgConfig(_) = library.found {
                    pkg_config_for.push(library.name);
                }
                if !is_here {
                    probed.missing.push(library.missing());
                }
            }
            switches.extend(library.switch(variant.system, wish, is_here));
        }
        if !pkg_config_for.is_empty() && self.find("pkg-config").is_none() {
            probed.missing.push(Missing {
                name: "pkg-config".to_owned(),
                why: format!("not on PATH; it locates {}", pkg_config_for.join(", ")),
            });
        }
        if variant.system == BuildSystem::Meson {
            // Else meson takes whatever it finds, and two machines build two things from one recipe.
            let given = |option: &String| option.starts_with("-Dauto_features=");
            if !probed.options.iter().any(given) {
                probed
                    .options
                    .insert(0, "-Dauto_features=disabled".to_owned());
            }
            let plain = ["-Dbuildtype=", "--buildtype", "-Doptimization="];
            let given = |option: &String| plain.iter().any(|start| option.starts_with(start));
            if !variant.cflags.is_empty() && !probed.options.iter().any(given) {
                probed.options.insert(0, "-Dbuildtype=plain".to_owned());
            }
        }
        probed.options.extend(switches);
        probed.compiler = self.compiler_version(variant).unwrap_or_default();
        probed
    }

    fn missing_tools(&self, variant: &Variant, needs: Needs) -> Vec<Missing> {
        let mut tools = vec![variant.compiler(), "perl"];
        match variant.system {
            BuildSystem::Configure => tools.push("make"),
            BuildSystem::Meson => tools.extend(["meson", "ninja"]),
        }
        // Meson makes the parser anew whatever comes with the source.
        if !needs.has_parser || variant.system == BuildSystem::Meson {
            tools.extend(["bison", "flex"]);
        }
        if needs.is_git {
            tools.push("git");
        }
        let own = variant.environment.iter();
        let own = own.filter(|(name, _)| matches!(name.as_str(), "AR" | "RANLIB" | "NM" | "LD"));
        tools.extend(own.map(|(_, value)| value.as_str()));
        let lacking = tools.into_iter().filter(|tool| self.find(tool).is_none());
        lacking
            .map(|tool| Missing {
                name: tool.to_owned(),
                why: "not on PATH".to_owned(),
            })
            .collect()
    }

    fn has(&self, library: &Library, variant: &Variant) -> bool {
        let mut command = match library.found {
            Found::PkgConfig(module) => {
                let mut command = self.command("pkg-config", variant);
                command.args(["--exists", module]);
                command
            }
            Found::Header(header) => {
                let mut command = self.command(variant.compiler(), variant);
                let flags = variant.environment.iter();
                let flags = flags.filter(|(name, _)| name == "CPPFLAGS");
                command
                    .args(flags.flat_map(|(_, flags)| flags.split_whitespace()))
                    .args(variant.cflags.split_whitespace())
                    .args(include_flags(variant))
                    // readline's header uses FILE without saying where it is from.
                    .args(["-E", "-include", "stdio.h", "-include", header])
                    .args(["-x", "c", "/dev/null"]);
                command
            }
        };
        command::output(&mut command).is_ok_and(|output| output.status.success())
    }

    fn compiler_version(&self, variant: &Variant) -> Option<String> {
        let mut command = self.command(variant.compiler(), variant);
        let output = command::output(command.arg("--version")).ok()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = said.lines().next()?.trim();
        (output.status.success() && !line.is_empty()).then(|| line.to_owned())
    }
}

/// The directories that `--with-includes=DIR:DIR` names.
fn include_flags(variant: &Variant) -> Vec<String> {
    let given = variant.options.iter();
    let given = given.filter_map(|option| option.strip_prefix("--with-includes="));
    given
        .flat_map(|directories| directories.split(':'))
        .map(|directory| format!("-I{directory}"))
        .collect()
}

impl Library {
    /// Whether a build with these options takes it.
    fn wish(&self, system: BuildSystem, options: &[String], major_rank: u32) -> Wish {
        let by_default = match self.default_since {
            Some(since) if since <= major_rank => Wish::ByDefault,
            _ => Wish::No,
        };
        match system {
            BuildSystem::Configure => {
                let given = |word: &str| options.iter().any(|option| option == word);
                // The other implementation of readline's interface.
                let edit = self.name == "readline" && given("--with-libedit-preferred");
                if given(self.off) || edit {
                    Wish::No
                } else if self.on.iter().any(|word| given(word)) {
                    Wish::Asked
                } else {
                    by_default
                }
            }
            BuildSystem::Meson => {
                let (name, _) = self.feature();
                let start = format!("-D{name}=");
                let mut given = options
                    .iter()
                    .filter_map(|option| option.strip_prefix(&start));
                match given.next_back() {
                    Some("disabled" | "none") => Wish::No,
                    Some(_) => Wish::Asked,
                    None => by_default,
                }
            }
        }
    }

    /// Name of the meson option and the value that asks for it.
    fn feature(&self) -> (&'static str, &'static str) {
        match self.name {
            "openssl" => ("ssl", "openssl"),
            name => (name, "enabled"),
        }
    }

    /// The option that says what probing found, where nobody else says it.
    fn switch(&self, system: BuildSystem, wish: Wish, is_here: bool) -> Option<String> {
        if wish != Wish::ByDefault {
            return None;
        }
        match (system, is_here) {
            (BuildSystem::Configure, true) => None,
            (BuildSystem::Configure, false) => self.optional.then(|| self.off.to_owned()),
            // Nothing is automatic any more, so that what is wanted must be said.
            (BuildSystem::Meson, true) => {
                let (name, value) = self.feature();
                Some(format!("-D{name}={value}"))
            }
            (BuildSystem::Meson, false) => None,
        }
    }

    fn lacking(&self) -> String {
        match self.found {
            Found::PkgConfig(module) => format!("pkg-config does not know {module}"),
            Found::Header(header) => format!("the compiler does not find {header}"),
        }
    }

    fn missing(&self) -> Missing {
        let why = self.lacking();
        let leave_out = match self.default_since {
            Some(_) => format!("; {} builds without it", self.off),
            None => String::new(),
        };
        Missing {
            name: self.name.to_owned(),
            why: format!("{why}{leave_out}"),
        }
    }
}

/// Names of the packages that bring a tool or library: Debian's and Fedora's.
fn package_of(name: &str) -> (String, String) {
    if name == "openssl" {
        return ("libssl-dev".to_owned(), "openssl-devel".to_owned());
    }
    let known = PACKAGES.iter().find(|(known, _, _)| *known == name);
    known.map_or_else(
        || (name.to_owned(), name.to_owned()),
        |(_, debian, fedora)| ((*debian).to_owned(), (*fedora).to_owned()),
    )
}

/// The one refusal that names everything.
pub(super) fn refusal(target: &str, missing: &[Missing]) -> Problem {
    let names: Vec<&str> = missing.iter().map(|one| one.name.as_str()).collect();
    let facts: Vec<String> = missing
        .iter()
        .map(|one| format!("{}: {}", one.name, one.why))
        .collect();
    let mut packages: Vec<(String, String)> = names.iter().map(|name| package_of(name)).collect();
    packages.sort();
    packages.dedup();
    let debian: Vec<&str> = packages.iter().map(|(debian, _)| debian.as_str()).collect();
    let mut fedora: Vec<&str> = packages.iter().map(|(_, fedora)| fedora.as_str()).collect();
    fedora.sort_unstable();
    fedora.dedup();
    let (are, they) = if missing.len() == 1 {
        ("is", "it")
    } else {
        ("are", "they")
    };
    Problem::new(format!(
        "{target} cannot be built here: {} {are} missing",
        listed(&names)
    ))
    .detail(facts.join("\n"))
    .hint(format!(
        "Debian, Ubuntu: apt-get install {}\nFedora, RHEL: dnf install {}\nif {they} {are} elsewhere: \
         put them on PATH, or name their paths in your own variant (environment, options)",
        debian.join(" "),
        fedora.join(" ")
    ))
}

/// `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::variant::Variants;
    use super::*;

    const FROM_GIT_18: Needs = Needs {
        major_rank: 1800,
        has_parser: false,
        is_git: true,
    };

    /// A toolbox with programs that do what their scripts say.
    fn toolbox(programs: &[(&str, &str)]) -> (tempfile::TempDir, Toolbox) {
        let dir = tempfile::tempdir().unwrap();
        for (name, script) in programs {
            let path = dir.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = dir.path().as_os_str().to_owned();
        let inherited = Vec::new();
        (dir, Toolbox { path, inherited })
    }

    fn names(probed: &Probed) -> Vec<&str> {
        probed.missing.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn everything_that_is_missing_is_named_at_once_with_its_package() {
        let (_dir, empty) = toolbox(&[]);
        let variants = Variants::builtin();
        let probed = empty.probe(variants.get("o2_nofp").unwrap(), FROM_GIT_18);
        assert_eq!(
            names(&probed),
            [
                "gcc",
                "perl",
                "make",
                "bison",
                "flex",
                "git",
                "zlib",
                "lz4",
                "liburing",
                "pkg-config"
            ]
        );
        let problem = refusal("git:x@HEAD+o2_nofp", &probed.missing);
        let hint = problem.hint.unwrap();
        assert!(
            hint.contains("apt-get install bison flex gcc git liblz4-dev liburing-dev make perl")
        );
        assert!(hint.contains("lz4-devel") && hint.contains("zlib-devel"));
        assert!(
            problem
                .error
                .contains("lz4, liburing and pkg-config are missing")
        );
    }

    #[test]
    fn readline_and_icu_are_left_out_with_a_note_unless_asked_for() {
        let here = [
            (
                "gcc",
                "case \"$*\" in *--version*) echo 'gcc 99';; *readline*) exit 1;; esac",
            ),
            ("pkg-config", "case \"$*\" in *icu*) exit 1;; esac"),
            ("make", ""),
            ("perl", ""),
        ];
        let (_dir, some) = toolbox(&here);
        let needs = Needs {
            major_rank: 1700,
            has_parser: true,
            is_git: false,
        };
        let mut variant = Variants::builtin().get("o3").unwrap().clone();
        let probed = some.probe(&variant, needs);
        assert_eq!(names(&probed), [""; 0]);
        assert_eq!(
            probed.options.join(" "),
            "--enable-debug --with-lz4 --without-readline --without-icu"
        );
        assert_eq!(probed.notes.len(), 2);
        assert_eq!(probed.compiler, "gcc 99");
        // 15 has no ICU unless asked: nothing to leave out.
        let older = some.probe(
            &variant,
            Needs {
                major_rank: 1500,
                ..needs
            },
        );
        assert!(!older.options.contains(&"--without-icu".to_owned()));
        variant.options.push("--with-icu".to_owned());
        assert_eq!(names(&some.probe(&variant, needs)), ["icu"]);
    }

    #[test]
    fn meson_is_told_every_library_since_nothing_is_automatic() {
        let here = [
            ("gcc", "echo gcc"),
            ("pkg-config", ""),
            ("perl", ""),
            ("meson", ""),
            ("ninja", ""),
            ("bison", ""),
        ];
        let (_dir, some) = toolbox(&here);
        let variant = Variant {
            system: BuildSystem::Meson,
            options: vec!["-Dlz4=enabled".to_owned(), "-Dicu=disabled".to_owned()],
            cflags: "-O3".to_owned(),
            ..Variant::default()
        };
        let needs = Needs {
            major_rank: 1700,
            has_parser: true,
            is_git: false,
        };
        let probed = some.probe(&variant, needs);
        assert_eq!(names(&probed), ["flex"]);
        assert_eq!(
            probed.options.join(" "),
            "-Dbuildtype=plain -Dauto_features=disabled -Dlz4=enabled -Dicu=disabled -Dreadline=enabled \
             -Dzlib=enabled"
        );
    }

    #[test]
    fn the_archiver_of_an_lto_build_is_a_need_of_its_own() {
        let (_dir, some) = toolbox(&[
            ("gcc", "echo gcc"),
            ("perl", ""),
            ("make", ""),
            ("pkg-config", ""),
        ]);
        let variants = Variants::builtin();
        let needs = Needs {
            major_rank: 1300,
            has_parser: true,
            is_git: false,
        };
        let probed = some.probe(variants.get("o3_native_lto").unwrap(), needs);
        assert_eq!(names(&probed), ["gcc-ar", "gcc-ranlib"]);
        assert!(
            refusal("x", &probed.missing)
                .hint
                .unwrap()
                .contains("apt-get install gcc\n")
        );
    }

    #[test]
    fn what_the_user_s_shell_says_about_flags_does_not_reach_a_build() {
        let (_dir, some) = toolbox(&[("gcc", "echo \"gcc $CFLAGS$COPT\"")]);
        let said = some.compiler_version(&Variant::default()).unwrap();
        assert_eq!(said, "gcc");
        assert!(
            !Toolbox::here()
                .inherited
                .iter()
                .any(|(name, _)| name == "CFLAGS" || name == "CC")
        );
    }
}
