//! An agent that is a program of the user's: the prompt on its standard input, the answer on its standard output, or in the
//! worktree. It gets the variables that it needs and no others.

use super::question::{Question, Spent, Trouble};
use super::settings;
use super::site::{Doing, GRACE};
use crate::process::{Captured, Ended, Input, Keep, ProcessError, Program, Whole};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use treebeam_run::port::{PortError, Reply};

pub use super::site::{Grounds, Surroundings};

/// The longest answer.
const ANSWER_BYTES: usize = 16 << 20;
/// How much of what it complains of is kept.
const COMPLAINT_BYTES: usize = 64 << 10;
/// How much of that is shown: the end.
const SHOWN: usize = 400;

/// What any program may know.
pub(crate) const VARIABLES: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    // Windows
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "APPDATA",
    "PATHEXT",
];

/// What any program may know of the variables that are set here.
pub(super) fn shared() -> impl Iterator<Item = (OsString, OsString)> {
    VARIABLES.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)))
}

/// A program that is about to be asked.
pub(super) struct Start<'a> {
    /// The program and its arguments.
    pub(super) command: &'a [String],
    pub(super) folder: &'a Path,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) input: Arc<str>,
    pub(super) timeout: Duration,
}

impl Start<'_> {
    /// Runs it to its end. When this returns nothing that it has started is left.
    pub(super) fn run(
        self,
        question: &Question,
        surroundings: &Surroundings,
    ) -> Result<Ended, Trouble> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(PortError::new("the command of the agent is empty").into());
        };
        let own = surroundings.variables(question, self.folder);
        let ended = Program::new(Path::new(program), self.folder)
            .args(arguments)
            .envs(self.variables)
            .envs(own)
            .input(Input::bytes(self.input))
            .keep(Keep { stdout: ANSWER_BYTES, stderr: COMPLAINT_BYTES })
            .deadline(self.timeout)
            .whole(Whole::new(surroundings.mark(question), GRACE))
            .run();
        ended.map_err(|error| trouble(error, program))
    }
}

fn trouble(error: ProcessError, program: &str) -> Trouble {
    match error {
        ProcessError::Start { .. } => {
            let what = format!("the agent's command `{program}` does not run");
            PortError::new(what)
                .caused_by(error)
                .hint("check `command`: a relative path is seen from the worktree")
                .into()
        }
        ProcessError::Interrupted { .. } => Trouble::Interrupted,
        ProcessError::Deadline { .. } | ProcessError::Lost { .. } => {
            Trouble::unanswered(error.to_string())
        }
    }
}

/// Lets the program answer.
pub(super) fn answer(
    agent: &settings::Program,
    timeout: Duration,
    question: &Question,
    surroundings: &Surroundings,
) -> Result<Reply, Trouble> {
    let doing = surroundings.doing(question, agent.edits);
    surroundings.visit(question, doing, &[], |folder| {
        let key =
            agent.key.iter().map(|key| (key.variable.clone().into(), key.value.reveal().into()));
        let variables = shared().chain(key).collect();
        let input = Arc::clone(&question.prompt);
        let start = Start { command: &agent.command, folder, variables, input, timeout };
        let ended = start.run(question, surroundings)?;
        read(ended, agent.command.first().map_or("", String::as_str), doing)
    })
}

fn read(ended: Ended, program: &str, doing: Doing) -> Result<Reply, Trouble> {
    let Ended { status, stdout, stderr } = ended;
    if !status.success() {
        return Err(Trouble::unanswered(format!("`{program}` failed, {status}:{}", tail(&stderr))));
    }
    let text = text(stdout, program, Spent::Nothing)?;
    if text.trim().is_empty() && doing == Doing::Reading {
        return Err(Trouble::unanswered(format!("`{program}` answered nothing:{}", tail(&stderr))));
    }
    Ok(Reply::of(text))
}

/// All that a program wrote, as text.
pub(super) fn text(stdout: Captured, program: &str, spent: Spent) -> Result<String, Trouble> {
    let unreadable = |why, raw| Err(Trouble::Unreadable { why, raw, spent });
    if stdout.dropped > 0 {
        let why = format!("`{program}` answered more than {} MiB", ANSWER_BYTES >> 20);
        return unreadable(why, stdout.bytes);
    }
    String::from_utf8(stdout.bytes).or_else(|error| {
        unreadable(format!("the answer of `{program}` is not UTF-8"), error.into_bytes())
    })
}

/// The end of what a program complained of, as it stands behind a colon.
pub(super) fn tail(stderr: &Captured) -> String {
    let text = String::from_utf8_lossy(&stderr.bytes);
    let text = text.trim();
    let start = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
    let tail = text.get(start..).unwrap_or_default();
    match tail.lines().count() {
        0 => " it said nothing".to_owned(),
        1 => format!(" {tail}"),
        // Of several lines the last one is shown where there is room for one: those are told from what is before them.
        _ => format!("\n{tail}"),
    }
}
