//! The web server over real connections: whoever does not finish what it says is cut off, and keeps nobody waiting.

#![cfg(test)]

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use treebeam_edge::web::{Answer, Body, Request, Server, Site};

/// How long anything is waited for before the test fails.
const LONG: Duration = Duration::from_mins(2);
/// How long the server waits in these tests, where that is what is tested.
const SHORT: Duration = Duration::from_millis(200);

struct Plain;

impl Site for Plain {
    fn answer(&self, request: &Request) -> Answer {
        let said = format!("{} {} {}", request.method, request.path, request.body.len());
        Answer { status: 200, headers: Vec::new(), body: Body::Whole(said.into_bytes()) }
    }

    fn too_long(&self) -> Answer {
        Answer { status: 413, headers: Vec::new(), body: Body::Whole(Vec::new()) }
    }
}

fn start(patience: Duration) -> (Server, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    (Server::start(listener, Arc::new(Plain), patience).unwrap(), at)
}

fn connect(at: SocketAddr, says: &str) -> TcpStream {
    let mut connection = TcpStream::connect(at).unwrap();
    connection.set_read_timeout(Some(LONG)).unwrap();
    connection.write_all(says.as_bytes()).unwrap();
    connection
}

/// All that comes until the other side ends it.
#[track_caller]
fn to_its_end(mut connection: TcpStream) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = connection.read_to_end(&mut bytes) {
        let waits = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        assert!(!waits.contains(&error.kind()), "the server still waits");
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn half_a_head_is_cut_off() {
    let (_server, at) = start(SHORT);
    for half in ["", "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nhost: here\r\nx: y"] {
        let said = to_its_end(connect(at, half));
        assert!(!said.contains(" 200 "), "{half:?}: {said}");
    }
    // One that was answered, and says no more.
    let said = to_its_end(connect(at, "GET /a HTTP/1.1\r\nhost: here\r\n\r\nGET /b HTT"));
    assert!(said.contains("GET /a 0") && !said.contains("/b"), "{said}");
}

#[test]
fn half_a_body_is_refused() {
    let (_server, at) = start(SHORT);
    let half = "POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 10\r\n\r\nhalf";
    let said = to_its_end(connect(at, half));
    assert!(said.starts_with("HTTP/1.1 413"), "{said}");
}

#[test]
fn nobody_waits_for_those_who_are_slow() {
    let (_server, at) = start(LONG);
    let slow: Vec<_> = (0..20).map(|_| connect(at, "GET / HTTP/1.1\r\nhost: ")).collect();
    let whole =
        "POST /c HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: 4\r\n\r\nbody";
    assert!(to_its_end(connect(at, whole)).ends_with("POST /c 4"));
    drop(slow);
}
