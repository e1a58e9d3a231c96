//! Who takes part in a round: long-lived processes that are told by a line to do their work once, and answer with what
//! it took; and `wc -l`, which is started each time. They are asked one after the other and never at once.

use super::data::Pair;
use super::python::SCRIPT;
use super::worker::Means;
use crate::Outcome;
use crate::companion::Companion;
use crate::gauge::{self, CHILD, Took};
use std::path::Path;
use std::process::Command;

const LIBRARIES: [&str; 3] = ["pandas", "polars", "duckdb"];
/// With how many threads all but the floor work.
pub(crate) const THREADS: [u32; 2] = [1, 2];
pub(crate) const TREEBEAM: &str = "treebeam";
pub(crate) const FLOOR: &str = "wc -l";

/// One of those that are compared, and what it took so far.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// None of the floor, which has one, whatever the others have.
    threads: Option<u32>,
    work: Work,
    /// What each round took.
    pub(crate) rounds: Vec<Took>,
    /// Its peak memory in KiB after doing its work once.
    pub(crate) peak: Option<u32>,
}

enum Work {
    Worker(Companion),
    Process(Command),
}

/// All that take part, the floor first; only the floor and treebeam where there is no Python.
pub(crate) fn contenders(pair: &Pair, python: Option<&Path>) -> Outcome<Vec<Contender>> {
    let mut floor = Command::new("wc");
    floor.arg("-l").args(pair.files());
    let mut all = vec![Contender::new(FLOOR, None, Work::Process(floor))];
    for threads in THREADS {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([CHILD, super::TASK]);
        all.push(Contender::worker(TREEBEAM, threads, command, pair)?);
    }
    let Some(python) = python else { return Ok(all) };
    for library in LIBRARIES {
        for threads in THREADS {
            let mut command = Command::new(python);
            command.args([SCRIPT, library]);
            all.push(Contender::worker(library, threads, command, pair)?);
        }
    }
    Ok(all)
}

impl Contender {
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

    /// Whether it is compared with those that have so many threads.
    pub(crate) fn counts_for(&self, threads: u32) -> bool {
        self.threads.is_none_or(|own| own == threads)
    }

    /// Does its work once, and says what it took.
    pub(crate) fn once(&mut self) -> Outcome<Took> {
        let worker = match &mut self.work {
            Work::Process(command) => return gauge::whole(command),
            Work::Worker(worker) => worker,
        };
        let answer = worker.ask("time").map_err(|error| format!("{}: {error}", self.name))?;
        let [processor, wall, peak] = answer.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("{} answered `{answer}`", self.name).into());
        };
        self.peak.get_or_insert(peak.parse()?);
        Ok(Took { processor: processor.parse()?, wall: wall.parse()? })
    }

    /// The means that it found last; none of the floor.
    pub(crate) fn means(&mut self) -> Outcome<Option<Means>> {
        match &mut self.work {
            Work::Process(_) => Ok(None),
            Work::Worker(worker) => Ok(Some(serde_json::from_str(&worker.ask("means")?)?)),
        }
    }
}
