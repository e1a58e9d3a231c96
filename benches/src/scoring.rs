//! Measures a score, against data-frame libraries for the means of the same files, and `wc -l`.
//!
//! `wc -l` only reads the files. A library that is not available is left out with a message.

mod command;
mod contender;
mod data;
mod python;
mod table;
mod worker;

use crate::Outcome;
use contender::{ScoringContender, THREAD_COUNTS, contenders};
use data::{Digits, pair};
use std::path::{Path, PathBuf};
use table::Table;
use worker::Means;

pub(crate) use worker::serve;

/// Name of the task of a process that [`serve`]s.
pub(crate) const SCORING_TASK: &str = "score";

/// Maximum relative difference between the others' means and ours.
const MAX_MEAN_DIFFERENCE: f64 = 1e-9;

/// Files to score, and the number of rounds. In a round each contender does its work once.
#[derive(Clone, Copy, Debug)]
struct ScoringCase {
    rows: u32,
    digits: Digits,
    warm_ups: usize,
    rounds: usize,
    /// Target of processor time, divided by that of the best other contender.
    target: &'static str,
}

const SCORING_CASES: [ScoringCase; 4] = [
    ScoringCase { rows: 100, digits: Digits::Five, warm_ups: 5, rounds: 101, target: "below 1" },
    ScoringCase { rows: 10_000, digits: Digits::Five, warm_ups: 2, rounds: 21, target: "0.67" },
    ScoringCase { rows: 10_000, digits: Digits::All, warm_ups: 2, rounds: 21, target: "0.67" },
    ScoringCase { rows: 1_000_000, digits: Digits::Five, warm_ups: 0, rounds: 3, target: "0.67" },
];

/// Prints the cost of a score, in one process and as a whole command.
pub(crate) fn scoring() -> Outcome<()> {
    let release = release()?;
    let folder = release.with_file_name("scoring");
    std::fs::create_dir_all(&folder)?;
    let python = python::with_libraries(&folder);
    match &python {
        Ok(_) => println!("  with {}", python::versions()),
        Err(error) => {
            println!("  treebeam and `wc` alone, for the libraries are not there: {error}");
        }
    }
    println!("  (a to b) is the middle half of the rounds");
    for case in SCORING_CASES {
        measure(case, &folder, python.as_deref().ok())?;
    }
    command::command(&folder, &release)
}

/// Returns the folder of release builds: this bench is in a folder below.
fn release() -> Outcome<PathBuf> {
    let bench = std::env::current_exe()?;
    Ok(bench.ancestors().nth(2).ok_or("no folder of release builds")?.to_owned())
}

fn measure(case: ScoringCase, folder: &Path, python: Option<&Path>) -> Outcome<()> {
    let pair = pair(folder, case.rows, case.digits)?;
    pair.read_through()?;
    let mut all = contenders(&pair, python)?;
    for _ in 0..case.warm_ups {
        all.iter_mut().try_for_each(|contender| contender.once().map(drop))?;
    }
    for round in 0..case.rounds {
        take_turns(&mut all, round)?;
    }
    agree(&mut all)?;
    for threads in THREAD_COUNTS {
        Table::new(case, threads, &pair, &all)?.print();
    }
    Ok(())
}

/// Makes one round; another contender begins each time.
fn take_turns(all: &mut [ScoringContender], round: usize) -> Outcome<()> {
    let (early, late) = all.split_at_mut(round % all.len());
    for contender in late.iter_mut().chain(early) {
        let took = contender.once()?;
        contender.rounds.push(took);
    }
    Ok(())
}

/// Refuses figures of contenders with other means: they did other work.
fn agree(all: &mut [ScoringContender]) -> Outcome<()> {
    let mut ours: Option<Means> = None;
    for contender in all {
        let Some(means) = contender.means()? else { continue };
        let ours = ours.get_or_insert_with(|| means.clone());
        if ours.iter().zip(&means).any(|(ours, theirs)| !ours.keys().eq(theirs.keys())) {
            return Err(format!("{} found the means of other columns", contender.name).into());
        }
        let values = |means: &Means| means.iter().flat_map(|side| side.values().copied()).collect();
        let (expected, found): (Vec<f64>, Vec<f64>) = (values(ours), values(&means));
        let far = |(a, b): (&f64, &f64)| (a - b).abs() > MAX_MEAN_DIFFERENCE * a.abs();
        if let Some((expected, found)) = expected.iter().zip(&found).find(|pair| far(*pair)) {
            let name = contender.name;
            return Err(format!("{name} found the mean {found} where we find {expected}").into());
        }
    }
    Ok(())
}
