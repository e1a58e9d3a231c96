//! Whether somebody has worked in a worktree, or on a branch, that is to go: a user may open one to look at a result, and stay.

use crate::cli::CleanArgs;
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::path::PathBuf;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::Facts;
use treebeam_core::id::{Commit, Place};
use treebeam_edge::git::{GitRepo, Own};
use treebeam_edge::store::RunDir;

pub(super) struct Worked<'a> {
    repo: &'a GitRepo,
    run: &'a RunDir,
    /// What the run has made there itself.
    own: Own,
    /// Its branches, and where they are.
    refs: Vec<(String, Commit)>,
    /// Those of nodes that are at commits it knows nothing of; none where its record cannot be read.
    moved: Vec<Place>,
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
        let refs = repo.refs()?;
        let commits = refs.iter().map(|(_, commit)| commit.clone()).collect();
        let own = Own { commits, inputs: Vec::new() };
        let minding = if args.discard_changes { Minding::Discard } else { Minding::Keep };
        let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
        Ok(Self { repo, run, own, refs, moved: Vec::new(), here, minding })
    }

    pub(super) fn knows(&mut self, facts: Option<&Facts>) {
        let Some(facts) = facts else { return };
        let nodes = facts.nodes.iter().map(|node| node.commit.clone());
        let work = facts.evals.iter().flat_map(|eval| {
            let again = eval.again.as_deref().map(|work| work.commit.clone());
            again.into_iter().chain(eval.work().map(|work| work.commit))
        });
        let known: BTreeSet<Commit> = nodes.chain(work).collect();
        let moved = self.refs.iter().filter(|(_, commit)| !known.contains(commit));
        // A candidate's may be ahead of the record, where its run was killed.
        let of_node = |place: &Place| matches!(place, Place::Node(_));
        let place = |(name, _): &(String, Commit)| name.rsplit('/').next()?.parse().ok();
        self.moved = moved.filter_map(place).filter(of_node).collect();
        self.own.commits.extend(known);
        self.own.inputs.clone_from(&facts.meaning.measure.inputs);
    }

    /// Why this should not simply be removed, if there is a reason.
    pub(super) fn keeps(&self, leftover: Leftover) -> Option<String> {
        match leftover.kind {
            LeftoverKind::Worktree => self.keeps_worktree(leftover),
            LeftoverKind::Branch => {
                let is_theirs =
                    self.moved.contains(&leftover.place) && matches!(self.minding, Minding::Keep);
                is_theirs.then(|| {
                    "it has commits that are not the run's (`--discard-changes` removes it)"
                        .to_owned()
                })
            }
            LeftoverKind::Dir => None,
        }
    }

    fn keeps_worktree(&self, leftover: Leftover) -> Option<String> {
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
