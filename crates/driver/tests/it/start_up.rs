//! Connecting, authenticating, and the client for set-up work.

use crate::{PATIENCE, look_up};
use deltabench_driver::{Client, Lane, LaneSpec, WireError};
use deltabench_testkit::{Authentication, Behaviour, FakeServer};
use std::time::{Duration, Instant};

fn server(authentication: Authentication) -> FakeServer {
    FakeServer::start(Behaviour {
        authentication,
        ..Behaviour::default()
    })
}

#[test]
fn start_up_says_who_we_are_and_what_is_to_be_set() {
    let server = server(Authentication::Trust);
    let mut login = server.login();
    login.options.push(("search_path".into(), "bench".into()));
    let client = Client::connect(&server.endpoint(), &login, PATIENCE).unwrap();
    assert_eq!(client.backend_pid(), 1);
    let pairs = [
        ("user", "fake"),
        ("database", "fake"),
        ("search_path", "bench"),
    ];
    let expected: Vec<_> = pairs
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect();
    assert_eq!(server.record().start_ups, [expected]);
}

#[test]
fn passwords_are_sent_as_the_server_asks() {
    let clear = server(Authentication::Cleartext);
    Client::connect(&clear.endpoint(), &clear.login(), PATIENCE).unwrap();
    assert_eq!(clear.record().passwords, ["secret"]);
    let md5 = server(Authentication::Md5);
    Client::connect(&md5.endpoint(), &md5.login(), PATIENCE).unwrap();
    // From coreutils: echo -n "$(echo -n secretfake | md5sum | cut -c-32)salt" | md5sum
    assert_eq!(
        md5.record().passwords,
        ["md507528e399aef14a622b9fb9a39626f56"]
    );
}

#[test]
fn a_missing_password_and_an_unknown_method_are_told() {
    let clear = server(Authentication::Cleartext);
    let mut login = clear.login();
    login.password = None;
    let error = Client::connect(&clear.endpoint(), &login, PATIENCE).unwrap_err();
    assert!(matches!(error, WireError::Authentication { .. }), "{error}");
    let unknown = server(Authentication::Unknown);
    let error = Client::connect(&unknown.endpoint(), &unknown.login(), PATIENCE).unwrap_err();
    assert!(error.to_string().contains("method 9"), "{error}");
}

#[test]
fn a_server_that_says_nothing_at_start_up_does_not_hang_us() {
    let silent = server(Authentication::Silence);
    let started = Instant::now();
    let limit = Duration::from_millis(100);
    let error = Client::connect(&silent.endpoint(), &silent.login(), limit).unwrap_err();
    assert!(matches!(error, WireError::Timeout { .. }), "{error}");
    let servers = [silent.address()];
    let spec = LaneSpec {
        servers: &servers,
        executable: &look_up(),
        clients: 2,
        jobs: 1,
        cores: &[],
        op_timeout: limit,
        rate: None,
    };
    assert!(matches!(
        Lane::connect(&spec).unwrap_err(),
        WireError::At { server: 0, .. }
    ));
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn a_failed_command_leaves_the_client_usable() {
    let server = server(Authentication::Trust);
    let mut client = Client::connect(&server.endpoint(), &server.login(), PATIENCE).unwrap();
    let error = client.execute("fail 42601").unwrap_err();
    assert_eq!(error.sqlstate(), Some("42601"));
    client.execute("anything").unwrap();
    let error = client
        .copy_in("fail 42P01", &mut |_| panic!("not to be fed"))
        .unwrap_err();
    assert_eq!(error.sqlstate(), Some("42P01"));
    assert!(client.query("anything").unwrap().is_empty());
}
