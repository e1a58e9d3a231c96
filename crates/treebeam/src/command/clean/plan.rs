//! What `treebeam clean` is going to do: found and said before anything is done. Reads only.

use super::fate::{Fate, is_of};
use super::item::{Item, Kind, Outcome};
use super::scope::{About, Scope};
use super::worked::Worked;
use crate::cli::CleanArgs;
use crate::failure::Failure;
use crate::way_on;
use crate::wiring::Home;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::Facts;
use treebeam_core::id::{Place, RunId};
use treebeam_core::plan::removal::{on_request, overdue};
use treebeam_edge::executor;
use treebeam_edge::git::{GitRepo, Orphan};
use treebeam_edge::store::lease::{self, Presence};
use treebeam_edge::store::removal::{self, Gone};
use treebeam_edge::store::{self, RunDir, StoreError, Whereabouts};

/// How long a lock without an owner is waited for.
const ORPHANED_LOCK_PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked at meanwhile.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Something to do, and what will be gone then.
pub(super) struct Part {
    pub(super) work: Work,
    pub(super) items: Vec<Item>,
}

pub(super) enum Work {
    /// What a run that stays has left behind, and what of it was asked for.
    Leftovers(RunDir, Vec<Leftover>),
    /// A whole run.
    Whole(RunDir),
    /// What is left of a whole run.
    Gone(Gone),
    /// What git knows of a worktree that is gone.
    Orphan(Orphan),
    /// What never became a run.
    Unborn(PathBuf),
    /// Refs of a run that has no directory, that of its journal included where it is there.
    Refs(RunId, Vec<Place>),
}

#[derive(Default)]
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    /// What stays where it is.
    pub(super) staying: Vec<Item>,
    /// How much of it goes only because the user asks for it.
    pub(super) on_request: usize,
}

impl Plan {
    pub(super) fn make(scope: &Scope, args: &CleanArgs) -> Result<Self, Failure> {
        let mut plan = Self::default();
        match (&scope.about, &scope.home) {
            (About::Run(run, id), home) if args.delete => {
                plan.whole(run, id, home.as_ref(), args)?;
            }
            (About::Run(run, id), Some(home)) => {
                plan.named(run, home, args)?;
                plan.nobodys(home, Some(id))?;
            }
            (About::Run(run, _), None) => {
                let what = format!("`{}` lies in no repository", run.root().display());
                return Err(Failure::usage(what)
                    .hint("nothing of it is in a repository; `--delete` removes the directory"));
            }
            (About::Missing(run, id), home) => plan.missing(run, id, home.as_ref(), args)?,
            (About::All, Some(home)) => {
                for id in store::runs(&home.runs_root)? {
                    plan.one_of_all(&home.named(&id), &id, home, args)?;
                }
                plan.nobodys(home, None)?;
            }
            (About::All, None) => {}
        }
        Ok(plan)
    }

    pub(super) fn items(&self) -> impl Iterator<Item = &Item> {
        self.parts.iter().flat_map(|part| &part.items).chain(&self.staying)
    }

    fn push(&mut self, work: Work, items: Vec<Item>) {
        self.parts.push(Part { work, items });
    }

    fn named(&mut self, run: &RunDir, home: &Home, args: &CleanArgs) -> Result<(), Failure> {
        must_be_free(run, args)?;
        let opened = store::open_to_read(run)?;
        Home::must_be_named(run, &opened.state.run)?;
        if args.refs && opened.state.stop_reason().is_none() {
            let id = &opened.state.run;
            let what = format!("run `{id}` is not over: it goes on from the commits of its refs");
            return Err(Failure::usage(what)
                .hint(format!("`treebeam resume {id}` ends it; `--delete` removes all of it")));
        }
        self.leftovers(run, &opened.state, home, args)
    }

    /// One run among others: what is wrong with it keeps nobody from cleaning up after the others.
    fn one_of_all(
        &mut self,
        run: &RunDir,
        id: &RunId,
        home: &Home,
        args: &CleanArgs,
    ) -> Result<(), Failure> {
        let directory = || Item::new(Some(id), Kind::RunDirectory, id.as_str());
        let opened = match store::open_to_read(run) {
            Ok(opened) => opened,
            Err(error) => {
                let why = format!("it cannot be read ({error}); `--delete` removes all of it");
                self.staying.push(directory().but(Outcome::Kept(why)));
                return Ok(());
            }
        };
        if opened.state.run != *id {
            let why = format!("it holds the run `{}`", opened.state.run);
            self.staying.push(directory().but(Outcome::Kept(why)));
            return Ok(());
        }
        if let Some(by) = lease::runner(run) {
            let why = format!("it is run by {by}, which cleans up after itself");
            self.staying.push(directory().but(Outcome::Kept(why)));
            return Ok(());
        }
        self.leftovers(run, &opened.state, home, args)
    }

    /// What a run that stays has left behind, and what is asked for.
    fn leftovers(
        &mut self,
        run: &RunDir,
        facts: &Facts,
        home: &Home,
        args: &CleanArgs,
    ) -> Result<(), Failure> {
        let repo = GitRepo::new(home.repo.clone(), run.root(), facts.run.clone())?;
        let worked = Worked::new(&repo, run, facts, args)?;
        let item = |leftover: Leftover| match leftover.kind {
            LeftoverKind::Worktree => Item::of_leftover(&facts.run, leftover)
                .weighing(removal::bytes(&run.path(&leftover.place.worktree()))),
            LeftoverKind::Branch | LeftoverKind::Dir => Item::of_leftover(&facts.run, leftover),
        };
        let mut items: Vec<_> = overdue(facts).into_iter().map(item).collect();
        let mut asked = Vec::new();
        for leftover in wanted(run, facts, args) {
            if let Some(why) = worked.keeps(leftover) {
                self.staying.push(item(leftover).but(Outcome::NotRemoved(why)));
            } else {
                items.push(item(leftover));
                asked.push(leftover);
            }
        }
        self.on_request += asked.len();
        let unfinished = removal::unfinished(run);
        items.extend(unfinished.iter().map(|path| unfinished_item(Some(&facts.run), path)));
        if !items.is_empty() {
            self.push(Work::Leftovers(run.clone(), asked), items);
        }
        Ok(())
    }

    fn whole(
        &mut self,
        run: &RunDir,
        id: &RunId,
        home: Option<&Home>,
        args: &CleanArgs,
    ) -> Result<(), Failure> {
        must_be_free(run, args)?;
        let opened = match store::open_to_read(run) {
            Err(error @ StoreError::NotARun { .. }) => return Err(error.into()),
            opened => opened.ok(),
        };
        let facts = opened.as_ref().map(|opened| &*opened.state);
        let sweep = |job: executor::LeftJob| Item::new(Some(id), Kind::RunningSweep, job.name);
        let mut items: Vec<_> = executor::left_running(run)?.into_iter().map(sweep).collect();
        let own = facts.is_none_or(|facts| facts.run == *id);
        if let Some(home) = home.filter(|_| own) {
            let repo = GitRepo::new(home.repo.clone(), run.root(), id.clone())?;
            let mut worked = Worked::of_any(&repo, run, args)?;
            worked.knows(facts);
            let (refs, foreign) = repo.own_refs()?;
            let of = |kind| move |place| Leftover { place, kind };
            let worktrees = on_disk(run).into_iter().map(of(LeftoverKind::Worktree));
            for leftover in worktrees.chain(refs.into_iter().map(of(LeftoverKind::Branch))) {
                let item = Item::of_leftover(id, leftover);
                let item = match leftover.kind {
                    LeftoverKind::Worktree => {
                        item.weighing(removal::bytes(&run.path(&leftover.place.worktree())))
                    }
                    LeftoverKind::Branch | LeftoverKind::Dir => item,
                };
                match worked.keeps(leftover) {
                    Some(why) => self.staying.push(item.but(Outcome::NotRemoved(why))),
                    None => items.push(item),
                }
            }
            self.keep_foreign(id, foreign);
            if repo.has_journal_ref()? {
                items.push(Item::of_journal_ref(id));
            }
        }
        let directory = Item::new(Some(id), Kind::RunDirectory, run.root().display().to_string());
        let directory = directory.weighing(removal::bytes(run.root()));
        if self.staying.iter().any(Item::is_left) {
            let why =
                "there is work in its worktrees or on its branches that would be lost".to_owned();
            self.staying.push(directory.but(Outcome::NotRemoved(why)));
            return Ok(());
        }
        items.push(directory);
        self.on_request += items.len();
        self.push(Work::Whole(run.clone()), items);
        Ok(())
    }

    /// Refs that somebody else put below the run's own name.
    fn keep_foreign(&mut self, id: &RunId, names: Vec<String>) {
        let why = || Outcome::Kept("no run makes a ref of this name".to_owned());
        let item = |name| Item::new(Some(id), Kind::Ref, name).but(why());
        self.staying.extend(names.into_iter().map(item));
    }

    /// What is left of a run without a directory.
    fn missing(
        &mut self,
        run: &RunDir,
        id: &RunId,
        home: Option<&Home>,
        args: &CleanArgs,
    ) -> Result<(), Failure> {
        match home {
            Some(home) => self.nobodys(home, Some(id))?,
            None => self.gone(run.root().parent().unwrap_or(run.root()), Some(id))?,
        }
        if let Some(home) = home.filter(|_| args.refs) {
            self.refs(id, home)?;
        }
        if self.parts.is_empty() && self.staying.is_empty() {
            return Err(StoreError::NotARun { path: run.root().to_owned() }.into());
        }
        Ok(())
    }

    fn refs(&mut self, id: &RunId, home: &Home) -> Result<(), Failure> {
        if home.repo.has_worktrees_of(id)? {
            let what = format!("run `{id}` lies elsewhere: git knows worktrees of it");
            return Err(Failure::usage(what).hint("`git worktree list` shows where"));
        }
        let repo = GitRepo::new(home.repo.clone(), &home.repo.toplevel, id.clone())?;
        let (places, foreign) = repo.own_refs()?;
        self.keep_foreign(id, foreign);
        let branch = |place| Leftover { place, kind: LeftoverKind::Branch };
        let item = |place: &Place| Item::of_leftover(id, branch(*place));
        let mut items: Vec<_> = places.iter().map(item).collect();
        if repo.has_journal_ref()? {
            items.push(Item::of_journal_ref(id));
        }
        self.on_request += items.len();
        if !items.is_empty() {
            self.push(Work::Refs(id.clone(), places), items);
        }
        Ok(())
    }

    /// What no run owns: all of it, or that of one name.
    fn nobodys(&mut self, home: &Home, only: Option<&RunId>) -> Result<(), Failure> {
        self.gone(&home.runs_root, only)?;
        let gone: Vec<_> = removal::gone(&home.runs_root)?;
        let is_going =
            |orphan: &Orphan| gone.iter().any(|gone| is_of(orphan, gone, &home.runs_root));
        let wanted = |orphan: &Orphan| only.is_none_or(|only| orphan.run == *only);
        for orphan in home.repo.orphans()?.into_iter().filter(wanted).filter(|o| !is_going(o)) {
            self.orphan(orphan, home);
        }
        if only.is_none() {
            self.unborn(&home.runs_root)?;
        }
        Ok(())
    }

    /// What git knows of a worktree that is not where it was.
    fn orphan(&mut self, orphan: Orphan, home: &Home) {
        let path = orphan.worktree.display().to_string();
        let item = Item::new(Some(&orphan.run), Kind::GitEntry, &*path);
        let why = match Fate::of(&orphan, &home.repo, &home.runs_root) {
            Fate::Gone => return self.push(Work::Orphan(orphan), vec![item]),
            // With its worktree goes what git knows of it.
            Fate::Moved(_) if self.has_going(&orphan) => return,
            Fate::Moved(now) => {
                let typed = way_on::word(&now.to_string_lossy());
                let now = now.display();
                format!("its worktree lies at `{now}` now: `git worktree repair {typed}` tells git")
            }
            Fate::Unknown => format!(
                "the folder of its runs is not there: perhaps a disk is not mounted; \
                 if it is gone for good, `git worktree remove -f -f {}` removes the entry",
                way_on::word(&path)
            ),
        };
        self.staying.push(item.but(Outcome::Kept(why)));
    }

    /// Whether the worktree that was moved is to go, because it was asked for or is overdue.
    fn has_going(&self, orphan: &Orphan) -> bool {
        let leftover = Leftover { place: orphan.place, kind: LeftoverKind::Worktree };
        let worktree = Item::of_leftover(&orphan.run, leftover);
        self.parts.iter().flat_map(|part| &part.items).any(|item| item.is_same_as(&worktree))
    }

    fn gone(&mut self, runs_root: &Path, only: Option<&RunId>) -> Result<(), Failure> {
        let wanted = |gone: &Gone| only.is_none_or(|only| gone.name == *only);
        for gone in removal::gone(runs_root)?.into_iter().filter(wanted) {
            let name = gone.path.display().to_string();
            let item = Item::new(Some(&gone.name), Kind::RunDirectory, name);
            let item = item.weighing(removal::bytes(&gone.path));
            self.push(Work::Gone(gone), vec![item]);
        }
        Ok(())
    }

    fn unborn(&mut self, runs_root: &Path) -> Result<(), Failure> {
        for unborn in removal::unborn(runs_root)? {
            let item = unfinished_item(None, &unborn.path);
            if unborn.may_become_one {
                let why = "somebody may just be making it: try again later".to_owned();
                self.staying.push(item.but(Outcome::Kept(why)));
            } else {
                self.push(Work::Unborn(unborn.path), vec![item]);
            }
        }
        Ok(())
    }
}

/// Refuses a run that somebody runs, before anybody is asked anything. The lease says it again.
fn must_be_free(run: &RunDir, args: &CleanArgs) -> Result<(), Failure> {
    let holder = if args.dry_run { None } else { lasting_runner(run) };
    let Some(holder) = holder else { return Ok(()) };
    let (path, owner) = (run.root().to_owned(), Whereabouts::Here);
    Err(StoreError::Locked { path, holder, owner }.into())
}

/// Who runs the run. A lock without an owner is waited for: a child of a process that was just killed may still hold it.
fn lasting_runner(run: &RunDir) -> Option<String> {
    let begun = Instant::now();
    loop {
        let runner = lease::runner(run)?;
        let has_owner = matches!(lease::presence(run), Presence::Owner(_));
        if has_owner || begun.elapsed() >= ORPHANED_LOCK_PATIENCE {
            return Some(runner);
        }
        thread::sleep(LOCK_POLL_INTERVAL);
    }
}

fn unfinished_item(run: Option<&RunId>, path: &Path) -> Item {
    let bytes = removal::bytes(path);
    Item::new(run, Kind::Unfinished, path.display().to_string()).weighing(bytes)
}

/// What the flags ask for.
fn wanted(run: &RunDir, facts: &Facts, args: &CleanArgs) -> Vec<Leftover> {
    let kinds = [(args.worktrees, LeftoverKind::Worktree), (args.refs, LeftoverKind::Branch)];
    let kinds = kinds.into_iter().filter(|(asked, _)| *asked);
    kinds.flat_map(|(_, kind)| there(run, facts, kind)).collect()
}

/// What can be asked for of a run that lies here.
pub(super) fn there(run: &RunDir, facts: &Facts, kind: LeftoverKind) -> Vec<Leftover> {
    on_request(facts, kind, |leftover| match leftover.kind {
        LeftoverKind::Worktree => run.path(&leftover.place.worktree()).is_dir(),
        LeftoverKind::Branch | LeftoverKind::Dir => false,
    })
}

/// The worktrees that lie in a run's directory, whatever its record says.
fn on_disk(run: &RunDir) -> Vec<Place> {
    let names = |folder: &str| {
        let entries = std::fs::read_dir(run.root().join(folder)).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
    };
    let nodes = names("wt").filter_map(|name| name.parse().ok().map(Place::Node));
    let evals = names("cand").filter_map(|name| name.parse().ok().map(Place::Candidate));
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
        let held = File::create(run.lock()).expect("a lock");
        held.lock().expect("to hold it");
        let child = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            drop(held);
        });
        assert_eq!(lasting_runner(&run), None);
        child.join().expect("its end");
    }
}
