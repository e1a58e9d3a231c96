//! The table of the placeholders that a template may have, for the template parser and for the
//! documentation. The texts that replace them are made elsewhere.

use crate::port::AgentRole;
use std::fmt;
use treebeam_core::nearest::nearest_names;

/// A placeholder of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placeholder {
    /// Number of ideas wanted.
    Count,
    /// Form of the answer.
    Answer,
    /// Text of the idea.
    Idea,
    /// Failures of earlier attempts.
    Earlier,
    /// Notes of the coordinator.
    Notes,
    /// Plan of the planner.
    Plan,
    /// Change that earlier rounds have made.
    ChangeSoFar,
    /// Problem of the last answer.
    Problem,
    /// Change that is reviewed.
    Change,
    /// Issues of the first review.
    Issues,
    /// Context pack of the node.
    Node,
    /// Ideas that were answered before.
    Repeated,
    /// Earlier turns of the conversation.
    Memory,
    /// Protected paths.
    Protect,
    /// Other things that must stay unchanged.
    Keep,
    /// Outline of the repository.
    Repo,
}

/// The places where a placeholder may be, and the form of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceholderForm {
    /// A word, anywhere.
    Word,
    /// A paragraph, on a line of its own.
    Paragraph,
    /// Sections with headings, on a line of its own, or nothing at all.
    Section,
}

/// The table entry of a placeholder.
struct PlaceholderEntry {
    name: &'static str,
    form: PlaceholderForm,
    /// Roles whose templates may have it.
    roles: &'static [AgentRole],
    /// Roles whose templates must have it.
    needed: &'static [AgentRole],
    about: &'static str,
}

const IDEAS_ROLE: &[AgentRole] = &[AgentRole::Ideas];
const CODER_ROLE: &[AgentRole] = &[AgentRole::Coder];
const REVIEWER_ROLE: &[AgentRole] = &[AgentRole::Reviewer];
const EVAL_ROLES: &[AgentRole] =
    &[AgentRole::Coordinator, AgentRole::Planner, AgentRole::Coder, AgentRole::Reviewer];

impl Placeholder {
    /// All placeholders, in the order in which they are documented.
    pub const ALL: [Self; 16] = [
        Self::Count,
        Self::Answer,
        Self::Idea,
        Self::Earlier,
        Self::Notes,
        Self::Plan,
        Self::ChangeSoFar,
        Self::Problem,
        Self::Change,
        Self::Issues,
        Self::Node,
        Self::Repeated,
        Self::Memory,
        Self::Protect,
        Self::Keep,
        Self::Repo,
    ];

    const fn entry(self) -> PlaceholderEntry {
        use PlaceholderForm::{Paragraph, Section, Word};
        let (name, form, roles, needed, about) = match self {
            Self::Count => ("count", Word, IDEAS_ROLE, IDEAS_ROLE, "how many ideas are wanted"),
            Self::Answer => (
                "answer",
                Paragraph,
                &AgentRole::ALL as &[AgentRole],
                &[AgentRole::Coder, AgentRole::Reviewer, AgentRole::Ideas] as &[AgentRole],
                "the form that the answer must have; for a coder that edits files itself, that it does so",
            ),
            Self::Idea => ("idea", Section, EVAL_ROLES, EVAL_ROLES, "the idea file"),
            Self::Earlier => (
                "earlier",
                Section,
                &[AgentRole::Coordinator, AgentRole::Planner, AgentRole::Coder] as &[AgentRole],
                &[] as &[AgentRole],
                "how the attempts before at this idea failed, and for a coder what the last one changed; not at the first",
            ),
            Self::Notes => (
                "notes",
                Section,
                &[AgentRole::Planner, AgentRole::Coder, AgentRole::Reviewer] as &[AgentRole],
                &[] as &[AgentRole],
                "the coordinator's notes, where there are any",
            ),
            Self::Plan => (
                "plan",
                Section,
                &[AgentRole::Coder, AgentRole::Reviewer] as &[AgentRole],
                &[] as &[AgentRole],
                "the planner's plan, where there is one",
            ),
            Self::ChangeSoFar => (
                "change_so_far",
                Section,
                CODER_ROLE,
                CODER_ROLE,
                "what earlier rounds have changed, where that stays and the next answer comes on top",
            ),
            Self::Problem => (
                "problem",
                Section,
                CODER_ROLE,
                CODER_ROLE,
                "what was wrong with the last answer: git's words, the reviewer's issues; not in the first round",
            ),
            Self::Change => {
                ("change", Section, REVIEWER_ROLE, REVIEWER_ROLE, "the change as a diff")
            }
            Self::Issues => (
                "issues",
                Section,
                REVIEWER_ROLE,
                REVIEWER_ROLE,
                "what the first review found, and that nothing else counts now; not in the first round",
            ),
            Self::Node => (
                "node",
                Section,
                IDEAS_ROLE,
                IDEAS_ROLE,
                "the context pack: what changed since the root and the parent, what was tried, with which outcome",
            ),
            Self::Repeated => (
                "repeated",
                Section,
                IDEAS_ROLE,
                IDEAS_ROLE,
                "ideas of the answers before that were tried already or lack a part, where there are any",
            ),
            Self::Memory => (
                "memory",
                Section,
                IDEAS_ROLE,
                IDEAS_ROLE,
                "what the generator answered before in this branch, where it is told that again",
            ),
            Self::Protect => (
                "protect",
                Section,
                &AgentRole::ALL as &[AgentRole],
                &[] as &[AgentRole],
                "the protected paths; for `ideas` they are in the context pack too",
            ),
            Self::Keep => (
                "keep",
                Section,
                &AgentRole::ALL as &[AgentRole],
                &[] as &[AgentRole],
                "that the sweep's grid stays as it is; for `ideas` it is in the context pack too",
            ),
            Self::Repo => (
                "repo",
                Section,
                &AgentRole::ALL as &[AgentRole],
                &[] as &[AgentRole],
                "the repository at the commit at hand, as `context` says",
            ),
        };
        PlaceholderEntry { name, form, roles, needed, about }
    }

    /// Returns the name, without braces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the form, which says where the placeholder may be.
    #[must_use]
    pub const fn form(self) -> PlaceholderForm {
        self.entry().form
    }

    /// Returns a description of the text, on one line.
    #[must_use]
    pub const fn description(self) -> &'static str {
        self.entry().about
    }

    /// Returns true if a template for this role may have it.
    #[must_use]
    pub fn is_allowed_for(self, role: AgentRole) -> bool {
        self.entry().roles.contains(&role)
    }

    /// Returns true if a template for this role must have it.
    #[must_use]
    pub fn is_needed(self, role: AgentRole) -> bool {
        self.entry().needed.contains(&role)
    }

    /// Finds the placeholder of this name for a role.
    ///
    /// # Errors
    /// When there is none; the text names the nearest ones.
    pub(super) fn find_for_role(name: &str, role: AgentRole) -> Result<Self, String> {
        let meant = Self::ALL.into_iter().find(|one| one.name() == name);
        match meant {
            Some(one) if one.is_allowed_for(role) => Ok(one),
            Some(one) => {
                let roles: Vec<_> = one.entry().roles.iter().map(|role| role.name()).collect();
                let roles = roles.join("`, `");
                Err(format!("`{one}` is for `{roles}`, not for `{role}`"))
            }
            None => {
                let known: Vec<Self> =
                    Self::ALL.into_iter().filter(|one| one.is_allowed_for(role)).collect();
                let names: Vec<&str> = known.iter().map(|one| one.name()).collect();
                let meant = nearest_names(name, &names)
                    .first()
                    .map(|name| format!("nearest: `{{{{{name}}}}}`"));
                let all =
                    || known.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
                let meant = meant.unwrap_or_else(|| format!("known: {}", all()));
                Err(format!("there is no placeholder `{{{{{name}}}}}`; {meant}"))
            }
        }
    }
}

/// Writes the name with its braces.
impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{{}}}}}", self.name())
    }
}
