//! Moves the user's own checkout from one commit to another, only for `eval --in-place`. Only paths
//! that differ between the two are touched, and each must have the content of one of the two:
//! anything else is the user's, and is refused by name. Every path changes in one step, so that the
//! next switch completes one that was interrupted at any moment. It ends with a detached `HEAD`;
//! branches, stash and hooks stay as they are. Paths that do not differ are not checked.

use super::call::{GitCall, GitTarget};
use super::lock::{self, RepoLock};
use super::stale_locks;
use super::switch_files::{PathDifference, PathVersion, SwitchFiles};
use super::{UserRepo, paths};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use treebeam_core::id::{Commit, RunId};
use treebeam_run::port::PortError;

/// Maximum size of a list of paths, in bytes.
const MAX_PATH_LIST_BYTES: usize = 64 << 20;
/// Maximum number of paths named in a message.
const MAX_NAMED_PATHS: usize = 10;
/// Content of our lock of the user's index. A lock with another content is not ours.
const INDEX_LOCK_TEXT: &str = "treebeam is switching this checkout\n";

impl UserRepo {
    /// Returns the commit that is checked out now.
    ///
    /// # Errors
    /// When git fails.
    pub fn checked_out_commit(&self) -> Result<Commit, PortError> {
        let arguments = ["rev-parse", "--verify", "HEAD^{commit}"];
        self.git.user_call(&self.toplevel, &arguments).run_checked()?.parse_word()
    }

    /// Switches the checkout to a commit of a run, from the run's root or another commit of that
    /// run.
    ///
    /// # Errors
    /// When something else is checked out, a file of the user's is in the way, or git fails.
    pub fn switch_to_run_commit(
        &self,
        run: &RunId,
        root: &Commit,
        to: &Commit,
    ) -> Result<(), PortError> {
        let from = self.checked_out_commit()?;
        if from != *to && from != *root && !self.is_commit_of_run(run, &from)? {
            let top = self.toplevel.display();
            return Err(PortError::new(format!(
                "`{top}` is at commit {from}, which is not of the run `{run}`"
            ))
            .with_hint(format!("`git switch --detach {root}` there, then resume the run")));
        }
        self.switch_checkout(&from, to)
    }

    fn is_commit_of_run(&self, run: &RunId, commit: &Commit) -> Result<bool, PortError> {
        let arguments = ["cat-file", "commit", commit.as_str()];
        let text = self.git.user_call(&self.toplevel, &arguments).run_checked()?.kept_text();
        Ok(text.lines().any(|line| line.strip_prefix("Treebeam-Run: ") == Some(run.as_str())))
    }

    /// Switches the checkout from one commit to another; done already if the second is checked out.
    ///
    /// # Errors
    /// When neither is checked out, a file has the content of neither, or git fails. Nothing of the
    /// user's is lost then.
    pub fn switch_checkout(&self, from: &Commit, to: &Commit) -> Result<(), PortError> {
        let _lock = RepoLock::acquire(&self.common_dir)?;
        let arguments = ["rev-parse", "--absolute-git-dir"];
        let git_dir: String =
            self.git.user_call(&self.toplevel, &arguments).run_checked()?.parse_word()?;
        // A git that outlived its parent process may still write files that are rewritten below.
        lock::await_worktree_git(Path::new(&git_dir))?;
        let work_tree = paths::git_path(&self.toplevel.to_string_lossy());
        let target = GitTarget { git_dir: paths::git_path(&git_dir), work_tree };
        let switch =
            CheckoutSwitch { user: self, target, from, to, ends: self.line_end_settings()? };
        switch.run()
    }
}

/// A switch in progress.
struct CheckoutSwitch<'a> {
    user: &'a UserRepo,
    target: GitTarget,
    from: &'a Commit,
    to: &'a Commit,
    ends: Vec<String>,
}

impl CheckoutSwitch<'_> {
    fn run(&self) -> Result<(), PortError> {
        let index = IndexLock::acquire(&self.target.git_dir)?;
        stale_locks::remove_ref_lock(&Path::new(&self.target.git_dir).join("HEAD.lock"))?;
        let head = self.user.checked_out_commit()?;
        if head == *self.to {
            return self.clean_up();
        }
        if head != *self.from {
            let top = self.user.toplevel.display();
            let what = format!("`{top}` is at commit {head}, and not at {}", self.from);
            return Err(PortError::new(what).with_hint(format!(
                "`git switch --detach {}` there, then resume the run",
                self.from
            )));
        }
        self.check_no_hidden_files()?;
        let files = self.switch_files(self.list_differences()?);
        self.fill_staging(&files)?;
        self.check_no_foreign_files(&files)?;
        files.move_all()?;
        self.replace_index(&index)?;
        self.update_head()?;
        self.clean_up()
    }

    /// Removes all temporary files of a switch.
    fn clean_up(&self) -> Result<(), PortError> {
        lock::remove_locked_input(&self.target.git_dir);
        self.switch_files(Vec::new()).remove_staging()
    }

    fn switch_files(&self, differences: Vec<PathDifference>) -> SwitchFiles {
        SwitchFiles { top: PathBuf::from(&self.target.work_tree), differences }
    }

    fn git_call(&self, arguments: &[&str]) -> GitCall {
        self.user.git.sealed_call(&self.target, arguments).with_subject("your checkout")
    }

    /// Refuses files that git is configured not to look at: they cannot be compared.
    fn check_no_hidden_files(&self) -> Result<(), PortError> {
        let text = self
            .git_call(&["ls-files", "-v", "-z"])
            .keep_stdout(MAX_PATH_LIST_BYTES)
            .run_checked()?
            .full_text()?;
        let is_marked = |entry: &&str| entry.starts_with(|c: char| c == 'S' || c.is_lowercase());
        let marked = text.split_terminator('\0').filter(is_marked);
        let marked: Vec<&str> = marked.filter_map(|entry| entry.get(2..)).collect();
        if marked.is_empty() {
            return Ok(());
        }
        let why =
            "git is told not to look at files of your checkout (sparse or `assume-unchanged`)";
        Err(switch_refusal(why, &marked).with_hint("leave out `--in-place`"))
    }

    /// Returns the paths that differ between the two commits.
    fn list_differences(&self) -> Result<Vec<PathDifference>, PortError> {
        let arguments = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"];
        let trees = [self.from.as_str(), self.to.as_str()];
        let call = self.git_call(&[arguments.as_slice(), &trees].concat());
        let text = call.keep_stdout(MAX_PATH_LIST_BYTES).run_checked()?.full_text()?;
        let cells: Vec<&str> = text.split_terminator('\0').collect();
        let read = |cells: &[&str]| match cells {
            [raw, path] => PathDifference::parse(raw, path),
            _ => None,
        };
        let odd = || PortError::new("`git diff-tree` said something unexpected");
        let found: Option<Vec<PathDifference>> = cells.chunks(2).map(read).collect();
        let found = found.ok_or_else(odd)?;
        let modules: Vec<&str> = found.iter().filter_map(PathDifference::submodule_path).collect();
        if modules.is_empty() {
            Ok(found)
        } else {
            Err(switch_refusal("submodules differ", &modules))
        }
    }

    /// Lets git write both versions of each path to the staging folders, for comparing and moving.
    fn fill_staging(&self, files: &SwitchFiles) -> Result<(), PortError> {
        files.make_staging()?;
        for version in [PathVersion::Old, PathVersion::New] {
            let folder = files.staging_folder(version);
            let index = paths::git_path(&folder.with_extension("index").to_string_lossy());
            let listed = files.index_info(version);
            self.run_writing_call(
                &["update-index", "--add", "-z", "--index-info"],
                &index,
                &listed,
            )?;
            let prefix = format!("--prefix={}/", paths::git_path(&folder.to_string_lossy()));
            let ends = self.ends.iter().map(String::as_str);
            let arguments: Vec<&str> =
                ends.chain(["checkout-index", "--all", "--force", "--quiet", &prefix]).collect();
            self.run_writing_call(&arguments, &index, &[])?;
        }
        files.sync_checkout()
    }

    /// Runs a call that writes, with this index.
    fn run_writing_call(
        &self,
        arguments: &[&str],
        index: &str,
        input: &[u8],
    ) -> Result<(), PortError> {
        let call = self.git_call(arguments).envs([("GIT_INDEX_FILE", index)]);
        call.input(lock::write_locked_input(&self.target.git_dir, input)?).run_checked().map(drop)
    }

    fn check_no_foreign_files(&self, files: &SwitchFiles) -> Result<(), PortError> {
        let foreign = files.list_foreign_paths()?;
        if foreign.is_empty() {
            return Ok(());
        }
        let foreign: Vec<&str> = foreign.iter().map(String::as_str).collect();
        let why = format!("files are in the way of commit {}", self.to);
        Err(switch_refusal(&why, &foreign)
            .with_hint("move them away or put them back, then resume the run"))
    }

    /// Installs an index in which the differing paths are replaced and all others are kept.
    fn replace_index(&self, index: &IndexLock) -> Result<(), PortError> {
        let own = index.new_index_path();
        let copied =
            paths::remove_path(&own).and_then(|()| fs::copy(index.index_path(), &own).map(drop));
        copied.map_err(|error| PortError::new("your index cannot be copied").with_cause(error))?;
        let name = paths::git_path(&own.to_string_lossy());
        let trees = [self.from.as_str(), self.to.as_str()];
        self.run_writing_call(
            &[["read-tree", "-i", "-m"].as_slice(), &trees].concat(),
            &name,
            &[],
        )?;
        let refresh = self.git_call(&["update-index", "-q", "--refresh"]);
        // A path that still needs an update was changed by the user, and `git status` shows it.
        refresh
            .envs([("GIT_INDEX_FILE", &*name)])
            .input(lock::write_locked_input(&self.target.git_dir, &[])?)
            .run()?;
        index.install_index()
    }

    /// Points `HEAD` at the commit, with a reflog message that makes `git switch -` work.
    fn update_head(&self) -> Result<(), PortError> {
        let name = self.git_call(&["symbolic-ref", "--short", "--quiet", "HEAD"]).run()?;
        let name = name.kept_text();
        let name = Some(name.trim()).filter(|name| !name.is_empty());
        let from = name.unwrap_or(self.from.as_str());
        let message = format!("checkout: moving from {from} to {}", self.to);
        let arguments = ["update-ref", "--no-deref", "-m", &message, "HEAD"];
        let commits = [self.to.as_str(), self.from.as_str()];
        let call = self.git_call(&[arguments.as_slice(), &commits].concat());
        let pointed =
            call.input(lock::write_locked_input(&self.target.git_dir, &[])?).run_checked();
        match pointed {
            // A git that was killed after the update is run again and finds it done.
            Err(_) if self.user.checked_out_commit()? == *self.to => Ok(()),
            other => other.map(drop),
        }
    }
}

fn switch_refusal(why: &str, paths: &[&str]) -> PortError {
    let mut what = format!("your checkout cannot be switched: {why}:");
    for path in paths.iter().take(MAX_NAMED_PATHS) {
        what.push_str(&format!("\n  {}", path.escape_debug()));
    }
    if paths.len() > MAX_NAMED_PATHS {
        what.push_str(&format!("\n  … and {} more", paths.len() - MAX_NAMED_PATHS));
    }
    PortError::new(what)
}

/// Lock that keeps the user's own git from writing the index. It is created atomically, with a
/// content by which one that was left behind is recognised.
struct IndexLock {
    git_dir: PathBuf,
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // A lock that stays is recognised by its content.
        drop(paths::remove_path(&self.lock_path()));
    }
}

impl IndexLock {
    fn acquire(git_dir: &str) -> Result<Self, PortError> {
        let lock = Self { git_dir: PathBuf::from(git_dir) };
        match lock.create_lock_file() {
            Ok(()) => Ok(lock),
            Err(error) => {
                let path = lock.lock_path();
                // This lock is not ours to remove.
                std::mem::forget(lock);
                let what = format!("your index is locked: `{}`", path.display());
                let hint = "let your own git end; if none is at work, delete that file";
                Err(PortError::new(what).with_hint(hint).with_cause(error))
            }
        }
    }

    fn create_lock_file(&self) -> io::Result<()> {
        if fs::read_to_string(self.lock_path()).is_ok_and(|text| text == INDEX_LOCK_TEXT) {
            paths::remove_path(&self.lock_path())?;
        }
        let words = self.git_dir.join("treebeam.words");
        paths::remove_path(&words)?;
        let mut file = fs::File::create(&words)?;
        file.write_all(INDEX_LOCK_TEXT.as_bytes())?;
        file.sync_all()?;
        let linked = fs::hard_link(&words, self.lock_path());
        paths::remove_path(&words)?;
        linked
    }

    fn lock_path(&self) -> PathBuf {
        self.git_dir.join("index.lock")
    }
    fn index_path(&self) -> PathBuf {
        self.git_dir.join("index")
    }
    /// Returns the path of the new index, beside the present one.
    fn new_index_path(&self) -> PathBuf {
        self.git_dir.join("treebeam.index")
    }

    fn install_index(&self) -> Result<(), PortError> {
        let put = || {
            fs::File::options().write(true).open(self.new_index_path())?.sync_all()?;
            fs::rename(self.new_index_path(), self.index_path())
        };
        put().map_err(|error| PortError::new("your index cannot be written").with_cause(error))
    }
}
