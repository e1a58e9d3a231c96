//! Measures treebeam's scoring in a process of its own, by the protocol of `scoring.py`.
//!
//! It scores a candidate for each line of input, and answers with the cost, so that all contenders
//! are called alike. It writes no result but the means.

use crate::Outcome;
use crate::gauge;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _};
use std::path::Path;
use std::thread;
use std::time::Instant;
use treebeam_core::policy::ScorePolicy;
use treebeam_score::compare::{ComparisonDetails, compare_sweeps};
use treebeam_score::sweep_csv::Sweep;

/// Mean of each column, of the baseline and of the candidate.
pub(crate) type Means = [BTreeMap<String, f64>; 2];

/// Answers each line of standard input, until it ends.
pub(crate) fn serve(threads: &str, files: [&Path; 2]) -> Outcome<()> {
    println!("ready");
    let mut means = Means::default();
    for line in io::stdin().lock().lines() {
        if line? == "means" {
            println!("{}", serde_json::to_string(&means)?);
            continue;
        }
        let (begun, before) = (Instant::now(), gauge::process_time()?);
        let details = score(threads, files)?;
        let processor = gauge::process_time()?.saturating_sub(before).as_secs_f64();
        let wall = begun.elapsed().as_secs_f64();
        println!("{processor} {wall} {}", gauge::peak_memory());
        means = means_of(&details);
    }
    Ok(())
}

/// Computes all that `treebeam score` computes, with one thread or with one for each file.
fn score(threads: &str, [baseline, candidate]: [&Path; 2]) -> Outcome<ComparisonDetails> {
    let policy = ScorePolicy::trading_preset();
    let (baseline, candidate) = if threads == "1" {
        (read(baseline, &policy), read(candidate, &policy))
    } else {
        thread::scope(|scope| {
            let first = scope.spawn(|| read(baseline, &policy));
            let second = read(candidate, &policy);
            (first.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())), second)
        })
    };
    Ok(compare_sweeps(&baseline?, &candidate?, &policy)?)
}

fn read(path: &Path, policy: &ScorePolicy) -> Result<Sweep, String> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Sweep::read_csv(file, &path.to_string_lossy(), None, policy).map_err(|error| error.to_string())
}

fn means_of(details: &ComparisonDetails) -> Means {
    let columns = || details.columns.iter();
    [
        columns().map(|column| (column.column.clone(), column.baseline_mean)).collect(),
        columns().map(|column| (column.column.clone(), column.candidate_mean)).collect(),
    ]
}
