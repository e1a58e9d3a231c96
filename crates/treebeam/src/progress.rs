//! Shows a running search: a bar per depth on a terminal, plain lines, JSON lines, or nothing.
//!
//! [`activity`] tracks the steps and agent calls that run at the moment, as reported by the ports.

pub(crate) mod activity;

use crate::interrupt::CtrlC;
use crate::terminal::{self, OutputFormat};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{IsTerminal as _, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use treebeam_agent::retry_timer::{DoorObserver, QuestionWait};
use treebeam_core::event::{Event, IdeaAdded, PaidStep, UserRequest};
use treebeam_core::evidence::CandidateScore;
use treebeam_core::facts::{Facts, Stage};
use treebeam_core::gate::{self, GateRule};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{CodePlace, Depth};
use treebeam_core::state::State;
use treebeam_run::port::Interrupt;
use treebeam_store::lease::{WaitBoard, WaitingQuestion};
use treebeam_view::log;
use treebeam_view::safe_text::message_gist;

/// Interval between redraws of the terminal while nothing happens.
const REDRAW_INTERVAL: Duration = Duration::from_millis(500);
/// Shortest wait that is reported.
const MIN_REPORTED_WAIT: Duration = Duration::from_secs(2);

/// Observer of agent calls: reports waits to the terminal and to the board of the run.
pub(crate) struct RunObserver {
    /// Board on which other processes see what waits; `None` outside of a run.
    board: Option<WaitBoard>,
    /// True once the loop has left the run: no question waits any longer.
    is_run_left: AtomicBool,
}

impl RunObserver {
    /// Creates an observer that publishes waits on this board.
    pub(crate) fn new(board: Option<WaitBoard>) -> Self {
        Self { board, is_run_left: AtomicBool::new(false) }
    }
}

impl DoorObserver for RunObserver {
    fn on_wait(&self, wait: &QuestionWait<'_>) {
        let QuestionWait { id, role, why, since, length, until } = *wait;
        if length < MIN_REPORTED_WAIT {
            return;
        }
        let (time, seconds) = (until.strftime("%H:%M:%S"), length.as_secs());
        terminal::print_note_above_bar(&format!(
            "{role} waits {seconds} s, until {time} UTC: {why}"
        ));
        if let Some(board) = &self.board {
            let (role, why) = (role.to_string(), why.to_owned());
            board.add_question(id, WaitingQuestion { role, why, since, until });
        }
    }
    fn on_wait_end(&self, id: u64) {
        if let Some(board) = &self.board {
            board.remove_question(id);
        }
    }
    fn on_note(&self, text: &str) {
        terminal::print_note_above_bar(text);
    }
    fn wants_to_stop(&self) -> bool {
        CtrlC.is_asked_for() || self.is_run_left.load(Ordering::SeqCst)
    }
}

/// Reports Ctrl-C, and ends the waits of a run that the loop leaves for any reason.
impl Interrupt for RunObserver {
    fn is_asked_for(&self) -> bool {
        CtrlC.is_asked_for()
    }
    fn end_waits(&self) {
        self.is_run_left.store(true, Ordering::SeqCst);
    }
}

/// Display of a run's progress on standard error or, as JSON, on standard output.
pub(crate) struct RunProgress {
    manner: ProgressOutput,
    depth: Option<Depth>,
    /// Number of scored evals of the open depth; `failed` counts the failed ones.
    scored: u64,
    failed: u64,
    /// Superseded evals of the open depth.
    gone: u64,
    /// Reasons for deferred removals that were shown already: one reason may hold for many.
    reasons_shown: BTreeSet<String>,
}

enum ProgressOutput {
    Quiet,
    Json,
    Lines,
    Bar(ProgressBar),
}

impl RunProgress {
    /// Creates the display for a run, in the requested format.
    pub(crate) fn new(facts: &Facts, quiet: bool, output: OutputFormat) -> Self {
        let manner = match output {
            OutputFormat::Json => ProgressOutput::Json,
            OutputFormat::Text if quiet => ProgressOutput::Quiet,
            OutputFormat::Text if stderr().is_terminal() => {
                ProgressOutput::Bar(terminal::progress_bar(new_bar))
            }
            OutputFormat::Text => ProgressOutput::Lines,
        };
        let stage = |check: fn(&Stage) -> bool| {
            facts.open_evals().iter().filter(|eval| check(&eval.stage)).count() as u64
        };
        let scored = stage(|stage| matches!(stage, Stage::Scored(_)));
        let failed = stage(|stage| matches!(stage, Stage::Failed { .. }));
        let (gone, reasons_shown) = (count_superseded(facts), BTreeSet::new());
        Self { manner, depth: None, scored, failed, gone, reasons_shown }
    }

    /// Shows events that have just been recorded.
    pub(crate) fn show_events(&mut self, state: &State, events: &[Event]) {
        for event in events {
            self.count_event(event);
            if self.gone > 0 && matches!(event, Event::ProposalFailed { .. }) {
                self.gone = count_superseded(state);
            }
            if matches!(self.manner, ProgressOutput::Json) {
                // A reader that has closed its end does not stop the run.
                drop(terminal::print_json(event));
            } else if let Some(line) = describe_event(state, event).filter(|_| self.is_news(event))
            {
                self.print_event_line(&line);
            }
        }
        self.draw_bar(state);
    }

    /// Clears the bar from the terminal.
    pub(crate) fn finish(&self) {
        if let ProgressOutput::Bar(bar) = &self.manner {
            bar.finish_and_clear();
        }
    }

    /// Returns true if the event shows something that was not shown before.
    fn is_news(&mut self, event: &Event) -> bool {
        let Event::DiscardDeferred { why, .. } = event else { return true };
        self.reasons_shown.insert(why.clone())
    }

    fn count_event(&mut self, event: &Event) {
        self.scored += u64::from(matches!(event, Event::Scored { .. }));
        self.failed += u64::from(matches!(event, Event::EvalFailed { .. }));
        if matches!(event, Event::DepthClosed { .. }) {
            (self.scored, self.failed, self.gone) = (0, 0, 0);
        }
    }

    fn print_event_line(&self, line: &str) {
        match &self.manner {
            ProgressOutput::Lines => terminal::print_line(line),
            ProgressOutput::Bar(bar) => bar.suspend(|| terminal::print_line(line)),
            ProgressOutput::Quiet | ProgressOutput::Json => {}
        }
    }

    fn draw_bar(&mut self, state: &State) {
        let ProgressOutput::Bar(bar) = &self.manner else { return };
        if self.depth.replace(state.depth) != Some(state.depth) {
            bar.reset();
        }
        let all = (state.open_evals().len() as u64).saturating_sub(self.gone);
        bar.set_style(bar_style(if all == 0 { WAITING_TEMPLATE } else { COUNTING_TEMPLATE }));
        bar.set_length(all);
        bar.set_position(self.scored + self.failed);
        bar.set_prefix(format!("depth {} of {}", state.depth, state.depth_limit()));
        let (scored, failed, running) = (self.scored, self.failed, state.active_evals().count());
        bar.set_message(if state.history.paused_since.is_some() {
            format!("paused (`treebeam unpause {}` goes on), {running} running", state.run)
        } else if state.open_evals().is_empty() {
            "waiting for ideas".to_owned()
        } else {
            format!("{scored} scored, {failed} failed, {running} running")
        });
    }
}

fn count_superseded(facts: &Facts) -> u64 {
    facts.open_evals().iter().filter(|eval| !eval.is_current()).count() as u64
}

/// Template of the bar before there is anything to count.
const WAITING_TEMPLATE: &str = "{prefix}: {msg}\n{now}";
/// Template of the bar with counts; fits 80 columns with hundreds of evals.
const COUNTING_TEMPLATE: &str = "{prefix} [{bar:16}] {pos}/{len} {msg}{left}\n{now}";

fn bar_style(template: &str) -> ProgressStyle {
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    // Write errors are ignored: the next redraw comes soon.
    let now = |_: &ProgressState, out: &mut dyn fmt::Write| {
        let _ = out.write_str(&activity::describe_activities());
    };
    let left = |state: &ProgressState, out: &mut dyn fmt::Write| {
        if (1..state.len().unwrap_or_default()).contains(&state.pos()) {
            let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
        }
    };
    style.progress_chars("=> ").with_key("now", now).with_key("left", left)
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::new(0).with_style(bar_style(WAITING_TEMPLATE)).with_message("begins");
    bar.enable_steady_tick(REDRAW_INTERVAL);
    bar
}

/// Describes how an eval compares with its parent and the root. Flawed results are described
/// instead: such an eval does not pass, whatever its numbers.
fn describe_score(facts: &Facts, scored: &CandidateScore) -> String {
    let CandidateScore { vs_parent, vs_root, .. } = scored;
    if vs_parent.primary_delta.is_none() || vs_root.primary_delta.is_none() {
        return format!(
            "no primary, its results have no number in `{}`",
            facts.settings.score.primary
        );
    }
    let mut failed =
        gate::check_results(scored, &facts.settings).into_iter().filter(|check| !check.passed);
    if let Some(flaw) = failed.next().filter(|check| check.rule < GateRule::Promising) {
        return format!("{}, {}", flaw.rule.failure_code(), flaw.figures);
    }
    let (grade, score) = (vs_parent.recommendation.grade, vs_root.recommendation.score.get());
    format!("{grade}, {score:+.4} against the root")
}

/// Describes where ideas come from: a node, or the control group.
fn describe_source(source: IdeaSource) -> String {
    match source {
        IdeaSource::Node(id) => CodePlace::Node(id).to_string(),
        IdeaSource::Control => "control, on the root".to_owned(),
    }
}

/// Describes an event in one line, or returns `None` if it is of no interest to a person.
fn describe_event(facts: &Facts, event: &Event) -> Option<String> {
    Some(match event {
        Event::RootMeasured { baseline, rows, parent, checks, .. } => {
            let root =
                log::describe_root(&format!("{rows} configurations"), baseline, parent.as_ref());
            root + &log::rewritten_files_note(checks.as_deref())
        }
        Event::IdeasProposed(proposed) => {
            let (ideas, repeats) = (proposed.queued.len(), proposed.repeats.len());
            let untried = proposed.untried.len();
            let of = describe_source(proposed.source);
            format!("{of}: ideas: {ideas}, skipped as repeats: {repeats}, untried: {untried}")
        }
        Event::ProposalFailed { source, why, .. } => {
            format!("{}: no ideas: {why}", describe_source(*source))
        }
        Event::Scored { eval, scored, .. } => {
            let known = facts.eval(*eval);
            let title = known.as_ref().map_or("", |eval| &eval.idea.title);
            format!("e{eval}: {}: {title}", describe_score(facts, scored))
        }
        Event::EvalFailed { eval, failure, .. } => {
            let message = message_gist(&failure.message);
            format!("e{eval}: failed at {} ({}): {message}", failure.stage, failure.kind)
        }
        Event::AttemptFailed { eval, attempt, failure, .. } => {
            let message = message_gist(&failure.message);
            let (stage, kind) = (failure.stage, failure.kind);
            format!("e{eval}: attempt {attempt} failed at {stage} ({kind}), tried again: {message}")
        }
        Event::BudgetReached { budget, step, .. } => {
            let place = match step {
                PaidStep::Propose(source) => describe_source(*source),
                PaidStep::Implement(eval) => CodePlace::Candidate(*eval).to_string(),
            };
            format!("{place}: stopped before its end, the {budget} budget is reached")
        }
        Event::DeadlinePassed { .. } => {
            "the time is over: only sweeps that run come to their end".to_owned()
        }
        Event::DepthClosed { depth, verdicts, beam, .. } => {
            let passed = verdicts.iter().filter(|(_, verdict)| verdict.has_passed()).count();
            let (scored, promoted) = (verdicts.len(), beam.len());
            format!(
                "depth {depth} closed: {passed} of {scored} scored passed the gate, {promoted} promoted"
            )
        }
        Event::ArtifactsRestored(restored) => {
            let paths: Vec<_> = restored.artifacts.iter().map(|it| format!("`{it}`")).collect();
            format!("changed on disk, restored: {}; sweeps under way fail", paths.join(", "))
        }
        Event::JournalRestored { .. } => {
            "`journal.jsonl` was removed or renamed, and is put back".to_owned()
        }
        Event::NodeAdded { node, from, .. } => format!("e{from} is n{node} now"),
        Event::PromotionFailed { eval, why } => format!("e{eval} not promoted yet: {why}"),
        Event::DiscardDeferred { leftover, why, .. } => {
            format!("{leftover} not removed yet: {why}")
        }
        Event::Asked { wish: UserRequest::Pause, .. } => {
            format!("paused (`treebeam unpause {}` goes on)", facts.run)
        }
        Event::Asked { wish: UserRequest::Unpause, .. } => "going on".to_owned(),
        Event::Asked { wish: UserRequest::Stop, .. } => {
            "stopping after the steps that are running: somebody asked for it".to_owned()
        }
        Event::Asked { wish: UserRequest::StopAfterDepth, .. } => {
            let way_back = format!("`treebeam unpause {}` takes that back", facts.run);
            format!("stopping after this depth: somebody asked for it ({way_back})")
        }
        Event::IdeaAdded(added) => {
            let IdeaAdded { node, eval, idea, .. } = &**added;
            format!("{}: e{eval} is the user's own idea: {}", CodePlace::Node(*node), idea.title)
        }
        Event::IdeaRefused { title, why, .. } => {
            format!("an idea of the user's is not tried, {why}: {title}")
        }
        Event::RunStarted(_)
        | Event::RootRefused { .. }
        | Event::StepStarted { .. }
        | Event::Implemented { .. }
        | Event::SweepSubmitted { .. }
        | Event::Swept { .. }
        | Event::Discarded { .. }
        | Event::SettingsChanged { .. }
        | Event::AgentsChanged { .. }
        | Event::RulesChanged { .. }
        | Event::SentBack(_)
        | Event::FilesRecorded(_)
        | Event::LockTakenOver { .. }
        | Event::RemovalAsked { .. }
        | Event::Stopped { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_wait_until_the_loop_has_left_the_run() {
        let onlooker = RunObserver::new(None);
        assert!(!onlooker.wants_to_stop());
        onlooker.end_waits();
        assert!(onlooker.wants_to_stop());
        assert!(!onlooker.is_asked_for(), "nobody has interrupted the run");
    }
}
