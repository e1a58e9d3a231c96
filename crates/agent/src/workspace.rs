//! Where programs work, and what becomes of what they change there. In a run that is the worktree of the node or eval that
//! a question is about: when the program has ended, with all that it started, the change is what git says, and the worktree
//! is put back to what it was. So the change is an answer like any other, and is applied like any other.

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

/// How long a program has between being asked to end and being killed.
pub(super) const AGENT_KILL_GRACE: Duration = Duration::from_secs(2);

/// Where the files of single calls lie.
pub(super) const CLI_CALLS_FOLDER: &str = "desk";

/// Where programs work.
#[derive(Clone, Debug)]
pub enum AgentWorkspace {
    /// In the worktrees of a run.
    Run(RunWorkspace),
    /// In one folder, outside of any run.
    Folder(PathBuf),
}

/// A run whose worktrees programs work in, for as long as it is ours.
#[derive(Clone, Debug)]
pub struct RunWorkspace {
    /// Knows the worktrees.
    pub repo: Arc<GitRepo>,
    /// Where they are.
    pub dir: RunDir,
    /// The run's name.
    pub id: RunId,
    /// Says whether it is still ours.
    pub fence: LeaseFence,
    /// What lies in the user's working tree and not in git: whoever edits finds it in the worktree.
    pub inputs: Vec<WorktreePath>,
}

/// What a program is to do in its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessMode {
    /// Look, and answer. Whatever it changes is undone.
    Reading,
    /// Change it.
    Editing,
}

impl AgentWorkspace {
    /// Whether anything may be done here: nothing in a run that another process has now.
    pub(super) fn check_fence(&self) -> Result<(), PortError> {
        match self {
            Self::Run(grounds) => Ok(grounds.fence.check_ownership()?),
            Self::Folder(_) => Ok(()),
        }
    }

    /// Ends what a process before us has started in this run's worktrees, and has not lived to end.
    pub(super) fn end_leftover_agents(&self) -> Result<(), PortError> {
        let Self::Run(RunWorkspace { repo, dir, .. }) = self else { return Ok(()) };
        self.check_fence()?;
        repo.remove_index_copies();
        // What stays is made anew by the call that needs it.
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

    /// What an agent is to do about a question: only a coder edits, and only a candidate.
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

    /// Lets somebody work in the folder that a question is about. What fits `litter` is no part of a change.
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
            // A node's worktree stays: somebody who was killed may have left something there.
            repo.make_at_ref(place, &grounds.inputs)?;
        }
        match doing {
            AccessMode::Reading => self.work_read_only(repo, place, || work(&folder)),
            AccessMode::Editing => self.work_with_edits(grounds, place, litter, || work(&folder)),
        }
    }

    /// Lets somebody look at a worktree, and undoes whatever was changed there.
    fn work_read_only(
        &self,
        repo: &GitRepo,
        place: CodePlace,
        work: impl FnOnce() -> Result<AgentReply, TryError>,
    ) -> Result<AgentReply, TryError> {
        let looked = repo.guard_worktree(place)?;
        let worked = work();
        // That may have taken hours. Whoever has the run by now may have made this worktree anew.
        self.check_fence()?;
        repo.release_worktree(&looked)?;
        worked
    }

    /// Lets somebody change a worktree, takes the change, and undoes it. The inputs are there meanwhile, and no part of it.
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
            // One that cannot be linked is the sweep's to tell of.
            drop(input_links::link_input(input, &folder));
        }
        let worked = work();
        // The same.
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

    /// What whatever is started for a question is known by.
    pub(super) fn question_marker(&self, question: &AgentQuestion) -> TreeMarker {
        match (self, question.place) {
            (Self::Run(..), Some(_)) => folder_marker(&self.question_folder(question.place)),
            (Self::Run(..), None) | (Self::Folder(_), _) => TreeMarker::unique(),
        }
    }

    /// A folder of our own that no worktree has.
    pub(super) fn own_folder(&self, name: &str) -> PathBuf {
        match self {
            Self::Run(RunWorkspace { dir, .. }) => dir.root().join(name),
            Self::Folder(folder) => folder.join(".treebeam").join(name),
        }
    }

    /// The folder that a question is about.
    pub(super) fn question_folder(&self, place: Option<CodePlace>) -> PathBuf {
        match (self, place) {
            (Self::Run(RunWorkspace { dir, .. }), Some(place)) => {
                dir.file_path(&place.worktree_path())
            }
            (Self::Run(RunWorkspace { dir, .. }), None) => dir.root().to_owned(),
            (Self::Folder(folder), _) => folder.clone(),
        }
    }

    /// What a program is told about a question.
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
        // Where a worktree's own `.git` is gone, or there is none, git is not to find the user's.
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

/// The mark of those who work in a folder.
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
