//! What `treebeam doctor` finds of other runs: those that cannot be read, what they could not remove, and worktrees that are not
//! where git looks for them. It is only told.

use super::Check;
use crate::command::clean::fate::Fate;
use crate::way_on;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use treebeam_core::facts::Removal;
use treebeam_core::id::RunId;
use treebeam_edge::git::{Orphan, UserRepo};
use treebeam_edge::store::{self, RunDir, inbox};

const SUBJECT: &str = "leftovers";

pub(super) fn checks(repo: &UserRepo, runs_root: &Path) -> Vec<Check> {
    let runs = store::runs(runs_root).unwrap_or_default();
    let mut checks: Vec<Check> = runs.iter().filter_map(|id| of_run(runs_root, id)).collect();
    checks.extend(runs.iter().filter_map(|id| set_aside(&RunDir::of(runs_root, id), id)));
    checks.extend(missed(repo, runs_root));
    if checks.is_empty() {
        checks.push(Check::ok(SUBJECT, "none"));
    }
    checks
}

fn of_run(runs_root: &Path, id: &RunId) -> Option<Check> {
    let opened = match store::open_to_read(&RunDir::of(runs_root, id)) {
        Ok(opened) => opened,
        Err(error) => {
            let says = format!("run `{id}` cannot be read: {error}");
            return Some(Check::warning(SUBJECT, says, format!("see `treebeam validate {id}`")));
        }
    };
    let deferred = |removal: &&Removal| matches!(removal, Removal::Deferred { .. });
    let count = opened.state.leftovers.values().filter(deferred).count();
    let says = format!("run `{id}` could not remove {count} of its leftovers yet");
    let todo = format!("`treebeam clean {id}` tries again");
    (count > 0).then(|| Check::warning(SUBJECT, says, todo))
}

/// Messages that a run did not act upon. What is in them is not read.
fn set_aside(run: &RunDir, id: &RunId) -> Option<Check> {
    let count = inbox::count_refused(run);
    let messages = if count == 1 { "1 message".to_owned() } else { format!("{count} messages") };
    let says = format!("run `{id}` has set {messages} aside");
    let todo = "its `inbox/refused/` has them, each with the reason; remove what you have seen";
    (count > 0).then(|| Check::warning(SUBJECT, says, todo))
}

/// Worktrees that are not where git looks for them.
fn missed(repo: &UserRepo, runs_root: &Path) -> Vec<Check> {
    let (mut gone, mut moved, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = Vec::new();
    for orphan in repo.orphans().unwrap_or_default() {
        match Fate::of(&orphan, repo, runs_root) {
            Fate::Gone => gone.push(orphan),
            Fate::Unknown => unknown.push(orphan),
            Fate::Moved(folder) => {
                moved.push(orphan);
                now.push(folder);
            }
        }
    }
    let told = [
        told(&gone, "git knows", "of runs that are gone")
            .map(|says| (says, "`treebeam clean` removes what it knows of them".to_owned())),
        told(&moved, "git looks for", "of runs where they were before they were moved")
            .map(|says| (says, repair(repo, runs_root, &now))),
        told(&unknown, "git knows", "of runs in a folder that is not there").map(|says| {
            (says, "mount the disk that they are on, or see `treebeam clean`".to_owned())
        }),
    ];
    told.into_iter().flatten().map(|(says, todo)| Check::warning(SUBJECT, says, todo)).collect()
}

fn told(orphans: &[Orphan], knows: &str, which: &str) -> Option<String> {
    let Orphan { run, place, .. } = orphans.first()?;
    let worktrees = match orphans.len() {
        1 => "1 worktree".to_owned(),
        many => format!("{many} worktrees"),
    };
    Some(format!("{knows} {worktrees} {which}, `{run} {place}` first"))
}

/// The command that tells git where worktrees are now.
fn repair(repo: &UserRepo, runs_root: &Path, now: &[PathBuf]) -> String {
    let runs = runs_root.strip_prefix(&repo.toplevel).unwrap_or(runs_root);
    let runs = way_on::word(&runs.to_string_lossy());
    let kinds = now.iter().filter_map(|folder| folder.parent()?.file_name()?.to_str());
    let kinds: BTreeSet<String> = kinds.map(|kind| format!(" {runs}/*/{kind}/*")).collect();
    let kinds: String = kinds.into_iter().collect();
    format!(
        "in the top level of the repository, `git worktree repair{kinds}` tells git where they are"
    )
}
