//! A branch of the user's own: the code states of a path, one commit after another. The user's checkout, index and other
//! branches stay as they are, and a branch that is there is never moved.

use super::GitRepo;
use crate::process::Input;
use jiff::Timestamp;
use treebeam_core::id::Commit;
use treebeam_run::port::PortError;

/// What is the run's own below `refs/heads/`.
const OURS: &str = "tree/";

/// One commit of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chapter {
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
    pub fn export(
        &self,
        branch: &str,
        base: &Commit,
        chapters: &[Chapter],
    ) -> Result<Vec<Commit>, ExportError> {
        self.must_be_free(branch, None)?;
        self.user.outlast_gc();
        let mut commits: Vec<Commit> = Vec::new();
        for chapter in chapters {
            let parent = commits.last().unwrap_or(base);
            commits.push(self.write_chapter(parent, chapter)?);
        }
        let tip = commits.last().unwrap_or(base);
        if self.must_be_free(branch, Some(tip))? == Standing::Free
            && let Err(error) = self.create(branch, tip)
            && self.must_be_free(branch, Some(tip))? == Standing::Free
        {
            return Err(error.into());
        }
        Ok(commits)
    }

    /// Whether a branch can be made, or is there with this tip. Without a tip, one that is there may still be the same.
    fn must_be_free(&self, branch: &str, tip: Option<&Commit>) -> Result<Standing, ExportError> {
        let reference = format!("refs/heads/{branch}");
        let call = self.user.git.sealed(&self.seat(), &["check-ref-format", &reference]);
        let is_name = call.answer()?.code == Some(0);
        if !is_name
            || branch.starts_with(['-', '@'])
            || branch == "HEAD"
            || branch.starts_with(OURS)
        {
            return Err(ExportError::Name(branch.to_owned()));
        }
        let found = self.below(&reference)?.into_iter().find(|(name, _)| name == branch);
        match (found, tip) {
            (None, _) => Ok(Standing::Free),
            (Some(_), None) => Ok(Standing::There),
            (Some((_, at)), Some(tip)) if at == *tip => Ok(Standing::There),
            (Some(_), Some(_)) => Err(ExportError::Taken(branch.to_owned())),
        }
    }

    fn write_chapter(&self, parent: &Commit, chapter: &Chapter) -> Result<Commit, PortError> {
        let tree = format!("{}^{{tree}}", chapter.code);
        let date = format!("@{} +0000", chapter.at.as_second().max(0));
        let arguments = ["commit-tree", &tree, "-p", parent.as_str(), "-F", "-"];
        let call = self.user.git.sealed(&self.seat(), &arguments).about(chapter.code.short());
        let call = call.envs(self.user.identity.variables());
        let call = call.envs([("GIT_AUTHOR_DATE", &*date), ("GIT_COMMITTER_DATE", &*date)]);
        call.input(Input::bytes(chapter.message.clone().into_bytes())).done()?.word()
    }

    /// The empty word says that nothing may be there.
    fn create(&self, branch: &str, tip: &Commit) -> Result<(), PortError> {
        let reference = format!("refs/heads/{branch}");
        let arguments = ["update-ref", "--no-deref", &reference, tip.as_str(), ""];
        let call = self.user.git.sealed(&self.seat(), &arguments).about(branch);
        call.locking([self.ref_lock(&reference)]).done().map(drop)
    }
}

/// How a branch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Free,
    There,
}
