//! The built-in agent that needs no model, in a worktree: shows it the files that git tracks, and gives back what it says.
//! What it thinks is [`treebeam_core::tuner`]; nothing is written here.

use super::command::Surroundings;
use super::question::{Question, Trouble};
use super::settings;
use crate::git;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use treebeam_core::bill::Cost;
use treebeam_core::tuner::change::Change;
use treebeam_core::tuner::constant::{Constant, constants};
use treebeam_core::tuner::scope::Scope;
use treebeam_core::tuner::{self, Wish};
use treebeam_run::port::{PortError, Reply};

/// The longest file that is looked at, in bytes.
const FILE_BYTES: u64 = 256 << 10;
/// The most files.
const FILES: usize = 1000;
/// The most constants.
const CONSTANTS: usize = 10_000;

/// Lets the tuner answer.
pub(super) fn answer(
    tuner: &settings::Tuner,
    question: &Question,
    surroundings: &Surroundings,
) -> Result<Reply, Trouble> {
    let folder = surroundings.folder(question.place);
    let scope = Scope::new(&tuner.files, &question.prompt)
        .map_err(|error| Trouble::unanswered(error.to_string()))?;
    let seen = Seen { folder: &folder, tracked: tracked(&folder)?, scope };
    let said = match tuner::wish(&question.prompt).map_err(Trouble::unanswered)? {
        Wish::Ideas(count) => tuner::ideas(&seen.constants(), &question.prompt, tuner.seed, count),
        Wish::Diff(change) => seen.diff(&change),
        Wish::Word => tuner::word(&seen.constants()),
    };
    // It asks nobody, so nobody is paid.
    let free = |said| Reply { cost: Some(Cost::default()), ..Reply::of(said) };
    said.map(free).map_err(Trouble::unanswered)
}

/// The paths that git tracks in a worktree, which must be one of its own.
fn tracked(folder: &Path) -> Result<Vec<String>, PortError> {
    let cannot =
        || PortError::new("the tuner changes what git tracks, and cannot tell what that is");
    let repo = git::open(folder).map_err(|error| {
        let hint = error.hint();
        cannot().caused_by(error).hint(hint)
    })?;
    let same = |a: &Path, b: &Path| a.canonicalize().ok() == b.canonicalize().ok();
    if !same(&repo.toplevel, folder) {
        return Err(cannot().hint("the folder must be the root of a worktree"));
    }
    repo.tracked()
}

/// What there is to be looked at.
struct Seen<'a> {
    folder: &'a Path,
    tracked: Vec<String>,
    scope: Scope,
}

impl Seen<'_> {
    /// All constants, in the order of the files' paths.
    fn constants(&self) -> Vec<Constant> {
        let wanted = self.tracked.iter().filter(|path| self.scope.has(path)).take(FILES);
        let found = wanted.filter_map(|path| Some(constants(path, &read(self.folder, path)?)));
        found.flatten().take(CONSTANTS).collect()
    }

    fn diff(&self, change: &Change) -> Result<String, String> {
        let path = &change.id.file;
        if !self.scope.may_change(path) {
            return Err(format!(
                "`{path}` is protected, or no file of a kind that the tuner knows"
            ));
        }
        let known = self.tracked.contains(path).then(|| read(self.folder, path)).flatten();
        let text =
            known.ok_or_else(|| format!("there is no text file `{path}` that git tracks"))?;
        change.diff(&text)
    }
}

/// The text of a regular file of the worktree that no link leads to; none where it is anything else, or too long.
fn read(folder: &Path, path: &str) -> Option<String> {
    let root = folder.canonicalize().ok()?;
    let place = root.join(path);
    let is_plain =
        fs::symlink_metadata(&place).ok()?.is_file() && place.canonicalize().ok()? == place;
    let mut bytes = Vec::new();
    if is_plain {
        File::open(&place).ok()?.take(FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    }
    let fits = is_plain && bytes.len() as u64 <= FILE_BYTES;
    String::from_utf8(bytes).ok().filter(|_| fits)
}
