//! Builds from source: a release, an archive or a commit, and a variant, to an installed tree in the cache.
//!
//! What can be refused is refused before anything is fetched or built: an unknown variant, a missing tool or
//! library (all of them at once). A build is found again by its key: source, options, flags, compiler,
//! environment, and the CPU where it was built for that. Builds happen under a lock of their own, one after
//! the other, since each uses all cores; fetching prebuilt servers goes on beside them.

mod apt;
mod archive;
mod git;
mod held;
mod history;
pub(crate) mod kept;
mod named;
mod order;
mod probe;
mod release;
mod revert;
mod step;
mod system;
#[cfg(test)]
mod tests;
mod touched;
mod variant;
mod verify;
mod workplace;

pub use history::{History, HistoryCommit, commits_in_order, history};
pub use named::NamedSources;
pub use revert::{Revert, Undone, without};
pub use step::{did_not_compile, is_of_machine};
pub use touched::{ByFile, defined_in, touched};
pub use variant::{BuildSystem, OptionSince, Variant, Variants};

use crate::Sources;
use crate::cache::Cache;
use crate::files::{failed, make_directory};
use crate::tree;
use archive::{Archive, Contents};
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use deltabench_model::target::{BuildSource, BuildSpec, Release, TargetSpec};
use git::Commit;
use kept::{Build, Made};
use named::{Place, references};
use order::Order;
use probe::{Needs, Probed, Toolbox};
use release::Releases;
use std::path::Path;
use std::time::{Duration, Instant};
use step::{Log, NO_SERVER, clock};
use system::{Times, Works};
use workplace::{Source, State, Workplace};

/// Finds a build in the cache, or makes it.
pub(crate) fn resolve(
    spec: &BuildSpec,
    cache: &Cache,
    sources: &Sources,
    progress: &mut dyn FnMut(&str),
) -> Result<Installation, Problem> {
    Builder::new(cache, sources, Toolbox::here()).resolve(spec, progress)
}

/// Refuses what [`resolve`] would refuse without fetching or building anything.
pub(crate) fn check(spec: &BuildSpec, cache: &Cache, sources: &Sources) -> Result<(), Problem> {
    Builder::new(cache, sources, Toolbox::here())
        .first_look(spec)
        .map(drop)
}

/// Names of all builds in the cache: `git:postgres@1a2b3c4d5e+o3`.
pub fn built_names(cache: &Cache) -> Vec<String> {
    let all = kept::all(cache).into_iter();
    all.map(|build| build.stamp.label).collect()
}

/// The build that a target stands for, if it is in the cache; nothing is fetched or built.
pub fn build_here(spec: &BuildSpec, cache: &Cache, sources: &Sources) -> Option<Installation> {
    let sources = Sources {
        offline: true,
        ..sources.clone()
    };
    match Builder::new(cache, &sources, Toolbox::here()).first_look(spec) {
        Ok(FirstLook::Have(build)) => Some(build.installation(spec.to_string())),
        _ => None,
    }
}

/// Removes a build from the cache; the next use of it builds it again. What is no build there stays. False if
/// the build stays because another deltabench has it from [`resolve`](crate::resolve) and still runs.
///
/// Errors: files that cannot be removed.
pub fn forget_build(cache: &Cache, build: &Installation) -> Result<bool, Problem> {
    let _lock = cache.lock_builds(&mut |_| {})?;
    kept::forget(cache, &build.bin_dir)
}

/// Holds a build that was got before, as by [`resolve`](crate::resolve) in another process: no other
/// deltabench removes it while this one runs. Nothing is held of what is no build, or is gone.
///
/// Errors: a stamp that cannot be opened.
pub fn hold_build(build: &Installation) -> Result<(), Problem> {
    let found = build.bin_dir.parent().and_then(kept::at);
    found
        .map_or(Ok(false), |found| kept::hold(&found))
        .map(drop)
}

/// Why the source of this target is not known here, if its name needs the user's configuration.
pub fn unknown_source(spec: &TargetSpec, sources: &Sources) -> Option<Problem> {
    let TargetSpec::Built(BuildSpec {
        source: BuildSource::Named(name),
        ..
    }) = spec
    else {
        return None;
    };
    sources.named.find(name).err()
}

/// Everything that building needs.
struct Builder<'a> {
    cache: &'a Cache,
    sources: &'a Sources,
    tools: Toolbox,
}

/// What is known before anything is fetched.
enum FirstLook {
    /// It was built before.
    Have(Box<Build>),
    /// The source is here.
    Ready(Box<Order>),
    /// The source of the release must be fetched.
    Fetch(Release),
}

impl<'a> Builder<'a> {
    fn new(cache: &'a Cache, sources: &'a Sources, tools: Toolbox) -> Self {
        Self {
            cache,
            sources,
            tools,
        }
    }

    fn resolve(
        &self,
        spec: &BuildSpec,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Installation, Problem> {
        loop {
            let build = self.find(spec, progress)?;
            // Another deltabench may have removed it since it was found.
            if kept::hold(&build)? {
                return Ok(build.installation(spec.to_string()));
            }
        }
    }

    fn find(&self, spec: &BuildSpec, progress: &mut dyn FnMut(&str)) -> Result<Build, Problem> {
        let build = match self.first_look(spec)? {
            FirstLook::Have(build) => *build,
            FirstLook::Ready(order) => {
                let lock = self.cache.lock_builds(progress)?;
                self.find_or_make(&order, lock, progress)?
            }
            FirstLook::Fetch(wanted) => {
                let lock = self.cache.lock_builds(progress)?;
                let (release, archive) = self.releases().find(&wanted, progress)?;
                let source = Source::Archive(archive);
                match self.judge(spec, Some(&release), source)? {
                    FirstLook::Have(build) => *build,
                    FirstLook::Ready(order) => self.find_or_make(&order, lock, progress)?,
                    FirstLook::Fetch(_) => {
                        return Err(Problem::new(format!(
                            "the source of {release} has disappeared"
                        )));
                    }
                }
            }
        };
        Ok(build)
    }

    fn releases(&self) -> Releases<'_> {
        Releases {
            cache: self.cache,
            sources: self.sources,
            tools: &self.tools,
        }
    }

    /// What can be said without network, lock and compiler runs of any length.
    fn first_look(&self, spec: &BuildSpec) -> Result<FirstLook, Problem> {
        let variant = self.sources.variants.get(&spec.variant)?;
        match &spec.source {
            BuildSource::Named(name) => match self.sources.named.find(name)? {
                Place::Archive(file) => self.of_archive(spec, file),
                Place::Clone(directory) => self.of_commit(spec, directory, &references(name)),
            },
            BuildSource::Release(wanted) => {
                if wanted.minor.is_some()
                    && let Some((release, archive)) = self.releases().kept(wanted)
                {
                    return self.judge(spec, Some(&release), Source::Archive(archive));
                }
                if self.sources.offline {
                    // Nothing is fetched, so that this says what is missing.
                    let (release, archive) = self.releases().find(wanted, &mut |_| {})?;
                    return self.judge(spec, Some(&release), Source::Archive(archive));
                }
                release::mirror(self.sources)?;
                let needs = needs_of(wanted);
                self.check_system(spec, variant, needs.major_rank, true, true)?;
                let probed = self.tools.probe(variant, needs);
                self.refuse_missing(spec, &probed)?;
                Ok(FirstLook::Fetch(wanted.clone()))
            }
            BuildSource::Archive(file) => self.of_archive(spec, file),
            BuildSource::Git {
                directory,
                reference,
            } => self.of_commit(spec, directory, std::slice::from_ref(reference)),
        }
    }

    fn of_archive(&self, spec: &BuildSpec, file: &Path) -> Result<FirstLook, Problem> {
        let archive = Archive::open(file, self.cache)?;
        self.judge(spec, None, Source::Archive(archive))
    }

    /// The commit that the first of these names means that the repository has.
    fn of_commit(
        &self,
        spec: &BuildSpec,
        directory: &Path,
        references: &[String],
    ) -> Result<FirstLook, Problem> {
        let Some(git) = self.tools.find("git") else {
            let variant = self.sources.variants.get(&spec.variant)?;
            let needs = Needs {
                major_rank: 0,
                has_parser: false,
                is_git: true,
            };
            let probed = self.tools.probe(variant, needs);
            return Err(probe::refusal(&spec.to_string(), &probed.missing));
        };
        let mut found = Err(Problem::new(format!("{spec} names no commit")));
        for reference in references {
            found = Commit::find(&git, directory, reference);
            if found.is_ok() {
                break;
            }
        }
        self.judge(spec, None, Source::Commit(found?))
    }

    /// What a source that is here comes to.
    fn judge(
        &self,
        spec: &BuildSpec,
        release: Option<&Release>,
        source: Source,
    ) -> Result<FirstLook, Problem> {
        let variant = self.sources.variants.get(&spec.variant)?;
        let (contents, is_git): (&Contents, bool) = match &source {
            Source::Archive(archive) => (&archive.contents, false),
            Source::Commit(commit) => (&commit.contents, true),
        };
        named::check(spec, contents, &source.place())?;
        let (rank, configure, meson) = (
            contents.major_rank(),
            contents.has_configure,
            contents.has_meson,
        );
        self.check_system(spec, variant, rank, configure, meson)?;
        let needs = Needs {
            major_rank: rank,
            has_parser: contents.has_parser,
            is_git,
        };
        let probed = self.tools.probe(variant, needs);
        let order = Order::new(spec, release, source, variant, &probed);
        if let Some(build) = self.cached(&order) {
            return Ok(FirstLook::Have(Box::new(build)));
        }
        if !probed.missing.is_empty()
            && let Some(build) = self.cached_for_wish(&order)
        {
            return Ok(FirstLook::Have(Box::new(build)));
        }
        self.refuse_missing(spec, &probed)?;
        Ok(FirstLook::Ready(Box::new(order)))
    }

    fn check_system(
        &self,
        spec: &BuildSpec,
        variant: &Variant,
        major_rank: u32,
        has_configure: bool,
        has_meson: bool,
    ) -> Result<(), Problem> {
        let (has, file) = match variant.system {
            BuildSystem::Configure => (has_configure, "configure"),
            // Earlier trees may hold a meson.build that nobody keeps.
            BuildSystem::Meson => (has_meson && major_rank >= 1600, "meson.build"),
        };
        if has {
            return Ok(());
        }
        Err(Problem::new(format!(
            "{spec} cannot be built with {}",
            variant.system.word()
        ))
        .detail(format!("its source has no usable {file}"))
        .hint(
            "PostgreSQL can be built with meson since 16; use a variant for the other build system",
        ))
    }

    fn refuse_missing(&self, spec: &BuildSpec, probed: &Probed) -> Result<(), Problem> {
        match probed.missing.as_slice() {
            [] => Ok(()),
            missing => Err(probe::refusal(&spec.to_string(), missing)),
        }
    }

    /// The build of this very order, if it is here and still runs.
    fn cached(&self, order: &Order) -> Option<Build> {
        let build = kept::at(&kept::dir_of(self.cache, &order.name, &order.key))?;
        (build.stamp.key == order.key && runs(&build)).then_some(build)
    }

    /// A build of the same source and variant, made when there were tools.
    fn cached_for_wish(&self, order: &Order) -> Option<Build> {
        let mut all = kept::all(self.cache).into_iter();
        all.find(|build| build.stamp.wish == order.wish && runs(build))
    }

    fn find_or_make(
        &self,
        order: &Order,
        lock: std::fs::File,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Build, Problem> {
        // Whoever held the lock may have made it.
        if let Some(build) = self.cached(order) {
            return Ok(build);
        }
        progress(&format!(
            "building {} with {}",
            order.label, order.recipe.compiler
        ));
        for note in &order.notes {
            progress(&format!("{}: {note}", order.label));
        }
        let logs = self.cache.root().join("logs");
        make_directory(&logs)?;
        let name = format!("{}-{}.log", order.name, kept::short(&order.key));
        let mut log = Log::begin(logs.join(name), &order.label, lock)?;
        let start = Instant::now();
        let partial = kept::partial(self.cache)?;
        let stays = order.variant.system == BuildSystem::Configure;
        let place = Workplace::new(self.cache, &order.source, &order.neighbours, stays);
        let made = self.make(order, &place, &partial, &mut log, progress);
        let (times, state, configured) = match made {
            Ok(made) => made,
            Err(problem) => {
                let _ = crate::files::remove_tree(&partial);
                return Err(problem);
            }
        };
        place.finished()?;
        std::fs::copy(&log.path, partial.join("build.log"))
            .map_err(|error| failed("copy", &log.path, &error))?;
        let made = Made {
            key: order.key.clone(),
            wish: order.wish.clone(),
            label: order.label.clone(),
            recipe: order.recipe.clone(),
            cpu: order.cpu.clone(),
            how: state.words(),
            notes: order.notes.clone(),
            configured,
            seconds: start.elapsed().as_secs(),
        };
        let dir = kept::dir_of(self.cache, &order.name, &order.key);
        let build = kept::keep(&partial, &dir, made)?;
        let _ = std::fs::remove_file(&log.path);
        progress(&told(order, start.elapsed(), times, &state));
        Ok(build)
    }

    /// Builds in place, onto what is there; anew if that fails.
    fn make(
        &self,
        order: &Order,
        place: &Workplace<'_>,
        partial: &Path,
        log: &mut Log,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(Times, State, String), Problem> {
        let tools = self.tools.with_ccache(
            order.variant.compiler(),
            order.cpu.as_deref(),
            self.cache.root(),
        )?;
        let tree = place.tree();
        let dir = kept::dir_of(self.cache, &order.name, &order.key);
        let works = Works {
            order,
            tools: &tools,
            tree: &tree,
            into: partial,
            final_place: &dir,
            jobs: self.jobs(),
        };
        let mut state = place.prepare()?;
        log.note(&state.words())?;
        let mut done = works.carry_out(matches!(state, State::Clean(_)), log, progress);
        if let (Err(problem), State::Built { .. }) = (&done, &state) {
            progress(&format!(
                "{}: the incremental build failed; building everything again",
                order.label
            ));
            log.note(&problem.error)?;
            log.next_attempt()?;
            state = place.clean("the incremental build failed")?;
            log.note(&state.words())?;
            crate::files::remove_tree(&partial.join("staging"))?;
            done = works.carry_out(true, log, progress);
        }
        let times = done?;
        let is_meson = order.variant.system == BuildSystem::Meson;
        let asked = verify::Asked {
            version: order.version(),
            options: if is_meson { &[] } else { &order.recipe.options },
            cflags: &order.recipe.cflags,
            ldflags: &order.recipe.ldflags,
        };
        let configured = verify::check(&partial.join("bin"), &asked)?;
        if let Some(why) = tree::lacking(&partial.join("bin")) {
            return Err(log.failure("make install", NO_SERVER).detail(why));
        }
        Ok((times, state, configured))
    }

    fn jobs(&self) -> usize {
        let all = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        self.sources.jobs.map_or(all, std::num::NonZeroUsize::get)
    }
}

/// Whether its server can still be started: libraries it was linked with may have gone.
fn runs(build: &Build) -> bool {
    tree::facts(&build.dir.join("bin")).is_ok()
}

/// What a release needs, before its source is looked at.
fn needs_of(release: &Release) -> Needs {
    let major_rank = release.major_rank();
    Needs {
        major_rank,
        // Archives of releases came with the parser made until 16.
        has_parser: major_rank < 1700,
        is_git: false,
    }
}

/// The line after a build.
fn told(order: &Order, whole: Duration, times: Times, state: &State) -> String {
    format!(
        "built {} in {} (configure {}, make {}, install {}): {}",
        order.label,
        clock(whole),
        clock(times.configure),
        clock(times.make),
        clock(times.install),
        state.words()
    )
}
