//! Resolves the configured agents of the roles, with their keys.
//!
//! The only module that looks up a key. No output contains one.

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

/// Field of a recorded agent that holds the name of its key's variable.
pub(crate) const KEY_VARIABLE_FIELD: &str = "api_key_env";

/// A role with the agent that is configured for it.
#[derive(Debug)]
pub(crate) struct RoleAgent<'a> {
    pub(crate) role: AgentRole,
    pub(crate) agent: &'a AgentConfig,
    pub(crate) tuner: TunerAgent,
    pub(crate) key: KeyPlace,
}

/// Place where an agent's key was looked for.
#[derive(Clone, Debug)]
pub(crate) enum KeyPlace {
    /// The agent needs no key.
    None,
    /// The key is in this variable: of a `.env` file if `file` is set, else of the environment.
    Found { key: ApiKey, file: Option<String> },
    /// The variable is set nowhere.
    Missing { variable: String },
}

/// Returns all roles that have an agent.
pub(crate) fn list_role_agents<'a>(config: &'a Config, dotenv: &Dotenv) -> Vec<RoleAgent<'a>> {
    // From here on this process holds keys. If it cannot be shielded it is as open as any other
    // program.
    drop(forbid_inspection());
    let role_agent = |role| {
        let agent = config.agent_for(role)?;
        Some(RoleAgent { role, agent, tuner: config.tuner_agent(), key: find_key(agent, dotenv) })
    };
    AgentRole::ALL.into_iter().filter_map(role_agent).collect()
}

/// Returns the agents if all of them have their keys and programs.
pub(crate) fn installed_role_agents(
    role_agents: &[RoleAgent<'_>],
) -> Result<RoleAgents, CommandFailure> {
    let installed = keyed_role_agents(role_agents)?;
    role_agents.iter().try_for_each(RoleAgent::must_be_installed)?;
    Ok(installed)
}

/// Returns the agents if all of them have their keys.
fn keyed_role_agents(role_agents: &[RoleAgent<'_>]) -> Result<RoleAgents, CommandFailure> {
    let agents =
        role_agents.iter().map(|role_agent| Ok((role_agent.role, role_agent.agent_settings()?)));
    Ok(RoleAgents::new(agents.collect::<Result<_, CommandFailure>>()?))
}

/// Returns the configured agents without their keys, for a description.
pub(crate) fn keyless_role_agents(
    config: &Config,
    dotenv: &Dotenv,
) -> Result<RoleAgents, CommandFailure> {
    let mut role_agents = list_role_agents(config, dotenv);
    for role_agent in &mut role_agents {
        role_agent.key = KeyPlace::None;
    }
    keyed_role_agents(&role_agents)
}

/// Records for each agent the variable from which its key is read.
pub(crate) fn record_key_variables(config: &Config, agents: &mut RecordedAgents) {
    for role in AgentRole::ALL {
        let Some(agent) = config.agent_for(role) else { continue };
        if let Some(words) = agents.0.get_mut(role.name()) {
            let variable = key_variable(agent).unwrap_or("none").to_owned();
            words.insert(KEY_VARIABLE_FIELD.to_owned(), variable);
        }
    }
}

/// Returns the variable that an agent's key is read from, if it needs one.
fn key_variable(agent: &AgentConfig) -> Option<&str> {
    // A key is sent only to its provider's server: for another `base_url` it must be named
    // explicitly.
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
    /// Returns the program that is started for the agent, if any.
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

    /// Refuses a program that is not installed. A relative path may come with the worktree, and
    /// passes.
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

    /// Returns the agent's settings for the agent door.
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

    /// Returns true if the agent can continue an earlier conversation.
    pub(crate) const fn can_continue(&self) -> bool {
        match &self.agent.line {
            AgentConfigKind::Model(model) => model.wire.can_continue(),
            AgentConfigKind::Cli(cli) => cli.tool.can_continue(),
            AgentConfigKind::Command(_) | AgentConfigKind::Tuner => false,
        }
    }

    /// Returns the name of the provider.
    pub(crate) const fn provider_name(&self) -> &'static str {
        match &self.agent.line {
            AgentConfigKind::Model(model) => model.wire.provider_name(),
            AgentConfigKind::Command(_) => "command",
            AgentConfigKind::Tuner => "tuner",
            AgentConfigKind::Cli(cli) => cli.tool.provider_name(),
        }
    }

    /// Returns the model, or the program; empty for the tuner.
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
    /// Describes the place of the key, never the key itself.
    pub(crate) fn describe_place(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Found { key, file: Some(file) } => format!("{} in {file}", key.variable),
            Self::Found { key, file: None } => format!("{} in the environment", key.variable),
            Self::Missing { variable } => format!("{variable} is not set"),
        }
    }
}
