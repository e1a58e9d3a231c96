//! The protected inputs: files that git does not track, that sweeps are given as links, and that no candidate may change.
//! What they are, as one digest, and which of them are others since. Reads only, and content only of what the system says
//! was changed. Links in an input are known by where they lead and not followed: what lies outside is no input.

use super::system;
use crate::git::{Stamp, stamp};
use crate::store::copy_and_digest;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use treebeam_core::id::Sha256;
use treebeam_core::measure::WorktreePath;
use treebeam_core::policy::Meaning;
use treebeam_core::protect::{BadGlob, Protected};
use treebeam_run::port::{Inputs, PortError};

/// Where Python puts what it makes of the code that it reads, whoever wrote that.
const CACHE: &str = "__pycache__";
/// A file that was changed less than so many seconds ago may be changed again without its times telling.
const RECENT: u64 = 2;

/// The protected inputs of a run.
#[derive(Debug)]
pub struct ProtectedInputs {
    /// The top level of the repository.
    top: PathBuf,
    inputs: Vec<WorktreePath>,
    protected: Protected,
    memory: Mutex<Memory>,
}

/// What this process has seen.
#[derive(Debug, Default)]
struct Memory {
    /// Digests of files, with what the system said of each when it was read.
    read: BTreeMap<OsString, (Stamp, Sha256)>,
    /// All of them as they were at a fingerprint.
    seen: Option<(Sha256, Listing)>,
}

/// The digest of each file, by its path in the repository.
type Listing = BTreeMap<OsString, Sha256>;

impl ProtectedInputs {
    /// Those of a run in the repository whose top level this is.
    ///
    /// # Errors
    /// When a pattern of `protect` is no glob.
    pub fn new(top: &Path, meaning: &Meaning) -> Result<Self, BadGlob> {
        let (top, inputs) = (top.to_owned(), meaning.measure.inputs.clone());
        let protected = Protected::new(&meaning.protecting_inputs())?;
        Ok(Self { top, inputs, protected, memory: Mutex::default() })
    }

    /// Whether there is none.
    ///
    /// # Errors
    /// When a folder in which there may be one cannot be read.
    pub fn is_empty(&self) -> Result<bool, PortError> {
        Ok(self.found()?.is_empty())
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each of them is now.
    fn look(&self, memory: &mut Memory) -> Result<Listing, PortError> {
        let found = self.found()?;
        memory.read.retain(|name, _| found.contains_key(name));
        let mut listing = Listing::new();
        for (name, path) in found {
            match memory.digest(&name, &path) {
                Ok(digest) => drop(listing.insert(name, digest)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(&name, error)),
            }
        }
        Ok(listing)
    }

    /// Where each of them lies, by its path in the repository.
    fn found(&self) -> Result<BTreeMap<OsString, PathBuf>, PortError> {
        let mut found = BTreeMap::new();
        for input in &self.inputs {
            let name = OsString::from(input.as_str());
            // The input itself may be a link: what it leads to is what sweeps are given.
            match self.top.join(input.as_str()).canonicalize() {
                Ok(path) if path.is_dir() => self.walk(name, path, &mut found)?,
                Ok(path) if self.covers(&name) => drop(found.insert(name, path)),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(unreadable(&name, error));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(found)
    }

    /// Adds those in a folder, and in its folders, as far as a glob leads.
    fn walk(
        &self,
        name: OsString,
        path: PathBuf,
        found: &mut BTreeMap<OsString, PathBuf>,
    ) -> Result<(), PortError> {
        let mut left = vec![(name, path)];
        while let Some((folder, path)) = left.pop() {
            if !self.protected.may_cover_below(&folder.to_string_lossy()) {
                continue;
            }
            for (name, path, is_folder) in inside(&folder, &path)? {
                if is_folder {
                    left.push((name, path));
                } else if self.covers(&name) {
                    found.insert(name, path);
                }
            }
        }
        Ok(())
    }

    fn covers(&self, name: &OsStr) -> bool {
        self.protected.covers(&name.to_string_lossy())
    }
}

/// What is in a folder, and whether it is one itself. A folder that is gone has nothing in it.
fn inside(folder: &OsStr, path: &Path) -> Result<Vec<(OsString, PathBuf, bool)>, PortError> {
    let listed = fs::read_dir(path).and_then(|entries| {
        let entry = |entry: fs::DirEntry| {
            let name = entry.file_name();
            let full = [folder, OsStr::new("/"), &name].into_iter().collect::<OsString>();
            let is_folder = entry.file_type()?.is_dir();
            Ok((name != CACHE || !is_folder).then(|| (full, entry.path(), is_folder)))
        };
        entries.filter_map(|it| it.and_then(entry).transpose()).collect()
    });
    match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|error| unreadable(folder, error)),
    }
}

fn unreadable(name: &OsStr, error: io::Error) -> PortError {
    let what = format!("cannot read the protected input `{}`", name.to_string_lossy());
    PortError::new(what).hint("make it readable, then resume").caused_by(error)
}

impl Memory {
    /// What is in a file, or where a link leads. Nothing else is opened.
    fn digest(&mut self, name: &OsStr, path: &Path) -> io::Result<Sha256> {
        let found = fs::symlink_metadata(path)?;
        if found.is_symlink() {
            let target = fs::read_link(path)?.into_os_string();
            return Ok(Sha256::of(&[b"a link\0", target.as_encoded_bytes()].concat()));
        }
        if !found.is_file() {
            return Ok(Sha256::of(b"no file\0"));
        }
        let (now, settled) = (stamp(&found), is_settled(&found));
        if let Some((then, digest)) = self.read.get(name)
            && *then == now
        {
            return Ok(*digest);
        }
        let digest = copy_and_digest(&mut File::open(path)?, &mut io::sink())?;
        if settled {
            self.read.insert(name.to_owned(), (now, digest));
        }
        Ok(digest)
    }
}

/// Whether its times would tell if it was changed from now on.
fn is_settled(found: &Metadata) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    system::changed_at(found) + RECENT <= now
}

/// One digest of all: of their paths, in order, and of what is in each.
fn digest_of(listing: &Listing) -> Sha256 {
    let mut text = Vec::new();
    for (name, digest) in listing {
        text.extend_from_slice(name.as_encoded_bytes());
        text.extend_from_slice(format!("\0{digest}\n").as_bytes());
    }
    Sha256::of(&text)
}

/// Those that are in only one of the two, or not the same in both.
fn differing(then: &Listing, now: &Listing) -> Vec<String> {
    let changed = then.iter().filter(|(name, digest)| now.get(*name) != Some(*digest));
    let new = now.iter().filter(|(name, _)| !then.contains_key(*name));
    let mut names: Vec<String> =
        changed.chain(new).map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

impl Inputs for ProtectedInputs {
    fn fingerprint(&self) -> Result<Option<Sha256>, PortError> {
        let mut memory = self.memory();
        let now = self.look(&mut memory)?;
        if now.is_empty() {
            return Ok(None);
        }
        let digest = digest_of(&now);
        memory.seen = Some((digest, now));
        Ok(Some(digest))
    }

    fn changed(&self, since: &Sha256) -> Result<Option<Vec<String>>, PortError> {
        let mut memory = self.memory();
        let now = self.look(&mut memory)?;
        let digest = digest_of(&now);
        if digest == *since {
            memory.seen = Some((digest, now));
            return Ok(None);
        }
        let then = memory.seen.as_ref().filter(|(digest, _)| digest == since);
        Ok(Some(then.map_or_else(Vec::new, |(_, then)| differing(then, &now))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    /// A repository's folder with inputs.
    struct Field(tempfile::TempDir);

    impl Field {
        fn new() -> io::Result<Self> {
            let field = Self(tempfile::tempdir()?);
            for folder in ["data/raw", "data/__pycache__", "venv/tests"] {
                fs::create_dir_all(field.path(folder))?;
            }
            for file in ["data/a.csv", "data/raw/b.csv", "venv/x.py", "venv/tests/test_x.py"] {
                fs::write(field.path(file), file)?;
            }
            Ok(field)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn inputs(&self, protect: &[&str]) -> Result<ProtectedInputs, BadGlob> {
            let mut meaning = Meaning::default();
            meaning.protect.extend(protect.iter().map(|&glob| glob.to_owned()));
            let input = |name: &str| WorktreePath::try_from(name.to_owned()).ok();
            meaning.measure.inputs =
                ["data", "venv", "gone"].into_iter().filter_map(input).collect();
            ProtectedInputs::new(self.0.path(), &meaning)
        }
    }

    fn fingerprint(inputs: &ProtectedInputs) -> Result<Sha256, PortError> {
        inputs.fingerprint()?.ok_or_else(|| PortError::new("no input is protected"))
    }

    #[test]
    fn only_what_a_pattern_of_the_user_matches_is_protected() -> Outcome {
        let field = Field::new()?;
        for (protect, count) in [
            (&[][..], 0),
            (&["data/**"], 2),
            (&["data/raw/*"], 1),
            (&["**/*.py"], 2),
            (&["data"], 0),
        ] {
            let inputs = field.inputs(protect)?;
            assert_eq!(inputs.found()?.len(), count, "{protect:?}");
            assert_eq!(inputs.fingerprint()?.is_some(), count > 0, "{protect:?}");
        }
        Ok(())
    }

    #[test]
    fn whatever_was_changed_is_named_and_restored_it_is_the_same() -> Outcome {
        type Touch = fn(&Field) -> io::Result<()>;
        let touches: [(&[&str], Touch); 6] = [
            (&["data/a.csv"], |field| fs::write(field.path("data/a.csv"), "data/b.csv")),
            (&["data/a.csv"], |field| fs::remove_file(field.path("data/a.csv"))),
            (&["data/new"], |field| fs::write(field.path("data/new"), "")),
            (&["data/raw/b.csv", "data/raw/c.csv"], |field| {
                fs::rename(field.path("data/raw/b.csv"), field.path("data/raw/c.csv"))
            }),
            (&["data/raw/b.csv"], |field| fs::remove_dir_all(field.path("data/raw"))),
            (&["data/a.csv", "data/raw/b.csv"], |field| fs::remove_dir_all(field.path("data"))),
        ];
        for (names, touch) in touches {
            let field = Field::new()?;
            let inputs = field.inputs(&["data/**"])?;
            let since = fingerprint(&inputs)?;
            assert_eq!(inputs.changed(&since)?, None);
            touch(&field)?;
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(inputs.changed(&since)?, Some(names));
            // Who has not seen them before cannot know.
            assert_eq!(field.inputs(&["data/**"])?.changed(&since)?, Some(Vec::new()));
            drop(fs::remove_dir_all(field.path("data")));
            fs::create_dir_all(field.path("data/raw"))?;
            for file in ["data/a.csv", "data/raw/b.csv"] {
                fs::write(field.path(file), file)?;
            }
            assert_eq!(inputs.changed(&since)?, None);
            assert_eq!(field.inputs(&["data/**"])?.changed(&since)?, None);
        }
        Ok(())
    }

    #[test]
    fn what_is_not_protected_may_be_written() -> Outcome {
        let field = Field::new()?;
        let inputs = field.inputs(&["data/**"])?;
        let since = fingerprint(&inputs)?;
        fs::write(field.path("venv/new.py"), "")?;
        fs::write(field.path("data/__pycache__/a.pyc"), "")?;
        assert_eq!(inputs.changed(&since)?, None);
        Ok(())
    }

    /// A file that was not changed lately is read once.
    #[test]
    fn content_is_read_again_only_where_it_may_have_changed() -> Outcome {
        let field = Field::new()?;
        let inputs = field.inputs(&["data/a.csv"])?;
        let since = fingerprint(&inputs)?;
        assert_eq!(inputs.memory().read.len(), 0, "it may be changed again without a trace");
        let (name, path) = (OsString::from("data/a.csv"), field.path("data/a.csv"));
        let kept = (stamp(&fs::symlink_metadata(&path)?), Sha256::of(b"as it was"));
        inputs.memory().read.insert(name, kept);
        assert_eq!(inputs.changed(&since)?, Some(vec!["data/a.csv".to_owned()]), "not read");
        File::options().append(true).open(&path)?.set_modified(SystemTime::UNIX_EPOCH)?;
        assert_eq!(inputs.changed(&since)?, None, "read again");
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn links_are_known_by_where_they_lead_and_end_nowhere() -> Outcome {
        use std::os::unix::fs::symlink;
        let field = Field::new()?;
        fs::rename(field.path("data"), field.path("elsewhere"))?;
        symlink("elsewhere", field.path("data"))?;
        symlink(".", field.path("data/itself"))?;
        symlink("../venv/x.py", field.path("data/link"))?;
        rustix::fs::mkfifoat(rustix::fs::CWD, field.path("data/pipe"), 0o600.into())?;
        let inputs = field.inputs(&["data/**"])?;
        assert_eq!(inputs.found()?.len(), 5);
        let since = fingerprint(&inputs)?;
        fs::write(field.path("venv/x.py"), "another")?;
        assert_eq!(inputs.changed(&since)?, None);
        fs::remove_file(field.path("data/link"))?;
        symlink("../venv", field.path("data/link"))?;
        assert_eq!(inputs.changed(&since)?, Some(vec!["data/link".to_owned()]));
        Ok(())
    }
}
