//! The repository of the demo: its files, and the folder that they are put into. What is there is never overwritten. The
//! folder gets its name when all is in it, so that whatever cuts this off leaves no half of it.

use super::RUN;
use crate::failure::Failure;
use crate::terminal;
use crate::way_on;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use treebeam_edge::git::{self, FirstCommit, Identity};
use treebeam_edge::store::{self, RunDir};

macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../demo/", $name)))
    };
}

const FILES: [(&str, &str); 6] = [
    file!(".gitignore"),
    file!("README.md"),
    file!("demand.py"),
    file!("forecast.py"),
    file!("sweep.py"),
    file!("test_forecast.py"),
];
const CONFIG: (&str, &str) = file!("treebeam.toml");
/// The folder where none is named.
const FOLDER: &str = "treebeam-demo";

/// A repository that can be searched.
pub(super) struct Example {
    pub(super) path: PathBuf,
}

impl Example {
    fn at(here: &Path, folder: &Path) -> Self {
        let path = if here == Path::new(".") { folder.to_owned() } else { here.join(folder) };
        Self { path }
    }

    /// What goes on with it.
    pub(super) fn way_on(&self) -> String {
        format!("treebeam demo {}", way_on::word(&self.path.to_string_lossy()))
    }

    /// How the program is called for what lies in it.
    pub(super) fn program(&self) -> String {
        way_on::program_for(&self.path)
    }

    fn is_taken(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Whether this is a demo of this version, which the user has left as it is.
    fn is_demo(&self) -> bool {
        let (name, text) = CONFIG;
        let config = fs::read_to_string(self.path.join(name));
        self.path.join(".git").exists() && config.is_ok_and(|found| found == text)
    }

    fn is_unfinished(&self) -> bool {
        let Ok(id) = RUN.parse() else { return false };
        let run = RunDir::of(&store::runs_root(&self.path), &id);
        let opened = store::open_to_read(&run);
        self.is_demo() && opened.is_ok_and(|opened| opened.state.stop_reason().is_none())
    }
}

/// The repository in the folder that is named, or in one that is not there yet.
pub(super) fn ready(here: &Path, named: Option<&Path>) -> Result<Example, Failure> {
    let example = match named {
        Some(folder) => Example::at(here, folder),
        None => free(here),
    };
    if example.is_taken() {
        must_be_demo(&example)?;
        terminal::say(&format!("going on with the demo in `{}`", example.path.display()));
    } else {
        make(&example)?;
        terminal::say(&format!(
            "made `{}`: a forecast with bad guesses in it, and a judge of 25 configurations",
            example.path.display()
        ));
    }
    Ok(example)
}

/// The first folder that is not there yet; on the way, a word on demos that were cut off.
fn free(here: &Path) -> Example {
    let mut example = Example::at(here, Path::new(FOLDER));
    let mut number = 2;
    while example.is_taken() {
        if example.is_unfinished() {
            let (folder, way_on) = (example.path.display(), example.way_on());
            terminal::note(&format!(
                "the demo in `{folder}` is not at its end: `{way_on}` goes on with it"
            ));
        }
        example = Example::at(here, Path::new(&format!("{FOLDER}-{number}")));
        number += 1;
    }
    example
}

fn must_be_demo(example: &Example) -> Result<(), Failure> {
    if example.is_demo() {
        return Ok(());
    }
    let what = format!(
        "`{}` is there already, and is no demo as this version makes it",
        example.path.display()
    );
    Err(Failure::usage(what)
        .hint("name a folder that is not there yet; what is there stays as it is"))
}

fn make(example: &Example) -> Result<(), Failure> {
    let name = example.path.file_name().ok_or_else(|| {
        let what = format!("`{}` is no name for a new folder", example.path.display());
        Failure::usage(what).hint("name a folder that is not there yet")
    })?;
    let name = format!(".{}.{}", name.to_string_lossy(), process::id());
    let unnamed = example.path.with_file_name(name);
    let made = fill(&unnamed).and_then(|()| {
        fs::rename(&unnamed, &example.path).map_err(|error| cannot(&example.path, &error))
    });
    if made.is_err() {
        // That it could not be made is what the user has to know.
        drop(fs::remove_dir_all(&unnamed));
    }
    made
}

fn fill(folder: &Path) -> Result<(), Failure> {
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above).map_err(|error| cannot(above, &error))?;
    }
    fs::create_dir(folder).map_err(|error| cannot(folder, &error))?;
    for (name, text) in FILES.into_iter().chain([CONFIG]) {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| cannot(&path, &error))?;
    }
    git::begin(folder, &first())?;
    Ok(())
}

/// Who and when are the same everywhere, and so is the commit.
fn first() -> FirstCommit {
    FirstCommit {
        identity: Identity {
            name: "treebeam demo".to_owned(),
            email: "demo@treebeam.invalid".to_owned(),
        },
        date: "2026-01-01T00:00:00Z",
        message: "forecast: a first guess, and its judge",
    }
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot make `{}`: {error}", path.display()))
        .hint("name a folder that can be written to: `treebeam demo DIR`")
}
