//! `treebeam clean`: removes what runs have left behind, and more on request, after saying what.
//!
//! `scope` says which runs it is about, `plan` what is going to be removed, `worked` what keeps somebody's work from that,
//! `fate` where a worktree is that git misses, `act` does it, and an `item` is one thing of it.

mod act;
pub(super) mod fate;
mod item;
mod plan;
mod scope;
mod worked;

use super::Output;
use crate::cli::CleanArgs;
use crate::failure::{Exit, Failure};
use crate::terminal;
use item::{Item, Outcome};
use plan::Plan;
use scope::Scope;
use serde_json::json;
use std::path::Path;

pub(super) fn run(here: &Path, args: &CleanArgs, output: Output) -> Result<Exit, Failure> {
    let scope = Scope::find(here, args)?;
    let mut plan = Plan::make(&scope, args)?;
    let asks = plan.on_request > 0;
    if args.dry_run || asks {
        announce(&plan, args, output);
    }
    if args.dry_run {
        return end(&plan.items().collect::<Vec<_>>(), output, Exit::Done);
    }
    if asks && !args.yes {
        if output == Output::Json || !terminal::confirm("remove all of this?") {
            let exit = end(&plan.items().collect::<Vec<_>>(), output, Exit::Usage)?;
            terminal::say("nothing was removed");
            terminal::hint("`--yes` removes it without asking");
            return Ok(exit);
        }
        plan = unchanged(&plan, Plan::make(&scope, args)?)?;
    }
    let mut items = Vec::new();
    for part in plan.parts {
        let done = act::carry_out(part, &scope)?;
        if output == Output::Text {
            say(&done);
        }
        items.extend(done);
    }
    if output == Output::Text {
        // What was announced was said already.
        say(plan.staying.iter().filter(|_| !asks));
    }
    items.extend(plan.staying);
    conclude(&items, output)
}

/// An answer may take its time: what goes then is what was said to go.
fn unchanged(said: &Plan, now: Plan) -> Result<Plan, Failure> {
    if said.items().map(Item::name).eq(now.items().map(Item::name)) {
        return Ok(now);
    }
    Err(Failure::failed("what there is to remove has changed since you were asked")
        .hint("nothing was removed: try again"))
}

/// Says what goes, and what that means.
fn announce(plan: &Plan, args: &CleanArgs, output: Output) {
    if output == Output::Json {
        return;
    }
    say(plan.items());
    let going = plan.items().filter(|item| item.outcome == Outcome::Planned && item.is_stored());
    let going: Vec<_> = going.collect();
    let bytes = going.iter().map(|item| item.bytes()).max().unwrap_or_default();
    let all = going.iter().map(|item| item.bytes()).sum::<u64>();
    // A run's directory holds its worktrees: they are not counted twice.
    let bytes = if args.delete { bytes } else { all };
    let size = if bytes == 0 { String::new() } else { format!(", {}", item::size(bytes)) };
    terminal::say(&format!("to remove in all: {}{size}", things(going.len())));
    if args.refs && plan.on_request > 0 {
        terminal::note("what only these refs lead to, `git gc` may remove from the repository");
    }
    if args.delete && plan.on_request > 0 {
        terminal::note("nothing of the run stays: no record, no results, and in time no commits");
    }
}

fn say<'a>(items: impl IntoIterator<Item = &'a Item>) {
    for item in items {
        terminal::say(&item.line());
    }
}

fn things(count: usize) -> String {
    if count == 1 { "1 thing".to_owned() } else { format!("{count} things") }
}

fn conclude(items: &[Item], output: Output) -> Result<Exit, Failure> {
    let left = items.iter().filter(|item| item.is_left()).count();
    if output == Output::Text {
        let removed = items.iter().filter(|item| item.outcome == Outcome::Removed);
        let removed = removed.filter(|item| item.is_stored()).count();
        terminal::say(&match (removed, left) {
            (0, 0) => "there is nothing to remove".to_owned(),
            (removed, 0) => format!("removed {}", things(removed)),
            (removed, left) => format!("removed {}; {} left", things(removed), things(left)),
        });
    }
    end(&items.iter().collect::<Vec<_>>(), output, if left > 0 { Exit::Failed } else { Exit::Done })
}

fn end(items: &[&Item], output: Output, exit: Exit) -> Result<Exit, Failure> {
    if output == Output::Json {
        terminal::json(&json!({ "schema": "treebeam.clean/1", "items": items }))?;
    }
    Ok(exit)
}
