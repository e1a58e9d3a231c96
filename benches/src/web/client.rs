//! Simulates a browser on a page of `treebeam serve`: fetches, listens, and fetches changed parts.
//!
//! It draws nothing.

use crate::Outcome;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum wait for news before the end of the test is checked.
const NEWS_READ_TIMEOUT: Duration = Duration::from_millis(50);
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// Address of a server, with its cookie.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) port: u16,
    pub(super) cookie: String,
}

impl Address {
    pub(super) fn connect(&self) -> Outcome<BufReader<TcpStream>> {
        let connection = TcpStream::connect(("127.0.0.1", self.port))?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(BufReader::new(connection))
    }

    fn ask(&self, connection: &mut BufReader<TcpStream>, path: &str) -> Outcome<()> {
        let Self { port, cookie } = self;
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncookie: {cookie}\r\n\r\n");
        Ok(connection.get_mut().write_all(head.as_bytes())?)
    }

    /// Fetches a page, over a connection that stays open if the server allows it.
    pub(super) fn get(
        &self,
        connection: &mut BufReader<TcpStream>,
        path: &str,
    ) -> Outcome<Vec<u8>> {
        self.ask(connection, path)?;
        let mut length = None;
        for number in 0.. {
            let mut line = String::new();
            connection.read_line(&mut line)?;
            if number == 0 && !line.contains(" 200 ") {
                return Err(format!("{path}: {line}").into());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            length = length.or(line.strip_prefix("content-length: ").and_then(|n| n.parse().ok()));
        }
        let mut body = vec![0; length.ok_or("an answer of unknown length")?];
        connection.read_exact(&mut body)?;
        Ok(body)
    }

    /// Fetches a page over a new connection, and returns the time in seconds.
    pub(super) fn timed(&self, path: &str) -> Outcome<(Vec<u8>, f64)> {
        let begun = Instant::now();
        let body = self.get(&mut self.connect()?, path)?;
        Ok((body, begun.elapsed().as_secs_f64()))
    }

    /// Opens the stream of a run's events since a version.
    pub(super) fn listen(&self, run: &str, seen: &str) -> Outcome<BufReader<TcpStream>> {
        let mut stream = self.connect()?;
        self.ask(&mut stream, &format!("/runs/{run}/events?since={seen}"))?;
        Ok(stream)
    }
}

/// Returns the text between these two.
pub(super) fn between<'a>(text: &'a str, before: &str, after: &str) -> Outcome<&'a str> {
    let found = text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    Ok(found.ok_or_else(|| format!("no {before:?} in a page"))?.0)
}

/// Open pages, until they are closed.
pub(super) struct Open {
    over: Arc<AtomicBool>,
    fetched: Arc<AtomicUsize>,
    pages: Vec<JoinHandle<()>>,
}

impl Open {
    /// Opens pages of a run, and returns when all are loaded.
    pub(super) fn pages(address: &Address, run: &str, count: usize) -> Outcome<Self> {
        let mut open = Self { over: Arc::default(), fetched: Arc::default(), pages: Vec::new() };
        for _ in 0..count {
            let (page, over) = (Page::open(address, run)?, Arc::clone(&open.over));
            let fetched = Arc::clone(&open.fetched);
            open.pages.push(thread::spawn(move || page.follow(&over, &fetched)));
        }
        Ok(open)
    }

    /// Closes the pages, and returns the number of fetched parts.
    pub(super) fn close(self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        for page in self.pages {
            // A failed page has fetched less, which shows in the count.
            let _ended = page.join();
        }
        self.fetched.load(Ordering::Relaxed)
    }
}

/// A page of a run, and its connections.
struct Page {
    address: Address,
    parts: Vec<(String, String)>,
    news: BufReader<TcpStream>,
    more: BufReader<TcpStream>,
}

impl Page {
    fn open(address: &Address, run: &str) -> Outcome<Self> {
        let mut more = address.connect()?;
        let text = String::from_utf8(address.get(&mut more, &format!("/runs/{run}"))?)?;
        let _style = address.get(&mut more, "/style.css")?;
        let _script = address.get(&mut more, "/script.js")?;
        let pieces = text.split("data-live=\"").skip(1);
        let part = |piece: &str| {
            let (name, rest) = piece.split_once('"')?;
            Some((name.to_owned(), between(rest, "data-from=\"", "\"").ok()?.to_owned()))
        };
        let parts = pieces.filter_map(part).collect();
        let news = address.listen(run, between(&text, "data-version=\"", "\"")?)?;
        news.get_ref().set_read_timeout(Some(NEWS_READ_TIMEOUT))?;
        Ok(Self { address: address.clone(), parts, news, more })
    }

    /// Fetches changed parts one after the other; parts that change meanwhile are fetched again.
    fn follow(mut self, over: &AtomicBool, fetched: &AtomicUsize) {
        let (mut wanted, mut line) = (BTreeSet::new(), String::new());
        while !over.load(Ordering::Relaxed) {
            match self.news.read_line(&mut line) {
                Ok(0) => return,
                Ok(_) => {
                    if let Some(names) = line.strip_prefix("data: ") {
                        let changed = |(name, _): &&(String, String)| {
                            names.contains(&format!("\"{name}\"")) || names.contains("\"*\"")
                        };
                        wanted.extend(
                            self.parts.iter().filter(changed).map(|(_, from)| from.clone()),
                        );
                    }
                    line.clear();
                    if !self.news.buffer().is_empty() {
                        continue;
                    }
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return,
            }
            // Changes meanwhile are read and fetched afterwards: as often as by a browser, which
            // reads them sooner.
            while let Some(from) = wanted.pop_first() {
                if over.load(Ordering::Relaxed) || self.address.get(&mut self.more, &from).is_err()
                {
                    return;
                }
                fetched.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
