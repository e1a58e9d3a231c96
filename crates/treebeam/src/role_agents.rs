//! Who answers, with the keys: what the configuration says of agents, and where their keys are. The one place that looks a
//! key up; it is shown to nobody.

use crate::config::Config;
use crate::config::agents::{AgentConfig, AgentConfigKind, CliAgentConfig, ModelAgentConfig};
use crate::dotenv::Dotenv;
use crate::failure::CommandFailure;
use crate::program;
use std::path::Path;
use std::time::Duration;
use treebeam_agent::forbid_inspection;
use treebeam_agent::role_agents::RoleAgents;
use treebeam_agent::settings::{
    self, AgentSettings, ApiKey, DEFAULT_CLI_MAX_TOKENS, DEFAULT_MAX_TOKENS, DEFAULT_TRY_TIMEOUT,
    TunerAgent,
};
use treebeam_core::policy::RecordedAgents;
use treebeam_run::port::AgentRole;

/// What the variable of a key is called in the record.
pub(crate) const KEY_VARIABLE_FIELD: &str = "api_key_env";

/// A role that somebody is set for.
#[derive(Debug)]
pub(crate) struct RoleAgent<'a> {
    pub(crate) role: AgentRole,
    pub(crate) agent: &'a AgentConfig,
    pub(crate) tuner: TunerAgent,
    pub(crate) key: KeyPlace,
}

/// Where a key is.
#[derive(Clone, Debug)]
pub(crate) enum KeyPlace {
    /// Nobody needs one.
    None,
    /// In this variable; from a `.env` file, if not from the environment.
    Found { key: ApiKey, file: Option<String> },
    /// In no variable of this name.
    Missing { variable: String },
}

/// All roles that somebody is set for.
pub(crate) fn list_role_agents<'a>(config: &'a Config, dotenv: &Dotenv) -> Vec<RoleAgent<'a>> {
    // From here on there are keys in this process. Where it cannot be shielded it is as open as any other program.
    drop(forbid_inspection());
    let seat = |role| {
        let agent = config.agent_for(role)?;
        Some(RoleAgent { role, agent, tuner: config.tuner_agent(), key: find_key(agent, dotenv) })
    };
    AgentRole::ALL.into_iter().filter_map(seat).collect()
}

/// These agents, if all of them have their keys and programs.
pub(crate) fn installed_role_agents(seats: &[RoleAgent<'_>]) -> Result<RoleAgents, CommandFailure> {
    let crew = keyed_role_agents(seats)?;
    seats.iter().try_for_each(RoleAgent::must_be_installed)?;
    Ok(crew)
}

/// These agents, if all of them have their keys.
fn keyed_role_agents(seats: &[RoleAgent<'_>]) -> Result<RoleAgents, CommandFailure> {
    let agents = seats.iter().map(|seat| Ok((seat.role, seat.agent_settings()?)));
    Ok(RoleAgents::new(agents.collect::<Result<_, CommandFailure>>()?))
}

/// These agents as far as they can be described, whether or not there are keys.
pub(crate) fn keyless_role_agents(
    config: &Config,
    dotenv: &Dotenv,
) -> Result<RoleAgents, CommandFailure> {
    let mut seats = list_role_agents(config, dotenv);
    for seat in &mut seats {
        seat.key = KeyPlace::None;
    }
    keyed_role_agents(&seats)
}

/// Adds to what is recorded of agents from which variable each one's key is read.
pub(crate) fn record_key_variables(config: &Config, agents: &mut RecordedAgents) {
    for role in AgentRole::ALL {
        let Some(agent) = config.agent_for(role) else { continue };
        if let Some(words) = agents.0.get_mut(role.name()) {
            let variable = key_variable(agent).unwrap_or("none").to_owned();
            words.insert(KEY_VARIABLE_FIELD.to_owned(), variable);
        }
    }
}

/// The variable that an agent's key is read from, if it needs one.
fn key_variable(agent: &AgentConfig) -> Option<&str> {
    // A key goes where it was meant to go: to another server only when that is said.
    let own_server = |model: &ModelAgentConfig| model.base_url.is_none();
    let usual = match &agent.line {
        AgentConfigKind::Model(model) if own_server(model) => model.wire.key_variable(),
        // A coding agent has a login of its own.
        AgentConfigKind::Model(_)
        | AgentConfigKind::Command(_)
        | AgentConfigKind::Cli(_)
        | AgentConfigKind::Tuner => None,
    };
    agent.api_key_env.as_deref().or(usual)
}

fn find_key(agent: &AgentConfig, dotenv: &Dotenv) -> KeyPlace {
    let Some(variable) = key_variable(agent) else { return KeyPlace::None };
    match dotenv.find_secret(variable) {
        None => KeyPlace::Missing { variable: variable.to_owned() },
        Some((value, file)) => {
            KeyPlace::Found { key: ApiKey { variable: variable.to_owned(), value }, file }
        }
    }
}

impl RoleAgent<'_> {
    /// The program that is started for it.
    pub(crate) fn program_name(&self) -> Option<&str> {
        match &self.agent.line {
            AgentConfigKind::Model(_) | AgentConfigKind::Tuner => None,
            AgentConfigKind::Command(command) => command.first().map(String::as_str),
            AgentConfigKind::Cli(cli) => {
                let named = cli.command.as_ref().and_then(|command| command.first());
                Some(named.map_or(cli.tool.program_name(), String::as_str))
            }
        }
    }

    /// Refuses a program that is not there. A relative path may come with the worktree.
    pub(crate) fn must_be_installed(&self) -> Result<(), CommandFailure> {
        let is_missing = |program: &&str| {
            let is_anywhere = program::is_program_path(program) && Path::new(program).is_relative();
            !is_anywhere && program::find_program(program, Path::new(".")).is_none()
        };
        let Some(program) = self.program_name().filter(is_missing) else { return Ok(()) };
        let what = format!("`agents.{}`: the program `{program}` is not found", self.role);
        let hint = match &self.agent.line {
            AgentConfigKind::Cli(cli) => {
                let (major, minor) = cli.tool.oldest_version();
                format!(
                    "install `{program}` {major}.{minor} or newer, or name it in `command = [\"…\"]`"
                )
            }
            AgentConfigKind::Model(_) | AgentConfigKind::Command(_) | AgentConfigKind::Tuner => {
                "install it, or name its path: a relative one begins at the worktree".to_owned()
            }
        };
        Err(CommandFailure::environment(what).with_hint(hint))
    }

    /// What the door needs to know.
    pub(crate) fn agent_settings(&self) -> Result<AgentSettings, CommandFailure> {
        let key = match &self.key {
            KeyPlace::None => None,
            KeyPlace::Found { key, .. } => Some(key.clone()),
            KeyPlace::Missing { variable } => {
                let what = format!(
                    "the agent of the role `{}` needs a key, and the variable `{variable}` is not set",
                    self.role
                );
                return Err(CommandFailure::environment(what)
                    .with_hint(format!("put `{variable}=…` into `.env`, or export it")));
            }
        };
        let line = match &self.agent.line {
            AgentConfigKind::Model(model) => settings::AgentKind::Model(settings::ModelAgent {
                wire: model.wire,
                name: model.name.clone(),
                base_url: model
                    .base_url
                    .clone()
                    .unwrap_or_else(|| model.wire.default_base_url().to_owned()),
                key,
                temperature: model.temperature,
                max_tokens: model.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
                effort: model.effort.map(str::to_owned),
                extra: model.extra.clone(),
            }),
            AgentConfigKind::Command(command) => {
                let (command, edits) = (command.clone(), self.agent.edits);
                settings::AgentKind::Command(settings::CommandAgent { command, key, edits })
            }
            AgentConfigKind::Tuner => settings::AgentKind::Tuner(self.tuner.clone()),
            AgentConfigKind::Cli(cli) => settings::AgentKind::Cli(self.cli_agent(cli, key)),
        };
        let seconds = self.agent.timeout_sec.map(|seconds| Duration::from_secs(seconds.into()));
        Ok(AgentSettings { line, timeout: seconds.unwrap_or(DEFAULT_TRY_TIMEOUT) })
    }

    fn cli_agent(&self, cli: &CliAgentConfig, key: Option<ApiKey>) -> settings::CliAgent {
        let own = || vec![cli.tool.program_name().to_owned()];
        settings::CliAgent {
            tool: cli.tool,
            command: cli.command.clone().unwrap_or_else(own),
            model: cli.model.clone(),
            args: cli.args.clone(),
            base_url: cli.base_url.clone(),
            key,
            max_tokens: cli.max_tokens.unwrap_or(DEFAULT_CLI_MAX_TOKENS),
            home: cli.home,
            edits: self.agent.edits,
        }
    }

    /// Whether its answers can be gone on from.
    pub(crate) const fn can_continue(&self) -> bool {
        match &self.agent.line {
            AgentConfigKind::Model(model) => model.wire.can_continue(),
            AgentConfigKind::Cli(cli) => cli.tool.can_continue(),
            AgentConfigKind::Command(_) | AgentConfigKind::Tuner => false,
        }
    }

    /// The provider's name.
    pub(crate) const fn provider_name(&self) -> &'static str {
        match &self.agent.line {
            AgentConfigKind::Model(model) => model.wire.provider_name(),
            AgentConfigKind::Command(_) => "command",
            AgentConfigKind::Tuner => "tuner",
            AgentConfigKind::Cli(cli) => cli.tool.provider_name(),
        }
    }

    /// The model, or the program; nothing for the tuner.
    pub(crate) fn model_name(&self) -> String {
        match &self.agent.line {
            AgentConfigKind::Model(model) => model.name.clone(),
            AgentConfigKind::Command(command) => command.join(" "),
            AgentConfigKind::Tuner => String::new(),
            AgentConfigKind::Cli(cli) => {
                cli.model.clone().unwrap_or_else(|| "its own choice".to_owned())
            }
        }
    }
}

impl KeyPlace {
    /// In words; never the key.
    pub(crate) fn describe_place(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Found { key, file: Some(file) } => format!("{} in {file}", key.variable),
            Self::Found { key, file: None } => format!("{} in the environment", key.variable),
            Self::Missing { variable } => format!("{variable} is not set"),
        }
    }
}
