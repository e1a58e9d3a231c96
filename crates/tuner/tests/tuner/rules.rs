//! Guarantees of the tuner: no repeats, every constant before refining any, deterministic replies.

use super::beam::{Beam, search};
use super::objective::{Objective, Optimum};
use std::collections::BTreeSet;
use treebeam_tuner::constant::{Constant, find_constants};
use treebeam_tuner::history::{TrialOutcome, TunerHistory, TunerTrial};
use treebeam_tuner::search::{TunerProposal, propose_changes};

#[test]
fn a_branch_is_never_asked_for_the_same_twice() {
    for objective in Objective::ALL {
        for seed in 0..10 {
            let beam = Beam { ideas: 4, width: 2, evals: 120 };
            search(&objective.world(Optimum::Near, seed, 0.05), seed, beam, |node, changes| {
                let distinct: BTreeSet<_> = changes.iter().map(|c| (&c.id, &c.to)).collect();
                assert_eq!(distinct.len(), changes.len(), "no two alike");
                for change in changes {
                    assert_ne!(change.from, change.to);
                    let before = node.history.trials.iter();
                    let before = before.filter(|trial| trial.change.id == change.id);
                    let newest = before.rev().find(|trial| trial.change.to == change.to);
                    // A change that improved a node outside this branch may be joined with what was
                    // taken.
                    let joins = |trial: &TunerTrial| {
                        trial.node != node.id
                            && matches!(trial.outcome, TrialOutcome::Moved(gain) if gain > 0.0)
                    };
                    assert!(newest.is_none_or(joins), "{change} after {newest:?}");
                }
            });
        }
    }
}

fn many() -> Vec<Constant> {
    let text: String = (0..20).map(|number| format!("c{number} = {}.5\n", number + 1)).collect();
    find_constants("many.toml", &text)
}

/// Requests proposals repeatedly on one node; every outcome is slightly worse, or fails.
fn asked(constants: &[Constant], wanted: usize, rounds: usize, seed: u64) -> Vec<TunerProposal> {
    let (mut history, mut all) = (TunerHistory::default(), Vec::new());
    for _ in 0..rounds {
        for proposal in propose_changes(constants, &history, seed, wanted) {
            let fails = all.len() % 5 == 4;
            let outcome = if fails { TrialOutcome::Failed } else { TrialOutcome::Moved(-0.01) };
            let change = proposal.change.clone();
            history.trials.push(TunerTrial { change, node: 0, outcome });
            all.push(proposal);
        }
    }
    all
}

#[test]
fn each_constant_comes_before_any_is_looked_at_closer() {
    let constants = many();
    let all = asked(&constants, 7, 15, 1);
    let closer = all.iter().position(|proposal| proposal.why.contains("closer"));
    let closer = closer.expect("in the end it looks closer");
    let tried: BTreeSet<_> = all[..closer].iter().map(|p| &p.change.id).collect();
    assert_eq!(tried.len(), constants.len(), "all of them have been tried by then");
    let distinct: BTreeSet<_> = all.iter().map(|p| (&p.change.id, &p.change.to)).collect();
    assert_eq!(distinct.len(), all.len(), "nothing comes twice");
}

#[test]
fn the_same_question_has_the_same_answer() {
    let constants = many();
    assert_eq!(asked(&constants, 5, 9, 1), asked(&constants, 5, 9, 1));
    assert_ne!(asked(&constants, 5, 1, 1), asked(&constants, 5, 1, 2), "the seed chooses");
    let mut turned = constants.clone();
    turned.reverse();
    assert_eq!(asked(&turned, 5, 3, 1), asked(&constants, 5, 3, 1), "the order of files does not");
}

#[test]
fn what_paid_goes_further_and_what_did_not_goes_back() {
    let constants = find_constants(
        "a.py",
        "rate = 2.0\nwidth = 64\nshare = 0.5\non = False\nzero = 0\nless = -3\n",
    );
    let first = propose_changes(&constants, &TunerHistory::default(), 0, 6);
    assert_eq!(first.len(), 6);
    let value = |text: &str| text.parse::<f64>().ok();
    for paid in [0.1, -0.1] {
        let trial = |proposal: &TunerProposal| TunerTrial {
            change: proposal.change.clone(),
            node: 0,
            outcome: TrialOutcome::Moved(paid),
        };
        let history =
            TunerHistory { trials: first.iter().map(trial).collect(), ..TunerHistory::default() };
        let next = propose_changes(&constants, &history, 0, 6);
        for TunerProposal { change, why } in &next {
            let before = first.iter().find(|p| p.change.id == change.id).expect("it was tried");
            let (Some(from), Some(tried), Some(to)) =
                (value(&change.from), value(&before.change.to), value(&change.to))
            else {
                assert_eq!((paid > 0.0, change.to.as_str()), (true, "True"), "a flag is joined");
                continue;
            };
            let same_way = (to - from).signum() == (tried - from).signum();
            assert_eq!(same_way, paid > 0.0, "{change}: {why}");
            assert!(paid < 0.0 || (to - from).abs() > (tried - from).abs(), "{change}: {why}");
            let id = &change.id.name;
            assert!(id != "share" || (0.0 < to && to < 1.0), "{change}");
            assert!(id != "less" || to < 0.0, "{change}");
            assert!(
                !["width", "zero", "less"].contains(&id.as_str()) || to.fract() == 0.0,
                "{change}"
            );
        }
        assert!(next.len() >= 5, "{next:?}");
    }
}
