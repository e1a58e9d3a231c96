//! Who answers in a role: the provider, the model and how it is asked. Parsed and checked elsewhere; believed here.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;
use std::time::Duration;
use treebeam_run::port::AgentRole;
use treebeam_store::env_file::Secret;

pub use treebeam_run::port::EditMode;

/// How long an answer may be where nobody says otherwise: what is reserved for it must have a bound.
pub const DEFAULT_MAX_TOKENS: u32 = 16_384;
/// What one call of a coding agent is taken to need at most where nobody says otherwise, in tokens.
pub const DEFAULT_CLI_MAX_TOKENS: u32 = 200_000;
/// How long one try may take where nobody says otherwise.
pub const DEFAULT_TRY_TIMEOUT: Duration = Duration::from_mins(10);

/// One agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// Through what it is asked.
    pub line: AgentKind,
    /// How long one try may take.
    pub timeout: Duration,
}

impl AgentSettings {
    /// Whether its answers can be gone on from.
    #[must_use]
    pub const fn can_continue(&self) -> bool {
        match &self.line {
            AgentKind::Model(model) => model.wire.can_continue(),
            AgentKind::Cli(cli) => cli.tool.can_continue(),
            AgentKind::Command(_) | AgentKind::Tuner(_) => false,
        }
    }

    /// What its answers are in a role: only a coder edits.
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

/// Through what an agent is asked.
#[derive(Clone, Debug)]
pub enum AgentKind {
    /// A model behind a server.
    Model(ModelAgent),
    /// A program of the user's.
    Command(CommandAgent),
    /// The built-in one that needs no model.
    Tuner(TunerAgent),
    /// A coding agent on the command line.
    Cli(CliAgent),
}

/// A model behind a server.
#[derive(Clone, Debug)]
pub struct ModelAgent {
    /// Which wire format its server speaks.
    pub wire: WireFormat,
    /// Its name there.
    pub name: String,
    /// Where the server is, without a slash at the end.
    pub base_url: String,
    /// What it is paid with.
    pub key: Option<ApiKey>,
    /// How freely it answers.
    pub temperature: Option<f64>,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
    /// How hard it thinks.
    pub effort: Option<String>,
    /// What else goes into each request.
    pub extra: Map<String, Value>,
}

/// A program of the user's.
#[derive(Clone, Debug)]
pub struct CommandAgent {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The key that it needs, in the variable that it is in here.
    pub key: Option<ApiKey>,
    /// What becomes of its answer.
    pub edits: EditMode,
}

/// A coding agent on the command line.
#[derive(Clone, Debug)]
pub struct CliAgent {
    /// Which.
    pub tool: CliTool,
    /// How it is started: a program and what comes before its own arguments.
    pub command: Vec<String>,
    /// The model that it uses; its own choice, if none.
    pub model: Option<String>,
    /// What is added to its arguments.
    pub args: Vec<String>,
    /// Another server than its own.
    pub base_url: Option<String>,
    /// A key to use instead of the user's login.
    pub key: Option<ApiKey>,
    /// What one call is taken to need at most, in tokens: it says so only afterwards.
    pub max_tokens: u32,
    /// Whose settings, logins and sessions it sees.
    pub home: AgentHome,
    /// What becomes of its answer.
    pub edits: EditMode,
}

/// The home folder of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentHome {
    /// The user's own, with its login.
    #[default]
    User,
    /// One of the run's, empty at first.
    Scratch,
}

/// The coding agents that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CliTool {
    /// `OpenAI`'s.
    Codex,
    /// Anthropic's.
    Claude,
    /// Google's.
    Gemini,
    /// The one that takes any model.
    Opencode,
    /// The one that pairs.
    Aider,
}

impl CliTool {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Codex, Self::Claude, Self::Gemini, Self::Opencode, Self::Aider];

    /// Its name in the configuration.
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

    /// Its program.
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

    /// The oldest version that it is known to work with.
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

    /// Whether a session of its own can be forked.
    #[must_use]
    pub const fn can_continue(self) -> bool {
        !matches!(self, Self::Aider)
    }
}

/// The built-in agent that needs no model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunerAgent {
    /// Globs of the files that it looks at; none: what it finds.
    pub files: Vec<String>,
    /// What its choices among equals follow from.
    pub seed: u64,
}

/// A key and the variable that it is in.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// The variable's name.
    pub variable: String,
    /// What is in it.
    pub value: Secret,
}

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFormat {
    /// `OpenAI`'s Responses.
    Responses,
    /// `OpenAI`'s chat completions, as many servers speak them.
    Chat,
    /// Anthropic's messages.
    Messages,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's own chat.
    Ollama,
}

impl WireFormat {
    /// The provider's own server.
    #[must_use]
    pub const fn default_base_url(self) -> &'static str {
        match self {
            Self::Responses | Self::Chat => "https://api.openai.com/v1",
            Self::Messages => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://localhost:11434",
        }
    }

    /// The variable that usually has the key.
    #[must_use]
    pub const fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Responses | Self::Chat => Some("OPENAI_API_KEY"),
            Self::Messages => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    /// Whether its server can go on from an answer of its own.
    #[must_use]
    pub const fn can_continue(self) -> bool {
        matches!(self, Self::Responses)
    }

    /// Its name in the configuration.
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
    /// Its name, for messages.
    #[must_use]
    pub fn provider_name(&self) -> &'static str {
        match &self.line {
            AgentKind::Model(model) => model.wire.provider_name(),
            AgentKind::Command(_) => "command",
            AgentKind::Tuner(_) => "tuner",
            AgentKind::Cli(cli) => cli.tool.provider_name(),
        }
    }

    /// What is done with its answer.
    #[must_use]
    pub const fn edits(&self) -> EditMode {
        match &self.line {
            AgentKind::Model(_) | AgentKind::Tuner(_) => EditMode::Diff,
            AgentKind::Command(program) => program.edits,
            AgentKind::Cli(cli) => cli.edits,
        }
    }

    /// The name of the model, as far as it is known; none where nobody counts.
    #[must_use]
    pub fn priced_model(&self) -> Option<&str> {
        match &self.line {
            AgentKind::Model(model) => Some(&model.name),
            AgentKind::Command(_) | AgentKind::Tuner(_) => None,
            AgentKind::Cli(cli) => Some(cli.model.as_deref().unwrap_or_default()),
        }
    }

    /// The model, where there is one.
    #[must_use]
    pub const fn as_model(&self) -> Option<&ModelAgent> {
        match &self.line {
            AgentKind::Model(model) => Some(model),
            AgentKind::Command(_) | AgentKind::Tuner(_) | AgentKind::Cli(_) => None,
        }
    }

    /// The key, where there is one.
    #[must_use]
    pub const fn api_key(&self) -> Option<&ApiKey> {
        match &self.line {
            AgentKind::Model(model) => model.key.as_ref(),
            AgentKind::Command(program) => program.key.as_ref(),
            AgentKind::Tuner(_) => None,
            AgentKind::Cli(cli) => cli.key.as_ref(),
        }
    }

    /// All but the key, for the record of a call.
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
