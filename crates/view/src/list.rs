//! The screen of `treebeam list`: one line for each run. What a line says is gathered here too, so that programs are told
//! the same. Whether a process is at a run, and how old it is, is not on record: the caller says so.

use crate::figure::change;
use crate::line::{one_line, shorten};
use crate::read;
use crate::width::columns;
use crate::words;
use std::time::Duration;
use treebeam_core::bill::Bills;
use treebeam_core::event::Stop;
use treebeam_core::facts::{Baseline, Facts};
use treebeam_core::id::{Depth, NodeId};
use treebeam_core::num::Finite;

/// The most characters of why a root cannot be compared with.
const MAX_REASON_CHARS: usize = 200;

/// One run directory.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name.
    pub run: String,
    /// How long ago it began, if that is known.
    pub age: Option<Duration>,
    /// What is in it, or why that cannot be told.
    pub found: Result<Digest, String>,
}

/// A run in a few words and figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Whether somebody runs it, and if not, how it goes on.
    pub standing: Standing,
    /// The depth that it stops after, where somebody has asked for that.
    pub stops_after: Option<Depth>,
    /// How many depths are closed.
    pub depths_closed: usize,
    /// How many there are to be.
    pub max_depth: u32,
    /// How many nodes it has.
    pub nodes: usize,
    /// How many evals.
    pub evals: usize,
    /// Its best node.
    pub best: NodeId,
    /// What that node is ranked by: its gain against the root, which counts as 0.
    pub gain: Option<Finite>,
    /// What the answers of agents took.
    pub spent: Bills,
}

/// How a run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Somebody runs it now.
    Running {
        /// Who.
        by: String,
    },
    /// Somebody runs it, and starts nothing new until told otherwise.
    Paused {
        /// Who.
        by: String,
    },
    /// It is over.
    Stopped(Stop),
    /// No process runs it, and its root has no results: there is nothing to go on from.
    Unmeasured {
        /// Why its root cannot be compared with, where it was swept.
        refused: Option<String>,
        /// The command that measures the root.
        resume_command: String,
    },
    /// Nobody runs it, and it is not over.
    Resumable {
        /// The command that goes on with it.
        way_on: String,
    },
}

impl Digest {
    /// How many of how many; what is done beyond a shorter reach stands alone.
    fn depths(&self) -> String {
        let (closed, most) = (self.depths_closed, self.max_depth);
        let within = u32::try_from(closed).is_ok_and(|closed| closed <= most);
        if within { format!("{closed}/{most}") } else { closed.to_string() }
    }

    /// A run: who runs it, if somebody does, and which command would go on with it.
    #[must_use]
    pub fn of(facts: &Facts, runner: Option<String>, way_on: &str) -> Self {
        let standing = match (runner, facts.stop_reason()) {
            (Some(by), _) if facts.history.paused_since.is_some() => Standing::Paused { by },
            (Some(by), _) => Standing::Running { by },
            (None, Some(reason)) => Standing::Stopped(reason),
            (None, None) => Self::unended(facts, way_on.to_owned()),
        };
        let best = facts.best();
        Self {
            standing,
            stops_after: facts.to_stop_after(),
            depths_closed: facts.closed.len(),
            max_depth: facts.depths(),
            nodes: facts.nodes.len(),
            evals: facts.evals.len(),
            best,
            gain: facts.node(best).and_then(|node| read::node_rank_score(facts, node)),
            spent: facts.spent(),
        }
    }
}

impl Digest {
    /// How a run stands that no process runs, and that is not over.
    fn unended(facts: &Facts, resume_command: String) -> Standing {
        let refused = match &facts.baseline {
            Baseline::Measured { .. } => return Standing::Resumable { way_on: resume_command },
            Baseline::Refused { why } => Some(why.clone()),
            Baseline::Unmeasured => None,
        };
        Standing::Unmeasured { refused, resume_command }
    }
}

impl Listed {
    /// How it stands, in one word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match &self.found {
            Ok(Digest { standing: Standing::Running { .. }, .. }) => "running",
            Ok(Digest { standing: Standing::Paused { .. }, .. }) => "paused",
            Ok(Digest { standing: Standing::Stopped(_), .. }) => "stopped",
            Ok(Digest {
                standing: Standing::Resumable { .. } | Standing::Unmeasured { .. },
                ..
            }) => "resumable",
            Err(_) => "unreadable",
        }
    }

    /// The same in words: by whom, why, or what to do.
    #[must_use]
    pub fn outcome(&self) -> String {
        let Digest { standing, stops_after, .. } = match &self.found {
            Ok(found) => found,
            Err(why) => return format!("cannot be opened: {}", one_line(why)),
        };
        let until = stops_after.map_or_else(String::new, |it| format!(", stops after depth {it}"));
        match standing {
            Standing::Running { by } => format!("running{until}: {}", one_line(by)),
            Standing::Paused { by } => {
                format!("paused{until}: `treebeam unpause {}`; {}", self.run, one_line(by))
            }
            Standing::Stopped(reason) => format!("stopped: {}", words::stop(*reason)),
            Standing::Unmeasured { refused: Some(why), .. } => {
                let why = shorten(&one_line(why), MAX_REASON_CHARS);
                let remove = format!("`treebeam clean {} --delete` removes it", self.run);
                format!("measured nothing: {why}; mend that and start a new run, {remove}")
            }
            Standing::Unmeasured { refused: None, resume_command } => {
                format!("measured nothing yet: `{resume_command}` measures the root")
            }
            Standing::Resumable { way_on } => format!("can go on{until}: `{way_on}`"),
        }
    }

    /// Its depth, nodes, evals, gain and cost.
    pub(crate) fn figures(&self) -> [String; 5] {
        match &self.found {
            Ok(found) => [
                found.depths(),
                found.nodes.to_string(),
                found.evals.to_string(),
                change(found.gain),
                words::cents(&found.spent.total()),
            ],
            Err(_) => ["-"; 5].map(str::to_owned),
        }
    }

    fn cells(&self) -> [String; COLUMNS] {
        let age = self.age.map_or_else(|| "n/a".to_owned(), words::age);
        let [depth, nodes, evals, gain, cost] = self.figures();
        [self.run.clone(), age, depth, nodes, evals, gain, cost, self.outcome()]
    }
}

const COLUMNS: usize = 8;
const HEAD: [&str; COLUMNS] = ["RUN", "AGE", "DEPTH", "NODES", "EVALS", "GAIN", "COST", "OUTCOME"];

/// The runs as a table, in the order in which they are given.
#[must_use]
pub fn list(runs: &[Listed]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(runs.iter().map(Listed::cells));
    let mut widths = [0; COLUMNS];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    rows.iter().map(|row| line(row, &widths)).collect()
}

/// One row; what comes last needs no room behind it.
fn line(row: &[String; COLUMNS], widths: &[usize; COLUMNS]) -> String {
    let pad = |cell: &str, width: usize| " ".repeat(width.saturating_sub(columns(cell)));
    let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell}{}", pad(cell, *width)));
    format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
}
