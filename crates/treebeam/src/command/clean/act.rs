//! Does what `treebeam clean` has planned, part by part. What cannot be removed is said, and the rest goes on.

use super::fate::is_of;
use super::item::{Item, Kind, Outcome};
use super::plan::{self, Part, Work};
use super::scope::Scope;
use crate::command::report;
use crate::failure::Failure;
use crate::terminal;
use crate::wiring::Home;
use jiff::Timestamp;
use std::fs;
use std::io;
use std::path::Path;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::Facts;
use treebeam_core::id::{Place, RunId};
use treebeam_core::plan::Outcome as Step;
use treebeam_edge::executor;
use treebeam_edge::git::{GitRepo, Orphan, remove_folder};
use treebeam_edge::store::removal::{self, Gone};
use treebeam_edge::store::{self, Fenced, RunDir, RunFiles, Store, StoreError};
use treebeam_run::{Clearing, clear};

/// Does one part, and says what became of everything in it.
pub(super) fn carry_out(part: Part, scope: &Scope) -> Result<Vec<Item>, Failure> {
    let Part { work, items } = part;
    let home = scope.home.as_ref();
    Ok(match work {
        Work::Leftovers(run, asked) => match home {
            Some(home) => leftovers(&run, &asked, home, scope, items)?,
            None => items,
        },
        Work::Whole(run) => whole(&run, scope)?,
        Work::Gone(gone) => finish(&gone, home),
        Work::Orphan(orphan) => match home {
            Some(home) => vec![forget(&orphan, home)],
            None => items,
        },
        Work::Unborn(path) => {
            let removed = remove_folder(&path);
            items.into_iter().map(|item| item.tried(removed.as_ref())).collect()
        }
        Work::Refs(id, places) => match home {
            Some(home) => refs(&id, &places, home, &home.repo.toplevel),
            None => items,
        },
    })
}

/// A whole run goes, and before it what it still has running: that would go on with no home, and nobody would know of it.
fn whole(run: &RunDir, scope: &Scope) -> Result<Vec<Item>, Failure> {
    let leaving = removal::take(run, scope.claim)?;
    let sweep = |(job, ended): (executor::LeftJob, io::Result<()>)| {
        Item::new(Some(&leaving.name), Kind::RunningSweep, job.name).tried(ended)
    };
    let running = executor::left_running(run)?;
    let mut items: Vec<_> = executor::withdraw(run, running).into_iter().map(sweep).collect();
    if items.iter().any(Item::is_left) {
        let why = "a sweep of it still runs".to_owned();
        let name = run.root().display().to_string();
        let directory = Item::new(Some(&leaving.name), Kind::RunDirectory, name);
        items.push(directory.but(Outcome::NotRemoved(why)));
        return Ok(items);
    }
    items.extend(finish(&leaving.take_name()?, scope.home.as_ref()));
    Ok(items)
}

/// What a run that stays has left behind goes, with its lease and on its record.
fn leftovers(
    run: &RunDir,
    asked: &[Leftover],
    home: &Home,
    scope: &Scope,
    items: Vec<Item>,
) -> Result<Vec<Item>, Failure> {
    let unfinished = removal::unfinished(run);
    let (mut store, mut state, notes) = match Store::open_to_run(run, scope.claim) {
        Err(StoreError::Locked { holder, .. }) if !scope.is_about_one() => {
            let kept = || Outcome::Kept(format!("the run is run by {holder}"));
            return Ok(items.into_iter().map(|item| item.but(kept())).collect());
        }
        opened => opened?,
    };
    terminal::notes(&notes);
    Home::must_be_named(run, &state.run)?;
    let id = state.run.clone();
    let repo = GitRepo::new(home.repo.clone(), run.root(), id.clone())?;
    let repo = Fenced::new(repo, store.fence());
    let files = Fenced::new(RunFiles::new(run.clone()), store.fence());
    let world = Clearing { repo: &repo, files: &files, now: Timestamp::now() };
    let asked = still(run, &state, asked);
    let mut done = Vec::new();
    clear(&mut state, &asked, world, &mut store, &mut |step| done.extend(told(&id, step)))?;
    store.must_be_ours()?;
    if run.root().join("TREE_SUMMARY.md").is_file() {
        report::write(run, &state)?;
    }
    done.extend(unfinished.iter().map(|path| {
        let item = Item::new(Some(&id), Kind::Unfinished, path.display().to_string());
        item.tried(removal::remove_unfinished(path))
    }));
    Ok(done)
}

/// What was asked for and is still there to be asked for.
fn still(run: &RunDir, facts: &Facts, asked: &[Leftover]) -> Vec<Leftover> {
    let kinds = [LeftoverKind::Worktree, LeftoverKind::Branch];
    let there: Vec<_> = kinds.into_iter().flat_map(|kind| plan::there(run, facts, kind)).collect();
    asked.iter().copied().filter(|leftover| there.contains(leftover)).collect()
}

fn told(id: &RunId, step: &Step) -> Option<Item> {
    match step {
        Step::Discarded(leftover) => Some(Item::of_leftover(id, *leftover).but(Outcome::Removed)),
        Step::DiscardFailed { leftover, why } => {
            Some(Item::of_leftover(id, *leftover).but(Outcome::NotRemoved(why.clone())))
        }
        Step::RootMeasured { .. }
        | Step::RootRefused { .. }
        | Step::Proposed(_)
        | Step::ProposalFailed { .. }
        | Step::Implemented { .. }
        | Step::Swept { .. }
        | Step::Scored { .. }
        | Step::OverBudget { .. }
        | Step::EvalFailed { .. }
        | Step::Promoted(_)
        | Step::PromotionFailed { .. } => None,
    }
}

/// What is left of a run that has lost its name: first what it has in the repository, while its directory still says so,
/// then the directory. Its folder stays, empty, as long as anything else does.
fn finish(gone: &Gone, home: Option<&Home>) -> Vec<Item> {
    let mut items = Vec::new();
    if let Some(home) = home {
        match in_repository(gone, home) {
            Ok(found) => items.extend(found),
            Err(failure) => {
                let why = failure.chain().collect::<Vec<_>>().join(": ");
                let name = format!("tree/{}/…", gone.name);
                let item = Item::new(Some(&gone.name), Kind::Ref, name);
                items.push(item.but(Outcome::NotRemoved(why)));
            }
        }
    }
    let left = items.iter().any(Item::is_left);
    let removed = if left { empty(&gone.path) } else { remove_folder(&gone.path) };
    let item = Item::new(Some(&gone.name), Kind::RunDirectory, gone.path.display().to_string());
    items.push(item.tried(removed));
    items
}

fn empty(folder: &Path) -> io::Result<()> {
    if !folder.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    fs::read_dir(folder)?.try_for_each(|entry| remove_folder(&entry?.path()))
}

/// Refs are those of the run in the directory: not of another that was made under the same name since, nor of the run
/// that this is only a copy of.
fn in_repository(gone: &Gone, home: &Home) -> Result<Vec<Item>, Failure> {
    let run = home.named(&gone.name);
    let mut items = Vec::new();
    for orphan in home.repo.orphans()? {
        if is_of(&orphan, gone, &home.runs_root) {
            items.push(forget(&orphan, home));
        }
    }
    let is_copy = match store::open_to_read(&RunDir::new(&gone.path)) {
        Ok(opened) => opened.state.run != gone.name,
        Err(_) => false,
    };
    let again = run.root().symlink_metadata().is_ok();
    if is_copy || again || home.repo.has_worktrees_of(&gone.name)? {
        return Ok(items);
    }
    let repo = GitRepo::new(home.repo.clone(), &gone.path, gone.name.clone())?;
    let (places, _) = repo.own_refs()?;
    items.extend(refs(&gone.name, &places, home, &gone.path));
    Ok(items)
}

fn forget(orphan: &Orphan, home: &Home) -> Item {
    let name = orphan.worktree.display().to_string();
    let item = Item::new(Some(&orphan.run), Kind::GitEntry, name);
    item.tried(home.repo.forget(orphan).map_err(|error| error.in_full()))
}

/// Removes the ref of a run's journal, where there is one. It goes last: the rest says what it is about.
fn journal_ref(id: &RunId, repo: &GitRepo) -> Option<Item> {
    let removed = match repo.has_journal_ref() {
        Ok(false) => return None,
        Ok(true) => repo.remove_journal_ref(),
        Err(error) => Err(error),
    };
    Some(Item::of_journal_ref(id).tried(removed.map_err(|error| error.in_full())))
}

fn refs(id: &RunId, places: &[Place], home: &Home, seat: &Path) -> Vec<Item> {
    let item = |place: Place| Item::of_leftover(id, Leftover { place, kind: LeftoverKind::Branch });
    match GitRepo::new(home.repo.clone(), seat, id.clone()) {
        Ok(repo) => {
            let remove = |place: &Place| repo.remove_ref(*place).map_err(|error| error.in_full());
            let removed = places.iter().map(|place| item(*place).tried(remove(place)));
            let mut items: Vec<_> = removed.collect();
            items.extend(journal_ref(id, &repo));
            items
        }
        Err(error) => {
            let why = error.in_full();
            let left = || Outcome::NotRemoved(why.clone());
            places.iter().map(|place| item(*place).but(left())).collect()
        }
    }
}
