//! The runs that somebody looks at: each is read once, kept up with its journal, and told to all who listen. Its file is
//! looked at when a page is asked for, and again and again while anybody listens; then no more.

use super::live::MOST_STREAMS;
use super::news::News;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::id::RunId;
use treebeam_core::state::State;
use treebeam_edge::store::following::{Follower, Look};
use treebeam_edge::store::{RunDir, StoreError, lease};
use treebeam_edge::web::{Outlet, Sent, Stream, stream};
use treebeam_view::html::site::{Looked, Part};

/// How often a journal is looked at.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a run is left alone after it has changed: what changes meanwhile is told together, so that however much happens,
/// and however many look, each part is made once in this time.
const PACE: Duration = Duration::from_secs(1);
/// So many times as long as its parts took to make, it is left alone too: those of a large run shall not cost the run more than
/// those of a small one. No longer than this, though.
const SHARE: u32 = 50;
const SLOWEST: Duration = Duration::from_secs(5);
/// How often it is asked who runs the run: for a moment, the question is in a runner's way.
const DOUBT: Duration = Duration::from_secs(2);
/// How long a journal that cannot be read is left alone: each try reads all of it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a run is kept in mind that nobody looks at.
const MEMORY: Duration = Duration::from_mins(1);
/// How long a stream is silent before a word is said, so that one whose reader is gone is noticed.
const SILENCE: Duration = Duration::from_secs(10);

/// All of them.
pub(super) struct Hub {
    /// Different for each process: what was seen of another one may be anything.
    instance: String,
    runs: Mutex<BTreeMap<RunId, Kept>>,
    /// How many were opened so far.
    opened: AtomicU64,
    /// One more than there are streams.
    seats: Seat,
}

/// A run, and when it was last asked for.
struct Kept {
    watched: Arc<Watched>,
    asked: Instant,
}

/// The right to a stream; the streams are counted by it.
pub(super) type Seat = Arc<()>;

impl Hub {
    pub(super) fn new(instance: String) -> Self {
        let (runs, opened) = (Mutex::default(), AtomicU64::new(0));
        Self { instance, runs, opened, seats: Seat::default() }
    }

    /// The run of that name, which lies there.
    pub(super) fn run(&self, id: &RunId, run: &RunDir) -> Result<Arc<Watched>, StoreError> {
        let asked = Instant::now();
        self.let_go(asked);
        if let Some(known) = lock(&self.runs).get_mut(id).filter(|_| run.journal().is_file()) {
            known.asked = asked;
            return Ok(Arc::clone(&known.watched));
        }
        // One that was let go and is opened again counts its changes anew: what was seen of it before may be anything.
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let watched = Arc::new(Watched::open(run, &format!("{}-{number}", self.instance))?);
        let kept = Kept { watched, asked };
        Ok(Arc::clone(&lock(&self.runs).entry(id.clone()).or_insert(kept).watched))
    }

    /// Forgets the runs that nobody looks at and that were not asked for for a while.
    fn let_go(&self, now: Instant) {
        lock(&self.runs).retain(|_, kept| {
            let is_looked_at = Arc::strong_count(&kept.watched) > 1;
            is_looked_at || now.saturating_duration_since(kept.asked) < MEMORY
        });
    }

    /// Room for one more stream, if there is any.
    pub(super) fn seat(&self) -> Option<Seat> {
        (Arc::strong_count(&self.seats) <= MOST_STREAMS).then(|| Arc::clone(&self.seats))
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run that is looked at.
pub(super) struct Watched {
    pub(super) run: RunDir,
    instance: String,
    inner: Mutex<Inner>,
    made: Mutex<BTreeMap<Part, Made>>,
    /// How long making parts took since that was last asked.
    making: Mutex<Duration>,
}

/// What is known of it at one moment.
struct Seen {
    state: Arc<State>,
    runner: Option<String>,
    trouble: Option<String>,
    version: String,
    changes: u64,
    followed: Followed,
}

/// A part of its page, with the number of changes that it was made after.
type Made = Arc<Mutex<Option<(u64, String)>>>;

impl Seen {
    fn looked(&self) -> Looked<'_> {
        Looked {
            facts: &self.state,
            runner: self.runner.as_deref(),
            trouble: self.trouble.as_deref(),
            version: &self.version,
        }
    }
}

struct Inner {
    follower: Follower,
    /// How often it has changed since this process looks at it.
    changes: u64,
    runner: Option<String>,
    asked: Option<Instant>,
    trouble: Option<Trouble>,
    listeners: Vec<Listener>,
    followed: Followed,
}

/// Why the journal could not be read, and when.
struct Trouble {
    why: String,
    at: Instant,
}

/// Whether a thread looks at the journal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Followed {
    Yes,
    No,
}

struct Listener {
    outlet: Outlet,
    owed: News,
    spoken: Instant,
    _seat: Seat,
}

impl Watched {
    fn open(run: &RunDir, instance: &str) -> Result<Self, StoreError> {
        let inner = Inner {
            follower: Follower::open(run)?,
            changes: 0,
            runner: None,
            asked: None,
            trouble: None,
            listeners: Vec::new(),
            followed: Followed::No,
        };
        let (inner, made, making) = (Mutex::new(inner), Mutex::default(), Mutex::default());
        Ok(Self { run: run.clone(), instance: instance.to_owned(), inner, made, making })
    }

    /// Shows the run as it is now, or as those who listen know it. Nobody waits for what is done with it.
    pub(super) fn with<T>(&self, show: impl FnOnce(&Looked<'_>) -> T) -> T {
        show(&self.seen().looked())
    }

    /// A part of its page, made once for all who ask for it before the run changes.
    pub(super) fn part(&self, part: Part, make: impl FnOnce(&Looked<'_>) -> String) -> String {
        let place = Arc::clone(lock(&self.made).entry(part).or_default());
        // Held while it is made: whoever asks for it meanwhile waits for this one.
        let mut last = lock(&place);
        let now = self.seen();
        if let Some((changes, text)) = &*last
            && *changes == now.changes
        {
            return text.clone();
        }
        let begun = Instant::now();
        let text = make(&now.looked());
        *lock(&self.making) += begun.elapsed();
        if now.followed == Followed::Yes {
            *last = Some((now.changes, text.clone()));
        }
        text
    }

    fn seen(&self) -> Seen {
        let mut inner = lock(&self.inner);
        if inner.followed == Followed::No {
            inner.look(&self.run);
        }
        Seen {
            state: inner.follower.snapshot(),
            runner: inner.runner.clone(),
            trouble: inner.why().map(str::to_owned),
            version: self.version(&inner),
            changes: inner.changes,
            followed: inner.followed,
        }
    }

    /// Asks again who runs it: somebody has just been told something.
    pub(super) fn doubt(&self) {
        lock(&self.inner).asked = None;
    }

    fn version(&self, inner: &Inner) -> String {
        format!("{}-{}", self.instance, inner.changes)
    }

    /// Tells of all that changes from now on, and at once if something has since what was seen last.
    pub(super) fn listen(self: &Arc<Self>, seen: Option<&str>, seat: Seat) -> Stream {
        let (outlet, stream) = stream();
        let mut inner = lock(&self.inner);
        inner.look(&self.run);
        let owed = match seen {
            Some(seen) if seen == self.version(&inner) => News::default(),
            Some(_) | None => News::Everything,
        };
        // Whoever is cut off comes back soon; there is room for this in a stream that has just been made.
        let _ = outlet.send("retry: 500\n\n".to_owned());
        inner.listeners.push(Listener { outlet, owed, spoken: Instant::now(), _seat: seat });
        let version = self.version(&inner);
        inner.tell(&version);
        if inner.followed == Followed::No {
            inner.followed = Followed::Yes;
            let watched = Arc::clone(self);
            thread::spawn(move || watched.follow());
        }
        stream
    }

    /// How long the run is left alone after it has changed.
    fn pace(&self) -> Duration {
        let making = std::mem::take(&mut *lock(&self.making));
        making.saturating_mul(SHARE).clamp(PACE, SLOWEST)
    }

    /// Looks until nobody listens any more.
    fn follow(&self) {
        let mut pause = GLANCE;
        loop {
            thread::sleep(pause);
            let mut inner = lock(&self.inner);
            let before = inner.changes;
            inner.look(&self.run);
            pause = if inner.changes == before { GLANCE } else { self.pace() };
            let version = self.version(&inner);
            inner.tell(&version);
            if inner.listeners.is_empty() {
                inner.followed = Followed::No;
                lock(&self.made).clear();
                return;
            }
        }
    }
}

impl Inner {
    /// Takes in what is new, and owes it to all who listen.
    fn look(&mut self, run: &RunDir) {
        let mut news = self.read();
        if self.asked.is_none_or(|asked| asked.elapsed() >= DOUBT) {
            self.asked = Some(Instant::now());
            let runner = lease::runner(run);
            if runner != self.runner {
                self.runner = runner;
                news.add(&News::parts(&[Part::Steering]));
            }
        }
        if !news.is_empty() {
            self.changes += 1;
            self.listeners.iter_mut().for_each(|listener| listener.owed.add(&news));
        }
    }

    fn read(&mut self) -> News {
        if self.trouble.as_ref().is_some_and(|trouble| trouble.at.elapsed() < PATIENCE) {
            return News::default();
        }
        let before = self.trouble.take();
        let mut news = News::default();
        match self.follower.look() {
            Ok(Look::More(records)) => {
                for record in records {
                    news.add(&News::of(&record.event));
                }
            }
            Ok(Look::Anew) => news = News::Everything,
            Err(error) => {
                self.trouble = Some(Trouble { why: error.to_string(), at: Instant::now() });
            }
        }
        if self.why() != before.as_ref().map(|before| &*before.why) {
            news.add(&News::parts(&[Part::Steering]));
        }
        news
    }

    fn why(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| &*trouble.why)
    }

    fn tell(&mut self, version: &str) {
        self.listeners.retain_mut(|listener| listener.tell(version) != Sent::Gone);
    }
}

impl Listener {
    fn tell(&mut self, version: &str) -> Sent {
        if self.outlet.is_closed() {
            return Sent::Gone;
        }
        let piece = if !self.owed.is_empty() {
            format!("id: {version}\nevent: changed\ndata: {}\n\n", json!(self.owed.names()))
        } else if self.spoken.elapsed() >= SILENCE {
            ":\n\n".to_owned()
        } else {
            return Sent::Yes;
        };
        let sent = self.outlet.send(piece);
        if sent == Sent::Yes {
            self.owed = News::default();
            self.spoken = Instant::now();
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
    use treebeam_core::policy::{Agents, Meaning, Reach};
    use treebeam_core::rules_version::RulesVersion;
    use treebeam_edge::store::Store;

    /// A run that has begun.
    pub(in crate::command::serve) fn begun(folder: &Path) -> (RunId, RunDir) {
        let started = RunStarted {
            run: "t".parse().unwrap(),
            world: WorldKind::Dry { seed: 1 },
            root: "a".repeat(40).parse().unwrap(),
            meaning: Meaning::default(),
            reach: Reach::default(),
            agents: Agents::default(),
            given: None,
            replays: None,
            rules_version: RulesVersion::LATEST,
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        drop(Store::create(folder, &started).unwrap());
        let run = RunDir::of(folder, &started.run);
        (started.run, run)
    }

    #[test]
    fn nobody_waits_for_a_page_that_takes_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let (id, run) = begun(folder.path());
        let watched = Arc::new(Watched::open(&run, "one").unwrap());
        let other = Arc::clone(&watched);
        let shown = watched.with(move |_| {
            let (sender, receiver) = channel();
            thread::spawn(move || sender.send(other.with(|looked| looked.facts.run.clone())));
            receiver.recv_timeout(Duration::from_mins(1))
        });
        assert_eq!(shown, Ok(id));
    }

    #[test]
    fn a_run_that_nobody_looks_at_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let (hub, (id, run)) = (Hub::new("one".to_owned()), begun(folder.path()));
        let version = |watched: &Watched| watched.with(|looked| looked.version.to_owned());
        let watched = hub.run(&id, &run).unwrap();
        let (first, later) = (version(&watched), Instant::now() + MEMORY);
        hub.let_go(later);
        assert!(Arc::ptr_eq(&watched, &hub.run(&id, &run).unwrap()), "somebody looks at it");
        let gone = Arc::downgrade(&watched);
        drop(watched);
        hub.let_go(Instant::now());
        assert!(gone.upgrade().is_some(), "it was asked for a moment ago");
        hub.let_go(Instant::now() + MEMORY);
        assert!(gone.upgrade().is_none(), "nobody looks at it");
        // What a page knows of it is not taken for what is known now.
        assert_ne!(version(&hub.run(&id, &run).unwrap()), first);
    }

    #[test]
    fn a_journal_that_cannot_be_read_is_left_alone_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let (_, run) = begun(folder.path());
        let watched = Watched::open(&run, "one").unwrap();
        let trouble = || watched.with(|looked| looked.trouble.map(str::to_owned));
        assert_eq!(trouble(), None);
        let journal = run.journal();
        let text = fs::read(&journal).unwrap();
        fs::write(&journal, "spoilt\n").unwrap();
        assert!(trouble().is_some());
        fs::write(&journal, text).unwrap();
        assert!(trouble().is_some(), "it was read again at once");
        thread::sleep(PATIENCE);
        assert_eq!(trouble(), None);
    }
}
