//! Generates the replies of the dry world's agent: idea texts and diffs, from seed and request. The
//! diffs really apply, except those that are meant not to.

use super::{DryRecipe, NO_IDEAS_LINE, NOTES_FILE, STATE_FILE, draw_number};
use std::fs;
use std::io;
use std::path::Path;
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, EditMode, PortError,
};
use treebeam_store::RunDir;

/// An agent that generates its replies without a model.
#[derive(Debug)]
pub struct DryAgent {
    seed: u64,
    run_dir: RunDir,
}

impl DryAgent {
    /// Creates an agent for one run.
    #[must_use]
    pub const fn new(seed: u64, run_dir: RunDir) -> Self {
        Self { seed, run_dir }
    }

    /// Generates a reply with ideas; none for a node whose state file has the line
    /// [`NO_IDEAS_LINE`].
    fn propose_ideas(&self, ask: &AgentRequest) -> Result<String, AgentError> {
        let state = self.run_dir.file_path(&ask.place.worktree_path()).join(STATE_FILE);
        let state = read_or_empty(&state).map_err(|error| state_unreadable(ask.place, error))?;
        if state.lines().any(|line| line == NO_IDEAS_LINE) {
            return Ok("I cannot think of anything.\n".to_owned());
        }
        let wanted = first_number(&ask.prompt).unwrap_or(1);
        let mut reply = "Here is what I would try next.\n\n".to_owned();
        for index in 0..wanted {
            reply.push_str(&self.build_idea(ask, index));
            reply.push('\n');
        }
        Ok(reply)
    }

    /// Generates one idea of a reply. The last of the mixture repeats the node's first; one is the
    /// same on every node, and one on every node but the root, so that branches repeat each other.
    fn build_idea(&self, ask: &AgentRequest, index: u64) -> String {
        let length = DryRecipe::IDEA_MIXTURE.len() as u64;
        let start = draw_number(self.seed, &question_target(ask)) % length;
        let turn = first_number(ask.key.rsplit("-a").next().unwrap_or_default()).unwrap_or(1);
        let position = start + index + (turn - 1) * 5;
        let recipe =
            usize::try_from(position % length).ok().and_then(|p| DryRecipe::IDEA_MIXTURE.get(p));
        let recipe = recipe.copied().unwrap_or(DryRecipe::NoEffect);
        if recipe == DryRecipe::Ragged && index > 0 && turn == 1 {
            return rephrase_idea(&self.build_idea(ask, 0));
        }
        if recipe == DryRecipe::Gain(45) {
            return render_idea(recipe, "everywhere");
        }
        if recipe == DryRecipe::Gain(10) && ask.place != CodePlace::Node(NodeId::ROOT) {
            return render_idea(recipe, "on-every-branch");
        }
        render_idea(recipe, &format!("{}-{index}", ask.key.trim_start_matches("ideas-")))
    }

    fn build_patch(&self, ask: &AgentRequest) -> Result<String, AgentError> {
        let unanswered = || AgentError::Unanswered("the prompt names no change".to_owned());
        let (_, named) = ask.prompt.split_once("ppend `").ok_or_else(unanswered)?;
        let change = named.split('`').next().unwrap_or_default();
        let planned: DryRecipe = change.parse().map_err(|()| unanswered())?;
        let attempt = ask.key.split("-a").nth(1).and_then(first_number).unwrap_or(1);
        let recipe = planned.at_attempt(attempt);
        let change = &change.replacen(&planned.to_string(), &recipe.to_string(), 1);
        let mended = ask.prompt.contains("THIS PROBLEM");
        let worktree = self.run_dir.file_path(&ask.place.worktree_path());
        let read = |name| read_or_empty(&worktree.join(name));
        let state = read(STATE_FILE).map_err(|error| state_unreadable(ask.place, error))?;
        let diff = if recipe == DryRecipe::NeverApplies || (recipe.is_late() && !mended) {
            append_diff(STATE_FILE, "a line that is not there\n", change)
        } else if recipe.is_wide() {
            let notes = read(NOTES_FILE).map_err(|error| state_unreadable(ask.place, error))?;
            append_diff(STATE_FILE, &state, change) + &append_diff(NOTES_FILE, &notes, change)
        } else {
            append_diff(STATE_FILE, &state, change)
        };
        Ok(format!("This implements it:\n\n```diff\n{diff}```\n\nNothing else changes.\n"))
    }
}

/// Returns the target of a request: its node, or for the control group the request's key, because
/// that group goes through the mixture anew at each depth.
fn question_target(ask: &AgentRequest) -> String {
    let (question, _) = ask.key.rsplit_once("-a").unwrap_or((&ask.key, ""));
    if question.starts_with("ideas-control") { question.to_owned() } else { ask.place.to_string() }
}

/// Returns an idea with other punctuation and the same content.
fn rephrase_idea(idea: &str) -> String {
    idea.replace("- append", "*   Append").replace("RATIONALE", "\nRationale")
}

impl Agent for DryAgent {
    fn can_answer(&self, role: AgentRole) -> bool {
        matches!(role, AgentRole::Ideas | AgentRole::Coder)
    }

    fn edit_mode(&self, _: AgentRole) -> EditMode {
        EditMode::Diff
    }

    fn can_continue(&self, _: AgentRole) -> bool {
        false
    }

    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        let text = match ask.role {
            AgentRole::Ideas => self.propose_ideas(ask)?,
            AgentRole::Coder => self.build_patch(ask)?,
            role @ (AgentRole::Coordinator | AgentRole::Planner | AgentRole::Reviewer) => {
                return Err(AgentError::Unanswered(format!("the dry world has no {role}")));
            }
        };
        Ok(AgentReply::from_text(text))
    }
}

fn render_idea(recipe: DryRecipe, tag: &str) -> String {
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

/// Returns a diff that appends a line to a file with this content.
fn append_diff(name: &str, content: &str, line: &str) -> String {
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

fn state_unreadable(place: CodePlace, error: io::Error) -> AgentError {
    let what = format!("cannot read the dry state of `{place}`");
    AgentError::Unavailable(PortError::new(what).with_cause(error))
}
