//! Compares and moves the files of a checkout switch. Both versions of each differing path are
//! staged in a folder that git ignores; each path is compared with them, and then moved into place
//! by one rename. It knows nothing of git but its modes, and touches no other path.

use super::paths;
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use treebeam_run::port::PortError;

/// A path that differs between two commits, with both versions.
#[derive(Debug)]
pub(super) struct PathDifference {
    path: String,
    old: Option<BlobEntry>,
    new: Option<BlobEntry>,
}

/// Mode and object of a path in a commit, as git writes them.
#[derive(Debug)]
struct BlobEntry {
    mode: String,
    name: String,
}

impl PathDifference {
    /// Parses `:100644 100755 <name> <name> M`.
    pub(super) fn parse(raw: &str, path: &str) -> Option<Self> {
        let cells: Vec<&str> = raw.strip_prefix(':')?.split(' ').collect();
        let [old, new, old_name, new_name, _] = cells.as_slice() else { return None };
        let blob = |mode: &str, name: &str| {
            let there = mode != "000000";
            there.then(|| BlobEntry { mode: mode.to_owned(), name: name.to_owned() })
        };
        Some(Self { path: path.to_owned(), old: blob(old, old_name), new: blob(new, new_name) })
    }

    /// Returns the path if one of the two versions is a submodule.
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

/// One of the two versions of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathVersion {
    Old,
    New,
}

/// State of a path in the checkout.
enum CheckoutPathState {
    Nothing,
    Folder,
    Other(Metadata),
}

/// The differing paths of a switch, and the top of the checkout.
#[derive(Debug)]
pub(super) struct SwitchFiles {
    pub(super) top: PathBuf,
    pub(super) differences: Vec<PathDifference>,
}

impl SwitchFiles {
    /// Returns the staging root of both versions: on the file system of the checkout, ignored by
    /// git.
    fn staging_root(&self) -> PathBuf {
        self.top.join(".treebeam").join("switch")
    }

    /// Returns the staging folder of one version.
    pub(super) fn staging_folder(&self, version: PathVersion) -> PathBuf {
        self.staging_root().join(match version {
            PathVersion::Old => "old",
            PathVersion::New => "new",
        })
    }

    /// Creates the staging root, empty.
    pub(super) fn make_staging(&self) -> Result<(), PortError> {
        let folder = self.staging_root();
        let make = || {
            paths::remove_path(&folder)?;
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(".gitignore"), "*\n")
        };
        make().map_err(path_error(&folder, "cannot be made"))
    }

    /// Removes the staging root, and the folder above it if that is empty.
    pub(super) fn remove_staging(&self) -> Result<(), PortError> {
        let folder = self.staging_root();
        paths::remove_path(&folder).map_err(path_error(&folder, "cannot be removed"))?;
        // Fails if the folder holds runs.
        drop(fs::remove_dir(self.top.join(".treebeam")));
        Ok(())
    }

    pub(super) fn sync_checkout(&self) -> Result<(), PortError> {
        paths::sync_folder(&self.top).map_err(path_error(&self.top, "cannot be put on disk"))
    }

    /// Returns the entries of one version in the input format of `git update-index --index-info`.
    pub(super) fn index_info(&self, version: PathVersion) -> Vec<u8> {
        let line = |difference: &PathDifference| {
            let BlobEntry { mode, name } = difference.blob_of(version)?;
            Some(format!("{mode} {name}\t{}\0", difference.path))
        };
        self.differences.iter().filter_map(line).collect::<String>().into_bytes()
    }

    /// Returns paths with the content of neither version, and paths that are in a new file's way.
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

    /// Moves every path that still has the old version to the new one. Removals come first, because
    /// a removed path may be in the way of a new one.
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

    /// Removes the folders that a removed file has left empty.
    fn remove_empty_parents(&self, path: &Path) {
        for above in path.ancestors().skip(1).take_while(|above| *above != self.top) {
            if fs::remove_dir(above).is_err() {
                return;
            }
        }
    }

    /// Creates the folders above a path, and removes an empty folder at the path. Follows no links.
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

    /// Returns the version that a path has, or `None` for neither; the new one if both are alike.
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

    /// Returns the state of a path. It is nothing if a folder above is replaced by a link or a
    /// file.
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

    /// Returns the entry above a path that is no folder, or all files below the path if it is a
    /// folder.
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

    /// Returns all files below a folder, as paths of the checkout.
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

/// Removes a folder in which there are no files, with its subfolders.
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

/// Returns true if a file of the user's equals the staged one in kind, mode and content.
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
