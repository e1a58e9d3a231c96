//! Agents for all roles: notes, plan, rounds of coder and reviewer, and the effect of verdicts.

#![cfg(test)]

use serde_json::{Value, json};
use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use treebeam_core::event::Approval;
use treebeam_core::facts::{Eval, Stage};
use treebeam_core::id::EvalId;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::port::{Agent, AgentError, AgentReply, AgentRequest, AgentRole, EditMode};
use treebeam_run::{RunPorts, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

const APPROVE: &str = "VERDICT: APPROVE\nISSUES: none\nNOTES: fine\n";

/// The reply of a reviewer in a round, counted from 0.
type Reviewer = fn(u32) -> Result<&'static str, &'static str>;

/// The coder in memory, with agents for all other roles.
struct Crew<'a> {
    world: &'a MemoryWorld,
    reviewer: Reviewer,
    asked: Mutex<Vec<String>>,
}

impl Agent for Crew<'_> {
    fn can_answer(&self, _: AgentRole) -> bool {
        true
    }
    fn edit_mode(&self, _: AgentRole) -> EditMode {
        EditMode::Diff
    }
    fn can_continue(&self, _: AgentRole) -> bool {
        false
    }
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        self.asked.lock().expect("the list").push(ask.key.clone());
        let text = match ask.role {
            AgentRole::Coordinator => "Mind the gap.".to_owned(),
            AgentRole::Planner => "PLAN: 1. change model.py\nRISKS: none".to_owned(),
            AgentRole::Ideas => {
                "IDEA: gain 20 by itself\nRATIONALE: to see\nREQUIRED_CHANGES: all\n".to_owned()
            }
            AgentRole::Coder => return self.world.ask(ask),
            AgentRole::Reviewer => match (self.reviewer)(ask.round) {
                Ok(text) => text.to_owned(),
                Err(why) => return Err(AgentError::Unanswered(why.to_owned())),
            },
        };
        Ok(AgentReply::from_text(text))
    }
}

/// A run of one idea under this reviewer.
fn run(reviewer: Reviewer, reach: &RunLimits) -> (State, MemoryWorld, Vec<String>) {
    let world = MemoryWorld::new(1, 1);
    let meaning = FixedSettings {
        ideas_per_node: NonZeroU32::MIN,
        sweep_config_limit: NonZeroU32::new(4),
        ..FixedSettings::default()
    };
    let crew = Crew { world: &world, reviewer, asked: Mutex::default() };
    let mut journal = MemoryJournal::begun(meaning, RunLimits { max_depth: 1, ..reach.clone() });
    let ports = RunPorts { agent: &crew, ..world.ports() };
    let state = drive_run(journal.state(), ports, &mut journal, &mut |_, _| {}).expect("a run");
    let asked = crew.asked.into_inner().expect("the list");
    (state, world, asked)
}

fn only(state: &State) -> Cow<'_, Eval> {
    state.eval(EvalId::FIRST).expect("an eval")
}

/// The result of the eval: its approval and number of rounds, or the reason of its failure.
fn outcome(state: &State) -> String {
    let eval = only(state);
    match (&eval.stage, eval.candidate()) {
        (Stage::Failed { failure, .. }, _) => format!("{}: {}", failure.kind, failure.message),
        (_, Some(work)) => format!("{:?} in {}", work.approval, work.rounds),
        (other, None) => format!("{other:?}"),
    }
}

#[test]
fn what_comes_of_a_verdict() {
    let proceed = RunLimits { proceed_on_max_review_rounds: true, ..RunLimits::default() };
    let check = |reviewer: Reviewer, reach: &RunLimits, expect: &str| {
        let (state, ..) = run(reviewer, reach);
        assert_eq!(outcome(&state), expect);
    };
    let plain = RunLimits::default();
    check(|_| Ok(APPROVE), &plain, "Approved in 1");
    let late: Reviewer =
        |round| Ok(if round < 2 { "VERDICT: REJECT\nISSUES:\n- it leaks\n" } else { APPROVE });
    check(late, &plain, "Approved in 3");
    check(
        late,
        &RunLimits { max_review_rounds: 1, ..RunLimits::default() },
        "rejected: - it leaks",
    );
    let never: Reviewer = |_| Ok("VERDICT: REJECT\nISSUES:\n- it leaks\n");
    check(never, &plain, "rejected: - it leaks");
    check(never, &proceed, "LetThrough in 3");
    let nothing = "rejected: the review has no line `VERDICT: APPROVE` or `VERDICT: REJECT`";
    check(|_| Ok("Looks good!"), &plain, nothing);
    check(|_| Ok("Looks good!"), &proceed, "LetThrough in 3");
    check(|_| Err("it refuses"), &proceed, "agent: it refuses");
}

#[test]
fn a_candidate_that_was_let_through_is_marked() {
    let reach = RunLimits { proceed_on_max_review_rounds: true, ..RunLimits::default() };
    let (state, ..) = run(|_| Ok("VERDICT: REJECT"), &reach);
    let eval = only(&state);
    let Stage::Decided(measured, word, _) = &eval.stage else { panic!("{:?}", eval.stage) };
    assert_eq!(measured.work.approval, Approval::LetThrough);
    let verdict = word.to_verdict(measured);
    assert!(verdict.checks[0].figures.starts_with("rejected and let through"), "{verdict:?}");
}

#[test]
fn everybody_is_told_what_the_others_said() {
    let (_, world, asked) = run(
        |round| {
            Ok(match round {
                0 => "VERDICT: REJECT\nISSUES:\n- first\n",
                1 => "VERDICT: REJECT\nISSUES:\n- second thoughts\n",
                _ => APPROVE,
            })
        },
        &RunLimits::default(),
    );
    assert_eq!(
        asked,
        [
            "ideas-n0000-x1-a1",
            "coordinator-e0001-a1",
            "planner-e0001-a1",
            "coder-e0001-a1-r0",
            "reviewer-e0001-a1-r0",
            "coder-e0001-a1-r1",
            "reviewer-e0001-a1-r1",
            "coder-e0001-a1-r2",
            "reviewer-e0001-a1-r2",
        ]
    );
    let disk = world.disk();
    let text = |name: &str| {
        let bytes = disk.files.get(&format!("eval/0001/experiment/{name}"));
        String::from_utf8(bytes.unwrap_or_else(|| panic!("no {name}")).clone()).expect("text")
    };
    for (file, parts) in [
        ("coordinator_prompt.txt", vec!["gain 20 by itself", "DO NOT TOUCH"]),
        ("coordinator.md", vec!["Mind the gap."]),
        ("planner_prompt.txt", vec!["Mind the gap.", "PLAN:", "RISKS:"]),
        ("plan.md", vec!["1. change model.py"]),
        ("coder_prompt_round_0.txt", vec!["Mind the gap.", "1. change model.py"]),
        ("coder_prompt_round_1.txt", vec!["- first", "+do gain 20", "IT IS IN PLACE"]),
        ("coder_prompt_round_2.txt", vec!["- second thoughts"]),
        ("reviewer_prompt_round_0.txt", vec!["+do gain 20", "VERDICT: APPROVE or REJECT"]),
        ("reviewer_prompt_round_2.txt", vec!["- first", "raise no others"]),
        ("review_round_2.md", vec!["APPROVE"]),
    ] {
        let text = text(file);
        for part in parts {
            assert!(text.contains(part), "{file} lacks {part:?}:\n{text}");
        }
    }
    assert!(!text("coder_prompt_round_0.txt").contains("SO FAR"));
    assert!(!text("reviewer_prompt_round_0.txt").contains("FIRST REVIEW"));
    // Issues of later reviews are not passed to the next review.
    assert!(!text("reviewer_prompt_round_2.txt").contains("second thoughts"));
}

/// Makes a change, and then gives this answer in every later round.
struct Stubborn<'a> {
    world: &'a MemoryWorld,
    later: &'static str,
    /// The reviewer's reply, where there is one.
    review: Option<&'static str>,
}

/// Possible answers, with the problems that they lead to.
const LATER: [(&str, &str); 2] = [
    (
        "--- a/model.py\n+++ b/model.py\n@@ -1 +1 @@\n-a\n+do never-applies\n",
        "the diff does not apply: it never does",
    ),
    ("I will not.", "diff"),
];

impl Agent for Stubborn<'_> {
    fn can_answer(&self, role: AgentRole) -> bool {
        match role {
            AgentRole::Ideas | AgentRole::Coder => true,
            AgentRole::Reviewer => self.review.is_some(),
            AgentRole::Coordinator | AgentRole::Planner => false,
        }
    }
    fn edit_mode(&self, _: AgentRole) -> EditMode {
        EditMode::Diff
    }
    fn can_continue(&self, _: AgentRole) -> bool {
        false
    }
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        match (ask.role, ask.round, self.review) {
            (AgentRole::Coder, 1.., _) => Ok(AgentReply::from_text(self.later.to_owned())),
            (AgentRole::Reviewer, _, Some(review)) => Ok(AgentReply::from_text(review.to_owned())),
            _ => self.world.ask(ask),
        }
    }
}

/// A run of one idea with such an agent: its result, and the last prompt of the coder.
fn stubborn(agent: &Stubborn<'_>, protect: &[&str], reach: &RunLimits) -> (String, String) {
    let meaning = FixedSettings {
        ideas_per_node: NonZeroU32::MIN,
        sweep_config_limit: NonZeroU32::new(4),
        protect: protect.iter().copied().map(str::to_owned).collect(),
        ..FixedSettings::default()
    };
    let mut journal = MemoryJournal::begun(meaning, RunLimits { max_depth: 1, ..reach.clone() });
    let ports = RunPorts { agent, ..agent.world.ports() };
    let state = drive_run(journal.state(), ports, &mut journal, &mut |_, _| {}).expect("a run");
    let disk = agent.world.disk();
    let prompt = disk.files.get("eval/0001/experiment/coder_prompt_round_2.txt").expect("it");
    (outcome(&state), String::from_utf8_lossy(prompt).into_owned())
}

/// A coder that gives no answer is not asked again in the next round.
#[test]
fn a_coder_without_an_answer_is_asked_once() {
    struct Silent<'a>(&'a MemoryWorld, AtomicU32);
    impl Agent for Silent<'_> {
        fn can_answer(&self, role: AgentRole) -> bool {
            matches!(role, AgentRole::Ideas | AgentRole::Coder)
        }
        fn edit_mode(&self, _: AgentRole) -> EditMode {
            EditMode::InPlace
        }
        fn can_continue(&self, _: AgentRole) -> bool {
            false
        }
        fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
            if ask.role != AgentRole::Coder {
                return self.0.ask(ask);
            }
            self.1.fetch_add(1, Ordering::Relaxed);
            Err(AgentError::Unanswered("it was killed after 600 s".to_owned()))
        }
    }
    let world = MemoryWorld::new(1, 1);
    let agent = Silent(&world, AtomicU32::new(0));
    let meaning = FixedSettings {
        ideas_per_node: NonZeroU32::MIN,
        sweep_config_limit: NonZeroU32::new(4),
        ..FixedSettings::default()
    };
    let mut journal =
        MemoryJournal::begun(meaning, RunLimits { max_depth: 1, ..RunLimits::default() });
    let ports = RunPorts { agent: &agent, ..world.ports() };
    let state = drive_run(journal.state(), ports, &mut journal, &mut |_, _| {}).expect("a run");
    assert_eq!(outcome(&state), "agent: it was killed after 600 s");
    assert_eq!(agent.1.into_inner(), 1);
}

#[test]
fn what_is_protected_stays_the_reason_while_it_stands() {
    for (later, also) in LATER {
        let world = MemoryWorld::new(1, 1);
        let agent = Stubborn { world: &world, later, review: None };
        let (said, prompt) = stubborn(&agent, &["model.py"], &RunLimits::default());
        assert!(said.starts_with("protected: `model.py` is protected; "), "{said}");
        assert!(said.contains(also), "{said}");
        for part in ["`model.py` is protected", also, "IT IS IN PLACE"] {
            assert!(prompt.contains(part), "no {part:?} in {prompt}");
        }
    }
}

#[test]
fn what_the_reviewer_found_stays_the_reason_while_it_stands() {
    let review = Some("VERDICT: REJECT\nISSUES:\n- it leaks\n");
    for (later, also) in LATER {
        let told = |reach: &RunLimits| {
            let world = MemoryWorld::new(1, 1);
            stubborn(&Stubborn { world: &world, later, review }, &[], reach)
        };
        let (said, prompt) = told(&RunLimits::default());
        assert!(said.starts_with("rejected: - it leaks; ") && said.contains(also), "{said}");
        for part in ["- it leaks", also, "IT IS IN PLACE", "+do "] {
            assert!(prompt.contains(part), "no {part:?} in {prompt}");
        }
        let (said, _) =
            told(&RunLimits { proceed_on_max_review_rounds: true, ..RunLimits::default() });
        assert_eq!(said, "LetThrough in 3");
    }
}

/// The summary of the only eval.
fn page(world: &MemoryWorld) -> Value {
    let disk = world.disk();
    let text = disk.files.get("eval/0001/experiment/summary.json").expect("a summary");
    serde_json::from_slice(text).expect("a summary in JSON")
}

#[test]
fn what_became_of_an_eval_is_on_one_page() {
    let late: Reviewer =
        |round| Ok(if round < 1 { "VERDICT: REJECT\nISSUES:\n- it leaks\n" } else { APPROVE });
    let (state, world, _) = run(late, &RunLimits::default());
    let page = page(&world);
    let only = only(&state);
    for (key, expect) in [
        ("status", json!("completed")),
        ("idea", json!("gain 20 by itself")),
        ("idea_sha256", json!(only.idea.sha256)),
        ("attempt_dir", json!("eval/0001/experiment")),
        ("notes", json!("Mind the gap.")),
        ("plan", json!("PLAN: 1. change model.py\nRISKS: none")),
        ("patch_applied", json!(true)),
        ("coder_rounds", json!(2)),
        ("files_changed", json!(1)),
        ("review", json!({ "round": 1, "verdict": "approve", "issues": null })),
        ("approval", json!("approved")),
        ("candidate_commit", json!(only.candidate().map(|work| work.commit))),
        ("error", json!(null)),
    ] {
        assert_eq!(page[key], expect, "{key}");
    }
    assert_eq!(page["llm_usage"]["calls"], 2, "the coder's, who alone says what it took");
    for side in ["scoring_summary", "scoring_summary_root"] {
        assert_eq!(page[side]["recommendation"]["grade"], "mixed", "{page}");
    }
    assert_eq!(page["completeness"]["ok_count"], 4);
    let disk = world.disk();
    assert!(disk.files.contains_key("eval/0001/experiment/candidate.diff"));
}

#[test]
fn the_page_of_an_eval_that_failed_says_how_far_it_got() {
    let never: Reviewer = |_| Ok("VERDICT: REJECT\nISSUES:\n- it leaks\n");
    let (_, world, _) = run(never, &RunLimits::default());
    let rejected = page(&world);
    assert_eq!((&rejected["status"], &rejected["attempt"]), (&json!("failed"), &json!(1)));
    let error = json!({ "stage": "implement", "kind": "rejected", "message": "- it leaks" });
    assert_eq!(rejected["error"], error);
    let review = json!({ "round": 2, "verdict": "reject", "issues": "- it leaks" });
    assert_eq!((&rejected["review"], &rejected["coder_rounds"]), (&review, &json!(3)));
    assert_eq!((&rejected["patch_applied"], &rejected["approval"]), (&json!(true), &json!(null)));
    // The summary is about the last attempt only.
    let reach = RunLimits { eval_retries: 1, max_review_rounds: 0, ..RunLimits::default() };
    let (state, world, _) = run(|_| Err("it refuses"), &reach);
    let refused = page(&world);
    assert_eq!((&refused["attempt"], only(&state).attempt), (&json!(2), 2));
    assert_eq!(refused["attempt_dir"], "eval/0001/experiment/attempt_2");
    assert_eq!(refused["error"]["kind"], "agent");
    assert_eq!((&refused["coder_rounds"], &refused["llm_usage"]["calls"]), (&json!(1), &json!(2)));
}
