//! Creating and opening a run: the newest good manifest, then the journal from there on. What contradicts itself is refused.

use super::durable;
use super::error::StoreError;
use super::journal::{End, Reader, Tip, Writer};
use super::layout::{FOLDERS, RunDir};
use super::lease::Lease;
use super::manifest::{self, Found, Mark, Present};
use super::note::Note;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use treebeam_core::event::{Event, RunStarted};
use treebeam_core::state::{State, Unexpected};
use treebeam_run::port::{Checkpoint, Journal, PortError};

/// The journal may grow by this much before a manifest is worth its while.
const TAIL: u64 = 64 * 1024;

/// Whether to go on from a manifest whose journal is missing or too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Refuse.
    No,
    /// Go on; the old journal is set aside.
    Yes,
}

/// How much opening a run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenStats {
    /// Bytes of the manifest that was used.
    pub manifest_bytes: u64,
    /// Bytes of the journal that were read.
    pub journal_bytes_read: u64,
    /// Events that were applied.
    pub events_replayed: u64,
}

/// A run that was opened to be read.
#[derive(Debug)]
pub struct Opened {
    /// Where it lies.
    pub run: RunDir,
    /// Its state.
    pub state: State,
    /// The last event.
    pub seq: u64,
    /// What a person should know.
    pub notes: Vec<Note>,
    /// What it cost.
    pub stats: OpenStats,
}

/// Opens a run without a lock. Nothing is written; another process may go on writing.
///
/// # Errors
/// When there is no run, or it is damaged.
pub fn open_to_read(run: &RunDir) -> Result<Opened, StoreError> {
    let Loaded { state, tip, notes, stats, .. } = load(run, Force::No)?;
    Ok(Opened { run: run.clone(), state, seq: tip.seq, notes, stats })
}

/// Replays a run's journal from its first event on, as if there were no manifest. Nothing is written.
///
/// # Errors
/// When there is no journal, it is damaged, or it does not begin with the start of the run.
pub fn replay_journal(run: &RunDir) -> Result<Opened, StoreError> {
    let Loaded { state, tip, notes, stats, .. } = from_journal(&run.journal(), Vec::new())?;
    Ok(Opened { run: run.clone(), state, seq: tip.seq, notes, stats })
}

/// A run that this process runs.
#[derive(Debug)]
pub struct Store {
    run: RunDir,
    journal: Writer,
    starts_at: u64,
    checkpoint: Written,
    _lease: Lease,
}

/// The manifest on disk.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// The event that it covers; 0 without one.
    seq: u64,
    bytes: u64,
    /// How long the journal was.
    journal_length: u64,
    present: Present,
}

impl Store {
    /// Makes a run with its first event. It has its name only once that is on disk.
    ///
    /// # Errors
    /// When the name is taken, or the disk refuses.
    pub fn create(runs_root: &Path, started: &RunStarted) -> Result<(Self, State), StoreError> {
        let run = RunDir::of(runs_root, &started.run);
        let path = run.root().to_owned();
        if path.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { path });
        }
        let new =
            RunDir::new(runs_root.join(format!(".new-{}-{}", started.run, std::process::id())));
        drop(fs::remove_dir_all(new.root()));
        if let Err(error) = furnish(&new, started).and_then(|()| give_name(&new, path)) {
            drop(fs::remove_dir_all(new.root()));
            return Err(error);
        }
        durable::sync_dir(runs_root).map_err(StoreError::io("sync", runs_root))?;
        let lease = Lease::take(&run)?;
        let loaded = load(&run, Force::No)?;
        let epoch = loaded.epoch;
        Self::assemble(run, lease, loaded, epoch).map(|(store, state, _)| (store, state))
    }

    /// Opens a run to go on with it, with what a person should know.
    ///
    /// # Errors
    /// When another process runs it, there is no run, or it is damaged.
    pub fn open_to_run(run: &RunDir, force: Force) -> Result<(Self, State, Vec<Note>), StoreError> {
        let files = [run.journal(), run.manifest(), run.previous_manifest()];
        if !files.iter().any(|file| file.is_file()) {
            return Err(StoreError::NotARun { path: run.root().to_owned() });
        }
        let lease = Lease::take(run)?;
        durable::remove_unfinished(run.root()).map_err(StoreError::io("clear", run.root()))?;
        let loaded = load(run, force)?;
        let epoch = loaded.epoch + 1;
        Self::assemble(run.clone(), lease, loaded, epoch)
    }

    fn assemble(
        run: RunDir,
        lease: Lease,
        loaded: Loaded,
        epoch: u64,
    ) -> Result<(Self, State, Vec<Note>), StoreError> {
        let Loaded { state, tip, checkpoint, starts_at, source, notes, .. } = loaded;
        let path = run.journal();
        let journal = match source {
            Source::Journal => Writer::resume(&path, epoch, tip)?,
            Source::ManifestAlone => start_over(&path, epoch, tip.seq)?,
        };
        let mut store = Self { run, journal, starts_at, checkpoint, _lease: lease };
        if source == Source::ManifestAlone {
            store.write_manifest(&state)?;
        }
        Ok((store, state, notes))
    }

    /// Where the run lies.
    #[must_use]
    pub fn run(&self) -> &RunDir {
        &self.run
    }

    fn write_manifest(&mut self, state: &State) -> Result<(), StoreError> {
        if self.journal.is_broken() {
            return Err(StoreError::Broken { path: self.run.journal() });
        }
        let mark = Mark {
            seq: self.journal.seq(),
            epoch: self.journal.epoch(),
            journal_starts_at: self.starts_at,
            journal_line_at: self.journal.line_at(),
        };
        let bytes = manifest::write(&self.run, state, mark, self.checkpoint.present)?;
        let (seq, journal_length) = (mark.seq, self.journal.length());
        self.checkpoint = Written { seq, bytes, journal_length, present: Present::Good };
        Ok(())
    }

    fn is_due(&self, moment: Checkpoint) -> bool {
        let tail = self.journal.length().saturating_sub(self.checkpoint.journal_length);
        match moment {
            Checkpoint::DepthClosed => tail >= TAIL.max(self.checkpoint.bytes / 2),
            Checkpoint::End => {
                let Written { seq, present, .. } = self.checkpoint;
                self.journal.seq() != seq || present == Present::Unusable
            }
        }
    }
}

impl Journal for Store {
    fn append(&mut self, events: &[Event]) -> Result<(), PortError> {
        Ok(self.journal.append(events)?)
    }

    fn checkpoint(&mut self, state: &State, moment: Checkpoint) -> Result<(), PortError> {
        if self.is_due(moment) {
            self.write_manifest(state)?;
        }
        Ok(())
    }
}

/// Turns a directory into a run, unless another one got the name first.
fn give_name(new: &RunDir, path: PathBuf) -> Result<(), StoreError> {
    let taken = [ErrorKind::AlreadyExists, ErrorKind::DirectoryNotEmpty];
    match fs::rename(new.root(), &path) {
        Err(error) if taken.contains(&error.kind()) => Err(StoreError::Exists { path }),
        named => named.map_err(StoreError::io("create", &path)),
    }
}

/// Fills a new run's directory.
fn furnish(new: &RunDir, started: &RunStarted) -> Result<(), StoreError> {
    for folder in [""].iter().chain(&FOLDERS) {
        let path = new.root().join(folder);
        fs::create_dir_all(&path).map_err(StoreError::io("create", &path))?;
    }
    let mut journal = Writer::create(&new.journal(), 1, 0)?;
    journal.append(&[Event::RunStarted(Box::new(started.clone()))])?;
    durable::sync_dir(new.root()).map_err(StoreError::io("sync", new.root()))
}

/// Sets a journal aside that ends too early, and begins another.
fn start_over(path: &Path, epoch: u64, seq: u64) -> Result<Writer, StoreError> {
    if path.exists() {
        let aside = path.with_extension(format!("jsonl.before-{}", seq + 1));
        fs::rename(path, &aside).map_err(StoreError::io("set aside", path))?;
    }
    Writer::create(path, epoch, seq)
}

/// What is on disk.
struct Loaded {
    state: State,
    tip: Tip,
    epoch: u64,
    starts_at: u64,
    checkpoint: Written,
    source: Source,
    notes: Vec<Note>,
    stats: OpenStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The journal reaches at least as far as the manifest.
    Journal,
    /// It does not, and the manifest is to do.
    ManifestAlone,
}

/// The state that a manifest holds.
struct Base {
    state: State,
    mark: Mark,
    bytes: u64,
    present: Present,
}

fn load(run: &RunDir, force: Force) -> Result<Loaded, StoreError> {
    let mut notes = Vec::new();
    let base = newest_manifest(run, &mut notes)?;
    let path = run.journal();
    match (base, path.is_file(), force) {
        (None, false, _) => Err(StoreError::NotARun { path: run.root().to_owned() }),
        (None, true, _) => from_journal(&path, notes),
        (Some(_), false, Force::No) => Err(StoreError::JournalMissing { path }),
        (Some(base), false, Force::Yes) => Ok(from_manifest(base, notes, "missing")),
        (Some(base), true, _) => from_both(&path, base, force, notes),
    }
}

/// The newest manifest that is good, and a note on each that is not.
fn newest_manifest(run: &RunDir, notes: &mut Vec<Note>) -> Result<Option<Base>, StoreError> {
    let names = [(run.manifest(), Present::Good), (run.previous_manifest(), Present::Unusable)];
    for (path, present) in names {
        let Some(found) = manifest::read(&path)? else { continue };
        let restored = found.and_then(|Found { facts, mark, bytes }| {
            let state = State::restore(facts).map_err(|error: Unexpected| error.to_string())?;
            Ok(Base { state, mark, bytes, present })
        });
        match restored {
            Ok(base) => return Ok(Some(base)),
            Err(why) => notes.push(Note::Damaged { path, why }),
        }
    }
    Ok(None)
}

fn from_journal(path: &Path, notes: Vec<Note>) -> Result<Loaded, StoreError> {
    let mut reader = Reader::open(path)?;
    let Some(first) = reader.next_record()? else {
        let path = path.parent().unwrap_or(path).to_owned();
        return Err(StoreError::NotARun { path });
    };
    if first.seq != 1 {
        let why = format!("the journal begins with event {}, and no manifest is good", first.seq);
        return Err(reader.bad(why));
    }
    let Event::RunStarted(started) = &first.event else {
        return Err(reader.bad("the first event is not the start of a run".to_owned()));
    };
    let written = Written { seq: 0, bytes: 0, journal_length: 0, present: Present::Unusable };
    let stats = OpenStats { events_replayed: 1, ..OpenStats::default() };
    let loaded = Loaded {
        state: State::begin(started),
        tip: Tip { seq: 1, line_at: Some(0), end: End::Clean },
        epoch: 0,
        starts_at: 1,
        checkpoint: written,
        source: Source::Journal,
        notes,
        stats,
    };
    replay(reader, loaded)
}

fn from_manifest(base: Base, mut notes: Vec<Note>, journal_is: &'static str) -> Loaded {
    let Base { state, mark, bytes, present } = base;
    notes.push(Note::ManifestAlone { journal_is, seq: mark.seq });
    Loaded {
        state,
        tip: Tip { seq: mark.seq, line_at: None, end: End::Clean },
        epoch: mark.epoch,
        starts_at: mark.seq + 1,
        checkpoint: Written { seq: mark.seq, bytes, journal_length: 0, present },
        source: Source::ManifestAlone,
        notes,
        stats: OpenStats { manifest_bytes: bytes, ..OpenStats::default() },
    }
}

fn from_both(
    path: &Path,
    base: Base,
    force: Force,
    notes: Vec<Note>,
) -> Result<Loaded, StoreError> {
    let mark = base.mark;
    let Some(reader) = at_mark(path, mark)? else {
        if force == Force::Yes {
            return Ok(from_manifest(base, notes, "too short"));
        }
        let last = last_event(path)?;
        return Err(StoreError::JournalShort { path: path.to_owned(), last, seq: mark.seq });
    };
    let Base { state, bytes, present, .. } = base;
    let journal_length = reader.position();
    let loaded = Loaded {
        state,
        tip: Tip { seq: mark.seq, line_at: reader.last().map(|(_, at)| at), end: End::Clean },
        epoch: mark.epoch,
        starts_at: reader.last().map_or(mark.seq + 1, |_| mark.journal_starts_at),
        checkpoint: Written { seq: mark.seq, bytes, journal_length, present },
        source: Source::Journal,
        notes,
        stats: OpenStats { manifest_bytes: bytes, ..OpenStats::default() },
    };
    replay(reader, loaded)
}

/// The journal, read up to the manifest's event. None: it ends before.
fn at_mark(path: &Path, mark: Mark) -> Result<Option<Reader>, StoreError> {
    if let Some(at) = mark.journal_line_at
        && let Ok(mut reader) = Reader::open_at(path, at)
        && let Ok(Some(record)) = reader.next_record()
        && record.seq == mark.seq
    {
        return Ok(Some(reader));
    }
    let mut reader = Reader::open(path)?;
    let Some(first) = reader.next_record()? else {
        return Ok((mark.journal_starts_at > mark.seq).then_some(reader));
    };
    if first.seq > mark.seq {
        return begins_after(path, &reader, first.seq, mark);
    }
    let mut last = first.seq;
    while last < mark.seq {
        let Some(record) = reader.next_record()? else { return Ok(None) };
        last = record.seq;
    }
    Ok(Some(reader))
}

/// A journal that begins after the manifest's event may begin only right after it.
fn begins_after(
    path: &Path,
    reader: &Reader,
    first: u64,
    mark: Mark,
) -> Result<Option<Reader>, StoreError> {
    if first == mark.seq + 1 {
        return Reader::open(path).map(Some);
    }
    Err(reader.bad(format!(
        "the journal begins with event {first}, the manifest ends with event {}",
        mark.seq
    )))
}

fn last_event(path: &Path) -> Result<u64, StoreError> {
    let mut reader = Reader::open(path)?;
    while reader.next_record()?.is_some() {}
    Ok(reader.last().map_or(0, |(seq, _)| seq))
}

/// Applies the rest of the journal.
fn replay(mut reader: Reader, mut loaded: Loaded) -> Result<Loaded, StoreError> {
    while let Some(record) = reader.next_record()? {
        loaded.state.apply(&record.event).map_err(|source| StoreError::Contradiction {
            path: reader.path().to_owned(),
            line: reader.line_number(),
            source,
        })?;
        loaded.stats.events_replayed += 1;
    }
    if let Some((seq, line_at)) = reader.last() {
        loaded.tip.seq = seq;
        loaded.tip.line_at = Some(line_at);
    }
    loaded.tip.end = reader.ending();
    loaded.epoch = loaded.epoch.max(reader.highest_epoch());
    loaded.stats.journal_bytes_read = reader.bytes_read();
    if let End::Torn(at) = loaded.tip.end {
        loaded.notes.push(Note::Torn { at });
    }
    Ok(loaded)
}
