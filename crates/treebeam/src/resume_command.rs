//! Renders the command that resumes a run with the settings it was started with.
//!
//! Flags are not recorded as flags: a bare `treebeam resume` would go by the file alone, and be
//! refused, or go further than requested. For a run of another process, the flags follow from the
//! differences between its record and the configuration.

use crate::config::Config;
use crate::failure::CommandFailure;
use crate::run_settings;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use treebeam_core::facts::Facts;
use treebeam_core::id::RunId;

static WORKING_FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Sets the folder that `-C` names.
pub(crate) fn set_working_folder(folder: &Path) {
    WORKING_FOLDER.get_or_init(|| folder.to_owned());
}

/// Returns the treebeam call for the folder that `-C` names, or for the current one.
pub(crate) fn treebeam_command() -> String {
    WORKING_FOLDER
        .get()
        .map_or_else(|| "treebeam".to_owned(), |folder| treebeam_command_for(folder))
}

/// Returns the git call for the repository in the folder that `-C` names, or in the current one.
pub(crate) fn git_command() -> String {
    let folder =
        WORKING_FOLDER.get().map(|folder| format!(" -C {}", shell_word(&folder.to_string_lossy())));
    format!("git{}", folder.unwrap_or_default())
}

/// Returns the treebeam call for a folder.
pub(crate) fn treebeam_command_for(folder: &Path) -> String {
    format!("treebeam -C {}", shell_word(&folder.to_string_lossy()))
}

/// Returns the command that resumes a run as recorded, whatever the configuration says by now. A
/// configuration that cannot be read is ignored.
pub(crate) fn recorded_resume_command(facts: &Facts) -> String {
    recorded_resume_command_with(facts, &Value::Null)
}

/// Returns the command that resumes a run as recorded, with some settings replaced.
pub(crate) fn recorded_resume_command_with(facts: &Facts, other: &Value) -> String {
    let folder = WORKING_FOLDER.get().cloned();
    let here = folder.as_deref().unwrap_or(Path::new("."));
    let config = Config::load(here, None).map_err(CommandFailure::from);
    let kept = config.and_then(|config| run_settings::flags_to_keep(&config, facts));
    let flags = kept.into_iter().collect();
    ResumeCommand { folder, config: None, flags }.render_with(&facts.run, other)
}

/// Command-line flags of this call that a resume needs too.
#[derive(Debug, Default)]
pub(crate) struct ResumeCommand {
    /// Folder of `-C`.
    pub(crate) folder: Option<PathBuf>,
    /// File of `--config`.
    pub(crate) config: Option<PathBuf>,
    /// Settings from flags: objects by key, in which null means unset.
    pub(crate) flags: Vec<Value>,
}

impl ResumeCommand {
    /// Renders the command, ready to be typed.
    pub(crate) fn render_for(&self, run: &RunId) -> String {
        self.render_with(run, &Value::Null)
    }

    /// Renders the command with some settings replaced.
    pub(crate) fn render_with(&self, run: &RunId, other: &Value) -> String {
        let path = |flag: &str, path: &Path| [flag.to_owned(), shell_word(&path.to_string_lossy())];
        let folder = self.folder.iter().flat_map(|folder| path("-C", folder));
        let config = self.config.iter().flat_map(|config| path("--config", config));
        let said = self.flags.iter().filter_map(Value::as_object).flatten();
        let said = said.filter(|(key, _)| other.get(key).is_none());
        let said = said.chain(other.as_object().into_iter().flatten());
        let flags = said.filter_map(|(key, value)| Some(render_flag(key, &value_to_text(value)?)));
        let begun = ["treebeam".to_owned()].into_iter().chain(folder);
        let resumed = ["resume".to_owned(), run.to_string()].into_iter().chain(config);
        begun.chain(resumed).chain(flags).collect::<Vec<_>>().join(" ")
    }
}

fn render_flag(key: &str, value: &str) -> String {
    format!("--{}={}", key.replace('_', "-"), shell_word(value))
}

/// Formats a value as typed on a command line, or `None` if it is unset.
fn value_to_text(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Object(_) => None,
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            Some(items.iter().filter_map(value_to_text).collect::<Vec<_>>().join(","))
        }
    }
}

/// Quotes a text as one word of a shell, where needed.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%~".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_said_is_said_again() {
        let run: RunId = "first".parse().expect("a name");
        let check = |folder: Option<&str>, config: Option<&str>, flags: &[Value], expect: &str| {
            let [folder, config] = [folder, config].map(|path| path.map(PathBuf::from));
            let resume_command = ResumeCommand { folder, config, flags: flags.to_vec() };
            assert_eq!(resume_command.render_for(&run), expect);
        };
        check(None, None, &[], "treebeam resume first");
        check(None, None, &[json!({"max_depth": null})], "treebeam resume first");
        check(
            Some("my repo"),
            Some("../it's.toml"),
            &[
                json!({"beam_width": 2}),
                json!({"keep_failed_artifacts": true, "max_cost_usd": 1.5}),
            ],
            r"treebeam -C 'my repo' resume first --config '../it'\''s.toml' --beam-width=2 --keep-failed-artifacts=true --max-cost-usd=1.5",
        );
        let flags = json!({"control": "best-of-n=0.5", "ideas_context_files": ["a.md", "b c.md"]});
        let expect =
            "treebeam resume first --control=best-of-n=0.5 --ideas-context-files='a.md,b c.md'";
        check(None, None, &[flags], expect);
        let flags = vec![json!({"deadline": "8h", "beam_width": 2})];
        let later = ResumeCommand { flags, ..ResumeCommand::default() };
        let command = later.render_with(&run, &json!({"deadline": "none"}));
        assert_eq!(command, "treebeam resume first --beam-width=2 --deadline=none");
    }
}
