//! Who may come in: the names under which the server is called, and the token of visitors from elsewhere.

use crate::digest::digest;
use hyper::HeaderMap;
use hyper::header::{COOKIE, HOST};
use sha2::{Digest, Sha256};

/// Names under which a browser on this machine calls the server.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Name of the cookie.
const NAME: &str = "deltabench";

/// What a request must have to get a page.
#[derive(Debug, Clone)]
pub struct Door {
    /// Token and value of the cookie for which it is exchanged; absent where none is needed.
    token: Option<(String, String)>,
}

impl Door {
    /// For visitors of this machine alone.
    pub fn own() -> Self {
        Self { token: None }
    }

    /// For visitors that have a token; `random` differs each time the server starts.
    pub fn with_token(token: &str, random: &str) -> Self {
        Self {
            token: Some((token.to_owned(), digest(&format!("{random} {token}")))),
        }
    }

    /// Whether the server was called by one of its own names. Otherwise a page of somebody else's could have
    /// its name lead here and read the lab. That page has no cookie of ours, because a browser keeps cookies
    /// by name: where a token is needed, the server answers to every name that leads here.
    pub(super) fn knows(&self, headers: &HeaderMap) -> bool {
        if self.token.is_some() {
            return true;
        }
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        let host = host.to_str().unwrap_or_default();
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            _ => host,
        };
        NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Whether a request may see pages.
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        let Some((_, wanted)) = &self.token else {
            return true;
        };
        let cookies = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok());
        let mut values = cookies
            .flat_map(|line| line.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .filter(|(name, _)| *name == NAME);
        values.any(|(_, value)| same(value, wanted))
    }

    /// The cookie that a token of the query (`token=…`) is exchanged for; `None` for a wrong one.
    pub(super) fn exchange(&self, query: &str) -> Option<String> {
        let (token, value) = self.token.as_ref()?;
        let mut given = query
            .split('&')
            .filter_map(|part| part.strip_prefix("token="));
        let is_right = given.any(|given| same(given, token));
        is_right.then(|| format!("{NAME}={value}; HttpOnly; SameSite=Strict; Path=/"))
    }
}

/// Compares hashes, so that the time it takes says nothing of where two texts differ.
fn same(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(of: &[(hyper::header::HeaderName, &str)]) -> HeaderMap {
        let all = of.iter();
        all.map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn the_server_answers_to_its_own_names_alone() {
        let door = Door::own();
        for host in [
            "localhost",
            "localhost:7755",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:7755",
        ] {
            assert!(door.knows(&headers(&[(HOST, host)])), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "10.0.0.1",
            "127.0.0.1.x",
            "::1",
        ] {
            assert!(!door.knows(&headers(&[(HOST, host)])), "{host}");
        }
        assert!(!door.knows(&HeaderMap::new()));
    }

    #[test]
    fn visitors_with_a_token_may_use_any_name_that_leads_here() {
        let door = Door::with_token("right", "r");
        for host in ["10.0.0.7:7755", "bench.example", "[fd00::7]:7755"] {
            let called = headers(&[(HOST, host)]);
            assert!(door.knows(&called), "{host}");
            assert!(!door.admits(&called), "and the token is needed");
        }
    }

    #[test]
    fn a_token_is_exchanged_for_a_cookie_and_nothing_else_opens() {
        let door = Door::with_token("right", "r");
        assert!(!door.admits(&HeaderMap::new()));
        assert_eq!(door.exchange("token=wrong"), None);
        assert_eq!(door.exchange(""), None);
        let cookie = door.exchange("token=right").unwrap();
        assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
        let value = cookie.split(';').next().unwrap();
        assert!(door.admits(&headers(&[(COOKIE, value)])));
        assert!(!door.admits(&headers(&[(COOKIE, "deltabench=right")])));
        let later = Door::with_token("right", "s");
        assert!(
            !later.admits(&headers(&[(COOKIE, value)])),
            "of an earlier server"
        );
    }
}
