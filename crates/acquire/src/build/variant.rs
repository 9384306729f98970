//! Variants: the flags and options that a build is made with, by name.

use deltabench_model::problem::{Problem, nearest};
use serde::Serialize;
use std::collections::BTreeMap;

/// What configures a source tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuildSystem {
    /// `./configure` and `make`; every release has it.
    #[default]
    Configure,
    /// `meson` and `ninja`; PostgreSQL 16 and later.
    Meson,
}

impl BuildSystem {
    /// As files and messages name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Meson => "meson",
        }
    }
}

/// An option that only newer releases know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OptionSince {
    /// First release that gets it, as [`major_rank`](deltabench_model::target::Release::major_rank) counts.
    pub major_rank: u32,
    pub option: String,
}

/// How something is built.
///
/// Profile-guided optimisation has its place here: a training step would be one more field, and two more
/// steps between `make` and `install`. A profile that is there already can be used today, as a flag.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Variant {
    /// What configures the tree.
    pub system: BuildSystem,
    /// Options of it, as its command line takes them (`--with-lz4`; `-Dlz4=enabled`). A library that an
    /// option asks for is required; readline and ICU, which nobody asked for, are left out where they are
    /// missing.
    pub options: Vec<String>,
    /// Options for newer releases only.
    pub options_since: Vec<OptionSince>,
    /// `CFLAGS`; empty: what the build system takes by itself.
    pub cflags: String,
    pub ldflags: String,
    /// The C compiler; absent: `gcc`.
    pub compiler: Option<String>,
    /// Other variables of the environment, for example `AR` and `gcc-ar`.
    pub environment: Vec<(String, String)>,
}

impl Variant {
    /// The compiler's command.
    pub(super) fn compiler(&self) -> &str {
        self.compiler.as_deref().unwrap_or("gcc")
    }

    /// The options that a release gets.
    pub(super) fn options_for(&self, major_rank: u32) -> Vec<String> {
        let newer = self.options_since.iter();
        let newer = newer.filter(|since| since.major_rank <= major_rank);
        let newer = newer.map(|since| since.option.clone());
        self.options.iter().cloned().chain(newer).collect()
    }

    /// Whether the result depends on the CPU it was built on.
    pub(super) fn is_native(&self) -> bool {
        let values = self.environment.iter().map(|(_, value)| value);
        let mut all = values
            .chain([&self.cflags, &self.ldflags])
            .chain(&self.options);
        all.any(|text| {
            ["-march=native", "-mtune=native", "-mcpu=native"]
                .iter()
                .any(|flag| text.contains(flag))
        })
    }

    /// Whether it can be built at all, whatever the source.
    fn check(&self, name: &str) -> Result<(), Problem> {
        let bad = |why: String| Problem::new(format!("bad build variant `{name}`")).detail(why);
        let well_named = |text: &str, also: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || also.contains(c))
        };
        if !well_named(name, "_-.") {
            return Err(bad(
                "its name is made of letters, digits, `_`, `-` and `.`".to_owned()
            ));
        }
        let newer = self.options_since.iter().map(|since| &since.option);
        for option in self.options.iter().chain(newer) {
            self.check_option(option).map_err(&bad)?;
        }
        for (variable, _) in &self.environment {
            if !well_named(variable, "_") || variable.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(bad(format!("`{variable}` is not the name of a variable")));
            }
            match variable.as_str() {
                "CC" => return Err(bad("write CC as `compiler`".to_owned())),
                "CFLAGS" | "LDFLAGS" => {
                    return Err(bad(format!(
                        "write {variable} as `{}`",
                        variable.to_lowercase()
                    )));
                }
                "DESTDIR" | "MAKEFLAGS" | "MFLAGS" => {
                    return Err(bad(format!("{variable} is set by deltabench")));
                }
                _ => {}
            }
        }
        if self.compiler().split_whitespace().count() != 1 {
            return Err(bad(
                "`compiler` is one command; flags go into `cflags`, and deltabench uses ccache by \
                 itself"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn check_option(&self, option: &str) -> Result<(), String> {
        // Where things go is what makes a tree of the cache work from wherever the cache is.
        const PLACES: [&str; 14] = [
            "prefix",
            "exec-prefix",
            "bindir",
            "sbindir",
            "libexecdir",
            "sysconfdir",
            "libdir",
            "includedir",
            "datadir",
            "datarootdir",
            "localedir",
            "mandir",
            "docdir",
            "srcdir",
        ];
        let name = match self.system {
            BuildSystem::Configure => option.strip_prefix("--"),
            BuildSystem::Meson => option.strip_prefix("-D").or(option.strip_prefix("--")),
        };
        let Some(name) = name else {
            let form = match self.system {
                BuildSystem::Configure => "--with-lz4",
                BuildSystem::Meson => "-Dlz4=enabled",
            };
            return Err(format!(
                "`{option}` is not an option of {}: they look like {form}",
                self.system.word()
            ));
        };
        let name = name.split('=').next().unwrap_or(name);
        if PLACES.contains(&name) {
            return Err(format!("`{option}`: deltabench decides where the files go"));
        }
        Ok(())
    }
}

/// The variants that targets may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variants {
    known: BTreeMap<String, Variant>,
}

impl Default for Variants {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Variants {
    /// The published ones: `def`, `o2_nofp`, `o3`, `o3_native` and `o3_native_lto`. `o2_aligned` is our own:
    /// a function begins at a cache line, so that what a commit changes moves the code behind it less.
    ///
    /// Source: the published builds differ in CFLAGS only; all have `--enable-debug`, newer ones
    /// `--with-lz4`, and the 18 of `o2_nofp` `--with-liburing`. `nofp` there means that frame pointers are
    /// kept.
    pub fn builtin() -> Self {
        const NATIVE: &str = "-O3 -march=native -mtune=native";
        let lz4 = OptionSince {
            major_rank: 1400,
            option: "--with-lz4".to_owned(),
        };
        let liburing = OptionSince {
            major_rank: 1800,
            option: "--with-liburing".to_owned(),
        };
        let with = |cflags: &str| Variant {
            options: vec!["--enable-debug".to_owned()],
            options_since: vec![lz4.clone()],
            cflags: cflags.to_owned(),
            ..Variant::default()
        };
        let mut o2_nofp = with("-O2 -fno-omit-frame-pointer");
        o2_nofp.options_since.push(liburing);
        let mut lto = with(&format!("{NATIVE} -flto"));
        "-flto".clone_into(&mut lto.ldflags);
        // Objects of -flto are the compiler's own code: the plain `ar` may not list what is in them.
        lto.environment = [("AR", "gcc-ar"), ("RANLIB", "gcc-ranlib")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        let known = [
            ("def", with("")),
            (
                "o2_aligned",
                with("-O2 -fno-omit-frame-pointer -falign-functions=64"),
            ),
            ("o2_nofp", o2_nofp),
            ("o3", with("-O3")),
            ("o3_native", with(NATIVE)),
            ("o3_native_lto", lto),
        ];
        Self {
            known: known
                .map(|(name, variant)| (name.to_owned(), variant))
                .into(),
        }
    }

    /// These and the user's own.
    ///
    /// Errors: a name that is taken; an option, variable or compiler that cannot be.
    pub fn with(
        mut self,
        own: impl IntoIterator<Item = (String, Variant)>,
    ) -> Result<Self, Problem> {
        for (name, variant) in own {
            variant.check(&name)?;
            if self.known.contains_key(&name) {
                return Err(
                    Problem::new(format!("a build variant `{name}` already exists"))
                        .detail(format!("known: {}", self.names().join(", ")))
                        .hint(format!("give yours another name, such as my_{name}")),
                );
            }
            self.known.insert(name, variant);
        }
        Ok(self)
    }

    /// All names, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.known.keys().map(String::as_str).collect()
    }

    /// The variant of that name.
    ///
    /// Errors: there is none; the nearest is named, and all.
    pub fn get(&self, name: &str) -> Result<&Variant, Problem> {
        self.known.get(name).ok_or_else(|| {
            let names = self.names();
            let problem = Problem::new(format!("unknown build variant `{name}`"))
                .detail(format!("known: {}", names.join(", ")));
            match nearest(name, names.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean +{near}?")),
                None => problem.hint(
                    "write one of these after the `+`, or describe your own in the experiment file \
                     under [builds.NAME]",
                ),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(change: impl FnOnce(&mut Variant)) -> Result<Variants, Problem> {
        let mut variant = Variant::default();
        change(&mut variant);
        Variants::builtin().with([("mine".to_owned(), variant)])
    }

    #[test]
    fn the_published_flags_are_those_of_the_published_builds() {
        let variants = Variants::builtin();
        assert_eq!(
            variants.names(),
            [
                "def",
                "o2_aligned",
                "o2_nofp",
                "o3",
                "o3_native",
                "o3_native_lto"
            ]
        );
        let flags = |name: &str| variants.get(name).unwrap().cflags.clone();
        assert_eq!(flags("def"), "");
        assert_eq!(flags("o2_nofp"), "-O2 -fno-omit-frame-pointer");
        assert_eq!(flags("o3"), "-O3");
        assert_eq!(flags("o3_native"), "-O3 -march=native -mtune=native");
        let lto = variants.get("o3_native_lto").unwrap();
        assert_eq!(lto.cflags, "-O3 -march=native -mtune=native -flto");
        assert_eq!(lto.ldflags, "-flto");
        assert!(lto.is_native() && !variants.get("o3").unwrap().is_native());
    }

    #[test]
    fn newer_releases_get_what_only_they_know() {
        let variants = Variants::builtin();
        let options = |name: &str, rank| variants.get(name).unwrap().options_for(rank).join(" ");
        assert_eq!(options("o2_nofp", 1300), "--enable-debug");
        assert_eq!(options("o2_nofp", 1700), "--enable-debug --with-lz4");
        assert_eq!(
            options("o2_nofp", 1800),
            "--enable-debug --with-lz4 --with-liburing"
        );
        assert_eq!(options("o3", 1800), "--enable-debug --with-lz4");
    }

    #[test]
    fn an_unknown_variant_gets_the_nearest_and_the_list() {
        let variants = Variants::builtin();
        let problem = variants.get("o3-native").unwrap_err();
        assert!(problem.hint.unwrap().contains("+o3_native?"));
        assert!(problem.detail.unwrap().contains("o2_nofp"));
        let stranger = variants.get("sanitized").unwrap_err();
        assert!(stranger.hint.unwrap().contains("[builds.NAME]"));
    }

    #[test]
    fn own_variants_join_and_cannot_hide_a_built_in_one() {
        let variants = own(|mine| mine.cflags = "-O1".to_owned()).unwrap();
        assert_eq!(variants.get("mine").unwrap().cflags, "-O1");
        let taken = Variants::builtin().with([("o3".to_owned(), Variant::default())]);
        assert!(taken.unwrap_err().error.contains("already"));
    }

    #[test]
    fn what_cannot_be_built_is_refused_when_it_is_described() {
        let why = |change: fn(&mut Variant)| own(change).unwrap_err().detail.unwrap();
        let option = |text: &str| vec![text.to_owned()];
        assert!(why(|mine| mine.options = vec!["with-lz4".to_owned()]).contains("--with-lz4"));
        assert!(why(|mine| mine.options = vec!["--prefix=/usr".to_owned()]).contains("decides"));
        assert!(own(|mine| mine.options = option("--with-prefix=x")).is_ok());
        assert!(
            why(|mine| {
                mine.system = BuildSystem::Meson;
                mine.options = vec!["lz4=enabled".to_owned()];
            })
            .contains("-Dlz4=enabled")
        );
        let variable = |name: &str| vec![(name.to_owned(), String::new())];
        assert!(
            why(|mine| mine.environment = vec![("CC".into(), "x".into())]).contains("compiler")
        );
        assert!(why(|mine| mine.environment = vec![("A B".into(), "x".into())]).contains("A B"));
        assert!(own(|mine| mine.environment = variable("AR")).is_ok());
        assert!(why(|mine| mine.compiler = Some("ccache gcc".to_owned())).contains("one command"));
    }
}
