//! What a user asks of a run while it runs, and the names of the messages that say so.

use crate::id::BadName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Something that the user asks of the process that runs a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserRequest {
    /// Start nothing new until told otherwise.
    Pause,
    /// Go on.
    Unpause,
    /// Let what is under way end, and leave the run: it can be resumed.
    Stop,
    /// Leave it once the depth that is open is at its end, its promotions included: it can be resumed.
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

/// A message's name: it sorts by when the message was written, and no two messages share one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MessageId(String);

impl MessageId {
    /// The longest name.
    const MAX_CHARS: usize = 80;

    /// The name as text.
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
