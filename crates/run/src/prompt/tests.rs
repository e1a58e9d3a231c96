//! The built-in prompts, their limits, and the page that documents the placeholders.

use super::*;
use proptest::prelude::*;
use treebeam_core::event::{EvalFailure, EvalStage, FailureKind};

const PROTECT: [&str; 2] = ["treebeam.toml", "eval/**"];

fn protect() -> Vec<String> {
    PROTECT.map(str::to_owned).into()
}

/// Renders the built-in prompt of a role, with all possible parts.
fn whole(role: AgentRole, edits: EditMode) -> String {
    let protect = protect();
    let repo = quoted_section("FILE model.py", "def model():\n    return '```'\n", 1000);
    if role == AgentRole::Ideas {
        let repeated = vec!["Widen the window".to_owned()];
        let incomplete = vec!["Narrow it: it lacks `RATIONALE:`".to_owned()];
        let request = IdeaRequest { count: 3, repeated, incomplete };
        let pack = "NODE n0001\n\n=== CHANGED SINCE THE ROOT ===\n model.py | 2 +-\n";
        let input =
            IdeaPromptInput { pack, request: &request, protect: &protect, repo: &repo, memory: "" };
        return PromptSet::built_in().render_ideas_prompt(&input);
    }
    let message = "sweep exited 1:\nNameError: window".to_owned();
    let failures = [EvalFailure { stage: EvalStage::Sweep, kind: FailureKind::Sweep, message }];
    let input = PromptInput {
        idea: "IDEA: Use {{plan}} of `model.py`\nREQUIRED_CHANGES:\n- model.py: a wider window\n",
        earlier: EarlierAttempts {
            failures: &failures,
            change: Some("--- a/model.py\n+++ b/model.py\n"),
        },
        notes: Some("Mind the gap."),
        plan: Some("PLAN: 1. model.py: window\nRISKS: none"),
        so_far: Some("--- a/model.py\n+++ b/model.py\n"),
        problem: Some("- it leaks"),
        change: Some("--- a/model.py\n+++ b/model.py\n"),
        issues: Some("- it leaks"),
        protect: &protect,
        repo: &repo,
        edits,
    };
    PromptSet::built_in().render_role_prompt(role, &input)
}

macro_rules! snapshot {
    ($name:expr, $text:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $text);
        })
    };
}

#[test]
fn nothing_is_wrong_with_the_built_in_ones() {
    for role in AgentRole::ALL {
        PromptTemplate::parse(role, built_in_template(role))
            .unwrap_or_else(|error| panic!("{role}: {error}"));
        snapshot!(role.name(), whole(role, EditMode::Diff));
    }
    let edits = whole(AgentRole::Coder, EditMode::InPlace);
    assert!(edits.contains("Edit the files in this folder yourself"), "{edits}");
    assert!(!edits.contains("git apply") && !edits.contains("NEXT DIFF"), "{edits}");
}

#[test]
fn what_is_not_there_leaves_no_trace() {
    let prompts = PromptSet::built_in();
    for role in AgentRole::ALL {
        let prompt = match role {
            AgentRole::Ideas => {
                let (pack, repo) = ("NODE n0000\n", "");
                let request =
                    IdeaRequest { count: 1, repeated: Vec::new(), incomplete: Vec::new() };
                prompts.render_ideas_prompt(&IdeaPromptInput {
                    pack,
                    request: &request,
                    protect: &[],
                    repo,
                    memory: "",
                })
            }
            AgentRole::Coordinator
            | AgentRole::Planner
            | AgentRole::Coder
            | AgentRole::Reviewer => prompts.render_role_prompt(
                role,
                &PromptInput { idea: "IDEA: x", ..PromptInput::default() },
            ),
        };
        assert!(!prompt.contains("\n\n\n") && prompt.ends_with('\n'), "{prompt}");
        for head in [
            "NOTES ===",
            "PLAN ===",
            "SO FAR",
            "PROBLEM",
            "FIRST REVIEW",
            "EARLIER",
            "TOUCH",
            "FILE",
        ] {
            assert!(!prompt.contains(head), "{role}: {prompt}");
        }
    }
}

/// Keeps the page up to date.
#[test]
fn every_placeholder_is_documented() {
    let page = include_str!("../../../../docs/prompts.md");
    for one in Placeholder::ALL {
        let roles = |holds: &dyn Fn(AgentRole) -> bool| {
            let names: Vec<String> = AgentRole::ALL
                .into_iter()
                .filter(|role| holds(*role))
                .map(|role| format!("`{role}`"))
                .collect();
            match names.len() {
                0 => "—".to_owned(),
                5 => "all".to_owned(),
                _ => names.join(", "),
            }
        };
        let form = match one.form() {
            PlaceholderForm::Word => "word",
            PlaceholderForm::Paragraph => "paragraph",
            PlaceholderForm::Section => "section",
        };
        let (may, must) =
            (roles(&|role| one.is_allowed_for(role)), roles(&|role| one.is_needed(role)));
        let row = format!("| `{one}` | {form} | {} | {may} | {must} |", one.description());
        assert!(page.contains(&row), "docs/prompts.md lacks:\n{row}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `{{")).count();
    assert_eq!(rows, Placeholder::ALL.len(), "docs/prompts.md has a placeholder that is none");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn no_prompt_is_longer_than_its_parts_may_be(letter in "[a`\n{ü]", count in 0_usize..300_000) {
        let long = letter.repeat(count);
        let text = Some(long.as_str());
        let protect = [long.clone()];
        let (stage, kind, message) = (EvalStage::Sweep, FailureKind::Sweep, long.clone());
        let failures = [EvalFailure { stage, kind, message }];
        let input = PromptInput {
            idea: &long, earlier: EarlierAttempts { failures: &failures, change: text }, notes: text, plan: text, so_far: text, problem: text, change: text,
            issues: text, protect: &protect, repo: "", edits: EditMode::Diff,
        };
        // Seven parts and three changes, each with fences as long as itself, and the template.
        let most = 3 * (7 * MAX_PART_CHARS + 3 * MAX_CHANGE_CHARS) + MAX_TEMPLATE_BYTES;
        for role in [AgentRole::Coordinator, AgentRole::Planner, AgentRole::Coder, AgentRole::Reviewer] {
            prop_assert!(PromptSet::built_in().render_role_prompt(role, &input).chars().count() <= most);
        }
    }
}
