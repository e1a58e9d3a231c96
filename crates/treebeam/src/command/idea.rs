//! `treebeam idea add`: posts a user's idea to the run's inbox.
//!
//! Errors that are known beforehand are reported at once; the process that holds the run decides.

use super::steer::{MessageAnswer, wait_for_answer};
use super::{OutputFormat, chosen_place};
use crate::cli::IdeaArgs;
use crate::failure::{CommandExit, CommandFailure};
use crate::resume_command;
use crate::run_location::{self, RunLocation};
use crate::terminal;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::Path;
use treebeam_core::event::MessageId;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::id::{CodePlace, RunId, Sha256};
use treebeam_core::idea;
use treebeam_core::plan::user_idea::{self, IdeaFit};
use treebeam_run::port::UserIdea;
use treebeam_run::reply;
use treebeam_store::inbox::{self, OutgoingMessage};
use treebeam_store::input::{self, InputError};
use treebeam_store::lease;

/// Maximum size of an idea file; the length of an idea is checked elsewhere.
const MAX_IDEA_FILE_BYTES: u64 = 1 << 20;

pub(super) fn run_idea_add(
    here: &Path,
    found: &RunLocation,
    args: &IdeaArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let given = post_idea(found, read_idea(here, args)?)?;
    match output {
        OutputFormat::Json => terminal::print_json(&given.render_json())?,
        OutputFormat::Text => terminal::print_line(&given.render_text()),
    }
    Ok(CommandExit::Done)
}

/// An idea that was posted to a run, with its state.
pub(super) struct PostedIdea {
    run: RunId,
    message: MessageId,
    title: String,
    /// Eval of the idea; `None` while the idea waits.
    eval: Option<Eval>,
    runner: Option<String>,
    /// Command that resumes the run.
    resume_command: String,
}

/// Posts an idea to a run, and waits briefly for the answer.
pub(super) fn post_idea(found: &RunLocation, own: UserIdea) -> Result<PostedIdea, CommandFailure> {
    let opened = treebeam_store::open_to_read(&found.run)?;
    terminal::print_notes(&opened.notes);
    let id = &opened.state.run;
    if let IdeaFit::Never(why) =
        user_idea::fit_user_idea(&opened.state, own.node, &idea::idea_fingerprint(&own.text))
    {
        return Err(idea_not_added(id, &why, CommandFailure::usage));
    }
    let (title, sha256) = (idea::idea_title(&own.text), Sha256::hash_bytes(own.text.as_bytes()));
    let secret = run_location::inbox_secret(&found.run, found.repo.as_ref())?;
    let message = inbox::post_message(&found.run, &OutgoingMessage::Idea(own), &secret)?;
    let eval = match wait_for_answer(&found.run, &message, None) {
        MessageAnswer::Refused(why) => {
            return Err(idea_not_added(id, &why, CommandFailure::failed));
        }
        MessageAnswer::Waiting | MessageAnswer::ReaderGone => None,
        MessageAnswer::Taken => {
            find_eval_of_idea(&treebeam_store::open_to_read(&found.run)?.state, sha256)
                .map(Cow::into_owned)
        }
    };
    let (runner, resume_command) =
        (lease::describe_owner(&found.run), resume_command::recorded_resume_command(&opened.state));
    Ok(PostedIdea { run: id.clone(), message, title, eval, runner, resume_command })
}

fn read_idea(here: &Path, args: &IdeaArgs) -> Result<UserIdea, CommandFailure> {
    let node = args.node.as_deref().map(chosen_place::parse_node_id).transpose()?;
    let name = args.file.display().to_string();
    let text = match name.as_str() {
        "-" => input::read_standard_input(MAX_IDEA_FILE_BYTES)?,
        name => {
            let text = input::read_text(&here.join(&args.file), name, MAX_IDEA_FILE_BYTES);
            text.map_err(|error| explain_unreadable_idea(here, args, name, error))?
        }
    };
    let text = reply::parse_user_idea(&text).map_err(|why| {
        CommandFailure::usage(format!("`{name}` is no idea: {why}"))
            .with_hint("write `IDEA:`, `RATIONALE:` and `REQUIRED_CHANGES:`, or plain text")
    })?;
    Ok(UserIdea { node, text })
}

/// Explains why the idea file cannot be read. A single argument is the file: if it names a run, the
/// file was left out.
fn explain_unreadable_idea(
    here: &Path,
    args: &IdeaArgs,
    name: &str,
    error: InputError,
) -> CommandFailure {
    let is_run =
        || RunLocation::find(here, Some(name)).is_ok_and(|it| it.run.journal_path().is_file());
    if args.run.is_some() || !is_run() {
        return error.into();
    }
    CommandFailure::usage(format!("`{name}` is a run, and no idea is named"))
        .with_hint(format!("`treebeam idea add {name} FILE`, or `-` in place of the file to read it from standard input"))
}

/// Returns the newest eval of a user's idea with this text.
fn find_eval_of_idea(facts: &Facts, sha256: Sha256) -> Option<Cow<'_, Eval>> {
    facts.evals.iter().rev().find(|eval| eval.idea.turn.is_none() && eval.idea.sha256 == sha256)
}

fn idea_not_added(id: &RunId, why: &str, failure: fn(String) -> CommandFailure) -> CommandFailure {
    failure(format!("the idea is not added to run `{id}`: {why}"))
        .with_hint(format!("`treebeam status {id}` shows its frontier and its budget"))
}

impl PostedIdea {
    fn render_json(&self) -> Value {
        let eval = self.eval.as_ref();
        json!({
            "schema": "treebeam.idea/1",
            "run_id": self.run,
            "message": self.message,
            "title": self.title,
            "outcome": if eval.is_some() { "added" } else { "waiting" },
            "eval": eval.map(|eval| CodePlace::Candidate(eval.id)),
            "node": eval.map(|eval| CodePlace::Node(eval.parent)),
            "running": self.runner,
        })
    }

    /// Describes the state of the idea as text.
    pub(super) fn render_text(&self) -> String {
        let (id, title) = (&self.run, &self.title);
        match (&self.eval, &self.runner) {
            (Some(eval), _) => {
                let (eval, node) = (CodePlace::Candidate(eval.id), CodePlace::Node(eval.parent));
                format!("the idea is {eval} of run {id}, on {node}: {title}")
            }
            (None, Some(by)) => format!("the idea waits for its turn in run {id}: {by}"),
            (None, None) => {
                format!("nobody runs run {id}: the idea waits for `{}`", self.resume_command)
            }
        }
    }
}
