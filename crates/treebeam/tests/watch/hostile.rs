//! Text that tries to be more than text, on both terminals: as the title of an idea, in an agent's
//! answer, in a log, as the name of a folder and of a branch. The pure screens have all of it in
//! `view/tests/screens.rs`.

use super::ends::left;
use super::tmux::Tmux;
use super::{BINARY, DRAWN, LARGE, SMALL, Size, watch};
use serde_json::{Value, json};
use std::fs;
use treebeam_testkit::hostile_text;
use treebeam_testkit::program::{SITE_RUN_ID, Site};
use treebeam_testkit::repo::TempRepo;

/// Terminal controls beyond the hundred texts.
const ORDERS: &str = "\u{1b}]2;stolen\u{7}\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[?1049l\u{1b}[?25h\u{1b}[?1000h\u{1b}(0\u{1b}[5;7r\u{1b}Pq\u{1b}\\\u{1b}c";
const FOLDER: &str = "re\u{1b}[31mpo \u{202e}'\u{9b}2J";
const CONFIG: &str = "sweep_command = ['true']\nsweep_config_limit = 1\n\
    [score]\nprimary = 'a:higher'\nmetrics = [{ column = 'a', direction = 'higher', weight = 1.0 }]\n\
    [agents.coder]\nprovider = 'command'\ncommand = ['sh', '-c', 'cat said.txt >&2; exit 3']\n";

/// Makes a run of ideas with such titles, refused by an agent with such a reason; and such a log.
fn site() -> Site {
    let repo = TempRepo::folder(FOLDER).expect("a folder");
    repo.git(["init", "--quiet", "--initial-branch=<b>\u{202e}`x`"]).expect("a repository");
    let letters = |text: &&String| !text.is_ascii() || text.contains(char::is_control);
    let short = hostile_text::short();
    let ideas: Vec<_> = short.iter().filter(letters).collect();
    let said = format!("{ORDERS}\u{202e}{}", short.join(" "));
    for (name, text) in [
        ("treebeam.toml", CONFIG),
        ("base.csv", "config_id,status,a\n0,ok,1\n"),
        ("said.txt", &said),
    ] {
        repo.write(name, text).expect("a file");
    }
    repo.commit("first").expect("a commit");
    for (number, text) in (1..).zip(&ideas) {
        let idea = format!("IDEA: {text} end\n\nRATIONALE: {text}\n\nREQUIRED_CHANGES: {number}\n");
        repo.write(&format!("ideas/{number:02}.md"), &idea).expect("an idea");
    }
    let site = Site::from_repo(repo, BINARY);
    let flags = [
        "eval",
        "--run-id",
        SITE_RUN_ID,
        "--idea=ideas",
        "--baseline=base.csv",
        "--quiet",
        "--yes",
    ];
    let _ = site.call(&flags).exits(1);
    let log = format!("{ORDERS}{}\n", hostile_text::all().join("\n"));
    fs::write(site.path("eval/0001/experiment/sweep.log"), log + ORDERS + "the last line\n")
        .expect("a log");
    site
}

/// Keys through the tree, an eval, and its log from the end to the beginning and back.
fn way() -> Vec<(&'static str, &'static str)> {
    let mut way = vec![("", DRAWN), ("G", DRAWN), ("g", DRAWN)];
    way.extend([("j\r", "l log  Esc back"), ("G", "l log  Esc back"), ("l", "the last line")]);
    way.push(("g", "G follow"));
    way.extend([(" ", "G follow"); 4]);
    way
}

#[test]
fn nothing_reaches_the_emulator_but_text() {
    let site = site();
    for size in [SMALL, LARGE] {
        let mut steps: Vec<Value> = Vec::new();
        for (keys, drawn) in way() {
            steps.extend([json!(["keys", keys]), json!(["await", drawn]), json!(["shot"])]);
        }
        steps.extend([json!(["keys", "q"]), json!(["end"])]);
        left(&watch(&site, size, &steps), 0);
    }
}

#[test]
#[ignore = "needs tmux: `cargo xtask test`"]
fn tmux_is_told_nothing_but_text() {
    let site = site();
    for size in [SMALL, LARGE] {
        let tmux = Tmux::start(&site, &[], size);
        let _ = tmux.call(&["select-pane", "-T", "ours"]);
        tmux.press("\r");
        for (keys, drawn) in way() {
            tmux.press(keys);
            let _ = tmux.screen(drawn);
            assert_eq!(tmux.says("#{alternate_on} #{cursor_flag} #{mouse_any_flag}"), "1 0 0");
            assert_eq!(tmux.says("#{scroll_region_upper} #{scroll_region_lower}"), region(size));
        }
        tmux.press("\u{1b}");
        let _ = tmux.screen("l log  Esc back");
        tmux.press("h");
        framed(&tmux.drawn("/ filter  b best"), size);
        assert_eq!(tmux.says("#{pane_title}"), "ours");
        assert_eq!(tmux.call(&["list-buffers"]), "", "nothing was copied");
        tmux.press("q");
        let screen = tmux.screen("settings as before");
        assert_eq!(screen, "what was there\n\nleft with 0\nsettings as before");
    }
}

fn region((_, rows): Size) -> String {
    format!("0 {}", rows - 1)
}

/// Asserts that each line is at its place.
#[track_caller]
fn framed(screen: &str, (_, rows): Size) {
    let lines: Vec<&str> = screen.lines().collect();
    assert_eq!(lines.len(), usize::try_from(rows).expect("a number"), "{screen}");
    let at = |text: &str| lines.iter().position(|line| line.starts_with(text)).expect(text);
    let (now, tree, events) = (at("── now: "), at("── tree: "), at("── last events"));
    assert_eq!((at("run    t"), now, tree), (0, 4, 6), "{screen}");
    let row = |line: &&str| line.contains("n0000") || line.contains(" e0");
    assert!(lines[tree + 1..events].iter().all(|line| line.is_empty() || row(line)), "{screen}");
}
