//! Executes the plan of `treebeam clean`, task by task; failed removals are reported.
//!
//! The remaining tasks are executed after a failure.

use super::item::{CleanItem, CleanItemKind, CleanOutcome};
use super::orphan_state::belongs_to_run;
use super::plan::{self, CleanAction, CleanTask};
use super::scope::CleanScope;
use crate::command::report;
use crate::failure::CommandFailure;
use crate::run_location::RepoHome;
use crate::terminal;
use jiff::Timestamp;
use std::fs;
use std::io;
use std::path::Path;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, RunId};
use treebeam_core::plan::StepOutcome;
use treebeam_git::{GitRepo, OrphanedWorktree, remove_folder};
use treebeam_run::{RemovalPorts, remove_leftovers};
use treebeam_store::removal::{self, RemovedRun};
use treebeam_store::{FencedPort, RunDir, RunFiles, RunStore, StoreError};

/// Executes one task, and returns its items with their outcomes.
pub(super) fn execute_task(
    part: CleanTask,
    scope: &CleanScope,
) -> Result<Vec<CleanItem>, CommandFailure> {
    let CleanTask { action: work, items } = part;
    let home = scope.home.as_ref();
    Ok(match work {
        CleanAction::Leftovers(run, asked) => match home {
            Some(home) => clear_leftovers(&run, &asked, home, scope, items)?,
            None => items,
        },
        CleanAction::Whole(run) => remove_run(&run, scope)?,
        CleanAction::Gone(gone) => remove_unnamed_run(&gone, home),
        CleanAction::Orphan(orphan) => match home {
            Some(home) => vec![forget_orphan(&orphan, home)],
            None => items,
        },
        CleanAction::Unborn(path) => {
            let removed = remove_folder(&path);
            items.into_iter().map(|item| item.with_removal_result(removed.as_ref())).collect()
        }
        CleanAction::Refs(id, places) => match home {
            Some(home) => remove_refs(&id, &places, home, &home.repo.toplevel),
            None => items,
        },
    })
}

/// Removes a whole run, and before it its running jobs: without the run's directory they could not
/// be found any more.
fn remove_run(run: &RunDir, scope: &CleanScope) -> Result<Vec<CleanItem>, CommandFailure> {
    let leaving = removal::begin_removal(run, scope.claim)?;
    let sweep = |(job, ended): (treebeam_executor::LeftoverJob, io::Result<()>)| {
        CleanItem::new(Some(&leaving.name), CleanItemKind::RunningSweep, job.name)
            .with_removal_result(ended)
    };
    let running = treebeam_executor::find_leftover_jobs(run)?;
    let mut items: Vec<_> =
        treebeam_executor::withdraw_jobs(run, running).into_iter().map(sweep).collect();
    if items.iter().any(CleanItem::is_not_removed) {
        let why = "a sweep of it still runs".to_owned();
        let name = run.root().display().to_string();
        let directory = CleanItem::new(Some(&leaving.name), CleanItemKind::RunDirectory, name);
        items.push(directory.with_outcome(CleanOutcome::NotRemoved(why)));
        return Ok(items);
    }
    items.extend(remove_unnamed_run(&leaving.rename_away()?, scope.home.as_ref()));
    Ok(items)
}

/// Removes leftovers of a run that stays, under its lease and on its record.
fn clear_leftovers(
    run: &RunDir,
    asked: &[Leftover],
    home: &RepoHome,
    scope: &CleanScope,
    items: Vec<CleanItem>,
) -> Result<Vec<CleanItem>, CommandFailure> {
    let unfinished = removal::list_unfinished_files(run);
    let (mut store, mut state, notes) = match RunStore::open_to_run(run, scope.claim) {
        Err(StoreError::Locked { holder, .. }) if !scope.is_single_run() => {
            let kept = || CleanOutcome::Kept(format!("the run is run by {holder}"));
            return Ok(items.into_iter().map(|item| item.with_outcome(kept())).collect());
        }
        opened => opened?,
    };
    terminal::print_notes(&notes);
    RepoHome::must_match_name(run, &state.run)?;
    let id = state.run.clone();
    let repo = GitRepo::new(home.repo.clone(), run.root(), id.clone())?;
    let repo = FencedPort::new(repo, store.fence());
    let files = FencedPort::new(RunFiles::new(run.clone()), store.fence());
    let world = RemovalPorts { repo: &repo, files: &files, now: Timestamp::now() };
    let asked = still_removable(run, &state, asked);
    let mut done = Vec::new();
    remove_leftovers(&mut state, &asked, world, &mut store, &mut |step| {
        done.extend(item_from_step(&id, step));
    })?;
    store.check_ownership()?;
    if run.root().join("TREE_SUMMARY.md").is_file() {
        report::write_reports(run, &state)?;
    }
    done.extend(unfinished.iter().map(|path| {
        let item = CleanItem::new(Some(&id), CleanItemKind::Unfinished, path.display().to_string());
        item.with_removal_result(removal::remove_unfinished_file(path))
    }));
    Ok(done)
}

/// Returns the requested leftovers that can still be removed.
fn still_removable(run: &RunDir, facts: &Facts, asked: &[Leftover]) -> Vec<Leftover> {
    let kinds = [LeftoverKind::Worktree, LeftoverKind::Branch];
    let there: Vec<_> =
        kinds.into_iter().flat_map(|kind| plan::removable_leftovers(run, facts, kind)).collect();
    asked.iter().copied().filter(|leftover| there.contains(leftover)).collect()
}

fn item_from_step(id: &RunId, step: &StepOutcome) -> Option<CleanItem> {
    match step {
        StepOutcome::Discarded(leftover) => {
            Some(CleanItem::from_leftover(id, *leftover).with_outcome(CleanOutcome::Removed))
        }
        StepOutcome::DiscardFailed { leftover, why } => Some(
            CleanItem::from_leftover(id, *leftover)
                .with_outcome(CleanOutcome::NotRemoved(why.clone())),
        ),
        StepOutcome::RootMeasured { .. }
        | StepOutcome::RootRefused { .. }
        | StepOutcome::Proposed(_)
        | StepOutcome::ProposalFailed { .. }
        | StepOutcome::Implemented { .. }
        | StepOutcome::Swept { .. }
        | StepOutcome::Scored { .. }
        | StepOutcome::OverBudget { .. }
        | StepOutcome::EvalFailed { .. }
        | StepOutcome::Promoted(_)
        | StepOutcome::PromotionFailed { .. } => None,
    }
}

/// Removes what is left of a removed run: first its refs and worktrees, while its directory still
/// names them, then the directory. Its folder stays, empty, as long as anything else does.
fn remove_unnamed_run(gone: &RemovedRun, home: Option<&RepoHome>) -> Vec<CleanItem> {
    let mut items = Vec::new();
    if let Some(home) = home {
        match remove_run_refs(gone, home) {
            Ok(found) => items.extend(found),
            Err(failure) => {
                let why = failure.chain().collect::<Vec<_>>().join(": ");
                let name = format!("tree/{}/…", gone.name);
                let item = CleanItem::new(Some(&gone.name), CleanItemKind::Ref, name);
                items.push(item.with_outcome(CleanOutcome::NotRemoved(why)));
            }
        }
    }
    let left = items.iter().any(CleanItem::is_not_removed);
    let removed = if left { empty_folder(&gone.path) } else { remove_folder(&gone.path) };
    let item = CleanItem::new(
        Some(&gone.name),
        CleanItemKind::RunDirectory,
        gone.path.display().to_string(),
    );
    items.push(item.with_removal_result(removed));
    items
}

fn empty_folder(folder: &Path) -> io::Result<()> {
    if !folder.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    fs::read_dir(folder)?.try_for_each(|entry| remove_folder(&entry?.path()))
}

/// Removes the refs of the run in the directory: not of another run created under the same name
/// since, nor of a run that this is only a copy of.
fn remove_run_refs(gone: &RemovedRun, home: &RepoHome) -> Result<Vec<CleanItem>, CommandFailure> {
    let run = home.run_dir(&gone.name);
    let mut items = Vec::new();
    for orphan in home.repo.list_orphaned_worktrees()? {
        if belongs_to_run(&orphan, gone, &home.runs_root) {
            items.push(forget_orphan(&orphan, home));
        }
    }
    let is_copy = match treebeam_store::open_to_read(&RunDir::new(&gone.path)) {
        Ok(opened) => opened.state.run != gone.name,
        Err(_) => false,
    };
    let again = run.root().symlink_metadata().is_ok();
    if is_copy || again || home.repo.has_worktrees_of(&gone.name)? {
        return Ok(items);
    }
    let repo = GitRepo::new(home.repo.clone(), &gone.path, gone.name.clone())?;
    let (places, _) = repo.own_refs()?;
    items.extend(remove_refs(&gone.name, &places, home, &gone.path));
    Ok(items)
}

fn forget_orphan(orphan: &OrphanedWorktree, home: &RepoHome) -> CleanItem {
    let name = orphan.worktree.display().to_string();
    let item = CleanItem::new(Some(&orphan.run), CleanItemKind::GitEntry, name);
    item.with_removal_result(home.repo.forget_orphan(orphan).map_err(|error| error.full_text()))
}

/// Removes the ref of a run's journal, if there is one. It goes last: it identifies the rest.
fn remove_run_journal_ref(id: &RunId, repo: &GitRepo) -> Option<CleanItem> {
    let removed = match repo.has_journal_ref() {
        Ok(false) => return None,
        Ok(true) => repo.remove_journal_ref(),
        Err(error) => Err(error),
    };
    Some(
        CleanItem::from_journal_ref(id)
            .with_removal_result(removed.map_err(|error| error.full_text())),
    )
}

fn remove_refs(
    id: &RunId,
    places: &[CodePlace],
    home: &RepoHome,
    run_dir: &Path,
) -> Vec<CleanItem> {
    let item = |place: CodePlace| {
        CleanItem::from_leftover(id, Leftover { place, kind: LeftoverKind::Branch })
    };
    match GitRepo::new(home.repo.clone(), run_dir, id.clone()) {
        Ok(repo) => {
            let remove =
                |place: &CodePlace| repo.remove_ref(*place).map_err(|error| error.full_text());
            let removed =
                places.iter().map(|place| item(*place).with_removal_result(remove(place)));
            let mut items: Vec<_> = removed.collect();
            items.extend(remove_run_journal_ref(id, &repo));
            items
        }
        Err(error) => {
            let why = error.full_text();
            let left = || CleanOutcome::NotRemoved(why.clone());
            places.iter().map(|place| item(*place).with_outcome(left())).collect()
        }
    }
}
