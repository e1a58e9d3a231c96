//! `ideas_context_files`: files that the user lists for the generator of ideas. Read when a run starts or goes on, like prompts;
//! how much of them is told is `treebeam_run::prompt`'s business.

use super::super::Config;
use super::super::agents::Line;
use super::super::key::KEYS;
use super::super::origin::{Origin, Wrong};
use super::UserFile;
use std::fs;
use std::path::Path;
use treebeam_edge::input;
use treebeam_run::outline::is_secret;
use treebeam_run::port::Role;
use treebeam_run::prompt::Listed;

/// The longest file that is read.
const LIMIT: u64 = 1 << 20;
/// The most files.
const MOST: usize = 100;
/// What files of a folder are told.
const ENDINGS: [&str; 2] = ["md", "txt"];

impl Config {
    pub(super) fn context_files(&self) -> &[UserFile] {
        self.tables.ideas_context_files.as_deref().unwrap_or_default()
    }

    /// The files, in the order in which they are listed, those of a folder in the order of their names.
    pub(super) fn listed(&self, top: &Path) -> Result<Vec<Listed>, Wrong> {
        let mut found = Vec::new();
        for UserFile(path) in self.context_files() {
            let names = names(top, path).map_err(|why| self.wrong_file(why))?;
            for name in names {
                found.push(read(top, &name).map_err(|why| self.wrong_file(why))?);
            }
        }
        let is_tuner =
            self.agent(Role::Ideas).is_some_and(|agent| matches!(agent.line, Line::Tuner));
        match found.len() {
            1.. if is_tuner => {
                Err(self.wrong_file("the `tuner` reads no files of yours".to_owned()))
            }
            0..=MOST => Ok(found),
            many => Err(self.wrong_file(format!("these are {many} files, and {MOST} is the most"))),
        }
    }

    fn wrong_file(&self, what: String) -> Wrong {
        let key = KEYS.iter().find(|key| key.name == "ideas_context_files");
        Wrong { origin: key.map_or(Origin::Default, |key| self.origin(key)), what }
    }
}

/// A file, or those of a folder.
fn names(top: &Path, path: &str) -> Result<Vec<String>, String> {
    if !top.join(path).is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |error| format!("cannot read the folder `{path}`: {error}");
    let mut names = Vec::new();
    for entry in fs::read_dir(top.join(path)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        if ending.is_some_and(|ending| ENDINGS.contains(&ending)) && !name.starts_with('.') {
            names.push(format!("{}/{name}", path.trim_end_matches('/')));
        }
    }
    names.sort();
    Ok(names)
}

fn read(top: &Path, path: &str) -> Result<Listed, String> {
    if is_secret(path) {
        return Err(format!(
            "`{path}` is called like a file that holds keys, and is told to nobody"
        ));
    }
    let text = input::text(&top.join(path), path, LIMIT).map_err(|error| error.to_string())?;
    Ok(Listed { name: told_as(path), text })
}

/// A prompt has no absolute path: of one that leads elsewhere the last part will do.
fn told_as(path: &str) -> String {
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
    match super::as_git_has_it(path) {
        Some(below) => below,
        None => name.unwrap_or_else(|| "file".to_owned()),
    }
}
