//! A folder of ideas that the user names. A batch of new ones is on record whole before the first of them is written, so that
//! whoever comes after a kill finishes it, and pays for nothing again. What an idea says is not known here.

use crate::atomic_file;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::id::Sha256;

/// Where ideas go that others are to replace.
pub const SET_ASIDE_FOLDER: &str = "set_aside";
/// The longest batch that is read.
const MAX_BATCH_BYTES: u64 = 256 << 20;
/// The longest time that the lock of a dead process is waited for.
const ORPHANED_LOCK_PATIENCE: Duration = Duration::from_secs(3);
/// The pause between two looks at a lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How many digits of a digest name a folder.
const FOLDER_NAME_DIGITS: usize = 16;

/// A folder of ideas that nobody else changes now.
#[derive(Debug)]
pub struct IdeasDir {
    folder: PathBuf,
    /// What is to be done in it, while that is not done.
    batch: PathBuf,
    #[expect(dead_code, reason = "held for its lock")]
    lock: File,
}

/// What is to be done in a folder: first the moves, then the files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdeasDirBatch {
    /// What is set aside, and where to, below the folder.
    pub aside: Option<SetAsideFiles>,
    /// What is written.
    pub files: Vec<NewIdeaFile>,
    /// What the conversation has become.
    #[serde(default)]
    pub conversation: Option<UserConversationFile>,
    /// How often ideas have been asked for here by then: what is asked next is another question.
    #[serde(default)]
    pub edition: u64,
}

/// A file that the user wants a conversation in, in place of whatever has its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserConversationFile {
    /// Where; whole.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
}

/// Files that go out of the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAsideFiles {
    /// Where to, below the folder.
    pub folder: String,
    /// Their names.
    pub names: Vec<String>,
}

/// A file that is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewIdeaFile {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdeasDirError {
    /// Somebody else uses it.
    #[error("another process writes ideas into `{}`", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// The record of a batch cannot be read.
    #[error("`{}` cannot be understood", file.display())]
    Damaged {
        /// The record.
        file: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// It cannot be read or written.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl IdeasDirError {
    /// What to do about it.
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

/// Writes a file whole.
fn replace_file(path: &Path, text: &str) -> Result<(), IdeasDirError> {
    atomic_file::replace_file(path, |file| file.write_all(text.as_bytes()))
        .and_then(|()| atomic_file::sync_dir(parent_dir(path)))
        .map_err(io_error("write", path))
}

fn parent_dir(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Writes a conversation where nothing has that name yet.
///
/// # Errors
/// When it cannot be written.
pub fn write_conversation_file(state: &UserConversationFile) -> Result<(), IdeasDirError> {
    let UserConversationFile { path, text } = state;
    match atomic_file::create_file(path, |file| file.write_all(text.as_bytes())) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written.map_err(io_error("write", path)),
    }
}

/// Whether a file can be written there: found out before anything is paid for.
///
/// # Errors
/// When it cannot.
pub fn must_be_writable(path: &Path) -> Result<(), IdeasDirError> {
    let taken = || io::Error::new(io::ErrorKind::IsADirectory, "a folder has that name");
    if path.is_dir() {
        return Err(io_error("write", path)(taken()));
    }
    tempfile::tempfile_in(parent_dir(path)).map(drop).map_err(io_error("write", path))
}

impl IdeasDir {
    /// Makes the folder if need be, and keeps others out of it. What is to be done in it is on record below `own`.
    ///
    /// # Errors
    /// When it cannot be made, or somebody else has it.
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
                // The child of a process that was killed may hold it until it has started its program.
                Err(TryLockError::WouldBlock) if begun.elapsed() < ORPHANED_LOCK_PATIENCE => {
                    thread::sleep(LOCK_POLL_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => return Err(IdeasDirError::Busy { folder }),
                Err(TryLockError::Error(error)) => return Err(io_error("lock", &path)(error)),
            }
        }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A folder of ours for whoever works on it.
    #[must_use]
    pub fn work_folder(&self) -> PathBuf {
        self.batch.with_extension("")
    }

    /// How often ideas have been asked for here, to the end.
    #[must_use]
    pub fn read_edition(&self) -> u64 {
        let text = fs::read_to_string(self.edition_file()).unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    }

    fn edition_file(&self) -> PathBuf {
        self.batch.with_extension("edition")
    }

    /// Finishes what somebody has begun here, and says what it was.
    ///
    /// # Errors
    /// When the record cannot be understood, or something cannot be written.
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

    /// Does all of it: what is on record once is done, whoever is killed.
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
                // It was written before the kill.
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
            // What is there already was moved before the kill: what has its old name now is another.
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
