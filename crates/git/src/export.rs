//! A branch of the user's own: the code states of a path, one commit after another. The user's checkout, index and other
//! branches stay as they are, and a branch that is there is never moved.

use super::GitRepo;
use jiff::Timestamp;
use treebeam_core::id::Commit;
use treebeam_process::ChildInput;
use treebeam_run::port::PortError;

/// What is the run's own below `refs/heads/`.
const RUN_BRANCH_PREFIX: &str = "tree/";

/// One commit of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCommit {
    /// The code state that it has.
    pub code: Commit,
    /// What it says.
    pub message: String,
    /// When it is said to be made.
    pub at: Timestamp,
}

/// Why there is no such branch.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A branch cannot be called that.
    #[error("{0:?} is no name for a branch")]
    Name(String),
    /// It is there, and holds something else.
    #[error("there is a branch `{0}` already")]
    Taken(String),
    /// git could not.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl GitRepo {
    /// Makes a branch of these on top of `base`, and tells its commits. Where the branch is there and is the same, nothing
    /// is done.
    ///
    /// # Errors
    /// When the name is taken or is none, or git cannot.
    pub fn export_branch(
        &self,
        branch: &str,
        base: &Commit,
        chapters: &[BranchCommit],
    ) -> Result<Vec<Commit>, ExportError> {
        self.check_branch_free(branch, None)?;
        self.user.await_gc();
        let mut commits: Vec<Commit> = Vec::new();
        for chapter in chapters {
            let parent = commits.last().unwrap_or(base);
            commits.push(self.write_branch_commit(parent, chapter)?);
        }
        let tip = commits.last().unwrap_or(base);
        if self.check_branch_free(branch, Some(tip))? == BranchState::Free
            && let Err(error) = self.create_branch(branch, tip)
            && self.check_branch_free(branch, Some(tip))? == BranchState::Free
        {
            return Err(error.into());
        }
        Ok(commits)
    }

    /// Whether a branch can be made, or is there with this tip. Without a tip, one that is there may still be the same.
    fn check_branch_free(
        &self,
        branch: &str,
        tip: Option<&Commit>,
    ) -> Result<BranchState, ExportError> {
        let reference = format!("refs/heads/{branch}");
        let call =
            self.user.git.sealed_call(&self.shared_target(), &["check-ref-format", &reference]);
        let is_name = call.run()?.code == Some(0);
        if !is_name
            || branch.starts_with(['-', '@'])
            || branch == "HEAD"
            || branch.starts_with(RUN_BRANCH_PREFIX)
        {
            return Err(ExportError::Name(branch.to_owned()));
        }
        let found = self.list_refs_below(&reference)?.into_iter().find(|(name, _)| name == branch);
        match (found, tip) {
            (None, _) => Ok(BranchState::Free),
            (Some(_), None) => Ok(BranchState::Exists),
            (Some((_, at)), Some(tip)) if at == *tip => Ok(BranchState::Exists),
            (Some(_), Some(_)) => Err(ExportError::Taken(branch.to_owned())),
        }
    }

    fn write_branch_commit(
        &self,
        parent: &Commit,
        chapter: &BranchCommit,
    ) -> Result<Commit, PortError> {
        let tree = format!("{}^{{tree}}", chapter.code);
        let date = format!("@{} +0000", chapter.at.as_second().max(0));
        let arguments = ["commit-tree", &tree, "-p", parent.as_str(), "-F", "-"];
        let call = self
            .user
            .git
            .sealed_call(&self.shared_target(), &arguments)
            .with_subject(chapter.code.short_name());
        let call = call.envs(self.user.identity.variables());
        let call = call.envs([("GIT_AUTHOR_DATE", &*date), ("GIT_COMMITTER_DATE", &*date)]);
        call.input(ChildInput::from_bytes(chapter.message.clone().into_bytes()))
            .run_checked()?
            .parse_word()
    }

    /// The empty word says that nothing may be there.
    fn create_branch(&self, branch: &str, tip: &Commit) -> Result<(), PortError> {
        let reference = format!("refs/heads/{branch}");
        let arguments = ["update-ref", "--no-deref", &reference, tip.as_str(), ""];
        let call =
            self.user.git.sealed_call(&self.shared_target(), &arguments).with_subject(branch);
        call.with_locks([self.ref_lock(&reference)]).run_checked().map(drop)
    }
}

/// How a branch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BranchState {
    Free,
    Exists,
}
