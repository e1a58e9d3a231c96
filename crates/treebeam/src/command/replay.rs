//! `treebeam run --replay`: a recorded run once more. Its answers come from disk and nobody is asked; its tests and sweeps
//! are run. At the end stands whether the tree is the same.

use super::resume::Driven;
use super::{Output, begin, run};
use crate::cli::{AgainFlags, RunArgs};
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::settings;
use crate::terminal;
use crate::wiring::Home;
use treebeam_core::event::{Event, RunStarted, Stop};
use treebeam_core::facts::{Eval, Facts, Node, Origin, Stage};
use treebeam_core::id::{NodeId, Place, RunId};
use treebeam_edge::git::GitRepo;
use treebeam_edge::store::journal::Reader;
use treebeam_edge::store::{self, RunDir};
use treebeam_view::Outcome;
use treebeam_view::figure::change;

const DONE_AGAIN: &str = "work of it was done again while it ran";

/// Refuses to go on with a run that is there as if it went by the record of another one.
pub(super) fn must_be_of(home: &Home, id: &RunId, recorded: &str) -> Result<(), Failure> {
    let recorded: RunId = recorded.parse()?;
    if store::open_to_read(&home.named(id))?.state.replays.as_ref() == Some(&recorded) {
        return Ok(());
    }
    let what = format!("there is a run `{id}` already, and it does not replay run `{recorded}`");
    Err(Failure::usage(what).hint("choose another `--run-id`, or leave it out"))
}

/// Refuses to go on where the record is gone that a run goes by: whatever is asked from now on would count as unanswered.
pub(super) fn must_find_its_record(home: &Home, facts: &Facts) -> Result<(), Failure> {
    match &facts.replays {
        Some(recorded)
            if facts.stop_reason().is_none() && !home.named(recorded).root().exists() =>
        {
            let what = format!(
                "run `{}` goes by the record of run `{recorded}`, which is gone",
                facts.run
            );
            Err(Failure::environment(what).hint("put it back: nothing of this run is lost"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses to do work of a replay again: the record has no answers but those that it was given.
pub(super) fn must_not_be_sent_back(facts: &Facts, flags: &AgainFlags) -> Result<(), Failure> {
    match (&facts.replays, flags.first()) {
        (Some(recorded), Some(flag)) => {
            let what = format!("run `{}` goes by the record of run `{recorded}`", facts.run);
            let what = format!("{what}, and that has no answers for `{flag}`");
            Err(Failure::usage(what).hint(format!("do it in run `{recorded}`")))
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Begins a run that goes by the record of another one.
pub(super) fn start(
    home: &Home,
    config: &Config,
    id: RunId,
    recorded: &str,
    args: &RunArgs,
    output: Output,
) -> Result<Driven, Failure> {
    let recorded: RunId = recorded.parse()?;
    let opened = store::open_to_read(&home.named(&recorded))?;
    terminal::notes(&opened.notes);
    let before: &Facts = &opened.state;
    must_be_repeatable(before)?;
    must_not_have_been_sent_back(&home.named(&recorded), before)?;
    settings::same_meaning(config, before)?;
    let agents = settings::agents(config, &home.repo.toplevel, before.world)?;
    if let Some(role) = before.agents.other_roles(&agents).first() {
        let what = format!("`agents.{role}` is another one than in run `{recorded}`");
        return Err(Failure::usage(what).hint("set it back: what it is asked depends on who it is"));
    }
    let root = before.node(NodeId::ROOT).ok_or_else(|| gone(&recorded))?.commit.clone();
    if !GitRepo::new(home.repo.clone(), home.named(&recorded).root(), recorded.clone())?
        .has(&root)?
    {
        return Err(gone(&recorded));
    }
    let reach = config.reach(&before.reach);
    begin::must_have_time(&reach)?;
    begin::must_be_free(home, &id)?;
    let started = RunStarted {
        run: id,
        world: before.world,
        root,
        meaning: before.meaning.clone(),
        reach,
        agents,
        given: None,
        replays: Some(recorded),
        rules_version: before.rules_version,
        at: begin::time(home, before.world),
    };
    run::launch(home, config, started, args, output)
}

/// Refuses a run that was led by more than its agents.
fn must_be_repeatable(facts: &Facts) -> Result<(), Failure> {
    let own = |eval: &Eval| eval.idea.turn.is_none();
    let again = |eval: &Eval| {
        let more = eval.attempt > facts.reach.eval_retries.saturating_add(1);
        let by_wish = more || eval.failures.iter().any(|failure| !failure.kind.is_worth_a_retry());
        by_wish || matches!(eval.stage, Stage::Superseded(..) | Stage::SetAside)
    };
    // It would be tried again now.
    let given_up = |eval: &Eval| {
        let Stage::Failed { failure, .. } = &eval.stage else { return false };
        failure.kind.is_worth_a_retry() && eval.attempt <= facts.reach.eval_retries
    };
    let of_other_rules = |eval: &Eval| {
        let measured = eval.measured();
        measured.is_some_and(|measured| measured.scored.rules_version != facts.rules_version)
    };
    let depths = |node: &Node| node.expansions.iter().map(|asked| asked.depth).collect::<Vec<_>>();
    let asked_again = |node: &Node| depths(node).windows(2).any(|pair| pair[0] == pair[1]);
    let why = match facts.stop_reason() {
        _ if facts.given.is_some() => "its ideas were given: `treebeam eval` tries them again",
        None => "it is not over",
        Some(Stop::MaxCost | Stop::MaxTokens | Stop::Deadline) => {
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
            DONE_AGAIN
        }
        Some(_) if facts.evals.iter().any(|eval| given_up(&eval)) => {
            "`eval_retries` was raised after evals had failed"
        }
        Some(_) => return Ok(()),
    };
    Err(cannot_be(facts, why))
}

/// Attempts are counted alike, whether a run tried something again by itself or was told to: the journal knows. Without one,
/// as in an archived run, what the state shows has to do.
fn must_not_have_been_sent_back(run: &RunDir, facts: &Facts) -> Result<(), Failure> {
    let journal = run.journal();
    if !journal.is_file() {
        return Ok(());
    }
    let mut reader = Reader::open(&journal)?;
    while let Some(record) = reader.next_record()? {
        if matches!(record.event, Event::SentBack(_)) {
            return Err(cannot_be(facts, DONE_AGAIN));
        }
    }
    Ok(())
}

fn cannot_be(facts: &Facts, why: &str) -> Failure {
    Failure::failed(format!("run `{}` cannot be replayed: {why}", facts.run))
}

fn gone(run: &RunId) -> Failure {
    Failure::failed(format!("the commit that run `{run}` began with is not in the repository"))
}

/// Says whether the tree of a run that has ended is that of the run that it replays, if it does.
pub(super) fn compared(run: &RunDir, facts: &Facts) -> Result<Exit, Failure> {
    let Some(recorded) = &facts.replays else { return Ok(Exit::Done) };
    let runs = run.root().parent().unwrap_or(run.root());
    let before = store::open_to_read(&RunDir::of(runs, recorded))?.state;
    match difference(&before, facts) {
        None => {
            terminal::say(&format!("the tree is that of run {recorded}"));
            Ok(Exit::Done)
        }
        Some(difference) => {
            terminal::say(&format!("the tree is not that of run {recorded}: {difference}"));
            Ok(Exit::Failed)
        }
    }
}

/// The first eval that came out differently, in words.
fn difference(before: &Facts, after: &Facts) -> Option<String> {
    let most = before.evals.len().max(after.evals.len());
    let told = |facts: &Facts, at: usize| {
        facts.evals.get(at).map_or_else(|| "no such eval".to_owned(), |eval| told(facts, &eval))
    };
    (0..most).find_map(|at| {
        let (then, now) = (told(before, at), told(after, at));
        let id = after.evals.get(at).or_else(|| before.evals.get(at))?.id;
        (then != now).then(|| format!("{} was: {then}; is: {now}", Place::Candidate(id)))
    })
}

/// What counts of an eval: what was tried on what, and what came of it.
fn told(facts: &Facts, eval: &Eval) -> String {
    let outcome = Outcome::of(eval);
    let gain = eval.measured().map(|measured| change(measured.scored.vs_root.primary_delta));
    let made =
        |node: &&Node| matches!(node.origin, Origin::Promoted { from, .. } if from == eval.id);
    let node = facts.nodes.iter().find(made);
    let node = node.map(|node| format!(" as {}", Place::Node(node.id))).unwrap_or_default();
    let gain = gain.map(|gain| format!(", gain {gain} against the root")).unwrap_or_default();
    let parent = Place::Node(eval.parent);
    format!("{:?} on {parent}, {outcome}{node}{gain}", eval.idea.title)
}
