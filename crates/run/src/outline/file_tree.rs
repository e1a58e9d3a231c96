//! Lists all files of a code state; folders replace their files where there are too many.

use crate::port::RepoFile;
use std::collections::BTreeMap;

/// Largest number of folder levels that are listed.
const MAX_FOLDER_DEPTH: usize = 12;

/// Renders a line for each file, or for each folder of the deepest level that fits.
pub(super) fn render_tree(files: &[RepoFile], room: usize) -> String {
    let whole: String = files.iter().map(|file| render_size_row(&file.path, file.bytes)).collect();
    if whole.chars().count() <= room {
        return whole;
    }
    let levels = (1..=MAX_FOLDER_DEPTH).rev().map(|depth| render_folders(files, depth));
    let mut shortest = String::new();
    for text in levels {
        if text.chars().count() <= room {
            return text;
        }
        shortest = text;
    }
    shortest
}

fn render_size_row(name: &str, bytes: u64) -> String {
    format!("{} {bytes}\n", name.replace(char::is_control, "?"))
}

/// Renders files down to a level; below it, folders with the number of their files.
fn render_folders(files: &[RepoFile], depth: usize) -> String {
    let mut rows: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for file in files {
        let parts: Vec<&str> = file.path.split('/').collect();
        let name = match parts.get(..depth) {
            Some(top) if parts.len() > depth => format!("{}/", top.join("/")),
            _ => file.path.clone(),
        };
        let (count, bytes) = rows.entry(name).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(file.bytes);
    }
    let row = |(name, (count, bytes)): (String, (usize, u64))| {
        if name.ends_with('/') {
            render_size_row(&format!("{name} ({count} files)"), bytes)
        } else {
            render_size_row(&name, bytes)
        }
    };
    rows.into_iter().map(row).collect()
}
