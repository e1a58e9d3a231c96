//! Runs coding agents of the command line. Each has a file with two pure functions: `build_call`
//! makes its command line, `parse_output` reads its output. All else is common to all and is here.
//!
//! A session is only ever forked, never resumed, so that two questions that continue one answer do
//! not disturb each other. Edits are not taken from an agent's output: see [`super::workspace`].
//!
//! # Layout
//! The adapters are [`mod@codex`], [`mod@claude`], [`mod@gemini`], [`mod@opencode`] and
//! [`mod@aider`]; [`mod@call_folder`] has the files of one call, [`mod@refusal`] classifies errors,
//! [`mod@json`] finds JSON among other lines, [`version`] finds the installed version.

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

/// A question to an agent, and how to ask it.
#[derive(Clone, Debug)]
struct CliRequest<'a> {
    cli: &'a CliAgent,
    doing: AccessMode,
    session: CliSession,
    /// File with the prompt, for agents that do not read standard input.
    prompt: &'a Path,
    surroundings: &'a AgentWorkspace,
}

/// Command line and environment of an agent.
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

    /// Adds an option with its value, if there is a value.
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

    /// Adds a variable with the agent's key, if it has one.
    fn with_key(self, name: &'static str, cli: &CliAgent) -> Self {
        self.with_variable(name, cli.key.as_ref().map(|key| key.value.reveal().trim()))
    }
}

/// The output streams of an agent.
#[derive(Clone, Copy, Debug)]
struct CliStreams<'a> {
    stdout: &'a str,
    stderr: &'a str,
}

/// The parsed output of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
struct CliOutput {
    text: String,
    /// Usage of this turn.
    usage: Option<TokenUsage>,
    /// Usage of the whole thread.
    taken: Option<TokenUsage>,
    cost: Option<Cost>,
    id: Option<String>,
    model: Option<String>,
    /// Names of the tools that the agent was not allowed to use.
    refused: Vec<String>,
}

/// Runs the agent on a question, to answer or to edit.
pub(super) fn answer_with_cli(
    cli: &CliAgent,
    timeout: Duration,
    question: &AgentQuestion,
    surroundings: &AgentWorkspace,
) -> Result<AgentReply, TryError> {
    let doing = surroundings.access_mode(question, cli.edits);
    let call_folder = CliCallFolder::create(cli, question, surroundings)?;
    let session = call_folder.prepare_session(cli, question.continues.as_ref())?;
    call_folder.write_prompt(&question.prompt)?;
    let asked = CliRequest { cli, doing, session, prompt: &call_folder.prompt, surroundings };
    let reply = surroundings.work_in_folder(question, doing, litter_globs(cli.tool), |folder| {
        let folder = call_folder.work_folder(folder)?;
        let call = build_call(&asked);
        let command: Vec<String> = cli.command.iter().chain(&call.arguments).cloned().collect();
        let variables = cli_variables(cli, &call_folder, call.variables);
        let input = Arc::clone(&question.prompt);
        let start = AgentCommand { command: &command, folder: &folder, variables, input, timeout };
        match start.run(question, surroundings) {
            Ok(ended) => interpret_output(ended, cli, question, doing),
            // The agent may have called its model any number of times by then.
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

/// Returns globs of the files that an agent leaves for itself.
const fn litter_globs(tool: CliTool) -> &'static [&'static str] {
    match tool {
        CliTool::Aider => &[".aider*", ".aider*/**"],
        CliTool::Codex | CliTool::Claude | CliTool::Gemini | CliTool::Opencode => &[],
    }
}

/// Variables with an agent's folders outside of the home folder.
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
    call_folder: &CliCallFolder<'_>,
    own: Vec<(&'static str, String)>,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = command::passed_variables().collect();
    match cli.home {
        AgentHome::User => {
            let set = |name: &&str| Some(((*name).into(), std::env::var_os(name)?));
            variables.extend(AGENT_HOME_VARIABLES.iter().filter_map(set));
        }
        AgentHome::Scratch => {
            let home = call_folder.home.clone().into_os_string();
            variables.extend([("HOME".into(), home.clone()), ("USERPROFILE".into(), home)]);
        }
    }
    variables.extend(own.into_iter().map(|(name, value)| (name.into(), value.into())));
    variables
}

/// Interprets the output. The exit status counts only if the output has nothing else.
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
    let output = parse_output(cli.tool, CliStreams { stdout: &stdout, stderr: &stderr });
    let output = output.map_err(|refusal| refusal::judge_refusal(refusal, cli))?;
    let spent = output.usage.map_or(TryCost::Unknown, TryCost::Known);
    if !success {
        let why = format!("`{program}` failed, {}:{tail}", ended.status);
        return Err(TryError::Unanswered { why, spent });
    }
    if output.text.trim().is_empty() && doing == AccessMode::Reading {
        let why = format!("`{program}` answered nothing:{tail}");
        return Err(TryError::Unanswered { why, spent });
    }
    Ok(build_reply(output, question))
}

fn build_reply(output: CliOutput, question: &AgentQuestion) -> AgentReply {
    let before = question.continues.as_ref().and_then(|continuation| continuation.taken);
    // A thread is counted from its beginning, which a fork shares with its parent.
    let turn = output.taken.map(|taken| taken.spent_since(&before.unwrap_or_default()));
    let refused = match output.refused.as_slice() {
        [] => String::new(),
        refused => format!("\n\n(it was not allowed to use: {})", refused.join(", ")),
    };
    AgentReply {
        usage: turn.or(output.usage),
        cost: output.cost,
        id: output.id,
        model: output.model,
        taken: output.taken,
        ..AgentReply::from_text(format!("{}{refused}", output.text))
    }
}
