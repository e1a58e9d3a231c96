//! Which changes to propose next, from all constants and all that was tried: each constant once, then those from which
//! most may be hoped for. A function of its arguments: the same question has the same answer.

use super::change::Change;
use super::constant::{Constant, Id};
use super::curve::{Aim, Curve, Matters, Reason};
use super::fit::{Fit, Sample, fit};
use super::history::History;
use crate::id::Sha256;
use crate::num::Finite;
use std::collections::BTreeMap;

/// A change and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// What to do.
    pub change: Change,
    /// Why, in a sentence.
    pub why: String,
}

/// The changes to try next, the best first; fewer than wanted where nothing is left.
#[must_use]
pub fn propose(
    constants: &[Constant],
    history: &History,
    seed: u64,
    wanted: usize,
) -> Vec<Proposal> {
    let mut curves: Vec<(u32, Curve<'_>)> = constants
        .iter()
        .map(|constant| (draw(seed, &constant.id), Curve::new(constant, &history.trials)))
        .collect();
    curves.sort_by_key(|(drawn, _)| *drawn);
    settle(&mut curves);
    let mut options = Vec::new();
    for (drawn, curve) in &curves {
        let sign = if drawn % 2 == 0 { 1.0 } else { -1.0 };
        let aims = curve.aims(sign).into_iter();
        let new = aims.filter(|aim| !is_repeated(history, &curve.constant.id, aim));
        options.extend(new.enumerate().map(|(rank, aim)| Choice { curve, rank, aim }));
    }
    ordered(options, wanted).into_iter().take(wanted).map(Choice::proposal).collect()
}

/// Tells what the constants do from the luck of the nodes that they were tried on.
fn settle(curves: &mut [(u32, Curve<'_>)]) {
    let tried =
        curves.iter_mut().map(|(_, curve)| curve).filter(|curve| curve.moves().next().is_some());
    let mut tried: Vec<&mut Curve<'_>> = tried.collect();
    let moves = tried.iter().enumerate().flat_map(|(constant, curve)| {
        curve.moves().map(move |(node, places, gain)| (constant, node, places, gain))
    });
    let mut nodes: Vec<u32> = Vec::new();
    let samples: Vec<Sample> = moves
        .map(|(constant, node, [from, to], gain)| {
            let known = nodes.iter().position(|other| *other == node);
            let node = known.unwrap_or_else(|| {
                nodes.push(node);
                nodes.len() - 1
            });
            Sample { constant, node, from, to, gain }
        })
        .collect();
    let Fit { parabolas, luck } = fit(&samples, tried.len(), nodes.len());
    let luck: BTreeMap<u32, f64> = nodes.into_iter().zip(luck).collect();
    for (curve, parabola) in tried.iter_mut().zip(parabolas) {
        curve.settle(parabola, &luck);
    }
}

/// One thing that could be done.
struct Choice<'a> {
    curve: &'a Curve<'a>,
    /// Whether it is the constant's first choice, or a later one.
    rank: usize,
    aim: Aim,
}

fn is_repeated(history: &History, id: &Id, aim: &Aim) -> bool {
    history.repeated.iter().any(|change| change.is_about(id) && change.to == aim.to)
}

/// A number that stays the same for a constant and a seed.
fn draw(seed: u64, id: &Id) -> u32 {
    let text = format!("{seed}\0{}\0{}\0{}", id.file, id.name, id.nth);
    let digest = Sha256::of(text.as_bytes()).to_string();
    digest.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

/// While there are constants that nobody has tried, they get half of the places at least.
fn ordered<'a>(options: Vec<Choice<'a>>, wanted: usize) -> Vec<Choice<'a>> {
    let mut ranks: [Vec<Choice<'a>>; 5] = Default::default();
    for option in options {
        let rank = match (option.curve.matters, option.rank, &option.aim.reason) {
            (Matters::Untried, 0, _) => 1,
            (Matters::Yes, 0, Reason::Between { .. }) => 2,
            (Matters::Yes, 0, _) => 0,
            (Matters::Yes | Matters::Untried, _, _) => 3,
            (Matters::No, _, _) => 4,
        };
        if let Some(place) = ranks.get_mut(rank) {
            place.push(option);
        }
    }
    let [mut good, untried, finer, others, idle] = ranks;
    let hope = |a: &Choice<'_>, b: &Choice<'_>| b.aim.hope.total_cmp(&a.aim.hope);
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

impl Choice<'_> {
    fn proposal(self) -> Proposal {
        let constant = self.curve.constant;
        let (id, from) = (constant.id.clone(), constant.text.clone());
        let why = words(&constant.id.name, &self.aim.reason);
        Proposal { change: Change { id, from, to: self.aim.to }, why }
    }
}

/// Why, in a sentence.
fn words(name: &str, reason: &Reason) -> String {
    let shown = |number: f64| Finite::new(number).map_or_else(String::new, Finite::short);
    match reason {
        Reason::First => format!("`{name}` has not been tried yet; this is a first step."),
        Reason::Join { gain } => format!(
            "Where it was tried this value did better, by {}; it is not in this branch now.",
            shown(*gain)
        ),
        Reason::Further { beyond, gain } => format!(
            "{} was better by {} where it was tried; this goes on in that direction.",
            shown(*beyond),
            shown(*gain)
        ),
        Reason::Back { from, loss: Some(loss) } => {
            format!("{} was worse by {}; this goes the other way.", shown(*from), shown(*loss))
        }
        Reason::Back { from, loss: None } => {
            format!("{} failed; this goes the other way.", shown(*from))
        }
        Reason::Between { low, high, best } => format!(
            "The best value known is {}; this looks closer between {} and {}.",
            shown(*best),
            shown(*low),
            shown(*high)
        ),
    }
}
