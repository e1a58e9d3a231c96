//! The real program, killed while git makes a worktree: together with git, alone, or only git. Git
//! is stopped at a chosen file when it happens. The user's repository works throughout, a resume
//! waits for a git that survives, and the run ends like an undisturbed one.

#![cfg(test)]
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};
use treebeam_testkit::repo::{TempRepo, script};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SIZE: [&str; 4] = ["--ideas-per-node=5", "--max-depth=3", "--beam-width=2", "--quiet"];
/// Number of files in a worktree.
const FILES: usize = 60;

/// A git that passes all calls on, except the one that fills a new worktree.
const STAND_IN: &str = r#"#!/bin/sh
PATH='{path}'
case " $* " in *" read-tree "*) exec python3 '{bin}/fill.py' "$@";; esac
exec git "$@"
"#;

/// Fills a worktree: each call has a number that selects its fate. `plan` sets how many calls in a
/// row fail before one may succeed, and which fates there are.
const FILL: &str = r#"
import os, signal, subprocess, sys, time
here, runner = os.path.dirname(os.path.abspath(__file__)), os.getppid()
say = open(os.path.join(here, "log"), "a", buffering=1)
number = sum(line.startswith("begin") for line in open(os.path.join(here, "log")))
bad, fates = open(os.path.join(here, "plan")).read().split(" ", 1)
fates = fates.split()
say.write(f"begin {number}\n")
in_a_row = int(bad)
spared = number % (in_a_row + 1) == in_a_row
fate = "none" if spared else fates[number % len(fates)]
wanted = number * 7 % {files}
folder = os.getcwd()
# In a session of its own: a stopped process is sent on its way when the parent of its group's leader dies.
git = subprocess.Popen(["git", *sys.argv[1:]], start_new_session=True)

def files():
    return sum(len(names) for _, _, names in os.walk(folder))

def stop_at(count):
    while git.poll() is None and files() < count:
        pass
    if git.poll() is None:
        git.send_signal(signal.SIGSTOP)
    say.write(f"{fate} {number} {files()} {'ended' if git.poll() is not None else 'inside'}\n")

def end(process):
    try: os.kill(process, signal.SIGKILL)
    except ProcessLookupError: pass

if fate in ("both", "git", "runner", "held"):
    stop_at(wanted)
if fate == "both":
    end(git.pid); end(runner)
elif fate == "git":
    end(git.pid)
    code = git.wait()
    say.write(f"end {number}\n")
    os.kill(os.getpid(), signal.SIGKILL) if code < 0 else sys.exit(code)
elif fate in ("runner", "held"):
    end(runner)
    until = time.monotonic() + (60 if fate == "held" else 0.2)
    while time.monotonic() < until and not os.path.exists(os.path.join(here, "go")):
        time.sleep(0.005)
    if git.poll() is None:
        git.send_signal(signal.SIGCONT)
code = git.wait()
say.write(f"end {number}\n")
if fate == "after":
    if os.fork() == 0:
        time.sleep(number % 13 * 0.0005)
        end(runner)
        say.write(f"after {number} 0 ended\n")
        os._exit(0)
sys.exit(code)
"#;

/// A site with that git first on its path.
struct Scene {
    site: Site,
    bin: PathBuf,
}

fn repository() -> TempRepo {
    let repo = TempRepo::empty().expect("a repository");
    for number in 0..FILES {
        repo.write(&format!("d{}/f{number}", number % 6), "text\n").expect("a file");
    }
    repo.commit("first").expect("a commit");
    repo
}

impl Scene {
    fn new(plan: &str) -> Self {
        let site = Site::from_repo(repository(), BINARY);
        let bin = site.repo.beside("bin");
        fs::create_dir(&bin).expect("a folder");
        let path = std::env::var("PATH").expect("a path");
        let bin_name = bin.display().to_string();
        let fill = FILL.replace("{files}", &FILES.to_string());
        let stand_in = STAND_IN.replace("{path}", &path).replace("{bin}", &bin_name);
        fs::write(bin.join("fill.py"), fill).expect("a program");
        fs::write(bin.join("log"), "").expect("a log");
        script(&bin.join("git"), &stand_in).expect("a script");
        let scene = Self { site, bin };
        scene.plan(plan);
        scene
    }

    fn plan(&self, plan: &str) {
        fs::write(self.bin.join("plan"), plan).expect("a plan");
    }

    fn variables(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let mut variables = self.site.repo.variables();
        variables.retain(|(name, _)| name != "PATH");
        variables.push(("PATH".into(), self.bin.clone().into_os_string()));
        variables
    }

    fn arguments<'a>(&self) -> Vec<&'a str> {
        if self.site.path("journal.jsonl").exists() {
            return vec!["resume", SITE_RUN_ID, "--quiet"];
        }
        [&["run", "--dry-run", "--run-id", SITE_RUN_ID], &SIZE[..]].concat()
    }

    fn call(&self) -> Said {
        self.site.call_with(self.site.repo.path(), self.variables(), &self.arguments())
    }

    fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.bin.join("log")).expect("a log");
        log.lines().map(str::to_owned).collect()
    }

    /// Returns how often a git had this fate, and how often in the middle of its work.
    fn done(&self, fate: &str) -> (usize, usize) {
        let begins = format!("{fate} ");
        let lines: Vec<_> = self.log().into_iter().filter(|l| l.starts_with(&begins)).collect();
        let inside = lines.iter().filter(|line| line.ends_with("inside")).count();
        (lines.len(), inside)
    }

    /// Asserts that the user's own git works, and sees complete worktrees only.
    fn must_answer(&self) {
        let git = |arguments: &[&str]| self.site.repo.git_in(self.site.repo.path(), arguments);
        for command in [&["worktree", "list"][..], &["status", "--short"], &["log", "-1"]] {
            let answer = git(command);
            assert!(answer.is_ok(), "{answer:?} after {:?}", self.log());
        }
        let admins = fs::read_dir(self.site.repo.path().join(".git/worktrees"));
        for admin in admins.into_iter().flatten() {
            must_be_whole(&admin.expect("an admin folder").path());
        }
    }

    /// Asserts that the run is like an undisturbed one, without leftovers.
    fn must_have_ended_well(&self) {
        self.site.must_be_sound();
        let git = self.site.repo.path().join(".git");
        assert!(!git.join("treebeam").exists(), "nothing half-made is left");
        let peaceful = Site::from_repo(repository(), BINARY);
        peaceful.run(&SIZE);
        self.site.must_equal(&peaceful);
        let worktrees = |site: &Site| {
            let list = site.repo.git(["worktree", "list"]).expect("worktrees");
            list.replace(&site.repo.path().display().to_string(), "")
        };
        assert_eq!(worktrees(&self.site).lines().count(), worktrees(&peaceful).lines().count());
        self.site.repo.git(["fsck"]).expect("a sound repository");
    }
}

fn must_be_whole(admin: &Path) {
    for name in ["HEAD", "commondir", "gitdir", "locked", "index"] {
        let length = fs::metadata(admin.join(name)).map_or(0, |file| file.len());
        assert!(length > 0, "no {name} in {}", admin.display());
    }
}

/// Number of calls in a row that fail before one may succeed. Not one less than the number of
/// fates: one would always be spared.
fn in_a_row() -> usize {
    if std::env::var_os("TREEBEAM_CAMPAIGN").is_some() { 20 } else { 6 }
}

#[test]
fn kills_while_git_makes_a_worktree_are_healed() {
    let scene = Scene::new(&format!("{} both runner git both after", in_a_row()));
    let mut died = 0;
    loop {
        let said = scene.call();
        match said.code {
            Some(0) => break,
            None => died += 1,
            // Only its git was killed, and the message names that.
            Some(_) => drop(said.exits(1).says(["git read-tree", "killed by a signal"])),
        }
        scene.must_answer();
    }
    let fates = ["both", "runner", "git", "after"].map(|fate| (fate, scene.done(fate)));
    let kills: usize = fates.iter().map(|(_, (all, _))| all).sum();
    println!(
        "{kills} kills (how often, of which inside git): {fates:?}; the program died {died} times"
    );
    assert!(kills >= 100 && died >= kills / 2, "{kills} kills, died {died} times");
    for (fate, (all, inside)) in &fates[..3] {
        assert!(inside * 4 > *all, "{fate}: {inside} of {all} in the middle of git's work");
    }
    one_at_a_time(&scene.log());
    scene.must_have_ended_well();
}

/// Asserts that no git began to fill a worktree while another one did, whichever had lost its
/// parent.
fn one_at_a_time(log: &[String]) {
    let mut at_work: Option<&str> = None;
    for line in log {
        let (what, number) = line.split_once(' ').expect("two words");
        let number = number.split(' ').next().expect("a number");
        match what {
            "begin" => {
                assert_eq!(at_work, None, "{number} began: {log:?}");
                at_work = Some(number);
            }
            // Killed with its parent: it logs nothing more.
            "both" | "end" => at_work = None,
            _ => {}
        }
    }
}

#[test]
fn a_git_that_lives_on_is_waited_for() {
    let scene = Scene::new("1 held");
    for _ in 0..3 {
        let orphaned = scene.call();
        assert_eq!(orphaned.code, None, "{}", orphaned.stderr);
        let begun = || scene.log().iter().filter(|line| line.starts_with("begin")).count();
        let before = begun();
        let mut resumed = scene.site.begin_with(scene.variables(), &scene.arguments());
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(700) {
            assert!(resumed.goes_on(), "it waits");
            scene.must_answer();
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(begun(), before, "nobody works beside the git that is still at it");
        fs::write(scene.bin.join("go"), "").expect("a sign");
        // The next git is spared; the one after it loses its parent, and continues by the same
        // file.
        let said = resumed.wait();
        assert_eq!(said.code, None, "{}", said.stderr);
        wait_for_end(&scene);
        fs::remove_file(scene.bin.join("go")).expect("to take the sign back");
    }
    scene.plan("0 none");
    let _ = scene.call().exits(0);
    one_at_a_time(&scene.log());
    scene.must_have_ended_well();
}

/// Waits until every git that began has ended.
fn wait_for_end(scene: &Scene) {
    let count = |what: &str| scene.log().iter().filter(|line| line.starts_with(what)).count();
    let begun = Instant::now();
    while count("begin") > count("end") {
        assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", scene.log());
        thread::sleep(Duration::from_millis(5));
    }
}
