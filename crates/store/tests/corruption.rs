//! Damages every byte of a finished run: it opens as it was or is refused, without a panic.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod story;

use std::fs::{self, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use tempfile::TempDir;
use treebeam_core::event::Event;
use treebeam_core::state::State;
use treebeam_run::port::{CheckpointKind, Journal as _};
use treebeam_store::{RunDir, RunStore, open_to_read};

/// A run that has stopped, with two manifests.
struct Finished {
    _root: TempDir,
    run: RunDir,
    state: State,
}

/// Creates a folder in memory if possible: nothing here depends on a disk.
fn folder() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

fn finished() -> Finished {
    let root = folder();
    let mut events = story::events();
    // Up to its second stop: cutting a run everywhere costs the square of its length.
    let sent_back = events.iter().position(|event| matches!(event, Event::SentBack(_)));
    events.truncate(sent_back.unwrap());
    let second_stop =
        events.iter().rposition(|event| matches!(event, Event::SettingsChanged { .. }));
    events.truncate(second_stop.unwrap());
    let (mut store, mut state) = RunStore::create(root.path(), &story::started()).unwrap();
    for (n, event) in events.iter().enumerate().skip(1) {
        store.append(std::slice::from_ref(event)).unwrap();
        state.apply(event).unwrap();
        if n == 20 {
            store.write_checkpoint(&state, CheckpointKind::End).unwrap();
        }
    }
    store.write_checkpoint(&state, CheckpointKind::End).unwrap();
    let run = store.run_dir().clone();
    Finished { _root: root, run, state }
}

impl Finished {
    /// Returns true if the run opens; it must then be as it was.
    fn opens(&self, what: &str) -> bool {
        match open_to_read(&self.run) {
            Ok(opened) => {
                assert!(opened.state == self.state, "{what}: another state");
                true
            }
            Err(error) => {
                assert!(!error.to_string().is_empty() && error.hint().is_some(), "{what}: {error}");
                false
            }
        }
    }

    /// Cuts a file shorter and shorter, and counts how often the run still opens.
    fn cut_everywhere(&self, path: &Path) -> (u64, u64) {
        let whole = fs::read(path).unwrap();
        let length = u64::try_from(whole.len()).unwrap();
        let mut opened = 0;
        for end in (0..length).rev() {
            OpenOptions::new().write(true).open(path).unwrap().set_len(end).unwrap();
            opened += u64::from(self.opens(&format!("{} cut at {end}", path.display())));
        }
        fs::write(path, whole).unwrap();
        assert!(self.opens("whole again"));
        (opened, length)
    }
}

#[test]
fn a_manifest_cut_anywhere_costs_nothing() {
    let finished = finished();
    let (opened, cuts) = finished.cut_everywhere(&finished.run.manifest_path());
    assert_eq!(opened, cuts);
}

#[test]
fn a_previous_manifest_cut_anywhere_costs_nothing() {
    let finished = finished();
    fs::remove_file(finished.run.manifest_path()).unwrap();
    let (opened, cuts) = finished.cut_everywhere(&finished.run.previous_manifest_path());
    assert_eq!(opened, cuts);
}

#[test]
fn a_journal_cut_anywhere_is_noticed() {
    let finished = finished();
    let (opened, _) = finished.cut_everywhere(&finished.run.journal_path());
    assert_eq!(opened, 1, "only the last line's end may be missing");
}

/// Mixes a number deterministically: the same flips each time.
fn mixed(n: u64) -> u64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn flips() -> u64 {
    if std::env::var_os("TREEBEAM_CAMPAIGN").is_some() { 200_000 } else { 10_000 }
}

#[test]
fn no_flipped_bit_leads_to_another_state() {
    let finished = finished();
    let with_manifest = [finished.run.journal_path(), finished.run.manifest_path()];
    flip(&finished, &with_manifest, flips() / 2);
    fs::remove_file(finished.run.manifest_path()).unwrap();
    let with_previous = [finished.run.journal_path(), finished.run.previous_manifest_path()];
    flip(&finished, &with_previous, flips() / 4);
    fs::remove_file(finished.run.previous_manifest_path()).unwrap();
    flip(&finished, &[finished.run.journal_path()], flips() / 4);
}

fn change(path: &Path, byte: usize, to: u8) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(u64::try_from(byte).unwrap())).unwrap();
    file.write_all(&[to]).unwrap();
}

fn flip(finished: &Finished, files: &[std::path::PathBuf], times: u64) {
    let whole: Vec<_> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    let bits: Vec<u64> =
        whole.iter().map(|bytes| u64::try_from(bytes.len()).unwrap() * 8).collect();
    let (mut opened, mut refused) = (0, 0);
    for n in 0..times {
        let mut bit = mixed(n) % bits.iter().sum::<u64>();
        let mut file = 0;
        while bit >= bits[file] {
            bit -= bits[file];
            file += 1;
        }
        let (byte, mask) = (usize::try_from(bit / 8).unwrap(), 1_u8 << (bit % 8));
        change(&files[file], byte, whole[file][byte] ^ mask);
        let what = format!("bit {bit} of {}", files[file].display());
        if finished.opens(&what) {
            opened += 1;
        } else {
            refused += 1;
        }
        change(&files[file], byte, whole[file][byte]);
    }
    assert!(finished.opens("whole again"));
    assert!(refused > 0 && (opened > 0 || files.len() == 1), "{opened} opened, {refused} refused");
}
