//! What is on disk, as a state: the newest good manifest, then the journal from there on. What contradicts itself is
//! refused. Nothing is written here.

use super::error::StoreError;
use super::journal::{End, Reader, Tip};
use super::layout::RunDir;
use super::manifest::{self, Found, Mark, Present};
use super::note::Note;
use super::opening::{Force, OpenStats};
use super::record_file;
use std::path::{Path, PathBuf};
use treebeam_core::event::Event;
use treebeam_core::state::{State, Unexpected};

/// The manifest on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// The event that it covers; 0 without one.
    pub(super) seq: u64,
    pub(super) bytes: u64,
    /// How long the journal was.
    pub(super) journal_length: u64,
    pub(super) present: Present,
}

/// What is on disk.
pub(super) struct Loaded {
    pub(super) state: State,
    pub(super) tip: Tip,
    /// The highest that was seen.
    pub(super) epoch: u64,
    pub(super) starts_at: u64,
    pub(super) checkpoint: Written,
    pub(super) source: Source,
    pub(super) notes: Vec<Note>,
    pub(super) stats: OpenStats,
}

/// What a run goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
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

/// Reads a run.
pub(super) fn load(run: &RunDir, force: Force) -> Result<Loaded, StoreError> {
    let mut notes = Vec::new();
    let path = run.journal();
    let names = [(run.manifest(), Present::Good), (run.previous_manifest(), Present::Unusable)];
    for (name, present) in names {
        let Some(base) = good_manifest(&name, present, &mut notes)? else { continue };
        match (record_file::is_there(&path), force) {
            (false, Force::No) => return Err(StoreError::JournalMissing { path }),
            (false, Force::Yes) => return Ok(from_manifest(base, notes, "missing")),
            (true, _) => match from_both(&path, base, force, &mut notes)? {
                Some(loaded) => return Ok(loaded),
                None => notes.push(Note::Late { path: name }),
            },
        }
    }
    if record_file::is_there(&path) {
        return from_journal(&path, notes);
    }
    let path = run.root().to_owned();
    Err(damaged_manifest(&notes).map_or(StoreError::NotARun { path }, |(path, why)| {
        StoreError::ManifestDamaged { path: path.clone(), why: why.clone() }
    }))
}

/// The newest manifest that is damaged, and what is wrong with it.
fn damaged_manifest(notes: &[Note]) -> Option<(&PathBuf, &String)> {
    notes.iter().find_map(|note| {
        if let Note::Damaged { path, why } = note { Some((path, why)) } else { None }
    })
}

/// The manifest of this name, or a note on what is wrong with it.
fn good_manifest(
    path: &Path,
    present: Present,
    notes: &mut Vec<Note>,
) -> Result<Option<Base>, StoreError> {
    let Some(found) = manifest::read(path)? else { return Ok(None) };
    let restored = found.and_then(|Found { facts, mark, bytes }| {
        let state = State::restore(facts).map_err(|error: Unexpected| error.to_string())?;
        Ok(Base { state, mark, bytes, present })
    });
    match restored {
        Ok(base) => Ok(Some(base)),
        Err(why) => {
            notes.push(Note::Damaged { path: path.to_owned(), why });
            Ok(None)
        }
    }
}

/// Reads a run from its journal alone.
pub(super) fn from_journal(path: &Path, notes: Vec<Note>) -> Result<Loaded, StoreError> {
    let mut reader = Reader::open(path)?;
    let Some(first) = reader.next_record()? else {
        let path = path.parent().unwrap_or(path).to_owned();
        return Err(StoreError::NotARun { path });
    };
    if first.seq != 1 {
        let damaged = damaged_manifest(&notes).map(|(_, why)| format!(" ({why})"));
        let damaged = damaged.unwrap_or_default();
        let why = format!(
            "the journal begins with event {}, and no manifest is good{damaged}",
            first.seq
        );
        return Err(reader.bad(why));
    }
    let Event::RunStarted(started) = &first.event else {
        return Err(reader.bad("the first event is not the start of a run".to_owned()));
    };
    let written = Written { seq: 0, bytes: 0, journal_length: 0, present: Present::Unusable };
    let stats = OpenStats { events_replayed: 1, ..OpenStats::default() };
    let loaded = Loaded {
        state: State::begin(started),
        tip: Tip { seq: 1, line: reader.last_line(), end: End::Clean, length: 0 },
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
        tip: Tip { seq: mark.seq, line: None, end: End::Clean, length: 0 },
        epoch: mark.epoch,
        starts_at: mark.seq + 1,
        checkpoint: Written { seq: mark.seq, bytes, journal_length: 0, present },
        source: Source::ManifestAlone,
        notes,
        stats: OpenStats { manifest_bytes: bytes, ..OpenStats::default() },
    }
}

/// The state of a manifest and of the journal after it. None: the journal knows nothing of what that manifest says.
fn from_both(
    path: &Path,
    base: Base,
    force: Force,
    notes: &mut Vec<Note>,
) -> Result<Option<Loaded>, StoreError> {
    let mark = base.mark;
    let reader = match find(path, mark)? {
        Place::At(reader) => *reader,
        Place::Overruled => return Ok(None),
        Place::Beyond if force == Force::Yes => {
            return Ok(Some(from_manifest(base, std::mem::take(notes), "too short")));
        }
        Place::Beyond => {
            let last = last_event(path)?;
            return Err(StoreError::JournalShort { path: path.to_owned(), last, seq: mark.seq });
        }
    };
    let Base { state, bytes, present, .. } = base;
    let journal_length = reader.position();
    let line = reader.last_line();
    let loaded = Loaded {
        state,
        tip: Tip { seq: mark.seq, line, end: End::Clean, length: journal_length },
        epoch: mark.epoch,
        starts_at: reader.last().map_or(mark.seq + 1, |_| mark.journal_starts_at),
        checkpoint: Written { seq: mark.seq, bytes, journal_length, present },
        source: Source::Journal,
        notes: std::mem::take(notes),
        stats: OpenStats { manifest_bytes: bytes, ..OpenStats::default() },
    };
    replay(reader, loaded).map(Some)
}

/// Where a manifest's event stands in the journal.
enum Place {
    /// Here: it was read, and what follows was not.
    At(Box<Reader>),
    /// After its end.
    Beyond,
    /// Where it stood, there is one of a later owner: the manifest's owner had lost the run.
    Overruled,
}

/// Finds a manifest's event: where the manifest says, or else from the journal's beginning on.
fn find(path: &Path, mark: Mark) -> Result<Place, StoreError> {
    if let Some(at) = mark.journal_line_at
        && let Ok(mut reader) = Reader::open_at(path, at)
        && let Ok(Some(record)) = reader.next_record()
        && record.seq == mark.seq
        && record.epoch <= mark.epoch
    {
        return Ok(Place::At(reader.into()));
    }
    let mut reader = Reader::open(path)?;
    let Some(first) = reader.next_record()? else {
        let fresh = mark.journal_starts_at > mark.seq;
        return Ok(if fresh { Place::At(reader.into()) } else { Place::Beyond });
    };
    if first.seq > mark.seq {
        return begins_after(path, &reader, first.seq, mark);
    }
    let mut last = first;
    while last.seq < mark.seq {
        let Some(record) = reader.next_record()? else { return Ok(Place::Beyond) };
        last = record;
    }
    // A manifest of version 1 knows no epoch, and its time knew no takeover.
    let overruled = last.epoch > mark.epoch && mark.epoch > 0;
    Ok(if overruled { Place::Overruled } else { Place::At(reader.into()) })
}

/// A journal that begins after the manifest's event may begin only right after it.
fn begins_after(path: &Path, reader: &Reader, first: u64, mark: Mark) -> Result<Place, StoreError> {
    if first == mark.seq + 1 {
        return Reader::open(path).map(|reader| Place::At(reader.into()));
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
    if let Some((seq, _)) = reader.last() {
        loaded.tip.seq = seq;
        loaded.tip.line = reader.last_line();
    }
    loaded.tip.end = reader.ending();
    loaded.tip.length = match loaded.tip.end {
        End::Torn(at) => at,
        End::Clean | End::Unended => reader.position(),
    };
    loaded.epoch = loaded.epoch.max(reader.highest_epoch());
    loaded.stats.journal_bytes_read = reader.bytes_read();
    if let End::Torn(at) = loaded.tip.end {
        loaded.notes.push(Note::Torn { at });
    }
    Ok(loaded)
}
