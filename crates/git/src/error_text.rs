//! Shortens git's error output and derives hints for the user from it. It runs nothing.

use std::fmt::Write as _;
use treebeam_process::FILE_SIZE_SIGNAL;

/// Length in bytes above which git's error output is cut.
const MAX_ERROR_TEXT_BYTES: usize = 2_000;

/// Git's own error output, shortened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GitErrorText(String);

impl GitErrorText {
    /// Builds the text from git's error output, or from the signal or exit code if that is empty.
    pub(super) fn new(code: Option<i32>, signal: Option<i32>, stderr: &str) -> Self {
        let words = truncate_text(stderr.trim(), MAX_ERROR_TEXT_BYTES);
        match (words.is_empty(), signal, code) {
            (false, _, _) => Self(words),
            (true, Some(FILE_SIZE_SIGNAL), _) => {
                Self(format!("git was ended by signal {FILE_SIZE_SIGNAL}: a file grew too large"))
            }
            (true, Some(signal), _) => Self(format!("git was killed by signal {signal}")),
            (true, None, Some(code)) => {
                Self(format!("git ended with exit code {code} and no message"))
            }
            (true, None, None) => Self("git was killed by a signal".to_owned()),
        }
    }
}

/// Removes these paths from git's output, for readers who must not know where the run is stored.
pub(super) fn without_paths(words: &str, paths: &[&str]) -> String {
    let mut words = words.to_owned();
    for path in paths {
        words = words.replace(&format!("{path}/"), "").replace(path, ".");
    }
    truncate_text(words.trim(), MAX_ERROR_TEXT_BYTES)
}

/// Cuts a text to at most `limit` bytes and appends how many were left out.
fn truncate_text(text: &str, limit: usize) -> String {
    let end = text.floor_char_boundary(limit);
    let mut kept = text[..end].to_owned();
    if end < text.len() {
        // Writing to a string cannot fail.
        let _ = write!(kept, "\n[{} more bytes]", text.len() - end);
    }
    kept
}

/// Hint for a file that exceeds the size limit of this process.
const FILE_SIZE_HINT: &str = "a file may not grow larger than the limit of this shell allows: raise it (`ulimit -f unlimited`), then resume the run";

/// Returns a hint for a git that was ended by this signal.
pub(super) fn hint_for_signal(signal: i32) -> Option<&'static str> {
    (signal == FILE_SIZE_SIGNAL).then_some(FILE_SIZE_HINT)
}

/// Returns a hint for a failure that is not the diff's fault.
pub(super) fn hint_for(stderr: &str) -> Option<&'static str> {
    const ERROR_HINTS: [(&str, &str); 15] = [
        ("No space left on device", "the disk is full: make room, then resume the run"),
        (
            "Input/output error",
            "the disk itself reports an error: see the system's log, and save what is on it before you go on",
        ),
        ("Disk quota exceeded", "your disk quota is used up: make room, then resume the run"),
        ("Read-only file system", "the repository lies on a read-only file system"),
        (
            "Too many open files",
            "raise the limit of open files (`ulimit -n`) or run fewer evals at once",
        ),
        ("File too large", FILE_SIZE_HINT),
        (
            "Resource temporarily unavailable",
            "too few processes are allowed: raise the limit (`ulimit -u`), or lower `--max-parallel-evals`",
        ),
        (
            "Cannot allocate memory",
            "the machine has too little memory: end something else, or lower `--max-parallel-evals`",
        ),
        ("Out of diskspace", "the disk is full: make room, then resume the run"),
        ("insufficient permission", "check that you own the repository and the run directory"),
        ("Permission denied", "check that you own the repository and the run directory"),
        (
            "'refs/heads/tree' exists",
            "a branch named `tree` is in the way: rename it (`git branch -m tree NEW`)",
        ),
        (
            "lazy fetching disabled",
            "this is a partial clone: check out, or `git fetch --refetch`, what is missing",
        ),
        (
            ".lock': File exists",
            "if no other git is at work in this repository, delete the lock file that git names",
        ),
        (
            "commondir",
            "a `git worktree add` was cut off: `git worktree prune` after removing the folder that git names",
        ),
    ];
    ERROR_HINTS.iter().find(|(words, _)| stderr.contains(words)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_between_characters() {
        assert_eq!(truncate_text("aéé", 2), "a\n[4 more bytes]");
        assert_eq!(
            GitErrorText::new(Some(1), None, " \n").to_string(),
            "git ended with exit code 1 and no message"
        );
        let killed = GitErrorText::new(None, Some(9), "").to_string();
        assert_eq!(killed, "git was killed by signal 9");
        let words = without_paths("in /r/c/1/a and /r/c/1: no", &["/r/c/1"]);
        assert_eq!(words, "in a and .: no");
    }
}
