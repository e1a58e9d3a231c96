//! Creates a branch for the user: the code states of a path, one commit after another. The user's
//! checkout, index and other branches stay as they are, and an existing branch is never moved.

use super::GitRepo;
use jiff::Timestamp;
use treebeam_core::id::Commit;
use treebeam_process::ChildInput;
use treebeam_run::port::PortError;

/// Prefix of the branch names below `refs/heads/` that are reserved for runs.
const RUN_BRANCH_PREFIX: &str = "tree/";

/// A commit of an exported branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCommit {
    /// Commit of the run whose files it has.
    pub code: Commit,
    /// Full commit message.
    pub message: String,
    /// Author and committer date.
    pub at: Timestamp,
}

/// Reason why a branch was not created.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Invalid branch name.
    #[error("{0:?} is no name for a branch")]
    Name(String),
    /// Existing branch with other content.
    #[error("there is a branch `{0}` already")]
    Taken(String),
    /// Failure of git.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl GitRepo {
    /// Creates a branch of these commits on top of `base`, and returns the commits. Does nothing if
    /// the branch exists with the same commits.
    ///
    /// # Errors
    /// When the name is taken or invalid, or git fails.
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

    /// Returns whether the branch is free, or exists with this tip. Without a tip, an existing
    /// branch is no error yet, because its commits may turn out to be the same.
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

    /// Creates the branch; the empty old value makes git fail if the ref exists.
    fn create_branch(&self, branch: &str, tip: &Commit) -> Result<(), PortError> {
        let reference = format!("refs/heads/{branch}");
        let arguments = ["update-ref", "--no-deref", &reference, tip.as_str(), ""];
        let call =
            self.user.git.sealed_call(&self.shared_target(), &arguments).with_subject(branch);
        call.with_locks([self.ref_lock(&reference)]).run_checked().map(drop)
    }
}

/// State of a branch that is to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BranchState {
    Free,
    Exists,
}
