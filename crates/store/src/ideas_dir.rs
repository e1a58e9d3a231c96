//! Writes batches of ideas into a folder of the user's. A batch is recorded whole before its first
//! file is written, so that the next process finishes it after a kill without paying for it again.
//! The content of an idea is not interpreted here.

use crate::atomic_file;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::id::Sha256;

/// Name of the folder for ideas that were replaced by others.
pub const SET_ASIDE_FOLDER: &str = "set_aside";
/// The longest batch record that is read.
const MAX_BATCH_BYTES: u64 = 256 << 20;
/// The longest wait for the lock of a dead process.
const ORPHANED_LOCK_PATIENCE: Duration = Duration::from_secs(3);
/// The pause between two tries to take a lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of digits of the digest that names a folder.
const FOLDER_NAME_DIGITS: usize = 16;

/// A folder of ideas, locked against other treebeam processes.
#[derive(Debug)]
pub struct IdeasDir {
    folder: PathBuf,
    /// Path of the batch record, which exists until the batch is applied.
    batch: PathBuf,
    #[expect(dead_code, reason = "held for its lock")]
    lock: File,
}

/// A batch of changes to a folder: the moves come first, then the files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdeasDirBatch {
    /// The files that are set aside, and their new place below the folder.
    pub aside: Option<SetAsideFiles>,
    /// The files that are written.
    pub files: Vec<NewIdeaFile>,
    /// The new state of the conversation.
    #[serde(default)]
    pub conversation: Option<UserConversationFile>,
    /// Number of questions for ideas here, this batch included; part of the next question's key.
    #[serde(default)]
    pub edition: u64,
}

/// A conversation file at a path of the user's choice, which replaces the file there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserConversationFile {
    /// Full path of the file.
    pub path: PathBuf,
    /// Content of the file.
    pub text: String,
}

/// Files that are moved out of the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAsideFiles {
    /// Name of the target folder, below the folder of ideas.
    pub folder: String,
    /// Names of the files.
    pub names: Vec<String>,
}

/// A file that is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewIdeaFile {
    /// Name of the file.
    pub name: String,
    /// Content of the file.
    pub text: String,
}

/// The reason why a folder of ideas cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdeasDirError {
    /// Another process uses the folder.
    #[error("another process writes ideas into `{}`", folder.display())]
    Busy {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// The record of a batch cannot be parsed.
    #[error("`{}` cannot be understood", file.display())]
    Damaged {
        /// Path of the record.
        file: PathBuf,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The path that it failed on.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl IdeasDirError {
    /// Returns a hint on what to do about the error.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Busy { .. } => Some("wait until it is done, or name another folder"),
            Self::Damaged { .. } => Some("remove that file: answers that were paid for are kept"),
            Self::Io { .. } => None,
        }
    }
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> IdeasDirError {
    let path = path.to_owned();
    move |source| IdeasDirError::Io { doing, path, source }
}

/// Writes a file whole, and makes its name durable.
fn replace_file(path: &Path, text: &str) -> Result<(), IdeasDirError> {
    atomic_file::replace_file(path, |file| file.write_all(text.as_bytes()))
        .and_then(|()| atomic_file::sync_dir(parent_dir(path)))
        .map_err(io_error("write", path))
}

fn parent_dir(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Writes a conversation file if its name is free.
///
/// # Errors
/// When the file cannot be written.
pub fn write_conversation_file(state: &UserConversationFile) -> Result<(), IdeasDirError> {
    let UserConversationFile { path, text } = state;
    match atomic_file::create_file(path, |file| file.write_all(text.as_bytes())) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written.map_err(io_error("write", path)),
    }
}

/// Checks that a file can be written at this path, before anything is paid for.
///
/// # Errors
/// When the file cannot be written.
pub fn must_be_writable(path: &Path) -> Result<(), IdeasDirError> {
    let taken = || io::Error::new(io::ErrorKind::IsADirectory, "a folder has that name");
    if path.is_dir() {
        return Err(io_error("write", path)(taken()));
    }
    tempfile::tempfile_in(parent_dir(path)).map(drop).map_err(io_error("write", path))
}

impl IdeasDir {
    /// Opens and locks a folder, creating it if missing. Lock and batch record lie below `own`.
    ///
    /// # Errors
    /// When the folder cannot be created, or another process has it.
    pub fn open(folder: &Path, own: &Path) -> Result<Self, IdeasDirError> {
        for made in [folder, own] {
            fs::create_dir_all(made).map_err(io_error("create", made))?;
        }
        let folder = folder.canonicalize().map_err(io_error("find", folder))?;
        let digest = Sha256::hash_bytes(folder.as_os_str().as_encoded_bytes()).to_string();
        let name: String = digest.chars().take(FOLDER_NAME_DIGITS).collect();
        let path = own.join(format!("{name}.lock"));
        let open = OpenOptions::new().create(true).write(true).truncate(false).open(&path);
        let lock = open.map_err(io_error("open", &path))?;
        let begun = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => {
                    return Ok(Self { folder, batch: own.join(format!("{name}.json")), lock });
                }
                // A killed process's child may hold the lock until its exec.
                Err(TryLockError::WouldBlock) if begun.elapsed() < ORPHANED_LOCK_PATIENCE => {
                    thread::sleep(LOCK_POLL_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => return Err(IdeasDirError::Busy { folder }),
                Err(TryLockError::Error(error)) => return Err(io_error("lock", &path)(error)),
            }
        }
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of treebeam's own work folder for this folder of ideas.
    #[must_use]
    pub fn work_folder(&self) -> PathBuf {
        self.batch.with_extension("")
    }

    /// Returns the number of finished questions for ideas in this folder.
    #[must_use]
    pub fn read_edition(&self) -> u64 {
        let text = fs::read_to_string(self.edition_file()).unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    }

    fn edition_file(&self) -> PathBuf {
        self.batch.with_extension("edition")
    }

    /// Finishes a recorded batch that an earlier process did not, and returns it.
    ///
    /// # Errors
    /// When the record cannot be parsed, or something cannot be written.
    pub fn finish_recorded(&self) -> Result<Option<IdeasDirBatch>, IdeasDirError> {
        atomic_file::clear_unfinished_files(&self.folder)
            .map_err(io_error("tidy", &self.folder))?;
        let file = &self.batch;
        let bytes = match fs::metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(known) if known.len() > MAX_BATCH_BYTES => Err(io::Error::other("it is too long")),
            Ok(_) | Err(_) => fs::read(file),
        };
        let bytes = bytes.map_err(io_error("read", file))?;
        let batch = serde_json::from_slice(&bytes);
        let batch =
            batch.map_err(|source| IdeasDirError::Damaged { file: file.clone(), source })?;
        self.apply_batch(&batch)?;
        Ok(Some(batch))
    }

    /// Records a batch, then applies it. It is applied exactly once, even after a kill.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn record_and_apply(&self, batch: &IdeasDirBatch) -> Result<(), IdeasDirError> {
        let text = serde_json::to_vec(batch)
            .map_err(|source| IdeasDirError::Damaged { file: self.batch.clone(), source })?;
        atomic_file::replace_file(&self.batch, |file| file.write_all(&text))
            .and_then(|()| atomic_file::sync_dir(parent_dir(&self.batch)))
            .map_err(io_error("write", &self.batch))?;
        self.apply_batch(batch)
    }

    fn apply_batch(&self, batch: &IdeasDirBatch) -> Result<(), IdeasDirError> {
        if let Some(aside) = &batch.aside {
            self.set_aside(aside)?;
        }
        for NewIdeaFile { name, text } in &batch.files {
            let path = self.folder.join(name);
            match atomic_file::create_file(&path, |file| file.write_all(text.as_bytes())) {
                // The file was written before the kill.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                written => written.map_err(io_error("write", &path))?,
            }
        }
        atomic_file::sync_dir(&self.folder).map_err(io_error("sync", &self.folder))?;
        if let Some(UserConversationFile { path, text }) = &batch.conversation {
            replace_file(path, text)?;
        }
        replace_file(&self.edition_file(), &batch.edition.to_string())?;
        atomic_file::remove_if_present(&self.batch).map_err(io_error("remove", &self.batch))
    }

    fn set_aside(&self, aside: &SetAsideFiles) -> Result<(), IdeasDirError> {
        let to = self.folder.join(&aside.folder);
        fs::create_dir_all(&to).map_err(io_error("create", &to))?;
        for name in &aside.names {
            let (old, new) = (self.folder.join(name), to.join(name));
            // Moved before the kill: a file at the old name is another one.
            if new.exists() || !old.exists() {
                continue;
            }
            fs::rename(&old, &new).map_err(io_error("move", &old))?;
        }
        atomic_file::sync_dir(&to).map_err(io_error("sync", &to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn batch(path: PathBuf) -> IdeasDirBatch {
        let file =
            |name: &str, text: &str| NewIdeaFile { name: name.to_owned(), text: text.to_owned() };
        let names = ["001_a.md", "002_b.md"].map(str::to_owned).to_vec();
        IdeasDirBatch {
            aside: Some(SetAsideFiles { folder: "set_aside/1".to_owned(), names }),
            files: vec![file("001_a.md", "new a"), file("002_c.md", "new c")],
            conversation: Some(UserConversationFile { path, text: "said".to_owned() }),
            edition: 4,
        }
    }

    fn files(folder: &Path) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for below in [folder.to_owned(), folder.join("set_aside/1")] {
            for entry in fs::read_dir(below).into_iter().flatten().flatten() {
                if let Ok(text) = fs::read_to_string(entry.path()) {
                    let name =
                        entry.path().strip_prefix(folder).expect("below").display().to_string();
                    all.insert(name, text);
                }
            }
        }
        all
    }

    /// Every state that a kill can leave, made by hand: some moves, then some files.
    #[test]
    fn whatever_was_done_of_a_batch_the_rest_is_done_once() {
        for done in 0..=5 {
            let home = tempfile::tempdir().expect("a folder");
            let (folder, own) = (home.path().join("ideas"), home.path().join("own"));
            let dir = IdeasDir::open(&folder, &own).expect("a folder");
            for name in ["001_a.md", "002_b.md"] {
                fs::write(folder.join(name), format!("old {name}")).expect("a file");
            }
            fs::create_dir_all(folder.join("set_aside/1")).expect("a folder");
            let moved = |name: &str| {
                fs::rename(folder.join(name), folder.join("set_aside/1").join(name))
                    .expect("moved");
            };
            let steps: [&dyn Fn(); 4] = [
                &|| moved("001_a.md"),
                &|| moved("002_b.md"),
                &|| fs::write(folder.join("001_a.md"), "new a").expect("a file"),
                &|| fs::write(folder.join("002_c.md"), "new c").expect("a file"),
            ];
            for step in steps.iter().take(done) {
                step();
            }
            let (state, edition) = (home.path().join("c.json"), dir.edition_file());
            fs::write(&state, "said before").expect("a file");
            if done > 4 {
                fs::write(&state, "said").expect("a file");
                fs::write(&edition, "4").expect("a file");
            }
            let batch = batch(state.clone());
            fs::write(folder.join(".new-x"), "half").expect("a file");
            fs::write(&dir.batch, serde_json::to_vec(&batch).expect("json")).expect("a file");
            assert_eq!(dir.finish_recorded().expect("finished"), Some(batch), "{done}");
            assert_eq!(fs::read_to_string(&state).expect("a file"), "said", "{done}");
            assert_eq!(dir.read_edition(), 4, "{done}");
            let expect = [
                ("001_a.md", "new a"),
                ("002_c.md", "new c"),
                ("set_aside/1/001_a.md", "old 001_a.md"),
                ("set_aside/1/002_b.md", "old 002_b.md"),
            ];
            let expect = expect.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
            assert_eq!(files(&folder), expect, "{done}");
            assert_eq!(dir.finish_recorded().expect("nothing to do"), None, "{done}");
        }
    }

    #[test]
    fn one_at_a_time() {
        let home = tempfile::tempdir().expect("a folder");
        let (folder, own) = (home.path().join("ideas"), home.path().join("own"));
        let first = IdeasDir::open(&folder, &own).expect("a folder");
        let second = IdeasDir::open(&home.path().join("own/../ideas"), &own);
        assert!(matches!(second, Err(IdeasDirError::Busy { .. })), "{second:?}");
        drop(IdeasDir::open(&home.path().join("others"), &own).expect("another folder"));
        drop(first);
        drop(IdeasDir::open(&folder, &own).expect("free again"));
    }
}
