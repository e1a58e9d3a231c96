//! What a prompt shows of the repository: the files that a user names for a role, or an outline of what is likely to matter.
//! It follows from commit, settings and what was said of the idea alone, and has a limit. Nothing is read here but through
//! the port.
//!
//! # Layout
//! `choice` says which files, `tree` is the list of all of them.

mod choice;
mod tree;

pub use choice::is_secret;

use crate::port::{Binaries, PortError, Repo, RepoFile};
use crate::prompt::section::quoted;
use std::fmt;
use treebeam_core::id::Commit;
use treebeam_core::protect::Protected;

/// No prompt shows more of the repository, in characters.
pub const MOST_CHARS: u32 = 2_000_000;
/// With less room than this, in characters, nothing more is begun.
const LEAST: usize = 300;
/// What heading, fences and a note about a cut take, in characters, but for a path.
const AROUND: usize = 120;

/// How much of the repository somebody is shown.
#[derive(Clone, Debug, Default)]
pub enum Context {
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
    paths: Protected,
}

impl FileGlob {
    /// Reads a glob.
    ///
    /// # Errors
    /// When it is none; in words.
    pub fn new(glob: &str) -> Result<Self, String> {
        let text = glob.to_owned();
        match Protected::new(std::slice::from_ref(&text)) {
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
pub(crate) struct Sight<'a> {
    pub(crate) root: &'a Commit,
    /// The code state that is shown.
    pub(crate) commit: &'a Commit,
    /// What was said: the files that it names come first.
    pub(crate) said: Vec<&'a str>,
    /// The commands that measure the code: their scripts come next.
    pub(crate) commands: &'a [String],
}

/// What somebody is shown; nothing where there is nothing to show.
pub(crate) fn outline(
    repo: &dyn Repo,
    context: &Context,
    max_chars: usize,
    sight: &Sight<'_>,
) -> Result<String, PortError> {
    let mut page = Page { text: String::new(), left: max_chars };
    let share = page.left / 5;
    let files = match context {
        Context::Nothing => return Ok(String::new()),
        Context::Outline | Context::Files(_) => repo.files(sight.commit)?,
    };
    let chosen = match context {
        Context::Nothing => Vec::new(),
        Context::Outline => {
            page.add("FILES, WITH THEIR SIZES IN BYTES", &tree::tree(&files, share), share);
            if sight.root != sight.commit {
                let change = repo.diff(sight.root, sight.commit, Binaries::Named, share)?;
                page.add("THE CODE AT HAND DIFFERS FROM THE ROOT BY THIS", &change, share);
            }
            choice::likely(&files, &sight.said, sight.commands)
        }
        Context::Files(globs) => choice::named(&files, globs),
    };
    let chosen = choice::that_fit(&chosen, page.left, share);
    let texts = if chosen.is_empty() { Vec::new() } else { repo.texts(&chosen)? };
    for (file, text) in chosen.iter().zip(texts) {
        if let Some(text) = text {
            page.add(&format!("FILE {}", shown(file)), &text, share.max(LEAST));
        }
    }
    Ok(page.text)
}

/// A path on one line.
fn shown(file: &RepoFile) -> String {
    file.path.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Sections, as far as there is room.
struct Page {
    text: String,
    left: usize,
}

impl Page {
    /// Adds a section of at most so many characters, cut to what is left; one that is not worth it is left out.
    fn add(&mut self, head: &str, text: &str, most: usize) {
        let room = self.left.min(most).saturating_sub(AROUND + head.chars().count());
        if room == 0 || self.left < LEAST || text.trim().is_empty() {
            return;
        }
        let section = quoted(head, text, room) + "\n";
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
