//! Comparison of the tree with its control group at the same spend. Both start with the ideas tried
//! on the root; then the tree continues from its nodes, and the control group on the root. Shared
//! evals count for both, so that only the rest can differ: the same number of own evals of each
//! side, ordered by id. No decision uses it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use treebeam_core::bill::RoleBills;
use treebeam_core::facts::{Candidate, Eval, Expansion, Facts, Stage};
use treebeam_core::gate::{GateVerdict, judge_candidate};
use treebeam_core::group::{EvalGroup, IdeaSource};
use treebeam_core::id::{Depth, EvalId, NodeId};
use treebeam_core::num::Finite;
use treebeam_core::rank;

/// Result of a run with a control group.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlComparison {
    /// Nothing can be compared: one side has no eval of its own.
    NothingToCompare {
        /// Spend of the control group.
        control: SideSpend,
    },
    /// Both sides have evals of their own.
    Compared(Box<ComparedSides>),
}

/// Results of tree and control group.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedSides {
    /// Side with the better score at the same number of evals.
    pub ahead: LeadingSide,
    /// Number of shared evals.
    pub shared: u32,
    /// Shared evals, with as many of the tree's own as the control group has.
    pub tree: SideResult,
    /// Shared evals, with as many of the control group's own as the tree has.
    pub root: SideResult,
    /// All evals of the tree.
    pub whole_tree: SideResult,
    /// All evals on the root.
    pub whole_root: SideResult,
    /// Spend of the control group.
    pub control: SideSpend,
}

/// Side with the better score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadingSide {
    /// The tree.
    Tree,
    /// Neither: both reached the same score.
    Neither,
    /// Ideas on the root only.
    Control,
}

/// Result of some evals.
#[derive(Clone, Debug, PartialEq)]
pub struct SideResult {
    /// Best eval that passed the gate; `None` if none of them is better than the root.
    pub best: Option<SideBest>,
    /// Spend on the evals.
    pub spent: SideSpend,
}

/// Spend on some evals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideSpend {
    /// Number of evals, including failed ones.
    pub evals: u32,
    /// Bills of their replies, and of those that brought their ideas.
    pub bills: RoleBills,
}

/// Best eval of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideBest {
    /// Id of the eval.
    pub eval: EvalId,
    /// Score against the root.
    pub rank_score: Finite,
}

impl SideResult {
    /// Returns the best score, the root counting as 0.
    #[must_use]
    pub fn rank_score(&self) -> Finite {
        self.best.map_or(Finite::ZERO, |best| best.rank_score)
    }
}

/// Compares the tree with its control group; `None` without one.
#[must_use]
pub fn compare_with_control(facts: &Facts) -> Option<ControlComparison> {
    facts.control_policy()?;
    let ended = || facts.evals.iter().filter(|eval| has_ended(eval));
    let tree: Vec<_> = ended().filter(|eval| eval.group.is_tree()).collect();
    let root: Vec<_> = ended().filter(|eval| eval.parent == NodeId::ROOT).collect();
    let control: Vec<_> = ended().filter(|eval| !eval.group.is_tree()).collect();
    let control = spend_of_side(facts, &control, |source| source == IdeaSource::Control);
    let shared = tree.iter().filter(|eval| is_shared(eval)).count();
    let same = tree.len().min(root.len()).saturating_sub(shared);
    if same == 0 {
        return Some(ControlComparison::NothingToCompare { control });
    }
    let (tree_first, root_first) = (first_evals(&tree, same), first_evals(&root, same));
    let of_tree = |source| matches!(source, IdeaSource::Node(_));
    let of_root = |source: IdeaSource| source.node_id() == NodeId::ROOT;
    let side = |evals: &[Cow<'_, Eval>], mine: fn(IdeaSource) -> bool| SideResult {
        best: best_of_side(facts, evals),
        spent: spend_of_side(facts, evals, mine),
    };
    let (tree_side, root_side) = (side(&tree_first, of_tree), side(&root_first, of_root));
    let ahead = match tree_side.rank_score().cmp(&root_side.rank_score()) {
        std::cmp::Ordering::Greater => LeadingSide::Tree,
        std::cmp::Ordering::Equal => LeadingSide::Neither,
        std::cmp::Ordering::Less => LeadingSide::Control,
    };
    Some(ControlComparison::Compared(Box::new(ComparedSides {
        ahead,
        shared: u32::try_from(shared).unwrap_or(u32::MAX),
        tree: tree_side,
        root: root_side,
        whole_tree: side(&tree, of_tree),
        whole_root: side(&root, of_root),
        control,
    })))
}

/// Returns the shared evals of a side and the first `own` of its own, ordered by id.
fn first_evals<'a>(evals: &[Cow<'a, Eval>], own: usize) -> Vec<Cow<'a, Eval>> {
    let mut left = own;
    let counts = |eval: &&Cow<'a, Eval>| {
        if is_shared(eval) {
            return true;
        }
        let fits = left > 0;
        left = left.saturating_sub(1);
        fits
    };
    evals.iter().filter(counts).cloned().collect()
}

/// Returns true if both sides have this eval: the tree tried it on the root.
fn is_shared(eval: &Eval) -> bool {
    eval.group.is_tree() && eval.parent == NodeId::ROOT
}

/// Returns true if the eval has ended and counts.
fn has_ended(eval: &Eval) -> bool {
    eval.is_current()
        && (eval.scored_candidate().is_some() || matches!(eval.stage, Stage::Failed { .. }))
}

/// Returns the verdict of the gate on an eval: the recorded one, or for the control group a derived
/// one, so that both sides are judged alike.
#[must_use]
pub fn side_verdict(facts: &Facts, eval: &Eval) -> Option<GateVerdict> {
    let would_say = || derived_verdict(facts, eval).filter(|_| eval.group == EvalGroup::Control);
    eval.gate_verdict().or_else(would_say)
}

/// Derives the verdict of the gate on a scored eval without a recorded one.
fn derived_verdict(facts: &Facts, eval: &Eval) -> Option<GateVerdict> {
    let Stage::Scored(measured) = &eval.stage else { return None };
    let Candidate { files_changed, approval, .. } = measured.work;
    Some(judge_candidate(&measured.scored, files_changed, approval, &facts.settings))
}

fn best_of_side(facts: &Facts, evals: &[Cow<'_, Eval>]) -> Option<SideBest> {
    // While a depth is open, its evals count as at its close, like those of the control group.
    let word = |eval: &Eval| eval.gate_verdict().or_else(|| derived_verdict(facts, eval));
    let own = evals.iter().filter(|eval| !is_shared(eval));
    let passed = own.filter(|eval| word(eval).is_some_and(|word| word.has_passed()));
    let contenders = passed.filter_map(|eval| Some(eval.scored_candidate()?.into_ranked(eval.id)));
    let eval = rank::select_beam(contenders, 1).first().copied()?;
    let rank_score = rank::rank_score(&facts.eval(eval)?.scored_candidate()?.scored.vs_root)?;
    (rank_score > Finite::ZERO).then_some(SideBest { eval, rank_score })
}

/// Returns the spend on these evals, including the questions that brought them and those before
/// that brought none.
fn spend_of_side(
    facts: &Facts,
    evals: &[Cow<'_, Eval>],
    mine: impl Fn(IdeaSource) -> bool,
) -> SideSpend {
    let ids: BTreeSet<EvalId> = evals.iter().map(|eval| eval.id).collect();
    let last = evals.last().map_or(Depth(0), |eval| eval.depth);
    let counts = |expansion: &Expansion| {
        let mut brought = expansion.eval_ids().peekable();
        let nothing = brought.peek().is_none() && !ids.is_empty() && expansion.depth <= last;
        nothing || brought.any(|id| ids.contains(id))
    };
    let asked =
        facts.all_expansions().filter(|(source, expansion)| mine(*source) && counts(expansion));
    let mut bills: RoleBills = asked.map(|(_, expansion)| &expansion.bills).collect();
    for eval in evals {
        bills += &eval.total_spend();
    }
    SideSpend { evals: u32::try_from(evals.len()).unwrap_or(u32::MAX), bills }
}
