//! Parses `[prompts]` and `[context]`: prompt files, and how much of the repository agents see.
//!
//! The files are read here, so that a mistake in one is known before any cost arises; their content
//! is parsed by [`treebeam_run::prompt`].

mod context_files;

use super::agents::{AgentConfig, AgentConfigKind};
use super::bounded_values::OneTo;
use super::config_key::{CONFIG_KEYS, ConfigKey};
use super::measure::ValueOrNone;
use super::origin::{SettingError, SettingOrigin};
use super::{Config, ConfigTables};
use serde::Deserialize;
use std::path::{Component, Path};
use treebeam_core::id::Sha256;
use treebeam_core::policy::RecordedAgents;
use treebeam_run::outline::{FileGlob, MAX_CONTEXT_CHARS, RepoContext};
use treebeam_run::port::AgentRole;
use treebeam_run::prompt::{
    DEFAULT_CONTEXT_CHARS, ListedFile, MAX_LISTED_CHARS, MAX_LISTED_FILE_CHARS, MAX_TEMPLATE_BYTES,
    PromptSet, PromptTemplate,
};
use treebeam_store::input::{self, InputError};

/// Maximum characters of a repository in a prompt.
pub(crate) type ContextChars = OneTo<MAX_CONTEXT_CHARS>;

/// Keys of `[prompts]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PromptsTable {
    coordinator: Option<ValueOrNone<UserFilePath>>,
    planner: Option<ValueOrNone<UserFilePath>>,
    coder: Option<ValueOrNone<UserFilePath>>,
    reviewer: Option<ValueOrNone<UserFilePath>>,
    ideas: Option<ValueOrNone<UserFilePath>>,
}

/// Keys of `[context]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ContextTable {
    coordinator: Option<ContextSetting>,
    planner: Option<ContextSetting>,
    coder: Option<ContextSetting>,
    reviewer: Option<ContextSetting>,
    ideas: Option<ContextSetting>,
}

/// Path of a user's file, relative to the root of the repository.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct UserFilePath(String);

/// Setting of the part of the repository that a role's prompt includes.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawContextSetting")]
enum ContextSetting {
    /// Depends on the kind of agent.
    Auto,
    Outline,
    Nothing,
    Files(Vec<FileGlob>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "it must be \"auto\", \"outline\", \"none\" or a list of globs")]
enum RawContextSetting {
    Word(String),
    Globs(Vec<String>),
}

impl TryFrom<String> for UserFilePath {
    type Error = String;
    fn try_from(path: String) -> Result<Self, String> {
        if path.trim().is_empty() || path.chars().any(char::is_control) {
            return Err(format!("{path:?} is not the path of a file"));
        }
        Ok(Self(path))
    }
}

impl TryFrom<RawContextSetting> for ContextSetting {
    type Error = String;
    fn try_from(raw: RawContextSetting) -> Result<Self, String> {
        let globs = match raw {
            RawContextSetting::Word(word) => {
                return match word.as_str() {
                    "auto" => Ok(Self::Auto),
                    "outline" => Ok(Self::Outline),
                    "none" => Ok(Self::Nothing),
                    _ => Err(format!(
                        "it must be \"auto\", \"outline\", \"none\" or a list of globs, not {word:?}"
                    )),
                };
            }
            RawContextSetting::Globs(globs) => globs,
        };
        let globs: Result<_, String> = globs.iter().map(|glob| FileGlob::new(glob)).collect();
        globs.map(Self::Files)
    }
}

impl ContextSetting {
    /// Returns the repository context for an agent. Coding agents and the tuner read the files
    /// themselves, so `auto` gives them none.
    fn context_for_agent(&self, agent: Option<&AgentConfig>) -> RepoContext {
        match (self, agent.map(|agent| &agent.line)) {
            (Self::Nothing, _)
            | (Self::Auto, None | Some(AgentConfigKind::Cli(_) | AgentConfigKind::Tuner)) => {
                RepoContext::Nothing
            }
            (Self::Outline, _)
            | (Self::Auto, Some(AgentConfigKind::Model(_) | AgentConfigKind::Command(_))) => {
                RepoContext::Outline
            }
            (Self::Files(globs), _) => RepoContext::Files(globs.clone()),
        }
    }
}

impl ConfigTables {
    fn prompt_path(&self, role: AgentRole) -> Option<&str> {
        let said = match role {
            AgentRole::Coordinator => &self.prompts.coordinator,
            AgentRole::Planner => &self.prompts.planner,
            AgentRole::Coder => &self.prompts.coder,
            AgentRole::Reviewer => &self.prompts.reviewer,
            AgentRole::Ideas => &self.prompts.ideas,
        };
        match said {
            Some(ValueOrNone::Some(path)) => Some(&path.0),
            Some(ValueOrNone::None) | None => None,
        }
    }

    fn context_setting(&self, role: AgentRole) -> &ContextSetting {
        let said = match role {
            AgentRole::Coordinator => &self.context.coordinator,
            AgentRole::Planner => &self.context.planner,
            AgentRole::Coder => &self.context.coder,
            AgentRole::Reviewer => &self.context.reviewer,
            AgentRole::Ideas => &self.context.ideas,
        };
        said.as_ref().unwrap_or(&ContextSetting::Auto)
    }
}

/// Loaded prompts, and the digests to record for them.
#[derive(Debug)]
pub(crate) struct LoadedPrompts {
    pub(crate) prompts: PromptSet,
    /// Role, path and digest of each of the user's own templates.
    digests: Vec<(AgentRole, String, Sha256)>,
}

impl LoadedPrompts {
    /// Adds path and digest of the user's templates to the recorded agents.
    pub(crate) fn add_to_record(&self, agents: &mut RecordedAgents) {
        for (role, path, digest) in &self.digests {
            if let Some(words) = agents.0.get_mut(role.name()) {
                words.insert("prompt".to_owned(), format!("{path} sha256 {digest}"));
            }
        }
        if let Some(words) = agents.0.get_mut(AgentRole::Ideas.name())
            && !self.prompts.listed_files.is_empty()
        {
            let files: Vec<String> =
                self.prompts.listed_files.iter().map(ListedFile::digest_line).collect();
            words.insert("context_files".to_owned(), files.join(", "));
        }
        for role in AgentRole::ALL {
            let shown = match &self.prompts.for_role(role).context {
                RepoContext::Nothing => continue,
                RepoContext::Outline => "outline".to_owned(),
                RepoContext::Files(globs) => {
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
    /// Loads and checks the prompts. Paths are relative to the top of the repository.
    pub(crate) fn load_prompts(&self, top: &Path) -> Result<LoadedPrompts, SettingError> {
        let mut loaded =
            LoadedPrompts { prompts: PromptSet::built_in().clone(), digests: Vec::new() };
        loaded.prompts.context_max_chars = self.context_max_chars();
        for role in AgentRole::ALL {
            let (agent, shown) = (self.agent_for(role), self.tables.context_setting(role));
            if let Some(path) = self.tables.prompt_path(role) {
                self.refuse_for_tuner("prompts", role)?;
                let (template, digest) = self.read_prompt(top, role, path)?;
                loaded.prompts.for_role_mut(role).template = template;
                loaded.digests.push((role, path.to_owned(), digest));
            }
            if matches!(shown, ContextSetting::Outline | ContextSetting::Files(_)) {
                self.refuse_for_tuner("context", role)?;
            }
            loaded.prompts.for_role_mut(role).context = shown.context_for_agent(agent);
        }
        loaded.prompts.listed_files = self.load_context_files(top)?;
        Ok(loaded)
    }

    /// Returns the maximum characters of the repository in a prompt.
    pub(super) fn context_max_chars(&self) -> usize {
        let said = self.tables.context_max_chars.map(|chars| chars.0.get());
        said.map_or(DEFAULT_CONTEXT_CHARS, |chars| {
            usize::try_from(chars).unwrap_or(DEFAULT_CONTEXT_CHARS)
        })
    }

    /// Returns the maximum characters of the repository and of listed files in a role's prompt.
    pub(crate) fn max_shown_chars(&self, role: AgentRole) -> usize {
        let listed = match role {
            AgentRole::Ideas => {
                (self.context_files().len() * MAX_LISTED_FILE_CHARS).min(MAX_LISTED_CHARS)
            }
            AgentRole::Coordinator
            | AgentRole::Planner
            | AgentRole::Coder
            | AgentRole::Reviewer => 0,
        };
        match self.tables.context_setting(role).context_for_agent(self.agent_for(role)) {
            RepoContext::Nothing => listed,
            RepoContext::Outline | RepoContext::Files(_) => listed + self.context_max_chars(),
        }
    }

    /// Returns the prompt files and listed files that lie in the repository, as git names them.
    pub(crate) fn repo_prompt_files(&self) -> Vec<String> {
        let paths = AgentRole::ALL.into_iter().filter_map(|role| self.tables.prompt_path(role));
        let listed = self.context_files().iter().map(|file| file.0.as_str());
        paths.chain(listed).filter_map(git_path).collect()
    }

    /// Returns true if a listed file for the idea generator lies outside of the repository.
    pub(crate) fn has_outside_context_files(&self) -> bool {
        self.context_files().iter().any(|file| git_path(&file.0).is_none())
    }

    /// Returns the files that a run needs and takes from no commit, as git names them: prompt
    /// files, listed files, and inputs, which git does not track.
    pub(crate) fn uncommitted_files(&self) -> Vec<String> {
        let inputs = self.tables.measure_overrides().inputs.into_iter().flatten();
        let inputs = inputs.map(|input| input.as_str().to_owned());
        self.repo_prompt_files().into_iter().chain(inputs).collect()
    }

    fn read_prompt(
        &self,
        top: &Path,
        role: AgentRole,
        path: &str,
    ) -> Result<(PromptTemplate, Sha256), SettingError> {
        let most = MAX_TEMPLATE_BYTES.try_into().unwrap_or(u64::MAX);
        let text = input::read_text(&top.join(path), path, most).map_err(|error| {
            let is_missing = matches!(error, InputError::Missing { .. });
            let from =
                if is_missing { "; its path begins at the root of the repository" } else { "" };
            self.prompt_error("prompts", role, format!("{error}{from}"))
        })?;
        let template = PromptTemplate::parse(role, &text)
            .map_err(|error| self.prompt_error("prompts", role, error.message_in_file(path)))?;
        Ok((template, Sha256::hash_bytes(text.as_bytes())))
    }

    /// Refuses prompt settings for the tuner, which would ignore them.
    fn refuse_for_tuner(&self, table: &str, role: AgentRole) -> Result<(), SettingError> {
        let is_tuner = |agent: &AgentConfig| matches!(agent.line, AgentConfigKind::Tuner);
        if !self.agent_for(role).is_some_and(is_tuner) {
            return Ok(());
        }
        let what = "the `tuner` reads its built-in prompt and the worktree, and nothing else";
        Err(self.prompt_error(table, role, what.to_owned()))
    }

    fn prompt_error(&self, table: &str, role: AgentRole, what: String) -> SettingError {
        let name = format!("{table}.{role}");
        let key: Option<&ConfigKey> = CONFIG_KEYS.iter().find(|key| key.name == name);
        SettingError { origin: key.map_or(SettingOrigin::Default, |key| self.origin(key)), what }
    }
}

/// Normalizes a path below the root to `/` separators; `None` for a path that leads elsewhere.
fn git_path(path: &str) -> Option<String> {
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
