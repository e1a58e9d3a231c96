//! Keeps a run to one process at a time, with an operating-system lock on `run.lock`. Beside it a
//! note informs people and other machines. A held lock always excludes. If the lock is free but a
//! note is left, [`mod@takeover_rule`] decides whether the run may be taken. The owner checks
//! before each write that it still has the run.
//!
//! The steps are types: [`LockedRun`] holds the lock, [`AnnouncedRun`] has written a note with a
//! new epoch, [`Lease`] also has the journal and a heartbeat. Only a lease removes its note: a
//! process that ends earlier leaves it for the next one to see.

mod heartbeat;
mod lock_note;
mod run_claim;
mod takeover_rule;

pub use lock_note::{LockHolder, WaitingQuestion};
pub use run_claim::{DEFAULT_STALE_AFTER, ForcePolicy, RunClaim};
pub(super) use takeover_rule::ProcessState;

use super::error::{OwnerLocation, StoreError};
use super::journal_guard::has_later_epoch;
use super::layout::RunDir;
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

/// Number of tries for the lock of a living owner, with the interval between two tries.
const MAX_LOCK_TRIES: u32 = 5;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// The longest wait for a lock whose owner is dead: after a kill, a child of the dead process may
/// hold it until the child has executed another program.
const ORPHANED_LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// The most waiting questions that a note lists.
const MAX_WAITING_QUESTIONS: usize = 8;

/// A held lock, released on drop.
#[derive(Debug)]
struct RunLock(File);

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child may hold it between its fork and its exec.
        drop(self.0.unlock());
    }
}

/// A run whose lock this process holds, without a note of its own yet.
#[derive(Debug)]
pub(super) struct LockedRun {
    run: RunDir,
    lock: RunLock,
    note: LockNote,
    takeover: Option<TakeoverReason>,
}

/// A run that this process has announced as its own in the note.
#[derive(Debug)]
pub(super) struct AnnouncedRun {
    run: RunDir,
    lock: RunLock,
    me: LockHolder,
}

/// The right to run a run, until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    heart: Option<HeartbeatThread>,
    owned: Arc<LeaseState>,
    _lock: RunLock,
}

impl LockedRun {
    /// Takes the lock, unless a process that may be alive has the run.
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

    /// Returns the event that records this takeover, if the previous owner did not leave cleanly.
    pub(super) fn takeover_event(&self) -> Option<Event> {
        let from = self.holder().map(LockHolder::to_runner);
        self.takeover.map(|because| Event::LockTakenOver { from, because, at: Timestamp::now() })
    }

    /// Returns true if the previous owner may still be writing: it is on another machine, where its
    /// lock and its process are out of sight.
    pub(super) fn has_possible_writer(&self) -> bool {
        matches!(self.takeover, Some(TakeoverReason::HeartbeatStale | TakeoverReason::Forced))
    }

    /// Returns the next epoch after this one and after that of the note.
    pub(super) fn epoch_after(&self, epoch: u64) -> u64 {
        epoch.max(self.holder().map_or(0, |holder| holder.epoch)) + 1
    }

    /// Writes this process into the note. A previous owner notices it before its next write.
    pub(super) fn announce(self, epoch: u64) -> Result<AnnouncedRun, StoreError> {
        let me = LockHolder::this_process(epoch);
        if self.note != LockNote::Missing {
            me.write_note(&self.run)?;
        } else if !me.create_note(&self.run)? {
            // Another process, whose lock is not visible here, was faster.
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
    /// Raises the epoch above one that a concurrent takeover has used, and returns it.
    pub(super) fn raise_epoch_above(&mut self, epoch: u64) -> Result<u64, StoreError> {
        if epoch >= self.me.epoch {
            self.me.epoch = epoch + 1;
            self.me.write_note(&self.run)?;
        }
        Ok(self.me.epoch)
    }

    /// Turns the announced run into a lease, with this journal.
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
    /// Refuses if another process has the run now. A lost run stays lost.
    pub(super) fn check_ownership(&self) -> Result<(), StoreError> {
        self.owned.check_ownership()
    }

    /// Returns a handle for ownership checks outside of the writer.
    pub(super) fn fence(&self) -> LeaseFence {
        LeaseFence(Arc::clone(&self.owned))
    }

    /// Returns the handle for publishing questions that wait.
    pub(super) fn wait_board(&self) -> WaitBoard {
        WaitBoard(Arc::clone(&self.owned))
    }

    /// Replaces the journal with another file of the same content. Ownership checks wait meanwhile.
    pub(super) fn replace_journal<'a>(
        &self,
        put: impl FnOnce() -> Result<&'a File, StoreError>,
    ) -> Result<(), StoreError> {
        let mut journal = self.owned.journal.lock().unwrap_or_else(PoisonError::into_inner);
        *journal = os::file_id(put()?)
            .map_err(StoreError::io("look at", &self.owned.run.journal_path()))?;
        Ok(())
    }

    /// Requests an early heartbeat because something has happened that others should see soon.
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
            // If the note stays, the next owner records a takeover, which is true enough.
            drop(remove_file(run.lock_note_path()));
        }
    }
}

/// Handle that checks whether this process still has a run. It holds no lock.
#[derive(Clone, Debug)]
pub struct LeaseFence(Arc<LeaseState>);

impl LeaseFence {
    /// Refuses if another process has the run now.
    ///
    /// # Errors
    /// If the lease was lost or cannot be read.
    pub fn check_ownership(&self) -> Result<(), StoreError> {
        self.0.check_ownership()
    }
}

/// Publishes the questions that wait in the owner's note, for other processes.
#[derive(Clone, Debug)]
pub struct WaitBoard(Arc<LeaseState>);

impl WaitBoard {
    /// Publishes a waiting question under its number, replacing an earlier one of that number.
    pub fn add_question(&self, id: u64, question: WaitingQuestion) {
        self.0.lock_waits().insert(id, question);
        self.0.write_heartbeat();
    }

    /// Removes the question of this number.
    pub fn remove_question(&self, id: u64) {
        let taken = self.0.lock_waits().remove(&id);
        if taken.is_some() {
            self.0.write_heartbeat();
        }
    }
}

/// State that a lease shares with its heartbeat and its fences.
#[derive(Debug)]
struct LeaseState {
    run: RunDir,
    me: LockHolder,
    journal: Mutex<os::FileId>,
    /// Set once the run is lost.
    lost: OnceLock<RunLoss>,
    /// The waiting questions, by number.
    waits: Mutex<BTreeMap<u64, WaitingQuestion>>,
}

/// How a run was lost.
#[derive(Debug)]
enum RunLoss {
    /// Another process, described here, has the run.
    TakenBy(String),
    /// Another file has the journal's name, without a takeover; with the reason.
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

    /// Returns how the run was lost, if it was. The note alone may be missing, damaged or
    /// overwritten late; a takeover from a possible writer also replaces the journal.
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
            // The writer puts the journal back before the next line.
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

/// Returns the owner that the note names, if the note can be read. That process may be gone.
#[must_use]
pub fn find_holder(run: &RunDir) -> Option<LockHolder> {
    match LockNote::read(run) {
        LockNote::Readable(holder) => Some(holder),
        LockNote::Missing | LockNote::Unreadable(_) => None,
    }
}

/// Describes the process that runs the run at this moment; none if the lock is free.
#[must_use]
pub fn describe_owner(run: &RunDir) -> Option<String> {
    let lock = record_file::open_record(&run.lock_path(), RecordKind::Lock).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(describe_living_owner(&LockNote::read(run))),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// Presence of a process that runs a run, on this or another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunPresence {
    /// No process runs the run.
    Nobody,
    /// A process has just taken the lock, and has not written its note yet.
    Arriving,
    /// The process of this note runs the run.
    Owner(LockHolder),
}

/// Returns the process that runs the run now; on another machine, while its heartbeat is fresh.
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
            // If process states are unknown, the lock's holder is taken for the note's writer.
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

/// Returns how long to wait for a held lock. Looking up the owner holds it for a moment, too.
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

/// Describes the owner; the note of a dead process is not that of the lock's holder.
fn describe_living_owner(note: &LockNote) -> String {
    match note {
        LockNote::Readable(holder) if owner_state(note) != OwnerState::Dead => holder.to_string(),
        LockNote::Readable(_) | LockNote::Missing | LockNote::Unreadable(_) => {
            "another process".to_owned()
        }
    }
}

/// Describes an owner on another machine that may be alive.
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
