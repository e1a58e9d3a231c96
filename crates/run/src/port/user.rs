//! What the user has to say to a run while it runs, and whether it is to go on.

use std::time::Duration;
use treebeam_core::event::{MessageId, UserRequest};
use treebeam_core::id::NodeId;

/// Whether somebody wants the run to be left here. It is not over then, and can be resumed.
pub trait Interrupt: Sync {
    /// Whether nothing new may begin. Asked before anything does.
    fn is_asked_for(&self) -> bool;
    /// Ends the waits of all questions to agents: the loop has left the run, and nothing is to begin.
    fn end_waits(&self) {}
}

/// What the user has to say to a run while it runs. Nothing that lies there stops the run: what cannot be understood is
/// set aside, and nobody's message.
pub trait Inbox: Sync {
    /// The messages that are there, the oldest first.
    fn list_messages(&self) -> Vec<InboxMessage>;
    /// Forgets a message that is on record. One that is still there at the next look is known by its name.
    fn forget_message(&self, message: &MessageId);
    /// Sets a message aside that will not be acted upon, for a person to find, with the reason.
    fn set_aside(&self, message: &MessageId, why: &str);
    /// How long it is not worth looking again.
    fn poll_interval(&self) -> Duration;
}

/// Something that the user has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxMessage {
    /// Its name.
    pub id: MessageId,
    /// What it says.
    pub request: MessageContent,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageContent {
    /// To the process that runs the run now.
    Wish(UserRequest),
    /// To the run.
    Idea(UserIdea),
}

/// An idea of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserIdea {
    /// The node that it is for; the first of the frontier where it is for none.
    pub node: Option<NodeId>,
    /// Its text: what becomes its file.
    pub text: String,
}

/// Nobody interrupts, nobody has anything to say, and no input is protected.
#[derive(Clone, Copy, Debug)]
pub struct SilentUser;

impl Inbox for SilentUser {
    fn list_messages(&self) -> Vec<InboxMessage> {
        Vec::new()
    }
    fn forget_message(&self, _: &MessageId) {}
    fn set_aside(&self, _: &MessageId, _: &str) {}
    fn poll_interval(&self) -> Duration {
        Duration::from_millis(500)
    }
}

impl Interrupt for SilentUser {
    fn is_asked_for(&self) -> bool {
        false
    }
}
