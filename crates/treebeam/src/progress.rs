//! Shows a run while it goes on: a bar per depth on a terminal, plain lines elsewhere, JSON lines for programs, or nothing.
//! [`now`] is what is going on at this moment, as the ports tell it.

pub(crate) mod now;

use crate::command::Output;
use crate::interrupt::CtrlC;
use crate::terminal;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{IsTerminal as _, stderr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use treebeam_core::event::{Event, IdeaAdded, Intent, Wish};
use treebeam_core::evidence::Scored;
use treebeam_core::facts::{Facts, Stage};
use treebeam_core::gate::{self, Rule};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{Depth, Place};
use treebeam_core::state::State;
use treebeam_edge::agent::wait::{Observer, Wait};
use treebeam_edge::store::lease::{WaitBoard, WaitingQuestion};
use treebeam_run::port::Interrupt;
use treebeam_view::line::gist;
use treebeam_view::log;

/// How often the terminal is drawn where nothing happens.
const TICK: Duration = Duration::from_millis(500);
/// Shorter waits are not worth a word.
const WORTH_A_WORD: Duration = Duration::from_secs(2);

/// The bar on the terminal, for who has something to say that is not about the run.
static BAR: OnceLock<ProgressBar> = OnceLock::new();

/// Says something from another thread, on a line of its own whatever stands on the terminal.
pub(crate) fn interject(text: &str) {
    match BAR.get() {
        Some(bar) => bar.suspend(|| terminal::say(text)),
        None if stderr().is_terminal() => terminal::say(&format!("\n{text}")),
        None => terminal::say(text),
    }
}

/// Something to know, from another thread.
pub(crate) fn note(text: &str) {
    interject(&format!("note: {text}"));
}

/// Sees what goes on behind the door to agents.
pub(crate) struct Onlooker {
    /// The board on which other processes see what waits; none outside of a run.
    board: Option<WaitBoard>,
    /// True once the loop has left the run: no question waits any longer.
    is_run_left: AtomicBool,
}

impl Onlooker {
    /// An onlooker that puts waits up on this board.
    pub(crate) fn new(board: Option<WaitBoard>) -> Self {
        Self { board, is_run_left: AtomicBool::new(false) }
    }
}

impl Observer for Onlooker {
    fn waits(&self, wait: &Wait<'_>) {
        let Wait { id, role, why, since, length, until } = *wait;
        if length < WORTH_A_WORD {
            return;
        }
        let (time, seconds) = (until.strftime("%H:%M:%S"), length.as_secs());
        note(&format!("{role} waits {seconds} s, until {time} UTC: {why}"));
        if let Some(board) = &self.board {
            let (role, why) = (role.to_string(), why.to_owned());
            board.put_up(id, WaitingQuestion { role, why, since, until });
        }
    }
    fn no_longer_waits(&self, id: u64) {
        if let Some(board) = &self.board {
            board.take_down(id);
        }
    }
    fn note(&self, text: &str) {
        note(text);
    }
    fn wants_to_stop(&self) -> bool {
        CtrlC.is_asked_for() || self.is_run_left.load(Ordering::SeqCst)
    }
}

/// Asks for what Ctrl-C asks for, and ends the waits of a run that the loop leaves for any reason.
impl Interrupt for Onlooker {
    fn is_asked_for(&self) -> bool {
        CtrlC.is_asked_for()
    }
    fn end_waits(&self) {
        self.is_run_left.store(true, Ordering::SeqCst);
    }
}

/// Somebody who watches a run.
pub(crate) struct Progress {
    manner: Manner,
    depth: Option<Depth>,
    /// Scored and failed evals of the open depth.
    scored: u64,
    failed: u64,
    /// Evals of the open depth that count no more.
    gone: u64,
    /// Why things could not be removed, as far as that was shown: one reason may hold for many.
    reasons_shown: BTreeSet<String>,
}

enum Manner {
    Quiet,
    Json,
    Lines,
    Bar(ProgressBar),
}

impl Progress {
    /// Watches a run from here on.
    pub(crate) fn new(facts: &Facts, quiet: bool, output: Output) -> Self {
        let manner = match output {
            Output::Json => Manner::Json,
            Output::Text if quiet => Manner::Quiet,
            Output::Text if stderr().is_terminal() => Manner::Bar(BAR.get_or_init(bar).clone()),
            Output::Text => Manner::Lines,
        };
        let stage = |check: fn(&Stage) -> bool| {
            facts.open_evals().iter().filter(|eval| check(&eval.stage)).count() as u64
        };
        let scored = stage(|stage| matches!(stage, Stage::Scored(_)));
        let failed = stage(|stage| matches!(stage, Stage::Failed { .. }));
        let (gone, reasons_shown) = (gone(facts), BTreeSet::new());
        Self { manner, depth: None, scored, failed, gone, reasons_shown }
    }

    /// Shows what has just been recorded.
    pub(crate) fn show(&mut self, state: &State, events: &[Event]) {
        for event in events {
            self.count(event);
            if self.gone > 0 && matches!(event, Event::ProposalFailed { .. }) {
                self.gone = gone(state);
            }
            if matches!(self.manner, Manner::Json) {
                // A reader that has gone away does not stop the run.
                drop(terminal::json(event));
            } else if let Some(line) = line(state, event).filter(|_| self.is_news(event)) {
                self.say(&line);
            }
        }
        self.draw(state);
    }

    /// Leaves the terminal as it was.
    pub(crate) fn finish(&self) {
        if let Manner::Bar(bar) = &self.manner {
            bar.finish_and_clear();
        }
    }

    /// Whether it says something that was not shown before.
    fn is_news(&mut self, event: &Event) -> bool {
        let Event::DiscardDeferred { why, .. } = event else { return true };
        self.reasons_shown.insert(why.clone())
    }

    fn count(&mut self, event: &Event) {
        self.scored += u64::from(matches!(event, Event::Scored { .. }));
        self.failed += u64::from(matches!(event, Event::EvalFailed { .. }));
        if matches!(event, Event::DepthClosed { .. }) {
            (self.scored, self.failed, self.gone) = (0, 0, 0);
        }
    }

    fn say(&self, line: &str) {
        match &self.manner {
            Manner::Lines => terminal::say(line),
            Manner::Bar(bar) => bar.suspend(|| terminal::say(line)),
            Manner::Quiet | Manner::Json => {}
        }
    }

    fn draw(&mut self, state: &State) {
        let Manner::Bar(bar) = &self.manner else { return };
        if self.depth.replace(state.depth) != Some(state.depth) {
            bar.reset();
        }
        let all = (state.open_evals().len() as u64).saturating_sub(self.gone);
        bar.set_style(style(if all == 0 { WAITING } else { COUNTING }));
        bar.set_length(all);
        bar.set_position(self.scored + self.failed);
        bar.set_prefix(format!("depth {} of {}", state.depth, state.depths()));
        let (scored, failed, running) = (self.scored, self.failed, state.going_on().count());
        bar.set_message(if state.history.paused_since.is_some() {
            format!("paused (`treebeam unpause {}` goes on), {running} running", state.run)
        } else if state.open_evals().is_empty() {
            "waiting for ideas".to_owned()
        } else {
            format!("{scored} scored, {failed} failed, {running} running")
        });
    }
}

fn gone(facts: &Facts) -> u64 {
    facts.open_evals().iter().filter(|eval| !eval.stands()).count() as u64
}

/// Where there is nothing to count yet.
const WAITING: &str = "{prefix}: {msg}\n{now}";
/// Fits on a terminal of 80 columns, with hundreds of evals.
const COUNTING: &str = "{prefix} [{bar:16}] {pos}/{len} {msg}{left}\n{now}";

fn style(template: &str) -> ProgressStyle {
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    // What cannot be drawn is drawn the next time.
    let now = |_: &ProgressState, out: &mut dyn fmt::Write| {
        let _ = out.write_str(&now::in_words());
    };
    let left = |state: &ProgressState, out: &mut dyn fmt::Write| {
        if (1..state.len().unwrap_or_default()).contains(&state.pos()) {
            let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
        }
    };
    style.progress_chars("=> ").with_key("now", now).with_key("left", left)
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0).with_style(style(WAITING)).with_message("begins");
    bar.enable_steady_tick(TICK);
    bar
}

/// How an eval compares; where its results are flawed that is said instead, for then they do not pass, whatever they promise.
fn figures(facts: &Facts, scored: &Scored) -> String {
    let Scored { vs_parent, vs_root, .. } = scored;
    if vs_parent.primary_delta.is_none() || vs_root.primary_delta.is_none() {
        return format!(
            "no primary, its results have no number in `{}`",
            facts.meaning.score.primary
        );
    }
    let mut failed =
        gate::results(scored, &facts.meaning).into_iter().filter(|check| !check.passed);
    if let Some(flaw) = failed.next().filter(|check| check.rule < Rule::Promising) {
        return format!("{}, {}", flaw.rule.failure(), flaw.figures);
    }
    let (grade, score) = (vs_parent.recommendation.grade, vs_root.recommendation.score.get());
    format!("{grade}, {score:+.4} against the root")
}

/// Whose ideas these are.
fn asked_for(source: IdeaSource) -> String {
    match source {
        IdeaSource::Node(id) => Place::Node(id).to_string(),
        IdeaSource::Control => "control, on the root".to_owned(),
    }
}

/// One line about an event that a person wants to know of.
fn line(facts: &Facts, event: &Event) -> Option<String> {
    Some(match event {
        Event::RootMeasured { baseline, rows, parent, checks, .. } => {
            let root = log::root(&format!("{rows} configurations"), baseline, parent.as_ref());
            root + &log::rewritten(checks.as_deref())
        }
        Event::IdeasProposed(proposed) => {
            let (ideas, repeats) = (proposed.queued.len(), proposed.repeats.len());
            let untried = proposed.untried.len();
            let of = asked_for(proposed.source);
            format!("{of}: ideas: {ideas}, skipped as repeats: {repeats}, untried: {untried}")
        }
        Event::ProposalFailed { source, why, .. } => {
            format!("{}: no ideas: {why}", asked_for(*source))
        }
        Event::Scored { eval, scored, .. } => {
            let known = facts.eval(*eval);
            let title = known.as_ref().map_or("", |eval| &eval.idea.title);
            format!("e{eval}: {}: {title}", figures(facts, scored))
        }
        Event::EvalFailed { eval, failure, .. } => {
            let message = gist(&failure.message);
            format!("e{eval}: failed at {} ({}): {message}", failure.stage, failure.kind)
        }
        Event::AttemptFailed { eval, attempt, failure, .. } => {
            let message = gist(&failure.message);
            let (stage, kind) = (failure.stage, failure.kind);
            format!("e{eval}: attempt {attempt} failed at {stage} ({kind}), tried again: {message}")
        }
        Event::BudgetReached { budget, step, .. } => {
            let place = match step {
                Intent::Propose(source) => asked_for(*source),
                Intent::Implement(eval) => Place::Candidate(*eval).to_string(),
            };
            format!("{place}: stopped before its end, the {budget} budget is reached")
        }
        Event::DeadlinePassed { .. } => {
            "the time is over: only sweeps that run come to their end".to_owned()
        }
        Event::DepthClosed { depth, verdicts, beam, .. } => {
            let passed = verdicts.iter().filter(|(_, verdict)| verdict.passed()).count();
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
        Event::Asked { wish: Wish::Pause, .. } => {
            format!("paused (`treebeam unpause {}` goes on)", facts.run)
        }
        Event::Asked { wish: Wish::Unpause, .. } => "going on".to_owned(),
        Event::Asked { wish: Wish::Stop, .. } => {
            "stopping after the steps that are running: somebody asked for it".to_owned()
        }
        Event::Asked { wish: Wish::StopAfterDepth, .. } => {
            let way_back = format!("`treebeam unpause {}` takes that back", facts.run);
            format!("stopping after this depth: somebody asked for it ({way_back})")
        }
        Event::IdeaAdded(added) => {
            let IdeaAdded { node, eval, idea, .. } = &**added;
            format!("{}: e{eval} is the user's own idea: {}", Place::Node(*node), idea.title)
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
        let onlooker = Onlooker::new(None);
        assert!(!onlooker.wants_to_stop());
        onlooker.end_waits();
        assert!(onlooker.wants_to_stop());
        assert!(!onlooker.is_asked_for(), "nobody has interrupted the run");
    }
}
