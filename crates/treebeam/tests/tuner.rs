//! The provider `tuner` with the real program: its reported findings, its ideas, its diffs, the
//! files that it leaves alone, and its refusals.

#![cfg(test)]

use serde_json::Value;
use std::fs;
use treebeam_testkit::program::{Said, Site};
use treebeam_testkit::repo::TempRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const AGENTS: &str = "[agents.ideas]\nprovider = 'tuner'\n[agents.coder]\nprovider = 'tuner'\n";
const TRAIN: &str = "RATE = 0.1\nDEPTH = 3  # layers\nON = True\n";

/// A repository with a program, its judge, a test, and files that git does not track.
fn site(more: &str) -> Site {
    let files = [
        ("train.py", TRAIN),
        ("conf/model.toml", "[model]\nwidth = 64\n"),
        ("judge/eval.py", "LIMIT = 5\n"),
        ("tests/test_train.py", "EXPECTED = 6\n"),
        (".gitignore", "ignored.py\n"),
        ("README.md", "SIZE = 7\n"),
    ];
    let site = Site::from_repo(TempRepo::with(&files).expect("a repository"), BINARY);
    site.repo.write("ignored.py", "HIDDEN = 8\n").expect("a file");
    site.repo.write("new.py", "UNTRACKED = 9\n").expect("a file");
    site.repo.write("treebeam.toml", &format!("{AGENTS}{more}")).expect("a file");
    site
}

fn ask(site: &Site, role: &str, prompt: &str) -> Said {
    site.call_reading(&["agents", "ask", "--role", role], prompt)
}

const PROMPT: &str = "Propose 9 new ideas that could improve this.\n\n=== CONSTRAINTS ===\n- do not touch: judge/**\n";

#[test]
fn it_is_an_agent_like_others() {
    let site = site("");
    let listed = site.call(&["agents"]).exits(0).stdout;
    assert!(listed.contains("tuner") && listed.contains("nothing: it is built in"), "{listed}");
    let document = site.call(&["agents", "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(document["agents"][0]["provider"], "tuner");
    assert_eq!(document["agents"][0]["model"], Value::Null);
    let checked = site.call(&["agents", "check"]).exits(0).stdout;
    assert!(
        checked.contains("5 constants in 3 files: `width`") || checked.contains("model.width"),
        "{checked}"
    );
    let doctor = site.call(&["doctor"]).stdout;
    assert!(doctor.contains("ok       agents         coder, ideas"), "{doctor}");
    let with_budget = site.call(&["doctor", "--json"]).json_lines().remove(0).to_string();
    assert!(!with_budget.contains("is not known"), "{with_budget}");
    site.repo.write("treebeam.toml", "[agents.reviewer]\nprovider = 'tuner'\n").expect("a file");
    let _ = site.call(&["agents"]).exits(2).says(["the `tuner` can be `ideas` and `coder` only"]);
}

#[test]
fn it_proposes_and_makes_the_diff() {
    let site = site("");
    let said = ask(&site, "ideas", PROMPT).exits(0).stdout;
    assert_eq!(said, ask(&site, "ideas", PROMPT).exits(0).stdout, "the same each time");
    for name in ["RATE", "DEPTH", "ON", "model.width"] {
        assert!(said.contains(&format!("Set `{name}` from")), "{name}: {said}");
    }
    for name in ["LIMIT", "EXPECTED", "HIDDEN", "UNTRACKED", "SIZE", "seed"] {
        assert!(!said.contains(name), "{name} is none of its business: {said}");
    }
    assert!(said.starts_with("7 of 9: nothing else is left to try.\n"), "{said}");
    let ideas: Vec<&str> = said.split("IDEA: ").skip(1).collect();
    for idea in ideas {
        let prompt = format!(
            "Implement this.\n\n=== IDEA ===\nIDEA: {idea}\n=== DO NOT TOUCH ===\n- judge/**\n"
        );
        let diff = ask(&site, "coder", &prompt).exits(0).stdout;
        let patch = site.repo.beside("change.diff");
        fs::write(&patch, diff).expect("a file");
        site.repo.git(["apply", "--index", &patch.to_string_lossy()]).expect("it applies");
        let stat = site.repo.git(["diff", "--cached", "--numstat"]).expect("git");
        assert!(stat.starts_with("1\t1\t") && stat.lines().count() == 1, "{stat}");
        site.repo.git(["reset", "--quiet", "--hard"]).expect("git");
    }
}

#[test]
fn it_looks_where_it_is_told_to() {
    let site = site("[tuner]\nfiles = ['conf/*.toml']\nseed = 3\n");
    let said = ask(&site, "ideas", PROMPT).exits(0).stdout;
    assert!(said.contains("`model.width`") && !said.contains("RATE"), "{said}");
    let shown = site.call(&["config"]).exits(0).stdout;
    assert!(shown.contains("tuner.seed") && shown.contains("conf/*.toml"), "{shown}");
    site.repo
        .write("treebeam.toml", &format!("{AGENTS}[tuner]\nfiles = ['no/**']\n"))
        .expect("a file");
    let _ = ask(&site, "ideas", PROMPT).exits(1).says(["finds no number", "`tuner.files`"]);
    site.repo
        .write("treebeam.toml", &format!("{AGENTS}[tuner]\nfiles = ['a[']\n"))
        .expect("a file");
    let _ = ask(&site, "ideas", PROMPT).exits(2).says(["`tuner.files`", "no glob"]);
}

#[test]
fn what_it_cannot_do_it_refuses() {
    let site = site("");
    let check = |idea: &str, why: &str| {
        let prompt = format!(
            "Implement this.\n\n=== IDEA ===\n{idea}\n\n=== DO NOT TOUCH ===\n- judge/**\n"
        );
        let said = ask(&site, "coder", &prompt).exits(1);
        assert_eq!(said.stdout, "");
        let _ = said.says([why]);
    };
    let set = |change: &str| format!("IDEA: x\nREQUIRED_CHANGES:\n- {change}");
    check(
        "IDEA: Widen the window\nREQUIRED_CHANGES:\n- use a longer one",
        "can only make changes like",
    );
    check(&set("set `LIMIT` from 5 to 6 in `judge/eval.py`"), "is protected");
    check(&set("set `RATE` from 0.3 to 0.2 in `train.py`"), "is 0.1 here, not 0.3");
    check(&set("set `SPEED` from 1 to 2 in `train.py`"), "has no constant `SPEED`");
    check(
        &set("set `HIDDEN` from 8 to 9 in `ignored.py`"),
        "no text file `ignored.py` that git tracks",
    );
    check(&set("set `a` from 8 to 9 in `../x.py`"), "no text file `../x.py` that git tracks");
    check(&set("set `x` from 8 to 9 in `treebeam.toml`"), "is protected");
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let site = site("");
    fs::write(site.repo.beside("outside.py"), "OUTSIDE = 1\n").expect("a file");
    std::os::unix::fs::symlink(site.repo.beside("outside.py"), site.repo.path().join("link.py"))
        .expect("a link");
    fs::create_dir(site.repo.beside("folder")).expect("a folder");
    fs::write(site.repo.beside("folder/model.toml"), "[model]\nelsewhere = 1\n").expect("a file");
    site.repo.git(["add", "link.py"]).expect("git");
    fs::remove_dir_all(site.repo.path().join("conf")).expect("a folder");
    std::os::unix::fs::symlink(site.repo.beside("folder"), site.repo.path().join("conf"))
        .expect("a link");
    let said = ask(&site, "ideas", PROMPT).exits(0).stdout;
    assert!(!said.contains("OUTSIDE") && !said.contains("elsewhere"), "{said}");
    let idea = "REQUIRED_CHANGES:\n- set `OUTSIDE` from 1 to 2 in `link.py`\n";
    let _ = ask(&site, "coder", idea).exits(1).says(["no text file `link.py`"]);
}

#[test]
fn without_git_it_says_so() {
    let site = Site::from_repo(TempRepo::folder("plain").expect("a folder"), BINARY);
    site.repo.write("treebeam.toml", AGENTS).expect("a file");
    site.repo.write("train.py", TRAIN).expect("a file");
    let _ = ask(&site, "ideas", PROMPT).exits(4).says(["the tuner changes what git tracks"]);
}
