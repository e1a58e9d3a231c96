//! Coding agents on the command line. For each there is a file with two pure functions: `call` says how it is started, `read`
//! what its output means. All the rest is the same for all of them and is here.
//!
//! A session is only ever forked, never resumed: so two that go on from the same answer cannot
//! disturb each other. What an agent did is not read from what it says: see `workspace` beside this
//! folder.
//!
//! # Layout
//! `codex`, `claude`, `gemini`, `opencode`, `aider`; `call_folder` has the files that one call
//! needs, `refusal` says what a complaint means, `json` finds JSON among other lines, [`version`]
//! asks which version is there.

mod aider;
mod call_folder;
mod claude;
mod codex;
mod gemini;
mod json;
mod opencode;
mod refusal;
#[cfg(test)]
mod tests;
pub mod version;

use super::command::{self, AgentCommand, AgentWorkspace};
use super::question::{AgentQuestion, TryCost, TryError};
use super::settings::{AgentHome, CliAgent, CliTool};
use super::workspace::AccessMode;
use call_folder::{CliCallFolder, CliSession};
use refusal::CliRefusal;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use treebeam_process::EndedChild;
use treebeam_run::port::{AgentReply, Cost, TokenUsage};

/// What an agent is asked, and how.
#[derive(Clone, Debug)]
struct CliRequest<'a> {
    cli: &'a CliAgent,
    doing: AccessMode,
    session: CliSession,
    /// Where the prompt stands, for those that do not read it.
    prompt: &'a Path,
    surroundings: &'a AgentWorkspace,
}

/// How an agent is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CliCall {
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl CliCall {
    fn with_arguments<S: Into<String>>(mut self, more: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(more.into_iter().map(Into::into));
        self
    }

    /// An argument with what belongs to it, where there is such a thing.
    fn with_option(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with_arguments([name, value]),
            None => self,
        }
    }

    fn with_variable(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.variables.extend(value.map(|value| (name, value.to_owned())));
        self
    }

    /// A variable with the key that the agent is given.
    fn with_key(self, name: &'static str, cli: &CliAgent) -> Self {
        self.with_variable(name, cli.key.as_ref().map(|key| key.value.reveal().trim()))
    }
}

/// What an agent wrote.
#[derive(Clone, Copy, Debug)]
struct CliStreams<'a> {
    stdout: &'a str,
    stderr: &'a str,
}

/// What an agent said.
#[derive(Clone, Debug, Default, PartialEq)]
struct CliOutput {
    text: String,
    /// What this turn took.
    usage: Option<TokenUsage>,
    /// What its whole thread took.
    taken: Option<TokenUsage>,
    cost: Option<Cost>,
    id: Option<String>,
    model: Option<String>,
    /// What it was not allowed to do.
    refused: Vec<String>,
}

/// Lets the agent answer, or edit.
pub(super) fn answer_with_cli(
    cli: &CliAgent,
    timeout: Duration,
    question: &AgentQuestion,
    surroundings: &AgentWorkspace,
) -> Result<AgentReply, TryError> {
    let doing = surroundings.access_mode(question, cli.edits);
    let desk = CliCallFolder::create(cli, question, surroundings)?;
    let session = desk.prepare_session(cli, question.continues.as_ref())?;
    desk.write_prompt(&question.prompt)?;
    let asked = CliRequest { cli, doing, session, prompt: &desk.prompt, surroundings };
    let reply = surroundings.work_in_folder(question, doing, litter_globs(cli.tool), |folder| {
        let folder = desk.work_folder(folder)?;
        let call = build_call(&asked);
        let command: Vec<String> = cli.command.iter().chain(&call.arguments).cloned().collect();
        let variables = cli_variables(cli, &desk, call.variables);
        let input = Arc::clone(&question.prompt);
        let start = AgentCommand { command: &command, folder: &folder, variables, input, timeout };
        match start.run(question, surroundings) {
            Ok(ended) => interpret_output(ended, cli, question, doing),
            // It may have asked its model any number of times by then.
            Err(TryError::Unanswered { why, .. }) => {
                Err(TryError::Unanswered { why, spent: TryCost::Unknown })
            }
            Err(other) => Err(other),
        }
    })?;
    Ok(reply)
}

fn build_call(asked: &CliRequest<'_>) -> CliCall {
    match asked.cli.tool {
        CliTool::Codex => codex::build_call(asked),
        CliTool::Claude => claude::build_call(asked),
        CliTool::Gemini => gemini::build_call(asked),
        CliTool::Opencode => opencode::build_call(asked),
        CliTool::Aider => aider::build_call(asked),
    }
}

fn parse_output(tool: CliTool, output: CliStreams<'_>) -> Result<CliOutput, CliRefusal> {
    match tool {
        CliTool::Codex => codex::parse_output(output),
        CliTool::Claude => claude::parse_output(output),
        CliTool::Gemini => gemini::parse_output(output),
        CliTool::Opencode => opencode::parse_output(output),
        CliTool::Aider => aider::parse_output(output),
    }
}

/// Files that an agent leaves for itself.
const fn litter_globs(tool: CliTool) -> &'static [&'static str] {
    match tool {
        CliTool::Aider => &[".aider*", ".aider*/**"],
        CliTool::Codex | CliTool::Claude | CliTool::Gemini | CliTool::Opencode => &[],
    }
}

/// Where an agent keeps things, if not in the home folder.
const AGENT_HOME_VARIABLES: [&str; 6] = [
    "CODEX_HOME",
    "CLAUDE_CONFIG_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
];

fn cli_variables(
    cli: &CliAgent,
    desk: &CliCallFolder<'_>,
    own: Vec<(&'static str, String)>,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = command::passed_variables().collect();
    match cli.home {
        AgentHome::User => {
            let set = |name: &&str| Some(((*name).into(), std::env::var_os(name)?));
            variables.extend(AGENT_HOME_VARIABLES.iter().filter_map(set));
        }
        AgentHome::Scratch => {
            let home = desk.home.clone().into_os_string();
            variables.extend([("HOME".into(), home.clone()), ("USERPROFILE".into(), home)]);
        }
    }
    variables.extend(own.into_iter().map(|(name, value)| (name.into(), value.into())));
    variables
}

/// What the output means. How the program ended counts only where it said nothing else.
fn interpret_output(
    ended: EndedChild,
    cli: &CliAgent,
    question: &AgentQuestion,
    doing: AccessMode,
) -> Result<AgentReply, TryError> {
    let program = cli.command.first().map_or("", String::as_str);
    let (success, tail) = (ended.status.success(), command::stderr_tail(&ended.stderr));
    let stderr = String::from_utf8_lossy(&ended.stderr.bytes).into_owned();
    let stdout = command::decode_stdout(ended.stdout, program, TryCost::Unknown)?;
    let said = parse_output(cli.tool, CliStreams { stdout: &stdout, stderr: &stderr });
    let said = said.map_err(|refusal| refusal::judge_refusal(refusal, cli))?;
    let spent = said.usage.map_or(TryCost::Unknown, TryCost::Known);
    if !success {
        let why = format!("`{program}` failed, {}:{tail}", ended.status);
        return Err(TryError::Unanswered { why, spent });
    }
    if said.text.trim().is_empty() && doing == AccessMode::Reading {
        let why = format!("`{program}` answered nothing:{tail}");
        return Err(TryError::Unanswered { why, spent });
    }
    Ok(build_reply(said, question))
}

fn build_reply(said: CliOutput, question: &AgentQuestion) -> AgentReply {
    let before = question.continues.as_ref().and_then(|continuation| continuation.taken);
    // A thread is counted from its beginning, and a fork has the beginning of the one that it comes from.
    let turn = said.taken.map(|taken| taken.spent_since(&before.unwrap_or_default()));
    let refused = match said.refused.as_slice() {
        [] => String::new(),
        refused => format!("\n\n(it was not allowed to use: {})", refused.join(", ")),
    };
    AgentReply {
        usage: turn.or(said.usage),
        cost: said.cost,
        id: said.id,
        model: said.model,
        taken: said.taken,
        ..AgentReply::from_text(format!("{}{refused}", said.text))
    }
}
