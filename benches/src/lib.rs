//! What treebeam costs, as ratios inside one run: absolute times say more about the machine than about the code.
//! It asserts nothing; the counts that must hold are in `crates/edge/tests/cost.rs`.
//!
//! # Layout
//! [`run`] is the table. `search` makes long runs in `world`, a world that costs the same at every eval; `resume` opens
//! them again; `dry` compares a dry run with `script`, the same git commands in a shell; `gauge` reads clocks and
//! memory.

#![expect(clippy::print_stdout, reason = "a bench talks to the person who called it")]

mod dry;
mod gauge;
mod resume;
mod script;
mod search;
mod world;

use std::error::Error;
use std::path::Path;

/// Anything that can go wrong: the bench then ends, and says it.
type Outcome<T> = Result<T, Box<dyn Error>>;

/// A part of the table: its name, and what prints its rows.
type Part = (&'static str, fn() -> Outcome<()>);

const PARTS: [Part; 4] = [
    ("events", search::events),
    ("resume", resume::resume),
    ("git", dry::git),
    ("memory", search::memory),
];

/// Prints the table, or the parts of it that are named.
///
/// # Errors
/// When something could not be measured.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = arguments.collect();
    if let [flag, task, folder] = &arguments[..]
        && flag == gauge::CHILD
    {
        return search::child(task, Path::new(folder));
    }
    let known = |name: &String| PARTS.iter().any(|(part, _)| part == name);
    if let Some(unknown) = arguments.iter().find(|name| !known(name)) {
        return Err(format!("there is no part `{unknown}`").into());
    }
    for (name, part) in PARTS {
        if arguments.is_empty() || arguments.iter().any(|wanted| wanted == name) {
            println!("\n{name}: `cargo bench -p treebeam-benches -- {name}`");
            part()?;
        }
    }
    Ok(())
}

/// One row of the table.
fn row(what: &str, figure: &str) {
    println!("  {what:<96} {figure:>22}");
}
