//! The texts that agents are given. Pure and bounded: no absolute path, time, duration, cost or process id.

use crate::brief::Told;

/// The longest text of one kind (a diff stat, an idea) that goes into a prompt.
const PART_CHARS: usize = 16_000;

/// How many ideas that are told in short have room in such a text, whatever their titles.
const EARLIER_LINES: usize = 75;

/// The context pack of a node: what the idea generator is told about its branch.
pub(crate) fn context(told: &Told, since_root: &str, since_parent: &str) -> String {
    let mut text = format!("NODE n{}\n", told.node);
    section(&mut text, "CHANGED SINCE THE ROOT", since_root);
    section(&mut text, "CHANGED SINCE THE PARENT", since_parent);
    section(&mut text, "IDEAS THAT LED HERE, OLDEST FIRST", &newest(&told.chain));
    for part in told.earlier.chunks(EARLIER_LINES) {
        section(
            &mut text,
            "OTHER IDEAS THAT WERE TRIED BEFORE THE NEXT ONES, IN SHORT",
            &newest(part),
        );
    }
    section(&mut text, "OTHER IDEAS THAT WERE TRIED ON THE WAY", &newest(&told.outcomes));
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

/// Asks for notes about an idea.
pub(crate) fn coordinator(idea: &str, protect: &[String]) -> String {
    let mut text = "An idea is to be implemented in the repository at hand, by a planner, a coder and a reviewer.\n\
         Write short notes for them: what the idea means for this code, which files and functions matter, what is easily \
         got wrong, and what must stay as it is. No code.\n"
        .to_owned();
    section(&mut text, "IDEA", idea);
    rules(&mut text, protect);
    text
}

/// Asks for a plan.
pub(crate) fn planner(idea: &str, notes: Option<&str>, protect: &[String]) -> String {
    let mut text = "Plan the implementation of this idea in the repository at hand: the smallest change that does it, file by file.\n\
         Write two parts, and nothing else:\n\
         PLAN: numbered steps, each with the file and what changes there\n\
         RISKS: what could go wrong, and how to see it\n"
        .to_owned();
    section(&mut text, "IDEA", idea);
    told(&mut text, "NOTES", notes);
    rules(&mut text, protect);
    text
}

/// What a coder is told.
pub(crate) struct ForCoder<'a> {
    pub(crate) idea: &'a str,
    pub(crate) notes: Option<&'a str>,
    pub(crate) plan: Option<&'a str>,
    /// What earlier rounds have changed.
    pub(crate) so_far: Option<&'a str>,
    pub(crate) issue: Option<&'a str>,
    pub(crate) protect: &'a [String],
}

/// What a coder is asked for.
const DIFF: &str = "Answer with one unified diff that `git apply` takes, and nothing else.";
/// What one is asked for that edits the files itself.
const EDITS: &str = "Edit the files in this folder yourself, and commit nothing: your edits are what counts. Answer with one line that says what you did.";

/// The same question for a coder that edits the files itself.
#[must_use]
pub fn in_place(prompt: &str) -> String {
    prompt.replacen(DIFF, EDITS, 1)
}

/// Asks for a patch.
pub(crate) fn coder(told: &ForCoder<'_>) -> String {
    let mut text = format!("Implement this idea in the repository at hand.\n{DIFF}\n");
    section(&mut text, "IDEA", told.idea);
    self::told(&mut text, "NOTES", told.notes);
    self::told(&mut text, "PLAN", told.plan);
    section(&mut text, "DO NOT TOUCH", &list(told.protect));
    self::told(
        &mut text,
        "YOUR CHANGE SO FAR; IT IS IN PLACE, THE NEXT DIFF COMES ON TOP",
        told.so_far,
    );
    self::told(&mut text, "YOUR LAST ANSWER HAD THIS PROBLEM; FIX IT", told.issue);
    text
}

/// Asks for a review. `issues`: what the first one found, all that later ones are about.
pub(crate) fn reviewer(
    idea: &str,
    plan: Option<&str>,
    diff: &str,
    issues: Option<&str>,
    protect: &[String],
) -> String {
    let mut text = "Review this change. Judge whether it is correct and safe: does it do what the idea says, can it break or fake \
         the results? Tests and documents are not required, style is no issue.\n"
        .to_owned();
    if issues.is_some() {
        text.push_str(
            "You have reviewed it before. Look only at whether the issues that you raised then are solved; raise no others.\n",
        );
    }
    text.push_str(
        "Write three parts, and nothing else:\n\
         VERDICT: APPROVE or REJECT\n\
         ISSUES: what must change, one point each, with file and line; none if you approve\n\
         NOTES: anything else\n",
    );
    section(&mut text, "IDEA", idea);
    told(&mut text, "PLAN", plan);
    section(&mut text, "CHANGE", diff);
    told(&mut text, "ISSUES OF YOUR FIRST REVIEW", issues);
    rules(&mut text, protect);
    text
}

fn rules(text: &mut String, protect: &[String]) {
    section(text, "DO NOT TOUCH", &list(protect));
    section(text, "KEEP", "- the sweep's grid of configurations stays as it is\n");
}

fn told(text: &mut String, head: &str, body: Option<&str>) {
    if let Some(body) = body {
        section(text, head, body);
    }
}

fn section(text: &mut String, head: &str, body: &str) {
    let body: String = body.trim_end().chars().take(PART_CHARS).collect();
    let body = if body.is_empty() { "(nothing)" } else { &body };
    text.push_str(&format!("\n=== {head} ===\n{body}\n"));
}

fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {line}\n")).collect()
}

/// As many of the last lines as there is room for: where something has to go, it is what is oldest.
fn newest(lines: &[String]) -> String {
    let mut room = PART_CHARS;
    let fits = |line: &&String| {
        let length = line.chars().count() + "- \n".len();
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    let count = lines.iter().rev().take_while(fits).count();
    list(lines.get(lines.len() - count..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_too_much_the_oldest_goes() {
        let lines: Vec<String> = (0..100).map(|n| format!("{n} {}", "ü".repeat(300))).collect();
        let kept = newest(&lines);
        assert!(kept.chars().count() <= PART_CHARS);
        assert!(!kept.contains("- 0 ") && kept.contains("- 99 "), "{kept}");
        assert_eq!(newest(&lines[..2]), list(&lines[..2]));
        assert_eq!(newest(&[]), "");
    }
}
