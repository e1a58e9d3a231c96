//! `treebeam run --replay`: repeats a run with its recorded answers, and compares the trees.
//!
//! No agent is called; tests and sweeps are run.

use super::resume::DriveOutcome;
use super::{OutputFormat, run, run_start};
use crate::cli::{RedoFlags, RunArgs};
use crate::config::Config;
use crate::failure::{CommandExit, CommandFailure};
use crate::run_location::RepoHome;
use crate::run_settings;
use crate::terminal;
use treebeam_core::event::{Event, RunStarted, StopReason};
use treebeam_core::facts::{Eval, Facts, Node, NodeOrigin, Stage};
use treebeam_core::id::{CodePlace, NodeId, RunId};
use treebeam_git::GitRepo;
use treebeam_store::RunDir;
use treebeam_store::journal::JournalReader;
use treebeam_view::EvalStatus;
use treebeam_view::figure::format_change;

const REDONE_WORK_REASON: &str = "work of it was done again while it ran";

/// Refuses to resume an existing run as a replay unless it replays that run.
pub(super) fn must_replay_run(
    home: &RepoHome,
    id: &RunId,
    recorded: &str,
) -> Result<(), CommandFailure> {
    let recorded: RunId = recorded.parse()?;
    if treebeam_store::open_to_read(&home.run_dir(id))?.state.replays.as_ref() == Some(&recorded) {
        return Ok(());
    }
    let what = format!("there is a run `{id}` already, and it does not replay run `{recorded}`");
    Err(CommandFailure::usage(what).with_hint("choose another `--run-id`, or leave it out"))
}

/// Refuses to resume a replay whose recorded run is gone: every further question would count as
/// unanswered.
pub(super) fn must_have_replayed_run(home: &RepoHome, facts: &Facts) -> Result<(), CommandFailure> {
    match &facts.replays {
        Some(recorded)
            if facts.stop_reason().is_none() && !home.run_dir(recorded).root().exists() =>
        {
            let what = format!(
                "run `{}` goes by the record of run `{recorded}`, which is gone",
                facts.run
            );
            Err(CommandFailure::environment(what)
                .with_hint("put it back: nothing of this run is lost"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses redo flags for a replay: the record has only the answers that were given.
pub(super) fn must_not_redo_replay(facts: &Facts, flags: &RedoFlags) -> Result<(), CommandFailure> {
    match (&facts.replays, flags.first_flag()) {
        (Some(recorded), Some(flag)) => {
            let what = format!("run `{}` goes by the record of run `{recorded}`", facts.run);
            let what = format!("{what}, and that has no answers for `{flag}`");
            Err(CommandFailure::usage(what).with_hint(format!("do it in run `{recorded}`")))
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Starts a run that replays another one.
pub(super) fn start_replay(
    home: &RepoHome,
    config: &Config,
    id: RunId,
    recorded: &str,
    args: &RunArgs,
    output: OutputFormat,
) -> Result<DriveOutcome, CommandFailure> {
    let recorded: RunId = recorded.parse()?;
    let opened = treebeam_store::open_to_read(&home.run_dir(&recorded))?;
    terminal::print_notes(&opened.notes);
    let before: &Facts = &opened.state;
    must_be_repeatable(before)?;
    must_have_no_redone_work(&home.run_dir(&recorded), before)?;
    run_settings::must_keep_fixed_settings(config, before)?;
    let agents = run_settings::recorded_agents(config, &home.repo.toplevel, before.world)?;
    if let Some(role) = before.agents.changed_roles(&agents).first() {
        let what = format!("`agents.{role}` is another one than in run `{recorded}`");
        return Err(CommandFailure::usage(what)
            .with_hint("set it back: what it is asked depends on who it is"));
    }
    let root =
        before.node(NodeId::ROOT).ok_or_else(|| missing_root_commit(&recorded))?.commit.clone();
    if !GitRepo::new(home.repo.clone(), home.run_dir(&recorded).root(), recorded.clone())?
        .has_commit(&root)?
    {
        return Err(missing_root_commit(&recorded));
    }
    let limits = config.run_limits(&before.limits);
    run_start::must_have_time_left(&limits)?;
    run_start::must_have_free_refs(home, &id)?;
    let started = RunStarted {
        run: id,
        world: before.world,
        root,
        meaning: before.settings.clone(),
        reach: limits,
        agents,
        given: None,
        replays: Some(recorded),
        rules_version: before.rules_version,
        at: run_start::run_start_time(home, before.world),
    };
    run::launch_run(home, config, started, args, output)
}

/// Refuses a run whose course depended on more than its agents' answers.
fn must_be_repeatable(facts: &Facts) -> Result<(), CommandFailure> {
    let own = |eval: &Eval| eval.idea.turn.is_none();
    let again = |eval: &Eval| {
        let more = eval.attempt > facts.limits.eval_retries.saturating_add(1);
        let by_wish = more || eval.failures.iter().any(|failure| !failure.kind.is_worth_a_retry());
        by_wish || matches!(eval.stage, Stage::Superseded(..) | Stage::SetAside)
    };
    // A failed eval that would be tried again now.
    let given_up = |eval: &Eval| {
        let Stage::Failed { failure, .. } = &eval.stage else { return false };
        failure.kind.is_worth_a_retry() && eval.attempt <= facts.limits.eval_retries
    };
    let of_other_rules = |eval: &Eval| {
        let measured = eval.scored_candidate();
        measured.is_some_and(|measured| measured.scored.rules_version != facts.rules_version)
    };
    let depths = |node: &Node| node.expansions.iter().map(|asked| asked.depth).collect::<Vec<_>>();
    let asked_again = |node: &Node| depths(node).windows(2).any(|pair| pair[0] == pair[1]);
    let why = match facts.stop_reason() {
        _ if facts.user_ideas.is_some() => "its ideas were given: `treebeam eval` tries them again",
        None => "it is not over",
        Some(StopReason::MaxCost | StopReason::MaxTokens | StopReason::Deadline) => {
            "a budget ended it in the middle of something, and nobody knows where it would end now"
        }
        Some(_) if facts.evals.iter().any(|eval| own(&eval)) => {
            "ideas were added to it while it ran"
        }
        Some(_) if facts.evals.iter().any(|eval| of_other_rules(&eval)) => {
            "the rules that it is scored by changed while it was not over"
        }
        Some(_)
            if facts.evals.iter().any(|eval| again(&eval))
                || facts.nodes.iter().any(asked_again) =>
        {
            REDONE_WORK_REASON
        }
        Some(_) if facts.evals.iter().any(|eval| given_up(&eval)) => {
            "`eval_retries` was raised after evals had failed"
        }
        Some(_) => return Ok(()),
    };
    Err(cannot_be_replayed(facts, why))
}

/// Refuses a run with requested redos. Attempts are counted alike, automatic or requested: only the
/// journal distinguishes them. Without one, as in an archived run, the state must do.
fn must_have_no_redone_work(run: &RunDir, facts: &Facts) -> Result<(), CommandFailure> {
    let journal = run.journal_path();
    if !journal.is_file() {
        return Ok(());
    }
    let mut reader = JournalReader::open(&journal)?;
    while let Some(record) = reader.next_record()? {
        if matches!(record.event, Event::SentBack(_)) {
            return Err(cannot_be_replayed(facts, REDONE_WORK_REASON));
        }
    }
    Ok(())
}

fn cannot_be_replayed(facts: &Facts, why: &str) -> CommandFailure {
    CommandFailure::failed(format!("run `{}` cannot be replayed: {why}", facts.run))
}

fn missing_root_commit(run: &RunId) -> CommandFailure {
    CommandFailure::failed(format!(
        "the commit that run `{run}` began with is not in the repository"
    ))
}

/// Reports whether the tree of a finished replay equals that of the replayed run.
pub(super) fn compare_with_replayed(
    run: &RunDir,
    facts: &Facts,
) -> Result<CommandExit, CommandFailure> {
    let Some(recorded) = &facts.replays else { return Ok(CommandExit::Done) };
    let runs = run.root().parent().unwrap_or(run.root());
    let before = treebeam_store::open_to_read(&RunDir::from_run_id(runs, recorded))?.state;
    match find_tree_difference(&before, facts) {
        None => {
            terminal::print_line(&format!("the tree is that of run {recorded}"));
            Ok(CommandExit::Done)
        }
        Some(difference) => {
            terminal::print_line(&format!("the tree is not that of run {recorded}: {difference}"));
            Ok(CommandExit::Failed)
        }
    }
}

/// Describes the first eval that differs.
fn find_tree_difference(before: &Facts, after: &Facts) -> Option<String> {
    let most = before.evals.len().max(after.evals.len());
    let told = |facts: &Facts, at: usize| {
        facts
            .evals
            .get(at)
            .map_or_else(|| "no such eval".to_owned(), |eval| describe_eval(facts, &eval))
    };
    (0..most).find_map(|at| {
        let (then, now) = (told(before, at), told(after, at));
        let id = after.evals.get(at).or_else(|| before.evals.get(at))?.id;
        (then != now).then(|| format!("{} was: {then}; is: {now}", CodePlace::Candidate(id)))
    })
}

/// Describes an eval for the comparison: its idea, its parent and its outcome.
fn describe_eval(facts: &Facts, eval: &Eval) -> String {
    let outcome = EvalStatus::from_eval(eval);
    let gain = eval
        .scored_candidate()
        .map(|measured| format_change(measured.scored.vs_root.primary_delta));
    let made =
        |node: &&Node| matches!(node.origin, NodeOrigin::Promoted { from, .. } if from == eval.id);
    let node = facts.nodes.iter().find(made);
    let node = node.map(|node| format!(" as {}", CodePlace::Node(node.id))).unwrap_or_default();
    let gain = gain.map(|gain| format!(", gain {gain} against the root")).unwrap_or_default();
    let parent = CodePlace::Node(eval.parent);
    format!("{:?} on {parent}, {outcome}{node}{gain}", eval.idea.title)
}
