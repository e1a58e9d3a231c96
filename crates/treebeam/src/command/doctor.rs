//! `treebeam doctor`: checks everything that a run needs, with advice for each problem.
//!
//! It changes nothing.

mod filters;
mod leftovers;
mod protect;
mod sweep;

use super::OutputFormat;
use crate::cli::ConfigFlag;
use crate::config::{self, Config};
use crate::dotenv::{Dotenv, DotenvVariable};
use crate::estimate::CostEstimate;
use crate::failure::{CommandExit, CommandFailure};
use crate::preflight;
use crate::role_agents::{self, RoleAgent};
use crate::run_location;
use crate::terminal;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use treebeam_agent::cli::version::{self, CliVersion};
use treebeam_agent::settings::{AgentKind, AgentSettings};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_git::UserRepo;
use treebeam_store::probe;

/// Free disk space below which a run is likely to fail; below [`MIN_DISK_BYTES`] it is sure to.
const LOW_DISK_BYTES: u64 = 1 << 30;
const MIN_DISK_BYTES: u64 = 100 << 20;

/// Result of one check.
#[derive(Debug, Serialize)]
struct DoctorCheck {
    subject: &'static str,
    outcome: DoctorOutcome,
    says: String,
    /// Advice for a problem.
    todo: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum DoctorOutcome {
    Ok,
    Warning,
    Problem,
}

impl DoctorCheck {
    fn ok(subject: &'static str, says: impl Into<String>) -> Self {
        Self { subject, outcome: DoctorOutcome::Ok, says: says.into(), todo: None }
    }

    fn warning(subject: &'static str, says: impl Into<String>, todo: impl Into<String>) -> Self {
        Self {
            subject,
            outcome: DoctorOutcome::Warning,
            says: says.into(),
            todo: Some(todo.into()),
        }
    }

    fn problem(subject: &'static str, failure: &CommandFailure) -> Self {
        let says = failure.chain().collect::<Vec<_>>().join(": ");
        Self {
            subject,
            outcome: DoctorOutcome::Problem,
            says,
            todo: failure.advice().map(str::to_owned),
        }
    }
}

pub(super) fn run_doctor(
    here: &Path,
    args: &ConfigFlag,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let checks = run_checks(here, args);
    match output {
        OutputFormat::Json => {
            terminal::print_json(&json!({ "schema": "treebeam.doctor/1", "checks": checks }))?;
        }
        OutputFormat::Text => terminal::print_text(&render_checks(&checks))?,
    }
    let problem = checks.iter().any(|check| check.outcome == DoctorOutcome::Problem);
    Ok(if problem { CommandExit::Environment } else { CommandExit::Done })
}

fn run_checks(here: &Path, args: &ConfigFlag) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    let repo = treebeam_git::open_repo(here).map_err(CommandFailure::from);
    let config = load_valid_config(here, args);
    match &repo {
        Ok(repo) => checks.extend(check_repository(repo, config.as_ref().ok())),
        Err(failure) => checks.push(DoctorCheck::problem("repository", failure)),
    }
    match &config {
        Ok(config) => checks.extend(check_config(here, config)),
        Err(failure) => checks.push(DoctorCheck::problem("configuration", failure)),
    }
    if let (Ok(repo), Ok(config)) = (&repo, &config) {
        checks.extend(
            protect::check_protect(repo, config)
                .unwrap_or_else(|failure| vec![DoctorCheck::problem("protect", &failure)]),
        );
        match config.fixed_settings(FixedSettings::default()) {
            Ok(settings) => {
                checks.extend(check_primary(config));
                checks.extend(sweep::check_sweep(repo, &settings));
            }
            Err(wrong) => checks.push(DoctorCheck::problem("sweep", &wrong.into())),
        }
        let runs_root = run_location::find_runs_root(repo, config);
        checks.extend(check_disk(&runs_root));
        checks.extend(check_linked_worktree(repo, &runs_root));
        checks.extend(leftovers::check_leftovers(repo, &runs_root));
    }
    checks
}

/// Loads the configuration, and checks all its values.
fn load_valid_config(here: &Path, args: &ConfigFlag) -> Result<Config, CommandFailure> {
    let config = Config::load(here, args.config.as_deref())?;
    config.all_values()?;
    config.load_prompts(&config::config_file::toplevel_or_folder(here))?;
    Ok(config)
}

fn check_repository(repo: &UserRepo, config: Option<&Config>) -> Vec<DoctorCheck> {
    let fine = |subject, answer: Result<DoctorCheck, CommandFailure>| {
        answer.unwrap_or_else(|failure| DoctorCheck::problem(subject, &failure))
    };
    let git = || Ok(DoctorCheck::ok("git", repo.git_version()?));
    let (top, head) = (repo.toplevel.display(), repo.head.as_str());
    let short = head.get(..10).unwrap_or(head);
    let mut checks = vec![
        fine("git", git()),
        DoctorCheck::ok("repository", format!("`{top}` at commit {short}")),
        fine("working tree", check_working_tree(repo, config)),
        check_identity(repo),
    ];
    checks.extend(
        filters::check_filters(repo)
            .unwrap_or_else(|failure| vec![DoctorCheck::problem("filters", &failure)]),
    );
    checks.push(if repo.has_submodules {
        let says = "there are submodules: they stay empty in the run's worktrees";
        DoctorCheck::warning("submodules", says, "make sure that the sweep does without them")
    } else {
        DoctorCheck::ok("submodules", "none")
    });
    checks
}

fn check_working_tree(
    repo: &UserRepo,
    config: Option<&Config>,
) -> Result<DoctorCheck, CommandFailure> {
    let but = config.map(Config::uncommitted_files).unwrap_or_default();
    let dirty = repo.dirty_paths_except(&but)?;
    let Some(first) = dirty.first() else { return Ok(DoctorCheck::ok("working tree", "clean")) };
    let first: String = first.chars().flat_map(char::escape_debug).collect();
    let more =
        if dirty.len() > 1 { format!(" and {} more", dirty.len() - 1) } else { String::new() };
    let what = format!("it is not clean: `{first}`{more}");
    Err(CommandFailure::environment(what)
        .with_hint("commit, stash or ignore these files: a run starts from a commit"))
}

fn check_identity(repo: &UserRepo) -> DoctorCheck {
    let says = format!("commits are made by `{} <{}>`", repo.identity.name, repo.identity.email);
    if repo.identity.email == "treebeam@localhost" {
        let todo =
            "set `git config user.name` and `git config user.email`, if they are to be yours";
        return DoctorCheck::warning("identity", says, todo);
    }
    DoctorCheck::ok("identity", says)
}

fn check_config(here: &Path, config: &Config) -> Vec<DoctorCheck> {
    let file = config.file().map(|file| format!("`{}` is good", file.name()));
    let mut checks = vec![match file {
        Some(says) => DoctorCheck::ok("configuration", says),
        None => DoctorCheck::warning(
            "configuration",
            "there is no `treebeam.toml`: every value is built in",
            "write one with `treebeam init`",
        ),
    }];
    let dotenv = Dotenv::load(here, config);
    if let Ok(dotenv) = &dotenv {
        checks.extend(check_agents(here, config, dotenv));
    }
    checks.push(match dotenv {
        Err(failure) => DoctorCheck::problem("variables", &failure),
        Ok(dotenv) => match dotenv.iter_variables().find(DotenvVariable::is_setting) {
            None => DoctorCheck::ok(
                "variables",
                format!("{} in `.env` files", dotenv.iter_variables().count()),
            ),
            Some(found) => DoctorCheck::warning(
                "variables",
                format!("`{}` in `{}` is not read as a setting", found.name, found.file),
                "put it into `treebeam.toml`, or export it",
            ),
        },
    });
    checks
}

/// Warns about a primary with a wrong direction, which counts as part of the column's name: that
/// fails only when the root is measured.
fn check_primary(config: &Config) -> Option<DoctorCheck> {
    let (column, no_direction) = config.primary_with_bad_direction()?;
    let [column, word] = [column, no_direction].map(|text| text.escape_debug().to_string());
    let says = format!("`{column}` is the name of a column as a whole: `{word}` is no direction");
    Some(DoctorCheck::warning(
        "primary",
        says,
        "write `:higher` or `:lower`, if a direction is meant",
    ))
}

/// Checks the agents as far as that is free of cost.
fn check_agents(here: &Path, config: &Config, dotenv: &Dotenv) -> Vec<DoctorCheck> {
    let role_agents = role_agents::list_role_agents(config, dotenv);
    let mut checks: Vec<DoctorCheck> = Vec::new();
    let mut looked_at = BTreeSet::new();
    for role_agent in &role_agents {
        match role_agent.agent_settings() {
            Err(failure) => checks.push(DoctorCheck::problem("agents", &failure)),
            Ok(settings @ AgentSettings { line: AgentKind::Cli(_), .. }) => {
                checks.extend(check_agent_program(here, &settings, &mut looked_at));
            }
            Ok(_) => {
                let missing = role_agent.must_be_installed().err();
                checks.extend(missing.map(|failure| DoctorCheck::problem("agents", &failure)));
            }
        }
    }
    checks.dedup_by(|one, other| one.says == other.says);
    if config.run_limits(&RunLimits::default()).max_cost_usd.is_some() {
        checks.extend(check_agent_prices(config, &role_agents));
    }
    if checks.is_empty() {
        let roles: Vec<&str> =
            role_agents.iter().map(|role_agent| role_agent.role.name()).collect();
        checks.push(if roles.is_empty() {
            DoctorCheck::warning(
                "agents",
                "none is set: only dry runs are possible",
                "say in `[agents]` who has the ideas and who writes the code",
            )
        } else {
            DoctorCheck::ok("agents", roles.join(", "))
        });
    }
    if !role_agents.is_empty() {
        let limits = config.run_limits(&RunLimits::default());
        checks.push(match config.fixed_settings(FixedSettings::default()) {
            Ok(fixed_settings) => check_cost(&preflight::estimate_cost(
                config,
                &fixed_settings,
                &limits,
                &role_agents,
            )),
            Err(wrong) => DoctorCheck::problem("cost", &wrong.into()),
        });
    }
    checks
}

/// Warns about agents of unknown price if a budget of money is set.
fn check_agent_prices(config: &Config, role_agents: &[RoleAgent<'_>]) -> Option<DoctorCheck> {
    let prices = config.model_prices();
    // The price of a program cannot be known: the estimate names its bound.
    let has_price = |role_agent: &&RoleAgent<'_>| match role_agent.agent.line {
        config::agents::AgentConfigKind::Tuner | config::agents::AgentConfigKind::Command(_) => {
            false
        }
        config::agents::AgentConfigKind::Model(_) | config::agents::AgentConfigKind::Cli(_) => true,
    };
    let mut role_agents = role_agents.iter().filter(has_price);
    let role_agent =
        role_agents.find(|role_agent| prices.find_price(&role_agent.model_name()).is_none())?;
    let chooses = matches!(&role_agent.agent.line, config::agents::AgentConfigKind::Cli(cli) if cli.model.is_none());
    if chooses {
        let says = format!(
            "`{}` chooses its model itself: `max_cost_usd` counts only what it says that a call has cost",
            role_agent.provider_name()
        );
        return Some(DoctorCheck::warning("agents", says, "set `model`, or `max_tokens_total`"));
    }
    let says = format!(
        "the price of `{}` is not known: `max_cost_usd` does not count it",
        role_agent.model_name()
    );
    Some(DoctorCheck::warning("agents", says, "add it to `prices`, or set `max_tokens_total`"))
}

/// Reports what a run may cost.
fn check_cost(estimate: &CostEstimate) -> DoctorCheck {
    let says = format!("a run as configured: {estimate}");
    match estimate.advice() {
        Some(todo) => DoctorCheck::warning("cost", says, todo),
        None => DoctorCheck::ok("cost", says),
    }
}

/// Checks that the program of a coding agent exists and is the expected one. Each is run once.
fn check_agent_program(
    here: &Path,
    settings: &AgentSettings,
    looked_at: &mut BTreeSet<Vec<String>>,
) -> Option<DoctorCheck> {
    let AgentKind::Cli(cli) = &settings.line else { return None };
    if !looked_at.insert(cli.command.clone()) {
        return None;
    }
    let (name, (major, minor)) = (cli.tool.provider_name(), cli.tool.oldest_version());
    match version::find_version(cli, here) {
        CliVersion::Good(_) => None,
        CliVersion::Old(found) => Some(DoctorCheck::warning(
            "agents",
            format!("`{name}` is {found}, older than what treebeam was tried with"),
            format!("update it to {major}.{minor} or newer, and see `treebeam agents check`"),
        )),
        CliVersion::Unknown(why) => Some(DoctorCheck::warning(
            "agents",
            format!("the version of `{name}` is not known: {why}"),
            "see whether `treebeam agents check` gets an answer",
        )),
        CliVersion::Missing(why) => {
            let program = cli.command.first().map_or("", String::as_str);
            let hint = format!(
                "install `{program}` {major}.{minor} or newer, or name it in `command = [\"…\"]`"
            );
            let failure = CommandFailure::environment(format!("`{name}` is not there: {why}"))
                .with_hint(hint);
            Some(DoctorCheck::problem("agents", &failure))
        }
    }
}

fn check_disk(runs_root: &Path) -> Vec<DoctorCheck> {
    let folder = probe::nearest_folder(runs_root);
    let shown = runs_root.display();
    let runs = match probe::try_folder(&folder) {
        Ok(()) => {
            DoctorCheck::ok("runs", format!("`{shown}` can be written, locked and renamed in"))
        }
        Err(error) => {
            let what = format!("`{}`: {error}", folder.display());
            let todo = "set `runs_root` to a folder on a local disk that you may write to";
            DoctorCheck::problem("runs", &CommandFailure::environment(what).with_hint(todo))
        }
    };
    vec![runs, check_free_space(treebeam_process::free_space(&folder))]
}

/// Warns about runs below a linked worktree: they are removed with it.
fn check_linked_worktree(repo: &UserRepo, runs_root: &Path) -> Option<DoctorCheck> {
    let git = fs::read_to_string(repo.toplevel.join(".git")).ok()?;
    let is_linked = git.replace('\\', "/").contains("/worktrees/");
    let says =
        "this is a linked worktree: `git worktree remove` removes its runs too, without a word";
    let todo = "set `runs_root` to a folder outside of it, or begin runs in the first checkout";
    (is_linked && runs_root.starts_with(&repo.toplevel))
        .then(|| DoctorCheck::warning("runs", says, todo))
}

fn check_free_space(free: Option<u64>) -> DoctorCheck {
    let Some(free) = free else { return DoctorCheck::ok("disk", "free space is not known here") };
    let says = format!("{} MiB are free", free >> 20);
    let todo = "make room: each worktree holds all files of the repository";
    match free {
        LOW_DISK_BYTES.. => DoctorCheck::ok("disk", says),
        MIN_DISK_BYTES.. => DoctorCheck::warning("disk", says, todo),
        0.. => DoctorCheck::problem("disk", &CommandFailure::environment(says).with_hint(todo)),
    }
}

fn render_checks(checks: &[DoctorCheck]) -> String {
    let mut text = String::new();
    for DoctorCheck { subject, outcome, says, todo } in checks {
        let outcome = match outcome {
            DoctorOutcome::Ok => "ok",
            DoctorOutcome::Warning => "warning",
            DoctorOutcome::Problem => "problem",
        };
        text.push_str(&format!("{outcome:7}  {subject:13}  {says}\n"));
        if let Some(todo) = todo {
            text.push_str(&format!("{:24}do: {todo}\n", ""));
        }
    }
    text
}
