//! Generates two results CSVs from a seed, and keeps them below the target directory.
//!
//! Only a complete file has its final name, and the name contains everything that the bytes depend
//! on.

use crate::Outcome;
use crate::gauge::number;
use std::f64::consts::TAU;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use treebeam_core::policy::ScorePolicy;

/// Number of columns of a file: the id, the status, and metrics.
pub(crate) const COLUMN_COUNT: usize = 120;
/// Version of the generator, to be raised when the same seed gives other bytes.
const GENERATOR_VERSION: u32 = 1;
const GENERATOR_SEED: u64 = 7;
/// Spreads of the columns' values, in rotation.
const COLUMN_SPREADS: [f64; 3] = [0.1, 1.0, 10.0];

/// Format of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    /// Five decimals.
    Five,
    /// As many as needed for an exact round trip, as most programs write them.
    All,
}

/// A baseline and a candidate.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) baseline: PathBuf,
    pub(crate) candidate: PathBuf,
}

impl Pair {
    /// Returns both files, the baseline first.
    pub(crate) fn files(&self) -> [&Path; 2] {
        [&self.baseline, &self.candidate]
    }

    /// Reads both once, so that later reads do not wait for the disk.
    pub(crate) fn read_through(&self) -> io::Result<()> {
        self.files().into_iter().try_for_each(|path| {
            io::copy(&mut BufReader::with_capacity(1 << 20, File::open(path)?), &mut io::sink())?;
            Ok(())
        })
    }

    /// Returns the size of both together, in GB.
    pub(crate) fn gigabytes(&self) -> Outcome<f64> {
        let bytes = self.baseline.metadata()?.len() + self.candidate.metadata()?.len();
        Ok(number(bytes / 1_000) / 1e6)
    }
}

/// Returns the two files in a folder; missing ones are generated.
pub(crate) fn pair(folder: &Path, rows: u32, digits: Digits) -> Outcome<Pair> {
    fs::create_dir_all(folder)?;
    let kind = match digits {
        Digits::Five => "five-digits",
        Digits::All => "all-digits",
    };
    let file = |side: &str| {
        folder.join(format!(
            "v{GENERATOR_VERSION}-seed{GENERATOR_SEED}-{rows}x{COLUMN_COUNT}-{kind}-{side}.csv"
        ))
    };
    let pair = Pair { baseline: file("baseline"), candidate: file("candidate") };
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| made(&pair.baseline, rows, digits, Random(GENERATOR_SEED)));
        let second = made(&pair.candidate, rows, digits, Random(!GENERATOR_SEED));
        (first.join(), second)
    });
    first.map_err(|_| "the thread that makes the baseline panicked")??;
    second?;
    Ok(pair)
}

fn made(path: &Path, rows: u32, digits: Digits, mut random: Random) -> io::Result<()> {
    if path.is_file() {
        return Ok(());
    }
    let part = path.with_extension("part");
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    writeln!(file, "config_id,status,{}", metrics().join(","))?;
    for id in 0..rows {
        write!(file, "{id},ok")?;
        for scale in COLUMN_SPREADS.iter().cycle().take(COLUMN_COUNT - 2) {
            let value = scale * random.normal();
            match digits {
                Digits::Five => write!(file, ",{value:.5}")?,
                Digits::All => write!(file, ",{value}")?,
            }
        }
        writeln!(file)?;
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(part, path)
}

/// Returns the names of all metrics: the scoring ones are spread among others.
fn metrics() -> Vec<String> {
    let mut scoring = ScorePolicy::trading_preset().metrics.into_iter().map(|metric| metric.column);
    let every_seventh = (0..COLUMN_COUNT - 2).map(|at| {
        let own = || format!("metric_{at}");
        if at % 7 == 3 { scoring.next().unwrap_or_else(own) } else { own() }
    });
    every_seventh.collect()
}

/// `SplitMix64` generator: short, and good enough for these figures.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number above 0 and up to 1.
    fn share(&mut self) -> f64 {
        let high = u32::try_from(self.next() >> 32).unwrap_or(0);
        (f64::from(high) + 1.0) / 4_294_967_296.0
    }

    /// Returns a normally distributed number, by Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (TAU * self.share()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_name_of_its_own_and_every_metric_is_there() {
        let mut names = metrics();
        let policy = ScorePolicy::trading_preset();
        assert!(policy.metrics.iter().all(|metric| names.contains(&metric.column)));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), COLUMN_COUNT - 2);
    }
}
