//! Fingerprints folders, to detect later whether anything in them was touched. For each entry it
//! records the name, kind, all metadata and a digest of the content. The content is read because
//! times are not enough: on some file systems a write through mapped memory leaves them unchanged.
//! It does not tell what was changed.

use super::paths::{self, FileStamp};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Size of the buffer for reading files, in bytes.
const READ_CHUNK_BYTES: usize = 64 << 10;

/// Fingerprints of all entries of some folders.
#[derive(Debug)]
pub(super) struct FolderFingerprint {
    folders: Vec<PathBuf>,
    seen: BTreeMap<PathBuf, EntryFingerprint>,
}

/// Fingerprint of one entry, or of a folder itself.
#[derive(Debug, PartialEq, Eq)]
struct EntryFingerprint {
    stamp: FileStamp,
    content: EntryContent,
}

#[derive(Debug, PartialEq, Eq)]
enum EntryContent {
    Folder,
    File([u8; 32]),
    Link(PathBuf),
    /// A pipe, socket or device, which must not be opened.
    Other,
}

impl FolderFingerprint {
    /// Takes the fingerprint of these folders with everything in them.
    pub(super) fn from_folders(folders: Vec<PathBuf>) -> io::Result<Self> {
        let mut seen = BTreeMap::new();
        walk_entries(&folders, |path, found| seen.insert(path, found).is_none())?;
        Ok(Self { folders, seen })
    }

    /// Returns true if nothing was touched. An entry that cannot be read counts as touched.
    pub(super) fn is_unchanged(&self) -> bool {
        let mut count = 0;
        let same = walk_entries(&self.folders, |path, found| {
            count += 1;
            self.seen.get(&path) == Some(&found)
        });
        same.is_ok_and(|same| same) && count == self.seen.len()
    }
}

/// Calls `show` for each entry until it returns false; returns true if it never did.
fn walk_entries(
    folders: &[PathBuf],
    mut show: impl FnMut(PathBuf, EntryFingerprint) -> bool,
) -> io::Result<bool> {
    let (mut left, mut chunk) = (folders.to_vec(), vec![0; READ_CHUNK_BYTES]);
    while let Some(path) = left.pop() {
        let found = fs::symlink_metadata(&path)?;
        if found.is_dir() {
            let inside = fs::read_dir(&path)?.map(|entry| entry.map(|entry| entry.path()));
            let inside: io::Result<Vec<PathBuf>> = inside.collect();
            left.extend(inside?);
        }
        let content = read_content(&path, &found, &mut chunk)?;
        if !show(path, EntryFingerprint { stamp: paths::file_stamp(&found), content }) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn read_content(path: &Path, found: &Metadata, chunk: &mut [u8]) -> io::Result<EntryContent> {
    Ok(if found.is_dir() {
        EntryContent::Folder
    } else if found.is_symlink() {
        EntryContent::Link(fs::read_link(path)?)
    } else if found.is_file() {
        EntryContent::File(digest_file(File::open(path)?, found.len(), chunk)?)
    } else {
        EntryContent::Other
    })
}

/// Digests at most `left` bytes, the length seen before: a longer file already differs by its
/// length.
fn digest_file(mut file: File, mut left: u64, chunk: &mut [u8]) -> io::Result<[u8; 32]> {
    let mut digest = Sha256::new();
    while left > 0 {
        match file.read(chunk) {
            Ok(0) => break,
            Ok(read) => {
                digest.update(chunk.get(..read).unwrap_or_default());
                left = left.saturating_sub(read as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_no_touch() -> io::Result<()> {
        let field = Field::new()?;
        let sight = field.sight()?;
        fs::read(field.path("a/b"))?;
        fs::read_dir(field.path("a"))?.for_each(drop);
        assert!(sight.is_unchanged() && sight.is_unchanged());
        Ok(())
    }

    #[test]
    fn whatever_was_touched_is_seen() -> io::Result<()> {
        type Touch = fn(&Field) -> io::Result<()>;
        let touches: [(&str, Touch); 8] = [
            ("other bytes", |field| fs::write(field.path("a/b"), "y")),
            ("more bytes", |field| fs::write(field.path("a/b"), "xx")),
            ("a new file", |field| fs::write(field.path("a/new"), "")),
            ("a new folder", |field| fs::create_dir(field.path("a/c/d"))),
            ("a file is gone", |field| fs::remove_file(field.path("a/b"))),
            ("a folder is gone", |field| fs::remove_dir(field.path("a/c"))),
            ("a folder is a file", |field| {
                fs::remove_dir(field.path("a/c"))?;
                fs::write(field.path("a/c"), "")
            }),
            ("all is gone", |field| fs::remove_dir_all(field.path("a"))),
        ];
        for (name, touch) in touches {
            let field = Field::new()?;
            let sight = field.sight()?;
            touch(&field)?;
            assert!(!sight.is_unchanged(), "{name}");
        }
        Ok(())
    }

    /// Another content with the same length and times, as mapped memory or a reset clock can
    /// produce.
    #[test]
    fn times_are_not_believed() -> io::Result<()> {
        let field = Field::new()?;
        let mut sight = field.sight()?;
        fs::write(field.path("a/b"), "y")?;
        let changed = fs::symlink_metadata(field.path("a/b"))?;
        sight
            .seen
            .entry(field.path("a/b"))
            .and_modify(|seen| seen.stamp = paths::file_stamp(&changed));
        assert!(!sight.is_unchanged());
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn links_and_modes_are_seen_and_nothing_waits_for_a_pipe() -> io::Result<()> {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        type Touch = fn(&Field) -> io::Result<()>;
        let touches: [(&str, Touch); 4] = [
            ("mode", |field| {
                fs::set_permissions(field.path("a/b"), fs::Permissions::from_mode(0o755))
            }),
            ("a second name elsewhere", |field| {
                fs::hard_link(field.path("a/b"), field.path("elsewhere"))
            }),
            ("a link in place of a file", |field| {
                fs::rename(field.path("a/b"), field.path("b"))?;
                symlink(field.path("b"), field.path("a/b"))
            }),
            ("a pipe in place of a file", |field| {
                fs::remove_file(field.path("a/b"))?;
                let made = rustix::fs::mkfifoat(rustix::fs::CWD, field.path("a/b"), 0o600.into());
                Ok(made?)
            }),
        ];
        for (name, touch) in touches {
            let field = Field::new()?;
            let sight = field.sight()?;
            touch(&field)?;
            assert!(!sight.is_unchanged(), "{name}");
            assert!(field.sight()?.is_unchanged(), "{name}");
        }
        Ok(())
    }

    struct Field(tempfile::TempDir);

    impl Field {
        fn new() -> io::Result<Self> {
            let field = Self(tempfile::tempdir()?);
            fs::create_dir_all(field.path("a/c"))?;
            fs::write(field.path("a/b"), "x")?;
            Ok(field)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn sight(&self) -> io::Result<FolderFingerprint> {
            FolderFingerprint::from_folders(vec![self.path("a")])
        }
    }
}
