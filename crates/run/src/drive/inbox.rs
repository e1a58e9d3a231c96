//! What the user says to a run while it runs: read before anything is planned, recorded, then forgotten, in this order. A
//! kill in between leaves a message that is known by its name, and counts once.

use super::{Coordinator, Halt};
use crate::brief;
use crate::port::{Message, OwnIdea, Request};
use treebeam_core::event::{Event, Idea, IdeaAdded, MessageId, Wish};
use treebeam_core::id::{NodeId, Sha256};
use treebeam_core::plan::added::{self, Fit};
use treebeam_core::{idea, path};

/// What the inbox means for the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing beyond what is on record.
    Nothing,
    /// To leave the run.
    Stop,
}

impl Coordinator<'_, '_> {
    /// Who goes on with a run wants it to go on. Where it is to stop after a depth that is not at its end, that stands.
    pub(super) fn unpause(&mut self) -> Result<(), Halt> {
        while self.state.is_held() {
            let at = self.world.clock.now();
            self.apply(Event::Asked { wish: Wish::Unpause, message: None, at })?;
        }
        Ok(())
    }

    pub(super) fn read_inbox(&mut self) -> Result<Heard, Halt> {
        for Message { id, request } in self.world.inbox.look() {
            if self.state.has_taken(&id) {
                self.world.inbox.forget(&id);
                continue;
            }
            match request {
                Request::Idea(own) => self.hear_idea(&id, &own)?,
                Request::Wish(_) if self.state.stop_reason().is_some() => {
                    self.world.inbox.set_aside(&id, "the run is over");
                }
                Request::Wish(wish) => {
                    self.hear_wish(&id, wish)?;
                    if wish == Wish::Stop {
                        return Ok(Heard::Stop);
                    }
                }
            }
        }
        Ok(Heard::Nothing)
    }

    /// A wish that changes nothing is not worth an event.
    fn hear_wish(&mut self, id: &MessageId, wish: Wish) -> Result<(), Halt> {
        let history = &self.state.history;
        let (is_paused, is_to_stop) =
            (history.paused_since.is_some(), history.stop_after.is_some());
        let matters = match wish {
            Wish::Pause => !is_paused,
            Wish::Unpause => is_paused || is_to_stop,
            Wish::Stop => true,
            Wish::StopAfterDepth => !is_to_stop,
        };
        if matters {
            let (message, at) = (Some(id.clone()), self.world.clock.now());
            self.apply(Event::Asked { wish, message, at })?;
            self.record()?;
        }
        self.world.inbox.forget(id);
        Ok(())
    }

    /// An idea whose turn has not come stays where it is.
    fn hear_idea(&mut self, id: &MessageId, own: &OwnIdea) -> Result<(), Halt> {
        match added::fit(&self.state, own.node, &idea::fingerprint(&own.text)) {
            Fit::Later => Ok(()),
            Fit::On(node) => self.add_idea(id, node, &own.text),
            Fit::Never(why) => {
                let (title, at) = (idea::title(&own.text), self.world.clock.now());
                let (message, reason) = (id.clone(), why.clone());
                self.apply(Event::IdeaRefused { message, title, why: reason, at })?;
                self.record()?;
                self.world.inbox.set_aside(id, &why);
                Ok(())
            }
        }
    }

    /// The file comes before the event: whoever reads of an idea finds its text.
    fn add_idea(&mut self, id: &MessageId, node: NodeId, text: &str) -> Result<(), Halt> {
        let number = self.state.node(node).map_or(1, added::next_number);
        let title = idea::title(text);
        let path = path::node_ideas(node).join(&idea::own_file_name(number, &title));
        self.world.files.write(&path, text.as_bytes())?;
        let (sha256, fingerprint) = (Sha256::of(text.as_bytes()), idea::fingerprint(text));
        let added = IdeaAdded {
            message: id.clone(),
            node,
            eval: self.state.next_eval(),
            idea: Idea { path, sha256, fingerprint, title, turn: None },
            at: self.world.clock.at(brief::expansion(&self.state, node)),
        };
        self.apply(Event::IdeaAdded(Box::new(added)))?;
        self.record()?;
        self.world.inbox.forget(id);
        Ok(())
    }
}
