//! `treebeam idea add`: an idea of the user's, by the run's inbox. What can be known beforehand is said at once; the process
//! that runs the run decides.

use super::steer::{Answer, answer};
use super::{Output, chosen};
use crate::cli::IdeaArgs;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::way_on;
use crate::wiring::{self, Found};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::Path;
use treebeam_core::event::MessageId;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::id::{Place, RunId, Sha256};
use treebeam_core::idea;
use treebeam_core::plan::added::{self, Fit};
use treebeam_edge::input::{self, InputError};
use treebeam_edge::store::inbox::{self, Outgoing};
use treebeam_edge::store::{self, lease};
use treebeam_run::port::OwnIdea;
use treebeam_run::reply;

/// The longest file that is read; how long an idea may be is said elsewhere.
const LIMIT: u64 = 1 << 20;

pub(super) fn add(
    here: &Path,
    found: &Found,
    args: &IdeaArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let given = give(found, read(here, args)?)?;
    match output {
        Output::Json => terminal::json(&given.document())?,
        Output::Text => terminal::say(&given.text()),
    }
    Ok(Exit::Done)
}

/// An idea that a run was given.
pub(super) struct Given {
    run: RunId,
    message: MessageId,
    title: String,
    /// What it became; none yet where it waits for its turn.
    eval: Option<Eval>,
    runner: Option<String>,
    /// What would go on with the run.
    way_on: String,
}

/// Gives a run an idea, and waits a little for what comes of it.
pub(super) fn give(found: &Found, own: OwnIdea) -> Result<Given, Failure> {
    let opened = store::open_to_read(&found.run)?;
    terminal::notes(&opened.notes);
    let id = &opened.state.run;
    if let Fit::Never(why) = added::fit(&opened.state, own.node, &idea::fingerprint(&own.text)) {
        return Err(not_added(id, &why, Failure::usage));
    }
    let (title, sha256) = (idea::title(&own.text), Sha256::of(own.text.as_bytes()));
    let secret = wiring::inbox_secret(&found.run, found.repo.as_ref())?;
    let message = inbox::post(&found.run, &Outgoing::Idea(own), &secret)?;
    let eval = match answer(&found.run, &message, None) {
        Answer::Refused(why) => return Err(not_added(id, &why, Failure::failed)),
        Answer::Waiting | Answer::Left => None,
        Answer::Taken => {
            eval_of(&store::open_to_read(&found.run)?.state, sha256).map(Cow::into_owned)
        }
    };
    let (runner, way_on) = (lease::runner(&found.run), way_on::as_it_is(&opened.state));
    Ok(Given { run: id.clone(), message, title, eval, runner, way_on })
}

fn read(here: &Path, args: &IdeaArgs) -> Result<OwnIdea, Failure> {
    let node = args.node.as_deref().map(chosen::node).transpose()?;
    let name = args.file.display().to_string();
    let text = match name.as_str() {
        "-" => input::standard_input(LIMIT)?,
        name => {
            let text = input::text(&here.join(&args.file), name, LIMIT);
            text.map_err(|error| unread(here, args, name, error))?
        }
    };
    let text = reply::own_idea(&text).map_err(|why| {
        Failure::usage(format!("`{name}` is no idea: {why}"))
            .hint("write `IDEA:`, `RATIONALE:` and `REQUIRED_CHANGES:`, or plain text")
    })?;
    Ok(OwnIdea { node, text })
}

/// A single word is the file. Where it names a run, the file was left out.
fn unread(here: &Path, args: &IdeaArgs, name: &str, error: InputError) -> Failure {
    let is_run = || Found::find(here, Some(name)).is_ok_and(|it| it.run.journal().is_file());
    if args.run.is_some() || !is_run() {
        return error.into();
    }
    Failure::usage(format!("`{name}` is a run, and no idea is named"))
        .hint(format!("`treebeam idea add {name} FILE`, or `-` in place of the file to read it from standard input"))
}

/// The newest eval of an idea of the user's with this text.
fn eval_of(facts: &Facts, sha256: Sha256) -> Option<Cow<'_, Eval>> {
    facts.evals.iter().rev().find(|eval| eval.idea.turn.is_none() && eval.idea.sha256 == sha256)
}

fn not_added(id: &RunId, why: &str, failure: fn(String) -> Failure) -> Failure {
    failure(format!("the idea is not added to run `{id}`: {why}"))
        .hint(format!("`treebeam status {id}` shows its frontier and its budget"))
}

impl Given {
    fn document(&self) -> Value {
        let eval = self.eval.as_ref();
        json!({
            "schema": "treebeam.idea/1",
            "run_id": self.run,
            "message": self.message,
            "title": self.title,
            "outcome": if eval.is_some() { "added" } else { "waiting" },
            "eval": eval.map(|eval| Place::Candidate(eval.id)),
            "node": eval.map(|eval| Place::Node(eval.parent)),
            "running": self.runner,
        })
    }

    /// What came of it, in words.
    pub(super) fn text(&self) -> String {
        let (id, title) = (&self.run, &self.title);
        match (&self.eval, &self.runner) {
            (Some(eval), _) => {
                let (eval, node) = (Place::Candidate(eval.id), Place::Node(eval.parent));
                format!("the idea is {eval} of run {id}, on {node}: {title}")
            }
            (None, Some(by)) => format!("the idea waits for its turn in run {id}: {by}"),
            (None, None) => {
                format!("nobody runs run {id}: the idea waits for `{}`", self.way_on)
            }
        }
    }
}
