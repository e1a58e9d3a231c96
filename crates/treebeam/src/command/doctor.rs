//! `treebeam doctor`: whether everything is there that a run needs, and what to do where it is not. It changes nothing.

mod filters;
mod leftovers;
mod protect;
mod sweep;

use super::Output;
use crate::cli::ConfigFlag;
use crate::config::{self, Config};
use crate::crew::{self, Seat};
use crate::dotenv::{Dotenv, Found};
use crate::estimate::Estimate;
use crate::failure::{Exit, Failure};
use crate::preflight;
use crate::terminal;
use crate::wiring;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_edge::agent::cli::version::{self, Found as Version};
use treebeam_edge::agent::settings::{Line, Settings};
use treebeam_edge::git::{self, UserRepo};
use treebeam_edge::store::probe;

/// Below this a run is likely to fail, and below that it is sure to.
const LITTLE: u64 = 1 << 30;
const TOO_LITTLE: u64 = 100 << 20;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    subject: &'static str,
    outcome: Outcome,
    says: String,
    /// What to do about it.
    todo: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Ok,
    Warning,
    Problem,
}

impl Check {
    fn ok(subject: &'static str, says: impl Into<String>) -> Self {
        Self { subject, outcome: Outcome::Ok, says: says.into(), todo: None }
    }

    fn warning(subject: &'static str, says: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { subject, outcome: Outcome::Warning, says: says.into(), todo: Some(todo.into()) }
    }

    fn problem(subject: &'static str, failure: &Failure) -> Self {
        let says = failure.chain().collect::<Vec<_>>().join(": ");
        Self { subject, outcome: Outcome::Problem, says, todo: failure.advice().map(str::to_owned) }
    }
}

pub(super) fn run(here: &Path, args: &ConfigFlag, output: Output) -> Result<Exit, Failure> {
    let checks = checks(here, args);
    match output {
        Output::Json => {
            terminal::json(&json!({ "schema": "treebeam.doctor/1", "checks": checks }))?;
        }
        Output::Text => terminal::show(&text(&checks))?,
    }
    let problem = checks.iter().any(|check| check.outcome == Outcome::Problem);
    Ok(if problem { Exit::Environment } else { Exit::Done })
}

fn checks(here: &Path, args: &ConfigFlag) -> Vec<Check> {
    let mut checks = Vec::new();
    let repo = git::open(here).map_err(Failure::from);
    let config = config(here, args);
    match &repo {
        Ok(repo) => checks.extend(about_repository(repo, config.as_ref().ok())),
        Err(failure) => checks.push(Check::problem("repository", failure)),
    }
    match &config {
        Ok(config) => checks.extend(about_config(here, config)),
        Err(failure) => checks.push(Check::problem("configuration", failure)),
    }
    if let (Ok(repo), Ok(config)) = (&repo, &config) {
        checks.extend(
            protect::checks(repo, config)
                .unwrap_or_else(|failure| vec![Check::problem("protect", &failure)]),
        );
        match config.meaning(Meaning::default()) {
            Ok(meaning) => {
                checks.extend(primary(config));
                checks.extend(sweep::checks(repo, &meaning));
            }
            Err(wrong) => checks.push(Check::problem("sweep", &wrong.into())),
        }
        let runs_root = wiring::runs_root(repo, config);
        checks.extend(about_disk(&runs_root));
        checks.extend(in_linked_worktree(repo, &runs_root));
        checks.extend(leftovers::checks(repo, &runs_root));
    }
    checks
}

/// The configuration, if all that it says is good.
fn config(here: &Path, args: &ConfigFlag) -> Result<Config, Failure> {
    let config = Config::load(here, args.config.as_deref())?;
    config.values()?;
    config.prompts(&config::file::top_or(here))?;
    Ok(config)
}

fn about_repository(repo: &UserRepo, config: Option<&Config>) -> Vec<Check> {
    let fine = |subject, answer: Result<Check, Failure>| {
        answer.unwrap_or_else(|failure| Check::problem(subject, &failure))
    };
    let git = || Ok(Check::ok("git", repo.git_version()?));
    let (top, head) = (repo.toplevel.display(), repo.head.as_str());
    let short = head.get(..10).unwrap_or(head);
    let mut checks = vec![
        fine("git", git()),
        Check::ok("repository", format!("`{top}` at commit {short}")),
        fine("working tree", clean(repo, config)),
        identity(repo),
    ];
    checks.extend(
        filters::checks(repo).unwrap_or_else(|failure| vec![Check::problem("filters", &failure)]),
    );
    checks.push(if repo.has_submodules {
        let says = "there are submodules: they stay empty in the run's worktrees";
        Check::warning("submodules", says, "make sure that the sweep does without them")
    } else {
        Check::ok("submodules", "none")
    });
    checks
}

fn clean(repo: &UserRepo, config: Option<&Config>) -> Result<Check, Failure> {
    let but = config.map(Config::not_committed).unwrap_or_default();
    let dirty = repo.dirty_but_for(&but)?;
    let Some(first) = dirty.first() else { return Ok(Check::ok("working tree", "clean")) };
    let first: String = first.chars().flat_map(char::escape_debug).collect();
    let more =
        if dirty.len() > 1 { format!(" and {} more", dirty.len() - 1) } else { String::new() };
    let what = format!("it is not clean: `{first}`{more}");
    Err(Failure::environment(what)
        .hint("commit, stash or ignore these files: a run starts from a commit"))
}

fn identity(repo: &UserRepo) -> Check {
    let says = format!("commits are made by `{} <{}>`", repo.identity.name, repo.identity.email);
    if repo.identity.email == "treebeam@localhost" {
        let todo =
            "set `git config user.name` and `git config user.email`, if they are to be yours";
        return Check::warning("identity", says, todo);
    }
    Check::ok("identity", says)
}

fn about_config(here: &Path, config: &Config) -> Vec<Check> {
    let file = config.file().map(|file| format!("`{}` is good", file.name()));
    let mut checks = vec![match file {
        Some(says) => Check::ok("configuration", says),
        None => Check::warning(
            "configuration",
            "there is no `treebeam.toml`: every value is built in",
            "write one with `treebeam init`",
        ),
    }];
    let dotenv = Dotenv::load(here, config);
    if let Ok(dotenv) = &dotenv {
        checks.extend(agents(here, config, dotenv));
    }
    checks.push(match dotenv {
        Err(failure) => Check::problem("variables", &failure),
        Ok(dotenv) => match dotenv.found().find(Found::is_setting) {
            None => Check::ok("variables", format!("{} in `.env` files", dotenv.found().count())),
            Some(found) => Check::warning(
                "variables",
                format!("`{}` in `{}` is not read as a setting", found.name, found.file),
                "put it into `treebeam.toml`, or export it",
            ),
        },
    });
    checks
}

/// A direction that is none makes another column of the primary, which shows only when the root is measured.
fn primary(config: &Config) -> Option<Check> {
    let (column, no_direction) = config.odd_primary()?;
    let [column, word] = [column, no_direction].map(|text| text.escape_debug().to_string());
    let says = format!("`{column}` is the name of a column as a whole: `{word}` is no direction");
    Some(Check::warning("primary", says, "write `:higher` or `:lower`, if a direction is meant"))
}

/// The part of the agents that costs nothing to look at.
fn agents(here: &Path, config: &Config, dotenv: &Dotenv) -> Vec<Check> {
    let seats = crew::seats(config, dotenv);
    let mut checks: Vec<Check> = Vec::new();
    let mut looked_at = BTreeSet::new();
    for seat in &seats {
        match seat.settings() {
            Err(failure) => checks.push(Check::problem("agents", &failure)),
            Ok(settings @ Settings { line: Line::Cli(_), .. }) => {
                checks.extend(program(here, &settings, &mut looked_at));
            }
            Ok(_) => {
                let missing = seat.must_be_installed().err();
                checks.extend(missing.map(|failure| Check::problem("agents", &failure)));
            }
        }
    }
    checks.dedup_by(|one, other| one.says == other.says);
    if config.reach(&Reach::default()).max_cost_usd.is_some() {
        checks.extend(priceless(config, &seats));
    }
    if checks.is_empty() {
        let roles: Vec<&str> = seats.iter().map(|seat| seat.role.name()).collect();
        checks.push(if roles.is_empty() {
            Check::warning(
                "agents",
                "none is set: only dry runs are possible",
                "say in `[agents]` who has the ideas and who writes the code",
            )
        } else {
            Check::ok("agents", roles.join(", "))
        });
    }
    if !seats.is_empty() {
        let reach = config.reach(&Reach::default());
        checks.push(match config.meaning(Meaning::default()) {
            Ok(meaning) => cost(&preflight::estimate(config, &meaning, &reach, &seats)),
            Err(wrong) => Check::problem("cost", &wrong.into()),
        });
    }
    checks
}

/// An agent whose price nobody knows, where a budget of money is set.
fn priceless(config: &Config, seats: &[Seat<'_>]) -> Option<Check> {
    let prices = config.prices();
    // What a program takes is nobody's to know: the estimate says what bounds it.
    let has_price = |seat: &&Seat<'_>| match seat.agent.line {
        config::agents::Line::Tuner | config::agents::Line::Command(_) => false,
        config::agents::Line::Model(_) | config::agents::Line::Cli(_) => true,
    };
    let mut seats = seats.iter().filter(has_price);
    let seat = seats.find(|seat| prices.of(&seat.model()).is_none())?;
    let chooses = matches!(&seat.agent.line, config::agents::Line::Cli(cli) if cli.model.is_none());
    if chooses {
        let says = format!(
            "`{}` chooses its model itself: `max_cost_usd` counts only what it says that a call has cost",
            seat.provider()
        );
        return Some(Check::warning("agents", says, "set `model`, or `max_tokens_total`"));
    }
    let says =
        format!("the price of `{}` is not known: `max_cost_usd` does not count it", seat.model());
    Some(Check::warning("agents", says, "add it to `prices`, or set `max_tokens_total`"))
}

/// What a run may cost.
fn cost(estimate: &Estimate) -> Check {
    let says = format!("a run as configured: {estimate}");
    match estimate.advice() {
        Some(todo) => Check::warning("cost", says, todo),
        None => Check::ok("cost", says),
    }
}

/// Looks whether the program of a coding agent is there, and is what is expected. Each is asked
/// once.
fn program(
    here: &Path,
    settings: &Settings,
    looked_at: &mut BTreeSet<Vec<String>>,
) -> Option<Check> {
    let Line::Cli(cli) = &settings.line else { return None };
    if !looked_at.insert(cli.command.clone()) {
        return None;
    }
    let (name, (major, minor)) = (cli.tool.provider(), cli.tool.oldest());
    match version::look(cli, here) {
        Version::Good(_) => None,
        Version::Old(found) => Some(Check::warning(
            "agents",
            format!("`{name}` is {found}, older than what treebeam was tried with"),
            format!("update it to {major}.{minor} or newer, and see `treebeam agents check`"),
        )),
        Version::Unknown(why) => Some(Check::warning(
            "agents",
            format!("the version of `{name}` is not known: {why}"),
            "see whether `treebeam agents check` gets an answer",
        )),
        Version::Missing(why) => {
            let program = cli.command.first().map_or("", String::as_str);
            let hint = format!(
                "install `{program}` {major}.{minor} or newer, or name it in `command = [\"…\"]`"
            );
            let failure = Failure::environment(format!("`{name}` is not there: {why}")).hint(hint);
            Some(Check::problem("agents", &failure))
        }
    }
}

fn about_disk(runs_root: &Path) -> Vec<Check> {
    let folder = probe::nearest(runs_root);
    let shown = runs_root.display();
    let runs = match probe::try_folder(&folder) {
        Ok(()) => Check::ok("runs", format!("`{shown}` can be written, locked and renamed in")),
        Err(error) => {
            let what = format!("`{}`: {error}", folder.display());
            let todo = "set `runs_root` to a folder on a local disk that you may write to";
            Check::problem("runs", &Failure::environment(what).hint(todo))
        }
    };
    vec![runs, space(probe::free_space(&folder))]
}

/// Runs below a worktree that is not the repository's first: they go with it.
fn in_linked_worktree(repo: &UserRepo, runs_root: &Path) -> Option<Check> {
    let git = fs::read_to_string(repo.toplevel.join(".git")).ok()?;
    let is_linked = git.replace('\\', "/").contains("/worktrees/");
    let says =
        "this is a linked worktree: `git worktree remove` removes its runs too, without a word";
    let todo = "set `runs_root` to a folder outside of it, or begin runs in the first checkout";
    (is_linked && runs_root.starts_with(&repo.toplevel)).then(|| Check::warning("runs", says, todo))
}

fn space(free: Option<u64>) -> Check {
    let Some(free) = free else { return Check::ok("disk", "free space is not known here") };
    let says = format!("{} MiB are free", free >> 20);
    let todo = "make room: each worktree holds all files of the repository";
    match free {
        LITTLE.. => Check::ok("disk", says),
        TOO_LITTLE.. => Check::warning("disk", says, todo),
        0.. => Check::problem("disk", &Failure::environment(says).hint(todo)),
    }
}

fn text(checks: &[Check]) -> String {
    let mut text = String::new();
    for Check { subject, outcome, says, todo } in checks {
        let outcome = match outcome {
            Outcome::Ok => "ok",
            Outcome::Warning => "warning",
            Outcome::Problem => "problem",
        };
        text.push_str(&format!("{outcome:7}  {subject:13}  {says}\n"));
        if let Some(todo) = todo {
            text.push_str(&format!("{:24}do: {todo}\n", ""));
        }
    }
    text
}
