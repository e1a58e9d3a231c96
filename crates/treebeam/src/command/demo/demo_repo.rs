//! Creates the repository of the demo: its files, and their folder.
//!
//! Existing files are never overwritten. The folder gets its name when it is complete, so that an
//! interruption leaves no half of it.

use super::DEMO_RUN_NAME;
use crate::failure::CommandFailure;
use crate::resume_command;
use crate::terminal;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use treebeam_git::{FirstCommit, GitIdentity};
use treebeam_store::RunDir;

macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../demo/", $name)))
    };
}

const DEMO_FILES: [(&str, &str); 6] = [
    file!(".gitignore"),
    file!("README.md"),
    file!("demand.py"),
    file!("forecast.py"),
    file!("sweep.py"),
    file!("test_forecast.py"),
];
const DEMO_CONFIG: (&str, &str) = file!("treebeam.toml");
/// Default name of the folder.
const DEFAULT_DEMO_FOLDER: &str = "treebeam-demo";

/// A demo repository at its path.
pub(super) struct DemoRepo {
    pub(super) path: PathBuf,
}

impl DemoRepo {
    fn new(here: &Path, folder: &Path) -> Self {
        let path = if here == Path::new(".") { folder.to_owned() } else { here.join(folder) };
        Self { path }
    }

    /// Returns the command that continues the demo.
    pub(super) fn resume_command(&self) -> String {
        format!("treebeam demo {}", resume_command::shell_word(&self.path.to_string_lossy()))
    }

    /// Returns the treebeam call for this repository.
    pub(super) fn program_name(&self) -> String {
        resume_command::treebeam_command_for(&self.path)
    }

    fn exists(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Returns true if this is a demo of this version with an unchanged configuration.
    fn is_demo(&self) -> bool {
        let (name, text) = DEMO_CONFIG;
        let config = fs::read_to_string(self.path.join(name));
        self.path.join(".git").exists() && config.is_ok_and(|found| found == text)
    }

    fn is_unfinished(&self) -> bool {
        let Ok(id) = DEMO_RUN_NAME.parse() else { return false };
        let run = RunDir::from_run_id(&treebeam_store::runs_root(&self.path), &id);
        let opened = treebeam_store::open_to_read(&run);
        self.is_demo() && opened.is_ok_and(|opened| opened.state.stop_reason().is_none())
    }
}

/// Creates or finds the repository in the named folder, or creates one in a new folder.
pub(super) fn prepare_demo_repo(
    here: &Path,
    named: Option<&Path>,
) -> Result<DemoRepo, CommandFailure> {
    let example = match named {
        Some(folder) => DemoRepo::new(here, folder),
        None => find_free_folder(here),
    };
    if example.exists() {
        must_be_demo_repo(&example)?;
        terminal::print_line(&format!("going on with the demo in `{}`", example.path.display()));
    } else {
        create_demo_repo(&example)?;
        terminal::print_line(&format!(
            "made `{}`: a forecast with bad guesses in it, and a judge of 25 configurations",
            example.path.display()
        ));
    }
    Ok(example)
}

/// Returns the first free folder name, and prints a note on interrupted demos before it.
fn find_free_folder(here: &Path) -> DemoRepo {
    let mut example = DemoRepo::new(here, Path::new(DEFAULT_DEMO_FOLDER));
    let mut number = 2;
    while example.exists() {
        if example.is_unfinished() {
            let (folder, resume_command) = (example.path.display(), example.resume_command());
            terminal::print_note(&format!(
                "the demo in `{folder}` is not at its end: `{resume_command}` goes on with it"
            ));
        }
        example = DemoRepo::new(here, Path::new(&format!("{DEFAULT_DEMO_FOLDER}-{number}")));
        number += 1;
    }
    example
}

fn must_be_demo_repo(example: &DemoRepo) -> Result<(), CommandFailure> {
    if example.is_demo() {
        return Ok(());
    }
    let what = format!(
        "`{}` is there already, and is no demo as this version makes it",
        example.path.display()
    );
    Err(CommandFailure::usage(what)
        .with_hint("name a folder that is not there yet; what is there stays as it is"))
}

fn create_demo_repo(example: &DemoRepo) -> Result<(), CommandFailure> {
    let name = example.path.file_name().ok_or_else(|| {
        let what = format!("`{}` is no name for a new folder", example.path.display());
        CommandFailure::usage(what).with_hint("name a folder that is not there yet")
    })?;
    let name = format!(".{}.{}", name.to_string_lossy(), process::id());
    let unnamed = example.path.with_file_name(name);
    let made = write_demo_files(&unnamed).and_then(|()| {
        fs::rename(&unnamed, &example.path).map_err(|error| cannot_make(&example.path, &error))
    });
    if made.is_err() {
        // The error in `made` is the one to report.
        drop(fs::remove_dir_all(&unnamed));
    }
    made
}

fn write_demo_files(folder: &Path) -> Result<(), CommandFailure> {
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above).map_err(|error| cannot_make(above, &error))?;
    }
    fs::create_dir(folder).map_err(|error| cannot_make(folder, &error))?;
    for (name, text) in DEMO_FILES.into_iter().chain([DEMO_CONFIG]) {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| cannot_make(&path, &error))?;
    }
    treebeam_git::init_repo(folder, &first_commit())?;
    Ok(())
}

/// Returns the first commit; identity and time are constant, and so is its id.
fn first_commit() -> FirstCommit {
    FirstCommit {
        identity: GitIdentity {
            name: "treebeam demo".to_owned(),
            email: "demo@treebeam.invalid".to_owned(),
        },
        date: "2026-01-01T00:00:00Z",
        message: "forecast: a first guess, and its judge",
    }
}

fn cannot_make(path: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure::failed(format!("cannot make `{}`: {error}", path.display()))
        .with_hint("name a folder that can be written to: `treebeam demo DIR`")
}
