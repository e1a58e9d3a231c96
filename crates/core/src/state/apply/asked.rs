//! What a user's messages do to the state: pauses and stops, which are history, and ideas, which become evals.

use super::{State, Unexpected, wrong};
use crate::event::{IdeaAdded, MessageId, Wish};
use crate::facts::Phase;
use crate::group::IdeaSource;
use jiff::Timestamp;

/// How many messages are remembered. A file that was acted upon is gone, or tried to be removed, at the next look.
const REMEMBERED: usize = 256;

impl State {
    pub(super) fn wished(
        &mut self,
        wish: Wish,
        message: Option<&MessageId>,
        at: Timestamp,
    ) -> Result<(), Unexpected> {
        let (depth, history) = (self.facts.depth, &mut self.facts.history);
        match wish {
            Wish::Pause => history.paused_since = history.paused_since.or(Some(at)),
            // One thing after the other: the end of a pause leaves it as it was before.
            Wish::Unpause if history.paused_since.is_some() => history.paused_since = None,
            Wish::Unpause => history.stop_after = None,
            Wish::Stop => (history.paused_since, history.stop_after) = (None, None),
            Wish::StopAfterDepth => history.stop_after = history.stop_after.or(Some(depth)),
        }
        message.map_or(Ok(()), |message| self.remember(message))
    }

    pub(super) fn remember(&mut self, message: &MessageId) -> Result<(), Unexpected> {
        if self.facts.has_taken(message) {
            return wrong(format!("the message {message} is taken twice"));
        }
        let messages = &mut self.facts.history.messages;
        messages.push(message.clone());
        if messages.len() > REMEMBERED {
            messages.remove(0);
        }
        Ok(())
    }

    pub(super) fn idea_added(&mut self, added: &IdeaAdded) -> Result<(), Unexpected> {
        let IdeaAdded { message, node, eval, idea, at } = added;
        let searching = matches!(self.facts.phase, Phase::Searching);
        let all_in = !self.facts.waits_for_ideas();
        if !searching || !all_in || !self.facts.frontier.contains(node) {
            return wrong(format!("an idea is added to node {node} out of turn"));
        }
        if *eval != self.facts.next_eval() {
            return wrong(format!("an idea added to node {node} does not get the next id"));
        }
        let Some(expansion) = self.node_mut(*node)?.expansions.last_mut() else {
            return wrong(format!("an idea is added to node {node}, which was not expanded"));
        };
        expansion.added.push(*eval);
        self.queue(*eval, IdeaSource::Node(*node), idea.clone(), *at);
        self.remember(message)
    }
}
