//! Names of runs, nodes, evals, turns, commits, digests and places, parsed once and trusted
//! afterwards. No absolute locations: [`RunPath`] is only a checked relative name.

mod tree;

pub use tree::GitTree;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use std::fmt;
use std::str::FromStr;

/// Error for a name that does not have the required form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct BadName {
    /// Rejected text, at most 80 characters of it.
    pub text: String,
    /// Description of the required form.
    pub expected: &'static str,
}

fn bad_name(text: &str, expected: &'static str) -> BadName {
    BadName { text: text.chars().take(80).collect(), expected }
}

/// Implements the `String` conversions that serde uses, for a type that is written as text.
macro_rules! as_text {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.to_string()
            }
        }
    };
}

macro_rules! counted {
    ($(#[$doc:meta])* $name:ident, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        // Text in readable formats, a number in binary ones.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    self.0.serialize(serializer)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
                } else {
                    Deserialize::deserialize(deserializer).map(Self)
                }
            }
        }

        impl $name {
            /// Creates the id with this number.
            #[must_use]
            pub const fn new(number: u32) -> Self {
                Self(number)
            }
            /// Returns the id's number.
            #[must_use]
            pub const fn number(self) -> u32 {
                self.0
            }
            /// Returns the id after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:04}", self.0)
            }
        }
        impl FromStr for $name {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                let digits = text.len() >= 4 && text.bytes().all(|b| b.is_ascii_digit());
                let number = digits.then(|| text.parse().ok()).flatten();
                let id = number.map(Self).ok_or_else(|| bad_name(text, $expected))?;
                if id.to_string() == text { Ok(id) } else { Err(bad_name(text, $expected)) }
            }
        }
        as_text!($name);
    };
}

counted!(
    /// Id of a node: `0000` is the root.
    NodeId,
    "a node id such as `0003`"
);
counted!(
    /// Id of an eval: the first is `0001`.
    EvalId,
    "an eval id such as `0012`"
);

impl NodeId {
    /// Id of the root, the node that the run starts from.
    pub const ROOT: Self = Self(0);
}

impl EvalId {
    /// Id of the first eval of a run.
    pub const FIRST: Self = Self(1);
}

/// Depth of a node in the tree: the root has 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Depth(pub u32);

impl Depth {
    /// Returns the depth below this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Name of a run: short, and safe in a path and in a git ref on every system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    const EXPECTED_FORM: &str =
        "a run id: 1 to 40 letters, digits, `-` or `_`, starting with a letter or digit";

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let fits = (1..=40).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if is_windows_device(text) {
            return Err(bad_name(text, "a name that Windows does not keep for a device"));
        }
        if fits { Ok(Self(text.to_owned())) } else { Err(bad_name(text, Self::EXPECTED_FORM)) }
    }
}

/// Returns true if Windows reserves the name for a device.
fn is_windows_device(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let numbered = name.strip_prefix("com").or_else(|| name.strip_prefix("lpt"));
    matches!(name.as_str(), "con" | "prn" | "aux" | "nul")
        || numbered.is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']))
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
as_text!(RunId);

/// A full git commit name (SHA-1 or SHA-256), lowercase hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commit(String);

// Text in readable formats, bytes in binary ones.
impl Serialize for Commit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.serialize_str(&self.0);
        }
        let byte = |at| self.0.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
        let bytes: Option<Vec<u8>> = (0..self.0.len()).step_by(2).map(byte).collect();
        bytes.ok_or_else(|| ser::Error::custom("no commit name"))?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Commit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = if deserializer.is_human_readable() {
            String::deserialize(deserializer)?
        } else {
            let bytes = Vec::<u8>::deserialize(deserializer)?;
            let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
            digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
        };
        text.parse().map_err(de::Error::custom)
    }
}

impl Commit {
    /// Returns the full name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Returns the first twelve digits, for display.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl FromStr for Commit {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if hex && matches!(text.len(), 40 | 64) {
            Ok(Self(text.to_owned()))
        } else {
            Err(bad_name(text, "a full commit name in lowercase hex"))
        }
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
as_text!(Commit);

/// SHA-256 digest of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256([u8; 32]);

// Text in readable formats, bytes in binary ones.
impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
        } else {
            Deserialize::deserialize(deserializer).map(Self)
        }
    }
}

impl Sha256 {
    /// Computes the digest of the bytes.
    #[must_use]
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }
    /// Computes the digest of the parts, concatenated.
    #[must_use]
    pub fn hash_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        use sha2::Digest as _;
        let digest = parts.into_iter().fold(sha2::Sha256::new(), sha2::Sha256::chain_update);
        Self(digest.finalize().into())
    }
    /// Wraps a digest that was computed elsewhere, piece by piece.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
    /// Returns the bytes of the digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256 {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let wrong = || bad_name(text, "a sha256 in lowercase hex");
        let lower = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !lower || text.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}
as_text!(Sha256);

/// Path of a file of the run, relative to the run directory, with `/` between the parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunPath(String);

impl RunPath {
    /// Creates the path of a folder of the run directory from its fixed name.
    pub(crate) fn from_folder(folder: &str) -> Self {
        Self(folder.to_owned())
    }
    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Appends a part to the path; characters that are not safe in a file name become `_`.
    #[must_use]
    pub fn join(&self, part: &str) -> Self {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let part: String = part.chars().map(safe).collect();
        Self(format!("{}/{}", self.0, part.trim_start_matches('.')))
    }
    /// Returns true if the path lies below `folder`.
    #[must_use]
    pub fn is_below(&self, folder: &str) -> bool {
        self.0.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl FromStr for RunPath {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let part = |p: &str| !p.is_empty() && p != "." && p != "..";
        let plain = !text.contains(['\\', '\0', ':', '\n']);
        if plain && text.split('/').all(part) {
            Ok(Self(text.to_owned()))
        } else {
            Err(bad_name(text, "a path inside the run directory"))
        }
    }
}

impl fmt::Display for RunPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
as_text!(RunPath);

/// Id of one turn of a node's conversation, counted from 1: `c0003-t1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TurnId {
    /// Node that the conversation belongs to.
    pub node: NodeId,
    /// Number of the turn in the conversation.
    pub number: u32,
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}-t{}", self.node, self.number)
    }
}

impl FromStr for TurnId {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let wrong = || bad_name(text, "a turn id such as `c0003-t1`");
        let (node, number) =
            text.strip_prefix('c').and_then(|rest| rest.split_once("-t")).ok_or_else(wrong)?;
        let node = node.parse().map_err(|_| wrong())?;
        let number = number.parse().map_err(|_| wrong())?;
        Ok(Self { node, number })
    }
}
as_text!(TurnId);

/// Worktree and ref of a code state, which share a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum CodePlace {
    /// A node: worktree `wt/0003`, ref `n0003`.
    Node(NodeId),
    /// A candidate: worktree `cand/0012`, ref `e0012`.
    Candidate(EvalId),
}

impl CodePlace {
    /// Returns the name of the ref below `refs/heads/`.
    #[must_use]
    pub fn ref_name(self, run: &RunId) -> String {
        format!("tree/{run}/{self}")
    }
    /// Returns the path of the worktree, relative to the run directory.
    #[must_use]
    pub fn worktree_path(self) -> RunPath {
        match self {
            Self::Node(id) => RunPath(format!("wt/{id}")),
            Self::Candidate(id) => RunPath(format!("cand/{id}")),
        }
    }
}

impl fmt::Display for CodePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(id) => write!(f, "n{id}"),
            Self::Candidate(id) => write!(f, "e{id}"),
        }
    }
}

impl FromStr for CodePlace {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let wrong = |_| bad_name(text, "a node or an eval such as `n0003` or `e0012`");
        match text.split_at_checked(1) {
            Some(("n", id)) => id.parse().map(Self::Node).map_err(wrong),
            Some(("e", id)) => id.parse().map(Self::Candidate).map_err(wrong),
            _ => Err(bad_name(text, "a node or an eval such as `n0003` or `e0012`")),
        }
    }
}
as_text!(CodePlace);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        for text in ["0000", "0042", "9999", "10000"] {
            assert_eq!(text.parse::<NodeId>().map(|id| id.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "1", "00001", "-001", "12a4", "99999999999"] {
            assert!(text.parse::<NodeId>().is_err(), "{text}");
        }
        assert_eq!("c0003-t12".parse::<TurnId>().map(|t| t.to_string()), Ok("c0003-t12".into()));
        assert_eq!("e0012".parse(), Ok(CodePlace::Candidate(EvalId(12))));
        assert!("x0012".parse::<CodePlace>().is_err() && "é".parse::<CodePlace>().is_err());
    }

    #[test]
    fn names_that_would_leave_their_folder_are_refused() {
        for text in ["", "/etc", "../x", "a//b", "a/./b", "a\\b", "c:x", "a/.."] {
            assert!(text.parse::<RunPath>().is_err(), "{text}");
        }
        for text in ["", "-a", "a/b", "a.b", "ü", "CON", "com1", &"x".repeat(41)] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
        let folder: RunPath = RunPath("eval/0001".into());
        assert_eq!(folder.join("../../x y").as_str(), "eval/0001/_.._x_y");
        assert!(folder.is_below("eval") && !folder.is_below("ev"));
    }
}
