//! A minimal browser for these tests: requests over a real connection, with chosen headers.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::program::{Call, Site};

const PATIENCE: Duration = Duration::from_mins(1);

/// A server of the real program.
pub(crate) struct Serving {
    pub(crate) call: Call,
    pub(crate) port: u16,
    pub(crate) token: String,
    /// Name of the server's cookie.
    pub(crate) cookie: String,
}

/// Answer to a request.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Serving {
    /// Starts the server, and waits until it prints its address.
    #[track_caller]
    pub(crate) fn start(site: &Site, arguments: &[&str], token: Option<&str>) -> Self {
        let mut variables = site.repo.variables();
        variables.extend(token.map(|token| ("TREEBEAM_SERVE_TOKEN".into(), token.into())));
        let call = site.begin_with(variables, &[&["serve", "--json"], arguments].concat());
        let begun = Instant::now();
        let line = loop {
            let said = call.said_so_far();
            if said.ends_with('\n') {
                break said;
            }
            assert!(begun.elapsed() < PATIENCE, "it never said where it is");
            thread::sleep(Duration::from_millis(5));
        };
        let line: Value = serde_json::from_str(&line).expect("one line of JSON");
        let token = line["url"].as_str().and_then(|url| url.split_once("token="));
        let port = line["port"].as_u64().and_then(|port| port.try_into().ok());
        let (port, token) = (port.expect("a port"), token.expect("a token").1.to_owned());
        let mut serving = Self { call, port, token, cookie: String::new() };
        let first = format!("/style.css?token={}", serving.token);
        let answered = serving.ask("GET", &first, &[("host", serving.host())], "");
        let cookie = answered.head.split_once("set-cookie: ").expect("a cookie").1;
        serving.cookie = cookie.split_once('=').expect("its name").0.to_owned();
        serving
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the headers of a browser that was admitted before.
    pub(crate) fn known(&self) -> Vec<(&'static str, String)> {
        vec![("host", self.host()), ("cookie", format!("{}={}", self.cookie, self.token))]
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let connection = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        connection.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        connection
    }

    /// Sends one request, and reads all of its answer.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Answered {
        let mut connection = self.connect();
        let last = [headers, &[("connection", "close".to_owned())]].concat();
        connection.write_all(request(method, path, &last, body).as_bytes()).expect("a request");
        let mut bytes = Vec::new();
        // A request that is too long is answered and cut off.
        drop(connection.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answered { status: status.unwrap_or(0), head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Fetches a page as a browser that was admitted before.
    #[track_caller]
    pub(crate) fn page(&self, path: &str) -> String {
        let answered = self.ask("GET", path, &self.known(), "");
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        answered.body
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answered {
        let mut headers = self.known();
        headers.push(("origin", format!("http://{}", self.host())));
        self.ask("POST", path, &headers, body)
    }

    /// Opens a stream of events.
    pub(crate) fn listen(&self, path: &str, last: Option<&str>) -> Events {
        let mut headers = self.known();
        headers.extend(last.map(|last| ("last-event-id", last.to_owned())));
        let mut connection = self.connect();
        connection.write_all(request("GET", path, &headers, "").as_bytes()).expect("a request");
        Events(BufReader::new(connection))
    }
}

fn request(method: &str, path: &str, headers: &[(&str, String)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text + &format!("content-length: {}\r\n\r\n{body}", body.len())
}

/// Events, as they come.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    /// Returns the rest of the next line with this beginning.
    #[track_caller]
    pub(crate) fn next(&mut self, begins: &str) -> String {
        let begun = Instant::now();
        loop {
            // A stream has keepalives, so silence cannot be the criterion.
            assert!(begun.elapsed() < PATIENCE, "nothing came that begins with {begins:?}");
            let mut line = String::new();
            let read = self.0.read_line(&mut line).expect("a line in time");
            assert!(read > 0, "the stream ended before {begins:?}");
            if let Some(rest) = line.strip_prefix(begins) {
                return rest.trim_end().to_owned();
            }
        }
    }
}
