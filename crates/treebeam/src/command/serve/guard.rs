//! Admits requests with our own host name, no foreign origin, and the token.
//!
//! The decision depends on the request alone.

use super::form::FormFields;
use std::hint::black_box;
use std::net::SocketAddr;
use treebeam_core::id::Sha256;
use treebeam_web::{HeaderState, WebRequest};

/// Digits of the folder's digest in the cookie's name.
const COOKIE_SCOPE_DIGITS: usize = 16;

/// Conditions that a request must fulfil.
pub(super) struct RequestGuard {
    /// Our host names, with the port.
    names: Vec<String>,
    token: String,
    cookie: String,
}

/// Place of the token in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenSource {
    /// In the address: the browser gets a cookie for the following requests.
    InAddress,
    /// In the cookie.
    InCookie,
}

/// Reason for refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardRefusal {
    /// Another host name than ours: a foreign name may have been made to resolve to this server.
    Host,
    /// The request comes from another site.
    Origin,
    /// The token is missing or wrong.
    Token,
}

impl RequestGuard {
    /// Creates the guard of a server at this address. `scope` is the digest of the folder whose
    /// runs it shows: browsers send a cookie to every port of a host, so its name distinguishes the
    /// cookies of servers.
    pub(super) fn new(at: SocketAddr, token: String, scope: Sha256) -> Self {
        let (port, scope) = (at.port(), scope.to_string());
        let mut names = vec![at.to_string()];
        if at.ip().is_loopback() {
            let loopback = ["127.0.0.1", "localhost", "[::1]"];
            names.extend(loopback.map(|name| format!("{name}:{port}")));
        }
        if port == 80 {
            // Browsers omit the default port.
            let short = names.iter().filter_map(|name| name.strip_suffix(":80").map(str::to_owned));
            let short: Vec<_> = short.collect();
            names.extend(short);
        }
        let scope = scope.get(..COOKIE_SCOPE_DIGITS).unwrap_or(&scope);
        Self { names, token, cookie: format!("treebeam_{port}_{scope}") }
    }

    /// Admits a request, or returns why not.
    pub(super) fn check_request(&self, request: &WebRequest) -> Result<TokenSource, GuardRefusal> {
        let ours = |name: &str| self.names.iter().any(|own| own.eq_ignore_ascii_case(name));
        let target_is_ours = request.authority.as_deref().is_none_or(ours);
        if !target_is_ours || !request.host.as_deref().is_some_and(ours) {
            return Err(GuardRefusal::Host);
        }
        let from_us = match &request.origin {
            HeaderState::Absent => true,
            HeaderState::Value(origin) => origin.strip_prefix("http://").is_some_and(ours),
            HeaderState::Invalid => false,
        };
        if !from_us {
            return Err(GuardRefusal::Origin);
        }
        if self.has_cookie_token(request.cookie.as_deref()) {
            return Ok(TokenSource::InCookie);
        }
        let fields = FormFields::parse(request.query.as_bytes());
        if fields.get("token").is_some_and(|token| constant_time_eq(token, &self.token)) {
            return Ok(TokenSource::InAddress);
        }
        Err(GuardRefusal::Token)
    }

    fn has_cookie_token(&self, cookies: Option<&str>) -> bool {
        let pairs = cookies.unwrap_or_default().split(';').filter_map(|pair| pair.split_once('='));
        let mut own = pairs.filter(|(name, _)| name.trim() == self.cookie);
        own.any(|(_, value)| constant_time_eq(value.trim(), &self.token))
    }

    /// Returns the cookie that holds the token: hidden from scripts, and not sent with requests of
    /// other sites.
    pub(super) fn set_cookie_header(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.token)
    }

    /// Returns an address with the token for the user's browser.
    pub(super) fn address_with_token(&self, at: SocketAddr, path: &str) -> String {
        format!("http://{at}{path}?token={}", self.token)
    }
}

/// Compares two texts in constant time, wherever they differ.
fn constant_time_eq(one: &str, other: &str) -> bool {
    let differs = one.bytes().zip(other.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    black_box(differs) == 0 && one.len() == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(host: &str, origin: HeaderState, cookie: &str, query: &str) -> WebRequest {
        WebRequest {
            host: Some(host.to_owned()),
            origin,
            cookie: Some(cookie.to_owned()),
            query: query.to_owned(),
            ..WebRequest::default()
        }
    }

    fn guard(at: &str) -> (RequestGuard, String) {
        let scope = Sha256::hash_bytes(b"/runs");
        let guard = RequestGuard::new(at.parse().unwrap(), "secret".to_owned(), scope);
        let name = guard.set_cookie_header().split_once('=').expect("a name").0.to_owned();
        (guard, name)
    }

    #[test]
    fn the_name_of_the_cookie_has_the_port_and_the_folder_of_the_runs() {
        let name = |at: &str, folder: &str| {
            let scope = Sha256::hash_bytes(folder.as_bytes());
            RequestGuard::new(at.parse().unwrap(), "secret".to_owned(), scope).cookie
        };
        let one = name("127.0.0.1:4000", "/a");
        assert!(
            one.starts_with("treebeam_4000_") && one.len() == 14 + COOKIE_SCOPE_DIGITS,
            "{one}"
        );
        assert_ne!(one, name("127.0.0.1:4000", "/b"));
        assert_ne!(one, name("127.0.0.1:4001", "/a"));
    }

    #[test]
    fn a_whole_address_of_another_server_is_refused() {
        let (guard, name) = guard("127.0.0.1:4000");
        let check = |authority: &str, expect| {
            let good =
                request("127.0.0.1:4000", HeaderState::Absent, &format!("{name}=secret"), "");
            let found =
                guard.check_request(&WebRequest { authority: Some(authority.to_owned()), ..good });
            assert_eq!(found, expect, "{authority}");
        };
        check("127.0.0.1:4000", Ok(TokenSource::InCookie));
        check("LOCALHOST:4000", Ok(TokenSource::InCookie));
        for other in ["evil.invalid:4000", "127.0.0.1:4001", "127.0.0.1", "a@127.0.0.1:4000", ""] {
            check(other, Err(GuardRefusal::Host));
        }
    }

    #[test]
    fn by_our_own_name_from_no_other_site_and_with_the_token() {
        let (guard, name) = guard("127.0.0.1:4000");
        let good = &*format!("{name}=secret");
        let check = |host: &str, origin: Option<&str>, cookie: &str, query: &str, expect| {
            let origin =
                origin.map_or(HeaderState::Absent, |origin| HeaderState::Value(origin.to_owned()));
            let found = guard.check_request(&request(host, origin, cookie, query));
            assert_eq!(found, expect, "{host} {cookie} {query}");
        };
        for host in ["127.0.0.1:4000", "localhost:4000", "LocalHost:4000", "[::1]:4000"] {
            check(host, None, good, "", Ok(TokenSource::InCookie));
            let origin = format!("http://{host}");
            check(host, Some(&origin), good, "", Ok(TokenSource::InCookie));
        }
        for host in
            ["127.0.0.1", "127.0.0.1:4001", "evil.invalid:4000", "localhost.evil.invalid:4000", ""]
        {
            check(host, None, good, "", Err(GuardRefusal::Host));
        }
        for origin in
            ["null", "", "http://evil.invalid", "https://127.0.0.1:4000", "http://127.0.0.1:4001"]
        {
            check("localhost:4000", Some(origin), good, "", Err(GuardRefusal::Origin));
        }
        check("localhost:4000", None, &format!("a=b; {good}"), "", Ok(TokenSource::InCookie));
        check("localhost:4000", None, "", "a=b&token=secret", Ok(TokenSource::InAddress));
        for cookie in [
            "",
            &format!("{name}="),
            &format!("{name}=secre"),
            &format!("{name}=secretx"),
            "x=secret",
            "treebeam_4000=secret",
            &format!("{name}=Secret"),
        ] {
            check("localhost:4000", None, cookie, "token=", Err(GuardRefusal::Token));
        }
        let odd = request("localhost:4000", HeaderState::Invalid, good, "");
        assert_eq!(guard.check_request(&odd), Err(GuardRefusal::Origin));
        assert_eq!(guard.check_request(&WebRequest { host: None, ..odd }), Err(GuardRefusal::Host));
    }

    #[test]
    fn elsewhere_than_on_loopback_only_the_address_itself_is_our_name() {
        let (guard, name) = guard("192.0.2.7:80");
        let cookie = format!("{name}=secret");
        let check =
            |host: &str| guard.check_request(&request(host, HeaderState::Absent, &cookie, ""));
        assert!(check("192.0.2.7:80").is_ok() && check("192.0.2.7").is_ok());
        assert_eq!(check("localhost:80"), Err(GuardRefusal::Host));
    }
}
