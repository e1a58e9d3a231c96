//! `[agents.<role>]`: who answers in a role. Checked where it is read; which key an agent gets is found later, and no key
//! stands in a configuration.

use super::number::{OneTo, Temperature};
use super::table::Table;
use serde::Deserialize;
use serde_json::{Map, Value};
use treebeam_edge::agent::settings::{Edits, Home, Tool, Wire};
use treebeam_run::port::Role;

/// The keys of `[agents]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentsTable {
    coordinator: Option<Table<Adviser>>,
    planner: Option<Table<Adviser>>,
    coder: Option<Table<Agent>>,
    reviewer: Option<Table<Adviser>>,
    ideas: Option<Table<Agent>>,
}

impl AgentsTable {
    /// Who is set for a role.
    pub(crate) fn get(&self, role: Role) -> Option<&Agent> {
        let adviser = match role {
            Role::Coordinator => &self.coordinator,
            Role::Planner => &self.planner,
            Role::Reviewer => &self.reviewer,
            Role::Coder => return self.coder.as_ref().map(|table| &table.0),
            Role::Ideas => return self.ideas.as_ref().map(|table| &table.0),
        };
        adviser.as_ref().map(|table| &table.0.0)
    }
}

/// An agent that says what it thinks of an idea or a patch, which takes more than the tuner.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Said")]
struct Adviser(Agent);

/// One agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Said")]
pub(crate) struct Agent {
    pub(crate) line: Line,
    pub(crate) api_key_env: Option<String>,
    pub(crate) timeout_sec: Option<u32>,
    pub(crate) edits: Edits,
}

/// Through what it is asked.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    Model(Model),
    Command(Vec<String>),
    Cli(Cli),
    /// The built-in one; `[tuner]` says the rest.
    Tuner,
}

/// A coding agent on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Cli {
    pub(crate) tool: Tool,
    pub(crate) command: Option<Vec<String>>,
    pub(crate) model: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) home: Home,
}

/// A model behind a server.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) wire: Wire,
    pub(crate) name: String,
    pub(crate) base_url: Option<String>,
    pub(crate) temperature: Option<f64>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) effort: Option<&'static str>,
    pub(crate) extra: Map<String, Value>,
}

/// What a table says, before it is known to make sense.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    provider: Provider,
    model: Option<String>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    temperature: Option<Temperature>,
    max_tokens: Option<OneTo<10_000_000>>,
    reasoning_effort: Option<Effort>,
    timeout_sec: Option<OneTo<86_400>>,
    extra: Option<Map<String, Value>>,
    command: Option<CommandLine>,
    args: Option<Vec<String>>,
    home: Option<Home>,
    edits: Option<Edits>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Provider {
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

/// Through what a provider is asked.
enum Way {
    Wire(Wire),
    Command,
    Tool(Tool),
    Tuner,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
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

/// A program with its arguments, or a line for the shell.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a text for the shell, or a list of a program and its arguments")]
enum CommandLine {
    Shell(String),
    Program(Vec<String>),
}

impl CommandLine {
    fn parts(self) -> Result<Vec<String>, String> {
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

impl Provider {
    const fn way(self) -> Way {
        match self {
            Self::Openai => Way::Wire(Wire::Responses),
            Self::OpenaiChat => Way::Wire(Wire::Chat),
            Self::Anthropic => Way::Wire(Wire::Messages),
            Self::Gemini => Way::Wire(Wire::Gemini),
            Self::Ollama => Way::Wire(Wire::Ollama),
            Self::Command => Way::Command,
            Self::Tuner => Way::Tuner,
            Self::Codex => Way::Tool(Tool::Codex),
            Self::Claude => Way::Tool(Tool::Claude),
            Self::GeminiCli => Way::Tool(Tool::Gemini),
            Self::Opencode => Way::Tool(Tool::Opencode),
            Self::Aider => Way::Tool(Tool::Aider),
        }
    }
}

impl TryFrom<Said> for Agent {
    type Error = String;
    fn try_from(said: Said) -> Result<Self, String> {
        if !said.api_key_env.as_deref().is_none_or(is_variable) {
            // What stands there may be the key: it is not repeated.
            return Err(
                "`api_key_env` is the name of a variable; the key itself belongs in `.env`"
                    .to_owned(),
            );
        }
        let (api_key_env, edits) = (said.api_key_env.clone(), said.edits);
        let timeout_sec = said.timeout_sec.map(|seconds| seconds.0.get());
        let (line, usual) = match said.provider.way() {
            Way::Wire(wire) => (Line::Model(model(said, wire)?), Edits::Diff),
            Way::Command => (Line::Command(command(said)?), Edits::Diff),
            Way::Tool(tool) => (Line::Cli(cli(said, tool)?), Edits::InPlace),
            Way::Tuner => (tuner(&said).map(|()| Line::Tuner)?, Edits::Diff),
        };
        Ok(Self { line, api_key_env, timeout_sec, edits: edits.unwrap_or(usual) })
    }
}

impl TryFrom<Said> for Adviser {
    type Error = String;
    fn try_from(said: Said) -> Result<Self, String> {
        if said.provider == Provider::Tuner {
            return Err("the `tuner` can be `ideas` and `coder` only".to_owned());
        }
        Agent::try_from(said).map(Self)
    }
}

/// What is only for coding agents.
fn not_for_cli(said: &Said, provider: &str) -> Result<(), String> {
    let only = [("args", said.args.is_some()), ("home", said.home.is_some())];
    match only.into_iter().find(|(_, is_said)| *is_said) {
        Some((name, _)) => Err(format!("`{name}` says nothing to `{provider}`")),
        None => Ok(()),
    }
}

fn cli(said: Said, tool: Tool) -> Result<Cli, String> {
    let provider = tool.provider();
    let for_models = [
        ("temperature", said.temperature.is_some()),
        ("reasoning_effort", said.reasoning_effort.is_some()),
        ("extra", said.extra.is_some()),
    ];
    if let Some((name, _)) = for_models.into_iter().find(|(_, is_said)| *is_said) {
        return Err(format!("`{name}` says nothing to `{provider}`: give it in `args`"));
    }
    let command = match said.command {
        None => None,
        Some(CommandLine::Shell(_)) => {
            return Err(format!("`command` of `{provider}` is a list: the program first"));
        }
        Some(line @ CommandLine::Program(_)) => Some(line.parts()?),
    };
    let home = said.home.unwrap_or_default();
    if tool == Tool::Gemini && said.base_url.is_some() && home == Home::User {
        // It takes another server only with a setting that stands in its home.
        return Err("`base_url` of `gemini-cli` needs `home = \"scratch\"`".to_owned());
    }
    let any_server = matches!(tool, Tool::Opencode | Tool::Aider);
    if any_server && said.base_url.is_some() && said.model.is_none() {
        return Err(format!("`model` is missing: `{provider}` knows none of that `base_url`"));
    }
    Ok(Cli {
        tool,
        command,
        model: said.model.filter(|name| !name.trim().is_empty()),
        args: said.args.unwrap_or_default(),
        base_url: said.base_url.as_deref().map(base_url).transpose()?,
        max_tokens: said.max_tokens.map(|count| count.0.get()),
        home,
    })
}

fn model(said: Said, wire: Wire) -> Result<Model, String> {
    let provider = wire.provider();
    not_for_cli(&said, provider)?;
    if said.command.is_some() {
        return Err(format!(
            "`command` is for the provider `command` and coding agents, not `{provider}`"
        ));
    }
    if said.edits == Some(Edits::InPlace) {
        return Err(format!("`{provider}` cannot edit a worktree: `edits` must be \"diff\""));
    }
    if wire == Wire::Messages && said.temperature.is_some() {
        return Err(
            "`anthropic` knows no `temperature` any more; another server gets it in `extra`"
                .to_owned(),
        );
    }
    let efforts = efforts(wire);
    if let Some(effort) =
        said.reasoning_effort.map(Effort::name).filter(|name| !efforts.contains(name))
    {
        let known = efforts.join("`, `");
        return Err(format!("`reasoning_effort` of `{provider}` is `{known}`, not `{effort}`"));
    }
    let name = said.model.filter(|name| !name.trim().is_empty());
    let name = name.ok_or_else(|| format!("`model` is missing: `{provider}` has many"))?;
    Ok(Model {
        wire,
        name,
        base_url: said.base_url.as_deref().map(base_url).transpose()?,
        temperature: said.temperature.map(|number| number.0.get()),
        max_tokens: said.max_tokens.map(|count| count.0.get()),
        effort: said.reasoning_effort.map(Effort::name),
        extra: said.extra.map(extra).transpose()?.unwrap_or_default(),
    })
}

/// What else goes into each request. What is asked, and how long an answer may be, is not among it: the budget counts on it.
fn extra(extra: Map<String, Value>) -> Result<Map<String, Value>, String> {
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

/// How hard a model can think there.
const fn efforts(wire: Wire) -> &'static [&'static str] {
    match wire {
        Wire::Responses | Wire::Chat => {
            &["none", "minimal", "low", "medium", "high", "xhigh", "max"]
        }
        Wire::Messages => &["low", "medium", "high", "xhigh", "max"],
        Wire::Gemini => &["minimal", "low", "medium", "high"],
        Wire::Ollama => &["low", "medium", "high"],
    }
}

/// The first thing that was said which only a model understands.
fn for_models(said: &Said) -> Option<&'static str> {
    let for_models = [
        ("model", said.model.is_some()),
        ("base_url", said.base_url.is_some()),
        ("temperature", said.temperature.is_some()),
        ("max_tokens", said.max_tokens.is_some()),
        ("reasoning_effort", said.reasoning_effort.is_some()),
        ("extra", said.extra.is_some()),
    ];
    for_models.into_iter().find(|(_, is_said)| *is_said).map(|(name, _)| name)
}

fn tuner(said: &Said) -> Result<(), String> {
    let others = [
        ("command", said.command.is_some()),
        ("api_key_env", said.api_key_env.is_some()),
        ("timeout_sec", said.timeout_sec.is_some()),
        ("args", said.args.is_some()),
        ("home", said.home.is_some()),
        ("edits", said.edits == Some(Edits::InPlace)),
    ];
    let other = others.into_iter().find(|(_, is_said)| *is_said).map(|(name, _)| name);
    match for_models(said).or(other) {
        Some(name) => {
            Err(format!("`{name}` says nothing to the `tuner`: its keys are in `[tuner]`"))
        }
        None => Ok(()),
    }
}

fn command(said: Said) -> Result<Vec<String>, String> {
    not_for_cli(&said, "command")?;
    if let Some(name) = for_models(&said) {
        return Err(format!("`{name}` says nothing to a `command`: give it as an argument"));
    }
    let command = said.command.ok_or("`command` is missing: the program and its arguments")?;
    command.parts()
}

/// A server's address, without a slash at the end.
fn base_url(url: &str) -> Result<String, String> {
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

fn is_variable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_sense() {
        let check = |text: &str, expect: &str| {
            let said = toml::from_str::<Agent>(text);
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
        for role in Role::ALL {
            let said = toml::from_str::<AgentsTable>(&format!("{role} = {{ provider = 'tuner' }}"));
            match role {
                Role::Ideas | Role::Coder => {
                    assert!(said.is_ok_and(|table| table.get(role).is_some()));
                }
                Role::Coordinator | Role::Planner | Role::Reviewer => {
                    let why = said.expect_err("refused").to_string();
                    assert!(why.contains("can be `ideas` and `coder` only"), "{why}");
                }
            }
        }
    }
}
