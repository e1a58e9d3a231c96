//! Measures the opening of a long run, against merely parsing the same bytes as JSON.

use crate::gauge::{self, median, number};
use crate::search::{DEEP_SHAPE, search_in};
use crate::{Outcome, row};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::Instant;
use treebeam_store::{ForcePolicy, OpenStats, RunDir, RunStore, open_to_read};

const OPENING_REPEATS: usize = 5;

/// Prints the cost of opening a run: one that has stopped, and one that was killed long after its
/// last manifest.
pub(crate) fn resume() -> Outcome<()> {
    let folder = gauge::in_memory()?;
    let searched = search_in(folder.path(), DEEP_SHAPE)?;
    let run = &searched.run;
    measure(&format!("{} evals, stopped", searched.evals), run)?;
    fs::rename(run.previous_manifest_path(), run.manifest_path())?;
    measure(&format!("{} evals, cut off before its last manifest", searched.evals), run)
}

fn measure(name: &str, run: &RunDir) -> Outcome<()> {
    let stats = open_to_read(run)?.stats;
    let read = stats.manifest_bytes + stats.journal_bytes_read;
    let (mut opened, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..OPENING_REPEATS {
        let begun = Instant::now();
        drop(RunStore::open_to_run(run, ForcePolicy::No)?);
        let ours = begun.elapsed();
        let begun = Instant::now();
        plainly(run, &stats)?;
        ratios.push(ours.as_secs_f64() / begun.elapsed().as_secs_f64());
        opened.push(ours.as_secs_f64());
    }
    row(&format!("{name}: time"), &format!("{:.2} s", median(&opened)));
    row(&format!("{name}: time / reading the same bytes as JSON"), &gauge::spread(&ratios));
    let share = number(read) / number(stats.manifest_bytes);
    row(&format!("{name}: bytes read / bytes of the manifest"), &format!("{share:.2}"));
    row(&format!("{name}: events replayed"), &stats.events_replayed.to_string());
    Ok(())
}

/// Parses the bytes that opening the run reads, as untyped JSON.
fn plainly(run: &RunDir, stats: &OpenStats) -> Outcome<()> {
    let manifest: Value = serde_json::from_slice(&fs::read(run.manifest_path())?)?;
    let mut journal = File::open(run.journal_path())?;
    let length = journal.metadata()?.len();
    journal.seek(SeekFrom::Start(length - stats.journal_bytes_read))?;
    let mut tail = Vec::new();
    journal.read_to_end(&mut tail)?;
    let lines: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_slice(&tail).into_iter().collect();
    drop((manifest, lines?));
    Ok(())
}
