//! An agent that is a program of the user's: the prompt on its standard input, the answer on its standard output. It gets
//! the variables that it needs and no others.

use super::question::{Question, Trouble};
use super::settings;
use crate::process::{Captured, Ended, Input, Keep, ProcessError, Program};
use crate::store::RunDir;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use treebeam_core::id::{Place, RunId};
use treebeam_run::port::{PortError, Reply};

/// The longest answer.
const ANSWER_BYTES: usize = 16 << 20;
/// How much of what it complains of is kept.
const COMPLAINT_BYTES: usize = 64 << 10;
/// How much of that is shown: the end.
const SHOWN: usize = 400;

/// What any program may know.
const VARIABLES: [&str; 16] = [
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

/// Where programs work.
#[derive(Clone, Debug)]
pub enum Surroundings {
    /// In the worktrees of a run.
    Run(RunDir, RunId),
    /// In one folder, outside of any run.
    Folder(PathBuf),
}

impl Surroundings {
    /// The folder that a question is about.
    pub(super) fn folder(&self, place: Option<Place>) -> PathBuf {
        match (self, place) {
            (Self::Run(run, _), Some(place)) => run.path(&place.worktree()),
            (Self::Run(run, _), None) => run.root().to_owned(),
            (Self::Folder(folder), _) => folder.clone(),
        }
    }

    fn variables(&self, question: &Question, folder: &Path) -> Vec<(String, OsString)> {
        let mut variables = vec![
            ("ROLE", question.role.to_string().into()),
            ("ROUND", question.round.to_string().into()),
            ("WORKTREE", folder.as_os_str().to_owned()),
        ];
        if let Self::Run(_, run) = self {
            variables.push(("RUN", run.as_str().into()));
        }
        if let Some(node) = question.node {
            variables.push(("NODE", node.to_string().into()));
        }
        if let Some(Place::Candidate(id)) = question.place {
            variables.push(("EVAL", id.to_string().into()));
        }
        variables.into_iter().map(|(name, value)| (format!("TREEBEAM_{name}"), value)).collect()
    }
}

/// Lets the program answer.
pub(super) fn answer(
    agent: &settings::Program,
    timeout: Duration,
    question: &Question,
    surroundings: &Surroundings,
) -> Result<Reply, Trouble> {
    let Some((program, arguments)) = agent.command.split_first() else {
        return Err(PortError::new("the command of the agent is empty").into());
    };
    let folder = surroundings.folder(question.place);
    let shared =
        VARIABLES.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
    let key = agent.key.iter().map(|key| (key.variable.clone().into(), key.value.reveal().into()));
    let own = surroundings.variables(question, &folder);
    let variables: Vec<(OsString, OsString)> = shared
        .chain(key)
        .chain(own.into_iter().map(|(name, value)| (name.into(), value)))
        .collect();
    let ended = Program::new(Path::new(program), &folder)
        .args(arguments)
        .envs(variables)
        .input(Input::Bytes(question.prompt.clone().into_bytes()))
        .keep(Keep { stdout: ANSWER_BYTES, stderr: COMPLAINT_BYTES })
        .deadline(timeout)
        .run();
    read(ended, program)
}

fn read(ended: Result<Ended, ProcessError>, program: &str) -> Result<Reply, Trouble> {
    let Ended { status, stdout, stderr } = match ended {
        Ok(ended) => ended,
        Err(error @ ProcessError::Start { .. }) => {
            let error = PortError::new(format!("the agent's command `{program}` does not run"))
                .caused_by(error);
            return Err(error
                .hint("check `command`: a relative path is seen from the worktree")
                .into());
        }
        Err(ProcessError::Interrupted { .. }) => return Err(Trouble::Interrupted),
        Err(error @ (ProcessError::Deadline { .. } | ProcessError::Lost { .. })) => {
            return Err(Trouble::unanswered(error.to_string()));
        }
    };
    if !status.success() {
        return Err(Trouble::unanswered(format!(
            "`{program}` failed, {status}: {}",
            tail(&stderr)
        )));
    }
    if stdout.dropped > 0 {
        let most = ANSWER_BYTES >> 20;
        return Err(Trouble::unanswered(format!("`{program}` answered more than {most} MiB")));
    }
    let text = String::from_utf8(stdout.bytes)
        .map_err(|_| Trouble::unanswered(format!("the answer of `{program}` is not UTF-8")))?;
    if text.trim().is_empty() {
        return Err(Trouble::unanswered(format!(
            "`{program}` answered nothing: {}",
            tail(&stderr)
        )));
    }
    Ok(Reply::of(text))
}

/// The end of what a program complained of.
fn tail(stderr: &Captured) -> String {
    let text = String::from_utf8_lossy(&stderr.bytes);
    let text = text.trim();
    let start = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
    let tail = text.get(start..).unwrap_or_default();
    if tail.is_empty() { "it said nothing".to_owned() } else { tail.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::id::{EvalId, NodeId};
    use treebeam_run::port::Role;

    #[test]
    fn an_evals_question_knows_its_node_too() {
        let check = |place, expect: &[&str]| {
            let (key, prompt) = ("k".to_owned(), "p".to_owned());
            let (role, round, continues) = (Role::Coder, 2, None);
            let node = Some(NodeId::new(3));
            let place = Some(place);
            let question = Question { key, role, round, prompt, continues, place, node };
            let run = Surroundings::Run(RunDir::new("r"), "t".parse().expect("a name"));
            let found = run.variables(&question, &run.folder(place)).into_iter();
            let found = found.filter(|(name, _)| name != "TREEBEAM_WORKTREE");
            let found = found.map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
            let common = ["TREEBEAM_ROLE=coder", "TREEBEAM_ROUND=2", "TREEBEAM_RUN=t"];
            assert_eq!(found.collect::<Vec<_>>(), [&common[..], expect].concat());
        };
        check(Place::Node(NodeId::new(3)), &["TREEBEAM_NODE=0003"]);
        let both = ["TREEBEAM_NODE=0003", "TREEBEAM_EVAL=0012"];
        check(Place::Candidate(EvalId::new(12)), &both);
    }
}
