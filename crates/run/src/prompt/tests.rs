//! The built-in prompts as agents get them, their limits, and the page that documents the placeholders.

use super::*;
use proptest::prelude::*;
use treebeam_core::event::{EvalStage, Failure, FailureKind};

const PROTECT: [&str; 2] = ["treebeam.toml", "eval/**"];

fn protect() -> Vec<String> {
    PROTECT.map(str::to_owned).into()
}

/// The built-in prompt of a role, with all that there can be to say.
fn whole(role: Role, edits: Edits) -> String {
    let protect = protect();
    let repo = quoted("FILE model.py", "def model():\n    return '```'\n", 1000);
    if role == Role::Ideas {
        let repeated = vec!["Widen the window".to_owned()];
        let incomplete = vec!["Narrow it: it lacks `RATIONALE:`".to_owned()];
        let request = Request { count: 3, repeated, incomplete };
        let pack = "NODE n0001\n\n=== CHANGED SINCE THE ROOT ===\n model.py | 2 +-\n";
        let matter =
            ForIdeas { pack, request: &request, protect: &protect, repo: &repo, memory: "" };
        return Prompts::built_in().ideas(&matter);
    }
    let message = "sweep exited 1:\nNameError: window".to_owned();
    let failures = [Failure { stage: EvalStage::Sweep, kind: FailureKind::Sweep, message }];
    let matter = Matter {
        idea: "IDEA: Use {{plan}} of `model.py`\nREQUIRED_CHANGES:\n- model.py: a wider window\n",
        earlier: Earlier { failures: &failures, change: Some("--- a/model.py\n+++ b/model.py\n") },
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
    Prompts::built_in().about(role, &matter)
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
    for role in Role::ALL {
        Template::parse(role, built_in(role)).unwrap_or_else(|error| panic!("{role}: {error}"));
        snapshot!(role.name(), whole(role, Edits::Diff));
    }
    let edits = whole(Role::Coder, Edits::InPlace);
    assert!(edits.contains("Edit the files in this folder yourself"), "{edits}");
    assert!(!edits.contains("git apply") && !edits.contains("NEXT DIFF"), "{edits}");
}

#[test]
fn what_is_not_there_leaves_no_trace() {
    let prompts = Prompts::built_in();
    for role in Role::ALL {
        let prompt = match role {
            Role::Ideas => {
                let (pack, repo) = ("NODE n0000\n", "");
                let request = Request { count: 1, repeated: Vec::new(), incomplete: Vec::new() };
                prompts.ideas(&ForIdeas { pack, request: &request, protect: &[], repo, memory: "" })
            }
            Role::Coordinator | Role::Planner | Role::Coder | Role::Reviewer => {
                prompts.about(role, &Matter { idea: "IDEA: x", ..Matter::default() })
            }
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

/// So that the page cannot go stale.
#[test]
fn every_placeholder_is_documented() {
    let page = include_str!("../../../../docs/prompts.md");
    for one in Placeholder::ALL {
        let roles = |holds: &dyn Fn(Role) -> bool| {
            let names: Vec<String> = Role::ALL
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
            Form::Word => "word",
            Form::Paragraph => "paragraph",
            Form::Section => "section",
        };
        let (may, must) = (roles(&|role| one.is_for(role)), roles(&|role| one.is_needed(role)));
        let row = format!("| `{one}` | {form} | {} | {may} | {must} |", one.about());
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
        let failures = [Failure { stage, kind, message }];
        let matter = Matter {
            idea: &long, earlier: Earlier { failures: &failures, change: text }, notes: text, plan: text, so_far: text, problem: text, change: text,
            issues: text, protect: &protect, repo: "", edits: Edits::Diff,
        };
        // Seven parts of any kind and three changes, each with fences as long as itself, and the template.
        let most = 3 * (7 * PART_CHARS + 3 * CHANGE_CHARS) + MOST_BYTES;
        for role in [Role::Coordinator, Role::Planner, Role::Coder, Role::Reviewer] {
            prop_assert!(Prompts::built_in().about(role, &matter).chars().count() <= most);
        }
    }
}
