//! Renders what a prompt shows of the repository: the files that a user names for a role, or an
//! outline. An outline shows files that are likely to matter. The result depends only on commit,
//! settings and the texts about the idea, and has a limit. Files are read through the port.
//!
//! # Layout
//! [`mod@file_choice`] chooses the files, [`mod@file_tree`] lists all of them.

mod file_choice;
mod file_tree;

pub use file_choice::is_secret;

use crate::port::{BinaryDiff, PortError, Repo, RepoFile};
use crate::section::quoted_section;
use std::fmt;
use treebeam_core::id::Commit;
use treebeam_core::protect::ProtectedPaths;

/// Largest setting for the part of the repository in a prompt, in characters.
pub const MAX_CONTEXT_CHARS: u32 = 2_000_000;
/// Smallest room, in characters, for which another section is begun.
const MIN_SECTION_ROOM_CHARS: usize = 300;
/// Characters that heading, fences and a note about a cut take, without a path.
const SECTION_OVERHEAD_CHARS: usize = 120;

/// The part of the repository that a prompt shows.
#[derive(Clone, Debug, Default)]
pub enum RepoContext {
    /// No part of it.
    #[default]
    Nothing,
    /// A list of all files, the changes since the root, and the files that are likely to matter.
    Outline,
    /// The files that match, in the order of these globs.
    Files(Vec<FileGlob>),
}

/// A glob for files of a repository.
#[derive(Clone, Debug)]
pub struct FileGlob {
    text: String,
    paths: ProtectedPaths,
}

impl FileGlob {
    /// Parses a glob.
    ///
    /// # Errors
    /// A text that describes why it is no glob.
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

/// The commits to show, and the texts by which files are chosen.
pub(crate) struct OutlineInput<'a> {
    pub(crate) root: &'a Commit,
    /// Code state that is shown.
    pub(crate) commit: &'a Commit,
    /// Texts whose named files come first.
    pub(crate) texts: Vec<&'a str>,
    /// The commands that measure the code: their scripts come next.
    pub(crate) commands: &'a [String],
}

/// Renders the outline; empty where there is nothing to show.
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

/// Returns a path without control characters, for one line.
fn printable_path(file: &RepoFile) -> String {
    file.path.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Sections, as far as there is room.
struct OutlinePage {
    text: String,
    left: usize,
}

impl OutlinePage {
    /// Adds a section of at most `most` characters, cut to the room left, if that is not too small.
    fn add_section(&mut self, head: &str, text: &str, most: usize) {
        let room =
            self.left.min(most).saturating_sub(SECTION_OVERHEAD_CHARS + head.chars().count());
        if room == 0 || self.left < MIN_SECTION_ROOM_CHARS || text.trim().is_empty() {
            return;
        }
        let section = quoted_section(head, text, room) + "\n";
        let length = section.chars().count();
        // The fences around a text of backticks are longer than the text itself.
        if length <= self.left {
            self.left -= length;
            self.text.push_str(&section);
        }
    }
}

#[cfg(test)]
mod tests;
