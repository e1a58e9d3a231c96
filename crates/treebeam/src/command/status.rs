//! `treebeam status`: shows the state of a run. Reads only.

use super::OutputFormat;
use super::resume::interruption_reason;
use crate::failure::{CommandExit, CommandFailure};
use crate::redo;
use crate::resume_command;
use crate::run_location::RunLocation;
use crate::terminal;
use serde_json::{Value, json};
use treebeam_agent::call_store::{CallAmount, CallStore};
use treebeam_core::facts::{Facts, RunPhase};
use treebeam_core::id::CodePlace;
use treebeam_run::figures;
use treebeam_store::lease::WaitingQuestion;
use treebeam_store::{RunDir, lease};
use treebeam_view::status::UnansweredCalls;
use treebeam_view::{EvalCounts, EvalStatus};

pub(super) fn run_status(
    found: &RunLocation,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let opened = treebeam_store::open_to_read(&found.run)?;
    terminal::print_notes(&opened.notes);
    let runner = lease::describe_owner(&found.run);
    let runner = runner.as_deref();
    let waiting = runner.map_or_else(Vec::new, |_| list_waiting_questions(&found.run));
    let unanswered = load_unanswered(&found.run)?;
    match output {
        OutputFormat::Json => {
            terminal::print_json(&render_status_json(&opened.state, unanswered, runner, &waiting))?;
        }
        OutputFormat::Text => {
            let resume_command = resume_command::recorded_resume_command(&opened.state);
            let facts = &opened.state;
            let waits: Vec<String> = waiting.iter().map(describe_waiting_question).collect();
            terminal::print_text(&treebeam_view::render_status(
                facts,
                unanswered,
                runner,
                &waits,
                &resume_command,
            ))?;
            redo::report_resume_hint(facts, |other| {
                resume_command::recorded_resume_command_with(facts, other)
            });
        }
    }
    Ok(CommandExit::Done)
}

/// Loads the budgets' count for calls without an answer: it is kept with the calls, not on record.
pub(super) fn load_unanswered(run: &RunDir) -> Result<UnansweredCalls, CommandFailure> {
    let CallAmount { cost, tokens } = CallStore::Run(run.clone()).spent_unanswered()?;
    Ok(UnansweredCalls { cost, tokens })
}

/// Returns the agent calls that the run's process has to delay at the moment.
fn list_waiting_questions(run: &RunDir) -> Vec<WaitingQuestion> {
    lease::find_holder(run).map_or_else(Vec::new, |holder| holder.waiting)
}

fn describe_waiting_question(question: &WaitingQuestion) -> String {
    let WaitingQuestion { role, why, since, until } = question;
    let [since, until] = [since, until].map(|time| time.strftime("%H:%M:%S"));
    format!("{role} since {since} UTC, asked again at {until}: {why}")
}

fn render_status_json(
    facts: &Facts,
    unanswered: UnansweredCalls,
    runner: Option<&str>,
    waiting: &[WaitingQuestion],
) -> Value {
    let counts = EvalCounts::overall(facts);
    let counts: serde_json::Map<_, _> = EvalStatus::ALL
        .iter()
        .map(|outcome| (outcome.word().to_owned(), counts.get(*outcome).into()))
        .collect();
    let frontier = facts.frontier.iter().map(|node| CodePlace::Node(*node).to_string());
    let phase = match facts.phase {
        RunPhase::Measuring => "measuring",
        RunPhase::Searching => "searching",
        RunPhase::Promoting { .. } => "promoting",
        RunPhase::Stopped { .. } => "stopped",
    };
    // The absence of a process is visible, and not on record.
    let left =
        (runner.is_none() && facts.stop_reason().is_none()).then(|| interruption_reason(facts));
    let stop_reason = facts.stop_reason().map(|stop| stop.to_string());
    let spent = facts.total_spend();
    json!({
        "schema": "treebeam.status/1",
        "run_id": facts.run,
        "phase": phase,
        "stop_reason": stop_reason.as_deref().or(left),
        "running": runner,
        "waiting": waiting,
        "paused_since": facts.history.paused_since.filter(|_| runner.is_some()),
        "stop_after_depth": facts.pending_stop_after(),
        "current_depth": facts.depth,
        "max_depth": facts.depth_limit(),
        "frontier": frontier.collect::<Vec<_>>(),
        "nodes": facts.nodes.len(),
        "evals": facts.evals.len(),
        "max_total_idea_evals": facts.limits.max_total_idea_evals,
        "outcomes": counts,
        "llm_usage": figures::usage_json(&spent),
        "cost_usd": figures::cost_in_dollars(&spent),
        "max_cost_usd": facts.limits.max_cost_usd,
        "max_tokens_total": facts.limits.max_tokens_total,
        "unanswered": { "cost_usd": unanswered.cost.to_dollars(), "tokens": unanswered.tokens },
        "best": CodePlace::Node(facts.best_node()).to_string(),
        "deferred_cleanup": facts.leftovers.len(),
    })
}
