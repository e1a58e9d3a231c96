//! Choice of the next changes among all constants: each constant once, then those with the highest
//! expected gain. Deterministic in its arguments.

use super::change::ConstantChange;
use super::constant::{Constant, ConstantId};
use super::curve::{ConstantCurve, ConstantEffect, ProposalReason, ProposedValue};
use super::history::TunerHistory;
use super::luck_fit::{FitSample, LuckFit, fit_luck};
use std::collections::BTreeMap;
use treebeam_core::id::Sha256;
use treebeam_core::num::Finite;

/// Proposed change with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct TunerProposal {
    /// Change to make.
    pub change: ConstantChange,
    /// Reason in one sentence.
    pub why: String,
}

/// Proposes the next changes, best first; fewer than `wanted` if nothing else is left.
#[must_use]
pub fn propose_changes(
    constants: &[Constant],
    history: &TunerHistory,
    seed: u64,
    wanted: usize,
) -> Vec<TunerProposal> {
    let mut curves: Vec<(u32, ConstantCurve<'_>)> = constants
        .iter()
        .map(|constant| {
            (draw_for_constant(seed, &constant.id), ConstantCurve::new(constant, &history.trials))
        })
        .collect();
    curves.sort_by_key(|(drawn, _)| *drawn);
    separate_luck(&mut curves);
    let mut options = Vec::new();
    for (drawn, curve) in &curves {
        let sign = if drawn % 2 == 0 { 1.0 } else { -1.0 };
        let aims = curve.proposed_values(sign).into_iter();
        let new = aims.filter(|aim| !is_repeated(history, &curve.constant.id, aim));
        options.extend(new.enumerate().map(|(rank, aim)| TunerChoice { curve, rank, aim }));
    }
    order_choices(options, wanted)
        .into_iter()
        .take(wanted)
        .map(TunerChoice::into_proposal)
        .collect()
}

/// Separates the effects of the constants from the luck of the nodes they were tried on.
fn separate_luck(curves: &mut [(u32, ConstantCurve<'_>)]) {
    let tried = curves
        .iter_mut()
        .map(|(_, curve)| curve)
        .filter(|curve| curve.score_moves().next().is_some());
    let mut tried: Vec<&mut ConstantCurve<'_>> = tried.collect();
    let moves = tried.iter().enumerate().flat_map(|(constant, curve)| {
        curve.score_moves().map(move |(node, places, gain)| (constant, node, places, gain))
    });
    let mut nodes: Vec<u32> = Vec::new();
    let samples: Vec<FitSample> = moves
        .map(|(constant, node, [from, to], gain)| {
            let known = nodes.iter().position(|other| *other == node);
            let node = known.unwrap_or_else(|| {
                nodes.push(node);
                nodes.len() - 1
            });
            FitSample { constant, node, from, to, gain }
        })
        .collect();
    let LuckFit { parabolas, luck } = fit_luck(&samples, tried.len(), nodes.len());
    let luck: BTreeMap<u32, f64> = nodes.into_iter().zip(luck).collect();
    for (curve, parabola) in tried.iter_mut().zip(parabolas) {
        curve.correct_for_luck(parabola, &luck);
    }
}

/// Candidate for a proposal.
struct TunerChoice<'a> {
    curve: &'a ConstantCurve<'a>,
    /// Rank among the constant's own choices, from 0.
    rank: usize,
    aim: ProposedValue,
}

fn is_repeated(history: &TunerHistory, id: &ConstantId, aim: &ProposedValue) -> bool {
    history.repeated.iter().any(|change| change.is_about(id) && change.to == aim.to)
}

/// Draws a number that is fixed for a constant and a seed.
fn draw_for_constant(seed: u64, id: &ConstantId) -> u32 {
    let text = format!("{seed}\0{}\0{}\0{}", id.file, id.name, id.nth);
    let digest = Sha256::hash_bytes(text.as_bytes()).to_string();
    digest.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

/// Orders the choices. Untried constants get at least half of the places while there are any.
fn order_choices<'a>(options: Vec<TunerChoice<'a>>, wanted: usize) -> Vec<TunerChoice<'a>> {
    let mut ranks: [Vec<TunerChoice<'a>>; 5] = Default::default();
    for option in options {
        let rank = match (option.curve.effect, option.rank, &option.aim.reason) {
            (ConstantEffect::Untried, 0, _) => 1,
            (ConstantEffect::Yes, 0, ProposalReason::Between { .. }) => 2,
            (ConstantEffect::Yes, 0, _) => 0,
            (ConstantEffect::Yes | ConstantEffect::Untried, _, _) => 3,
            (ConstantEffect::No, _, _) => 4,
        };
        if let Some(place) = ranks.get_mut(rank) {
            place.push(option);
        }
    }
    let [mut good, untried, finer, others, idle] = ranks;
    let hope = |a: &TunerChoice<'_>, b: &TunerChoice<'_>| {
        b.aim.expected_gain.total_cmp(&a.aim.expected_gain)
    };
    let room = if untried.is_empty() { wanted } else { wanted / 2 };
    if untried.is_empty() {
        good.extend(finer);
        good.sort_by(hope);
        good.extend(others);
    } else {
        good.sort_by(hope);
        let rest = good.split_off(room.min(good.len()));
        good.extend(untried);
        good.extend(rest);
        good.extend(finer);
        good.extend(others);
    }
    good.extend(idle);
    good
}

impl TunerChoice<'_> {
    fn into_proposal(self) -> TunerProposal {
        let constant = self.curve.constant;
        let (id, from) = (constant.id.clone(), constant.text.clone());
        let why = explain_reason(&constant.id.name, &self.aim.reason);
        TunerProposal { change: ConstantChange { id, from, to: self.aim.to }, why }
    }
}

/// Explains the reason in one sentence.
fn explain_reason(name: &str, reason: &ProposalReason) -> String {
    let shown = |number: f64| Finite::new(number).map_or_else(String::new, Finite::to_short_string);
    match reason {
        ProposalReason::First => format!("`{name}` has not been tried yet; this is a first step."),
        ProposalReason::Join { gain } => format!(
            "Where it was tried this value did better, by {}; it is not in this branch now.",
            shown(*gain)
        ),
        ProposalReason::Further { beyond, gain } => format!(
            "{} was better by {} where it was tried; this goes on in that direction.",
            shown(*beyond),
            shown(*gain)
        ),
        ProposalReason::Back { from, loss: Some(loss) } => {
            format!("{} was worse by {}; this goes the other way.", shown(*from), shown(*loss))
        }
        ProposalReason::Back { from, loss: None } => {
            format!("{} failed; this goes the other way.", shown(*from))
        }
        ProposalReason::Between { low, high, best } => format!(
            "The best value known is {}; this looks closer between {} and {}.",
            shown(*best),
            shown(*low),
            shown(*high)
        ),
    }
}
