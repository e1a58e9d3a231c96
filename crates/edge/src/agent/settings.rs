//! Who answers in a role: the provider, the model and how it is asked. Parsed and checked elsewhere; believed here.

use crate::env_file::Secret;
use serde_json::{Map, Value, json};
use std::fmt;
use std::time::Duration;

/// How long an answer may be where nobody says otherwise: what is reserved for it must have a bound.
pub const MAX_TOKENS: u32 = 16_384;
/// How long one try may take where nobody says otherwise.
pub const TIMEOUT: Duration = Duration::from_mins(10);

/// One agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Through what it is asked.
    pub line: Line,
    /// How long one try may take.
    pub timeout: Duration,
}

/// Through what an agent is asked.
#[derive(Clone, Debug)]
pub enum Line {
    /// A model behind a server.
    Model(Model),
    /// A program of the user's.
    Command(Program),
    /// The built-in one that needs no model.
    Tuner(Tuner),
}

/// A model behind a server.
#[derive(Clone, Debug)]
pub struct Model {
    /// Which wire format its server speaks.
    pub wire: Wire,
    /// Its name there.
    pub name: String,
    /// Where the server is, without a slash at the end.
    pub base_url: String,
    /// What it is paid with.
    pub key: Option<Key>,
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
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The key that it needs, in the variable that it is in here.
    pub key: Option<Key>,
}

/// The built-in agent that needs no model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuner {
    /// Globs of the files that it looks at; none: what it finds.
    pub files: Vec<String>,
    /// What its choices among equals follow from.
    pub seed: u64,
}

/// A key and the variable that it is in.
#[derive(Clone, Debug)]
pub struct Key {
    /// The variable's name.
    pub variable: String,
    /// What is in it.
    pub value: Secret,
}

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
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

impl Wire {
    /// The provider's own server.
    #[must_use]
    pub const fn home(self) -> &'static str {
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
    pub const fn continues(self) -> bool {
        matches!(self, Self::Responses)
    }

    /// Its name in the configuration.
    #[must_use]
    pub const fn provider(self) -> &'static str {
        match self {
            Self::Responses => "openai",
            Self::Chat => "openai-chat",
            Self::Messages => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }
}

impl Settings {
    /// Its name, for messages.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        match &self.line {
            Line::Model(model) => model.wire.provider(),
            Line::Command(_) => "command",
            Line::Tuner(_) => "tuner",
        }
    }

    /// The model, where there is one.
    #[must_use]
    pub const fn model(&self) -> Option<&Model> {
        match &self.line {
            Line::Model(model) => Some(model),
            Line::Command(_) | Line::Tuner(_) => None,
        }
    }

    /// The key, where there is one.
    #[must_use]
    pub const fn key(&self) -> Option<&Key> {
        match &self.line {
            Line::Model(model) => model.key.as_ref(),
            Line::Command(program) => program.key.as_ref(),
            Line::Tuner(_) => None,
        }
    }

    /// All but the key, for the record of a call.
    #[must_use]
    pub fn document(&self) -> Value {
        let timeout_sec = self.timeout.as_secs_f64();
        match &self.line {
            Line::Command(program) => json!({
                "provider": "command", "command": program.command, "timeout_sec": timeout_sec,
            }),
            Line::Tuner(tuner) => json!({
                "provider": "tuner", "files": tuner.files, "seed": tuner.seed,
            }),
            Line::Model(model) => json!({
                "provider": model.wire.provider(),
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

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.line {
            Line::Model(model) => write!(f, "{} `{}`", model.wire.provider(), model.name),
            Line::Command(program) => {
                write!(f, "command `{}`", program.command.first().map_or("", String::as_str))
            }
            Line::Tuner(_) => f.write_str("tuner"),
        }
    }
}
