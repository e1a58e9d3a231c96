//! Beam search over the values of one file, as in a run. Ideas better than their parent compete,
//! and the best of a depth become nodes; if there is none, the same nodes are expanded again.

use super::objective::{Dice, RANGE, ROOT, World};
use treebeam_tuner::change::ConstantChange;
use treebeam_tuner::constant::{Constant, find_constants};
use treebeam_tuner::history::{TrialOutcome, TunerHistory, TunerTrial};
use treebeam_tuner::search::propose_changes;

#[derive(Clone, Copy)]
pub(crate) struct Beam {
    pub(crate) ideas: usize,
    pub(crate) width: usize,
    pub(crate) evals: usize,
}

/// A node: its file, its measured score, and what its branch has tried.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) id: u32,
    pub(crate) text: String,
    pub(crate) score: f64,
    pub(crate) history: TunerHistory,
}

pub(crate) fn root_text() -> String {
    let names = ["rate", "decay", "ratio", "scale", "window", "budget"];
    names.iter().zip(ROOT).map(|(name, value)| format!("{name} = {value}\n")).collect()
}

pub(crate) fn found(text: &str) -> Vec<Constant> {
    find_constants("train.py", text)
}

pub(crate) fn place(text: &str) -> [f64; 6] {
    let at_root = ROOT.map(|value| value.parse::<f64>().expect("a number"));
    let mut x = [0.0; 6];
    for ((x, constant), root) in x.iter_mut().zip(found(text)).zip(at_root) {
        *x = (constant.literal.value() / root).ln();
    }
    x
}

pub(crate) fn changed(text: &str, change: &ConstantChange) -> String {
    let constant = found(text).into_iter().find(|constant| constant.id == change.id);
    let span = constant.expect("a constant that is there").span;
    format!("{}{}{}", &text[..span.start], change.to, &text[span.end..])
}

/// True loss of the node that a run would call its best.
pub(crate) fn tuned(world: &World, seed: u64, beam: Beam) -> f64 {
    let best = search(world, seed, beam, |_, _| {});
    world.loss(&place(&best.text))
}

/// Runs the beam; `shown` gets each node with its proposals.
pub(crate) fn search(
    world: &World,
    seed: u64,
    beam: Beam,
    mut shown: impl FnMut(&Node, &[ConstantChange]),
) -> Node {
    let mut dice = Dice::new(seed, 23);
    let origin = [0.0; 6];
    let truth = world.loss(&origin);
    let base = world.measured(&origin, truth, &mut dice);
    let root = Node { id: 0, text: root_text(), score: 0.0, history: TunerHistory::default() };
    let (mut frontier, mut best, mut left, mut next) = (vec![root.clone()], root, beam.evals, 1);
    while left > 0 {
        let mut better: Vec<Node> = Vec::new();
        for node in &mut frontier {
            let ideas =
                propose_changes(&found(&node.text), &node.history, seed, beam.ideas.min(left));
            let changes: Vec<ConstantChange> = ideas.into_iter().map(|idea| idea.change).collect();
            shown(node, &changes);
            left -= changes.len();
            if changes.is_empty() {
                return best;
            }
            let before = node.clone();
            for change in changes {
                let text = changed(&before.text, &change);
                let score = (base - world.measured(&place(&text), truth, &mut dice)) / base.abs();
                let gain = score - before.score;
                let trial =
                    TunerTrial { change, node: before.id, outcome: TrialOutcome::Moved(gain) };
                node.history.trials.push(trial);
                if gain > 0.0 {
                    better.push(Node { text, score, ..before.clone() });
                }
            }
            for child in better.iter_mut().filter(|child| child.id == node.id) {
                child.history = node.history.clone();
            }
        }
        better.sort_by(|a, b| b.score.total_cmp(&a.score));
        better.truncate(beam.width);
        for node in &mut better {
            node.id = next;
            next += 1;
        }
        if let Some(first) = better.first() {
            if first.score > best.score {
                best = first.clone();
            }
            frontier = better;
        }
    }
    best
}

/// True loss of the best of `evals` random places, chosen by measured loss, or of the root.
pub(crate) fn random_search(world: &World, seed: u64, evals: usize) -> f64 {
    let mut dice = Dice::new(seed, 29);
    let origin = [0.0; 6];
    let truth = world.loss(&origin);
    let mut best = (world.measured(&origin, truth, &mut dice), origin);
    for _ in 0..evals {
        let x = origin.map(|_| dice.between(-RANGE, RANGE));
        let measured = world.measured(&x, truth, &mut dice);
        if measured < best.0 {
            best = (measured, x);
        }
    }
    world.loss(&best.1)
}
