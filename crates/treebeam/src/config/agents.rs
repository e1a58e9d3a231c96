//! Parses and checks `[agents.<role>]`: the agent of each role.
//!
//! The API key of an agent is resolved later, and never part of a configuration.

use super::bounded_values::{ModelTemperature, OneTo};
use super::table::TableValue;
use serde::Deserialize;
use serde_json::{Map, Value};
use treebeam_agent::settings::{AgentHome, CliTool, EditMode, WireFormat};
use treebeam_run::port::AgentRole;

/// Keys of `[agents]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentsTable {
    coordinator: Option<TableValue<AdviserConfig>>,
    planner: Option<TableValue<AdviserConfig>>,
    coder: Option<TableValue<AgentConfig>>,
    reviewer: Option<TableValue<AdviserConfig>>,
    ideas: Option<TableValue<AgentConfig>>,
}

impl AgentsTable {
    /// Returns the agent that is configured for a role.
    pub(crate) fn agent_for(&self, role: AgentRole) -> Option<&AgentConfig> {
        let adviser = match role {
            AgentRole::Coordinator => &self.coordinator,
            AgentRole::Planner => &self.planner,
            AgentRole::Reviewer => &self.reviewer,
            AgentRole::Coder => return self.coder.as_ref().map(|table| &table.0),
            AgentRole::Ideas => return self.ideas.as_ref().map(|table| &table.0),
        };
        adviser.as_ref().map(|table| &table.0.0)
    }
}

/// An agent that judges ideas or patches, which the tuner cannot do.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawAgentConfig")]
struct AdviserConfig(AgentConfig);

/// Configuration of one agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawAgentConfig")]
pub(crate) struct AgentConfig {
    pub(crate) line: AgentConfigKind,
    pub(crate) api_key_env: Option<String>,
    pub(crate) timeout_sec: Option<u32>,
    pub(crate) edits: EditMode,
}

/// Kind of an agent, with the settings of that kind.
#[derive(Clone, Debug)]
pub(crate) enum AgentConfigKind {
    Model(ModelAgentConfig),
    Command(Vec<String>),
    Cli(CliAgentConfig),
    /// The built-in tuner, which is configured in `[tuner]`.
    Tuner,
}

/// Configuration of a coding agent on the command line.
#[derive(Clone, Debug)]
pub(crate) struct CliAgentConfig {
    pub(crate) tool: CliTool,
    pub(crate) command: Option<Vec<String>>,
    pub(crate) model: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) home: AgentHome,
}

/// Configuration of a model behind a server.
#[derive(Clone, Debug)]
pub(crate) struct ModelAgentConfig {
    pub(crate) wire: WireFormat,
    pub(crate) name: String,
    pub(crate) base_url: Option<String>,
    pub(crate) temperature: Option<f64>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) effort: Option<&'static str>,
    pub(crate) extra: Map<String, Value>,
}

/// An agent's table as parsed, before its keys are checked against each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAgentConfig {
    provider: AgentProvider,
    model: Option<String>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    temperature: Option<ModelTemperature>,
    max_tokens: Option<OneTo<10_000_000>>,
    reasoning_effort: Option<ReasoningEffort>,
    timeout_sec: Option<OneTo<86_400>>,
    extra: Option<Map<String, Value>>,
    command: Option<AgentCommandLine>,
    args: Option<Vec<String>>,
    home: Option<AgentHome>,
    edits: Option<EditMode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AgentProvider {
    Openai,
    OpenaiChat,
    Anthropic,
    Gemini,
    Ollama,
    Command,
    Tuner,
    Codex,
    Claude,
    GeminiCli,
    Opencode,
    Aider,
}

/// Kind of agent behind a provider.
enum ProviderKind {
    Wire(WireFormat),
    Command,
    Tool(CliTool),
    Tuner,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl ReasoningEffort {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// A program with its arguments, or a shell command.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a text for the shell, or a list of a program and its arguments")]
enum AgentCommandLine {
    Shell(String),
    Program(Vec<String>),
}

impl AgentCommandLine {
    fn into_parts(self) -> Result<Vec<String>, String> {
        let parts = match self {
            Self::Shell(line) if cfg!(windows) => vec!["cmd".to_owned(), "/C".to_owned(), line],
            Self::Shell(line) => vec!["/bin/sh".to_owned(), "-c".to_owned(), line],
            Self::Program(parts) => parts,
        };
        let empty = parts.first().is_none_or(|first| first.trim().is_empty())
            || parts.last().is_some_and(|last| last.trim().is_empty());
        if empty { Err("`command` cannot be empty".to_owned()) } else { Ok(parts) }
    }
}

impl AgentProvider {
    const fn provider_kind(self) -> ProviderKind {
        match self {
            Self::Openai => ProviderKind::Wire(WireFormat::Responses),
            Self::OpenaiChat => ProviderKind::Wire(WireFormat::Chat),
            Self::Anthropic => ProviderKind::Wire(WireFormat::Messages),
            Self::Gemini => ProviderKind::Wire(WireFormat::Gemini),
            Self::Ollama => ProviderKind::Wire(WireFormat::Ollama),
            Self::Command => ProviderKind::Command,
            Self::Tuner => ProviderKind::Tuner,
            Self::Codex => ProviderKind::Tool(CliTool::Codex),
            Self::Claude => ProviderKind::Tool(CliTool::Claude),
            Self::GeminiCli => ProviderKind::Tool(CliTool::Gemini),
            Self::Opencode => ProviderKind::Tool(CliTool::Opencode),
            Self::Aider => ProviderKind::Tool(CliTool::Aider),
        }
    }
}

impl TryFrom<RawAgentConfig> for AgentConfig {
    type Error = String;
    fn try_from(raw: RawAgentConfig) -> Result<Self, String> {
        if !raw.api_key_env.as_deref().is_none_or(is_variable_name) {
            // The value may be the key itself: the message must not repeat it.
            return Err(
                "`api_key_env` is the name of a variable; the key itself belongs in `.env`"
                    .to_owned(),
            );
        }
        let (api_key_env, edits) = (raw.api_key_env.clone(), raw.edits);
        let timeout_sec = raw.timeout_sec.map(|seconds| seconds.0.get());
        let (line, usual) = match raw.provider.provider_kind() {
            ProviderKind::Wire(wire) => {
                (AgentConfigKind::Model(build_model_agent(raw, wire)?), EditMode::Diff)
            }
            ProviderKind::Command => {
                (AgentConfigKind::Command(build_command_agent(raw)?), EditMode::Diff)
            }
            ProviderKind::Tool(tool) => {
                (AgentConfigKind::Cli(build_cli_agent(raw, tool)?), EditMode::InPlace)
            }
            ProviderKind::Tuner => {
                (check_tuner_keys(&raw).map(|()| AgentConfigKind::Tuner)?, EditMode::Diff)
            }
        };
        Ok(Self { line, api_key_env, timeout_sec, edits: edits.unwrap_or(usual) })
    }
}

impl TryFrom<RawAgentConfig> for AdviserConfig {
    type Error = String;
    fn try_from(raw: RawAgentConfig) -> Result<Self, String> {
        if raw.provider == AgentProvider::Tuner {
            return Err("the `tuner` can be `ideas` and `coder` only".to_owned());
        }
        AgentConfig::try_from(raw).map(Self)
    }
}

/// Refuses keys that only coding agents have.
fn refuse_cli_keys(raw: &RawAgentConfig, provider: &str) -> Result<(), String> {
    let only = [("args", raw.args.is_some()), ("home", raw.home.is_some())];
    match only.into_iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => Err(format!("`{name}` says nothing to `{provider}`")),
        None => Ok(()),
    }
}

fn build_cli_agent(raw: RawAgentConfig, tool: CliTool) -> Result<CliAgentConfig, String> {
    let provider = tool.provider_name();
    let for_models = [
        ("temperature", raw.temperature.is_some()),
        ("reasoning_effort", raw.reasoning_effort.is_some()),
        ("extra", raw.extra.is_some()),
    ];
    if let Some((name, _)) = for_models.into_iter().find(|(_, is_set)| *is_set) {
        return Err(format!("`{name}` says nothing to `{provider}`: give it in `args`"));
    }
    let command = match raw.command {
        None => None,
        Some(AgentCommandLine::Shell(_)) => {
            return Err(format!("`command` of `{provider}` is a list: the program first"));
        }
        Some(line @ AgentCommandLine::Program(_)) => Some(line.into_parts()?),
    };
    let home = raw.home.unwrap_or_default();
    if tool == CliTool::Gemini && raw.base_url.is_some() && home == AgentHome::User {
        // gemini-cli takes another server only from a setting in its home, which treebeam must own.
        return Err("`base_url` of `gemini-cli` needs `home = \"scratch\"`".to_owned());
    }
    let any_server = matches!(tool, CliTool::Opencode | CliTool::Aider);
    if any_server && raw.base_url.is_some() && raw.model.is_none() {
        return Err(format!("`model` is missing: `{provider}` knows none of that `base_url`"));
    }
    Ok(CliAgentConfig {
        tool,
        command,
        model: raw.model.filter(|name| !name.trim().is_empty()),
        args: raw.args.unwrap_or_default(),
        base_url: raw.base_url.as_deref().map(parse_base_url).transpose()?,
        max_tokens: raw.max_tokens.map(|count| count.0.get()),
        home,
    })
}

fn build_model_agent(raw: RawAgentConfig, wire: WireFormat) -> Result<ModelAgentConfig, String> {
    let provider = wire.provider_name();
    refuse_cli_keys(&raw, provider)?;
    if raw.command.is_some() {
        return Err(format!(
            "`command` is for the provider `command` and coding agents, not `{provider}`"
        ));
    }
    if raw.edits == Some(EditMode::InPlace) {
        return Err(format!("`{provider}` cannot edit a worktree: `edits` must be \"diff\""));
    }
    if wire == WireFormat::Messages && raw.temperature.is_some() {
        return Err(
            "`anthropic` knows no `temperature` any more; another server gets it in `extra`"
                .to_owned(),
        );
    }
    let efforts = allowed_efforts(wire);
    if let Some(effort) =
        raw.reasoning_effort.map(ReasoningEffort::name).filter(|name| !efforts.contains(name))
    {
        let known = efforts.join("`, `");
        return Err(format!("`reasoning_effort` of `{provider}` is `{known}`, not `{effort}`"));
    }
    let name = raw.model.filter(|name| !name.trim().is_empty());
    let name = name.ok_or_else(|| format!("`model` is missing: `{provider}` has many"))?;
    Ok(ModelAgentConfig {
        wire,
        name,
        base_url: raw.base_url.as_deref().map(parse_base_url).transpose()?,
        temperature: raw.temperature.map(|number| number.0.get()),
        max_tokens: raw.max_tokens.map(|count| count.0.get()),
        effort: raw.reasoning_effort.map(ReasoningEffort::name),
        extra: raw.extra.map(check_extra).transpose()?.unwrap_or_default(),
    })
}

/// Checks the extra fields of requests. They must not contain the question or the maximum length of
/// an answer: the budget counts on these.
fn check_extra(extra: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let own = |name: &str| match name {
        "max_tokens"
        | "max_output_tokens"
        | "max_completion_tokens"
        | "maxOutputTokens"
        | "num_predict" => Some("set `max_tokens` instead"),
        "model" => Some("set `model` instead"),
        "messages" | "input" | "contents" | "previous_response_id" | "n" | "candidateCount" => {
            Some("treebeam sets it itself")
        }
        _ => None,
    };
    let tables =
        ["generationConfig", "options"].iter().filter_map(|name| extra.get(*name)?.as_object());
    let names = extra.keys().chain(tables.flat_map(Map::keys));
    match names.into_iter().find_map(|name| Some((name, own(name)?))) {
        Some((name, instead)) => Err(format!("`{name}` cannot be in `extra`: {instead}")),
        None => Ok(extra),
    }
}

/// Returns the effort levels that a wire format allows.
const fn allowed_efforts(wire: WireFormat) -> &'static [&'static str] {
    match wire {
        WireFormat::Responses | WireFormat::Chat => {
            &["none", "minimal", "low", "medium", "high", "xhigh", "max"]
        }
        WireFormat::Messages => &["low", "medium", "high", "xhigh", "max"],
        WireFormat::Gemini => &["minimal", "low", "medium", "high"],
        WireFormat::Ollama => &["low", "medium", "high"],
    }
}

/// Returns the first set key that only models have.
fn find_model_key(raw: &RawAgentConfig) -> Option<&'static str> {
    let for_models = [
        ("model", raw.model.is_some()),
        ("base_url", raw.base_url.is_some()),
        ("temperature", raw.temperature.is_some()),
        ("max_tokens", raw.max_tokens.is_some()),
        ("reasoning_effort", raw.reasoning_effort.is_some()),
        ("extra", raw.extra.is_some()),
    ];
    for_models.into_iter().find(|(_, is_set)| *is_set).map(|(name, _)| name)
}

fn check_tuner_keys(raw: &RawAgentConfig) -> Result<(), String> {
    let others = [
        ("command", raw.command.is_some()),
        ("api_key_env", raw.api_key_env.is_some()),
        ("timeout_sec", raw.timeout_sec.is_some()),
        ("args", raw.args.is_some()),
        ("home", raw.home.is_some()),
        ("edits", raw.edits == Some(EditMode::InPlace)),
    ];
    let other = others.into_iter().find(|(_, is_set)| *is_set).map(|(name, _)| name);
    match find_model_key(raw).or(other) {
        Some(name) => {
            Err(format!("`{name}` says nothing to the `tuner`: its keys are in `[tuner]`"))
        }
        None => Ok(()),
    }
}

fn build_command_agent(raw: RawAgentConfig) -> Result<Vec<String>, String> {
    refuse_cli_keys(&raw, "command")?;
    if let Some(name) = find_model_key(&raw) {
        return Err(format!("`{name}` says nothing to a `command`: give it as an argument"));
    }
    let command = raw.command.ok_or("`command` is missing: the program and its arguments")?;
    command.into_parts()
}

/// Parses a server's address, without its trailing slash.
fn parse_base_url(url: &str) -> Result<String, String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match authority {
        None | Some("") => {
            Err(format!("`base_url` begins with `https://` or `http://`, not {url:?}"))
        }
        Some(authority) if authority.contains('@') => {
            Err("`base_url` may hold no user and no password".to_owned())
        }
        Some(_) if url.contains(['?', '#']) => {
            Err("`base_url` may have no `?` and no `#`".to_owned())
        }
        Some(_) => Ok(url.trim_end_matches('/').to_owned()),
    }
}

fn is_variable_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_sense() {
        let check = |text: &str, expect: &str| {
            let said = toml::from_str::<AgentConfig>(text);
            let said = said.map_or_else(|error| error.message().to_owned(), |_| "good".to_owned());
            assert!(said.contains(expect), "{text}: {said}");
            assert!(!said.contains("sk-ant"), "{said}");
        };
        check("provider = 'ollama'\nmodel = 'm'", "good");
        check("provider = 'openai-chat'\nmodel = 'm'\nbase_url = 'http://127.0.0.1:1/v1/'", "good");
        check(
            "provider = 'openai'\nmodel = 'm'\ntemperature = 0.5\nmax_tokens = 1\nextra = { a = { b = 1 } }\ntimeout_sec = 5",
            "good",
        );
        check("provider = 'command'\ncommand = './a.sh | cat'\nedits = 'in_place'", "good");
        check("provider = 'command'\ncommand = ['./a.sh', '-x']\napi_key_env = 'K'", "good");
        check("provider = 'tuner'", "good");
        check("provider = 'tuner'\nmodel = 'm'", "`model` says nothing to the `tuner`");
        check("provider = 'tuner'\nedits = 'in_place'", "`edits` says nothing to the `tuner`");
        check("model = 'm'", "missing field `provider`");
        check("provider = 'chatgpt'", "unknown variant `chatgpt`");
        check("provider = 'openai'", "`model` is missing");
        check("provider = 'openai'\nmodel = ' '", "`model` is missing");
        check("provider = 'openai'\nmodle = 'm'", "unknown field `modle`");
        check("provider = 'openai'\nmodel = 'm'\napi_key = 'sk-ant-1'", "unknown field `api_key`");
        check(
            "provider = 'openai'\nmodel = 'm'\napi_key_env = 'sk-ant-0123456789-0123456789-0123456789'",
            "is the name of a variable",
        );
        check(
            "provider = 'openai'\nmodel = 'm'\nbase_url = 'localhost:1'",
            "begins with `https://`",
        );
        check(
            "provider = 'openai'\nmodel = 'm'\nbase_url = 'http://a:sk-ant@b'",
            "no user and no password",
        );
        check("provider = 'openai'\nmodel = 'm'\ncommand = 'x'", "is for the provider `command`");
        check("provider = 'openai'\nmodel = 'm'\nedits = 'in_place'", "must be \"diff\"");
        check("provider = 'openai'\nmodel = 'm'\ntemperature = 3", "from 0 to 2");
        check(
            "provider = 'openai'\nmodel = 'm'\nreasoning_effort = 'much'",
            "unknown variant `much`",
        );
        check("provider = 'openai'\nmodel = 'm'\nmax_tokens = 0", "from 1 to 10000000");
        check(
            "provider = 'gemini'\nmodel = 'm'\nreasoning_effort = 'max'",
            "`reasoning_effort` of `gemini` is `minimal`",
        );
        check("provider = 'anthropic'\nmodel = 'm'\ntemperature = 1", "knows no `temperature`");
        check("provider = 'openai'\nmodel = 'm'\nextra = { model = 'n' }", "set `model` instead");
        check(
            "provider = 'ollama'\nmodel = 'm'\nextra = { options = { num_predict = 9 } }",
            "`num_predict` cannot be in `extra`: set `max_tokens`",
        );
        check("provider = 'codex'", "good");
        check(
            "provider = 'claude'\nmodel = 'm'\nargs = ['-x']\nhome = 'scratch'\nmax_tokens = 9\nedits = 'diff'",
            "good",
        );
        check("provider = 'opencode'\ncommand = ['npx', 'opencode-ai']", "good");
        check("provider = 'aider'\ncommand = 'aider'", "`command` of `aider` is a list");
        check("provider = 'aider'\nhome = 'tent'", "unknown variant `tent`");
        check("provider = 'codex'\ntemperature = 1", "`temperature` says nothing to `codex`");
        check("provider = 'codex'\nargs = 'x'", "expected a sequence");
        check("provider = 'gemini-cli'\nbase_url = 'http://x'", "needs `home = \"scratch\"`");
        check("provider = 'opencode'\nbase_url = 'http://x'", "`model` is missing");
        check("provider = 'aider'\nbase_url = 'http://x'", "`aider` knows none of that");
        check("provider = 'openai'\nmodel = 'm'\nargs = []", "`args` says nothing to `openai`");
        check("provider = 'command'\ncommand = 'x'\nhome = 'user'", "`home` says nothing");
        check("provider = 'command'", "`command` is missing");
        check("provider = 'command'\ncommand = []", "cannot be empty");
        check("provider = 'command'\ncommand = 3", "a text for the shell");
        check("provider = 'command'\ncommand = 'x'\nmodel = 'm'", "`model` says nothing");
    }

    #[test]
    fn the_tuner_has_two_roles() {
        for role in AgentRole::ALL {
            let said = toml::from_str::<AgentsTable>(&format!("{role} = {{ provider = 'tuner' }}"));
            match role {
                AgentRole::Ideas | AgentRole::Coder => {
                    assert!(said.is_ok_and(|table| table.agent_for(role).is_some()));
                }
                AgentRole::Coordinator | AgentRole::Planner | AgentRole::Reviewer => {
                    let why = said.expect_err("refused").to_string();
                    assert!(why.contains("can be `ideas` and `coder` only"), "{why}");
                }
            }
        }
    }
}
