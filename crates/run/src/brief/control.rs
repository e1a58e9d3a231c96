//! Builds the idea brief of the control group: earlier attempts on the root, nothing of the tree.
//! Each question stands alone, without a conversation, so it contains everything that is known.

use super::{IdeaBrief, MAX_FULL_OUTCOMES, MAX_SHORT_OUTCOMES};
use crate::conversation::{ConversationBrief, ConversationThread};
use crate::outcome_line::{outcome_line, short_outcome_line};
use crate::prompt::IdeaContext;
use treebeam_core::conversation::{Conversation, ConversationMode};
use treebeam_core::facts::{Expansion, Node};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::EvalId;
use treebeam_core::plan;
use treebeam_core::state::State;

pub(super) fn control_idea_brief(state: &State, root: &Node) -> IdeaBrief {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let begun = state.control_expansion_at(state.depth);
    let source = IdeaSource::Control;
    let written = state.control.iter().map(|expansion| state.ideas_of(expansion).count());
    let conversation =
        Conversation { node_id: root.id, fork_from_turn_id: None, turns: Vec::new() };
    IdeaBrief {
        source,
        expansion: number(state.control.len()) + u32::from(begun.is_none()),
        count: state.wanted_control_ideas(),
        first_number: number(written.sum::<usize>()) + 1,
        turns_before: state.control.iter().map(Expansion::turn_count).sum(),
        tried: plan::tried_before(state, source).into_iter().map(|(_, idea)| idea).collect(),
        scope: state.settings.dedupe_scope,
        user_ideas: None,
        until: state.deadline(),
        conversation: ConversationBrief {
            mode: ConversationMode::Off,
            window: 0,
            max_chars: 0,
            summary_agent: None,
            own: ConversationThread::from_conversation(conversation),
            parent: None,
            at: begun.map_or(root.created_at, |expansion| expansion.started_at),
        },
        context: control_idea_context(state, root),
    }
}

fn control_idea_context(state: &State, root: &Node) -> IdeaContext {
    let on_root = root_evals(state, root);
    let (before, now) =
        on_root.split_at(on_root.partition_point(|id| *id < state.first_open_eval_id()));
    let skipped = before.len().saturating_sub(MAX_FULL_OUTCOMES + MAX_SHORT_OUTCOMES);
    let before = before.get(skipped..).unwrap_or_default();
    let (older, newest) = before.split_at(before.len().saturating_sub(MAX_FULL_OUTCOMES));
    let known =
        |ids: &[EvalId]| -> Vec<_> { ids.iter().filter_map(|id| state.eval(*id)).collect() };
    let (older, newest, now) =
        (older.iter().filter_map(|id| state.eval(*id)), known(newest), known(now));
    let outcomes = newest.iter().map(|eval| outcome_line(state, eval));
    // The outcomes of these depend on what finished first.
    let under_way = now.iter().map(|eval| format!("{}: under way", eval.idea.title));
    IdeaContext {
        node: root.id,
        root_commit: root.commit.clone(),
        commit: root.commit.clone(),
        parent_commit: None,
        node_eval: None,
        chain: Vec::new(),
        earlier: older.map(|eval| short_outcome_line(state, &eval)).collect(),
        outcomes: outcomes.chain(under_way).collect(),
        idea_files: newest.iter().chain(&now).map(|eval| eval.idea.clone()).collect(),
        protect: state.settings.protected_globs(),
        commands: state.settings.command_lines(),
    }
}

/// Returns the evals on the root, in the order of their ids. Ideas that the user adds at this depth
/// come later.
fn root_evals(state: &State, root: &Node) -> Vec<EvalId> {
    let expansions = root.expansions.iter().chain(&state.control);
    let evals = expansions.flat_map(Expansion::eval_ids).filter_map(|id| state.eval(*id));
    let mut evals: Vec<_> = evals.filter(|eval| eval.is_current()).map(|eval| eval.id).collect();
    evals.sort();
    evals
}
