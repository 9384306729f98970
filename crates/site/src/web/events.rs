//! What a run measures, while it does: server-sent events, from rows of the store.

use super::Site;
use crate::lab::is_locked;
use crate::route::segment;
use deltabench_lab::store_problem;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_store::{RunState, Store};
use hyper::body::{Body, Bytes, Frame};
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often the store is asked.
const EVERY: Duration = Duration::from_secs(2);

/// The events of a run; ends with the run, or when nobody reads them.
#[derive(Debug)]
pub(super) struct Events(mpsc::Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.poll_recv(context);
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// How far a run is.
struct Progress {
    /// In a word: a run that was killed has stopped.
    state: &'static str,
    blocks_done: u64,
    blocks_planned: u32,
    visits_done: u64,
}

/// Begins to follow a run; `None` for one that is not there, and where too many are followed already.
pub(super) async fn follow(run: String, site: Arc<Site>) -> Option<Events> {
    let place = Arc::clone(&site);
    let found = tokio::task::spawn_blocking(move || known(&run, &place)).await;
    let (run, plan) = found.ok()?.ok()??;
    // Kept by the task below until it ends.
    site.followers.try_acquire().ok()?.forget();
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        tell(run, Arc::new(plan), &site, sender).await;
        site.followers.add_permits(1);
    });
    Some(Events(receiver))
}

/// The store, which is opened again if a copy is read that is out of date.
fn watched(site: &Site) -> Result<MutexGuard<'_, Store>, Problem> {
    let mut store = site.watched.lock().unwrap_or_else(PoisonError::into_inner);
    store.renew().map_err(store_problem)?;
    Ok(store)
}

fn known(wanted: &str, site: &Site) -> Result<Option<(String, Plan)>, Problem> {
    let store = watched(site)?;
    let stamps = store.stamps().map_err(store_problem)?;
    let mut names = stamps.into_iter().map(|stamp| stamp.run);
    let Some(run) = names.find(|name| name == wanted || segment(name) == wanted) else {
        return Ok(None);
    };
    let plan = store.plan(&run).map_err(store_problem)?;
    Ok(Some((run, plan)))
}

async fn tell(run: String, plan: Arc<Plan>, site: &Arc<Site>, sender: mpsc::Sender<Bytes>) {
    loop {
        let (name, plan, asked) = (run.clone(), Arc::clone(&plan), Arc::clone(site));
        let found = tokio::task::spawn_blocking(move || progress(&name, &plan, &asked)).await;
        let Ok(Ok(found)) = found else { return };
        let ended = found.state != RunState::Running.word();
        let said = json!({
            "state": found.state,
            "blocks_done": found.blocks_done,
            "blocks_planned": found.blocks_planned,
            "visits_done": found.visits_done,
            "ended": ended,
        });
        let event = Bytes::from(format!("event: progress\ndata: {said}\n\n"));
        if sender.send(event).await.is_err() || ended {
            return;
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn progress(run: &str, plan: &Plan, site: &Site) -> Result<Progress, Problem> {
    let store = watched(site)?;
    let reached = store.reached(run).map_err(store_problem)?;
    let (blocks_done, visits_done) = store.done(run, plan).map_err(store_problem)?;
    let measured = store.measured(is_locked(&store)).map_err(store_problem)?;
    let state = reached.map_or(RunState::Failed, |reached| reached.state);
    Ok(Progress {
        state: state.word_if(measured.as_deref() == Some(run)),
        blocks_done,
        blocks_planned: plan.timing.blocks,
        visits_done,
    })
}
