//! `treebeam serve` and `treebeam job` are shielded from other processes of the same user, which
//! can read neither their memory nor their environment. Everything here runs without capabilities,
//! because an administrator can inspect any process.

#![cfg(test)]
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the test is the other process")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::program::{Call, SITE_RUN_ID, Site};
use treebeam_testkit::repo::script;
use treebeam_testkit::traces;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const LONG: Duration = Duration::from_mins(1);
const NO_CAPABILITIES: [&str; 3] = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];

/// Returns the prefix that drops the capabilities of an administrator.
fn plainly() -> &'static [&'static str] {
    let is_root = fs::metadata("/proc/self").expect("this process").uid() == 0;
    if is_root { &NO_CAPABILITIES } else { &["env"] }
}

/// Returns true if another process of this user can read the environment of a process.
fn is_readable(pid: u32) -> bool {
    let (first, rest) = plainly().split_first().expect("a program");
    let mut command = Command::new(first);
    command.args(rest).args(["cat", &format!("/proc/{pid}/environ")]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it runs").success()
}

/// Creates a site whose program is called without capabilities.
fn plain_site() -> Site {
    let repo = Site::new(BINARY).repo;
    let program = repo.beside("plain-treebeam");
    script(&program, &format!("#!/bin/sh\nexec {} '{BINARY}' \"$@\"\n", plainly().join(" ")))
        .expect("a script");
    Site::from_repo(repo, &program.display().to_string())
}

#[track_caller]
fn await_that<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < LONG, "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_ordinary_process_can_be_read() {
    let (first, rest) = plainly().split_first().expect("a program");
    let mut sleeper = Command::new(first).args(rest).args(["sleep", "600"]).spawn().expect("it");
    let name = format!("/proc/{}/comm", sleeper.id());
    await_that("it sleeps", || fs::read_to_string(&name).ok().filter(|name| name == "sleep\n"));
    let readable = is_readable(sleeper.id());
    sleeper.kill().expect("to end it");
    let _ = sleeper.wait();
    assert!(readable, "otherwise the other tests say nothing");
}

#[test]
fn the_server_cannot_be_read() {
    let site = plain_site();
    let flags = ["--ideas-per-node=1", "--max-depth=1", "--beam-width=1"];
    let _ = site.run(&flags).exits(0);
    let call: Call = site.begin(&["serve", "--json"]);
    await_that("it serves", || call.said_so_far().ends_with('\n').then_some(()));
    assert!(!is_readable(call.pid()));
}

#[test]
fn a_job_cannot_be_read() {
    let site = plain_site();
    let go = site.repo.beside("go");
    let sweep = format!(
        "while [ ! -e '{}' ]; do sleep 0.1; done\nprintf 'config_id,status,a\\n0,ok,1\\n' > \"$AGENTIC_RESULTS_CSV\"\n",
        go.display()
    );
    let config = "sweep_command = ['sh', 'sweep.sh']\n[score]\nprimary = 'a'\nmetrics = [{ column = 'a' }]\n";
    site.repo.write("sweep.sh", &sweep).expect("a file");
    site.repo.write("treebeam.toml", config).expect("a file");
    site.repo.commit("a state").expect("a commit");
    let call = site.begin(&["baseline", "--quiet", "--run-id", SITE_RUN_ID]);
    let job = |(pid, said): (u32, String)| said.contains(" job ").then_some(pid);
    let folder: &Path = site.repo.path();
    let pid = await_that("the job runs", || {
        let is_swept = site.path("eval").exists();
        is_swept.then(|| traces::processes(folder).into_iter().find_map(job)).flatten()
    });
    let sweeping =
        || traces::processes(folder).into_iter().find(|(_, said)| said.contains("sweep.sh"));
    await_that("the sweep runs", sweeping);
    let readable = is_readable(pid);
    fs::write(&go, "").expect("a file");
    let _ = call.end(LONG).exits(0);
    assert!(!readable);
}
