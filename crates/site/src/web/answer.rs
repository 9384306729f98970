//! What a request gets.

use super::Site;
use super::events::{Events, follow};
use crate::page::page;
use crate::route::Route;
use crate::written::Page;
use deltabench_model::problem::Problem;
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// A page, or a stream of events.
pub(super) type Answer = Response<Either<Full<Bytes>, Events>>;

/// Where a token is exchanged.
const ENTER: &str = "/enter";
/// What the path of a run's events begins and ends with.
const EVENTS: (&str, &str) = ("/run/", "/events");
/// Seconds after which what waits for the end of a run may be asked for again.
const AGAIN_SECONDS: &str = "30";

/// How long one page may analyse runs for its lists: others wait for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers a request.
pub(super) async fn answer(request: &Request<Incoming>, site: Arc<Site>) -> Answer {
    let is_head = request.method() == Method::HEAD;
    let mut answer = answered(request, site).await;
    let headers = answer.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    let own = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(own, HeaderValue::from_static("same-origin"));
    if is_head {
        *answer.body_mut() = Either::Left(Full::default());
    }
    answer
}

async fn answered(request: &Request<Incoming>, site: Arc<Site>) -> Answer {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refused = told(
            StatusCode::METHOD_NOT_ALLOWED,
            "This server only shows pages.",
        );
        let allowed = HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(ALLOW, allowed);
        return refused;
    }
    if !site.door.knows(request.headers()) {
        let text = "This server does not answer to that name. Open it as http://127.0.0.1:PORT/.";
        return told(StatusCode::MISDIRECTED_REQUEST, text);
    }
    let path = request.uri().path();
    if path == ENTER {
        return enter(request.uri().query().unwrap_or_default(), &site);
    }
    if !site.door.admits(request.headers()) {
        let text = "A token is needed. Open /enter?token=TOKEN once.";
        return told(StatusCode::UNAUTHORIZED, text);
    }
    let (begin, end) = EVENTS;
    let followed = path
        .strip_prefix(begin)
        .and_then(|rest| rest.strip_suffix(end));
    if let Some(run) = followed {
        return match follow(run.to_owned(), site).await {
            Some(events) => {
                let mut answer = Response::new(Either::Right(events));
                let kind = HeaderValue::from_static("text/event-stream");
                answer.headers_mut().insert(CONTENT_TYPE, kind);
                answer
            }
            None => told(
                StatusCode::NOT_FOUND,
                "There is no such run, or too many follow one.",
            ),
        };
    }
    let asked = request.uri().path_and_query();
    let Some(route) = Route::of_path(asked.map_or(path, |asked| asked.as_str())) else {
        return told(StatusCode::NOT_FOUND, "There is no such page.");
    };
    let made = tokio::task::spawn_blocking(move || made(&route, &site)).await;
    match made {
        Ok(Ok(Some(page))) => shown(page),
        Ok(Ok(None)) => told(StatusCode::NOT_FOUND, "This lab has nothing of that name."),
        Ok(Err(problem)) => told(StatusCode::INTERNAL_SERVER_ERROR, &problem.to_string()),
        Err(_) => told(
            StatusCode::INTERNAL_SERVER_ERROR,
            "This page could not be made.",
        ),
    }
}

fn made(route: &Route, site: &Site) -> Result<Option<Page>, Problem> {
    // What is in it is read again from the store when it is out of date: no page leaves it half changed.
    let mut shown = site.lab.lock().unwrap_or_else(PoisonError::into_inner);
    shown.refresh()?;
    shown.lab.allow(PATIENCE);
    page(&mut shown.lab, route, false)
}

fn enter(query: &str, site: &Site) -> Answer {
    let cookie = site.door.exchange(query);
    let cookie = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok());
    let Some(cookie) = cookie else {
        return told(StatusCode::FORBIDDEN, "That is not the token.");
    };
    let mut answer = told(StatusCode::SEE_OTHER, "");
    answer.headers_mut().insert(SET_COOKIE, cookie);
    answer
        .headers_mut()
        .insert(LOCATION, HeaderValue::from_static("/"));
    answer
}

fn shown(page: Page) -> Answer {
    let length = page.text.len();
    let mut answer = Response::new(Either::Left(Full::from(page.text)));
    if page.later {
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let again = HeaderValue::from_static(AGAIN_SECONDS);
        answer.headers_mut().insert(RETRY_AFTER, again);
    }
    let kind = HeaderValue::from_static(page.kind.media_type());
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
        .headers_mut()
        .insert(CONTENT_LENGTH, HeaderValue::from(length));
    answer
}

fn told(status: StatusCode, text: &str) -> Answer {
    let mut answer = Response::new(Either::Left(Full::from(format!("{text}\n"))));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
