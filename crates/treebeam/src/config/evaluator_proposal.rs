//! Proposes which files of a repository are its evaluator, to be protected.
//!
//! Candidates are the files in the sweep command, and files with usual names of evaluators. A
//! proposal for a person, never a decision.

use super::sample_config::SampleConfig;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Component, Path};
use treebeam_core::policy::FixedSettings;

/// Usual file names of evaluators, without folder and extension.
const EVALUATOR_STEMS: [&str; 16] = [
    "backtest",
    "bench",
    "benchmark",
    "eval",
    "evaluate",
    "evaluation",
    "evaluator",
    "judge",
    "run_backtest",
    "run_benchmark",
    "run_eval",
    "run_sweep",
    "score",
    "scorer",
    "scoring",
    "sweep",
];
const EVALUATOR_FOLDERS: [&str; 3] = ["", "scripts/", "tools/"];
const EVALUATOR_EXTENSIONS: [&str; 8] = ["py", "sh", "jl", "js", "mjs", "pl", "rb", "ts"];

/// Adds files that look like the evaluator to the built-in protected ones, unless the list is set
/// already.
pub(crate) fn propose_protected(root: &Path, sample: &mut SampleConfig) {
    let command = sample.set.get("sweep_command").map(command_words).unwrap_or_default();
    let cwd = sample.set.get("sweep_cwd").and_then(Value::as_str).unwrap_or_default();
    let mut found: BTreeSet<String> =
        command.iter().filter_map(|word| path_in_repo(root, &Path::new(cwd).join(word))).collect();
    found.extend(common_evaluator_paths().filter_map(|name| path_in_repo(root, Path::new(&name))));
    if found.is_empty() || sample.set.contains_key("protect") {
        return;
    }
    let names: Vec<String> = found.iter().map(|name| format!("`{name}`")).collect();
    let note = format!("with what looks like the evaluator, {}", names.join(", "));
    let notes = sample.notes.entry("protect").or_default();
    notes.push(format!("{note}; take out what ideas may change"));
    let all: Vec<String> = FixedSettings::default().protect.into_iter().chain(found).collect();
    sample.set.insert("protect", json!(all));
}

fn common_evaluator_paths() -> impl Iterator<Item = String> {
    let named =
        |folder, stem| EVALUATOR_EXTENSIONS.iter().map(move |end| format!("{folder}{stem}.{end}"));
    EVALUATOR_FOLDERS
        .iter()
        .flat_map(move |folder| EVALUATOR_STEMS.iter().flat_map(move |stem| named(folder, stem)))
}

/// Returns all texts of a command that may name a file: its words, the parts of shell words, and
/// Python modules.
fn command_words(command: &Value) -> Vec<String> {
    let texts: Vec<&str> = match command {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let ends = |c: char| c.is_whitespace() || "\"'`;|&()<>=".contains(c);
    let parts = texts.iter().flat_map(|text| text.split(ends)).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let modules = parts.windows(2).filter_map(|pair| match pair {
        ["-m", module] => Some(module.replace('.', "/")),
        _ => None,
    });
    let modules = modules.flat_map(|path| [format!("{path}.py"), format!("{path}/__main__.py")]);
    texts.iter().chain(&parts).map(|&text| text.to_owned()).chain(modules).collect()
}

/// Returns the path of an existing file relative to the repository's root, if it is valid as a glob
/// of itself.
fn path_in_repo(root: &Path, path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.strip_prefix(root).unwrap_or(path).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::Prefix(_) | Component::RootDir => return None,
        }
    }
    let name = parts.join("/");
    let is_plain = !name.contains(['*', '?', '[', ']', '{', '}', '\\', '!']);
    (is_plain && !name.is_empty() && root.join(&name).is_file()).then_some(name)
}
