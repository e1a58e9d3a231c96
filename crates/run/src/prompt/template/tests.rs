//! Parsing templates, their errors, and filling them in with made-up texts.

use super::*;
use proptest::prelude::*;

fn coder(text: &str) -> Result<PromptTemplate, String> {
    let text = format!("{text}\n{{{{answer}}}}\n{{{{change_so_far}}}}\n{{{{problem}}}}\n");
    PromptTemplate::parse(AgentRole::Coder, &text).map_err(|error| error.to_string())
}

fn parts<'a>(said: &[(Placeholder, &'a str)]) -> PromptParts<'a> {
    said.iter().map(|(one, text)| (*one, Cow::from(*text))).collect()
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let check = |text: &str, expect: &str| {
        let said = coder(text).map_or_else(|error| error, |_| "good".to_owned());
        assert_eq!(said, expect, "{text}");
    };
    check("{{idea}}", "good");
    check("  {{ idea }}  ", "good");
    check("{{idea}}\r\n{{plan}}\r", "good");
    check("\u{feff}{{idea}}", "good");
    check("{{idea}}\n{\"a\": {\"b\": 1}}, {{ }}, {{}}, {{a b}}, ${{x: y}}, {%if%}", "good");
    check("{{idea}}\n\\{{ida}} and \\{{idea}}", "good");
    check("{{idea}}\nuse {{name", "good");
    check("a\n{{ida}}", "line 2: there is no placeholder `{{ida}}`; nearest: `{{idea}}`");
    check("a {{IDEA}}", "line 1: there is no placeholder `{{IDEA}}`; nearest: `{{idea}}`");
    check("{{{ida}}}", "line 1: there is no placeholder `{{ida}}`; nearest: `{{idea}}`");
    check(
        "{{zzzzzzzz}}",
        "line 1: there is no placeholder `{{zzzzzzzz}}`; known: `{{answer}}`, `{{idea}}`, `{{earlier}}`, `{{notes}}`, `{{plan}}`, \
         `{{change_so_far}}`, `{{problem}}`, `{{protect}}`, `{{keep}}`, `{{repo}}`",
    );
    check("{{count}}", "line 1: `{{count}}` is for `ideas`, not for `coder`");
    check("This: {{idea}}", "line 1: `{{idea}}` must have a line for itself");
    check("{{idea}}{{plan}}", "line 1: `{{idea}}` must have a line for itself");
    check("{{idea}}\n\n{{idea}}", "line 3: `{{idea}}` stands on line 1 already");
    check("{{idea}\n", "line 1: `{{idea` is not closed: write `{{idea}}`");
    check("Do it.", "the prompt of the role `coder` needs `{{idea}}`: the idea file");
    check(&"x".repeat(MAX_TEMPLATE_BYTES), "a prompt may have 64 KiB at most");
}

#[test]
fn what_has_nothing_to_say_is_gone_with_its_blank_lines() -> Result<(), String> {
    let template = coder("\n\nDo it.\n\n\n{{idea}}\n\n{{notes}}\n\n{{plan}}\nThen stop.")?;
    let said = parts(&[
        (Placeholder::Idea, "=== IDEA ===\nx\n"),
        (Placeholder::Notes, ""),
        (Placeholder::Answer, "Answer so."),
    ]);
    assert_eq!(template.fill(&said), "Do it.\n\n=== IDEA ===\nx\n\nThen stop.\nAnswer so.\n");
    let said = parts(&[(Placeholder::Idea, "I\n"), (Placeholder::Plan, "P\n\n")]);
    assert_eq!(template.fill(&said), "Do it.\n\nI\n\nP\n\nThen stop.\n");
    Ok(())
}

#[test]
fn a_word_stands_anywhere_and_braces_can_be_meant() {
    let needed = "{{answer}}\n{{memory}}\n{{node}}\n{{repeated}}";
    let text =
        format!("{{{{count}}}} or {{{{ count }}}}: \\{{{{count}}}} {{{{{{count}}}}}}\n{needed}");
    let template = PromptTemplate::parse(AgentRole::Ideas, &text).expect("a template");
    let filled = template.fill(&parts(&[(Placeholder::Count, "7")]));
    assert_eq!(filled, "7 or 7: {{count}} {7}\n");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(\\{\\{|\\}\\}|idea|count|\\\\|\\PC|\n| ){0,80}") {
        for role in AgentRole::ALL {
            let (template, _) = PromptTemplate::parse_leniently(role, &text);
            let filled = template.fill(&PromptParts::new());
            prop_assert!(filled.len() <= text.len() + 1, "{:?}", filled);
        }
    }

    #[test]
    fn what_is_filled_in_is_not_read_again(data in "(\\{\\{(idea|plan|count|repo)\\}\\}|\\\\|\\PC|\n){1,60}") {
        let template = coder("Do it.\n{{idea}}\n{{plan}}").expect("a template");
        let data = format!("x{data}y");
        let filled = template.fill(&parts(&[(Placeholder::Idea, &data), (Placeholder::Plan, "the plan")]));
        prop_assert_eq!(filled, format!("Do it.\n\n{data}\n\nthe plan\n"));
    }

    #[test]
    fn no_placeholder_is_left(lines in prop::collection::vec("(\\PC{0,20})", 0..20)) {
        // Text that was parsed as a placeholder is never left in the prompt.
        let text = lines.join("\n").replace(['{', '}'], "") + "\n{{idea}}\n{{keep}}\n";
        let filled = coder(&text).expect("a template").fill(&PromptParts::new());
        prop_assert!(!filled.contains("{{"), "{}", filled);
    }
}
