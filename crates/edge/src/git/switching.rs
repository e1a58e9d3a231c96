//! The files of a switch: both versions of what differs lie in a folder that git ignores, each path is compared with them,
//! and then moved into place by one rename. It knows nothing of git but its modes, and touches no other path.

use super::place;
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use treebeam_run::port::PortError;

/// A path that differs between two commits.
#[derive(Debug)]
pub(super) struct Difference {
    path: String,
    old: Option<Blob>,
    new: Option<Blob>,
}

/// What a commit has at a path, as git writes it.
#[derive(Debug)]
struct Blob {
    mode: String,
    name: String,
}

impl Difference {
    /// Reads `:100644 100755 <name> <name> M`.
    pub(super) fn read(raw: &str, path: &str) -> Option<Self> {
        let cells: Vec<&str> = raw.strip_prefix(':')?.split(' ').collect();
        let [old, new, old_name, new_name, _] = cells.as_slice() else { return None };
        let blob = |mode: &str, name: &str| {
            let there = mode != "000000";
            there.then(|| Blob { mode: mode.to_owned(), name: name.to_owned() })
        };
        Some(Self { path: path.to_owned(), old: blob(old, old_name), new: blob(new, new_name) })
    }

    /// The path, where one of the two is a submodule.
    pub(super) fn submodule(&self) -> Option<&str> {
        let is = |blob: &Option<Blob>| blob.as_ref().is_some_and(|blob| blob.mode == "160000");
        (is(&self.old) || is(&self.new)).then_some(&*self.path)
    }

    fn version(&self, version: Standing) -> Option<&Blob> {
        match version {
            Standing::Old => self.old.as_ref(),
            Standing::New => self.new.as_ref(),
        }
    }
}

/// Of which of the two commits a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Old,
    New,
}

/// What lies at a path.
enum Found {
    Nothing,
    Folder,
    Other(Metadata),
}

/// The files that a switch is about.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) top: PathBuf,
    pub(super) differences: Vec<Difference>,
}

impl Files {
    /// Where both versions lie: on the file system of the checkout, in a folder that git ignores.
    fn folder(&self) -> PathBuf {
        self.top.join(".treebeam").join("switch")
    }

    /// Where one version lies.
    pub(super) fn staging(&self, version: Standing) -> PathBuf {
        self.folder().join(match version {
            Standing::Old => "old",
            Standing::New => "new",
        })
    }

    /// Makes that folder anew.
    pub(super) fn make_staging(&self) -> Result<(), PortError> {
        let folder = self.folder();
        let make = || {
            place::remove(&folder)?;
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(".gitignore"), "*\n")
        };
        make().map_err(failed(&folder, "cannot be made"))
    }

    /// Removes it, and what it lies in where nothing else is there.
    pub(super) fn clear(&self) -> Result<(), PortError> {
        let folder = self.folder();
        place::remove(&folder).map_err(failed(&folder, "cannot be removed"))?;
        // Runs lie there too.
        drop(fs::remove_dir(self.top.join(".treebeam")));
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), PortError> {
        place::sync(&self.top).map_err(failed(&self.top, "cannot be put on disk"))
    }

    /// What one version has, as `git update-index --index-info` reads it.
    pub(super) fn listed(&self, version: Standing) -> Vec<u8> {
        let line = |difference: &Difference| {
            let Blob { mode, name } = difference.version(version)?;
            Some(format!("{mode} {name}\t{}\0", difference.path))
        };
        self.differences.iter().filter_map(line).collect::<String>().into_bytes()
    }

    /// Paths that have the content of neither version, or that lie where a file is to be.
    pub(super) fn foreign(&self) -> Result<Vec<String>, PortError> {
        let known: BTreeSet<&str> = self.differences.iter().map(|found| &*found.path).collect();
        let mut foreign = Vec::new();
        for difference in &self.differences {
            let path = &difference.path;
            let looked = || -> io::Result<Vec<String>> {
                Ok(match (self.standing(difference)?, &difference.new) {
                    (None, _) => return Ok(vec![path.clone()]),
                    (Some(_), None) => Vec::new(),
                    (Some(_), Some(_)) => self.in_the_way(path)?,
                })
            };
            let looked = looked().map_err(failed(&self.top.join(path), "cannot be read"))?;
            foreign.extend(looked.into_iter().filter(|at| at == path || !known.contains(&**at)));
        }
        Ok(foreign)
    }

    /// Moves every path that is still of the old version to the new one. What goes, goes first: it may be in the way.
    pub(super) fn put(&self) -> Result<(), PortError> {
        let (coming, going): (Vec<_>, Vec<_>) =
            self.differences.iter().partition(|difference| difference.new.is_some());
        for difference in going.into_iter().chain(coming) {
            let path = self.top.join(&difference.path);
            self.put_one(difference).map_err(failed(&path, "cannot be switched"))?;
        }
        self.sync()
    }

    fn put_one(&self, difference: &Difference) -> io::Result<()> {
        let path = self.top.join(&difference.path);
        match (self.standing(difference)?, &difference.new) {
            (Some(Standing::New), _) => Ok(()),
            (None, _) => Err(io::Error::other("somebody has changed it meanwhile")),
            (Some(Standing::Old), None) => {
                fs::remove_file(&path)?;
                self.prune(&path);
                Ok(())
            }
            (Some(Standing::Old), Some(_)) => {
                self.make_room(&path)?;
                fs::rename(self.staging(Standing::New).join(&difference.path), &path)
            }
        }
    }

    /// Removes folders that a removed file has left empty.
    fn prune(&self, path: &Path) {
        for above in path.ancestors().skip(1).take_while(|above| *above != self.top) {
            if fs::remove_dir(above).is_err() {
                return;
            }
        }
    }

    /// Makes the folders above a path, and removes an empty one in its place. No link is followed.
    fn make_room(&self, path: &Path) -> io::Result<()> {
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
    fn standing(&self, difference: &Difference) -> io::Result<Option<Standing>> {
        let found = self.find(&difference.path)?;
        for version in [Standing::New, Standing::Old] {
            let staged = self.staging(version).join(&difference.path);
            let same = match (difference.version(version), &found) {
                (None, Found::Nothing | Found::Folder) => true,
                (Some(_), Found::Other(found)) => {
                    same(&self.top.join(&difference.path), found, &staged)?
                }
                (None, Found::Other(_)) | (Some(_), Found::Nothing | Found::Folder) => false,
            };
            if same {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// What lies at a path. Where a link or a file takes the place of a folder above it, that is nothing.
    fn find(&self, path: &str) -> io::Result<Found> {
        let mut place = self.top.clone();
        let parts: Vec<&str> = path.split('/').collect();
        for (number, part) in parts.iter().enumerate() {
            place.push(part);
            match fs::symlink_metadata(&place) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
                Err(error) => return Err(error),
                Ok(found) if number + 1 == parts.len() && found.is_dir() => {
                    return Ok(Found::Folder);
                }
                Ok(found) if number + 1 == parts.len() => return Ok(Found::Other(found)),
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Ok(Found::Nothing),
            }
        }
        Ok(Found::Folder)
    }

    /// What is no folder above a path, and all files below it where it is one itself.
    fn in_the_way(&self, path: &str) -> io::Result<Vec<String>> {
        let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        for above in above {
            if matches!(self.find(above)?, Found::Other(_)) {
                return Ok(vec![above.to_owned()]);
            }
        }
        if matches!(self.find(path)?, Found::Folder) { self.below(path) } else { Ok(Vec::new()) }
    }

    /// All files below a folder, as paths of the checkout.
    fn below(&self, path: &str) -> io::Result<Vec<String>> {
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

fn failed(path: &Path, why: &str) -> impl FnOnce(io::Error) -> PortError {
    let what = format!("`{}` {why}", path.display());
    |error| PortError::new(what).caused_by(error)
}

/// Whether a file of the user's is what git wrote.
fn same(path: &Path, found: &Metadata, staged: &Path) -> io::Result<bool> {
    let wanted = fs::symlink_metadata(staged)?;
    if found.is_symlink() || wanted.is_symlink() {
        let both = found.is_symlink() && wanted.is_symlink();
        return Ok(both && fs::read_link(path)? == fs::read_link(staged)?);
    }
    let alike = found.is_file()
        && found.len() == wanted.len()
        && place::is_executable(found) == place::is_executable(&wanted);
    if !alike {
        return Ok(false);
    }
    same_bytes(File::open(path)?, File::open(staged)?)
}

fn same_bytes(a: File, b: File) -> io::Result<bool> {
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
