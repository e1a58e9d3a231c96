//! `treebeam resume`: goes on with a run until a stop condition, and writes its reports when it stops.

use super::validate::chain;
use super::{Output, baseline, begin, replay, report, status};
use crate::again;
use crate::cli::{AgainFlags, GoingFlags, ResumeArgs};
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::progress::Progress;
use crate::progress::now::Lines;
use crate::settings;
use crate::terminal;
use crate::uncommitted::{self, ConfigConsent};
use crate::wiring::Home;
use crate::world;
use serde::Serialize;
use serde_json::{Value, json};
use treebeam_core::event::{Event, FailureKind, Leftover, LeftoverKind, Stop, Subject, WorldKind};
use treebeam_core::facts::{Baseline, Eval, Expansion, Facts, Ideas, Phase, Stage};
use treebeam_core::id::{Commit, NodeId, Place};
use treebeam_core::measure::UserPath;
use treebeam_core::plan::{self, Again};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_edge::store::{Claim, Force, RunDir, Store};
use treebeam_run::Halt;
use treebeam_run::figures;
use treebeam_run::port::{Journal as _, Moment, World};
use treebeam_view::versus;

pub(super) fn run(
    home: &Home,
    config: &Config,
    args: &ResumeArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let run = home.unfinished(args.run.as_deref(), &args.going.again.wishes())?;
    open(home, config, &run, &args.going, output)?.tell(output)
}

/// Goes on with a run that is there, if the configuration leaves its meaning as it is.
pub(super) fn open(
    home: &Home,
    config: &Config,
    run: &RunDir,
    flags: &GoingFlags,
    output: Output,
) -> Result<Driven, Failure> {
    let force = if flags.force { Force::Yes } else { Force::No };
    let mut claim = Claim::from(force);
    if let Some(silent) = config.lock_stale_after() {
        claim.stale_after = silent;
    }
    let (store, state, notes) = Store::open_to_run(run, claim)?;
    terminal::notes(&notes);
    if let (Some(takeover), Output::Json) = (store.takeover(), output) {
        terminal::json(takeover)?;
    }
    settings::same_meaning(config, &state)?;
    let consent = if flags.accept_config { ConfigConsent::Given } else { ConfigConsent::Open };
    uncommitted::must_be_accepted(config, home, &state, consent)?;
    go_on(home, config, store, state, flags, output)
}

/// Goes on with a run, with whatever the configuration changes about its reach.
fn go_on(
    home: &Home,
    config: &Config,
    mut store: Store,
    mut state: State,
    flags: &GoingFlags,
    output: Output,
) -> Result<Driven, Failure> {
    Home::must_be_named(store.run(), &state.run)?;
    chain::tell_of_difference(home, &store, &state)?;
    replay::must_not_be_sent_back(&state, &flags.again)?;
    for changed in settings::changes(config, &home.repo.toplevel, &state)? {
        state.apply(&changed).map_err(Halt::from)?;
        store.append(std::slice::from_ref(&changed))?;
        if output == Output::Json {
            terminal::json(&changed)?;
        }
    }
    replay::must_find_its_record(home, &state)?;
    must_have_its_branches(home, &state)?;
    if let Some(depth) = state.to_stop_after() {
        let way_back = format!("`treebeam unpause {}` takes that back", state.run);
        terminal::note(&format!("it stops after depth {depth}, as it was told before: {way_back}"));
    }
    let run = store.run().clone();
    let left = world::enter(home, config, store, state, Lines::None, |store, mut state, world| {
        send_back(store, &mut state, world, &flags.again, output)?;
        follow_latest_rules(store, &mut state, output)?;
        drive(store, state, world, flags.quiet, output)
    })?;
    Ok(Driven::Left(run, left))
}

/// Records that new depths go by the latest rules. A run that goes by the answers of another one keeps that one's.
fn follow_latest_rules(
    store: &mut Store,
    state: &mut State,
    output: Output,
) -> Result<(), Failure> {
    let is_over = state.stop_reason().is_some();
    if is_over || state.replays.is_some() || state.rules_version.is_latest() {
        return Ok(());
    }
    let event = Event::RulesChanged { rules_version: RulesVersion::LATEST };
    state.apply(&event).map_err(Halt::from)?;
    store.append(std::slice::from_ref(&event))?;
    if output == Output::Json {
        terminal::json(&event)?;
    }
    terminal::note(&format!(
        "depth {} and those after it go by newer rules of scoring; closed depths stay as they are",
        state.depth
    ));
    Ok(())
}

/// Refuses to go on from nodes whose branches were removed: worktrees are made at them.
fn must_have_its_branches(home: &Home, facts: &Facts) -> Result<(), Failure> {
    if facts.stop_reason().is_some() || facts.world != WorldKind::Real {
        return Ok(());
    }
    for node in facts.frontier.iter().filter_map(|id| facts.node(*id)) {
        let place = Place::Node(node.id);
        let branch = place.ref_name(&facts.run);
        let was_removed = facts.removed.contains(&Leftover { place, kind: LeftoverKind::Branch });
        if was_removed && home.repo.commit_named(&format!("refs/heads/{branch}"))?.is_none() {
            let what = format!("the branch `{branch}` is gone, and the run goes on from {place}");
            let way_back = format!("`git branch {branch} {}` makes it again", node.commit.short());
            return Err(Failure::environment(what).hint(way_back));
        }
    }
    Ok(())
}

/// Records what the user wants done again. One event: a run that is cut off here has it whole, or not at all.
fn send_back(
    store: &mut Store,
    state: &mut State,
    world: World<'_>,
    flags: &AgainFlags,
    output: Output,
) -> Result<(), Failure> {
    let at = world.clock.at(Moment::SentBack(state.next_eval()));
    let wishes = flags.wishes();
    let gone = if wishes.contains(&Again::RetryFailed) { gone(state, world)? } else { Vec::new() };
    let sent = plan::send_back(state, &wishes, &|commit| !gone.contains(commit), at);
    again::tell(state, flags, sent.as_ref());
    let Some(sent) = sent else { return Ok(()) };
    let event = Event::SentBack(Box::new(sent));
    state.apply(&event).map_err(Halt::from)?;
    store.append(std::slice::from_ref(&event))?;
    if output == Output::Json {
        terminal::json(&event)?;
    }
    Ok(())
}

/// Candidates of failed evals that git has removed by now: no ref points at them.
fn gone(facts: &Facts, world: World<'_>) -> Result<Vec<Commit>, Failure> {
    let failed = facts.evals.iter().filter(|eval| eval.failure_of_a_fresh_candidate().is_some());
    let mut gone = Vec::new();
    for work in failed.filter_map(|eval| eval.work()) {
        if !world.repo.has(&work.commit)? {
            gone.push(work.commit);
        }
    }
    Ok(gone)
}

/// What became of a run that was to be driven.
pub(super) enum Driven {
    /// It never began: Ctrl-C came first.
    NotBegun,
    /// The loop left it.
    Left(RunDir, Left),
}

impl Driven {
    /// Says how it ended, and what that means for whoever started the program.
    pub(super) fn tell(&self, output: Output) -> Result<Exit, Failure> {
        match self {
            Self::NotBegun => Ok(begin::interrupted()),
            Self::Left(run, left) => left.tell(run, output),
        }
    }
}

/// The flag of whoever wants failed evals tried again.
const RETRY: &str = "--retry-failed";

/// How the loop left a run.
pub(super) enum Left {
    /// At its end.
    Ended(Box<State>),
    /// Where it can be resumed: nothing of that is on record.
    Interrupted(Box<State>),
}

/// Drives a run to its end, and writes its reports.
pub(super) fn drive(
    store: &mut Store,
    state: State,
    world: World<'_>,
    quiet: bool,
    output: Output,
) -> Result<Left, Failure> {
    let (run, id) = (store.run().clone(), state.run.clone());
    let way_on = interrupt::is_about(&id);
    let root = state.node(NodeId::ROOT).map_or("", |root| root.commit.short()).to_owned();
    let given = state.meaning.measure.baseline_csv.clone();
    let mut progress = Progress::new(&state, quiet, output);
    let mut failed_for_inputs = state.open_evals().iter().any(has_failed_for_inputs);
    let ended = treebeam_run::drive(state, world, store, &mut |state, events| {
        progress.show(state, events);
        failed_for_inputs |= state.open_evals().iter().any(has_failed_for_inputs);
    });
    progress.finish();
    store.must_be_ours()?;
    let left = match ended {
        Ok(state) => Left::Ended(Box::new(state)),
        Err(Halt::Interrupted(state)) => Left::Interrupted(state),
        Err(halt) => {
            let go_on = if let Halt::RootUnsound { .. } = &halt {
                given.map_or_else(|| mend(&root, way_on), |file| renew(&file, &root, way_on))
            } else if let Halt::InputsChanged { .. } = &halt {
                restore(way_on, failed_for_inputs)
            } else {
                format!("remove the cause, then `{way_on}` goes on from here")
            };
            let failure = Failure::from(halt);
            return Err(if failure.advice().is_some() { failure } else { failure.hint(go_on) });
        }
    };
    report::write(&run, left.facts())?;
    Ok(left)
}

/// What to do about a root whose sweep fails: a run has one root, whatever is committed later.
fn mend(root: &str, way_on: &str) -> String {
    format!(
        "mend it, in a commit or in the configuration, and start a new run, for this one stays at its root commit {root} and at its \
         settings; where the cause lies outside of both, `{way_on}` sweeps it again"
    )
}

/// What to do about results of the root that are no baseline. Nothing of theirs is taken in yet.
fn renew(file: &UserPath, root: &str, way_on: &str) -> String {
    format!(
        "`treebeam baseline --commit {root}` measures the root anew; with its results in `{file}`, `{way_on}` goes on from here"
    )
}

/// What to do about data that are not the root's any more: treebeam has no copy of them.
fn restore(way_on: &str, some_failed: bool) -> String {
    let way_on = if some_failed && !way_on.contains(RETRY) {
        format!("`{way_on} {RETRY}` goes on from here, and sweeps what failed for it again")
    } else {
        format!("`{way_on}` goes on from here")
    };
    format!("restore these files, then {way_on}; if the change was meant, start a new run")
}

fn has_failed_for_inputs(eval: &Eval) -> bool {
    matches!(&eval.stage, Stage::Failed { failure, .. } if failure.kind == FailureKind::Inputs)
}

impl Left {
    /// How the run stands.
    pub(super) fn facts(&self) -> &Facts {
        match self {
            Self::Ended(state) | Self::Interrupted(state) => state,
        }
    }

    fn tell(&self, run: &RunDir, output: Output) -> Result<Exit, Failure> {
        match self {
            Self::Ended(state) => {
                tell(state, run, output)?;
                baseline::tell_where(state, run);
                if replay::compared(run, state)? == Exit::Failed {
                    return Ok(Exit::Failed);
                }
            }
            Self::Interrupted(state) => tell_of_interruption(state, output)?,
        }
        Ok(self.exit())
    }

    /// What it means for whoever started the program.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Ended(state) if nothing_worked(state) => Exit::Failed,
            Self::Ended(_) => Exit::Done,
            Self::Interrupted(_) => Exit::Interrupted,
        }
    }
}

fn tell_of_interruption(facts: &Facts, output: Output) -> Result<(), Failure> {
    match output {
        Output::Json => terminal::json(&end(facts, left(facts)))?,
        Output::Text => {
            let (id, best) = (&facts.run, Place::Node(facts.best()));
            let how = facts.stopped_after().map_or_else(
                || "interrupted".to_owned(),
                |depth| format!("stopped after depth {depth}, as it was told"),
            );
            terminal::say(&format!("run {id} {how}; best node so far: {best}"));
        }
    }
    tell_of_sweeps(facts);
    terminal::say(&format!("hint: `{}` goes on from here", interrupt::is_about(&facts.run)));
    Ok(())
}

/// Sweeps are processes of their own. In the dry world they are none.
pub(super) fn tell_of_sweeps(facts: &Facts) {
    let is_swept = |eval: &&Eval| matches!(eval.stage, Stage::Sweeping(_));
    let sweeps = match facts.world {
        WorldKind::Dry { .. } => 0,
        WorldKind::Real => {
            let evals = facts.open_evals();
            evals.iter().filter(is_swept).count() + usize::from(is_root_swept(facts))
        }
    };
    match sweeps {
        0 => {}
        1 => terminal::note("1 sweep goes on by itself; a resume takes its results in"),
        n => terminal::note(&format!(
            "{n} sweeps go on by themselves; a resume takes their results in"
        )),
    }
}

/// Whether the root's sweep was begun and has not ended. Results that were there already are not swept for.
fn is_root_swept(facts: &Facts) -> bool {
    facts.phase == Phase::Measuring
        && facts.baseline == Baseline::Unmeasured
        && facts.submissions(Subject::Root) > 0
        && facts.meaning.measure.baseline_csv.is_none()
}

/// Why nobody goes on with a run that is not over, for programs.
pub(super) fn left(facts: &Facts) -> &'static str {
    if facts.stopped_after().is_some() { "stopped_after_depth" } else { "interrupted" }
}

/// Whether something failed, an eval or asking for ideas, and nothing came to a score.
fn nothing_worked(facts: &Facts) -> bool {
    let failed = |eval: &Eval| matches!(eval.stage, Stage::Failed { .. });
    let unanswered = |asked: &Expansion| matches!(asked.ideas, Ideas::Failed { .. });
    let some_failed = facts.evals.iter().any(|eval| failed(&eval))
        || facts.all_expansions().any(|(_, asked)| unanswered(asked));
    let scored = |eval: &Eval| eval.stands() && eval.measured().is_some();
    some_failed && !facts.evals.iter().any(|eval| scored(&eval))
}

fn tell(facts: &Facts, run: &RunDir, output: Output) -> Result<(), Failure> {
    if output == Output::Json {
        return terminal::json(&end(facts, facts.stop_reason()));
    }
    let best = Place::Node(facts.best());
    let reason = facts.stop_reason().map_or_else(|| "open".to_owned(), |stop| stop.to_string());
    terminal::say(&format!("run {} stopped: {reason}; best node: {best}", facts.run));
    for said in versus::verdict(facts).into_iter().chain(versus::spending(facts)) {
        terminal::say(&said);
    }
    if matches!(facts.stop_reason(), Some(Stop::MaxCost | Stop::MaxTokens))
        && let Some(worst) = status::unanswered(run)?.in_words(&facts.reach)
    {
        terminal::note(&format!("reserved: {worst}"));
    }
    terminal::say(&format!("report: {}", run.root().join(report::PAGE).display()));
    again::tell_of_way_on(facts, |other| interrupt::way_on_with(&facts.run, other));
    Ok(())
}

/// The last line for programs.
pub(super) fn end(facts: &Facts, stop_reason: impl Serialize) -> Value {
    let mut end = json!({
        "type": "end",
        "run_id": facts.run,
        "stop_reason": stop_reason,
        "best": Place::Node(facts.best()).to_string(),
    });
    if let Some(control) = figures::control(facts) {
        end["control"] = control;
    }
    end
}
