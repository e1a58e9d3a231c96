//! Plans what `treebeam clean` removes, before anything is removed. Reads only.

use super::item::{CleanItem, CleanItemKind, CleanOutcome};
use super::orphan_state::{OrphanState, belongs_to_run};
use super::scope::{CleanScope, CleanTarget};
use super::user_work::UserWorkGuard;
use crate::cli::CleanArgs;
use crate::failure::CommandFailure;
use crate::resume_command;
use crate::run_location::RepoHome;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, RunId};
use treebeam_core::plan::removal::{overdue_leftovers, removable_on_request};
use treebeam_git::{GitRepo, OrphanedWorktree};
use treebeam_store::lease::{self, RunPresence};
use treebeam_store::removal::{self, RemovedRun};
use treebeam_store::{OwnerLocation, RunDir, StoreError};

/// Maximum wait for a lock without an owner.
const MAX_ORPHANED_LOCK_WAIT: Duration = Duration::from_secs(3);
/// Interval between checks of that lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// An action, and the items that it removes.
pub(super) struct CleanTask {
    pub(super) action: CleanAction,
    pub(super) items: Vec<CleanItem>,
}

pub(super) enum CleanAction {
    /// Remove leftovers of a run that stays: overdue ones, and these requested ones.
    Leftovers(RunDir, Vec<Leftover>),
    /// Remove a whole run.
    Whole(RunDir),
    /// Remove the rest of a removed run.
    Gone(RemovedRun),
    /// Remove git's entry of a worktree that is gone.
    Orphan(OrphanedWorktree),
    /// Remove the directory of a run that was never completed.
    Unborn(PathBuf),
    /// Remove refs of a run without a directory, its journal ref included.
    Refs(RunId, Vec<CodePlace>),
}

#[derive(Default)]
pub(super) struct CleanPlan {
    pub(super) parts: Vec<CleanTask>,
    /// Items that stay.
    pub(super) staying: Vec<CleanItem>,
    /// Number of items that go only because the user requests it.
    pub(super) on_request: usize,
}

impl CleanPlan {
    pub(super) fn build(scope: &CleanScope, args: &CleanArgs) -> Result<Self, CommandFailure> {
        let mut plan = Self::default();
        match (&scope.target, &scope.home) {
            (CleanTarget::Run(run, id), home) if args.delete => {
                plan.add_whole_run(run, id, home.as_ref(), args)?;
            }
            (CleanTarget::Run(run, id), Some(home)) => {
                plan.add_named_run(run, home, args)?;
                plan.add_unowned(home, Some(id))?;
            }
            (CleanTarget::Run(run, _), None) => {
                let what = format!("`{}` lies in no repository", run.root().display());
                return Err(CommandFailure::usage(what).with_hint(
                    "nothing of it is in a repository; `--delete` removes the directory",
                ));
            }
            (CleanTarget::Missing(run, id), home) => {
                plan.add_missing_run(run, id, home.as_ref(), args)?;
            }
            (CleanTarget::All, Some(home)) => {
                for id in treebeam_store::list_runs(&home.runs_root)? {
                    plan.add_listed_run(&home.run_dir(&id), &id, home, args)?;
                }
                plan.add_unowned(home, None)?;
            }
            (CleanTarget::All, None) => {}
        }
        Ok(plan)
    }

    pub(super) fn items(&self) -> impl Iterator<Item = &CleanItem> {
        self.parts.iter().flat_map(|part| &part.items).chain(&self.staying)
    }

    fn push(&mut self, work: CleanAction, items: Vec<CleanItem>) {
        self.parts.push(CleanTask { action: work, items });
    }

    fn add_named_run(
        &mut self,
        run: &RunDir,
        home: &RepoHome,
        args: &CleanArgs,
    ) -> Result<(), CommandFailure> {
        must_have_no_runner(run, args)?;
        let opened = treebeam_store::open_to_read(run)?;
        RepoHome::must_match_name(run, &opened.state.run)?;
        if args.refs && opened.state.stop_reason().is_none() {
            let id = &opened.state.run;
            let what = format!("run `{id}` is not over: it goes on from the commits of its refs");
            return Err(CommandFailure::usage(what).with_hint(format!(
                "`treebeam resume {id}` ends it; `--delete` removes all of it"
            )));
        }
        self.add_leftovers(run, &opened.state, home, args)
    }

    /// Adds one of several runs: an error in it does not prevent the cleaning of the others.
    fn add_listed_run(
        &mut self,
        run: &RunDir,
        id: &RunId,
        home: &RepoHome,
        args: &CleanArgs,
    ) -> Result<(), CommandFailure> {
        let directory = || CleanItem::new(Some(id), CleanItemKind::RunDirectory, id.as_str());
        let opened = match treebeam_store::open_to_read(run) {
            Ok(opened) => opened,
            Err(error) => {
                let why = format!("it cannot be read ({error}); `--delete` removes all of it");
                self.staying.push(directory().with_outcome(CleanOutcome::Kept(why)));
                return Ok(());
            }
        };
        if opened.state.run != *id {
            let why = format!("it holds the run `{}`", opened.state.run);
            self.staying.push(directory().with_outcome(CleanOutcome::Kept(why)));
            return Ok(());
        }
        if let Some(by) = lease::describe_owner(run) {
            let why = format!("it is run by {by}, which cleans up after itself");
            self.staying.push(directory().with_outcome(CleanOutcome::Kept(why)));
            return Ok(());
        }
        self.add_leftovers(run, &opened.state, home, args)
    }

    /// Adds the overdue and the requested leftovers of a run that stays.
    fn add_leftovers(
        &mut self,
        run: &RunDir,
        facts: &Facts,
        home: &RepoHome,
        args: &CleanArgs,
    ) -> Result<(), CommandFailure> {
        let repo = GitRepo::new(home.repo.clone(), run.root(), facts.run.clone())?;
        let worked = UserWorkGuard::new(&repo, run, facts, args)?;
        let item = |leftover: Leftover| match leftover.kind {
            LeftoverKind::Worktree => CleanItem::from_leftover(&facts.run, leftover)
                .with_bytes(removal::folder_bytes(&run.file_path(&leftover.place.worktree_path()))),
            LeftoverKind::Branch | LeftoverKind::Dir => {
                CleanItem::from_leftover(&facts.run, leftover)
            }
        };
        let mut items: Vec<_> = overdue_leftovers(facts).into_iter().map(item).collect();
        let mut asked = Vec::new();
        for leftover in requested_leftovers(run, facts, args) {
            if let Some(why) = worked.keep_reason(leftover) {
                self.staying.push(item(leftover).with_outcome(CleanOutcome::NotRemoved(why)));
            } else {
                items.push(item(leftover));
                asked.push(leftover);
            }
        }
        self.on_request += asked.len();
        let unfinished = removal::list_unfinished_files(run);
        items.extend(unfinished.iter().map(|path| new_unfinished_item(Some(&facts.run), path)));
        if !items.is_empty() {
            self.push(CleanAction::Leftovers(run.clone(), asked), items);
        }
        Ok(())
    }

    fn add_whole_run(
        &mut self,
        run: &RunDir,
        id: &RunId,
        home: Option<&RepoHome>,
        args: &CleanArgs,
    ) -> Result<(), CommandFailure> {
        must_have_no_runner(run, args)?;
        let opened = match treebeam_store::open_to_read(run) {
            Err(error @ StoreError::NotARun { .. }) => return Err(error.into()),
            opened => opened.ok(),
        };
        let facts = opened.as_ref().map(|opened| &*opened.state);
        let sweep = |job: treebeam_executor::LeftoverJob| {
            CleanItem::new(Some(id), CleanItemKind::RunningSweep, job.name)
        };
        let mut items: Vec<_> =
            treebeam_executor::find_leftover_jobs(run)?.into_iter().map(sweep).collect();
        let own = facts.is_none_or(|facts| facts.run == *id);
        if let Some(home) = home.filter(|_| own) {
            let repo = GitRepo::new(home.repo.clone(), run.root(), id.clone())?;
            let mut worked = UserWorkGuard::without_facts(&repo, run, args)?;
            worked.add_facts(facts);
            let (refs, foreign) = repo.own_refs()?;
            let of = |kind| move |place| Leftover { place, kind };
            let worktrees = worktrees_on_disk(run).into_iter().map(of(LeftoverKind::Worktree));
            for leftover in worktrees.chain(refs.into_iter().map(of(LeftoverKind::Branch))) {
                let item = CleanItem::from_leftover(id, leftover);
                let item = match leftover.kind {
                    LeftoverKind::Worktree => item.with_bytes(removal::folder_bytes(
                        &run.file_path(&leftover.place.worktree_path()),
                    )),
                    LeftoverKind::Branch | LeftoverKind::Dir => item,
                };
                match worked.keep_reason(leftover) {
                    Some(why) => {
                        self.staying.push(item.with_outcome(CleanOutcome::NotRemoved(why)));
                    }
                    None => items.push(item),
                }
            }
            self.keep_foreign(id, foreign);
            if repo.has_journal_ref()? {
                items.push(CleanItem::from_journal_ref(id));
            }
        }
        let directory =
            CleanItem::new(Some(id), CleanItemKind::RunDirectory, run.root().display().to_string());
        let directory = directory.with_bytes(removal::folder_bytes(run.root()));
        if self.staying.iter().any(CleanItem::is_not_removed) {
            let why =
                "there is work in its worktrees or on its branches that would be lost".to_owned();
            self.staying.push(directory.with_outcome(CleanOutcome::NotRemoved(why)));
            return Ok(());
        }
        items.push(directory);
        self.on_request += items.len();
        self.push(CleanAction::Whole(run.clone()), items);
        Ok(())
    }

    /// Keeps refs below the run's own name that no run makes.
    fn keep_foreign(&mut self, id: &RunId, names: Vec<String>) {
        let why = || CleanOutcome::Kept("no run makes a ref of this name".to_owned());
        let item = |name| CleanItem::new(Some(id), CleanItemKind::Ref, name).with_outcome(why());
        self.staying.extend(names.into_iter().map(item));
    }

    /// Adds what is left of a run without a directory.
    fn add_missing_run(
        &mut self,
        run: &RunDir,
        id: &RunId,
        home: Option<&RepoHome>,
        args: &CleanArgs,
    ) -> Result<(), CommandFailure> {
        match home {
            Some(home) => self.add_unowned(home, Some(id))?,
            None => self.add_unnamed_runs(run.root().parent().unwrap_or(run.root()), Some(id))?,
        }
        if let Some(home) = home.filter(|_| args.refs) {
            self.add_refs(id, home)?;
        }
        if self.parts.is_empty() && self.staying.is_empty() {
            return Err(StoreError::NotARun { path: run.root().to_owned() }.into());
        }
        Ok(())
    }

    fn add_refs(&mut self, id: &RunId, home: &RepoHome) -> Result<(), CommandFailure> {
        if home.repo.has_worktrees_of(id)? {
            let what = format!("run `{id}` lies elsewhere: git knows worktrees of it");
            return Err(CommandFailure::usage(what).with_hint("`git worktree list` shows where"));
        }
        let repo = GitRepo::new(home.repo.clone(), &home.repo.toplevel, id.clone())?;
        let (places, foreign) = repo.own_refs()?;
        self.keep_foreign(id, foreign);
        let branch = |place| Leftover { place, kind: LeftoverKind::Branch };
        let item = |place: &CodePlace| CleanItem::from_leftover(id, branch(*place));
        let mut items: Vec<_> = places.iter().map(item).collect();
        if repo.has_journal_ref()? {
            items.push(CleanItem::from_journal_ref(id));
        }
        self.on_request += items.len();
        if !items.is_empty() {
            self.push(CleanAction::Refs(id.clone(), places), items);
        }
        Ok(())
    }

    /// Adds what belongs to no run: all of it, or that of one name.
    fn add_unowned(&mut self, home: &RepoHome, only: Option<&RunId>) -> Result<(), CommandFailure> {
        self.add_unnamed_runs(&home.runs_root, only)?;
        let gone: Vec<_> = removal::list_removed_runs(&home.runs_root)?;
        let is_going = |orphan: &OrphanedWorktree| {
            gone.iter().any(|gone| belongs_to_run(orphan, gone, &home.runs_root))
        };
        let wanted = |orphan: &OrphanedWorktree| only.is_none_or(|only| orphan.run == *only);
        for orphan in
            home.repo.list_orphaned_worktrees()?.into_iter().filter(wanted).filter(|o| !is_going(o))
        {
            self.add_orphan(orphan, home);
        }
        if only.is_none() {
            self.add_unborn_runs(&home.runs_root)?;
        }
        Ok(())
    }

    /// Adds git's entry of a worktree that is not where it was.
    fn add_orphan(&mut self, orphan: OrphanedWorktree, home: &RepoHome) {
        let path = orphan.worktree.display().to_string();
        let item = CleanItem::new(Some(&orphan.run), CleanItemKind::GitEntry, &*path);
        let why = match OrphanState::find(&orphan, &home.repo, &home.runs_root) {
            OrphanState::Gone => return self.push(CleanAction::Orphan(orphan), vec![item]),
            // The entry is removed together with its worktree.
            OrphanState::Moved(_) if self.has_planned_worktree(&orphan) => return,
            OrphanState::Moved(now) => {
                let typed = resume_command::shell_word(&now.to_string_lossy());
                let now = now.display();
                format!("its worktree lies at `{now}` now: `git worktree repair {typed}` tells git")
            }
            OrphanState::Unknown => format!(
                "the folder of its runs is not there: perhaps a disk is not mounted; \
                 if it is gone for good, `git worktree remove -f -f {}` removes the entry",
                resume_command::shell_word(&path)
            ),
        };
        self.staying.push(item.with_outcome(CleanOutcome::Kept(why)));
    }

    /// Returns true if the moved worktree is to be removed too, on request or as overdue.
    fn has_planned_worktree(&self, orphan: &OrphanedWorktree) -> bool {
        let leftover = Leftover { place: orphan.place, kind: LeftoverKind::Worktree };
        let worktree = CleanItem::from_leftover(&orphan.run, leftover);
        self.parts.iter().flat_map(|part| &part.items).any(|item| item.is_same_as(&worktree))
    }

    fn add_unnamed_runs(
        &mut self,
        runs_root: &Path,
        only: Option<&RunId>,
    ) -> Result<(), CommandFailure> {
        let wanted = |gone: &RemovedRun| only.is_none_or(|only| gone.name == *only);
        for gone in removal::list_removed_runs(runs_root)?.into_iter().filter(wanted) {
            let name = gone.path.display().to_string();
            let item = CleanItem::new(Some(&gone.name), CleanItemKind::RunDirectory, name);
            let item = item.with_bytes(removal::folder_bytes(&gone.path));
            self.push(CleanAction::Gone(gone), vec![item]);
        }
        Ok(())
    }

    fn add_unborn_runs(&mut self, runs_root: &Path) -> Result<(), CommandFailure> {
        for unborn in removal::list_unfinished_runs(runs_root)? {
            let item = new_unfinished_item(None, &unborn.path);
            if unborn.is_in_progress {
                let why = "somebody may just be making it: try again later".to_owned();
                self.staying.push(item.with_outcome(CleanOutcome::Kept(why)));
            } else {
                self.push(CleanAction::Unborn(unborn.path), vec![item]);
            }
        }
        Ok(())
    }
}

/// Refuses a run that a process holds, before asking the user anything. The lease is checked again
/// later.
fn must_have_no_runner(run: &RunDir, args: &CleanArgs) -> Result<(), CommandFailure> {
    let holder = if args.dry_run { None } else { find_lasting_runner(run) };
    let Some(holder) = holder else { return Ok(()) };
    let (path, owner) = (run.root().to_owned(), OwnerLocation::Here);
    Err(StoreError::Locked { path, holder, owner }.into())
}

/// Returns the process that holds the run. A lock without an owner is waited for: a child of a
/// process that was just killed may still hold it.
fn find_lasting_runner(run: &RunDir) -> Option<String> {
    let begun = Instant::now();
    loop {
        let runner = lease::describe_owner(run)?;
        let has_owner = matches!(lease::run_presence(run), RunPresence::Owner(_));
        if has_owner || begun.elapsed() >= MAX_ORPHANED_LOCK_WAIT {
            return Some(runner);
        }
        thread::sleep(LOCK_POLL_INTERVAL);
    }
}

fn new_unfinished_item(run: Option<&RunId>, path: &Path) -> CleanItem {
    let bytes = removal::folder_bytes(path);
    CleanItem::new(run, CleanItemKind::Unfinished, path.display().to_string()).with_bytes(bytes)
}

/// Returns the leftovers that the flags request.
fn requested_leftovers(run: &RunDir, facts: &Facts, args: &CleanArgs) -> Vec<Leftover> {
    let kinds = [(args.worktrees, LeftoverKind::Worktree), (args.refs, LeftoverKind::Branch)];
    let kinds = kinds.into_iter().filter(|(asked, _)| *asked);
    kinds.flat_map(|(_, kind)| removable_leftovers(run, facts, kind)).collect()
}

/// Returns the leftovers of a kind that can be removed from a run on request.
pub(super) fn removable_leftovers(
    run: &RunDir,
    facts: &Facts,
    kind: LeftoverKind,
) -> Vec<Leftover> {
    removable_on_request(facts, kind, |leftover| match leftover.kind {
        LeftoverKind::Worktree => run.file_path(&leftover.place.worktree_path()).is_dir(),
        LeftoverKind::Branch | LeftoverKind::Dir => false,
    })
}

/// Returns the worktrees in a run's directory, whatever its record says.
fn worktrees_on_disk(run: &RunDir) -> Vec<CodePlace> {
    let names = |folder: &str| {
        let entries = std::fs::read_dir(run.root().join(folder)).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
    };
    let nodes = names("wt").filter_map(|name| name.parse().ok().map(CodePlace::Node));
    let evals = names("cand").filter_map(|name| name.parse().ok().map(CodePlace::Candidate));
    let mut places: Vec<_> = nodes.chain(evals).collect();
    places.sort();
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_lock_without_an_owner_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = RunDir::new(folder.path());
        let held = File::create(run.lock_path()).expect("a lock");
        held.lock().expect("to hold it");
        let child = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            drop(held);
        });
        assert_eq!(find_lasting_runner(&run), None);
        child.join().expect("its end");
    }
}
