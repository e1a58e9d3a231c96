//! `treebeam resume`: continues a run until a stop condition, and writes its reports.

use super::validate::chain;
use super::{OutputFormat, baseline, replay, report, run_start, status};
use crate::cli::{RedoFlags, ResumableFlags, ResumeArgs};
use crate::config::Config;
use crate::config_consent::{self, ConfigConsent};
use crate::failure::{CommandExit, CommandFailure};
use crate::interrupt;
use crate::progress::RunProgress;
use crate::progress::activity::LineReporting;
use crate::redo;
use crate::run_location::RepoHome;
use crate::run_settings;
use crate::terminal;
use crate::world;
use serde::Serialize;
use serde_json::{Value, json};
use treebeam_core::event::{
    Event, FailureKind, Leftover, LeftoverKind, StopReason, SweepSubject, WorldKind,
};
use treebeam_core::facts::{Eval, Expansion, ExpansionIdeas, Facts, RootBaseline, RunPhase, Stage};
use treebeam_core::id::{CodePlace, Commit, NodeId};
use treebeam_core::measure::UserPath;
use treebeam_core::plan::{self, RedoKind};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_run::figures;
use treebeam_run::port::{Journal as _, RecordedMoment};
use treebeam_run::{RunHalt, RunPorts};
use treebeam_store::{ForcePolicy, RunClaim, RunDir, RunStore};
use treebeam_view::versus;

pub(super) fn run_resume(
    home: &RepoHome,
    config: &Config,
    args: &ResumeArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let run = home.find_unfinished_run(args.run.as_deref(), &args.going.again.redo_kinds())?;
    resume_run(home, config, &run, &args.going, output)?.show_and_exit(output)
}

/// Resumes an existing run, if the configuration keeps its fixed settings.
pub(super) fn resume_run(
    home: &RepoHome,
    config: &Config,
    run: &RunDir,
    flags: &ResumableFlags,
    output: OutputFormat,
) -> Result<DriveOutcome, CommandFailure> {
    let force = if flags.force { ForcePolicy::Yes } else { ForcePolicy::No };
    let mut claim = RunClaim::from(force);
    if let Some(silent) = config.lock_stale_after() {
        claim.stale_after = silent;
    }
    let (store, state, notes) = RunStore::open_to_run(run, claim)?;
    terminal::print_notes(&notes);
    if let (Some(takeover), OutputFormat::Json) = (store.takeover(), output) {
        terminal::print_json(takeover)?;
    }
    run_settings::must_keep_fixed_settings(config, &state)?;
    let consent = if flags.accept_config { ConfigConsent::Given } else { ConfigConsent::Open };
    config_consent::must_accept_config(config, home, &state, consent)?;
    continue_run(home, config, store, state, flags, output)
}

/// Continues a run with the configured changes of its limits.
fn continue_run(
    home: &RepoHome,
    config: &Config,
    mut store: RunStore,
    mut state: State,
    flags: &ResumableFlags,
    output: OutputFormat,
) -> Result<DriveOutcome, CommandFailure> {
    RepoHome::must_match_name(store.run_dir(), &state.run)?;
    chain::note_tip_difference(home, &store, &state)?;
    replay::must_not_redo_replay(&state, &flags.again)?;
    for changed in run_settings::settings_events(config, &home.repo.toplevel, &state)? {
        state.apply(&changed).map_err(RunHalt::from)?;
        store.append(std::slice::from_ref(&changed))?;
        if output == OutputFormat::Json {
            terminal::print_json(&changed)?;
        }
    }
    replay::must_have_replayed_run(home, &state)?;
    must_have_branches(home, &state)?;
    if let Some(depth) = state.pending_stop_after() {
        let way_back = format!("`treebeam unpause {}` takes that back", state.run);
        terminal::print_note(&format!(
            "it stops after depth {depth}, as it was told before: {way_back}"
        ));
    }
    let run = store.run_dir().clone();
    let left = world::with_world(
        home,
        config,
        store,
        state,
        LineReporting::None,
        |store, mut state, world| {
            record_sent_back(store, &mut state, world, &flags.again, output)?;
            record_latest_rules(store, &mut state, output)?;
            drive_run(store, state, world, flags.quiet, output)
        },
    )?;
    Ok(DriveOutcome::Driven(run, left))
}

/// Records that new depths follow the latest rules. A replay keeps the rules of the run that it
/// replays.
fn record_latest_rules(
    store: &mut RunStore,
    state: &mut State,
    output: OutputFormat,
) -> Result<(), CommandFailure> {
    let is_over = state.stop_reason().is_some();
    if is_over || state.replays.is_some() || state.rules_version.is_latest() {
        return Ok(());
    }
    let event = Event::RulesChanged { rules_version: RulesVersion::LATEST };
    state.apply(&event).map_err(RunHalt::from)?;
    store.append(std::slice::from_ref(&event))?;
    if output == OutputFormat::Json {
        terminal::print_json(&event)?;
    }
    terminal::print_note(&format!(
        "depth {} and those after it go by newer rules of scoring; closed depths stay as they are",
        state.depth
    ));
    Ok(())
}

/// Refuses to continue from nodes whose branches were removed: worktrees are made from them.
fn must_have_branches(home: &RepoHome, facts: &Facts) -> Result<(), CommandFailure> {
    if facts.stop_reason().is_some() || facts.world != WorldKind::Real {
        return Ok(());
    }
    for node in facts.frontier.iter().filter_map(|id| facts.node(*id)) {
        let place = CodePlace::Node(node.id);
        let branch = place.ref_name(&facts.run);
        let was_removed = facts.removed.contains(&Leftover { place, kind: LeftoverKind::Branch });
        if was_removed && home.repo.find_commit(&format!("refs/heads/{branch}"))?.is_none() {
            let what = format!("the branch `{branch}` is gone, and the run goes on from {place}");
            let way_back =
                format!("`git branch {branch} {}` makes it again", node.commit.short_name());
            return Err(CommandFailure::environment(what).with_hint(way_back));
        }
    }
    Ok(())
}

/// Records the requested redos as one event: a run that is killed here has all of it, or nothing.
fn record_sent_back(
    store: &mut RunStore,
    state: &mut State,
    world: RunPorts<'_>,
    flags: &RedoFlags,
    output: OutputFormat,
) -> Result<(), CommandFailure> {
    let at = world.clock.recorded_time(RecordedMoment::SentBack(state.next_eval_id()));
    let wishes = flags.redo_kinds();
    let gone = if wishes.contains(&RedoKind::RetryFailed) {
        missing_commits(state, world)?
    } else {
        Vec::new()
    };
    let sent = plan::send_back(state, &wishes, &|commit| !gone.contains(commit), at);
    redo::report_redo(state, flags, sent.as_ref());
    let Some(sent) = sent else { return Ok(()) };
    let event = Event::SentBack(Box::new(sent));
    state.apply(&event).map_err(RunHalt::from)?;
    store.append(std::slice::from_ref(&event))?;
    if output == OutputFormat::Json {
        terminal::print_json(&event)?;
    }
    Ok(())
}

/// Returns the candidate commits of failed evals that git has collected: no ref points at them.
fn missing_commits(facts: &Facts, world: RunPorts<'_>) -> Result<Vec<Commit>, CommandFailure> {
    let failed = facts.evals.iter().filter(|eval| eval.fresh_candidate_failure().is_some());
    let mut gone = Vec::new();
    for work in failed.filter_map(|eval| eval.candidate()) {
        if !world.repo.commit_exists(&work.commit)? {
            gone.push(work.commit);
        }
    }
    Ok(gone)
}

/// Outcome of driving a run.
pub(super) enum DriveOutcome {
    /// Interrupted by Ctrl-C before it began.
    NotBegun,
    /// Left by the loop.
    Driven(RunDir, RunEnding),
}

impl DriveOutcome {
    /// Prints the outcome, and returns the exit code for it.
    pub(super) fn show_and_exit(
        &self,
        output: OutputFormat,
    ) -> Result<CommandExit, CommandFailure> {
        match self {
            Self::NotBegun => Ok(run_start::interrupted_before_start()),
            Self::Driven(run, left) => left.show_and_exit(run, output),
        }
    }
}

/// Flag for another attempt of failed evals.
const RETRY_FAILED_FLAG: &str = "--retry-failed";

/// How the loop left a run.
pub(super) enum RunEnding {
    /// A stop condition was reached.
    Ended(Box<State>),
    /// Interrupted, and can be resumed: the record has nothing about it.
    Interrupted(Box<State>),
}

/// Drives a run to its end, and writes its reports.
pub(super) fn drive_run(
    store: &mut RunStore,
    state: State,
    world: RunPorts<'_>,
    quiet: bool,
    output: OutputFormat,
) -> Result<RunEnding, CommandFailure> {
    let (run, id) = (store.run_dir().clone(), state.run.clone());
    let resume_command = interrupt::resume_text_for(&id);
    let root = state.node(NodeId::ROOT).map_or("", |root| root.commit.short_name()).to_owned();
    let given = state.settings.measure.baseline_csv.clone();
    let mut progress = RunProgress::new(&state, quiet, output);
    let mut failed_for_inputs = state.open_evals().iter().any(is_inputs_failure);
    let ended = treebeam_run::drive_run(state, world, store, &mut |state, events| {
        progress.show_events(state, events);
        failed_for_inputs |= state.open_evals().iter().any(is_inputs_failure);
    });
    progress.finish();
    store.check_ownership()?;
    let left = match ended {
        Ok(state) => RunEnding::Ended(Box::new(state)),
        Err(RunHalt::Interrupted(state)) => RunEnding::Interrupted(state),
        Err(halt) => {
            let go_on = if let RunHalt::RootUnsound { .. } = &halt {
                given.map_or_else(
                    || mend_root_hint(&root, resume_command),
                    |file| renew_baseline_hint(&file, &root, resume_command),
                )
            } else if let RunHalt::InputsChanged { .. } = &halt {
                restore_inputs_hint(resume_command, failed_for_inputs)
            } else {
                format!("remove the cause, then `{resume_command}` goes on from here")
            };
            let failure = CommandFailure::from(halt);
            return Err(if failure.advice().is_some() {
                failure
            } else {
                failure.with_hint(go_on)
            });
        }
    };
    report::write_reports(&run, left.facts())?;
    Ok(left)
}

/// Returns the hint for a root whose sweep fails: a run keeps its root, whatever is committed
/// later.
fn mend_root_hint(root: &str, resume_command: &str) -> String {
    format!(
        "mend it, in a commit or in the configuration, and start a new run, for this one stays at its root commit {root} and at its \
         settings; where the cause lies outside of both, `{resume_command}` sweeps it again"
    )
}

/// Returns the hint for results of the root that are no valid baseline. Nothing of them is recorded
/// yet.
fn renew_baseline_hint(file: &UserPath, root: &str, resume_command: &str) -> String {
    format!(
        "`treebeam baseline --commit {root}` measures the root anew; with its results in `{file}`, `{resume_command}` goes on from here"
    )
}

/// Returns the hint for inputs that have changed since the root was measured: treebeam has no copy
/// of them.
fn restore_inputs_hint(resume_command: &str, some_failed: bool) -> String {
    let resume_command = if some_failed && !resume_command.contains(RETRY_FAILED_FLAG) {
        format!(
            "`{resume_command} {RETRY_FAILED_FLAG}` goes on from here, and sweeps what failed for it again"
        )
    } else {
        format!("`{resume_command}` goes on from here")
    };
    format!("restore these files, then {resume_command}; if the change was meant, start a new run")
}

fn is_inputs_failure(eval: &Eval) -> bool {
    matches!(&eval.stage, Stage::Failed { failure, .. } if failure.kind == FailureKind::Inputs)
}

impl RunEnding {
    /// Returns the facts of the run.
    pub(super) fn facts(&self) -> &Facts {
        match self {
            Self::Ended(state) | Self::Interrupted(state) => state,
        }
    }

    fn show_and_exit(
        &self,
        run: &RunDir,
        output: OutputFormat,
    ) -> Result<CommandExit, CommandFailure> {
        match self {
            Self::Ended(state) => {
                show_end(state, run, output)?;
                baseline::note_results_path(state, run);
                if replay::compare_with_replayed(run, state)? == CommandExit::Failed {
                    return Ok(CommandExit::Failed);
                }
            }
            Self::Interrupted(state) => show_interruption(state, output)?,
        }
        Ok(self.exit())
    }

    /// Returns the exit code for the ending.
    pub(super) fn exit(&self) -> CommandExit {
        match self {
            Self::Ended(state) if has_only_failures(state) => CommandExit::Failed,
            Self::Ended(_) => CommandExit::Done,
            Self::Interrupted(_) => CommandExit::Interrupted,
        }
    }
}

fn show_interruption(facts: &Facts, output: OutputFormat) -> Result<(), CommandFailure> {
    match output {
        OutputFormat::Json => {
            terminal::print_json(&render_end_json(facts, interruption_reason(facts)))?;
        }
        OutputFormat::Text => {
            let (id, best) = (&facts.run, CodePlace::Node(facts.best_node()));
            let how = facts.stopped_after().map_or_else(
                || "interrupted".to_owned(),
                |depth| format!("stopped after depth {depth}, as it was told"),
            );
            terminal::print_line(&format!("run {id} {how}; best node so far: {best}"));
        }
    }
    note_running_sweeps(facts);
    terminal::print_line(&format!(
        "hint: `{}` goes on from here",
        interrupt::resume_text_for(&facts.run)
    ));
    Ok(())
}

/// Prints a note about running sweeps, which outlive this process. The dry world has none.
pub(super) fn note_running_sweeps(facts: &Facts) {
    let is_swept = |eval: &&Eval| matches!(eval.stage, Stage::Sweeping(_));
    let sweeps = match facts.world {
        WorldKind::Dry { .. } => 0,
        WorldKind::Real => {
            let evals = facts.open_evals();
            evals.iter().filter(is_swept).count() + usize::from(is_root_sweeping(facts))
        }
    };
    match sweeps {
        0 => {}
        1 => terminal::print_note("1 sweep goes on by itself; a resume takes its results in"),
        n => terminal::print_note(&format!(
            "{n} sweeps go on by themselves; a resume takes their results in"
        )),
    }
}

/// Returns true if the root's sweep has begun and has not ended. A given baseline needs no sweep.
fn is_root_sweeping(facts: &Facts) -> bool {
    facts.phase == RunPhase::Measuring
        && facts.baseline == RootBaseline::Unmeasured
        && facts.submission_count(SweepSubject::Root) > 0
        && facts.settings.measure.baseline_csv.is_none()
}

/// Returns the stop reason of an unfinished run that no process holds, for programs.
pub(super) fn interruption_reason(facts: &Facts) -> &'static str {
    if facts.stopped_after().is_some() { "stopped_after_depth" } else { "interrupted" }
}

/// Returns true if an eval or an idea question failed and nothing was scored.
fn has_only_failures(facts: &Facts) -> bool {
    let failed = |eval: &Eval| matches!(eval.stage, Stage::Failed { .. });
    let unanswered = |asked: &Expansion| matches!(asked.ideas, ExpansionIdeas::Failed { .. });
    let some_failed = facts.evals.iter().any(|eval| failed(&eval))
        || facts.all_expansions().any(|(_, asked)| unanswered(asked));
    let scored = |eval: &Eval| eval.is_current() && eval.scored_candidate().is_some();
    some_failed && !facts.evals.iter().any(|eval| scored(&eval))
}

fn show_end(facts: &Facts, run: &RunDir, output: OutputFormat) -> Result<(), CommandFailure> {
    if output == OutputFormat::Json {
        return terminal::print_json(&render_end_json(facts, facts.stop_reason()));
    }
    let best = CodePlace::Node(facts.best_node());
    let reason = facts.stop_reason().map_or_else(|| "open".to_owned(), |stop| stop.to_string());
    terminal::print_line(&format!("run {} stopped: {reason}; best node: {best}", facts.run));
    for said in versus::control_verdict(facts).into_iter().chain(versus::control_spending(facts)) {
        terminal::print_line(&said);
    }
    if matches!(facts.stop_reason(), Some(StopReason::MaxCost | StopReason::MaxTokens))
        && let Some(worst) = status::load_unanswered(run)?.describe(&facts.limits)
    {
        terminal::print_note(&format!("reserved: {worst}"));
    }
    terminal::print_line(&format!(
        "report: {}",
        run.root().join(report::REPORT_PAGE_FILE).display()
    ));
    redo::report_resume_hint(facts, |other| interrupt::resume_text_with(&facts.run, other));
    Ok(())
}

/// Renders the last JSON line of a run.
pub(super) fn render_end_json(facts: &Facts, stop_reason: impl Serialize) -> Value {
    let mut end = json!({
        "type": "end",
        "run_id": facts.run,
        "stop_reason": stop_reason,
        "best": CodePlace::Node(facts.best_node()).to_string(),
    });
    if let Some(control) = figures::control_json(facts) {
        end["control"] = control;
    }
    end
}
