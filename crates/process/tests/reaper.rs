//! A process that adopts what its children leave behind, and runs many of them at a time. A test
//! binary of its own: it stays a reaper for good.

#![cfg(test)]
#![cfg(target_os = "linux")]

use std::path::Path;
use std::thread;
use std::time::Duration;
use treebeam_process::{ChildCount, ChildProgram, ProcessTree, TreeMarker, become_reaper};
use treebeam_testkit::hostile;

/// Starts a process that becomes its sibling instead of its child, and that closes its outputs.
const SIBLING: &str = r#"
import ctypes, os, platform, sys, time
CLONE_PARENT, SIGCHLD = 0x8000, 17
clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
if ctypes.CDLL(None).syscall(clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0:
    os.execv(sys.executable, [sys.executable, "-c", "import os, time; os.closerange(0, 3); time.sleep(300)", sys.argv[1]])
time.sleep(0.3)
"#;

fn run(script: &str, arguments: &[&str]) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = ChildProgram::new(Path::new("/usr/bin/env"), &std::env::temp_dir())
        .args(["python3", "-c", script])
        .args(arguments)
        .envs([("PATH", path)])
        .in_tree(ProcessTree::new(TreeMarker::unique(), Duration::from_millis(200)));
    assert!(program.run().expect("it ends by itself").status.success());
}

#[test]
fn nothing_is_left_by_any_of_many_at_a_time() {
    become_reaper(ChildCount::Many).expect("Linux lets us");
    let word = |kind: &str, one: u32| format!("reaper-{kind}-{one}-{}", std::process::id());
    thread::scope(|scope| {
        for one in 0..3 {
            scope.spawn(move || {
                let tree = word("tree", one);
                run(hostile::PROCESS_TREE_SCRIPT, &[&tree, "leave"]);
                assert_eq!(hostile::survivors(&tree), Vec::<u32>::new());
                let sibling = word("sibling", one);
                run(SIBLING, &[&sibling]);
                assert_eq!(hostile::survivors(&sibling), Vec::<u32>::new());
            });
        }
    });
}
