//! Requests and ideas of the user in the state: pauses and stops are history, ideas become evals.

use super::{State, StateError, state_error};
use crate::event::{IdeaAdded, MessageId, UserRequest};
use crate::facts::RunPhase;
use crate::group::IdeaSource;
use jiff::Timestamp;

/// Maximum number of remembered messages. The next poll removes a handled one's file if it can.
const MAX_REMEMBERED_MESSAGES: usize = 256;

impl State {
    pub(super) fn request_received(
        &mut self,
        wish: UserRequest,
        message: Option<&MessageId>,
        at: Timestamp,
    ) -> Result<(), StateError> {
        let (depth, history) = (self.facts.depth, &mut self.facts.history);
        match wish {
            UserRequest::Pause => history.paused_since = history.paused_since.or(Some(at)),
            // An unpause ends a pause first, and leaves a stop after the depth as it was.
            UserRequest::Unpause if history.paused_since.is_some() => history.paused_since = None,
            UserRequest::Unpause => history.stop_after = None,
            UserRequest::Stop => (history.paused_since, history.stop_after) = (None, None),
            UserRequest::StopAfterDepth => history.stop_after = history.stop_after.or(Some(depth)),
        }
        message.map_or(Ok(()), |message| self.remember_message(message))
    }

    pub(super) fn remember_message(&mut self, message: &MessageId) -> Result<(), StateError> {
        if self.facts.has_handled_message(message) {
            return state_error(format!("the message {message} is taken twice"));
        }
        let messages = &mut self.facts.history.messages;
        messages.push(message.clone());
        if messages.len() > MAX_REMEMBERED_MESSAGES {
            messages.remove(0);
        }
        Ok(())
    }

    pub(super) fn idea_added(&mut self, added: &IdeaAdded) -> Result<(), StateError> {
        let IdeaAdded { message, node, eval, idea, at } = added;
        let searching = matches!(self.facts.phase, RunPhase::Searching);
        let all_in = !self.facts.is_awaiting_ideas();
        if !searching || !all_in || !self.facts.frontier.contains(node) {
            return state_error(format!("an idea is added to node {node} out of turn"));
        }
        if *eval != self.facts.next_eval_id() {
            return state_error(format!("an idea added to node {node} does not get the next id"));
        }
        let Some(expansion) = self.node_mut(*node)?.expansions.last_mut() else {
            return state_error(format!("an idea is added to node {node}, which was not expanded"));
        };
        expansion.added.push(*eval);
        self.queue_eval(*eval, IdeaSource::Node(*node), idea.clone(), *at);
        self.remember_message(message)
    }
}
