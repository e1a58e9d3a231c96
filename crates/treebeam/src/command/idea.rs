//! `treebeam idea add`: an idea of the user's, by the run's inbox. What can be known beforehand is said at once; the process
//! that runs the run decides.

use super::steer::{Answer, answer};
use super::{Output, chosen};
use crate::cli::IdeaArgs;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::wiring::Found;
use serde_json::json;
use std::path::Path;
use treebeam_core::event::MessageId;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::id::{Place, RunId, Sha256};
use treebeam_core::idea;
use treebeam_core::plan::added::{self, Fit};
use treebeam_edge::input;
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
    let own = read(here, args)?;
    let opened = store::open_to_read(&found.run)?;
    terminal::notes(&opened.notes);
    let id = &opened.state.run;
    if let Fit::Never(why) = added::fit(&opened.state, own.node, &idea::fingerprint(&own.text)) {
        return Err(not_added(id, &why, Failure::usage));
    }
    let (title, sha256) = (idea::title(&own.text), Sha256::of(own.text.as_bytes()));
    let message = inbox::post(&found.run, &Outgoing::Idea(own))?;
    let eval = match answer(&found.run, &message, None) {
        Answer::Refused(why) => return Err(not_added(id, &why, Failure::failed)),
        Answer::Waiting | Answer::Left => None,
        Answer::Taken => eval_of(&store::open_to_read(&found.run)?.state, sha256).cloned(),
    };
    tell(found, id, &message, &title, eval.as_ref(), output)?;
    Ok(Exit::Done)
}

fn read(here: &Path, args: &IdeaArgs) -> Result<OwnIdea, Failure> {
    let node = args.node.as_deref().map(chosen::node).transpose()?;
    let name = args.file.display().to_string();
    let text = match name.as_str() {
        "-" => input::standard_input(LIMIT)?,
        name => input::text(&here.join(&args.file), name, LIMIT)?,
    };
    let text = reply::own_idea(&text).map_err(|why| {
        Failure::usage(format!("`{name}` is no idea: {why}"))
            .hint("write `IDEA:`, `RATIONALE:` and `REQUIRED_CHANGES:`, or plain text")
    })?;
    Ok(OwnIdea { node, text })
}

/// The newest eval of an idea of the user's with this text.
fn eval_of(facts: &Facts, sha256: Sha256) -> Option<&Eval> {
    facts.evals.iter().rev().find(|eval| eval.idea.turn.is_none() && eval.idea.sha256 == sha256)
}

fn not_added(id: &RunId, why: &str, failure: fn(String) -> Failure) -> Failure {
    failure(format!("the idea is not added to run `{id}`: {why}"))
        .hint(format!("`treebeam status {id}` shows its frontier and its budget"))
}

fn tell(
    found: &Found,
    id: &RunId,
    message: &MessageId,
    title: &str,
    eval: Option<&Eval>,
    output: Output,
) -> Result<(), Failure> {
    let runner = lease::runner(&found.run);
    match output {
        Output::Json => terminal::json(&json!({
            "schema": "treebeam.idea/1",
            "run_id": id,
            "message": message,
            "title": title,
            "outcome": if eval.is_some() { "added" } else { "waiting" },
            "eval": eval.map(|eval| Place::Candidate(eval.id)),
            "node": eval.map(|eval| Place::Node(eval.parent)),
            "running": runner,
        })),
        Output::Text => {
            let waits = match runner {
                Some(by) => format!("the idea waits for its turn in run {id}: {by}"),
                None => format!("nobody runs run {id}: the idea waits for `treebeam resume {id}`"),
            };
            terminal::say(&eval.map_or(waits, |eval| {
                let (eval, node) = (Place::Candidate(eval.id), Place::Node(eval.parent));
                format!("the idea is {eval} of run {id}, on {node}: {title}")
            }));
            Ok(())
        }
    }
}
