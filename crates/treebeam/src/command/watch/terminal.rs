//! The terminal while a run is watched: taken, drawn upon, listened to, and given back as it was, however the program ends,
//! and while it is stopped. What stands on it is none of its business.

use crate::failure::{Exit, Failure};
use crate::terminal::{bug, colour, error};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::style::{Attribute, Color, ResetColor, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, queue, style};
use std::io::{self, IsTerminal as _, Write as _};
use std::panic;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use treebeam_edge::interrupt::{self, Suspension};
use treebeam_view::score::Colour;
use treebeam_view::screen::{Key, Line, Size, Tone};

/// Whether the terminal is ours, and whether somebody has asked the program to end.
static TAKEN: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);

/// How often it is looked whether the terminal is still there.
const DOUBT: Duration = Duration::from_millis(500);

/// Refuses to begin where there is no terminal.
pub(super) fn must_be_one() -> Result<(), Failure> {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if io::stdin().is_terminal() && io::stdout().is_terminal() && !dumb {
        return Ok(());
    }
    let what = "`treebeam watch` needs a terminal to draw on and to read keys from";
    Err(Failure::environment(what).hint("`treebeam status` and `treebeam log --follow` need none"))
}

/// From now on a request to end is noticed at the next look at the keyboard; a second one ends the program at once.
pub(super) fn heed_signals() -> Result<(), Failure> {
    interrupt::listen(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            give_back();
            #[expect(
                clippy::exit,
                reason = "a terminal that has stopped must not keep anybody waiting"
            )]
            process::exit(Exit::Interrupted.code().into());
        }
    })?;
    Ok(())
}

/// From now on the program ends when its terminal has gone away, whatever it is at: whoever waits for a key of a keyboard that
/// is gone, waits for ever and without a pause.
pub(super) fn heed_loss() {
    thread::spawn(|| {
        while io::stdin().is_terminal() && io::stdout().is_terminal() {
            thread::sleep(DOUBT);
        }
        give_back();
        let exit = if ASKED.load(Ordering::SeqCst) { Exit::Interrupted } else { lost() };
        #[expect(clippy::exit, reason = "whoever could end it otherwise waits for a key")]
        process::exit(exit.code().into());
    });
}

fn lost() -> Exit {
    let what = "the terminal that `treebeam watch` was started on is gone";
    let hint = "the run is not touched by that; watch it on another one";
    let failure = Failure::environment(what).hint(hint);
    error(&failure);
    failure.exit()
}

/// What came from the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Nothing,
    Key(Key),
    /// The terminal has another size, or somebody else has written to it.
    Redraw,
    /// Ctrl-C, or a signal.
    Interrupt,
    /// Ctrl-Z: all that the shell started together is to stop for a while.
    SuspendTogether,
    /// A signal says so to this process.
    Suspend,
}

/// The terminal, ours until it is dropped.
pub(super) struct Terminal {
    colour: Colour,
    /// What stands on it.
    drawn: Vec<Line>,
    size: Option<Size>,
    suspension: Suspension,
}

impl Terminal {
    /// Takes the terminal.
    pub(super) fn take() -> Result<Self, Failure> {
        panic::set_hook(Box::new(|panic| {
            give_back();
            bug(panic);
        }));
        let suspension = Suspension::listen()?;
        let taken = Self { colour: colour(), drawn: Vec::new(), size: None, suspension };
        begin()?;
        Ok(taken)
    }

    /// What comes from the keyboard within this time, or from elsewhere.
    pub(super) fn input(&self, patience: Duration) -> Result<Input, Failure> {
        let come = event::poll(patience)?;
        if ASKED.load(Ordering::SeqCst) {
            return Ok(Input::Interrupt);
        }
        if self.suspension.is_asked() {
            return Ok(Input::Suspend);
        }
        if !come {
            return Ok(Input::Nothing);
        }
        Ok(match event::read()? {
            Event::Key(key) => meant(key),
            Event::Resize(..) => Input::Redraw,
            Event::FocusGained | Event::FocusLost | Event::Mouse(_) => Input::Nothing,
        })
    }

    /// Gives the terminal back, stops, and takes it again when the program is to go on.
    pub(super) fn suspend(&mut self) -> Result<(), Failure> {
        self.without(Suspension::obey)
    }

    /// The same together with the rest of the job, unless nobody could let it go on.
    pub(super) fn suspend_together(&mut self) -> Result<(), Failure> {
        if self.suspension.is_possible() {
            self.without(Suspension::obey_together)?;
        }
        Ok(())
    }

    /// Does without the terminal for as long as this takes.
    fn without(&mut self, act: impl Fn(&Suspension) -> io::Result<()>) -> Result<(), Failure> {
        give_back();
        act(&self.suspension)?;
        self.forget();
        begin()
    }

    /// Draws these lines, those that stand there already left out.
    pub(super) fn draw(&mut self, lines: &[Line], size: Size) -> Result<(), Failure> {
        let mut out = Vec::new();
        if self.size != Some(size) {
            self.drawn.clear();
            self.size = Some(size);
            queue!(out, Clear(ClearType::All))?;
        }
        for (row, line) in (0..).zip(lines) {
            if self.drawn.get(usize::from(row)) == Some(line) {
                continue;
            }
            queue!(out, cursor::MoveTo(0, row), Clear(ClearType::CurrentLine))?;
            put(&mut out, line, self.colour)?;
        }
        lines.clone_into(&mut self.drawn);
        if out.is_empty() { Ok(()) } else { send(&out) }
    }

    /// Forgets what stands on it, so that all of it is drawn again.
    pub(super) fn forget(&mut self) {
        self.size = None;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Makes the terminal ours. Raw mode comes first: a program that goes on in the background is stopped there.
fn begin() -> Result<(), Failure> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    let mut out = Vec::new();
    queue!(out, EnterAlternateScreen, DisableLineWrap, cursor::Hide)?;
    send(&out)
}

/// Leaves the terminal as it was. What cannot be said to it is said to nobody.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = Vec::new();
    let asked = queue!(out, ResetColor, cursor::Show, EnableLineWrap, LeaveAlternateScreen);
    drop(asked.map_err(Failure::from).and_then(|()| send(&out)));
    drop(disable_raw_mode());
}

fn send(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::unsaid)
}

/// How large the terminal is now; one that does not say is as large as they always were.
pub(super) fn size() -> Result<Size, Failure> {
    let (columns, rows) = crossterm::terminal::size()?;
    if columns == 0 || rows == 0 {
        return Ok(Size { columns: 80, rows: 24 });
    }
    Ok(Size { columns: columns.into(), rows: rows.into() })
}

/// A line, piece by piece.
fn put(out: &mut Vec<u8>, line: &Line, colour: Colour) -> io::Result<()> {
    for span in line.spans() {
        let (attribute, hue) = looks(span.tone());
        if let Some(attribute) = attribute {
            queue!(out, SetAttribute(attribute))?;
        }
        if let Some(hue) = hue.filter(|_| colour == Colour::On) {
            queue!(out, SetForegroundColor(hue))?;
        }
        queue!(out, style::Print(span.text()), SetAttribute(Attribute::Reset))?;
    }
    Ok(())
}

const fn looks(tone: Tone) -> (Option<Attribute>, Option<Color>) {
    match tone {
        Tone::Plain => (None, None),
        Tone::Dim => (Some(Attribute::Dim), None),
        Tone::Strong => (Some(Attribute::Bold), None),
        Tone::Good => (None, Some(Color::Green)),
        Tone::Bad => (None, Some(Color::Red)),
        Tone::Busy => (None, Some(Color::Yellow)),
        Tone::Chosen => (Some(Attribute::Reverse), None),
    }
}

/// Keys that are no characters.
const KEYS: [(KeyCode, Key); 12] = [
    (KeyCode::Up, Key::Up),
    (KeyCode::Down, Key::Down),
    (KeyCode::Left, Key::Left),
    (KeyCode::Right, Key::Right),
    (KeyCode::PageUp, Key::PageUp),
    (KeyCode::PageDown, Key::PageDown),
    (KeyCode::Home, Key::Home),
    (KeyCode::End, Key::End),
    (KeyCode::Enter, Key::Enter),
    (KeyCode::Esc, Key::Escape),
    (KeyCode::Tab, Key::Tab),
    (KeyCode::Backspace, Key::Backspace),
];

/// What is meant by a key.
fn meant(key: KeyEvent) -> Input {
    if key.kind == KeyEventKind::Release {
        return Input::Nothing;
    }
    let with = |modifier| key.modifiers.contains(modifier);
    let named = KEYS.iter().find(|(code, _)| *code == key.code).map(|(_, key)| *key);
    match (key.code, named) {
        (KeyCode::Char('c'), _) if with(KeyModifiers::CONTROL) => Input::Interrupt,
        (KeyCode::Char('l'), _) if with(KeyModifiers::CONTROL) => Input::Redraw,
        (KeyCode::Char('z'), _) if with(KeyModifiers::CONTROL) => Input::SuspendTogether,
        _ if with(KeyModifiers::CONTROL) || with(KeyModifiers::ALT) => Input::Nothing,
        (_, Some(key)) => Input::Key(key),
        (KeyCode::Char(c), None) => Input::Key(Key::Char(c)),
        (_, None) => Input::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let check = |code, modifiers, expected| {
            assert_eq!(meant(KeyEvent::new(code, modifiers)), expected, "{code:?} {modifiers:?}");
        };
        let none = KeyModifiers::NONE;
        check(KeyCode::Up, none, Input::Key(Key::Up));
        check(KeyCode::Char('c'), none, Input::Key(Key::Char('c')));
        check(KeyCode::Char('G'), KeyModifiers::SHIFT, Input::Key(Key::Char('G')));
        check(KeyCode::Char('c'), KeyModifiers::CONTROL, Input::Interrupt);
        check(KeyCode::Char('l'), KeyModifiers::CONTROL, Input::Redraw);
        check(KeyCode::Char('z'), KeyModifiers::CONTROL, Input::SuspendTogether);
        check(KeyCode::Char('q'), KeyModifiers::ALT, Input::Nothing);
        check(KeyCode::F(1), none, Input::Nothing);
        let mut released = KeyEvent::new(KeyCode::Char('q'), none);
        released.kind = KeyEventKind::Release;
        assert_eq!(meant(released), Input::Nothing);
    }

    /// Starts itself on a terminal, and panics there.
    #[cfg(target_os = "linux")]
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test starts a terminal")]
    fn after_a_panic_the_terminal_is_as_it_was_and_says_what_happened() {
        const HERE: &str = "TREEBEAM_TEST_PANICS_HERE";
        if std::env::var_os(HERE).is_some() {
            let mut taken = Terminal::take().unwrap();
            taken.draw(&[], Size { columns: 80, rows: 24 }).unwrap();
            panic!("on purpose");
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/watch/terminal.py");
        let mut python = process::Command::new("python3");
        python.args([script, "300", "24", r#"[["end"]]"#]).arg(std::env::current_exe().unwrap());
        python.args(["after_a_panic", "--nocapture"]).env(HERE, "1");
        let said = python.output().unwrap();
        let seen: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!((&seen["exit"], &seen["unknown"]), (&101.into(), &serde_json::json!([])));
        assert_eq!(
            (&seen["settings_restored"], &seen["modes_restored"]),
            (&true.into(), &true.into())
        );
        assert_eq!(seen["taken"], true, "{seen}");
        assert!(seen["after"].as_str().unwrap().contains("on purpose"), "{seen}");
    }

    #[test]
    fn a_line_without_colours_has_none() {
        let mut out = Vec::new();
        for tone in [Tone::Plain, Tone::Good, Tone::Bad, Tone::Busy] {
            let (attribute, hue) = looks(tone);
            assert!(attribute.is_none() && hue.is_none() == (tone == Tone::Plain));
        }
        put(&mut out, &Line::default(), Colour::Off).unwrap();
        assert!(out.is_empty());
    }
}
