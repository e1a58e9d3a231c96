//! `treebeam clean`: removes leftovers of runs, and more on request, after announcing it.
//!
//! # Layout
//! [`mod@scope`] resolves the runs, [`mod@plan`] what is to be removed, [`mod@user_work`] protects
//! a user's work from that, [`mod@orphan_state`] finds worktrees that git misses, [`mod@execute`]
//! removes, and an [`mod@item`] is one thing of it.

mod execute;
mod item;
pub(super) mod orphan_state;
mod plan;
mod scope;
mod user_work;

use super::OutputFormat;
use crate::cli::CleanArgs;
use crate::failure::{CommandExit, CommandFailure};
use crate::terminal;
use item::{CleanItem, CleanOutcome};
use plan::CleanPlan;
use scope::CleanScope;
use serde_json::json;
use std::path::Path;

pub(super) fn run_clean(
    here: &Path,
    args: &CleanArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let scope = CleanScope::find(here, args)?;
    let mut plan = CleanPlan::build(&scope, args)?;
    let asks = plan.on_request > 0;
    if args.dry_run || asks {
        announce_plan(&plan, args, output);
    }
    if args.dry_run {
        return write_items_json(&plan.items().collect::<Vec<_>>(), output, CommandExit::Done);
    }
    if asks && !args.yes {
        if output == OutputFormat::Json || !terminal::confirm("remove all of this?") {
            let exit =
                write_items_json(&plan.items().collect::<Vec<_>>(), output, CommandExit::Usage)?;
            terminal::print_line("nothing was removed");
            terminal::print_hint("`--yes` removes it without asking");
            return Ok(exit);
        }
        plan = must_be_unchanged(&plan, CleanPlan::build(&scope, args)?)?;
    }
    let mut items = Vec::new();
    for part in plan.parts {
        let done = execute::execute_task(part, &scope)?;
        if output == OutputFormat::Text {
            print_items(done.iter().filter(|item| !item.is_not_removed()));
        }
        items.extend(done);
    }
    if output == OutputFormat::Text {
        // All together, so that a reason which they share is given once.
        // Announced items were printed already.
        let failed = items.iter().filter(|item| item.is_not_removed());
        print_items(failed.chain(plan.staying.iter().filter(|_| !asks)));
    }
    items.extend(plan.staying);
    finish_clean(&items, output)
}

/// Refuses a plan that changed while the user was asked: only announced items are removed.
fn must_be_unchanged(announced: &CleanPlan, now: CleanPlan) -> Result<CleanPlan, CommandFailure> {
    if announced
        .items()
        .map(CleanItem::name_and_outcome)
        .eq(now.items().map(CleanItem::name_and_outcome))
    {
        return Ok(now);
    }
    Err(CommandFailure::failed("what there is to remove has changed since you were asked")
        .with_hint("nothing was removed: try again"))
}

/// Prints the items to remove, and the consequences.
fn announce_plan(plan: &CleanPlan, args: &CleanArgs, output: OutputFormat) {
    if output == OutputFormat::Json {
        return;
    }
    print_items(plan.items());
    let going =
        plan.items().filter(|item| item.outcome == CleanOutcome::Planned && item.is_stored());
    let going: Vec<_> = going.collect();
    let bytes = going.iter().map(|item| item.bytes()).max().unwrap_or_default();
    let all = going.iter().map(|item| item.bytes()).sum::<u64>();
    // A run's directory holds its worktrees: they are not counted twice.
    let bytes = if args.delete { bytes } else { all };
    let size = if bytes == 0 { String::new() } else { format!(", {}", item::format_bytes(bytes)) };
    terminal::print_line(&format!("to remove in all: {}{size}", format_count(going.len())));
    if args.refs && plan.on_request > 0 {
        terminal::print_note(
            "what only these refs lead to, `git gc` may remove from the repository",
        );
    }
    if args.delete && plan.on_request > 0 {
        terminal::print_note(
            "nothing of the run stays: no record, no results, and in time no commits",
        );
    }
}

fn print_items<'a>(items: impl IntoIterator<Item = &'a CleanItem>) {
    for line in item::render_lines(items) {
        terminal::print_line(&line);
    }
}

fn format_count(count: usize) -> String {
    if count == 1 { "1 thing".to_owned() } else { format!("{count} things") }
}

fn finish_clean(items: &[CleanItem], output: OutputFormat) -> Result<CommandExit, CommandFailure> {
    let left = items.iter().filter(|item| item.is_not_removed()).count();
    if output == OutputFormat::Text {
        let removed = items.iter().filter(|item| item.outcome == CleanOutcome::Removed);
        let removed = removed.filter(|item| item.is_stored()).count();
        terminal::print_line(&match (removed, left) {
            (0, 0) => "there is nothing to remove".to_owned(),
            (removed, 0) => format!("removed {}", format_count(removed)),
            (removed, left) => {
                format!("removed {}; {} left", format_count(removed), format_count(left))
            }
        });
    }
    write_items_json(
        &items.iter().collect::<Vec<_>>(),
        output,
        if left > 0 { CommandExit::Failed } else { CommandExit::Done },
    )
}

fn write_items_json(
    items: &[&CleanItem],
    output: OutputFormat,
    exit: CommandExit,
) -> Result<CommandExit, CommandFailure> {
    if output == OutputFormat::Json {
        terminal::print_json(&json!({ "schema": "treebeam.clean/1", "items": items }))?;
    }
    Ok(exit)
}
