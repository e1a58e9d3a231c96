//! Finds the files of a worktree that differ from its commit, and only reads. The commit is read
//! from the shared repository, and the list of files and their attributes from the commit: no
//! change to the worktree or its `.git` can redirect that. Protected files are always compared by
//! content, others only if their metadata changed.

use super::GitRepo;
use super::call::GitTarget;
use super::tracked::TrackedFile;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use treebeam_core::id::{CodePlace, Commit};
use treebeam_core::protect::ProtectedPaths;
use treebeam_process::ChildInput;
use treebeam_run::port::{PortError, TouchedFiles};

/// Maximum size of a list of files, in bytes.
const MAX_FILE_LIST_BYTES: usize = 256 << 20;
/// Maximum length of a link's target, in bytes.
const MAX_LINK_BYTES: usize = 64 << 10;

/// A file of a commit: mode, object and path.
struct CommitEntry {
    /// Git's mode: a file, a link or a submodule.
    mode: String,
    object: String,
    path: String,
}

impl From<&TrackedFile<'_>> for CommitEntry {
    fn from(file: &TrackedFile<'_>) -> Self {
        let [mode, object, path] = [file.mode, file.object, file.path].map(str::to_owned);
        Self { mode, object, path }
    }
}

impl GitRepo {
    pub(super) fn touched_files(
        &self,
        place: CodePlace,
        commit: &Commit,
        protected: &ProtectedPaths,
    ) -> Result<TouchedFiles, PortError> {
        let look = TouchedFileScan { repo: self, target: self.target_in(place)?, commit };
        let entries = self.map_tracked(place, commit, |file| {
            (file.may_differ || protected.covers(file.path)).then(|| CommitEntry::from(file))
        })?;
        let touched = look.list_touched(entries)?;
        let (protected, other) = touched.into_iter().partition(|path| protected.covers(path));
        Ok(TouchedFiles { protected, other })
    }

    /// Returns the paths whose files differ from the commit byte by byte. Git may report an
    /// untouched file as changed, if committing it would change its line ends.
    pub(super) fn differing_from_commit(
        &self,
        place: CodePlace,
        commit: &Commit,
        mut paths: Vec<String>,
    ) -> Result<Vec<String>, PortError> {
        if paths.is_empty() {
            return Ok(paths);
        }
        let look = TouchedFileScan { repo: self, target: self.target_in(place)?, commit };
        let entries = look.list_entries(|path| paths.iter().any(|other| other == path))?;
        let files = entries.into_iter().filter(|entry| {
            entry.mode.starts_with("100")
                && look.is_link_free(&entry.path)
                && look.is_readable_file(&entry.path)
        });
        let files: BTreeMap<_, _> = files.map(|entry| (entry.path, entry.object)).collect();
        let differing = look.find_differing(files.clone(), HashForm::AsItLies)?;
        paths.retain(|path| differing.contains_key(path) || !files.contains_key(path));
        Ok(paths)
    }

    /// Returns a target of the shared git folder with the worktree of this place.
    fn target_in(&self, place: CodePlace) -> Result<GitTarget, PortError> {
        Ok(GitTarget { work_tree: self.worktree_folder(place)?, ..self.shared_target() })
    }
}

/// Form of a file's content that is hashed.
#[derive(Clone, Copy)]
enum HashForm {
    AsItLies,
    AsGitTakesIt,
}

struct TouchedFileScan<'a> {
    repo: &'a GitRepo,
    target: GitTarget,
    commit: &'a Commit,
}

impl TouchedFileScan<'_> {
    /// Returns the sorted paths of the entries that differ from the commit.
    fn list_touched(&self, entries: Vec<CommitEntry>) -> Result<Vec<String>, PortError> {
        let (mut touched, mut files) = (Vec::new(), BTreeMap::new());
        for entry in entries {
            let there = self.is_link_free(&entry.path);
            match entry.mode.as_str() {
                "160000" => {}
                "120000" if there && self.is_same_link(&entry)? => {}
                "100644" | "100755" if there && self.is_readable_file(&entry.path) => {
                    files.insert(entry.path, entry.object);
                }
                _ => touched.push(entry.path),
            }
        }
        // Compares the bytes on disk first, then the bytes git would commit: line ends may differ.
        let changed = self.find_differing(files, HashForm::AsItLies)?;
        touched.extend(self.find_differing(changed, HashForm::AsGitTakesIt)?.into_keys());
        touched.sort_unstable();
        Ok(touched)
    }

    /// Returns the wanted files of the commit.
    fn list_entries(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<CommitEntry>, PortError> {
        let arguments = ["ls-tree", "-r", "-z", "--full-tree", self.commit.as_str()];
        let call = self
            .repo
            .user
            .git
            .sealed_call(&self.repo.shared_target(), &arguments)
            .keep_stdout(MAX_FILE_LIST_BYTES);
        let listed = call.run_checked()?.full_text()?;
        let entry = |line: &str| {
            let (head, path) = line.split_once('\t')?;
            let mut words = head.split(' ');
            let (mode, object) = (words.next()?.to_owned(), words.nth(1)?.to_owned());
            wanted(path).then(|| CommitEntry { mode, object, path: path.to_owned() })
        };
        Ok(listed.split('\0').filter_map(entry).collect())
    }

    fn full_path(&self, path: &str) -> std::path::PathBuf {
        Path::new(&self.target.work_tree).join(path)
    }

    /// Returns true if the path exists and no folder above it is a link.
    fn is_link_free(&self, path: &str) -> bool {
        let full = self.full_path(path);
        let mut above = full.ancestors().skip(1);
        above
            .find(|folder| fs::symlink_metadata(folder).is_ok_and(|found| !found.is_dir()))
            .is_none()
            && fs::symlink_metadata(&full).is_ok()
    }

    /// Returns true if git can hash the file. If it cannot, it fails for all files of the call.
    fn is_readable_file(&self, path: &str) -> bool {
        let full = self.full_path(path);
        can_be_hashed(&full, || fs::File::open(&full))
    }

    fn is_same_link(&self, entry: &CommitEntry) -> Result<bool, PortError> {
        let Ok(target) = fs::read_link(self.full_path(&entry.path)) else { return Ok(false) };
        let arguments = ["cat-file", "blob", &entry.object];
        let call = self
            .repo
            .user
            .git
            .sealed_call(&self.repo.shared_target(), &arguments)
            .keep_stdout(MAX_LINK_BYTES);
        Ok(call.run_checked()?.stdout.bytes == target.to_string_lossy().as_bytes())
    }

    /// Returns the files whose content differs.
    fn find_differing(
        &self,
        files: BTreeMap<String, String>,
        form: HashForm,
    ) -> Result<BTreeMap<String, String>, PortError> {
        // In a list, git would read these paths differently.
        let odd = |path: &str| path.contains(['\n', '\r']) || path.starts_with('"');
        let (odd, plain): (BTreeMap<_, _>, _) = files.into_iter().partition(|(path, _)| odd(path));
        let mut differing = BTreeMap::new();
        if !plain.is_empty() {
            let list: String = plain.keys().map(|path| format!("{path}\n")).collect();
            let input = ChildInput::from_bytes(list.into_bytes());
            let found = self.hash_files(&["--stdin-paths"], Some(input), form)?;
            let same = |object: &String, found: Option<&str>| found == Some(object.as_str());
            let mut found = found.lines();
            differing.extend(plain.into_iter().filter(|(_, object)| !same(object, found.next())));
        }
        for (path, object) in odd {
            if self.hash_files(&["--", &path], None, form)?.trim_end() != object {
                differing.insert(path, object);
            }
        }
        Ok(differing)
    }

    fn hash_files(
        &self,
        which: &[&str],
        input: Option<ChildInput>,
        form: HashForm,
    ) -> Result<String, PortError> {
        let attributes = format!("--attr-source={}", self.commit);
        let form: &[&str] = match form {
            HashForm::AsItLies => &["hash-object", "--no-filters"],
            HashForm::AsGitTakesIt => &[&attributes, "hash-object"],
        };
        let arguments = [form, which].concat();
        let call = self
            .repo
            .user
            .git
            .sealed_call(&self.target, &arguments)
            .keep_stdout(MAX_FILE_LIST_BYTES);
        let call = match input {
            Some(input) => call.input(input),
            None => call,
        };
        call.run_checked()?.full_text()
    }
}

/// Returns true if a path is a regular file that opens. Nothing else is opened: a pipe would block
/// until it has a writer.
fn can_be_hashed(path: &Path, open: impl FnOnce() -> io::Result<fs::File>) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) && open().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root may open any file, so the refusal is passed in.
    #[test]
    fn only_a_regular_file_that_opens_is_hashed() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("model.py");
        fs::write(&file, "x")?;
        assert!(can_be_hashed(&file, || fs::File::open(&file)));
        assert!(!can_be_hashed(&file, || Err(io::ErrorKind::PermissionDenied.into())));
        let never = || -> io::Result<fs::File> { panic!("it is no file") };
        assert!(!can_be_hashed(folder.path(), never));
        assert!(!can_be_hashed(&folder.path().join("gone"), never));
        Ok(())
    }
}
