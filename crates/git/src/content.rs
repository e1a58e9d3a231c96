//! Lists the files of a commit with their sizes, and reads their texts. One git process answers
//! each question, whatever the number of files, and a cached answer needs none. Nothing is read
//! from a worktree.

use super::GitRepo;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use treebeam_core::id::Commit;
use treebeam_process::ChildInput;
use treebeam_run::port::{PortError, RepoFile};

/// Maximum size of a list of files, in bytes.
const MAX_FILE_LIST_BYTES: usize = 32 << 20;
/// Maximum length of the line that git prints before each object, in bytes.
const OBJECT_HEADER_BYTES: usize = 128;
/// Maximum total size of the cached texts, in bytes.
const MAX_CACHED_TEXT_BYTES: usize = 8 << 20;

/// Cache of git's answers, which never become stale: commits and objects are immutable. Most
/// prompts need the same ones.
#[derive(Debug, Default)]
pub(super) struct ContentCache {
    /// Files of the commit that was listed last.
    files: Mutex<Option<(Commit, Vec<RepoFile>)>>,
    texts: Mutex<ObjectTexts>,
}

/// Texts of objects by object id; `None` for an object that is not text.
#[derive(Debug, Default)]
struct ObjectTexts {
    by_object: BTreeMap<String, Option<String>>,
    bytes: usize,
}

impl ObjectTexts {
    /// Adds a text. If the cache would grow too large, everything older is dropped first.
    fn insert(&mut self, object: &str, text: Option<&String>) {
        let bytes = object.len() + text.map_or(0, String::len);
        if self.bytes + bytes > MAX_CACHED_TEXT_BYTES {
            *self = Self::default();
        }
        if bytes <= MAX_CACHED_TEXT_BYTES {
            self.bytes += bytes;
            self.by_object.insert(object.to_owned(), text.cloned());
        }
    }
}

fn lock_cache<T>(remembered: &Mutex<T>) -> MutexGuard<'_, T> {
    remembered.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GitRepo {
    pub(super) fn files_of(&self, commit: &Commit) -> Result<Vec<RepoFile>, PortError> {
        if let Some((_, files)) =
            lock_cache(&self.content_cache.files).as_ref().filter(|(of, _)| of == commit)
        {
            return Ok(files.clone());
        }
        let files = self.query_files(commit)?;
        *lock_cache(&self.content_cache.files) = Some((commit.clone(), files.clone()));
        Ok(files)
    }

    pub(super) fn texts_of(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        let known = |texts: &ObjectTexts| -> Option<Vec<Option<String>>> {
            files.iter().map(|file| texts.by_object.get(&file.object).cloned()).collect()
        };
        if let Some(texts) = known(&lock_cache(&self.content_cache.texts)) {
            return Ok(texts);
        }
        let contents = self.query_contents(files)?;
        let mut remembered = lock_cache(&self.content_cache.texts);
        let text = |(file, content): (&RepoFile, Option<Vec<u8>>)| {
            // An object that git lacks now may exist later, so its absence is not cached.
            let text = content.map(content_as_text)?;
            remembered.insert(&file.object, text.as_ref());
            text
        };
        Ok(files.iter().zip(contents).map(text).collect())
    }

    fn query_files(&self, commit: &Commit) -> Result<Vec<RepoFile>, PortError> {
        let question = ["ls-tree", "-r", "-l", "-z", "--full-tree", commit.as_str()];
        let call = self
            .user
            .git
            .sealed_call(&self.shared_target(), &question)
            .with_subject(commit.short_name());
        let text = call.keep_stdout(MAX_FILE_LIST_BYTES).run_checked()?.kept_text();
        // The last entry of a truncated list may be incomplete.
        let whole = text.rsplit_once('\0').map_or("", |(whole, _)| whole);
        let mut files: Vec<RepoFile> = whole.split('\0').filter_map(parse_file_entry).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Reads the contents of these files in one call; `None` for an object that git lacks.
    fn query_contents(&self, files: &[RepoFile]) -> Result<Vec<Option<Vec<u8>>>, PortError> {
        let question: String = files.iter().map(|file| format!("{}\n", file.object)).collect();
        let bytes = files.iter().map(|file| usize::try_from(file.bytes).unwrap_or(usize::MAX));
        let most = bytes.fold(0, |sum: usize, bytes| {
            sum.saturating_add(bytes).saturating_add(OBJECT_HEADER_BYTES)
        });
        let call = self.user.git.sealed_call(&self.shared_target(), &["cat-file", "--batch"]);
        let answer = call
            .input(ChildInput::from_bytes(question.into_bytes()))
            .keep_stdout(most)
            .run_checked()?;
        let mut rest = answer.stdout.bytes.as_slice();
        Ok(files.iter().map(|_| parse_next_content(&mut rest).map(<[u8]>::to_vec)).collect())
    }
}

/// Parses `100644 blob 1234…    567\tpath`. Links and submodules do not count as files.
fn parse_file_entry(entry: &str) -> Option<RepoFile> {
    let (head, path) = entry.split_once('\t')?;
    let mut words = head.split_whitespace();
    let (mode, _, object, bytes) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let is_file = matches!(mode, "100644" | "100755");
    let (path, object) = (path.to_owned(), object.to_owned());
    Some(RepoFile { path, bytes: bytes.parse().ok()?, object }).filter(|_| is_file)
}

/// Takes the next object off `1234… blob 3\nabc\n`; returns `None` for one that git lacks.
fn parse_next_content<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(rest.get(..end)?).ok()?;
    *rest = rest.get(end + 1..)?;
    let length: usize = head.split(' ').nth(2)?.parse().ok()?;
    let content = rest.get(..length)?;
    *rest = rest.get(length + 1..).unwrap_or_default();
    Some(content)
}

fn content_as_text(content: Vec<u8>) -> Option<String> {
    String::from_utf8(content).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_by_mode() {
        let read =
            |entry: &str| parse_file_entry(entry).map(|file| (file.path, file.bytes, file.object));
        let good = Some(("a b\tc.py".to_owned(), 567, "12ab".to_owned()));
        assert_eq!(read("100644 blob 12ab     567\ta b\tc.py"), good);
        assert_eq!(read("120000 blob 12ab       5\tlink"), None);
        assert_eq!(read("160000 commit 12ab       -\tsub"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn contents_are_taken_one_after_the_other() {
        let mut rest = &b"12 blob 4\na\nb\n\n34 missing\n56 blob 0\n\n78 blob 3\n\0x\xff\n"[..];
        let mut next = || {
            parse_next_content(&mut rest)
                .map(|content| (content.to_owned(), content_as_text(content.to_owned())))
        };
        assert_eq!(next(), Some((b"a\nb\n".to_vec(), Some("a\nb\n".to_owned()))));
        assert_eq!(next(), None);
        assert_eq!(next(), Some((Vec::new(), Some(String::new()))));
        assert_eq!(next(), Some((b"\0x\xff".to_vec(), None)));
        assert_eq!(next(), None);
    }
    #[test]
    fn what_is_remembered_is_bounded() {
        let mut texts = ObjectTexts::default();
        let half = Some("x".repeat(MAX_CACHED_TEXT_BYTES / 2 - 1));
        texts.insert("a", half.as_ref());
        texts.insert("b", None);
        texts.insert("c", half.as_ref());
        let known = |texts: &ObjectTexts| texts.by_object.keys().cloned().collect::<String>();
        assert_eq!(known(&texts), "c");
        texts.insert("d", Some(&"x".repeat(MAX_CACHED_TEXT_BYTES)));
        assert_eq!((known(&texts).as_str(), texts.bytes), ("", 0));
    }
}
