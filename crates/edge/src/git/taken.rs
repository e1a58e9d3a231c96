//! What somebody who worked in a worktree has made of it: what git says, whatever was said about it. The index that it is
//! compared with is copied before, and git is then led from its own folder, so that nothing that was done to the worktree
//! or to its `.git` leads elsewhere. It does not judge a change, and it commits nothing.

use super::call::{Answer, Call, Seat};
use super::sight::Sight;
use super::worktree::Worktree;
use super::{GitRepo, gc, place, used};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use tempfile::TempPath;
use treebeam_core::id::Place;
use treebeam_run::port::{Applied, PortError};

/// No change is larger, in bytes: neither the files that it touches nor its diff.
pub const MOST_CHANGED: usize = 16 << 20;
/// What the names of copied indexes begin with.
pub(super) const INDEX: &str = "index-";
/// No list of paths is longer, in bytes.
const MOST_PATHS: usize = 64 << 20;

/// A worktree as it was before somebody worked in it.
#[derive(Debug)]
pub struct Before {
    place: Place,
    worktree: Worktree,
    /// What was in its index.
    tree: String,
    /// A copy of that index, which knows the files by their times. No two have the same name: another process may have
    /// the run, and look at the same worktree, before this one is done.
    index: TempPath,
}

/// A worktree as it was before somebody looked at it who should leave it as it is.
#[derive(Debug)]
pub struct Looked {
    place: Place,
    worktree: Worktree,
    /// What was there, where all of it could be seen.
    sight: Option<Sight>,
}

/// What became of a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The change, as a diff that git applies; empty where there is none.
    Diff(String),
    /// Something that cannot be a change, and why.
    Unusable(String),
}

impl GitRepo {
    /// Remembers a worktree before somebody works in it.
    ///
    /// # Errors
    /// When there is none, or git cannot.
    pub fn before(&self, place: Place) -> Result<Before, PortError> {
        let worktree = self.find(place)?;
        let index = copied(&Path::new(&worktree.seat.git_dir).join("index"), &self.run_dir);
        let index = index.map_err(|error| {
            PortError::new(format!("the index of {place} cannot be copied")).caused_by(error)
        })?;
        self.user.outlast_gc();
        let write = self.user.git.sealed(&worktree.seat, &["write-tree"]).about(place);
        let tree = write.done()?.word()?;
        Ok(Before { place, worktree, tree, index })
    }

    /// Removes what a process that was killed while somebody worked has left of [`Self::before`].
    pub fn clear_before(&self) {
        let entries = fs::read_dir(&self.run_dir).into_iter().flatten().flatten();
        let ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(INDEX);
        // They are in nobody's way.
        entries.filter(ours).for_each(|entry| drop(place::remove(&entry.path())));
    }

    /// What the worktree has become since: all that git does not ignore, but for what fits these patterns.
    ///
    /// # Errors
    /// When git cannot tell, for a reason that is not in the worktree.
    pub fn taken(&self, before: &Before, but: &[&str]) -> Result<Taken, PortError> {
        if let Err(error) = self.find(before.place) {
            return Ok(Taken::Unusable(format!("the worktree is not there any more: {error}")));
        }
        let look = Look { repo: self, before, but };
        for _ in 0..gc::REPEATS {
            self.user.outlast_gc();
            match look.once() {
                Err(error) if gc::is_loss(&error.in_full()) => {}
                other => return other,
            }
        }
        look.once()
    }

    /// Makes the worktree what it was.
    ///
    /// # Errors
    /// When git cannot.
    pub fn put_back(&self, before: &Before) -> Result<(), PortError> {
        self.restore(before.place, &before.worktree)
    }

    /// Remembers a worktree, and git's own folder for it, before somebody looks at it.
    ///
    /// # Errors
    /// When there is none, or it cannot be noted that somebody does.
    pub fn look(&self, place: Place) -> Result<Looked, PortError> {
        let worktree = self.find(place)?;
        let Seat { git_dir, work_tree } = &worktree.seat;
        used::begin(place, Path::new(git_dir))?;
        let sight = Sight::of(vec![work_tree.into(), git_dir.into()]).ok();
        Ok(Looked { place, worktree, sight })
    }

    /// Makes the worktree what it was, where it is not.
    ///
    /// # Errors
    /// When git cannot.
    pub fn leave(&self, looked: &Looked) -> Result<(), PortError> {
        let there = self.find(looked.place).is_ok();
        if there && looked.sight.as_ref().is_some_and(Sight::is_same) {
            return used::end(Path::new(&looked.worktree.seat.git_dir));
        }
        self.restore(looked.place, &looked.worktree)
    }

    fn restore(&self, place: Place, worktree: &Worktree) -> Result<(), PortError> {
        let Worktree { base, applied, .. } = worktree;
        self.make(place, base)?;
        applied.iter().try_for_each(|diff| match self.apply_diff(place, diff)? {
            Applied::Cleanly => Ok(()),
            Applied::Refused(why) => {
                let what = format!("the worktree of {place} cannot be put back");
                Err(PortError::new(format!("{what}: {why}")))
            }
        })
    }
}

/// A copy of an index, in this folder. It goes when nobody needs it any more.
fn copied(index: &Path, folder: impl AsRef<Path>) -> io::Result<TempPath> {
    let mut original = File::open(index)?;
    let mut copy = tempfile::Builder::new().prefix(INDEX).tempfile_in(folder)?;
    io::copy(&mut original, &mut copy)?;
    // Git looks into files that are no older than the index: a newer copy would let it overlook an edit that came in the
    // same moment as the checkout.
    copy.as_file().set_modified(original.metadata()?.modified()?)?;
    Ok(copy.into_temp_path())
}

/// A look at what became of a worktree, with an index of its own.
struct Look<'a> {
    repo: &'a GitRepo,
    before: &'a Before,
    but: &'a [&'a str],
}

impl Look<'_> {
    fn once(&self) -> Result<Taken, PortError> {
        let index = copied(&self.before.index, &self.repo.run_dir)
            .map_err(|error| PortError::new("an index cannot be copied").caused_by(error))?;
        let taken = self.with(&index);
        // What a git that was cut off leaves is of no use to anybody.
        drop(place::remove(&index.with_extension("lock")));
        taken
    }

    fn with(&self, index: &Path) -> Result<Taken, PortError> {
        if let Some(why) = self.too_large(index)? {
            return Ok(Taken::Unusable(why));
        }
        let mut arguments = vec!["add".to_owned(), "--all".to_owned(), "--".to_owned()];
        arguments.push(".".to_owned());
        arguments.extend(self.but.iter().map(|pattern| format!(":(exclude,glob){pattern}")));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let added = self.call(index, &arguments)?.answer()?;
        if added.code != Some(0) && gc::is_loss(&added.stderr) {
            return Err(added.failure());
        }
        if added.code != Some(0) {
            return unusable(&added);
        }
        let tree: String = self.call(index, &["write-tree"])?.done()?.word()?;
        if tree == self.before.tree {
            return Ok(Taken::Diff(String::new()));
        }
        self.diff(index, &tree)
    }

    /// Which files would make the change too large.
    fn too_large(&self, index: &Path) -> Result<Option<String>, PortError> {
        let list = ["ls-files", "-z", "--others", "--modified", "--exclude-standard"];
        let paths = self.call(index, &list)?.keep(MOST_PATHS).done()?;
        if paths.stdout.dropped > 0 {
            return Ok(Some("the change has too many files".to_owned()));
        }
        let mut sum = 0_u64;
        for path in paths.whole()?.split('\0').filter(|path| !path.is_empty()) {
            let file = Path::new(&self.before.worktree.seat.work_tree).join(path);
            let length = fs::symlink_metadata(&file).map_or(0, |found| found.len());
            sum = sum.saturating_add(length);
            if sum > MOST_CHANGED as u64 {
                let most = MOST_CHANGED >> 20;
                return Ok(Some(format!("the changed files have more than {most} MiB: `{path}`")));
            }
        }
        Ok(None)
    }

    fn diff(&self, index: &Path, tree: &str) -> Result<Taken, PortError> {
        let plain = self.diff_to(index, tree, &[])?;
        if plain.stdout.dropped > 0 {
            let most = MOST_CHANGED >> 20;
            return Ok(Taken::Unusable(format!("the change has more than {most} MiB")));
        }
        if let Ok(text) = String::from_utf8(plain.stdout.bytes) {
            return Ok(Taken::Diff(text));
        }
        // Of a text that is not UTF-8 a diff in base 85 can be kept and shown.
        let coded = self.coded_diff(index, tree)?;
        match String::from_utf8(coded.stdout.bytes) {
            Ok(text) if coded.stdout.dropped == 0 => Ok(Taken::Diff(text)),
            Ok(_) | Err(_) => {
                Ok(Taken::Unusable("the change has names or texts that are not UTF-8".to_owned()))
            }
        }
    }

    /// A diff that has no text in it.
    fn coded_diff(&self, index: &Path, tree: &str) -> Result<Answer, PortError> {
        let attributes = index.with_extension("attributes");
        fs::write(&attributes, "* -diff\n").map_err(|error| {
            PortError::new(format!("cannot write `{}`", attributes.display())).caused_by(error)
        })?;
        let setting = format!("core.attributesFile={}", attributes.display());
        let answer = self.diff_to(index, tree, &["-c", &setting]);
        drop(place::remove(&attributes));
        answer
    }

    fn diff_to(&self, index: &Path, tree: &str, settings: &[&str]) -> Result<Answer, PortError> {
        let before = self.before.tree.as_str();
        let source = format!("--attr-source={before}");
        let shape = ["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames"];
        let plain = ["--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"];
        let trees = [before, tree, "--"];
        let arguments = [settings, &[source.as_str()], shape.as_slice(), &plain, &trees].concat();
        self.call(index, &arguments)?.keep(MOST_CHANGED).done()
    }

    /// A call about the worktree's files that knows nothing of the worktree.
    fn call(&self, index: &Path, arguments: &[&str]) -> Result<Call, PortError> {
        let index = index.to_str().ok_or_else(|| PortError::new("a path is not UTF-8"))?;
        let work_tree = self.before.worktree.seat.work_tree.clone();
        let seat = Seat { work_tree, ..self.repo.seat() };
        let call = self.repo.user.git.sealed(&seat, arguments).about(self.before.place);
        Ok(call.envs([("GIT_INDEX_FILE", index)]))
    }
}

/// A file that cannot be read, or a repository inside that has no commit, is whose who put it there; a full disk is not.
fn unusable(added: &Answer) -> Result<Taken, PortError> {
    let theirs = ["Permission denied", "adding files failed", "does not have a commit"];
    if !theirs.iter().any(|words| added.stderr.contains(words)) || is_worlds(&added.stderr) {
        return Err(added.failure());
    }
    let first = added.stderr.lines().next().unwrap_or_default();
    Ok(Taken::Unusable(format!("git cannot take up the change: {first}")))
}

/// What nobody put into a worktree.
fn is_worlds(stderr: &str) -> bool {
    const WORLD: [&str; 5] = [
        "No space left on device",
        "Disk quota exceeded",
        "Read-only file system",
        "Too many open files",
        "insufficient permission for adding an object",
    ];
    WORLD.iter().any(|words| stderr.contains(words))
}
