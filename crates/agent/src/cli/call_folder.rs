//! The files that one call of a coding agent needs: a prompt, a home, a copy of a session. They lie
//! beside the worktrees, never in one.

use crate::command::AgentWorkspace;
use crate::question::{AgentQuestion, TryError};
use crate::settings::{AgentHome, CliAgent, CliTool};
use crate::workspace::CLI_CALLS_FOLDER;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use treebeam_run::port::{Continuation, PortError};

/// The session that a call continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CliSession {
    /// No session.
    New,
    /// A session that is forked, by its name.
    Fork(String),
    /// A session that was copied to this file.
    Copy(PathBuf),
}

/// A folder for one call, removed on drop.
#[derive(Debug)]
pub(super) struct CliCallFolder<'a> {
    surroundings: &'a AgentWorkspace,
    folder: PathBuf,
    pub(super) prompt: PathBuf,
    /// Home folder of the agent.
    pub(super) home: PathBuf,
}

impl Drop for CliCallFolder<'_> {
    fn drop(&mut self) {
        // In a run that another process has now, the folder may be the other's.
        if self.surroundings.check_fence().is_ok() {
            // If it cannot be removed, the next call of that key replaces it.
            drop(fs::remove_dir_all(&self.folder));
        }
    }
}

impl<'a> CliCallFolder<'a> {
    pub(super) fn create(
        cli: &CliAgent,
        question: &AgentQuestion,
        surroundings: &'a AgentWorkspace,
    ) -> Result<Self, PortError> {
        let folder = surroundings.own_folder(CLI_CALLS_FOLDER).join(&question.key);
        let home = match cli.home {
            AgentHome::Scratch => surroundings.own_folder("home"),
            AgentHome::User => std::env::home_dir().unwrap_or_default(),
        };
        let made = match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => fs::create_dir_all(&folder),
        };
        let call_folder = Self { surroundings, prompt: folder.join("prompt.txt"), folder, home };
        made.and_then(|()| call_folder.prepare_home(cli))
            .map_err(|error| call_folder.write_error(error))?;
        Ok(call_folder)
    }

    fn write_error(&self, error: io::Error) -> PortError {
        let what = format!("cannot write in `{}`", self.folder.display());
        PortError::new(what).with_cause(error)
    }

    /// Writes the settings that an agent needs in an empty home.
    fn prepare_home(&self, cli: &CliAgent) -> io::Result<()> {
        if cli.home == AgentHome::User {
            return Ok(());
        }
        fs::create_dir_all(&self.home)?;
        let settings = self.home.join(".gemini/settings.json");
        if cli.tool != CliTool::Gemini || settings.exists() {
            return Ok(());
        }
        fs::create_dir_all(self.home.join(".gemini"))?;
        fs::write(settings, super::gemini::GEMINI_SETTINGS_JSON)
    }

    pub(super) fn write_prompt(&self, prompt: &str) -> Result<(), PortError> {
        fs::write(&self.prompt, prompt).map_err(|error| self.write_error(error))
    }

    /// Returns the folder to work in; outside of a run an empty one, not the user's checkout.
    pub(super) fn work_folder(&self, folder: &Path) -> Result<PathBuf, PortError> {
        match self.surroundings {
            AgentWorkspace::Run(_) => Ok(folder.to_owned()),
            AgentWorkspace::Folder(_) => {
                let empty = self.surroundings.own_folder(CLI_CALLS_FOLDER).join("empty");
                fs::create_dir_all(&empty).map_err(|error| self.write_error(error))?;
                Ok(empty)
            }
        }
    }

    /// Prepares the session that a call continues.
    pub(super) fn prepare_session(
        &self,
        cli: &CliAgent,
        continues: Option<&Continuation>,
    ) -> Result<CliSession, TryError> {
        let Some(Continuation { id, .. }) = continues else { return Ok(CliSession::New) };
        let provider = cli.tool.provider_name();
        if !is_session_id(id) {
            return Err(TryError::Forgotten(format!("{id:?} is no session of `{provider}`")));
        }
        match cli.tool {
            CliTool::Aider => Err(TryError::Forgotten(format!("`{provider}` keeps no sessions"))),
            CliTool::Codex | CliTool::Claude | CliTool::Opencode => {
                Ok(CliSession::Fork(id.clone()))
            }
            CliTool::Gemini => {
                let lost =
                    || TryError::Forgotten(format!("`{provider}` has no session `{id}` any more"));
                let found = find_gemini_session(&self.home, id).ok_or_else(lost)?;
                let extension = found.extension().and_then(OsStr::to_str).unwrap_or("json");
                let copy = self.folder.join(format!("session.{extension}"));
                fs::copy(&found, &copy).map_err(|error| self.write_error(error))?;
                Ok(CliSession::Copy(copy))
            }
        }
    }
}

/// Returns true if a text can be the name of a session, and is no option or path.
fn is_session_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.chars().all(plain) && text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// Finds the file of a session: `~/.gemini/tmp/<project>/chats/session-<time>-<first part of the
/// id>.jsonl`. A session that began from a copy has a second, much shorter file of that name.
fn find_gemini_session(home: &Path, id: &str) -> Option<PathBuf> {
    let short = id.split('-').next()?;
    let files = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let projects = files(home.join(".gemini/tmp"));
    let chats = projects.flat_map(|project| files(project.path().join("chats")));
    let named = chats.map(|file| file.path()).filter(|file| {
        file.file_stem().and_then(OsStr::to_str).is_some_and(|stem| stem.ends_with(short))
    });
    let length = |file: &PathBuf| {
        let text = fs::read_to_string(file).ok().filter(|text| text.contains(id))?;
        Some(text.len())
    };
    let known = named.filter_map(|file| Some((length(&file)?, file)));
    known.max().map(|(_, file)| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_gemini_is_its_longest_file() {
        let home = tempfile::tempdir().expect("a folder");
        let chats = home.path().join(".gemini/tmp/wt/chats");
        fs::create_dir_all(&chats).expect("a folder");
        let id = "38de6bb8-6118-404f";
        for (name, text) in [
            ("session-1794821978713-38de6bb8.jsonl", format!("{id} all that was said")),
            ("session-2026-11-16T09-39-38de6bb8.jsonl", id.to_owned()),
            ("session-0-38de6bb8.jsonl", "38de6bb8-another, whatever was said there".to_owned()),
            ("session-0-3287bcaf.jsonl", format!("{id} is named elsewhere, in another session")),
        ] {
            fs::write(chats.join(name), text).expect("a file");
        }
        let found = find_gemini_session(home.path(), id).expect("a session");
        assert_eq!(found, chats.join("session-1794821978713-38de6bb8.jsonl"));
        assert_eq!(find_gemini_session(home.path(), "38de6bb8-0000"), None);
    }
}
