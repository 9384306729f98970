//! A lab as a folder of files, which needs no server.

mod manifest;
mod state;

use crate::digest::digest;
use crate::lab::Lab;
use crate::page::with_all_words;
use crate::route::{Links, Route};
use crate::{cells, changes, compare, executions, hosts, run, trends};
use deltabench_lab::{further_threads, side_by_side};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_store::RunState;
use manifest::{File, Manifest, hash};
use state::{PAGES, state};
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    before.begin(directory)?;
    let site = Site {
        directory,
        secrets: lab.secrets.stamp().to_owned(),
        state: state(lab, execution)?,
        before,
    };
    let mut labs = Vec::new();
    // A report is never without its script.
    let mut made = site.bring_all(lab, &mut labs, &[[Route::Script]])?;
    // Pages of runs before the others, which show what they found.
    made.add(site.bring_all(lab, &mut labs, &runs(lab))?);
    let files: Vec<[Route; 1]> = of_files(lab).into_iter().map(|route| [route]).collect();
    made.add(site.bring_all(lab, &mut labs, &files)?);
    match site.lists_as_before() {
        Some(lists) => made.add(lists),
        None => {
            lab.read_outcomes();
            let lists: Vec<[Route; 1]> = lists(lab)?.into_iter().map(|route| [route]).collect();
            made.add(site.bring_all(lab, &mut labs, &lists)?);
        }
    }
    site.clear(&mut made)?;
    made.after.finish(directory)?;
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
    Arc::make_mut(&mut lab.entries).retain(|entry| entry.execution.as_deref() == Some(wanted));
    lab.index();
    lab.is_part = true;
    Ok(())
}

/// The pages of runs: both of a run come from one analysis.
fn runs(lab: &Lab) -> Vec<[Route; 2]> {
    let both = |name: &String| [Route::Run(name.clone()), Route::ApiRun(name.clone())];
    lab.entries.iter().map(|entry| both(&entry.name)).collect()
}

/// The pages that are files in a lab, or read such files.
fn of_files(lab: &Lab) -> Vec<Route> {
    let executions = executions::all(lab).into_iter();
    let mut all: Vec<Route> = executions.map(|(name, _)| Route::Execution(name)).collect();
    if !lab.is_part {
        all.extend(lab.stored.iter().cloned().map(Route::Stored));
    }
    all
}

/// All other pages of a lab.
fn lists(lab: &mut Lab) -> Result<Vec<Route>, Problem> {
    let mut all = Vec::new();
    if !lab.is_part {
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
    /// Of all that its lists follow from.
    state: String,
    before: Manifest,
}

/// What was done to its pages.
#[derive(Default)]
struct Made {
    after: Manifest,
    done: Published,
}

impl Made {
    /// A file stays as it is.
    fn keep(&mut self, name: &str, file: &File) {
        self.after.files.insert(name.to_owned(), file.clone());
        self.done.unchanged += 1;
    }

    fn add(&mut self, other: Self) {
        let Self { after, done } = other;
        self.after.files.extend(after.files);
        self.done.written += done.written;
        self.done.unchanged += done.unchanged;
        self.done.removed += done.removed;
    }
}

impl Site<'_> {
    /// The lists as they are, if they follow from the same as now and are all there.
    fn lists_as_before(&self) -> Option<Made> {
        if self.before.was_cut_short {
            return None;
        }
        let mut made = Made::default();
        for (name, file) in &self.before.files {
            if file.inputs.as_ref() == Some(&self.state) {
                made.keep(
                    name,
                    file.is_at(&self.directory.join(name)).then_some(file)?,
                );
            }
        }
        // The list of files is written at the end: with one list all are in it.
        let has_lists = made.after.files.contains_key(&Route::Home.file());
        has_lists.then_some(made)
    }

    /// Brings pages up to date, on all cores: each thread takes the next pages that belong together. `labs`:
    /// the same lab for further threads, as far as there are some.
    fn bring_all<const N: usize>(
        &self,
        lab: &mut Lab,
        labs: &mut Vec<Lab>,
        routes: &[[Route; N]],
    ) -> Result<Made, Problem> {
        let further = further_threads(routes.len() * N, PAGES_OF_A_THREAD);
        for at in 0..further {
            match labs.get_mut(at) {
                Some(other) => other.know_as(lab),
                None => labs.extend(lab.again()?),
            }
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
        let others = labs.iter_mut().take(further).map(|lab| {
            let work = &work;
            move || work(lab)
        });
        let made = side_by_side(|| work(lab), others.collect::<Vec<_>>());
        labs.iter_mut().for_each(|other| lab.know(other));
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
        let known = self.before.files.get(&name);
        let known = known.filter(|file| file.is_at(&path));
        let inputs = self.inputs(lab, route);
        if let Some(file) = known.filter(|file| inputs.is_some() && file.inputs == inputs) {
            made.keep(&name, file);
            return Ok(());
        }
        let Some(page) = with_all_words(lab, route, true)? else {
            return Ok(());
        };
        // Most lists say what they said. To see that is less work than to look for words in them again.
        let is_list = inputs.as_ref() == Some(&self.state);
        let stamp = is_list.then(|| format!("{PAGES} {}", lab.secrets.stamp_of(&page)));
        if let Some(file) = known.filter(|file| stamp.is_some() && file.page == stamp) {
            let file = File {
                inputs,
                ..file.clone()
            };
            made.keep(&name, &file);
            return Ok(());
        }
        let page = lab.secrets.withhold(page);
        let file = File {
            inputs,
            page: stamp,
            bytes: hash(&page.text),
            length: Some(count(page.text.len())),
        };
        if std::fs::read_to_string(&path).is_ok_and(|there| there == page.text) {
            made.keep(&name, &file);
        } else {
            replace(&path, &page.text)?;
            made.done.written += 1;
            made.after.files.insert(name, file);
        }
        Ok(())
    }

    /// What a page is made from, as a hash; `None` for one that is made each time.
    fn inputs(&self, lab: &Lab, route: &Route) -> Option<String> {
        match route {
            Route::Run(name) => inputs_of_run(lab, (name, Some(route)), &self.secrets),
            Route::ApiRun(name) => inputs_of_run(lab, (name, None), &self.secrets),
            Route::Script | Route::Execution(_) | Route::Stored(_) | Route::Live(_) => None,
            _ => Some(self.state.clone()),
        }
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

/// What a page of a run is made from, as a hash; `page`: that for people, which says what the run has to do
/// with the rest of the lab.
fn inputs_of_run(lab: &Lab, (name, page): (&str, Option<&Route>), secrets: &str) -> Option<String> {
    let entry = lab.entry(name)?;
    if entry.is_replay || entry.state == RunState::Running {
        return None;
    }
    let about = page.map_or_else(String::new, |page| {
        // Its data are for this script.
        let (_, script) = deltabench_report::script();
        script.to_owned() + &run::about(entry, lab, &Links::of(page, true)).into_string()
    });
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
