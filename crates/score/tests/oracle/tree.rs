//! Tree of the real changes: depth by depth through gate, rank and beam, finished in any order.

use crate::changes::{Change, INVARIANTS, changes, meaning};
use treebeam_core::event::Approval;
use treebeam_core::gate::judge_candidate;
use treebeam_core::id::EvalId;
use treebeam_core::policy::FixedSettings;
use treebeam_core::rank::{RankedCandidate, select_beam};
use treebeam_score::compare::ScoringDetails;

/// Changes that are tried on the root. `041` is left out: it cheats, and would win.
const IDEAS_OF_ROOT: [&str; 7] = ["001", "002", "003", "005", "006", "011", "014"];

struct Eval<'a> {
    id: EvalId,
    change: &'a Change,
    judged: ScoringDetails,
}

impl Eval<'_> {
    fn passes(&self, meaning: &FixedSettings) -> bool {
        judge_candidate(
            &self.judged.scored,
            self.change.files_changed(),
            Approval::Unreviewed,
            meaning,
        )
        .has_passed()
    }

    fn contender(&self) -> RankedCandidate {
        let vs_root = self.judged.scored.vs_root.clone();
        let files_changed = self.change.files_changed();
        RankedCandidate { eval: self.id, vs_root, files_changed, tree: None }
    }
}

/// Returns the changes that are tried on a node.
fn tried<'a>(all: &'a [Change], node: &str) -> impl Iterator<Item = &'a Change> {
    let listed =
        |change: &&Change| IDEAS_OF_ROOT.iter().any(|number| change.id().starts_with(number));
    let of_root = node == "root";
    let children = all.iter().filter(move |change| change.0["parent"] == *node);
    children.filter(move |change| !of_root || listed(change))
}

/// Renders each depth as `all that passed, best first | the beam`, by the changes' numbers.
fn tree(width: usize) -> Vec<String> {
    let (meaning, all) = (meaning(&INVARIANTS), changes());
    let mut frontier = vec!["root".to_owned()];
    let (mut depths, mut id) = (Vec::new(), EvalId::FIRST);
    while !frontier.is_empty() {
        let mut evals = Vec::new();
        for change in frontier.iter().flat_map(|node| tried(&all, node)) {
            evals.push(Eval { id, change, judged: change.judged(&meaning) });
            id = id.next();
        }
        evals.retain(|eval| eval.passes(&meaning));
        let (ranked, beam) = (ranked(&evals, usize::MAX), ranked(&evals, width));
        let numbers = |ids: &[String]| ids.iter().map(|id| &id[..3]).collect::<Vec<_>>().join(" ");
        depths.push(format!("{} | {}", numbers(&ranked), numbers(&beam)));
        frontier = beam;
    }
    depths
}

/// Returns the names of the best, and checks that the order of finishing does not matter.
fn ranked(evals: &[Eval<'_>], width: usize) -> Vec<String> {
    let contenders: Vec<RankedCandidate> = evals.iter().map(Eval::contender).collect();
    let best = select_beam(contenders.iter().cloned(), width);
    for order in orders(contenders.len()) {
        let permuted = order.iter().map(|at| contenders[*at].clone());
        assert_eq!(select_beam(permuted, width), best, "in the order {order:?}");
    }
    let name = |id: &EvalId| evals.iter().find(|eval| eval.id == *id).unwrap().change.id();
    best.iter().map(|id| name(id).to_owned()).collect()
}

/// Returns all permutations of a number of things.
fn orders(things: usize) -> Vec<Vec<usize>> {
    let Some(last) = things.checked_sub(1) else { return vec![Vec::new()] };
    let places = |order: Vec<usize>| {
        (0..=order.len()).map(move |place| {
            let mut longer = order.clone();
            longer.insert(place, last);
            longer
        })
    };
    orders(last).into_iter().flat_map(places).collect()
}

#[test]
fn the_tree_grows_as_the_oracle_has_it() {
    let first = "001 002 014 003 005";
    let with_one = [format!("{first} | 001"), "108 | 108".to_owned(), " | ".to_owned()];
    assert_eq!(tree(1), with_one);
    let with_two = [
        format!("{first} | 001 002"),
        "110 101 108 | 110 101".to_owned(),
        "203 | 203".to_owned(),
        " | ".to_owned(),
    ];
    assert_eq!(tree(2), with_two);
    let with_all = [
        format!("{first} | {first}"),
        "110 101 108 | 110 101 108".to_owned(),
        "203 | 203".to_owned(),
        " | ".to_owned(),
    ];
    assert_eq!(tree(7), with_all);
}

#[test]
fn there_are_as_many_orders_as_there_should_be() {
    let mut all = orders(5);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 120);
}
