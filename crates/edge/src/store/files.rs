//! The run's other files: written whole, read up to a limit, copied once a decision rests on them.
//! What is in them is on disk when a call returns; that they are there is so once they are settled, folder by folder.

use super::durable;
use super::error::StoreError;
use super::healing::{self, VerifiedArtifacts};
use super::layout::RunDir;
use super::record_file::{self, RecordKind, UnusableFile};
use sha2::Digest as _;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{EvalId, RunPath, Sha256};
use treebeam_core::path;
use treebeam_run::port::{Files, PortError};

/// How much is written or copied at a time.
const CHUNK: usize = 64 * 1024;

/// The files of one run.
#[derive(Debug)]
pub struct RunFiles {
    run: RunDir,
    /// Folders in which there are names that may not be on disk.
    unsettled: Mutex<BTreeSet<PathBuf>>,
    verified: VerifiedArtifacts,
}

impl RunFiles {
    /// The files of this run.
    #[must_use]
    pub const fn new(run: RunDir) -> Self {
        let unsettled = Mutex::new(BTreeSet::new());
        Self { run, unsettled, verified: VerifiedArtifacts::new() }
    }
}

fn failed(doing: &str, path: &RunPath) -> impl FnOnce(io::Error) -> PortError {
    let what = format!("cannot {doing} `{path}`");
    move |error| PortError::new(what).caused_by(error)
}

fn read(file: File, path: &RunPath, limit: usize) -> Result<Vec<u8>, PortError> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX);
    record_file::read_to_limit(file, most).map_err(|error| match UnusableFile::in_error(&error) {
        Some(_) => PortError::new(format!("`{path}` is longer than {limit} bytes")),
        None => failed("read", path)(error),
    })
}

impl Files for RunFiles {
    fn write(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError> {
        self.write_with(path, |file| file.write_all(bytes))
    }

    fn read(&self, path: &RunPath, limit: usize) -> Result<Vec<u8>, PortError> {
        let file = self.open_record(path).map_err(failed("read", path))?;
        read(file, path, limit)
    }

    fn find(&self, path: &RunPath, limit: usize) -> Result<Option<Vec<u8>>, PortError> {
        match self.open_record(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", path)(error)),
            Ok(file) => read(file, path, limit).map(Some),
        }
    }

    fn link(&self, from: &RunPath, to: &RunPath) -> Result<Sha256, PortError> {
        let mut file = self.open_plain(from)?;
        let (source, full) = (self.run.path(from), self.run.path(to));
        durable::sync_file(&source).map_err(failed("sync", from))?;
        let sha256 = copy_and_digest(&mut file, &mut io::sink()).map_err(failed("read", from))?;
        let linked = self.in_its_folder(&full, || durable::also_name(&source, &full));
        linked.map(|()| sha256).map_err(failed("link", to))
    }

    fn remove_submissions(&self, eval: EvalId) -> Result<(), PortError> {
        let folder = path::eval(eval);
        remove_submissions(&self.run.path(&folder)).map_err(failed("remove the sweeps of", &folder))
    }

    fn import(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError> {
        let mut source = self.open_plain(from)?;
        let path = artifact_path(name)?;
        let full = self.run.path(&path);
        let mut sha256 = None;
        let copy = |file: &mut File| {
            sha256 = Some(copy_and_digest(&mut source, file)?);
            Ok(())
        };
        self.in_its_folder(&full, || durable::replace_from(self.run.root(), &full, copy))
            .map_err(failed("copy", from))?;
        let sha256 = sha256.ok_or_else(|| PortError::new(format!("cannot copy `{from}`")))?;
        Ok(Artifact { path, sha256, source: from.to_string() })
    }

    fn settle(&self) -> Result<(), PortError> {
        // Held until the end: whoever comes second may not think that all is done.
        let mut unsettled = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(folder) = unsettled.first() {
            durable::sync_dir(folder).map_err(StoreError::io("sync", folder))?;
            unsettled.pop_first();
        }
        Ok(())
    }

    fn changed(&self, artifacts: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        let changed: Vec<_> =
            artifacts.iter().filter(|artifact| !self.is_recorded(artifact)).cloned().collect();
        changed.iter().try_for_each(|artifact| self.intact_copy(artifact).map(drop))?;
        Ok(changed)
    }

    fn restore(&self, artifacts: &[Artifact]) -> Result<(), PortError> {
        let mut changed = artifacts.iter().filter(|artifact| !self.is_recorded(artifact));
        changed.try_for_each(|artifact| self.copy_back(artifact))
    }

    fn open_copy(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        Ok(Box::new(self.intact_copy(artifact)?))
    }

    fn open(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        let path = &artifact.path;
        let mut file = self.open_record(path).map_err(failed("open", path))?;
        let found = copy_and_digest(&mut file, &mut io::sink()).map_err(failed("read", path))?;
        if found != artifact.sha256 {
            let what = format!("`{path}` has the sha256 {found}, recorded is {}", artifact.sha256);
            return Err(PortError::new(what).hint("the file was changed: restore it from a backup"));
        }
        file.rewind().map_err(failed("read", path))?;
        Ok(Box::new(file))
    }
}

impl RunFiles {
    /// Writes a file piece by piece: as a whole it is there at the end, or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_with(
        &self,
        path: &RunPath,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), PortError> {
        let full = self.run.path(path);
        let content = |file: &mut File| {
            let mut file = BufWriter::with_capacity(CHUNK, file);
            write(&mut file)?;
            file.flush()
        };
        self.in_its_folder(&full, || durable::replace_from(self.run.root(), &full, content))
            .map_err(failed("write", path))
    }

    /// Makes the folder first, where it is missing, and remembers what is to be settled.
    fn in_its_folder(&self, full: &Path, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let folder = full.parent().unwrap_or(self.run.root());
        let is_new = !folder.is_dir();
        if is_new {
            fs::create_dir_all(folder)?;
        }
        write()?;
        let above = folder.ancestors().take_while(|above| above.starts_with(self.run.root()));
        let changed = above.take(if is_new { usize::MAX } else { 1 }).map(Path::to_owned);
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).extend(changed);
        Ok(())
    }

    /// Returns true if an artifact is what was recorded.
    fn is_recorded(&self, artifact: &Artifact) -> bool {
        let full = self.run.path(&artifact.path);
        let is_recorded = || digest(&full).ok() == Some(artifact.sha256);
        self.verified.holds(&full, artifact, is_recorded)
    }

    /// Opens a copy in the run that is what was recorded of an artifact.
    fn intact_copy(&self, artifact: &Artifact) -> Result<File, PortError> {
        let Artifact { path, sha256, .. } = artifact;
        for copy in healing::copies(&self.run, artifact) {
            let Ok(mut source) = self.open_plain(&copy) else { continue };
            if copy_and_digest(&mut source, &mut io::sink()).ok() == Some(*sha256) {
                source.rewind().map_err(failed("read", &copy))?;
                return Ok(source);
            }
        }
        let what = format!("`{path}` was changed, and no copy in the run is what was recorded");
        Err(PortError::new(what).hint("restore it from a backup"))
    }

    /// Replaces an artifact with a copy in the run that is what was recorded.
    fn copy_back(&self, artifact: &Artifact) -> Result<(), PortError> {
        let Artifact { path, sha256, .. } = artifact;
        let full = self.run.path(path);
        let mut source = self.intact_copy(artifact)?;
        let mut copied = None;
        let write = |file: &mut File| {
            copied = Some(copy_and_digest(&mut source, file)?);
            Ok(())
        };
        self.in_its_folder(&full, || durable::replace_from(self.run.root(), &full, write))
            .map_err(failed("restore", path))?;
        if copied == Some(*sha256) {
            return self.settle();
        }
        let what = format!("the copy of `{path}` was changed while it was read");
        Err(PortError::new(what).hint("go on with the run: other copies are looked at again"))
    }

    /// How long a file is, and what is in it if it is no longer than the limit. None where there is no such regular file,
    /// or it cannot be read.
    #[must_use]
    pub fn glance(&self, path: &RunPath, limit: usize) -> Option<(u64, Option<Vec<u8>>)> {
        let file = self.open_plain(path).ok()?;
        let length = file.metadata().ok()?.len();
        let short = usize::try_from(length).is_ok_and(|length| length <= limit);
        Some((length, short.then(|| read(file, path, limit).ok()).flatten()))
    }

    fn open_record(&self, path: &RunPath) -> io::Result<File> {
        record_file::open(&self.run.path(path), RecordKind::Artifact)
    }

    /// Opens a regular file that no link leads to.
    fn open_plain(&self, path: &RunPath) -> Result<File, PortError> {
        let root = self.run.root().canonicalize().map_err(failed("open", path))?;
        let full = self.run.path(path).canonicalize().map_err(failed("open", path))?;
        let straight = full == RunDir::new(root).path(path);
        let opened = straight.then(|| record_file::open(&full, RecordKind::Log));
        match opened {
            Some(Err(error)) if UnusableFile::in_error(&error).is_none() => {
                Err(failed("open", path)(error))
            }
            Some(Ok(file)) => Ok(file),
            Some(Err(_)) | None => Err(PortError::new(format!("`{path}` is no regular file"))),
        }
    }
}

/// Removes the folders `s1`, `s2`… of an eval, and the files beside them. Links are removed, never followed.
fn remove_submissions(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix('s'));
        let of = |name| [".lock", ".limit"].iter().find_map(|end| str::strip_suffix(name, end));
        let number = number.map(|number| of(number).unwrap_or(number));
        if !number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            durable::remove(&entry.path())?;
        }
    }
    Ok(())
}

/// The digest of a regular file.
///
/// # Errors
/// When it is missing, no regular file, or cannot be read.
pub fn digest(path: &Path) -> io::Result<Sha256> {
    copy_and_digest(&mut record_file::open(path, RecordKind::Artifact)?, &mut io::sink())
}

/// Copies a file of a run to where the user wants it, in place of what is there.
///
/// # Errors
/// When it cannot be read or written.
pub fn copy_out(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = record_file::open(from, RecordKind::Artifact)?;
    durable::replace(to, |file| copy_and_digest(&mut source, file).map(drop))
}

fn artifact_path(name: &str) -> Result<RunPath, PortError> {
    let plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    let path = plain.then(|| format!("{}/{name}", path::ARTIFACTS).parse().ok()).flatten();
    path.ok_or_else(|| PortError::new(format!("{name:?} is no name for an artifact")))
}

/// A writer that computes the digest of what goes through it.
pub(crate) struct DigestWriter<W> {
    to: W,
    digest: sha2::Sha256,
}

impl<W: Write> DigestWriter<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, digest: sha2::Sha256::new() }
    }

    /// The digest of all that was written.
    pub(crate) fn finish(self) -> Sha256 {
        Sha256::from_bytes(self.digest.finalize().into())
    }
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.digest.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

pub(crate) fn copy_and_digest(from: &mut impl Read, to: &mut impl io::Write) -> io::Result<Sha256> {
    let mut digest = sha2::Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => return Ok(Sha256::from_bytes(digest.finalize().into())),
            Ok(read) => chunk.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        digest.update(read);
        to.write_all(read)?;
    }
}
