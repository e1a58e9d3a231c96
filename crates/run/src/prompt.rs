//! The texts that agents are given: a template for each role, and what is put into it. Pure and bounded: no absolute path,
//! time, duration, cost or process id. Where a user's templates lie is the program's business.
//!
//! # Layout
//! [`Template`] is a prompt with open places, [`Placeholder`] is one of them; `section` is what stands in its place, `earlier` what
//! became of attempts before, `pack` a node's context pack, `listed` what the user adds to it. The built-in templates are files in `prompts/`.

mod earlier;
mod listed;
mod pack;
mod placeholder;
pub(crate) mod section;
mod template;

pub(crate) use earlier::Earlier;
pub(crate) use listed::listed;
pub use listed::{ALL_CHARS, FILE_CHARS, Listed};
pub(crate) use pack::{Seen, moved, pack};
pub use placeholder::{Form, Placeholder};
pub use template::{MOST_BYTES, Template, TemplateError};

use crate::haul::Request;
use crate::outline::Context;
use crate::port::{Edits, Role};
use section::{list, plain, quoted, said};
use std::sync::LazyLock;
use template::Parts;

/// The longest text of one kind (an idea, a plan) that goes into a prompt, in characters.
const PART_CHARS: usize = 16_000;
/// The longest change: what is not seen cannot be reviewed.
const CHANGE_CHARS: usize = 60_000;
/// How much of the repository is shown where nobody says otherwise, in characters.
pub const CONTEXT_CHARS: usize = 60_000;

/// What agents are told, by role.
#[derive(Clone, Debug)]
pub struct Prompts {
    coordinator: Prompt,
    planner: Prompt,
    coder: Prompt,
    reviewer: Prompt,
    ideas: Prompt,
    /// The most that is shown of the repository, in characters.
    pub context_max_chars: usize,
    /// What a generator of ideas is told beside.
    pub listed: Vec<Listed>,
}

/// What somebody in a role is told.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// In which words.
    pub template: Template,
    /// How much of the repository.
    pub context: Context,
}

static BUILT_IN: LazyLock<Prompts> = LazyLock::new(|| {
    // A test holds that nothing is wrong with them.
    let prompt = |role| {
        let (template, _) = Template::read(role, built_in(role));
        Prompt { template, context: Context::Nothing }
    };
    Prompts {
        coordinator: prompt(Role::Coordinator),
        planner: prompt(Role::Planner),
        coder: prompt(Role::Coder),
        reviewer: prompt(Role::Reviewer),
        ideas: prompt(Role::Ideas),
        context_max_chars: CONTEXT_CHARS,
        listed: Vec::new(),
    }
});

/// The built-in template of a role.
#[must_use]
pub const fn built_in(role: Role) -> &'static str {
    match role {
        Role::Coordinator => include_str!("../prompts/coordinator.md"),
        Role::Planner => include_str!("../prompts/planner.md"),
        Role::Coder => include_str!("../prompts/coder.md"),
        Role::Reviewer => include_str!("../prompts/reviewer.md"),
        Role::Ideas => include_str!("../prompts/ideas.md"),
    }
}

impl Prompts {
    /// The built-in templates, with nothing of the repository: for agents that look for themselves, or not at all.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// What somebody in a role is told.
    #[must_use]
    pub const fn of(&self, role: Role) -> &Prompt {
        match role {
            Role::Coordinator => &self.coordinator,
            Role::Planner => &self.planner,
            Role::Coder => &self.coder,
            Role::Reviewer => &self.reviewer,
            Role::Ideas => &self.ideas,
        }
    }

    /// The same, to be changed.
    pub const fn of_mut(&mut self, role: Role) -> &mut Prompt {
        match role {
            Role::Coordinator => &mut self.coordinator,
            Role::Planner => &mut self.planner,
            Role::Coder => &mut self.coder,
            Role::Reviewer => &mut self.reviewer,
            Role::Ideas => &mut self.ideas,
        }
    }

    /// Asks for ideas.
    pub(crate) fn ideas(&self, matter: &ForIdeas<'_>) -> String {
        let ForIdeas { pack, request, protect, repo, memory } = matter;
        let mut parts = rules(protect, repo);
        parts.insert(Placeholder::Count, request.count.to_string().into());
        parts.insert(Placeholder::Answer, answer(Role::Ideas, Edits::Diff).into());
        parts.insert(Placeholder::Node, (*pack).into());
        if !memory.is_empty() {
            let (head, sentence) = ("WHAT WAS SAID BEFORE IN THIS BRANCH", "Your own answers.\n");
            parts.insert(Placeholder::Memory, said(head, sentence, memory, usize::MAX).into());
        }
        if let Some(again) = again(request) {
            parts.insert(Placeholder::Repeated, again.into());
        }
        self.ideas.template.fill(&parts)
    }

    /// Asks for whatever a role does about an idea.
    pub(crate) fn about(&self, role: Role, matter: &Matter<'_>) -> String {
        self.of(role).template.fill(&matter.parts(role))
    }
}

/// What a generator is told.
pub(crate) struct ForIdeas<'a> {
    /// The node's context pack.
    pub(crate) pack: &'a str,
    /// What is asked for, and what of the answers before will not do.
    pub(crate) request: &'a Request,
    pub(crate) protect: &'a [String],
    /// What there is in the repository.
    pub(crate) repo: &'a str,
    /// What was said before; it has its own limit.
    pub(crate) memory: &'a str,
}

/// What there is to be told about an idea, as far as it has come.
#[derive(Clone, Copy, Default)]
pub(crate) struct Matter<'a> {
    pub(crate) idea: &'a str,
    /// How it failed before.
    pub(crate) earlier: Earlier<'a>,
    pub(crate) notes: Option<&'a str>,
    pub(crate) plan: Option<&'a str>,
    /// What earlier rounds have changed.
    pub(crate) so_far: Option<&'a str>,
    /// What was wrong with the coder's last answer.
    pub(crate) problem: Option<&'a str>,
    /// What is to be reviewed.
    pub(crate) change: Option<&'a str>,
    /// What the first review found, all that later ones are about.
    pub(crate) issues: Option<&'a str>,
    pub(crate) protect: &'a [String],
    /// What there is in the repository.
    pub(crate) repo: &'a str,
    /// How a coder answers.
    pub(crate) edits: Edits,
}

impl<'a> Matter<'a> {
    fn parts(&self, role: Role) -> Parts<'a> {
        let short = |head: &str, text: &str| quoted(head, text, PART_CHARS);
        let long = |head: &str, text: &str| quoted(head, text, CHANGE_CHARS);
        let again = "You have reviewed this change before. Look only at whether these issues are solved; raise no others.\n";
        let so_far = match self.edits {
            Edits::Diff => "YOUR CHANGE SO FAR; IT IS IN PLACE, THE NEXT DIFF COMES ON TOP",
            Edits::InPlace => "YOUR CHANGE SO FAR; IT IS IN PLACE",
        };
        let parts = [
            (Placeholder::Answer, Some(answer(role, self.edits).to_owned())),
            (Placeholder::Idea, Some(short("IDEA", self.idea))),
            (Placeholder::Earlier, self.earlier.sections(role == Role::Coder)),
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
                self.issues
                    .map(|text| said("ISSUES OF YOUR FIRST REVIEW", again, text, PART_CHARS)),
            ),
        ];
        let mut all = rules(self.protect, self.repo);
        all.extend(parts.into_iter().filter_map(|(one, text)| Some((one, text?.into()))));
        all
    }
}

/// What of the answers before will not do, where there is any.
fn again(request: &Request) -> Option<String> {
    let repeated = "YOU PROPOSED THESE, BUT THEY WERE TRIED BEFORE";
    let incomplete = "YOU PROPOSED THESE, BUT A PART IS MISSING; WRITE EACH AGAIN, WHOLE";
    let parts = [(repeated, &request.repeated), (incomplete, &request.incomplete)];
    let parts = parts.into_iter().filter(|(_, lines)| !lines.is_empty());
    let parts: Vec<_> = parts.map(|(head, lines)| plain(head, &list(lines), PART_CHARS)).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// What everybody may be told.
fn rules<'a>(protect: &[String], repo: &'a str) -> Parts<'a> {
    let keep = "- the sweep's grid of configurations stays as it is\n";
    let mut parts = Parts::new();
    parts.insert(Placeholder::Keep, plain("KEEP", keep, PART_CHARS).into());
    parts.insert(Placeholder::Repo, repo.into());
    if !protect.is_empty() {
        let protect = plain("DO NOT TOUCH", &list(protect), PART_CHARS);
        parts.insert(Placeholder::Protect, protect.into());
    }
    parts
}

/// The form of an answer. It is what is read out of one, so that it is not the user's to change.
const fn answer(role: Role, edits: Edits) -> &'static str {
    match (role, edits) {
        (Role::Coordinator, _) => "Answer with the notes alone, in at most thirty lines.",
        (Role::Planner, _) => {
            "Write two parts, and nothing else:\n\
             PLAN: numbered steps, each with the file and what changes there\n\
             RISKS: what could go wrong, and how to see it"
        }
        (Role::Coder, Edits::Diff) => {
            "Answer with one unified diff that `git apply` takes, and nothing else: paths from the root of the repository, `a/`\n\
             before the old and `b/` before the new one, `/dev/null` for a file that is not there, and lines of context that are\n\
             exactly those of the file."
        }
        (Role::Coder, Edits::InPlace) => {
            "Edit the files in this folder yourself, and commit nothing: your edits are what counts. Answer with one line that says\n\
             what you did."
        }
        (Role::Reviewer, _) => {
            "Write three parts, and nothing else:\n\
             VERDICT: APPROVE or REJECT\n\
             ISSUES: what must change, one point each, with file and line; none if you approve\n\
             NOTES: anything else"
        }
        (Role::Ideas, _) => {
            "Write each idea as three parts, and nothing else:\n\
             IDEA: one line that says what to change\n\
             RATIONALE: why it should help\n\
             REQUIRED_CHANGES: what to change, file by file"
        }
    }
}

#[cfg(test)]
mod tests;
