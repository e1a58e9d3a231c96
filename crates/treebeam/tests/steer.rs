//! `treebeam pause`, `unpause` and `stop` with real processes: a running process acts on them in
//! the middle of a step, and the steered run ends as the undisturbed one.

#![cfg(test)]
#![cfg(unix)]

use jiff::Timestamp;
use serde_json::{Value, json};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::UserRequest;
use treebeam_store::RunDir;
use treebeam_store::inbox::{OutgoingMessage, encode_message};
use treebeam_store::user_state::UserState;
use treebeam_testkit::held::HeldGit;
use treebeam_testkit::program::{Call, SITE_RUN_ID, Said, Signal, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const START: [&str; 9] = [
    "run",
    "--dry-run",
    "--run-id",
    SITE_RUN_ID,
    "--ideas-per-node=2",
    "--max-depth=2",
    "--beam-width=1",
    "--max-parallel-evals=2",
    "--json",
];
const PATIENCE: Duration = Duration::from_mins(1);
const GOES_ON: &str = "hint: `treebeam resume t";

/// Makes the undisturbed run.
fn whole() -> Site {
    let site = Site::new(BINARY);
    let _ = site.call(&START).exits(0);
    site.must_be_sound();
    site
}

/// Starts a run that is blocked in git.
fn held() -> (Site, HeldGit, Call) {
    let site = Site::new(BINARY);
    let git = HeldGit::new(&site);
    let call = git.begin(&site, &START);
    (site, git, call)
}

#[track_caller]
fn check_ended(whole: &Site, site: &Site, said: Said) {
    let _ = said.exits(0);
    site.must_be_sound();
    whole.must_equal(site);
    assert_eq!(messages(site), [""; 0], "nothing is left in the inbox");
}

fn messages(site: &Site) -> Vec<String> {
    let mut names = site.names("inbox");
    names.retain(|name| name != "refused");
    names
}

#[track_caller]
fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn count(site: &Site, kind: &str) -> usize {
    site.events().iter().filter(|event| event["type"] == kind).count()
}

/// Returns the recorded requests, and whether each came by a message.
fn asked(site: &Site) -> Vec<(String, bool)> {
    let events = site.events().into_iter().filter(|event| event["type"] == "asked");
    let wish = |event: &Value| event["wish"].as_str().expect("a wish").to_owned();
    events.map(|event| (wish(&event), event["message"].is_string())).collect()
}

fn was(wishes: &[(&str, bool)]) -> Vec<(String, bool)> {
    wishes.iter().map(|(wish, by)| ((*wish).to_owned(), *by)).collect()
}

#[track_caller]
fn tell(site: &Site, command: &str) -> Value {
    let document = site.call(&[command, SITE_RUN_ID, "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(document["schema"], format!("treebeam.{command}/1"));
    assert_eq!(document["run_id"], SITE_RUN_ID);
    document
}

/// Writes a message as the user's own `treebeam` does, under this name.
fn letter(site: &Site, name: &str, wish: UserRequest, epoch: u64) {
    let home = site.repo.home().into_os_string();
    let state = UserState::find_from_variables(|name| (name == "HOME").then(|| home.clone()));
    let secret = state.and_then(|state| state.inbox_secret(&[])).expect("the user's secret");
    let (id, message) = (name.parse().expect("a name"), OutgoingMessage::Wish { wish, epoch });
    let run = RunDir::new(site.path(""));
    let bytes = encode_message(&run, &id, Timestamp::UNIX_EPOCH, &message, &secret);
    write_file(site, name, &bytes.expect("a message"));
}

/// Writes a message of this kind without the user's secret.
fn forged(site: &Site, name: &str, kind: &str) {
    let letter = json!({
        "message_version": 1, "at": "2026-01-31T22:00:00Z", "kind": kind, "to_epoch": 1
    });
    write_file(site, name, letter.to_string().as_bytes());
}

fn write_file(site: &Site, name: &str, bytes: &[u8]) {
    fs::write(site.path(&format!("inbox/{name}.json")), bytes).expect("a message");
}

fn pause(site: &Site, git: &HeldGit) {
    assert_eq!(tell(site, "pause")["outcome"], "taken");
    git.let_go();
    await_that("what was running ends", || count(site, "implemented") == 2);
}

#[test]
fn a_paused_run_starts_nothing_and_goes_on_as_if_nothing_had_been() {
    let whole = whole();
    let (site, git, mut call) = held();
    pause(&site, &git);
    let status = site.call(&["status", SITE_RUN_ID]).exits(0).stdout;
    assert!(status.contains("treebeam unpause t"), "{status}");
    assert!(status.lines().any(|line| line.starts_with("paused")), "{status}");
    let status = site.call(&["status", SITE_RUN_ID, "--json"]).exits(0).json_lines().remove(0);
    assert!(status["paused_since"].is_string() && status["stop_reason"].is_null(), "{status}");
    let list = site.call(&["list", "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(list["runs"][0]["state"], "paused");
    let log = site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    assert!(log.contains("run     paused by the user"), "{log}");
    // A process that ignored the pause would have submitted a sweep by now.
    thread::sleep(Duration::from_millis(1500));
    assert!(call.goes_on() && site.path("run.lock.json").is_file());
    assert_eq!(count(&site, "sweep_submitted"), 1, "that of the root");
    let _ = site.call(&["pause"]).exits(0).says(["run t is paused", "`treebeam unpause t`"]);
    assert_eq!(asked(&site), was(&[("pause", true)]), "said twice, and once on record");

    let _ = site.call(&["unpause"]).exits(0).says(["run t goes on"]);
    check_ended(&whole, &site, call.end(PATIENCE));
    assert_eq!(asked(&site), was(&[("pause", true), ("unpause", true)]));
    assert!(site.manifest()["history"]["paused_since"].is_null());
}

#[test]
fn a_paused_run_can_be_interrupted_and_a_resume_goes_on() {
    let whole = whole();
    let (site, git, call) = held();
    pause(&site, &git);
    call.signal(Signal::Interrupt);
    let _ = call.end(PATIENCE).exits(130).says([GOES_ON]);
    let status = site.call(&["status", SITE_RUN_ID, "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(status["stop_reason"], "interrupted");
    assert!(status["paused_since"].is_null(), "nobody is there to pause");
    check_ended(&whole, &site, site.call(&START));
    assert_eq!(asked(&site), was(&[("pause", true), ("unpause", false)]));
}

#[test]
fn a_paused_run_can_be_killed_and_a_resume_goes_on() {
    let whole = whole();
    let (site, git, call) = held();
    pause(&site, &git);
    drop(call);
    check_ended(&whole, &site, site.call(&["resume", SITE_RUN_ID]));
    assert_eq!(asked(&site), was(&[("pause", true), ("unpause", false)]));
}

#[test]
fn a_run_that_is_told_to_stop_can_be_resumed() {
    let whole = whole();
    let (site, git, call) = held();
    let document = tell(&site, "stop");
    assert_eq!(document["outcome"], "taken");
    let running = document["running"].as_str().expect("who");
    assert!(running.contains(&format!("process {} on", call.pid())), "{running}");
    git.let_go();
    let said = call.end(PATIENCE).exits(130).says([GOES_ON]);
    assert_eq!(said.json_lines().last().expect("a line")["stop_reason"], "interrupted");
    assert_eq!(asked(&site), was(&[("stop", true)]));
    assert_eq!(count(&site, "sweep_submitted"), 1, "nothing new began");
    assert!(site.manifest()["state"]["stop_reason"].is_null());
    let log = site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    assert!(log.contains("left by the user: can be resumed"), "{log}");
    check_ended(&whole, &site, site.call(&["resume", SITE_RUN_ID]));
}

#[test]
fn a_run_that_is_told_to_stop_after_this_depth_tries_it_to_its_end() {
    let whole = whole();
    let (site, git, call) = held();
    let said = site.call(&["stop", SITE_RUN_ID, "--after-depth", "--json"]).exits(0);
    let document = said.json_lines().remove(0);
    assert_eq!(
        (&document["schema"], &document["outcome"]),
        (&"treebeam.stop/1".into(), &"taken".into())
    );
    let _ = site
        .call(&["stop", "--after-depth"])
        .exits(0)
        .says(["run t stops after depth 0", "`treebeam unpause t` takes that back"]);
    assert_eq!(asked(&site), was(&[("stop_after_depth", true)]), "said twice, and once on record");
    let status = site.call(&["status", SITE_RUN_ID]).exits(0).stdout;
    assert!(status.contains("stops       after depth 0; `treebeam unpause t`"), "{status}");
    let status = site.call(&["status", SITE_RUN_ID, "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(status["stop_after_depth"], 0, "{status}");
    let list = site.call(&["list"]).exits(0).stdout;
    assert!(list.contains("running, stops after depth 0: "), "{list}");
    let list = site.call(&["list", "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(list["runs"][0]["stop_after_depth"], 0, "{list}");
    git.let_go();
    let said = call.end(PATIENCE).exits(130).says([GOES_ON]);
    assert_eq!(said.json_lines().last().expect("a line")["stop_reason"], "stopped_after_depth");
    assert_eq!(count(&site, "depth_closed"), 1, "this depth");
    assert_eq!(count(&site, "node_added"), 1, "and what it brought");
    assert_eq!(count(&site, "stopped"), 0, "it is not over");
    site.must_be_sound();
    let status = site.call(&["status", SITE_RUN_ID]).exits(0).stdout;
    assert!(status.contains("nobody: it stopped after depth 0, as the user wanted"), "{status}");
    let log = site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    assert!(log.contains("to stop after this depth, as the user wants"), "{log}");
    check_ended(&whole, &site, site.call(&["resume", SITE_RUN_ID]));
    assert_eq!(asked(&site), was(&[("stop_after_depth", true), ("unpause", false)]));
}

#[test]
fn a_stop_after_this_depth_outlives_a_kill_and_can_be_taken_back() {
    let whole = whole();
    let (site, git, call) = held();
    let _ = site.call(&["stop", SITE_RUN_ID, "--after-depth"]).exits(0);
    drop(call);
    git.let_go();
    let said = site.call(&["resume", SITE_RUN_ID]).exits(130);
    let _ =
        said.says(["it stops after depth 0, as it was told before", "run t stopped after depth 0"]);
    check_ended(&whole, &site, site.call(&["resume", SITE_RUN_ID]));

    let (site, git, call) = held();
    let _ = site.call(&["stop", SITE_RUN_ID, "--after-depth"]).exits(0);
    let _ = site.call(&["unpause", SITE_RUN_ID]).exits(0);
    git.let_go();
    check_ended(&whole, &site, call.end(PATIENCE));
    assert_eq!(asked(&site), was(&[("stop_after_depth", true), ("unpause", true)]));
}

#[test]
fn a_message_that_a_killed_process_left_means_nothing_to_the_next() {
    let whole = whole();
    // Killed before it read the message.
    let (site, git, call) = held();
    call.signal(Signal::Stop);
    letter(&site, "m1", UserRequest::Stop, 1);
    drop(call);
    git.let_go();
    let said = site.call(&["resume", SITE_RUN_ID]).says(["`inbox/m1.json` is set aside", "before"]);
    check_ended(&whole, &site, said);
    assert_eq!(asked(&site), []);

    // Killed after the record and before the removal: as if the file were there again.
    let (site, git, call) = held();
    letter(&site, "m1", UserRequest::Pause, 1);
    await_that("the message is read", || !asked(&site).is_empty());
    letter(&site, "m1", UserRequest::Pause, 1);
    await_that("it is removed again", || messages(&site).is_empty());
    assert_eq!(asked(&site), was(&[("pause", true)]), "it counts once");
    drop(call);
    git.let_go();
    letter(&site, "m1", UserRequest::Pause, 2);
    check_ended(&whole, &site, site.call(&["resume", SITE_RUN_ID]));
    assert_eq!(asked(&site), was(&[("pause", true), ("unpause", false)]));
}

/// A candidate can write into the run's folder, but does not have the user's secret.
#[test]
fn a_message_without_the_users_secret_is_set_aside_and_the_users_own_is_heard() {
    let whole = whole();
    let (site, git, call) = held();
    forged(&site, "m1", "stop");
    await_that("it is set aside", || messages(&site).is_empty());
    assert_eq!(tell(&site, "pause")["outcome"], "taken");
    assert_eq!(tell(&site, "unpause")["outcome"], "taken");
    // Another home folder counts as another user.
    let other = site.repo.variables().into_iter();
    let other = other.chain([("XDG_STATE_HOME".into(), site.repo.beside("other").into())]);
    let said = site.call_with(site.repo.path(), other.collect(), &["stop", SITE_RUN_ID]).exits(1);
    let _ = said.says(["run `t` was not told to stop: it does not carry this user's secret"]);
    // The secret is not written into the repository; without a place for it, no message is sent.
    for (name, value) in [("XDG_STATE_HOME", site.repo.path().join("state")), ("HOME", "".into())] {
        let mut variables = site.repo.variables();
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), value.into()));
        let said = site.call_with(site.repo.path(), variables, &["stop", SITE_RUN_ID]).exits(4);
        let _ = said.says(["the user's state", "hint: set `XDG_STATE_HOME` to a folder"]);
    }
    assert!(!site.repo.path().join("state").exists());
    git.let_go();
    let said = call.end(PATIENCE).says(["`inbox/m1.json` is set aside: it does not carry"]);
    check_ended(&whole, &site, said);
    assert_eq!(asked(&site), was(&[("pause", true), ("unpause", true)]));
    let found = site.call(&["doctor"]).stdout;
    assert!(found.contains("run `t` has set 2 messages aside"), "{found}");
}

#[test]
fn a_run_without_a_place_for_the_users_state_goes_on_and_says_that_nothing_reaches_it() {
    let site = Site::new(BINARY);
    let nowhere = site.repo.beside("file");
    fs::write(&nowhere, "").expect("a file");
    let variables = site.repo.variables().into_iter();
    let variables = variables.chain([("XDG_STATE_HOME".into(), nowhere.into())]).collect();
    let said = site.call_with(site.repo.path(), variables, &START).exits(0);
    let _ = said.says(["note: no message can reach this run: cannot", "set `XDG_STATE_HOME`"]);
    site.must_be_sound();
    whole().must_equal(&site);
}

#[test]
fn nothing_is_written_where_nobody_would_read_it() {
    let site = Site::new(BINARY);
    let _ = site.call(&["pause"]).exits(2).says(["there is no run in this repository"]);
    let _ = site.call(&["pause", "nope"]).exits(2).says(["is no run"]);
    let git = HeldGit::new(&site);
    drop(git.begin(&site, &START));
    for command in ["pause", "unpause", "stop"] {
        let said = site.call(&[command, SITE_RUN_ID]).exits(1);
        let nothing = format!("error: nobody runs run `t`: nothing to {command}");
        let _ = said.says([&nothing, "hint: `treebeam resume t` goes on with it"]);
    }
    git.let_go();
    let _ = site.call(&["resume", SITE_RUN_ID]).exits(0);
    let _ =
        site.call(&["stop"]).exits(1).says(["run `t` is over (empty_frontier): nothing to stop"]);
    assert_eq!(site.names("inbox"), [""; 0]);
}

#[test]
fn a_process_that_does_not_listen_is_named_and_one_elsewhere_counts() {
    let (site, git, call) = held();
    call.signal(Signal::Stop);
    let said = site.call(&["pause", SITE_RUN_ID]).exits(0);
    let name = format!("process {} on", call.pid());
    let _ = said.says(["run t was told to pause, and has not read it yet", &name]);
    assert_eq!(messages(&site).len(), 1);
    drop(call);
    git.let_go();
    // Its lock note, as if it were on another machine that shares the disk.
    let mut note: Value = serde_json::from_str(&site.text("run.lock.json")).expect("a note");
    note["hostname"] = "box".into();
    note["boot_id"] = "another".into();
    note["last_heartbeat_at"] = jiff::Timestamp::now().to_string().into();
    fs::write(site.path("run.lock.json"), note.to_string()).expect("a note");
    let document = tell(&site, "stop");
    assert_eq!(document["outcome"], "waiting");
    assert!(document["running"].as_str().expect("who").contains("on `box`"), "{document}");
    note["last_heartbeat_at"] = "2026-01-31T22:00:00Z".into();
    fs::write(site.path("run.lock.json"), note.to_string()).expect("a note");
    let _ = site.call(&["stop", SITE_RUN_ID]).exits(1).says(["nobody runs run `t`"]);
}

#[test]
fn hostile_files_stop_nothing() {
    let whole = whole();
    let (site, git, call) = held();
    let path = |name: &str| site.path("inbox").join(name);
    fs::write(path("1.json"), "{").expect("a file");
    fs::write(path("2.json"), vec![b'x'; 1 << 20]).expect("a file");
    fs::create_dir(path("3.json")).expect("a folder");
    treebeam_testkit::repo::pipe(&path("4.json")).expect("a pipe");
    std::os::unix::fs::symlink("/dev/zero", path("5.json")).expect("a link");
    forged(&site, "6", "dance");
    fs::write(path("7.json"), r#"{"message_version":9,"kind":"stop"}"#).expect("a file");
    fs::write(path("no message"), "").expect("a file");
    await_that("all is set aside", || messages(&site).is_empty());
    assert_eq!(tell(&site, "pause")["outcome"], "taken", "and others are heard");
    let _ = tell(&site, "unpause");
    git.let_go();
    let said = call.end(PATIENCE).says(["`inbox/4.json` is set aside: it is no regular file"]);
    check_ended(&whole, &site, said);
    assert_eq!(site.names("inbox/refused").len(), 16, "each with its reason");
}

#[test]
fn without_a_name_the_only_run_that_is_running_is_meant() {
    let (site, git, call) = held();
    let other = ["run", "--dry-run", "--run-id=u", "--ideas-per-node=2", "--max-depth=1", "-q"];
    let _ = site.call(&other).exits(0);
    let _ = site.call(&["stop"]).exits(0).says(["run t is stopping", "`treebeam resume t`"]);
    git.let_go();
    let _ = call.end(PATIENCE).exits(130);
    let _ = site.call(&["stop"]).exits(1).says(["run `u` is over"]);
}
