//! Applies a diff to a worktree and its index, completely or not at all. Does not judge the
//! changes.

use super::call::{GitAnswer, GitCall};
use super::error_text::without_paths;
use super::killed::MAX_KILLED_TRIES;
use super::worktree::Worktree;
use super::{GitRepo, gc, lock, paths};
use std::collections::BTreeSet;
use std::path::Path;
use treebeam_core::id::CodePlace;
use treebeam_process::ChildInput;
use treebeam_run::patch;
use treebeam_run::port::{ApplyResult, PortError};

/// Maximum size of a list of paths, in bytes.
const MAX_PATH_LIST_BYTES: usize = 64 << 20;

impl GitRepo {
    /// Applies a diff. A killed git may leave half-written files, or even an index that has the
    /// diff, so the worktree is rebuilt before each further try.
    pub(super) fn apply_diff(
        &self,
        place: CodePlace,
        diff: &str,
    ) -> Result<ApplyResult, PortError> {
        for _ in 1..MAX_KILLED_TRIES {
            match self.try_apply_diff(place, diff)? {
                Some(applied) => return Ok(applied),
                None => self.remake_worktree(place)?,
            }
        }
        self.try_apply_diff(place, diff)?.ok_or_else(|| {
            PortError::new(format!("`git apply` for {place} was killed {MAX_KILLED_TRIES} times"))
        })
    }

    /// Applies a diff once; returns `None` if git was killed.
    fn try_apply_diff(
        &self,
        place: CodePlace,
        diff: &str,
    ) -> Result<Option<ApplyResult>, PortError> {
        let patch = PendingPatch {
            repo: self,
            place,
            worktree: self.find_worktree(place)?,
            text: with_final_newline(diff),
        };
        let applied = patch.apply_or_recount()?;
        if applied == Some(ApplyResult::Cleanly) {
            self.note_applied(place, diff);
        }
        Ok(applied)
    }
}

fn with_final_newline(diff: &str) -> String {
    let end = if diff.ends_with('\n') { "" } else { "\n" };
    format!("{diff}{end}")
}

/// How git treats the line counts in the hunk headers of a diff.
#[derive(Clone, Copy)]
enum LineCounts {
    AsWritten,
    Recounted,
}

impl LineCounts {
    fn git_flag(self) -> &'static str {
        match self {
            Self::AsWritten => "--no-recount",
            Self::Recounted => "--recount",
        }
    }
}

/// A diff that is to be applied to a worktree.
struct PendingPatch<'a> {
    repo: &'a GitRepo,
    place: CodePlace,
    worktree: Worktree,
    text: String,
}

impl PendingPatch<'_> {
    fn apply_or_recount(&self) -> Result<Option<ApplyResult>, PortError> {
        let answer = self.apply_despite_gc(LineCounts::AsWritten)?;
        if answer.stderr.contains("error: corrupt patch") {
            if let Some(why) = patch::truncation_error(&self.text) {
                return Ok(Some(ApplyResult::Refused(format!("error: {why}"))));
            }
            // Models often miscount lines. Recounting comes second: it fails on a trailing blank
            // line.
            return self.read_outcome(
                &self.apply_despite_gc(LineCounts::Recounted)?,
                LineCounts::Recounted,
            );
        }
        self.read_outcome(&answer, LineCounts::AsWritten)
    }

    /// Applies the diff, and repeats it if a gc deleted what git was writing: not the diff's fault.
    fn apply_despite_gc(&self, counts: LineCounts) -> Result<GitAnswer, PortError> {
        for _ in 0..gc::MAX_GC_REPEATS {
            self.repo.user.await_gc();
            let answer = self.apply_once(counts)?;
            if answer.code == Some(0) || !gc::is_gc_loss(&answer.stderr) {
                return Ok(answer);
            }
            self.undo_half_applied(counts)?;
        }
        self.apply_once(counts)
    }

    fn git_call(&self, arguments: &[&str]) -> GitCall {
        self.repo.user.git.sealed_call(&self.worktree.target, arguments).with_subject(self.place)
    }

    fn git_call_with_diff(&self, arguments: &[&str]) -> GitCall {
        self.git_call(arguments).input(ChildInput::from_bytes(self.text.clone().into_bytes()))
    }

    fn apply_once(&self, counts: LineCounts) -> Result<GitAnswer, PortError> {
        let arguments = ["apply", "--index", "--whitespace=nowarn", counts.git_flag(), "-"];
        let input = lock::write_locked_input(&self.worktree.target.git_dir, self.text.as_bytes())?;
        self.git_call(&arguments).input(input).without_retry().run()
    }

    fn read_outcome(
        &self,
        answer: &GitAnswer,
        counts: LineCounts,
    ) -> Result<Option<ApplyResult>, PortError> {
        if answer.was_killed() {
            return Ok(None);
        }
        if answer.code == Some(0) {
            return Ok(Some(ApplyResult::Cleanly));
        }
        if has_git_aborted(answer) {
            self.remove_index_lock()?;
            let why = "error: malformed diff: git gave up reading it";
            return Ok(Some(ApplyResult::Refused(why.to_owned())));
        }
        if is_git_failure(answer) {
            return Err(answer.to_error());
        }
        if answer.stderr.contains("error: unable to ") {
            self.undo_half_applied(counts)?;
        }
        let target = &self.worktree.target;
        let common_dir = paths::git_path(&self.repo.user.common_dir.to_string_lossy());
        let paths = [target.work_tree.as_str(), &target.git_dir, &self.repo.run_dir, &common_dir];
        Ok(Some(ApplyResult::Refused(without_paths(&answer.stderr, &paths))))
    }

    /// Removes the index lock of the git that has just died; no other git works in this worktree.
    fn remove_index_lock(&self) -> Result<(), PortError> {
        let lock = Path::new(&self.worktree.target.git_dir).join("index.lock");
        paths::remove_path(&lock).map_err(|error| {
            PortError::new(format!("the index of {} stays locked", self.place)).with_cause(error)
        })
    }

    /// Undoes a diff that git applied half-way. Git checks before it writes, but not everything: a
    /// file that should become a folder stops it half-way, with the index unchanged. Paths of the
    /// diff that are not in the index did not exist before, or git would have refused the diff.
    fn undo_half_applied(&self, counts: LineCounts) -> Result<(), PortError> {
        let touched =
            self.git_call_with_diff(&["apply", "--numstat", "-z", counts.git_flag(), "-"]);
        let touched = touched.keep_stdout(MAX_PATH_LIST_BYTES).run()?;
        let tracked = self
            .git_call(&["ls-files", "-z"])
            .keep_stdout(MAX_PATH_LIST_BYTES)
            .run_checked()?
            .full_text()?;
        let tracked: BTreeSet<&str> = tracked.split('\0').collect();
        let touched = touched.full_text()?;
        let paths = touched.split('\0').filter_map(|line| line.splitn(3, '\t').nth(2));
        paths
            .filter(|path| !tracked.contains(path))
            .try_for_each(|path| self.remove_new_file(path))?;
        let input = lock::write_locked_input(&self.worktree.target.git_dir, &[])?;
        let again = ["checkout-index", "--all", "--force", "--quiet", "--index"];
        self.git_call(&again).input(input).run_checked().map(drop)
    }

    fn remove_new_file(&self, path: &str) -> Result<(), PortError> {
        let file = Path::new(&self.worktree.target.work_tree).join(path);
        let inside = file.parent().is_some_and(|above| {
            paths::real_path(above)
                .is_ok_and(|real| real == paths::git_path(&above.to_string_lossy()))
        });
        if !inside || file.is_dir() {
            return Ok(());
        }
        paths::remove_path(&file).map_err(|error| {
            PortError::new(format!("half a diff cannot be taken back for {}", self.place))
                .with_cause(error)
        })
    }
}

/// Returns true if git aborted. Some malformed diffs make it abort while it reads them, before it
/// has written anything but its lock.
fn has_git_aborted(answer: &GitAnswer) -> bool {
    let broken = |line: &str| line.contains(": Assertion `") || line.starts_with("BUG: ");
    answer.code != Some(1) && answer.stderr.lines().next_back().is_some_and(broken)
}

/// Returns true if git itself failed (full disk, lock, broken index), not the diff.
fn is_git_failure(answer: &GitAnswer) -> bool {
    answer.code.is_none() || has_environment_error(&answer.stderr)
}

/// Returns true if git reports an error of the environment. Git quotes names from the diff, so only
/// ends of lines and a few beginnings are conclusive.
fn has_environment_error(stderr: &str) -> bool {
    const ERROR_LINE_ENDS: [&str; 8] = [
        "No space left on device",
        "Out of diskspace",
        "Permission denied",
        "Operation not permitted",
        "Disk quota exceeded",
        "Read-only file system",
        "Too many open files",
        "Input/output error",
    ];
    const ERROR_LINE_BEGINNINGS: [&str; 3] = [
        "fatal:",
        "error: insufficient permission for adding an object",
        "error: unable to create temporary file",
    ];
    stderr.lines().any(|line| {
        ERROR_LINE_BEGINNINGS.iter().any(|words| line.starts_with(words))
            || ERROR_LINE_ENDS.iter().any(|words| line.ends_with(words))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_world_is_not_the_diffs() {
        for world in [
            "error: insufficient permission for adding an object to repository database .git/objects\nerror: x",
            "error: unable to create file a.py: Permission denied",
            "error: write error. Out of diskspace",
            "fatal: Unable to create 'index.lock': File exists.",
        ] {
            assert!(has_environment_error(world), "{world}");
        }
        for diff in [
            "error: patch failed: a.py:1\nerror: a.py: patch does not apply",
            "error: Permission denied.py: does not exist in index",
        ] {
            assert!(!has_environment_error(diff), "{diff}");
        }
    }
}
