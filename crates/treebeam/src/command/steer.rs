//! `treebeam pause`, `unpause` and `stop`: post a message to the process that holds a run.
//!
//! Messages go through the run's inbox. Nothing is written if no process would read it.

use super::OutputFormat;
use crate::failure::{CommandExit, CommandFailure};
use crate::resume_command;
use crate::run_location::{self, RepoHome, RunLocation};
use crate::terminal;
use serde_json::json;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::{MessageId, UserRequest};
use treebeam_core::facts::Facts;
use treebeam_core::id::RunId;
use treebeam_store::RunDir;
use treebeam_store::inbox::{self, MessageStatus, OutgoingMessage};
use treebeam_store::lease::{self, LockHolder, RunPresence};

/// Maximum wait for an answer; [`ANSWER_POLL_INTERVAL`] is the time between polls.
const MAX_ANSWER_WAIT: Duration = Duration::from_secs(5);
const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Number of polls after which the process is checked.
const POLLS_PER_OWNER_CHECK: u32 = 10;

pub(super) fn run_steer(
    here: &Path,
    name: Option<&str>,
    wish: UserRequest,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let receipt = steer_run(&find_steered_run(here, name)?, wish)?;
    let command = if wish == UserRequest::StopAfterDepth { UserRequest::Stop } else { wish };
    match output {
        OutputFormat::Json => terminal::print_json(&json!({
            "schema": format!("treebeam.{command}/1"),
            "run_id": receipt.run,
            "message": receipt.message,
            "outcome": receipt.outcome,
            "running": receipt.owner.to_string(),
        }))?,
        OutputFormat::Text => terminal::print_line(&receipt.text),
    }
    Ok(CommandExit::Done)
}

/// A request that was acted upon, or will be.
pub(super) struct SteerReceipt {
    run: RunId,
    message: MessageId,
    outcome: &'static str,
    owner: LockHolder,
    /// Result of the request as text.
    pub(super) text: String,
}

/// Posts a request to the process that holds a run, and waits briefly for the answer.
pub(super) fn steer_run(
    found: &RunLocation,
    wish: UserRequest,
) -> Result<SteerReceipt, CommandFailure> {
    let run = &found.run;
    let state = treebeam_store::open_to_read(run)?.state;
    let id = &state.run;
    if let Some(reason) = state.stop_reason() {
        return Err(CommandFailure::failed(format!(
            "run `{id}` is over ({reason}): nothing to {wish}"
        )));
    }
    let owner = wait_for_owner(run, &state, wish)?;
    let secret = run_location::inbox_secret(run, found.repo.as_ref())?;
    let message =
        inbox::post_message(run, &OutgoingMessage::Wish { wish, epoch: owner.epoch }, &secret)?;
    let (outcome, text) = match wait_for_answer(run, &message, Some(owner.epoch)) {
        MessageAnswer::Taken => ("taken", describe_taken_wish(run, &state, wish)?),
        MessageAnswer::Waiting => {
            ("waiting", format!("run {id} was told to {wish}, and has not read it yet: {owner}"))
        }
        MessageAnswer::Refused(why) => return Err(wish_not_taken(id, wish, &why)),
        MessageAnswer::ReaderGone => {
            inbox::withdraw_message(run, &message)?;
            return Err(wish_not_taken(id, wish, "the process that ran it is gone"));
        }
    };
    Ok(SteerReceipt { run: id.clone(), message, outcome, owner, text })
}

/// Finds the named run, or the only one that is running.
fn find_steered_run(here: &Path, name: Option<&str>) -> Result<RunLocation, CommandFailure> {
    if name.is_some() {
        return RunLocation::find(here, name);
    }
    let running = RepoHome::find(here)?.list_running()?;
    match running.as_slice() {
        [] => RunLocation::find(here, None),
        [one] => RunLocation::find(here, Some(one.as_str())),
        several => {
            let names: Vec<_> = several.iter().map(|id| format!("`{id}`")).collect();
            let what = format!("several runs are running: {}", names.join(", "));
            Err(CommandFailure::usage(what).with_hint("name the one that is meant"))
        }
    }
}

/// Returns the process that holds the run. A process that has just started is given time to write
/// its lock note.
fn wait_for_owner(
    run: &RunDir,
    facts: &Facts,
    wish: UserRequest,
) -> Result<LockHolder, CommandFailure> {
    let id = &facts.run;
    let begun = Instant::now();
    loop {
        match lease::run_presence(run) {
            RunPresence::Owner(holder) => return Ok(holder),
            RunPresence::Arriving if begun.elapsed() < MAX_ANSWER_WAIT => {
                thread::sleep(ANSWER_POLL_INTERVAL);
            }
            RunPresence::Arriving => {
                let what = format!("whoever runs run `{id}` does not say who it is");
                return Err(CommandFailure::failed(what).with_hint("try again in a moment"));
            }
            RunPresence::Nobody => {
                let what = format!("nobody runs run `{id}`: nothing to {wish}");
                let resume_command = resume_command::recorded_resume_command(facts);
                return Err(CommandFailure::failed(what)
                    .with_hint(format!("`{resume_command}` goes on with it")));
            }
        }
    }
}

/// State of a message.
pub(super) enum MessageAnswer {
    Taken,
    /// Not read yet.
    Waiting,
    Refused(String),
    /// The process that was to read it has ended.
    ReaderGone,
}

/// Waits briefly for the answer to a message to the process with this epoch, or to any process that
/// holds the run.
pub(super) fn wait_for_answer(
    run: &RunDir,
    message: &MessageId,
    epoch: Option<u64>,
) -> MessageAnswer {
    let begun = Instant::now();
    let mut looks = 0_u32;
    let read = || match inbox::message_status(run, message) {
        MessageStatus::Taken => Some(MessageAnswer::Taken),
        MessageStatus::Refused(why) => Some(MessageAnswer::Refused(why)),
        MessageStatus::Waiting => None,
    };
    while begun.elapsed() < MAX_ANSWER_WAIT {
        if let Some(answer) = read() {
            return answer;
        }
        looks += 1;
        if looks.is_multiple_of(POLLS_PER_OWNER_CHECK) && !has_reader(run, epoch) {
            // The process may have read the message just before it ended.
            return read().unwrap_or(MessageAnswer::ReaderGone);
        }
        thread::sleep(ANSWER_POLL_INTERVAL);
    }
    read().unwrap_or(MessageAnswer::Waiting)
}

fn has_reader(run: &RunDir, epoch: Option<u64>) -> bool {
    match lease::run_presence(run) {
        RunPresence::Owner(holder) => epoch.is_none_or(|epoch| holder.epoch == epoch),
        RunPresence::Arriving => true,
        RunPresence::Nobody => false,
    }
}

fn wish_not_taken(id: &RunId, wish: UserRequest, why: &str) -> CommandFailure {
    let what = format!("run `{id}` was not told to {wish}: {why}");
    CommandFailure::failed(what).with_hint(format!("`treebeam status {id}` shows how it stands"))
}

fn describe_taken_wish(
    run: &RunDir,
    facts: &Facts,
    wish: UserRequest,
) -> Result<String, CommandFailure> {
    let id = &facts.run;
    Ok(match wish {
        UserRequest::Pause => format!(
            "run {id} is paused: what is running ends, nothing new starts (`treebeam unpause {id}` goes on)"
        ),
        UserRequest::Unpause => format!("run {id} goes on"),
        UserRequest::Stop => format!(
            "run {id} is stopping: what is running ends first (`{}` goes on from there)",
            resume_command::recorded_resume_command(facts)
        ),
        UserRequest::StopAfterDepth => {
            let depth = treebeam_store::open_to_read(run)?.state.history.stop_after;
            let depth = depth.map_or_else(|| "this depth".to_owned(), |at| format!("depth {at}"));
            format!("run {id} stops after {depth} (`treebeam unpause {id}` takes that back)")
        }
    })
}
