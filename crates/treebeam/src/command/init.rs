//! `treebeam init`: writes a commented `treebeam.toml`, and on request the built-in prompts.
//!
//! It overwrites the configuration only with `--force`, and prompts never. The written file is
//! checked to load.

use super::OutputFormat;
use crate::cli::InitArgs;
use crate::config::config_file::{CONFIG_FILE_NAME, ConfigError, ConfigFile, find_toplevel};
use crate::config::sample_config::{SampleConfig, toml_value};
use crate::config::{column_proposal, evaluator_proposal, old_config};
use crate::failure::{CommandExit, CommandFailure};
use crate::terminal;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use treebeam_run::port::AgentRole;
use treebeam_run::prompt;
use treebeam_store::input;

/// Maximum size of an old configuration.
const MAX_OLD_CONFIG_BYTES: u64 = 1 << 20;
/// Folder of the prompts, in the repository's root.
const PROMPTS_FOLDER: &str = "treebeam-prompts";

/// A prompt file to write.
struct PromptFile {
    role: AgentRole,
    path: String,
    state: PromptFileState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PromptFileState {
    Now,
    /// Exists already and is kept.
    Before,
}

pub(super) fn run_init(
    here: &Path,
    args: &InitArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let root = find_repo_root(here)?;
    let mut sample = build_sample(here, args)?;
    evaluator_proposal::propose_protected(&root, &mut sample);
    if args.prompts {
        sample
            .set
            .extend(AgentRole::ALL.map(|role| (prompt_key(role), json!(prompt_file_path(role)))));
    }
    let text = sample.render_toml()?;
    ConfigFile::new(CONFIG_FILE_NAME, || Ok(text.clone()))?.check_all()?;
    let is_new = !root.join(CONFIG_FILE_NAME).exists() || args.force;
    if is_new {
        write_config(&root, &text)?;
    } else if !args.prompts {
        let what = format!("there is a `{CONFIG_FILE_NAME}` already");
        return Err(CommandFailure::usage(what).with_hint("add `--force` to overwrite it"));
    }
    let prompts = if args.prompts { write_prompts(&root)? } else { Vec::new() };
    let sample = is_new.then_some(&sample);
    match output {
        OutputFormat::Json => {
            terminal::print_json(&render_init_json(sample.map(|_| text.as_str()), &prompts))?;
        }
        OutputFormat::Text => show_written(sample, &prompts),
    }
    Ok(CommandExit::Done)
}

/// Collects the content of the new configuration.
fn build_sample(here: &Path, args: &InitArgs) -> Result<SampleConfig, CommandFailure> {
    let mut sample = match &args.from {
        None => SampleConfig::default(),
        Some(file) => {
            let name = file.display().to_string();
            let text = input::read_text(&here.join(file), &name, MAX_OLD_CONFIG_BYTES);
            old_config::import_old_config(&text.map_err(ConfigError::from)?, &name)?
        }
    };
    if let Some(file) = &args.results {
        let name = file.display().to_string();
        let reader = input::open_input(&here.join(file), &name)?;
        let read = column_proposal::propose_columns(reader, &name, &mut sample);
        read.map_err(|error| {
            CommandFailure::failed(format!("`{name}` is no results CSV: {error}"))
        })?;
    }
    Ok(sample)
}

fn find_repo_root(here: &Path) -> Result<PathBuf, CommandFailure> {
    let here = here.canonicalize()?;
    find_toplevel(&here).map(Path::to_owned).ok_or_else(|| {
        let what = format!("`{}` is not in a git repository", here.display());
        CommandFailure::environment(what)
            .with_hint("change to your repository, or make one with `git init`")
    })
}

fn write_config(root: &Path, text: &str) -> Result<(), CommandFailure> {
    fs::write(root.join(CONFIG_FILE_NAME), text).map_err(|error| {
        CommandFailure::failed(format!("cannot write `{CONFIG_FILE_NAME}`: {error}"))
    })
}

const fn prompt_key(role: AgentRole) -> &'static str {
    match role {
        AgentRole::Coordinator => "prompts.coordinator",
        AgentRole::Planner => "prompts.planner",
        AgentRole::Coder => "prompts.coder",
        AgentRole::Reviewer => "prompts.reviewer",
        AgentRole::Ideas => "prompts.ideas",
    }
}

fn prompt_file_path(role: AgentRole) -> String {
    format!("{PROMPTS_FOLDER}/{role}.md")
}

fn write_prompts(root: &Path) -> Result<Vec<PromptFile>, CommandFailure> {
    let cannot = |path: &str, error: &io::Error| {
        CommandFailure::failed(format!("cannot write `{path}`: {error}"))
    };
    fs::create_dir_all(root.join(PROMPTS_FOLDER))
        .map_err(|error| cannot(PROMPTS_FOLDER, &error))?;
    let write = |role| {
        let path = prompt_file_path(role);
        let state = match File::create_new(root.join(&path)) {
            Ok(mut file) => {
                let text = prompt::built_in_template(role).as_bytes();
                file.write_all(text).map_err(|error| cannot(&path, &error))?;
                PromptFileState::Now
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => PromptFileState::Before,
            Err(error) => return Err(cannot(&path, &error)),
        };
        Ok(PromptFile { role, path, state })
    };
    AgentRole::ALL.into_iter().map(write).collect()
}

fn render_init_json(text: Option<&str>, prompts: &[PromptFile]) -> Value {
    let prompt = |file: &PromptFile| json!({ "role": file.role, "file": file.path, "written": file.state == PromptFileState::Now });
    json!({
        "schema": "treebeam.init/1",
        "file": text.map(|_| CONFIG_FILE_NAME),
        "text": text,
        "prompts": prompts.iter().map(prompt).collect::<Vec<_>>(),
    })
}

fn show_written(sample: Option<&SampleConfig>, prompts: &[PromptFile]) {
    if let Some(sample) = sample {
        terminal::print_line(&format!("wrote `{CONFIG_FILE_NAME}`"));
        for name in sample.set.keys() {
            terminal::print_line(&format!("  set: {name}{}", sample.note_for(name)));
        }
        if !sample.rest.is_empty() {
            terminal::print_line(
                "  kept in comments: what this version does not have; see the end of the file",
            );
        }
    }
    for PromptFile { path, state, .. } in prompts {
        terminal::print_line(&match state {
            PromptFileState::Now => format!("wrote `{path}`"),
            PromptFileState::Before => format!("kept `{path}`, which was there"),
        });
    }
    if sample.is_none() {
        terminal::print_line(&format!(
            "`{CONFIG_FILE_NAME}` is as it was; to use these prompts it needs:\n\n[prompts]"
        ));
        for PromptFile { role, path, .. } in prompts {
            terminal::print_line(&format!("{role} = {}", toml_value(&json!(path))));
        }
    }
}
