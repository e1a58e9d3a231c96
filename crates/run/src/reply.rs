//! What agents answer, taken apart. Pure and bounded; nothing an agent says is believed beyond its form.

/// The longest reply that is looked at.
pub const REPLY_BYTES: usize = 4 << 20;
/// The longest idea that is kept.
const IDEA_BYTES: usize = 32 << 10;

/// The ideas of a reply: each begins with a line `IDEA:`, Markdown around the key does not count.
#[must_use]
pub fn ideas(reply: &str) -> Vec<String> {
    let mut ideas: Vec<String> = Vec::new();
    for line in cut(reply, REPLY_BYTES).lines() {
        if begins_idea(line) {
            ideas.push(String::new());
        }
        if let Some(idea) = ideas.last_mut()
            && idea.len() + line.len() < IDEA_BYTES
            && !line.trim_start().starts_with("```")
        {
            idea.push_str(line.trim_end());
            idea.push('\n');
        }
    }
    let tidy = |idea: String| format!("{}\n", idea.trim_end());
    ideas.into_iter().map(tidy).filter(|idea| says_something(idea)).collect()
}

fn begins_idea(line: &str) -> bool {
    let line = line.trim_start_matches(['#', '*', ' ', '-']);
    line.split_once(':')
        .is_some_and(|(key, _)| key.trim_matches(['*', ' ']).eq_ignore_ascii_case("idea"))
}

fn says_something(idea: &str) -> bool {
    let words = idea.split_once(':').map_or(idea, |(_, rest)| rest);
    words.chars().any(char::is_alphanumeric)
}

/// The unified diff of a reply: prose and code fences around it do not count, line ends become `\n`.
#[must_use]
pub fn diff(reply: &str) -> Option<String> {
    let lines: Vec<&str> = cut(reply, REPLY_BYTES).lines().collect();
    let starts = |line: &&str| line.starts_with("diff --git ") || line.starts_with("--- ");
    let start = lines.iter().position(starts)?;
    let body = lines.get(start..)?;
    let end = body.iter().position(|line| line.trim_end() == "```").unwrap_or(body.len());
    let last = body.get(..end)?.iter().rposition(|line| is_diff_line(line))?;
    let mut diff = body.get(..=last)?.join("\n");
    diff.push('\n');
    diff.contains("\n@@ ").then_some(diff)
}

fn is_diff_line(line: &str) -> bool {
    line.starts_with(['+', '-', ' ', '@', '\\']) || line.starts_with("diff --git ")
}

fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ideas_are_found_whatever_is_around_them() {
        let reply = "Sure! Here are two:\n\n## **IDEA:** Widen\nRATIONALE: x\n```\nIDEA: Narrow\nREQUIRED_CHANGES: y\n```\nidea:   \n";
        assert_eq!(
            ideas(reply),
            ["## **IDEA:** Widen\nRATIONALE: x\n", "IDEA: Narrow\nREQUIRED_CHANGES: y\n"]
        );
        assert_eq!(ideas("I have no idea: sorry"), Vec::<String>::new());
        assert_eq!(ideas(""), Vec::<String>::new());
        assert!(ideas(&format!("IDEA: {}", "x\n".repeat(IDEA_BYTES)))[0].len() <= IDEA_BYTES);
    }

    #[test]
    fn a_diff_is_found_whatever_is_around_it() {
        let bare = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n a\n+b\n";
        for reply in [
            bare.to_owned(),
            format!("Here you are:\n```diff\n{bare}```\nThat is all: `x` grows.\n"),
            bare.replace('\n', "\r\n"),
            bare.trim_end().to_owned(),
            format!("{bare}\nHope this helps\n"),
        ] {
            assert_eq!(diff(&reply).as_deref(), Some(bare), "{reply:?}");
        }
        assert_eq!(diff("I would rather not."), None);
        assert_eq!(diff("--- a/x\nno hunk"), None);
    }
}
