//! The user's state directory, outside of every repository and run. It holds the secret that signs
//! messages to a run, and the folders of runs that were used; no settings and no keys.

use crate::sync_dir;
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The file that holds the secret, as hexadecimal digits.
const SECRET_FILE: &str = "inbox.secret";
/// The folder with one empty file for each folder of runs that was used.
const RUNS_ROOTS_FOLDER: &str = "runs-roots";
/// The length of the secret in bytes.
const SECRET_BYTES: usize = 32;
/// The block size of SHA-256 in bytes.
const SHA256_BLOCK_BYTES: usize = 64;

/// The reason why the user's state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UserStateError {
    /// No environment variable gives its place.
    #[error("there is no place for the user's state: {UNSET_VARIABLES_REASON}")]
    Nowhere,
    /// The directory lies where agents and candidates work.
    #[error("the user's state directory `{}` lies in `{}`", path.display(), inside.display())]
    Inside {
        /// Path of the directory.
        path: PathBuf,
        /// The repository or the run around it.
        inside: PathBuf,
    },
    /// A file in the directory is not as treebeam makes it.
    #[error("`{}` {why}", path.display())]
    Odd {
        /// Path of the file.
        path: PathBuf,
        /// Description of the difference.
        why: &'static str,
    },
    /// The system refused an operation.
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

#[cfg(windows)]
const UNSET_VARIABLES_REASON: &str =
    "neither `XDG_STATE_HOME` nor `LOCALAPPDATA` is an absolute path";
#[cfg(not(windows))]
const UNSET_VARIABLES_REASON: &str = "neither `XDG_STATE_HOME` nor `HOME` is an absolute path";

impl UserStateError {
    /// Returns a hint on what to do about the error.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Odd { .. } => "remove this file: the next call makes a new one",
            Self::Nowhere | Self::Inside { .. } | Self::Io { .. } => {
                "set `XDG_STATE_HOME` to a folder of your own, outside of the repository, that can be written to"
            }
        }
    }
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> UserStateError {
    let path = path.to_owned();
    move |source| UserStateError::Io { doing, path, source }
}

/// The state directory: `treebeam` in `$XDG_STATE_HOME`, or in the usual place of the system.
#[derive(Clone, Debug)]
pub struct UserState(PathBuf);

impl UserState {
    /// Returns the directory of the user whose environment this process has. It need not exist yet.
    ///
    /// # Errors
    /// When no variable names it.
    pub fn find() -> Result<Self, UserStateError> {
        Self::find_from_variables(|name| std::env::var_os(name))
    }

    /// Returns the directory that these variables name.
    ///
    /// # Errors
    /// When none of them names a directory.
    pub fn find_from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, UserStateError> {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let usual = || Some(absolute(HOME_VARIABLE)?.join(BELOW_HOME));
        let state = absolute("XDG_STATE_HOME").or_else(usual).ok_or(UserStateError::Nowhere)?;
        Ok(Self(state.join("treebeam")))
    }

    /// Refuses a state directory inside one of these folders.
    fn must_be_outside(&self, folders: &[&Path]) -> Result<(), UserStateError> {
        let path = resolve_links(&self.0);
        let around = folders.iter().find(|folder| path.starts_with(resolve_links(folder)));
        around.map_or(Ok(()), |inside| {
            Err(UserStateError::Inside { path: self.0.clone(), inside: (*inside).to_owned() })
        })
    }

    /// Returns the secret, creating it if missing; concurrent processes get the same one.
    ///
    /// # Errors
    /// When the directory lies in one of these folders, or the secret cannot be read, created, or
    /// kept from other users.
    pub fn inbox_secret(&self, outside_of: &[&Path]) -> Result<InboxSecret, UserStateError> {
        self.must_be_outside(outside_of)?;
        let path = self.0.join(SECRET_FILE);
        match open_private_file(&path) {
            Err(UserStateError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                self.make_secret(&path)?;
                InboxSecret::read(&path, open_private_file(&path)?)
            }
            opened => InboxSecret::read(&path, opened?),
        }
    }

    /// Writes a new secret under a temporary name, and renames it unless a secret exists by now.
    fn make_secret(&self, path: &Path) -> Result<(), UserStateError> {
        let make = || -> io::Result<()> {
            make_private_dir(&self.0)?;
            let mut bytes = [0; SECRET_BYTES];
            getrandom::fill(&mut bytes).map_err(io::Error::other)?;
            // Only its owner may read a temporary file.
            let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.0)?;
            writeln!(file, "{}", hex_digits(&bytes))?;
            file.as_file().sync_all()?;
            match file.persist_noclobber(path) {
                Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => {
                    Err(error.error)
                }
                Ok(_) | Err(_) => sync_dir(&self.0),
            }
        };
        make().map_err(io_error("make", path))
    }

    /// Returns true if treebeam has started or resumed a run in this folder of runs.
    #[must_use]
    pub fn knows_runs_root(&self, runs_root: &Path) -> bool {
        self.runs_root_marker(runs_root).is_file()
    }

    /// Remembers a folder of runs.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn remember_runs_root(&self, runs_root: &Path) -> Result<(), UserStateError> {
        let mark = self.runs_root_marker(runs_root);
        let make = || -> io::Result<()> {
            make_private_dir(&self.0.join(RUNS_ROOTS_FOLDER))?;
            OpenOptions::new().append(true).create(true).open(&mark).map(drop)
        };
        make().map_err(io_error("write", &mark))
    }

    fn runs_root_marker(&self, runs_root: &Path) -> PathBuf {
        let path = resolve_links(runs_root);
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        self.0.join(RUNS_ROOTS_FOLDER).join(hex_digits(&digest))
    }
}

/// Resolves the links of a path, as far as the path exists.
fn resolve_links(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = there else { return path.to_owned() };
    match path.strip_prefix(above) {
        Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
        Ok(_) | Err(_) => real,
    }
}

fn hex_digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(windows)]
const HOME_VARIABLE: &str = "LOCALAPPDATA";
#[cfg(not(windows))]
const HOME_VARIABLE: &str = "HOME";
#[cfg(windows)]
const BELOW_HOME: &str = "";
#[cfg(target_os = "macos")]
const BELOW_HOME: &str = "Library/Application Support";
#[cfg(not(any(windows, target_os = "macos")))]
const BELOW_HOME: &str = ".local/state";

#[cfg(unix)]
fn make_private_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Opens a regular file that only this user may read, without following links or waiting.
#[cfg(unix)]
fn open_private_file(path: &Path) -> Result<File, UserStateError> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let open = || OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = open().map_err(io_error("read", path))?;
    let found = file.metadata().map_err(io_error("read", path))?;
    let odd = |why| Err(UserStateError::Odd { path: path.to_owned(), why });
    if !found.is_file() {
        odd("is no regular file")
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        odd("belongs to another user")
    } else if found.mode() & 0o077 != 0 {
        odd("can be read by other users")
    } else {
        Ok(file)
    }
}

#[cfg(not(unix))]
fn open_private_file(path: &Path) -> Result<File, UserStateError> {
    let found = fs::symlink_metadata(path).map_err(io_error("read", path))?;
    if !found.is_file() {
        return Err(UserStateError::Odd { path: path.to_owned(), why: "is no regular file" });
    }
    File::open(path).map_err(io_error("read", path))
}

/// The secret that signs messages to a run. Never written into a message, a run or an environment.
#[derive(Clone)]
pub struct InboxSecret([u8; SECRET_BYTES]);

impl fmt::Debug for InboxSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InboxSecret(hidden)")
    }
}

impl InboxSecret {
    /// Wraps the bytes of a secret.
    #[must_use]
    pub const fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    fn read(path: &Path, file: File) -> Result<Self, UserStateError> {
        let mut text = String::new();
        let most = u64::try_from(2 * SECRET_BYTES + 2).unwrap_or(u64::MAX);
        file.take(most).read_to_string(&mut text).map_err(io_error("read", path))?;
        let digits = text.trim_end();
        let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..SECRET_BYTES).map(byte).collect();
        let whole = bytes.filter(|_| digits.len() == 2 * SECRET_BYTES);
        let whole = whole.and_then(|bytes| bytes.try_into().ok());
        let odd = || UserStateError::Odd { path: path.to_owned(), why: "holds no secret" };
        whole.map(Self).ok_or_else(odd)
    }

    /// Returns the signature of a text (HMAC-SHA256), in hexadecimal digits.
    #[must_use]
    pub fn sign(&self, text: &[u8]) -> String {
        let pad = |with: u8| {
            let mut block = [with; SHA256_BLOCK_BYTES];
            block.iter_mut().zip(self.0).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
        hex_digits(&Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize())
    }

    /// Returns true if this is a text's signature, in a time independent of where they differ.
    #[must_use]
    pub fn has_signed(&self, text: &[u8], signature: &str) -> bool {
        Sha256::digest(signature) == Sha256::digest(self.sign(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn state(folder: &Path) -> UserState {
        UserState(folder.join("state/treebeam"))
    }

    #[test]
    fn the_directory_is_where_the_variables_say() {
        let check = |xdg: Option<&str>, home: Option<&str>, expect: Option<&str>| {
            let variable = |name: &str| match name {
                "XDG_STATE_HOME" => xdg.map(OsString::from),
                HOME_VARIABLE => home.map(OsString::from),
                _ => None,
            };
            let found = UserState::find_from_variables(variable).ok().map(|found| found.0);
            assert_eq!(found, expect.map(|path| PathBuf::from(path).join("treebeam")));
        };
        if cfg!(target_os = "linux") {
            check(Some("/s"), Some("/h"), Some("/s"));
            check(None, Some("/h"), Some("/h/.local/state"));
            check(Some("relative"), Some("/h"), Some("/h/.local/state"));
            check(Some(""), Some(""), None);
            check(None, None, None);
        }
    }

    #[test]
    fn all_that_make_the_secret_at_once_get_the_same_one() {
        let folder = tempfile::tempdir().unwrap();
        let sign = || state(folder.path()).inbox_secret(&[]).unwrap().sign(b"x");
        let all: Vec<String> = thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(sign)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().all(|one| *one == all[0]) && all[0].len() == 64);
        assert_eq!(sign(), all[0], "and the next one, too");
        let names = fs::read_dir(state(folder.path()).0).unwrap().count();
        assert_eq!(names, 1, "nothing else is left");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_can_read_it_and_one_that_others_could_read_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let state = state(folder.path());
        let path = state.0.join(SECRET_FILE);
        let said = |state: &UserState| state.inbox_secret(&[]).unwrap_err().to_string();
        let _ = state.inbox_secret(&[]).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&state.0)), (0o600, 0o700));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(said(&state).ends_with("can be read by other users"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "abc\n").unwrap();
        assert!(said(&state).ends_with("holds no secret"));
        fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        assert!(said(&state).starts_with("cannot read"));
    }

    #[test]
    fn a_directory_in_the_repository_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = state(folder.path()).inbox_secret(&[folder.path()]).unwrap_err();
        assert!(matches!(error, UserStateError::Inside { .. }), "{error}");
        let beside = folder.path().join("repository");
        assert!(state(folder.path()).inbox_secret(&[&beside]).is_ok());
    }

    #[test]
    fn a_text_is_signed_as_the_standard_says() {
        // HMAC-SHA256 with a key of 32 bytes, as any other program computes it.
        let secret = InboxSecret::new([0x0b; SECRET_BYTES]);
        let signature = secret.sign(b"Hi There");
        assert_eq!(signature, "198a607eb44bfbc69903a0f1cf2bbdc5ba0aa3f3d9ae3c1c7a3b1696a0b68cf7");
        assert!(secret.has_signed(b"Hi There", &signature));
        assert!(!secret.has_signed(b"Hi there", &signature));
        assert!(!secret.has_signed(b"Hi There", "") && !secret.has_signed(b"", &signature));
    }

    #[test]
    fn folders_of_runs_are_remembered_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let (state, one) = (state(folder.path()), folder.path().join("one"));
        assert!(!state.knows_runs_root(&one));
        state.remember_runs_root(&one).unwrap();
        state.remember_runs_root(&one).unwrap();
        fs::create_dir(&one).unwrap();
        assert!(state.knows_runs_root(&one));
        assert!(state.knows_runs_root(&folder.path().join("./one")));
        assert!(!state.knows_runs_root(&folder.path().join("two")));
    }
}
