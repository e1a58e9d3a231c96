//! `treebeam doctor`: its findings in good and bad surroundings, and its exit code.

#![cfg(test)]

use std::fs;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};
use treebeam_testkit::repo::TempRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// Returns the output, without what differs between machines.
fn shown(site: &Site, said: &Said) -> String {
    let line = |line: &str| {
        let fixed =
            [("ok       git            ", "[VERSION]"), ("ok       disk           ", "[FREE]")];
        let found = fixed.iter().find(|(start, _)| line.starts_with(start));
        found.map_or_else(|| line.to_owned(), |(start, word)| format!("{start}{word}")) + "\n"
    };
    let text: String = said.stdout.lines().map(line).collect();
    let exit = said.code.map_or("none".to_owned(), |code| code.to_string());
    format!("exit {exit}\n{text}").replace(&site.repo.path().display().to_string(), "[REPO]")
}

macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $text);
        })
    };
}

fn write(site: &Site, name: &str, text: &str) {
    site.repo.write(name, text).expect("a file");
}

#[test]
fn a_good_repository() {
    let site = Site::new(BINARY);
    snapshot!("doctor_new", shown(&site, &site.call(&["doctor"])));
    site.repo.git(["config", "user.email", "a@example.org"]).expect("an address");
    site.repo.git(["config", "user.name", "A"]).expect("a name");
    write(&site, "treebeam.toml", "protect = ['src/**']\n");
    write(&site, ".env", "KEY=value\n");
    let before = site.repo.git(["status", "--porcelain", "--ignored"]).expect("status");
    snapshot!("doctor_good", shown(&site, &site.call(&["doctor"])));
    assert_eq!(site.repo.git(["status", "--porcelain", "--ignored"]).expect("status"), before);
    let said = site.call(&["doctor", "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(said["schema"], "treebeam.doctor/1");
    assert_eq!(said["checks"][0]["subject"], "git");
    assert_eq!(said["checks"][0]["outcome"], "ok");
}

#[test]
fn a_bad_one() {
    let site = Site::new(BINARY);
    write(&site, ".gitattributes", "*.bin filter=lfs\n");
    write(&site, "prices.bin", "version https://git-lfs.github.com/spec/v1\n");
    site.repo.commit("attributes").expect("a commit");
    write(&site, "model.py", "x = 2\n");
    write(&site, "new.txt", "");
    write(&site, "treebeam.toml", "protect = ['none/**']\n");
    write(&site, ".env", "TREEBEAM_MAX_DEPTH=2\n");
    snapshot!("doctor_bad", shown(&site, &site.call(&["doctor"])));
    write(&site, "treebeam.toml", "max_dept = 1\n");
    let said = site.call(&["doctor"]).exits(4).stdout;
    assert!(
        said.contains(
            "problem  configuration  `treebeam.toml`, line 1: `max_dept`: there is no such key"
        ),
        "{said}"
    );
    let plain = Site::from_repo(TempRepo::folder("plain").expect("a folder"), BINARY);
    let said = plain.call(&["doctor"]).exits(4).stdout;
    assert!(said.contains("problem  repository"), "{said}");
    let empty = Site::from_repo(TempRepo::empty().expect("a repository"), BINARY);
    let said = empty.call(&["doctor"]).exits(4).stdout;
    assert!(said.contains("has no commit yet") && said.contains("do: commit first"), "{said}");
}

#[test]
fn a_glob_of_protect_that_matches_nothing_is_named() {
    let site = Site::new(BINARY);
    write(&site, ".gitignore", "data/\n");
    site.repo.commit("what git ignores").expect("a commit");
    write(&site, "data/raw/a.csv", "");
    let idle = |globs: &str, more: &str| -> Vec<String> {
        write(&site, "treebeam.toml", &format!("protect = {globs}\n{more}\n"));
        let said = site.call(&["doctor"]).exits(0).stdout;
        let lines: Vec<&str> = said.lines().collect();
        let idle = lines.windows(2).filter(|pair| pair[0].contains("matches no tracked file"));
        idle.map(|pair| format!("{}; {}", pair[0].trim(), pair[1].trim())).collect()
    };
    let line = |glob: &str, todo: &str| {
        let says = format!("`{glob}` matches no tracked file, and none of `inputs`");
        format!("warning  protect        {says}; do: {todo}")
    };
    let correct =
        "correct it, or take it out: a glob is for the whole path, from the repository's top level";
    let folder = "write `src/**` for all that is in that folder";
    let found = idle("['src/**', 'evaluate/**', 'src', './src/', 'none.py']", "");
    let expected = [
        line("evaluate/**", correct),
        line("src", folder),
        line("./src/", folder),
        line("none.py", correct),
    ];
    assert_eq!(found, expected);
    // Built-in protected globs are not the user's, and not reported.
    assert_eq!(idle("['model.py', 'tests/**', '**/conftest.py', 'treebeam.toml']", ""), [""; 0]);
    // Inputs that git does not track are protected too.
    assert_eq!(idle("['model.py', 'data/**']", "inputs = ['data']"), [""; 0]);
    assert_eq!(idle("['model.py', 'data/**']", ""), [line("data/**", correct)]);
    let none = idle("['model.py', 'data/*.json']", "inputs = ['data']");
    assert_eq!(none, [line("data/*.json", correct)]);
}

#[test]
fn inputs_need_neither_a_pattern_nor_a_commit() {
    let site = Site::new(BINARY);
    write(&site, "data/a.csv", "1\n");
    let said = |config: &str| {
        write(&site, "treebeam.toml", config);
        site.call(&["doctor"]).exits(0).stdout
    };
    let bare = said("protect = ['src/**']\ninputs = ['data']\n");
    assert!(!bare.contains("`inputs` is protected"), "they are watched as they are: {bare}");
    assert!(bare.contains("ok       working tree   clean\n"), "git does not track them: {bare}");
    let _ = site.call(&["run", "--dry-run", "--max-depth=1"]).exits(0);
    write(&site, "nohup.out", "");
    let hint = "if `nohup.out` is the output of this command, let it lie elsewhere";
    let _ = site.call(&["run", "--dry-run"]).exits(4).says([hint]);
}

#[test]
fn runs_in_a_linked_worktree_go_with_it() {
    let site = Site::new(BINARY);
    let warning = "warning  runs           this is a linked worktree";
    assert!(!site.call(&["doctor"]).exits(0).stdout.contains(warning));
    let linked = site.repo.beside("linked");
    let folder = linked.display().to_string();
    site.repo.git(["worktree", "add", "--quiet", "--detach", &folder]).expect("a worktree");
    assert!(site.call(&["-C", &folder, "doctor"]).exits(0).stdout.contains(warning));
}

#[test]
fn filters_are_named_with_what_passes_them() {
    let site = Site::new(BINARY);
    let said = |expected: &str| {
        let said = site.call(&["doctor"]).exits(0).stdout;
        assert!(said.contains(expected), "{expected}: {said}");
        said
    };
    said("ok       large files    none in LFS\nok       filters        none\n");
    let attributes = "# filter=none\n*.bin filter=lfs\n*.key filter=crypt\n*.py filter=strip -text\n\
                      *.txt -filter\n";
    write(&site, ".gitattributes", attributes);
    write(&site, "a.txt", "");
    write(&site, "more.py", "");
    site.repo.commit("attributes").expect("a commit");
    // Only one of the names has files.
    let all = said("ok       large files    none in LFS\n");
    assert!(
        all.contains(
            "warning  filters        `strip` is not run: in the run's worktrees `model.py` and 1 more \
             are as they are committed\n                        do: make sure that the sweep can use them like that\n"
        ),
        "{all}"
    );
    assert!(!all.contains("crypt"), "{all}");
    write(&site, "sub/a.key", "");
    write(&site, "sub/a.bin", "");
    site.repo.commit("more files").expect("a commit");
    let all = said("warning  large files    some files are in LFS");
    let other = "warning  filters        `crypt` is not run: in the run's worktrees `sub/a.key` is as it is committed";
    assert!(all.contains(other), "{all}");
    assert!(all.contains("warning  filters        `strip`") && !all.contains("`lfs`"), "{all}");
}

#[test]
fn worktrees_of_a_repository_that_was_moved_are_told_with_the_way_back() {
    let site = Site::new(BINARY);
    site.run(&["--ideas-per-node=2", "--max-depth=1", "--keep-rejected-worktrees"]);
    let moved = site.repo.beside("moved");
    fs::rename(site.repo.path(), &moved).expect("to move a repository");
    let doctor = || site.call_in(&moved, &["doctor"]).exits(0).stdout;
    let said = doctor();
    let expected = "warning  leftovers      git looks for 3 worktrees of runs where they were before they were \
                    moved, `t n0000` first\n                        do: in the top level of the repository, \
                    `git worktree repair .treebeam/runs/*/cand/* .treebeam/runs/*/wt/*` tells git where they are";
    assert!(said.contains(expected), "{said}");
    let runs = |kind: &str| format!(".treebeam/runs/{SITE_RUN_ID}/{kind}");
    let repair = ["worktree", "repair", &runs("cand/0001"), &runs("wt/0000"), &runs("wt/0001")];
    site.repo.git_in(&moved, &repair).expect("to repair");
    assert!(doctor().contains("ok       leftovers      none"), "{}", doctor());
}

#[test]
fn worktrees_that_may_be_on_another_disk_are_not_said_to_go() {
    let site = Site::new(BINARY);
    let away = site.repo.beside("disk").join("runs");
    write(&site, "treebeam.toml", &format!("runs_root = {:?}\n", away.display().to_string()));
    let _ = site.call(&["run", "--dry-run", "--run-id", "far", "--ideas-per-node=1"]).exits(0);
    fs::rename(site.repo.beside("disk"), site.repo.beside("unmounted")).expect("to rename");
    let said = site.call(&["doctor"]).exits(0).stdout;
    assert!(
        said.contains("worktrees of runs in a folder that is not there, `far n0000` first"),
        "{said}"
    );
    assert!(
        said.contains("do: mount the disk that they are on, or see `treebeam clean`"),
        "{said}"
    );
}

#[test]
fn leftovers_are_told_and_left() {
    let site = Site::new(BINARY);
    site.run(&["--ideas-per-node=2", "--max-depth=1"]);
    let said = site.call(&["doctor"]).exits(0).stdout;
    assert!(said.contains("ok       leftovers      none"), "{said}");
    let folder = site.path("wt/0000");
    fs::remove_dir_all(&folder).expect("to remove a worktree");
    let said = site.call(&["doctor"]).exits(0).stdout;
    let line = format!("git knows 1 worktree of runs that are gone, `{SITE_RUN_ID} n0000` first");
    assert!(said.contains(&line), "{said}");
    fs::write(site.path("journal.jsonl"), "damaged\nlines\n").expect("to damage a journal");
    for manifest in ["manifest.json", "manifest.json.prev"] {
        drop(fs::remove_file(site.path(manifest)));
    }
    let said = site.call(&["doctor"]).exits(0).stdout;
    assert!(said.contains("warning  leftovers      run `t` cannot be read"), "{said}");
}

#[test]
fn commands_are_looked_for_and_not_run() {
    let site = Site::new(BINARY);
    let check = |config: &str, code: i32, expect: &str| {
        write(&site, "treebeam.toml", config);
        let said = site.call(&["doctor"]).exits(code).stdout;
        assert!(said.contains(expect), "{config}: {said}");
    };
    check("sweep_command = ['git', 'x']", 0, "ok       sweep          `git` is `");
    check("sweep_command = 'git x | cat'", 0, "ok       sweep          `git` is `");
    check("sweep_command = 'A=1 none'", 0, "`sweep_command` is for the shell to understand");
    check(
        "sweep_command = './none.sh'",
        4,
        "problem  sweep          `sweep_command`: the program `./none.sh`",
    );
    check("sweep_command = ['none-such']", 4, "do: install it, or name its path");
    check("test_command = 'none-such'", 4, "problem  tests");
    check("sweep_command = './model.py'\nsweep_cwd = 'src'", 4, "problem  sweep");
    check("sweep_command = './model.py'", 0, "ok       sweep          `./model.py` is `");
    check("inputs = ['data']", 4, "`inputs`: there is no `data` in the repository");
    let tracked = "`inputs`: git tracks `model.py`, so it is in each worktree already and cannot be linked there";
    check("inputs = ['model.py']", 4, tracked);
    let folder = "`inputs`: git tracks `src/lib/part.txt` in `src`, so that folder is in each worktree already";
    check("inputs = ['src']", 4, folder);
    check("results_csv = 'a.csv'", 0, "warning  results");
    let odd =
        "warning  primary        `ret:up` is the name of a column as a whole: `up` is no direction";
    check("[score]\nprimary = 'ret:up'", 0, odd);
    let fine = "warning  sweep          no `sweep_command` is set";
    for primary in ["ret:higher", "ret", "a:b:lower"] {
        let config = format!("[score]\nprimary = '{primary}'");
        check(&config, 0, fine);
        assert!(!site.call(&["doctor"]).stdout.contains(" primary  "), "{primary}");
    }
    assert!(!site.repo.path().join("x").exists());
}

#[test]
fn an_agent_that_is_not_installed_is_missed_before_anything_is_measured() {
    let site = Site::new(BINARY);
    let agent = |role: &str, program: &str| {
        format!("[agents.{role}]\nprovider = 'command'\ncommand = ['{program}']\n")
    };
    let config = |coder| {
        let agents = agent("coder", coder) + &agent("ideas", "git");
        format!("sweep_command = 'git --version'\n[score]\nprimary = 'a'\n{agents}")
    };
    let missing = ["`agents.coder`: the program `nosuchagent` is not found"];
    write(&site, "treebeam.toml", &config("nosuchagent"));
    let doctor = site.call(&["doctor"]).exits(4);
    assert!(doctor.stdout.contains(missing[0]), "{}", doctor.stdout);
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID, "--quiet"]).exits(4).says(missing);
    assert!(!site.path("").exists(), "no run has begun");
    let absent = "[agents.coder]\nprovider = 'codex'\ncommand = ['nosuchcodex']\n";
    let text = config("git").replace(&agent("coder", "git"), absent);
    write(&site, "treebeam.toml", &text);
    let missing = ["`agents.coder`: the program `nosuchcodex` is not found", "hint: install `nos"];
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID, "--quiet"]).exits(4).says(missing);
    write(&site, "idea.txt", "Try it\n");
    for (program, why) in [
        ("/no/such/agent", "the program `/no/such/agent` is not found"),
        ("./nosuchagent", "there is no program `./nosuchagent`"),
    ] {
        write(&site, "treebeam.toml", &config(program));
        let _ = site.call(&["run", "--run-id", SITE_RUN_ID, "--quiet"]).exits(4).says([why]);
        let eval = ["eval", "--idea=idea.txt", "--run-id", SITE_RUN_ID, "--quiet"];
        let _ = site.call(&eval).exits(4).says([why]);
    }
    assert!(!site.path("").exists(), "no run has begun");
    // A program of the worktree cannot be checked beforehand.
    write(&site, "treebeam.toml", &config("./nosuchagent"));
    let doctor = site.call(&["doctor"]);
    assert!(!doctor.stdout.contains("nosuchagent"), "{}", doctor.stdout);
}
