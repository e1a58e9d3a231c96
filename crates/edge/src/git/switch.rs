//! Moves the user's own checkout from one commit to another, for `eval --in-place` alone. Only paths that differ between the
//! two are touched, and each of them must have the content of one of the two: anything else is the user's, and is refused
//! by name. Every path changes in one step, so that a switch that was cut off at any moment is finished by the next one.
//! It ends with a detached `HEAD`; branches, stash and hooks are left alone. It does not look at what does not differ.

use super::call::{Call, Seat};
use super::lock::{self, RepoLock};
use super::stale;
use super::switching::{Difference, Files, Standing};
use super::{UserRepo, place};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use treebeam_core::id::{Commit, RunId};
use treebeam_run::port::PortError;

/// No list of paths is longer, in bytes.
const MOST_PATHS: usize = 64 << 20;
/// How many paths are named in a message.
const NAMED: usize = 10;
/// What the user's index is locked with. A lock with other words in it is somebody else's.
const OURS: &str = "treebeam is switching this checkout\n";

impl UserRepo {
    /// The commit that is checked out now.
    ///
    /// # Errors
    /// When git cannot tell.
    pub fn checked_out(&self) -> Result<Commit, PortError> {
        let arguments = ["rev-parse", "--verify", "HEAD^{commit}"];
        self.git.as_user(&self.toplevel, &arguments).done()?.word()
    }

    /// Switches the checkout to a commit of a run, from the run's root or from another commit of that run.
    ///
    /// # Errors
    /// When something else is checked out, when a file of the user's is in the way, or when git cannot.
    pub fn bring(&self, run: &RunId, root: &Commit, to: &Commit) -> Result<(), PortError> {
        let from = self.checked_out()?;
        if from != *to && from != *root && !self.is_of(run, &from)? {
            let top = self.toplevel.display();
            return Err(PortError::new(format!(
                "`{top}` is at commit {from}, which is not of the run `{run}`"
            ))
            .hint(format!("`git switch --detach {root}` there, then resume the run")));
        }
        self.switch(&from, to)
    }

    fn is_of(&self, run: &RunId, commit: &Commit) -> Result<bool, PortError> {
        let arguments = ["cat-file", "commit", commit.as_str()];
        let text = self.git.as_user(&self.toplevel, &arguments).done()?.beginning();
        Ok(text.lines().any(|line| line.strip_prefix("Treebeam-Run: ") == Some(run.as_str())))
    }

    /// Switches the checkout from one commit to another. Where the second is checked out, it is done already.
    ///
    /// # Errors
    /// When neither is checked out, when a file is of neither, or when git cannot. Nothing of the user's is lost then.
    pub fn switch(&self, from: &Commit, to: &Commit) -> Result<(), PortError> {
        let _lock = RepoLock::take(&self.common_dir)?;
        let arguments = ["rev-parse", "--absolute-git-dir"];
        let git_dir: String = self.git.as_user(&self.toplevel, &arguments).done()?.word()?;
        // A git that outlived its runner writes what is about to be made anew.
        lock::outlast(Path::new(&git_dir))?;
        let work_tree = place::plain(&self.toplevel.to_string_lossy());
        let seat = Seat { git_dir: place::plain(&git_dir), work_tree };
        let switch = Switch { user: self, seat, from, to, ends: self.line_ends()? };
        switch.run()
    }
}

/// A switch under way.
struct Switch<'a> {
    user: &'a UserRepo,
    seat: Seat,
    from: &'a Commit,
    to: &'a Commit,
    ends: Vec<String>,
}

impl Switch<'_> {
    fn run(&self) -> Result<(), PortError> {
        let index = IndexLock::take(&self.seat.git_dir)?;
        stale::remove_ref_lock(&Path::new(&self.seat.git_dir).join("HEAD.lock"))?;
        let head = self.user.checked_out()?;
        if head == *self.to {
            return self.clear();
        }
        if head != *self.from {
            let top = self.user.toplevel.display();
            let what = format!("`{top}` is at commit {head}, and not at {}", self.from);
            return Err(PortError::new(what)
                .hint(format!("`git switch --detach {}` there, then resume the run", self.from)));
        }
        self.must_be_seen_whole()?;
        let files = self.files(self.differences()?);
        self.fill(&files)?;
        self.must_be_free(&files)?;
        files.put()?;
        self.put_index(&index)?;
        self.point()?;
        self.clear()
    }

    /// Removes all that was needed on the way.
    fn clear(&self) -> Result<(), PortError> {
        lock::clear(&self.seat.git_dir);
        self.files(Vec::new()).clear()
    }

    fn files(&self, differences: Vec<Difference>) -> Files {
        Files { top: PathBuf::from(&self.seat.work_tree), differences }
    }

    fn call(&self, arguments: &[&str]) -> Call {
        self.user.git.sealed(&self.seat, arguments).about("your checkout")
    }

    /// Git does not look at files that are marked so, and neither can we.
    fn must_be_seen_whole(&self) -> Result<(), PortError> {
        let text = self.call(&["ls-files", "-v", "-z"]).keep(MOST_PATHS).done()?.whole()?;
        let is_marked = |entry: &&str| entry.starts_with(|c: char| c == 'S' || c.is_lowercase());
        let marked = text.split_terminator('\0').filter(is_marked);
        let marked: Vec<&str> = marked.filter_map(|entry| entry.get(2..)).collect();
        if marked.is_empty() {
            return Ok(());
        }
        let why =
            "git is told not to look at files of your checkout (sparse or `assume-unchanged`)";
        Err(refused(why, &marked).hint("leave out `--in-place`"))
    }

    /// What differs between the two commits.
    fn differences(&self) -> Result<Vec<Difference>, PortError> {
        let arguments = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"];
        let trees = [self.from.as_str(), self.to.as_str()];
        let call = self.call(&[arguments.as_slice(), &trees].concat());
        let text = call.keep(MOST_PATHS).done()?.whole()?;
        let cells: Vec<&str> = text.split_terminator('\0').collect();
        let read = |cells: &[&str]| match cells {
            [raw, path] => Difference::read(raw, path),
            _ => None,
        };
        let odd = || PortError::new("`git diff-tree` said something unexpected");
        let found: Option<Vec<Difference>> = cells.chunks(2).map(read).collect();
        let found = found.ok_or_else(odd)?;
        let modules: Vec<&str> = found.iter().filter_map(Difference::submodule).collect();
        if modules.is_empty() { Ok(found) } else { Err(refused("submodules differ", &modules)) }
    }

    /// Lets git write both versions of each path where they can be compared with, and moved from.
    fn fill(&self, files: &Files) -> Result<(), PortError> {
        files.make_staging()?;
        for version in [Standing::Old, Standing::New] {
            let folder = files.staging(version);
            let index = place::plain(&folder.with_extension("index").to_string_lossy());
            let listed = files.listed(version);
            self.write(&["update-index", "--add", "-z", "--index-info"], &index, &listed)?;
            let prefix = format!("--prefix={}/", place::plain(&folder.to_string_lossy()));
            let ends = self.ends.iter().map(String::as_str);
            let arguments: Vec<&str> =
                ends.chain(["checkout-index", "--all", "--force", "--quiet", &prefix]).collect();
            self.write(&arguments, &index, &[])?;
        }
        files.sync()
    }

    /// A call that writes, with this index.
    fn write(&self, arguments: &[&str], index: &str, input: &[u8]) -> Result<(), PortError> {
        let call = self.call(arguments).envs([("GIT_INDEX_FILE", index)]);
        call.input(lock::held(&self.seat.git_dir, input)?).done().map(drop)
    }

    fn must_be_free(&self, files: &Files) -> Result<(), PortError> {
        let foreign = files.foreign()?;
        if foreign.is_empty() {
            return Ok(());
        }
        let foreign: Vec<&str> = foreign.iter().map(String::as_str).collect();
        let why = format!("files are in the way of commit {}", self.to);
        Err(refused(&why, &foreign).hint("move them away or put them back, then resume the run"))
    }

    /// Puts an index in place that has what differs as it is now, and all else as it was.
    fn put_index(&self, index: &IndexLock) -> Result<(), PortError> {
        let own = index.own();
        let copied = place::remove(&own).and_then(|()| fs::copy(index.index(), &own).map(drop));
        copied.map_err(|error| PortError::new("your index cannot be copied").caused_by(error))?;
        let name = place::plain(&own.to_string_lossy());
        let trees = [self.from.as_str(), self.to.as_str()];
        self.write(&[["read-tree", "-i", "-m"].as_slice(), &trees].concat(), &name, &[])?;
        let refresh = self.call(&["update-index", "-q", "--refresh"]);
        // What needs an update is changed by somebody, who is told by `git status`.
        refresh
            .envs([("GIT_INDEX_FILE", &*name)])
            .input(lock::held(&self.seat.git_dir, &[])?)
            .answer()?;
        index.put()
    }

    /// Lets `HEAD` point at the commit, in words with which `git switch -` finds back.
    fn point(&self) -> Result<(), PortError> {
        let name = self.call(&["symbolic-ref", "--short", "--quiet", "HEAD"]).answer()?;
        let name = name.beginning();
        let name = Some(name.trim()).filter(|name| !name.is_empty());
        let from = name.unwrap_or(self.from.as_str());
        let message = format!("checkout: moving from {from} to {}", self.to);
        let arguments = ["update-ref", "--no-deref", "-m", &message, "HEAD"];
        let commits = [self.to.as_str(), self.from.as_str()];
        let call = self.call(&[arguments.as_slice(), &commits].concat());
        let pointed = call.input(lock::held(&self.seat.git_dir, &[])?).done();
        match pointed {
            // A git that was killed after it had done so is run again, and finds it done.
            Err(_) if self.user.checked_out()? == *self.to => Ok(()),
            other => other.map(drop),
        }
    }
}

fn refused(why: &str, paths: &[&str]) -> PortError {
    let mut what = format!("your checkout cannot be switched: {why}:");
    for path in paths.iter().take(NAMED) {
        what.push_str(&format!("\n  {}", path.escape_debug()));
    }
    if paths.len() > NAMED {
        what.push_str(&format!("\n  … and {} more", paths.len() - NAMED));
    }
    PortError::new(what)
}

/// The lock that keeps the user's own git from writing the index meanwhile. It is put there whole, with words by which one
/// that was left behind is known.
struct IndexLock {
    git_dir: PathBuf,
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // One that stays is known by its words.
        drop(place::remove(&self.lock()));
    }
}

impl IndexLock {
    fn take(git_dir: &str) -> Result<Self, PortError> {
        let lock = Self { git_dir: PathBuf::from(git_dir) };
        match lock.put_there() {
            Ok(()) => Ok(lock),
            Err(error) => {
                let path = lock.lock();
                // Not ours to remove.
                std::mem::forget(lock);
                let what = format!("your index is locked: `{}`", path.display());
                let hint = "let your own git end; if none is at work, delete that file";
                Err(PortError::new(what).hint(hint).caused_by(error))
            }
        }
    }

    fn put_there(&self) -> io::Result<()> {
        if fs::read_to_string(self.lock()).is_ok_and(|text| text == OURS) {
            place::remove(&self.lock())?;
        }
        let words = self.git_dir.join("treebeam.words");
        place::remove(&words)?;
        let mut file = fs::File::create(&words)?;
        file.write_all(OURS.as_bytes())?;
        file.sync_all()?;
        let linked = fs::hard_link(&words, self.lock());
        place::remove(&words)?;
        linked
    }

    fn lock(&self) -> PathBuf {
        self.git_dir.join("index.lock")
    }
    fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }
    /// The index that is made, beside the one that is there.
    fn own(&self) -> PathBuf {
        self.git_dir.join("treebeam.index")
    }

    fn put(&self) -> Result<(), PortError> {
        let put = || {
            fs::File::options().write(true).open(self.own())?.sync_all()?;
            fs::rename(self.own(), self.index())
        };
        put().map_err(|error| PortError::new("your index cannot be written").caused_by(error))
    }
}
