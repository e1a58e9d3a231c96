//! The files of a commit in a worktree, and which of them may be others by now. What the files were is remembered by a copy
//! of the worktree's index from before any command ran there, so that git reads only files that the system says were
//! changed. Where there is no such copy, each file may be another one.

use super::call::GitTarget;
use super::worktree::Worktree;
use super::worktree_diff::INDEX_COPY_PREFIX;
use super::{GitRepo, paths};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;
use tempfile::TempPath;
use treebeam_core::id::{CodePlace, Commit};
use treebeam_process::ChildInput;
use treebeam_run::port::PortError;

/// No list of files is longer, in bytes.
const MAX_FILE_LIST_BYTES: usize = 256 << 20;
/// Settings with which git believes the times of files least, whatever the repository says.
const CAREFUL_SETTINGS: [(&str, &str); 5] = [
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "core.trustctime"),
    ("GIT_CONFIG_VALUE_0", "true"),
    ("GIT_CONFIG_KEY_1", "core.checkStat"),
    ("GIT_CONFIG_VALUE_1", "default"),
];

/// A copy of a worktree's index, which knows the files by what the system said of them.
#[derive(Debug)]
pub(super) struct IndexCopy {
    bytes: Vec<u8>,
    modified: SystemTime,
    /// What was committed, or checked out, with this index.
    commit: Commit,
}

/// A file of a commit in a worktree, as a listing of git has it.
pub(super) struct TrackedFile<'a> {
    /// What it is: a file, a link, a submodule.
    pub(super) mode: &'a str,
    pub(super) object: &'a str,
    pub(super) path: &'a str,
    /// Whether it may be another one than the commit has.
    pub(super) may_differ: bool,
}

impl IndexCopy {
    fn read(git_dir: &str, commit: &Commit) -> io::Result<Self> {
        let path = Path::new(git_dir).join("index");
        let modified = fs::metadata(&path)?.modified()?;
        Ok(Self { bytes: fs::read(path)?, modified, commit: commit.clone() })
    }

    /// Puts it where git can read it. Not into the run's folder: it is gone before anything else is done.
    fn write(&self) -> io::Result<TempPath> {
        let mut file = tempfile::Builder::new().prefix(INDEX_COPY_PREFIX).tempfile()?;
        file.write_all(&self.bytes)?;
        // Git looks into files that are no older than the index.
        file.as_file().set_modified(self.modified)?;
        Ok(file.into_temp_path())
    }
}

impl GitRepo {
    /// Remembers what the files of a worktree are, before commands run there. What cannot be remembered is read later.
    pub(super) fn remember_files(&self, place: CodePlace, commit: &Commit) {
        let mut known = self.known_worktrees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worktree) = known.get_mut(&place) {
            worktree.index = IndexCopy::read(&worktree.target.git_dir, commit).ok().map(Arc::new);
        }
    }

    /// What `take` makes of the files of a commit in the worktree of a place.
    pub(super) fn map_tracked<T>(
        &self,
        place: CodePlace,
        commit: &Commit,
        take: impl Fn(&TrackedFile<'_>) -> Option<T>,
    ) -> Result<Vec<T>, PortError> {
        let folder = self.worktree_folder(place)?;
        let known = self
            .known_worktrees
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&place)
            .cloned();
        let is_there = paths::real_path(Path::new(&folder)).is_ok_and(|real| real == folder);
        let index = known.filter(|_| is_there).and_then(|worktree| worktree.index);
        if let Some(index) = index.filter(|index| index.commit == *commit)
            && let Some(listed) = self.list_by_index(place, commit, &folder, &index)?
            && let Some(files) = parse_index_list(&listed, &folder)
        {
            return Ok(files.iter().filter_map(take).collect());
        }
        let listed = self.list_by_commit(commit)?;
        Ok(listed.split('\0').filter_map(parse_tree_entry).filter_map(|file| take(&file)).collect())
    }

    /// The files by an index, with those again that were changed; nothing where git cannot use it.
    fn list_by_index(
        &self,
        place: CodePlace,
        commit: &Commit,
        folder: &str,
        index: &IndexCopy,
    ) -> Result<Option<String>, PortError> {
        let Ok(file) = index.write() else { return Ok(None) };
        let Some(name) = file.to_str() else { return Ok(None) };
        let attributes = format!("--attr-source={commit}");
        let question = ["ls-files", "-z", "-t", "--cached", "--stage", "--modified"];
        let arguments = [&[attributes.as_str()], &question[..]].concat();
        let seat = GitTarget { work_tree: folder.to_owned(), ..self.shared_target() };
        let call = self.user.git.sealed_call(&seat, &arguments).with_subject(place);
        let call = call.envs([("GIT_INDEX_FILE", name)]).envs(CAREFUL_SETTINGS);
        let answer = call.keep_stdout(MAX_FILE_LIST_BYTES).run()?;
        if answer.code == Some(0) { answer.full_text().map(Some) } else { Ok(None) }
    }

    fn list_by_commit(&self, commit: &Commit) -> Result<String, PortError> {
        let arguments = ["ls-tree", "-r", "-z", "--full-tree", commit.as_str()];
        let listed = self
            .user
            .git
            .sealed_call(&self.shared_target(), &arguments)
            .keep_stdout(MAX_FILE_LIST_BYTES);
        listed.run_checked()?.full_text()
    }

    /// Writes files as the commit has them, by the index from before. Whatever lies in their place goes.
    pub(super) fn restore_files(
        &self,
        place: CodePlace,
        commit: &Commit,
        paths: &[String],
    ) -> Result<(), PortError> {
        let Worktree { index: Some(index), target: seat, .. } = self.find_worktree(place)? else {
            // Without knowing the files all of them are written.
            return self.make_for_use(place, commit);
        };
        let failed =
            |error| PortError::new(format!("cannot restore files of {place}")).with_cause(error);
        let file = index.write().map_err(failed)?;
        let name = file.to_str().ok_or_else(|| PortError::new("a path is not UTF-8"))?;
        let list: String = paths.iter().map(|path| format!("{path}\0")).collect();
        let attributes = format!("--attr-source={commit}");
        let arguments = [&attributes, "checkout-index", "--force", "--quiet", "-z", "--stdin"];
        let seat = GitTarget { work_tree: seat.work_tree, ..self.shared_target() };
        let call = self.user.git.sealed_call(&seat, &arguments).with_subject(place);
        let call = call.envs([("GIT_INDEX_FILE", name)]);
        call.input(ChildInput::from_bytes(list.into_bytes())).run_checked().map(drop)
    }
}

/// Reads a list by an index; nothing where it has something unexpected.
fn parse_index_list<'a>(listed: &'a str, folder: &str) -> Option<Vec<TrackedFile<'a>>> {
    let mut files: Vec<TrackedFile<'_>> = Vec::new();
    for entry in listed.split_terminator('\0') {
        let (tag, file) = parse_index_entry(entry)?;
        match (tag, files.last_mut()) {
            // Git names a file that was changed once more.
            ("C" | "R", Some(last)) if last.path == file.path => last.may_differ = true,
            ("H", _) => files.push(file),
            _ => return None,
        }
    }
    if has_replaced_folders(folder, &files) {
        for file in &mut files {
            file.may_differ = true;
        }
    }
    Some(files)
}

/// Whether a folder of these files is none any more.
fn has_replaced_folders(folder: &str, files: &[TrackedFile<'_>]) -> bool {
    let (mut last, mut folders) = ("", BTreeSet::new());
    for path in files.iter().map(|file| file.path) {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        if above != last {
            folders.extend(path.match_indices('/').filter_map(|(at, _)| path.get(..at)));
            last = above;
        }
    }
    let is_folder = |name: &&str| {
        fs::symlink_metadata(Path::new(folder).join(name)).is_ok_and(|found| found.is_dir())
    };
    !folders.iter().all(is_folder)
}

/// Reads `H 100644 1234… 0\tpath`.
fn parse_index_entry(entry: &str) -> Option<(&str, TrackedFile<'_>)> {
    let (head, path) = entry.split_once('\t')?;
    let mut words = head.split(' ');
    let (tag, mode, object) = (words.next()?, words.next()?, words.next()?);
    Some((tag, TrackedFile { mode, object, path, may_differ: false }))
}

/// Reads `100644 blob 1234…\tpath`.
fn parse_tree_entry(entry: &str) -> Option<TrackedFile<'_>> {
    let (head, path) = entry.split_once('\t')?;
    let mut words = head.split(' ');
    let (mode, object) = (words.next()?, words.nth(1)?);
    Some(TrackedFile { mode, object, path, may_differ: true })
}
