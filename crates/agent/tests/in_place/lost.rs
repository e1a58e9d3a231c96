//! Another host takes a run while an agent works in its worktree. The former owner then changes
//! neither the worktree nor the files beside it, and asks no agent.

use crate::workplace::{Nobody, Workplace, candidate, question, script};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_agent::AgentDoor;
use treebeam_agent::settings::{AgentHome, AgentKind, CliAgent, CliTool, EditMode};
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_run::port::{AgentError, AgentReply, AgentRole, Repo as _};
use treebeam_store::{ForcePolicy, RunStore};

/// The longest wait on a slow machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Takes the run as if its owner were on another host, whose locks are not visible here.
fn take(place: &Workplace) -> RunStore {
    let run = place.store.run_dir();
    let mut note: serde_json::Value =
        serde_json::from_slice(&fs::read(run.lock_note_path()).expect("a note")).expect("JSON");
    note["hostname"] = "box".into();
    note["boot_id"] = "another".into();
    fs::write(run.lock_note_path(), note.to_string()).expect("a note");
    fs::remove_file(run.lock_path()).expect("a lock");
    RunStore::open_to_run(run, ForcePolicy::Yes).expect("the run").0
}

fn wait_for(file: &Path) {
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < PATIENCE, "`{}` does not come", file.display());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the agent's script: it counts its calls, reports its start, and waits to go on.
fn work(place: &Workplace) -> String {
    let beside = place.repo.path().display();
    format!(
        "echo x >> '{beside}/count'; echo half >> a.txt; touch '{beside}/begun'; \
         until test -e '{beside}/on'; do sleep 0.01; done; echo IDEA: whole >> a.txt; cat a.txt"
    )
}

fn aider(work: &str) -> AgentKind {
    AgentKind::Cli(CliAgent {
        tool: CliTool::Aider,
        command: ["/bin/sh", "-c", work].map(str::to_owned).to_vec(),
        model: None,
        args: Vec::new(),
        base_url: None,
        key: None,
        max_tokens: 1000,
        home: AgentHome::Scratch,
        edits: EditMode::InPlace,
    })
}

fn is_refused(reply: &Result<AgentReply, AgentError>) {
    let Err(AgentError::Unavailable(error)) = reply else { panic!("{reply:?}") };
    assert!(error.full_text().contains("was taken over by"), "{error:?}");
}

/// Loses the run while the agent works. The files of the new owner stay.
fn check(line: impl Fn(&str) -> AgentKind, role: AgentRole, at: CodePlace) {
    let place = Workplace::new(&[("a.txt", "one\n")]);
    if let CodePlace::Node(_) = at {
        place.git.checkout_worktree(at, &place.head()).expect("a worktree");
        place.git.set_place_ref(at, &place.head()).expect("a ref");
    }
    let plan = place.plan(line(&work(&place)), PATIENCE);
    let door = AgentDoor::open(&plan, &Nobody).expect("the door");
    let asked = question("k", role, at);
    let beside = |name: &str| place.repo.path().join(name);
    let desk = place.run().join("desk/k/theirs");
    let worktree = place.run().join(at.worktree_path().as_str());
    let (reply, new) = thread::scope(|scope| {
        let answer = scope.spawn(|| door.answer_question(&asked));
        wait_for(&beside("begun"));
        let new = take(&place);
        fs::write(worktree.join("theirs"), "x").expect("written");
        fs::create_dir_all(desk.parent().expect("a folder")).expect("a folder");
        fs::write(&desk, "x").expect("written");
        fs::write(beside("on"), "").expect("written");
        (answer.join().expect("no panic"), new)
    });
    is_refused(&reply);
    let stands = || {
        assert!(worktree.join("theirs").exists(), "{role}: the worktree is the other's");
        assert!(desk.exists(), "{role}: so are the files of its calls");
    };
    stands();
    // No other question is asked, through this door or another one.
    is_refused(&door.answer_question(&question("k2", role, at)));
    is_refused(
        &AgentDoor::open(&plan, &Nobody)
            .map(|_| AgentReply::from_text(String::new()))
            .map_err(Into::into),
    );
    stands();
    assert_eq!(fs::read_to_string(beside("count")).expect("counted"), "x\n", "{role}");
    drop(new);
}

#[test]
fn one_that_lost_its_run_touches_no_worktree() {
    let node = CodePlace::Node(NodeId::ROOT);
    check(|work| script(work, EditMode::InPlace), AgentRole::Coder, candidate());
    check(|work| script(work, EditMode::Diff), AgentRole::Ideas, node);
    check(aider, AgentRole::Coder, candidate());
}
