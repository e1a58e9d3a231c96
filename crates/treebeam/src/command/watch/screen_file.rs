//! Reads the file shown on the watch screen, and lists the files that a node or an eval has.
//!
//! Regular files only, and only their end: a log may be long, and a sweep may leave anything.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use treebeam_core::facts::Facts;
use treebeam_core::id::RunPath;
use treebeam_store::RunDir;
use treebeam_store::input;
use treebeam_view::screen::{FollowMode, ScreenFile, WantedFile, screen_files};

/// Maximum bytes that are read of a file.
const MAX_SHOWN_BYTES: u64 = 1024 * 1024;

/// Reader of the shown file.
pub(super) struct ScreenFileReader<'a> {
    run: &'a RunDir,
    shown: Option<(WantedFile, ScreenFile)>,
}

impl<'a> ScreenFileReader<'a> {
    pub(super) const fn new(run: &'a RunDir) -> Self {
        Self { run, shown: None }
    }

    pub(super) fn shown_file(&self) -> Option<&ScreenFile> {
        self.shown.as_ref().map(|(_, paper)| paper)
    }

    /// Reads the wanted file, unless it is loaded already and must not move.
    pub(super) fn update(&mut self, facts: &Facts, wanted: Option<WantedFile>) {
        let Some(wanted) = wanted else {
            self.shown = None;
            return;
        };
        let same = |(before, _): &(WantedFile, ScreenFile)| {
            (before.place, before.which) == (wanted.place, wanted.which)
        };
        if wanted.follow == FollowMode::No && self.shown.as_ref().is_some_and(same) {
            return;
        }
        self.shown = self.read_file(facts, wanted).map(|paper| (wanted, paper));
    }

    fn read_file(&self, facts: &Facts, wanted: WantedFile) -> Option<ScreenFile> {
        let there: Vec<RunPath> = screen_files(facts, wanted.place)
            .into_iter()
            .filter_map(|places| {
                places.into_iter().find(|path| is_nonempty_file(&self.run.file_path(path)))
            })
            .collect();
        let index = wanted.which.checked_rem(there.len())?;
        let path = there.get(index)?;
        let (skipped, text) = read_file_end(&self.run.file_path(path), path.as_str())?;
        let (name, number, of) = (path.to_string(), index + 1, there.len());
        Some(ScreenFile { name, number, count: of, skipped, text })
    }
}

fn is_nonempty_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0)
}

/// Returns the end of a file from the start of a line on, and the number of bytes before it; `None`
/// if the file cannot be read.
fn read_file_end(path: &Path, name: &str) -> Option<(u64, String)> {
    let mut file = input::open_input(path, name).ok()?;
    let from = file.metadata().ok()?.len().saturating_sub(MAX_SHOWN_BYTES);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_SHOWN_BYTES).read_to_end(&mut bytes).ok()?;
    let line =
        if from == 0 { 0 } else { bytes.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1) };
    let skipped = from + u64::try_from(line).unwrap_or(0);
    Some((skipped, String::from_utf8_lossy(bytes.get(line..)?).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_file_begins_with_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep.log");
        let read = || read_file_end(&path, "sweep.log");
        assert_eq!(read(), None);
        fs::write(&path, b"one\ntwo \xff\n").unwrap();
        assert_eq!(read(), Some((0, "one\ntwo \u{fffd}\n".to_owned())));
        let line = "x".repeat(99) + "\n";
        fs::write(&path, line.repeat(20_000)).unwrap();
        let (skipped, text) = read().unwrap();
        assert_eq!((skipped % 100, text.len() % 100), (0, 0), "{skipped}");
        assert_eq!(skipped + text.len() as u64, 2_000_000);
        assert!(text.len() as u64 > MAX_SHOWN_BYTES - 100);
        assert!(is_nonempty_file(&path) && !is_nonempty_file(folder.path()));
        assert_eq!(read_file_end(folder.path(), "folder"), None);
    }
}
