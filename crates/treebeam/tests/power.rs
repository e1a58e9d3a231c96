//! Power cuts: the disk has what was synced, and nothing that was only in memory. Every event that
//! the program has reported is on record, and the resumed run ends like the undisturbed one.
//!
//! The disk is an ext4 image that is mounted and copied while the program is stopped; the copy is
//! what a machine would find after the cut. A file that was written and not synced shows that the
//! copy really lacks unsynced data.

#![cfg(test)]
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;
use treebeam_testkit::apart::{self, Namespace};
use treebeam_testkit::frozen::Frozen;
use treebeam_testkit::program::{Call, SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SIZE: [&str; 6] = [
    "--ideas-per-node=4",
    "--max-depth=2",
    "--beam-width=2",
    "--sweep-config-limit=10",
    "--max-parallel-evals=3",
    "--json",
];
const TEST: &str = "no_acknowledged_event_is_lost_with_the_power";
const PATIENCE: Duration = Duration::from_mins(2);
/// Disables periodic write-back: only synced data reaches the image.
const MOUNT: [&str; 2] = ["-o", "loop,commit=300,noatime"];
/// Name of a file that a cut loses.
const UNSYNCED: &str = "written-and-not-synced";

#[test]
fn no_acknowledged_event_is_lost_with_the_power() {
    if apart::is_inside() {
        return cut_the_power(if apart::is_campaign() { 50 } else { 3 });
    }
    let probe = "set -e; dir=$(mktemp -d); trap 'rm -rf \"$dir\"' EXIT; truncate -s 8M \"$dir/image\"
        mkfs.ext4 -q -F \"$dir/image\"; mkdir \"$dir/disk\"; mount -o loop \"$dir/image\" \"$dir/disk\"; umount \"$dir/disk\"";
    match Namespace::Mounts.can(probe) {
        Ok(()) => Namespace::Mounts.run(TEST),
        Err(why) => apart::pass_over(TEST, &format!("no image can be mounted: {why}")),
    }
}

fn cut_the_power(cuts: u32) {
    let whole = Site::new(BINARY);
    let events = acknowledged(&whole.run(&SIZE).stdout);
    let mut dice = Dice(0x7265_6562_6561_6d31);
    let (mut lost, mut in_the_middle) = (0, 0);
    for cut in 0..cuts {
        let (disk, site) = Disk::with_repository();
        let at = Moment { events: dice.below(events.len() * 3 / 4), then: dice.below(20) };
        let found = disk.cut(&site, at);
        lost += u32::from(found.unsynced_is_lost);
        in_the_middle += u32::from(!found.events.is_empty() && found.events.len() < events.len());
        check(&site, &whole, &found.events, &format!("cut {cut} at {at:?}"));
    }
    assert!(lost > 0, "what was not synced was never lost: nothing is shown by this");
    // Their number depends on the machine's speed.
    assert!(in_the_middle > 0, "none of {cuts} cuts hit the run");
    apart::remark(&format!(
        "cut the power {cuts} times, {in_the_middle} times in the middle of the run; what was not synced was lost {lost} times"
    ));
}

/// Resumes the run from the disk, and asserts its end.
#[track_caller]
fn check(site: &Site, whole: &Site, acknowledged: &[Value], what: &str) {
    if acknowledged.is_empty() {
        site.run(&SIZE);
    } else {
        let found = site.events();
        assert!(found.starts_with(acknowledged), "{what}: {found:#?}\nbegins not as was said");
        site.resume(&["--json"]);
        assert!(site.events().starts_with(acknowledged), "{what}");
    }
    site.must_equal(whole);
    let fsck = site.repo.git(["fsck", "--full", "--no-dangling"]);
    assert!(fsck.is_ok(), "{what}: {fsck:?}");
    let list = site.repo.git(["worktree", "list", "--porcelain"]).expect("worktrees");
    assert!(!list.contains("prunable"), "{what}: {list}");
    assert_eq!(list.matches("worktree ").count(), site.names("wt").len() + 1, "{what}: {list}");
    let status = site.repo.git(["status", "--porcelain"]).expect("the state of the checkout");
    assert_eq!(status, "", "{what}");
    for node in site.names("wt") {
        let folder = site.path("wt").join(&node);
        let status = site.repo.git_in(&folder, &["status", "--porcelain"]);
        assert_eq!(status.ok().as_deref(), Some(""), "{what}: the worktree of node {node}");
    }
}

/// Returns the events that the program has reported. The last line may be incomplete.
fn acknowledged(stdout: &str) -> Vec<Value> {
    let whole = stdout.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let events = whole.map(|line| serde_json::from_str(line).expect("a line in JSON"));
    events.filter(|event: &Value| event["type"] != "end").collect()
}

/// Moment of the power cut: after this many events, and a few milliseconds.
#[derive(Clone, Copy, Debug)]
struct Moment {
    events: usize,
    then: usize,
}

impl Moment {
    fn wait_for(self, call: &mut Call) {
        let begun = Instant::now();
        while call.said_so_far().lines().count() < self.events && call.goes_on() {
            assert!(begun.elapsed() < PATIENCE, "no progress");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(u64::try_from(self.then).unwrap_or(0)));
    }
}

/// Result of a cut.
struct Cut {
    events: Vec<Value>,
    unsynced_is_lost: bool,
}

/// A file system in a file.
struct Disk {
    folder: TempDir,
}

impl Disk {
    /// A disk with a repository on it, all of it synced.
    fn with_repository() -> (Self, Site) {
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder");
        let disk = Self { folder };
        fs::create_dir(disk.path()).expect("a folder to mount on");
        let image = fs::File::create(disk.image()).expect("an image");
        image.set_len(40 << 20).expect("a large image");
        let options = ["-q", "-F", "-E", "lazy_itable_init=0"].map(PathBuf::from);
        apart::system("mkfs.ext4", options.into_iter().chain([disk.image()]));
        disk.mount();
        let site = Site::new_in(&disk.path(), BINARY);
        apart::system("sync", [PathBuf::from("-f"), disk.path()]);
        (disk, site)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn mount(&self) {
        let options = MOUNT.map(PathBuf::from).into_iter();
        apart::system("mount", options.chain([self.image(), self.path()]));
    }

    fn unmount(&self) {
        apart::system("umount", [self.path()]);
    }

    /// Runs the program, cuts the power, and mounts the disk as it is then.
    fn cut(&self, site: &Site, at: Moment) -> Cut {
        let words = [&["run", "--dry-run", "--run-id", SITE_RUN_ID][..], &SIZE[..]].concat();
        let mut program = site.begin(&words);
        at.wait_for(&mut program);
        let control = self.path().join(UNSYNCED);
        fs::write(&control, vec![b'x'; 100_000]).expect("to write to the disk");
        let frozen = Frozen::stop(program.pid());
        let events = acknowledged(&program.said_so_far());
        let copy = self.copy();
        drop(frozen);
        drop(program.wait());
        self.unmount();
        fs::rename(copy, self.image()).expect("to put the copy in its place");
        self.mount();
        age_locks(&site.repo.path().join(".git"));
        let length = control.metadata().map_or(0, |file| file.len());
        Cut { events, unsynced_is_lost: length < 100_000 }
    }

    /// Copies the image at one moment: if anything was written meanwhile, it is copied again.
    fn copy(&self) -> PathBuf {
        let copy = self.folder.path().join("copy");
        for _ in 0..100 {
            let before = self.writes();
            fs::copy(self.image(), &copy).expect("to copy the image");
            if self.writes() == before {
                return copy;
            }
        }
        panic!("the image changes all the time");
    }

    /// Returns the number of writes to the image.
    fn writes(&self) -> String {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("what is mounted");
        let (path, mut lines) = (self.path(), mounts.lines());
        let device = lines.find_map(|line| {
            let mut fields = line.split(' ');
            let device = fields.next()?.strip_prefix("/dev/")?;
            (Path::new(fields.next()?) == path).then_some(device)
        });
        let device = device.expect("the disk among what is mounted");
        let stat = fs::read_to_string(format!("/sys/block/{device}/stat")).expect("its figures");
        let figures: Vec<_> = stat.split_ascii_whitespace().collect();
        figures[4..9].join(" ")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        apart::leave(&self.path());
    }
}

/// The machine was off for an hour: no git that held a lock is alive.
fn age_locks(folder: &Path) {
    let then = SystemTime::now() - Duration::from_hours(1);
    for entry in fs::read_dir(folder).expect("a folder of git") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            age_locks(&path);
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            let lock = fs::File::options().write(true).open(&path).expect("a lock");
            lock.set_modified(then).expect("to set its time");
        }
    }
}

/// Reproducible random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        // xorshift64*: good enough for moments.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(drawn).unwrap_or(0) % end.max(1)
    }
}
