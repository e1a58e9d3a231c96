//! `treebeam completions` and `treebeam man`: generates shell completions and manual pages.
//!
//! Only the requested pages are written.

use super::OutputFormat;
use crate::cli::CliArgs;
use crate::failure::{CommandExit, CommandFailure};
use crate::terminal;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;
use std::fs;
use std::io;
use std::path::Path;

const PROGRAM_NAME: &str = "treebeam";

pub(super) fn run_completions(
    shell: Shell,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CliArgs::command(), PROGRAM_NAME, &mut script);
    match output {
        OutputFormat::Json => terminal::print_json(&json!({
            "schema": "treebeam.completions/1",
            "shell": shell.to_string(),
            "script": String::from_utf8_lossy(&script),
        }))?,
        OutputFormat::Text => terminal::print_bytes(&script).map(drop)?,
    }
    Ok(CommandExit::Done)
}

pub(super) fn run_man(
    here: &Path,
    folder: Option<&Path>,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let pages = render_pages()?;
    match folder {
        Some(folder) => write_pages(&here.join(folder), &pages, output)?,
        None => show_pages(&pages, output)?,
    }
    Ok(CommandExit::Done)
}

/// A manual page: name of its file, and its text.
type ManPage = (String, Vec<u8>);

/// Renders the program's own page first, then one for each command.
fn render_pages() -> io::Result<Vec<ManPage>> {
    let mut program = CliArgs::command().disable_help_subcommand(true);
    program.build();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    std::iter::once(&program).chain(commands).map(render_page).collect()
}

fn render_page(command: &Command) -> io::Result<ManPage> {
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok((page.get_filename(), text))
}

fn write_pages(
    folder: &Path,
    pages: &[ManPage],
    output: OutputFormat,
) -> Result<(), CommandFailure> {
    let cannot = |error: io::Error| {
        CommandFailure::failed(format!("cannot write to `{}`: {error}", folder.display()))
            .with_hint("name a folder that may be written")
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    for (name, text) in pages {
        fs::write(folder.join(name), text).map_err(cannot)?;
    }
    let names: Vec<_> = pages.iter().map(|(name, _)| name).collect();
    match output {
        OutputFormat::Json => {
            let folder = folder.display().to_string();
            terminal::print_json(
                &json!({ "schema": "treebeam.man/1", "folder": folder, "written": names }),
            )
        }
        OutputFormat::Text => {
            terminal::print_line(&format!("wrote {} pages to {}", names.len(), folder.display()));
            Ok(())
        }
    }
}

fn show_pages(pages: &[ManPage], output: OutputFormat) -> Result<(), CommandFailure> {
    match output {
        OutputFormat::Json => {
            let text =
                |(name, text): &ManPage| (name.clone(), String::from_utf8_lossy(text).into());
            let pages: serde_json::Map<_, _> = pages.iter().map(text).collect();
            terminal::print_json(&json!({ "schema": "treebeam.man/1", "pages": pages }))
        }
        OutputFormat::Text => {
            let own = pages.first().map_or(&[][..], |(_, text)| text);
            terminal::print_bytes(own).map(drop)
        }
    }
}
