//! Takes the diff of a worktree in which an agent or a user has worked, and restores worktrees. The
//! index is copied before, and git is then run with the shared git folder, so that no change to the
//! worktree or its `.git` can redirect it. It does not judge a change, and commits nothing.

use super::call::{GitAnswer, GitCall, GitTarget};
use super::fingerprint::FolderFingerprint;
use super::index_copy::{INDEX_COPY_PREFIX, copy_index};
use super::worktree::Worktree;
use super::{GitRepo, gc, paths, worktree_guard};
use std::fs;
use std::path::Path;
use tempfile::TempPath;
use treebeam_core::id::CodePlace;
use treebeam_run::port::{ApplyResult, PortError};

/// Maximum size of a change, in bytes: of the files that it touches and of its diff.
pub const MAX_CHANGE_BYTES: usize = 16 << 20;
/// Maximum size of a list of paths, in bytes.
const MAX_PATH_LIST_BYTES: usize = 64 << 20;

/// State of a worktree before work in it begins.
#[derive(Debug)]
pub struct WorktreeBefore {
    place: CodePlace,
    worktree: Worktree,
    /// Tree of its index.
    tree: String,
    /// Copy of its index, with the times of the files. The name is unique: another process may take
    /// over the run, and diff the same worktree, before this one is done.
    index: TempPath,
}

/// State of a worktree before it is lent to a reader, who should leave it unchanged.
#[derive(Debug)]
pub struct GuardedWorktree {
    place: CodePlace,
    worktree: Worktree,
    /// Fingerprint of the worktree, if all of it could be read.
    fingerprint: Option<FolderFingerprint>,
}

/// Result of the work in a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorktreeDiff {
    /// The change as a diff that git applies; empty without a change.
    Diff(String),
    /// The reason why the result cannot be a change.
    Unusable(String),
}

impl GitRepo {
    /// Captures the state of a worktree before work in it begins.
    ///
    /// # Errors
    /// When there is no worktree, or git fails.
    pub fn capture_worktree(&self, place: CodePlace) -> Result<WorktreeBefore, PortError> {
        let worktree = self.find_worktree(place)?;
        let index = copy_index(&Path::new(&worktree.target.git_dir).join("index"), &self.run_dir);
        let index = index.map_err(|error| {
            PortError::new(format!("the index of {place} cannot be copied")).with_cause(error)
        })?;
        self.user.await_gc();
        let write =
            self.user.git.sealed_call(&worktree.target, &["write-tree"]).with_subject(place);
        let tree = write.run_checked()?.parse_word()?;
        Ok(WorktreeBefore { place, worktree, tree, index })
    }

    /// Removes index copies that a killed process left behind after [`Self::capture_worktree`].
    pub fn remove_index_copies(&self) {
        let entries = fs::read_dir(&self.run_dir).into_iter().flatten().flatten();
        let ours = |entry: &fs::DirEntry| {
            entry.file_name().to_string_lossy().starts_with(INDEX_COPY_PREFIX)
        };
        // Copies that stay are harmless.
        entries.filter(ours).for_each(|entry| drop(paths::remove_path(&entry.path())));
    }

    /// Returns the change of the worktree since `before`: everything that git does not ignore,
    /// except paths that match the patterns in `but`.
    ///
    /// # Errors
    /// When git fails, for a reason that is not in the worktree.
    pub fn diff_since(
        &self,
        before: &WorktreeBefore,
        but: &[&str],
    ) -> Result<WorktreeDiff, PortError> {
        if let Err(error) = self.find_worktree(before.place) {
            return Ok(WorktreeDiff::Unusable(format!(
                "the worktree is not there any more: {error}"
            )));
        }
        let look = WorktreeDiffBuilder { repo: self, before, but };
        for _ in 0..gc::MAX_GC_REPEATS {
            self.user.await_gc();
            match look.try_diff() {
                Err(error) if gc::is_gc_loss(&error.full_text()) => {}
                other => return other,
            }
        }
        look.try_diff()
    }

    /// Restores the worktree to its captured state.
    ///
    /// # Errors
    /// When git fails.
    pub fn restore_worktree(&self, before: &WorktreeBefore) -> Result<(), PortError> {
        self.rebuild_worktree(before.place, &before.worktree)
    }

    /// Marks a worktree as in use, and takes the fingerprint of it and of its admin folder.
    ///
    /// # Errors
    /// When there is no worktree, or the mark cannot be written.
    pub fn guard_worktree(&self, place: CodePlace) -> Result<GuardedWorktree, PortError> {
        let worktree = self.find_worktree(place)?;
        let GitTarget { git_dir, work_tree } = &worktree.target;
        worktree_guard::mark_in_use(place, Path::new(git_dir))?;
        let sight = FolderFingerprint::from_folders(vec![work_tree.into(), git_dir.into()]).ok();
        Ok(GuardedWorktree { place, worktree, fingerprint: sight })
    }

    /// Ends the use of a worktree, and restores it if it was changed.
    ///
    /// # Errors
    /// When git fails.
    pub fn release_worktree(&self, looked: &GuardedWorktree) -> Result<(), PortError> {
        let there = self.find_worktree(looked.place).is_ok();
        if there && looked.fingerprint.as_ref().is_some_and(FolderFingerprint::is_unchanged) {
            return worktree_guard::clear_in_use(Path::new(&looked.worktree.target.git_dir));
        }
        self.rebuild_worktree(looked.place, &looked.worktree)
    }

    fn rebuild_worktree(&self, place: CodePlace, worktree: &Worktree) -> Result<(), PortError> {
        let Worktree { base, applied, .. } = worktree;
        self.make_worktree(place, base)?;
        applied.iter().try_for_each(|diff| match self.apply_diff(place, diff)? {
            ApplyResult::Cleanly => Ok(()),
            ApplyResult::Refused(why) => {
                let what = format!("the worktree of {place} cannot be put back");
                Err(PortError::new(format!("{what}: {why}")))
            }
        })
    }
}

/// Computes the diff of a worktree with a separate index.
struct WorktreeDiffBuilder<'a> {
    repo: &'a GitRepo,
    before: &'a WorktreeBefore,
    but: &'a [&'a str],
}

impl WorktreeDiffBuilder<'_> {
    fn try_diff(&self) -> Result<WorktreeDiff, PortError> {
        let index = copy_index(&self.before.index, &self.repo.run_dir)
            .map_err(|error| PortError::new("an index cannot be copied").with_cause(error))?;
        let taken = self.diff_with_index(&index);
        // A lock that an interrupted git left is of no use.
        drop(paths::remove_path(&index.with_extension("lock")));
        taken
    }

    fn diff_with_index(&self, index: &Path) -> Result<WorktreeDiff, PortError> {
        if let Some(why) = self.too_large_reason(index)? {
            return Ok(WorktreeDiff::Unusable(why));
        }
        let mut arguments = vec!["add".to_owned(), "--all".to_owned(), "--".to_owned()];
        arguments.push(".".to_owned());
        arguments.extend(self.but.iter().map(|pattern| format!(":(exclude,glob){pattern}")));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let added = self.git_call(index, &arguments)?.run()?;
        if added.code != Some(0) && gc::is_gc_loss(&added.stderr) {
            return Err(added.to_error());
        }
        if added.code != Some(0) {
            return unusable_change(&added);
        }
        let tree: String = self.git_call(index, &["write-tree"])?.run_checked()?.parse_word()?;
        if tree == self.before.tree {
            return Ok(WorktreeDiff::Diff(String::new()));
        }
        self.diff_text(index, &tree)
    }

    /// Returns why the change is too large, if it is.
    fn too_large_reason(&self, index: &Path) -> Result<Option<String>, PortError> {
        let list = ["ls-files", "-z", "--others", "--modified", "--exclude-standard"];
        let paths = self.git_call(index, &list)?.keep_stdout(MAX_PATH_LIST_BYTES).run_checked()?;
        if paths.stdout.dropped > 0 {
            return Ok(Some("the change has too many files".to_owned()));
        }
        let mut sum = 0_u64;
        for path in paths.full_text()?.split('\0').filter(|path| !path.is_empty()) {
            let file = Path::new(&self.before.worktree.target.work_tree).join(path);
            let length = fs::symlink_metadata(&file).map_or(0, |found| found.len());
            sum = sum.saturating_add(length);
            if sum > MAX_CHANGE_BYTES as u64 {
                let most = MAX_CHANGE_BYTES >> 20;
                return Ok(Some(format!("the changed files have more than {most} MiB: `{path}`")));
            }
        }
        Ok(None)
    }

    fn diff_text(&self, index: &Path, tree: &str) -> Result<WorktreeDiff, PortError> {
        let plain = self.run_diff_tree(index, tree, &[])?;
        if plain.stdout.dropped > 0 {
            let most = MAX_CHANGE_BYTES >> 20;
            return Ok(WorktreeDiff::Unusable(format!("the change has more than {most} MiB")));
        }
        if let Ok(text) = String::from_utf8(plain.stdout.bytes) {
            return Ok(WorktreeDiff::Diff(text));
        }
        // A text that is not UTF-8 can be kept and shown as a diff in base 85.
        let coded = self.binary_diff(index, tree)?;
        match String::from_utf8(coded.stdout.bytes) {
            Ok(text) if coded.stdout.dropped == 0 => Ok(WorktreeDiff::Diff(text)),
            Ok(_) | Err(_) => Ok(WorktreeDiff::Unusable(
                "the change has names or texts that are not UTF-8".to_owned(),
            )),
        }
    }

    /// Computes a diff in which every file is binary.
    fn binary_diff(&self, index: &Path, tree: &str) -> Result<GitAnswer, PortError> {
        let attributes = index.with_extension("attributes");
        fs::write(&attributes, "* -diff\n").map_err(|error| {
            PortError::new(format!("cannot write `{}`", attributes.display())).with_cause(error)
        })?;
        let setting = format!("core.attributesFile={}", attributes.display());
        let answer = self.run_diff_tree(index, tree, &["-c", &setting]);
        drop(paths::remove_path(&attributes));
        answer
    }

    fn run_diff_tree(
        &self,
        index: &Path,
        tree: &str,
        settings: &[&str],
    ) -> Result<GitAnswer, PortError> {
        let before = self.before.tree.as_str();
        let source = format!("--attr-source={before}");
        let shape = ["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames"];
        let plain = ["--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"];
        let trees = [before, tree, "--"];
        let arguments = [settings, &[source.as_str()], shape.as_slice(), &plain, &trees].concat();
        self.git_call(index, &arguments)?.keep_stdout(MAX_CHANGE_BYTES).run_checked()
    }

    /// Builds a call on the worktree's files that does not use the worktree's own git folder.
    fn git_call(&self, index: &Path, arguments: &[&str]) -> Result<GitCall, PortError> {
        let index = index.to_str().ok_or_else(|| PortError::new("a path is not UTF-8"))?;
        let work_tree = self.before.worktree.target.work_tree.clone();
        let target = GitTarget { work_tree, ..self.repo.shared_target() };
        let call =
            self.repo.user.git.sealed_call(&target, arguments).with_subject(self.before.place);
        Ok(call.envs([("GIT_INDEX_FILE", index)]))
    }
}

/// Reports an unreadable file, or an inner repository without a commit, as an unusable change; a
/// failure of the environment, such as a full disk, is an error.
fn unusable_change(added: &GitAnswer) -> Result<WorktreeDiff, PortError> {
    let theirs = ["Permission denied", "adding files failed", "does not have a commit"];
    if !theirs.iter().any(|words| added.stderr.contains(words))
        || has_environment_error(&added.stderr)
    {
        return Err(added.to_error());
    }
    let first = added.stderr.lines().next().unwrap_or_default();
    Ok(WorktreeDiff::Unusable(format!("git cannot take up the change: {first}")))
}

/// Returns true if git reports an error that no content of a worktree causes.
fn has_environment_error(stderr: &str) -> bool {
    const ENVIRONMENT_ERRORS: [&str; 5] = [
        "No space left on device",
        "Disk quota exceeded",
        "Read-only file system",
        "Too many open files",
        "insufficient permission for adding an object",
    ];
    ENVIRONMENT_ERRORS.iter().any(|words| stderr.contains(words))
}
