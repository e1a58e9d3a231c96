//! The commands: one file each.

mod agents;
mod baseline;
mod begin;
mod best;
mod chosen;
mod clean;
mod config;
mod demo;
mod diff;
mod doctor;
mod eval;
mod export;
mod idea;
mod ideas;
mod init;
mod job;
mod list;
mod log;
mod pages;
mod replay;
mod report;
mod resume;
mod run;
mod schema;
mod score;
mod serve;
mod show;
mod status;
mod steer;
mod validate;
mod watch;

use crate::cli::{Cli, Command, ConfigFlag, GoingFlags, IdeaCommand, MeaningFlags};
use crate::config::Config;
use crate::config::file::top_or;
use crate::dotenv::{Dotenv, Found};
use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::terminal;
use crate::way_on::{self, WayOn};
use crate::wiring::{self, Home};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use treebeam_core::event::Wish;

/// How a command shows what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// As text for a person.
    Text,
    /// As JSON for a program.
    Json,
}

/// Of a folder that is not there nothing else is said: not that it is in no repository.
fn must_be_a_folder(named: &Path) -> Result<(), Failure> {
    let what = match named.metadata() {
        Ok(found) if !found.is_dir() => {
            format!("`-C`: `{}` is a file, not a folder", named.display())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("`-C`: there is no folder `{}`", named.display())
        }
        Ok(_) | Err(_) => return Ok(()),
    };
    Err(Failure::usage(what).hint("name the folder of your repository, or one in it"))
}

/// The folder of the repository in which a run lies that is resumed by its path, where that is another than the one at
/// hand. The path is absolute then.
fn home_of_resumed(cli: &mut Cli) -> Result<Option<PathBuf>, Failure> {
    let Command::Resume(args) = &mut cli.command else { return Ok(None) };
    let here = cli.directory.as_deref().unwrap_or(Path::new("."));
    let Some(found) = wiring::RunPathHome::find(here, args.run.as_deref())? else {
        return Ok(None);
    };
    args.run = Some(found.run);
    Ok(found.toplevel)
}

/// Does what the command line asks for.
pub(crate) fn run(mut cli: Cli) -> Result<Exit, Failure> {
    let folder = match home_of_resumed(&mut cli)? {
        Some(toplevel) => Some(toplevel),
        None => cli.directory,
    };
    if let Some(folder) = &folder {
        must_be_a_folder(folder)?;
        way_on::is_from(folder);
    }
    let here = folder.clone().unwrap_or_else(|| PathBuf::from("."));
    let output = if cli.json { Output::Json } else { Output::Text };
    let asked_for = |file: &ConfigFlag, flags: Vec<Value>| {
        let (folder, config) = (folder.clone(), file.config.clone());
        interrupt::was_asked_for(WayOn { folder, config, flags });
    };
    let settings = |file: &ConfigFlag, meaning: &MeaningFlags, going: &GoingFlags| {
        let flags = [serde_json::to_value(meaning)?, serde_json::to_value(going)?];
        let config = Config::load(&here, file.config.as_deref())?.with_flags(&flags)?;
        asked_for(file, flags.into());
        config.prompts(&top_or(&here))?;
        for found in Dotenv::load(&here, &config)?.found().filter(Found::is_setting) {
            terminal::note(&format!(
                "`{}` in `{}` is not read as a setting",
                found.name, found.file
            ));
        }
        Ok::<_, Failure>(config)
    };
    let find = |name: Option<&str>| wiring::Found::find(&here, name);
    match cli.command {
        Command::Run(args) if args.validate_only => {
            validate::run(&find(args.run_id.as_deref())?, output)
        }
        Command::Run(args) if args.report_only => {
            report::run(&find(args.run_id.as_deref())?, output)
        }
        Command::Run(args) => {
            interrupt::listen()?;
            let config = settings(&args.config, &args.meaning, &args.going)?;
            run::run(&Home::open(&here, &config)?, &config, &args, output)
        }
        Command::Resume(args) => {
            interrupt::listen()?;
            let config = settings(&args.config, &args.meaning, &args.going)?;
            resume::run(&Home::open(&here, &config)?, &config, &args, output)
        }
        Command::Eval(args) => {
            interrupt::listen()?;
            asked_for(&args.new.config, args.for_resume()?);
            eval::run(&here, &args, output)
        }
        Command::Ideas(args) => {
            interrupt::listen()?;
            ideas::run(&here, &args, output)
        }
        Command::Baseline(args) => {
            interrupt::listen()?;
            asked_for(&args.new.config, args.settings()?);
            baseline::run(&here, &args, output)
        }
        Command::Demo(args) => {
            interrupt::listen()?;
            demo::run(&here, &args, output)
        }
        Command::Score(args) => score::run(&here, &args, output),
        Command::Init(args) => init::run(&here, &args, output),
        Command::Doctor(args) => doctor::run(&here, &args, output),
        Command::Config(args) => {
            let config = Config::load(&here, args.config.as_deref())?;
            config.prompts(&top_or(&here))?;
            config::run(&config, &Dotenv::load(&here, &config)?, output)
        }
        Command::Agents(args) => agents::run(&here, &args, output),
        Command::Pause(args) => steer::run(&here, args.run.as_deref(), Wish::Pause, output),
        Command::Unpause(args) => steer::run(&here, args.run.as_deref(), Wish::Unpause, output),
        Command::Stop(args) => steer::run(&here, args.steer.run.as_deref(), args.wish(), output),
        Command::Idea { command: IdeaCommand::Add(args) } => {
            idea::add(&here, &find(args.run.as_deref())?, &args, output)
        }
        Command::Watch(args) => watch::run(&here, args.run.as_deref(), output),
        Command::Status(args) => status::run(&find(args.run.as_deref())?, output),
        Command::Best(args) => best::run(&find(args.run.as_deref())?, output),
        Command::List => list::run(&Home::find(&here)?, output),
        Command::Show(args) => {
            let (run, item) = show::read(&args.words)?;
            show::run(&find(run)?, item, output)
        }
        Command::Diff(args) => diff::run(&find(args.item.run.as_deref())?, &args, output),
        Command::Export(args) => export::run(&find(args.run.as_deref())?, &args, output),
        Command::Log(args) => log::run(&find(args.run.run.as_deref())?, &args, output),
        Command::Serve(args) => serve::run(&here, &args, output),
        Command::Report(args) => report::run(&find(args.run.as_deref())?, output),
        Command::Validate(args) => validate::run(&find(args.run.as_deref())?, output),
        Command::Job { spec } => job::run(&here.join(spec)),
        Command::Clean(args) => clean::run(&here, &args, output),
        Command::Completions { shell } => pages::completions(shell, output),
        Command::Schema { name } => schema::run(name.as_deref(), output),
        Command::Man { folder } => pages::man(&here, folder.as_deref(), output),
    }
}
