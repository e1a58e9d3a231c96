//! Putting a diff into a worktree and its index: all of it or nothing. It does not judge what a diff changes.

use super::call::{Answer, Call};
use super::killed::MAX_KILLED_TRIES;
use super::said::without_paths;
use super::worktree::Worktree;
use super::{GitRepo, gc, lock, place};
use crate::process::Input;
use std::collections::BTreeSet;
use std::path::Path;
use treebeam_core::id::Place;
use treebeam_run::patch;
use treebeam_run::port::{Applied, PortError};

/// No list of paths is longer, in bytes.
const MOST_PATHS: usize = 64 << 20;

impl GitRepo {
    /// Applies a diff. A git that is killed meanwhile may leave files half-written, and even an index that has the diff: it is
    /// tried again in a worktree that is made again.
    pub(super) fn apply_diff(&self, place: Place, diff: &str) -> Result<Applied, PortError> {
        for _ in 1..MAX_KILLED_TRIES {
            match self.try_diff(place, diff)? {
                Some(applied) => return Ok(applied),
                None => self.make_again(place)?,
            }
        }
        self.try_diff(place, diff)?.ok_or_else(|| {
            PortError::new(format!("`git apply` for {place} was killed {MAX_KILLED_TRIES} times"))
        })
    }

    /// What became of a diff; nothing where git was killed.
    fn try_diff(&self, place: Place, diff: &str) -> Result<Option<Applied>, PortError> {
        let patch = Patch { repo: self, place, worktree: self.find(place)?, text: ended(diff) };
        let applied = patch.try_both()?;
        if applied == Some(Applied::Cleanly) {
            self.note_applied(place, diff);
        }
        Ok(applied)
    }
}

fn ended(diff: &str) -> String {
    let end = if diff.ends_with('\n') { "" } else { "\n" };
    format!("{diff}{end}")
}

/// Whether the line counts of a diff's hunks are believed.
#[derive(Clone, Copy)]
enum Counts {
    AsWritten,
    Again,
}

impl Counts {
    fn flag(self) -> &'static str {
        match self {
            Self::AsWritten => "--no-recount",
            Self::Again => "--recount",
        }
    }
}

/// A diff on its way into a worktree.
struct Patch<'a> {
    repo: &'a GitRepo,
    place: Place,
    worktree: Worktree,
    text: String,
}

impl Patch<'_> {
    fn try_both(&self) -> Result<Option<Applied>, PortError> {
        let answer = self.apply(Counts::AsWritten)?;
        if answer.stderr.contains("error: corrupt patch") {
            if let Some(why) = patch::cut_off(&self.text) {
                return Ok(Some(Applied::Refused(format!("error: {why}"))));
            }
            // Models count lines badly. Counting for them comes second: it trips over a blank line at the end.
            return self.outcome(&self.apply(Counts::Again)?, Counts::Again);
        }
        self.outcome(&answer, Counts::AsWritten)
    }

    /// Applies it, again where a gc took away what git had begun to write: that is not the diff's fault.
    fn apply(&self, counts: Counts) -> Result<Answer, PortError> {
        for _ in 0..gc::REPEATS {
            self.repo.user.outlast_gc();
            let answer = self.apply_once(counts)?;
            if answer.code == Some(0) || !gc::is_loss(&answer.stderr) {
                return Ok(answer);
            }
            self.undo(counts)?;
        }
        self.apply_once(counts)
    }

    fn call(&self, arguments: &[&str]) -> Call {
        self.repo.user.git.sealed(&self.worktree.seat, arguments).about(self.place)
    }

    fn reading(&self, arguments: &[&str]) -> Call {
        self.call(arguments).input(Input::bytes(self.text.clone().into_bytes()))
    }

    fn apply_once(&self, counts: Counts) -> Result<Answer, PortError> {
        let arguments = ["apply", "--index", "--whitespace=nowarn", counts.flag(), "-"];
        let input = lock::held(&self.worktree.seat.git_dir, self.text.as_bytes())?;
        self.call(&arguments).input(input).once().answer()
    }

    fn outcome(&self, answer: &Answer, counts: Counts) -> Result<Option<Applied>, PortError> {
        if answer.was_killed() {
            return Ok(None);
        }
        if answer.code == Some(0) {
            return Ok(Some(Applied::Cleanly));
        }
        if gave_up(answer) {
            self.unlock()?;
            let why = "error: malformed diff: git gave up reading it";
            return Ok(Some(Applied::Refused(why.to_owned())));
        }
        if is_gits_fault(answer) {
            return Err(answer.failure());
        }
        if answer.stderr.contains("error: unable to ") {
            self.undo(counts)?;
        }
        let seat = &self.worktree.seat;
        let common_dir = place::plain(&self.repo.user.common_dir.to_string_lossy());
        let paths = [seat.work_tree.as_str(), &seat.git_dir, &self.repo.run_dir, &common_dir];
        Ok(Some(Applied::Refused(without_paths(&answer.stderr, &paths))))
    }

    /// Nobody else works in this worktree, so the lock is that of the git that has just died.
    fn unlock(&self) -> Result<(), PortError> {
        let lock = Path::new(&self.worktree.seat.git_dir).join("index.lock");
        place::remove(&lock).map_err(|error| {
            PortError::new(format!("the index of {} stays locked", self.place)).caused_by(error)
        })
    }

    /// Git looks before it writes, but not at everything: a file that should become a folder stops it half-way, with
    /// the index unchanged. A path of the diff that the index does not have was not there before, or git had refused.
    fn undo(&self, counts: Counts) -> Result<(), PortError> {
        let touched = self.reading(&["apply", "--numstat", "-z", counts.flag(), "-"]);
        let touched = touched.keep(MOST_PATHS).answer()?;
        let tracked = self.call(&["ls-files", "-z"]).keep(MOST_PATHS).done()?.whole()?;
        let tracked: BTreeSet<&str> = tracked.split('\0').collect();
        let touched = touched.whole()?;
        let paths = touched.split('\0').filter_map(|line| line.splitn(3, '\t').nth(2));
        paths.filter(|path| !tracked.contains(path)).try_for_each(|path| self.remove_new(path))?;
        let input = lock::held(&self.worktree.seat.git_dir, &[])?;
        let again = ["checkout-index", "--all", "--force", "--quiet", "--index"];
        self.call(&again).input(input).done().map(drop)
    }

    fn remove_new(&self, path: &str) -> Result<(), PortError> {
        let file = Path::new(&self.worktree.seat.work_tree).join(path);
        let inside = file.parent().is_some_and(|above| {
            place::real(above).is_ok_and(|real| real == place::plain(&above.to_string_lossy()))
        });
        if !inside || file.is_dir() {
            return Ok(());
        }
        place::remove(&file).map_err(|error| {
            PortError::new(format!("half a diff cannot be taken back for {}", self.place))
                .caused_by(error)
        })
    }
}

/// Some malformed diffs make git abort while it reads them, before it writes anything but its lock.
fn gave_up(answer: &Answer) -> bool {
    let broken = |line: &str| line.contains(": Assertion `") || line.starts_with("BUG: ");
    answer.code != Some(1) && answer.stderr.lines().next_back().is_some_and(broken)
}

/// A diff that does not fit is the diff's fault; a full disk, a lock or a broken index is not.
fn is_gits_fault(answer: &Answer) -> bool {
    answer.code.is_none() || blames_the_world(&answer.stderr)
}

/// Names in a diff come back in git's words, so that only the ends of lines say why, and few beginnings.
fn blames_the_world(stderr: &str) -> bool {
    const ENDS: [&str; 8] = [
        "No space left on device",
        "Out of diskspace",
        "Permission denied",
        "Operation not permitted",
        "Disk quota exceeded",
        "Read-only file system",
        "Too many open files",
        "Input/output error",
    ];
    const BEGINNINGS: [&str; 3] = [
        "fatal:",
        "error: insufficient permission for adding an object",
        "error: unable to create temporary file",
    ];
    stderr.lines().any(|line| {
        BEGINNINGS.iter().any(|words| line.starts_with(words))
            || ENDS.iter().any(|words| line.ends_with(words))
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
            assert!(blames_the_world(world), "{world}");
        }
        for diff in [
            "error: patch failed: a.py:1\nerror: a.py: patch does not apply",
            "error: Permission denied.py: does not exist in index",
        ] {
            assert!(!blames_the_world(diff), "{diff}");
        }
    }
}
