//! The terminal is restored, however the program ends and while it is suspended; and the error
//! without a terminal.

use super::{BINARY, DRAWN, SMALL, on_terminal, site, watch};
use serde_json::{Value, json};
use treebeam_testkit::program::Site;

/// Asserts that the terminal is as it was before.
#[track_caller]
pub(super) fn left(seen: &Value, exit: i32) {
    assert_eq!(seen["exit"], exit, "{seen}");
    assert_eq!(seen["taken"], true, "there was something to give back");
    assert_eq!(seen["settings_restored"], true, "raw mode is left");
    assert_eq!(seen["modes_restored"], true, "cursor, wrapping and the first screen are back");
    assert_eq!(seen["after"].as_str().map(str::trim), Some(""), "nothing was printed");
}

#[test]
fn however_it_ends_the_terminal_is_left_as_it_was() {
    let site = site();
    let ends = [
        (json!(["keys", "q"]), 0),
        (json!(["keys", "\u{3}"]), 130),
        (json!(["signal", "SIGTERM"]), 130),
        (json!(["signal", "SIGINT"]), 130),
        (json!(["signal", "SIGHUP"]), 130),
    ];
    for (end, exit) in ends {
        let seen = watch(&site, SMALL, &[json!(["await", DRAWN]), end, json!(["end"])]);
        left(&seen, exit);
    }
}

#[test]
fn while_it_is_stopped_the_terminal_is_as_it_was() {
    let site = site();
    let mut steps = vec![json!(["drawn", DRAWN]), json!(["free"])];
    for _ in 0..2 {
        steps.extend([json!(["signal", "SIGTSTP"]), json!(["stopped"]), json!(["free"])]);
        steps.extend([json!(["signal", "SIGCONT"]), json!(["drawn", DRAWN]), json!(["free"])]);
    }
    // Without a shell, Ctrl-Z has no effect.
    steps.extend([json!(["keys", "\u{1a}?"]), json!(["drawn", "keys of"]), json!(["free"])]);
    steps.extend([json!(["keys", "q"]), json!(["end"])]);
    let seen = watch(&site, SMALL, &steps);
    assert_eq!(seen["free"], json!([false, true, false, true, false, false]));
    left(&seen, 0);
}

/// A shell with jobs, and a job that is a shell itself.
const JOB: &str =
    r#"set -m; sh -c '"$0" watch; exit $?' "$0"; echo "stopped $?"; read -r _; fg; echo "left $?""#;

#[test]
fn ctrl_z_leads_to_the_shell_and_fg_back() {
    let site = site();
    let steps = [
        json!(["drawn", DRAWN]),
        json!(["keys", "\u{1a}"]),
        json!(["await", "stopped "]),
        json!(["free"]),
        json!(["keys", "\n"]),
        json!(["drawn", DRAWN]),
        json!(["free"]),
        json!(["keys", "j\r"]),
        json!(["await", "l log  Esc back"]),
        json!(["keys", "q"]),
        json!(["end"]),
    ];
    let seen = on_terminal(&site, SMALL, &steps, &["/bin/sh", "-c", JOB, BINARY]);
    assert_eq!(seen["free"], json!([true, false]), "{seen}");
    assert_eq!((&seen["settings_restored"], &seen["modes_restored"]), (&json!(true), &json!(true)));
    assert!(seen["after"].as_str().is_some_and(|after| after.contains("left 0")), "{seen}");
}

#[test]
fn a_keyboard_that_is_gone_is_an_error_and_the_screen_is_as_it_was() {
    let site = site();
    let seen = watch(&site, SMALL, &[json!(["await", DRAWN]), json!(["unplug"]), json!(["end"])]);
    assert_eq!((&seen["exit"], &seen["taken"]), (&json!(4), &json!(true)), "{seen}");
    assert_eq!(seen["modes_restored"], true, "cursor, wrapping and the first screen are back");
    let after = seen["after"].as_str().expect("a screen");
    assert!(after.starts_with("error: the terminal that") && after.contains("hint: "), "{after}");
}

#[test]
fn a_run_that_goes_away_is_told_on_the_screen() {
    let site = site();
    let run = site.path("");
    let steps = [
        json!(["await", DRAWN]),
        json!(["move", run, run.with_file_name("elsewhere")]),
        json!(["await", "cannot be followed: "]),
        json!(["keys", "j\rl"]),
        json!(["await", "nothing has been written yet"]),
        json!(["keys", "q"]),
        json!(["end"]),
    ];
    left(&watch(&site, SMALL, &steps), 0);
}

#[test]
fn without_a_terminal_it_says_what_needs_none() {
    let site = Site::new(BINARY);
    let said = site.call(&["watch"]).exits(4).says(["needs a terminal", "treebeam log --follow"]);
    assert_eq!(said.stdout, "");
    let said = site.call(&["watch", "--json"]).exits(2).says(["treebeam status --json"]);
    assert_eq!(said.stdout, "");
}
