//! The files of a switch: both versions of what differs lie in a folder that git ignores, each path is compared with them,
//! and then moved into place by one rename. It knows nothing of git but its modes, and touches no other path.

use super::paths;
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use treebeam_run::port::PortError;

/// A path that differs between two commits.
#[derive(Debug)]
pub(super) struct PathDifference {
    path: String,
    old: Option<BlobEntry>,
    new: Option<BlobEntry>,
}

/// What a commit has at a path, as git writes it.
#[derive(Debug)]
struct BlobEntry {
    mode: String,
    name: String,
}

impl PathDifference {
    /// Reads `:100644 100755 <name> <name> M`.
    pub(super) fn parse(raw: &str, path: &str) -> Option<Self> {
        let cells: Vec<&str> = raw.strip_prefix(':')?.split(' ').collect();
        let [old, new, old_name, new_name, _] = cells.as_slice() else { return None };
        let blob = |mode: &str, name: &str| {
            let there = mode != "000000";
            there.then(|| BlobEntry { mode: mode.to_owned(), name: name.to_owned() })
        };
        Some(Self { path: path.to_owned(), old: blob(old, old_name), new: blob(new, new_name) })
    }

    /// The path, where one of the two is a submodule.
    pub(super) fn submodule_path(&self) -> Option<&str> {
        let is = |blob: &Option<BlobEntry>| blob.as_ref().is_some_and(|blob| blob.mode == "160000");
        (is(&self.old) || is(&self.new)).then_some(&*self.path)
    }

    fn blob_of(&self, version: PathVersion) -> Option<&BlobEntry> {
        match version {
            PathVersion::Old => self.old.as_ref(),
            PathVersion::New => self.new.as_ref(),
        }
    }
}

/// Of which of the two commits a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathVersion {
    Old,
    New,
}

/// What lies at a path.
enum CheckoutPathState {
    Nothing,
    Folder,
    Other(Metadata),
}

/// The files that a switch is about.
#[derive(Debug)]
pub(super) struct SwitchFiles {
    pub(super) top: PathBuf,
    pub(super) differences: Vec<PathDifference>,
}

impl SwitchFiles {
    /// Where both versions lie: on the file system of the checkout, in a folder that git ignores.
    fn staging_root(&self) -> PathBuf {
        self.top.join(".treebeam").join("switch")
    }

    /// Where one version lies.
    pub(super) fn staging_folder(&self, version: PathVersion) -> PathBuf {
        self.staging_root().join(match version {
            PathVersion::Old => "old",
            PathVersion::New => "new",
        })
    }

    /// Makes that folder anew.
    pub(super) fn make_staging(&self) -> Result<(), PortError> {
        let folder = self.staging_root();
        let make = || {
            paths::remove_path(&folder)?;
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(".gitignore"), "*\n")
        };
        make().map_err(path_error(&folder, "cannot be made"))
    }

    /// Removes it, and what it lies in where nothing else is there.
    pub(super) fn remove_staging(&self) -> Result<(), PortError> {
        let folder = self.staging_root();
        paths::remove_path(&folder).map_err(path_error(&folder, "cannot be removed"))?;
        // Runs lie there too.
        drop(fs::remove_dir(self.top.join(".treebeam")));
        Ok(())
    }

    pub(super) fn sync_checkout(&self) -> Result<(), PortError> {
        paths::sync_folder(&self.top).map_err(path_error(&self.top, "cannot be put on disk"))
    }

    /// What one version has, as `git update-index --index-info` reads it.
    pub(super) fn index_info(&self, version: PathVersion) -> Vec<u8> {
        let line = |difference: &PathDifference| {
            let BlobEntry { mode, name } = difference.blob_of(version)?;
            Some(format!("{mode} {name}\t{}\0", difference.path))
        };
        self.differences.iter().filter_map(line).collect::<String>().into_bytes()
    }

    /// Paths that have the content of neither version, or that lie where a file is to be.
    pub(super) fn list_foreign_paths(&self) -> Result<Vec<String>, PortError> {
        let known: BTreeSet<&str> = self.differences.iter().map(|found| &*found.path).collect();
        let mut foreign = Vec::new();
        for difference in &self.differences {
            let path = &difference.path;
            let looked = || -> io::Result<Vec<String>> {
                Ok(match (self.find_version(difference)?, &difference.new) {
                    (None, _) => return Ok(vec![path.clone()]),
                    (Some(_), None) => Vec::new(),
                    (Some(_), Some(_)) => self.list_blocking_paths(path)?,
                })
            };
            let looked = looked().map_err(path_error(&self.top.join(path), "cannot be read"))?;
            foreign.extend(looked.into_iter().filter(|at| at == path || !known.contains(&**at)));
        }
        Ok(foreign)
    }

    /// Moves every path that is still of the old version to the new one. What goes, goes first: it may be in the way.
    pub(super) fn move_all(&self) -> Result<(), PortError> {
        let (coming, going): (Vec<_>, Vec<_>) =
            self.differences.iter().partition(|difference| difference.new.is_some());
        for difference in going.into_iter().chain(coming) {
            let path = self.top.join(&difference.path);
            self.move_one(difference).map_err(path_error(&path, "cannot be switched"))?;
        }
        self.sync_checkout()
    }

    fn move_one(&self, difference: &PathDifference) -> io::Result<()> {
        let path = self.top.join(&difference.path);
        match (self.find_version(difference)?, &difference.new) {
            (Some(PathVersion::New), _) => Ok(()),
            (None, _) => Err(io::Error::other("somebody has changed it meanwhile")),
            (Some(PathVersion::Old), None) => {
                fs::remove_file(&path)?;
                self.remove_empty_parents(&path);
                Ok(())
            }
            (Some(PathVersion::Old), Some(_)) => {
                self.make_parents(&path)?;
                fs::rename(self.staging_folder(PathVersion::New).join(&difference.path), &path)
            }
        }
    }

    /// Removes folders that a removed file has left empty.
    fn remove_empty_parents(&self, path: &Path) {
        for above in path.ancestors().skip(1).take_while(|above| *above != self.top) {
            if fs::remove_dir(above).is_err() {
                return;
            }
        }
    }

    /// Makes the folders above a path, and removes an empty one in its place. No link is followed.
    fn make_parents(&self, path: &Path) -> io::Result<()> {
        let mut above: Vec<&Path> =
            path.ancestors().skip(1).take_while(|above| *above != self.top).collect();
        above.reverse();
        for folder in above {
            match fs::symlink_metadata(folder) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(io::Error::other("no folder is above it")),
                Err(_) => fs::create_dir(folder)?,
            }
        }
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
            remove_empty(path)?;
        }
        Ok(())
    }

    /// Which version a path has; nothing where it has neither. The new one counts where both are alike.
    fn find_version(&self, difference: &PathDifference) -> io::Result<Option<PathVersion>> {
        let found = self.find_path_state(&difference.path)?;
        for version in [PathVersion::New, PathVersion::Old] {
            let staged = self.staging_folder(version).join(&difference.path);
            let same = match (difference.blob_of(version), &found) {
                (None, CheckoutPathState::Nothing | CheckoutPathState::Folder) => true,
                (Some(_), CheckoutPathState::Other(found)) => {
                    is_same_file(&self.top.join(&difference.path), found, &staged)?
                }
                (None, CheckoutPathState::Other(_))
                | (Some(_), CheckoutPathState::Nothing | CheckoutPathState::Folder) => false,
            };
            if same {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// What lies at a path. Where a link or a file takes the place of a folder above it, that is nothing.
    fn find_path_state(&self, path: &str) -> io::Result<CheckoutPathState> {
        let mut place = self.top.clone();
        let parts: Vec<&str> = path.split('/').collect();
        for (number, part) in parts.iter().enumerate() {
            place.push(part);
            match fs::symlink_metadata(&place) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(CheckoutPathState::Nothing);
                }
                Err(error) => return Err(error),
                Ok(found) if number + 1 == parts.len() && found.is_dir() => {
                    return Ok(CheckoutPathState::Folder);
                }
                Ok(found) if number + 1 == parts.len() => {
                    return Ok(CheckoutPathState::Other(found));
                }
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Ok(CheckoutPathState::Nothing),
            }
        }
        Ok(CheckoutPathState::Folder)
    }

    /// What is no folder above a path, and all files below it where it is one itself.
    fn list_blocking_paths(&self, path: &str) -> io::Result<Vec<String>> {
        let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        for above in above {
            if matches!(self.find_path_state(above)?, CheckoutPathState::Other(_)) {
                return Ok(vec![above.to_owned()]);
            }
        }
        if matches!(self.find_path_state(path)?, CheckoutPathState::Folder) {
            self.list_files_below(path)
        } else {
            Ok(Vec::new())
        }
    }

    /// All files below a folder, as paths of the checkout.
    fn list_files_below(&self, path: &str) -> io::Result<Vec<String>> {
        let mut files = Vec::new();
        let mut folders = vec![path.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.top.join(&folder))? {
                let entry = entry?;
                let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
                if entry.file_type()?.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        Ok(files)
    }
}

/// Removes a folder in which there are no files.
fn remove_empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_empty(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

fn path_error(path: &Path, why: &str) -> impl FnOnce(io::Error) -> PortError {
    let what = format!("`{}` {why}", path.display());
    |error| PortError::new(what).with_cause(error)
}

/// Whether a file of the user's is what git wrote.
fn is_same_file(path: &Path, found: &Metadata, staged: &Path) -> io::Result<bool> {
    let wanted = fs::symlink_metadata(staged)?;
    if found.is_symlink() || wanted.is_symlink() {
        let both = found.is_symlink() && wanted.is_symlink();
        return Ok(both && fs::read_link(path)? == fs::read_link(staged)?);
    }
    let alike = found.is_file()
        && found.len() == wanted.len()
        && paths::is_executable(found) == paths::is_executable(&wanted);
    if !alike {
        return Ok(false);
    }
    has_same_bytes(File::open(path)?, File::open(staged)?)
}

fn has_same_bytes(a: File, b: File) -> io::Result<bool> {
    let (mut a, mut b) = (io::BufReader::new(a), io::BufReader::new(b));
    let (mut left, mut right) = ([0; 8192], [0; 8192]);
    loop {
        let length = a.read(&mut left)?;
        if length == 0 {
            return Ok(b.read(&mut right)? == 0);
        }
        let (left, right) = (&left[..length], &mut right[..length]);
        match b.read_exact(right) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            other => other?,
        }
        if left != right {
            return Ok(false);
        }
    }
}
