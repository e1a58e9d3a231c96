//! Which of the passing candidates are best? Decided against the root, the same whatever finished first.

use crate::evidence::Comparison;
use crate::facts::ScoredCandidate;
use crate::id::{EvalId, GitTree};
use crate::num::Finite;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What a candidate is ranked by: its score against the root, or else its primary delta. None: never promoted.
#[must_use]
pub fn rank_score(vs_root: &Comparison) -> Option<Finite> {
    let scored = vs_root.recommendation.metrics_used > 0;
    scored.then_some(vs_root.recommendation.score).or(vs_root.primary_delta)
}

/// A candidate that passed the gate, with what its place depends on.
#[derive(Clone, Debug)]
pub struct RankedCandidate {
    /// Which eval.
    pub eval: EvalId,
    /// How it compares with the root.
    pub vs_root: Comparison,
    /// How many files it changes against its parent.
    pub files_changed: u32,
    /// Its files: the same files have one place at most.
    pub tree: Option<GitTree>,
}

impl RankedCandidate {
    /// A candidate with its figures.
    #[must_use]
    pub fn new(eval: EvalId, measured: ScoredCandidate) -> Self {
        let ScoredCandidate { work, scored, .. } = measured;
        let (files_changed, tree) = (work.files_changed, work.tree);
        Self { eval, vs_root: scored.vs_root, files_changed, tree }
    }
}

/// The best `width` contenders, best first: by score, primary delta, absence of a risk regression, fewer files, older id.
/// Of those with the same git tree only the oldest counts.
#[must_use]
pub fn select_beam(contenders: impl Iterator<Item = RankedCandidate>, width: usize) -> Vec<EvalId> {
    let mut trees = BTreeSet::new();
    let mut contenders: Vec<_> = contenders.collect();
    contenders.sort_unstable_by_key(|c| c.eval);
    contenders.retain(|c| c.tree.as_ref().is_none_or(|tree| trees.insert(tree.leading_bytes())));
    let mut ranked: Vec<_> = contenders
        .into_iter()
        .filter_map(|c| {
            let score = rank_score(&c.vs_root)?;
            let risk = c.vs_root.recommendation.has_risk_regression();
            Some((Reverse(score), Reverse(c.vs_root.primary_delta), risk, c.files_changed, c.eval))
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().take(width).map(|(.., eval)| eval).collect()
}
