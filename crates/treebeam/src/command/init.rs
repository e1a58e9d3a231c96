//! `treebeam init`: writes a commented `treebeam.toml` into the repository's root, and the built-in prompts where that is
//! wanted. It overwrites nothing unless it is told to, prompts never, and what it has written loads.

use super::Output;
use crate::cli::InitArgs;
use crate::config::file::{ConfigError, ConfigFile, NAME, top};
use crate::config::sample::{Sample, toml};
use crate::config::{evaluator, import, proposal};
use crate::failure::{Exit, Failure};
use crate::terminal;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use treebeam_edge::input;
use treebeam_run::port::Role;
use treebeam_run::prompt;

/// The longest old configuration that is read.
const MOST_BYTES: u64 = 1 << 20;
/// Where prompts are put, in the repository's root.
const PROMPTS: &str = "treebeam-prompts";

/// A file with a prompt.
struct PromptFile {
    role: Role,
    path: String,
    state: Written,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Now,
    /// Somebody has written it before: it is not touched.
    Before,
}

pub(super) fn run(here: &Path, args: &InitArgs, output: Output) -> Result<Exit, Failure> {
    let root = root(here)?;
    let mut sample = sample(here, args)?;
    evaluator::propose(&root, &mut sample);
    if args.prompts {
        sample.set.extend(Role::ALL.map(|role| (key_of(role), json!(path_of(role)))));
    }
    let text = sample.text()?;
    ConfigFile::new(NAME, || Ok(text.clone()))?.check()?;
    let is_new = !root.join(NAME).exists() || args.force;
    if is_new {
        write(&root, &text)?;
    } else if !args.prompts {
        let what = format!("there is a `{NAME}` already");
        return Err(Failure::usage(what).hint("add `--force` to overwrite it"));
    }
    let prompts = if args.prompts { write_prompts(&root)? } else { Vec::new() };
    let sample = is_new.then_some(&sample);
    match output {
        Output::Json => terminal::json(&document(sample.map(|_| text.as_str()), &prompts))?,
        Output::Text => tell(sample, &prompts),
    }
    Ok(Exit::Done)
}

/// What goes into the configuration.
fn sample(here: &Path, args: &InitArgs) -> Result<Sample, Failure> {
    let mut sample = match &args.from {
        None => Sample::default(),
        Some(file) => {
            let name = file.display().to_string();
            let text = input::text(&here.join(file), &name, MOST_BYTES);
            import::import(&text.map_err(ConfigError::from)?, &name)?
        }
    };
    if let Some(file) = &args.results {
        let name = file.display().to_string();
        let reader = input::open(&here.join(file), &name)?;
        let read = proposal::propose(reader, &name, &mut sample);
        read.map_err(|error| Failure::failed(format!("`{name}` is no results CSV: {error}")))?;
    }
    Ok(sample)
}

fn root(here: &Path) -> Result<PathBuf, Failure> {
    let here = here.canonicalize()?;
    top(&here).map(Path::to_owned).ok_or_else(|| {
        let what = format!("`{}` is not in a git repository", here.display());
        Failure::environment(what).hint("change to your repository, or make one with `git init`")
    })
}

fn write(root: &Path, text: &str) -> Result<(), Failure> {
    fs::write(root.join(NAME), text)
        .map_err(|error| Failure::failed(format!("cannot write `{NAME}`: {error}")))
}

const fn key_of(role: Role) -> &'static str {
    match role {
        Role::Coordinator => "prompts.coordinator",
        Role::Planner => "prompts.planner",
        Role::Coder => "prompts.coder",
        Role::Reviewer => "prompts.reviewer",
        Role::Ideas => "prompts.ideas",
    }
}

fn path_of(role: Role) -> String {
    format!("{PROMPTS}/{role}.md")
}

fn write_prompts(root: &Path) -> Result<Vec<PromptFile>, Failure> {
    let cannot =
        |path: &str, error: &io::Error| Failure::failed(format!("cannot write `{path}`: {error}"));
    fs::create_dir_all(root.join(PROMPTS)).map_err(|error| cannot(PROMPTS, &error))?;
    let write = |role| {
        let path = path_of(role);
        let state = match File::create_new(root.join(&path)) {
            Ok(mut file) => {
                let text = prompt::built_in(role).as_bytes();
                file.write_all(text).map_err(|error| cannot(&path, &error))?;
                Written::Now
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Written::Before,
            Err(error) => return Err(cannot(&path, &error)),
        };
        Ok(PromptFile { role, path, state })
    };
    Role::ALL.into_iter().map(write).collect()
}

fn document(text: Option<&str>, prompts: &[PromptFile]) -> Value {
    let prompt = |file: &PromptFile| json!({ "role": file.role, "file": file.path, "written": file.state == Written::Now });
    json!({
        "schema": "treebeam.init/1",
        "file": text.map(|_| NAME),
        "text": text,
        "prompts": prompts.iter().map(prompt).collect::<Vec<_>>(),
    })
}

fn tell(sample: Option<&Sample>, prompts: &[PromptFile]) {
    if let Some(sample) = sample {
        terminal::say(&format!("wrote `{NAME}`"));
        for name in sample.set.keys() {
            terminal::say(&format!("  set: {name}{}", sample.about(name)));
        }
        if !sample.rest.is_empty() {
            terminal::say(
                "  kept in comments: what this version does not have; see the end of the file",
            );
        }
    }
    for PromptFile { path, state, .. } in prompts {
        terminal::say(&match state {
            Written::Now => format!("wrote `{path}`"),
            Written::Before => format!("kept `{path}`, which was there"),
        });
    }
    if sample.is_none() {
        terminal::say(&format!(
            "`{NAME}` is as it was; to use these prompts it needs:\n\n[prompts]"
        ));
        for PromptFile { role, path, .. } in prompts {
            terminal::say(&format!("{role} = {}", toml(&json!(path))));
        }
    }
}
