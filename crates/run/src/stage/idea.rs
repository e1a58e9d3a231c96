//! Asks for the ideas of a node or of the control group, and writes their files and the context
//! pack. [`mod@crate::idea_batch`] decides what a reply brings and what is asked for again. Where
//! the user gave the ideas, no agent is asked.

use crate::brief::IdeaBrief;
use crate::conversation::{ConversationSession, TurnContext, TurnExchange, ask_for_summary};
use crate::error::RunHalt;
use crate::idea_batch::{IdeaBatch, IdeaRequest};
use crate::metered_agent::MeteredAgent;
use crate::outline::{OutlineInput, render_outline};
use crate::port::{AgentError, AgentReply, AgentRequest, AgentRole, PortError};
use crate::prompt::{
    self, BranchChanges, most_moved_metrics, render_context_pack, render_listed_files,
};
use crate::reply::{self, MAX_REPLY_BYTES};
use crate::run_ports::RunPorts;
use treebeam_core::bill::RoleBills;
use treebeam_core::event::{BudgetKind, ContextPack, FileDigest, Idea, PaidStep};
use treebeam_core::id::{CodePlace, Sha256};
use treebeam_core::plan::{IdeaProposal, StepOutcome};
use treebeam_core::{idea, path};

/// Largest comparison file that is read, in bytes.
const MAX_SCORING_BYTES: usize = 16 << 20;

pub(super) fn propose_ideas(
    brief: &IdeaBrief,
    world: RunPorts<'_>,
) -> Result<StepOutcome, RunHalt> {
    let (context, pack) = write_context(brief, world)?;
    let agent = MeteredAgent::new(world.agent, None).with_deadline(brief.until, world.clock);
    if let Some(given) = &brief.user_ideas {
        let mut batch = IdeaBatch::new(given.len(), brief.scope, brief.tried.clone());
        for text in given {
            batch.add_user_idea(text.clone());
        }
        return finish_proposal(brief, batch, None, RoleBills::default(), context, world);
    }
    let wanted = usize::try_from(brief.count).unwrap_or(usize::MAX);
    let mut batch = IdeaBatch::new(wanted, brief.scope, brief.tried.clone());
    let repo = repository_outline(brief, &pack, world)?;
    let shown = IdeaPromptTexts { pack, repo };
    let mut talk = ConversationSession::open(
        &brief.conversation,
        || agent.can_continue(AgentRole::Ideas),
        world.files,
    )?;
    let mut over = None;
    while batch.is_open() && over.is_none() {
        over = ask_turn(brief, &shown, &mut batch, &mut talk, &agent, world)?;
    }
    batch.take_incomplete();
    match over {
        Some(budget) if batch.texts.is_empty() => {
            let (step, bills) = (PaidStep::Propose(brief.source), agent.bills());
            Ok(StepOutcome::OverBudget { step, budget, bills })
        }
        // The earlier turns are paid for; each eval checks the budget itself.
        Some(_) | None => finish_proposal(brief, batch, Some(talk), agent.bills(), context, world),
    }
}

fn finish_proposal(
    brief: &IdeaBrief,
    batch: IdeaBatch,
    talk: Option<ConversationSession<'_>>,
    bills: RoleBills,
    context: ContextPack,
    world: RunPorts<'_>,
) -> Result<StepOutcome, RunHalt> {
    let ideas = write_ideas(brief, &batch.texts, world)?;
    let conversation = talk.map(|talk| talk.write_files(&ideas, world.files)).transpose()?;
    let conversation = conversation.unwrap_or_default();
    let (source, turns) = (brief.source, batch.turns);
    if ideas.is_empty() {
        let why = batch.shortfall_reason();
        return Ok(StepOutcome::ProposalFailed { source, why, turns, bills, conversation });
    }
    let repeats = batch.repeats;
    Ok(StepOutcome::Proposed(IdeaProposal {
        source,
        ideas,
        repeats,
        turns,
        context,
        bills,
        conversation,
    }))
}

/// Texts that the prompt of each turn contains.
struct IdeaPromptTexts {
    pack: String,
    repo: String,
}

/// Asks one more turn, unless a budget stops it.
fn ask_turn(
    brief: &IdeaBrief,
    shown: &IdeaPromptTexts,
    batch: &mut IdeaBatch,
    talk: &mut ConversationSession<'_>,
    agent: &MeteredAgent<'_>,
    world: RunPorts<'_>,
) -> Result<Option<BudgetKind>, RunHalt> {
    let key = path::idea_question_name(brief.source, brief.expansion, batch.turns + 1);
    let request = batch.next_request();
    let mut asked_as = key.clone();
    let (turn_context, prompt, answered) = loop {
        ask_for_summary(talk, &key, agent, world.files)?;
        let turn_context = talk.turn_context();
        let ask = AgentRequest {
            key: asked_as.clone(),
            ..turn_request(brief, shown, (&request, batch.turns), &turn_context, world)
        };
        let prompt = ask.prompt.clone();
        world
            .files
            .write_file(&path::idea_prompt_file(brief.source.node_id(), &key), prompt.as_bytes())?;
        match agent.ask(ask) {
            Err(AgentError::Forgotten(why)) if turn_context.continues.is_some() => {
                talk.drop_provider_memory(&why);
                // A different key, so that the answer does not replace one to the first question.
                asked_as = format!("{key}-replay");
            }
            answered => break (turn_context, prompt, answered),
        }
    };
    let (asked, prompt) = (u32::try_from(request.count).unwrap_or(u32::MAX), &*prompt);
    let exchange = |reply, ideas| TurnExchange { key: &key, asked, prompt, reply, ideas };
    let reply = match answered {
        Ok(reply) => reply,
        Err(AgentError::Unanswered(why) | AgentError::OutOfTime(why)) => {
            batch.add_missed_turn(why);
            talk.record_turn(&turn_context, &exchange(None, &[]));
            return Ok(None);
        }
        Err(AgentError::OverBudget { budget, .. }) => return Ok(Some(budget)),
        Err(error) => return Err(error.into()),
    };
    // The file and the memory of the conversation hold the same part of a reply.
    let reply =
        AgentReply { text: reply::truncate_text(&reply.text, MAX_REPLY_BYTES).to_owned(), ..reply };
    let kept = path::idea_reply_file(brief.source.node_id(), &key);
    world.files.write_file(&kept, reply.text.as_bytes())?;
    let before = batch.texts.len();
    batch.add_reply(&reply.text, kept.as_str());
    let new: Vec<String> = batch.texts.iter().skip(before).map(|(_, text)| text.clone()).collect();
    talk.record_turn(&turn_context, &exchange(Some(&reply), &new));
    Ok(None)
}

/// Builds the question of a turn, with the answer that it continues.
fn turn_request(
    brief: &IdeaBrief,
    shown: &IdeaPromptTexts,
    (request, round): (&IdeaRequest, u32),
    turn_context: &TurnContext,
    world: RunPorts<'_>,
) -> AgentRequest {
    let prompt = world.prompts.render_ideas_prompt(&prompt::IdeaPromptInput {
        pack: &shown.pack,
        request,
        protect: &brief.context.protect,
        repo: &shown.repo,
        memory: &turn_context.memory,
    });
    AgentRequest {
        key: path::idea_question_name(brief.source, brief.expansion, round + 1),
        role: AgentRole::Ideas,
        prompt: prompt.into(),
        round,
        place: CodePlace::Node(brief.source.node_id()),
        node: brief.source.node_id(),
        continues: turn_context.continues.clone(),
        within: None,
        until: None,
    }
}

/// Renders the outline of the repository for the idea generator.
fn repository_outline(
    brief: &IdeaBrief,
    pack: &str,
    world: RunPorts<'_>,
) -> Result<String, PortError> {
    let idea_context = &brief.context;
    let (root, commit) = (&idea_context.root_commit, &idea_context.commit);
    let sight = OutlineInput { root, commit, texts: vec![pack], commands: &idea_context.commands };
    let context = &world.prompts.for_role(AgentRole::Ideas).context;
    render_outline(world.repo, context, world.prompts.context_max_chars, &sight)
}

fn write_context(
    brief: &IdeaBrief,
    world: RunPorts<'_>,
) -> Result<(ContextPack, String), PortError> {
    let idea_context = &brief.context;
    let since_root = match &idea_context.parent_commit {
        None => String::new(),
        Some(_) => world.repo.diff_stat(&idea_context.root_commit, &idea_context.commit)?,
    };
    let since_parent = match &idea_context.parent_commit {
        None => String::new(),
        Some(parent) if *parent == idea_context.root_commit => since_root.clone(),
        Some(parent) => world.repo.diff_stat(parent, &idea_context.commit)?,
    };
    let moved = read_moved_metrics(brief, world)?;
    let text =
        render_context_pack(idea_context, &BranchChanges { since_root, since_parent, moved })
            + &render_listed_files(&world.prompts.listed_files);
    let path = path::prompt_context_file(brief.source, brief.expansion);
    world.files.write_file(&path, text.as_bytes())?;
    let digest = |idea: &Idea| FileDigest { path: idea.path.clone(), sha256: idea.sha256 };
    let idea_files = idea_context.idea_files.iter().map(digest).collect();
    Ok((ContextPack { path, sha256: Sha256::hash_bytes(text.as_bytes()), idea_files }, text))
}

/// Returns the metrics that moved most against the root; empty if the scoring file is gone.
fn read_moved_metrics(brief: &IdeaBrief, world: RunPorts<'_>) -> Result<Vec<String>, PortError> {
    let Some((eval, _)) = &brief.context.node_eval else { return Ok(Vec::new()) };
    let file = path::experiment_folder(*eval).join(path::SCORING_ROOT_FILE);
    let bytes = world.files.find_file(&file, MAX_SCORING_BYTES)?.unwrap_or_default();
    Ok(most_moved_metrics(&serde_json::from_slice(&bytes).unwrap_or_default()))
}

fn write_ideas(
    brief: &IdeaBrief,
    texts: &[(u32, String)],
    world: RunPorts<'_>,
) -> Result<Vec<Idea>, PortError> {
    let folder = path::ideas_folder(brief.source);
    let mut ideas = Vec::with_capacity(texts.len());
    for (number, (turn, text)) in (brief.first_number..).zip(texts) {
        let title = idea::idea_title(text);
        let path = folder.join(&idea::idea_file_name(number, &title));
        world.files.write_file(&path, text.as_bytes())?;
        let sha256 = Sha256::hash_bytes(text.as_bytes());
        let fingerprint = idea::idea_fingerprint(text);
        let turn = brief.user_ideas.is_none().then_some(brief.turns_before + turn);
        ideas.push(Idea { path, sha256, fingerprint, title, turn });
    }
    Ok(ideas)
}
