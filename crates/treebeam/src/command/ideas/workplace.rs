//! Creates a temporary checkout for an agent that is a program; it is removed after the answer.
//!
//! Changes in it are lost; the user's own checkout is not touched.

use crate::config::agents::AgentConfigKind;
use crate::failure::CommandFailure;
use crate::role_agents::RoleAgent;
use crate::run_location::RepoHome;
use crate::terminal;
use std::fs;
use std::path::{Path, PathBuf};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_git::GitRepo;
use treebeam_run::port::Repo as _;
use treebeam_store::RunDir;
use treebeam_store::ideas_dir::IdeasDir;

/// Run name of the checkout in git's worktree names.
const WORKPLACE_RUN_NAME: &str = "treebeam-ideas";
const WORKPLACE_PLACE: CodePlace = CodePlace::Node(NodeId::ROOT);

pub(super) struct AgentWorkplace {
    pub(super) repo: GitRepo,
    /// Working folder of programs.
    pub(super) folder: PathBuf,
    above: PathBuf,
    checkout: WorkplaceCheckout,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkplaceCheckout {
    Made,
    /// No checkout: a model sees no files.
    NotNeeded,
}

impl AgentWorkplace {
    /// Creates the checkout, replacing one that a killed process has left.
    pub(super) fn create(
        home: &RepoHome,
        dir: &IdeasDir,
        role_agents: &[RoleAgent<'_>],
    ) -> Result<Self, CommandFailure> {
        let above = dir.work_folder();
        fs::create_dir_all(&above)?;
        let repo = GitRepo::new(home.repo.clone(), &above, WORKPLACE_RUN_NAME.parse()?)?;
        let is_model =
            |role_agent: &RoleAgent<'_>| matches!(role_agent.agent.line, AgentConfigKind::Model(_));
        if role_agents.iter().all(is_model) {
            let folder = home.repo.toplevel.clone();
            return Ok(Self { repo, folder, above, checkout: WorkplaceCheckout::NotNeeded });
        }
        repo.checkout_worktree(WORKPLACE_PLACE, &home.repo.head)?;
        let folder = RunDir::new(&above).file_path(&WORKPLACE_PLACE.worktree_path());
        Ok(Self { repo, folder, above, checkout: WorkplaceCheckout::Made })
    }

    /// Removes the checkout. If that fails, the next call removes it.
    pub(super) fn remove(&self) {
        let left = Leftover { place: WORKPLACE_PLACE, kind: LeftoverKind::Worktree };
        if self.checkout == WorkplaceCheckout::Made
            && let Err(error) = self.repo.discard_leftover(left, 1)
        {
            terminal::print_note(&format!(
                "the agent's checkout is not removed yet: {}",
                error.full_text()
            ));
        }
        remove_empty_folders(&self.above);
    }
}

/// Removes a folder that contains only empty folders.
fn remove_empty_folders(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        drop(fs::remove_dir(entry.path()));
    }
    drop(fs::remove_dir(folder));
}
