use deltabench_model::plan::{ExperimentPart, WorkloadSource};
use deltabench_site::Lab;
use deltabench_site::web::{Door, serve};
use deltabench_store::{RunState, Store};
use deltabench_testkit::labs::{self, run_name};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Serves a lab in a thread that ends with the test's process.
pub fn served(lab: &Path, door: Door) -> SocketAddr {
    let (sender, receiver) = mpsc::sync_channel(1);
    let lab = Lab::open(lab, true).unwrap();
    std::thread::spawn(move || {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let ready = |at| sender.send(at).unwrap();
        serve(lab, (any, door), Box::new(|_| {}), ready).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(60)).unwrap()
}

/// Sends bytes and returns what comes back until the server closes.
fn sent(at: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // A server that refuses a head early may close before it has all of it.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

pub fn got(at: SocketAddr, path: &str, more: &str) -> String {
    let host = if more.contains("Host:") {
        ""
    } else {
        "Host: localhost\r\n"
    };
    sent(
        at,
        &format!("GET {path} HTTP/1.1\r\n{host}{more}Connection: close\r\n\r\n"),
    )
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn pages_are_shown_and_everything_else_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(labs::lab(directory.path(), 1));
    let at = served(directory.path(), Door::own());
    let home = got(at, "/", "");
    assert_eq!(status(&home), "200");
    assert!(home.contains("referrer-policy: same-origin") && home.contains("default-src 'none'"));
    assert!(!home.to_lowercase().contains("access-control"));
    for (path, wanted) in [
        (format!("/run/{}", run_name(0)), "200"),
        ("/runs?q=x".to_owned(), "200"),
        ("/../deltabench.sqlite".to_owned(), "404"),
        ("/run/../runs".to_owned(), "404"),
        ("/run/%2e%2e".to_owned(), "404"),
        ("/deltabench.sqlite".to_owned(), "404"),
        ("/run/none".to_owned(), "404"),
        ("/run/none/events".to_owned(), "404"),
    ] {
        assert_eq!(status(&got(at, &path, "")), wanted, "{path}");
    }
    assert_eq!(status(&got(at, "/", "Host: evil.example\r\n")), "421");
    assert_eq!(
        status(&got(at, "/", "Host: localhost\r\nHost: evil.example\r\n")),
        "421"
    );
    let post =
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&sent(at, post)), "405");
    let long = format!("X: {}\r\n", "a".repeat(64 << 10));
    let refused = got(at, "/", &long);
    assert!(["431", "400", ""].contains(&status(&refused)), "{refused}");
    let many = "X: a\r\n".repeat(200);
    assert!(["431", "400", ""].contains(&status(&got(at, "/", &many))));
    assert_eq!(status(&got(at, "/", "")), "200", "and it still answers");
}

#[test]
fn visitors_from_elsewhere_need_the_token_once() {
    let directory = tempfile::tempdir().unwrap();
    drop(labs::lab(directory.path(), 1));
    let at = served(directory.path(), Door::with_token("aToken", "random"));
    assert_eq!(status(&got(at, "/", "")), "401");
    let elsewhere = "Host: bench.example:7755\r\n";
    assert_eq!(status(&got(at, "/", elsewhere)), "401");
    assert_eq!(status(&got(at, "/enter?token=aToken", elsewhere)), "303");
    assert_eq!(status(&got(at, "/enter?token=none", "")), "403");
    let entered = got(at, "/enter?token=aToken", "");
    assert_eq!(status(&entered), "303");
    let cookie = entered
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    assert_eq!(status(&got(at, "/", &cookie)), "200");
    let events = format!("/run/{}/events", run_name(0));
    assert_eq!(status(&got(at, &events, "")), "401");
}

#[test]
fn idle_connections_are_closed_and_nothing_grows() {
    let directory = tempfile::tempdir().unwrap();
    drop(labs::lab(directory.path(), 1));
    let at = served(directory.path(), Door::own());
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(at).unwrap()).collect();
    // Each ends by itself: those beyond the places at once, the others when their time for a head is up.
    for mut stream in idle {
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut rest = Vec::new();
        let closed = stream.read_to_end(&mut rest);
        assert!(!matches!(&closed, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock));
    }
    assert_eq!(status(&got(at, "/hosts", "")), "200");
}

#[test]
fn who_follows_a_run_is_told_of_its_visits_and_of_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut store: Store = labs::lab(directory.path(), 1);
    let run = "20261201-000000-aaaa";
    labs::add(&mut store, (run, &labs::plan(0)), 1_796_083_200_000);
    let lock = store.lock_run(run).unwrap();
    let at = served(directory.path(), Door::own());
    let live = got(at, &format!("/run/{run}/live"), "");
    assert!(live.contains("0 of 8") && live.contains("events"), "{live}");
    assert!(live.contains("<b id=\"state\">running</b>"), "{live}");
    // What the script does not keep up to date would soon say something else than what it does.
    assert_eq!(live.matches("0 of 8").count(), 1, "{live}");
    assert!(!live.contains("measured now"), "{live}");
    let mut stream = TcpStream::connect(at).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let request = format!("GET /run/{run}/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut next = || {
        let told = lines.find(|line| line.as_ref().unwrap().starts_with("data: "));
        told.unwrap().unwrap()
    };
    assert!(next().contains("\"visits_done\":0"));
    deltabench_testkit::small_run::keep(&mut store, run, [1.0; 3]);
    store
        .finish_run(run, RunState::Finished, 1_796_083_300_000)
        .unwrap();
    let last = next();
    assert!(
        last.contains("\"blocks_done\":8") && last.contains("\"ended\":true"),
        "{last}"
    );
    drop(lock);
}

#[test]
fn every_link_of_an_experiment_leads_to_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut store: Store = labs::lab(directory.path(), 1);
    let run = "demo-20261201-000000-aaaa-1";
    let mut plan = labs::plan(0);
    plan.experiment = Some(ExperimentPart {
        execution: "demo-20261201-000000-aaaa".to_owned(),
        experiment: "demo".to_owned(),
        source: WorkloadSource {
            file: "demo.toml".to_owned(),
            text: String::new(),
        },
        scale: None,
        part: 1,
        of: 1,
        group: None,
        repetition: 1,
        coordinates: Vec::new(),
        left_out: Vec::new(),
    });
    labs::add(&mut store, (run, &plan), 1_796_083_200_000);
    deltabench_testkit::small_run::keep(&mut store, run, [1.0; 3]);
    store
        .finish_run(run, RunState::Finished, 1_796_083_300_000)
        .unwrap();
    let at = served(directory.path(), Door::own());
    let text = got(at, "/execution/demo-20261201-000000-aaaa", "");
    let (_, runs) = text
        .split_once("aria-label=\"runs\"")
        .expect("a table of runs");
    assert!(runs.contains(&format!("href=\"/run/{run}\"")), "{runs}");
    for rest in text.split(" href=\"").skip(1) {
        let link = rest.split_once('"').unwrap().0;
        if !link.starts_with('#') {
            assert_eq!(status(&got(at, link, "")), "200", "{link}");
        }
    }
}

#[test]
fn a_run_that_was_killed_has_stopped_on_every_page_as_in_the_list() {
    let directory = tempfile::tempdir().unwrap();
    let mut store: Store = labs::lab(directory.path(), 1);
    let run = "20261201-000000-aaaa";
    labs::add(&mut store, (run, &labs::plan(0)), 1_796_083_200_000);
    let at = served(directory.path(), Door::own());
    let live = got(at, &format!("/run/{run}/live"), "");
    assert!(live.contains("<b id=\"state\">stopped</b>"), "{live}");
    assert!(
        live.contains("<p id=\"ended\">It is not measured any more"),
        "{live}"
    );
    let events = got(at, &format!("/run/{run}/events"), "");
    assert!(
        events.contains("\"state\":\"stopped\"") && events.contains("\"ended\":true"),
        "{events}"
    );
    let runs = got(at, "/runs", "");
    assert!(runs.contains("data-state=\"stopped\"") && runs.contains("stopped, 0 of 8 blocks"));
    assert!(!runs.contains("running"), "{runs}");
    let list = got(at, "/api/v1/runs.json", "");
    assert!(list.contains("\"state\": \"stopped\"") && !list.contains("\"running\""));
    // Somebody goes on with it.
    let _lock = store.lock_run(run).unwrap();
    let runs = got(at, "/runs", "");
    assert!(runs.contains("data-state=\"running\"") && runs.contains("measured now"));
}
