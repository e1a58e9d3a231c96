//! `treebeam list`: lists the runs of a repository, the newest first. Reads only.
//!
//! A run that cannot be opened is listed with its error, and does not hide the others.

use super::OutputFormat;
use crate::failure::{CommandExit, CommandFailure};
use crate::resume_command;
use crate::run_location::RepoHome;
use crate::terminal;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
use treebeam_core::id::{CodePlace, RunId};
use treebeam_run::figures;
use treebeam_store::{RunDir, lease};
use treebeam_view::list::{ListedRun, RunDigest, RunStatus};

pub(super) fn run_list(
    home: &RepoHome,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let mut ids = treebeam_store::list_runs(&home.runs_root)?;
    ids.reverse();
    let now = Timestamp::now();
    match output {
        OutputFormat::Json => {
            let runs: Vec<_> = ids.iter().map(|id| render_run_json(home, id, now)).collect();
            terminal::print_json(&json!({ "schema": "treebeam.list/1", "runs": runs }))?;
        }
        OutputFormat::Text if ids.is_empty() => {
            terminal::print_text(
                "there is no run in this repository; `treebeam run` starts one\n",
            )?;
        }
        OutputFormat::Text => {
            let runs: Vec<_> = ids.iter().map(|id| list_run(home, id, now)).collect();
            terminal::print_text(&treebeam_view::render_run_list(&runs))?;
        }
    }
    Ok(CommandExit::Done)
}

fn list_run(home: &RepoHome, id: &RunId, now: Timestamp) -> ListedRun {
    let run = home.run_dir(id);
    let found = load_run_digest(&run, lease::describe_owner(&run));
    ListedRun {
        run: id.to_string(),
        age: run_age(treebeam_store::run_start_time(&run), now),
        digest: found,
    }
}

/// Loads the digest of a run, or the reason why it cannot be read.
pub(super) fn load_run_digest(run: &RunDir, runner: Option<String>) -> Result<RunDigest, String> {
    let opened = treebeam_store::open_to_read(run).map_err(|error| error.to_string())?;
    Ok(RunDigest::from_facts(
        &opened.state,
        runner,
        &resume_command::recorded_resume_command(&opened.state),
    ))
}

/// Returns how long ago a run began.
pub(super) fn run_age(began: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    // After the clock was set back, a run may begin in the future: its age is zero.
    began.map(|began| Duration::try_from(now.duration_since(began)).unwrap_or_default())
}

fn render_run_json(home: &RepoHome, id: &RunId, now: Timestamp) -> Value {
    let listed = list_run(home, id, now);
    let mut document = json!({
        "run_id": id,
        "state": listed.status_word(),
        "outcome": listed.describe_status(),
        "began_at": treebeam_store::run_start_time(&home.run_dir(id)),
    });
    match listed.digest {
        Ok(found) => add_digest_json(&mut document, &found),
        Err(why) => document["error"] = json!(why),
    }
    document
}

fn add_digest_json(document: &mut Value, found: &RunDigest) {
    let (running, stop_reason) = match &found.status {
        RunStatus::Running { by } | RunStatus::Paused { by } => (Some(by), None),
        RunStatus::Stopped(reason) => (None, Some(reason)),
        RunStatus::Resumable { .. } | RunStatus::Unmeasured { .. } => (None, None),
    };
    document["running"] = json!(running);
    document["stop_reason"] = json!(stop_reason);
    document["stop_after_depth"] = json!(found.stops_after);
    document["depths_closed"] = json!(found.depths_closed);
    document["max_depth"] = json!(found.max_depth);
    document["nodes"] = json!(found.nodes);
    document["evals"] = json!(found.evals);
    document["best"] = json!(CodePlace::Node(found.best));
    document["best_rank_score"] = json!(found.gain);
    document["llm_calls"] = json!(found.spent.total().calls);
    document["cost_usd"] = json!(figures::cost_in_dollars(&found.spent));
}
