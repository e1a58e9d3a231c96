//! Lists the files of a commit in a worktree, and which of them may have changed. The previous
//! state is a copy of the worktree's index from before any command ran there, so that git reads
//! only files whose metadata changed. Without such a copy, every file may have changed.

use super::call::GitTarget;
use super::index_copy::IndexCopy;
use super::worktree::Worktree;
use super::{GitRepo, paths};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use treebeam_core::id::{CodePlace, Commit};
use treebeam_process::ChildInput;
use treebeam_run::port::PortError;

/// Maximum size of a list of files, in bytes.
const MAX_FILE_LIST_BYTES: usize = 256 << 20;
/// Settings with which git trusts file times least, whatever the repository's configuration says.
const CAREFUL_SETTINGS: [(&str, &str); 5] = [
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "core.trustctime"),
    ("GIT_CONFIG_VALUE_0", "true"),
    ("GIT_CONFIG_KEY_1", "core.checkStat"),
    ("GIT_CONFIG_VALUE_1", "default"),
];

/// A tracked file of a worktree, as git lists it.
pub(super) struct TrackedFile<'a> {
    /// Git's mode: a file, a link or a submodule.
    pub(super) mode: &'a str,
    pub(super) object: &'a str,
    pub(super) path: &'a str,
    /// True if the file may differ from the commit.
    pub(super) may_differ: bool,
}

impl GitRepo {
    /// Copies the index of a worktree before commands run there. Without a copy, files are read
    /// later.
    pub(super) fn remember_files(&self, place: CodePlace, commit: &Commit) {
        let mut known = self.known_worktrees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worktree) = known.get_mut(&place) {
            worktree.index = IndexCopy::read(&worktree.target.git_dir, commit).ok().map(Arc::new);
        }
    }

    /// Applies `take` to each file of a commit in the worktree of a place.
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

    /// Lists the files of an index, changed ones twice; returns `None` if git cannot use the index.
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
        let target = GitTarget { work_tree: folder.to_owned(), ..self.shared_target() };
        let call = self.user.git.sealed_call(&target, &arguments).with_subject(place);
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

    /// Restores files to the commit's content by the copied index, whatever is at their paths now.
    pub(super) fn restore_files(
        &self,
        place: CodePlace,
        commit: &Commit,
        paths: &[String],
    ) -> Result<(), PortError> {
        let Worktree { index: Some(index), target, .. } = self.find_worktree(place)? else {
            // Without a copied index, all files are written.
            return self.make_for_use(place, commit);
        };
        let failed =
            |error| PortError::new(format!("cannot restore files of {place}")).with_cause(error);
        let file = index.write().map_err(failed)?;
        let name = file.to_str().ok_or_else(|| PortError::new("a path is not UTF-8"))?;
        let list: String = paths.iter().map(|path| format!("{path}\0")).collect();
        let attributes = format!("--attr-source={commit}");
        let arguments = [&attributes, "checkout-index", "--force", "--quiet", "-z", "--stdin"];
        let target = GitTarget { work_tree: target.work_tree, ..self.shared_target() };
        let call = self.user.git.sealed_call(&target, &arguments).with_subject(place);
        let call = call.envs([("GIT_INDEX_FILE", name)]);
        call.input(ChildInput::from_bytes(list.into_bytes())).run_checked().map(drop)
    }
}

/// Parses a list made from an index; returns `None` if it has something unexpected.
fn parse_index_list<'a>(listed: &'a str, folder: &str) -> Option<Vec<TrackedFile<'a>>> {
    let mut files: Vec<TrackedFile<'_>> = Vec::new();
    for entry in listed.split_terminator('\0') {
        let (tag, file) = parse_index_entry(entry)?;
        match (tag, files.last_mut()) {
            // Git lists a changed file a second time.
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

/// Returns true if a folder of these files is no longer a folder.
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

/// Parses `H 100644 1234… 0\tpath`.
fn parse_index_entry(entry: &str) -> Option<(&str, TrackedFile<'_>)> {
    let (head, path) = entry.split_once('\t')?;
    let mut words = head.split(' ');
    let (tag, mode, object) = (words.next()?, words.next()?, words.next()?);
    Some((tag, TrackedFile { mode, object, path, may_differ: false }))
}

/// Parses `100644 blob 1234…\tpath`.
fn parse_tree_entry(entry: &str) -> Option<TrackedFile<'_>> {
    let (head, path) = entry.split_once('\t')?;
    let mut words = head.split(' ');
    let (mode, object) = (words.next()?, words.nth(1)?);
    Some(TrackedFile { mode, object, path, may_differ: true })
}
