//! `treebeam init`: writes a commented `treebeam.toml` into the repository's root. It overwrites nothing unless it is told
//! to, and what it has written loads.

use super::Output;
use crate::cli::InitArgs;
use crate::config::file::{ConfigError, ConfigFile, NAME, top};
use crate::config::sample::Sample;
use crate::config::{import, proposal};
use crate::failure::{Exit, Failure};
use crate::terminal;
use serde_json::json;
use std::fs;
use std::path::Path;
use treebeam_edge::input;

/// The longest old configuration that is read.
const MOST_BYTES: u64 = 1 << 20;

pub(super) fn run(here: &Path, args: &InitArgs, output: Output) -> Result<Exit, Failure> {
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
    let text = sample.text()?;
    ConfigFile::new(NAME, || Ok(text.clone()))?.check()?;
    write(here, &text, args.force)?;
    match output {
        Output::Json => {
            terminal::json(&json!({ "schema": "treebeam.init/1", "file": NAME, "text": text }))?;
        }
        Output::Text => tell(&sample),
    }
    Ok(Exit::Done)
}

fn write(here: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let here = here.canonicalize()?;
    let Some(root) = top(&here) else {
        let what = format!("`{}` is not in a git repository", here.display());
        return Err(Failure::environment(what)
            .hint("change to your repository, or make one with `git init`"));
    };
    let path = root.join(NAME);
    if path.exists() && !force {
        let what = format!("there is a `{NAME}` already");
        return Err(Failure::usage(what).hint("add `--force` to overwrite it"));
    }
    fs::write(&path, text)
        .map_err(|error| Failure::failed(format!("cannot write `{NAME}`: {error}")))
}

fn tell(sample: &Sample) {
    terminal::say(&format!("wrote `{NAME}`"));
    for name in sample.set.keys() {
        terminal::say(&format!("  set: {name}"));
    }
    if !sample.rest.is_empty() {
        terminal::say(
            "  kept in comments: what this version does not have; see the end of the file",
        );
    }
}
