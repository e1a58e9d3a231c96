//! Runs the contenders of a round: long-lived worker processes, and `wc -l`.
//!
//! A worker does its work once for each line of input, and answers with the cost; `wc -l` is
//! started each time. They run one after the other and never at once.

use super::data::Pair;
use super::python::SCORING_SCRIPT_PATH;
use super::worker::Means;
use crate::Outcome;
use crate::companion::Companion;
use crate::gauge::{self, CHILD_FLAG, WorkTime};
use std::path::Path;
use std::process::Command;

const PYTHON_LIBRARIES: [&str; 3] = ["pandas", "polars", "duckdb"];
/// Numbers of threads of all contenders but the floor.
pub(crate) const THREAD_COUNTS: [u32; 2] = [1, 2];
pub(crate) const TREEBEAM_NAME: &str = "treebeam";
pub(crate) const FLOOR_NAME: &str = "wc -l";

/// A contender, and its costs so far.
pub(crate) struct ScoringContender {
    pub(crate) name: &'static str,
    /// Number of threads; `None` for the floor, which has one in any case.
    threads: Option<u32>,
    work: Work,
    /// Cost of each round.
    pub(crate) rounds: Vec<WorkTime>,
    /// Peak memory in KiB after doing its work once.
    pub(crate) peak: Option<u32>,
}

enum Work {
    Worker(Companion),
    Process(Command),
}

/// Starts all contenders, the floor first; without Python only the floor and treebeam.
pub(crate) fn contenders(pair: &Pair, python: Option<&Path>) -> Outcome<Vec<ScoringContender>> {
    let mut floor = Command::new("wc");
    floor.arg("-l").args(pair.files());
    let mut all = vec![ScoringContender::new(FLOOR_NAME, None, Work::Process(floor))];
    for threads in THREAD_COUNTS {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([CHILD_FLAG, super::SCORING_TASK]);
        all.push(ScoringContender::worker(TREEBEAM_NAME, threads, command, pair)?);
    }
    let Some(python) = python else { return Ok(all) };
    for library in PYTHON_LIBRARIES {
        for threads in THREAD_COUNTS {
            let mut command = Command::new(python);
            command.args([SCORING_SCRIPT_PATH, library]);
            all.push(ScoringContender::worker(library, threads, command, pair)?);
        }
    }
    Ok(all)
}

impl ScoringContender {
    fn new(name: &'static str, threads: Option<u32>, work: Work) -> Self {
        Self { name, threads, work, rounds: Vec::new(), peak: None }
    }

    fn worker(
        name: &'static str,
        threads: u32,
        mut command: Command,
        pair: &Pair,
    ) -> Outcome<Self> {
        command.arg(threads.to_string()).args(pair.files());
        Ok(Self::new(name, Some(threads), Work::Worker(Companion::start(&mut command)?)))
    }

    /// Returns true if the contender is compared at this number of threads.
    pub(crate) fn counts_for(&self, threads: u32) -> bool {
        self.threads.is_none_or(|own| own == threads)
    }

    /// Does the work once, and returns its cost.
    pub(crate) fn once(&mut self) -> Outcome<WorkTime> {
        let worker = match &mut self.work {
            Work::Process(command) => return gauge::whole(command),
            Work::Worker(worker) => worker,
        };
        let answer = worker.ask("time").map_err(|error| format!("{}: {error}", self.name))?;
        let [processor, wall, peak] = answer.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("{} answered `{answer}`", self.name).into());
        };
        self.peak.get_or_insert(peak.parse()?);
        Ok(WorkTime { processor: processor.parse()?, wall: wall.parse()? })
    }

    /// Returns the means of the last round; `None` for the floor.
    pub(crate) fn means(&mut self) -> Outcome<Option<Means>> {
        match &mut self.work {
            Work::Process(_) => Ok(None),
            Work::Worker(worker) => Ok(Some(serde_json::from_str(&worker.ask("means")?)?)),
        }
    }
}
