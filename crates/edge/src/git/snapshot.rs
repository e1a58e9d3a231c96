//! A commit of what the user has changed and not committed, as the user's own `git status` has it: changes, deletions, and
//! files that are neither tracked nor ignored. Nothing of the user's is touched: git works on an index of its own, and the
//! commit is in no ref. What cannot be part of a commit is refused by name, and nothing is left out in silence but what
//! treebeam itself asks for (`treebeam.toml`, `.treebeam/`) and every `.env`.

use super::call::{Call, Seat};
use super::commit::message;
use super::lock::RepoLock;
use super::open::is_ours;
use super::taken::MOST_CHANGED;
use super::workshop::Workshop;
use super::{UserRepo, gc, place};
use crate::process::Input;
use jiff::Timestamp;
use std::fs;
use std::path::Path;
use treebeam_core::id::{Commit, RunId};
use treebeam_run::port::{CommitNote, PortError};

/// No list of paths is longer, in bytes.
const MOST_PATHS: usize = 64 << 20;
/// How many paths are named in a message.
const NAMED: usize = 10;

impl UserRepo {
    /// A commit of the working tree on top of `HEAD`; `HEAD` itself where nothing is changed. The same working tree and
    /// time give the same commit.
    ///
    /// Nothing points at the commit: a run must keep it by its root's ref. Until then a `git gc` spares it for two weeks
    /// (`gc.pruneExpire`), but a `git gc --prune=now` that begins after this call takes it.
    ///
    /// # Errors
    /// When something cannot be part of a commit, with its name; when git cannot.
    pub fn snapshot(&self, run: &RunId, at: Timestamp) -> Result<Commit, PortError> {
        let changed = self.changed()?;
        if changed.is_empty() {
            return Ok(self.head.clone());
        }
        self.must_fit(&changed)?;
        self.must_be_unfiltered(&changed)?;
        let note = CommitNote {
            title: "uncommitted changes".to_owned(),
            trailers: vec![("Treebeam-Run", run.to_string())],
            at,
        };
        self.taken_up(&changed, &note)
    }

    /// What `git status` lists. What cannot be in a commit is refused here.
    fn changed(&self) -> Result<Vec<Changed>, PortError> {
        let question = [
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            // Looking into a submodule would run what is configured there. Its files are in no worktree of a run.
            "--ignore-submodules=dirty",
        ];
        let answer = self.git.as_user(&self.toplevel, &question).keep(MOST_PATHS).done()?;
        if answer.stdout.dropped > 0 {
            return Err(refused("the working tree has too many changes", &[]));
        }
        let odd =
            |_| refused("the working tree has changed files with names that are not UTF-8", &[]);
        let text = std::str::from_utf8(&answer.stdout.bytes).map_err(odd)?;
        sort_out(text)
    }

    fn must_fit(&self, changed: &[Changed]) -> Result<(), PortError> {
        let is_large = |path: &&str| {
            let found = fs::symlink_metadata(self.toplevel.join(path));
            found.is_ok_and(|found| found.len() > MOST_CHANGED as u64)
        };
        let large: Vec<&str> =
            changed.iter().filter_map(Changed::present).filter(is_large).collect();
        if large.is_empty() {
            return Ok(());
        }
        let most = MOST_CHANGED >> 20;
        Err(refused(&format!("uncommitted files have more than {most} MiB"), &large)
            .hint("commit them yourself, or let git ignore them"))
    }

    /// What a filter makes of a file is known only to who runs it.
    fn must_be_unfiltered(&self, changed: &[Changed]) -> Result<(), PortError> {
        if self.git.filters().is_empty() {
            return Ok(());
        }
        let paths = listed(changed.iter().filter_map(Changed::present));
        let call = self.git.sealed(&self.own_seat(), &["check-attr", "-z", "--stdin", "filter"]);
        let text = call.input(paths).keep(2 * MOST_PATHS).done()?.whole()?;
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
        Err(refused("uncommitted files pass a filter, which treebeam does not run", &filtered)
            .hint("commit them yourself"))
    }

    /// The commit. Where objects are lost to a gc meanwhile, all of it is done again.
    fn taken_up(&self, changed: &[Changed], note: &CommitNote) -> Result<Commit, PortError> {
        let work = Work { repo: self, changed, note, ends: self.line_ends()? };
        for _ in 0..gc::REPEATS {
            self.outlast_gc();
            let lull = self.lull();
            match work.once() {
                Err(error) if gc::is_loss(&error.in_full()) => {}
                Ok(commit) if !self.lasts(lull) && !work.is_whole(&commit)? => {}
                other => return other,
            }
        }
        work.once()
    }

    /// Where calls about the user's files act: on the shared git folder, which knows nothing of the user's index.
    fn own_seat(&self) -> Seat {
        let plain = |path: &Path| place::plain(&path.to_string_lossy());
        Seat { git_dir: plain(&self.common_dir), work_tree: plain(&self.toplevel) }
    }

    /// How the user's git ends lines in files, as settings for a call that sees no other.
    pub(super) fn line_ends(&self) -> Result<Vec<String>, PortError> {
        let question = ["config", "-z", "--get-regexp", "^core\\.(autocrlf|eol)$"];
        let answer = self.git.as_user(&self.toplevel, &question).answer()?.whole()?;
        let settings = answer.split_terminator('\0').filter_map(|entry| entry.split_once('\n'));
        Ok(settings.flat_map(|(key, value)| ["-c".to_owned(), format!("{key}={value}")]).collect())
    }
}

/// A changed path.
#[derive(Debug, PartialEq, Eq)]
enum Changed {
    /// What is there is to be committed.
    Present(String),
    /// Nothing is there, or what is there is not to be tracked any more.
    Gone(String),
}

impl Changed {
    fn present(&self) -> Option<&str> {
        match self {
            Self::Present(path) => Some(path),
            Self::Gone(_) => None,
        }
    }
    fn gone(&self) -> Option<&str> {
        match self {
            Self::Present(_) => None,
            Self::Gone(path) => Some(path),
        }
    }
}

/// Reads `git status --porcelain=v2 -z`.
fn sort_out(status: &str) -> Result<Vec<Changed>, PortError> {
    let (mut changed, mut conflicts, mut repositories) = (Vec::new(), Vec::new(), Vec::new());
    for entry in status.split_terminator('\0') {
        match entry.split_once(' ') {
            Some(("?", path)) if path.ends_with('/') => repositories.push(path),
            Some(("?", path)) => changed.push(Changed::Present(path.to_owned())),
            Some(("u", rest)) => conflicts.extend(rest.splitn(10, ' ').nth(9)),
            Some(("1", rest)) => {
                let cells: Vec<&str> = rest.splitn(8, ' ').collect();
                let [_, submodule, _, _, mode, _, _, path] = cells.as_slice() else { continue };
                match (submodule.starts_with('S'), *mode) {
                    (true, _) => repositories.push(path),
                    (false, "000000") => changed.push(Changed::Gone((*path).to_owned())),
                    (false, _) => changed.push(Changed::Present((*path).to_owned())),
                }
            }
            _ => {}
        }
    }
    changed
        .retain(|changed| !is_left_out(changed.present().or(changed.gone()).unwrap_or_default()));
    repositories.retain(|path| !is_left_out(path));
    if !conflicts.is_empty() {
        return Err(refused("the working tree has conflicts", &conflicts)
            .hint("resolve them first, or abort the merge"));
    }
    if !repositories.is_empty() {
        return Err(refused(
            "submodules and repositories inside cannot be taken up",
            &repositories,
        )
        .hint("commit the change of a submodule yourself; let git ignore other repositories"));
    }
    Ok(changed)
}

fn is_left_out(path: &str) -> bool {
    is_ours(path) || path.rsplit('/').next() == Some(".env")
}

fn refused(why: &str, paths: &[&str]) -> PortError {
    let mut what = format!("`base_on_working_tree`: {why}");
    for path in paths.iter().take(NAMED) {
        what.push_str(&format!("\n  {}", path.escape_debug()));
    }
    if paths.len() > NAMED {
        what.push_str(&format!("\n  … and {} more", paths.len() - NAMED));
    }
    PortError::new(what)
}

/// Paths as git reads them with `-z`.
fn listed<'a>(paths: impl Iterator<Item = &'a str>) -> Input {
    Input::bytes(paths.flat_map(|path| [path, "\0"]).collect::<String>().into_bytes())
}

/// What a commit is made of.
struct Work<'a> {
    repo: &'a UserRepo,
    changed: &'a [Changed],
    note: &'a CommitNote,
    ends: Vec<String>,
}

impl Work<'_> {
    /// Makes the commit with an index that nobody else sees.
    fn once(&self) -> Result<Commit, PortError> {
        let lock = RepoLock::take(&self.repo.common_dir)?;
        let workshop = Workshop::open(&self.repo.common_dir, &lock)?;
        let index = place::plain(&workshop.file("index").to_string_lossy());
        self.call(&index, &["read-tree", self.repo.head.as_str()]).done()?;
        let before: String = self.call(&index, &["write-tree"]).done()?.word()?;
        self.update(&index, "--force-remove", self.changed.iter().filter_map(Changed::gone))?;
        self.update(&index, "--replace", self.changed.iter().filter_map(Changed::present))?;
        let tree: String = self.call(&index, &["write-tree"]).done()?.word()?;
        if tree == before { Ok(self.repo.head.clone()) } else { self.commit(&index, &tree) }
    }

    fn update<'p>(
        &self,
        index: &str,
        how: &str,
        paths: impl Iterator<Item = &'p str>,
    ) -> Result<(), PortError> {
        let ends = self.ends.iter().map(String::as_str);
        let arguments: Vec<&str> =
            ends.chain(["update-index", "--add", how, "-z", "--stdin"]).collect();
        self.call(index, &arguments).input(listed(paths)).done().map(drop)
    }

    fn commit(&self, index: &str, tree: &str) -> Result<Commit, PortError> {
        let date = format!("@{} +0000", self.note.at.as_second().max(0));
        let call =
            self.call(index, &["commit-tree", tree, "-p", self.repo.head.as_str(), "-F", "-"]);
        let call = call.envs(self.repo.identity.variables());
        let call = call.envs([("GIT_AUTHOR_DATE", &*date), ("GIT_COMMITTER_DATE", &*date)]);
        call.input(Input::bytes(message(self.note).into_bytes())).done()?.word()
    }

    fn call(&self, index: &str, arguments: &[&str]) -> Call {
        let call = self.repo.git.sealed(&self.repo.own_seat(), arguments);
        call.about("the working tree").envs([("GIT_INDEX_FILE", index)])
    }

    fn is_whole(&self, commit: &Commit) -> Result<bool, PortError> {
        let seat = self.repo.own_seat();
        let answer = gc::rev_list(self.repo, &seat, &self.repo.head, commit).answer()?;
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
        let found = sort_out(&status.concat()).unwrap_or_default();
        let present = |path: &str| Changed::Present(path.to_owned());
        assert_eq!(found, [present("a b"), Changed::Gone("gone".to_owned()), present("new/file")]);
        for (refused, word) in [
            ("u UU N... 1 2 3 4 a b c both changed\0", "\n  both changed"),
            ("? inner/\0", "\n  inner/"),
            (line(".M", "SC..", "160000", "sub").as_str(), "\n  sub"),
        ] {
            let said = sort_out(refused).map_err(|error| error.what);
            assert!(said.as_ref().is_err_and(|said| said.ends_with(word)), "{said:?}");
        }
    }
}
