//! A server that says what its script wants, well or badly: whole answers, halves, silence, rubbish. Threads and sockets
//! only, so that nothing mends what is meant to be broken.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A request that came.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Which, counted from 0, of all that came to this server.
    pub number: usize,
    /// What was asked for.
    pub path: String,
    /// Its headers, with small names.
    pub headers: Vec<(String, String)>,
    /// What came with it.
    pub body: String,
}

impl Hit {
    /// A header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// What the server does next.
#[derive(Clone, Debug)]
pub enum Act {
    /// Says this, as it is.
    Send(Vec<u8>),
    /// Does nothing for a while, or until the server ends.
    Pause(Duration),
}

impl Act {
    /// A whole answer.
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

    /// The beginning of an answer whose end is the end of the connection.
    #[must_use]
    pub fn open(status: u16, content_type: &str, body: &str) -> Vec<Self> {
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n"
        );
        vec![Self::Send((head + body).into_bytes())]
    }

    /// An answer that promises more than it has.
    #[must_use]
    pub fn half(status: u16, content_type: &str, body: &str) -> Vec<Self> {
        let length = body.len() + 1000;
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
        );
        vec![Self::Send((head + body).into_bytes())]
    }
}

/// A server on this machine. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    port: u16,
    hits: Arc<Mutex<Vec<Hit>>>,
    over: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server with this script: what is done about a request. Afterwards the connection is closed.
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

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All requests that came so far.
    #[must_use]
    pub fn hits(&self) -> Vec<Hit> {
        self.hits.lock().expect("the hits").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // One more connection, so that the listener looks up.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
    }
}

/// A port of this machine where nobody is.
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
