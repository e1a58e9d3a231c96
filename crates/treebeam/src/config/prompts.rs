//! `[prompts]` and `[context]`: what agents are told, and how much of the repository they are shown. The files are read here,
//! so that a mistake in one is known before anything is paid for; what stands in them is `treebeam_run::prompt`'s business.

mod files;

use super::agents::{Agent, Line};
use super::key::{KEYS, Key};
use super::measure::OrNone;
use super::number::OneTo;
use super::origin::{Origin, Wrong};
use super::{Config, Tables};
use serde::Deserialize;
use std::path::{Component, Path};
use treebeam_core::id::Sha256;
use treebeam_core::policy::Agents;
use treebeam_edge::input::{self, InputError};
use treebeam_run::outline::{Context, FileGlob, MOST_CHARS};
use treebeam_run::port::Role;
use treebeam_run::prompt::{
    ALL_CHARS, CONTEXT_CHARS, FILE_CHARS, Listed, MOST_BYTES, Prompts, Template,
};

/// How much may be shown of a repository, in characters.
pub(crate) type Chars = OneTo<MOST_CHARS>;

/// The keys of `[prompts]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PromptsTable {
    coordinator: Option<OrNone<UserFile>>,
    planner: Option<OrNone<UserFile>>,
    coder: Option<OrNone<UserFile>>,
    reviewer: Option<OrNone<UserFile>>,
    ideas: Option<OrNone<UserFile>>,
}

/// The keys of `[context]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ContextTable {
    coordinator: Option<Shown>,
    planner: Option<Shown>,
    coder: Option<Shown>,
    reviewer: Option<Shown>,
    ideas: Option<Shown>,
}

/// Where a file of the user's lies, seen from the root of the repository.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct UserFile(String);

/// What is shown to a role.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Said")]
enum Shown {
    /// What suits the agent.
    Auto,
    Outline,
    Nothing,
    Files(Vec<FileGlob>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "it must be \"auto\", \"outline\", \"none\" or a list of globs")]
enum Said {
    Word(String),
    Globs(Vec<String>),
}

impl TryFrom<String> for UserFile {
    type Error = String;
    fn try_from(path: String) -> Result<Self, String> {
        if path.trim().is_empty() || path.chars().any(char::is_control) {
            return Err(format!("{path:?} is not the path of a file"));
        }
        Ok(Self(path))
    }
}

impl TryFrom<Said> for Shown {
    type Error = String;
    fn try_from(said: Said) -> Result<Self, String> {
        let globs = match said {
            Said::Word(word) => {
                return match word.as_str() {
                    "auto" => Ok(Self::Auto),
                    "outline" => Ok(Self::Outline),
                    "none" => Ok(Self::Nothing),
                    _ => Err(format!(
                        "it must be \"auto\", \"outline\", \"none\" or a list of globs, not {word:?}"
                    )),
                };
            }
            Said::Globs(globs) => globs,
        };
        let globs: Result<_, String> = globs.iter().map(|glob| FileGlob::new(glob)).collect();
        globs.map(Self::Files)
    }
}

impl Shown {
    /// Coding agents look for themselves, and so does the tuner.
    fn for_agent(&self, agent: Option<&Agent>) -> Context {
        match (self, agent.map(|agent| &agent.line)) {
            (Self::Nothing, _) | (Self::Auto, None | Some(Line::Cli(_) | Line::Tuner)) => {
                Context::Nothing
            }
            (Self::Outline, _) | (Self::Auto, Some(Line::Model(_) | Line::Command(_))) => {
                Context::Outline
            }
            (Self::Files(globs), _) => Context::Files(globs.clone()),
        }
    }
}

impl Tables {
    fn prompt_path(&self, role: Role) -> Option<&str> {
        let said = match role {
            Role::Coordinator => &self.prompts.coordinator,
            Role::Planner => &self.prompts.planner,
            Role::Coder => &self.prompts.coder,
            Role::Reviewer => &self.prompts.reviewer,
            Role::Ideas => &self.prompts.ideas,
        };
        match said {
            Some(OrNone::Some(path)) => Some(&path.0),
            Some(OrNone::None) | None => None,
        }
    }

    fn shown(&self, role: Role) -> &Shown {
        let said = match role {
            Role::Coordinator => &self.context.coordinator,
            Role::Planner => &self.context.planner,
            Role::Coder => &self.context.coder,
            Role::Reviewer => &self.context.reviewer,
            Role::Ideas => &self.context.ideas,
        };
        said.as_ref().unwrap_or(&Shown::Auto)
    }
}

/// What agents are told, and what is recorded of it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) prompts: Prompts,
    /// The digests of the user's own templates.
    digests: Vec<(Role, String, Sha256)>,
}

impl Told {
    /// Adds to what is recorded of agents what each of them is told.
    pub(crate) fn describe(&self, agents: &mut Agents) {
        for (role, path, digest) in &self.digests {
            if let Some(words) = agents.0.get_mut(role.name()) {
                words.insert("prompt".to_owned(), format!("{path} sha256 {digest}"));
            }
        }
        if let Some(words) = agents.0.get_mut(Role::Ideas.name())
            && !self.prompts.listed.is_empty()
        {
            let files: Vec<String> = self.prompts.listed.iter().map(Listed::digest).collect();
            words.insert("context_files".to_owned(), files.join(", "));
        }
        for role in Role::ALL {
            let shown = match &self.prompts.of(role).context {
                Context::Nothing => continue,
                Context::Outline => "outline".to_owned(),
                Context::Files(globs) => {
                    globs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                }
            };
            if let Some(words) = agents.0.get_mut(role.name()) {
                let most = self.prompts.context_max_chars;
                words.insert("context".to_owned(), format!("{shown}, at most {most} characters"));
            }
        }
    }
}

impl Config {
    /// What agents are told, if nothing is wrong with it. Paths are seen from the top of the repository.
    pub(crate) fn prompts(&self, top: &Path) -> Result<Told, Wrong> {
        let mut told = Told { prompts: Prompts::built_in().clone(), digests: Vec::new() };
        told.prompts.context_max_chars = self.context_max_chars();
        for role in Role::ALL {
            let (agent, shown) = (self.agent(role), self.tables.shown(role));
            if let Some(path) = self.tables.prompt_path(role) {
                self.not_for_tuner("prompts", role)?;
                let (template, digest) = self.read_prompt(top, role, path)?;
                told.prompts.of_mut(role).template = template;
                told.digests.push((role, path.to_owned(), digest));
            }
            if matches!(shown, Shown::Outline | Shown::Files(_)) {
                self.not_for_tuner("context", role)?;
            }
            told.prompts.of_mut(role).context = shown.for_agent(agent);
        }
        told.prompts.listed = self.listed(top)?;
        Ok(told)
    }

    /// The most that is shown of the repository, in characters.
    pub(super) fn context_max_chars(&self) -> usize {
        let said = self.tables.context_max_chars.map(|chars| chars.0.get());
        said.map_or(CONTEXT_CHARS, |chars| usize::try_from(chars).unwrap_or(CONTEXT_CHARS))
    }

    /// The most that somebody in a role is shown of the repository, and of files that the user lists, in characters.
    pub(crate) fn shown_chars(&self, role: Role) -> usize {
        let listed = match role {
            Role::Ideas => (self.context_files().len() * FILE_CHARS).min(ALL_CHARS),
            Role::Coordinator | Role::Planner | Role::Coder | Role::Reviewer => 0,
        };
        match self.tables.shown(role).for_agent(self.agent(role)) {
            Context::Nothing => listed,
            Context::Outline | Context::Files(_) => listed + self.context_max_chars(),
        }
    }

    /// The prompt files and those that the user lists, as git names them: those that lie in the repository.
    pub(crate) fn prompt_files(&self) -> Vec<String> {
        let paths = Role::ALL.into_iter().filter_map(|role| self.tables.prompt_path(role));
        let listed = self.context_files().iter().map(|file| file.0.as_str());
        paths.chain(listed).filter_map(as_git_has_it).collect()
    }

    /// Whether the files that the user lists for the generator of ideas lie in part outside of the repository.
    pub(crate) fn lists_files_elsewhere(&self) -> bool {
        self.context_files().iter().any(|file| as_git_has_it(&file.0).is_none())
    }

    /// What a run needs and takes from no commit, as git names it: these, and inputs, which git does not track.
    pub(crate) fn not_committed(&self) -> Vec<String> {
        let inputs = self.tables.measure().inputs.into_iter().flatten();
        let inputs = inputs.map(|input| input.as_str().to_owned());
        self.prompt_files().into_iter().chain(inputs).collect()
    }

    fn read_prompt(&self, top: &Path, role: Role, path: &str) -> Result<(Template, Sha256), Wrong> {
        let most = MOST_BYTES.try_into().unwrap_or(u64::MAX);
        let text = input::text(&top.join(path), path, most).map_err(|error| {
            let is_missing = matches!(error, InputError::Missing { .. });
            let from =
                if is_missing { "; its path begins at the root of the repository" } else { "" };
            self.wrong_prompt("prompts", role, format!("{error}{from}"))
        })?;
        let template = Template::parse(role, &text)
            .map_err(|error| self.wrong_prompt("prompts", role, error.in_file(path)))?;
        Ok((template, Sha256::of(text.as_bytes())))
    }

    /// Refuses what the tuner would not heed.
    fn not_for_tuner(&self, table: &str, role: Role) -> Result<(), Wrong> {
        let is_tuner = |agent: &Agent| matches!(agent.line, Line::Tuner);
        if !self.agent(role).is_some_and(is_tuner) {
            return Ok(());
        }
        let what = "the `tuner` reads its built-in prompt and the worktree, and nothing else";
        Err(self.wrong_prompt(table, role, what.to_owned()))
    }

    fn wrong_prompt(&self, table: &str, role: Role, what: String) -> Wrong {
        let name = format!("{table}.{role}");
        let key: Option<&Key> = KEYS.iter().find(|key| key.name == name);
        Wrong { origin: key.map_or(Origin::Default, |key| self.origin(key)), what }
    }
}

/// A path below the root with `/` between its parts; none for one that leads elsewhere.
fn as_git_has_it(path: &str) -> Option<String> {
    let part = |part: Component<'_>| match part {
        Component::Normal(part) => Some(Some(part.to_str()?.to_owned())),
        Component::CurDir => Some(None),
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => None,
    };
    let parts = Path::new(path).components().map(part).collect::<Option<Vec<_>>>()?;
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests;
