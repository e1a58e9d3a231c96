//! Doctor checks of other runs: unreadable runs, failed removals, and misplaced worktrees.
//!
//! Misplaced worktrees are not where git looks for them. Everything is only reported.

use super::DoctorCheck;
use crate::command::clean::orphan_state::OrphanState;
use crate::resume_command;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use treebeam_core::facts::RemovalState;
use treebeam_core::id::RunId;
use treebeam_git::{OrphanedWorktree, UserRepo};
use treebeam_store::{RunDir, inbox};

const LEFTOVERS_SUBJECT: &str = "leftovers";

pub(super) fn check_leftovers(repo: &UserRepo, runs_root: &Path) -> Vec<DoctorCheck> {
    let runs = treebeam_store::list_runs(runs_root).unwrap_or_default();
    let mut checks: Vec<DoctorCheck> =
        runs.iter().filter_map(|id| check_run(runs_root, id)).collect();
    checks.extend(
        runs.iter()
            .filter_map(|id| check_refused_messages(&RunDir::from_run_id(runs_root, id), id)),
    );
    checks.extend(check_orphans(repo, runs_root));
    if checks.is_empty() {
        checks.push(DoctorCheck::ok(LEFTOVERS_SUBJECT, "none"));
    }
    checks
}

fn check_run(runs_root: &Path, id: &RunId) -> Option<DoctorCheck> {
    let opened = match treebeam_store::open_to_read(&RunDir::from_run_id(runs_root, id)) {
        Ok(opened) => opened,
        Err(error) => {
            let says = format!("run `{id}` cannot be read: {error}");
            return Some(DoctorCheck::warning(
                LEFTOVERS_SUBJECT,
                says,
                format!("see `treebeam validate {id}`"),
            ));
        }
    };
    let deferred = |removal: &&RemovalState| matches!(removal, RemovalState::Deferred { .. });
    let count = opened.state.leftovers.values().filter(deferred).count();
    let says = format!("run `{id}` could not remove {count} of its leftovers yet");
    let todo = format!("`treebeam clean {id}` tries again");
    (count > 0).then(|| DoctorCheck::warning(LEFTOVERS_SUBJECT, says, todo))
}

/// Reports messages that a run refused, without reading them.
fn check_refused_messages(run: &RunDir, id: &RunId) -> Option<DoctorCheck> {
    let count = inbox::count_refused(run);
    let messages = if count == 1 { "1 message".to_owned() } else { format!("{count} messages") };
    let says = format!("run `{id}` has set {messages} aside");
    let todo = "its `inbox/refused/` has them, each with the reason; remove what you have seen";
    (count > 0).then(|| DoctorCheck::warning(LEFTOVERS_SUBJECT, says, todo))
}

/// Reports worktrees that are not where git looks for them.
fn check_orphans(repo: &UserRepo, runs_root: &Path) -> Vec<DoctorCheck> {
    let (mut gone, mut moved, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = Vec::new();
    for orphan in repo.list_orphaned_worktrees().unwrap_or_default() {
        match OrphanState::find(&orphan, repo, runs_root) {
            OrphanState::Gone => gone.push(orphan),
            OrphanState::Unknown => unknown.push(orphan),
            OrphanState::Moved(folder) => {
                moved.push(orphan);
                now.push(folder);
            }
        }
    }
    let told = [
        describe_orphans(&gone, "git knows", "of runs that are gone")
            .map(|says| (says, "`treebeam clean` removes what it knows of them".to_owned())),
        describe_orphans(&moved, "git looks for", "of runs where they were before they were moved")
            .map(|says| (says, render_repair_hint(repo, runs_root, &now))),
        describe_orphans(&unknown, "git knows", "of runs in a folder that is not there").map(
            |says| (says, "mount the disk that they are on, or see `treebeam clean`".to_owned()),
        ),
    ];
    told.into_iter()
        .flatten()
        .map(|(says, todo)| DoctorCheck::warning(LEFTOVERS_SUBJECT, says, todo))
        .collect()
}

fn describe_orphans(orphans: &[OrphanedWorktree], knows: &str, which: &str) -> Option<String> {
    let OrphanedWorktree { run, place, .. } = orphans.first()?;
    let worktrees = match orphans.len() {
        1 => "1 worktree".to_owned(),
        many => format!("{many} worktrees"),
    };
    Some(format!("{knows} {worktrees} {which}, `{run} {place}` first"))
}

/// Renders the command that tells git the new places of worktrees.
fn render_repair_hint(repo: &UserRepo, runs_root: &Path, now: &[PathBuf]) -> String {
    let runs = runs_root.strip_prefix(&repo.toplevel).unwrap_or(runs_root);
    let runs = resume_command::shell_word(&runs.to_string_lossy());
    let kinds = now.iter().filter_map(|folder| folder.parent()?.file_name()?.to_str());
    let kinds: BTreeSet<String> = kinds.map(|kind| format!(" {runs}/*/{kind}/*")).collect();
    let kinds: String = kinds.into_iter().collect();
    format!(
        "in the top level of the repository, `git worktree repair{kinds}` tells git where they are"
    )
}
