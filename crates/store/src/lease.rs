//! One runner at a time: a lock of the operating system on `run.lock`, and beside it a note for
//! people and other machines. A lock that is held decides everything. Where it is free and a note
//! is left behind, `takeover_rule` says whether the run may be taken. Whoever has the run looks
//! again before each write whether it still has it.
//!
//! The steps are types: `LockedRun` has the lock, `AnnouncedRun` has said so with a new epoch,
//! `Lease` has the journal too and a heart that beats. Only a lease takes its note away: whatever
//! ends before leaves it for the next one to see.

mod heartbeat;
mod lock_note;
mod takeover_rule;

pub use lock_note::{LockHolder, WaitingQuestion};
pub(super) use takeover_rule::ProcessState;

use super::error::{OwnerLocation, StoreError};
use super::journal_guard::has_later_epoch;
use super::layout::RunDir;
use super::opening::ForcePolicy;
use super::os;
use super::record_file::{self, RecordKind, UnusableFile};
use heartbeat::HeartbeatThread;
use jiff::Timestamp;
use lock_note::LockNote;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError, remove_file};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use takeover_rule::{LocalMachine, OwnerState, TakeoverVerdict};
use treebeam_core::event::{Event, TakeoverReason};

/// How often the lock of a living owner is tried, and how long after each time.
const MAX_LOCK_TRIES: u32 = 5;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// How long a lock is waited for whose owner is not alive: after a kill, a child of the dead process may hold it until the
/// child becomes another program.
const ORPHANED_LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// The most waiting questions that a note names.
const MAX_WAITING_QUESTIONS: usize = 8;

/// How long the owner of a run may be silent on another machine, unless the user says otherwise.
pub const DEFAULT_STALE_AFTER: Duration = Duration::from_mins(10);

/// What the user says about a run that somebody may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunClaim {
    /// Whether to take it from a process on another machine that may be alive; and what [`ForcePolicy`] says.
    pub force: ForcePolicy,
    /// How long a process on another machine may be silent before it counts as dead.
    pub stale_after: Duration,
}

impl From<ForcePolicy> for RunClaim {
    fn from(force: ForcePolicy) -> Self {
        Self { force, stale_after: DEFAULT_STALE_AFTER }
    }
}

/// The lock, until it is dropped.
#[derive(Debug)]
struct RunLock(File);

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing the file would do, were there no child that holds it between its fork and its exec.
        drop(self.0.unlock());
    }
}

/// A run whose lock this process has. Nobody has been told.
#[derive(Debug)]
pub(super) struct LockedRun {
    run: RunDir,
    lock: RunLock,
    note: LockNote,
    takeover: Option<TakeoverReason>,
}

/// A run that this process has said to have.
#[derive(Debug)]
pub(super) struct AnnouncedRun {
    run: RunDir,
    lock: RunLock,
    me: LockHolder,
}

/// The right to run a run, as long as it lives.
#[derive(Debug)]
pub(super) struct Lease {
    heart: Option<HeartbeatThread>,
    owned: Arc<LeaseState>,
    _lock: RunLock,
}

impl LockedRun {
    /// Takes the lock, if nobody has it who may be alive.
    pub(super) fn take_lock(run: &RunDir, claim: RunClaim) -> Result<Self, StoreError> {
        let lock = take_run_lock(run)?;
        let note = LockNote::try_read(run)?;
        let found = owner_state(&note);
        let over = match takeover_rule::judge_takeover(found, claim.stale_after, claim.force) {
            TakeoverVerdict::Free => None,
            TakeoverVerdict::Over(takeover) => Some(takeover),
            TakeoverVerdict::Alive => {
                return Err(locked_error(run, describe_living_owner(&note), OwnerLocation::Here));
            }
            TakeoverVerdict::Fresh => {
                let who = describe_remote_owner(&note, found, claim.stale_after);
                return Err(locked_error(run, who, OwnerLocation::Elsewhere));
            }
        };
        Ok(Self { run: run.clone(), lock, note, takeover: over })
    }

    /// What this leaves in the journal, if the process before did not leave cleanly.
    pub(super) fn takeover_event(&self) -> Option<Event> {
        let from = self.holder().map(LockHolder::to_runner);
        self.takeover.map(|because| Event::LockTakenOver { from, because, at: Timestamp::now() })
    }

    /// Whether the process before may still be writing: nobody here can ask it, and its lock does not reach us.
    pub(super) fn has_possible_writer(&self) -> bool {
        matches!(self.takeover, Some(TakeoverReason::HeartbeatStale | TakeoverReason::Forced))
    }

    /// The epoch after this one, and after the one that the note has.
    pub(super) fn epoch_after(&self, epoch: u64) -> u64 {
        epoch.max(self.holder().map_or(0, |holder| holder.epoch)) + 1
    }

    /// Says that this process has the run. From here on, one that had it before notices before its next write.
    pub(super) fn announce(self, epoch: u64) -> Result<AnnouncedRun, StoreError> {
        let me = LockHolder::this_process(epoch);
        if self.note != LockNote::Missing {
            me.write_note(&self.run)?;
        } else if !me.create_note(&self.run)? {
            // One whose lock does not reach us was faster.
            return Err(locked_error(
                &self.run,
                describe_living_owner(&LockNote::read(&self.run)),
                OwnerLocation::Elsewhere,
            ));
        }
        Ok(AnnouncedRun { run: self.run, lock: self.lock, me })
    }

    fn holder(&self) -> Option<&LockHolder> {
        match &self.note {
            LockNote::Readable(holder) => Some(holder),
            LockNote::Missing | LockNote::Unreadable(_) => None,
        }
    }
}

impl AnnouncedRun {
    /// The epoch, raised where another process has used it by now: one that took the run at the same time.
    pub(super) fn raise_epoch_above(&mut self, epoch: u64) -> Result<u64, StoreError> {
        if epoch >= self.me.epoch {
            self.me.epoch = epoch + 1;
            self.me.write_note(&self.run)?;
        }
        Ok(self.me.epoch)
    }

    /// Keeps the run, with this journal, for good.
    pub(super) fn into_lease(self, journal: &File) -> Result<Lease, StoreError> {
        let path = self.run.journal_path();
        let journal = os::file_id(journal).map_err(StoreError::io("look at", &path))?;
        let Self { run, lock, me } = self;
        let (lost, waits) = (OnceLock::new(), Mutex::default());
        let owned = Arc::new(LeaseState { run, me, journal: Mutex::new(journal), lost, waits });
        let beating = Arc::clone(&owned);
        let heart = HeartbeatThread::start(move || beating.write_heartbeat());
        let heart = Some(heart.map_err(StoreError::io("keep a heartbeat in", &path))?);
        Ok(Lease { heart, owned, _lock: lock })
    }
}

impl Lease {
    /// Refuses if another process has the run now. What is lost once stays lost.
    pub(super) fn check_ownership(&self) -> Result<(), StoreError> {
        self.owned.check_ownership()
    }

    /// The same question, for those who act beside the one that writes.
    pub(super) fn fence(&self) -> LeaseFence {
        LeaseFence(Arc::clone(&self.owned))
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
        *journal = os::file_id(put()?)
            .map_err(StoreError::io("look at", &self.owned.run.journal_path()))?;
        Ok(())
    }

    /// Something has happened that others should see soon.
    pub(super) fn beat_soon(&self) {
        if let Some(heart) = &self.heart {
            heart.beat_soon();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.heart.take());
        let LeaseState { run, me, .. } = &*self.owned;
        if matches!(LockNote::read(run), LockNote::Readable(holder) if holder.is_same_opening(me)) {
            // If it stays, the next one says that it took the run from a dead process: true enough.
            drop(remove_file(run.lock_note_path()));
        }
    }
}

/// Whether a run is still ours, for as long as anybody wants to know. It keeps nobody out.
#[derive(Clone, Debug)]
pub struct LeaseFence(Arc<LeaseState>);

impl LeaseFence {
    /// Refuses if another process has the run now.
    ///
    /// # Errors
    /// Where the lease was lost or cannot be read.
    pub fn check_ownership(&self) -> Result<(), StoreError> {
        self.0.check_ownership()
    }
}

/// Tells other processes, in the note of this run's owner, which questions wait.
#[derive(Clone, Debug)]
pub struct WaitBoard(Arc<LeaseState>);

impl WaitBoard {
    /// Puts up that the question of this number waits, in place of what is there of it.
    pub fn add_question(&self, id: u64, question: WaitingQuestion) {
        self.0.lock_waits().insert(id, question);
        self.0.write_heartbeat();
    }

    /// Takes down the question of this number.
    pub fn remove_question(&self, id: u64) {
        let taken = self.0.lock_waits().remove(&id);
        if taken.is_some() {
            self.0.write_heartbeat();
        }
    }
}

/// What a lease and its heart know.
#[derive(Debug)]
struct LeaseState {
    run: RunDir,
    me: LockHolder,
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

impl LeaseState {
    fn lock_waits(&self) -> MutexGuard<'_, BTreeMap<u64, WaitingQuestion>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_ownership(&self) -> Result<(), StoreError> {
        if self.lost.get().is_none()
            && let Some(loss) = self.find_loss()?
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
                let (path, why) = (self.run.journal_path(), why.clone());
                Err(StoreError::JournalChanged { path, why })
            }
        }
    }

    /// How the run was lost, if it was. A note may be gone, damaged or written over by one that is late; whoever took the
    /// run from a process that may still write has also put another journal in the place of this one.
    fn find_loss(&self) -> Result<Option<RunLoss>, StoreError> {
        let (newer, same) = match &LockNote::read(&self.run) {
            LockNote::Readable(holder) => (
                (holder.epoch >= self.me.epoch).then(|| holder.to_string()),
                holder.is_same_opening(&self.me),
            ),
            LockNote::Missing | LockNote::Unreadable(_) => (None, false),
        };
        if newer.is_some() && !same {
            return Ok(newer.map(RunLoss::TakenBy));
        }
        let ours = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.run.journal_path();
        let found = record_file::open_record(&path, RecordKind::Journal);
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

    fn write_heartbeat(&self) {
        if self.check_ownership().is_ok() {
            let mut waiting: Vec<_> = self.lock_waits().values().cloned().collect();
            waiting.sort_by_key(|question| question.since);
            waiting.truncate(MAX_WAITING_QUESTIONS);
            let me = LockHolder { last_heartbeat_at: Timestamp::now(), waiting, ..self.me.clone() };
            // A disk that is full now may have room at the next beat.
            drop(me.write_note(&self.run));
        }
    }
}

/// Who runs the run, if its note is there and can be read. The process may be gone.
#[must_use]
pub fn find_holder(run: &RunDir) -> Option<LockHolder> {
    match LockNote::read(run) {
        LockNote::Readable(holder) => Some(holder),
        LockNote::Missing | LockNote::Unreadable(_) => None,
    }
}

/// Who runs the run at this moment, in words; nobody if its lock is free.
#[must_use]
pub fn describe_owner(run: &RunDir) -> Option<String> {
    let lock = record_file::open_record(&run.lock_path(), RecordKind::Lock).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(describe_living_owner(&LockNote::read(run))),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// Whether somebody runs a run at this moment, here or on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunPresence {
    /// Nobody does.
    Nobody,
    /// Somebody has just come, and has not said who.
    Arriving,
    /// This process does.
    Owner(LockHolder),
}

/// Who runs the run at this moment. A process of another machine counts as long as its heartbeat is fresh.
#[must_use]
pub fn run_presence(run: &RunDir) -> RunPresence {
    let lock = record_file::open_record(&run.lock_path(), RecordKind::Lock).map(|file| match file
        .try_lock_shared()
    {
        Err(TryLockError::WouldBlock) => true,
        Ok(()) | Err(TryLockError::Error(_)) => false,
    });
    let note = LockNote::read(run);
    let found = owner_state(&note);
    match (note, lock.unwrap_or(false)) {
        (LockNote::Readable(holder), true) => {
            // Where processes cannot be asked for, the one with the lock is the one that wrote the note.
            let asked = os::process_state(holder.pid) != ProcessState::Unknown;
            let left = asked && found == OwnerState::Dead;
            if left { RunPresence::Arriving } else { RunPresence::Owner(holder) }
        }
        (LockNote::Missing | LockNote::Unreadable(_), true) => RunPresence::Arriving,
        (LockNote::Readable(holder), false) => match found {
            OwnerState::Alive => RunPresence::Owner(holder),
            OwnerState::Elsewhere(silence) if silence < DEFAULT_STALE_AFTER => {
                RunPresence::Owner(holder)
            }
            OwnerState::Elsewhere(_) | OwnerState::Left | OwnerState::Dead => RunPresence::Nobody,
        },
        (LockNote::Missing | LockNote::Unreadable(_), false) => RunPresence::Nobody,
    }
}

fn take_run_lock(run: &RunDir) -> Result<RunLock, StoreError> {
    let path = run.lock_path();
    let lock = record_file::open_lock(&path).map_err(StoreError::io("open", &path))?;
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(RunLock(lock)),
            Err(TryLockError::WouldBlock) => {
                let note = LockNote::read(run);
                if begun.elapsed() >= lock_patience(&note) {
                    return Err(locked_error(
                        run,
                        describe_living_owner(&note),
                        OwnerLocation::Here,
                    ));
                }
                thread::sleep(LOCK_RETRY_INTERVAL);
            }
            Err(TryLockError::Error(error)) => {
                return Err(StoreError::io("lock", &path)(error));
            }
        }
    }
}

/// How long a lock that is held is waited for, by its note. A process that only reads who runs the run holds it for a moment.
fn lock_patience(note: &LockNote) -> Duration {
    match owner_state(note) {
        OwnerState::Left | OwnerState::Dead => ORPHANED_LOCK_PATIENCE,
        OwnerState::Alive | OwnerState::Elsewhere(_) => LOCK_RETRY_INTERVAL * MAX_LOCK_TRIES,
    }
}

fn owner_state(note: &LockNote) -> OwnerState {
    let (hostname, boot_id) = (os::hostname(), os::boot_id());
    let (boot_id, process) = (boot_id.as_deref(), &os::process_state);
    takeover_rule::judge_owner(
        note,
        &LocalMachine { hostname: &hostname, boot_id, now: Timestamp::now(), process },
    )
}

fn locked_error(run: &RunDir, holder: String, owner: OwnerLocation) -> StoreError {
    StoreError::Locked { path: run.root().to_owned(), holder, owner }
}

/// Who is alive, in words. A note of a dead process is not yet that of the one that has the lock.
fn describe_living_owner(note: &LockNote) -> String {
    match note {
        LockNote::Readable(holder) if owner_state(note) != OwnerState::Dead => holder.to_string(),
        LockNote::Readable(_) | LockNote::Missing | LockNote::Unreadable(_) => {
            "another process".to_owned()
        }
    }
}

/// Who may be alive on another machine, in words.
fn describe_remote_owner(note: &LockNote, standing: OwnerState, stale_after: Duration) -> String {
    let silence = match standing {
        OwnerState::Elsewhere(silence) => silence.as_secs(),
        OwnerState::Left | OwnerState::Dead | OwnerState::Alive => 0,
    };
    let limit = stale_after.as_secs();
    match note {
        LockNote::Readable(holder) if holder.last_heartbeat_at > Timestamp::now() => {
            format!("{holder} (in the future: the clocks differ, and it counts as alive)")
        }
        LockNote::Readable(holder) => {
            format!("{holder} ({silence} s ago; it counts as dead after {limit} s)")
        }
        LockNote::Missing | LockNote::Unreadable(_) => format!(
            "a process without a name: `run.lock.json` cannot be read ({silence} s old; it counts as left behind after {limit} s)"
        ),
    }
}
