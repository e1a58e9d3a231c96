//! Runs the built-in tuner in a worktree: passes it the files that git tracks, and returns its
//! answer. The tuner itself is [`treebeam_tuner`]; nothing is written here.

use super::command::AgentWorkspace;
use super::question::{AgentQuestion, TryError};
use super::settings;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use treebeam_core::bill::Cost;
use treebeam_run::port::{AgentReply, PortError};
use treebeam_tuner::TunerRequest;
use treebeam_tuner::change::ConstantChange;
use treebeam_tuner::constant::{Constant, find_constants};
use treebeam_tuner::scope::TunerScope;

/// The longest file that is read, in bytes.
const MAX_TUNER_FILE_BYTES: u64 = 256 << 10;
/// The most files that are read.
const MAX_TUNER_FILES: usize = 1000;
/// The most constants that are found.
const MAX_TUNER_CONSTANTS: usize = 10_000;

/// Answers a question with the tuner.
pub(super) fn answer_with_tuner(
    tuner: &settings::TunerAgent,
    question: &AgentQuestion,
    surroundings: &AgentWorkspace,
) -> Result<AgentReply, TryError> {
    let folder = surroundings.question_folder(question.place);
    let scope = TunerScope::new(&tuner.files, &question.prompt)
        .map_err(|error| TryError::unanswered(error.to_string()))?;
    let seen = TunerFiles { folder: &folder, tracked: list_tracked(&folder)?, scope };
    let said =
        match treebeam_tuner::parse_request(&question.prompt).map_err(TryError::unanswered)? {
            TunerRequest::Ideas(count) => treebeam_tuner::propose_ideas(
                &seen.find_constants(),
                &question.prompt,
                tuner.seed,
                count,
            ),
            TunerRequest::Diff(change) => seen.diff_change(&change),
            TunerRequest::Description => treebeam_tuner::describe_constants(&seen.find_constants()),
        };
    // The tuner asks no provider, so that its answers are free.
    let free = |said| AgentReply { cost: Some(Cost::default()), ..AgentReply::from_text(said) };
    said.map(free).map_err(TryError::unanswered)
}

/// Lists the paths that git tracks in a folder, which must be the root of a worktree.
fn list_tracked(folder: &Path) -> Result<Vec<String>, PortError> {
    let cannot =
        || PortError::new("the tuner changes what git tracks, and cannot tell what that is");
    let repo = treebeam_git::open_repo(folder).map_err(|error| {
        let hint = error.hint();
        cannot().with_cause(error).with_hint(hint)
    })?;
    let same = |a: &Path, b: &Path| a.canonicalize().ok() == b.canonicalize().ok();
    if !same(&repo.toplevel, folder) {
        return Err(cannot().with_hint("the folder must be the root of a worktree"));
    }
    repo.tracked_paths()
}

/// The files that the tuner may read.
struct TunerFiles<'a> {
    folder: &'a Path,
    tracked: Vec<String>,
    scope: TunerScope,
}

impl TunerFiles<'_> {
    /// Finds all constants, in the order of the files' paths.
    fn find_constants(&self) -> Vec<Constant> {
        let wanted =
            self.tracked.iter().filter(|path| self.scope.contains(path)).take(MAX_TUNER_FILES);
        let found = wanted
            .filter_map(|path| Some(find_constants(path, &read_plain_file(self.folder, path)?)));
        found.flatten().take(MAX_TUNER_CONSTANTS).collect()
    }

    fn diff_change(&self, change: &ConstantChange) -> Result<String, String> {
        let path = &change.id.file;
        if !self.scope.can_change(path) {
            return Err(format!(
                "`{path}` is protected, or no file of a kind that the tuner knows"
            ));
        }
        let known =
            self.tracked.contains(path).then(|| read_plain_file(self.folder, path)).flatten();
        let text =
            known.ok_or_else(|| format!("there is no text file `{path}` that git tracks"))?;
        change.to_diff(&text)
    }
}

/// Reads a regular file of the worktree; none for a path with a link, or a file that is too long.
fn read_plain_file(folder: &Path, path: &str) -> Option<String> {
    let root = folder.canonicalize().ok()?;
    let place = root.join(path);
    let is_plain =
        fs::symlink_metadata(&place).ok()?.is_file() && place.canonicalize().ok()? == place;
    let mut bytes = Vec::new();
    if is_plain {
        File::open(&place).ok()?.take(MAX_TUNER_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    }
    let fits = is_plain && bytes.len() as u64 <= MAX_TUNER_FILE_BYTES;
    String::from_utf8(bytes).ok().filter(|_| fits)
}
