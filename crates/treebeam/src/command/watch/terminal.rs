//! Controls the terminal of `treebeam watch`: raw mode, input, drawing, and restoring it.
//!
//! It is restored however the program ends, and while it is suspended. The content of the screen is
//! made elsewhere.

use crate::failure::{CommandExit, CommandFailure};
use crate::terminal::{print_bug, print_error, stdout_colour};
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
use treebeam_process::interrupt::{self, SuspendRequest};
use treebeam_view::score::ColourMode;
use treebeam_view::screen::{ScreenKey, ScreenLine, ScreenSize, ScreenTone};

/// True while this process holds the terminal; [`EXIT_REQUESTED`] is true after a request to exit.
static TERMINAL_TAKEN: AtomicBool = AtomicBool::new(false);
static EXIT_REQUESTED: AtomicBool = AtomicBool::new(false);

/// Interval of the check that the terminal still exists.
const TERMINAL_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Refuses to start without a terminal.
pub(super) fn must_be_terminal() -> Result<(), CommandFailure> {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if io::stdin().is_terminal() && io::stdout().is_terminal() && !dumb {
        return Ok(());
    }
    let what = "`treebeam watch` needs a terminal to draw on and to read keys from";
    Err(CommandFailure::environment(what)
        .with_hint("`treebeam status` and `treebeam log --follow` need none"))
}

/// Installs signal handlers: a request to exit is seen at the next read of the keyboard; a second
/// one exits at once.
pub(super) fn listen_for_signals() -> Result<(), CommandFailure> {
    interrupt::listen_for_interrupts(|| {
        if EXIT_REQUESTED.swap(true, Ordering::SeqCst) {
            restore_terminal();
            #[expect(
                clippy::exit,
                reason = "a terminal that has stopped must not keep anybody waiting"
            )]
            process::exit(CommandExit::Interrupted.code().into());
        }
    })?;
    Ok(())
}

/// Starts a thread that exits the program when its terminal disappears, whatever it is doing: a
/// read of a lost keyboard would loop forever without a pause.
pub(super) fn exit_on_terminal_loss() -> io::Result<()> {
    let spawned = thread::Builder::new().spawn(|| {
        while io::stdin().is_terminal() && io::stdout().is_terminal() {
            thread::sleep(TERMINAL_CHECK_INTERVAL);
        }
        restore_terminal();
        let exit = if EXIT_REQUESTED.load(Ordering::SeqCst) {
            CommandExit::Interrupted
        } else {
            report_terminal_loss()
        };
        #[expect(clippy::exit, reason = "whoever could end it otherwise waits for a key")]
        process::exit(exit.code().into());
    });
    spawned.map(drop)
}

fn report_terminal_loss() -> CommandExit {
    let what = "the terminal that `treebeam watch` was started on is gone";
    let hint = "the run is not touched by that; watch it on another one";
    let failure = CommandFailure::environment(what).with_hint(hint);
    print_error(&failure);
    failure.exit()
}

/// Input from the keyboard or the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalInput {
    Nothing,
    Key(ScreenKey),
    /// The terminal was resized, or another program has written to it.
    Redraw,
    /// Ctrl-C or a signal.
    Interrupt,
    /// Ctrl-Z: suspend the whole job of the shell.
    SuspendTogether,
    /// A signal to suspend this process.
    Suspend,
}

/// The terminal in raw mode, restored on drop.
pub(super) struct WatchTerminal {
    colour: ColourMode,
    /// Lines on the screen.
    drawn: Vec<ScreenLine>,
    size: Option<ScreenSize>,
    suspension: SuspendRequest,
}

impl WatchTerminal {
    /// Takes the terminal.
    pub(super) fn open() -> Result<Self, CommandFailure> {
        panic::set_hook(Box::new(|panic| {
            restore_terminal();
            print_bug(panic);
        }));
        let suspension = SuspendRequest::listen()?;
        let taken = Self { colour: stdout_colour(), drawn: Vec::new(), size: None, suspension };
        take_terminal()?;
        Ok(taken)
    }

    /// Waits for input up to `patience`.
    pub(super) fn next_input(&self, patience: Duration) -> Result<TerminalInput, CommandFailure> {
        let come = event::poll(patience)?;
        if EXIT_REQUESTED.load(Ordering::SeqCst) {
            return Ok(TerminalInput::Interrupt);
        }
        if self.suspension.is_requested() {
            return Ok(TerminalInput::Suspend);
        }
        if !come {
            return Ok(TerminalInput::Nothing);
        }
        Ok(match event::read()? {
            Event::Key(key) => input_from_key(key),
            Event::Resize(..) => TerminalInput::Redraw,
            Event::FocusGained | Event::FocusLost | Event::Mouse(_) => TerminalInput::Nothing,
        })
    }

    /// Restores the terminal, stops this process, and takes the terminal again on continue.
    pub(super) fn suspend(&mut self) -> Result<(), CommandFailure> {
        self.run_suspended(SuspendRequest::suspend_process)
    }

    /// Suspends with the rest of the shell's job, unless no shell could continue it.
    pub(super) fn suspend_together(&mut self) -> Result<(), CommandFailure> {
        if self.suspension.is_possible() {
            self.run_suspended(SuspendRequest::suspend_job)?;
        }
        Ok(())
    }

    /// Runs an action with the terminal restored, and takes it again.
    fn run_suspended(
        &mut self,
        act: impl Fn(&SuspendRequest) -> io::Result<()>,
    ) -> Result<(), CommandFailure> {
        restore_terminal();
        act(&self.suspension)?;
        self.invalidate();
        take_terminal()
    }

    /// Draws lines, skipping those that are on the screen already.
    pub(super) fn draw(
        &mut self,
        lines: &[ScreenLine],
        size: ScreenSize,
    ) -> Result<(), CommandFailure> {
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
            queue_line(&mut out, line, self.colour)?;
        }
        lines.clone_into(&mut self.drawn);
        if out.is_empty() { Ok(()) } else { write_to_terminal(&out) }
    }

    /// Marks the screen as unknown, so that all of it is drawn again.
    pub(super) fn invalidate(&mut self) {
        self.size = None;
    }
}

impl Drop for WatchTerminal {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Takes the terminal. Raw mode comes first: a program in the background is stopped there.
fn take_terminal() -> Result<(), CommandFailure> {
    TERMINAL_TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    let mut out = Vec::new();
    queue!(out, EnterAlternateScreen, DisableLineWrap, cursor::Hide)?;
    write_to_terminal(&out)
}

/// Restores the terminal. Errors are ignored: there is no place to report them.
fn restore_terminal() {
    if !TERMINAL_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = Vec::new();
    let asked = queue!(out, ResetColor, cursor::Show, EnableLineWrap, LeaveAlternateScreen);
    drop(asked.map_err(CommandFailure::from).and_then(|()| write_to_terminal(&out)));
    drop(disable_raw_mode());
}

fn write_to_terminal(bytes: &[u8]) -> Result<(), CommandFailure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(CommandFailure::from_output_error)
}

/// Returns the size of the terminal; 80 × 24 if it does not report one.
pub(super) fn terminal_size() -> Result<ScreenSize, CommandFailure> {
    let (columns, rows) = crossterm::terminal::size()?;
    if columns == 0 || rows == 0 {
        return Ok(ScreenSize { columns: 80, rows: 24 });
    }
    Ok(ScreenSize { columns: columns.into(), rows: rows.into() })
}

/// Queues a line, span by span.
fn queue_line(out: &mut Vec<u8>, line: &ScreenLine, colour: ColourMode) -> io::Result<()> {
    for span in line.spans() {
        let (attribute, hue) = tone_style(span.tone());
        if let Some(attribute) = attribute {
            queue!(out, SetAttribute(attribute))?;
        }
        if let Some(hue) = hue.filter(|_| colour == ColourMode::On) {
            queue!(out, SetForegroundColor(hue))?;
        }
        queue!(out, style::Print(span.text()), SetAttribute(Attribute::Reset))?;
    }
    Ok(())
}

const fn tone_style(tone: ScreenTone) -> (Option<Attribute>, Option<Color>) {
    match tone {
        ScreenTone::Plain => (None, None),
        ScreenTone::Dim => (Some(Attribute::Dim), None),
        ScreenTone::Strong => (Some(Attribute::Bold), None),
        ScreenTone::Good => (None, Some(Color::Green)),
        ScreenTone::Bad => (None, Some(Color::Red)),
        ScreenTone::Busy => (None, Some(Color::Yellow)),
        ScreenTone::Chosen => (Some(Attribute::Reverse), None),
    }
}

/// Keys other than characters.
const NAMED_KEYS: [(KeyCode, ScreenKey); 12] = [
    (KeyCode::Up, ScreenKey::Up),
    (KeyCode::Down, ScreenKey::Down),
    (KeyCode::Left, ScreenKey::Left),
    (KeyCode::Right, ScreenKey::Right),
    (KeyCode::PageUp, ScreenKey::PageUp),
    (KeyCode::PageDown, ScreenKey::PageDown),
    (KeyCode::Home, ScreenKey::Home),
    (KeyCode::End, ScreenKey::End),
    (KeyCode::Enter, ScreenKey::Enter),
    (KeyCode::Esc, ScreenKey::Escape),
    (KeyCode::Tab, ScreenKey::Tab),
    (KeyCode::Backspace, ScreenKey::Backspace),
];

/// Converts a key event to input.
fn input_from_key(key: KeyEvent) -> TerminalInput {
    if key.kind == KeyEventKind::Release {
        return TerminalInput::Nothing;
    }
    let with = |modifier| key.modifiers.contains(modifier);
    let named = NAMED_KEYS.iter().find(|(code, _)| *code == key.code).map(|(_, key)| *key);
    match (key.code, named) {
        (KeyCode::Char('c'), _) if with(KeyModifiers::CONTROL) => TerminalInput::Interrupt,
        (KeyCode::Char('l'), _) if with(KeyModifiers::CONTROL) => TerminalInput::Redraw,
        (KeyCode::Char('z'), _) if with(KeyModifiers::CONTROL) => TerminalInput::SuspendTogether,
        _ if with(KeyModifiers::CONTROL) || with(KeyModifiers::ALT) => TerminalInput::Nothing,
        (_, Some(key)) => TerminalInput::Key(key),
        (KeyCode::Char(c), None) => TerminalInput::Key(ScreenKey::Char(c)),
        (_, None) => TerminalInput::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let check = |code, modifiers, expected| {
            assert_eq!(
                input_from_key(KeyEvent::new(code, modifiers)),
                expected,
                "{code:?} {modifiers:?}"
            );
        };
        let none = KeyModifiers::NONE;
        check(KeyCode::Up, none, TerminalInput::Key(ScreenKey::Up));
        check(KeyCode::Char('c'), none, TerminalInput::Key(ScreenKey::Char('c')));
        check(KeyCode::Char('G'), KeyModifiers::SHIFT, TerminalInput::Key(ScreenKey::Char('G')));
        check(KeyCode::Char('c'), KeyModifiers::CONTROL, TerminalInput::Interrupt);
        check(KeyCode::Char('l'), KeyModifiers::CONTROL, TerminalInput::Redraw);
        check(KeyCode::Char('z'), KeyModifiers::CONTROL, TerminalInput::SuspendTogether);
        check(KeyCode::Char('q'), KeyModifiers::ALT, TerminalInput::Nothing);
        check(KeyCode::F(1), none, TerminalInput::Nothing);
        let mut released = KeyEvent::new(KeyCode::Char('q'), none);
        released.kind = KeyEventKind::Release;
        assert_eq!(input_from_key(released), TerminalInput::Nothing);
    }

    /// Starts this test binary on a terminal, and panics there.
    #[cfg(target_os = "linux")]
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test starts a terminal")]
    fn after_a_panic_the_terminal_is_as_it_was_and_says_what_happened() {
        const HERE: &str = "TREEBEAM_TEST_PANICS_HERE";
        if std::env::var_os(HERE).is_some() {
            let mut taken = WatchTerminal::open().unwrap();
            taken.draw(&[], ScreenSize { columns: 80, rows: 24 }).unwrap();
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
        for tone in [ScreenTone::Plain, ScreenTone::Good, ScreenTone::Bad, ScreenTone::Busy] {
            let (attribute, hue) = tone_style(tone);
            assert!(attribute.is_none() && hue.is_none() == (tone == ScreenTone::Plain));
        }
        queue_line(&mut out, &ScreenLine::default(), ColourMode::Off).unwrap();
        assert!(out.is_empty());
    }
}
