//! Commits the user's uncommitted changes without touching the checkout, its index or any ref. The
//! changes are those of the user's own `git status`: changes, deletions, and files that are neither
//! tracked nor ignored. Git works on a separate index. A file that cannot be part of a commit is
//! refused by name; only treebeam's own files (`treebeam.toml`, `.treebeam/`) and every `.env` are
//! left out silently.

use super::call::{GitCall, GitTarget};
use super::commit::render_commit_message;
use super::lock::RepoLock;
use super::open::is_treebeam_file;
use super::workshop::AdminWorkshop;
use super::worktree_diff::MAX_CHANGE_BYTES;
use super::{UserRepo, gc, paths};
use jiff::Timestamp;
use std::fs;
use std::path::Path;
use treebeam_core::id::{Commit, RunId};
use treebeam_process::ChildInput;
use treebeam_run::port::{CommitNote, PortError};

/// Maximum size of a list of paths, in bytes.
const MAX_PATH_LIST_BYTES: usize = 64 << 20;
/// Maximum number of paths named in a message.
const MAX_NAMED_PATHS: usize = 10;

impl UserRepo {
    /// Returns a commit of the working tree on top of `HEAD`, or `HEAD` if nothing is changed. The
    /// same working tree and time give the same commit.
    ///
    /// No ref points at the commit: a run must keep it by its root's ref. Until then a `git gc`
    /// spares it for two weeks (`gc.pruneExpire`), but a `git gc --prune=now` that begins after
    /// this call deletes it.
    ///
    /// # Errors
    /// When a file cannot be part of a commit (the error names it), or git fails.
    pub fn snapshot_commit(&self, run: &RunId, at: Timestamp) -> Result<Commit, PortError> {
        let changed = self.list_changed_paths()?;
        if changed.is_empty() {
            return Ok(self.head.clone());
        }
        self.check_sizes(&changed)?;
        self.check_unfiltered(&changed)?;
        let note = CommitNote {
            title: "uncommitted changes".to_owned(),
            trailers: vec![("Treebeam-Run", run.to_string())],
            at,
        };
        self.commit_changes(&changed, &note)
    }

    /// Returns the paths that `git status` lists; refuses those that cannot be in a commit.
    fn list_changed_paths(&self) -> Result<Vec<ChangedPath>, PortError> {
        let question = [
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            // Looking into a submodule would run what is configured there. No worktree of a run has
            // its files.
            "--ignore-submodules=dirty",
        ];
        let answer = self
            .git
            .user_call(&self.toplevel, &question)
            .keep_stdout(MAX_PATH_LIST_BYTES)
            .run_checked()?;
        if answer.stdout.dropped > 0 {
            return Err(snapshot_refusal("the working tree has too many changes", &[]));
        }
        let odd = |_| {
            snapshot_refusal(
                "the working tree has changed files with names that are not UTF-8",
                &[],
            )
        };
        let text = std::str::from_utf8(&answer.stdout.bytes).map_err(odd)?;
        parse_status(text)
    }

    fn check_sizes(&self, changed: &[ChangedPath]) -> Result<(), PortError> {
        let is_large = |path: &&str| {
            let found = fs::symlink_metadata(self.toplevel.join(path));
            found.is_ok_and(|found| found.len() > MAX_CHANGE_BYTES as u64)
        };
        let large: Vec<&str> =
            changed.iter().filter_map(ChangedPath::present_path).filter(is_large).collect();
        if large.is_empty() {
            return Ok(());
        }
        let most = MAX_CHANGE_BYTES >> 20;
        Err(snapshot_refusal(&format!("uncommitted files have more than {most} MiB"), &large)
            .with_hint("commit them yourself, or let git ignore them"))
    }

    /// Refuses files that pass a filter: their content in a commit is unknown without running it.
    fn check_unfiltered(&self, changed: &[ChangedPath]) -> Result<(), PortError> {
        if self.git.filters().is_empty() {
            return Ok(());
        }
        let paths = path_list_input(changed.iter().filter_map(ChangedPath::present_path));
        let call =
            self.git.sealed_call(&self.user_target(), &["check-attr", "-z", "--stdin", "filter"]);
        let text =
            call.input(paths).keep_stdout(2 * MAX_PATH_LIST_BYTES).run_checked()?.full_text()?;
        let cells: Vec<&str> = text.split('\0').collect();
        let filtered = cells.chunks_exact(3).filter_map(|cells| match cells {
            [path, _, filter] if self.git.filters().iter().any(|name| name == filter) => {
                Some(*path)
            }
            _ => None,
        });
        let filtered: Vec<&str> = filtered.collect();
        if filtered.is_empty() {
            return Ok(());
        }
        Err(snapshot_refusal(
            "uncommitted files pass a filter, which treebeam does not run",
            &filtered,
        )
        .with_hint("commit them yourself"))
    }

    /// Makes the commit, and starts over if a gc deletes objects meanwhile.
    fn commit_changes(
        &self,
        changed: &[ChangedPath],
        note: &CommitNote,
    ) -> Result<Commit, PortError> {
        let work = SnapshotBuilder { repo: self, changed, note, ends: self.line_end_settings()? };
        for _ in 0..gc::MAX_GC_REPEATS {
            self.await_gc();
            let lull = self.pack_state();
            match work.try_commit() {
                Err(error) if gc::is_gc_loss(&error.full_text()) => {}
                Ok(commit) if !self.is_gc_free_since(lull) && !work.is_commit_whole(&commit)? => {}
                other => return other,
            }
        }
        work.try_commit()
    }

    /// Returns the target of calls about the user's files: the shared git folder, where the user's
    /// index is not used.
    fn user_target(&self) -> GitTarget {
        let plain = |path: &Path| paths::git_path(&path.to_string_lossy());
        GitTarget { git_dir: plain(&self.common_dir), work_tree: plain(&self.toplevel) }
    }

    /// Returns the user's settings for line ends, as arguments for a sealed call.
    pub(super) fn line_end_settings(&self) -> Result<Vec<String>, PortError> {
        let question = ["config", "-z", "--get-regexp", "^core\\.(autocrlf|eol)$"];
        let answer = self.git.user_call(&self.toplevel, &question).run()?.full_text()?;
        let settings = answer.split_terminator('\0').filter_map(|entry| entry.split_once('\n'));
        Ok(settings.flat_map(|(key, value)| ["-c".to_owned(), format!("{key}={value}")]).collect())
    }
}

/// A path with uncommitted changes.
#[derive(Debug, PartialEq, Eq)]
enum ChangedPath {
    /// Existing file whose content is to be committed.
    Present(String),
    /// Path that is to be removed: it is gone, or it is no longer tracked.
    Gone(String),
}

impl ChangedPath {
    fn present_path(&self) -> Option<&str> {
        match self {
            Self::Present(path) => Some(path),
            Self::Gone(_) => None,
        }
    }
    fn gone_path(&self) -> Option<&str> {
        match self {
            Self::Present(_) => None,
            Self::Gone(path) => Some(path),
        }
    }
}

/// Parses the output of `git status --porcelain=v2 -z`.
fn parse_status(status: &str) -> Result<Vec<ChangedPath>, PortError> {
    let (mut changed, mut conflicts, mut repositories) = (Vec::new(), Vec::new(), Vec::new());
    for entry in status.split_terminator('\0') {
        match entry.split_once(' ') {
            Some(("?", path)) if path.ends_with('/') => repositories.push(path),
            Some(("?", path)) => changed.push(ChangedPath::Present(path.to_owned())),
            Some(("u", rest)) => conflicts.extend(rest.splitn(10, ' ').nth(9)),
            Some(("1", rest)) => {
                let cells: Vec<&str> = rest.splitn(8, ' ').collect();
                let [_, submodule, _, _, mode, _, _, path] = cells.as_slice() else { continue };
                match (submodule.starts_with('S'), *mode) {
                    (true, _) => repositories.push(path),
                    (false, "000000") => changed.push(ChangedPath::Gone((*path).to_owned())),
                    (false, _) => changed.push(ChangedPath::Present((*path).to_owned())),
                }
            }
            _ => {}
        }
    }
    changed.retain(|changed| {
        !is_left_out(changed.present_path().or(changed.gone_path()).unwrap_or_default())
    });
    repositories.retain(|path| !is_left_out(path));
    if !conflicts.is_empty() {
        return Err(snapshot_refusal("the working tree has conflicts", &conflicts)
            .with_hint("resolve them first, or abort the merge"));
    }
    if !repositories.is_empty() {
        return Err(snapshot_refusal(
            "submodules and repositories inside cannot be taken up",
            &repositories,
        )
        .with_hint(
            "commit the change of a submodule yourself; let git ignore other repositories",
        ));
    }
    Ok(changed)
}

fn is_left_out(path: &str) -> bool {
    is_treebeam_file(path) || path.rsplit('/').next() == Some(".env")
}

fn snapshot_refusal(why: &str, paths: &[&str]) -> PortError {
    let mut what = format!("`base_on_working_tree`: {why}");
    for path in paths.iter().take(MAX_NAMED_PATHS) {
        what.push_str(&format!("\n  {}", path.escape_debug()));
    }
    if paths.len() > MAX_NAMED_PATHS {
        what.push_str(&format!("\n  … and {} more", paths.len() - MAX_NAMED_PATHS));
    }
    PortError::new(what)
}

/// Joins paths in the form that git reads with `-z`.
fn path_list_input<'a>(paths: impl Iterator<Item = &'a str>) -> ChildInput {
    ChildInput::from_bytes(paths.flat_map(|path| [path, "\0"]).collect::<String>().into_bytes())
}

/// Builds a commit of changed paths on top of `HEAD`.
struct SnapshotBuilder<'a> {
    repo: &'a UserRepo,
    changed: &'a [ChangedPath],
    note: &'a CommitNote,
    ends: Vec<String>,
}

impl SnapshotBuilder<'_> {
    /// Makes the commit with a private index.
    fn try_commit(&self) -> Result<Commit, PortError> {
        let lock = RepoLock::acquire(&self.repo.common_dir)?;
        let workshop = AdminWorkshop::open(&self.repo.common_dir, &lock)?;
        let index = paths::git_path(&workshop.file_path("index").to_string_lossy());
        self.git_call(&index, &["read-tree", self.repo.head.as_str()]).run_checked()?;
        let before: String = self.git_call(&index, &["write-tree"]).run_checked()?.parse_word()?;
        self.update_index(
            &index,
            "--force-remove",
            self.changed.iter().filter_map(ChangedPath::gone_path),
        )?;
        self.update_index(
            &index,
            "--replace",
            self.changed.iter().filter_map(ChangedPath::present_path),
        )?;
        let tree: String = self.git_call(&index, &["write-tree"]).run_checked()?.parse_word()?;
        if tree == before { Ok(self.repo.head.clone()) } else { self.write_commit(&index, &tree) }
    }

    fn update_index<'p>(
        &self,
        index: &str,
        how: &str,
        paths: impl Iterator<Item = &'p str>,
    ) -> Result<(), PortError> {
        let ends = self.ends.iter().map(String::as_str);
        let arguments: Vec<&str> =
            ends.chain(["update-index", "--add", how, "-z", "--stdin"]).collect();
        self.git_call(index, &arguments).input(path_list_input(paths)).run_checked().map(drop)
    }

    fn write_commit(&self, index: &str, tree: &str) -> Result<Commit, PortError> {
        let date = format!("@{} +0000", self.note.at.as_second().max(0));
        let call =
            self.git_call(index, &["commit-tree", tree, "-p", self.repo.head.as_str(), "-F", "-"]);
        let call = call.envs(self.repo.identity.variables());
        let call = call.envs([("GIT_AUTHOR_DATE", &*date), ("GIT_COMMITTER_DATE", &*date)]);
        call.input(ChildInput::from_bytes(render_commit_message(self.note).into_bytes()))
            .run_checked()?
            .parse_word()
    }

    fn git_call(&self, index: &str, arguments: &[&str]) -> GitCall {
        let call = self.repo.git.sealed_call(&self.repo.user_target(), arguments);
        call.with_subject("the working tree").envs([("GIT_INDEX_FILE", index)])
    }

    fn is_commit_whole(&self, commit: &Commit) -> Result<bool, PortError> {
        let target = self.repo.user_target();
        let answer = gc::rev_list_call(self.repo, &target, &self.repo.head, commit).run()?;
        Ok(answer.code == Some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_sorted_out() {
        let line = |xy: &str, sub: &str, mode: &str, path: &str| {
            format!("1 {xy} {sub} 100644 100644 {mode} aaa bbb {path}\0")
        };
        let status = [
            line(".M", "N...", "100644", "a b"),
            line("D.", "N...", "000000", "gone"),
            line(".M", "N...", "100644", ".env"),
            "? new/.env\0? treebeam.toml\0? .treebeam/x\0? new/file\0".to_owned(),
        ];
        let found = parse_status(&status.concat()).unwrap_or_default();
        let present = |path: &str| ChangedPath::Present(path.to_owned());
        assert_eq!(
            found,
            [present("a b"), ChangedPath::Gone("gone".to_owned()), present("new/file")]
        );
        for (refused, word) in [
            ("u UU N... 1 2 3 4 a b c both changed\0", "\n  both changed"),
            ("? inner/\0", "\n  inner/"),
            (line(".M", "SC..", "160000", "sub").as_str(), "\n  sub"),
        ] {
            let said = parse_status(refused).map_err(|error| error.what);
            assert!(said.as_ref().is_err_and(|said| said.ends_with(word)), "{said:?}");
        }
    }
}
