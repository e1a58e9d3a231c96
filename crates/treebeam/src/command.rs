//! Implements the commands, one module each, and dispatches the command line to them.

mod agents;
mod baseline;
mod best;
mod chosen_place;
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
mod run_start;
mod schema;
mod score;
mod serve;
mod show;
mod status;
mod steer;
mod validate;
mod watch;

use crate::cli::{
    CliArgs, CliCommand, ConfigFlag, FixedSettingsFlags, IdeaCommand, ResumableFlags,
};
use crate::config::Config;
use crate::config::config_file::toplevel_or_folder;
use crate::dotenv::{Dotenv, DotenvVariable};
use crate::failure::{CommandExit, CommandFailure};
use crate::interrupt;
use crate::resume_command::{self, ResumeCommand};
use crate::run_location::{self, RepoHome};
use crate::terminal;
pub(crate) use crate::terminal::OutputFormat;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use treebeam_core::event::UserRequest;

/// Refuses a `-C` folder that is missing or is a file, before the missing repository is reported.
fn must_be_folder(named: &Path) -> Result<(), CommandFailure> {
    let what = match named.metadata() {
        Ok(found) if !found.is_dir() => {
            format!("`-C`: `{}` is a file, not a folder", named.display())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("`-C`: there is no folder `{}`", named.display())
        }
        Ok(_) | Err(_) => return Ok(()),
    };
    Err(CommandFailure::usage(what).with_hint("name the folder of your repository, or one in it"))
}

/// Returns the top of the repository of a run that is resumed by its path, where that is another
/// repository than the current one. The run's path in `cli` is made absolute then.
fn find_resumed_toplevel(cli: &mut CliArgs) -> Result<Option<PathBuf>, CommandFailure> {
    let CliCommand::Resume(args) = &mut cli.command else { return Ok(None) };
    let here = cli.directory.as_deref().unwrap_or(Path::new("."));
    let Some(found) = run_location::RunPathHome::find(here, args.run.as_deref())? else {
        return Ok(None);
    };
    args.run = Some(found.run);
    Ok(found.toplevel)
}

/// Runs the command that the command line names.
pub(crate) fn run_command(mut cli: CliArgs) -> Result<CommandExit, CommandFailure> {
    let folder = match find_resumed_toplevel(&mut cli)? {
        Some(toplevel) => Some(toplevel),
        None => cli.directory,
    };
    if let Some(folder) = &folder {
        must_be_folder(folder)?;
        resume_command::set_working_folder(folder);
    }
    let here = folder.clone().unwrap_or_else(|| PathBuf::from("."));
    let output = if cli.json { OutputFormat::Json } else { OutputFormat::Text };
    let asked_for = |file: &ConfigFlag, flags: Vec<Value>| {
        let (folder, config) = (folder.clone(), file.config.clone());
        interrupt::set_resume_command(ResumeCommand { folder, config, flags });
    };
    let settings =
        |file: &ConfigFlag, fixed_settings: &FixedSettingsFlags, going: &ResumableFlags| {
            let flags = [serde_json::to_value(fixed_settings)?, serde_json::to_value(going)?];
            let config = Config::load(&here, file.config.as_deref())?.with_flags(&flags)?;
            asked_for(file, flags.into());
            config.load_prompts(&toplevel_or_folder(&here))?;
            note_ignored_variables(&here, &config)?;
            Ok::<_, CommandFailure>(config)
        };
    let find = |name: Option<&str>| run_location::RunLocation::find(&here, name);
    match cli.command {
        CliCommand::Run(args) if args.validate_only => {
            validate::run_validate(&find(args.run_id.as_deref())?, output)
        }
        CliCommand::Run(args) if args.report_only => {
            report::run_report(&find(args.run_id.as_deref())?, output)
        }
        CliCommand::Run(args) => {
            interrupt::listen_for_interrupts()?;
            let config = settings(&args.config, &args.meaning, &args.going)?;
            run::run_run(&RepoHome::open(&here, &config)?, &config, &args, output)
        }
        CliCommand::Resume(args) => {
            interrupt::listen_for_interrupts()?;
            let config = settings(&args.config, &args.meaning, &args.going)?;
            resume::run_resume(&RepoHome::open(&here, &config)?, &config, &args, output)
        }
        CliCommand::Eval(args) => {
            interrupt::listen_for_interrupts()?;
            asked_for(&args.new.config, args.resume_settings()?);
            eval::run_eval(&here, &args, output)
        }
        CliCommand::Ideas(args) => {
            interrupt::listen_for_interrupts()?;
            ideas::run_ideas(&here, &args, output)
        }
        CliCommand::Baseline(args) => {
            interrupt::listen_for_interrupts()?;
            asked_for(&args.new.config, args.flag_settings()?);
            baseline::run_baseline(&here, &args, output)
        }
        CliCommand::Demo(args) => {
            interrupt::listen_for_interrupts()?;
            demo::run_demo(&here, &args, output)
        }
        CliCommand::Score(args) => score::run_score(&here, &args, output),
        CliCommand::Init(args) => init::run_init(&here, &args, output),
        CliCommand::Doctor(args) => doctor::run_doctor(&here, &args, output),
        CliCommand::Config(args) => {
            let config = Config::load(&here, args.config.as_deref())?;
            config.load_prompts(&toplevel_or_folder(&here))?;
            config::run_config(&config, &Dotenv::load(&here, &config)?, output)
        }
        CliCommand::Agents(args) => agents::run_agents(&here, &args, output),
        CliCommand::Pause(args) => {
            steer::run_steer(&here, args.run.as_deref(), UserRequest::Pause, output)
        }
        CliCommand::Unpause(args) => {
            steer::run_steer(&here, args.run.as_deref(), UserRequest::Unpause, output)
        }
        CliCommand::Stop(args) => {
            steer::run_steer(&here, args.steer.run.as_deref(), args.user_request(), output)
        }
        CliCommand::Idea { command: IdeaCommand::Add(args) } => {
            idea::run_idea_add(&here, &find(args.run.as_deref())?, &args, output)
        }
        CliCommand::Watch(args) => watch::run_watch(&here, args.run.as_deref(), output),
        CliCommand::Status(args) => status::run_status(&find(args.run.as_deref())?, output),
        CliCommand::Best(args) => best::run_best(&find(args.run.as_deref())?, output),
        CliCommand::List => list::run_list(&RepoHome::find(&here)?, output),
        CliCommand::Show(args) => {
            let (run, item) = show::parse_show_words(&args.words)?;
            show::run_show(&find(run)?, item, output)
        }
        CliCommand::Diff(args) => diff::run_diff(&find(args.item.run.as_deref())?, &args, output),
        CliCommand::Export(args) => export::run_export(&find(args.run.as_deref())?, &args, output),
        CliCommand::Log(args) => log::run_log(&find(args.run.run.as_deref())?, &args, output),
        CliCommand::Serve(args) => serve::run_serve(&here, &args, output),
        CliCommand::Report(args) => report::run_report(&find(args.run.as_deref())?, output),
        CliCommand::Validate(args) => validate::run_validate(&find(args.run.as_deref())?, output),
        CliCommand::Job { spec } => job::run_job(&here.join(spec)),
        CliCommand::Clean(args) => clean::run_clean(&here, &args, output),
        CliCommand::Completions { shell } => pages::run_completions(shell, output),
        CliCommand::Schema { name } => schema::run_schema(name.as_deref(), output),
        CliCommand::Man { folder } => pages::run_man(&here, folder.as_deref(), output),
    }
}

/// Prints a note for each `TREEBEAM_…` variable in `.env` files: settings come from the environment
/// alone.
fn note_ignored_variables(here: &Path, config: &Config) -> Result<(), CommandFailure> {
    let dotenv = Dotenv::load(here, config)?;
    for ignored in dotenv.iter_variables().filter(DotenvVariable::is_setting) {
        let (name, file) = (ignored.name, ignored.file);
        terminal::print_note(&format!("`{name}` in `{file}` is not read as a setting"));
    }
    Ok(())
}
