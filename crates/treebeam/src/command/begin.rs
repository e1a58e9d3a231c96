//! What must hold before a run may begin, and what it begins with: for `run`, `eval` and `baseline` alike.

use crate::config::Config;
use crate::crew::{self, Seat};
use crate::dotenv::Dotenv;
use crate::failure::{Exit, Failure};
use crate::preflight::{self, Consent};
use crate::program;
use crate::terminal;
use crate::wiring::Home;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use treebeam_core::event::WorldKind;
use treebeam_core::id::RunId;
use treebeam_core::measure::Measure;
use treebeam_core::policy::{Deadline, Meaning, Reach};
use treebeam_core::sweep::Sweep;
use treebeam_edge::git::GitRepo;
use treebeam_edge::input::{self, InputError};
use treebeam_run::port::Role;

/// How many files of a dirty checkout are listed.
const LISTED: usize = 20;

/// The name of a new run: the one that was given, which nobody has, or one by the time.
pub(super) fn id(home: &Home, given: Option<&str>) -> Result<RunId, Failure> {
    let Some(name) = given else { return default_id(home) };
    let id: RunId = name.parse()?;
    if home.named(&id).root().exists() {
        let what = format!("there is a run `{id}` already");
        let hint = format!("choose another `--run-id`, or go on with it: `treebeam resume {id}`");
        return Err(Failure::usage(what).hint(hint));
    }
    Ok(id)
}

/// The time now, in UTC, with a number behind it where that is taken.
pub(super) fn default_id(home: &Home) -> Result<RunId, Failure> {
    let now = Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let mut id: RunId = now.parse()?;
    let mut number = 2;
    while home.named(&id).root().exists() {
        id = format!("{now}-{number}").parse()?;
        number += 1;
    }
    Ok(id)
}

/// When a run begins: the dry world knows no time but its root's.
pub(super) fn time(home: &Home, world: WorldKind) -> Timestamp {
    match world {
        WorldKind::Dry { .. } => home.repo.head_time,
        WorldKind::Real => Timestamp::now(),
    }
}

/// Says that nothing has begun.
pub(super) fn interrupted() -> Exit {
    terminal::say("interrupted before the run began");
    Exit::Interrupted
}

/// Refuses to begin a run whose time is over: nothing would begin in it.
pub(super) fn must_have_time(reach: &Reach) -> Result<(), Failure> {
    let now = Timestamp::now();
    match reach.deadline {
        Some(Deadline::At(moment)) if moment <= now => {
            let what = "the time of the run is over before it begins";
            Err(Failure::usage(format!("{what}: `deadline` is {moment}, and it is {now:.0}")).hint(
                "`--deadline 07:00` is the next time that a clock shows that, `8h` counts from now, and `none` is no end",
            ))
        }
        Some(Deadline::At(_) | Deadline::After(_)) | None => Ok(()),
    }
}

/// Refuses to begin where nothing measures a code state.
pub(super) fn must_sweep(measure: &Measure) -> Result<(), Failure> {
    if measure.sweep_command.is_some() {
        return Ok(());
    }
    Err(Failure::usage("nothing measures a code state: `sweep_command` is not set").hint(
        "set `sweep_command` in `treebeam.toml`, which `treebeam init` writes where there is none, or try `treebeam run --dry-run`",
    ))
}

/// Refuses a baseline that cannot be read, or lacks a column that the run needs, before anything is begun.
pub(super) fn must_be_readable(top: &Path, meaning: &Meaning) -> Result<(), Failure> {
    let Measure { baseline_csv, root_baseline_csv, .. } = &meaning.measure;
    for path in [baseline_csv, root_baseline_csv].into_iter().flatten() {
        let reader = input::open(&top.join(path.as_str()), path.as_str()).map_err(unmeasured)?;
        let sweep = Sweep::read(reader, path.as_str(), meaning.limit(), &meaning.score)?;
        sweep.require_primary(&meaning.score)?;
        sweep.require(&meaning.score)?;
    }
    Ok(())
}

/// Where the root's figures were to be taken from a file that is not there.
fn unmeasured(error: InputError) -> Failure {
    let InputError::Missing { file } = error else { return error.into() };
    let what = format!("`baseline_csv`: there is no file `{file}`, seen from the repository's top");
    Failure::failed(what)
        .hint("`treebeam baseline` measures the root and writes it; without the key, a run measures it itself")
}

/// Who is set for these roles.
pub(super) fn seats<'a>(
    home: &Home,
    config: &'a Config,
    roles: &[Role],
) -> Result<Vec<Seat<'a>>, Failure> {
    let dotenv = Dotenv::load(&home.repo.toplevel, config)?;
    let seats = crew::seats(config, &dotenv).into_iter();
    Ok(seats.filter(|seat| roles.contains(&seat.role)).collect())
}

/// Refuses to begin without these agents and their keys.
pub(super) fn must_be_able(seats: &[Seat<'_>], needed: &[Role]) -> Result<(), Failure> {
    let agents = preflight::agents(seats, needed)?;
    terminal::note(&format!("agents: {}", agents.in_words()));
    Ok(())
}

/// Refuses a program of an agent that no worktree can have: its relative path leads to no file
/// here, and git does not track it.
pub(super) fn must_come_with_worktrees(home: &Home, seats: &[Seat<'_>]) -> Result<(), Failure> {
    let top = &home.repo.toplevel;
    for seat in seats {
        let Some(program) = seat.program().filter(|program| program::is_path(program)) else {
            continue;
        };
        let path = program.strip_prefix("./").unwrap_or(program);
        let is_there = top.join(path).is_file();
        if !is_there && !home.repo.tracked()?.iter().any(|tracked| tracked == path) {
            let what = format!("`agents.{}`: there is no program `{program}`", seat.role);
            let hint =
                "commit it, or name its absolute path: a relative one begins at the worktree";
            return Err(Failure::environment(what).hint(hint));
        }
    }
    Ok(())
}

/// Says what may be paid, and asks where that is much.
pub(super) fn must_be_affordable(
    config: &Config,
    meaning: &Meaning,
    reach: &Reach,
    seats: &[Seat<'_>],
    consent: Consent,
) -> Result<(), Failure> {
    let estimate = preflight::estimate(config, meaning, reach, seats);
    preflight::consent(&estimate, config.confirm_above(), consent)
}

/// Refuses to begin from what is in no commit. What the command itself is given, prompts and inputs need not be in one.
pub(super) fn must_be_clean(
    home: &Home,
    config: &Config,
    given: &[PathBuf],
) -> Result<(), Failure> {
    let given: Vec<_> = given.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let is_given = |dirty: &String| {
        let dirty = home.repo.toplevel.join(dirty).canonicalize();
        dirty.is_ok_and(|dirty| given.iter().any(|given| given.starts_with(&dirty)))
    };
    let dirty = home.repo.dirty_but_for(&config.not_committed())?.into_iter();
    let dirty: Vec<_> = dirty.filter(|path| !is_given(path)).collect();
    if dirty.is_empty() {
        return Ok(());
    }
    let mut what = "the working tree is not clean:".to_owned();
    for file in dirty.iter().take(LISTED) {
        let file: String = file.chars().flat_map(printable).collect();
        what.push_str(&format!("\n  {file}"));
    }
    if dirty.len() > LISTED {
        what.push_str(&format!("\n  … and {} more", dirty.len() - LISTED));
    }
    let is_log = |file: &String| {
        file == "nohup.out" || Path::new(file).extension().is_some_and(|end| end == "log")
    };
    let log = match dirty.iter().find(|file| is_log(file)) {
        Some(file) => format!("; if `{file}` is the output of this command, let it lie elsewhere"),
        None => String::new(),
    };
    let hint = "commit, stash or ignore these files: a run starts from a commit";
    Err(Failure::environment(what).hint(format!("{hint}{log}")))
}

/// A character of a file name as it may be shown on a terminal.
fn printable(c: char) -> Vec<char> {
    if c.is_control() { c.escape_debug().collect() } else { vec![c] }
}

/// Refuses a name whose refs are in the way of a new run, and removes the journal ref that an earlier run of this
/// name left. Refs outlive a run directory that was deleted, and are shared by all checkouts of a repository.
pub(super) fn must_be_free(home: &Home, id: &RunId) -> Result<(), Failure> {
    let runs_root = home.make_runs_root()?;
    let repo = GitRepo::new(home.repo.clone(), runs_root, id.clone())?;
    if let Some(name) = repo.in_the_way()? {
        let what =
            format!("the branch `{name}` is in the way of the refs `tree/{id}/…` of a new run");
        return Err(
            Failure::usage(what).hint("choose another `--run-id`, or rename or delete that branch")
        );
    }
    // It names the last line of another journal: the new one would count as cut.
    if !home.named(id).root().exists() && repo.has_journal_ref()? {
        repo.remove_journal_ref()?;
    }
    if home.repo.has_submodules {
        terminal::note("this repository has submodules: they stay empty in the run's worktrees");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::id::Sha256;
    use treebeam_edge::{git, store};
    use treebeam_run::port::{JournalTip, Repo as _};
    use treebeam_testkit::repo::TempRepo;

    #[test]
    fn a_new_run_begins_without_the_journal_ref_of_an_earlier_one() {
        let folder = TempRepo::with(&[("a.txt", "a\n")]).expect("a repository");
        let repo = git::open_with(folder.path(), folder.variables()).expect("a repository");
        let home = Home { runs_root: store::runs_root(&repo.toplevel), repo };
        let id: RunId = "nightly".parse().expect("a name");
        let earlier = GitRepo::new(home.repo.clone(), folder.path(), id.clone()).expect("a run");
        let tip = JournalTip { seq: 40, digest: Sha256::of(b"a line") };
        earlier.mark_journal(&tip).expect("a ref");
        // A run that is refused changes nothing.
        folder.git(["branch", "tree"]).expect("a branch");
        assert!(must_be_free(&home, &id).is_err());
        assert_eq!(earlier.journal_tip().expect("a ref"), Some(tip));
        folder.git(["branch", "--quiet", "-D", "tree"]).expect("a removal");
        must_be_free(&home, &id).expect("a free name");
        assert!(!earlier.has_journal_ref().expect("an answer"));
    }
}
