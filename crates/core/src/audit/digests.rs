//! Recorded file digests that must match the disk now. A running step may have rewritten its files
//! and not be recorded yet.

use super::FileReference;
use crate::facts::{Expansion, ExpansionIdeas, Facts, RootBaseline, Stage};
use crate::id::{EvalId, NodeId, RunPath, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Returns every file with a recorded digest that no unfinished step may have rewritten.
#[must_use]
pub fn recorded_files(facts: &Facts, digests: &BTreeMap<RunPath, Sha256>) -> Vec<FileReference> {
    let settled = digests.iter().filter_map(|(path, sha256)| {
        let owner = FileOwner::from_path(path)?;
        owner.is_settled(facts).then(|| FileReference {
            path: path.clone(),
            sha256: Some(*sha256),
            by: owner.describe(),
        })
    });
    settled.collect()
}

/// Counts the ended evals without any recorded digest: an older treebeam recorded none.
#[must_use]
pub fn evals_without_digests(facts: &Facts, digests: &BTreeMap<RunPath, Sha256>) -> usize {
    let owners = digests.keys().filter_map(FileOwner::from_path);
    let known: BTreeSet<EvalId> = owners.filter_map(FileOwner::eval_id).collect();
    let evals = facts.evals.iter().filter(|eval| has_ended(&eval.stage));
    evals.filter(|eval| !known.contains(&eval.id)).count()
}

/// Part of a run that a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileOwner {
    RootSweep,
    Eval(EvalId),
    NodeIdeas(NodeId),
    ControlIdeas,
    Conversation(NodeId),
}

impl FileOwner {
    /// Determines the owner from the file's path; `None` for a path that no step writes.
    fn from_path(path: &RunPath) -> Option<Self> {
        let mut parts = path.as_str().split('/');
        let (folder, name) = (parts.next()?, parts.next()?);
        match (folder, name) {
            ("eval", "root") => Some(Self::RootSweep),
            ("eval", id) => id.parse().ok().map(Self::Eval),
            ("node_ideas", "control") => Some(Self::ControlIdeas),
            ("node_ideas", id) => id.parse().ok().map(Self::NodeIdeas),
            ("conversations", name) => {
                let digits = name.strip_prefix('c')?.split(['.', '_']).next()?;
                digits.parse().ok().map(Self::Conversation)
            }
            _ => None,
        }
    }

    const fn eval_id(self) -> Option<EvalId> {
        match self {
            Self::Eval(id) => Some(id),
            Self::RootSweep | Self::NodeIdeas(_) | Self::ControlIdeas | Self::Conversation(_) => {
                None
            }
        }
    }

    /// Returns true if no step that writes the owner's files is running.
    fn is_settled(self, facts: &Facts) -> bool {
        match self {
            Self::RootSweep => matches!(facts.baseline, RootBaseline::Measured { .. }),
            Self::Eval(id) => facts.eval(id).is_some_and(|eval| is_at_rest(&eval.stage)),
            // Questions and replies of the control group are stored with the root's.
            Self::NodeIdeas(NodeId::ROOT) => {
                has_ideas(&facts.control) && Self::has_ideas_of(facts, NodeId::ROOT)
            }
            Self::NodeIdeas(id) | Self::Conversation(id) => Self::has_ideas_of(facts, id),
            Self::ControlIdeas => has_ideas(&facts.control),
        }
    }

    fn has_ideas_of(facts: &Facts, id: NodeId) -> bool {
        facts.node(id).is_some_and(|node| has_ideas(&node.expansions))
    }

    fn describe(self) -> String {
        match self {
            Self::RootSweep => "the root's sweep".to_owned(),
            Self::Eval(id) => format!("eval {id}"),
            Self::NodeIdeas(id) => format!("node {id}"),
            Self::ControlIdeas => "the control group".to_owned(),
            Self::Conversation(id) => format!("conversation c{id}"),
        }
    }
}

fn has_ideas(expansions: &[Expansion]) -> bool {
    expansions.iter().all(|expansion| !matches!(expansion.ideas, ExpansionIdeas::Asked))
}

/// Returns true if no step of the eval is running. Those of an unfinished eval were ended by a
/// budget; it has no files if none had begun.
const fn is_at_rest(stage: &Stage) -> bool {
    has_ended(stage) || matches!(stage, Stage::Unfinished { .. })
}

const fn has_ended(stage: &Stage) -> bool {
    match stage {
        Stage::Scored(_) | Stage::Decided(..) | Stage::Failed { .. } | Stage::Superseded(..) => {
            true
        }
        Stage::Queued
        | Stage::Implementing(_)
        | Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..)
        | Stage::Unfinished { .. }
        | Stage::SetAside => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_file_is_known_by_its_path() {
        let check = |path: &str, owner| {
            let path = path.parse().expect("a path");
            assert_eq!(FileOwner::from_path(&path), owner, "{path}");
        };
        let (eval, node) = (EvalId::new(3), NodeId::new(2));
        check("eval/0003/experiment/summary.json", Some(FileOwner::Eval(eval)));
        check("eval/0003/calls/coder-e0003-a1-r0.json", Some(FileOwner::Eval(eval)));
        check("eval/root/experiment/sweep.log", Some(FileOwner::RootSweep));
        check("node_ideas/0002/prompt_context.txt", Some(FileOwner::NodeIdeas(node)));
        check("node_ideas/control/prompt_context.txt", Some(FileOwner::ControlIdeas));
        check("conversations/c0002.jsonl", Some(FileOwner::Conversation(node)));
        check("conversations/c0002_summary.md", Some(FileOwner::Conversation(node)));
        check("conversations/damaged/c0002.json", None);
        check("TREE_SUMMARY.md", None);
    }
}
