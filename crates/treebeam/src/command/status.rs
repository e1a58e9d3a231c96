//! `treebeam status`: how a run stands. Reads only.

use super::Output;
use super::resume::left;
use crate::again;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::way_on;
use crate::wiring::Found;
use serde_json::{Value, json};
use treebeam_core::facts::{Facts, Phase};
use treebeam_core::id::Place;
use treebeam_edge::agent::calls::{Amount, Calls};
use treebeam_edge::store::lease::WaitingQuestion;
use treebeam_edge::store::{self, RunDir, lease};
use treebeam_run::figures;
use treebeam_view::status::Unanswered;
use treebeam_view::{Counts, Outcome};

pub(super) fn run(found: &Found, output: Output) -> Result<Exit, Failure> {
    let opened = store::open_to_read(&found.run)?;
    terminal::notes(&opened.notes);
    let runner = lease::runner(&found.run);
    let runner = runner.as_deref();
    let waiting = runner.map_or_else(Vec::new, |_| waiting(&found.run));
    let unanswered = unanswered(&found.run)?;
    match output {
        Output::Json => terminal::json(&document(&opened.state, unanswered, runner, &waiting))?,
        Output::Text => {
            let way_on = way_on::as_it_is(&opened.state);
            let facts = &opened.state;
            let waits: Vec<String> = waiting.iter().map(in_words).collect();
            terminal::show(&treebeam_view::status(facts, unanswered, runner, &waits, &way_on))?;
            again::tell_of_way_on(facts, |other| way_on::as_it_is_but(facts, other));
        }
    }
    Ok(Exit::Done)
}

/// What the budgets count for calls without an answer: it stands with the calls, not on record.
pub(super) fn unanswered(run: &RunDir) -> Result<Unanswered, Failure> {
    let Amount { cost, tokens } = Calls::Run(run.clone()).unanswered()?;
    Ok(Unanswered { cost, tokens })
}

/// The questions to agents that whoever runs a run cannot ask at the moment.
fn waiting(run: &RunDir) -> Vec<WaitingQuestion> {
    lease::holder(run).map_or_else(Vec::new, |holder| holder.waiting)
}

fn in_words(question: &WaitingQuestion) -> String {
    let WaitingQuestion { role, why, since, until } = question;
    let [since, until] = [since, until].map(|time| time.strftime("%H:%M:%S"));
    format!("{role} since {since} UTC, asked again at {until}: {why}")
}

fn document(
    facts: &Facts,
    unanswered: Unanswered,
    runner: Option<&str>,
    waiting: &[WaitingQuestion],
) -> Value {
    let counts = Counts::overall(facts);
    let counts: serde_json::Map<_, _> = Outcome::ALL
        .iter()
        .map(|outcome| (outcome.word().to_owned(), counts.get(*outcome).into()))
        .collect();
    let frontier = facts.frontier.iter().map(|node| Place::Node(*node).to_string());
    let phase = match facts.phase {
        Phase::Measuring => "measuring",
        Phase::Searching => "searching",
        Phase::Promoting { .. } => "promoting",
        Phase::Stopped { .. } => "stopped",
    };
    // That nobody is at it is not on record, and needs not be: it can be seen.
    let left = (runner.is_none() && facts.stop_reason().is_none()).then(|| left(facts));
    let stop_reason = facts.stop_reason().map(|stop| stop.to_string());
    let spent = facts.spent();
    json!({
        "schema": "treebeam.status/1",
        "run_id": facts.run,
        "phase": phase,
        "stop_reason": stop_reason.as_deref().or(left),
        "running": runner,
        "waiting": waiting,
        "paused_since": facts.history.paused_since.filter(|_| runner.is_some()),
        "stop_after_depth": facts.to_stop_after(),
        "current_depth": facts.depth,
        "max_depth": facts.depths(),
        "frontier": frontier.collect::<Vec<_>>(),
        "nodes": facts.nodes.len(),
        "evals": facts.evals.len(),
        "max_total_idea_evals": facts.reach.max_total_idea_evals,
        "outcomes": counts,
        "llm_usage": figures::usage(&spent),
        "cost_usd": figures::cost(&spent),
        "max_cost_usd": facts.reach.max_cost_usd,
        "max_tokens_total": facts.reach.max_tokens_total,
        "unanswered": { "cost_usd": unanswered.cost.in_dollars(), "tokens": unanswered.tokens },
        "best": Place::Node(facts.best()).to_string(),
        "deferred_cleanup": facts.leftovers.len(),
    })
}
