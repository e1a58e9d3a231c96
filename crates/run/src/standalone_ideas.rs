//! Asks for ideas outside of any run: about a commit, given the existing ideas.
//! [`mod@crate::idea_batch`] evaluates the replies, as in a run; the caller stores the ideas.

use crate::conversation::document::LoggedTurn;
use crate::conversation::{
    ConversationBrief, ConversationSession, ConversationThread, TurnExchange,
};
use crate::error::RunHalt;
use crate::idea_batch::{IdeaBatch, IdeaRequest};
use crate::metered_agent::MeteredAgent;
use crate::outline::{OutlineInput, render_outline};
use crate::port::{Agent, AgentError, AgentRequest, AgentRole, Interrupt, PortError, Repo};
use crate::prompt::{IdeaPromptInput, PromptSet, render_listed_files};
use crate::section::{bullet_list, plain_section, quoted_section};
use jiff::Timestamp;
use std::collections::BTreeSet;
use treebeam_core::bill::RoleBills;
use treebeam_core::conversation::{Continuation, Conversation, ConversationMode};
use treebeam_core::event::RepeatedIdea;
use treebeam_core::id::{CodePlace, Commit, NodeId, Sha256};
use treebeam_core::idea;
use treebeam_core::policy::DedupeScope;

/// Limits of a prompt's text about existing ideas, in characters: for ideas in full, for titles of
/// others, for the user's additions.
const MAX_FULL_IDEA_CHARS: usize = 16_000;
const MAX_TITLE_LIST_CHARS: usize = 16_000;
const MAX_ADDED_CHARS: usize = 16_000;
/// Number of hex digits of a digest in the name of a question.
const KEY_DIGEST_DIGITS: usize = 24;
/// Largest number of turns in a conversation that is handed on, the newest.
const MAX_KEPT_TURNS: usize = 1000;

/// A request for ideas outside of a run.
#[derive(Debug)]
pub struct StandaloneRequest<'a> {
    /// Number of new ideas.
    pub count: u32,
    /// Scope in which repeats are looked for among the existing ideas, if at all.
    pub scope: DedupeScope,
    /// Commit of the code.
    pub commit: &'a Commit,
    /// Existing ideas that are shown and must not be repeated, the newest last.
    pub existing: &'a [ExistingIdea],
    /// Additional text of the user's for the prompt.
    pub added: Option<&'a str>,
    /// Globs of protected paths.
    pub protect: &'a [String],
    /// The commands that measure the code.
    pub commands: &'a [String],
    /// Number that makes a question new: the same question is answered from disk.
    pub edition: u64,
    /// Earlier turns.
    pub history: &'a PriorConversation,
}

/// The conversation that the questions continue, and how they do.
#[derive(Debug)]
pub struct PriorConversation {
    /// How the agent gets to know the earlier turns.
    pub mode: ConversationMode,
    /// Largest number of turns that are repeated verbatim.
    pub window: usize,
    /// Largest number of characters of all that is repeated.
    pub max_chars: usize,
    /// Conversation so far, possibly without turns.
    pub conversation: Conversation,
    /// Time of the new turns.
    pub at: Timestamp,
}

/// An existing idea.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingIdea {
    /// File name for the prompt.
    pub name: String,
    /// Text of the idea.
    pub text: String,
}

/// The result of asking for ideas outside of a run.
#[derive(Debug)]
pub struct StandaloneIdeas {
    /// New ideas.
    pub ideas: Vec<String>,
    /// Proposed ideas that existed already.
    pub repeats: Vec<RepeatedIdea>,
    /// Number of turns.
    pub turns: u32,
    /// Bills of the answers.
    pub bills: RoleBills,
    /// Reason for the end of asking.
    pub end: ProposalEnd,
    /// Conversation with the new turns; `None` if its mode is off.
    pub conversation: Option<Conversation>,
    /// Turns that are new in the conversation.
    pub new_turns: Vec<LoggedTurn>,
}

/// The reason for the end of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalEnd {
    /// The wanted number of ideas is there.
    Enough,
    /// No more ideas came, for this reason.
    TooFew(String),
    /// A budget does not allow another question.
    OverBudget(String),
}

impl ProposalEnd {
    /// Returns the reason why fewer ideas came than were wanted.
    #[must_use]
    pub fn shortfall_reason(&self) -> Option<&str> {
        match self {
            Self::Enough => None,
            Self::TooFew(why) | Self::OverBudget(why) => Some(why),
        }
    }
}

/// The ports that asking for ideas needs.
#[derive(Clone, Copy)]
pub struct StandalonePorts<'a> {
    /// The user's repository.
    pub repo: &'a dyn Repo,
    /// The agents that answer.
    pub agent: &'a dyn Agent,
    /// Requests to stop.
    pub interrupt: &'a dyn Interrupt,
    /// The prompts of all roles.
    pub prompts: &'a PromptSet,
}

/// Asks for ideas until there are enough, or no more can be expected.
///
/// # Errors
/// When the repository cannot be read, no agent can be asked, or the user wants to stop.
pub fn propose_standalone(
    wanted: &StandaloneRequest<'_>,
    ports: StandalonePorts<'_>,
) -> Result<StandaloneIdeas, RunHalt> {
    let pack = render_standalone_pack(wanted) + &render_listed_files(&ports.prompts.listed_files);
    let repo = repository_outline(wanted, &pack, ports)?;
    let agent = MeteredAgent::new(ports.agent, None);
    let seen: BTreeSet<Sha256> =
        wanted.existing.iter().map(|known| idea::idea_fingerprint(&known.text)).collect();
    let count = usize::try_from(wanted.count).unwrap_or(usize::MAX);
    let mut batch = IdeaBatch::new(count, wanted.scope, seen);
    let brief = wanted.history.conversation_brief();
    let mut talk = ConversationSession::from_brief(&brief, || agent.can_continue(AgentRole::Ideas));
    let mut table = StandaloneSession { wanted, pack, repo, name: None, agent: &agent, ports };
    let mut over = None;
    while batch.is_open() && over.is_none() {
        if ports.interrupt.is_asked_for() {
            return Err(AgentError::Interrupted.into());
        }
        over = table.ask_turn(&mut batch, &mut talk)?;
    }
    batch.take_incomplete();
    let end = match over {
        _ if batch.texts.len() >= count => ProposalEnd::Enough,
        Some(why) => ProposalEnd::OverBudget(why),
        None => ProposalEnd::TooFew(batch.shortfall_reason()),
    };
    let (conversation, said) = talk.into_conversation();
    let conversation = wanted.history.trim_conversation(conversation);
    let ideas = batch.texts.into_iter().map(|(_, text)| text).collect();
    let (repeats, turns, bills) = (batch.repeats, batch.turns, agent.bills());
    Ok(StandaloneIdeas { ideas, repeats, turns, bills, end, conversation, new_turns: said })
}

impl PriorConversation {
    fn conversation_brief(&self) -> ConversationBrief {
        ConversationBrief {
            mode: self.mode,
            window: self.window,
            max_chars: self.max_chars,
            summary_agent: None,
            own: ConversationThread::from_conversation(self.conversation.clone()),
            parent: None,
            at: self.at,
        }
    }

    /// Removes turns and texts that are never repeated; `None` if the conversation is off.
    #[must_use]
    pub fn trim_conversation(&self, mut conversation: Conversation) -> Option<Conversation> {
        if self.mode == ConversationMode::Off {
            return None;
        }
        let older = conversation.turns.len().saturating_sub(MAX_KEPT_TURNS);
        conversation.turns.drain(..older);
        for text in conversation.turns.iter_mut().filter_map(|past| past.text.as_mut()) {
            if let Some((end, _)) = text.char_indices().nth(self.max_chars) {
                text.truncate(end);
            }
        }
        Some(conversation)
    }
}

/// The shared data of all turns.
struct StandaloneSession<'a> {
    wanted: &'a StandaloneRequest<'a>,
    pack: String,
    /// Outline of the repository.
    repo: String,
    /// Common prefix of all questions' names, derived from the first question.
    name: Option<String>,
    agent: &'a MeteredAgent<'a>,
    ports: StandalonePorts<'a>,
}

impl StandaloneSession<'_> {
    /// Asks one more turn; returns the reason if a budget stops it.
    fn ask_turn(
        &mut self,
        batch: &mut IdeaBatch,
        talk: &mut ConversationSession<'_>,
    ) -> Result<Option<String>, RunHalt> {
        let request = batch.next_request();
        let (mut turn_context, mut again) = (talk.turn_context(), "");
        let (key, prompt, answered) = loop {
            let prompt = self.render_prompt(&request, &turn_context.memory);
            let name = self.key_prefix(&prompt, turn_context.continues.as_ref());
            let key = format!("{name}-a{}{again}", batch.turns + 1);
            match self.agent.ask(build_request(
                &key,
                &prompt,
                batch.turns,
                turn_context.continues.clone(),
            )) {
                Err(AgentError::Forgotten(why)) if turn_context.continues.is_some() => {
                    talk.drop_provider_memory(&why);
                    (turn_context, again) = (talk.turn_context(), "-replay");
                }
                answered => break (key, prompt, answered),
            }
        };
        let asked = u32::try_from(request.count).unwrap_or(u32::MAX);
        let exchange =
            |reply, ideas| TurnExchange { key: &key, asked, prompt: &prompt, reply, ideas };
        let reply = match answered {
            Ok(reply) => reply,
            Err(AgentError::Unanswered(why) | AgentError::OutOfTime(why)) => {
                batch.add_missed_turn(why);
                talk.record_turn(&turn_context, &exchange(None, &[]));
                return Ok(None);
            }
            Err(AgentError::OverBudget { why, .. }) => return Ok(Some(why)),
            Err(error) => return Err(error.into()),
        };
        let before = batch.texts.len();
        batch.add_reply(&reply.text, &format!(".treebeam/calls/{key}.json"));
        let new = batch.texts.iter().skip(before).map(|(_, text)| text.clone());
        talk.record_turn(&turn_context, &exchange(Some(&reply), &new.collect::<Vec<_>>()));
        Ok(None)
    }

    fn render_prompt(&self, request: &IdeaRequest, memory: &str) -> String {
        let (pack, repo, protect) = (&self.pack, &self.repo, self.wanted.protect);
        self.ports.prompts.render_ideas_prompt(&IdeaPromptInput {
            pack,
            request,
            protect,
            repo,
            memory,
        })
    }

    fn key_prefix(&mut self, prompt: &str, continues: Option<&Continuation>) -> &str {
        let edition = self.wanted.edition;
        self.name.get_or_insert_with(|| derive_key_prefix(prompt, continues, edition))
    }
}

fn build_request(
    key: &str,
    prompt: &str,
    round: u32,
    continues: Option<Continuation>,
) -> AgentRequest {
    AgentRequest {
        key: key.to_owned(),
        role: AgentRole::Ideas,
        prompt: prompt.into(),
        round,
        place: CodePlace::Node(NodeId::ROOT),
        node: NodeId::ROOT,
        continues,
        within: None,
        until: None,
    }
}

/// Derives a question's name from its content: the same question is never paid for twice.
fn derive_key_prefix(prompt: &str, continues: Option<&Continuation>, edition: u64) -> String {
    let before = continues.map_or("", |from| &from.id);
    let digest =
        Sha256::hash_bytes(format!("{edition}\0{before}\0{prompt}").as_bytes()).to_string();
    let digits: String = digest.chars().take(KEY_DIGEST_DIGITS).collect();
    format!("ideas-{digits}")
}

/// Renders the outline of the repository.
fn repository_outline(
    wanted: &StandaloneRequest<'_>,
    pack: &str,
    ports: StandalonePorts<'_>,
) -> Result<String, PortError> {
    let StandaloneRequest { commit, commands, .. } = wanted;
    let sight = OutlineInput { root: commit, commit, texts: vec![pack], commands };
    let context = &ports.prompts.for_role(AgentRole::Ideas).context;
    render_outline(ports.repo, context, ports.prompts.context_max_chars, &sight)
}

/// Renders the existing ideas and the user's additions. If there are too many ideas, the newest are
/// shown in full, and as many others as there is room for by their titles.
fn render_standalone_pack(wanted: &StandaloneRequest<'_>) -> String {
    let mut room = MAX_FULL_IDEA_CHARS;
    let fits = |known: &&ExistingIdea| {
        let length = known.text.chars().count();
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    let full = wanted.existing.iter().rev().take_while(fits).count();
    let (short, full) = wanted.existing.split_at(wanted.existing.len() - full);
    let mut room = MAX_TITLE_LIST_CHARS;
    let mut titles: Vec<String> = short
        .iter()
        .rev()
        .map(|known| format!("{}: {}", known.name, idea::idea_title(&known.text)))
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
        text.push_str(&format!(
            "\n{}",
            plain_section(head, &bullet_list(&titles), MAX_TITLE_LIST_CHARS)
        ));
    }
    for known in full {
        let head = format!("IDEA THAT IS THERE ALREADY: {}", known.name);
        text.push_str(&format!("\n{}", quoted_section(&head, &known.text, MAX_FULL_IDEA_CHARS)));
    }
    if let Some(added) = wanted.added {
        text.push_str(&format!(
            "\n{}",
            quoted_section("WHAT IS KNOWN OF THE BASELINE", added, MAX_ADDED_CHARS)
        ));
    }
    let constraints = [
        "one self-contained change per idea, implementable as a patch".to_owned(),
        "the sweep's grid of configurations stays as it is".to_owned(),
        format!("do not touch: {}", wanted.protect.join(", ")),
    ];
    text.push_str(&format!(
        "\n{}",
        plain_section("CONSTRAINTS", &bullet_list(&constraints), MAX_ADDED_CHARS)
    ));
    let files = wanted.existing.iter().rev().take(full.len() + titles.len());
    let mut files: Vec<String> = files
        .map(|known| format!("{} sha256 {}", known.name, Sha256::hash_bytes(known.text.as_bytes())))
        .collect();
    files.reverse();
    text.push_str(&format!(
        "\n{}",
        plain_section("IDEA FILES", &bullet_list(&files), MAX_TITLE_LIST_CHARS)
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use treebeam_core::conversation::{PastTurn, pack_turns as pack_of};
    use treebeam_core::id::TurnId;

    fn before(turns: Vec<PastTurn>) -> PriorConversation {
        let conversation = Conversation { node_id: NodeId::ROOT, fork_from_turn_id: None, turns };
        let (mode, at) = (ConversationMode::Replay, Timestamp::UNIX_EPOCH);
        PriorConversation { mode, window: 12, max_chars: 100, conversation, at }
    }

    /// A conversation of any length can be read again, and repeats the same as before.
    #[test]
    fn what_is_handed_on_is_bounded() {
        let turn = |number| PastTurn {
            turn_id: TurnId { node: NodeId::ROOT, number },
            in_short: "short".to_owned(),
            text: Some("ü".repeat(1000)),
            continuation: None,
        };
        let before = before((1..=1002).map(turn).collect());
        let kept = before.trim_conversation(before.conversation.clone()).expect("a conversation");
        assert_eq!(kept.turns.len(), MAX_KEPT_TURNS);
        assert_eq!(kept.turns.first().map(|past| past.turn_id.number), Some(3));
        assert!(kept.turns.iter().all(|past| past.text == Some("ü".repeat(100))));
        let pack = |turns: &[PastTurn]| pack_of(turns, before.window, before.max_chars);
        assert_eq!(pack(&kept.turns), pack(&before.conversation.turns));
        let off = PriorConversation { mode: ConversationMode::Off, ..before };
        assert_eq!(off.trim_conversation(off.conversation.clone()), None);
    }

    fn packed(there: &[ExistingIdea], added: Option<&str>) -> String {
        let commit = "1".repeat(40).parse().expect("a commit");
        render_standalone_pack(&StandaloneRequest {
            count: 3,
            scope: DedupeScope::NodePlusAncestors,
            commit: &commit,
            existing: there,
            added,
            protect: &["eval/**".to_owned()],
            commands: &[],
            edition: 0,
            history: &before(Vec::new()),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn whatever_is_there_the_pack_is_bounded_and_the_newest_is_in_it(
            line in "(a|ü|\n|`){1,200}", count in 0_usize..400, times in 1_usize..60,
        ) {
            let there: Vec<ExistingIdea> = (0..count)
                .map(|n| ExistingIdea { name: format!("{n:03}_x.md"), text: format!("IDEA: {n}\n{}", line.repeat(times)) })
                .collect();
            let text = packed(&there, Some(&line.repeat(times)));
            // Each quoted part may have fences as long as itself.
            prop_assert!(text.chars().count() <= 3 * MAX_FULL_IDEA_CHARS + 3 * MAX_ADDED_CHARS + 3 * MAX_TITLE_LIST_CHARS + 400 * 100);
            prop_assert_eq!(&text, &packed(&there, Some(&line.repeat(times))));
            if let Some(last) = there.last() {
                prop_assert!(text.contains(&last.name));
            }
        }
    }

    #[test]
    fn a_question_is_named_by_what_it_asks() {
        let from = Continuation { id: "r-1".to_owned(), tokens: 1, taken: None };
        assert_eq!(derive_key_prefix("a", None, 0), derive_key_prefix("a", None, 0));
        assert_ne!(derive_key_prefix("a", None, 0), derive_key_prefix("b", None, 0));
        assert_ne!(derive_key_prefix("a", None, 0), derive_key_prefix("a", None, 1));
        assert_ne!(derive_key_prefix("a", None, 0), derive_key_prefix("a", Some(&from), 0));
        assert_eq!(derive_key_prefix("a", None, 0).len(), "ideas-".len() + KEY_DIGEST_DIGITS);
    }
}
