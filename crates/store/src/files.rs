//! The run's other files: written whole, read up to a limit, copied once a decision depends on
//! them. Content is durable when a call returns, names after `sync_files`, folder by folder.

use super::artifact_copies::{self, VerifiedArtifacts};
use super::atomic_file;
use super::error::StoreError;
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
use treebeam_run::port::{FileStore, PortError};

/// Size of the buffer for writes and copies.
const COPY_CHUNK_BYTES: usize = 64 * 1024;

/// The files of one run.
#[derive(Debug)]
pub struct RunFiles {
    run: RunDir,
    /// Folders with names that may not be durable yet.
    unsynced_folders: Mutex<BTreeSet<PathBuf>>,
    verified: VerifiedArtifacts,
}

impl RunFiles {
    /// Creates the file access of a run.
    #[must_use]
    pub const fn new(run: RunDir) -> Self {
        let unsettled = Mutex::new(BTreeSet::new());
        Self { run, unsynced_folders: unsettled, verified: VerifiedArtifacts::new() }
    }
}

fn file_error(doing: &str, path: &RunPath) -> impl FnOnce(io::Error) -> PortError {
    let what = format!("cannot {doing} `{path}`");
    move |error| PortError::new(what).with_cause(error)
}

fn read_run_file(file: File, path: &RunPath, limit: usize) -> Result<Vec<u8>, PortError> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX);
    record_file::read_to_limit(file, most).map_err(|error| match UnusableFile::in_error(&error) {
        Some(_) => PortError::new(format!("`{path}` is longer than {limit} bytes")),
        None => file_error("read", path)(error),
    })
}

impl FileStore for RunFiles {
    fn write_file(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError> {
        self.write_with(path, |file| file.write_all(bytes))
    }

    fn read_file(&self, path: &RunPath, limit: usize) -> Result<Vec<u8>, PortError> {
        let file = self.open_run_file(path).map_err(file_error("read", path))?;
        read_run_file(file, path, limit)
    }

    fn find_file(&self, path: &RunPath, limit: usize) -> Result<Option<Vec<u8>>, PortError> {
        match self.open_run_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error("read", path)(error)),
            Ok(file) => read_run_file(file, path, limit).map(Some),
        }
    }

    fn link_file(&self, from: &RunPath, to: &RunPath) -> Result<Sha256, PortError> {
        let mut file = self.open_without_links(from)?;
        let (source, full) = (self.run.file_path(from), self.run.file_path(to));
        atomic_file::sync_file(&source).map_err(file_error("sync", from))?;
        let sha256 =
            copy_and_digest(&mut file, &mut io::sink()).map_err(file_error("read", from))?;
        let linked = self.write_in_folder(&full, || atomic_file::link_or_copy(&source, &full));
        linked.map(|()| sha256).map_err(file_error("link", to))
    }

    fn remove_submissions(&self, eval: EvalId) -> Result<(), PortError> {
        let folder = path::eval_folder(eval);
        remove_submission_folders(&self.run.file_path(&folder))
            .map_err(file_error("remove the sweeps of", &folder))
    }

    fn import_artifact(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError> {
        let mut source = self.open_without_links(from)?;
        let path = artifact_path(name)?;
        let full = self.run.file_path(&path);
        let mut sha256 = None;
        let copy = |file: &mut File| {
            sha256 = Some(copy_and_digest(&mut source, file)?);
            Ok(())
        };
        self.write_in_folder(&full, || atomic_file::replace_from(self.run.root(), &full, copy))
            .map_err(file_error("copy", from))?;
        let sha256 = sha256.ok_or_else(|| PortError::new(format!("cannot copy `{from}`")))?;
        Ok(Artifact { path, sha256, source: from.to_string() })
    }

    fn sync_files(&self) -> Result<(), PortError> {
        // Held until the end: a second caller must wait until every folder is synced.
        let mut unsettled = self.unsynced_folders.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(folder) = unsettled.first() {
            atomic_file::sync_dir(folder).map_err(StoreError::io("sync", folder))?;
            unsettled.pop_first();
        }
        Ok(())
    }

    fn find_changed_artifacts(&self, artifacts: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        let changed: Vec<_> =
            artifacts.iter().filter(|artifact| !self.is_intact(artifact)).cloned().collect();
        changed.iter().try_for_each(|artifact| self.open_intact_copy(artifact).map(drop))?;
        Ok(changed)
    }

    fn restore_artifacts(&self, artifacts: &[Artifact]) -> Result<(), PortError> {
        let mut changed = artifacts.iter().filter(|artifact| !self.is_intact(artifact));
        changed.try_for_each(|artifact| self.restore_artifact(artifact))
    }

    fn open_copy_of(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        Ok(Box::new(self.open_intact_copy(artifact)?))
    }

    fn open_artifact(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        let path = &artifact.path;
        let mut file = self.open_run_file(path).map_err(file_error("open", path))?;
        let found =
            copy_and_digest(&mut file, &mut io::sink()).map_err(file_error("read", path))?;
        if found != artifact.sha256 {
            let what = format!("`{path}` has the sha256 {found}, recorded is {}", artifact.sha256);
            return Err(
                PortError::new(what).with_hint("the file was changed: restore it from a backup")
            );
        }
        file.rewind().map_err(file_error("read", path))?;
        Ok(Box::new(file))
    }
}

impl RunFiles {
    /// Writes a file piece by piece. The file appears complete at the end, or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_with(
        &self,
        path: &RunPath,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), PortError> {
        let full = self.run.file_path(path);
        let content = |file: &mut File| {
            let mut file = BufWriter::with_capacity(COPY_CHUNK_BYTES, file);
            write(&mut file)?;
            file.flush()
        };
        self.write_in_folder(&full, || atomic_file::replace_from(self.run.root(), &full, content))
            .map_err(file_error("write", path))
    }

    /// Creates the folder if it is missing, writes in it, and notes the folders to sync.
    fn write_in_folder(
        &self,
        full: &Path,
        write: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let folder = full.parent().unwrap_or(self.run.root());
        let is_new = !folder.is_dir();
        if is_new {
            fs::create_dir_all(folder)?;
        }
        write()?;
        let above = folder.ancestors().take_while(|above| above.starts_with(self.run.root()));
        let changed = above.take(if is_new { usize::MAX } else { 1 }).map(Path::to_owned);
        self.unsynced_folders.lock().unwrap_or_else(PoisonError::into_inner).extend(changed);
        Ok(())
    }

    /// Returns true if an artifact is what was recorded.
    fn is_intact(&self, artifact: &Artifact) -> bool {
        let full = self.run.file_path(&artifact.path);
        let is_recorded = || digest_file(&full).ok() == Some(artifact.sha256);
        self.verified.is_intact(&full, artifact, is_recorded)
    }

    /// Opens a copy in the run whose content is what was recorded of an artifact.
    fn open_intact_copy(&self, artifact: &Artifact) -> Result<File, PortError> {
        let Artifact { path, sha256, .. } = artifact;
        for copy in artifact_copies::find_copies(&self.run, artifact) {
            let Ok(mut source) = self.open_without_links(&copy) else { continue };
            if copy_and_digest(&mut source, &mut io::sink()).ok() == Some(*sha256) {
                source.rewind().map_err(file_error("read", &copy))?;
                return Ok(source);
            }
        }
        let what = format!("`{path}` was changed, and no copy in the run is what was recorded");
        Err(PortError::new(what).with_hint("restore it from a backup"))
    }

    /// Replaces an artifact with a copy in the run whose content is what was recorded.
    fn restore_artifact(&self, artifact: &Artifact) -> Result<(), PortError> {
        let Artifact { path, sha256, .. } = artifact;
        let full = self.run.file_path(path);
        let mut source = self.open_intact_copy(artifact)?;
        let mut copied = None;
        let write = |file: &mut File| {
            copied = Some(copy_and_digest(&mut source, file)?);
            Ok(())
        };
        self.write_in_folder(&full, || atomic_file::replace_from(self.run.root(), &full, write))
            .map_err(file_error("restore", path))?;
        if copied == Some(*sha256) {
            return self.sync_files();
        }
        let what = format!("the copy of `{path}` was changed while it was read");
        Err(PortError::new(what).with_hint("go on with the run: other copies are looked at again"))
    }

    /// Returns the length of a file, with its content if that is no longer than the limit. None if
    /// there is no such regular file, or it cannot be read.
    #[must_use]
    pub fn read_if_short(&self, path: &RunPath, limit: usize) -> Option<(u64, Option<Vec<u8>>)> {
        let file = self.open_without_links(path).ok()?;
        let length = file.metadata().ok()?.len();
        let short = usize::try_from(length).is_ok_and(|length| length <= limit);
        Some((length, short.then(|| read_run_file(file, path, limit).ok()).flatten()))
    }

    fn open_run_file(&self, path: &RunPath) -> io::Result<File> {
        record_file::open_record(&self.run.file_path(path), RecordKind::Artifact)
    }

    /// Opens a regular file whose path contains no link.
    fn open_without_links(&self, path: &RunPath) -> Result<File, PortError> {
        let root = self.run.root().canonicalize().map_err(file_error("open", path))?;
        let full = self.run.file_path(path).canonicalize().map_err(file_error("open", path))?;
        let straight = full == RunDir::new(root).file_path(path);
        let opened = straight.then(|| record_file::open_record(&full, RecordKind::Log));
        match opened {
            Some(Err(error)) if UnusableFile::in_error(&error).is_none() => {
                Err(file_error("open", path)(error))
            }
            Some(Ok(file)) => Ok(file),
            Some(Err(_)) | None => Err(PortError::new(format!("`{path}` is no regular file"))),
        }
    }
}

/// Removes an eval's folders `s1`, `s2`… and the files beside them. Links are never followed.
fn remove_submission_folders(folder: &Path) -> io::Result<()> {
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
            atomic_file::remove_if_present(&entry.path())?;
        }
    }
    Ok(())
}

/// Computes the digest of a regular file.
///
/// # Errors
/// When the file is missing, not a regular file, or cannot be read.
pub fn digest_file(path: &Path) -> io::Result<Sha256> {
    copy_and_digest(&mut record_file::open_record(path, RecordKind::Artifact)?, &mut io::sink())
}

/// Copies a file of a run to a path that the user chose, replacing the file there.
///
/// # Errors
/// When the file cannot be read or written.
pub fn copy_out(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = record_file::open_record(from, RecordKind::Artifact)?;
    atomic_file::replace_file(to, |file| copy_and_digest(&mut source, file).map(drop))
}

fn artifact_path(name: &str) -> Result<RunPath, PortError> {
    let plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    let path = plain.then(|| format!("{}/{name}", path::ARTIFACTS_FOLDER).parse().ok()).flatten();
    path.ok_or_else(|| PortError::new(format!("{name:?} is no name for an artifact")))
}

/// A writer that computes the digest of the bytes that it passes on.
pub struct DigestWriter<W> {
    to: W,
    digest: sha2::Sha256,
}

impl<W: Write> DigestWriter<W> {
    /// Wraps a writer.
    pub fn new(to: W) -> Self {
        Self { to, digest: sha2::Sha256::new() }
    }

    /// Returns the digest of everything that was written.
    pub fn finish(self) -> Sha256 {
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

/// Copies a reader to its end and returns the digest of the bytes.
///
/// # Errors
/// If the reader cannot be read or the writer cannot be written.
pub fn copy_and_digest(from: &mut impl Read, to: &mut impl io::Write) -> io::Result<Sha256> {
    let mut digest = sha2::Sha256::new();
    let mut chunk = vec![0; COPY_CHUNK_BYTES];
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
