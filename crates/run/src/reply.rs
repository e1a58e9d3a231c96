//! Parses the replies of agents. Pure and bounded; only the form of a reply is trusted.

use treebeam_core::idea::{self, IdeaPart, PartHeading};

/// Largest reply that is parsed, in bytes.
pub const MAX_REPLY_BYTES: usize = 4 << 20;
/// Largest idea that is kept, in bytes.
const MAX_IDEA_BYTES: usize = 32 << 10;

/// Largest excerpt of a text in a message, in characters.
const MAX_EXCERPT_CHARS: usize = 300;

/// Largest number of ideas in one reply.
const MAX_REPLY_IDEAS: usize = 1000;

/// Returns the ideas of a reply, which begin with a line `IDEA:`, without Markdown around keys.
#[must_use]
pub fn parse_ideas(reply: &str) -> Vec<String> {
    let mut ideas: Vec<String> = Vec::new();
    let mut is_heading = false;
    for line in truncate_text(reply, MAX_REPLY_BYTES).lines() {
        let line: String = line.chars().filter(|c| *c == '\t' || !c.is_control()).collect();
        let begun = idea::parse_part_heading(&line);
        if let Some(begun) = begun.filter(|begun| begun.part == IdeaPart::Idea) {
            // `Idea 2: …` with nothing below it is the heading of the idea that begins here.
            if is_heading && !begun.is_numbered {
                ideas.pop();
            }
            if ideas.len() == MAX_REPLY_IDEAS {
                break;
            }
            ideas.push(String::new());
            is_heading = begun.is_numbered;
        } else if !line.trim().is_empty() {
            is_heading = false;
        }
        if let Some(idea) = ideas.last_mut() {
            append_line(idea, &line, begun);
        }
    }
    let tidy = |idea: String| format!("{}\n", idea.trim_end());
    ideas.into_iter().map(tidy).filter(|idea| has_words(idea)).collect()
}

/// Appends a line to an idea, as far as there is room.
fn append_line(idea: &mut String, line: &str, begun: Option<PartHeading<'_>>) {
    let whole = match begun {
        Some(PartHeading { part, rest, .. }) => format!("{}: {rest}", part.key()),
        None if line.trim_start().starts_with("```") => return,
        None => line.to_owned(),
    };
    let room = MAX_IDEA_BYTES.saturating_sub(idea.len() + 1);
    if room > 0 {
        idea.push_str(truncate_text(whole.trim_end(), room));
        idea.push('\n');
    }
}

/// Returns the parts that an idea lacks.
#[must_use]
pub fn missing_parts(idea: &str) -> Vec<IdeaPart> {
    let lines: Vec<&str> = idea.lines().collect();
    let has = |part: IdeaPart| {
        let at = lines.iter().position(|line| begins_part(line, part));
        let below = at.map(|at| lines.get(at + 1..).unwrap_or_default()).unwrap_or_default();
        let own = below.iter().take_while(|line| idea::parse_part_heading(line).is_none());
        let behind =
            at.and_then(|at| idea::parse_part_heading(lines.get(at)?)).map(|begun| begun.rest);
        behind.into_iter().chain(own.copied()).any(|text| text.contains(char::is_alphanumeric))
    };
    [IdeaPart::Rationale, IdeaPart::RequiredChanges]
        .into_iter()
        .filter(|part| !has(*part))
        .collect()
}

/// Parses one idea of a person: with `IDEA:`, or as plain text whose first line is its title.
///
/// # Errors
/// When it is empty, has more than one idea, or is too long; a text for its author.
pub fn parse_user_idea(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<_> = text.trim().lines().map(str::trim_end).collect();
    let begun = lines.iter().filter(|line| begins_idea(line)).count();
    let mut idea = lines.join("\n") + "\n";
    if begun == 0 {
        idea = format!("IDEA: {}", idea.trim_start_matches(['#', ' ']));
    }
    match begun {
        0 | 1 if idea.len() > MAX_IDEA_BYTES => {
            Err(format!("it is longer than {MAX_IDEA_BYTES} bytes"))
        }
        0 | 1 if has_words(&idea) => Ok(idea),
        0 | 1 => Err("it says nothing".to_owned()),
        several => Err(format!("it has {several} ideas: one file, one idea")),
    }
}

fn begins_idea(line: &str) -> bool {
    begins_part(line, IdeaPart::Idea)
}

fn begins_part(line: &str, part: IdeaPart) -> bool {
    idea::parse_part_heading(line).is_some_and(|begun| begun.part == part)
}

fn has_words(idea: &str) -> bool {
    let words = idea.split_once(':').map_or(idea, |(_, rest)| rest);
    words.chars().any(char::is_alphanumeric)
}

/// Returns the beginning of a text, on one line.
#[must_use]
pub fn one_line_excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(MAX_EXCERPT_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    if short.is_empty() { "nothing".to_owned() } else { short }
}

pub(crate) fn truncate_text(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ideas_are_found_whatever_is_around_them() {
        let reply = "Sure! Here are two:\n\n## **IDEA:** Widen\nRATIONALE: x\n```\nIDEA: Narrow\nREQUIRED_CHANGES: y\n```\nidea:   \n";
        assert_eq!(
            parse_ideas(reply),
            ["IDEA: Widen\nRATIONALE: x\n", "IDEA: Narrow\nREQUIRED_CHANGES: y\n"]
        );
        let headed = "### Idea 1: Wider\n\n**IDEA**: Widen\n- **Rationale:** x\n\n### Idea 2: Narrow\n1. **Required changes:**\n   - y\n";
        assert_eq!(
            parse_ideas(headed),
            ["IDEA: Widen\nRATIONALE: x\n", "IDEA: Narrow\nREQUIRED_CHANGES:\n   - y\n"]
        );
        assert_eq!(parse_ideas("Idea 1: a\nIdea 2: b\n"), ["IDEA: a\n", "IDEA: b\n"]);
        assert_eq!(parse_ideas("IDEA: a\u{0}\u{1b}[31m b\r\n\u{7}"), ["IDEA: a[31m b\n"]);
        assert_eq!(parse_ideas("I have no idea: sorry"), Vec::<String>::new());
        assert_eq!(parse_ideas(""), Vec::<String>::new());
        assert!(
            parse_ideas(&format!("IDEA: {}", "x\n".repeat(MAX_IDEA_BYTES)))[0].len()
                <= MAX_IDEA_BYTES
        );
    }

    #[test]
    fn what_is_missing_is_known() {
        let check =
            |idea: &str, expect: &[IdeaPart]| assert_eq!(missing_parts(idea), expect, "{idea:?}");
        let (why, what) = (IdeaPart::Rationale, IdeaPart::RequiredChanges);
        check("IDEA: a\nRATIONALE: b\nREQUIRED_CHANGES:\n\n- c\n", &[]);
        check("IDEA: a\nREQUIRED_CHANGES: c\nRATIONALE:\n", &[why]);
        check("IDEA: a\nRATIONALE: b\n", &[what]);
        check("IDEA: a\nRATIONALE:\nREQUIRED_CHANGES: -\n", &[why, what]);
        check("IDEA: a\n", &[why, what]);
    }

    proptest! {
        #[test]
        fn whatever_is_said_the_ideas_of_it_are_few_short_and_in_form(
            reply in "(IDEA|idea [0-9]|RATIONALE|Required changes|:|\\*\\*|#|- |1\\. |```|\\||\\PC|\u{0}|\u{1b}|\n|\r\n| ){0,200}",
            times in 1_usize..200,
        ) {
            let reply = reply.repeat(times);
            let found = parse_ideas(&reply);
            prop_assert!(found.len() <= MAX_REPLY_IDEAS);
            prop_assert!(found.iter().map(String::len).sum::<usize>() <= 2 * reply.len() + 1);
            for idea in &found {
                prop_assert!(idea.len() <= MAX_IDEA_BYTES && idea.starts_with("IDEA:"), "{idea:?}");
                prop_assert!(!idea.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
                // An idea that was found is found again, as one idea.
                prop_assert_eq!(parse_ideas(idea).len(), 1, "{:?}", idea);
                let _ = missing_parts(idea);
            }
        }
    }

    #[test]
    fn a_reply_without_end_is_cut() {
        assert_eq!(parse_ideas(&"IDEA: a\n".repeat(2_000_000)).len(), MAX_REPLY_IDEAS);
        assert!(parse_ideas(&"\u{0}ü".repeat(5 << 20)).is_empty());
    }

    #[test]
    fn an_idea_of_ones_own_may_have_any_form() {
        let check = |text: &str, idea: &str| assert_eq!(parse_user_idea(text).as_deref(), Ok(idea));
        check("\n# IDEA: Widen\r\nRATIONALE: x\n\n", "# IDEA: Widen\nRATIONALE: x\n");
        check("Notes first\nIDEA: Widen", "Notes first\nIDEA: Widen\n");
        check("\u{feff}## Widen the window\n\nbecause\n", "IDEA: Widen the window\n\nbecause\n");
        for (text, why) in [
            ("", "says nothing"),
            (" \n\t\n", "says nothing"),
            ("IDEA: -- \n", "says nothing"),
            ("IDEA: a\nIDEA: b", "2 ideas"),
            (&"x\n".repeat(MAX_IDEA_BYTES), "longer than 32768 bytes"),
        ] {
            assert!(parse_user_idea(text).is_err_and(|said| said.contains(why)), "{text:.20?}");
        }
        let once = parse_user_idea("Widen\n").expect("an idea");
        assert_eq!(parse_user_idea(&once), Ok(once.clone()), "its form is final");
    }
}
