//! Who answers, with the keys: what the configuration says of agents, and where their keys are. The one place that looks a
//! key up; it is shown to nobody.

use crate::config::Config;
use crate::config::agents::{Agent, Cli, Line, Model};
use crate::dotenv::Dotenv;
use crate::failure::Failure;
use crate::program;
use std::path::Path;
use std::time::Duration;
use treebeam_core::policy::Agents;
use treebeam_edge::agent::crew::Crew;
use treebeam_edge::agent::settings::{
    self, Key, MAX_TOKENS, MAX_TOKENS_CLI, Settings, TIMEOUT, Tuner,
};
use treebeam_edge::agent::shield;
use treebeam_run::port::Role;

/// What the variable of a key is called in the record.
pub(crate) const KEY_WORD: &str = "api_key_env";

/// A role that somebody is set for.
#[derive(Debug)]
pub(crate) struct Seat<'a> {
    pub(crate) role: Role,
    pub(crate) agent: &'a Agent,
    pub(crate) tuner: Tuner,
    pub(crate) key: KeyPlace,
}

/// Where a key is.
#[derive(Clone, Debug)]
pub(crate) enum KeyPlace {
    /// Nobody needs one.
    None,
    /// In this variable; from a `.env` file, if not from the environment.
    Found { key: Key, file: Option<String> },
    /// In no variable of this name.
    Missing { variable: String },
}

/// All roles that somebody is set for.
pub(crate) fn seats<'a>(config: &'a Config, dotenv: &Dotenv) -> Vec<Seat<'a>> {
    // From here on there are keys in this process. Where it cannot be shielded it is as open as any other program.
    drop(shield());
    let seat = |role| {
        let agent = config.agent(role)?;
        Some(Seat { role, agent, tuner: config.tuner(), key: find_key(agent, dotenv) })
    };
    Role::ALL.into_iter().filter_map(seat).collect()
}

/// These agents, if all of them have their keys and programs.
pub(crate) fn crew(seats: &[Seat<'_>]) -> Result<Crew, Failure> {
    let crew = described(seats)?;
    seats.iter().try_for_each(Seat::must_be_installed)?;
    Ok(crew)
}

/// These agents, if all of them have their keys.
fn described(seats: &[Seat<'_>]) -> Result<Crew, Failure> {
    let agents = seats.iter().map(|seat| Ok((seat.role, seat.settings()?)));
    Ok(Crew::new(agents.collect::<Result<_, Failure>>()?))
}

/// These agents as far as they can be described, whether or not there are keys.
pub(crate) fn without_keys(config: &Config, dotenv: &Dotenv) -> Result<Crew, Failure> {
    let mut seats = seats(config, dotenv);
    for seat in &mut seats {
        seat.key = KeyPlace::None;
    }
    described(&seats)
}

/// Adds to what is recorded of agents from which variable each one's key is read.
pub(crate) fn describe_keys(config: &Config, agents: &mut Agents) {
    for role in Role::ALL {
        let Some(agent) = config.agent(role) else { continue };
        if let Some(words) = agents.0.get_mut(role.name()) {
            let variable = key_variable(agent).unwrap_or("none").to_owned();
            words.insert(KEY_WORD.to_owned(), variable);
        }
    }
}

/// The variable that an agent's key is read from, if it needs one.
fn key_variable(agent: &Agent) -> Option<&str> {
    // A key goes where it was meant to go: to another server only when that is said.
    let own_server = |model: &Model| model.base_url.is_none();
    let usual = match &agent.line {
        Line::Model(model) if own_server(model) => model.wire.key_variable(),
        // A coding agent has a login of its own.
        Line::Model(_) | Line::Command(_) | Line::Cli(_) | Line::Tuner => None,
    };
    agent.api_key_env.as_deref().or(usual)
}

fn find_key(agent: &Agent, dotenv: &Dotenv) -> KeyPlace {
    let Some(variable) = key_variable(agent) else { return KeyPlace::None };
    match dotenv.secret(variable) {
        None => KeyPlace::Missing { variable: variable.to_owned() },
        Some((value, file)) => {
            KeyPlace::Found { key: Key { variable: variable.to_owned(), value }, file }
        }
    }
}

impl Seat<'_> {
    /// The program that is started for it.
    pub(crate) fn program(&self) -> Option<&str> {
        match &self.agent.line {
            Line::Model(_) | Line::Tuner => None,
            Line::Command(command) => command.first().map(String::as_str),
            Line::Cli(cli) => {
                let named = cli.command.as_ref().and_then(|command| command.first());
                Some(named.map_or(cli.tool.program(), String::as_str))
            }
        }
    }

    /// Refuses a program that is not there. A relative path may come with the worktree.
    pub(crate) fn must_be_installed(&self) -> Result<(), Failure> {
        let is_missing = |program: &&str| {
            let is_anywhere = program::is_path(program) && Path::new(program).is_relative();
            !is_anywhere && program::look_up(program, Path::new(".")).is_none()
        };
        let Some(program) = self.program().filter(is_missing) else { return Ok(()) };
        let what = format!("`agents.{}`: the program `{program}` is not found", self.role);
        let hint = match &self.agent.line {
            Line::Cli(cli) => {
                let (major, minor) = cli.tool.oldest();
                format!(
                    "install `{program}` {major}.{minor} or newer, or name it in `command = [\"…\"]`"
                )
            }
            Line::Model(_) | Line::Command(_) | Line::Tuner => {
                "install it, or name its path: a relative one begins at the worktree".to_owned()
            }
        };
        Err(Failure::environment(what).hint(hint))
    }

    /// What the door needs to know.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let key = match &self.key {
            KeyPlace::None => None,
            KeyPlace::Found { key, .. } => Some(key.clone()),
            KeyPlace::Missing { variable } => {
                let what = format!(
                    "the agent of the role `{}` needs a key, and the variable `{variable}` is not set",
                    self.role
                );
                return Err(Failure::environment(what)
                    .hint(format!("put `{variable}=…` into `.env`, or export it")));
            }
        };
        let line = match &self.agent.line {
            Line::Model(model) => settings::Line::Model(settings::Model {
                wire: model.wire,
                name: model.name.clone(),
                base_url: model.base_url.clone().unwrap_or_else(|| model.wire.home().to_owned()),
                key,
                temperature: model.temperature,
                max_tokens: model.max_tokens.unwrap_or(MAX_TOKENS),
                effort: model.effort.map(str::to_owned),
                extra: model.extra.clone(),
            }),
            Line::Command(command) => {
                let (command, edits) = (command.clone(), self.agent.edits);
                settings::Line::Command(settings::Program { command, key, edits })
            }
            Line::Tuner => settings::Line::Tuner(self.tuner.clone()),
            Line::Cli(cli) => settings::Line::Cli(self.cli(cli, key)),
        };
        let seconds = self.agent.timeout_sec.map(|seconds| Duration::from_secs(seconds.into()));
        Ok(Settings { line, timeout: seconds.unwrap_or(TIMEOUT) })
    }

    fn cli(&self, cli: &Cli, key: Option<Key>) -> settings::Cli {
        let own = || vec![cli.tool.program().to_owned()];
        settings::Cli {
            tool: cli.tool,
            command: cli.command.clone().unwrap_or_else(own),
            model: cli.model.clone(),
            args: cli.args.clone(),
            base_url: cli.base_url.clone(),
            key,
            max_tokens: cli.max_tokens.unwrap_or(MAX_TOKENS_CLI),
            home: cli.home,
            edits: self.agent.edits,
        }
    }

    /// Whether its answers can be gone on from.
    pub(crate) const fn continues(&self) -> bool {
        match &self.agent.line {
            Line::Model(model) => model.wire.continues(),
            Line::Cli(cli) => cli.tool.continues(),
            Line::Command(_) | Line::Tuner => false,
        }
    }

    /// The provider's name.
    pub(crate) const fn provider(&self) -> &'static str {
        match &self.agent.line {
            Line::Model(model) => model.wire.provider(),
            Line::Command(_) => "command",
            Line::Tuner => "tuner",
            Line::Cli(cli) => cli.tool.provider(),
        }
    }

    /// The model, or the program; nothing for the tuner.
    pub(crate) fn model(&self) -> String {
        match &self.agent.line {
            Line::Model(model) => model.name.clone(),
            Line::Command(command) => command.join(" "),
            Line::Tuner => String::new(),
            Line::Cli(cli) => cli.model.clone().unwrap_or_else(|| "its own choice".to_owned()),
        }
    }
}

impl KeyPlace {
    /// In words; never the key.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Found { key, file: Some(file) } => format!("{} in {file}", key.variable),
            Self::Found { key, file: None } => format!("{} in the environment", key.variable),
            Self::Missing { variable } => format!("{variable} is not set"),
        }
    }
}
