//! The tree against its control group, at the same spend. Both begin with the ideas that the tree tried on the root; from there
//! the tree goes on from its nodes, and the control group goes on trying on the root. What both
//! share is paid by both, and only the rest is compared: as many evals of each side's own, in the
//! order of their ids. Nothing is decided by it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use treebeam_core::bill::RoleBills;
use treebeam_core::facts::{Candidate, Eval, Expansion, Facts, Stage};
use treebeam_core::gate::{GateVerdict, judge_candidate};
use treebeam_core::group::{EvalGroup, IdeaSource};
use treebeam_core::id::{Depth, EvalId, NodeId};
use treebeam_core::num::Finite;
use treebeam_core::rank::{self, RankedCandidate};

/// How a run with a control group stands.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlComparison {
    /// There is nothing to compare: one of them has no eval that is not the other's too.
    NothingToCompare {
        /// The part of the evals that is the control group's own.
        control: SideSpend,
    },
    /// There is.
    Compared(Box<ComparedSides>),
}

/// Both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedSides {
    /// Which of them did better with the same number of evals.
    pub ahead: LeadingSide,
    /// How many evals both of them begin with.
    pub shared: u32,
    /// What both share, with as many evals of the tree's own as the control group has.
    pub tree: SideResult,
    /// What both share, with as many evals of the control group's own as the tree has.
    pub root: SideResult,
    /// The tree, all of it.
    pub whole_tree: SideResult,
    /// All that was tried on the root.
    pub whole_root: SideResult,
    /// The part of it that is the control group's own.
    pub control: SideSpend,
}

/// Who did better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadingSide {
    /// The tree.
    Tree,
    /// Neither: they came to the same score.
    Neither,
    /// Trying on the root alone.
    Control,
}

/// What some evals came to.
#[derive(Clone, Debug, PartialEq)]
pub struct SideResult {
    /// The best of those that the other side does not share and that the gate lets through; none
    /// where no such one is better than the root.
    pub best: Option<SideBest>,
    /// What they took.
    pub spent: SideSpend,
}

/// What some evals took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideSpend {
    /// How many they are, failed ones included.
    pub evals: u32,
    /// Their answers, and those that brought their ideas.
    pub bills: RoleBills,
}

/// The best of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideBest {
    /// Which.
    pub eval: EvalId,
    /// Its score against the root.
    pub rank_score: Finite,
}

impl SideResult {
    /// Its best score, the root counting as 0.
    #[must_use]
    pub fn rank_score(&self) -> Finite {
        self.best.map_or(Finite::ZERO, |best| best.rank_score)
    }
}

/// How the tree stands against its control group; none where it has none.
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

/// The evals of a side that both share, and so many of its own, in the order of their ids.
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

/// Whether both sides have this eval: the tree tried it on the root.
fn is_shared(eval: &Eval) -> bool {
    eval.group.is_tree() && eval.parent == NodeId::ROOT
}

/// Whether it was tried to its end, and counts.
fn has_ended(eval: &Eval) -> bool {
    eval.is_current()
        && (eval.scored_candidate().is_some() || matches!(eval.stage, Stage::Failed { .. }))
}

/// The gate's word on an eval: as it is recorded, or, of the control group, as it would be. Only so are both sides asked the
/// same.
#[must_use]
pub fn side_verdict(facts: &Facts, eval: &Eval) -> Option<GateVerdict> {
    let would_say = || derived_verdict(facts, eval).filter(|_| eval.group == EvalGroup::Control);
    eval.gate_verdict().or_else(would_say)
}

/// What the gate would say of an eval that it was not asked about, or not yet.
fn derived_verdict(facts: &Facts, eval: &Eval) -> Option<GateVerdict> {
    let Stage::Scored(measured) = &eval.stage else { return None };
    let Candidate { files_changed, approval, .. } = measured.work;
    Some(judge_candidate(&measured.scored, files_changed, approval, &facts.settings))
}

fn best_of_side(facts: &Facts, evals: &[Cow<'_, Eval>]) -> Option<SideBest> {
    // While a depth is open, its evals count as they would at its close: the control group's do.
    let word = |eval: &Eval| eval.gate_verdict().or_else(|| derived_verdict(facts, eval));
    let own = evals.iter().filter(|eval| !is_shared(eval));
    let passed = own.filter(|eval| word(eval).is_some_and(|word| word.has_passed()));
    let contenders =
        passed.filter_map(|eval| Some(RankedCandidate::new(eval.id, eval.scored_candidate()?)));
    let eval = rank::select_beam(contenders, 1).first().copied()?;
    let rank_score = rank::rank_score(&facts.eval(eval)?.scored_candidate()?.scored.vs_root)?;
    (rank_score > Finite::ZERO).then_some(SideBest { eval, rank_score })
}

/// What these evals took, with the questions that brought them, and those on the way that brought nothing.
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
