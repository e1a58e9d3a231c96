//! Where programs work, and what becomes of what they change there. In a run that is the worktree of the node or eval that
//! a question is about: when the program has ended, with all that it started, the change is what git says, and the worktree
//! is put back to what it was. So the change is an answer like any other, and is applied like any other.

use super::question::{Question, Spent, Trouble};
use super::settings::Edits;
use crate::executor::inputs;
use crate::git::{GitRepo, Taken};
use crate::process::{Mark, end_marked};
use crate::store::RunDir;
use crate::store::lease::Fence;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use treebeam_core::id::{Place, RunId};
use treebeam_core::measure::WorktreePath;
use treebeam_run::port::{PortError, Reply, Role};

/// How long a program has between being asked to end and being killed.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Where the files of single calls lie.
pub(super) const DESK: &str = "desk";

/// Where programs work.
#[derive(Clone, Debug)]
pub enum Surroundings {
    /// In the worktrees of a run.
    Run(Grounds),
    /// In one folder, outside of any run.
    Folder(PathBuf),
}

/// A run whose worktrees programs work in, for as long as it is ours.
#[derive(Clone, Debug)]
pub struct Grounds {
    /// Knows the worktrees.
    pub repo: Arc<GitRepo>,
    /// Where they are.
    pub dir: RunDir,
    /// The run's name.
    pub id: RunId,
    /// Says whether it is still ours.
    pub fence: Fence,
    /// What lies in the user's working tree and not in git: whoever edits finds it in the worktree.
    pub inputs: Vec<WorktreePath>,
}

/// What a program is to do in its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Look, and answer. Whatever it changes is undone.
    Reading,
    /// Change it.
    Editing,
}

impl Surroundings {
    /// Whether anything may be done here: nothing in a run that another process has now.
    pub(super) fn are_ours(&self) -> Result<(), PortError> {
        match self {
            Self::Run(grounds) => Ok(grounds.fence.check()?),
            Self::Folder(_) => Ok(()),
        }
    }

    /// Ends what a process before us has started in this run's worktrees, and has not lived to end.
    pub(super) fn clear(&self) -> Result<(), PortError> {
        let Self::Run(Grounds { repo, dir, .. }) = self else { return Ok(()) };
        self.are_ours()?;
        repo.clear_before();
        // What stays is made anew by the call that needs it.
        drop(fs::remove_dir_all(dir.root().join(DESK)));
        for parent in ["cand", "wt"] {
            let folders = fs::read_dir(dir.root().join(parent)).into_iter().flatten().flatten();
            for folder in folders {
                end_marked(&mark(&folder.path()), GRACE).map_err(|error| {
                    let what = format!("an agent still works in `{}`", folder.path().display());
                    PortError::new(what).caused_by(error).hint("end it, then go on")
                })?;
            }
        }
        Ok(())
    }

    /// What an agent is to do about a question: only a coder edits, and only a candidate.
    pub(super) const fn doing(&self, question: &Question, edits: Edits) -> Doing {
        match (self, question.place, question.role, edits) {
            (Self::Run(..), Some(Place::Candidate(_)), Role::Coder, Edits::InPlace) => {
                Doing::Editing
            }
            _ => Doing::Reading,
        }
    }

    /// Lets somebody work in the folder that a question is about. What fits `litter` is no part of a change.
    pub(super) fn visit(
        &self,
        question: &Question,
        doing: Doing,
        litter: &[&str],
        work: impl FnOnce(&Path) -> Result<Reply, Trouble>,
    ) -> Result<Reply, Trouble> {
        let folder = self.folder(question.place);
        let (Self::Run(grounds), Some(place)) = (self, question.place) else {
            return work(&folder);
        };
        let repo = &grounds.repo;
        if let Place::Node(_) = place {
            // A node's worktree stays: somebody who was killed may have left something there.
            repo.make_at_ref(place, &grounds.inputs)?;
        }
        match doing {
            Doing::Reading => self.read(repo, place, || work(&folder)),
            Doing::Editing => self.edit(grounds, place, litter, || work(&folder)),
        }
    }

    /// Lets somebody look at a worktree, and undoes whatever was changed there.
    fn read(
        &self,
        repo: &GitRepo,
        place: Place,
        work: impl FnOnce() -> Result<Reply, Trouble>,
    ) -> Result<Reply, Trouble> {
        let looked = repo.look(place)?;
        let worked = work();
        // That may have taken hours. Whoever has the run by now may have made this worktree anew.
        self.are_ours()?;
        repo.leave(&looked)?;
        worked
    }

    /// Lets somebody change a worktree, takes the change, and undoes it. The inputs are there meanwhile, and no part of it.
    fn edit(
        &self,
        Grounds { repo, inputs, .. }: &Grounds,
        place: Place,
        litter: &[&str],
        work: impl FnOnce() -> Result<Reply, Trouble>,
    ) -> Result<Reply, Trouble> {
        let (before, folder) = (repo.before(place)?, self.folder(Some(place)));
        let inputs = inputs::of(&repo.user().toplevel, inputs);
        for input in &inputs {
            // One that cannot be linked is the sweep's to tell of.
            drop(inputs::link(input, &folder));
        }
        let worked = work();
        // The same.
        self.are_ours()?;
        inputs::unlink(&inputs, &folder).map_err(|error| {
            PortError::new("the links to `inputs` cannot be removed").caused_by(error)
        })?;
        let taken = worked.is_ok().then(|| repo.taken(&before, litter));
        repo.put_back(&before)?;
        let reply = worked?;
        match taken.transpose()? {
            None => Ok(reply),
            Some(Taken::Diff(edits)) => Ok(Reply { edits: Some(edits), ..reply }),
            Some(Taken::Unusable(why)) => {
                let spent = reply.usage.map_or(Spent::Perhaps, Spent::Known);
                Err(Trouble::Unanswered { why, spent })
            }
        }
    }

    /// What whatever is started for a question is known by.
    pub(super) fn mark(&self, question: &Question) -> Mark {
        match (self, question.place) {
            (Self::Run(..), Some(_)) => mark(&self.folder(question.place)),
            (Self::Run(..), None) | (Self::Folder(_), _) => Mark::fresh(),
        }
    }

    /// A folder of our own that no worktree has.
    pub(super) fn own(&self, name: &str) -> PathBuf {
        match self {
            Self::Run(Grounds { dir, .. }) => dir.root().join(name),
            Self::Folder(folder) => folder.join(".treebeam").join(name),
        }
    }

    /// The folder that a question is about.
    pub(super) fn folder(&self, place: Option<Place>) -> PathBuf {
        match (self, place) {
            (Self::Run(Grounds { dir, .. }), Some(place)) => dir.path(&place.worktree()),
            (Self::Run(Grounds { dir, .. }), None) => dir.root().to_owned(),
            (Self::Folder(folder), _) => folder.clone(),
        }
    }

    /// What a program is told about a question.
    pub(super) fn variables(&self, question: &Question, folder: &Path) -> Vec<(String, OsString)> {
        let mut variables = vec![
            ("TREEBEAM_ROLE", question.role.to_string().into()),
            ("TREEBEAM_ROUND", question.round.to_string().into()),
            ("TREEBEAM_WORKTREE", folder.as_os_str().to_owned()),
        ];
        if let Self::Run(Grounds { id, .. }) = self {
            variables.push(("TREEBEAM_RUN", id.as_str().into()));
        }
        // Where a worktree's own `.git` is gone, or there is none, git is not to find the user's.
        variables.push(("GIT_CEILING_DIRECTORIES", self.own("").into_os_string()));
        if let Some(node) = question.node {
            variables.push(("TREEBEAM_NODE", node.to_string().into()));
        }
        if let Some(Place::Candidate(id)) = question.place {
            variables.push(("TREEBEAM_EVAL", id.to_string().into()));
        }
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// The mark of those who work in a folder.
fn mark(folder: &Path) -> Mark {
    Mark::of(folder.as_os_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::id::{EvalId, NodeId};

    #[test]
    fn an_evals_question_knows_its_node_too() {
        let check = |place, expect: &[&str]| {
            let (key, prompt) = ("k".to_owned(), "p".into());
            let (role, round, continues) = (Role::Coder, 2, None);
            let node = Some(NodeId::new(3));
            let place = Some(place);
            let question = Question { key, role, round, prompt, continues, place, node };
            let here = Surroundings::Folder("r".into());
            let found = here.variables(&question, &here.folder(place)).into_iter();
            let found = found.filter(|(name, _)| {
                !["TREEBEAM_WORKTREE", "GIT_CEILING_DIRECTORIES"].contains(&name.as_str())
            });
            let found = found.map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
            let common = ["TREEBEAM_ROLE=coder", "TREEBEAM_ROUND=2"];
            assert_eq!(found.collect::<Vec<_>>(), [&common[..], expect].concat());
        };
        check(Place::Node(NodeId::new(3)), &["TREEBEAM_NODE=0003"]);
        let both = ["TREEBEAM_NODE=0003", "TREEBEAM_EVAL=0012"];
        check(Place::Candidate(EvalId::new(12)), &both);
    }
}
