//! Settings of a role's agent: provider, model and parameters. Checked elsewhere; trusted here.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;
use std::time::Duration;
use treebeam_run::port::AgentRole;
use treebeam_store::env_file::Secret;

pub use treebeam_run::port::EditMode;

/// The longest answer by default: the reservation for it must have a bound.
pub const DEFAULT_MAX_TOKENS: u32 = 16_384;
/// The most tokens that one call of a coding agent is assumed to need by default.
pub const DEFAULT_CLI_MAX_TOKENS: u32 = 200_000;
/// The longest time of one try by default.
pub const DEFAULT_TRY_TIMEOUT: Duration = Duration::from_mins(10);

/// Settings of one agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// Kind of the agent.
    pub line: AgentKind,
    /// The longest time of one try.
    pub timeout: Duration,
}

impl AgentSettings {
    /// Returns true if a question can continue an answer of this agent.
    #[must_use]
    pub const fn can_continue(&self) -> bool {
        match &self.line {
            AgentKind::Model(model) => model.wire.can_continue(),
            AgentKind::Cli(cli) => cli.tool.can_continue(),
            AgentKind::Command(_) | AgentKind::Tuner(_) => false,
        }
    }

    /// Returns the edit mode of the agent's answers in a role: only a coder edits.
    #[must_use]
    pub fn edits_as(&self, role: AgentRole) -> EditMode {
        match (&self.line, role) {
            (
                AgentKind::Command(CommandAgent { edits, .. })
                | AgentKind::Cli(CliAgent { edits, .. }),
                AgentRole::Coder,
            ) => *edits,
            _ => EditMode::Diff,
        }
    }
}

/// The kinds of agents.
#[derive(Clone, Debug)]
pub enum AgentKind {
    /// A model behind a server.
    Model(ModelAgent),
    /// A program of the user's.
    Command(CommandAgent),
    /// The built-in agent that needs no model.
    Tuner(TunerAgent),
    /// A coding agent on the command line.
    Cli(CliAgent),
}

/// A model behind a server.
#[derive(Clone, Debug)]
pub struct ModelAgent {
    /// Wire format of the server.
    pub wire: WireFormat,
    /// Name of the model at the server.
    pub name: String,
    /// URL of the server, without a slash at the end.
    pub base_url: String,
    /// Key of the server, if it needs one.
    pub key: Option<ApiKey>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
    /// Reasoning effort.
    pub effort: Option<String>,
    /// Further fields of each request.
    pub extra: Map<String, Value>,
}

/// A program of the user's.
#[derive(Clone, Debug)]
pub struct CommandAgent {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The key that the program needs, and the variable that holds it.
    pub key: Option<ApiKey>,
    /// Treatment of the answer: a diff, or edits in place.
    pub edits: EditMode,
}

/// A coding agent on the command line.
#[derive(Clone, Debug)]
pub struct CliAgent {
    /// The coding agent's kind.
    pub tool: CliTool,
    /// The program, and the arguments before its own.
    pub command: Vec<String>,
    /// The model to use; by default the agent's own choice.
    pub model: Option<String>,
    /// Further arguments of the program.
    pub args: Vec<String>,
    /// A server to use instead of the agent's own.
    pub base_url: Option<String>,
    /// A key to use instead of the user's login.
    pub key: Option<ApiKey>,
    /// The most tokens that one call is assumed to need: the use is known only afterwards.
    pub max_tokens: u32,
    /// The home folder with the agent's settings, logins and sessions.
    pub home: AgentHome,
    /// Treatment of the answer: a diff, or edits in place.
    pub edits: EditMode,
}

/// The home folder of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentHome {
    /// The user's own home, with its login.
    #[default]
    User,
    /// A home of the run's, empty at first.
    Scratch,
}

/// The coding agents that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CliTool {
    /// The coding agent of `OpenAI`.
    Codex,
    /// The coding agent of Anthropic.
    Claude,
    /// The coding agent of Google.
    Gemini,
    /// The open-source agent `opencode`, for any model.
    Opencode,
    /// The pair programmer `aider`.
    Aider,
}

impl CliTool {
    /// All coding agents.
    pub const ALL: [Self; 5] =
        [Self::Codex, Self::Claude, Self::Gemini, Self::Opencode, Self::Aider];

    /// Returns the agent's name in the configuration.
    #[must_use]
    pub const fn provider_name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Gemini => "gemini-cli",
            Self::Opencode => "opencode",
            Self::Aider => "aider",
        }
    }

    /// Returns the name of the agent's program.
    #[must_use]
    pub const fn program_name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Aider => "aider",
        }
    }

    /// Returns the oldest version that is known to work.
    #[must_use]
    pub const fn oldest_version(self) -> (u32, u32) {
        match self {
            Self::Codex => (0, 166),
            Self::Claude => (2, 1),
            Self::Gemini => (0, 61),
            Self::Opencode => (1, 18),
            Self::Aider => (0, 86),
        }
    }

    /// Returns true if a session can be forked.
    #[must_use]
    pub const fn can_continue(self) -> bool {
        !matches!(self, Self::Aider)
    }
}

/// The built-in agent that needs no model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunerAgent {
    /// Globs of the files that the tuner reads; without any it searches by itself.
    pub files: Vec<String>,
    /// Seed of the tuner's choices among equals.
    pub seed: u64,
}

/// A key and the variable that holds it.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// Name of the variable.
    pub variable: String,
    /// Value of the variable.
    pub value: Secret,
}

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFormat {
    /// The Responses API of `OpenAI`.
    Responses,
    /// The chat completions of `OpenAI`, which many servers speak.
    Chat,
    /// The messages API of Anthropic.
    Messages,
    /// The `generateContent` API of Google.
    Gemini,
    /// The chat API of Ollama.
    Ollama,
}

impl WireFormat {
    /// Returns the URL of the provider's own server.
    #[must_use]
    pub const fn default_base_url(self) -> &'static str {
        match self {
            Self::Responses | Self::Chat => "https://api.openai.com/v1",
            Self::Messages => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://localhost:11434",
        }
    }

    /// Returns the variable that usually holds the key.
    #[must_use]
    pub const fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Responses | Self::Chat => Some("OPENAI_API_KEY"),
            Self::Messages => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    /// Returns true if the server can continue an answer of its own.
    #[must_use]
    pub const fn can_continue(self) -> bool {
        matches!(self, Self::Responses)
    }

    /// Returns the format's name in the configuration.
    #[must_use]
    pub const fn provider_name(self) -> &'static str {
        match self {
            Self::Responses => "openai",
            Self::Chat => "openai-chat",
            Self::Messages => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }
}

impl AgentSettings {
    /// Returns the provider's name, for messages.
    #[must_use]
    pub fn provider_name(&self) -> &'static str {
        match &self.line {
            AgentKind::Model(model) => model.wire.provider_name(),
            AgentKind::Command(_) => "command",
            AgentKind::Tuner(_) => "tuner",
            AgentKind::Cli(cli) => cli.tool.provider_name(),
        }
    }

    /// Returns the treatment of the agent's answer.
    #[must_use]
    pub const fn edits(&self) -> EditMode {
        match &self.line {
            AgentKind::Model(_) | AgentKind::Tuner(_) => EditMode::Diff,
            AgentKind::Command(program) => program.edits,
            AgentKind::Cli(cli) => cli.edits,
        }
    }

    /// Returns the model's name for its price, empty if unknown; none if the use is not counted.
    #[must_use]
    pub fn priced_model(&self) -> Option<&str> {
        match &self.line {
            AgentKind::Model(model) => Some(&model.name),
            AgentKind::Command(_) | AgentKind::Tuner(_) => None,
            AgentKind::Cli(cli) => Some(cli.model.as_deref().unwrap_or_default()),
        }
    }

    /// Returns the model, if the agent is one.
    #[must_use]
    pub const fn as_model(&self) -> Option<&ModelAgent> {
        match &self.line {
            AgentKind::Model(model) => Some(model),
            AgentKind::Command(_) | AgentKind::Tuner(_) | AgentKind::Cli(_) => None,
        }
    }

    /// Returns the key, if there is one.
    #[must_use]
    pub const fn api_key(&self) -> Option<&ApiKey> {
        match &self.line {
            AgentKind::Model(model) => model.key.as_ref(),
            AgentKind::Command(program) => program.key.as_ref(),
            AgentKind::Tuner(_) => None,
            AgentKind::Cli(cli) => cli.key.as_ref(),
        }
    }

    /// Returns all settings but the key, for the record of a call.
    #[must_use]
    pub fn to_document(&self) -> Value {
        let timeout_sec = self.timeout.as_secs_f64();
        match &self.line {
            AgentKind::Command(program) => json!({
                "provider": "command",
                "command": program.command,
                "edits": program.edits,
                "timeout_sec": timeout_sec,
            }),
            AgentKind::Cli(cli) => json!({
                "provider": cli.tool.provider_name(),
                "command": cli.command,
                "model": cli.model,
                "args": cli.args,
                "base_url": cli.base_url,
                "max_tokens": cli.max_tokens,
                "home": cli.home,
                "edits": cli.edits,
                "timeout_sec": timeout_sec,
            }),
            AgentKind::Tuner(tuner) => json!({
                "provider": "tuner", "files": tuner.files, "seed": tuner.seed,
            }),
            AgentKind::Model(model) => json!({
                "provider": model.wire.provider_name(),
                "model": model.name,
                "base_url": model.base_url,
                "temperature": model.temperature,
                "max_tokens": model.max_tokens,
                "reasoning_effort": model.effort,
                "extra": model.extra,
                "timeout_sec": timeout_sec,
            }),
        }
    }
}

impl fmt::Display for AgentSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.line {
            AgentKind::Model(model) => write!(f, "{} `{}`", model.wire.provider_name(), model.name),
            AgentKind::Command(program) => {
                write!(f, "command `{}`", program.command.first().map_or("", String::as_str))
            }
            AgentKind::Tuner(_) => f.write_str("tuner"),
            AgentKind::Cli(cli) => match &cli.model {
                Some(model) => write!(f, "{} `{model}`", cli.tool.provider_name()),
                None => f.write_str(cli.tool.provider_name()),
            },
        }
    }
}
