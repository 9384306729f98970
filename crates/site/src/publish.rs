//! A lab as a folder of files, which needs no server.

mod manifest;

use crate::digest::digest;
use crate::lab::Lab;
use crate::page::page;
use crate::route::{Links, Route};
use crate::{cells, changes, compare, executions, hosts, run, trends};
use deltabench_lab::{further_threads, side_by_side};
use deltabench_model::problem::Problem;
use deltabench_store::RunState;
use manifest::{File, Manifest, hash};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pages for which a further thread is started: it has to read the lab's file again.
const PAGES_OF_A_THREAD: usize = 8;

/// What was done to a site's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Published {
    /// Files that are new or have other bytes than before.
    pub written: u64,
    /// Files that stayed as they were.
    pub unchanged: u64,
    /// Files of what is not in the lab any more.
    pub removed: u64,
}

/// Writes the pages of a lab into a folder of their own, or brings them up to date. Each file is written next
/// to the old one and renamed; a file whose bytes did not change is not touched.
///
/// `execution`: only the runs of this one. Errors: a folder that has files and is no site, a lab that is
/// measured now, an execution that is not there; files that cannot be written.
pub fn publish(
    lab: &mut Lab,
    directory: &Path,
    execution: Option<&str>,
) -> Result<Published, Problem> {
    if let Some(measured) = &lab.measured {
        return Err(
            Problem::new("the lab is not published while it is measured")
                .detail(format!(
                    "{measured} is measured now, and analyses would disturb it"
                ))
                .hint("wait until it is finished, then `deltabench publish` again"),
        );
    }
    if let Some(wanted) = execution {
        only(lab, wanted)?;
    }
    let before = Manifest::open(directory)?;
    before.save(directory)?;
    let site = Site {
        directory,
        secrets: lab.secrets.stamp().to_owned(),
        before,
    };
    // A report is never without its script.
    let mut made = site.bring_all(lab, &[[Route::Script]])?;
    // Pages of runs before the others, which show what they found.
    made.add(site.bring_all(lab, &runs(lab))?);
    let lists: Vec<[Route; 1]> = lists(lab)?.into_iter().map(|route| [route]).collect();
    made.add(site.bring_all(lab, &lists)?);
    site.clear(&mut made)?;
    made.after.save(directory)?;
    Ok(made.done)
}

/// Forgets all runs but those of an execution, and those that belong to them.
fn only(lab: &mut Lab, wanted: &str) -> Result<(), Problem> {
    let known: Vec<String> = { executions::all(lab).into_iter() }
        .map(|(name, _)| name)
        .collect();
    if !known.iter().any(|name| name == wanted) {
        let problem = Problem::new(format!("there is no execution {wanted} in this lab"));
        return Err(match known.as_slice() {
            [] => {
                problem.hint("leave out --execution: no run of this lab is part of an experiment")
            }
            _ => problem.hint(format!("it has {}", known.join(", "))),
        });
    }
    lab.entries
        .retain(|entry| entry.execution.as_deref() == Some(wanted));
    lab.index();
    lab.is_part = true;
    Ok(())
}

/// The pages of runs: both of a run come from one analysis.
fn runs(lab: &Lab) -> Vec<[Route; 2]> {
    let both = |name: &String| [Route::Run(name.clone()), Route::ApiRun(name.clone())];
    lab.entries.iter().map(|entry| both(&entry.name)).collect()
}

/// All other pages of a lab.
fn lists(lab: &mut Lab) -> Result<Vec<Route>, Problem> {
    let mut all = Vec::new();
    let executions = executions::all(lab).into_iter();
    all.extend(executions.map(|(name, _)| Route::Execution(name)));
    if !lab.is_part {
        all.extend(executions::all_stored(lab)?.into_iter().map(Route::Stored));
        all.extend(compare::published(lab)?);
        all.extend(changes::all(lab)?);
        all.extend(trends::all(lab)?);
    }
    let versions = lab.versions().iter();
    all.extend(versions.map(|(version, _)| Route::Version(version.key.clone())));
    all.extend(
        cells::all(lab)
            .into_iter()
            .map(|one| Route::Cell(one.key, one.host)),
    );
    all.extend(
        hosts::all(lab)
            .into_iter()
            .map(|(host, _)| Route::Host(host.key.clone())),
    );
    all.extend([
        Route::Home,
        Route::Runs,
        Route::Versions,
        Route::Cells,
        Route::Trends,
        Route::Changes,
        Route::Compare,
        Route::Hosts,
        Route::Search,
        Route::Feed,
        Route::ApiRuns,
        Route::ApiVersions,
        Route::ApiHosts,
        Route::ApiChanges,
    ]);
    Ok(all)
}

/// A folder that is brought up to date.
struct Site<'a> {
    directory: &'a Path,
    /// Of the words that its pages do not say.
    secrets: String,
    before: Manifest,
}

/// What was done to its pages.
#[derive(Default)]
struct Made {
    after: Manifest,
    done: Published,
}

impl Made {
    fn add(&mut self, other: Self) {
        let Self { after, done } = other;
        self.after.files.extend(after.files);
        self.done.written += done.written;
        self.done.unchanged += done.unchanged;
        self.done.removed += done.removed;
    }
}

impl Site<'_> {
    /// Brings pages up to date, on all cores: each thread takes the next pages that belong together.
    fn bring_all<const N: usize>(
        &self,
        lab: &mut Lab,
        routes: &[[Route; N]],
    ) -> Result<Made, Problem> {
        let further = further_threads(routes.len() * N, PAGES_OF_A_THREAD);
        let mut labs = Vec::new();
        for _ in 0..further {
            labs.extend(lab.again()?);
        }
        let next = AtomicUsize::new(0);
        let work = |lab: &mut Lab| -> Result<Made, Problem> {
            let mut made = Made::default();
            while let Some(together) = routes.get(next.fetch_add(1, Ordering::Relaxed)) {
                for route in together {
                    self.bring(lab, route, &mut made)?;
                }
            }
            Ok(made)
        };
        let others = labs.iter_mut().map(|lab| {
            let work = &work;
            move || work(lab)
        });
        let made = side_by_side(|| work(lab), others.collect::<Vec<_>>());
        labs.into_iter().for_each(|other| lab.know(other));
        let mut all = Made::default();
        for made in made {
            all.add(made?);
        }
        Ok(all)
    }

    /// Brings one page up to date.
    fn bring(&self, lab: &mut Lab, route: &Route, made: &mut Made) -> Result<(), Problem> {
        let name = route.file();
        let path = self.directory.join(&name);
        let inputs = inputs(lab, route, &self.secrets);
        let known = self.before.files.get(&name);
        let same = |file: &&File| inputs.is_some() && file.inputs == inputs && path.is_file();
        if let Some(file) = known.filter(same) {
            made.after.files.insert(name, file.clone());
            made.done.unchanged += 1;
            return Ok(());
        }
        let Some(page) = page(lab, route, true)? else {
            return Ok(());
        };
        let bytes = hash(&page.text);
        let is_there = std::fs::read_to_string(&path).is_ok_and(|there| there == page.text);
        if is_there {
            made.done.unchanged += 1;
        } else {
            replace(&path, &page.text)?;
            made.done.written += 1;
        }
        made.after.files.insert(name, File { inputs, bytes });
        Ok(())
    }

    /// Removes the files of things that are gone, if nobody has changed them since.
    fn clear(&self, made: &mut Made) -> Result<(), Problem> {
        for (name, file) in &self.before.files {
            let is_ours = Path::new(name)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)));
            if made.after.files.contains_key(name) || !is_ours {
                continue;
            }
            let path = self.directory.join(name);
            let there = std::fs::read_to_string(&path);
            if there.is_ok_and(|text| hash(&text) == file.bytes) {
                std::fs::remove_file(&path).map_err(|error| cannot_write(&path, &error))?;
                made.done.removed += 1;
            }
        }
        Ok(())
    }
}

/// What an expensive page is made from, as a hash; `None` for one that is made each time.
fn inputs(lab: &Lab, route: &Route, secrets: &str) -> Option<String> {
    let (name, has_lab) = match route {
        Route::Run(name) => (name, true),
        Route::ApiRun(name) => (name, false),
        _ => return None,
    };
    let entry = lab.entry(name)?;
    if entry.is_replay || entry.state == RunState::Running {
        return None;
    }
    let about = match has_lab {
        true => {
            // Its data are for this script.
            let (_, script) = deltabench_report::script();
            script.to_owned() + &run::about(entry, lab, &Links::of(route, true)).into_string()
        }
        false => String::new(),
    };
    let shows = lab.shows_hosts;
    let stamp = lab.stamp_of(entry);
    Some(digest(&format!("{stamp} {shows} {secrets} {about}")))
}

/// Writes a file next to its place and renames it.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Problem> {
    let write = |aside: &Path| {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(aside, text)?;
        std::fs::rename(aside, path)
    };
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".new-{}", std::process::id()));
    let aside = PathBuf::from(aside);
    write(&aside).map_err(|error| {
        let _ = std::fs::remove_file(&aside);
        cannot_write(path, &error)
    })
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(format!("cannot write {}", path.display()))
        .detail(error.to_string())
        .of_machine()
}
