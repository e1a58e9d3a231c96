//! `treebeam pause`, `unpause` and `stop`: a word to the process that runs a run, by the run's inbox. Nothing is written
//! where nobody would read it.

use super::Output;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::way_on;
use crate::wiring::{self, Found, Home};
use serde_json::json;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::{MessageId, Wish};
use treebeam_core::facts::Facts;
use treebeam_core::id::RunId;
use treebeam_edge::store::inbox::{self, Fate, Outgoing};
use treebeam_edge::store::lease::{self, Holder, Presence};
use treebeam_edge::store::{self, RunDir};

/// How long an answer is waited for, and how often it is looked for.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(50);
/// After how many looks it is asked whether anybody is still there.
const DOUBT: u32 = 10;

pub(super) fn run(
    here: &Path,
    name: Option<&str>,
    wish: Wish,
    output: Output,
) -> Result<Exit, Failure> {
    let told = tell(&find(here, name)?, wish)?;
    let command = if wish == Wish::StopAfterDepth { Wish::Stop } else { wish };
    match output {
        Output::Json => terminal::json(&json!({
            "schema": format!("treebeam.{command}/1"),
            "run_id": told.run,
            "message": told.message,
            "outcome": told.outcome,
            "running": told.owner.to_string(),
        }))?,
        Output::Text => terminal::say(&told.text),
    }
    Ok(Exit::Done)
}

/// A wish that was heard, or will be.
pub(super) struct Told {
    run: RunId,
    message: MessageId,
    outcome: &'static str,
    owner: Holder,
    /// What came of it, in words.
    pub(super) text: String,
}

/// Tells whoever runs a run, and waits a little for what comes of it.
pub(super) fn tell(found: &Found, wish: Wish) -> Result<Told, Failure> {
    let run = &found.run;
    let state = store::open_to_read(run)?.state;
    let id = &state.run;
    if let Some(reason) = state.stop_reason() {
        return Err(Failure::failed(format!("run `{id}` is over ({reason}): nothing to {wish}")));
    }
    let owner = owner(run, &state, wish)?;
    let secret = wiring::inbox_secret(run, found.repo.as_ref())?;
    let message = inbox::post(run, &Outgoing::Wish { wish, epoch: owner.epoch }, &secret)?;
    let (outcome, text) = match answer(run, &message, Some(owner.epoch)) {
        Answer::Taken => ("taken", taken(run, &state, wish)?),
        Answer::Waiting => {
            ("waiting", format!("run {id} was told to {wish}, and has not read it yet: {owner}"))
        }
        Answer::Refused(why) => return Err(not_heard(id, wish, &why)),
        Answer::Left => {
            inbox::withdraw(run, &message)?;
            return Err(not_heard(id, wish, "the process that ran it is gone"));
        }
    };
    Ok(Told { run: id.clone(), message, outcome, owner, text })
}

/// The run that is named, or the only one that is running.
fn find(here: &Path, name: Option<&str>) -> Result<Found, Failure> {
    if name.is_some() {
        return Found::find(here, name);
    }
    let running = Home::find(here)?.running()?;
    match running.as_slice() {
        [] => Found::find(here, None),
        [one] => Found::find(here, Some(one.as_str())),
        several => {
            let names: Vec<_> = several.iter().map(|id| format!("`{id}`")).collect();
            let what = format!("several runs are running: {}", names.join(", "));
            Err(Failure::usage(what).hint("name the one that is meant"))
        }
    }
}

/// Who runs the run. One that has just come is given the time to say who it is.
fn owner(run: &RunDir, facts: &Facts, wish: Wish) -> Result<Holder, Failure> {
    let id = &facts.run;
    let begun = Instant::now();
    loop {
        match lease::presence(run) {
            Presence::Owner(holder) => return Ok(holder),
            Presence::Arriving if begun.elapsed() < PATIENCE => thread::sleep(GLANCE),
            Presence::Arriving => {
                let what = format!("whoever runs run `{id}` does not say who it is");
                return Err(Failure::failed(what).hint("try again in a moment"));
            }
            Presence::Nobody => {
                let what = format!("nobody runs run `{id}`: nothing to {wish}");
                let way_on = way_on::as_it_is(facts);
                return Err(Failure::failed(what).hint(format!("`{way_on}` goes on with it")));
            }
        }
    }
}

/// What came of a message.
pub(super) enum Answer {
    Taken,
    /// Nothing yet.
    Waiting,
    Refused(String),
    /// Whoever was to read it is gone.
    Left,
}

/// Waits a little for what comes of a message to the process with this epoch, or to whoever runs the run.
pub(super) fn answer(run: &RunDir, message: &MessageId, epoch: Option<u64>) -> Answer {
    let begun = Instant::now();
    let mut looks = 0_u32;
    let read = || match inbox::fate(run, message) {
        Fate::Taken => Some(Answer::Taken),
        Fate::Refused(why) => Some(Answer::Refused(why)),
        Fate::Waiting => None,
    };
    while begun.elapsed() < PATIENCE {
        if let Some(answer) = read() {
            return answer;
        }
        looks += 1;
        if looks.is_multiple_of(DOUBT) && !is_there(run, epoch) {
            // It may have read the message as the last thing that it did.
            return read().unwrap_or(Answer::Left);
        }
        thread::sleep(GLANCE);
    }
    read().unwrap_or(Answer::Waiting)
}

fn is_there(run: &RunDir, epoch: Option<u64>) -> bool {
    match lease::presence(run) {
        Presence::Owner(holder) => epoch.is_none_or(|epoch| holder.epoch == epoch),
        Presence::Arriving => true,
        Presence::Nobody => false,
    }
}

fn not_heard(id: &RunId, wish: Wish, why: &str) -> Failure {
    let what = format!("run `{id}` was not told to {wish}: {why}");
    Failure::failed(what).hint(format!("`treebeam status {id}` shows how it stands"))
}

fn taken(run: &RunDir, facts: &Facts, wish: Wish) -> Result<String, Failure> {
    let id = &facts.run;
    Ok(match wish {
        Wish::Pause => format!(
            "run {id} is paused: what is running ends, nothing new starts (`treebeam unpause {id}` goes on)"
        ),
        Wish::Unpause => format!("run {id} goes on"),
        Wish::Stop => format!(
            "run {id} is stopping: what is running ends first (`{}` goes on from there)",
            way_on::as_it_is(facts)
        ),
        Wish::StopAfterDepth => {
            let depth = store::open_to_read(run)?.state.history.stop_after;
            let depth = depth.map_or_else(|| "this depth".to_owned(), |at| format!("depth {at}"));
            format!("run {id} stops after {depth} (`treebeam unpause {id}` takes that back)")
        }
    })
}
