//! What agents answer, taken apart. Pure and bounded; nothing an agent says is believed beyond its form.

/// The longest reply that is looked at.
pub const REPLY_BYTES: usize = 4 << 20;
/// The longest idea that is kept.
const IDEA_BYTES: usize = 32 << 10;

/// How much of a text is shown in a message, in characters.
const BRIEF: usize = 300;

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

/// One idea as a person writes it: with an `IDEA:` like those of a reply, or as plain text whose first line is its title.
///
/// # Errors
/// When it says nothing, says more than one, or is too long; in words.
pub fn own_idea(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<_> = text.trim().lines().map(str::trim_end).collect();
    let begun = lines.iter().filter(|line| begins_idea(line)).count();
    let mut idea = lines.join("\n") + "\n";
    if begun == 0 {
        idea = format!("IDEA: {}", idea.trim_start_matches(['#', ' ']));
    }
    match begun {
        0 | 1 if idea.len() > IDEA_BYTES => Err(format!("it is longer than {IDEA_BYTES} bytes")),
        0 | 1 if says_something(&idea) => Ok(idea),
        0 | 1 => Err("it says nothing".to_owned()),
        several => Err(format!("it has {several} ideas: one file, one idea")),
    }
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

/// The beginning of a text, on one line.
#[must_use]
pub fn brief(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(BRIEF).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    if short.is_empty() { "nothing".to_owned() } else { short }
}

pub(crate) fn cut(text: &str, bytes: usize) -> &str {
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
    fn an_idea_of_ones_own_may_have_any_form() {
        let check = |text: &str, idea: &str| assert_eq!(own_idea(text).as_deref(), Ok(idea));
        check("\n# IDEA: Widen\r\nRATIONALE: x\n\n", "# IDEA: Widen\nRATIONALE: x\n");
        check("Notes first\nIDEA: Widen", "Notes first\nIDEA: Widen\n");
        check("\u{feff}## Widen the window\n\nbecause\n", "IDEA: Widen the window\n\nbecause\n");
        for (text, why) in [
            ("", "says nothing"),
            (" \n\t\n", "says nothing"),
            ("IDEA: -- \n", "says nothing"),
            ("IDEA: a\nIDEA: b", "2 ideas"),
            (&"x\n".repeat(IDEA_BYTES), "longer than 32768 bytes"),
        ] {
            assert!(own_idea(text).is_err_and(|said| said.contains(why)), "{text:.20?}");
        }
        let once = own_idea("Widen\n").expect("an idea");
        assert_eq!(own_idea(&once), Ok(once.clone()), "its form is final");
    }
}
