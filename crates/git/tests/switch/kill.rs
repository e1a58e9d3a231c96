//! Kills a process that switches a checkout at every file operation, and at every git that it
//! starts. Such a git continues without it. At any moment each path is of one of the two commits,
//! and the next switch completes.

use crate::Ground;
use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use treebeam_core::id::Commit;
use treebeam_git::open_repo;
use treebeam_testkit::apart::is_campaign;
use treebeam_testkit::fault::library;
use treebeam_testkit::repo::script;

/// Variable with the switch that a process of this test is to do: repository and commits.
const SITE: &str = "TREEBEAM_TEST_SWITCH";
/// Upper bound of the operations or gits of a switch.
const MOST: u32 = 400;

/// Not a test of its own: this is the process that is killed.
#[test]
fn a_process_that_switches() {
    let Some(site) = env::var_os(SITE) else { return };
    let site = site.into_string().unwrap();
    let cells: Vec<&str> = site.split('|').collect();
    let [path, from, to] = cells.as_slice() else { panic!("{site}") };
    let commit = |text: &str| text.parse::<Commit>().unwrap();
    open_repo(Path::new(path)).unwrap().switch_checkout(&commit(from), &commit(to)).unwrap();
}

/// The way in which a switching process ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Done,
    Killed,
}

impl Ground {
    #[expect(clippy::disallowed_methods, reason = "the test starts what it kills")]
    fn process(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(["--exact", "kill::a_process_that_switches", "--nocapture"]);
        command.env_clear().envs(self.repo.variables());
        let site = format!("{}|{}|{}", self.repo.path().display(), self.from, self.to);
        command.env(SITE, site);
        command
    }

    fn ends(mut command: Command, what: &str) -> End {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match (output.status.success(), output.status.signal()) {
            (true, _) => End::Done,
            (false, Some(9)) => End::Killed,
            other => panic!("{what}: {other:?} {said}"),
        }
    }

    /// Checks that every path is whole, and of one of the two commits; nothing else has changed.
    fn must_be_between(&self, what: &str) {
        let is = |path: &str, texts: &[&str]| {
            let found = fs::read_to_string(self.repo.path().join(path)).unwrap_or_default();
            assert!(texts.contains(&&*found), "{what}: `{path}` is {found:?}");
        };
        is("changed.txt", &["old\n", "new\n"]);
        is("new/é/file", &["", "new\n"]);
        is("gone/deep/file", &["old\n", ""]);
        is("becomes folder", &["old\n", ""]);
        is("becomes folder/x", &["", "new\n"]);
        is("becomes file", &["", "new\n"]);
        is("becomes file/b/c", &["old\n", ""]);
        is("link", &["a file\n", "old\n", "new\n"]);
        is("same.txt", &["same\n"]);
        is("my.data", &["mine\n"]);
        is("with data/my.data", &["mine\n"]);
        assert_eq!(self.repo.git(["rev-parse", "main"]).unwrap(), self.from.as_str(), "{what}");
    }

    fn must_be_finished(&self, what: &str) {
        self.user()
            .switch_checkout(&self.from, &self.to)
            .unwrap_or_else(|error| panic!("{what}: {} {:?}", error.full_text(), error.hint));
        self.must_be_at(&self.to, what);
    }
}

fn program() -> PathBuf {
    env::current_exe().unwrap().canonicalize().unwrap()
}

#[test]
fn killed_at_any_operation_it_is_finished_by_the_next() {
    let (moments, step): (&[&str], usize) =
        if is_campaign() { (&["before", "amid"], 1) } else { (&["before"], 4) };
    for when in moments {
        let mut kills = 0;
        for number in (1..MOST).step_by(step) {
            let ground = Ground::new();
            let what = format!("kill {when} {number}");
            let mut command = ground.process(&program());
            command.env("LD_PRELOAD", library()).env("FAULT_ROOT", ground.repo.path());
            command.env("FAULT_PROGRAM", program()).env("FAULT_PLAN", &what);
            command.env("FAULT_LOG", ground.repo.beside("operations"));
            if Ground::ends(command, &what) == End::Done {
                break;
            }
            kills += 1;
            ground.must_be_between(&what);
            ground.must_be_finished(&what);
        }
        println!("killed {when} {kills} operations");
        assert!((8..MOST / 4).contains(&kills), "{kills}");
    }
}

#[test]
fn killed_at_any_git_which_goes_on_it_is_finished_by_the_next() {
    let mut kills = 0;
    for number in (1..MOST).step_by(if is_campaign() { 1 } else { 2 }) {
        let ground = Ground::new();
        let what = format!("git {number}");
        let bin = ground.repo.beside("bin");
        fs::create_dir_all(&bin).unwrap();
        let path = env::var("PATH").unwrap();
        let count = ground.repo.beside("count");
        let count = count.display();
        // The counted git outlives its parent process.
        let text = format!(
            "#!/bin/sh\nPATH='{path}'\necho >> '{count}'\n\
             if [ $(wc -l < '{count}') -eq {number} ]; then kill -9 $PPID; sleep 0.05; fi\n\
             exec git \"$@\"\n"
        );
        script(&bin.join("git"), &text).unwrap();
        let mut command = ground.process(&program());
        command.env("PATH", &bin);
        if Ground::ends(command, &what) == End::Done {
            break;
        }
        kills += 1;
        ground.must_be_finished(&what);
    }
    println!("killed at {kills} gits");
    assert!((5..MOST / 4).contains(&kills), "{kills}");
}

#[test]
fn what_a_user_changed_after_the_kill_is_refused_and_then_it_is_finished() {
    let ground = Ground::new();
    let what = "kill after 1 rename changed.txt";
    let mut command = ground.process(&program());
    command.env("LD_PRELOAD", library()).env("FAULT_ROOT", ground.repo.path());
    command.env("FAULT_PROGRAM", program()).env("FAULT_PLAN", what);
    command.env("FAULT_LOG", ground.repo.beside("operations"));
    assert_eq!(Ground::ends(command, what), End::Killed);
    assert_eq!(ground.read("changed.txt"), "new\n");
    ground.repo.write("changed.txt", "mine\n").unwrap();
    let said = ground.user().switch_checkout(&ground.from, &ground.to).unwrap_err().full_text();
    assert!(said.contains("changed.txt") && !said.contains("run.sh"), "{said}");
    assert_eq!(ground.read("changed.txt"), "mine\n");
    ground.repo.write("changed.txt", "old\n").unwrap();
    ground.must_be_finished(what);
}
