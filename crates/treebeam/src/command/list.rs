//! `treebeam list`: the runs of a repository, the newest first. Reads only; a run that cannot be opened is listed with what
//! is wrong, and keeps nobody from seeing the others.

use super::Output;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::way_on;
use crate::wiring::Home;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
use treebeam_core::id::{Place, RunId};
use treebeam_edge::store::{self, RunDir, lease};
use treebeam_run::figures;
use treebeam_view::list::{Digest, Listed, Standing};

pub(super) fn run(home: &Home, output: Output) -> Result<Exit, Failure> {
    let mut ids = store::runs(&home.runs_root)?;
    ids.reverse();
    let now = Timestamp::now();
    match output {
        Output::Json => {
            let runs: Vec<_> = ids.iter().map(|id| document(home, id, now)).collect();
            terminal::json(&json!({ "schema": "treebeam.list/1", "runs": runs }))?;
        }
        Output::Text if ids.is_empty() => {
            terminal::show("there is no run in this repository; `treebeam run` starts one\n")?;
        }
        Output::Text => {
            let runs: Vec<_> = ids.iter().map(|id| listed(home, id, now)).collect();
            terminal::show(&treebeam_view::list(&runs))?;
        }
    }
    Ok(Exit::Done)
}

fn listed(home: &Home, id: &RunId, now: Timestamp) -> Listed {
    let run = home.named(id);
    let found = digest(&run, lease::runner(&run));
    Listed { run: id.to_string(), age: age(store::began(&run), now), found }
}

/// A run that lies there, in short, or why that cannot be told.
pub(super) fn digest(run: &RunDir, runner: Option<String>) -> Result<Digest, String> {
    let opened = store::open_to_read(run).map_err(|error| error.to_string())?;
    Ok(Digest::of(&opened.state, runner, &way_on::as_it_is(&opened.state)))
}

/// How long ago a run began.
pub(super) fn age(began: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    // A clock that was set back makes no run that begins later.
    began.map(|began| Duration::try_from(now.duration_since(began)).unwrap_or_default())
}

fn document(home: &Home, id: &RunId, now: Timestamp) -> Value {
    let listed = listed(home, id, now);
    let mut document = json!({
        "run_id": id,
        "state": listed.word(),
        "outcome": listed.outcome(),
        "began_at": store::began(&home.named(id)),
    });
    match listed.found {
        Ok(found) => fill(&mut document, &found),
        Err(why) => document["error"] = json!(why),
    }
    document
}

fn fill(document: &mut Value, found: &Digest) {
    let (running, stop_reason) = match &found.standing {
        Standing::Running { by } | Standing::Paused { by } => (Some(by), None),
        Standing::Stopped(reason) => (None, Some(reason)),
        Standing::Resumable { .. } | Standing::Unmeasured { .. } => (None, None),
    };
    document["running"] = json!(running);
    document["stop_reason"] = json!(stop_reason);
    document["stop_after_depth"] = json!(found.stops_after);
    document["depths_closed"] = json!(found.depths_closed);
    document["max_depth"] = json!(found.max_depth);
    document["nodes"] = json!(found.nodes);
    document["evals"] = json!(found.evals);
    document["best"] = json!(Place::Node(found.best));
    document["best_rank_score"] = json!(found.gain);
    document["llm_calls"] = json!(found.spent.total().calls);
    document["cost_usd"] = json!(figures::cost(&found.spent));
}
