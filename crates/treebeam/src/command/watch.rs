//! `treebeam watch`: shows a running search on the terminal. Reads only, takes no lock.
//!
//! It restores the terminal at the end. Screen content and keys are defined in
//! [`treebeam_view::screen`].

mod screen_file;
mod terminal;

use super::OutputFormat;
use crate::failure::{CommandExit, CommandFailure};
use crate::resume_command;
use crate::run_location::{RepoHome, RunLocation};
use jiff::Timestamp;
use screen_file::ScreenFileReader;
use std::path::Path;
use std::time::{Duration, Instant};
use terminal::{TerminalInput, WatchTerminal};
use treebeam_core::id::RunId;
use treebeam_store::RunDir;
use treebeam_store::lease;
use treebeam_store::run_follower::{JournalUpdate, RunFollower};
use treebeam_view::screen::{
    self, ScreenFile, ScreenModel, ScreenUpdate, WatchHistory, WatchScene,
};

/// Maximum wait for a key before the journal is polled again.
const MAX_KEY_WAIT: Duration = Duration::from_millis(200);
/// Interval of redraws without news: times go on, and logs grow.
const REDRAW_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of the check for a running process: the check blocks a starting process for a moment.
const RUNNER_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Pause after a failed read of the journal.
const JOURNAL_RETRY_INTERVAL: Duration = Duration::from_secs(2);

pub(super) fn run_watch(
    here: &Path,
    name: Option<&str>,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    if output == OutputFormat::Json {
        return Err(CommandFailure::usage("`treebeam watch` is for people: it prints no JSON")
            .with_hint("`treebeam status --json` or `treebeam log --follow --json`"));
    }
    terminal::must_be_terminal()?;
    let found = find_watched_run(here, name)?;
    let watched = WatchSession::open(&found.run)?;
    terminal::listen_for_signals()?;
    terminal::exit_on_terminal_loss()?;
    show_run(watched, &mut WatchTerminal::open()?)
}

/// Finds the named run, or else the latest running one, or else the latest one.
fn find_watched_run(here: &Path, name: Option<&str>) -> Result<RunLocation, CommandFailure> {
    let running = if name.is_none() { RepoHome::find(here)?.list_running()?.pop() } else { None };
    RunLocation::find(here, running.as_ref().map(RunId::as_str).or(name))
}

/// Shows a run until the user quits.
fn show_run(
    mut watched: WatchSession<'_>,
    terminal: &mut WatchTerminal,
) -> Result<CommandExit, CommandFailure> {
    let mut model = ScreenModel::default();
    let mut papers = ScreenFileReader::new(watched.run);
    let mut due = Instant::now();
    loop {
        let now = Instant::now();
        let size = terminal::terminal_size()?;
        if watched.refresh(now) == JournalChange::Some || now >= due {
            papers.update(watched.follower.state(), model.wanted_file());
            let lines =
                screen::draw_screen(&watched.build_scene(papers.shown_file()), &model, size);
            terminal.draw(&lines, size)?;
            due = now + REDRAW_INTERVAL;
        }
        match terminal.next_input(MAX_KEY_WAIT)? {
            TerminalInput::Nothing => continue,
            TerminalInput::Redraw => terminal.invalidate(),
            TerminalInput::Suspend => terminal.suspend()?,
            TerminalInput::SuspendTogether => terminal.suspend_together()?,
            TerminalInput::Interrupt => return Ok(CommandExit::Interrupted),
            TerminalInput::Key(key) => {
                match screen::update_model(
                    model,
                    key,
                    &watched.build_scene(papers.shown_file()),
                    size,
                ) {
                    ScreenUpdate::Stay(next) => model = next,
                    ScreenUpdate::Quit => return Ok(CommandExit::Done),
                }
            }
        }
        due = now;
    }
}

/// Tells if a poll of the journal found new events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JournalChange {
    None,
    Some,
}

/// A watched run, and what was read of it.
struct WatchSession<'a> {
    run: &'a RunDir,
    directory: String,
    follower: RunFollower,
    diary: WatchHistory,
    runner: Option<String>,
    /// Command that resumes the run.
    resume_command: String,
    trouble: Option<String>,
    /// Time of the next poll of the journal; `next_question` is that of the next check for a
    /// running process.
    next_look: Instant,
    next_question: Instant,
}

impl<'a> WatchSession<'a> {
    fn open(run: &'a RunDir) -> Result<Self, CommandFailure> {
        let follower = RunFollower::open(run)?;
        let (diary, now) = (load_diary(&follower), Instant::now());
        let directory = run.root().display().to_string();
        let resume_command = resume_command::recorded_resume_command(follower.state());
        let (runner, trouble) = (None, None);
        let (next_look, next_question) = (now, now);
        Ok(Self {
            run,
            directory,
            follower,
            diary,
            runner,
            resume_command,
            trouble,
            next_look,
            next_question,
        })
    }

    fn build_scene<'b>(&'b self, paper: Option<&'b ScreenFile>) -> WatchScene<'b> {
        WatchScene {
            facts: self.follower.state(),
            history: &self.diary,
            runner: self.runner.as_deref(),
            resume_command: &self.resume_command,
            now: Timestamp::now(),
            directory: &self.directory,
            paper,
            trouble: self.trouble.as_deref(),
        }
    }

    /// Reads the new events.
    fn refresh(&mut self, now: Instant) -> JournalChange {
        let news =
            if now >= self.next_look { self.follow_journal(now) } else { JournalChange::None };
        if now >= self.next_question {
            self.next_question = now + RUNNER_CHECK_INTERVAL;
            let runner = lease::describe_owner(self.run);
            if runner.is_none() && self.runner.is_some() {
                self.resume_command =
                    resume_command::recorded_resume_command(self.follower.state());
            }
            self.runner = runner;
        }
        news
    }

    fn follow_journal(&mut self, now: Instant) -> JournalChange {
        match self.follower.read_updates() {
            Ok(JournalUpdate::Appended(records)) => {
                for record in &records {
                    self.diary.add_event(record.t, &record.event);
                }
                self.trouble = None;
                if records.is_empty() { JournalChange::None } else { JournalChange::Some }
            }
            Ok(JournalUpdate::Reloaded) => {
                self.diary = load_diary(&self.follower);
                self.trouble = None;
                JournalChange::Some
            }
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.next_look = now + JOURNAL_RETRY_INTERVAL;
                JournalChange::Some
            }
        }
    }
}

/// Loads the history from the last events of the journal.
fn load_diary(follower: &RunFollower) -> WatchHistory {
    let mut diary = WatchHistory::default();
    for record in follower.recent_records() {
        diary.add_event(record.t, &record.event);
    }
    diary
}
