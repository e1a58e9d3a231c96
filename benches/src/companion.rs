//! Runs a process that answers each line with a line; it ends with its input.
//!
//! All contenders of a comparison are called alike through it.

use crate::Outcome;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A process that lives through all rounds.
pub(crate) struct Companion {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Companion {
    /// Starts a process, and waits until it is ready.
    pub(crate) fn start(command: &mut Command) -> Outcome<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().ok_or("a process without output")?;
        let input = process.stdin.take();
        let mut companion = Self { process, input, output: BufReader::new(output) };
        match companion.answer()?.as_str() {
            "ready" => Ok(companion),
            other => Err(format!("{command:?} answered `{other}`").into()),
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> Outcome<String> {
        let input = self.input.as_mut().ok_or("a process without input")?;
        writeln!(input, "{line}")?;
        self.answer()
    }

    fn answer(&mut self) -> Outcome<String> {
        let mut answer = String::new();
        if self.output.read_line(&mut answer)? == 0 {
            return Err(format!("ended early: {}", self.process.wait()?).into());
        }
        Ok(answer.trim_end().to_owned())
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        drop(self.input.take());
        // How it ends changes no figure.
        let _ended = self.process.wait();
    }
}
