//! Who is let in: a request that calls us by our own name, comes from no other site, and has the token. Decides by what the
//! request says, and by nothing else.

use super::form::Fields;
use std::hint::black_box;
use std::net::SocketAddr;
use treebeam_edge::web::{Given, Request};

/// What a request must have.
pub(super) struct Guard {
    /// Our names, with the port.
    names: Vec<String>,
    token: String,
    cookie: String,
}

/// How somebody has shown the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// In the address: the browser is given a cookie to show from then on.
    InAddress,
    /// In the cookie.
    InCookie,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// It calls us by another name: another site's name may have been made to lead here.
    Host,
    /// Another site asks for it.
    Origin,
    /// It has no token, or not this one.
    Token,
}

impl Guard {
    pub(super) fn new(at: SocketAddr, token: String) -> Self {
        let port = at.port();
        let mut names = vec![at.to_string()];
        if at.ip().is_loopback() {
            let loopback = ["127.0.0.1", "localhost", "[::1]"];
            names.extend(loopback.map(|name| format!("{name}:{port}")));
        }
        if port == 80 {
            // Browsers leave the usual port out.
            let short = names.iter().filter_map(|name| name.strip_suffix(":80").map(str::to_owned));
            let short: Vec<_> = short.collect();
            names.extend(short);
        }
        Self { names, token, cookie: format!("treebeam_{port}") }
    }

    /// Lets a request in, or says why not.
    pub(super) fn check(&self, request: &Request) -> Result<Shown, Stranger> {
        let ours = |name: &str| self.names.iter().any(|own| own.eq_ignore_ascii_case(name));
        if !request.host.as_deref().is_some_and(ours) {
            return Err(Stranger::Host);
        }
        let from_us = match &request.origin {
            Given::Nothing => true,
            Given::This(origin) => origin.strip_prefix("http://").is_some_and(ours),
            Given::Odd => false,
        };
        if !from_us {
            return Err(Stranger::Origin);
        }
        if self.shown(request.cookie.as_deref()) {
            return Ok(Shown::InCookie);
        }
        let fields = Fields::read(request.query.as_bytes());
        if fields.get("token").is_some_and(|token| equal(token, &self.token)) {
            return Ok(Shown::InAddress);
        }
        Err(Stranger::Token)
    }

    fn shown(&self, cookies: Option<&str>) -> bool {
        let pairs = cookies.unwrap_or_default().split(';').filter_map(|pair| pair.split_once('='));
        let mut own = pairs.filter(|(name, _)| name.trim() == self.cookie);
        own.any(|(_, value)| equal(value.trim(), &self.token))
    }

    /// The cookie that stands for the token: no script sees it, and no other site sends it along.
    pub(super) fn cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.token)
    }

    /// An address for the user's browser.
    pub(super) fn address(&self, at: SocketAddr, path: &str) -> String {
        format!("http://{at}{path}?token={}", self.token)
    }
}

/// Whether two texts are the same. It takes as long wherever they differ.
fn equal(one: &str, other: &str) -> bool {
    let differs = one.bytes().zip(other.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    black_box(differs) == 0 && one.len() == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(host: &str, origin: Given, cookie: &str, query: &str) -> Request {
        Request {
            host: Some(host.to_owned()),
            origin,
            cookie: Some(cookie.to_owned()),
            query: query.to_owned(),
            ..Request::default()
        }
    }

    #[test]
    fn by_our_own_name_from_no_other_site_and_with_the_token() {
        let guard = Guard::new("127.0.0.1:4000".parse().unwrap(), "secret".to_owned());
        let good = "treebeam_4000=secret";
        let check = |host: &str, origin: Option<&str>, cookie: &str, query: &str, expect| {
            let origin = origin.map_or(Given::Nothing, |origin| Given::This(origin.to_owned()));
            let found = guard.check(&request(host, origin, cookie, query));
            assert_eq!(found, expect, "{host} {cookie} {query}");
        };
        for host in ["127.0.0.1:4000", "localhost:4000", "LocalHost:4000", "[::1]:4000"] {
            check(host, None, good, "", Ok(Shown::InCookie));
            let origin = format!("http://{host}");
            check(host, Some(&origin), good, "", Ok(Shown::InCookie));
        }
        for host in
            ["127.0.0.1", "127.0.0.1:4001", "evil.invalid:4000", "localhost.evil.invalid:4000", ""]
        {
            check(host, None, good, "", Err(Stranger::Host));
        }
        for origin in
            ["null", "", "http://evil.invalid", "https://127.0.0.1:4000", "http://127.0.0.1:4001"]
        {
            check("localhost:4000", Some(origin), good, "", Err(Stranger::Origin));
        }
        check("localhost:4000", None, "a=b; treebeam_4000=secret", "", Ok(Shown::InCookie));
        check("localhost:4000", None, "", "a=b&token=secret", Ok(Shown::InAddress));
        for cookie in [
            "",
            "treebeam_4000=",
            "treebeam_4000=secre",
            "treebeam_4000=secretx",
            "x=secret",
            "treebeam_4000=Secret",
        ] {
            check("localhost:4000", None, cookie, "token=", Err(Stranger::Token));
        }
        let odd = request("localhost:4000", Given::Odd, good, "");
        assert_eq!(guard.check(&odd), Err(Stranger::Origin));
        assert_eq!(guard.check(&Request { host: None, ..odd }), Err(Stranger::Host));
    }

    #[test]
    fn elsewhere_than_on_loopback_only_the_address_itself_is_our_name() {
        let guard = Guard::new("192.0.2.7:80".parse().unwrap(), "secret".to_owned());
        let check =
            |host: &str| guard.check(&request(host, Given::Nothing, "treebeam_80=secret", ""));
        assert!(check("192.0.2.7:80").is_ok() && check("192.0.2.7").is_ok());
        assert_eq!(check("localhost:80"), Err(Stranger::Host));
    }
}
