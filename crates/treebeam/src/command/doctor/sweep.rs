//! Doctor checks of the commands that measure a code state, without running them.

use super::{CommandFailure, DoctorCheck};
use crate::command::run_start;
use crate::program::find_program;
use treebeam_core::measure::{CommandLine, MeasureSettings, WorktreePath};
use treebeam_core::policy::FixedSettings;
use treebeam_git::UserRepo;

/// Shell built-ins and keywords at the beginning of a line that is no plain call of a program.
const SHELL_WORDS: [&str; 14] = [
    "cd", "export", "set", "exec", "eval", "source", "test", "if", "for", "while", "case",
    "ulimit", "umask", "trap",
];

pub(super) fn check_sweep(repo: &UserRepo, settings: &FixedSettings) -> Vec<DoctorCheck> {
    let measure = &settings.measure;
    let commands = [
        ("setup", "setup_command", &measure.setup_command, None),
        ("tests", "test_command", &measure.test_command, measure.test_cwd.as_ref()),
        ("sweep", "sweep_command", &measure.sweep_command, measure.sweep_cwd.as_ref()),
    ];
    let mut checks = Vec::new();
    for (subject, key, command, cwd) in commands {
        match command {
            Some(command) => checks.push(check_command_program(repo, (subject, key), command, cwd)),
            None if subject == "sweep" => checks.push(DoctorCheck::warning(
                subject,
                "no `sweep_command` is set: only dry runs are possible",
                "set it to what writes the results CSV",
            )),
            None => {}
        }
    }
    checks.extend(check_baseline(repo, settings));
    checks.extend(check_missing_input(repo, measure));
    checks.extend(check_tracked_input(repo, measure));
    if measure.results_csv.is_some() {
        let says =
            "with `results_csv`, a sweep that heeds no variable is measured one at a time only";
        let todo = "let it write to `$AGENTIC_RESULTS_CSV`, if it can";
        checks.push(DoctorCheck::warning("results", says, todo));
    }
    checks
}

/// Checks that the program of a command exists.
fn check_command_program(
    repo: &UserRepo,
    (subject, key): (&'static str, &str),
    command: &CommandLine,
    cwd: Option<&WorktreePath>,
) -> DoctorCheck {
    let folder = cwd.map_or_else(|| repo.toplevel.clone(), |cwd| repo.toplevel.join(cwd.as_str()));
    let Some(program) = find_program_name(command) else {
        return DoctorCheck::ok(subject, format!("`{key}` is for the shell to understand"));
    };
    let shown: String = program.chars().flat_map(char::escape_debug).collect();
    if let Some(path) = find_program(&program, &folder) {
        return DoctorCheck::ok(subject, format!("`{shown}` is `{}`", path.display()));
    }
    let what = format!("`{key}`: the program `{shown}` is not found");
    let todo = "install it, or name its path: a relative one begins at the worktree";
    DoctorCheck::problem(subject, &CommandFailure::environment(what).with_hint(todo))
}

/// Returns the program that a command begins with, where that can be determined.
fn find_program_name(command: &CommandLine) -> Option<String> {
    let line = match command {
        CommandLine::Program(parts) => return parts.first().cloned(),
        CommandLine::Shell(line) => line,
    };
    let word = line.split_whitespace().next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
    let is_program = word != "." && word.chars().all(plain) && !SHELL_WORDS.contains(&word);
    is_program.then(|| word.to_owned())
}

/// Checks the existing results of the root, if `baseline_csv` is set.
fn check_baseline(repo: &UserRepo, settings: &FixedSettings) -> Option<DoctorCheck> {
    let file = settings.measure.baseline_csv.as_ref()?;
    Some(match run_start::must_have_readable_baseline(&repo.toplevel, settings) {
        Ok(()) => DoctorCheck::ok(
            "baseline",
            format!("the root's figures are those of `{file}`: not measured"),
        ),
        Err(failure) => DoctorCheck::problem("baseline", &failure),
    })
}

/// Warns about an input that git tracks. It is in every worktree, and nothing can be linked in its
/// place: every sweep would fail.
fn check_tracked_input(repo: &UserRepo, measure: &MeasureSettings) -> Option<DoctorCheck> {
    let tracked = repo.tracked_paths().unwrap_or_default();
    let (input, file) = measure.inputs.iter().find_map(|input| {
        let name = input.as_str();
        let below = |path: &str| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        Some((name, tracked.iter().find(|path| *path == name || below(path))?))
    })?;
    let [input, file] = [input, file].map(|path| path.escape_debug().to_string());
    let failure = if input == file {
        let already = "so it is in each worktree already and cannot be linked there";
        CommandFailure::environment(format!("`inputs`: git tracks `{input}`, {already}"))
            .with_hint("take it out of `inputs`")
    } else {
        let already = "so that folder is in each worktree already and cannot be linked there";
        CommandFailure::environment(format!(
            "`inputs`: git tracks `{file}` in `{input}`, {already}"
        ))
        .with_hint("name what git does not track in it instead, each path by itself")
    };
    Some(DoctorCheck::problem("inputs", &failure))
}

fn check_missing_input(repo: &UserRepo, measure: &MeasureSettings) -> Option<DoctorCheck> {
    let missing = measure.inputs.iter().find(|path| !repo.toplevel.join(path.as_str()).exists())?;
    let what = format!("`inputs`: there is no `{missing}` in the repository");
    Some(DoctorCheck::problem(
        "inputs",
        &CommandFailure::environment(what).with_hint("make it, or leave it out"),
    ))
}
