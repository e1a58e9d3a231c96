//! Loads `ideas_context_files`: the user's files for the prompt of the idea generator.
//!
//! They are read when a run starts or resumes, like prompts; [`treebeam_run::prompt`] limits how
//! much of them is included.

use super::super::Config;
use super::super::agents::AgentConfigKind;
use super::super::config_key::CONFIG_KEYS;
use super::super::origin::{SettingError, SettingOrigin};
use super::UserFilePath;
use std::fs;
use std::path::Path;
use treebeam_run::outline::is_secret;
use treebeam_run::port::AgentRole;
use treebeam_run::prompt::ListedFile;
use treebeam_store::input;

/// Maximum size of a listed file.
const MAX_CONTEXT_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of listed files.
const MAX_CONTEXT_FILES: usize = 100;
/// Extensions of the files that are taken from a listed folder.
const CONTEXT_FILE_EXTENSIONS: [&str; 2] = ["md", "txt"];

impl Config {
    pub(super) fn context_files(&self) -> &[UserFilePath] {
        self.tables.ideas_context_files.as_deref().unwrap_or_default()
    }

    /// Loads the files in the order in which they are listed, those of a folder in the order of
    /// their names.
    pub(super) fn load_context_files(&self, top: &Path) -> Result<Vec<ListedFile>, SettingError> {
        let mut found = Vec::new();
        for UserFilePath(path) in self.context_files() {
            let names =
                list_context_files(top, path).map_err(|why| self.context_file_error(why))?;
            for name in names {
                found.push(
                    read_context_file(top, &name).map_err(|why| self.context_file_error(why))?,
                );
            }
        }
        let is_tuner = self
            .agent_for(AgentRole::Ideas)
            .is_some_and(|agent| matches!(agent.line, AgentConfigKind::Tuner));
        match found.len() {
            1.. if is_tuner => {
                Err(self.context_file_error("the `tuner` reads no files of yours".to_owned()))
            }
            0..=MAX_CONTEXT_FILES => Ok(found),
            many => Err(self.context_file_error(format!(
                "these are {many} files, and {MAX_CONTEXT_FILES} is the most"
            ))),
        }
    }

    fn context_file_error(&self, what: String) -> SettingError {
        let key = CONFIG_KEYS.iter().find(|key| key.name == "ideas_context_files");
        SettingError { origin: key.map_or(SettingOrigin::Default, |key| self.origin(key)), what }
    }
}

/// Lists a file, or the files of a folder.
fn list_context_files(top: &Path, path: &str) -> Result<Vec<String>, String> {
    if !top.join(path).is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |error| format!("cannot read the folder `{path}`: {error}");
    let mut names = Vec::new();
    for entry in fs::read_dir(top.join(path)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        if ending.is_some_and(|ending| CONTEXT_FILE_EXTENSIONS.contains(&ending))
            && !name.starts_with('.')
        {
            names.push(format!("{}/{name}", path.trim_end_matches('/')));
        }
    }
    names.sort();
    Ok(names)
}

fn read_context_file(top: &Path, path: &str) -> Result<ListedFile, String> {
    if is_secret(path) {
        return Err(format!(
            "`{path}` is called like a file that holds keys, and is told to nobody"
        ));
    }
    let text = input::read_text(&top.join(path), path, MAX_CONTEXT_FILE_BYTES)
        .map_err(|error| error.to_string())?;
    Ok(ListedFile { name: prompt_file_name(path), text })
}

/// Returns the path of a file for a prompt, which has no absolute path: of one outside of the
/// repository the last part.
fn prompt_file_name(path: &str) -> String {
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
    match super::git_path(path) {
        Some(below) => below,
        None => name.unwrap_or_else(|| "file".to_owned()),
    }
}
