//! Requests of a user to an active run, and the ids of the messages with them.

use crate::id::BadName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Request of the user to the process that runs a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserRequest {
    /// Start nothing new until an unpause.
    Pause,
    /// End the pause, or if there is none withdraw a stop after the depth.
    Unpause,
    /// Finish what is running and exit: the run can be resumed.
    Stop,
    /// Exit after the open depth, including its promotions: the run can be resumed.
    StopAfterDepth,
}

impl fmt::Display for UserRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pause => "pause",
            Self::Unpause => "unpause",
            Self::Stop => "stop",
            Self::StopAfterDepth => "stop after this depth",
        })
    }
}

/// Id of a message: unique, and sorted by the time the message was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MessageId(String);

impl MessageId {
    /// Maximum length of an id.
    const MAX_CHARS: usize = 80;

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MessageId {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let good = !text.is_empty()
            && text.len() <= Self::MAX_CHARS
            && !text.starts_with('-')
            && text.bytes().all(plain);
        if good {
            return Ok(Self(text.to_owned()));
        }
        let text = text.chars().take(Self::MAX_CHARS).collect();
        Err(BadName { text, expected: "a message's name: letters, digits and `-`" })
    }
}

impl TryFrom<String> for MessageId {
    type Error = BadName;
    fn try_from(text: String) -> Result<Self, BadName> {
        text.parse()
    }
}

impl From<MessageId> for String {
    fn from(id: MessageId) -> Self {
        id.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_in_a_path() {
        assert!("20261116T023355123456789-4711-1f".parse::<MessageId>().is_ok());
        for bad in ["", "-", "-x", "a.b", "a/b", "..", "a\\b", "ä", "a b", &"x".repeat(81)] {
            assert!(bad.parse::<MessageId>().is_err(), "{bad:?}");
        }
    }
}
