//! The texts that agents are given. Pure and bounded: no absolute path, time, duration, cost or process id.

use crate::brief::Told;

/// The longest text of one kind (a diff stat, an idea) that goes into a prompt.
const PART_CHARS: usize = 16_000;

/// The context pack of a node: what the idea generator is told about its branch.
pub(crate) fn context(told: &Told, since_root: &str, since_parent: &str) -> String {
    let mut text = format!("NODE n{}\n", told.node);
    section(&mut text, "CHANGED SINCE THE ROOT", since_root);
    section(&mut text, "CHANGED SINCE THE PARENT", since_parent);
    section(&mut text, "IDEAS THAT LED HERE, OLDEST FIRST", &list(&told.chain));
    section(&mut text, "OTHER IDEAS THAT WERE TRIED ON THE WAY", &list(&told.outcomes));
    let constraints = [
        "one self-contained change per idea, implementable as a patch".to_owned(),
        "the sweep's grid of configurations stays as it is".to_owned(),
        format!("do not touch: {}", told.protect.join(", ")),
    ];
    section(&mut text, "CONSTRAINTS", &list(&constraints));
    let files = told.idea_files.iter().map(|idea| format!("{} sha256 {}", idea.path, idea.sha256));
    section(&mut text, "IDEA FILES", &list(&files.collect::<Vec<_>>()));
    text
}

/// Asks for ideas.
pub(crate) fn ideas(context: &str, count: usize, repeated: &[String]) -> String {
    let mut text = format!(
        "Propose {count} new ideas that could improve this code's results.\n\
         Write each as three parts, and nothing else:\n\
         IDEA: one line that says what to change\n\
         RATIONALE: why it should help\n\
         REQUIRED_CHANGES: what to change, file by file\n\n{context}"
    );
    if !repeated.is_empty() {
        section(&mut text, "YOU PROPOSED THESE, BUT THEY WERE TRIED BEFORE", &list(repeated));
    }
    text
}

/// Asks for a patch.
pub(crate) fn coder(idea: &str, issue: Option<&str>, protect: &[String]) -> String {
    let mut text = "Implement this idea in the repository at hand.\n\
         Answer with one unified diff that `git apply` takes, and nothing else.\n"
        .to_owned();
    section(&mut text, "IDEA", idea);
    section(&mut text, "DO NOT TOUCH", &list(protect));
    if let Some(issue) = issue {
        section(&mut text, "YOUR LAST ANSWER HAD THIS PROBLEM; FIX IT", issue);
    }
    text
}

fn section(text: &mut String, head: &str, body: &str) {
    let body: String = body.trim_end().chars().take(PART_CHARS).collect();
    let body = if body.is_empty() { "(nothing)" } else { &body };
    text.push_str(&format!("\n=== {head} ===\n{body}\n"));
}

fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {line}\n")).collect()
}
