//! `treebeam completions` and `treebeam man`: what the command line says about itself, for a shell and for `man`. The only
//! files written are the pages that the user asked for.

use super::Output;
use crate::cli::Cli;
use crate::failure::{Exit, Failure};
use crate::terminal;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;
use std::fs;
use std::io;
use std::path::Path;

const NAME: &str = "treebeam";

pub(super) fn completions(shell: Shell, output: Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    match output {
        Output::Json => terminal::json(&json!({
            "schema": "treebeam.completions/1",
            "shell": shell.to_string(),
            "script": String::from_utf8_lossy(&script),
        }))?,
        Output::Text => terminal::offer(&script).map(drop)?,
    }
    Ok(Exit::Done)
}

pub(super) fn man(here: &Path, folder: Option<&Path>, output: Output) -> Result<Exit, Failure> {
    let pages = pages()?;
    match folder {
        Some(folder) => write(&here.join(folder), &pages, output)?,
        None => show(&pages, output)?,
    }
    Ok(Exit::Done)
}

/// A manual page: its file's name, and its text.
type Page = (String, Vec<u8>);

/// The program's own page first, then one for each command.
fn pages() -> io::Result<Vec<Page>> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    std::iter::once(&program).chain(commands).map(page).collect()
}

fn page(command: &Command) -> io::Result<Page> {
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok((page.get_filename(), text))
}

fn write(folder: &Path, pages: &[Page], output: Output) -> Result<(), Failure> {
    let cannot = |error: io::Error| {
        Failure::failed(format!("cannot write to `{}`: {error}", folder.display()))
            .hint("name a folder that may be written")
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    for (name, text) in pages {
        fs::write(folder.join(name), text).map_err(cannot)?;
    }
    let names: Vec<_> = pages.iter().map(|(name, _)| name).collect();
    match output {
        Output::Json => {
            let folder = folder.display().to_string();
            terminal::json(
                &json!({ "schema": "treebeam.man/1", "folder": folder, "written": names }),
            )
        }
        Output::Text => {
            terminal::say(&format!("wrote {} pages to {}", names.len(), folder.display()));
            Ok(())
        }
    }
}

fn show(pages: &[Page], output: Output) -> Result<(), Failure> {
    match output {
        Output::Json => {
            let text = |(name, text): &Page| (name.clone(), String::from_utf8_lossy(text).into());
            let pages: serde_json::Map<_, _> = pages.iter().map(text).collect();
            terminal::json(&json!({ "schema": "treebeam.man/1", "pages": pages }))
        }
        Output::Text => {
            let own = pages.first().map_or(&[][..], |(_, text)| text);
            terminal::offer(own).map(drop)
        }
    }
}
