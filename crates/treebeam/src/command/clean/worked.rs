//! Whether somebody has worked in a worktree that is to go: a user may open one to look at a result, and stay.

use crate::cli::CleanArgs;
use crate::failure::Failure;
use std::path::PathBuf;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::{Eval, Facts};
use treebeam_edge::git::{GitRepo, Own};
use treebeam_edge::store::RunDir;

pub(super) struct Worked<'a> {
    repo: &'a GitRepo,
    run: &'a RunDir,
    /// What the run has made there itself.
    own: Own,
    /// Where this program was started.
    here: Option<PathBuf>,
    minding: Minding,
}

/// Whether work that would be lost matters.
enum Minding {
    Keep,
    Discard,
}

impl<'a> Worked<'a> {
    pub(super) fn new(
        repo: &'a GitRepo,
        run: &'a RunDir,
        facts: &Facts,
        args: &CleanArgs,
    ) -> Result<Self, Failure> {
        let mut worked = Self::of_any(repo, run, args)?;
        worked.knows(Some(facts));
        Ok(worked)
    }

    /// The same for a run whose record may be unreadable: what its refs name is its own.
    pub(super) fn of_any(
        repo: &'a GitRepo,
        run: &'a RunDir,
        args: &CleanArgs,
    ) -> Result<Self, Failure> {
        let commits = repo.refs()?.into_iter().map(|(_, commit)| commit).collect();
        let own = Own { commits, inputs: Vec::new() };
        let minding = if args.discard_changes { Minding::Discard } else { Minding::Keep };
        let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
        Ok(Self { repo, run, own, here, minding })
    }

    pub(super) fn knows(&mut self, facts: Option<&Facts>) {
        let Some(facts) = facts else { return };
        self.own.commits.extend(facts.nodes.iter().map(|node| node.commit.clone()));
        let work = facts.evals.iter().filter_map(Eval::work);
        self.own.commits.extend(work.map(|work| work.commit.clone()));
        self.own.inputs.clone_from(&facts.meaning.measure.inputs);
    }

    /// Why this should not simply be removed, if there is a reason.
    pub(super) fn keeps(&self, leftover: Leftover) -> Option<String> {
        if leftover.kind != LeftoverKind::Worktree {
            return None;
        }
        let folder = self.run.path(&leftover.place.worktree()).canonicalize().ok()?;
        if self.here.as_ref().is_some_and(|here| here.starts_with(&folder)) {
            return Some("you are in it: change to another folder first".to_owned());
        }
        if matches!(self.minding, Minding::Discard) {
            return None;
        }
        match self.repo.work_in(leftover.place, &self.own) {
            Ok(found) => found.map(|found| format!("{found} (`--discard-changes` removes it)")),
            Err(error) => Some(format!(
                "whether somebody has worked in it cannot be told ({}; `--discard-changes` removes it)",
                error.in_full()
            )),
        }
    }
}
