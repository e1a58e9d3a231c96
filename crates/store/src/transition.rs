//! Lists every step of a run that changes the disk: its events, and all others by name. A crash
//! test kills the program before and after each step, and fails for an operation that is not
//! listed. The steps of git itself are not listed.

use serde::Serialize;
use treebeam_core::event::Event;

/// A step that is not an event.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TransitionStep {
    /// Name of the step.
    pub name: &'static str,
    /// Description of the step.
    pub about: &'static str,
    /// The system calls of the step.
    pub calls: &'static [FileSystemCall],
    /// The paths, in a repository with default settings, that are created or moved to. `*` is a
    /// part of a name, `**` is everything below.
    pub paths: &'static [&'static str],
}

/// A kind of change to a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystemCall {
    /// A file is created or emptied.
    Create,
    /// Bytes are appended to a file.
    Write,
    /// The end of a file is cut off.
    Ftruncate,
    /// A file or folder is renamed.
    Rename,
    /// A file gets a second name.
    Link,
    /// A name of a file is removed.
    Unlink,
    /// A folder is created.
    Mkdir,
    /// A folder is removed.
    Rmdir,
}

use FileSystemCall::{Create, Ftruncate, Link, Mkdir, Rename, Rmdir, Unlink, Write};

/// The kinds of events, each of which is a line of the journal.
pub const EVENT_KINDS: &[&str] = Event::KINDS;

macro_rules! steps {
    ($($name:literal $about:literal $calls:tt $paths:tt)+) => {
        /// All steps that are not events. If two fit an operation, the first one counts.
        pub const STEPS: &[TransitionStep] =
            &[$(TransitionStep { name: $name, about: $about, calls: &$calls, paths: &$paths }),+];
    };
}

steps! {
    "runs_folder_made" "the folder of all runs, which git ignores"
    [Mkdir, Create, Write] [".treebeam", ".treebeam/runs", ".treebeam/.gitignore"]

    "run_furnished" "a run that has no name yet: its folders, and its journal's first line"
    [Mkdir, Create, Write] [".treebeam/runs/.new-*", ".treebeam/runs/.new-*/**"]

    "run_named" "a run gets its name: from here on it is there"
    [Rename] [".treebeam/runs/*"]

    "unnamed_run_removed" "what a process left that died before its run had a name"
    [Unlink, Rmdir] [".treebeam/runs/.new-*", ".treebeam/runs/.new-*/**"]

    "lock_file_made" "the file whose lock says that a run is being run"
    [Create] [".treebeam/runs/*/run.lock"]

    "lock_note_written" "who runs the run, and each heartbeat"
    [Rename] [".treebeam/runs/*/run.lock.json"]

    "lock_note_removed" "a process leaves its run"
    [Unlink] [".treebeam/runs/*/run.lock.json"]

    "unfinished_removed" "a file that a process died over before it had its name"
    [Unlink] [".treebeam/runs/*/.new-*", ".treebeam/runs/*/inbox/.new-*"]

    "manifest_kept" "the manifest becomes the previous one"
    [Link, Rename, Unlink]
    [".treebeam/runs/*/manifest.json.prev", ".treebeam/runs/*/manifest.json.prev.link"]

    "manifest_written" "the whole state, in place of the manifest before"
    [Rename] [".treebeam/runs/*/manifest.json"]

    "journal_cut" "a last line that was not written whole goes"
    [Ftruncate] [".treebeam/runs/*/journal.jsonl"]

    "journal_line_ended" "a last line that lacks nothing but its end gets it"
    [Write] [".treebeam/runs/*/journal.jsonl"]

    "journal_copied" "a run is taken from a process that may still write, or its journal has lost its name: it is another file from here on"
    [Rename] [".treebeam/runs/*/journal.jsonl"]

    "journal_set_aside" "a journal that ends before the manifest is put by"
    [Rename] [".treebeam/runs/*/journal.jsonl.before-*"]

    "journal_begun" "a new journal after a manifest alone"
    [Create] [".treebeam/runs/*/journal.jsonl"]

    "ideas_written" "a node's ideas, and what was asked and answered"
    [Mkdir, Rename] [".treebeam/runs/*/node_ideas/**"]

    "conversation_written" "what was said in a branch"
    [Mkdir, Rename] [".treebeam/runs/*/conversations/**"]

    "submission_written" "what a sweep writes, and the job that it belongs to"
    [Mkdir, Create, Write, Rename, Link] [".treebeam/runs/*/eval/*/s*", ".treebeam/runs/*/eval/*/s*/**"]

    "submission_removed" "what the sweeps of a failed eval wrote goes"
    [Unlink, Rmdir] [".treebeam/runs/*/eval/*/s*", ".treebeam/runs/*/eval/*/s*/**"]

    "result_linked" "the submission that counts gets the eval's name"
    [Link, Rename, Unlink]
    [".treebeam/runs/*/eval/*/eval_result.json*", ".treebeam/runs/*/eval/*/experiment/meta_config_sweep_results.csv*"]

    "experiment_written" "what an eval was asked, answered and measured"
    [Mkdir, Rename] [".treebeam/runs/*/eval/**"]

    "artifact_imported" "the copy that decisions rest on"
    [Rename] [".treebeam/runs/*/artifacts/*"]

    "repository_locked" "the file whose lock keeps worktrees apart"
    [Create] [".git/treebeam.lock"]

    "ref_unlocked" "a lock of a ref that a git left which is dead"
    [Unlink] [".git/refs/heads/tree/*/*.lock", ".git/packed-refs.lock"]

    "worktree_hidden" "git knows of a worktree no more"
    [Rename] [".git/treebeam/gone-*"]

    "worktree_made" "a worktree, and what git is to know of it, out of git's sight"
    [Mkdir, Create, Write]
    [".git/treebeam", ".git/treebeam/**", ".treebeam/runs/*/wt/*", ".treebeam/runs/*/wt/*/.git",
     ".treebeam/runs/*/cand/*", ".treebeam/runs/*/cand/*/.git"]

    "worktree_shown" "git knows of a worktree from here on"
    [Mkdir, Rename] [".git/worktrees", ".git/worktrees/*"]

    "workshop_cleared" "what git is not to see goes"
    [Unlink, Rmdir] [".git/treebeam", ".git/treebeam/**"]

    "git_told" "what a git that writes in a worktree reads, and is known by"
    [Create, Write, Ftruncate] [".git/worktrees/*/treebeam.input"]

    "worktree_used" "whatever is in a node's worktree from here on is the run's own, until that has been put right"
    [Create, Unlink] [".git/worktrees/*/treebeam.used"]

    "worktree_removed" "the files of a worktree go"
    [Unlink, Rmdir] [".treebeam/runs/*/wt/**", ".treebeam/runs/*/cand/**"]

    "message_posted" "what somebody has to say to a run"
    [Mkdir, Rename] [".treebeam/runs/*/inbox", ".treebeam/runs/*/inbox/*.json"]

    "message_forgotten" "a message that is on record goes"
    [Unlink] [".treebeam/runs/*/inbox/*.json"]

    "message_set_aside" "a message that nobody acts upon, and why"
    [Mkdir, Create, Write, Rename]
    [".treebeam/runs/*/inbox/refused", ".treebeam/runs/*/inbox/refused/*"]

    "run_unnamed" "a run that is to go loses its name: from here on it is none"
    [Rename] [".treebeam/runs/.gone-*"]

    "gone_run_removed" "what is left of a run that has lost its name"
    [Unlink, Rmdir] [".treebeam/runs/.gone-*", ".treebeam/runs/.gone-*/**"]

    "report_written" "a report for people"
    [Rename]
    [".treebeam/runs/*/TREE_SUMMARY.md", ".treebeam/runs/*/TREE_GRAPH.md", ".treebeam/runs/*/results.tsv",
     ".treebeam/runs/*/VALIDATION_REPORT.md", ".treebeam/runs/*/report.html"]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_have_one_name() {
        let names = STEPS.iter().map(|step| step.name).chain(EVENT_KINDS.iter().copied());
        let count = names.clone().count();
        assert_eq!(names.collect::<BTreeSet<_>>().len(), count);
    }
}
