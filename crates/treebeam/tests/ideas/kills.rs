//! After a kill at any operation the next call continues: no answer that is on disk is paid for
//! again, and no idea is lost.

use crate::desk::{Desk, all, files};
use std::fs;
use std::time::{Duration, Instant};
use treebeam_testkit::apart::is_campaign;
use treebeam_testkit::fault::Fault;
use treebeam_testkit::program::Signal;

/// Returns names and texts in the folder, and of what was set aside, without the time.
fn contents(desk: &Desk) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    folders.extend(desk.names("set_aside").iter().map(|name| format!("set_aside/{name}")));
    for (number, folder) in folders.iter().enumerate() {
        for name in desk.names(folder) {
            let path = desk.ideas.join(folder).join(&name);
            if let Ok(text) = fs::read_to_string(path) {
                found.push((format!("{number}/{name}"), text));
            }
        }
    }
    found
}

/// Creates a desk with three ideas that three others are to replace; the last one needs a second
/// question.
fn begun() -> Desk {
    let desk = Desk::new();
    desk.says(Some(1), all(&["a", "b", "c"]));
    let _ = desk.call(&["--count=3"]);
    desk.says(None, all(&["d", "a", "e"]));
    desk
}

/// Sets the agent's answer to a prompt that names its repeats.
fn go_on(desk: &Desk) {
    let script = fs::read_to_string(desk.dir.join("agent.sh")).expect("the script");
    let knows = format!(
        "{script}if grep -q 'TRIED BEFORE' \"$dir/prompt-$number\"; then cat \"$dir/more\"; fi\n"
    );
    fs::write(desk.dir.join("agent.sh"), knows).expect("the script");
    fs::write(desk.dir.join("more"), all(&["f"])).expect("a reply");
}

#[test]
fn killed_at_any_operation_and_called_again_it_ends_the_same() {
    let words = ["--count=3", "--force-regenerate-ideas", "--yes"];
    let (whole, fault) = (begun(), Fault::none());
    go_on(&whole);
    // The folder of ideas lies beside the repository.
    let above = whole.dir.parent().expect("a folder").to_owned();
    let fault = fault.below(&above);
    let _ = whole.site.call_with_fault(&fault, &whole.words(&words)).exits(0);
    let expect = contents(&whole);
    assert_eq!((expect.len(), whole.calls()), (6, 3));
    let operations = fault.operations().iter().map(|one| one.number).max().expect("operations");
    let step = if is_campaign() { 1 } else { operations.div_ceil(12) };
    let mut number = 1;
    while number <= operations {
        let desk = begun();
        go_on(&desk);
        let above = desk.dir.parent().expect("a folder").to_owned();
        let fault = Fault::plan(&format!("kill before {number}")).below(&above);
        let said = desk.site.call_with_fault(&fault, &desk.words(&words));
        assert_eq!(said.code, None, "{number}: {}", said.stderr);
        let paid = desk.calls();
        let answered = desk.answers();
        let document = desk.call(&words);
        let what = format!("killed before {number} of {operations}: {:?}", fault.fatal());
        assert_eq!(contents(&desk), expect, "{what}");
        assert_eq!(files(&document, "generated"), ["001_d.md", "002_e.md", "003_f.md"], "{what}");
        // Two questions: what was answered before the kill is not asked again.
        assert_eq!(desk.calls() - paid, 3 - answered.max(1), "{what}");
        let worktrees = desk.site.repo.git(["worktree", "list"]).expect("git");
        assert_eq!(worktrees.lines().count(), 1, "{what}: {worktrees}");
        // The batch is complete.
        let calls = desk.calls();
        assert_eq!(files(&desk.call(&["--count=3"]), "kept").len(), 3, "{what}");
        assert_eq!(desk.calls(), calls, "{what}");
        number += step;
    }
    println!("{operations} operations, every {step}. was the last");
}

#[test]
fn two_at_once_do_not_share_a_folder() {
    let desk = Desk::new();
    desk.says(None, all(&["a"]));
    fs::write(desk.dir.join("hold"), "").expect("a file");
    let first = desk.site.begin(&desk.words(&["--count=1"]));
    let begun = Instant::now();
    while desk.calls() == 0 {
        assert!(begun.elapsed() < Duration::from_mins(2), "nobody was asked");
        std::thread::sleep(Duration::from_millis(10));
    }
    let second = desk.site.call(&desk.words(&["--count=1"])).exits(3);
    let _ = second.says(["another process writes ideas into"]);
    fs::remove_file(desk.dir.join("hold")).expect("to let go");
    let _ = first.wait().exits(0);
    assert_eq!((desk.names(""), desk.calls()), (vec!["001_a.md".to_owned()], 1));
}

#[test]
fn who_interrupts_is_told_to_call_again() {
    let desk = Desk::new();
    desk.says(None, all(&["a"]));
    fs::write(desk.dir.join("hold"), "").expect("a file");
    let call = desk.site.begin(&desk.words(&["--count=2"]));
    let begun = Instant::now();
    while desk.calls() == 0 {
        assert!(begun.elapsed() < Duration::from_mins(2), "nobody was asked");
        std::thread::sleep(Duration::from_millis(10));
    }
    call.signal(Signal::Interrupt);
    call.await_said("stopping after the steps that are running");
    fs::remove_file(desk.dir.join("hold")).expect("to let go");
    let _ = call.wait().exits(130).says(["interrupted: the same command goes on from here"]);
    desk.says(None, all(&["b"]));
    let document = desk.call(&["--count=2"]);
    assert_eq!(document["missing"], 0, "{document:#}");
    assert_eq!(desk.calls(), 2, "the first answer is not asked for again");
}
