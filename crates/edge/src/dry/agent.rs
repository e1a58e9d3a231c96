//! The dry agent: idea texts and diffs, made up from the seed and the question. The diffs really apply, but for those that
//! are meant not to.

use super::{NOTES_FILE, Recipe, SILENT, STATE_FILE, draw};
use crate::store::RunDir;
use std::fs;
use std::io;
use std::path::Path;
use treebeam_core::id::{NodeId, Place};
use treebeam_run::port::{Agent, AgentError, Ask, Edits, PortError, Reply, Role};

/// Answers as an agent would, without one.
#[derive(Debug)]
pub struct DryAgent {
    seed: u64,
    run_dir: RunDir,
}

impl DryAgent {
    /// An agent for one run.
    #[must_use]
    pub const fn new(seed: u64, run_dir: RunDir) -> Self {
        Self { seed, run_dir }
    }

    /// A node whose state file has the line [`SILENT`] gets no ideas.
    fn ideas(&self, ask: &Ask) -> Result<String, AgentError> {
        let state = self.run_dir.path(&ask.place.worktree()).join(STATE_FILE);
        let state = read_or_empty(&state).map_err(|error| unreadable(ask.place, error))?;
        if state.lines().any(|line| line == SILENT) {
            return Ok("I cannot think of anything.\n".to_owned());
        }
        let wanted = first_number(&ask.prompt).unwrap_or(1);
        let mut reply = "Here is what I would try next.\n\n".to_owned();
        for index in 0..wanted {
            reply.push_str(&self.idea(ask, index));
            reply.push('\n');
        }
        Ok(reply)
    }

    /// One idea of a question. The last of the mixture repeats the node's first; one is the same on every node, and one on
    /// every node but the root, so that branches repeat each other.
    fn idea(&self, ask: &Ask, index: u64) -> String {
        let length = Recipe::MIXTURE.len() as u64;
        let start = draw(self.seed, &asked_for(ask)) % length;
        let turn = first_number(ask.key.rsplit("-a").next().unwrap_or_default()).unwrap_or(1);
        let position = start + index + (turn - 1) * 5;
        let recipe = usize::try_from(position % length).ok().and_then(|p| Recipe::MIXTURE.get(p));
        let recipe = recipe.copied().unwrap_or(Recipe::NoEffect);
        if recipe == Recipe::Ragged && index > 0 && turn == 1 {
            return in_other_form(&self.idea(ask, 0));
        }
        if recipe == Recipe::Gain(45) {
            return text(recipe, "everywhere");
        }
        if recipe == Recipe::Gain(10) && ask.place != Place::Node(NodeId::ROOT) {
            return text(recipe, "on-every-branch");
        }
        text(recipe, &format!("{}-{index}", ask.key.trim_start_matches("ideas-")))
    }

    fn patch(&self, ask: &Ask) -> Result<String, AgentError> {
        let unanswered = || AgentError::Unanswered("the prompt names no change".to_owned());
        let (_, named) = ask.prompt.split_once("ppend `").ok_or_else(unanswered)?;
        let change = named.split('`').next().unwrap_or_default();
        let planned: Recipe = change.parse().map_err(|()| unanswered())?;
        let attempt = ask.key.split("-a").nth(1).and_then(first_number).unwrap_or(1);
        let recipe = planned.at(attempt);
        let change = &change.replacen(&planned.to_string(), &recipe.to_string(), 1);
        let mended = ask.prompt.contains("THIS PROBLEM");
        let worktree = self.run_dir.path(&ask.place.worktree());
        let read = |name| read_or_empty(&worktree.join(name));
        let state = read(STATE_FILE).map_err(|error| unreadable(ask.place, error))?;
        let diff = if recipe == Recipe::NeverApplies || (recipe.is_late() && !mended) {
            append(STATE_FILE, "a line that is not there\n", change)
        } else if recipe.is_wide() {
            let notes = read(NOTES_FILE).map_err(|error| unreadable(ask.place, error))?;
            append(STATE_FILE, &state, change) + &append(NOTES_FILE, &notes, change)
        } else {
            append(STATE_FILE, &state, change)
        };
        Ok(format!("This implements it:\n\n```diff\n{diff}```\n\nNothing else changes.\n"))
    }
}

/// Who a question is for: a node, or the control group, which goes through the mixture anew at each depth.
fn asked_for(ask: &Ask) -> String {
    let (question, _) = ask.key.rsplit_once("-a").unwrap_or((&ask.key, ""));
    if question.starts_with("ideas-control") { question.to_owned() } else { ask.place.to_string() }
}

/// The same idea, written differently.
fn in_other_form(idea: &str) -> String {
    idea.replace("- append", "*   Append").replace("RATIONALE", "\nRationale")
}

impl Agent for DryAgent {
    fn answers(&self, role: Role) -> bool {
        matches!(role, Role::Ideas | Role::Coder)
    }

    fn edits(&self, _: Role) -> Edits {
        Edits::Diff
    }

    fn continues(&self, _: Role) -> bool {
        false
    }

    fn ask(&self, ask: &Ask) -> Result<Reply, AgentError> {
        let text = match ask.role {
            Role::Ideas => self.ideas(ask)?,
            Role::Coder => self.patch(ask)?,
            role @ (Role::Coordinator | Role::Planner | Role::Reviewer) => {
                return Err(AgentError::Unanswered(format!("the dry world has no {role}")));
            }
        };
        Ok(Reply::of(text))
    }
}

fn text(recipe: Recipe, tag: &str) -> String {
    format!(
        "IDEA: Dry {recipe} ({tag})\n\
         RATIONALE: the dry world has to show what happens then\n\
         REQUIRED_CHANGES:\n\
         - append `{recipe} by {tag}` to {STATE_FILE}\n"
    )
}

fn first_number(text: &str) -> Option<u64> {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

/// A diff that appends a line to a file which has this content now.
fn append(name: &str, content: &str, line: &str) -> String {
    let last = content.lines().last();
    let count = content.lines().count();
    let mut diff = format!("diff --git a/{name} b/{name}\n");
    match last {
        None => diff.push_str(&format!(
            "new file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{line}\n"
        )),
        Some(last) => diff.push_str(&format!(
            "--- a/{name}\n+++ b/{name}\n@@ -{count} +{count},2 @@\n {last}\n+{line}\n"
        )),
    }
    diff
}

fn read_or_empty(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

fn unreadable(place: Place, error: io::Error) -> AgentError {
    let what = format!("cannot read the dry state of `{place}`");
    AgentError::Unavailable(PortError::new(what).caused_by(error))
}
