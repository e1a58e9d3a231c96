//! A user's own templates through whole runs. Each prompt follows its template, shows the files of
//! the repository, and asks for the form of the answer.

#![cfg(test)]

use std::num::NonZeroU32;
use std::sync::Mutex;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_run::outline::{FileGlob, RepoContext};
use treebeam_run::port::{Agent, AgentError, AgentReply, AgentRequest, AgentRole, EditMode};
use treebeam_run::prompt::{PromptSet, PromptTemplate};
use treebeam_run::{RunPorts, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

/// The agent in memory and a reviewer that rejects once, with their prompts.
struct Listening<'a> {
    world: &'a MemoryWorld,
    edits: EditMode,
    heard: Mutex<Vec<(String, String)>>,
}

impl Agent for Listening<'_> {
    fn can_answer(&self, role: AgentRole) -> bool {
        matches!(role, AgentRole::Ideas | AgentRole::Coder | AgentRole::Reviewer)
    }
    fn edit_mode(&self, role: AgentRole) -> EditMode {
        if role == AgentRole::Coder { self.edits } else { EditMode::Diff }
    }
    fn can_continue(&self, _: AgentRole) -> bool {
        false
    }
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        self.heard.lock().expect("the list").push((ask.key.clone(), ask.prompt.to_string()));
        match (ask.role, ask.round) {
            (AgentRole::Reviewer, 0) => {
                Ok(AgentReply::from_text("VERDICT: REJECT\nISSUES:\n- {{idea}} leaks\n".to_owned()))
            }
            (AgentRole::Reviewer, _) => Ok(AgentReply::from_text("VERDICT: APPROVE\n".to_owned())),
            (AgentRole::Ideas, _) => Ok(AgentReply::from_text(
                "IDEA: gain 20 in model.py {{plan}}\nRATIONALE: to see\nREQUIRED_CHANGES: all\n"
                    .to_owned(),
            )),
            _ => self.world.ask(ask),
        }
    }
}

fn template(role: AgentRole, text: &str) -> PromptTemplate {
    PromptTemplate::parse(role, text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the prompts of a run of one idea.
fn heard(prompts: &PromptSet, edits: EditMode) -> Vec<(String, String)> {
    let world = MemoryWorld::new(1, 1);
    let meaning = FixedSettings {
        ideas_per_node: NonZeroU32::MIN,
        sweep_config_limit: NonZeroU32::new(4),
        protect: vec!["eval/**".to_owned()],
        ..FixedSettings::default()
    };
    let agent = Listening { world: &world, edits, heard: Mutex::default() };
    let mut journal =
        MemoryJournal::begun(meaning, RunLimits { max_depth: 1, ..RunLimits::default() });
    let ports = RunPorts { agent: &agent, prompts, ..world.ports() };
    drive_run(journal.state(), ports, &mut journal, &mut |_, _| {}).expect("a run");
    agent.heard.into_inner().expect("the list")
}

fn of<'a>(heard: &'a [(String, String)], key: &str) -> &'a str {
    let found = heard.iter().find(|(asked, _)| asked == key);
    &found.unwrap_or_else(|| panic!("no {key}")).1
}

#[test]
fn a_users_templates_are_what_is_asked() {
    let mut prompts = PromptSet::built_in().clone();
    prompts.for_role_mut(AgentRole::Coder).template = template(
        AgentRole::Coder,
        "My coder, \\{{idea}}:\n{{answer}}\n{{idea}}\n{{plan}}\n{{protect}}\n{{repo}}\n{{change_so_far}}\n{{problem}}\nThat is all.\n",
    );
    prompts.for_role_mut(AgentRole::Coder).context =
        RepoContext::Files(vec![FileGlob::new("*.py").expect("a glob")]);
    prompts.for_role_mut(AgentRole::Ideas).template = template(
        AgentRole::Ideas,
        "Give {{count}}.\n{{answer}}\n{{memory}}\n{{node}}\n{{repo}}\n{{repeated}}",
    );
    prompts.for_role_mut(AgentRole::Ideas).context = RepoContext::Outline;
    let heard = heard(&prompts, EditMode::Diff);

    let first = of(&heard, "coder-e0001-a1-r0");
    let (before, rest) = first.split_once("=== IDEA ===").expect("an idea");
    assert!(before.starts_with("My coder, {{idea}}:\nAnswer with one unified diff"), "{first}");
    assert_eq!(
        rest,
        "\n```\nIDEA: gain 20 in model.py {{plan}}\nRATIONALE: to see\nREQUIRED_CHANGES: all\n```\n\n=== DO NOT TOUCH ===\n- eval/**\n\n\
         === FILE model.py ===\n```\nthis is model.py\n```\n\nThat is all.\n"
    );
    let second = of(&heard, "coder-e0001-a1-r1");
    assert!(second.contains("FIX IT ===\n```\n- {{idea}} leaks\n```\n\nThat is all."), "{second}");
    assert!(second.contains("YOUR CHANGE SO FAR; IT IS IN PLACE, THE NEXT DIFF COMES ON TOP"));

    let ideas = of(&heard, "ideas-n0000-x1-a1");
    assert!(ideas.starts_with("Give 1.\nWrite each idea as three parts"), "{ideas}");
    assert!(ideas.contains(
        "=== FILES, WITH THEIR SIZES IN BYTES ===\n```\nREADME.md 20\nmodel.py 20\n```\n"
    ));
    // A role without a template of the user's gets the built-in prompt, without files.
    let reviewer = of(&heard, "reviewer-e0001-a1-r0");
    assert!(reviewer.starts_with("Review this change."), "{reviewer}");
    assert!(!reviewer.contains("=== FILE"), "{reviewer}");
}

#[test]
fn a_coder_that_edits_is_told_to_whatever_the_template() {
    let mut prompts = PromptSet::built_in().clone();
    let text = "Mine.\n{{answer}}\n{{idea}}\n{{change_so_far}}\n{{problem}}\n";
    prompts.for_role_mut(AgentRole::Coder).template = template(AgentRole::Coder, text);
    for prompts in [&prompts, PromptSet::built_in()] {
        let heard = heard(prompts, EditMode::InPlace);
        let coder = of(&heard, "coder-e0001-a1-r1");
        assert!(
            coder.contains("Edit the files in this folder yourself, and commit nothing"),
            "{coder}"
        );
        assert!(coder.contains("IT IS IN PLACE ===") && !coder.contains("git apply"), "{coder}");
    }
}

#[test]
fn the_same_run_asks_the_same() {
    let mut prompts = PromptSet::built_in().clone();
    for role in AgentRole::ALL {
        prompts.for_role_mut(role).context = RepoContext::Outline;
    }
    assert_eq!(heard(&prompts, EditMode::Diff), heard(&prompts, EditMode::Diff));
}
