//! The context pack by strategy: branch, node alone, or whole run; and the node's figures.

#![cfg(test)]

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{Depth, NodeId, RunPath};
use treebeam_core::path;
use treebeam_core::policy::{ContextStrategy, FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::drive_run;
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn searched(strategy: ContextStrategy, order: u64) -> (MemoryWorld, State) {
    let meaning = FixedSettings {
        ideas_per_node: number(6),
        beam_width: number(2),
        sweep_config_limit: Some(number(4)),
        ideas_context_strategy: strategy,
        ..FixedSettings::default()
    };
    let reach = RunLimits { max_depth: 3, max_parallel_evals: number(4), ..RunLimits::default() };
    let world = MemoryWorld::new(11, order);
    let mut journal = MemoryJournal::begun(meaning, reach);
    let state = journal.state();
    let state = drive_run(state, world.ports(), &mut journal, &mut |_, _| {}).expect("a run");
    (world, state)
}

fn pack(world: &MemoryWorld, node: NodeId) -> String {
    let file: RunPath = path::prompt_context_file(IdeaSource::Node(node), 1);
    let bytes = world.disk().files.get(file.as_str()).cloned().expect("a context pack");
    String::from_utf8(bytes).expect("text")
}

/// Returns the nodes on which the other ideas of a pack were tried.
fn tried_on(pack: &str) -> BTreeSet<String> {
    let (_, rest) =
        pack.split_once("=== OTHER IDEAS THAT WERE TRIED ON THE WAY ===\n").expect("a part");
    let (part, _) = rest.split_once("\n===").expect("another part");
    let on = |line: &str| Some(line.split_once(": on n")?.1.chars().take(4).collect());
    part.lines().filter_map(on).collect()
}

/// A node of depth 2, its parent, and all nodes that were expanded before its depth.
fn deep(state: &State) -> (NodeId, NodeId, BTreeSet<String>) {
    let deep = state.nodes.iter().rev().find(|node| node.depth == Depth(2)).expect("a deep node");
    let before = state.nodes.iter().filter(|node| node.depth < Depth(2));
    let before = before.map(|node| node.id.to_string()).collect();
    (deep.id, deep.parent().expect("a parent"), before)
}

#[test]
fn the_strategy_says_which_ideas_are_told() {
    let (world, state) = searched(ContextStrategy::NodePlusAncestors, 1);
    let (node, parent, all) = deep(&state);
    let branch = BTreeSet::from([NodeId::ROOT.to_string(), parent.to_string()]);
    assert!(branch.len() < all.len(), "there is a node beside the branch: {all:?}");
    assert_eq!(tried_on(&pack(&world, node)), branch);
    let (world, state) = searched(ContextStrategy::GlobalPriorIdeas, 1);
    let (node, _, all) = deep(&state);
    assert_eq!(tried_on(&pack(&world, node)), all);
    let (world, state) = searched(ContextStrategy::NodeOnly, 1);
    let (node, ..) = deep(&state);
    assert_eq!(tried_on(&pack(&world, node)), BTreeSet::new());
}

#[test]
fn how_a_node_stands_is_told_and_the_order_of_completion_is_not() {
    for strategy in [ContextStrategy::NodePlusAncestors, ContextStrategy::GlobalPriorIdeas] {
        let (world, state) = searched(strategy, 1);
        let (node, ..) = deep(&state);
        let text = pack(&world, node);
        assert!(text.contains("=== WHERE THIS STANDS AGAINST THE ROOT ===\n- "), "{text}");
        assert!(text.contains("\n- gained: "), "{text}");
        let (other, _) = searched(strategy, 2);
        assert_eq!(text, pack(&other, node), "{strategy}");
    }
}
