//! Runs an agent that is a program of the user's. The prompt is on standard input, the answer on
//! standard output or in the worktree. The program gets only the variables that it needs.

use super::question::{AgentQuestion, TryCost, TryError};
use super::settings;
use super::workspace::{AGENT_KILL_GRACE, AccessMode};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use treebeam_process::PASSED_VARIABLES;
use treebeam_process::{
    CapturedOutput, ChildInput, ChildProgram, EndedChild, OutputLimits, ProcessError, ProcessTree,
};
use treebeam_run::port::{AgentReply, PortError};

pub use super::workspace::{AgentWorkspace, RunWorkspace};

/// The longest answer.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Length of standard error that is kept.
const MAX_STDERR_BYTES: usize = 64 << 10;
/// Length of standard error that is shown: its end.
const SHOWN_STDERR_CHARS: usize = 400;

/// Returns the environment variables that every program gets.
pub(super) fn passed_variables() -> impl Iterator<Item = (OsString, OsString)> {
    PASSED_VARIABLES.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)))
}

/// A program that is about to be run for a question.
pub(super) struct AgentCommand<'a> {
    /// The program and its arguments.
    pub(super) command: &'a [String],
    pub(super) folder: &'a Path,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) input: Arc<str>,
    pub(super) timeout: Duration,
}

impl AgentCommand<'_> {
    /// Runs the program to its end. Nothing that it has started is left at return.
    pub(super) fn run(
        self,
        question: &AgentQuestion,
        surroundings: &AgentWorkspace,
    ) -> Result<EndedChild, TryError> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(PortError::new("the command of the agent is empty").into());
        };
        let own = surroundings.question_variables(question, self.folder);
        let ended = ChildProgram::new(Path::new(program), self.folder)
            .args(arguments)
            .envs(self.variables)
            .envs(own)
            .input(ChildInput::from_bytes(self.input))
            .keep_output(OutputLimits { stdout: MAX_ANSWER_BYTES, stderr: MAX_STDERR_BYTES })
            .deadline(self.timeout)
            .in_tree(ProcessTree::new(surroundings.question_marker(question), AGENT_KILL_GRACE))
            .run();
        ended.map_err(|error| process_trouble(error, program))
    }
}

fn process_trouble(error: ProcessError, program: &str) -> TryError {
    match error {
        ProcessError::Start { .. } => {
            let what = format!("the agent's command `{program}` does not run");
            PortError::new(what)
                .with_cause(error)
                .with_hint("check `command`: a relative path is seen from the worktree")
                .into()
        }
        ProcessError::Interrupted { .. } => TryError::Interrupted,
        ProcessError::Deadline { .. } | ProcessError::Lost { .. } => {
            TryError::unanswered(error.to_string())
        }
    }
}

/// Answers a question with the program.
pub(super) fn answer_with_command(
    agent: &settings::CommandAgent,
    timeout: Duration,
    question: &AgentQuestion,
    surroundings: &AgentWorkspace,
) -> Result<AgentReply, TryError> {
    let doing = surroundings.access_mode(question, agent.edits);
    surroundings.work_in_folder(question, doing, &[], |folder| {
        let key =
            agent.key.iter().map(|key| (key.variable.clone().into(), key.value.reveal().into()));
        let variables = passed_variables().chain(key).collect();
        let input = Arc::clone(&question.prompt);
        let start = AgentCommand { command: &agent.command, folder, variables, input, timeout };
        let ended = start.run(question, surroundings)?;
        interpret_output(ended, agent.command.first().map_or("", String::as_str), doing)
    })
}

fn interpret_output(
    ended: EndedChild,
    program: &str,
    doing: AccessMode,
) -> Result<AgentReply, TryError> {
    let EndedChild { status, stdout, stderr } = ended;
    if !status.success() {
        return Err(TryError::unanswered(format!(
            "`{program}` failed, {status}:{}",
            stderr_tail(&stderr)
        )));
    }
    let text = decode_stdout(stdout, program, TryCost::Nothing)?;
    if text.trim().is_empty() && doing == AccessMode::Reading {
        return Err(TryError::unanswered(format!(
            "`{program}` answered nothing:{}",
            stderr_tail(&stderr)
        )));
    }
    Ok(AgentReply::from_text(text))
}

/// Decodes the whole output of a program as text.
pub(super) fn decode_stdout(
    stdout: CapturedOutput,
    program: &str,
    spent: TryCost,
) -> Result<String, TryError> {
    let unreadable = |why, raw| Err(TryError::Unreadable { why, raw, spent });
    if stdout.dropped > 0 {
        let why = format!("`{program}` answered more than {} MiB", MAX_ANSWER_BYTES >> 20);
        return unreadable(why, stdout.bytes);
    }
    String::from_utf8(stdout.bytes).or_else(|error| {
        unreadable(format!("the answer of `{program}` is not UTF-8"), error.into_bytes())
    })
}

/// Returns the end of standard error, to be shown after a colon.
pub(super) fn stderr_tail(stderr: &CapturedOutput) -> String {
    let text = String::from_utf8_lossy(&stderr.bytes);
    let text = text.trim();
    let start = text.char_indices().rev().nth(SHOWN_STDERR_CHARS).map_or(0, |(at, _)| at);
    let tail = text.get(start..).unwrap_or_default();
    match tail.lines().count() {
        0 => " it said nothing".to_owned(),
        1 => format!(" {tail}"),
        // Several lines begin on a line of their own, to be told from the text before them.
        _ => format!("\n{tail}"),
    }
}
