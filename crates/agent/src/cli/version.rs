//! Finds the installed version of a coding agent by running it, and compares it with known ones.

use crate::command::passed_variables;
use crate::settings::{CliAgent, CliTool};
use std::path::Path;
use std::time::Duration;
use treebeam_process::{ChildProgram, ProcessError, ProcessTree, TreeMarker};

/// The longest time that a program may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Result of looking for a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CliVersion {
    /// A version that is known to work.
    Good(String),
    /// A version that is older than any that was tried.
    Old(String),
    /// Output without a version.
    Unknown(String),
    /// No program that runs.
    Missing(String),
}

/// Finds the version of an agent's program, run in this folder.
#[must_use]
pub fn find_version(cli: &CliAgent, folder: &Path) -> CliVersion {
    let Some((program, arguments)) = cli.command.split_first() else {
        return CliVersion::Missing("`command` is empty".to_owned());
    };
    let ended = ChildProgram::new(Path::new(program), folder)
        .args(arguments)
        .args(["--version"])
        .envs(passed_variables())
        .deadline(VERSION_TIMEOUT)
        .in_tree(ProcessTree::new(TreeMarker::unique(), Duration::from_secs(1)))
        .run();
    match ended {
        Err(error @ ProcessError::Start { .. }) => CliVersion::Missing(error.to_string()),
        Err(error) => CliVersion::Unknown(error.to_string()),
        Ok(ended) => judge_version(cli.tool, &String::from_utf8_lossy(&ended.stdout.bytes)),
    }
}

fn judge_version(tool: CliTool, output: &str) -> CliVersion {
    let line = output.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let words = line.split(|c: char| c.is_whitespace() || c == 'v');
    let numbers = |word: &str| {
        let mut parts = word.split('.').map_while(|part| part.parse::<u32>().ok());
        Some((parts.next()?, parts.next()?))
    };
    match words.into_iter().find_map(numbers) {
        None => CliVersion::Unknown(format!("`{}` says {line:?}", tool.program_name())),
        Some(version) if version < tool.oldest_version() => CliVersion::Old(line.to_owned()),
        Some(_) => CliVersion::Good(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_they_are_said() {
        let check = |tool: CliTool, said: &str, expect: &str| {
            let found = format!("{:?}", judge_version(tool, said));
            assert!(found.starts_with(expect), "{said}: {found}");
        };
        check(CliTool::Codex, "codex-cli 0.166.0\n", "Good");
        check(CliTool::Codex, "codex-cli 0.99.1\n", "Old");
        check(CliTool::Claude, "2.1.197 (Claude Code)\n", "Good");
        check(CliTool::Claude, "1.0.24 (Claude Code)\n", "Old");
        check(CliTool::Gemini, "0.61.0\n", "Good");
        check(CliTool::Opencode, "\n1.18.33\n", "Good");
        check(CliTool::Aider, "aider 0.86.2\n", "Good");
        check(CliTool::Aider, "v0.85.0\n", "Old");
        check(CliTool::Codex, "usage: codex\n", "Unknown");
        check(CliTool::Codex, "", "Unknown");
    }
}
