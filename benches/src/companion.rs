//! A process that answers each line with a line, so that all who are compared are asked alike. It ends with its input.

use crate::Outcome;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A process that is there through all rounds.
pub(crate) struct Companion {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Companion {
    /// Starts it, and waits until it says that it is ready.
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
        // It has nothing left to do; how it ends changes no figure.
        let _ended = self.process.wait();
    }
}
