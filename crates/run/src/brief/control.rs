//! What is told to whoever is asked for ideas of the control group: what was tried on the root before, and nothing of the tree.
//! Each question stands for itself, with no conversation, so that all that it knows is told.

use super::{EARLIER, ForIdeas, OUTCOMES, Told, outcome_line, short_line};
use crate::conversation::{ForTalk, Thread};
use treebeam_core::conversation::{Conversation, Mode};
use treebeam_core::facts::{Expansion, Node};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::EvalId;
use treebeam_core::plan;
use treebeam_core::state::State;

pub(super) fn for_ideas(state: &State, root: &Node) -> ForIdeas {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let begun = state.control_at(state.depth);
    let source = IdeaSource::Control;
    let written = state.control.iter().map(|expansion| state.ideas_of(expansion).count());
    let conversation =
        Conversation { node_id: root.id, fork_from_turn_id: None, turns: Vec::new() };
    ForIdeas {
        source,
        expansion: number(state.control.len()) + u32::from(begun.is_none()),
        count: state.control_wanted(),
        first_number: number(written.sum::<usize>()) + 1,
        turns_before: state.control.iter().map(Expansion::turns).sum(),
        tried: plan::tried_before(state, source).into_iter().map(|(_, idea)| idea).collect(),
        scope: state.meaning.dedupe_scope,
        given: None,
        until: state.deadline(),
        talk: ForTalk {
            mode: Mode::Off,
            window: 0,
            max_chars: 0,
            summary_agent: None,
            own: Thread::alone(conversation),
            parent: None,
            at: begun.map_or(root.created_at, |expansion| expansion.started_at),
        },
        told: told(state, root),
    }
}

fn told(state: &State, root: &Node) -> Told {
    let on_root = on_root(state, root);
    let (before, now) =
        on_root.split_at(on_root.partition_point(|id| *id < state.first_open_eval()));
    let skipped = before.len().saturating_sub(OUTCOMES + EARLIER);
    let before = before.get(skipped..).unwrap_or_default();
    let (older, newest) = before.split_at(before.len().saturating_sub(OUTCOMES));
    let known =
        |ids: &[EvalId]| -> Vec<_> { ids.iter().filter_map(|id| state.eval(*id)).collect() };
    let (older, newest, now) =
        (older.iter().filter_map(|id| state.eval(*id)), known(newest), known(now));
    let outcomes = newest.iter().map(|eval| outcome_line(state, eval));
    // What came of these depends on what finished first.
    let under_way = now.iter().map(|eval| format!("{}: under way", eval.idea.title));
    Told {
        node: root.id,
        root_commit: root.commit.clone(),
        commit: root.commit.clone(),
        parent_commit: None,
        standing: None,
        chain: Vec::new(),
        earlier: older.map(|eval| short_line(state, &eval)).collect(),
        outcomes: outcomes.chain(under_way).collect(),
        idea_files: newest.iter().chain(&now).map(|eval| eval.idea.clone()).collect(),
        protect: state.meaning.protected(),
        commands: state.meaning.commands(),
    }
}

/// All that was tried on the root, in the order of their ids. What the user adds to this depth comes after.
fn on_root(state: &State, root: &Node) -> Vec<EvalId> {
    let expansions = root.expansions.iter().chain(&state.control);
    let evals = expansions.flat_map(Expansion::evals).filter_map(|id| state.eval(*id));
    let mut evals: Vec<_> = evals.filter(|eval| eval.stands()).map(|eval| eval.id).collect();
    evals.sort();
    evals
}
