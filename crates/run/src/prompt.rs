//! Renders the prompts for agents: a template for each role, and the texts that fill it. Pure and
//! bounded: no absolute path, time, duration, cost or process id. The program finds a user's
//! templates.
//!
//! # Layout
//! [`PromptTemplate`] is a prompt with placeholders, [`Placeholder`] is one of them;
//! [`mod@crate::section`] frames the texts that replace them, [`mod@earlier_attempts`] describes
//! failed attempts, [`mod@context_pack`] is a node's context pack, [`mod@listed_files`] adds files
//! of the user to it. The built-in templates are files in `prompts/`.

mod context_pack;
mod earlier_attempts;
mod listed_files;
mod placeholder;
mod template;

pub(crate) use context_pack::{
    BranchChanges, IdeaContext, most_moved_metrics, render_context_pack,
};
pub(crate) use earlier_attempts::EarlierAttempts;
pub(crate) use listed_files::render_listed_files;
pub use listed_files::{ListedFile, MAX_LISTED_CHARS, MAX_LISTED_FILE_CHARS};
pub use placeholder::{Placeholder, PlaceholderForm};
pub use template::{MAX_TEMPLATE_BYTES, PromptTemplate, TemplateError};

use crate::idea_batch::IdeaRequest;
use crate::outline::RepoContext;
use crate::port::{AgentRole, EditMode};
use crate::section::{bullet_list, introduced_section, plain_section, quoted_section};
use std::sync::LazyLock;
use template::PromptParts;

/// Largest text of one kind (an idea, a plan) in a prompt, in characters.
const MAX_PART_CHARS: usize = 16_000;
/// Largest change in a prompt, in characters: a reviewer must see all of it.
const MAX_CHANGE_CHARS: usize = 60_000;
/// Default for the part of the repository in a prompt, in characters.
pub const DEFAULT_CONTEXT_CHARS: usize = 60_000;

/// The prompts of all roles.
#[derive(Clone, Debug)]
pub struct PromptSet {
    coordinator: RolePrompt,
    planner: RolePrompt,
    coder: RolePrompt,
    reviewer: RolePrompt,
    ideas: RolePrompt,
    /// Largest part of the repository that is shown, in characters.
    pub context_max_chars: usize,
    /// Files that the user lists for the idea generator.
    pub listed_files: Vec<ListedFile>,
}

/// The prompt of a role.
#[derive(Clone, Debug)]
pub struct RolePrompt {
    /// Template of the prompt.
    pub template: PromptTemplate,
    /// The part of the repository that is shown.
    pub context: RepoContext,
}

static BUILT_IN_PROMPTS: LazyLock<PromptSet> = LazyLock::new(|| {
    // A test checks that they are valid.
    let prompt = |role| {
        let (template, _) = PromptTemplate::parse_leniently(role, built_in_template(role));
        RolePrompt { template, context: RepoContext::Nothing }
    };
    PromptSet {
        coordinator: prompt(AgentRole::Coordinator),
        planner: prompt(AgentRole::Planner),
        coder: prompt(AgentRole::Coder),
        reviewer: prompt(AgentRole::Reviewer),
        ideas: prompt(AgentRole::Ideas),
        context_max_chars: DEFAULT_CONTEXT_CHARS,
        listed_files: Vec::new(),
    }
});

/// Returns the built-in template of a role.
#[must_use]
pub const fn built_in_template(role: AgentRole) -> &'static str {
    match role {
        AgentRole::Coordinator => include_str!("../prompts/coordinator.md"),
        AgentRole::Planner => include_str!("../prompts/planner.md"),
        AgentRole::Coder => include_str!("../prompts/coder.md"),
        AgentRole::Reviewer => include_str!("../prompts/reviewer.md"),
        AgentRole::Ideas => include_str!("../prompts/ideas.md"),
    }
}

impl PromptSet {
    /// Returns the built-in templates, without the repository: agents may read it themselves.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN_PROMPTS
    }

    /// Returns the prompt of a role.
    #[must_use]
    pub const fn for_role(&self, role: AgentRole) -> &RolePrompt {
        match role {
            AgentRole::Coordinator => &self.coordinator,
            AgentRole::Planner => &self.planner,
            AgentRole::Coder => &self.coder,
            AgentRole::Reviewer => &self.reviewer,
            AgentRole::Ideas => &self.ideas,
        }
    }

    /// Returns the prompt of a role, to be changed.
    pub const fn for_role_mut(&mut self, role: AgentRole) -> &mut RolePrompt {
        match role {
            AgentRole::Coordinator => &mut self.coordinator,
            AgentRole::Planner => &mut self.planner,
            AgentRole::Coder => &mut self.coder,
            AgentRole::Reviewer => &mut self.reviewer,
            AgentRole::Ideas => &mut self.ideas,
        }
    }

    /// Renders the prompt of a turn that asks for ideas.
    pub(crate) fn render_ideas_prompt(&self, input: &IdeaPromptInput<'_>) -> String {
        let IdeaPromptInput { pack, request, protect, repo, memory } = input;
        let mut parts = constraint_parts(protect, repo);
        parts.insert(Placeholder::Count, request.count.to_string().into());
        parts.insert(Placeholder::Answer, answer_form(AgentRole::Ideas, EditMode::Diff).into());
        parts.insert(Placeholder::Node, (*pack).into());
        if !memory.is_empty() {
            let (head, sentence) = ("WHAT WAS SAID BEFORE IN THIS BRANCH", "Your own answers.\n");
            parts.insert(
                Placeholder::Memory,
                introduced_section(head, sentence, memory, usize::MAX).into(),
            );
        }
        if let Some(again) = render_rejected_ideas(request) {
            parts.insert(Placeholder::Repeated, again.into());
        }
        self.ideas.template.fill(&parts)
    }

    /// Renders the prompt of a role that works on an idea.
    pub(crate) fn render_role_prompt(&self, role: AgentRole, input: &PromptInput<'_>) -> String {
        self.for_role(role).template.fill(&input.template_parts(role))
    }
}

/// The input of a prompt for ideas.
pub(crate) struct IdeaPromptInput<'a> {
    /// Context pack of the node.
    pub(crate) pack: &'a str,
    /// Number of ideas, and earlier answers that are not accepted.
    pub(crate) request: &'a IdeaRequest,
    pub(crate) protect: &'a [String],
    /// Outline of the repository.
    pub(crate) repo: &'a str,
    /// Earlier turns of the conversation; the text has its own limit.
    pub(crate) memory: &'a str,
}

/// The input of a prompt about an idea, as far as the idea has come.
#[derive(Clone, Copy, Default)]
pub(crate) struct PromptInput<'a> {
    pub(crate) idea: &'a str,
    /// Failed attempts before this one.
    pub(crate) earlier: EarlierAttempts<'a>,
    pub(crate) notes: Option<&'a str>,
    pub(crate) plan: Option<&'a str>,
    /// Change that earlier rounds have made.
    pub(crate) so_far: Option<&'a str>,
    /// Problem of the coder's last answer.
    pub(crate) problem: Option<&'a str>,
    /// Change to be reviewed.
    pub(crate) change: Option<&'a str>,
    /// Issues of the first review, which later reviews check.
    pub(crate) issues: Option<&'a str>,
    pub(crate) protect: &'a [String],
    /// Outline of the repository.
    pub(crate) repo: &'a str,
    /// Form of the coder's answer.
    pub(crate) edits: EditMode,
}

impl<'a> PromptInput<'a> {
    fn template_parts(&self, role: AgentRole) -> PromptParts<'a> {
        let short = |head: &str, text: &str| quoted_section(head, text, MAX_PART_CHARS);
        let long = |head: &str, text: &str| quoted_section(head, text, MAX_CHANGE_CHARS);
        let again = "You have reviewed this change before. Look only at whether these issues are solved; raise no others.\n";
        let so_far = match self.edits {
            EditMode::Diff => "YOUR CHANGE SO FAR; IT IS IN PLACE, THE NEXT DIFF COMES ON TOP",
            EditMode::InPlace => "YOUR CHANGE SO FAR; IT IS IN PLACE",
        };
        let parts = [
            (Placeholder::Answer, Some(answer_form(role, self.edits).to_owned())),
            (Placeholder::Idea, Some(short("IDEA", self.idea))),
            (Placeholder::Earlier, self.earlier.render_sections(role == AgentRole::Coder)),
            (Placeholder::Notes, self.notes.map(|text| short("NOTES", text))),
            (Placeholder::Plan, self.plan.map(|text| short("PLAN", text))),
            (Placeholder::ChangeSoFar, self.so_far.map(|text| long(so_far, text))),
            (
                Placeholder::Problem,
                self.problem.map(|text| short("YOUR LAST ANSWER HAD THIS PROBLEM; FIX IT", text)),
            ),
            (Placeholder::Change, self.change.map(|text| long("CHANGE", text))),
            (
                Placeholder::Issues,
                self.issues.map(|text| {
                    introduced_section("ISSUES OF YOUR FIRST REVIEW", again, text, MAX_PART_CHARS)
                }),
            ),
        ];
        let mut all = constraint_parts(self.protect, self.repo);
        all.extend(parts.into_iter().filter_map(|(one, text)| Some((one, text?.into()))));
        all
    }
}

/// Renders the earlier answers that are not accepted, if there are any.
fn render_rejected_ideas(request: &IdeaRequest) -> Option<String> {
    let repeated = "YOU PROPOSED THESE, BUT THEY WERE TRIED BEFORE";
    let incomplete = "YOU PROPOSED THESE, BUT A PART IS MISSING; WRITE EACH AGAIN, WHOLE";
    let parts = [(repeated, &request.repeated), (incomplete, &request.incomplete)];
    let parts = parts.into_iter().filter(|(_, lines)| !lines.is_empty());
    let parts: Vec<_> = parts
        .map(|(head, lines)| plain_section(head, &bullet_list(lines), MAX_PART_CHARS))
        .collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// Returns the parts that every role may have.
fn constraint_parts<'a>(protect: &[String], repo: &'a str) -> PromptParts<'a> {
    let keep = "- the sweep's grid of configurations stays as it is\n";
    let mut parts = PromptParts::new();
    parts.insert(Placeholder::Keep, plain_section("KEEP", keep, MAX_PART_CHARS).into());
    parts.insert(Placeholder::Repo, repo.into());
    if !protect.is_empty() {
        let protect = plain_section("DO NOT TOUCH", &bullet_list(protect), MAX_PART_CHARS);
        parts.insert(Placeholder::Protect, protect.into());
    }
    parts
}

/// Returns the required form of an answer. Replies are parsed by it, so users cannot change it.
const fn answer_form(role: AgentRole, edits: EditMode) -> &'static str {
    match (role, edits) {
        (AgentRole::Coordinator, _) => "Answer with the notes alone, in at most thirty lines.",
        (AgentRole::Planner, _) => {
            "Write two parts, and nothing else:\n\
             PLAN: numbered steps, each with the file and what changes there\n\
             RISKS: what could go wrong, and how to see it"
        }
        (AgentRole::Coder, EditMode::Diff) => {
            "Answer with one unified diff that `git apply` takes, and nothing else: paths from the root of the repository, `a/`\n\
             before the old and `b/` before the new one, `/dev/null` for a file that is not there, and lines of context that are\n\
             exactly those of the file."
        }
        (AgentRole::Coder, EditMode::InPlace) => {
            "Edit the files in this folder yourself, and commit nothing: your edits are what counts. Answer with one line that says\n\
             what you did."
        }
        (AgentRole::Reviewer, _) => {
            "Write three parts, and nothing else:\n\
             VERDICT: APPROVE or REJECT\n\
             ISSUES: what must change, one point each, with file and line; none if you approve\n\
             NOTES: anything else"
        }
        (AgentRole::Ideas, _) => {
            "Write each idea as three parts, and nothing else:\n\
             IDEA: one line that says what to change\n\
             RATIONALE: why it should help\n\
             REQUIRED_CHANGES: what to change, file by file"
        }
    }
}

#[cfg(test)]
mod tests;
