//! The git door: the user's repository as the loop sees it. The git binary does the work; nobody else in the project
//! calls it. The user's checkout, index, stash and current branch are only ever read.
//!
//! # Layout
//! [`open`] finds the repository, [`fn@begin`] makes one, [`GitRepo`] is the port. `call` runs one git command, `said` reads its complaints;
//! `worktree` makes and removes worktrees, `admin`, `workshop` and `lock` are git's side of that; `apply`, `commit`, `diff`
//! and `refs` are what is done in them, `journal_ref` names the last line of the run's journal, `content` what a commit holds, `committed` whether it has a file as it is, `objects` whether that is all there, `new_files` what does not belong into one, `gc` what others may do to it; `identity` is who does it, `place` where, `stale` what a
//! cut-off git left, `killed` how a git that was killed is run again, `packed_refs` how the lock of the packed refs is waited for, `taken` what somebody has changed in a worktree, `sight` whether somebody has, `touched` which files are not as committed, `tracked` which may not be, `used` whose it is; `head` is where a worktree is; `look` is for the doctor, `leftover` for `treebeam clean`;
//! `snapshot` makes a commit of what the user has not committed, `switch` moves the user's own checkout where that is wanted, `export` makes a branch for the user.

mod admin;
mod apply;
mod begin;
mod call;
mod commit;
mod committed;
mod content;
mod diff;
mod export;
mod gc;
mod head;
mod identity;
mod journal_ref;
mod killed;
mod leftover;
mod lock;
mod look;
mod new_files;
mod objects;
mod open;
mod packed_refs;
mod place;
mod refs;
mod said;
mod sight;
mod snapshot;
mod stale;
mod switch;
mod switching;
mod taken;
mod touched;
mod tracked;
mod used;
mod workshop;
mod worktree;

pub use begin::{FirstCommit, begin};
pub use diff::Paint;
pub use export::{Chapter, ExportError};
pub use identity::Identity;
pub use journal_ref::journal_ref;
pub use leftover::{Orphan, Own, remove_folder};
pub use new_files::DEFAULT_MAX_NEW_FILE_BYTES;
pub use objects::MissingObjects;
pub use open::{OpenError, UserRepo, open, open_with};
pub(crate) use place::{Stamp, is_link_to, stamp};
pub use said::GitSaid;
pub use taken::{Before, Looked, MOST_CHANGED, Taken};

use call::Seat;
use content::Remembered;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{Commit, GitTree, Place, RunId};
use treebeam_core::protect::{Change, Protected};
use treebeam_run::port::{
    Applied, Binaries, CommitNote, CommittedTree, JournalTip, PortError, Repo, RepoFile,
    StagedChanges, TouchedFiles,
};
use worktree::Worktree;

/// The worktrees, commits and refs of one run in the user's repository.
#[derive(Debug)]
pub struct GitRepo {
    user: UserRepo,
    run: RunId,
    run_dir: String,
    known: Mutex<BTreeMap<Place, Worktree>>,
    remembered: Remembered,
    max_new_file_bytes: u64,
}

impl GitRepo {
    /// A run in the user's repository, with its run directory, which must exist.
    ///
    /// # Errors
    /// When there is no run directory, or its path is not UTF-8.
    pub fn new(user: UserRepo, run_dir: &Path, run: RunId) -> Result<Self, PortError> {
        let run_dir = place::real(run_dir)?;
        let (known, remembered) = (Mutex::default(), Remembered::default());
        let max_new_file_bytes = DEFAULT_MAX_NEW_FILE_BYTES;
        Ok(Self { user, run, run_dir, known, remembered, max_new_file_bytes })
    }

    /// The repository.
    #[must_use]
    pub fn user(&self) -> &UserRepo {
        &self.user
    }

    /// Where calls act that are about no worktree: on the shared git folder, and far from the user's checkout.
    fn seat(&self) -> Seat {
        let git_dir = place::plain(&self.user.common_dir.to_string_lossy());
        Seat { git_dir, work_tree: self.run_dir.clone() }
    }
}

impl Repo for GitRepo {
    fn checkout(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        self.make_for_use(place, commit)?;
        self.remember_files(place, commit);
        Ok(())
    }
    fn renew(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        if !self.is_known(place) {
            self.make(place, commit)?;
            self.remember_files(place, commit);
        }
        Ok(())
    }
    fn apply(&self, place: Place, diff: &str) -> Result<Applied, PortError> {
        self.apply_diff(place, diff)
    }
    fn changes(&self, place: Place) -> Result<Vec<Change>, PortError> {
        self.index_changes(place)
    }
    fn staged_changes(&self, place: Place) -> Result<StagedChanges, PortError> {
        self.checked_changes(place)
    }
    fn staged(&self, place: Place, limit: usize) -> Result<String, PortError> {
        self.index_diff(place, limit)
    }
    fn commit(&self, place: Place, note: &CommitNote) -> Result<CommittedTree, PortError> {
        let committed = self.make_commit(place, note)?;
        self.remember_files(place, &committed.commit);
        Ok(committed)
    }
    fn tree(&self, commit: &Commit) -> Result<GitTree, PortError> {
        self.tree_of(commit)
    }
    fn touched(
        &self,
        place: Place,
        commit: &Commit,
        protected: &Protected,
    ) -> Result<TouchedFiles, PortError> {
        self.touched_files(place, commit, protected)
    }
    fn restore(&self, place: Place, commit: &Commit, paths: &[String]) -> Result<(), PortError> {
        self.restore_files(place, commit, paths)
    }
    fn keep(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        self.set_ref(place, commit)
    }
    fn has(&self, commit: &Commit) -> Result<bool, PortError> {
        self.has(commit)
    }
    fn diff(
        &self,
        from: &Commit,
        to: &Commit,
        binaries: Binaries,
        limit: usize,
    ) -> Result<String, PortError> {
        self.patch(from, to, binaries, limit)
    }
    fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError> {
        self.stat(from, to)
    }
    fn mark_journal(&self, tip: &JournalTip) -> Result<(), PortError> {
        self.set_journal_ref(tip)
    }
    fn files(&self, commit: &Commit) -> Result<Vec<RepoFile>, PortError> {
        self.files_of(commit)
    }
    fn texts(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        self.texts_of(files)
    }
    fn discard(&self, leftover: Leftover, _attempt: u32) -> Result<(), PortError> {
        match leftover.kind {
            LeftoverKind::Worktree => self.remove(leftover.place),
            LeftoverKind::Branch => self.delete_ref(leftover.place),
            LeftoverKind::Dir => Ok(()),
        }
    }
}
