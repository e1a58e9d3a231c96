//! Lists the run's inputs with a digest, and detects which of them were changed. Inputs are files
//! that git does not track, that sweeps get as links, and that no candidate may change. It only
//! reads, and reads content only of files whose metadata changed. Links in an input are compared by
//! their target and not followed: files outside of an input do not belong to it.

use super::job_result::is_file_within;
use super::listing::InputListing;
use super::spec::JOB_SPEC_FILE;
use super::system;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use treebeam_core::id::{RunPath, Sha256};
use treebeam_core::measure::WorktreePath;
use treebeam_core::path;
use treebeam_core::policy::FixedSettings;
use treebeam_core::protect::{BadGlob, ProtectedPaths};
use treebeam_core::root_checks::{InputScope, RecordedInputs};
use treebeam_git::{FileStamp, file_stamp};
use treebeam_run::port::{InputFiles, InputList, PortError};
use treebeam_store::{RunDir, copy_and_digest};

/// Folder in which Python caches compiled code.
const PYTHON_CACHE: &str = "__pycache__";
/// Suffixes of compiled Python files outside of that folder.
const COMPILED_SUFFIXES: [&str; 2] = [".pyc", ".pyo"];
/// Names of files or folders that mark a virtual environment.
const VENV_MARKER_NAMES: [&str; 2] = ["pyvenv.cfg", "conda-meta"];
/// Size above which files are compared by size and time instead of content, in bytes.
const MAX_READ_BYTES: u64 = 1 << 30;
/// Maximum size of a recorded list of inputs, in bytes.
const MAX_LIST_BYTES: u64 = 1 << 30;
/// Age below which a file may change again without a change of its times.
const MIN_SETTLED_AGE: Duration = Duration::from_secs(2);

/// The protected inputs of a run.
#[derive(Debug)]
pub struct ProtectedInputs {
    /// Top folder of the repository.
    top: PathBuf,
    inputs: Vec<WorktreePath>,
    protected: ProtectedPaths,
    /// Run whose record contains the list of the inputs.
    run: Option<RunDir>,
    cache: Mutex<InputCache>,
}

/// Digests and lists that this process has computed.
#[derive(Debug, Default)]
struct InputCache {
    /// Digests of files, with the stamp of each file when it was read.
    read: BTreeMap<OsString, (FileStamp, Sha256)>,
    /// Last list of inputs, with the digest of the list.
    seen: Option<(Sha256, InputListing)>,
}

/// A file of an input.
struct FoundInput {
    path: PathBuf,
    /// True if the file is compared by size and time.
    by_time: bool,
    /// True if the file is compared by size and time when it is larger than [`MAX_READ_BYTES`].
    may_be_large: bool,
}

/// Files of all inputs, by path in the repository.
type FoundInputs = BTreeMap<OsString, FoundInput>;

/// A folder of an input that is to be walked.
struct InputFolder {
    name: OsString,
    path: PathBuf,
    by_time: bool,
}

impl ProtectedInputs {
    /// Selects the inputs of a run in the repository with this top folder.
    ///
    /// # Errors
    /// When a pattern of `protect` is no glob.
    pub fn new(top: &Path, settings: &FixedSettings) -> Result<Self, BadGlob> {
        let (top, inputs) = (top.to_owned(), settings.measure.inputs.clone());
        let protected = ProtectedPaths::new(&settings.protected_input_globs())?;
        Ok(Self { top, inputs, protected, run: None, cache: Mutex::default() })
    }

    /// Sets the run whose record contains the list of the inputs.
    #[must_use]
    pub fn recorded_in(self, run: RunDir) -> Self {
        Self { run: Some(run), ..self }
    }

    /// Returns true if no glob of `protect` matches an input.
    ///
    /// # Errors
    /// When a folder that may contain a match cannot be read.
    pub fn is_empty(&self) -> Result<bool, PortError> {
        Ok(self.find_inputs(InputScope::Protected)?.is_empty())
    }

    fn lock_cache(&self) -> MutexGuard<'_, InputCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the present digest of each wanted input.
    fn digest_inputs(
        &self,
        scope: InputScope,
        memory: &mut InputCache,
        wanted: impl Fn(&OsStr, &Path) -> bool,
    ) -> Result<InputListing, PortError> {
        let found = self.find_inputs(scope)?;
        memory.read.retain(|name, _| found.contains_key(name));
        let mut listing = InputListing::default();
        for (name, input) in found {
            if !wanted(&name, &input.path) {
                continue;
            }
            match memory.digest_file(&name, &input) {
                Ok(digest) => listing.insert(name.as_encoded_bytes(), digest),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied && !self.covers(&name) =>
                {
                    listing.insert(name.as_encoded_bytes(), Sha256::hash_bytes(b"unreadable\0"));
                }
                Err(error) => return Err(unreadable_input(&name, error)),
            }
        }
        Ok(listing)
    }

    /// Returns the path of each input file.
    fn find_inputs(&self, scope: InputScope) -> Result<FoundInputs, PortError> {
        let mut found = FoundInputs::new();
        for input in &self.inputs {
            let name = OsString::from(input.as_str());
            // The input itself may be a link: sweeps get what it leads to.
            match self.top.join(input.as_str()).canonicalize() {
                Ok(path) if path.is_dir() => {
                    self.walk_folder(
                        scope,
                        InputFolder { name, path, by_time: false },
                        &mut found,
                    )?;
                }
                Ok(path) if self.is_looked_at(scope, &name, &name) => {
                    let may_be_large = scope == InputScope::All;
                    found.insert(name, FoundInput { path, by_time: false, may_be_large });
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(unreadable_input(&name, error));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(found)
    }

    /// Adds the files of a folder and of its subfolders.
    fn walk_folder(
        &self,
        scope: InputScope,
        folder: InputFolder,
        found: &mut FoundInputs,
    ) -> Result<(), PortError> {
        let input = folder.name.clone();
        let mut left = vec![folder];
        while let Some(InputFolder { name: folder, path, by_time }) = left.pop() {
            if !self.is_walked(scope, &input, &folder) {
                continue;
            }
            let entries = match list_folder(&folder, &path) {
                Err(error) if self.may_be_skipped(scope, &folder, &error) => continue,
                entries => entries.map_err(|error| unreadable_input(&folder, error))?,
            };
            let is_mark = |(_, path, _): &(OsString, PathBuf, bool)| {
                path.file_name().is_some_and(|name| VENV_MARKER_NAMES.iter().any(|it| name == *it))
            };
            let by_time = scope == InputScope::All && (by_time || entries.iter().any(is_mark));
            for (name, path, is_folder) in entries {
                if is_folder {
                    left.push(InputFolder { name, path, by_time });
                } else if self.is_looked_at(scope, &input, &name) {
                    let may_be_large = scope == InputScope::All;
                    found.insert(name, FoundInput { path, by_time, may_be_large });
                }
            }
        }
        Ok(())
    }

    /// Returns true if a folder of an input may contain files that are compared.
    fn is_walked(&self, scope: InputScope, input: &OsStr, folder: &OsStr) -> bool {
        let is_wanted = scope == InputScope::All && !is_in_cache(input, Path::new(folder));
        is_wanted || self.protected.can_cover_below(&folder.to_string_lossy())
    }

    fn is_looked_at(&self, scope: InputScope, input: &OsStr, name: &OsStr) -> bool {
        let in_cache = || Path::new(name).parent().is_some_and(|at| is_in_cache(input, at));
        let is_compiled =
            || COMPILED_SUFFIXES.iter().any(|end| name.to_string_lossy().ends_with(end));
        self.covers(name) || (scope == InputScope::All && !is_compiled() && !in_cache())
    }

    /// Returns true if an unreadable folder is skipped, because candidates cannot read it either.
    fn may_be_skipped(&self, scope: InputScope, folder: &OsStr, error: &io::Error) -> bool {
        scope == InputScope::All
            && error.kind() == io::ErrorKind::PermissionDenied
            && !self.protected.can_cover_below(&folder.to_string_lossy())
    }

    fn covers(&self, name: &OsStr) -> bool {
        self.protected.covers(&name.to_string_lossy())
    }

    /// Returns when the root's own sweep began; `None` if there was none.
    fn root_sweep_start(&self, root_job: &RunPath) -> Option<Duration> {
        let job = self.run.as_ref()?.file_path(root_job).join(JOB_SPEC_FILE);
        fs::symlink_metadata(job).ok().map(|found| system::changed_at(&found))
    }

    /// Reads the recorded list and checks its digest.
    fn read_recorded(&self, sha256: &Sha256) -> Result<InputListing, PortError> {
        let path = path::root_inputs_file();
        let gone = || {
            let what = format!("`{path}`, the list of the inputs, is not what was recorded");
            PortError::new(what).with_hint("restore the file from a backup, or start a new run")
        };
        let file = self.run.as_ref().ok_or_else(gone)?.file_path(&path);
        if !is_file_within(&file, MAX_LIST_BYTES) {
            return Err(gone());
        }
        let bytes = fs::read(file).map_err(|error| gone().with_cause(error))?;
        let same = Sha256::hash_bytes(&bytes) == *sha256;
        InputListing::parse(&bytes).filter(|_| same).ok_or_else(gone)
    }

    /// Returns the protected inputs that changed since this digest, or `None` if none did. The
    /// names are empty if this process has not seen the earlier list.
    fn changed_protected(&self, since: &Sha256) -> Result<Option<Vec<String>>, PortError> {
        let mut memory = self.lock_cache();
        let now = self.digest_inputs(InputScope::Protected, &mut memory, |_, _| true)?;
        let digest = now.digest_list();
        if digest == *since {
            memory.seen = Some((digest, now));
            return Ok(None);
        }
        let then = memory.seen.as_ref().filter(|(digest, _)| digest == since);
        Ok(Some(then.map_or_else(Vec::new, |(_, then)| then.differing_paths(&now))))
    }

    /// Returns the recorded inputs that changed and the new inputs that a glob of `protect`
    /// matches, or `None` without any.
    fn changed_listed(&self, since: &Sha256) -> Result<Option<Vec<String>>, PortError> {
        let mut memory = self.lock_cache();
        let then = match memory.seen.take() {
            Some((digest, then)) if digest == *since => then,
            Some(_) | None => self.read_recorded(since)?,
        };
        let wanted =
            |name: &OsStr, _: &Path| then.contains(name.as_encoded_bytes()) || self.covers(name);
        let now = self.digest_inputs(InputScope::All, &mut memory, wanted);
        let names = now.map(|now| then.differing_paths(&now));
        memory.seen = Some((*since, then));
        Ok(Some(names?).filter(|names| !names.is_empty()))
    }
}

/// Returns true if a folder is in a cache below an input. An input that is itself named like a
/// cache is not one: the user wants sweeps to read it.
fn is_in_cache(input: &OsStr, folder: &Path) -> bool {
    folder.strip_prefix(input).is_ok_and(|below| below.iter().any(is_cache))
}

/// Returns true if a folder of this name holds files that programs cache for themselves.
fn is_cache(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    matches!(&*name, PYTHON_CACHE | "cache" | ".cache") || name.ends_with("_cache")
}

/// Returns the entries of a folder (name, path, whether it is a folder); none if it is gone.
fn list_folder(folder: &OsStr, path: &Path) -> io::Result<Vec<(OsString, PathBuf, bool)>> {
    let listed = fs::read_dir(path).and_then(|entries| {
        let entry = |entry: fs::DirEntry| {
            let name = entry.file_name();
            let full = [folder, OsStr::new("/"), &name].into_iter().collect::<OsString>();
            let is_folder = entry.file_type()?.is_dir();
            Ok((name != PYTHON_CACHE || !is_folder).then(|| (full, entry.path(), is_folder)))
        };
        entries.filter_map(|it| it.and_then(entry).transpose()).collect()
    });
    match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

fn unreadable_input(name: &OsStr, error: io::Error) -> PortError {
    let what = format!("cannot read the protected input `{}`", name.to_string_lossy());
    PortError::new(what).with_hint("make it readable, then resume").with_cause(error)
}

impl InputCache {
    /// Returns the digest of a file's content or of a link's target. Nothing else is opened.
    fn digest_file(&mut self, name: &OsStr, input: &FoundInput) -> io::Result<Sha256> {
        let path = &input.path;
        let found = fs::symlink_metadata(path)?;
        if found.is_symlink() {
            let target = fs::read_link(path)?.into_os_string();
            return Ok(Sha256::hash_bytes(&[b"a link\0", target.as_encoded_bytes()].concat()));
        }
        if !found.is_file() {
            return Ok(Sha256::hash_bytes(b"no file\0"));
        }
        if input.by_time || (input.may_be_large && found.len() > MAX_READ_BYTES) {
            return Ok(digest_size_and_time(&found));
        }
        let (now, settled) = (file_stamp(&found), is_settled(&found));
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

/// Returns a digest of size and time, for files that are not read.
fn digest_size_and_time(found: &Metadata) -> Sha256 {
    let time = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanos = time.unwrap_or_default().as_nanos();
    Sha256::hash_bytes(format!("size and time\0{} {nanos}", found.len()).as_bytes())
}

/// Returns true if any change from now on would change the file's times.
fn is_settled(found: &Metadata) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    system::changed_at(found) + MIN_SETTLED_AGE <= now
}

impl InputFiles for ProtectedInputs {
    fn list_inputs(&self, root_job: &RunPath) -> Result<Option<InputList>, PortError> {
        let mut memory = self.lock_cache();
        let begun = self.root_sweep_start(root_job);
        // A file that the root's own sweep has written may also be written by candidates' sweeps.
        let wanted = |name: &OsStr, path: &Path| {
            let changed_at = || fs::symlink_metadata(path).map(|found| system::changed_at(&found));
            let is_older = |begun| changed_at().is_ok_and(|at| at <= begun);
            self.covers(name) || begun.is_none_or(is_older)
        };
        let listing = self.digest_inputs(InputScope::All, &mut memory, wanted)?;
        if listing.is_empty() {
            return Ok(None);
        }
        let list = InputList { bytes: listing.to_bytes(), sha256: listing.digest_list() };
        memory.seen = Some((list.sha256, listing));
        Ok(Some(list))
    }

    fn find_changed_inputs(
        &self,
        since: &RecordedInputs,
    ) -> Result<Option<Vec<String>>, PortError> {
        match since.scope {
            InputScope::Protected => self.changed_protected(&since.sha256),
            InputScope::All => self.changed_listed(&since.sha256),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

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
            let mut settings = FixedSettings::default();
            settings.protect.extend(protect.iter().map(|&glob| glob.to_owned()));
            let input = |name: &str| WorktreePath::try_from(name.to_owned()).ok();
            settings.measure.inputs =
                ["data", "venv", "gone"].into_iter().filter_map(input).collect();
            ProtectedInputs::new(self.0.path(), &settings)
        }
    }

    /// Returns the digest in the form that an older run has recorded.
    fn fingerprint(inputs: &ProtectedInputs) -> Result<RecordedInputs, PortError> {
        let listing =
            inputs.digest_inputs(InputScope::Protected, &mut inputs.lock_cache(), |_, _| true)?;
        let sha256 = listing.digest_list();
        inputs.lock_cache().seen = Some((sha256, listing));
        Ok(RecordedInputs { sha256, scope: InputScope::Protected })
    }

    /// Creates a run whose root's sweep begins now, and records its inputs after `sweep`.
    fn listed(
        inputs: ProtectedInputs,
        run: &Path,
        sweep: impl FnOnce() -> io::Result<()>,
    ) -> Result<(ProtectedInputs, RecordedInputs), Box<dyn std::error::Error>> {
        let root_job = path::submission_folder(treebeam_core::event::SweepSubject::Root, 1);
        let dir = RunDir::new(run);
        for folder in [dir.file_path(&root_job), run.join("eval/root/experiment")] {
            fs::create_dir_all(folder)?;
        }
        fs::write(dir.file_path(&root_job).join(JOB_SPEC_FILE), "")?;
        std::thread::sleep(Duration::from_millis(30));
        sweep()?;
        let inputs = inputs.recorded_in(dir);
        let list = inputs.list_inputs(&root_job)?.ok_or("there are no inputs")?;
        fs::write(run.join(path::root_inputs_file().as_str()), &list.bytes)?;
        Ok((inputs, RecordedInputs { sha256: list.sha256, scope: InputScope::All }))
    }

    #[test]
    fn all_inputs_stay_as_they_are_without_a_pattern() -> Outcome {
        type Touch = fn(&Field) -> io::Result<()>;
        let touches: [(&[&str], Touch); 9] = [
            (&["data/a.csv"], |field| fs::write(field.path("data/a.csv"), "data/b.csv")),
            (&["data/raw/b.csv"], |field| fs::remove_dir_all(field.path("data/raw"))),
            (&["venv/x.py"], |field| fs::write(field.path("venv/x.py"), "longer than it was")),
            (&[], |field| fs::write(field.path("data/new"), "")),
            (&[], |field| fs::write(field.path("data/__pycache__/a.pyc"), "x")),
            (&[], |field| fs::write(field.path("venv/a.pyc"), "x")),
            (&[], |field| fs::write(field.path("data/.cache/old"), "another")),
            (&[], |field| fs::write(field.path("data/seen.log"), "root, e0001")),
            (&[], |field| fs::write(field.path("data/index"), "root, e0001")),
        ];
        for (number, (names, touch)) in touches.into_iter().enumerate() {
            let field = Field::new()?;
            fs::create_dir_all(field.path("data/.cache"))?;
            for file in ["data/.cache/old", "data/seen.log", "venv/pyvenv.cfg"] {
                fs::write(field.path(file), "")?;
            }
            std::thread::sleep(Duration::from_millis(30));
            let sweep = || {
                fs::write(field.path("data/seen.log"), "root")?;
                fs::write(field.path("data/index"), "root")
            };
            let run = tempfile::tempdir()?;
            let (inputs, since) = listed(field.inputs(&[])?, run.path(), sweep)?;
            let later =
                || Ok::<_, BadGlob>(field.inputs(&[])?.recorded_in(RunDir::new(run.path())));
            assert_eq!(inputs.find_changed_inputs(&since)?, None, "{number}");
            touch(&field)?;
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let names = Some(names).filter(|names| !names.is_empty());
            assert_eq!(inputs.find_changed_inputs(&since)?, names, "{number}");
            assert_eq!(later()?.find_changed_inputs(&since)?, names, "{number}: by the record");
        }
        Ok(())
    }

    /// Cache names only count below an input, not in the name of the input itself.
    #[test]
    fn an_input_that_is_called_like_a_cache_is_one_all_the_same() -> Outcome {
        for input in ["cache", ".cache", "data_cache", "Data_Cache/raw", "data_cache/raw/a.csv"] {
            let field = Field::new()?;
            let names = match input {
                "data_cache/raw/a.csv" => vec![input.to_owned()],
                folder => vec![format!("{folder}/a.csv"), format!("{folder}/deep/a.csv")],
            };
            let caches = [format!("{input}/cache/x"), format!("{input}/deep/x_cache/deep/x")];
            let caches = if names.len() > 1 { &caches[..] } else { &[] };
            for file in names.iter().chain(caches) {
                let path = field.path(file);
                fs::create_dir_all(path.parent().ok_or("a folder")?)?;
                fs::write(path, "as it was")?;
            }
            std::thread::sleep(Duration::from_millis(30));
            let mut settings = FixedSettings::default();
            settings.measure.inputs = vec![WorktreePath::try_from(input.to_owned())?];
            let run = tempfile::tempdir()?;
            let inputs = ProtectedInputs::new(field.0.path(), &settings)?;
            let (inputs, since) = listed(inputs, run.path(), || Ok(()))?;
            for cache in caches {
                fs::write(field.path(cache), "another")?;
            }
            assert_eq!(inputs.find_changed_inputs(&since)?, None, "{input}");
            for name in &names {
                fs::write(field.path(name), "another")?;
            }
            assert_eq!(inputs.find_changed_inputs(&since)?, Some(names), "{input}");
        }
        Ok(())
    }

    #[test]
    fn what_a_pattern_matches_counts_whatever_it_is() -> Outcome {
        for (touched, text) in [("data/new", "x"), ("data/seen.log", "root, e0001")] {
            let field = Field::new()?;
            let run = tempfile::tempdir()?;
            let sweep = || fs::write(field.path("data/seen.log"), "root");
            let (inputs, since) = listed(field.inputs(&["data/**"])?, run.path(), sweep)?;
            assert_eq!(inputs.find_changed_inputs(&since)?, None);
            fs::write(field.path(touched), text)?;
            assert_eq!(inputs.find_changed_inputs(&since)?, Some(vec![touched.to_owned()]));
        }
        Ok(())
    }

    #[test]
    fn an_environment_is_known_by_sizes_and_times() -> Outcome {
        let field = Field::new()?;
        fs::write(field.path("venv/pyvenv.cfg"), "")?;
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let set_time =
            |time| File::options().append(true).open(field.path("venv/x.py"))?.set_modified(time);
        set_time(old)?;
        std::thread::sleep(Duration::from_millis(30));
        let run = tempfile::tempdir()?;
        let (inputs, since) = listed(field.inputs(&[])?, run.path(), || Ok(()))?;
        fs::write(field.path("venv/x.py"), "VENV/X.PY")?;
        assert_eq!(inputs.find_changed_inputs(&since)?, Some(vec!["venv/x.py".to_owned()]));
        set_time(old)?;
        assert_eq!(inputs.find_changed_inputs(&since)?, None, "its content is not read");
        Ok(())
    }

    #[test]
    fn a_file_over_the_limit_is_known_by_its_size_and_time() -> Outcome {
        let field = Field::new()?;
        let large = File::create(field.path("data/large.bin"))?;
        large.set_len(MAX_READ_BYTES + 1)?;
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        large.set_modified(old)?;
        let run = tempfile::tempdir()?;
        std::thread::sleep(Duration::from_millis(30));
        let (inputs, since) = listed(field.inputs(&[])?, run.path(), || Ok(()))?;
        (&large).write_all(b"another content")?;
        large.set_modified(old)?;
        assert_eq!(inputs.find_changed_inputs(&since)?, None, "its content is not read");
        large.set_modified(old + Duration::from_secs(1))?;
        assert_eq!(inputs.find_changed_inputs(&since)?, Some(vec!["data/large.bin".to_owned()]));
        Ok(())
    }

    #[test]
    fn a_list_that_was_changed_is_not_believed() -> Outcome {
        let field = Field::new()?;
        let run = tempfile::tempdir()?;
        let (_, since) = listed(field.inputs(&[])?, run.path(), || Ok(()))?;
        let list = run.path().join(path::root_inputs_file().as_str());
        fs::write(&list, "")?;
        let later = field.inputs(&[])?.recorded_in(RunDir::new(run.path()));
        assert!(later.find_changed_inputs(&since).is_err());
        fs::remove_file(&list)?;
        assert!(later.find_changed_inputs(&since).is_err());
        Ok(())
    }

    #[test]
    fn only_what_a_pattern_of_the_user_matches_is_protected_in_an_older_run() -> Outcome {
        let field = Field::new()?;
        for (protect, count) in [
            (&[][..], 0),
            (&["data/**"], 2),
            (&["data/raw/*"], 1),
            (&["**/*.py"], 2),
            (&["data"], 0),
        ] {
            let inputs = field.inputs(protect)?;
            assert_eq!(inputs.find_inputs(InputScope::Protected)?.len(), count, "{protect:?}");
            assert_eq!(inputs.is_empty()?, count == 0, "{protect:?}");
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
            assert_eq!(inputs.find_changed_inputs(&since)?, None);
            touch(&field)?;
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(inputs.find_changed_inputs(&since)?, Some(names));
            // A process that has not seen them before cannot name them.
            assert_eq!(field.inputs(&["data/**"])?.find_changed_inputs(&since)?, Some(Vec::new()));
            drop(fs::remove_dir_all(field.path("data")));
            fs::create_dir_all(field.path("data/raw"))?;
            for file in ["data/a.csv", "data/raw/b.csv"] {
                fs::write(field.path(file), file)?;
            }
            assert_eq!(inputs.find_changed_inputs(&since)?, None);
            assert_eq!(field.inputs(&["data/**"])?.find_changed_inputs(&since)?, None);
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
        assert_eq!(inputs.find_changed_inputs(&since)?, None);
        Ok(())
    }

    /// Only a file that was changed lately is read again.
    #[test]
    fn content_is_read_again_only_where_it_may_have_changed() -> Outcome {
        let field = Field::new()?;
        let inputs = field.inputs(&["data/a.csv"])?;
        let since = fingerprint(&inputs)?;
        assert_eq!(inputs.lock_cache().read.len(), 0, "it may be changed again without a trace");
        let (name, path) = (OsString::from("data/a.csv"), field.path("data/a.csv"));
        let kept = (file_stamp(&fs::symlink_metadata(&path)?), Sha256::hash_bytes(b"as it was"));
        inputs.lock_cache().read.insert(name, kept);
        assert_eq!(
            inputs.find_changed_inputs(&since)?,
            Some(vec!["data/a.csv".to_owned()]),
            "not read"
        );
        File::options().append(true).open(&path)?.set_modified(SystemTime::UNIX_EPOCH)?;
        assert_eq!(inputs.find_changed_inputs(&since)?, None, "read again");
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
        assert_eq!(inputs.find_inputs(InputScope::Protected)?.len(), 5);
        let since = fingerprint(&inputs)?;
        fs::write(field.path("venv/x.py"), "another")?;
        assert_eq!(inputs.find_changed_inputs(&since)?, None);
        fs::remove_file(field.path("data/link"))?;
        symlink("../venv", field.path("data/link"))?;
        assert_eq!(inputs.find_changed_inputs(&since)?, Some(vec!["data/link".to_owned()]));
        Ok(())
    }
}
