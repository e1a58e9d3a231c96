//! The screens of `treebeam watch` in tmux, an independent terminal: all kinds of them, another
//! size, a running search, and what is left behind.

use super::{
    BINARY, DRAWN, LARGE, SMALL, Size, must_be_known, shots, site, tour, toured, variables,
};
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::held::HeldGit;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

/// Maximum wait on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
const GLANCE: Duration = Duration::from_millis(20);

/// No status line of tmux's own, and panes stay for inspection.
const CONFIG: &str = "set -g status off\nset -g remain-on-exit on\nset -g set-clipboard on\n";

/// Queried modes of a terminal: the second screen, the cursor, wrapping, the mouse, keys.
const MODES: &str = "#{alternate_on} #{cursor_flag} #{wrap_flag} #{mouse_any_flag} #{keypad_flag} #{keypad_cursor_flag}";

/// A tmux of our own, with a shell that waits for Enter, watches, and then prints the exit code. It
/// is killed on drop.
pub(super) struct Tmux {
    folder: tempfile::TempDir,
    variables: Vec<(OsString, OsString)>,
}

impl Tmux {
    /// Starts tmux in this size, with earlier text on the screen.
    pub(super) fn start(site: &Site, more: &[(&str, &str)], (columns, rows): Size) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut variables = variables(site);
        variables.extend([("LC_ALL".into(), "C.UTF-8".into()), ("SHELL".into(), "/bin/sh".into())]);
        variables.push(("REPO".into(), site.repo.path().into()));
        variables.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
        let script = format!(
            "echo 'what was there'\nstty -g > '{here}/before'\nread -r _\n\
             cd \"$REPO\" && '{BINARY}' watch\necho \"left with $?\"\nstty -g > '{here}/after'\n\
             cmp -s '{here}/before' '{here}/after' && echo 'settings as before'\nexec cat\n",
            here = folder.path().display(),
        );
        let tmux = Self { folder, variables };
        let file = |name: &str| tmux.folder.path().join(name).display().to_string();
        fs::write(file("script"), script).expect("a script");
        fs::write(file("config"), CONFIG).expect("a configuration");
        let (x, y, shell) =
            (columns.to_string(), rows.to_string(), format!("sh '{}'", file("script")));
        let _ =
            tmux.call(&["-f", &file("config"), "new-session", "-d", "-x", &x, "-y", &y, &shell]);
        let _ = tmux.screen("what was there");
        tmux
    }

    /// Starts tmux in this size with `treebeam watch` in it.
    pub(super) fn watching(site: &Site, more: &[(&str, &str)], screen: Size) -> Self {
        let tmux = Self::start(site, more, screen);
        tmux.press("\r");
        let _ = tmux.drawn(DRAWN);
        tmux
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let program = env::var_os("TREEBEAM_TMUX");
        let program = program.expect("`TREEBEAM_TMUX` names no tmux: call `cargo xtask test`");
        let mut command = Command::new(program);
        command.arg("-S").arg(self.folder.path().join("socket")).args(arguments);
        command.env_clear().envs(self.variables.iter().cloned());
        command
    }

    pub(super) fn call(&self, arguments: &[&str]) -> String {
        let said = self.command(arguments).output().expect("tmux");
        let why = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{arguments:?}: {why}");
        String::from_utf8(said.stdout).expect("a screen in UTF-8")
    }

    /// Returns the value of a tmux format.
    pub(super) fn says(&self, format: &str) -> String {
        self.call(&["display-message", "-p", format]).trim_end().to_owned()
    }

    pub(super) fn press(&self, keys: &str) {
        if keys.is_empty() {
            return;
        }
        let bytes: Vec<String> = keys.bytes().map(|byte| format!("{byte:02x}")).collect();
        let mut arguments = vec!["send-keys", "-H"];
        arguments.extend(bytes.iter().map(String::as_str));
        let _ = self.call(&arguments);
    }

    /// Returns the screen, once this holds of it.
    #[track_caller]
    pub(super) fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.call(&["capture-pane", "-p"]);
            if holds(screen.trim_end()) {
                return screen.trim_end().to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "no {what:?} in:\n{screen}");
            thread::sleep(GLANCE);
        }
    }

    #[track_caller]
    pub(super) fn screen(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    /// Returns the screen, once it ends with this text and the rest of the last line.
    #[track_caller]
    pub(super) fn drawn(&self, text: &str) -> String {
        self.until(text, |screen| {
            let number = |(_, number): (_, &str)| number.parse::<u32>().is_ok();
            let counted = screen.rsplit_once(" of ").is_some_and(number);
            let ends = ["q quit", "shows all", "…"].iter().any(|end| screen.ends_with(end));
            (ends || counted) && screen.contains(text)
        })
    }

    /// Sets another size.
    fn resize(&self, (columns, rows): Size) {
        let (x, y) = (columns.to_string(), rows.to_string());
        let _ = self.call(&["resize-window", "-x", &x, "-y", &y]);
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // The server may have ended already.
        drop(self.command(&["kill-server"]).output());
    }
}

#[test]
#[ignore = "needs tmux: `cargo xtask test`"]
fn all_kinds_of_screens() {
    let site = site();
    for size in [SMALL, LARGE] {
        let tmux = Tmux::start(&site, &[], size);
        tmux.press("\r");
        let mut screens = Vec::new();
        for (keys, drawn) in tour(size) {
            tmux.press(keys);
            screens.push(tmux.drawn(&drawn));
        }
        let emulated: Vec<String> =
            shots(&toured(&site, size)).iter().map(|shot| shot.trim_end().to_owned()).collect();
        assert_eq!(screens, emulated, "two terminals show the same");
        must_be_known(size, &screens);
    }
}

#[test]
#[ignore = "needs tmux: `cargo xtask test`"]
fn looks_say_what_matters_and_colours_can_be_left_out() {
    let site = site();
    for (more, plain) in [(&[][..], false), (&[("NO_COLOR", "1")][..], true)] {
        let tmux = Tmux::watching(&site, more, SMALL);
        let screen = tmux.call(&["capture-pane", "-p", "-e"]);
        // Default colours need no escape sequence.
        let screen = screen.replace("\u{1b}[39m", "").replace("\u{1b}[49m", "");
        let line = |text: &str| screen.lines().find(|line| line.contains(text)).expect("a line");
        assert!(line("n0000 root").contains("7m● n0000"), "{screen:?}");
        assert!(line("run    t").contains("1mrun    t"), "{screen:?}");
        // Only the colour shows a failure.
        assert_eq!(line("e0003").contains("e0003 failed"), plain, "{screen:?}");
    }
}

#[test]
#[ignore = "needs tmux: `cargo xtask test`"]
fn another_size_leaves_nothing_of_the_one_before() {
    let site = site();
    let sizes = [LARGE, SMALL, (40, 10), (30, 8), (40, 10), SMALL, LARGE];
    for (keys, drawn) in [("", "↑↓ move"), ("jl", "following")] {
        let fresh = |size| {
            let tmux = Tmux::start(&site, &[], size);
            tmux.press("\r");
            let _ = tmux.drawn("↑↓ move");
            tmux.press(keys);
            let screen = tmux.drawn(drawn);
            (tmux, screen)
        };
        let mut expected = BTreeMap::from([((30, 8), "at least 40×10, please".to_owned())]);
        expected.extend([SMALL, (40, 10)].map(|size| (size, fresh(size).1)));
        let (tmux, large) = fresh(LARGE);
        let _ = expected.insert(LARGE, large);
        for size in sizes {
            tmux.resize(size);
            let same = |screen: &str| screen == expected[&size];
            let _ = tmux.until(&format!("{size:?}: {}", expected[&size]), same);
        }
    }
}

#[test]
#[ignore = "needs tmux: `cargo xtask test`"]
fn a_real_run_is_seen_to_its_end() {
    let site = Site::new(BINARY);
    let git = HeldGit::new(&site);
    let flags =
        ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--ideas-per-node=3", "--max-depth=2"];
    let running = git.begin(&site, &flags);
    let tmux = Tmux::watching(&site, &[], SMALL);
    let screen = tmux.screen("running: process ");
    assert!(screen.contains("now: 1 busy") && screen.contains("being implemented"), "{screen}");
    assert!(screen.contains("tree: 4 rows"), "{screen}");
    git.let_go();
    let _ = running.wait().exits(0);
    let over = "stopped, all depths are done (max_depth_reached)";
    let screen = tmux.until(over, |screen| screen.contains(over) && screen.contains("now: 0 busy"));
    assert!(screen.contains("run     stopped: all depths are done"), "{screen}");
    tmux.press("q");
    let _ = tmux.screen("left with 0");
}

#[test]
#[ignore = "needs tmux: `cargo xtask test`"]
fn what_was_there_before_is_there_again() {
    let site = site();
    for (key, exit) in [("q", 0), ("\u{3}", 130)] {
        let tmux = Tmux::start(&site, &[], SMALL);
        let before = tmux.says(MODES);
        tmux.press("\r");
        let _ = tmux.drawn(DRAWN);
        assert_eq!(tmux.says(MODES), "1 0 0 0 0 0", "the second screen, no cursor, no wrapping");
        tmux.press(key);
        let screen = tmux.screen("settings as before");
        assert_eq!(screen, format!("what was there\n\nleft with {exit}\nsettings as before"));
        assert_eq!(tmux.says(MODES), before);
        let styled = tmux.call(&["capture-pane", "-p", "-e"]);
        assert!(!styled.contains('\u{1b}'), "no looks are left: {styled:?}");
    }
}
