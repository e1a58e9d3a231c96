//! What `treebeam doctor` finds out about the commands that measure a code state, without running them.

use super::{Check, Failure};
use crate::command::begin;
use crate::program::look_up;
use treebeam_core::measure::{CommandLine, Measure, WorktreePath};
use treebeam_core::policy::Meaning;
use treebeam_edge::git::UserRepo;

/// What the shell itself does, or what begins a line of more than a program and its arguments.
const SHELL: [&str; 14] = [
    "cd", "export", "set", "exec", "eval", "source", "test", "if", "for", "while", "case",
    "ulimit", "umask", "trap",
];

pub(super) fn checks(repo: &UserRepo, meaning: &Meaning) -> Vec<Check> {
    let measure = &meaning.measure;
    let commands = [
        ("setup", "setup_command", &measure.setup_command, None),
        ("tests", "test_command", &measure.test_command, measure.test_cwd.as_ref()),
        ("sweep", "sweep_command", &measure.sweep_command, measure.sweep_cwd.as_ref()),
    ];
    let mut checks = Vec::new();
    for (subject, key, command, cwd) in commands {
        match command {
            Some(command) => checks.push(found(repo, (subject, key), command, cwd)),
            None if subject == "sweep" => checks.push(Check::warning(
                subject,
                "no `sweep_command` is set: only dry runs are possible",
                "set it to what writes the results CSV",
            )),
            None => {}
        }
    }
    checks.extend(baseline(repo, meaning));
    checks.extend(missing_input(repo, measure));
    checks.extend(tracked_input(repo, measure));
    if measure.results_csv.is_some() {
        let says =
            "with `results_csv`, a sweep that heeds no variable is measured one at a time only";
        let todo = "let it write to `$AGENTIC_RESULTS_CSV`, if it can";
        checks.push(Check::warning("results", says, todo));
    }
    checks
}

/// Whether the program of a command is there.
fn found(
    repo: &UserRepo,
    (subject, key): (&'static str, &str),
    command: &CommandLine,
    cwd: Option<&WorktreePath>,
) -> Check {
    let folder = cwd.map_or_else(|| repo.toplevel.clone(), |cwd| repo.toplevel.join(cwd.as_str()));
    let Some(program) = program(command) else {
        return Check::ok(subject, format!("`{key}` is for the shell to understand"));
    };
    let shown: String = program.chars().flat_map(char::escape_debug).collect();
    if let Some(path) = look_up(&program, &folder) {
        return Check::ok(subject, format!("`{shown}` is `{}`", path.display()));
    }
    let what = format!("`{key}`: the program `{shown}` is not found");
    let todo = "install it, or name its path: a relative one begins at the worktree";
    Check::problem(subject, &Failure::environment(what).hint(todo))
}

/// The program that a command begins with, where that can be told.
fn program(command: &CommandLine) -> Option<String> {
    let line = match command {
        CommandLine::Program(parts) => return parts.first().cloned(),
        CommandLine::Shell(line) => line,
    };
    let word = line.split_whitespace().next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
    let is_program = word != "." && word.chars().all(plain) && !SHELL.contains(&word);
    is_program.then(|| word.to_owned())
}

/// Results of the root that are there already, or should be.
fn baseline(repo: &UserRepo, meaning: &Meaning) -> Option<Check> {
    let file = meaning.measure.baseline_csv.as_ref()?;
    Some(match begin::must_be_readable(&repo.toplevel, meaning) {
        Ok(()) => {
            Check::ok("baseline", format!("the root's figures are those of `{file}`: not measured"))
        }
        Err(failure) => Check::problem("baseline", &failure),
    })
}

/// What git tracks is in every worktree, and nothing can be linked in its place: every sweep would fail.
fn tracked_input(repo: &UserRepo, measure: &Measure) -> Option<Check> {
    let tracked = repo.tracked().unwrap_or_default();
    let (input, file) = measure.inputs.iter().find_map(|input| {
        let name = input.as_str();
        let below = |path: &str| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        Some((name, tracked.iter().find(|path| *path == name || below(path))?))
    })?;
    let [input, file] = [input, file].map(|path| path.escape_debug().to_string());
    let failure = if input == file {
        let already = "so it is in each worktree already and cannot be linked there";
        Failure::environment(format!("`inputs`: git tracks `{input}`, {already}"))
            .hint("take it out of `inputs`")
    } else {
        let already = "so that folder is in each worktree already and cannot be linked there";
        Failure::environment(format!("`inputs`: git tracks `{file}` in `{input}`, {already}"))
            .hint("name what git does not track in it instead, each path by itself")
    };
    Some(Check::problem("inputs", &failure))
}

fn missing_input(repo: &UserRepo, measure: &Measure) -> Option<Check> {
    let missing = measure.inputs.iter().find(|path| !repo.toplevel.join(path.as_str()).exists())?;
    let what = format!("`inputs`: there is no `{missing}` in the repository");
    Some(Check::problem("inputs", &Failure::environment(what).hint("make it, or leave it out")))
}
