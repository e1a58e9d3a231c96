//! Checks the preconditions of a new run, and chooses its name: for `run`, `eval` and `baseline`.

use crate::config::Config;
use crate::dotenv::Dotenv;
use crate::failure::{CommandExit, CommandFailure};
use crate::preflight::{self, CostConsent};
use crate::program;
use crate::role_agents::{self, RoleAgent};
use crate::run_location::RepoHome;
use crate::terminal;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use treebeam_core::event::WorldKind;
use treebeam_core::id::RunId;
use treebeam_core::measure::MeasureSettings;
use treebeam_core::policy::{FixedSettings, RunDeadline, RunLimits};
use treebeam_git::GitRepo;
use treebeam_run::port::AgentRole;
use treebeam_score::sweep_csv::Sweep;
use treebeam_store::input::{self, InputError};

/// Maximum number of listed files of a dirty checkout.
const MAX_LISTED_FILES: usize = 20;

/// Returns the name of a new run: the given one if it is free, or one by the time.
pub(super) fn choose_run_id(home: &RepoHome, given: Option<&str>) -> Result<RunId, CommandFailure> {
    let Some(name) = given else { return default_run_id(home) };
    let id: RunId = name.parse()?;
    if home.run_dir(&id).root().exists() {
        let what = format!("there is a run `{id}` already");
        let hint = format!("choose another `--run-id`, or go on with it: `treebeam resume {id}`");
        return Err(CommandFailure::usage(what).with_hint(hint));
    }
    Ok(id)
}

/// Returns the current time in UTC as a name, with a number appended if it is taken.
pub(super) fn default_run_id(home: &RepoHome) -> Result<RunId, CommandFailure> {
    let now = Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let mut id: RunId = now.parse()?;
    let mut number = 2;
    while home.run_dir(&id).root().exists() {
        id = format!("{now}-{number}").parse()?;
        number += 1;
    }
    Ok(id)
}

/// Returns the start time of a run: in the dry world, the time of its root commit.
pub(super) fn run_start_time(home: &RepoHome, world: WorldKind) -> Timestamp {
    match world {
        WorldKind::Dry { .. } => home.repo.head_time,
        WorldKind::Real => Timestamp::now(),
    }
}

/// Prints that nothing has begun, and returns the exit code.
pub(super) fn interrupted_before_start() -> CommandExit {
    terminal::print_line("interrupted before the run began");
    CommandExit::Interrupted
}

/// Refuses a deadline that has passed: the run would begin nothing.
pub(super) fn must_have_time_left(limits: &RunLimits) -> Result<(), CommandFailure> {
    let now = Timestamp::now();
    match limits.deadline {
        Some(RunDeadline::At(moment)) if moment <= now => {
            let what = "the time of the run is over before it begins";
            Err(CommandFailure::usage(format!("{what}: `deadline` is {moment}, and it is {now:.0}")).with_hint(
                "`--deadline 07:00` is the next time that a clock shows that, `8h` counts from now, and `none` is no end",
            ))
        }
        Some(RunDeadline::At(_) | RunDeadline::After(_)) | None => Ok(()),
    }
}

/// Refuses to start without a sweep command.
pub(super) fn must_have_sweep_command(measure: &MeasureSettings) -> Result<(), CommandFailure> {
    if measure.sweep_command.is_some() {
        return Ok(());
    }
    Err(CommandFailure::usage("nothing measures a code state: `sweep_command` is not set").with_hint(
        "set `sweep_command` in `treebeam.toml`, which `treebeam init` writes where there is none, or try `treebeam run --dry-run`",
    ))
}

/// Refuses a baseline that cannot be read, or lacks a column that the run needs, before anything
/// begins.
pub(super) fn must_have_readable_baseline(
    top: &Path,
    settings: &FixedSettings,
) -> Result<(), CommandFailure> {
    let MeasureSettings { baseline_csv, root_baseline_csv, .. } = &settings.measure;
    for path in [baseline_csv, root_baseline_csv].into_iter().flatten() {
        let reader =
            input::open_input(&top.join(path.as_str()), path.as_str()).map_err(missing_baseline)?;
        let sweep =
            Sweep::read_csv(reader, path.as_str(), settings.config_limit(), &settings.score)?;
        sweep.require_primary(&settings.score)?;
        sweep.require_columns(&settings.score)?;
    }
    Ok(())
}

/// Explains a missing baseline file.
fn missing_baseline(error: InputError) -> CommandFailure {
    let InputError::Missing { file } = error else { return error.into() };
    let what = format!("`baseline_csv`: there is no file `{file}`, seen from the repository's top");
    CommandFailure::failed(what)
        .with_hint("`treebeam baseline` measures the root and writes it; without the key, a run measures it itself")
}

/// Returns the configured agents of these roles.
pub(super) fn role_agents<'a>(
    home: &RepoHome,
    config: &'a Config,
    roles: &[AgentRole],
) -> Result<Vec<RoleAgent<'a>>, CommandFailure> {
    let dotenv = Dotenv::load(&home.repo.toplevel, config)?;
    let role_agents = role_agents::list_role_agents(config, &dotenv).into_iter();
    Ok(role_agents.filter(|role_agent| roles.contains(&role_agent.role)).collect())
}

/// Refuses to start without these agents and their keys.
pub(super) fn must_have_agents(
    role_agents: &[RoleAgent<'_>],
    needed: &[AgentRole],
) -> Result<(), CommandFailure> {
    let agents = preflight::required_agents(role_agents, needed)?;
    terminal::print_note(&format!("agents: {}", agents.describe_agents()));
    Ok(())
}

/// Refuses an agent's program that no worktree can have: its relative path leads to no file here,
/// and git does not track it.
pub(super) fn must_have_agent_programs(
    home: &RepoHome,
    role_agents: &[RoleAgent<'_>],
) -> Result<(), CommandFailure> {
    let top = &home.repo.toplevel;
    for role_agent in role_agents {
        let Some(program) =
            role_agent.program_name().filter(|program| program::is_program_path(program))
        else {
            continue;
        };
        let path = program.strip_prefix("./").unwrap_or(program);
        let is_there = top.join(path).is_file();
        if !is_there && !home.repo.tracked_paths()?.iter().any(|tracked| tracked == path) {
            let what = format!("`agents.{}`: there is no program `{program}`", role_agent.role);
            let hint =
                "commit it, or name its absolute path: a relative one begins at the worktree";
            return Err(CommandFailure::environment(what).with_hint(hint));
        }
    }
    Ok(())
}

/// Prints the expected cost, and asks for consent where it is high.
pub(super) fn must_be_affordable(
    config: &Config,
    settings: &FixedSettings,
    limits: &RunLimits,
    role_agents: &[RoleAgent<'_>],
    consent: CostConsent,
) -> Result<(), CommandFailure> {
    let estimate = preflight::estimate_cost(config, settings, limits, role_agents);
    preflight::confirm_cost(&estimate, config.confirm_above(), consent)
}

/// Refuses to start with uncommitted changes. Files of the command line, prompts and inputs may be
/// uncommitted.
pub(super) fn must_have_clean_checkout(
    home: &RepoHome,
    config: &Config,
    given: &[PathBuf],
) -> Result<(), CommandFailure> {
    let given: Vec<_> = given.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let is_given = |dirty: &String| {
        let dirty = home.repo.toplevel.join(dirty).canonicalize();
        dirty.is_ok_and(|dirty| given.iter().any(|given| given.starts_with(&dirty)))
    };
    let dirty = home.repo.dirty_paths_except(&config.uncommitted_files())?.into_iter();
    let dirty: Vec<_> = dirty.filter(|path| !is_given(path)).collect();
    if dirty.is_empty() {
        return Ok(());
    }
    let mut what = "the working tree is not clean:".to_owned();
    for file in dirty.iter().take(MAX_LISTED_FILES) {
        let file: String = file.chars().flat_map(escape_control).collect();
        what.push_str(&format!("\n  {file}"));
    }
    if dirty.len() > MAX_LISTED_FILES {
        what.push_str(&format!("\n  … and {} more", dirty.len() - MAX_LISTED_FILES));
    }
    let is_log = |file: &String| {
        file == "nohup.out" || Path::new(file).extension().is_some_and(|end| end == "log")
    };
    let log = match dirty.iter().find(|file| is_log(file)) {
        Some(file) => format!("; if `{file}` is the output of this command, let it lie elsewhere"),
        None => String::new(),
    };
    let hint = "commit, stash or ignore these files: a run starts from a commit";
    Err(CommandFailure::environment(what).with_hint(format!("{hint}{log}")))
}

/// Escapes a character of a file name for the terminal.
fn escape_control(c: char) -> Vec<char> {
    if c.is_control() { c.escape_debug().collect() } else { vec![c] }
}

/// Refuses a name whose refs block a new run, and removes the journal ref that an earlier run of
/// this name left. Refs outlive a run directory that was deleted, and are shared by all checkouts
/// of a repository.
pub(super) fn must_have_free_refs(home: &RepoHome, id: &RunId) -> Result<(), CommandFailure> {
    let runs_root = home.make_runs_root()?;
    let repo = GitRepo::new(home.repo.clone(), runs_root, id.clone())?;
    if let Some(name) = repo.find_blocking_branch()? {
        let what =
            format!("the branch `{name}` is in the way of the refs `tree/{id}/…` of a new run");
        return Err(CommandFailure::usage(what)
            .with_hint("choose another `--run-id`, or rename or delete that branch"));
    }
    // It names the last line of another journal: the new one would count as cut.
    if !home.run_dir(id).root().exists() && repo.has_journal_ref()? {
        repo.remove_journal_ref()?;
    }
    if home.repo.has_submodules {
        terminal::print_note(
            "this repository has submodules: they stay empty in the run's worktrees",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::id::Sha256;
    use treebeam_run::port::{JournalTip, Repo as _};
    use treebeam_testkit::repo::TempRepo;

    #[test]
    fn a_new_run_begins_without_the_journal_ref_of_an_earlier_one() {
        let folder = TempRepo::with(&[("a.txt", "a\n")]).expect("a repository");
        let repo =
            treebeam_git::open_repo_with(folder.path(), folder.variables()).expect("a repository");
        let home = RepoHome { runs_root: treebeam_store::runs_root(&repo.toplevel), repo };
        let id: RunId = "nightly".parse().expect("a name");
        let earlier = GitRepo::new(home.repo.clone(), folder.path(), id.clone()).expect("a run");
        let tip = JournalTip { seq: 40, digest: Sha256::hash_bytes(b"a line") };
        earlier.mark_journal(&tip).expect("a ref");
        // A refused run changes nothing.
        folder.git(["branch", "tree"]).expect("a branch");
        assert!(must_have_free_refs(&home, &id).is_err());
        assert_eq!(earlier.journal_tip().expect("a ref"), Some(tip));
        folder.git(["branch", "--quiet", "-D", "tree"]).expect("a removal");
        must_have_free_refs(&home, &id).expect("a free name");
        assert!(!earlier.has_journal_ref().expect("an answer"));
    }
}
