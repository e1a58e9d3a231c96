//! Measurement settings: commands, working folders and inputs. The executor runs the commands.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Settings of how a code state is measured. The records of the first treebeam lack them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasureSettings {
    /// Command that runs first in each worktree.
    pub setup_command: Option<CommandLine>,
    /// Command that must succeed before the sweep.
    pub test_command: Option<CommandLine>,
    /// Working folder of the tests, relative to the worktree.
    pub test_cwd: Option<WorktreePath>,
    /// Command that writes the results CSV.
    pub sweep_command: Option<CommandLine>,
    /// Working folder of the sweep, relative to the worktree.
    pub sweep_cwd: Option<WorktreePath>,
    /// Flag of the sweep command for the limit N.
    pub sweep_config_limit_flag: Option<CommandWord>,
    /// Results CSV of a sweep that ignores the environment variables, relative to the worktree.
    pub results_csv: Option<WorktreePath>,
    /// Existing results of the root: its sweep is not run.
    pub baseline_csv: Option<UserPath>,
    /// Existing root results that candidates are compared with, if not those of `baseline_csv`.
    pub root_baseline_csv: Option<UserPath>,
    /// Names of the environment variables that are passed to the commands.
    pub pass_env: Vec<VariableName>,
    /// Untracked paths of the repository that each worktree needs.
    pub inputs: Vec<WorktreePath>,
}

/// Error for an invalid measurement setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadMeasure(String);

/// Command of the user: a shell line, or a program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawCommandLine", untagged)]
pub enum CommandLine {
    /// A line for the system's shell.
    Shell(String),
    /// A program and its arguments, run without a shell.
    Program(Vec<String>),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "it must be a text for the shell, or a list of a program and its arguments"
)]
enum RawCommandLine {
    Shell(String),
    Program(Vec<String>),
}

impl TryFrom<RawCommandLine> for CommandLine {
    type Error = BadMeasure;
    fn try_from(raw: RawCommandLine) -> Result<Self, BadMeasure> {
        let (first, command) = match raw {
            RawCommandLine::Shell(line) => (line.clone(), Self::Shell(line)),
            RawCommandLine::Program(parts) => {
                (parts.first().cloned().unwrap_or_default(), Self::Program(parts))
            }
        };
        if first.trim().is_empty() {
            return Err(BadMeasure("a command cannot be empty".to_owned()));
        }
        Ok(command)
    }
}

impl CommandLine {
    /// Appends a flag and its value to the command.
    #[must_use]
    pub fn with_flag(self, flag: &CommandWord, value: u32) -> Self {
        match self {
            Self::Shell(line) => Self::Shell(format!("{line} {flag} {value}")),
            Self::Program(mut parts) => {
                parts.extend([flag.to_string(), value.to_string()]);
                Self::Program(parts)
            }
        }
    }

    /// Returns the program and its arguments; a shell line is run by the system's shell.
    #[must_use]
    pub fn to_argv(&self) -> Vec<String> {
        let shell = |words: [&str; 2], line: &String| {
            words.into_iter().map(str::to_owned).chain([line.clone()]).collect()
        };
        match self {
            Self::Shell(line) if cfg!(windows) => shell(["cmd", "/C"], line),
            Self::Shell(line) => shell(["/bin/sh", "-c"], line),
            Self::Program(parts) => parts.clone(),
        }
    }
}

macro_rules! text {
    ($(#[$about:meta])* $name:ident, $read:expr, $is:literal) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadMeasure;
            fn try_from(text: String) -> Result<Self, BadMeasure> {
                let read: fn(&str) -> Option<&str> = $read;
                let bad = || BadMeasure(format!("{text:?} is not {}", $is));
                read(&text).map(|text| Self(text.to_owned())).ok_or_else(bad)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

text! {
    /// Path inside a worktree, with `/` between the parts. A trailing `/` is dropped.
    WorktreePath,
    |text| {
        let text = text.strip_suffix('/').unwrap_or(text);
        let part = |part: &str| !part.is_empty() && part != "." && part != "..";
        let own = text.split('/').any(|part| part.eq_ignore_ascii_case(".git"));
        let good = !own && !text.contains(['\\', '\0', ':', '\n']) && text.split('/').all(part);
        good.then_some(text)
    },
    "a path inside the worktree, such as `out/results.csv`"
}

text! {
    /// Path that the user gave, absolute or relative to the repository's top.
    UserPath,
    |text| (!text.is_empty() && !text.contains(['\0', '\n'])).then_some(text),
    "a path"
}

text! {
    /// Single argument of a command line.
    CommandWord,
    |text| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=/".contains(c);
        (!text.is_empty() && text.chars().all(plain)).then_some(text)
    },
    "one plain word, such as `--sweep-config-limit`"
}

text! {
    /// Name of an environment variable.
    VariableName,
    |text| {
        let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let good = first && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        good.then_some(text)
    },
    "the name of a variable"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_good() {
        let check = |good: bool, text: &str, found: Result<String, BadMeasure>| {
            assert_eq!(found.is_ok(), good, "{text}: {found:?}");
        };
        let path = |good, text: &str| {
            check(good, text, WorktreePath::try_from(text.to_owned()).map(String::from));
        };
        path(true, "out");
        path(true, "out/a b.csv");
        let folder = WorktreePath::try_from("data/raw/".to_owned());
        assert_eq!(folder.map(String::from), Ok("data/raw".to_owned()));
        for bad in ["", "/", ".", "..", "./", "a/../b", "/a", "a//b", "a//", "c:a", "a\\b", ".git/"]
        {
            path(false, bad);
        }
        path(false, "a/.GIT/b");
        let word = |good, text: &str| {
            check(good, text, CommandWord::try_from(text.to_owned()).map(String::from));
        };
        word(true, "--limit");
        word(false, "--limit; rm");
        word(false, "");
        let variable = |good, text: &str| {
            check(good, text, VariableName::try_from(text.to_owned()).map(String::from));
        };
        variable(true, "VIRTUAL_ENV");
        variable(false, "A=b");
        variable(false, "1A");
    }

    #[test]
    fn a_limit_is_appended() {
        let flag = CommandWord::try_from("--limit".to_owned()).unwrap();
        let line = CommandLine::Shell("python a.py".to_owned()).with_flag(&flag, 3);
        assert_eq!(line, CommandLine::Shell("python a.py --limit 3".to_owned()));
        let list = CommandLine::Program(vec!["a".to_owned()]).with_flag(&flag, 3);
        assert_eq!(list.to_argv(), ["a", "--limit", "3"]);
    }
}
