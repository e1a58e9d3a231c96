//! The web server over real connections: a client that stalls is cut off and blocks no other.

#![cfg(test)]

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use treebeam_web::{RequestTimeouts, WebAnswer, WebBody, WebRequest, WebServer, WebSite};

/// Longest wait for anything before a test fails.
const LONG: Duration = Duration::from_mins(2);
/// The server's time limit in tests of that limit.
const SHORT: Duration = Duration::from_millis(200);

struct Plain;

impl WebSite for Plain {
    fn answer_request(&self, request: &WebRequest) -> WebAnswer {
        let said = format!("{} {} {}", request.method, request.path, request.body.len());
        WebAnswer { status: 200, headers: Vec::new(), body: WebBody::Whole(said.into_bytes()) }
    }

    fn answer_too_long(&self) -> WebAnswer {
        WebAnswer { status: 413, headers: Vec::new(), body: WebBody::Whole(Vec::new()) }
    }
}

fn start(patience: Duration) -> (WebServer, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    let timeouts = RequestTimeouts { head: patience, body: patience };
    (WebServer::start(listener, Arc::new(Plain), timeouts).unwrap(), at)
}

fn connect(at: SocketAddr, says: &str) -> TcpStream {
    let mut connection = TcpStream::connect(at).unwrap();
    connection.set_read_timeout(Some(LONG)).unwrap();
    connection.write_all(says.as_bytes()).unwrap();
    connection
}

/// Reads all bytes until the other side closes the connection.
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
    // A client that was answered, and sends only half of its next request.
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

/// Raises this process's limit on open files to its maximum.
#[cfg(unix)]
fn open_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
}

/// Strangers send nothing, half a head, or no body; the server would wait two minutes for each.
#[cfg(unix)]
#[test]
fn a_page_is_answered_at_once_while_a_thousand_strangers_hold_connections() {
    open_many_files();
    let (_server, at) = start(LONG);
    let stranger = |number: usize| {
        let body_to_come = "POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\n";
        let says = ["", "GET / HTTP/1.1\r\nhost: ", body_to_come][number % 3];
        let mut connection = TcpStream::connect(at).unwrap();
        // The connection may be closed by now.
        drop(connection.write_all(says.as_bytes()));
        connection
    };
    let mut strangers: Vec<_> = (0..500).map(stranger).collect();
    for round in 0..10 {
        strangers.extend((0..50).map(stranger));
        let begun = Instant::now();
        let page = "GET /page HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";
        assert!(to_its_end(connect(at, page)).ends_with("GET /page 0"));
        assert!(begun.elapsed() < Duration::from_secs(1), "{round}: {:?}", begun.elapsed());
    }
    assert_eq!(strangers.len(), 1000);
}

#[test]
fn the_server_that_a_whole_address_names_is_told() {
    struct Named;
    impl WebSite for Named {
        fn answer_request(&self, request: &WebRequest) -> WebAnswer {
            let said = format!("{:?} {:?}", request.authority, request.path);
            WebAnswer { status: 200, headers: Vec::new(), body: WebBody::Whole(said.into_bytes()) }
        }
        fn answer_too_long(&self) -> WebAnswer {
            Plain.answer_too_long()
        }
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    let timeouts = RequestTimeouts { head: LONG, body: LONG };
    let _server = WebServer::start(listener, Arc::new(Named), timeouts).unwrap();
    for (target, expect) in
        [("/a", "None \"/a\""), ("http://evil.invalid:80/a", "Some(\"evil.invalid:80\") \"/a\"")]
    {
        let request = format!("GET {target} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
        let said = to_its_end(connect(at, &request));
        assert!(said.ends_with(expect), "{said}");
    }
}
