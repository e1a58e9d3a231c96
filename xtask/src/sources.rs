//! Text files of the repository, read into memory. Parses nothing.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Folders that hold no sources: build output, git's own files, recorded runs.
const SKIPPED_FOLDERS: [&str; 3] = ["target", ".git", ".treebeam"];

/// Endings of the file names that count as text.
const TEXT_ENDINGS: [&str; 8] = [".md", ".py", ".rs", ".sh", ".snap", ".toml", ".yml", ".ci/run"];

/// A text file of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Path relative to the root, with `/` between its parts.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

impl SourceFile {
    /// Builds a source file from its path and its content.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Returns the crate's folder name and the path inside it.
    ///
    /// `crates/core/src/id.rs` gives `core` and `src/id.rs`.
    #[must_use]
    pub fn crate_and_path(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("crates/")?.split_once('/')
    }

    /// Tells if the file is Rust source.
    #[must_use]
    pub fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    /// Tells if the file is Rust source below a crate's `src/`.
    #[must_use]
    pub fn is_crate_source(&self) -> bool {
        self.is_rust() && self.crate_and_path().is_some_and(|(_, rest)| rest.starts_with("src/"))
    }
}

/// Reads the text files below `root`, in the order of their paths.
///
/// # Errors
/// A folder or file cannot be read, or a name or content is not UTF-8.
pub fn read_sources(root: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let paths = list_files(root)?;
    let is_text = |path: &String| TEXT_ENDINGS.iter().any(|ending| path.ends_with(ending));
    let read = |path: String| {
        let text = fs::read_to_string(root.join(&path));
        Ok(SourceFile { text: text.with_context(|| format!("could not read `{path}`"))?, path })
    };
    paths.into_iter().filter(is_text).map(read).collect()
}

/// Lists the files below `root`, with `/` between the parts of each path.
///
/// # Errors
/// A folder cannot be read, or a name is not UTF-8.
pub fn list_files(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut paths = Vec::new();
    collect_paths(root, "", &mut paths)?;
    Ok(paths)
}

/// Appends the files of one folder, whose path relative to the root is `prefix`.
fn collect_paths(folder: &Path, prefix: &str, paths: &mut Vec<String>) -> anyhow::Result<()> {
    let unreadable = || format!("could not read `{}`", folder.display());
    let entries = fs::read_dir(folder).with_context(unreadable)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().with_context(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_str().with_context(|| format!("`{}` is not UTF-8", name.display()))?;
        let path = format!("{prefix}{name}");
        if !entry.file_type().with_context(|| format!("could not look at `{path}`"))?.is_dir() {
            paths.push(path);
        } else if !SKIPPED_FOLDERS.contains(&name) {
            collect_paths(&entry.path(), &format!("{path}/"), paths)?;
        }
    }
    Ok(())
}
