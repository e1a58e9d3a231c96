//! Where an agent works that is a program: a checkout of its own, which goes when it has answered. Whatever it changes there
//! is gone with it; the user's own checkout is not touched.

use crate::config::agents::Line;
use crate::crew::Seat;
use crate::failure::Failure;
use crate::terminal;
use crate::wiring::Home;
use std::fs;
use std::path::{Path, PathBuf};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{NodeId, Place};
use treebeam_edge::git::GitRepo;
use treebeam_edge::ideas_dir::IdeasDir;
use treebeam_edge::store::RunDir;
use treebeam_run::port::Repo as _;

/// What git knows the checkout by, as if it were a run's.
const NAME: &str = "treebeam-ideas";
const PLACE: Place = Place::Node(NodeId::ROOT);

pub(super) struct Workplace {
    pub(super) repo: GitRepo,
    /// Where programs are started.
    pub(super) folder: PathBuf,
    above: PathBuf,
    checkout: Checkout,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Checkout {
    Made,
    /// A model sees no files.
    NotNeeded,
}

impl Workplace {
    /// Makes it, in place of one that somebody who was killed has left.
    pub(super) fn make(home: &Home, dir: &IdeasDir, seats: &[Seat<'_>]) -> Result<Self, Failure> {
        let above = dir.workplace();
        fs::create_dir_all(&above)?;
        let repo = GitRepo::new(home.repo.clone(), &above, NAME.parse()?)?;
        let is_model = |seat: &Seat<'_>| matches!(seat.agent.line, Line::Model(_));
        if seats.iter().all(is_model) {
            let folder = home.repo.toplevel.clone();
            return Ok(Self { repo, folder, above, checkout: Checkout::NotNeeded });
        }
        repo.checkout(PLACE, &home.repo.head)?;
        let folder = RunDir::new(&above).path(&PLACE.worktree());
        Ok(Self { repo, folder, above, checkout: Checkout::Made })
    }

    /// Removes it. What cannot be removed now is, the next time.
    pub(super) fn leave(&self) {
        let left = Leftover { place: PLACE, kind: LeftoverKind::Worktree };
        if self.checkout == Checkout::Made
            && let Err(error) = self.repo.discard(left, 1)
        {
            terminal::note(&format!(
                "the agent's checkout is not removed yet: {}",
                error.in_full()
            ));
        }
        remove_empty(&self.above);
    }
}

/// Removes a folder of which only empty folders are left.
fn remove_empty(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        drop(fs::remove_dir(entry.path()));
    }
    drop(fs::remove_dir(folder));
}
