//! Renders the parts of a prompt under headings, with fences around foreign texts. Such a text can
//! neither close nor fake its fence, has a limit, and is marked where it was cut.

/// Length of the shortest fence.
const MIN_FENCE_CHARS: usize = 3;

/// Renders a section with a foreign text between fences.
pub(crate) fn quoted_section(head: &str, text: &str, limit: usize) -> String {
    introduced_section(head, "", text, limit)
}

/// Renders a section with a sentence of treebeam's before a foreign text between fences.
pub(crate) fn introduced_section(head: &str, sentence: &str, text: &str, limit: usize) -> String {
    let text = text.trim_end();
    let kept: String = text.chars().take(limit).collect();
    if kept.is_empty() {
        return format!("=== {head} ===\n{sentence}(nothing)\n");
    }
    let fence = choose_fence(&kept);
    let note = match text.chars().count() {
        all if all > limit => format!("(cut: {limit} of {all} characters are shown)\n"),
        _ => String::new(),
    };
    format!("=== {head} ===\n{sentence}{fence}\n{kept}\n{fence}\n{note}")
}

/// Renders a section with lines of treebeam's or of the user's, without fences.
pub(crate) fn plain_section(head: &str, text: &str, limit: usize) -> String {
    let text: String = text.trim_end().chars().take(limit).collect();
    let text = if text.is_empty() { "(nothing)" } else { &text };
    format!("=== {head} ===\n{text}\n")
}

/// Renders lines as a list.
pub(crate) fn bullet_list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {line}\n")).collect()
}

/// Returns a fence that no line of a text can close: longer than any row of backticks in it.
fn choose_fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(MIN_FENCE_CHARS.max(longest + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the text between the fences of a section, as a Markdown parser would.
    fn between(section: &str) -> Option<String> {
        let mut lines = section.split('\n').skip(1);
        let fence = lines
            .next()
            .filter(|line| line.len() >= MIN_FENCE_CHARS && line.bytes().all(|b| b == b'`'))?;
        let body: Vec<&str> = lines.take_while(|line| !line.trim().starts_with(fence)).collect();
        Some(body.join("\n"))
    }

    proptest! {
        #[test]
        fn no_text_closes_its_fence(text in "(`{1,6}|=== IDEA ===|\\PC|\n|\r|~~~){0,60}") {
            let section = quoted_section("IDEA", &text, 1000);
            match between(&section) {
                Some(body) => prop_assert_eq!(body, text.trim_end()),
                None => prop_assert!(text.trim_end().is_empty(), "{}", section),
            }
        }

        #[test]
        fn no_section_is_longer_than_its_limit_says(text in "(`|a|ü|\n){0,300}", limit in 0_usize..200) {
            let section = quoted_section("X", &text, limit);
            // The text, two fences that may be longer than it, a heading and a note.
            prop_assert!(section.chars().count() <= 3 * limit + 100, "{}", section);
            let is_cut = text.trim_end().chars().count() > limit && limit > 0;
            prop_assert_eq!(section.contains("(cut: "), is_cut);
        }
    }

    #[test]
    fn nothing_is_said_to_be_nothing() {
        assert_eq!(quoted_section("PLAN", " \n", 9), "=== PLAN ===\n(nothing)\n");
        assert_eq!(plain_section("PLAN", "", 9), "=== PLAN ===\n(nothing)\n");
    }
}
