//! What somebody who worked in a worktree has made of it: what git says, whatever was said about it. The index that it is
//! compared with is copied before, and git is then led from its own folder, so that nothing that was done to the worktree
//! or to its `.git` leads elsewhere. It does not judge a change, and it commits nothing.

use super::call::{GitAnswer, GitCall, GitTarget};
use super::fingerprint::FolderFingerprint;
use super::worktree::Worktree;
use super::{GitRepo, gc, paths, worktree_guard};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use tempfile::TempPath;
use treebeam_core::id::CodePlace;
use treebeam_run::port::{ApplyResult, PortError};

/// No change is larger, in bytes: neither the files that it touches nor its diff.
pub const MAX_CHANGE_BYTES: usize = 16 << 20;
/// What the names of copied indexes begin with.
pub(super) const INDEX_COPY_PREFIX: &str = "index-";
/// No list of paths is longer, in bytes.
const MAX_PATH_LIST_BYTES: usize = 64 << 20;

/// A worktree as it was before somebody worked in it.
#[derive(Debug)]
pub struct WorktreeBefore {
    place: CodePlace,
    worktree: Worktree,
    /// What was in its index.
    tree: String,
    /// A copy of that index, which knows the files by their times. No two have the same name: another process may have
    /// the run, and look at the same worktree, before this one is done.
    index: TempPath,
}

/// A worktree as it was before somebody looked at it who should leave it as it is.
#[derive(Debug)]
pub struct GuardedWorktree {
    place: CodePlace,
    worktree: Worktree,
    /// What was there, where all of it could be seen.
    fingerprint: Option<FolderFingerprint>,
}

/// What became of a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorktreeDiff {
    /// The change, as a diff that git applies; empty where there is none.
    Diff(String),
    /// Something that cannot be a change, and why.
    Unusable(String),
}

impl GitRepo {
    /// Remembers a worktree before somebody works in it.
    ///
    /// # Errors
    /// When there is none, or git cannot.
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

    /// Removes what a process that was killed while somebody worked has left of [`Self::capture_worktree`].
    pub fn remove_index_copies(&self) {
        let entries = fs::read_dir(&self.run_dir).into_iter().flatten().flatten();
        let ours = |entry: &fs::DirEntry| {
            entry.file_name().to_string_lossy().starts_with(INDEX_COPY_PREFIX)
        };
        // They are in nobody's way.
        entries.filter(ours).for_each(|entry| drop(paths::remove_path(&entry.path())));
    }

    /// What the worktree has become since: all that git does not ignore, but for what fits these patterns.
    ///
    /// # Errors
    /// When git cannot tell, for a reason that is not in the worktree.
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

    /// Makes the worktree what it was.
    ///
    /// # Errors
    /// When git cannot.
    pub fn restore_worktree(&self, before: &WorktreeBefore) -> Result<(), PortError> {
        self.rebuild_worktree(before.place, &before.worktree)
    }

    /// Remembers a worktree, and git's own folder for it, before somebody looks at it.
    ///
    /// # Errors
    /// When there is none, or it cannot be noted that somebody does.
    pub fn guard_worktree(&self, place: CodePlace) -> Result<GuardedWorktree, PortError> {
        let worktree = self.find_worktree(place)?;
        let GitTarget { git_dir, work_tree } = &worktree.target;
        worktree_guard::mark_in_use(place, Path::new(git_dir))?;
        let sight = FolderFingerprint::from_folders(vec![work_tree.into(), git_dir.into()]).ok();
        Ok(GuardedWorktree { place, worktree, fingerprint: sight })
    }

    /// Makes the worktree what it was, where it is not.
    ///
    /// # Errors
    /// When git cannot.
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

/// A copy of an index, in this folder. It goes when nobody needs it any more.
fn copy_index(index: &Path, folder: impl AsRef<Path>) -> io::Result<TempPath> {
    let mut original = File::open(index)?;
    let mut copy = tempfile::Builder::new().prefix(INDEX_COPY_PREFIX).tempfile_in(folder)?;
    io::copy(&mut original, &mut copy)?;
    // Git looks into files that are no older than the index: a newer copy would let it overlook an edit that came in the
    // same moment as the checkout.
    copy.as_file().set_modified(original.metadata()?.modified()?)?;
    Ok(copy.into_temp_path())
}

/// A look at what became of a worktree, with an index of its own.
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
        // What a git that was cut off leaves is of no use to anybody.
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

    /// Which files would make the change too large.
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
        // Of a text that is not UTF-8 a diff in base 85 can be kept and shown.
        let coded = self.binary_diff(index, tree)?;
        match String::from_utf8(coded.stdout.bytes) {
            Ok(text) if coded.stdout.dropped == 0 => Ok(WorktreeDiff::Diff(text)),
            Ok(_) | Err(_) => Ok(WorktreeDiff::Unusable(
                "the change has names or texts that are not UTF-8".to_owned(),
            )),
        }
    }

    /// A diff that has no text in it.
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

    /// A call about the worktree's files that knows nothing of the worktree.
    fn git_call(&self, index: &Path, arguments: &[&str]) -> Result<GitCall, PortError> {
        let index = index.to_str().ok_or_else(|| PortError::new("a path is not UTF-8"))?;
        let work_tree = self.before.worktree.target.work_tree.clone();
        let seat = GitTarget { work_tree, ..self.repo.shared_target() };
        let call = self.repo.user.git.sealed_call(&seat, arguments).with_subject(self.before.place);
        Ok(call.envs([("GIT_INDEX_FILE", index)]))
    }
}

/// A file that cannot be read, or a repository inside that has no commit, is whose who put it there; a full disk is not.
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

/// What nobody put into a worktree.
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
