//! Creates and opens runs, to read or to run them, and writes the record of a run that this process
//! runs. The state is built from disk in `loading`.

use super::atomic_file;
use super::error::StoreError;
use super::journal::JournalWriter;
use super::journal_guard::{JournalCondition, has_later_epoch};
use super::layout::{RUN_FOLDERS, RunDir};
use super::lease::{self, ForcePolicy, Lease, LeaseFence, LockedRun, RunClaim, WaitBoard};
use super::loading::{
    LoadedRun, ManifestOnDisk, OpenStats, RunSource, load_from_journal, load_run,
};
use super::manifest::{self, JournalMark, ManifestCondition};
use super::open_note::OpenNote;
use super::record_file;
use super::unnamed_run;
use jiff::Timestamp;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use treebeam_core::event::{Event, RunStarted};
use treebeam_core::state::State;
use treebeam_run::port::{CheckpointKind, Journal, JournalTip, PortError};

/// Growth of the journal after which a new manifest is worth its cost.
const MIN_CHECKPOINT_TAIL_BYTES: u64 = 64 * 1024;
/// Time for a process that has copied a journal to record the takeover of its run.
const TAKEOVER_RECORD_PATIENCE: Duration = Duration::from_secs(2);

/// A run that was opened for reading.
#[derive(Debug)]
pub struct OpenedRun {
    /// Directory of the run.
    pub run: RunDir,
    /// State of the run.
    pub state: State,
    /// Number of the last event.
    pub seq: u64,
    /// Notes for the user.
    pub notes: Vec<OpenNote>,
    /// The cost of opening the run.
    pub stats: OpenStats,
}

/// Opens a run for reading, without a lock. Writes nothing; another process may go on writing.
///
/// # Errors
/// When there is no run, or it is damaged.
pub fn open_to_read(run: &RunDir) -> Result<OpenedRun, StoreError> {
    let LoadedRun { state, tip, notes, stats, .. } = load_run(run, ForcePolicy::No)?;
    Ok(OpenedRun { run: run.clone(), state, seq: tip.seq, notes, stats })
}

/// Replays a run's journal from its first event on, as if there were no manifest. Writes nothing.
///
/// # Errors
/// When there is no journal, it is damaged, or it does not begin with the start of the run.
pub fn replay_journal(run: &RunDir) -> Result<OpenedRun, StoreError> {
    let LoadedRun { state, tip, notes, stats, .. } =
        load_from_journal(&run.journal_path(), Vec::new())?;
    Ok(OpenedRun { run: run.clone(), state, seq: tip.seq, notes, stats })
}

/// A run that this process runs.
#[derive(Debug)]
pub struct RunStore {
    run: RunDir,
    journal: JournalWriter,
    starts_at: u64,
    checkpoint: ManifestOnDisk,
    takeover: Option<Event>,
    lease: Lease,
    repair: JournalRepair,
}

/// Damage of its journal that this process has noticed.
#[derive(Debug, Default)]
struct JournalRepair {
    /// The journal was put back, and that is not recorded yet.
    is_restored: bool,
    /// The journal was cut or changed; it is left as it is.
    is_changed: bool,
    /// Another file has the journal's name.
    is_replaced: bool,
}

impl JournalRepair {
    /// Notes the result of putting back a journal that had lost its name. After a failure the
    /// journal is lost when this process ends: only the manifest can keep what was recorded.
    fn note_restoration(
        &mut self,
        path: PathBuf,
        put_back: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Err(error) = put_back else {
            self.is_restored = true;
            return Ok(());
        };
        let is_taken = |source: &io::Error| source.kind() == ErrorKind::AlreadyExists;
        if matches!(&error, StoreError::Io { source, .. } if is_taken(source)) {
            self.is_replaced = true;
        } else {
            self.is_changed = true;
        }
        let why = format!("it was removed or renamed: {}", PortError::from(error).full_text());
        Err(StoreError::JournalChanged { path, why })
    }
}

/// How a process comes to own a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunEntry {
    /// The process made the run, and stays in its first epoch.
    Made,
    /// The process found an existing run.
    Found,
}

impl RunStore {
    /// Creates a run with its first event. The directory gets its name once that is durable.
    ///
    /// # Errors
    /// When the name is taken, or the disk refuses.
    pub fn create(runs_root: &Path, started: &RunStarted) -> Result<(Self, State), StoreError> {
        let run = RunDir::from_run_id(runs_root, &started.run);
        let path = run.root().to_owned();
        if path.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { path });
        }
        unnamed_run::remove_abandoned(runs_root);
        let new = unnamed_run::unnamed_run_dir(runs_root, &started.run);
        drop(fs::remove_dir_all(new.root()));
        if let Err(error) = fill_new_run(&new, started).and_then(|()| name_new_run(&new, path)) {
            drop(fs::remove_dir_all(new.root()));
            return Err(error);
        }
        atomic_file::sync_dir(runs_root).map_err(StoreError::io("sync", runs_root))?;
        Self::enter_run(&run, ForcePolicy::No.into(), RunEntry::Made)
            .map(|(store, state, _)| (store, state))
    }

    /// Opens a run to continue it, with notes for the user.
    ///
    /// # Errors
    /// When another process runs the run, there is no run, or it is damaged.
    pub fn open_to_run(
        run: &RunDir,
        claim: impl Into<RunClaim>,
    ) -> Result<(Self, State, Vec<OpenNote>), StoreError> {
        let files = [run.journal_path(), run.manifest_path(), run.previous_manifest_path()];
        if !files.iter().any(|file| record_file::has_file(file)) {
            return Err(StoreError::NotARun { path: run.root().to_owned() });
        }
        Self::enter_run(run, claim.into(), RunEntry::Found)
    }

    fn enter_run(
        run: &RunDir,
        claim: RunClaim,
        entry: RunEntry,
    ) -> Result<(Self, State, Vec<OpenNote>), StoreError> {
        let taken = LockedRun::take_lock(run, claim)?;
        for folder in [run.root().to_owned(), run.inbox_path()] {
            atomic_file::clear_unfinished_files(&folder)
                .map_err(StoreError::io("clear", &folder))?;
        }
        let mut loaded = load_run(run, claim.force)?;
        let (takeover, company) = (taken.takeover_event(), taken.has_possible_writer());
        let epoch = match entry {
            RunEntry::Made if takeover.is_none() => loaded.epoch,
            RunEntry::Made | RunEntry::Found => taken.epoch_after(loaded.epoch),
        };
        let mut announced = taken.announce(epoch)?;
        let mut journal = if company {
            // Writes before the announcement was visible count; later ones do not.
            loaded = load_run(run, claim.force)?;
            resume_journal_copy(run, announced.raise_epoch_above(loaded.epoch)?, &loaded)?
        } else {
            resume_journal(run, epoch, &loaded)?
        };
        if let Some(event) = &takeover {
            record_takeover(event, &mut journal, &mut loaded)?;
        }
        let lease = announced.into_lease(journal.file())?;
        let LoadedRun { state, checkpoint, starts_at, source, notes, .. } = loaded;
        let run = run.clone();
        let repair = JournalRepair::default();
        let mut store = Self { run, journal, starts_at, checkpoint, takeover, lease, repair };
        if source == RunSource::ManifestAlone {
            store.write_manifest(&state)?;
        }
        Ok((store, state, notes))
    }

    /// Returns the directory of the run.
    #[must_use]
    pub fn run_dir(&self) -> &RunDir {
        &self.run
    }

    /// Returns the number of this opening of the run, which messages to its owner name.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.journal.epoch()
    }

    /// Returns the takeover event of this opening, if the previous owner did not leave cleanly.
    #[must_use]
    pub fn takeover(&self) -> Option<&Event> {
        self.takeover.as_ref()
    }

    /// Checks that this process still has the run; to be called before each write.
    ///
    /// # Errors
    /// When another process has taken the run.
    pub fn check_ownership(&self) -> Result<(), StoreError> {
        self.lease.check_ownership()
    }

    /// Returns a handle for ownership checks outside of this store.
    #[must_use]
    pub fn fence(&self) -> LeaseFence {
        self.lease.fence()
    }

    /// Returns the handle for publishing which agent questions wait.
    #[must_use]
    pub fn wait_board(&self) -> WaitBoard {
        self.lease.wait_board()
    }

    fn write_manifest(&mut self, state: &State) -> Result<(), StoreError> {
        if self.journal.is_broken() {
            return Err(StoreError::Broken { path: self.run.journal_path() });
        }
        self.check_ownership()?;
        let mark = JournalMark {
            seq: self.journal.seq(),
            epoch: self.journal.epoch(),
            journal_starts_at: self.starts_at,
            journal_line_at: self.journal.last_line().map(|line| line.at),
        };
        self.write_manifest_at(state, mark)
    }

    fn write_manifest_at(&mut self, state: &State, mark: JournalMark) -> Result<(), StoreError> {
        let bytes = manifest::write_manifest(&self.run, state, mark, self.checkpoint.present)?;
        let (seq, journal_length) = (mark.seq, self.journal.length());
        self.checkpoint =
            ManifestOnDisk { seq, bytes, journal_length, present: ManifestCondition::Good };
        Ok(())
    }

    /// Compares the journal with what was written, and puts back one that was removed or renamed.
    fn examine_journal(&mut self) -> Result<(), StoreError> {
        let ours = self.check_ownership();
        self.repair.is_replaced |= matches!(ours, Err(StoreError::JournalChanged { .. }));
        ours?;
        match self.journal.check_condition()? {
            JournalCondition::Intact => Ok(()),
            JournalCondition::Nameless => {
                let Self { journal, lease, .. } = self;
                let put_back = lease.replace_journal(|| {
                    journal.restore_name()?;
                    Ok(journal.file())
                });
                self.repair.note_restoration(self.run.journal_path(), put_back)
            }
            JournalCondition::Changed(why) => {
                self.repair.is_changed = true;
                Err(StoreError::JournalChanged { path: self.run.journal_path(), why })
            }
        }
    }

    /// Returns true if a process of another host has taken the run. It waits as long as that
    /// process may need to record the takeover after copying the journal.
    fn is_taken_over(&self) -> bool {
        thread::sleep(TAKEOVER_RECORD_PATIENCE);
        let note = lease::find_holder(&self.run);
        note.is_some_and(|holder| holder.epoch > self.epoch())
            || has_later_epoch(&self.run.journal_path(), self.epoch())
    }

    fn is_checkpoint_due(&self, moment: CheckpointKind) -> bool {
        let tail = self.journal.length().saturating_sub(self.checkpoint.journal_length);
        match moment {
            CheckpointKind::DepthClosed => {
                tail >= MIN_CHECKPOINT_TAIL_BYTES.max(self.checkpoint.bytes / 2)
            }
            CheckpointKind::End => {
                let ManifestOnDisk { seq, present, .. } = self.checkpoint;
                self.journal.seq() != seq || present == ManifestCondition::Unusable
            }
        }
    }
}

impl Journal for RunStore {
    fn append(&mut self, events: &[Event]) -> Result<(), PortError> {
        self.examine_journal()?;
        self.journal.append(events)?;
        self.lease.beat_soon();
        Ok(())
    }

    fn check_integrity(&mut self) -> Result<Option<Event>, PortError> {
        self.examine_journal()?;
        let is_restored = std::mem::take(&mut self.repair.is_restored);
        Ok(is_restored.then(|| Event::JournalRestored { at: Timestamp::now() }))
    }

    fn last_line(&self) -> Option<JournalTip> {
        let digest = self.journal.last_line()?.digest;
        Some(JournalTip { seq: self.journal.seq(), digest })
    }

    fn rescue_state(&mut self, state: &State, unwritten: usize) -> Result<(), PortError> {
        let JournalRepair { is_changed, is_replaced, .. } = self.repair;
        let is_ours = is_changed || (is_replaced && !self.is_taken_over());
        if !is_ours {
            return Ok(());
        }
        let mark = JournalMark {
            seq: self.journal.seq() + u64::try_from(unwritten).unwrap_or(u64::MAX),
            epoch: self.journal.epoch(),
            journal_starts_at: self.starts_at,
            journal_line_at: None,
        };
        Ok(self.write_manifest_at(state, mark)?)
    }

    fn write_checkpoint(&mut self, state: &State, moment: CheckpointKind) -> Result<(), PortError> {
        if self.is_checkpoint_due(moment) {
            self.write_manifest(state)?;
        }
        Ok(())
    }
}

/// Renames a directory to become a run, unless another run has the name.
fn name_new_run(new: &RunDir, path: PathBuf) -> Result<(), StoreError> {
    let taken = [ErrorKind::AlreadyExists, ErrorKind::DirectoryNotEmpty];
    match fs::rename(new.root(), &path) {
        Err(error) if taken.contains(&error.kind()) => Err(StoreError::Exists { path }),
        named => named.map_err(StoreError::io("create", &path)),
    }
}

/// Fills a new run's directory.
fn fill_new_run(new: &RunDir, started: &RunStarted) -> Result<(), StoreError> {
    for folder in [""].iter().chain(&RUN_FOLDERS) {
        let path = new.root().join(folder);
        fs::create_dir_all(&path).map_err(StoreError::io("create", &path))?;
    }
    let mut journal = JournalWriter::create(&new.journal_path(), 1, 0)?;
    journal.append(&[Event::RunStarted(Box::new(started.clone()))])?;
    atomic_file::sync_dir(new.root()).map_err(StoreError::io("sync", new.root()))
}

/// Resumes the journal when no other process can write to it.
fn resume_journal(
    run: &RunDir,
    epoch: u64,
    loaded: &LoadedRun,
) -> Result<JournalWriter, StoreError> {
    match loaded.source {
        RunSource::Journal => JournalWriter::resume(&run.journal_path(), epoch, loaded.tip),
        RunSource::ManifestAlone => start_new_journal(&run.journal_path(), epoch, loaded.tip.seq),
    }
}

/// Resumes a copy of the journal when another process may still be writing to the original.
fn resume_journal_copy(
    run: &RunDir,
    epoch: u64,
    loaded: &LoadedRun,
) -> Result<JournalWriter, StoreError> {
    match loaded.source {
        RunSource::Journal => JournalWriter::resume_on_copy(&run.journal_path(), epoch, loaded.tip),
        RunSource::ManifestAlone => start_new_journal(&run.journal_path(), epoch, loaded.tip.seq),
    }
}

/// Records a takeover, before any other event of its epoch.
fn record_takeover(
    event: &Event,
    journal: &mut JournalWriter,
    loaded: &mut LoadedRun,
) -> Result<(), StoreError> {
    journal.append(std::slice::from_ref(event))?;
    let (path, line) = (journal.path().to_owned(), journal.seq());
    let applied = loaded.state.apply(event);
    applied.map_err(|source| StoreError::Contradiction { path, line, source })?;
    if let Event::LockTakenOver { from, because, .. } = event {
        loaded.notes.push(OpenNote::TakenOver { from: from.clone(), because: *because });
    }
    Ok(())
}

/// Sets aside a journal that ends too early, and creates another.
fn start_new_journal(path: &Path, epoch: u64, seq: u64) -> Result<JournalWriter, StoreError> {
    if path.exists() {
        let aside = path.with_extension(format!("jsonl.before-{}", seq + 1));
        fs::rename(path, &aside).map_err(StoreError::io("set aside", path))?;
    }
    JournalWriter::create(path, epoch, seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::policy::{FixedSettings, RunLimits};
    use treebeam_testkit::journal::MemoryJournal;

    #[test]
    fn what_was_in_a_journal_that_cannot_be_put_back_is_kept_in_the_manifest() {
        for kind in [ErrorKind::StorageFull, ErrorKind::AlreadyExists] {
            let root = tempfile::tempdir().expect("a folder");
            let mut events =
                MemoryJournal::begun(FixedSettings::default(), RunLimits::default()).events;
            let Some(Event::RunStarted(started)) = events.pop() else { panic!("no start") };
            let (mut store, state) = RunStore::create(root.path(), &started).expect("a run");
            let journal = store.run.journal_path();
            fs::remove_file(&journal).expect("to remove it");
            store.rescue_state(&state, 0).expect("nothing to do");
            assert!(
                !store.run.manifest_path().exists(),
                "{kind}: nothing is known to be wrong yet"
            );
            let error = StoreError::io("put back", &journal)(kind.into());
            let error = store.repair.note_restoration(journal, Err(error)).expect_err("an error");
            assert!(error.hint().is_some_and(|hint| hint.contains("--force")), "{kind}");
            assert!(error.to_string().contains("cannot put back `"), "{error}");
            store.rescue_state(&state, 0).expect("to write the manifest");
            assert!(store.run.manifest_path().is_file(), "{kind}");
        }
    }
}
