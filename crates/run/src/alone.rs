//! Asks for ideas outside of any run: about a commit, and ideas that are there already. What a reply brings is `haul`'s
//! business, as in a run; where the ideas go is the caller's.

use crate::counted::Counted;
use crate::drive::Halt;
use crate::haul::Haul;
use crate::outline::{Sight, outline};
use crate::port::{Agent, AgentError, Ask, Interrupt, PortError, Repo, Role};
use crate::prompt::section::{list, plain, quoted};
use crate::prompt::{ForIdeas, Prompts};
use std::collections::BTreeSet;
use treebeam_core::bill::Bills;
use treebeam_core::event::Repeat;
use treebeam_core::id::{Commit, NodeId, Place, Sha256};
use treebeam_core::idea;
use treebeam_core::policy::DedupeScope;

/// The most that is told of what there is, in characters: of ideas in full, of all others by title, of what the user adds.
const FULL_CHARS: usize = 16_000;
const TITLE_CHARS: usize = 16_000;
const ADDED_CHARS: usize = 16_000;
/// How many digits of a digest name a question.
const DIGITS: usize = 24;

/// What is asked for.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// How many new ideas.
    pub count: u32,
    /// Where repeats are looked for, if at all: among those that are there.
    pub scope: DedupeScope,
    /// The code that they are about.
    pub commit: &'a Commit,
    /// Ideas that are told and not wanted again, the newest last.
    pub there: &'a [Known],
    /// What else the user wants to be told.
    pub added: Option<&'a str>,
    /// Globs of what may not be touched.
    pub protect: &'a [String],
    /// What measures the code.
    pub commands: &'a [String],
    /// Tells this time from those before it: the same question is answered from disk.
    pub edition: usize,
}

/// An idea that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its file, as it is told.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What came.
#[derive(Debug)]
pub struct Brought {
    /// New ideas.
    pub ideas: Vec<String>,
    /// What was proposed, and was there.
    pub repeats: Vec<Repeat>,
    /// How often somebody was asked.
    pub turns: u32,
    /// What the answers took.
    pub bills: Bills,
    /// Why no more came, where fewer came than were wanted.
    pub why: Option<String>,
}

/// The ports that are needed.
#[derive(Clone, Copy)]
pub struct Ports<'a> {
    /// The user's repository.
    pub repo: &'a dyn Repo,
    /// Who answers.
    pub agent: &'a dyn Agent,
    /// Whether to go on.
    pub interrupt: &'a dyn Interrupt,
    /// What is said.
    pub prompts: &'a Prompts,
}

/// Asks until there are enough, or it is of no use.
///
/// # Errors
/// When the repository cannot be read, nobody can be asked, or somebody wants to stop.
pub fn propose(wanted: &Wanted<'_>, ports: Ports<'_>) -> Result<Brought, Halt> {
    let pack = pack(wanted);
    let repo = shown(wanted, &pack, ports)?;
    let agent = Counted::new(ports.agent, None);
    let seen: BTreeSet<Sha256> =
        wanted.there.iter().map(|known| idea::fingerprint(&known.text)).collect();
    let count = usize::try_from(wanted.count).unwrap_or(usize::MAX);
    let mut haul = Haul::new(count, wanted.scope, seen);
    let mut over = None;
    let mut name = None;
    while haul.is_open() && over.is_none() {
        if ports.interrupt.is_asked_for() {
            return Err(AgentError::Interrupted.into());
        }
        let (request, protect) = (haul.request(), wanted.protect);
        let matter = ForIdeas { pack: &pack, request: &request, protect, repo: &repo, memory: "" };
        let prompt = ports.prompts.ideas(&matter);
        let name = name.get_or_insert_with(|| named(&prompt, wanted.edition));
        over = ask(&format!("{name}-a{}", haul.turns + 1), prompt, &mut haul, &agent)?;
    }
    haul.end();
    let why = (haul.texts.len() < count).then(|| over.unwrap_or_else(|| haul.why()));
    let ideas = haul.texts.into_iter().map(|(_, text)| text).collect();
    Ok(Brought { ideas, repeats: haul.repeats, turns: haul.turns, bills: agent.bills(), why })
}

/// One more turn, unless a budget stops it, and why.
fn ask(
    key: &str,
    prompt: String,
    haul: &mut Haul,
    agent: &Counted<'_>,
) -> Result<Option<String>, Halt> {
    let ask = Ask {
        key: key.to_owned(),
        role: Role::Ideas,
        prompt,
        round: haul.turns,
        place: Place::Node(NodeId::ROOT),
        node: NodeId::ROOT,
        continues: None,
        within: None,
    };
    match agent.ask(ask) {
        Ok(reply) => haul.hear(&reply.text, &format!(".treebeam/calls/{key}.json")),
        Err(AgentError::Unanswered(why) | AgentError::OutOfTime(why)) => haul.miss(why),
        Err(AgentError::OverBudget { why, .. }) => return Ok(Some(why)),
        Err(error) => return Err(error.into()),
    }
    Ok(None)
}

/// A question's name follows from what is asked, so that nobody pays for the same twice.
fn named(prompt: &str, edition: usize) -> String {
    let digest = Sha256::of(format!("{edition}\0{prompt}").as_bytes()).to_string();
    let digits: String = digest.chars().take(DIGITS).collect();
    format!("ideas-{digits}")
}

/// What is told of the code.
fn shown(wanted: &Wanted<'_>, pack: &str, ports: Ports<'_>) -> Result<String, PortError> {
    let Wanted { commit, commands, .. } = wanted;
    let sight = Sight { root: commit, commit, said: vec![pack], commands };
    let context = &ports.prompts.of(Role::Ideas).context;
    outline(ports.repo, context, ports.prompts.context_max_chars, &sight)
}

/// What is told of all else. Where there is too much, the newest ideas are told in full, and as many others as there is room
/// for by their titles.
fn pack(wanted: &Wanted<'_>) -> String {
    let mut room = FULL_CHARS;
    let fits = |known: &&Known| {
        let length = known.text.chars().count();
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    let full = wanted.there.iter().rev().take_while(fits).count();
    let (short, full) = wanted.there.split_at(wanted.there.len() - full);
    let mut room = TITLE_CHARS;
    let mut titles: Vec<String> = short
        .iter()
        .rev()
        .map(|known| format!("{}: {}", known.name, idea::title(&known.text)))
        .take_while(|line| {
            let length = line.chars().count() + "- \n".len();
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        })
        .collect();
    titles.reverse();
    let mut text = String::from("NO RUN: THE CODE AS IT IS\n");
    if !titles.is_empty() {
        let head = "IDEAS THAT ARE THERE ALREADY, BY THEIR TITLES";
        text.push_str(&format!("\n{}", plain(head, &list(&titles), TITLE_CHARS)));
    }
    for known in full {
        let head = format!("IDEA THAT IS THERE ALREADY: {}", known.name);
        text.push_str(&format!("\n{}", quoted(&head, &known.text, FULL_CHARS)));
    }
    if let Some(added) = wanted.added {
        text.push_str(&format!(
            "\n{}",
            quoted("WHAT IS KNOWN OF THE BASELINE", added, ADDED_CHARS)
        ));
    }
    let constraints = [
        "one self-contained change per idea, implementable as a patch".to_owned(),
        "the sweep's grid of configurations stays as it is".to_owned(),
        format!("do not touch: {}", wanted.protect.join(", ")),
    ];
    text.push_str(&format!("\n{}", plain("CONSTRAINTS", &list(&constraints), ADDED_CHARS)));
    let files = wanted.there.iter().rev().take(full.len() + titles.len());
    let mut files: Vec<String> = files
        .map(|known| format!("{} sha256 {}", known.name, Sha256::of(known.text.as_bytes())))
        .collect();
    files.reverse();
    text.push_str(&format!("\n{}", plain("IDEA FILES", &list(&files), TITLE_CHARS)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(there: &[Known], added: Option<&str>) -> String {
        let commit = "1".repeat(40).parse().expect("a commit");
        pack(&Wanted {
            count: 3,
            scope: DedupeScope::NodePlusAncestors,
            commit: &commit,
            there,
            added,
            protect: &["eval/**".to_owned()],
            commands: &[],
            edition: 0,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn whatever_is_there_the_pack_is_bounded_and_the_newest_is_in_it(
            line in "(a|ü|\n|`){1,200}", count in 0_usize..400, times in 1_usize..60,
        ) {
            let there: Vec<Known> = (0..count)
                .map(|n| Known { name: format!("{n:03}_x.md"), text: format!("IDEA: {n}\n{}", line.repeat(times)) })
                .collect();
            let text = packed(&there, Some(&line.repeat(times)));
            // Each quoted part may have fences as long as itself.
            prop_assert!(text.chars().count() <= 3 * FULL_CHARS + 3 * ADDED_CHARS + 3 * TITLE_CHARS + 400 * 100);
            prop_assert_eq!(&text, &packed(&there, Some(&line.repeat(times))));
            if let Some(last) = there.last() {
                prop_assert!(text.contains(&last.name));
            }
        }
    }

    #[test]
    fn a_question_is_named_by_what_it_asks() {
        assert_eq!(named("a", 0), named("a", 0));
        assert_ne!(named("a", 0), named("b", 0));
        assert_ne!(named("a", 0), named("a", 1));
        assert_eq!(named("a", 0).len(), "ideas-".len() + DIGITS);
    }
}
