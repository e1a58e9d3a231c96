//! Renders the screen of `treebeam list`, one line per run, and gathers the data of a line. The
//! same data is given to programs. Whether a process runs a run, and the age of a run, are not on
//! record: the caller supplies them.

use crate::figure::format_change;
use crate::lookup;
use crate::safe_text::{format_failure, one_line};
use crate::width::text_columns;
use crate::words;
use std::time::Duration;
use treebeam_core::bill::RoleBills;
use treebeam_core::event::StopReason;
use treebeam_core::facts::{Facts, RootBaseline};
use treebeam_core::id::{Depth, NodeId};
use treebeam_core::num::Finite;

/// Maximum length of the reason why a root was refused.
const MAX_REASON_CHARS: usize = 200;

/// A run directory in the list.
#[derive(Clone, Debug)]
pub struct ListedRun {
    /// Name of the run.
    pub run: String,
    /// Time since its start, if known.
    pub age: Option<Duration>,
    /// Data of the run, or the reason why it cannot be read.
    pub digest: Result<RunDigest, String>,
}

/// A run in a few words and figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDigest {
    /// State of the run, with the command that resumes it if it needs one.
    pub status: RunStatus,
    /// Depth after which a requested stop takes effect, if any.
    pub stops_after: Option<Depth>,
    /// Number of closed depths.
    pub depths_closed: usize,
    /// Configured number of depths.
    pub max_depth: u32,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of evals.
    pub evals: usize,
    /// Best node.
    pub best: NodeId,
    /// Rank score of the best node: its gain against the root, which counts as 0.
    pub gain: Option<Finite>,
    /// Bills of the agents' answers.
    pub spent: RoleBills,
}

/// State of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// A process runs it.
    Running {
        /// Process that runs it.
        by: String,
    },
    /// A process runs it, but starts nothing new until it is unpaused.
    Paused {
        /// Process that runs it.
        by: String,
    },
    /// The run is over.
    Stopped(StopReason),
    /// No process runs it, and its root has no results to continue from.
    Unmeasured {
        /// Reason why the results of its root were refused, if it was swept.
        refused: Option<String>,
        /// Command that measures the root.
        resume_command: String,
    },
    /// No process runs it, and it is not over.
    Resumable {
        /// Command that resumes it.
        resume_command: String,
    },
}

impl RunDigest {
    /// Formats closed and configured depths; only the closed ones if the limit was lowered below
    /// them.
    fn format_depths(&self) -> String {
        let (closed, most) = (self.depths_closed, self.max_depth);
        let within = u32::try_from(closed).is_ok_and(|closed| closed <= most);
        if within { format!("{closed}/{most}") } else { closed.to_string() }
    }

    /// Builds the digest of a run from its facts, its runner if any, and the command that resumes
    /// it.
    #[must_use]
    pub fn from_facts(facts: &Facts, runner: Option<String>, resume_command: &str) -> Self {
        let standing = match (runner, facts.stop_reason()) {
            (Some(by), _) if facts.history.paused_since.is_some() => RunStatus::Paused { by },
            (Some(by), _) => RunStatus::Running { by },
            (None, Some(reason)) => RunStatus::Stopped(reason),
            (None, None) => Self::unfinished_status(facts, resume_command.to_owned()),
        };
        let best = facts.best_node();
        Self {
            status: standing,
            stops_after: facts.pending_stop_after(),
            depths_closed: facts.closed.len(),
            max_depth: facts.depth_limit(),
            nodes: facts.nodes.len(),
            evals: facts.evals.len(),
            best,
            gain: facts.node(best).and_then(|node| lookup::node_rank_score(facts, node)),
            spent: facts.total_spend(),
        }
    }
}

impl RunDigest {
    /// Returns the state of a run that no process runs and that is not over.
    fn unfinished_status(facts: &Facts, resume_command: String) -> RunStatus {
        let refused = match &facts.baseline {
            RootBaseline::Measured { .. } => return RunStatus::Resumable { resume_command },
            RootBaseline::Refused { why } => Some(why.clone()),
            RootBaseline::Unmeasured => None,
        };
        RunStatus::Unmeasured { refused, resume_command }
    }
}

impl ListedRun {
    /// Returns the state in one word.
    #[must_use]
    pub const fn status_word(&self) -> &'static str {
        match &self.digest {
            Ok(RunDigest { status: RunStatus::Running { .. }, .. }) => "running",
            Ok(RunDigest { status: RunStatus::Paused { .. }, .. }) => "paused",
            Ok(RunDigest { status: RunStatus::Stopped(_), .. }) => "stopped",
            Ok(RunDigest {
                status: RunStatus::Resumable { .. } | RunStatus::Unmeasured { .. },
                ..
            }) => "resumable",
            Err(_) => "unreadable",
        }
    }

    /// Describes the state: by whom it is run, why it stopped, or what to do.
    #[must_use]
    pub fn describe_status(&self) -> String {
        let RunDigest { status: standing, stops_after, .. } = match &self.digest {
            Ok(found) => found,
            Err(why) => return format!("cannot be opened: {}", one_line(why)),
        };
        let until = stops_after.map_or_else(String::new, |it| format!(", stops after depth {it}"));
        match standing {
            RunStatus::Running { by } => format!("running{until}: {}", one_line(by)),
            RunStatus::Paused { by } => {
                format!("paused{until}: `treebeam unpause {}`; {}", self.run, one_line(by))
            }
            RunStatus::Stopped(reason) => format!("stopped: {}", words::describe_stop(*reason)),
            RunStatus::Unmeasured { refused: Some(why), .. } => {
                let refused = format_failure("measured nothing", why, MAX_REASON_CHARS);
                let remove = format!("`treebeam clean {} --delete` removes it", self.run);
                format!("{refused}; mend that and start a new run, {remove}")
            }
            RunStatus::Unmeasured { refused: None, resume_command } => {
                format!("measured nothing yet: `{resume_command}` measures the root")
            }
            RunStatus::Resumable { resume_command } => {
                format!("can go on{until}: `{resume_command}`")
            }
        }
    }

    /// Formats depth, nodes, evals, gain and cost.
    pub(crate) fn format_figures(&self) -> [String; 5] {
        match &self.digest {
            Ok(found) => [
                found.format_depths(),
                found.nodes.to_string(),
                found.evals.to_string(),
                format_change(found.gain),
                words::format_cents(&found.spent.total()),
            ],
            Err(_) => ["-"; 5].map(str::to_owned),
        }
    }

    fn row_cells(&self) -> [String; COLUMN_COUNT] {
        let age = self.age.map_or_else(|| "n/a".to_owned(), words::format_age);
        let [depth, nodes, evals, gain, cost] = self.format_figures();
        [self.run.clone(), age, depth, nodes, evals, gain, cost, self.describe_status()]
    }
}

const COLUMN_COUNT: usize = 8;
const TABLE_HEAD: [&str; COLUMN_COUNT] =
    ["RUN", "AGE", "DEPTH", "NODES", "EVALS", "SCORE", "COST", "OUTCOME"];

/// Renders the runs as a table, in the given order.
#[must_use]
pub fn render_run_list(runs: &[ListedRun]) -> String {
    let mut rows = vec![TABLE_HEAD.map(str::to_owned)];
    rows.extend(runs.iter().map(ListedRun::row_cells));
    let mut widths = [0; COLUMN_COUNT];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(text_columns(cell));
        }
    }
    rows.iter().map(|row| format_row(row, &widths)).collect()
}

/// Formats a row without trailing spaces.
fn format_row(row: &[String; COLUMN_COUNT], widths: &[usize; COLUMN_COUNT]) -> String {
    let pad = |cell: &str, width: usize| " ".repeat(width.saturating_sub(text_columns(cell)));
    let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell}{}", pad(cell, *width)));
    format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
}
