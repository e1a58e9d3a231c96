//! Which version of a coding agent is there, and what that means. It asks the program and nobody else.

use crate::agent::command::shared;
use crate::agent::settings::{Cli, Tool};
use crate::process::{Mark, ProcessError, Program, Whole};
use std::path::Path;
use std::time::Duration;

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A version that is known to work.
    Good(String),
    /// One that is older than any that was tried.
    Old(String),
    /// Something that says no version.
    Unknown(String),
    /// Nothing that runs.
    Missing(String),
}

/// Asks an agent's program, in this folder.
#[must_use]
pub fn look(cli: &Cli, folder: &Path) -> Found {
    let Some((program, arguments)) = cli.command.split_first() else {
        return Found::Missing("`command` is empty".to_owned());
    };
    let ended = Program::new(Path::new(program), folder)
        .args(arguments)
        .args(["--version"])
        .envs(shared())
        .deadline(PATIENCE)
        .whole(Whole::new(Mark::fresh(), Duration::from_secs(1)))
        .run();
    match ended {
        Err(error @ ProcessError::Start { .. }) => Found::Missing(error.to_string()),
        Err(error) => Found::Unknown(error.to_string()),
        Ok(ended) => judge(cli.tool, &String::from_utf8_lossy(&ended.stdout.bytes)),
    }
}

fn judge(tool: Tool, said: &str) -> Found {
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let words = line.split(|c: char| c.is_whitespace() || c == 'v');
    let numbers = |word: &str| {
        let mut parts = word.split('.').map_while(|part| part.parse::<u32>().ok());
        Some((parts.next()?, parts.next()?))
    };
    match words.into_iter().find_map(numbers) {
        None => Found::Unknown(format!("`{}` says {line:?}", tool.program())),
        Some(version) if version < tool.oldest() => Found::Old(line.to_owned()),
        Some(_) => Found::Good(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_they_are_said() {
        let check = |tool: Tool, said: &str, expect: &str| {
            let found = format!("{:?}", judge(tool, said));
            assert!(found.starts_with(expect), "{said}: {found}");
        };
        check(Tool::Codex, "codex-cli 0.166.0\n", "Good");
        check(Tool::Codex, "codex-cli 0.99.1\n", "Old");
        check(Tool::Claude, "2.1.197 (Claude Code)\n", "Good");
        check(Tool::Claude, "1.0.24 (Claude Code)\n", "Old");
        check(Tool::Gemini, "0.61.0\n", "Good");
        check(Tool::Opencode, "\n1.18.33\n", "Good");
        check(Tool::Aider, "aider 0.86.2\n", "Good");
        check(Tool::Aider, "v0.85.0\n", "Old");
        check(Tool::Codex, "usage: codex\n", "Unknown");
        check(Tool::Codex, "", "Unknown");
    }
}
