//! Finds new files of a change that do not belong into a commit: too large or ignored by git. Files
//! that the commit before has may grow, and a moved file is not new. It does not judge paths.

use super::GitRepo;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use treebeam_core::id::CodePlace;
use treebeam_process::ChildInput;
use treebeam_run::port::{PortError, StagedChanges};

/// Maximum size of a new file of a change, in bytes, unless configured otherwise.
pub const DEFAULT_MAX_NEW_FILE_BYTES: u64 = 256 << 10;
/// Maximum size of a list of paths, in bytes.
const MAX_PATH_LIST_BYTES: usize = 16 << 20;

impl GitRepo {
    /// Sets the maximum size of a new file of a change, in bytes.
    #[must_use]
    pub fn with_max_new_file_bytes(self, max_new_file_bytes: u64) -> Self {
        Self { max_new_file_bytes, ..self }
    }

    /// Returns the changes in the index of a worktree, with complaints about unwanted new files.
    pub(super) fn checked_changes(&self, place: CodePlace) -> Result<StagedChanges, PortError> {
        let raw = self.raw_index_changes(place)?;
        let added = added_paths(&raw);
        let mut unwanted = self.too_large_files(place, &added)?;
        unwanted.extend(self.ignored_files(place, &added)?);
        Ok(StagedChanges { changes: super::diff::parse_changes(&raw), unwanted })
    }

    fn too_large_files(&self, place: CodePlace, added: &[&str]) -> Result<Vec<String>, PortError> {
        let folder = self.worktree_folder(place)?;
        let most = self.max_new_file_bytes;
        let too_large = |path: &&str| {
            let found = fs::symlink_metadata(Path::new(&folder).join(path)).ok()?;
            (found.is_file() && found.len() > most).then(|| {
                let (size, most) = (found.len().div_ceil(1 << 10), most >> 10);
                format!(
                    "`{path}` is new and has {size} KiB: a new file may have {most} KiB \
                     (`max_new_file_kib`), and results, logs and caches do not belong into a change"
                )
            })
        };
        Ok(added.iter().filter_map(too_large).collect())
    }

    fn ignored_files(&self, place: CodePlace, added: &[&str]) -> Result<Vec<String>, PortError> {
        if added.is_empty() {
            return Ok(Vec::new());
        }
        let target = self.find_worktree(place)?.target;
        let list: String = added.iter().flat_map(|path| [path, "\0"]).collect();
        let question = ["check-ignore", "--no-index", "-z", "--stdin"];
        let call = self.user.git.sealed_call(&target, &question).with_subject(place);
        let answer = call
            .input(ChildInput::from_bytes(list.into_bytes()))
            .keep_stdout(MAX_PATH_LIST_BYTES)
            .run()?;
        match answer.code {
            Some(0 | 1) => {}
            Some(_) | None => return Err(answer.to_error()),
        }
        let text = answer.full_text()?;
        let said = |path: &str| format!("`{path}` is new, and git ignores it: leave it out");
        Ok(text.split_terminator('\0').map(said).collect())
    }
}

/// Returns the paths of new files from the output of `git diff-index --raw -z`.
fn added_paths(raw: &str) -> Vec<&str> {
    let cells: Vec<&str> = raw.split_terminator('\0').collect();
    let entries = cells.chunks_exact(2).filter_map(|cells| match cells {
        [head, path] => Some((head.split(' ').collect::<Vec<_>>(), *path)),
        _ => None,
    });
    let entries: Vec<_> = entries.collect();
    let gone: BTreeSet<&str> = entries
        .iter()
        .filter(|(head, _)| head.last() == Some(&"D"))
        .filter_map(|(head, _)| head.get(2).copied())
        .collect();
    let is_new = |head: &[&str]| {
        let moved = head.get(3).is_some_and(|object| gone.contains(object));
        head.last() == Some(&"A")
            && head.get(1).is_some_and(|mode| mode.starts_with("100"))
            && !moved
    };
    entries.iter().filter(|(head, _)| is_new(head)).map(|(_, path)| *path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_moved_is_not_new() {
        let raw = ":000000 100644 00 aa A\0new\0:100644 000000 bb 00 D\0old\0:000000 100644 00 bb A\0moved\0\
                   :100644 100644 cc dd M\0changed\0:000000 120000 00 ee A\0link\0";
        assert_eq!(added_paths(raw), ["new"]);
        assert!(added_paths("").is_empty());
    }
}
