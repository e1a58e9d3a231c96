//! Measures the cost of treebeam as ratios within one run.
//!
//! Absolute times say more about the machine than about the code. It asserts nothing; the counts
//! that must hold are in `crates/store/tests/cost.rs`.
//!
//! # Layout
//! [`run()`] prints the table. [`mod@search`] makes long runs in [`mod@world`], whose cost is the
//! same at every eval; [`mod@resume`] opens them again. [`mod@dry`] compares a dry run with
//! [`mod@script`], the same git commands in a shell; [`mod@eval`] does so with real evals.
//! [`mod@scoring`] compares a score with what data-frame libraries need for the means alone;
//! [`mod@agents`] compares the agent door with a provider's own library; [`mod@ideas`] measures the
//! prompts of idea generators. [`mod@slots`] runs sleeping sweeps in parallel, [`mod@long`] makes
//! thousands of evals, [`mod@web`] measures their pages; [`mod@gauge`] reads clocks and memory, and
//! [`mod@companion`] is a process for repeated work.

#![expect(clippy::print_stdout, reason = "a bench talks to the person who called it")]

mod agents;
mod companion;
mod dry;
mod eval;
mod gauge;
mod ideas;
mod long;
mod resume;
mod scoring;
mod script;
mod search;
mod slots;
mod web;
mod world;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Result of a measurement; any error ends the bench with a message.
type Outcome<T> = Result<T, Box<dyn Error>>;

/// A part of the table: its name, and the function that prints its rows.
type BenchPart = (&'static str, fn() -> Outcome<()>);

const BENCH_PARTS: [BenchPart; 6] = [
    ("events", search::events),
    ("resume", resume::resume),
    ("git", dry::git),
    ("eval", eval::eval),
    ("memory", search::memory),
    ("ideas", ideas::ideas),
];

/// Parts that are printed only on request: they take minutes, or need installed counterparts.
const LONG_PARTS: [BenchPart; 5] = [
    ("agents", agents::agents),
    ("long", long::long),
    ("scoring", scoring::scoring),
    ("slots", slots::slots),
    ("web", web::web),
];

/// Prints the table, or the named parts of it.
///
/// # Errors
/// When something could not be measured.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = arguments.collect();
    if let [flag, task, folder] = &arguments[..]
        && flag == gauge::CHILD_FLAG
    {
        return search::child(task, Path::new(folder));
    }
    if arguments == [gauge::CHILD_FLAG, agents::AGENTS_TASK] {
        return agents::serve();
    }
    if let [flag, task, threads, baseline, candidate] = &arguments[..]
        && [flag, task] == [gauge::CHILD_FLAG, scoring::SCORING_TASK]
    {
        return scoring::serve(threads, [Path::new(baseline), Path::new(candidate)]);
    }
    let known = |name: &String| BENCH_PARTS.iter().chain(&LONG_PARTS).any(|(part, _)| part == name);
    if let Some(unknown) = arguments.iter().find(|name| !known(name)) {
        return Err(format!("there is no part `{unknown}`").into());
    }
    let named = |name: &str| arguments.iter().any(|wanted| wanted == name);
    let usual = BENCH_PARTS.into_iter().filter(|(name, _)| arguments.is_empty() || named(name));
    for (name, part) in usual.chain(LONG_PARTS.into_iter().filter(|(name, _)| named(name))) {
        println!("\n{name}: `cargo bench -p treebeam-benches -- {name}`");
        part()?;
    }
    Ok(())
}

/// Prints one row of the table.
fn row(what: &str, figure: &str) {
    println!("  {what:<96} {figure:>22}");
}

/// Returns the folder of release builds that contains this bench.
fn own_release() -> Outcome<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.parent().and_then(Path::parent).ok_or("no folder of release builds")?.to_owned())
}

/// Builds the release program into this folder of release builds, and returns its path.
fn released(release: &Path) -> Outcome<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = release.parent().ok_or("no target directory")?;
    must(
        Command::new(cargo)
            .args(["build", "--quiet", "--release", "--package", "treebeam", "--target-dir"])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::null()),
    )?;
    Ok(release.join("treebeam"))
}

/// Runs a command that must succeed.
fn must(command: &mut Command) -> Outcome<()> {
    let ended = command.status()?;
    if ended.success() { Ok(()) } else { Err(format!("{command:?}: {ended}").into()) }
}
