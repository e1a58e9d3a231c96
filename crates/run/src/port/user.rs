//! The ports to the user: requests to leave a run, and messages to it while it runs.

use std::time::Duration;
use treebeam_core::event::{MessageId, UserRequest};
use treebeam_core::id::NodeId;

/// The port for requests to leave the run, which can be resumed later.
pub trait Interrupt: Sync {
    /// Returns true if nothing new may begin. The loop asks before each start.
    fn is_asked_for(&self) -> bool;
    /// Ends the waits of all questions to agents: the loop is leaving the run.
    fn end_waits(&self) {}
}

/// The port to the user's messages to a run while it runs. No message stops the run by mistake: one
/// that cannot be understood is set aside.
pub trait Inbox: Sync {
    /// Returns the messages that are there, the oldest first.
    fn list_messages(&self) -> Vec<InboxMessage>;
    /// Removes a message that is on record; its id identifies it if it is still there later.
    fn forget_message(&self, message: &MessageId);
    /// Sets aside a message that will not be acted upon, with the reason, for a person to find.
    fn set_aside(&self, message: &MessageId, why: &str);
    /// Returns the time between two looks into the inbox.
    fn poll_interval(&self) -> Duration;
}

/// A message of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxMessage {
    /// Id of the message.
    pub id: MessageId,
    /// Content of the message.
    pub request: MessageContent,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageContent {
    /// A request to the process that drives the run now.
    Wish(UserRequest),
    /// An idea for the run.
    Idea(UserIdea),
}

/// An idea of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserIdea {
    /// The node that it is for; `None` stands for the first of the frontier.
    pub node: Option<NodeId>,
    /// Text of the idea, which becomes its file.
    pub text: String,
}

/// A user without interrupts, messages and protected inputs.
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
