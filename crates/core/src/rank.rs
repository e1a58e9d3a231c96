//! Ranking of the candidates that passed the gate, by their comparison with the root. Independent
//! of the order in which they finished.

use crate::evidence::Comparison;
use crate::id::{EvalId, GitTree};
use crate::num::Finite;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Returns the value a candidate is ranked by: its score against the root, or else its primary
/// delta. A candidate without one is never promoted.
#[must_use]
pub fn rank_score(vs_root: &Comparison) -> Option<Finite> {
    let scored = vs_root.recommendation.metrics_used > 0;
    scored.then_some(vs_root.recommendation.score).or(vs_root.primary_delta)
}

/// Candidate that passed the gate, with everything its rank depends on.
#[derive(Clone, Debug)]
pub struct RankedCandidate {
    /// Eval of the candidate.
    pub eval: EvalId,
    /// Comparison of the candidate with the root.
    pub vs_root: Comparison,
    /// Number of files changed against the parent.
    pub files_changed: u32,
    /// Git tree of the candidate: equal trees take one place at most.
    pub tree: Option<GitTree>,
}

/// Selects the best `width` candidates, best first: by score, primary delta, absence of a risk
/// regression, fewer files, older id. Of those with the same git tree only the oldest counts.
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
