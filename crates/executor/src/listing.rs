//! Stores a list of input files with the digest of each. The bytes of the list are recorded, so
//! that a later process can name the changed files.

use std::collections::BTreeMap;
use treebeam_core::id::Sha256;

/// Length of a digest in text.
const DIGEST_CHARS: usize = 64;

/// Digests of files by the bytes of their paths in the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InputListing(BTreeMap<Vec<u8>, Sha256>);

impl InputListing {
    pub(super) fn insert(&mut self, name: &[u8], digest: Sha256) {
        self.0.insert(name.to_vec(), digest);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, name: &[u8]) -> bool {
        self.0.contains_key(name)
    }

    /// Serialises the list: the sorted paths, each with its digest.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (name, digest) in &self.0 {
            text.extend_from_slice(name);
            text.extend_from_slice(format!("\0{digest}\n").as_bytes());
        }
        text
    }

    /// Parses the output of [`Self::to_bytes`]; returns `None` if it is anything else.
    pub(super) fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut listing = Self::default();
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| *byte == 0)?;
            let (name, rest) = bytes.split_at_checked(end)?;
            let (digest, rest) = rest.get(1..)?.split_at_checked(DIGEST_CHARS)?;
            listing.insert(name, std::str::from_utf8(digest).ok()?.parse().ok()?);
            bytes = rest.strip_prefix(b"\n")?;
        }
        Some(listing)
    }

    pub(super) fn digest_list(&self) -> Sha256 {
        Sha256::hash_bytes(&self.to_bytes())
    }

    /// Returns the paths that are in only one of the lists, or whose digests differ.
    pub(super) fn differing_paths(&self, now: &Self) -> Vec<String> {
        let changed = self.0.iter().filter(|(name, digest)| now.0.get(*name) != Some(*digest));
        let new = now.0.iter().filter(|(name, _)| !self.0.contains_key(*name));
        let text = |(name, _): (&Vec<u8>, _)| String::from_utf8_lossy(name).into_owned();
        let mut names: Vec<String> = changed.chain(new).map(text).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut listing = InputListing::default();
        for name in [&b"data/a b.csv"[..], b"data/\xff\n.csv", b"z"] {
            listing.insert(name, Sha256::hash_bytes(name));
        }
        let bytes = listing.to_bytes();
        assert_eq!(InputListing::parse(&bytes), Some(listing));
        assert_eq!(InputListing::parse(b""), Some(InputListing::default()));
        for wrong in [&b"x"[..], b"x\0abc\n", &bytes[..bytes.len() - 1]] {
            assert_eq!(InputListing::parse(wrong), None);
        }
    }
}
