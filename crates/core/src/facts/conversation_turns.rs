//! The turns of a node's conversation, and where they come from. Nothing here says what is told of them again.

use super::{Expansion, Facts, Node, NodeOrigin};
use crate::conversation::{Turn, TurnSummary};
use crate::event::Idea;
use crate::group::IdeaSource;
use crate::id::{NodeId, RunPath, TurnId};
use crate::path;

/// One turn of a node's conversation.
#[derive(Clone, Debug)]
pub struct NodeTurn<'a> {
    /// Its name.
    pub id: TurnId,
    /// The name of its question.
    pub key: String,
    /// The expansion that it belongs to.
    pub expansion: &'a Expansion,
    /// What is known of it; nothing where there was no conversation.
    pub turn: Option<&'a Turn>,
}

impl Node {
    /// The turns of its own conversation, the first one first.
    #[must_use]
    pub fn conversation_turns(&self) -> Vec<NodeTurn<'_>> {
        let mut turns = Vec::new();
        let mut before = 0;
        for (number, expansion) in (1..).zip(&self.expansions) {
            for turn in 1..=expansion.turn_count() {
                let id = TurnId { node: self.id, number: before + turn };
                let index = usize::try_from(turn - 1).unwrap_or(usize::MAX);
                let key = path::idea_question_name(IdeaSource::Node(self.id), number, turn);
                let turn = expansion.conversation.get(index);
                turns.push(NodeTurn { id, key, expansion, turn });
            }
            before += expansion.turn_count();
        }
        turns
    }

    /// The turn that its conversation goes on from.
    #[must_use]
    pub const fn forked_at(&self) -> Option<TurnId> {
        match self.origin {
            NodeOrigin::Root => None,
            NodeOrigin::Promoted { forked_at, .. } => Some(forked_at),
        }
    }
}

impl NodeTurn<'_> {
    /// The ideas that it brought.
    pub fn ideas<'a>(&'a self, facts: &'a Facts) -> impl Iterator<Item = Idea> {
        let number = Some(self.id.number);
        facts.ideas_of(self.expansion).filter(move |idea| idea.turn == number)
    }

    /// Where its question is kept.
    #[must_use]
    pub fn prompt_path(&self) -> RunPath {
        path::idea_prompt_file(self.id.node, &self.key)
    }

    /// Where its answer is kept.
    #[must_use]
    pub fn reply_path(&self) -> RunPath {
        path::idea_reply_file(self.id.node, &self.key)
    }

    /// The summary that was asked for in it, and where that is kept.
    #[must_use]
    pub fn summary_with_path(&self) -> Option<(TurnSummary, RunPath)> {
        let summary = self.turn?.summary?;
        Some((
            summary,
            path::idea_reply_file(self.id.node, &path::summary_question_name(&self.key)),
        ))
    }
}

impl Facts {
    /// The turns that a node's conversation comes from, each the fork of the one before it, the nearest first.
    pub fn fork_turns(&self, node: NodeId) -> impl Iterator<Item = TurnId> {
        self.lineage(node).filter_map(Node::forked_at)
    }
}
