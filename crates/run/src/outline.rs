//! What a prompt shows of the repository: the files that a user names for a role, or an outline of what is likely to matter.
//! It follows from commit, settings and what was said of the idea alone, and has a limit. Nothing is read here but through
//! the port.
//!
//! # Layout
//! `file_choice` says which files, `file_tree` is the list of all of them.

mod file_choice;
mod file_tree;

pub use file_choice::is_secret;

use crate::port::{BinaryDiff, PortError, Repo, RepoFile};
use crate::prompt::section::quoted_section;
use std::fmt;
use treebeam_core::id::Commit;
use treebeam_core::protect::ProtectedPaths;

/// No prompt shows more of the repository, in characters.
pub const MAX_CONTEXT_CHARS: u32 = 2_000_000;
/// With less room than this, in characters, nothing more is begun.
const MIN_SECTION_ROOM_CHARS: usize = 300;
/// What heading, fences and a note about a cut take, in characters, but for a path.
const SECTION_OVERHEAD_CHARS: usize = 120;

/// How much of the repository somebody is shown.
#[derive(Clone, Debug, Default)]
pub enum RepoContext {
    /// Nothing.
    #[default]
    Nothing,
    /// A list of all files, what changed since the root, and the files that are likely to matter.
    Outline,
    /// The files that match, in the order of these globs.
    Files(Vec<FileGlob>),
}

/// Names files of a repository.
#[derive(Clone, Debug)]
pub struct FileGlob {
    text: String,
    paths: ProtectedPaths,
}

impl FileGlob {
    /// Reads a glob.
    ///
    /// # Errors
    /// When it is none; in words.
    pub fn new(glob: &str) -> Result<Self, String> {
        let text = glob.to_owned();
        match ProtectedPaths::new(std::slice::from_ref(&text)) {
            Ok(paths) if !glob.trim().is_empty() => Ok(Self { text, paths }),
            Ok(_) | Err(_) => Err(format!("{glob:?} is not a glob, such as `src/**/*.py`")),
        }
    }

    fn covers(&self, path: &str) -> bool {
        self.paths.covers(path)
    }
}

impl fmt::Display for FileGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What there is to be seen, and by what it is chosen.
pub(crate) struct OutlineInput<'a> {
    pub(crate) root: &'a Commit,
    /// The code state that is shown.
    pub(crate) commit: &'a Commit,
    /// What was said: the files that it names come first.
    pub(crate) texts: Vec<&'a str>,
    /// The commands that measure the code: their scripts come next.
    pub(crate) commands: &'a [String],
}

/// What somebody is shown; nothing where there is nothing to show.
pub(crate) fn render_outline(
    repo: &dyn Repo,
    context: &RepoContext,
    max_chars: usize,
    sight: &OutlineInput<'_>,
) -> Result<String, PortError> {
    let mut page = OutlinePage { text: String::new(), left: max_chars };
    let share = page.left / 5;
    let files = match context {
        RepoContext::Nothing => return Ok(String::new()),
        RepoContext::Outline | RepoContext::Files(_) => repo.list_files(sight.commit)?,
    };
    let chosen = match context {
        RepoContext::Nothing => Vec::new(),
        RepoContext::Outline => {
            page.add_section(
                "FILES, WITH THEIR SIZES IN BYTES",
                &file_tree::render_tree(&files, share),
                share,
            );
            if sight.root != sight.commit {
                let change =
                    repo.diff_commits(sight.root, sight.commit, BinaryDiff::Named, share)?;
                page.add_section("THE CODE AT HAND DIFFERS FROM THE ROOT BY THIS", &change, share);
            }
            file_choice::likely_files(&files, &sight.texts, sight.commands)
        }
        RepoContext::Files(globs) => file_choice::files_by_globs(&files, globs),
    };
    let chosen = file_choice::files_that_fit(&chosen, page.left, share);
    let texts = if chosen.is_empty() { Vec::new() } else { repo.read_texts(&chosen)? };
    for (file, text) in chosen.iter().zip(texts) {
        if let Some(text) = text {
            page.add_section(
                &format!("FILE {}", printable_path(file)),
                &text,
                share.max(MIN_SECTION_ROOM_CHARS),
            );
        }
    }
    Ok(page.text)
}

/// A path on one line.
fn printable_path(file: &RepoFile) -> String {
    file.path.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Sections, as far as there is room.
struct OutlinePage {
    text: String,
    left: usize,
}

impl OutlinePage {
    /// Adds a section of at most so many characters, cut to what is left; one that is not worth it is left out.
    fn add_section(&mut self, head: &str, text: &str, most: usize) {
        let room =
            self.left.min(most).saturating_sub(SECTION_OVERHEAD_CHARS + head.chars().count());
        if room == 0 || self.left < MIN_SECTION_ROOM_CHARS || text.trim().is_empty() {
            return;
        }
        let section = quoted_section(head, text, room) + "\n";
        let length = section.chars().count();
        // A text of backticks has fences that are longer than itself.
        if length <= self.left {
            self.left -= length;
            self.text.push_str(&section);
        }
    }
}

#[cfg(test)]
mod tests;
