//! Detects a user's own work in a worktree or on a branch to be removed.
//!
//! A user may open one to look at a result, and stay.

use crate::cli::CleanArgs;
use crate::failure::CommandFailure;
use std::collections::BTreeSet;
use std::path::PathBuf;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, Commit};
use treebeam_git::{GitRepo, RunOwnWork};
use treebeam_store::RunDir;

pub(super) struct UserWorkGuard<'a> {
    repo: &'a GitRepo,
    run: &'a RunDir,
    /// Work of the run itself.
    own: RunOwnWork,
    /// Branches of the run, with their commits.
    refs: Vec<(String, Commit)>,
    /// Nodes whose branches are at commits unknown to the record; empty where the record cannot be
    /// read.
    moved: Vec<CodePlace>,
    /// Current folder of this process.
    here: Option<PathBuf>,
    policy: UserWorkPolicy,
}

/// Tells if work that would be lost is kept.
enum UserWorkPolicy {
    Keep,
    Discard,
}

impl<'a> UserWorkGuard<'a> {
    pub(super) fn new(
        repo: &'a GitRepo,
        run: &'a RunDir,
        facts: &Facts,
        args: &CleanArgs,
    ) -> Result<Self, CommandFailure> {
        let mut worked = Self::without_facts(repo, run, args)?;
        worked.add_facts(Some(facts));
        Ok(worked)
    }

    /// Creates a check for a run whose record may be unreadable: commits of its refs count as its
    /// own.
    pub(super) fn without_facts(
        repo: &'a GitRepo,
        run: &'a RunDir,
        args: &CleanArgs,
    ) -> Result<Self, CommandFailure> {
        let refs = repo.list_refs()?;
        let commits = refs.iter().map(|(_, commit)| commit.clone()).collect();
        let own = RunOwnWork { commits, inputs: Vec::new() };
        let minding =
            if args.discard_changes { UserWorkPolicy::Discard } else { UserWorkPolicy::Keep };
        let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
        Ok(Self { repo, run, own, refs, moved: Vec::new(), here, policy: minding })
    }

    pub(super) fn add_facts(&mut self, facts: Option<&Facts>) {
        let Some(facts) = facts else { return };
        let nodes = facts.nodes.iter().map(|node| node.commit.clone());
        let work = facts.evals.iter().flat_map(|eval| {
            let again = eval.again.as_deref().map(|work| work.commit.clone());
            again.into_iter().chain(eval.candidate().map(|work| work.commit))
        });
        let known: BTreeSet<Commit> = nodes.chain(work).collect();
        let moved = self.refs.iter().filter(|(_, commit)| !known.contains(commit));
        // A candidate's branch may be ahead of the record, where its run was killed.
        let of_node = |place: &CodePlace| matches!(place, CodePlace::Node(_));
        let place = |(name, _): &(String, Commit)| name.rsplit('/').next()?.parse().ok();
        self.moved = moved.filter_map(place).filter(of_node).collect();
        self.own.commits.extend(known);
        self.own.inputs.clone_from(&facts.settings.measure.inputs);
    }

    /// Returns the reason to keep a leftover, if there is one.
    pub(super) fn keep_reason(&self, leftover: Leftover) -> Option<String> {
        match leftover.kind {
            LeftoverKind::Worktree => self.keep_worktree_reason(leftover),
            LeftoverKind::Branch => {
                let is_theirs = self.moved.contains(&leftover.place)
                    && matches!(self.policy, UserWorkPolicy::Keep);
                is_theirs.then(|| {
                    "it has commits that are not the run's (`--discard-changes` removes it)"
                        .to_owned()
                })
            }
            LeftoverKind::Dir => None,
        }
    }

    fn keep_worktree_reason(&self, leftover: Leftover) -> Option<String> {
        let folder = self.run.file_path(&leftover.place.worktree_path()).canonicalize().ok()?;
        if self.here.as_ref().is_some_and(|here| here.starts_with(&folder)) {
            return Some("you are in it: change to another folder first".to_owned());
        }
        if matches!(self.policy, UserWorkPolicy::Discard) {
            return None;
        }
        match self.repo.find_user_work(leftover.place, &self.own) {
            Ok(found) => found.map(|found| format!("{found} (`--discard-changes` removes it)")),
            Err(error) => Some(format!(
                "whether somebody has worked in it cannot be told ({}; `--discard-changes` removes it)",
                error.full_text()
            )),
        }
    }
}
