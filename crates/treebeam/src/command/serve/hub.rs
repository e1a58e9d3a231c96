//! Keeps the runs that pages show: each is read once, followed by its journal, and sent to
//! listeners.
//!
//! The journal is read when a page is requested, and polled only while there are listeners.

use super::page_changes::PageChanges;
use super::streams::MAX_STREAMS;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::id::RunId;
use treebeam_core::state::State;
use treebeam_store::run_follower::{JournalUpdate, RunFollower};
use treebeam_store::{RunDir, StoreError, lease};
use treebeam_view::html::site::{PagePart, ViewedRun};
use treebeam_web::{EventSender, EventStream, SendResult, event_channel};

/// Interval between polls of a journal.
const HUB_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Minimum pause after a change: changes in this time are sent together, so that each part is
/// rendered once in it, however many events and viewers there are.
const MIN_CHANGE_PAUSE: Duration = Duration::from_secs(1);
/// Ratio of the pause after a change to the time for rendering its parts, up to
/// [`MAX_CHANGE_PAUSE`]: a large run must not lose more time to its pages than a small one.
const CHANGE_PAUSE_FACTOR: u32 = 50;
const MAX_CHANGE_PAUSE: Duration = Duration::from_secs(5);
/// Interval of the check for a running process: the check blocks a starting process for a moment.
const RUNNER_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Pause after a failed read of a journal: each try reads all of it.
const JOURNAL_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Time for which an unwatched run stays in memory.
const UNWATCHED_RUN_LIFETIME: Duration = Duration::from_mins(1);
/// Interval of keepalive messages on a silent stream, so that a closed one is noticed.
const STREAM_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// All runs that are kept in memory, and the stream permits.
pub(super) struct RunHub {
    /// Identifier of this process in versions: a version of another process proves nothing.
    instance: String,
    runs: Mutex<BTreeMap<RunId, HubEntry>>,
    /// Number of runs opened so far.
    opened: AtomicU64,
    /// Permit counter: its strong count is one more than the number of streams.
    permits: HubPermit,
}

/// A run, and when it was last requested.
struct HubEntry {
    watched: Arc<WatchedRun>,
    last_asked: Instant,
}

/// Permit for a stream; the streams are counted by its strong references.
pub(super) type HubPermit = Arc<()>;

impl RunHub {
    pub(super) fn new(instance: String) -> Self {
        let (runs, opened) = (Mutex::default(), AtomicU64::new(0));
        Self { instance, runs, opened, permits: HubPermit::default() }
    }

    /// Returns the run of that name in that directory.
    pub(super) fn watch_run(
        &self,
        id: &RunId,
        run: &RunDir,
    ) -> Result<Arc<WatchedRun>, StoreError> {
        let asked = Instant::now();
        self.drop_unwatched(asked);
        if let Some(known) =
            lock_mutex(&self.runs).get_mut(id).filter(|_| run.journal_path().is_file())
        {
            known.last_asked = asked;
            return Ok(Arc::clone(&known.watched));
        }
        // A run that is dropped and opened again restarts its count of changes: earlier versions
        // prove nothing.
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let watched = Arc::new(WatchedRun::open(run, &format!("{}-{number}", self.instance))?);
        let kept = HubEntry { watched, last_asked: asked };
        Ok(Arc::clone(&lock_mutex(&self.runs).entry(id.clone()).or_insert(kept).watched))
    }

    /// Drops the runs that are unwatched and were not requested lately.
    fn drop_unwatched(&self, now: Instant) {
        lock_mutex(&self.runs).retain(|_, kept| {
            let is_looked_at = Arc::strong_count(&kept.watched) > 1;
            is_looked_at || now.saturating_duration_since(kept.last_asked) < UNWATCHED_RUN_LIFETIME
        });
    }

    /// Returns a permit for one more stream, if there are fewer than [`MAX_STREAMS`].
    pub(super) fn take_permit(&self) -> Option<HubPermit> {
        (Arc::strong_count(&self.permits) <= MAX_STREAMS).then(|| Arc::clone(&self.permits))
    }
}

pub(super) fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run that is kept in memory and followed.
pub(super) struct WatchedRun {
    pub(super) run: RunDir,
    instance: String,
    inner: Mutex<WatchedState>,
    made: Mutex<BTreeMap<PagePart, CachedPart>>,
    /// Time spent on rendering parts since it was last read.
    making: Mutex<Duration>,
}

/// State of a run at one moment.
struct WatchedSnapshot {
    state: Arc<State>,
    runner: Option<String>,
    trouble: Option<String>,
    version: String,
    changes: u64,
    followed: JournalFollowState,
}

/// A rendered part, with the count of changes that it was rendered after.
type CachedPart = Arc<Mutex<Option<(u64, String)>>>;

impl WatchedSnapshot {
    fn as_view(&self) -> ViewedRun<'_> {
        ViewedRun {
            facts: &self.state,
            runner: self.runner.as_deref(),
            trouble: self.trouble.as_deref(),
            version: &self.version,
        }
    }
}

struct WatchedState {
    follower: RunFollower,
    /// Number of changes since this process opened the run.
    changes: u64,
    runner: Option<String>,
    runner_checked_at: Option<Instant>,
    trouble: Option<JournalReadFailure>,
    listeners: Vec<StreamListener>,
    followed: JournalFollowState,
}

/// Reason and time of a failed read of a journal.
struct JournalReadFailure {
    why: String,
    at: Instant,
}

/// Tells if a thread polls the journal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JournalFollowState {
    Yes,
    No,
}

struct StreamListener {
    outlet: EventSender,
    pending: PageChanges,
    last_sent: Instant,
    _permit: HubPermit,
}

impl WatchedRun {
    fn open(run: &RunDir, instance: &str) -> Result<Self, StoreError> {
        let inner = WatchedState {
            follower: RunFollower::open(run)?,
            changes: 0,
            runner: None,
            runner_checked_at: None,
            trouble: None,
            listeners: Vec::new(),
            followed: JournalFollowState::No,
        };
        let (inner, made, making) = (Mutex::new(inner), Mutex::default(), Mutex::default());
        Ok(Self { run: run.clone(), instance: instance.to_owned(), inner, made, making })
    }

    /// Shows the run as of now, or as the listeners know it. The lock is not held meanwhile.
    pub(super) fn with_snapshot<T>(&self, show: impl FnOnce(&ViewedRun<'_>) -> T) -> T {
        show(&self.take_snapshot().as_view())
    }

    /// Renders a part of the run's page, once for all requests before the run changes.
    pub(super) fn render_part(
        &self,
        part: PagePart,
        make: impl FnOnce(&ViewedRun<'_>) -> String,
    ) -> String {
        let place = Arc::clone(lock_mutex(&self.made).entry(part).or_default());
        // Locked while rendering: concurrent requests wait for this result.
        let mut last = lock_mutex(&place);
        let now = self.take_snapshot();
        if let Some((changes, text)) = &*last
            && *changes == now.changes
        {
            return text.clone();
        }
        let begun = Instant::now();
        let text = make(&now.as_view());
        *lock_mutex(&self.making) += begun.elapsed();
        if now.followed == JournalFollowState::Yes {
            *last = Some((now.changes, text.clone()));
        }
        text
    }

    fn take_snapshot(&self) -> WatchedSnapshot {
        let mut inner = lock_mutex(&self.inner);
        if inner.followed == JournalFollowState::No {
            inner.refresh(&self.run);
        }
        WatchedSnapshot {
            state: inner.follower.snapshot(),
            runner: inner.runner.clone(),
            trouble: inner.failure_reason().map(str::to_owned),
            version: self.snapshot_version(&inner),
            changes: inner.changes,
            followed: inner.followed,
        }
    }

    /// Discards the cached check for a running process, after a message to it.
    pub(super) fn recheck_runner(&self) {
        lock_mutex(&self.inner).runner_checked_at = None;
    }

    fn snapshot_version(&self, inner: &WatchedState) -> String {
        format!("{}-{}", self.instance, inner.changes)
    }

    /// Opens a stream of all changes from now on; it starts with one if the run has changed since
    /// `seen`.
    pub(super) fn open_stream(
        self: &Arc<Self>,
        seen: Option<&str>,
        permit: HubPermit,
    ) -> EventStream {
        let (outlet, stream) = event_channel();
        let mut inner = lock_mutex(&self.inner);
        inner.refresh(&self.run);
        let owed = match seen {
            Some(seen) if seen == self.snapshot_version(&inner) => PageChanges::default(),
            Some(_) | None => PageChanges::Everything,
        };
        // A dropped client reconnects soon; a new stream has room for this.
        let _ = outlet.send("retry: 500\n\n".to_owned());
        inner.listeners.push(StreamListener {
            outlet,
            pending: owed,
            last_sent: Instant::now(),
            _permit: permit,
        });
        let version = self.snapshot_version(&inner);
        inner.send_changes(&version);
        if inner.followed == JournalFollowState::No {
            let watched = Arc::clone(self);
            let spawned = thread::Builder::new().spawn(move || watched.follow_journal());
            // Where the system allows no further thread, the next listener tries again.
            inner.followed = spawned.map_or(JournalFollowState::No, |_| JournalFollowState::Yes);
        }
        stream
    }

    /// Returns the pause after a change.
    fn take_change_pause(&self) -> Duration {
        let making = std::mem::take(&mut *lock_mutex(&self.making));
        making.saturating_mul(CHANGE_PAUSE_FACTOR).clamp(MIN_CHANGE_PAUSE, MAX_CHANGE_PAUSE)
    }

    /// Polls the journal until there are no listeners.
    fn follow_journal(&self) {
        let mut pause = HUB_POLL_INTERVAL;
        loop {
            thread::sleep(pause);
            let mut inner = lock_mutex(&self.inner);
            let before = inner.changes;
            inner.refresh(&self.run);
            pause =
                if inner.changes == before { HUB_POLL_INTERVAL } else { self.take_change_pause() };
            let version = self.snapshot_version(&inner);
            inner.send_changes(&version);
            if inner.listeners.is_empty() {
                inner.followed = JournalFollowState::No;
                lock_mutex(&self.made).clear();
                return;
            }
        }
    }
}

impl WatchedState {
    /// Reads the new events, and queues their changes for all listeners.
    fn refresh(&mut self, run: &RunDir) {
        let mut news = self.read_journal();
        if self.runner_checked_at.is_none_or(|asked| asked.elapsed() >= RUNNER_CHECK_INTERVAL) {
            self.runner_checked_at = Some(Instant::now());
            let runner = lease::describe_owner(run);
            if runner != self.runner {
                self.runner = runner;
                news.add(&PageChanges::from_parts(&[PagePart::Steering]));
            }
        }
        if !news.is_empty() {
            self.changes += 1;
            self.listeners.iter_mut().for_each(|listener| listener.pending.add(&news));
        }
    }

    fn read_journal(&mut self) -> PageChanges {
        if self
            .trouble
            .as_ref()
            .is_some_and(|trouble| trouble.at.elapsed() < JOURNAL_RETRY_INTERVAL)
        {
            return PageChanges::default();
        }
        let before = self.trouble.take();
        let mut news = PageChanges::default();
        match self.follower.read_updates() {
            Ok(JournalUpdate::Appended(records)) => {
                for record in records {
                    news.add(&PageChanges::from_event(&record.event));
                }
            }
            Ok(JournalUpdate::Reloaded) => news = PageChanges::Everything,
            Err(error) => {
                self.trouble =
                    Some(JournalReadFailure { why: error.to_string(), at: Instant::now() });
            }
        }
        if self.failure_reason() != before.as_ref().map(|before| &*before.why) {
            news.add(&PageChanges::from_parts(&[PagePart::Steering]));
        }
        news
    }

    fn failure_reason(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| &*trouble.why)
    }

    fn send_changes(&mut self, version: &str) {
        self.listeners.retain_mut(|listener| listener.send_owed(version) != SendResult::Closed);
    }
}

impl StreamListener {
    fn send_owed(&mut self, version: &str) -> SendResult {
        if self.outlet.is_closed() {
            return SendResult::Closed;
        }
        let piece = if !self.pending.is_empty() {
            format!(
                "id: {version}\nevent: changed\ndata: {}\n\n",
                json!(self.pending.browser_names())
            )
        } else if self.last_sent.elapsed() >= STREAM_KEEPALIVE_INTERVAL {
            ":\n\n".to_owned()
        } else {
            return SendResult::Queued;
        };
        let sent = self.outlet.send(piece);
        if sent == SendResult::Queued {
            self.pending = PageChanges::default();
            self.last_sent = Instant::now();
        }
        sent
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::sync::mpsc::channel;
    use treebeam_core::event::{RunStarted, WorldKind};
    use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
    use treebeam_core::rules_version::RulesVersion;
    use treebeam_store::RunStore;

    /// Creates a run that has started.
    pub(in crate::command::serve) fn begun(folder: &Path) -> (RunId, RunDir) {
        let started = RunStarted {
            run: "t".parse().unwrap(),
            world: WorldKind::Dry { seed: 1 },
            root: "a".repeat(40).parse().unwrap(),
            meaning: FixedSettings::default(),
            reach: RunLimits::default(),
            agents: RecordedAgents::default(),
            given: None,
            replays: None,
            rules_version: RulesVersion::LATEST,
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        drop(RunStore::create(folder, &started).unwrap());
        let run = RunDir::from_run_id(folder, &started.run);
        (started.run, run)
    }

    #[test]
    fn nobody_waits_for_a_page_that_takes_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let (id, run) = begun(folder.path());
        let watched = Arc::new(WatchedRun::open(&run, "one").unwrap());
        let other = Arc::clone(&watched);
        let shown = watched.with_snapshot(move |_| {
            let (sender, receiver) = channel();
            thread::spawn(move || {
                sender.send(other.with_snapshot(|looked| looked.facts.run.clone()))
            });
            receiver.recv_timeout(Duration::from_mins(1))
        });
        assert_eq!(shown, Ok(id));
    }

    #[test]
    fn a_run_that_nobody_looks_at_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let (hub, (id, run)) = (RunHub::new("one".to_owned()), begun(folder.path()));
        let version =
            |watched: &WatchedRun| watched.with_snapshot(|looked| looked.version.to_owned());
        let watched = hub.watch_run(&id, &run).unwrap();
        let (first, later) = (version(&watched), Instant::now() + UNWATCHED_RUN_LIFETIME);
        hub.drop_unwatched(later);
        assert!(Arc::ptr_eq(&watched, &hub.watch_run(&id, &run).unwrap()), "somebody looks at it");
        let gone = Arc::downgrade(&watched);
        drop(watched);
        hub.drop_unwatched(Instant::now());
        assert!(gone.upgrade().is_some(), "it was asked for a moment ago");
        hub.drop_unwatched(Instant::now() + UNWATCHED_RUN_LIFETIME);
        assert!(gone.upgrade().is_none(), "nobody looks at it");
        // A version that a page has from before must not match the current one.
        assert_ne!(version(&hub.watch_run(&id, &run).unwrap()), first);
    }

    #[test]
    fn a_journal_that_cannot_be_read_is_left_alone_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let (_, run) = begun(folder.path());
        let watched = WatchedRun::open(&run, "one").unwrap();
        let trouble = || watched.with_snapshot(|looked| looked.trouble.map(str::to_owned));
        assert_eq!(trouble(), None);
        let journal = run.journal_path();
        let text = fs::read(&journal).unwrap();
        fs::write(&journal, "spoilt\n").unwrap();
        assert!(trouble().is_some());
        fs::write(&journal, text).unwrap();
        assert!(trouble().is_some(), "it was read again at once");
        thread::sleep(JOURNAL_RETRY_INTERVAL);
        assert_eq!(trouble(), None);
    }
}
