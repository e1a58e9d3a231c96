//! Builds a run's state from disk: the newest good manifest, then the journal from there on.
//! Refuses contradictions, and writes nothing.

use super::error::StoreError;
use super::journal::{AppendPoint, JournalEnd, JournalReader};
use super::layout::RunDir;
use super::lease::ForcePolicy;
use super::manifest::{self, FoundManifest, JournalMark, ManifestCondition};
use super::open_note::OpenNote;
use super::record_file;
use std::path::{Path, PathBuf};
use treebeam_core::event::Event;
use treebeam_core::state::{State, StateError};

/// The cost of opening a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenStats {
    /// Bytes of the manifest that was used.
    pub manifest_bytes: u64,
    /// Bytes of the journal that were read.
    pub journal_bytes_read: u64,
    /// Number of events that were applied.
    pub events_replayed: u64,
}

/// Facts about the manifest on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct ManifestOnDisk {
    /// Number of the last event that the manifest covers; 0 without one.
    pub(super) seq: u64,
    pub(super) bytes: u64,
    /// Length of the journal when the manifest was written.
    pub(super) journal_length: u64,
    pub(super) present: ManifestCondition,
}

/// A run as it was loaded from disk.
pub(super) struct LoadedRun {
    pub(super) state: State,
    pub(super) tip: AppendPoint,
    /// The highest epoch that was seen.
    pub(super) epoch: u64,
    pub(super) starts_at: u64,
    pub(super) checkpoint: ManifestOnDisk,
    pub(super) source: RunSource,
    pub(super) notes: Vec<OpenNote>,
    pub(super) stats: OpenStats,
}

/// The source from which a run is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunSource {
    /// The journal reaches at least as far as the manifest.
    Journal,
    /// The manifest alone: the journal does not reach as far, and the user forces it.
    ManifestAlone,
}

/// The state that a manifest holds.
struct ManifestBase {
    state: State,
    mark: JournalMark,
    bytes: u64,
    present: ManifestCondition,
}

/// Loads a run from its manifest and journal.
pub(super) fn load_run(run: &RunDir, force: ForcePolicy) -> Result<LoadedRun, StoreError> {
    let mut notes = Vec::new();
    let path = run.journal_path();
    let names = [
        (run.manifest_path(), ManifestCondition::Good),
        (run.previous_manifest_path(), ManifestCondition::Unusable),
    ];
    for (name, present) in names {
        let Some(base) = load_manifest(&name, present, &mut notes)? else { continue };
        match (record_file::has_file(&path), force) {
            (false, ForcePolicy::No) => return Err(StoreError::JournalMissing { path }),
            (false, ForcePolicy::Yes) => return Ok(load_from_manifest(base, notes, "missing")),
            (true, _) => match load_from_both(&path, base, force, &mut notes)? {
                Some(loaded) => return Ok(loaded),
                None => notes.push(OpenNote::Late { path: name }),
            },
        }
    }
    if record_file::has_file(&path) {
        return load_from_journal(&path, notes);
    }
    let path = run.root().to_owned();
    Err(find_damaged_manifest(&notes).map_or(StoreError::NotARun { path }, |(path, why)| {
        StoreError::ManifestDamaged { path: path.clone(), why: why.clone() }
    }))
}

/// Returns the path and the damage of the newest damaged manifest.
fn find_damaged_manifest(notes: &[OpenNote]) -> Option<(&PathBuf, &String)> {
    notes.iter().find_map(|note| {
        if let OpenNote::Damaged { path, why } = note { Some((path, why)) } else { None }
    })
}

/// Loads the manifest at a path, or adds a note on its damage.
fn load_manifest(
    path: &Path,
    present: ManifestCondition,
    notes: &mut Vec<OpenNote>,
) -> Result<Option<ManifestBase>, StoreError> {
    let Some(found) = manifest::read_manifest(path)? else { return Ok(None) };
    let restored = found.and_then(|FoundManifest { facts, mark, bytes }| {
        let state = State::from_facts(facts).map_err(|error: StateError| error.to_string())?;
        Ok(ManifestBase { state, mark, bytes, present })
    });
    match restored {
        Ok(base) => Ok(Some(base)),
        Err(why) => {
            notes.push(OpenNote::Damaged { path: path.to_owned(), why });
            Ok(None)
        }
    }
}

/// Loads a run from its journal alone.
pub(super) fn load_from_journal(
    path: &Path,
    notes: Vec<OpenNote>,
) -> Result<LoadedRun, StoreError> {
    let mut reader = JournalReader::open(path)?;
    let Some(first) = reader.next_record()? else {
        let path = path.parent().unwrap_or(path).to_owned();
        return Err(StoreError::NotARun { path });
    };
    if first.seq != 1 {
        let damaged = find_damaged_manifest(&notes).map(|(_, why)| format!(" ({why})"));
        let damaged = damaged.unwrap_or_default();
        let why = format!(
            "the journal begins with event {}, and no manifest is good{damaged}",
            first.seq
        );
        return Err(reader.bad_line(why));
    }
    let Event::RunStarted(started) = &first.event else {
        return Err(reader.bad_line("the first event is not the start of a run".to_owned()));
    };
    let written = ManifestOnDisk {
        seq: 0,
        bytes: 0,
        journal_length: 0,
        present: ManifestCondition::Unusable,
    };
    let stats = OpenStats { events_replayed: 1, ..OpenStats::default() };
    let loaded = LoadedRun {
        state: State::from_run_started(started),
        tip: AppendPoint { seq: 1, line: reader.last_line(), end: JournalEnd::Clean, length: 0 },
        epoch: 0,
        starts_at: 1,
        checkpoint: written,
        source: RunSource::Journal,
        notes,
        stats,
    };
    replay_rest(reader, loaded)
}

fn load_from_manifest(
    base: ManifestBase,
    mut notes: Vec<OpenNote>,
    journal_is: &'static str,
) -> LoadedRun {
    let ManifestBase { state, mark, bytes, present } = base;
    notes.push(OpenNote::ManifestAlone { journal_is, seq: mark.seq });
    LoadedRun {
        state,
        tip: AppendPoint { seq: mark.seq, line: None, end: JournalEnd::Clean, length: 0 },
        epoch: mark.epoch,
        starts_at: mark.seq + 1,
        checkpoint: ManifestOnDisk { seq: mark.seq, bytes, journal_length: 0, present },
        source: RunSource::ManifestAlone,
        notes,
        stats: OpenStats { manifest_bytes: bytes, ..OpenStats::default() },
    }
}

/// Loads a manifest and the journal after it. None if the journal overrules the manifest.
fn load_from_both(
    path: &Path,
    base: ManifestBase,
    force: ForcePolicy,
    notes: &mut Vec<OpenNote>,
) -> Result<Option<LoadedRun>, StoreError> {
    let mark = base.mark;
    let reader = match find_event(path, mark)? {
        EventPosition::At(reader) => *reader,
        EventPosition::Overruled => return Ok(None),
        EventPosition::Beyond if force == ForcePolicy::Yes => {
            return Ok(Some(load_from_manifest(base, std::mem::take(notes), "too short")));
        }
        EventPosition::Beyond => {
            let last = last_event_number(path)?;
            return Err(StoreError::JournalShort { path: path.to_owned(), last, seq: mark.seq });
        }
    };
    let ManifestBase { state, bytes, present, .. } = base;
    let journal_length = reader.position();
    let line = reader.last_line();
    let loaded = LoadedRun {
        state,
        tip: AppendPoint { seq: mark.seq, line, end: JournalEnd::Clean, length: journal_length },
        epoch: mark.epoch,
        starts_at: reader.last_position().map_or(mark.seq + 1, |_| mark.journal_starts_at),
        checkpoint: ManifestOnDisk { seq: mark.seq, bytes, journal_length, present },
        source: RunSource::Journal,
        notes: std::mem::take(notes),
        stats: OpenStats { manifest_bytes: bytes, ..OpenStats::default() },
    };
    replay_rest(reader, loaded).map(Some)
}

/// Position of a manifest's event in the journal.
enum EventPosition {
    /// The event was found; the reader stands after it.
    At(Box<JournalReader>),
    /// The event is after the journal's end.
    Beyond,
    /// The position holds an event of a later owner: the manifest's owner had lost the run.
    Overruled,
}

/// Finds a manifest's event: at the manifest's offset, or else from the journal's start.
fn find_event(path: &Path, mark: JournalMark) -> Result<EventPosition, StoreError> {
    if let Some(at) = mark.journal_line_at
        && let Ok(mut reader) = JournalReader::open_at(path, at)
        && let Ok(Some(record)) = reader.next_record()
        && record.seq == mark.seq
        && record.epoch <= mark.epoch
    {
        return Ok(EventPosition::At(reader.into()));
    }
    let mut reader = JournalReader::open(path)?;
    let Some(first) = reader.next_record()? else {
        let fresh = mark.journal_starts_at > mark.seq;
        return Ok(if fresh { EventPosition::At(reader.into()) } else { EventPosition::Beyond });
    };
    if first.seq > mark.seq {
        return check_journal_start(path, &reader, first.seq, mark);
    }
    let mut last = first;
    while last.seq < mark.seq {
        let Some(record) = reader.next_record()? else { return Ok(EventPosition::Beyond) };
        last = record;
    }
    // A manifest of version 1 has no epoch, and there were no takeovers at its time.
    let overruled = last.epoch > mark.epoch && mark.epoch > 0;
    Ok(if overruled { EventPosition::Overruled } else { EventPosition::At(reader.into()) })
}

/// Checks a journal that begins after the manifest's event: it must begin right after it.
fn check_journal_start(
    path: &Path,
    reader: &JournalReader,
    first: u64,
    mark: JournalMark,
) -> Result<EventPosition, StoreError> {
    if first == mark.seq + 1 {
        return JournalReader::open(path).map(|reader| EventPosition::At(reader.into()));
    }
    Err(reader.bad_line(format!(
        "the journal begins with event {first}, the manifest ends with event {}",
        mark.seq
    )))
}

fn last_event_number(path: &Path) -> Result<u64, StoreError> {
    let mut reader = JournalReader::open(path)?;
    while reader.next_record()?.is_some() {}
    Ok(reader.last_position().map_or(0, |(seq, _)| seq))
}

/// Applies the rest of the journal to a loaded run.
fn replay_rest(mut reader: JournalReader, mut loaded: LoadedRun) -> Result<LoadedRun, StoreError> {
    while let Some(record) = reader.next_record()? {
        loaded.state.apply(&record.event).map_err(|source| StoreError::Contradiction {
            path: reader.path().to_owned(),
            line: reader.line_number(),
            source,
        })?;
        loaded.stats.events_replayed += 1;
    }
    if let Some((seq, _)) = reader.last_position() {
        loaded.tip.seq = seq;
        loaded.tip.line = reader.last_line();
    }
    loaded.tip.end = reader.journal_end();
    loaded.tip.length = match loaded.tip.end {
        JournalEnd::Torn(at) => at,
        JournalEnd::Clean | JournalEnd::Unended => reader.position(),
    };
    loaded.epoch = loaded.epoch.max(reader.highest_epoch());
    loaded.stats.journal_bytes_read = reader.bytes_read();
    if let JournalEnd::Torn(at) = loaded.tip.end {
        loaded.notes.push(OpenNote::Torn { at });
    }
    Ok(loaded)
}
