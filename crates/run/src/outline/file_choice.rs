//! Chooses the files of a repository that are worth showing, by name and size alone. First come
//! files that are mentioned, then readmes and entry points, then small sources.

use super::FileGlob;
use crate::port::RepoFile;
use std::collections::BTreeSet;

/// Largest file that is shown, in bytes: larger ones are data or generated.
const MAX_SHOWN_FILE_BYTES: u64 = 256 << 10;
/// Largest number of files that are shown.
const MAX_SHOWN_FILES: usize = 200;
/// Longest path that is shown, in characters.
const MAX_PATH_CHARS: usize = 200;

/// Names of files that hold keys, without their extensions.
const SECRET_FILE_NAMES: [&str; 8] =
    [".env", ".netrc", ".npmrc", ".pypirc", "id_rsa", "id_ed25519", "credentials", "secrets"];
/// Extensions of files that hold keys.
const SECRET_EXTENSIONS: [&str; 5] = ["pem", "key", "p12", "pfx", "keystore"];
/// Extensions of source files.
const SOURCE_EXTENSIONS: [&str; 35] = [
    "py", "rs", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "cu", "cuh", "java", "kt", "scala",
    "go", "js", "mjs", "ts", "jsx", "tsx", "jl", "r", "m", "sh", "rb", "swift", "zig", "lua",
    "sql", "cs", "f90", "ml", "hs", "pl", "pyx",
];
/// Extensions of configuration files.
const CONFIG_EXTENSIONS: [&str; 5] = ["toml", "yaml", "yml", "cfg", "ini"];
/// Names of files in which programs begin, without their extensions.
const ENTRY_POINT_NAMES: [&str; 9] =
    ["main", "__main__", "lib", "app", "run", "train", "sweep", "index", "config"];
/// Folders with generated or foreign files.
const IGNORED_FOLDERS: [&str; 6] =
    ["node_modules", "vendor", "dist", "build", "third_party", ".treebeam"];

/// Likelihood that a file matters: the first variant is the likeliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FileRank {
    /// Its path is mentioned.
    Named,
    /// Its file name is mentioned.
    Alluded,
    /// The readme of the project.
    Readme,
    /// A command that measures the code names it.
    Measuring,
    Beginning,
    Source,
    Settings,
}

/// Returns the files that are likely to matter, the likeliest first; of equals the smallest.
pub(super) fn likely_files<'a>(
    files: &'a [RepoFile],
    mentioned: &[&str],
    commands: &[String],
) -> Vec<&'a RepoFile> {
    // The texts may be long, and few of their words name a file.
    let names: BTreeSet<&str> =
        files.iter().flat_map(|file| [&*file.path, path_file_name(&file.path)]).collect();
    let mentioned =
        mentioned.iter().flat_map(|text| path_words(text)).filter(|word| names.contains(word));
    let mentioned: BTreeSet<&str> = mentioned.collect();
    let commands: BTreeSet<&str> = commands.iter().flat_map(|text| path_words(text)).collect();
    let ranked = |file: &'a RepoFile| Some((rank_file(&file.path, &mentioned, &commands)?, file));
    let mut ranked: Vec<_> = showable_files(files).filter_map(ranked).collect();
    ranked.sort_by_key(|(rank, file)| (*rank, file.bytes, &file.path));
    ranked.into_iter().map(|(_, file)| file).collect()
}

/// Returns the files that match, in the order of the globs, then of their paths.
pub(super) fn files_by_globs<'a>(files: &'a [RepoFile], globs: &[FileGlob]) -> Vec<&'a RepoFile> {
    let first = |file: &RepoFile| globs.iter().position(|glob| glob.covers(&file.path));
    let mut found: Vec<_> =
        showable_files(files).filter_map(|file| Some((first(file)?, file))).collect();
    found.sort_by_key(|(place, file)| (*place, &file.path));
    found.into_iter().map(|(_, file)| file).collect()
}

/// Returns the first files that fit into the room, where each takes no more than its share.
pub(super) fn files_that_fit(files: &[&RepoFile], room: usize, share: usize) -> Vec<RepoFile> {
    let mut left = u64::try_from(room).unwrap_or(u64::MAX);
    let share = u64::try_from(share).unwrap_or(u64::MAX);
    let fits = |file: &&&RepoFile| {
        let fits = left > 0;
        left = left.saturating_sub(file.bytes.min(share));
        fits
    };
    files.iter().take(MAX_SHOWN_FILES).take_while(fits).map(|file| (*file).clone()).collect()
}

/// Returns the files that may be shown at all.
fn showable_files(files: &[RepoFile]) -> impl Iterator<Item = &RepoFile> {
    files.iter().filter(|file| {
        let size = (1..=MAX_SHOWN_FILE_BYTES).contains(&file.bytes);
        size && file.path.chars().count() <= MAX_PATH_CHARS && !is_secret(&file.path)
    })
}

fn path_file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Splits a file name into the part before its extension, and the extension.
fn split_extension(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or((name, ""))
}

/// Returns true if a file has the name or extension of files that hold keys.
#[must_use]
pub fn is_secret(path: &str) -> bool {
    let name = path_file_name(path).to_ascii_lowercase();
    let (_, ending) = split_extension(&name);
    let is_called = |secret: &&str| {
        name.strip_prefix(*secret).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    SECRET_FILE_NAMES.iter().any(is_called) || SECRET_EXTENSIONS.contains(&ending)
}

fn rank_file(
    path: &str,
    mentioned: &BTreeSet<&str>,
    commands: &BTreeSet<&str>,
) -> Option<FileRank> {
    let name = path_file_name(path);
    let (stem, ending) = split_extension(name);
    let ending = ending.to_ascii_lowercase();
    let is_at_top = name == path;
    let measures = |word: &&str| path == *word || path.ends_with(&format!("/{word}"));
    let is_left_out = name == "treebeam.toml"
        || path.split('/').any(|folder| IGNORED_FOLDERS.contains(&folder))
        || name.contains(".min.");
    Some(if mentioned.contains(path) {
        FileRank::Named
    } else if name.contains('.') && mentioned.contains(name) {
        FileRank::Alluded
    } else if is_left_out {
        return None;
    } else if is_at_top && stem.eq_ignore_ascii_case("readme") {
        FileRank::Readme
    } else if name.contains('.') && commands.iter().any(measures) {
        FileRank::Measuring
    } else if SOURCE_EXTENSIONS.contains(&&*ending) {
        if ENTRY_POINT_NAMES.contains(&stem) { FileRank::Beginning } else { FileRank::Source }
    } else if CONFIG_EXTENSIONS.contains(&&*ending) {
        FileRank::Settings
    } else {
        return None;
    })
}

/// Returns the words of a text that may be paths or file names.
fn path_words(text: &str) -> impl Iterator<Item = &str> {
    let odd = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+'));
    let words = text.split(odd).map(|word| word.strip_prefix("./").unwrap_or(word));
    // The full stop of a sentence, and the prefix of a path in a diff.
    words.flat_map(|word| {
        let word = word.trim_end_matches(['.', '/']);
        let bare = word.strip_prefix("a/").or_else(|| word.strip_prefix("b/"));
        [Some(word), bare].into_iter().flatten().filter(|word| !word.is_empty())
    })
}

#[cfg(test)]
mod tests;
