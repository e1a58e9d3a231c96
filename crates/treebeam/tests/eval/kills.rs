//! The program is killed at every stage of an eval, and at any moment: a resume repeats no answer
//! and no sweep that is on disk, and waits for a running sweep.

use crate::desk::{Desk, ROLES, until};
use std::collections::BTreeSet;
use std::time::Duration;
use treebeam_testkit::apart::is_campaign;
use treebeam_testkit::fault::Fault;
use treebeam_testkit::program::{SITE_RUN_ID, Signal};

/// Calls of an eval of a good idea, in order.
const CALLS: [&str; 6] = [
    "coordinator good 0",
    "planner good 0",
    "coder good 0",
    "reviewer good 0",
    "tests good",
    "sweep good",
];

fn must_be_finished(desk: &Desk, what: &str) {
    let said = desk.site.call(&["resume", SITE_RUN_ID]).exits(0);
    // A takeover of a stopped run is recorded after its end.
    let stopped = desk.site.events().iter().any(|event| event["type"] == "stopped");
    assert!(stopped, "{what}: {}", said.stderr);
    desk.site.must_be_sound();
    let scored = desk.site.events().into_iter().filter(|event| event["type"] == "scored").count();
    assert_eq!(scored, 1, "{what}");
    assert_eq!(desk.site.names("cand"), [""; 0], "{what}");
}

#[test]
fn killed_while_an_agent_is_asked_only_that_is_asked_again() {
    for (number, role) in ROLES.into_iter().enumerate() {
        let desk = Desk::new("");
        let ideas = desk.ideas(&["good"]);
        desk.hold(role);
        let call = desk.site.begin(&["eval", "--run-id", SITE_RUN_ID, "--idea", &ideas]);
        until(role, || desk.calls_of("good").len() == number + 1);
        call.signal(Signal::Kill);
        drop(call);
        desk.let_go(role);
        must_be_finished(&desk, role);
        let mut expected = CALLS.to_vec();
        expected.insert(number, CALLS[number]);
        assert_eq!(desk.calls_of("good"), expected, "{role}");
        assert_eq!(desk.calls_of("root").len(), 2, "{role}");
    }
}

#[test]
fn killed_while_tests_or_sweep_run_they_are_waited_for() {
    for who in ["tests", "sweep"] {
        let desk = Desk::new("");
        let ideas = desk.ideas(&["good"]);
        let call = desk.site.begin(&["eval", "--run-id", SITE_RUN_ID, "--idea", &ideas]);
        until("the root is measured", || desk.calls().contains(&CALLS[0].to_owned()));
        desk.hold(who);
        until(who, || desk.calls_of("good").iter().any(|call| call.starts_with(who)));
        call.signal(Signal::Kill);
        drop(call);
        let next = desk.site.begin(&["resume", SITE_RUN_ID]);
        // The waiting call is adopted, and not started again.
        std::thread::sleep(Duration::from_millis(300));
        desk.let_go(who);
        let _ = next.wait().exits(0);
        must_be_finished(&desk, who);
        assert_eq!(desk.calls_of("good"), CALLS, "{who}");
    }
}

#[test]
fn killed_around_each_event_nothing_is_done_twice() {
    let events = ["implemented", "sweep_submitted", "swept", "scored", "depth_closed", "stopped"];
    for event in events {
        for when in if is_campaign() { &["before", "after"][..] } else { &["before"] } {
            let desk = Desk::new("");
            let ideas = desk.ideas(&["good"]);
            // The root's own sweep is submitted first.
            let number = if event == "sweep_submitted" { 2 } else { 1 };
            let plan = format!("kill {when} {number} journal.jsonl {event}");
            let eval = ["eval", "--run-id", SITE_RUN_ID, "--idea", &ideas];
            let said = desk.site.call_with_fault(&Fault::plan(&plan), &eval);
            assert_eq!(said.code, None, "{plan}: {}", said.stderr);
            must_be_finished(&desk, &plan);
            assert_eq!(desk.calls_of("good"), CALLS, "{plan}");
            assert_eq!(desk.calls_of("root").len(), 2, "{plan}");
        }
    }
}

/// Returns the calls that were finished when the program was killed, and must not be repeated.
fn finished(desk: &Desk) -> BTreeSet<String> {
    let mut finished = BTreeSet::new();
    for (eval, mode) in [("0001", "good"), ("0002", "second")] {
        for name in desk.site.names(&format!("eval/{eval}/calls")) {
            // `coder-e0001-a1-r0.json`
            let Some(key) = name.strip_suffix(".json") else { continue };
            let role = key.split('-').next().expect("a role");
            let round = key.rsplit_once("-r").map_or("0", |(_, round)| round);
            finished.insert(format!("{role} {mode} {round}"));
        }
        for folder in desk.site.names(&format!("eval/{eval}")) {
            if desk.site.path(&format!("eval/{eval}/{folder}/eval_result.json")).exists() {
                finished.extend([format!("tests {mode}"), format!("sweep {mode}")]);
            }
        }
    }
    finished
}

#[test]
fn killed_at_any_moment_what_is_on_disk_is_not_done_again() {
    let kills = if is_campaign() { 60 } else { 12 };
    let (mut seed, mut done, mut rounds) = (0x2545_f491_4f6c_dd1d_u64, 0, 0);
    while done < kills {
        rounds += 1;
        let desk = Desk::new("");
        let ideas = desk.ideas(&["good", "second"]);
        let mut call = desk.site.begin(&["eval", "--run-id", SITE_RUN_ID, "--idea", &ideas]);
        let mut guards: Vec<(usize, BTreeSet<String>)> = Vec::new();
        loop {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            std::thread::sleep(Duration::from_millis(seed % 700));
            if !call.goes_on() {
                assert_eq!(call.wait().code, Some(0), "round {rounds}");
                break;
            }
            call.signal(Signal::Kill);
            drop(call);
            done += 1;
            guards.push((desk.calls().len(), finished(&desk)));
            // Before its first event there is no run yet.
            let is_run = desk.site.path("journal.jsonl").exists();
            let eval = ["eval", "--run-id", SITE_RUN_ID, "--idea", &ideas];
            call = desk.site.begin(if is_run { &["resume", SITE_RUN_ID] } else { &eval });
        }
        desk.site.must_be_sound();
        let calls = desk.calls();
        for (length, finished) in &guards {
            let again: Vec<&String> =
                calls[*length..].iter().filter(|call| finished.contains(*call)).collect();
            assert_eq!(again, [""; 0], "round {rounds}: {calls:?}");
        }
        let scored = desk.site.events().into_iter().filter(|event| event["type"] == "scored");
        assert_eq!(scored.count(), 2, "round {rounds}");
    }
    println!("{done} kills in {rounds} runs");
}
