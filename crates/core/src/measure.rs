//! How a code state is measured: the user's commands, where they run and what they find there. Who runs them, and how, is
//! the executor's business.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is run to measure a code state, and what it finds. Runs of the first treebeam do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasureSettings {
    /// Run first in each worktree.
    pub setup_command: Option<CommandLine>,
    /// Must succeed before the sweep.
    pub test_command: Option<CommandLine>,
    /// Where the tests run, below the worktree.
    pub test_cwd: Option<WorktreePath>,
    /// Writes the results.
    pub sweep_command: Option<CommandLine>,
    /// Where the sweep runs, below the worktree.
    pub sweep_cwd: Option<WorktreePath>,
    /// The sweep's own flag for the limit N.
    pub sweep_config_limit_flag: Option<CommandWord>,
    /// Where a sweep writes its results that does not heed the variables, below the worktree.
    pub results_csv: Option<WorktreePath>,
    /// Where the root's results lie already: the sweep is not run for it.
    pub baseline_csv: Option<UserPath>,
    /// Where those lie that candidates are compared with as the root's, if not the same.
    pub root_baseline_csv: Option<UserPath>,
    /// Names of variables that the commands get.
    pub pass_env: Vec<VariableName>,
    /// Paths of the repository that git does not track and that each worktree needs.
    pub inputs: Vec<WorktreePath>,
}

/// What is wrong with a setting of these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadMeasure(String);

/// A line for the shell, or a program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawCommandLine", untagged)]
pub enum CommandLine {
    /// For the shell.
    Shell(String),
    /// As it is.
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
    fn try_from(said: RawCommandLine) -> Result<Self, BadMeasure> {
        let (first, command) = match said {
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
    /// The same command with a flag and its value after it.
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

    /// The program and its arguments, with the system's shell where it is one's line.
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
            /// The text.
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
    /// A path inside a worktree, with `/`. That at the end of a folder is left out.
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
    /// A path of the user's, relative to the repository's top or absolute.
    UserPath,
    |text| (!text.is_empty() && !text.contains(['\0', '\n'])).then_some(text),
    "a path"
}

text! {
    /// One word of a command line.
    CommandWord,
    |text| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=/".contains(c);
        (!text.is_empty() && text.chars().all(plain)).then_some(text)
    },
    "one plain word, such as `--sweep-config-limit`"
}

text! {
    /// The name of a variable.
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
