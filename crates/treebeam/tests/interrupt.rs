//! Ctrl-C: the first lets a run finish its current steps and be resumed, the second ends it at
//! once. After any number of interrupts at any time, the resumed run ends as the uninterrupted one.

#![cfg(test)]
#![cfg(unix)]

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::program::{Call, SITE_RUN_ID, Said, Signal, Site, send};
use treebeam_testkit::repo::script;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SMALL: [&str; 4] = ["--ideas-per-node=2", "--max-depth=2", "--beam-width=1", "--quiet"];
const LARGE: [&str; 4] = ["--ideas-per-node=5", "--max-depth=3", "--beam-width=2", "--quiet"];
const PATIENCE: Duration = Duration::from_mins(1);
const STOPPING: &str = "stopping after the steps that are running; Ctrl-C again stops at once";
const GOES_ON: &str = "` goes on from here";

/// Arguments of `run` with these flags; the same arguments start a run and resume it.
fn words<'a>(flags: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--dry-run", "--run-id", SITE_RUN_ID][..], flags, more].concat()
}

/// Makes an uninterrupted run, and measures its time.
fn whole(flags: &[&str]) -> (Site, Duration) {
    let site = Site::new(BINARY);
    let begun = Instant::now();
    let _ = site.call(&words(flags, &[])).exits(0);
    let took = begun.elapsed();
    site.must_be_sound();
    (site, took)
}

fn interrupt(call: Call, after: Duration) -> Said {
    thread::sleep(after);
    call.signal(Signal::Interrupt);
    call.end(PATIENCE)
}

/// Returns the resume command of the hint, without the program's name.
#[track_caller]
fn way_on(said: &Said) -> Vec<String> {
    let hint = said.stderr.lines().find_map(|line| {
        line.strip_prefix("hint: `treebeam ").and_then(|rest| rest.strip_suffix(GOES_ON))
    });
    hint.unwrap_or_else(|| panic!("{}", said.stderr)).split(' ').map(str::to_owned).collect()
}

/// Asserts the message and the state of an interrupted run. Before its first event there is no run.
#[track_caller]
fn check_interrupted(site: &Site, said: &Said) {
    assert!(said.stderr.contains(STOPPING), "{}", said.stderr);
    assert!(!said.stderr.contains("error"), "{}", said.stderr);
    if said.stderr.contains("interrupted before the run began") {
        assert!(!site.path("").exists());
        return;
    }
    assert_eq!(way_on(said)[..2], ["resume", SITE_RUN_ID]);
    assert!(!site.path("run.lock.json").exists(), "the run is let go of");
    let (manifest, events) = (site.manifest(), site.events().len());
    assert_eq!(manifest["history"]["seq"], events, "the manifest is complete");
    assert!(manifest["state"]["stop_reason"].is_null(), "nothing of it is on record");
    assert!(site.text("TREE_SUMMARY.md").contains(SITE_RUN_ID));
}

/// Ends an interrupted run, and compares it with the whole one.
#[track_caller]
fn check_resumed(whole: &Site, site: &Site, words: &[&str]) {
    let _ = site.call(words).exits(0);
    site.must_be_sound();
    whole.must_equal(site);
}

#[test]
fn a_run_that_is_interrupted_at_any_moment_ends_the_same() {
    for (flags, times) in [(&SMALL, 6), (&LARGE, 3)] {
        let (whole, took) = whole(flags);
        let mut interrupted = 0;
        for part in 0..times {
            let site = Site::new(BINARY);
            let parallel = ["--max-parallel-evals=1", "--max-parallel-evals=4"];
            let words = words(flags, &parallel[part as usize % 2..][..1]);
            let said = interrupt(site.begin(&words), took * (2 * part + 1) / (2 * times));
            match said.code {
                Some(130) => {
                    check_interrupted(&site, &said);
                    interrupted += 1;
                }
                // The run had ended already, or had no handler yet.
                Some(0) | None => {}
                Some(_) => panic!("{said:?}"),
            }
            check_resumed(&whole, &site, &words);
        }
        assert!(interrupted > 0, "never hit");
    }
}

#[test]
fn a_run_that_is_interrupted_again_and_again_ends_the_same() {
    let (whole, took) = whole(&SMALL);
    let site = Site::new(BINARY);
    let words = words(&SMALL, &["--max-parallel-evals=2"]);
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let mut times = 0;
    loop {
        let call = site.begin(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let said = interrupt(call, took / 8 + took * times / 16);
        match said.code {
            Some(0) => break,
            Some(130) => {
                check_interrupted(&site, &said);
                if site.path("").exists() {
                    words = way_on(&said);
                }
            }
            other => assert_eq!(other, None, "{said:?}"),
        }
        times += 1;
        assert!(times < 100, "no progress");
    }
    assert!(times > 0, "never hit");
    site.must_be_sound();
    whole.must_equal(&site);
}

/// A git that is slow to apply patches as long as a file exists; it records its processes.
struct SlowGit {
    slow: PathBuf,
    processes: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

impl SlowGit {
    fn new(site: &Site, seconds: &str) -> Self {
        let bin = site.repo.beside("bin");
        let (slow, processes) = (bin.join("slow"), bin.join("processes"));
        fs::create_dir_all(&bin).expect("a folder");
        fs::write(&slow, "").expect("a file");
        let path = std::env::var_os("PATH").expect("a PATH");
        let git = std::env::split_paths(&path).map(|folder| folder.join("git"));
        let git = git.into_iter().find(|git| git.is_file()).expect("git");
        let text = format!(
            "#!/bin/sh\ncase \" $* \" in *' apply '*) if [ -e '{slow}' ]; then\n\
             sleep {seconds} & echo $$ $! >> '{processes}'; wait\nfi;; esac\nexec '{git}' \"$@\"\n",
            slow = slow.display(),
            processes = processes.display(),
            git = git.display(),
        );
        script(&bin.join("git"), &text).expect("a script");
        let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path)));
        let mut variables = site.repo.variables();
        variables.retain(|(name, _)| name != "PATH");
        variables.push(("PATH".into(), path.expect("a PATH")));
        Self { slow, processes, variables }
    }

    fn begin(&self, site: &Site, words: &[&str]) -> Call {
        let call = site.begin_with(self.variables.clone(), words);
        let begun = Instant::now();
        while self.processes().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "nothing was applied");
            thread::sleep(Duration::from_millis(3));
        }
        call
    }

    fn processes(&self) -> Vec<u32> {
        let noted = fs::read_to_string(&self.processes).unwrap_or_default();
        noted.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    fn hurry(&self) {
        fs::remove_file(&self.slow).expect("to be slow");
    }
}

/// A zombie process is not alive.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
fn twice_ends_at_once_with_all_that_was_started() {
    let (whole, _) = whole(&SMALL);
    for signal in [Signal::Interrupt, Signal::Terminate] {
        let (site, words) = (Site::new(BINARY), words(&SMALL, &["--max-parallel-evals=2"]));
        let git = SlowGit::new(&site, "60");
        let mut call = git.begin(&site, &words);
        call.signal(signal);
        call.await_said(STOPPING);
        thread::sleep(Duration::from_millis(200));
        assert!(call.goes_on(), "it waits for what is running");
        let begun = Instant::now();
        call.signal(signal);
        thread::sleep(Duration::from_millis(60));
        call.signal(signal);
        let said = call.end(PATIENCE).exits(130).says(["stopped; `treebeam resume t"]);
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}: {said:?}", begun.elapsed());
        let left: Vec<_> = git.processes().into_iter().filter(|pid| is_alive(*pid)).collect();
        assert!(left.is_empty(), "{left:?}");
        let failed = site.events().iter().any(|event| event["type"] == "eval_failed");
        assert!(!failed, "nothing is concluded from a git that was ended");
        git.hurry();
        check_resumed(&whole, &site, &words);
    }
}

#[test]
fn once_lets_what_runs_end_and_starts_nothing() {
    let (whole, _) = whole(&SMALL);
    for signal in [Signal::Interrupt, Signal::Terminate, Signal::Hangup] {
        if signal == Signal::Hangup && hangups_are_ignored() {
            continue;
        }
        let (site, words) = (Site::new(BINARY), words(&SMALL, &["--json"]));
        let git = SlowGit::new(&site, "0.5");
        let call = git.begin(&site, &words);
        call.signal(signal);
        let said = call.end(PATIENCE).exits(130);
        check_interrupted(&site, &said);
        let lines = said.json_lines();
        let end = lines.last().expect("a last line");
        let expected = r#"{"best":"n0000","run_id":"t","stop_reason":"interrupted","type":"end"}"#;
        assert_eq!(end, &serde_json::from_str::<serde_json::Value>(expected).expect("JSON"));
        let events = site.events();
        assert_eq!(events.last().expect("an event")["type"], "implemented", "and no sweep");
        git.hurry();

        let status = site.call(&["status", SITE_RUN_ID]).exits(0);
        assert!(status.stdout.contains("nobody: it was interrupted"), "{}", status.stdout);
        assert!(status.stdout.contains("treebeam resume t"), "{}", status.stdout);
        let status = site.call(&["status", SITE_RUN_ID, "--json"]).exits(0).json_lines();
        assert_eq!(status[0]["stop_reason"], "interrupted");
        check_resumed(&whole, &site, &words);
    }
}

/// Returns true if this test was started by `nohup` or the like: its children inherit that.
fn hangups_are_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    u64::from_str_radix(mask.trim(), 16).expect("a number") & 1 == 1
}

/// A service manager signals all processes of a service at once, in no fixed order.
#[test]
fn all_told_at_once_is_like_once() {
    let (whole, _) = whole(&SMALL);
    for child_first in [true, false] {
        let (site, words) = (Site::new(BINARY), words(&SMALL, &["--max-parallel-evals=2"]));
        let git = SlowGit::new(&site, "60");
        let mut call = git.begin(&site, &words);
        let tell_children = || git.processes().into_iter().for_each(terminate);
        if child_first {
            tell_children();
            thread::sleep(Duration::from_millis(100));
        }
        call.signal(Signal::Terminate);
        git.hurry();
        let begun = Instant::now();
        while call.goes_on() && begun.elapsed() < PATIENCE {
            // Processes that were just being started are signalled too.
            tell_children();
            thread::sleep(Duration::from_millis(20));
        }
        let said = call.end(PATIENCE).exits(130);
        check_interrupted(&site, &said);
        let failed = site.events().iter().any(|event| event["type"] == "eval_failed");
        assert!(!failed, "nothing is concluded from a git that was ended");
        check_resumed(&whole, &site, &words);
    }
}

/// The process may have ended.
fn terminate(pid: u32) {
    let _ = send(pid, Signal::Terminate);
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let site = Site::new("nohup");
    let words = [&[BINARY][..], &words(&SMALL, &[])].concat();
    let git = SlowGit::new(&site, "0.3");
    let call = git.begin(&site, &words);
    call.signal(Signal::Hangup);
    let said = call.end(PATIENCE).exits(0);
    assert!(!said.stderr.contains("stopping"), "{}", said.stderr);
}

#[test]
fn a_run_that_is_over_has_nothing_to_interrupt() {
    let site = Site::new(BINARY);
    let words = words(&SMALL, &[]);
    let _ = site.call(&words).exits(0);
    let manifest = site.manifest();
    for after in [0, 5, 10, 20] {
        let said = interrupt(site.begin(&words), Duration::from_millis(after));
        assert!(matches!(said.code, Some(0) | None), "{said:?}");
    }
    assert_eq!(site.manifest(), manifest);
}
