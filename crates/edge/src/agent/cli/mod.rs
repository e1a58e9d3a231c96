//! Coding agents on the command line. For each there is a file with two pure functions: `call` says how it is started, `read`
//! what its output means. All the rest is the same for all of them and is here.
//!
//! A session is only ever forked, never resumed: so two that go on from the same answer cannot disturb each other. What an
//! agent did is not read from what it says: see [`super::site`].
//!
//! # Layout
//! `codex`, `claude`, `gemini`, `opencode`, `aider`; `desk` has the files that one call needs, `failure` says what a
//! complaint means, `json` finds JSON among other lines, [`version`] asks which version is there.

mod aider;
mod claude;
mod codex;
mod desk;
mod failure;
mod gemini;
mod json;
mod opencode;
#[cfg(test)]
mod tests;
pub mod version;

use super::command::{self, Start, Surroundings};
use super::question::{Question, Spent, Trouble};
use super::settings::{Cli, Home, Tool};
use super::site::Doing;
use crate::process::Ended;
use desk::{Desk, Session};
use failure::Refusal;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use treebeam_run::port::{Cost, Reply, Usage};

/// What an agent is asked, and how.
#[derive(Clone, Debug)]
struct Asked<'a> {
    cli: &'a Cli,
    doing: Doing,
    session: Session,
    /// Where the prompt stands, for those that do not read it.
    prompt: &'a Path,
    surroundings: &'a Surroundings,
}

/// How an agent is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Call {
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl Call {
    fn arguments<S: Into<String>>(mut self, more: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(more.into_iter().map(Into::into));
        self
    }

    /// An argument with what belongs to it, where there is such a thing.
    fn option(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.arguments([name, value]),
            None => self,
        }
    }

    fn variable(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.variables.extend(value.map(|value| (name, value.to_owned())));
        self
    }

    /// A variable with the key that the agent is given.
    fn key(self, name: &'static str, cli: &Cli) -> Self {
        self.variable(name, cli.key.as_ref().map(|key| key.value.reveal().trim()))
    }
}

/// What an agent wrote.
#[derive(Clone, Copy, Debug)]
struct Output<'a> {
    stdout: &'a str,
    stderr: &'a str,
}

/// What an agent said.
#[derive(Clone, Debug, Default, PartialEq)]
struct Said {
    text: String,
    /// What this turn took.
    usage: Option<Usage>,
    /// What its whole thread took.
    taken: Option<Usage>,
    cost: Option<Cost>,
    id: Option<String>,
    model: Option<String>,
    /// What it was not allowed to do.
    refused: Vec<String>,
}

/// Lets the agent answer, or edit.
pub(super) fn answer(
    cli: &Cli,
    timeout: Duration,
    question: &Question,
    surroundings: &Surroundings,
) -> Result<Reply, Trouble> {
    let doing = surroundings.doing(question, cli.edits);
    let desk = Desk::open(cli, question, surroundings)?;
    let session = desk.session(cli, question.continues.as_ref())?;
    desk.write_prompt(&question.prompt)?;
    let asked = Asked { cli, doing, session, prompt: &desk.prompt, surroundings };
    let reply = surroundings.visit(question, doing, litter(cli.tool), |folder| {
        let folder = desk.folder_for(folder)?;
        let call = call(&asked);
        let command: Vec<String> = cli.command.iter().chain(&call.arguments).cloned().collect();
        let variables = variables(cli, &desk, call.variables);
        let input = Arc::clone(&question.prompt);
        let start = Start { command: &command, folder: &folder, variables, input, timeout };
        match start.run(question, surroundings) {
            Ok(ended) => said(ended, cli, question, doing),
            // It may have asked its model any number of times by then.
            Err(Trouble::Unanswered { why, .. }) => {
                Err(Trouble::Unanswered { why, spent: Spent::Perhaps })
            }
            Err(other) => Err(other),
        }
    })?;
    Ok(reply)
}

fn call(asked: &Asked<'_>) -> Call {
    match asked.cli.tool {
        Tool::Codex => codex::call(asked),
        Tool::Claude => claude::call(asked),
        Tool::Gemini => gemini::call(asked),
        Tool::Opencode => opencode::call(asked),
        Tool::Aider => aider::call(asked),
    }
}

fn read(tool: Tool, output: Output<'_>) -> Result<Said, Refusal> {
    match tool {
        Tool::Codex => codex::read(output),
        Tool::Claude => claude::read(output),
        Tool::Gemini => gemini::read(output),
        Tool::Opencode => opencode::read(output),
        Tool::Aider => aider::read(output),
    }
}

/// Files that an agent leaves for itself.
const fn litter(tool: Tool) -> &'static [&'static str] {
    match tool {
        Tool::Aider => &[".aider*", ".aider*/**"],
        Tool::Codex | Tool::Claude | Tool::Gemini | Tool::Opencode => &[],
    }
}

/// Where an agent keeps things, if not in the home folder.
const HOMES: [&str; 6] = [
    "CODEX_HOME",
    "CLAUDE_CONFIG_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
];

fn variables(
    cli: &Cli,
    desk: &Desk<'_>,
    own: Vec<(&'static str, String)>,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = command::shared().collect();
    match cli.home {
        Home::User => {
            let set = |name: &&str| Some(((*name).into(), std::env::var_os(name)?));
            variables.extend(HOMES.iter().filter_map(set));
        }
        Home::Scratch => {
            let home = desk.home.clone().into_os_string();
            variables.extend([("HOME".into(), home.clone()), ("USERPROFILE".into(), home)]);
        }
    }
    variables.extend(own.into_iter().map(|(name, value)| (name.into(), value.into())));
    variables
}

/// What the output means. How the program ended counts only where it said nothing else.
fn said(ended: Ended, cli: &Cli, question: &Question, doing: Doing) -> Result<Reply, Trouble> {
    let program = cli.command.first().map_or("", String::as_str);
    let (success, tail) = (ended.status.success(), command::tail(&ended.stderr));
    let stderr = String::from_utf8_lossy(&ended.stderr.bytes).into_owned();
    let stdout = command::text(ended.stdout, program, Spent::Perhaps)?;
    let said = read(cli.tool, Output { stdout: &stdout, stderr: &stderr });
    let said = said.map_err(|refusal| failure::judge(refusal, cli))?;
    let spent = said.usage.map_or(Spent::Perhaps, Spent::Known);
    if !success {
        let why = format!("`{program}` failed, {}:{tail}", ended.status);
        return Err(Trouble::Unanswered { why, spent });
    }
    if said.text.trim().is_empty() && doing == Doing::Reading {
        let why = format!("`{program}` answered nothing:{tail}");
        return Err(Trouble::Unanswered { why, spent });
    }
    Ok(reply(said, question))
}

fn reply(said: Said, question: &Question) -> Reply {
    let before = question.continues.as_ref().and_then(|continuation| continuation.taken);
    // A thread is counted from its beginning, and a fork has the beginning of the one that it comes from.
    let turn = said.taken.map(|taken| taken.since(&before.unwrap_or_default()));
    let refused = match said.refused.as_slice() {
        [] => String::new(),
        refused => format!("\n\n(it was not allowed to use: {})", refused.join(", ")),
    };
    Reply {
        usage: turn.or(said.usage),
        cost: said.cost,
        id: said.id,
        model: said.model,
        taken: said.taken,
        ..Reply::of(format!("{}{refused}", said.text))
    }
}
