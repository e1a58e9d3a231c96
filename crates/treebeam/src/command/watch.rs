//! `treebeam watch`: a run on the terminal while it goes on. Reads only, takes no lock, and leaves the terminal as it was.
//! What is shown, and what a key does, is said by `view::screen`.

mod paper;
mod terminal;

use super::Output;
use crate::failure::{Exit, Failure};
use crate::way_on;
use crate::wiring::{Found, Home};
use jiff::Timestamp;
use paper::Papers;
use std::path::Path;
use std::time::{Duration, Instant};
use terminal::{Input, Terminal};
use treebeam_core::id::RunId;
use treebeam_edge::store::RunDir;
use treebeam_edge::store::following::{Follower, Look};
use treebeam_edge::store::lease;
use treebeam_view::screen::{self, Diary, Model, Next, Paper, Scene};

/// How long a key is waited for before the journal is looked at again.
const GLANCE: Duration = Duration::from_millis(200);
/// How often the screen is drawn where nothing has happened: times go on, and logs grow.
const TICK: Duration = Duration::from_millis(500);
/// How often it is asked who runs the run: for a moment, the question is in a runner's way.
const DOUBT: Duration = Duration::from_secs(2);
/// How long a journal that cannot be followed is left alone.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn run(here: &Path, name: Option<&str>, output: Output) -> Result<Exit, Failure> {
    if output == Output::Json {
        return Err(Failure::usage("`treebeam watch` is for people: it prints no JSON")
            .hint("`treebeam status --json` or `treebeam log --follow --json`"));
    }
    terminal::must_be_one()?;
    let found = find(here, name)?;
    let watched = Watched::open(&found.run)?;
    terminal::heed_signals()?;
    terminal::heed_loss();
    show(watched, &mut Terminal::take()?)
}

/// The run that is named, or the latest one that somebody runs, or else the latest one.
fn find(here: &Path, name: Option<&str>) -> Result<Found, Failure> {
    let running = if name.is_none() { Home::find(here)?.running()?.pop() } else { None };
    Found::find(here, running.as_ref().map(RunId::as_str).or(name))
}

/// Shows a run until the user has seen enough.
fn show(mut watched: Watched<'_>, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let mut model = Model::default();
    let mut papers = Papers::new(watched.run);
    let mut due = Instant::now();
    loop {
        let now = Instant::now();
        let size = terminal::size()?;
        if watched.look(now) == News::Some || now >= due {
            papers.look(watched.follower.state(), model.wanted());
            let lines = screen::draw(&watched.scene(papers.shown()), &model, size);
            terminal.draw(&lines, size)?;
            due = now + TICK;
        }
        match terminal.input(GLANCE)? {
            Input::Nothing => continue,
            Input::Redraw => terminal.forget(),
            Input::Suspend => terminal.suspend()?,
            Input::SuspendTogether => terminal.suspend_together()?,
            Input::Interrupt => return Ok(Exit::Interrupted),
            Input::Key(key) => {
                match screen::update(model, key, &watched.scene(papers.shown()), size) {
                    Next::Stay(next) => model = next,
                    Next::Quit => return Ok(Exit::Done),
                }
            }
        }
        due = now;
    }
}

/// Whether a look brought something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    None,
    Some,
}

/// A run, and what is known of it.
struct Watched<'a> {
    run: &'a RunDir,
    directory: String,
    follower: Follower,
    diary: Diary,
    runner: Option<String>,
    /// What would go on with it.
    way_on: String,
    trouble: Option<String>,
    /// When the journal is looked at, and who runs the run is asked, again.
    next_look: Instant,
    next_question: Instant,
}

impl<'a> Watched<'a> {
    fn open(run: &'a RunDir) -> Result<Self, Failure> {
        let follower = Follower::open(run)?;
        let (diary, now) = (remembered(&follower), Instant::now());
        let directory = run.root().display().to_string();
        let way_on = way_on::as_it_is(follower.state());
        let (runner, trouble) = (None, None);
        let (next_look, next_question) = (now, now);
        Ok(Self {
            run,
            directory,
            follower,
            diary,
            runner,
            way_on,
            trouble,
            next_look,
            next_question,
        })
    }

    fn scene<'b>(&'b self, paper: Option<&'b Paper>) -> Scene<'b> {
        Scene {
            facts: self.follower.state(),
            diary: &self.diary,
            runner: self.runner.as_deref(),
            way_on: &self.way_on,
            now: Timestamp::now(),
            directory: &self.directory,
            paper,
            trouble: self.trouble.as_deref(),
        }
    }

    /// Takes in what is new.
    fn look(&mut self, now: Instant) -> News {
        let news = if now >= self.next_look { self.follow(now) } else { News::None };
        if now >= self.next_question {
            self.next_question = now + DOUBT;
            let runner = lease::runner(self.run);
            if runner.is_none() && self.runner.is_some() {
                self.way_on = way_on::as_it_is(self.follower.state());
            }
            self.runner = runner;
        }
        news
    }

    fn follow(&mut self, now: Instant) -> News {
        match self.follower.look() {
            Ok(Look::More(records)) => {
                for record in &records {
                    self.diary.note(record.t, &record.event);
                }
                self.trouble = None;
                if records.is_empty() { News::None } else { News::Some }
            }
            Ok(Look::Anew) => {
                self.diary = remembered(&self.follower);
                self.trouble = None;
                News::Some
            }
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.next_look = now + PATIENCE;
                News::Some
            }
        }
    }
}

/// What the end of the journal has to say.
fn remembered(follower: &Follower) -> Diary {
    let mut diary = Diary::default();
    for record in follower.recent() {
        diary.note(record.t, &record.event);
    }
    diary
}
