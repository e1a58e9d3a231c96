//! Renders earlier attempts at an idea for a prompt: how each failed, and the change of the last
//! one. Absolute paths lose their folders, and treebeam's own time limits are left out; the output
//! of a failed command may still contain a time.

use super::{MAX_CHANGE_CHARS, MAX_PART_CHARS};
use crate::section::{introduced_section, quoted_section};
use treebeam_core::event::{EvalFailure, FailureKind};

/// Failed attempts at an idea, oldest first, and the change of the last one that had any.
#[derive(Clone, Copy, Default)]
pub(crate) struct EarlierAttempts<'a> {
    pub(crate) failures: &'a [EvalFailure],
    pub(crate) change: Option<&'a str>,
}

impl EarlierAttempts<'_> {
    /// Renders the sections; `None` if this is the first attempt. Planners need not see the change.
    pub(super) fn render_sections(self, with_change: bool) -> Option<String> {
        if self.failures.is_empty() {
            return None;
        }
        let sentence = "Their changes are not in place; the latest failure comes first. Do what the idea says in a way that does not fail like\n\
             this. What was not the change's doing, such as missing files or too little time, is not yours to work around.\n";
        let failures: Vec<String> = self.failures.iter().rev().map(render_failure).collect();
        let head = "EARLIER ATTEMPTS AT THIS IDEA FAILED";
        let failures = introduced_section(head, sentence, &failures.join("\n"), MAX_PART_CHARS);
        let change = self.change.filter(|_| with_change);
        let change = change
            .map(|diff| quoted_section("THE CHANGE THAT FAILED LAST", diff, MAX_CHANGE_CHARS));
        Some(std::iter::once(failures).chain(change).collect::<Vec<_>>().join("\n"))
    }
}

/// Renders a failure with its recorded message, if a coder can fix it. The message of a timeout
/// begins with the time limit, which is left out.
fn render_failure(failure: &EvalFailure) -> String {
    let EvalFailure { stage, kind, message } = failure;
    let message = match kind {
        FailureKind::Agent => "",
        FailureKind::Timeout => message.split_once('\n').map_or("", |(_, said)| said),
        FailureKind::Patch
        | FailureKind::Rejected
        | FailureKind::Protected
        | FailureKind::Inputs
        | FailureKind::Artifacts
        | FailureKind::NoChange
        | FailureKind::Setup
        | FailureKind::Tests
        | FailureKind::Sweep
        | FailureKind::NoResults
        | FailureKind::Results => message,
    };
    let told = format!("failed at {stage}: {kind}\n{}", strip_folders(message));
    told.trim_end().to_owned() + "\n"
}

/// Removes the folders of absolute paths in a text: they reveal the layout of this machine.
fn strip_folders(text: &str) -> String {
    text.split_inclusive(is_path_edge).map(strip_folder).collect()
}

/// Returns true if a path ends, or may begin, at this character.
fn is_path_edge(c: char) -> bool {
    c.is_whitespace() || "\"'`()[]{}<>,;:=|".contains(c)
}

fn strip_folder(word: &str) -> String {
    let home = word.strip_prefix('~').unwrap_or(word);
    let Some(path) = home.strip_prefix(['/', '\\']) else { return word.to_owned() };
    match path.rsplit_once(['/', '\\']) {
        Some((_, name)) => format!("…/{name}"),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::event::EvalStage;

    #[test]
    fn a_path_loses_its_folders_and_nothing_else_changes() {
        for (text, told) in [
            ("File \"/srv/me/w/e0001/model.py\", line 3", "File \"…/model.py\", line 3"),
            ("open(/data/x/prices.csv): gone", "open(…/prices.csv): gone"),
            ("/usr/lib/a.py:12: bad\n", "…/a.py:12: bad\n"),
            (r"at C:\Users\me\w\model.py:4", "at C:…/model.py:4"),
            (r"on \\server\share\x.csv", "on …/x.csv"),
            ("error:/srv/me/x.csv in ~/me/y", "error:…/x.csv in …/y"),
            ("--data=/srv/a/b.csv", "--data=…/b.csv"),
            ("model.py:3: a/b and 1/2 / 3", "model.py:3: a/b and 1/2 / 3"),
            ("see file:///tmp/a/log", "see file:…/log"),
            ("", ""),
        ] {
            assert_eq!(strip_folders(text), told);
        }
    }

    #[test]
    fn the_latest_failure_comes_first_and_no_time_is_told() {
        let failure = |kind, message: &str| EvalFailure {
            stage: EvalStage::Sweep,
            kind,
            message: message.to_owned(),
        };
        let failures = [
            failure(FailureKind::Sweep, "sweep exited 1:\nKeyError: 'x'"),
            failure(FailureKind::Timeout, "sweep was ended after 10 s:\nstep 4"),
        ];
        let earlier = EarlierAttempts { failures: &failures, change: Some("--- a\n+++ b\n") };
        let told = earlier.render_sections(true).unwrap_or_default();
        let failed = "```\nfailed at sweep: timeout\nstep 4\n\nfailed at sweep: sweep\nsweep exited 1:\nKeyError: 'x'\n```\n";
        assert!(
            told.contains(failed) && told.contains("+++ b") && !told.contains("10 s"),
            "{told}"
        );
        assert!(!earlier.render_sections(false).unwrap_or_default().contains("+++ b"));
        let failures = [failure(FailureKind::Agent, "`sh` was killed after 1 s")];
        let told = EarlierAttempts { failures: &failures, change: None }.render_sections(true);
        assert!(told.is_some_and(|told| told.contains("failed at sweep: agent\n```\n")));
        assert_eq!(EarlierAttempts::default().render_sections(true), None);
    }
}
