//! What comes to a page by itself: that something has changed, and what a command prints.

use super::form::Fields;
use super::hub::{Seat, Watched};
use super::pages::{Asked, Page, Refusal};
use super::{Dashboard, Runs};
use serde_json::json;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::Subject;
use treebeam_core::facts::Facts;
use treebeam_core::id::{NodeId, Place, RunId, RunPath};
use treebeam_core::path;
use treebeam_edge::input;
use treebeam_edge::store::RunDir;
use treebeam_edge::web::{Outlet, Sent, stream};
use treebeam_view::html::{site, visible};

/// How many streams there are at once.
pub(super) const MOST_STREAMS: usize = 32;
/// How much of a log is shown at most when somebody begins to look at it, and sent at once.
const MOST: u64 = 256 << 10;
/// How often a log is looked at.
const GLANCE: Duration = Duration::from_millis(200);
/// How often the runs are looked at, all of them.
const REST: Duration = Duration::from_secs(1);
/// How long a stream is silent before a word is said.
const SILENCE: Duration = Duration::from_secs(10);

/// What happens to a run.
pub(super) fn events(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let watched = site.watched(asked)?;
    let seat = site.hub.seat().ok_or_else(full)?;
    let fields = Fields::read(asked.request.query.as_bytes());
    let seen = asked.request.last_event.as_deref().or_else(|| fields.get("since"));
    Ok(Page::events(watched.listen(seen, seat)))
}

fn full() -> Refusal {
    Refusal::new(503, "too many pages are open").hint("close some of them")
}

/// What happens to any run: the page of all of them is told to look again.
pub(super) fn runs(site: &Dashboard, _: &Asked<'_>) -> Result<Page, Refusal> {
    let seat = site.hub.seat().ok_or_else(full)?;
    let (outlet, stream) = stream();
    let runs = Arc::clone(&site.runs);
    thread::spawn(move || {
        follow_all(&runs, &outlet);
        drop(seat);
    });
    Ok(Page::events(stream))
}

/// Tells of each change that can be seen from outside of the runs, and now and then in any case: ages grow, and that a
/// process was killed is not seen.
fn follow_all(runs: &Runs, outlet: &Outlet) {
    const CHANGED: &str = "event: changed\ndata: [\"runs\"]\n\n";
    let mut told = outlet.send("retry: 500\n\n".to_owned());
    let (mut seen, mut spoken) = (None, Instant::now());
    while told != Sent::Gone && !outlet.is_closed() {
        let now = outline(runs);
        if seen.as_ref() != Some(&now) || spoken.elapsed() >= SILENCE {
            told = outlet.send(CHANGED.to_owned());
            if told == Sent::Yes {
                (seen, spoken) = (Some(now), Instant::now());
            }
        }
        thread::sleep(REST);
    }
}

/// The runs, how far each journal goes, and whether somebody has left a note that he runs it.
fn outline(runs: &Runs) -> Vec<(RunId, Option<u64>, bool)> {
    let all = runs.all().unwrap_or_default().into_iter();
    let seen = |(id, run): (RunId, RunDir)| {
        let length = fs::metadata(run.journal()).ok().map(|journal| journal.len());
        (id, length, run.holder().is_file())
    };
    all.map(seen).collect()
}

/// What the commands of an eval, or of the root, print.
pub(super) fn log(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let watched = site.watched(asked)?;
    let place = asked.place()?;
    let seat = site.hub.seat().ok_or_else(full)?;
    let (outlet, stream) = stream();
    let reading = Reading { watched, place, outlet, file: None, _seat: seat };
    thread::spawn(move || reading.follow());
    Ok(Page::events(stream))
}

/// A log that somebody looks at.
struct Reading {
    watched: Arc<Watched>,
    place: Place,
    outlet: Outlet,
    /// The file, and how much of it was sent.
    file: Option<(RunPath, u64)>,
    _seat: Seat,
}

impl Reading {
    /// Sends what is there and what comes, until nobody reads it any more.
    fn follow(mut self) {
        let mut spoken = Instant::now();
        while !self.outlet.is_closed() {
            let sent = match self.more() {
                Some((piece, file)) => {
                    let sent = self.outlet.send(piece);
                    if sent == Sent::Yes {
                        self.file = Some(file);
                    }
                    sent
                }
                None if spoken.elapsed() >= SILENCE => self.outlet.send(":\n\n".to_owned()),
                None => Sent::NotNow,
            };
            match sent {
                Sent::Yes => spoken = Instant::now(),
                Sent::NotNow => thread::sleep(GLANCE),
                Sent::Gone => return,
            }
        }
    }

    /// What comes next, and how far that is.
    fn more(&self) -> Option<(String, (RunPath, u64))> {
        let run = &self.watched.run;
        let found = self.watched.with(|looked| current(looked.facts, self.place, run))?;
        let full = run.path(&found);
        let known = self.file.as_ref().filter(|(path, _)| *path == found).map(|(_, at)| *at);
        let (from, text, end) = match known {
            Some(at) => after(&full, found.as_str(), at)?,
            None => tail(&full, found.as_str())?,
        };
        let anew = known.is_none();
        if text.is_empty() && !anew {
            return None;
        }
        let without = site::without(from);
        let data =
            json!({ "name": found, "anew": anew, "without": without, "text": visible(&text) });
        Some((format!("event: log\ndata: {data}\n\n"), (found, end)))
    }
}

/// The log that says what a node or an eval is at: the last one that has something in it.
pub(super) fn current(facts: &Facts, place: Place, run: &RunDir) -> Option<RunPath> {
    let subject = match place {
        Place::Node(NodeId::ROOT) => Subject::Root,
        Place::Node(_) => return None,
        Place::Candidate(eval) => Subject::Eval(eval),
    };
    let output = path::submission(subject, facts.submissions(subject));
    let experiment = path::of_subject(subject).join("experiment");
    let logs = path::LOGS.iter().rev().flat_map(|log| [output.join(log), experiment.join(log)]);
    let mut logs = logs.filter(|path| has_text(&run.path(path)));
    logs.next()
}

fn has_text(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0)
}

/// The end of a log: how much comes before, what it says, and where it ends.
pub(super) fn tail(path: &Path, name: &str) -> Option<(u64, String, u64)> {
    let length = fs::symlink_metadata(path).ok()?.len();
    after(path, name, length.saturating_sub(MOST))
}

/// What comes after a place in a log. A letter that is not whole yet is left for the next time.
fn after(path: &Path, name: &str, at: u64) -> Option<(u64, String, u64)> {
    let mut file = input::open(path, name).ok()?;
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    let end = at + u64::try_from(bytes.len()).ok()?;
    Some((at, String::from_utf8_lossy(&bytes).into_owned(), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_piece_by_piece() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep.log");
        assert_eq!(tail(&path, "sweep.log"), None);
        fs::write(&path, b"one\n\xc3").unwrap();
        assert_eq!(tail(&path, "sweep.log"), Some((0, "one\n".to_owned(), 4)));
        fs::write(&path, "one\nü\n").unwrap();
        assert_eq!(after(&path, "sweep.log", 4), Some((4, "ü\n".to_owned(), 7)));
        assert_eq!(after(&path, "sweep.log", 7), Some((7, String::new(), 7)));
        let most = usize::try_from(MOST).unwrap();
        fs::write(&path, "x".repeat(most + 10)).unwrap();
        assert_eq!(
            tail(&path, "sweep.log").map(|(from, text, _)| (from, text.len())),
            Some((10, most))
        );
    }
}
