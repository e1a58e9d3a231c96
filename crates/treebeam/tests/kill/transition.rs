//! The program's own list of its lasting steps, and the mapping of operations to it.

use serde_json::Value;
use std::collections::BTreeSet;
use treebeam_testkit::fault::Operation;
use treebeam_testkit::program::Site;

/// The list, as `treebeam schema transitions` prints it.
pub(crate) struct Transitions {
    pub(crate) events: BTreeSet<String>,
    steps: Vec<Step>,
}

struct Step {
    name: String,
    calls: Vec<String>,
    paths: Vec<String>,
}

fn texts(value: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    value.as_array().expect("a list").iter().map(text).collect()
}

impl Transitions {
    pub(crate) fn ask(site: &Site) -> Self {
        let list = site.call(&["schema", "transitions"]).exits(0).json_lines().remove(0);
        assert_eq!(list["schema"], "treebeam.transitions/1");
        let step = |step: &Value| Step {
            name: step["name"].as_str().expect("a name").to_owned(),
            calls: texts(&step["calls"]),
            paths: texts(&step["paths"]),
        };
        let steps = list["steps"].as_array().expect("steps").iter().map(step).collect();
        Self { events: texts(&list["events"]).into_iter().collect(), steps }
    }

    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.steps.iter().map(|step| step.name.clone()).chain(self.events.clone()).collect()
    }

    /// Returns the lasting steps of an operation: none if it cannot be found again, or if it
    /// failed.
    #[track_caller]
    pub(crate) fn of(&self, operation: &Operation) -> Vec<String> {
        if !operation.events.is_empty() {
            return operation.events.clone();
        }
        if operation.call == "fsync" || is_unfinished(operation) || is_refused(operation) {
            return Vec::new();
        }
        let path = if operation.to.is_empty() { &operation.path } else { &operation.to };
        let fits = |step: &&Step| {
            let called = step.calls.contains(&operation.call);
            called && step.paths.iter().any(|pattern| fits(pattern, path))
        };
        match self.steps.iter().find(fits) {
            Some(step) => vec![step.name.clone()],
            None => panic!("on no list: {operation:?}"),
        }
    }
}

/// Returns true for a temporary file of a run.
fn is_unfinished(operation: &Operation) -> bool {
    let file = operation.path.strip_prefix(".treebeam/runs/").and_then(|path| path.split_once('/'));
    let file = file.map(|(_, name)| name.strip_prefix("inbox/").unwrap_or(name));
    let unnamed = file.is_some_and(|name| name.starts_with(".new-"));
    unnamed && ["create", "write", "copy"].contains(&operation.call.as_str())
}

/// Returns true if an operation had no effect.
fn is_refused(operation: &Operation) -> bool {
    operation.outcome.starts_with("error") || operation.outcome.starts_with("failed")
}

/// Returns true if a path matches a pattern: `*` is a part of a name, `**` any path below.
fn fits(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('/'), path.split('/'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) | (Some("**"), Some(_)) => return true,
            (Some(pattern), Some(part)) if fits_part(pattern, part) => {}
            _ => return false,
        }
    }
}

fn fits_part(pattern: &str, part: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == part,
        Some((before, after)) => {
            let rest = part.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            // A run with a temporary name is no run yet.
            rest.is_some() && (before.starts_with('.') || !part.starts_with('.'))
        }
    }
}

#[test]
fn patterns_fit_what_they_mean() {
    let check = |pattern: &str, path: &str, expected: bool| {
        assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
    };
    check(".treebeam/runs/*/a", ".treebeam/runs/t/a", true);
    check(".treebeam/runs/*/a", ".treebeam/runs/.new-t/a", false);
    check(".treebeam/runs/.new-*/**", ".treebeam/runs/.new-t/a/b", true);
    check(".treebeam/runs/.new-*/**", ".treebeam/runs/.new-t", false);
    check("a/*/s*/**", "a/1/s1/x", true);
    check("a/*/s*/**", "a/1/t1/x", false);
    check("a/b", "a/b/c", false);
    check("a/b*", "a/b.link", true);
}
