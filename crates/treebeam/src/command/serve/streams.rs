//! Streams events to pages: changes of runs, and the output of commands.

use super::form::FormFields;
use super::hub::{HubPermit, WatchedRun};
use super::pages::{AdmittedRequest, PageRefusal, PageResponse};
use super::{Dashboard, ServedRuns};
use serde_json::json;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::SweepSubject;
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, NodeId, RunId, RunPath};
use treebeam_core::path;
use treebeam_store::RunDir;
use treebeam_store::input;
use treebeam_view::html::{escape_hidden, site};
use treebeam_web::{EventSender, SendResult, event_channel};

/// Maximum number of concurrent streams.
pub(super) const MAX_STREAMS: usize = 32;
/// Maximum bytes of a log in one message, and at the start of a stream.
const MAX_LOG_PIECE_BYTES: u64 = 256 << 10;
/// Interval between polls of a log.
const LOG_STREAM_INTERVAL: Duration = Duration::from_millis(200);
/// Interval between polls of all runs.
const RUN_LIST_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of keepalive messages on a silent stream.
const STREAM_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Streams the changes of a run.
pub(super) fn stream_run_events(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let watched = site.watched_run(asked)?;
    let permit = site.hub.take_permit().ok_or_else(too_many_streams)?;
    let fields = FormFields::parse(asked.request.query.as_bytes());
    let seen = asked.request.last_event.as_deref().or_else(|| fields.get("since"));
    Ok(PageResponse::from_stream(watched.open_stream(seen, permit)))
}

fn too_many_streams() -> PageRefusal {
    PageRefusal::new(503, "too many pages are open").with_hint("close some of them")
}

/// Feeds a stream on a thread of its own. Where the system allows none, the browser may ask again.
fn spawn_stream(feed: impl FnOnce() + Send + 'static) -> Result<(), PageRefusal> {
    let spawned = thread::Builder::new().spawn(feed);
    spawned
        .map(drop)
        .map_err(|error| PageRefusal::new(503, format!("cannot start a thread: {error}")))
}

/// Streams a signal for the page of all runs to reload.
pub(super) fn stream_runs_events(
    site: &Dashboard,
    _: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let permit = site.hub.take_permit().ok_or_else(too_many_streams)?;
    let (outlet, stream) = event_channel();
    let runs = Arc::clone(&site.runs);
    spawn_stream(move || {
        follow_runs(&runs, &outlet);
        drop(permit);
    })?;
    Ok(PageResponse::from_stream(stream))
}

/// Signals each change that is visible without reading the runs, and also at intervals: ages grow,
/// and a killed process leaves no visible change.
fn follow_runs(runs: &ServedRuns, outlet: &EventSender) {
    const RUNS_CHANGED_EVENT: &str = "event: changed\ndata: [\"runs\"]\n\n";
    let mut sent = outlet.send("retry: 500\n\n".to_owned());
    let (mut seen, mut spoken) = (None, Instant::now());
    while sent != SendResult::Closed && !outlet.is_closed() {
        let now = outline_runs(runs);
        if seen.as_ref() != Some(&now) || spoken.elapsed() >= STREAM_KEEPALIVE_INTERVAL {
            sent = outlet.send(RUNS_CHANGED_EVENT.to_owned());
            if sent == SendResult::Queued {
                (seen, spoken) = (Some(now), Instant::now());
            }
        }
        thread::sleep(RUN_LIST_INTERVAL);
    }
}

/// Lists the runs, the length of each journal, and whether there is a lock note.
fn outline_runs(runs: &ServedRuns) -> Vec<(RunId, Option<u64>, bool)> {
    let all = runs.list_run_dirs().unwrap_or_default().into_iter();
    let seen = |(id, run): (RunId, RunDir)| {
        let length = fs::metadata(run.journal_path()).ok().map(|journal| journal.len());
        (id, length, run.lock_note_path().is_file())
    };
    all.map(seen).collect()
}

/// Streams the output of the commands of an eval, or of the root.
pub(super) fn stream_log(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let watched = site.watched_run(asked)?;
    let place = asked.requested_place()?;
    let permit = site.hub.take_permit().ok_or_else(too_many_streams)?;
    let (outlet, stream) = event_channel();
    let reading = PageLogStream { watched, place, outlet, file: None, _permit: permit };
    spawn_stream(move || reading.follow_log())?;
    Ok(PageResponse::from_stream(stream))
}

/// A stream of a log to a page.
struct PageLogStream {
    watched: Arc<WatchedRun>,
    place: CodePlace,
    outlet: EventSender,
    /// Path of the log, and how much of it was sent.
    file: Option<(RunPath, u64)>,
    _permit: HubPermit,
}

impl PageLogStream {
    /// Sends the present and coming text of the log, until the stream is closed.
    fn follow_log(mut self) {
        let mut spoken = Instant::now();
        while !self.outlet.is_closed() {
            let sent = match self.next_piece() {
                Some((piece, file)) => {
                    let sent = self.outlet.send(piece);
                    if sent == SendResult::Queued {
                        self.file = Some(file);
                    }
                    sent
                }
                None if spoken.elapsed() >= STREAM_KEEPALIVE_INTERVAL => {
                    self.outlet.send(":\n\n".to_owned())
                }
                None => SendResult::Full,
            };
            match sent {
                SendResult::Queued => spoken = Instant::now(),
                SendResult::Full => thread::sleep(LOG_STREAM_INTERVAL),
                SendResult::Closed => return,
            }
        }
    }

    /// Returns the next piece of the log, and the position after it.
    fn next_piece(&self) -> Option<(String, (RunPath, u64))> {
        let run = &self.watched.run;
        let found =
            self.watched.with_snapshot(|looked| find_current_log(looked.facts, self.place, run))?;
        let full = run.file_path(&found);
        let known = self.file.as_ref().filter(|(path, _)| *path == found).map(|(_, at)| *at);
        let (from, text, end) = match known {
            Some(at) => read_log_after(&full, found.as_str(), at)?,
            None => read_log_tail(&full, found.as_str())?,
        };
        let anew = known.is_none();
        if text.is_empty() && !anew {
            return None;
        }
        let without = site::skipped_note(from);
        let data = json!({ "name": found, "anew": anew, "without": without, "text": escape_hidden(&text) });
        Some((format!("event: log\ndata: {data}\n\n"), (found, end)))
    }
}

/// Returns the current log of a node or an eval: the last one that is not empty.
pub(super) fn find_current_log(facts: &Facts, place: CodePlace, run: &RunDir) -> Option<RunPath> {
    let subject = match place {
        CodePlace::Node(NodeId::ROOT) => SweepSubject::Root,
        CodePlace::Node(_) => return None,
        CodePlace::Candidate(eval) => SweepSubject::Eval(eval),
    };
    let output = path::submission_folder(subject, facts.submission_count(subject));
    let experiment = path::subject_folder(subject).join("experiment");
    let logs =
        path::LOG_FILES.iter().rev().flat_map(|log| [output.join(log), experiment.join(log)]);
    let mut logs = logs.filter(|path| is_nonempty_file(&run.file_path(path)));
    logs.next()
}

fn is_nonempty_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0)
}

/// Reads the end of a log: the number of bytes before it, its text, and the position after it.
pub(super) fn read_log_tail(path: &Path, name: &str) -> Option<(u64, String, u64)> {
    let length = fs::symlink_metadata(path).ok()?.len();
    read_log_after(path, name, length.saturating_sub(MAX_LOG_PIECE_BYTES))
}

/// Reads a log from a position on. An incomplete character at the end is left for the next read.
fn read_log_after(path: &Path, name: &str, at: u64) -> Option<(u64, String, u64)> {
    let mut file = input::open_input(path, name).ok()?;
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_LOG_PIECE_BYTES).read_to_end(&mut bytes).ok()?;
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
        assert_eq!(read_log_tail(&path, "sweep.log"), None);
        fs::write(&path, b"one\n\xc3").unwrap();
        assert_eq!(read_log_tail(&path, "sweep.log"), Some((0, "one\n".to_owned(), 4)));
        fs::write(&path, "one\nü\n").unwrap();
        assert_eq!(read_log_after(&path, "sweep.log", 4), Some((4, "ü\n".to_owned(), 7)));
        assert_eq!(read_log_after(&path, "sweep.log", 7), Some((7, String::new(), 7)));
        let most = usize::try_from(MAX_LOG_PIECE_BYTES).unwrap();
        fs::write(&path, "x".repeat(most + 10)).unwrap();
        assert_eq!(
            read_log_tail(&path, "sweep.log").map(|(from, text, _)| (from, text.len())),
            Some((10, most))
        );
    }
}
