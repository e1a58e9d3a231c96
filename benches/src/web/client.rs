//! What a browser does with a page of `treebeam serve`: asks for it, hears what has changed, and asks for that again. It draws
//! nothing.

use crate::Outcome;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long news are waited for before it is looked whether it is over.
const GLANCE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_mins(1);

/// A server, and what it takes to be let in.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) port: u16,
    pub(super) cookie: String,
}

impl Address {
    pub(super) fn connect(&self) -> Outcome<BufReader<TcpStream>> {
        let connection = TcpStream::connect(("127.0.0.1", self.port))?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(BufReader::new(connection))
    }

    fn ask(&self, connection: &mut BufReader<TcpStream>, path: &str) -> Outcome<()> {
        let Self { port, cookie } = self;
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncookie: {cookie}\r\n\r\n");
        Ok(connection.get_mut().write_all(head.as_bytes())?)
    }

    /// A page, over a connection that stays open or not, as the server likes.
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

    /// One page over a connection of its own, and how many seconds that took.
    pub(super) fn timed(&self, path: &str) -> Outcome<(Vec<u8>, f64)> {
        let begun = Instant::now();
        let body = self.get(&mut self.connect()?, path)?;
        Ok((body, begun.elapsed().as_secs_f64()))
    }

    /// The events of a run, from what was seen of it on.
    pub(super) fn listen(&self, run: &str, seen: &str) -> Outcome<BufReader<TcpStream>> {
        let mut stream = self.connect()?;
        self.ask(&mut stream, &format!("/runs/{run}/events?since={seen}"))?;
        Ok(stream)
    }
}

/// What stands between these two.
pub(super) fn between<'a>(text: &'a str, before: &str, after: &str) -> Outcome<&'a str> {
    let found = text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    Ok(found.ok_or_else(|| format!("no {before:?} in a page"))?.0)
}

/// Pages that are open, until they are closed.
pub(super) struct Open {
    over: Arc<AtomicBool>,
    fetched: Arc<AtomicUsize>,
    pages: Vec<JoinHandle<()>>,
}

impl Open {
    /// Opens so many pages of a run; all of them are there before this ends.
    pub(super) fn pages(address: &Address, run: &str, count: usize) -> Outcome<Self> {
        let mut open = Self { over: Arc::default(), fetched: Arc::default(), pages: Vec::new() };
        for _ in 0..count {
            let (page, over) = (Page::open(address, run)?, Arc::clone(&open.over));
            let fetched = Arc::clone(&open.fetched);
            open.pages.push(thread::spawn(move || page.follow(&over, &fetched)));
        }
        Ok(open)
    }

    /// Closes them. How many parts were fetched.
    pub(super) fn close(self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        for page in self.pages {
            // One that has failed has fetched less, and that is seen.
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
        news.get_ref().set_read_timeout(Some(GLANCE))?;
        Ok(Self { address: address.clone(), parts, news, more })
    }

    /// Fetches what has changed, one part after the other; what changes meanwhile is fetched once more.
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
            // What changes meanwhile is heard afterwards, and fetched then: as often as by a browser, which hears it sooner.
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
