//! Turns of a node's conversation and the forks they come from. Replay is decided elsewhere.

use super::{Expansion, Facts, Node, NodeOrigin};
use crate::conversation::{Turn, TurnSummary};
use crate::event::Idea;
use crate::group::IdeaSource;
use crate::id::{NodeId, RunPath, TurnId};
use crate::path;

/// One turn of a node's conversation.
#[derive(Clone, Debug)]
pub struct NodeTurn<'a> {
    /// Id of the turn.
    pub id: TurnId,
    /// Name of the turn's question.
    pub key: String,
    /// Expansion that the turn belongs to.
    pub expansion: &'a Expansion,
    /// Record of the turn; `None` without a conversation.
    pub turn: Option<&'a Turn>,
}

impl Node {
    /// Returns the turns of the node's own conversation, oldest first.
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

    /// Returns the turn that the node's conversation forks from.
    #[must_use]
    pub const fn forked_at(&self) -> Option<TurnId> {
        match self.origin {
            NodeOrigin::Root => None,
            NodeOrigin::Promoted { forked_at, .. } => Some(forked_at),
        }
    }
}

impl NodeTurn<'_> {
    /// Returns the ideas that the turn brought.
    pub fn ideas<'a>(&'a self, facts: &'a Facts) -> impl Iterator<Item = Idea> {
        let number = Some(self.id.number);
        facts.ideas_of(self.expansion).filter(move |idea| idea.turn == number)
    }

    /// Returns the file with the turn's question.
    #[must_use]
    pub fn prompt_path(&self) -> RunPath {
        path::idea_prompt_file(self.id.node, &self.key)
    }

    /// Returns the file with the turn's reply.
    #[must_use]
    pub fn reply_path(&self) -> RunPath {
        path::idea_reply_file(self.id.node, &self.key)
    }

    /// Returns the summary that was written in the turn, with its file.
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
    /// Returns the fork turns of a node's lineage, nearest first.
    pub fn fork_turns(&self, node: NodeId) -> impl Iterator<Item = TurnId> {
        self.lineage(node).filter_map(Node::forked_at)
    }
}
