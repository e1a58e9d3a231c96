//! The folders in which programs work, and the capture of their edits. In a run that is the
//! worktree of the question's node or eval: once the program and all its children have ended, git
//! gives the diff and the worktree is restored. So the diff is an answer like any other.

use super::question::{AgentQuestion, TryCost, TryError};
use super::settings::EditMode;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use treebeam_core::id::{CodePlace, RunId};
use treebeam_core::measure::WorktreePath;
use treebeam_git::input_links;
use treebeam_git::{GitRepo, WorktreeDiff};
use treebeam_process::{TreeMarker, end_marked};
use treebeam_run::port::{AgentReply, AgentRole, PortError};
use treebeam_store::RunDir;
use treebeam_store::lease::LeaseFence;

/// Time between the request to end and the kill of a program.
pub(super) const AGENT_KILL_GRACE: Duration = Duration::from_secs(2);

/// Name of the folder for the files of single calls.
pub(super) const CLI_CALLS_FOLDER: &str = "desk";

/// The place where programs work.
#[derive(Clone, Debug)]
pub enum AgentWorkspace {
    /// The worktrees of a run.
    Run(RunWorkspace),
    /// One folder, outside of any run.
    Folder(PathBuf),
}

/// The worktrees of a run that this process has.
#[derive(Clone, Debug)]
pub struct RunWorkspace {
    /// Git access to the worktrees.
    pub repo: Arc<GitRepo>,
    /// Directory of the run.
    pub dir: RunDir,
    /// Id of the run.
    pub id: RunId,
    /// Check that this process still has the run.
    pub fence: LeaseFence,
    /// Files of the user's working tree outside git, linked into the worktree during edits.
    pub inputs: Vec<WorktreePath>,
}

/// The access of a program to its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessMode {
    /// Read-only: any change is undone.
    Reading,
    /// Editing: the changes are the answer.
    Editing,
}

impl AgentWorkspace {
    /// Refuses work in a run that another process has now.
    pub(super) fn check_fence(&self) -> Result<(), PortError> {
        match self {
            Self::Run(grounds) => Ok(grounds.fence.check_ownership()?),
            Self::Folder(_) => Ok(()),
        }
    }

    /// Ends the agents that an earlier process left in this run's worktrees.
    pub(super) fn end_leftover_agents(&self) -> Result<(), PortError> {
        let Self::Run(RunWorkspace { repo, dir, .. }) = self else { return Ok(()) };
        self.check_fence()?;
        repo.remove_index_copies();
        // If it cannot be removed, the next call that needs it replaces it.
        drop(fs::remove_dir_all(dir.root().join(CLI_CALLS_FOLDER)));
        for parent in ["cand", "wt"] {
            let folders = fs::read_dir(dir.root().join(parent)).into_iter().flatten().flatten();
            for folder in folders {
                end_marked(&folder_marker(&folder.path()), AGENT_KILL_GRACE).map_err(|error| {
                    let what = format!("an agent still works in `{}`", folder.path().display());
                    PortError::new(what).with_cause(error).with_hint("end it, then go on")
                })?;
            }
        }
        Ok(())
    }

    /// Returns the access for a question: only a coder edits, and only a candidate.
    pub(super) const fn access_mode(
        &self,
        question: &AgentQuestion,
        edits: EditMode,
    ) -> AccessMode {
        match (self, question.place, question.role, edits) {
            (Self::Run(..), Some(CodePlace::Candidate(_)), AgentRole::Coder, EditMode::InPlace) => {
                AccessMode::Editing
            }
            _ => AccessMode::Reading,
        }
    }

    /// Runs work in the folder of a question. Files that match `litter` are not part of a change.
    pub(super) fn work_in_folder(
        &self,
        question: &AgentQuestion,
        doing: AccessMode,
        litter: &[&str],
        work: impl FnOnce(&Path) -> Result<AgentReply, TryError>,
    ) -> Result<AgentReply, TryError> {
        let folder = self.question_folder(question.place);
        let (Self::Run(grounds), Some(place)) = (self, question.place) else {
            return work(&folder);
        };
        let repo = &grounds.repo;
        if let CodePlace::Node(_) = place {
            // A node's worktree stays: a killed agent may have left changes there.
            repo.make_at_ref(place, &grounds.inputs)?;
        }
        match doing {
            AccessMode::Reading => self.work_read_only(repo, place, || work(&folder)),
            AccessMode::Editing => self.work_with_edits(grounds, place, litter, || work(&folder)),
        }
    }

    /// Runs work in a worktree, and undoes every change.
    fn work_read_only(
        &self,
        repo: &GitRepo,
        place: CodePlace,
        work: impl FnOnce() -> Result<AgentReply, TryError>,
    ) -> Result<AgentReply, TryError> {
        let looked = repo.guard_worktree(place)?;
        let worked = work();
        // Hours may have passed, and a new owner of the run may have recreated this worktree.
        self.check_fence()?;
        repo.release_worktree(&looked)?;
        worked
    }

    /// Runs work in a worktree, captures the change, and undoes it. The inputs are linked
    /// meanwhile, and not part of the change.
    fn work_with_edits(
        &self,
        RunWorkspace { repo, inputs, .. }: &RunWorkspace,
        place: CodePlace,
        litter: &[&str],
        work: impl FnOnce() -> Result<AgentReply, TryError>,
    ) -> Result<AgentReply, TryError> {
        let (before, folder) = (repo.capture_worktree(place)?, self.question_folder(Some(place)));
        let inputs = input_links::resolve_inputs(&repo.user_repo().toplevel, inputs);
        for input in &inputs {
            // An input that cannot be linked is reported by the sweep.
            drop(input_links::link_input(input, &folder));
        }
        let worked = work();
        // The work may have taken hours: the run may be another process's by now.
        self.check_fence()?;
        input_links::unlink_inputs(&inputs, &folder).map_err(|error| {
            PortError::new("the links to `inputs` cannot be removed").with_cause(error)
        })?;
        let taken = worked.is_ok().then(|| repo.diff_since(&before, litter));
        repo.restore_worktree(&before)?;
        let reply = worked?;
        match taken.transpose()? {
            None => Ok(reply),
            Some(WorktreeDiff::Diff(edits)) => Ok(AgentReply { edits: Some(edits), ..reply }),
            Some(WorktreeDiff::Unusable(why)) => {
                let spent = reply.usage.map_or(TryCost::Unknown, TryCost::Known);
                Err(TryError::Unanswered { why, spent })
            }
        }
    }

    /// Returns the marker of the processes that are started for a question.
    pub(super) fn question_marker(&self, question: &AgentQuestion) -> TreeMarker {
        match (self, question.place) {
            (Self::Run(..), Some(_)) => folder_marker(&self.question_folder(question.place)),
            (Self::Run(..), None) | (Self::Folder(_), _) => TreeMarker::unique(),
        }
    }

    /// Returns a folder of treebeam's own, outside of all worktrees.
    pub(super) fn own_folder(&self, name: &str) -> PathBuf {
        match self {
            Self::Run(RunWorkspace { dir, .. }) => dir.root().join(name),
            Self::Folder(folder) => folder.join(".treebeam").join(name),
        }
    }

    /// Returns the folder of a question.
    pub(super) fn question_folder(&self, place: Option<CodePlace>) -> PathBuf {
        match (self, place) {
            (Self::Run(RunWorkspace { dir, .. }), Some(place)) => {
                dir.file_path(&place.worktree_path())
            }
            (Self::Run(RunWorkspace { dir, .. }), None) => dir.root().to_owned(),
            (Self::Folder(folder), _) => folder.clone(),
        }
    }

    /// Returns the environment variables that describe a question.
    pub(super) fn question_variables(
        &self,
        question: &AgentQuestion,
        folder: &Path,
    ) -> Vec<(String, OsString)> {
        let mut variables = vec![
            ("TREEBEAM_ROLE", question.role.to_string().into()),
            ("TREEBEAM_ROUND", question.round.to_string().into()),
            ("TREEBEAM_WORKTREE", folder.as_os_str().to_owned()),
        ];
        if let Self::Run(RunWorkspace { id, .. }) = self {
            variables.push(("TREEBEAM_RUN", id.as_str().into()));
        }
        // If the worktree has no `.git` of its own, git must not find the user's.
        variables.push(("GIT_CEILING_DIRECTORIES", self.own_folder("").into_os_string()));
        if let Some(node) = question.node {
            variables.push(("TREEBEAM_NODE", node.to_string().into()));
        }
        if let Some(CodePlace::Candidate(id)) = question.place {
            variables.push(("TREEBEAM_EVAL", id.to_string().into()));
        }
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Returns the marker of the processes that work in a folder.
fn folder_marker(folder: &Path) -> TreeMarker {
    TreeMarker::new(folder.as_os_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::id::{EvalId, NodeId};

    #[test]
    fn an_evals_question_knows_its_node_too() {
        let check = |place, expect: &[&str]| {
            let (key, prompt) = ("k".to_owned(), "p".into());
            let (role, round, continues) = (AgentRole::Coder, 2, None);
            let node = Some(NodeId::new(3));
            let place = Some(place);
            let question = AgentQuestion { key, role, round, prompt, continues, place, node };
            let here = AgentWorkspace::Folder("r".into());
            let found =
                here.question_variables(&question, &here.question_folder(place)).into_iter();
            let found = found.filter(|(name, _)| {
                !["TREEBEAM_WORKTREE", "GIT_CEILING_DIRECTORIES"].contains(&name.as_str())
            });
            let found = found.map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
            let common = ["TREEBEAM_ROLE=coder", "TREEBEAM_ROUND=2"];
            assert_eq!(found.collect::<Vec<_>>(), [&common[..], expect].concat());
        };
        check(CodePlace::Node(NodeId::new(3)), &["TREEBEAM_NODE=0003"]);
        let both = ["TREEBEAM_NODE=0003", "TREEBEAM_EVAL=0012"];
        check(CodePlace::Candidate(EvalId::new(12)), &both);
    }
}
