//! Handles the user's messages to a run: read before planning, recorded, then removed, in this
//! order. A kill in between leaves a message that is recognised by its id, and counts once.

use super::{RunDriver, RunHalt};
use crate::brief;
use crate::port::{InboxMessage, MessageContent, UserIdea};
use treebeam_core::event::{Event, Idea, IdeaAdded, MessageId, UserRequest};
use treebeam_core::id::{NodeId, Sha256};
use treebeam_core::plan::user_idea::{self, IdeaFit};
use treebeam_core::{idea, path};

/// The effect of the inbox on the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InboxEffect {
    /// No effect beyond the recorded events.
    Nothing,
    /// The loop leaves the run.
    Stop,
}

impl RunDriver<'_, '_> {
    /// Records the end of a pause at a resume. A stop after a depth not yet at its end stays.
    pub(super) fn unpause_run(&mut self) -> Result<(), RunHalt> {
        while self.state.is_held_by_user() {
            let at = self.world.clock.now();
            self.apply_event(Event::Asked { wish: UserRequest::Unpause, message: None, at })?;
        }
        Ok(())
    }

    pub(super) fn read_inbox(&mut self) -> Result<InboxEffect, RunHalt> {
        for InboxMessage { id, request } in self.world.inbox.list_messages() {
            if self.state.has_handled_message(&id) {
                self.world.inbox.forget_message(&id);
                continue;
            }
            match request {
                MessageContent::Idea(own) => self.handle_user_idea(&id, &own)?,
                MessageContent::Wish(_) if self.state.stop_reason().is_some() => {
                    self.world.inbox.set_aside(&id, "the run is over");
                }
                MessageContent::Wish(wish) => {
                    self.handle_user_request(&id, wish)?;
                    if wish == UserRequest::Stop {
                        return Ok(InboxEffect::Stop);
                    }
                }
            }
        }
        Ok(InboxEffect::Nothing)
    }

    /// Records a request and removes its message; a request that changes nothing needs no event.
    fn handle_user_request(&mut self, id: &MessageId, wish: UserRequest) -> Result<(), RunHalt> {
        let history = &self.state.history;
        let (is_paused, is_to_stop) =
            (history.paused_since.is_some(), history.stop_after.is_some());
        let matters = match wish {
            UserRequest::Pause => !is_paused,
            UserRequest::Unpause => is_paused || is_to_stop,
            UserRequest::Stop => true,
            UserRequest::StopAfterDepth => !is_to_stop,
        };
        if matters {
            let (message, at) = (Some(id.clone()), self.world.clock.now());
            self.apply_event(Event::Asked { wish, message, at })?;
            self.record_batch()?;
        }
        self.world.inbox.forget_message(id);
        Ok(())
    }

    /// Records an idea of the user's; an idea whose turn has not come stays in the inbox.
    fn handle_user_idea(&mut self, id: &MessageId, own: &UserIdea) -> Result<(), RunHalt> {
        match user_idea::fit_user_idea(&self.state, own.node, &idea::idea_fingerprint(&own.text)) {
            IdeaFit::Later => Ok(()),
            IdeaFit::On(node) => self.add_idea(id, node, &own.text),
            IdeaFit::Never(why) => {
                let (title, at) = (idea::idea_title(&own.text), self.world.clock.now());
                let (message, reason) = (id.clone(), why.clone());
                self.apply_event(Event::IdeaRefused { message, title, why: reason, at })?;
                self.record_batch()?;
                self.world.inbox.set_aside(id, &why);
                Ok(())
            }
        }
    }

    /// Writes the idea's file, then its event, so that a recorded idea always has its text.
    fn add_idea(&mut self, id: &MessageId, node: NodeId, text: &str) -> Result<(), RunHalt> {
        let number = self.state.node(node).map_or(1, user_idea::next_user_idea_number);
        let title = idea::idea_title(text);
        let path = path::node_ideas_folder(node).join(&idea::user_idea_file_name(number, &title));
        self.world.files.write_file(&path, text.as_bytes())?;
        let (sha256, fingerprint) =
            (Sha256::hash_bytes(text.as_bytes()), idea::idea_fingerprint(text));
        let added = IdeaAdded {
            message: id.clone(),
            node,
            eval: self.state.next_eval_id(),
            idea: Idea { path, sha256, fingerprint, title, turn: None },
            at: self.world.clock.recorded_time(brief::expansion_moment(&self.state, node)),
        };
        self.apply_event(Event::IdeaAdded(Box::new(added)))?;
        self.record_batch()?;
        self.world.inbox.forget_message(id);
        Ok(())
    }
}
