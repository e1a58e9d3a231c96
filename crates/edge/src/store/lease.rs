//! One runner at a time: a lock of the operating system on `run.lock`, and beside it a note for people and other machines.
//! A lock that is held decides everything. Where it is free and a note is left behind, `judge` says whether the run may
//! be taken. Whoever has the run looks again before each write whether it still has it.
//!
//! The steps are types: [`Taken`] has the lock, [`Announced`] has said so with a new epoch, [`Lease`] has the journal
//! too and a heart that beats. Only a lease takes its note away: whatever ends before leaves it for the next one to see.

mod heart;
mod holder;
mod judge;

pub use holder::{Holder, WaitingQuestion};
pub(super) use judge::Process;

use super::error::{StoreError, Whereabouts};
use super::journal_guard::has_later_epoch;
use super::layout::RunDir;
use super::opening::Force;
use super::os;
use super::record_file::{self, RecordKind, UnusableFile};
use heart::Heart;
use holder::Note;
use jiff::Timestamp;
use judge::{Here, Standing, Verdict};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError, remove_file};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::{Event, Takeover};

/// How often the lock of a living owner is tried, and how long after each time.
const TRIES: u32 = 5;
const MOMENT: Duration = Duration::from_millis(10);
/// How long a lock is waited for whose owner is not alive: after a kill, a child of the dead process may hold it until the
/// child becomes another program.
const ORPHANED_LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// The most waiting questions that a note names.
const MOST_WAITING: usize = 8;

/// How long the owner of a run may be silent on another machine, unless the user says otherwise.
pub const STALE_AFTER: Duration = Duration::from_mins(10);

/// What the user says about a run that somebody may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Whether to take it from a process on another machine that may be alive; and what [`Force`] says.
    pub force: Force,
    /// How long a process on another machine may be silent before it counts as dead.
    pub stale_after: Duration,
}

impl From<Force> for Claim {
    fn from(force: Force) -> Self {
        Self { force, stale_after: STALE_AFTER }
    }
}

/// The lock, until it is dropped.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would do, were there no child that holds it between its fork and its exec.
        drop(self.0.unlock());
    }
}

/// A run whose lock this process has. Nobody has been told.
#[derive(Debug)]
pub(super) struct Taken {
    run: RunDir,
    lock: Lock,
    note: Note,
    over: Option<Takeover>,
}

/// A run that this process has said to have.
#[derive(Debug)]
pub(super) struct Announced {
    run: RunDir,
    lock: Lock,
    me: Holder,
}

/// The right to run a run, as long as it lives.
#[derive(Debug)]
pub(super) struct Lease {
    heart: Option<Heart>,
    owned: Arc<Owned>,
    _lock: Lock,
}

impl Taken {
    /// Takes the lock, if nobody has it who may be alive.
    pub(super) fn take(run: &RunDir, claim: Claim) -> Result<Self, StoreError> {
        let lock = lock(run)?;
        let note = Note::look(run)?;
        let found = standing(&note);
        let over = match judge::verdict(found, claim.stale_after, claim.force) {
            Verdict::Free => None,
            Verdict::Over(takeover) => Some(takeover),
            Verdict::Alive => return Err(locked(run, alive(&note), Whereabouts::Here)),
            Verdict::Fresh => {
                let who = elsewhere(&note, found, claim.stale_after);
                return Err(locked(run, who, Whereabouts::Elsewhere));
            }
        };
        Ok(Self { run: run.clone(), lock, note, over })
    }

    /// What this leaves in the journal, if the process before did not leave cleanly.
    pub(super) fn event(&self) -> Option<Event> {
        let from = self.holder().map(Holder::runner);
        self.over.map(|because| Event::LockTakenOver { from, because, at: Timestamp::now() })
    }

    /// Whether the process before may still be writing: nobody here can ask it, and its lock does not reach us.
    pub(super) fn may_have_company(&self) -> bool {
        matches!(self.over, Some(Takeover::HeartbeatStale | Takeover::Forced))
    }

    /// The epoch after this one, and after the one that the note has.
    pub(super) fn epoch_after(&self, epoch: u64) -> u64 {
        epoch.max(self.holder().map_or(0, |holder| holder.epoch)) + 1
    }

    /// Says that this process has the run. From here on, one that had it before notices before its next write.
    pub(super) fn announce(self, epoch: u64) -> Result<Announced, StoreError> {
        let me = Holder::this_process(epoch);
        if self.note != Note::Missing {
            me.write(&self.run)?;
        } else if !me.write_first(&self.run)? {
            // One whose lock does not reach us was faster.
            return Err(locked(&self.run, alive(&Note::read(&self.run)), Whereabouts::Elsewhere));
        }
        Ok(Announced { run: self.run, lock: self.lock, me })
    }

    fn holder(&self) -> Option<&Holder> {
        match &self.note {
            Note::Of(holder) => Some(holder),
            Note::Missing | Note::Unreadable(_) => None,
        }
    }
}

impl Announced {
    /// The epoch, raised where another process has used it by now: one that took the run at the same time.
    pub(super) fn epoch_above(&mut self, epoch: u64) -> Result<u64, StoreError> {
        if epoch >= self.me.epoch {
            self.me.epoch = epoch + 1;
            self.me.write(&self.run)?;
        }
        Ok(self.me.epoch)
    }

    /// Keeps the run, with this journal, for good.
    pub(super) fn keep(self, journal: &File) -> Result<Lease, StoreError> {
        let path = self.run.journal();
        let journal = os::file_id(journal).map_err(StoreError::io("look at", &path))?;
        let Self { run, lock, me } = self;
        let (lost, waits) = (OnceLock::new(), Mutex::default());
        let owned = Arc::new(Owned { run, me, journal: Mutex::new(journal), lost, waits });
        let beating = Arc::clone(&owned);
        let heart = Heart::start(move || beating.beat());
        let heart = Some(heart.map_err(StoreError::io("keep a heartbeat in", &path))?);
        Ok(Lease { heart, owned, _lock: lock })
    }
}

impl Lease {
    /// Refuses if another process has the run now. What is lost once stays lost.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.owned.check()
    }

    /// The same question, for those who act beside the one that writes.
    pub(super) fn fence(&self) -> Fence {
        Fence(Arc::clone(&self.owned))
    }

    /// The board on which waiting questions are put up.
    pub(super) fn wait_board(&self) -> WaitBoard {
        WaitBoard(Arc::clone(&self.owned))
    }

    /// Puts another file of the same content in the journal's place. Checks of the ownership wait meanwhile.
    pub(super) fn replace_journal<'a>(
        &self,
        put: impl FnOnce() -> Result<&'a File, StoreError>,
    ) -> Result<(), StoreError> {
        let mut journal = self.owned.journal.lock().unwrap_or_else(PoisonError::into_inner);
        *journal =
            os::file_id(put()?).map_err(StoreError::io("look at", &self.owned.run.journal()))?;
        Ok(())
    }

    /// Something has happened that others should see soon.
    pub(super) fn nudge(&self) {
        if let Some(heart) = &self.heart {
            heart.nudge();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.heart.take());
        let Owned { run, me, .. } = &*self.owned;
        if matches!(Note::read(run), Note::Of(holder) if holder.is(me)) {
            // If it stays, the next one says that it took the run from a dead process: true enough.
            drop(remove_file(run.holder()));
        }
    }
}

/// Whether a run is still ours, for as long as anybody wants to know. It keeps nobody out.
#[derive(Clone, Debug)]
pub struct Fence(Arc<Owned>);

impl Fence {
    /// Refuses if another process has the run now.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.0.check()
    }
}

/// Tells other processes, in the note of this run's owner, which questions wait.
#[derive(Clone, Debug)]
pub struct WaitBoard(Arc<Owned>);

impl WaitBoard {
    /// Puts up that the question of this number waits, in place of what is there of it.
    pub fn put_up(&self, id: u64, question: WaitingQuestion) {
        self.0.waits().insert(id, question);
        self.0.beat();
    }

    /// Takes down the question of this number.
    pub fn take_down(&self, id: u64) {
        let taken = self.0.waits().remove(&id);
        if taken.is_some() {
            self.0.beat();
        }
    }
}

/// What a lease and its heart know.
#[derive(Debug)]
struct Owned {
    run: RunDir,
    me: Holder,
    journal: Mutex<os::FileId>,
    /// Why the run is not ours any more, once it is not.
    lost: OnceLock<RunLoss>,
    /// The questions that wait, by number.
    waits: Mutex<BTreeMap<u64, WaitingQuestion>>,
}

/// How a run was lost.
#[derive(Debug)]
enum RunLoss {
    /// Another process has it, and which.
    TakenBy(String),
    /// Another file has the name of its journal, and why that is no takeover.
    JournalReplaced(String),
}

impl Owned {
    fn waits(&self) -> MutexGuard<'_, BTreeMap<u64, WaitingQuestion>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.lost.get().is_none()
            && let Some(loss) = self.loss()?
        {
            self.lost.get_or_init(|| loss);
        }
        match self.lost.get() {
            None => Ok(()),
            Some(RunLoss::TakenBy(holder)) => {
                let (path, holder) = (self.run.root().to_owned(), holder.clone());
                Err(StoreError::Lost { path, holder })
            }
            Some(RunLoss::JournalReplaced(why)) => {
                let (path, why) = (self.run.journal(), why.clone());
                Err(StoreError::JournalChanged { path, why })
            }
        }
    }

    /// How the run was lost, if it was. A note may be gone, damaged or written over by one that is late; whoever took the
    /// run from a process that may still write has also put another journal in the place of this one.
    fn loss(&self) -> Result<Option<RunLoss>, StoreError> {
        let (newer, same) = match &Note::read(&self.run) {
            Note::Of(holder) => {
                ((holder.epoch >= self.me.epoch).then(|| holder.to_string()), holder.is(&self.me))
            }
            Note::Missing | Note::Unreadable(_) => (None, false),
        };
        if newer.is_some() && !same {
            return Ok(newer.map(RunLoss::TakenBy));
        }
        let ours = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.run.journal();
        let found = record_file::open(&path, RecordKind::Journal);
        Ok(match found.and_then(|file| os::file_id(&file)) {
            Ok(found) if found == *ours => None,
            Ok(_) if !same || has_later_epoch(&path, self.me.epoch) => {
                Some(RunLoss::TakenBy("another process".to_owned()))
            }
            Ok(_) => Some(RunLoss::JournalReplaced("another file has its name".to_owned())),
            // The one who writes puts it back before the next line.
            Err(error) if error.kind() == ErrorKind::NotFound && self.run.root().is_dir() => None,
            Err(error) => match UnusableFile::in_error(&error) {
                Some(why) => Some(RunLoss::JournalReplaced(why.to_string())),
                None => return Err(StoreError::io("look at", &path)(error)),
            },
        })
    }

    fn beat(&self) {
        if self.check().is_ok() {
            let mut waiting: Vec<_> = self.waits().values().cloned().collect();
            waiting.sort_by_key(|question| question.since);
            waiting.truncate(MOST_WAITING);
            let me = Holder { last_heartbeat_at: Timestamp::now(), waiting, ..self.me.clone() };
            // A disk that is full now may have room at the next beat.
            drop(me.write(&self.run));
        }
    }
}

/// Who runs the run, if its note is there and can be read. The process may be gone.
#[must_use]
pub fn holder(run: &RunDir) -> Option<Holder> {
    match Note::read(run) {
        Note::Of(holder) => Some(holder),
        Note::Missing | Note::Unreadable(_) => None,
    }
}

/// Who runs the run at this moment, in words; nobody if its lock is free.
#[must_use]
pub fn runner(run: &RunDir) -> Option<String> {
    let lock = record_file::open(&run.lock(), RecordKind::Lock).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(alive(&Note::read(run))),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// Whether somebody runs a run at this moment, here or on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nobody does.
    Nobody,
    /// Somebody has just come, and has not said who.
    Arriving,
    /// This process does.
    Owner(Holder),
}

/// Who runs the run at this moment. A process of another machine counts as long as its heartbeat is fresh.
#[must_use]
pub fn presence(run: &RunDir) -> Presence {
    let lock =
        record_file::open(&run.lock(), RecordKind::Lock).map(|file| match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => true,
            Ok(()) | Err(TryLockError::Error(_)) => false,
        });
    let note = Note::read(run);
    let found = standing(&note);
    match (note, lock.unwrap_or(false)) {
        (Note::Of(holder), true) => {
            // Where processes cannot be asked for, the one with the lock is the one that wrote the note.
            let asked = os::process(holder.pid) != Process::Unknown;
            let left = asked && found == Standing::Dead;
            if left { Presence::Arriving } else { Presence::Owner(holder) }
        }
        (Note::Missing | Note::Unreadable(_), true) => Presence::Arriving,
        (Note::Of(holder), false) => match found {
            Standing::Alive => Presence::Owner(holder),
            Standing::Elsewhere(silence) if silence < STALE_AFTER => Presence::Owner(holder),
            Standing::Elsewhere(_) | Standing::Left | Standing::Dead => Presence::Nobody,
        },
        (Note::Missing | Note::Unreadable(_), false) => Presence::Nobody,
    }
}

fn lock(run: &RunDir) -> Result<Lock, StoreError> {
    let path = run.lock();
    let lock = record_file::open_lock(&path).map_err(StoreError::io("open", &path))?;
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(Lock(lock)),
            Err(TryLockError::WouldBlock) => {
                let note = Note::read(run);
                if begun.elapsed() >= lock_patience(&note) {
                    return Err(locked(run, alive(&note), Whereabouts::Here));
                }
                thread::sleep(MOMENT);
            }
            Err(TryLockError::Error(error)) => {
                return Err(StoreError::io("lock", &path)(error));
            }
        }
    }
}

/// How long a lock that is held is waited for, by its note. A process that only reads who runs the run holds it for a moment.
fn lock_patience(note: &Note) -> Duration {
    match standing(note) {
        Standing::Left | Standing::Dead => ORPHANED_LOCK_PATIENCE,
        Standing::Alive | Standing::Elsewhere(_) => MOMENT * TRIES,
    }
}

fn standing(note: &Note) -> Standing {
    let (hostname, boot_id) = (os::hostname(), os::boot_id());
    let (boot_id, process) = (boot_id.as_deref(), &os::process);
    judge::standing(note, &Here { hostname: &hostname, boot_id, now: Timestamp::now(), process })
}

fn locked(run: &RunDir, holder: String, owner: Whereabouts) -> StoreError {
    StoreError::Locked { path: run.root().to_owned(), holder, owner }
}

/// Who is alive, in words. A note of a dead process is not yet that of the one that has the lock.
fn alive(note: &Note) -> String {
    match note {
        Note::Of(holder) if standing(note) != Standing::Dead => holder.to_string(),
        Note::Of(_) | Note::Missing | Note::Unreadable(_) => "another process".to_owned(),
    }
}

/// Who may be alive on another machine, in words.
fn elsewhere(note: &Note, standing: Standing, stale_after: Duration) -> String {
    let silence = match standing {
        Standing::Elsewhere(silence) => silence.as_secs(),
        Standing::Left | Standing::Dead | Standing::Alive => 0,
    };
    let limit = stale_after.as_secs();
    match note {
        Note::Of(holder) if holder.last_heartbeat_at > Timestamp::now() => {
            format!("{holder} (in the future: the clocks differ, and it counts as alive)")
        }
        Note::Of(holder) => {
            format!("{holder} ({silence} s ago; it counts as dead after {limit} s)")
        }
        Note::Missing | Note::Unreadable(_) => format!(
            "a process without a name: `run.lock.json` cannot be read ({silence} s old; it counts as left behind after {limit} s)"
        ),
    }
}
