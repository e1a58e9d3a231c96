//! Which files of a repository are worth showing, and in which order: what was named first, then what the project begins
//! with, then small sources. By name and size alone.

use super::FileGlob;
use crate::port::RepoFile;
use std::collections::BTreeSet;

/// No longer file is looked at, in bytes: it is data, or nobody wrote it.
const HUGE: u64 = 256 << 10;
/// The most files that are looked at.
const MOST: usize = 200;
/// The longest path.
const PATH_CHARS: usize = 200;

/// Names of files that hold keys, without their endings.
const SECRETS: [&str; 8] =
    [".env", ".netrc", ".npmrc", ".pypirc", "id_rsa", "id_ed25519", "credentials", "secrets"];
/// Their endings.
const SECRET_ENDINGS: [&str; 5] = ["pem", "key", "p12", "pfx", "keystore"];
/// What programs are written in.
const SOURCES: [&str; 35] = [
    "py", "rs", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "cu", "cuh", "java", "kt", "scala",
    "go", "js", "mjs", "ts", "jsx", "tsx", "jl", "r", "m", "sh", "rb", "swift", "zig", "lua",
    "sql", "cs", "f90", "ml", "hs", "pl", "pyx",
];
/// What they are set up with.
const SETTINGS: [&str; 5] = ["toml", "yaml", "yml", "cfg", "ini"];
/// What a program begins with, without its ending.
const BEGINNINGS: [&str; 9] =
    ["main", "__main__", "lib", "app", "run", "train", "sweep", "index", "config"];
/// Folders of which nobody wants to see anything.
const FOLDERS: [&str; 6] = ["node_modules", "vendor", "dist", "build", "third_party", ".treebeam"];

/// How likely it is that a file matters: the first is the likeliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its path was said.
    Named,
    /// Its name was.
    Alluded,
    /// The project's own description.
    Readme,
    /// A command that measures the code names it.
    Measuring,
    Beginning,
    Source,
    Settings,
}

/// The files that are likely to matter, the likeliest first; of equals the smallest.
pub(super) fn likely<'a>(
    files: &'a [RepoFile],
    said: &[&str],
    commands: &[String],
) -> Vec<&'a RepoFile> {
    // Much may have been said, and little of it names a file.
    let names: BTreeSet<&str> =
        files.iter().flat_map(|file| [&*file.path, name_of(&file.path)]).collect();
    let said = said.iter().flat_map(|text| words(text)).filter(|word| names.contains(word));
    let said: BTreeSet<&str> = said.collect();
    let commands: BTreeSet<&str> = commands.iter().flat_map(|text| words(text)).collect();
    let ranked = |file: &'a RepoFile| Some((rank(&file.path, &said, &commands)?, file));
    let mut ranked: Vec<_> = showable(files).filter_map(ranked).collect();
    ranked.sort_by_key(|(rank, file)| (*rank, file.bytes, &file.path));
    ranked.into_iter().map(|(_, file)| file).collect()
}

/// The files that match, in the order of the globs, and of their paths.
pub(super) fn named<'a>(files: &'a [RepoFile], globs: &[FileGlob]) -> Vec<&'a RepoFile> {
    let first = |file: &RepoFile| globs.iter().position(|glob| glob.covers(&file.path));
    let mut found: Vec<_> = showable(files).filter_map(|file| Some((first(file)?, file))).collect();
    found.sort_by_key(|(place, file)| (*place, &file.path));
    found.into_iter().map(|(_, file)| file).collect()
}

/// As many of them as there is room for, where each takes no more than its share.
pub(super) fn that_fit(files: &[&RepoFile], room: usize, share: usize) -> Vec<RepoFile> {
    let mut left = u64::try_from(room).unwrap_or(u64::MAX);
    let share = u64::try_from(share).unwrap_or(u64::MAX);
    let fits = |file: &&&RepoFile| {
        let fits = left > 0;
        left = left.saturating_sub(file.bytes.min(share));
        fits
    };
    files.iter().take(MOST).take_while(fits).map(|file| (*file).clone()).collect()
}

/// Files that may be shown at all.
fn showable(files: &[RepoFile]) -> impl Iterator<Item = &RepoFile> {
    files.iter().filter(|file| {
        let size = (1..=HUGE).contains(&file.bytes);
        size && file.path.chars().count() <= PATH_CHARS && !is_secret(&file.path)
    })
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A name without its ending, and that.
fn parts(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or((name, ""))
}

/// Whether a file is called like those that hold keys.
#[must_use]
pub fn is_secret(path: &str) -> bool {
    let name = name_of(path).to_ascii_lowercase();
    let (_, ending) = parts(&name);
    let is_called = |secret: &&str| {
        name.strip_prefix(*secret).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    SECRETS.iter().any(is_called) || SECRET_ENDINGS.contains(&ending)
}

fn rank(path: &str, said: &BTreeSet<&str>, commands: &BTreeSet<&str>) -> Option<Rank> {
    let name = name_of(path);
    let (stem, ending) = parts(name);
    let ending = ending.to_ascii_lowercase();
    let is_at_top = name == path;
    let measures = |word: &&str| path == *word || path.ends_with(&format!("/{word}"));
    let is_left_out = name == "treebeam.toml"
        || path.split('/').any(|folder| FOLDERS.contains(&folder))
        || name.contains(".min.");
    Some(if said.contains(path) {
        Rank::Named
    } else if name.contains('.') && said.contains(name) {
        Rank::Alluded
    } else if is_left_out {
        return None;
    } else if is_at_top && stem.eq_ignore_ascii_case("readme") {
        Rank::Readme
    } else if name.contains('.') && commands.iter().any(measures) {
        Rank::Measuring
    } else if SOURCES.contains(&&*ending) {
        if BEGINNINGS.contains(&stem) { Rank::Beginning } else { Rank::Source }
    } else if SETTINGS.contains(&&*ending) {
        Rank::Settings
    } else {
        return None;
    })
}

/// What may be a path or a file's name in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let odd = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+'));
    let words = text.split(odd).map(|word| word.strip_prefix("./").unwrap_or(word));
    // The full stop of a sentence, and what a diff puts before a path.
    words.flat_map(|word| {
        let word = word.trim_end_matches(['.', '/']);
        let bare = word.strip_prefix("a/").or_else(|| word.strip_prefix("b/"));
        [Some(word), bare].into_iter().flatten().filter(|word| !word.is_empty())
    })
}

#[cfg(test)]
mod tests;
