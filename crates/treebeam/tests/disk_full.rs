//! The disk is really full, at various places of a run, git's own writes included: the program
//! reports it, and once there is room the run ends like one that always had it.
//!
//! The disk is one in memory that is resized, in a namespace in which any user may do that.

#![cfg(test)]
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use tempfile::TempDir;
use treebeam_testkit::apart::{self, Namespace};
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const WORDS: [&str; 9] = [
    "run",
    "--dry-run",
    "--run-id",
    SITE_RUN_ID,
    "--ideas-per-node=2",
    "--max-depth=2",
    "--beam-width=1",
    "--sweep-config-limit=10",
    "--quiet",
];
const TEST: &str = "a_full_disk_is_told_and_the_run_goes_on_when_there_is_room";
const PAGE: u64 = 4096;

#[test]
fn a_full_disk_is_told_and_the_run_goes_on_when_there_is_room() {
    if apart::is_inside() {
        return fill();
    }
    let probe = "mount -t tmpfs -o size=1m none /tmp && mount -o remount,size=2m /tmp";
    match Namespace::User.can(probe) {
        Ok(()) => Namespace::User.run(TEST),
        Err(why) => apart::pass_over(TEST, &format!("no disk in memory can be mounted: {why}")),
    }
}

fn fill() {
    let whole = Disk::new();
    let _ = whole.site.call(&WORDS).exits(0);
    whole.site.must_be_sound();
    let needs = whole.used().saturating_sub(Disk::new().used());
    let stride = if apart::is_campaign() { PAGE } else { (needs / 12 / PAGE).max(1) * PAGE };
    let (mut failed, mut by_git, mut room) = (0, 0, 0);
    loop {
        let disk = Disk::new();
        disk.leave(room);
        let said = disk.site.call(&WORDS);
        let what = format!("with room for {room} of {needs} bytes: {}", said.stderr);
        assert!(!what.contains("panicked") && !what.contains("has a bug"), "{what}");
        if said.code == Some(0) {
            break;
        }
        assert_eq!(said.code, Some(1), "{what}");
        for words in ["error: ", "hint: "] {
            assert!(what.contains(words), "no {words:?}: {what}");
        }
        assert!(what.contains("the disk is full"), "{what}");
        failed += 1;
        by_git += u32::from(said.stderr.contains(": `git "));
        disk.leave(u64::MAX);
        let again = disk.site.call(&WORDS);
        assert_eq!(again.code, Some(0), "{what}\nand then: {}", again.stderr);
        disk.site.must_be_sound();
        disk.site.must_equal(&whole.site);
        assert_eq!(disk.site.names("cand"), [""; 0], "{what}");
        room += stride;
    }
    apart::remark(&format!(
        "the disk was full {failed} times, {by_git} times for git; a run needs {needs} bytes"
    ));
    assert!(failed >= 5 && by_git > 0, "full {failed} times, {by_git} times for git");
}

/// A disk in memory, with a repository.
struct Disk {
    site: Site,
    folder: TempDir,
}

impl Disk {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        mount(&["-t", "tmpfs", "-o", "size=64m", "none"], folder.path());
        let site = Site::new_in(folder.path(), BINARY);
        Self { site, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Leaves room for this many bytes, or plenty.
    fn leave(&self, room: u64) {
        let size = self.used().saturating_add(room).min(64 << 20);
        mount(&["-o", &format!("remount,size={size}")], &self.path());
    }

    fn used(&self) -> u64 {
        let df = apart::system("df", ["-k", "--output=used", &self.path().to_string_lossy()]);
        let kilobytes: Option<u64> = df.lines().nth(1).and_then(|used| used.trim().parse().ok());
        kilobytes.expect("a number") * 1024
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        apart::leave(&self.path());
    }
}

#[track_caller]
fn mount(arguments: &[&str], folder: &Path) {
    let folder = folder.to_string_lossy();
    apart::system("mount", arguments.iter().copied().chain([&*folder]));
}
