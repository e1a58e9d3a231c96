//! What fits on one screen: that it does, whatever there is to say, and that nothing on it is more than text.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod sample;

use treebeam_core::bill::{Bill, Bills, Cost, Usage};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::{Facts, Node, Origin, Removal};
use treebeam_core::id::{EvalId, NodeId, Place};
use treebeam_core::num::Finite;
use treebeam_core::role::Role;
use treebeam_core::state::State;
use treebeam_view::status;

/// The most that can be said of a run: long names, wide characters, much that is deferred, and every limit.
fn crowded(ideas: u32, leftovers: u32) -> Facts {
    let mut facts = sample::after(&sample::events(), 40).into_facts();
    facts.run = "a-run-id-of-forty-characters-0123456789a".parse().unwrap();
    facts.reach.max_cost_usd = Finite::new(123_456.789_012);
    facts.reach.max_tokens_total = Some(u64::MAX);
    facts.frontier = (0..200).map(NodeId::new).collect();
    facts.history.paused_since = Some(sample::now());
    let mut bills = Bills::default();
    let usage = Usage { input: u64::MAX, cached: 0, output: 0 };
    let (calls, cost) = (u32::MAX, Cost::pico(u64::MAX));
    bills.add(Role::Coder, Bill { calls, calls_without_price: 7, usage, cost, millis: u64::MAX });
    facts.evals[0].bills = vec![bills];
    for eval in &mut facts.evals {
        eval.idea.title = "広い文字".repeat(50);
    }
    let why = "the device is busy, ".repeat(20);
    for number in 1..=leftovers {
        let place = Place::Candidate(EvalId::new(number));
        let leftover = Leftover { place, kind: LeftoverKind::Worktree };
        let retry_at = sample::now();
        let removal = Removal::Deferred { attempts: 2, why: why.clone(), retry_at };
        facts.leftovers.insert(leftover, removal);
    }
    // A path that is as long as wanted, the last node its best.
    let template = facts.nodes[1].clone();
    for number in 1..=ideas {
        let (parent, from) = (NodeId::new(number - 1), EvalId::new(1));
        let forked_at = template.forked_at().unwrap();
        let origin = Origin::Promoted { parent, from, forked_at };
        facts.nodes.truncate(usize::try_from(number).unwrap());
        facts.nodes.push(Node { id: NodeId::new(number), origin, ..template.clone() });
    }
    if let Some(Origin::Promoted { from, .. }) = facts.nodes.last_mut().map(|node| &mut node.origin)
    {
        *from = EvalId::new(2);
    }
    facts
}

#[test]
fn a_status_is_one_screen_whatever_there_is_to_say() {
    let runner = "process 4711 on `a-host-with-a-rather-long-name.example`, since an hour ago";
    for ideas in [0, 1, 5, 60] {
        for leftovers in [0, 1, 9, 500] {
            for runner in [None, Some(runner)] {
                let facts = crowded(ideas, leftovers);
                let text = status(&facts, runner);
                assert!(text.lines().count() <= 23, "{ideas} {leftovers}\n{text}");
                let width = |line: &str| unicode_width::UnicodeWidthStr::width(line);
                assert!(text.lines().all(|line| width(line) <= 80), "{text}");
                assert!(text.contains("best        n00"), "{text}");
                assert_eq!(text.contains("cleanup"), leftovers > 0, "{text}");
                assert!(text.contains(if runner.is_some() { "unpause" } else { "resume" }));
            }
        }
    }
    insta::assert_snapshot!(status(&crowded(60, 500), Some(runner)));
}

#[test]
fn a_status_is_one_screen_from_the_beginning_to_the_end() {
    let begun = State::begin(&sample::started());
    for state in [begun, sample::finished()] {
        assert!(status(&state, None).lines().count() <= 23);
    }
}
