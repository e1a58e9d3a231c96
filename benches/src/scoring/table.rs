//! Prints the rows of one case with one number of threads: ratios first, then all figures.
//!
//! The ratios are treebeam's to the best of the others, within the same round.

use super::ScoringCase;
use super::contender::{FLOOR_NAME, ScoringContender, TREEBEAM_NAME};
use super::data::{COLUMN_COUNT, Digits, Pair};
use crate::gauge::{WorkTime, median, middle_half};
use crate::{Outcome, row};

/// Contenders of a comparison.
pub(crate) struct Table<'a> {
    case: ScoringCase,
    threads: u32,
    gigabytes: f64,
    ours: &'a ScoringContender,
    floor: &'a ScoringContender,
    others: Vec<&'a ScoringContender>,
}

/// Selector of one figure of a round.
type RoundFigure = fn(&WorkTime) -> f64;
const PROCESSOR_TIME: RoundFigure = |took| took.processor;
const WALL_TIME: RoundFigure = |took| took.wall;

impl<'a> Table<'a> {
    pub(crate) fn new(
        case: ScoringCase,
        threads: u32,
        pair: &Pair,
        all: &'a [ScoringContender],
    ) -> Outcome<Self> {
        let here = || all.iter().filter(|one| one.counts_for(threads));
        let named =
            |name: &str| here().find(|one| one.name == name).ok_or(format!("`{name}` is missing"));
        Ok(Self {
            case,
            threads,
            gigabytes: pair.gigabytes()?,
            ours: named(TREEBEAM_NAME)?,
            floor: named(FLOOR_NAME)?,
            others: here().filter(|one| ![TREEBEAM_NAME, FLOOR_NAME].contains(&one.name)).collect(),
        })
    }

    pub(crate) fn print(&self) {
        let ScoringCase { rows, digits, rounds, target, .. } = self.case;
        let digits = match digits {
            Digits::Five => "",
            Digits::All => " of full precision",
        };
        let threads = self.threads;
        println!("  {rows} x {COLUMN_COUNT}{digits}, threads: {threads}, rounds: {rounds}");
        if !self.others.is_empty() {
            let best =
                |of: RoundFigure| middle_half(&divided(&figures(self.ours, of), &self.best(of)));
            let what = "  treebeam / best of the others";
            row(&format!("{what}, processor time (target {target})"), &best(PROCESSOR_TIME));
            row(&format!("{what}, wall time (target below 1)"), &best(WALL_TIME));
        }
        let (processor, wall) = ("processor / treebeam", "wall / treebeam");
        println!(
            "    {:<10}{processor:>26}{wall:>26}{:>13}{:>13}{:>8}{:>10}",
            "", "processor", "wall", "GB/s", "peak"
        );
        for one in [self.ours, self.floor].into_iter().chain(self.others.iter().copied()) {
            self.line(one);
        }
    }

    /// Returns for each round the best figure of the other contenders.
    fn best(&self, of: RoundFigure) -> Vec<f64> {
        let round = |at: usize| {
            let others = self.others.iter().filter_map(|other| other.rounds.get(at)).map(of);
            others.fold(f64::INFINITY, f64::min)
        };
        (0..self.case.rounds).map(round).collect()
    }

    fn line(&self, one: &ScoringContender) {
        let ratio = |of| middle_half(&divided(&figures(one, of), &figures(self.ours, of)));
        let (processor, wall) =
            (median(&figures(one, PROCESSOR_TIME)), median(&figures(one, WALL_TIME)));
        let megabytes = |peak: u32| format!("{:.0} MB", f64::from(peak) * 1024.0 / 1e6);
        println!(
            "    {:<10}{:>26}{:>26}{processor:>11.4} s{wall:>11.4} s{:>8.2}{:>10}",
            one.name,
            ratio(PROCESSOR_TIME),
            ratio(WALL_TIME),
            self.gigabytes / wall,
            one.peak.map_or_else(String::new, megabytes)
        );
    }
}

fn figures(contender: &ScoringContender, of: RoundFigure) -> Vec<f64> {
    contender.rounds.iter().map(of).collect()
}

/// Divides figures round by round.
fn divided(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(above, below)| above / below).collect()
}
