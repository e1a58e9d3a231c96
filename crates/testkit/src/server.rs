//! Runs a scripted server that answers well or badly: whole answers, halves, silence, rubbish.
//!
//! Threads and sockets only, so that no library corrects what is meant to be broken.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A request that the server received.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Index of the request, from 0.
    pub number: usize,
    /// Path of the request.
    pub path: String,
    /// Headers, with lowercase names.
    pub headers: Vec<(String, String)>,
    /// Body of the request.
    pub body: String,
}

impl Hit {
    /// Returns the value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// One step of an answer.
#[derive(Clone, Debug)]
pub enum Act {
    /// Sends these bytes as they are.
    Send(Vec<u8>),
    /// Waits for a while, or until the server ends.
    Pause(Duration),
}

impl Act {
    /// Builds a whole answer.
    #[must_use]
    pub fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<Self> {
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
        );
        vec![Self::Send((head + body).into_bytes())]
    }

    /// Builds the beginning of an answer that ends with the connection.
    #[must_use]
    pub fn open(status: u16, content_type: &str, body: &str) -> Vec<Self> {
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n"
        );
        vec![Self::Send((head + body).into_bytes())]
    }

    /// Builds an answer that is shorter than its content length.
    #[must_use]
    pub fn half(status: u16, content_type: &str, body: &str) -> Vec<Self> {
        let length = body.len() + 1000;
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
        );
        vec![Self::Send((head + body).into_bytes())]
    }
}

/// A server on this machine, stopped on drop.
#[derive(Debug)]
pub struct Server {
    port: u16,
    hits: Arc<Mutex<Vec<Hit>>>,
    over: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server whose script returns the steps for each request. Afterwards the connection
    /// is closed.
    #[must_use]
    pub fn start(script: impl Fn(&Hit) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (hits, over) = (Arc::<Mutex<Vec<Hit>>>::default(), Arc::<AtomicBool>::default());
        let (seen, ended, script) = (Arc::clone(&hits), Arc::clone(&over), Arc::new(script));
        let listen = move || {
            for connection in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(connection) = connection else { continue };
                let (seen, ended, script) =
                    (Arc::clone(&seen), Arc::clone(&ended), Arc::clone(&script));
                thread::spawn(move || serve(connection, &seen, &ended, &*script));
            }
        };
        Self { port, hits, over, listener: Some(thread::spawn(listen)) }
    }

    /// Returns the base URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns all requests so far.
    #[must_use]
    pub fn hits(&self) -> Vec<Hit> {
        self.hits.lock().expect("the hits").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // One more connection, to wake the listener.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
    }
}

/// Returns a port of this machine without a listener.
#[must_use]
pub fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn serve(
    mut connection: TcpStream,
    seen: &Mutex<Vec<Hit>>,
    over: &AtomicBool,
    script: &dyn Fn(&Hit) -> Vec<Act>,
) {
    let Some(mut hit) = read(&connection) else { return };
    {
        let mut seen = seen.lock().expect("the hits");
        hit.number = seen.len();
        seen.push(hit.clone());
    }
    for act in script(&hit) {
        match act {
            Act::Send(bytes) => {
                if connection.write_all(&bytes).is_err() {
                    return;
                }
            }
            Act::Pause(length) => {
                let slices = length.as_millis().div_ceil(20);
                for _ in (0..slices).take_while(|_| !over.load(Ordering::SeqCst)) {
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }
    drop(connection.shutdown(Shutdown::Both));
}

fn read(connection: &TcpStream) -> Option<Hit> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split_whitespace().nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8_lossy(&body).into_owned();
    Some(Hit { number: 0, path, headers, body })
}
