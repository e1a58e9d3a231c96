//! Asks for ideas outside of any run: about a commit, and ideas that are there already. What a reply brings is `haul`'s
//! business, as in a run; where the ideas go is the caller's.

use crate::conversation::document::Logged;
use crate::conversation::{ForTalk, Said, Talk, Thread};
use crate::counted::Counted;
use crate::drive::Halt;
use crate::haul::{Haul, Request};
use crate::outline::{Sight, outline};
use crate::port::{Agent, AgentError, Ask, Interrupt, PortError, Repo, Role};
use crate::prompt::section::{list, plain, quoted};
use crate::prompt::{ForIdeas, Prompts, listed};
use jiff::Timestamp;
use std::collections::BTreeSet;
use treebeam_core::bill::Bills;
use treebeam_core::conversation::{Continuation, Conversation, Mode};
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
/// The most turns that a conversation is handed on with, the newest.
const MOST_TURNS: usize = 1000;

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
    pub edition: u64,
    /// What was said before.
    pub before: &'a Before,
}

/// The conversation that the questions go on from, and how they do.
#[derive(Debug)]
pub struct Before {
    /// How whoever is asked comes to know of it.
    pub mode: Mode,
    /// The most turns that are told again word by word.
    pub window: usize,
    /// The most characters of all that is told again.
    pub max_chars: usize,
    /// The conversation; one without turns where nothing was said.
    pub conversation: Conversation,
    /// When it goes on.
    pub at: Timestamp,
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
    /// Why nobody is asked any more.
    pub end: End,
    /// The conversation with what was said now; none where nobody is to remember it.
    pub conversation: Option<Conversation>,
    /// The turns that are new in it.
    pub said: Vec<Logged>,
}

/// Why nobody is asked any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// There is as much as was wanted.
    Enough,
    /// No more came, and why.
    TooFew(String),
    /// A budget does not allow another question.
    OverBudget(String),
}

impl End {
    /// Why fewer came than were wanted.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Enough => None,
            Self::TooFew(why) | Self::OverBudget(why) => Some(why),
        }
    }
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
    let pack = pack(wanted) + &listed(&ports.prompts.listed);
    let repo = shown(wanted, &pack, ports)?;
    let agent = Counted::new(ports.agent, None);
    let seen: BTreeSet<Sha256> =
        wanted.there.iter().map(|known| idea::fingerprint(&known.text)).collect();
    let count = usize::try_from(wanted.count).unwrap_or(usize::MAX);
    let mut haul = Haul::new(count, wanted.scope, seen);
    let brief = wanted.before.brief();
    let mut talk = Talk::alone(&brief, || agent.continues(Role::Ideas));
    let mut table = Table { wanted, pack, repo, name: None, agent: &agent, ports };
    let mut over = None;
    while haul.is_open() && over.is_none() {
        if ports.interrupt.is_asked_for() {
            return Err(AgentError::Interrupted.into());
        }
        over = table.ask(&mut haul, &mut talk)?;
    }
    haul.end();
    let end = match over {
        _ if haul.texts.len() >= count => End::Enough,
        Some(why) => End::OverBudget(why),
        None => End::TooFew(haul.why()),
    };
    let (conversation, said) = talk.end();
    let conversation = wanted.before.handed_on(conversation);
    let ideas = haul.texts.into_iter().map(|(_, text)| text).collect();
    let (repeats, turns, bills) = (haul.repeats, haul.turns, agent.bills());
    Ok(Brought { ideas, repeats, turns, bills, end, conversation, said })
}

impl Before {
    fn brief(&self) -> ForTalk {
        ForTalk {
            mode: self.mode,
            window: self.window,
            max_chars: self.max_chars,
            summary_agent: None,
            own: Thread::alone(self.conversation.clone()),
            parent: None,
            at: self.at,
        }
    }

    /// A conversation as it is kept: what is never told again is not in it.
    #[must_use]
    pub fn handed_on(&self, mut conversation: Conversation) -> Option<Conversation> {
        if self.mode == Mode::Off {
            return None;
        }
        let older = conversation.turns.len().saturating_sub(MOST_TURNS);
        conversation.turns.drain(..older);
        for text in conversation.turns.iter_mut().filter_map(|past| past.text.as_mut()) {
            if let Some((end, _)) = text.char_indices().nth(self.max_chars) {
                text.truncate(end);
            }
        }
        Some(conversation)
    }
}

/// Where questions are asked.
struct Table<'a> {
    wanted: &'a Wanted<'a>,
    pack: String,
    /// What is shown of the repository.
    repo: String,
    /// How the names of all questions begin; it follows from the first one.
    name: Option<String>,
    agent: &'a Counted<'a>,
    ports: Ports<'a>,
}

impl Table<'_> {
    /// One more turn, unless a budget stops it, and why.
    fn ask(&mut self, haul: &mut Haul, talk: &mut Talk<'_>) -> Result<Option<String>, Halt> {
        let request = haul.request();
        let (mut told, mut again) = (talk.told(), "");
        let (key, prompt, answered) = loop {
            let prompt = self.prompt(&request, &told.memory);
            let name = self.named(&prompt, told.continues.as_ref());
            let key = format!("{name}-a{}{again}", haul.turns + 1);
            match self.agent.ask(ask(&key, &prompt, haul.turns, told.continues.clone())) {
                Err(AgentError::Forgotten(why)) if told.continues.is_some() => {
                    talk.forgot(&why);
                    (told, again) = (talk.told(), "-replay");
                }
                answered => break (key, prompt, answered),
            }
        };
        let asked = u32::try_from(request.count).unwrap_or(u32::MAX);
        let said = |reply, ideas| Said { key: &key, asked, prompt: &prompt, reply, ideas };
        let reply = match answered {
            Ok(reply) => reply,
            Err(AgentError::Unanswered(why) | AgentError::OutOfTime(why)) => {
                haul.miss(why);
                talk.say(&told, &said(None, &[]));
                return Ok(None);
            }
            Err(AgentError::OverBudget { why, .. }) => return Ok(Some(why)),
            Err(error) => return Err(error.into()),
        };
        let before = haul.texts.len();
        haul.hear(&reply.text, &format!(".treebeam/calls/{key}.json"));
        let new = haul.texts.iter().skip(before).map(|(_, text)| text.clone());
        talk.say(&told, &said(Some(&reply), &new.collect::<Vec<_>>()));
        Ok(None)
    }

    fn prompt(&self, request: &Request, memory: &str) -> String {
        let (pack, repo, protect) = (&self.pack, &self.repo, self.wanted.protect);
        self.ports.prompts.ideas(&ForIdeas { pack, request, protect, repo, memory })
    }

    fn named(&mut self, prompt: &str, continues: Option<&Continuation>) -> &str {
        let edition = self.wanted.edition;
        self.name.get_or_insert_with(|| named(prompt, continues, edition))
    }
}

fn ask(key: &str, prompt: &str, round: u32, continues: Option<Continuation>) -> Ask {
    Ask {
        key: key.to_owned(),
        role: Role::Ideas,
        prompt: prompt.into(),
        round,
        place: Place::Node(NodeId::ROOT),
        node: NodeId::ROOT,
        continues,
        within: None,
        until: None,
    }
}

/// A question's name follows from what is asked, so that nobody pays for the same twice.
fn named(prompt: &str, continues: Option<&Continuation>, edition: u64) -> String {
    let before = continues.map_or("", |from| &from.id);
    let digest = Sha256::of(format!("{edition}\0{before}\0{prompt}").as_bytes()).to_string();
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
    use treebeam_core::conversation::{Past, pack as pack_of};
    use treebeam_core::id::TurnId;

    fn before(turns: Vec<Past>) -> Before {
        let conversation = Conversation { node_id: NodeId::ROOT, fork_from_turn_id: None, turns };
        let (mode, at) = (Mode::Replay, Timestamp::UNIX_EPOCH);
        Before { mode, window: 12, max_chars: 100, conversation, at }
    }

    /// However long it gets, it can be read again, and is told the same as before.
    #[test]
    fn what_is_handed_on_is_bounded() {
        let turn = |number| Past {
            turn_id: TurnId { node: NodeId::ROOT, number },
            in_short: "short".to_owned(),
            text: Some("ü".repeat(1000)),
            continuation: None,
        };
        let before = before((1..=1002).map(turn).collect());
        let kept = before.handed_on(before.conversation.clone()).expect("a conversation");
        assert_eq!(kept.turns.len(), MOST_TURNS);
        assert_eq!(kept.turns.first().map(|past| past.turn_id.number), Some(3));
        assert!(kept.turns.iter().all(|past| past.text == Some("ü".repeat(100))));
        let told = |turns: &[Past]| pack_of(turns, before.window, before.max_chars);
        assert_eq!(told(&kept.turns), told(&before.conversation.turns));
        let off = Before { mode: Mode::Off, ..before };
        assert_eq!(off.handed_on(off.conversation.clone()), None);
    }

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
            before: &before(Vec::new()),
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
        let from = Continuation { id: "r-1".to_owned(), tokens: 1, taken: None };
        assert_eq!(named("a", None, 0), named("a", None, 0));
        assert_ne!(named("a", None, 0), named("b", None, 0));
        assert_ne!(named("a", None, 0), named("a", None, 1));
        assert_ne!(named("a", None, 0), named("a", Some(&from), 0));
        assert_eq!(named("a", None, 0).len(), "ideas-".len() + DIGITS);
    }
}
