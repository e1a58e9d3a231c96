//! Asks for the ideas of a node, or of the control group: writes the context pack, asks until there are enough, and writes what came. What a reply brings,
//! and what is asked for again, is said in `haul`.
//! Where the user gave them, nobody is asked.

use crate::brief::ForIdeas;
use crate::conversation::{Said, Talk, Told, sum_up};
use crate::counted::Counted;
use crate::drive::Halt;
use crate::haul::{Haul, Request};
use crate::outline::{Sight, outline};
use crate::port::{AgentError, Ask, PortError, Reply, Role, World};
use crate::prompt::{self, Seen, listed, moved, pack};
use crate::reply::{self, REPLY_BYTES};
use treebeam_core::bill::Bills;
use treebeam_core::event::{BudgetKind, ContextPack, FileDigest, Idea, Intent};
use treebeam_core::id::{Place, Sha256};
use treebeam_core::plan::{Outcome, Proposal};
use treebeam_core::{idea, path};

/// The longest comparison that is read.
const SCORING_BYTES: usize = 16 << 20;

pub(super) fn propose(brief: &ForIdeas, world: World<'_>) -> Result<Outcome, Halt> {
    let (context, pack) = write_context(brief, world)?;
    let agent = Counted::new(world.agent, None).until(brief.until, world.clock);
    if let Some(given) = &brief.given {
        let mut haul = Haul::new(given.len(), brief.scope, brief.tried.clone());
        for text in given {
            haul.take_given(text.clone());
        }
        return collected(brief, haul, None, Bills::default(), context, world);
    }
    let wanted = usize::try_from(brief.count).unwrap_or(usize::MAX);
    let mut haul = Haul::new(wanted, brief.scope, brief.tried.clone());
    let repo = repository(brief, &pack, world)?;
    let shown = Shown { pack, repo };
    let mut talk = Talk::open(&brief.talk, || agent.continues(Role::Ideas), world.files)?;
    let mut over = None;
    while haul.is_open() && over.is_none() {
        over = ask(brief, &shown, &mut haul, &mut talk, &agent, world)?;
    }
    haul.end();
    match over {
        Some(budget) if haul.texts.is_empty() => {
            let (step, bills) = (Intent::Propose(brief.source), agent.bills());
            Ok(Outcome::OverBudget { step, budget, bills })
        }
        // What came before is paid for; whether there is enough to try it is asked when it is tried.
        Some(_) | None => collected(brief, haul, Some(talk), agent.bills(), context, world),
    }
}

fn collected(
    brief: &ForIdeas,
    haul: Haul,
    talk: Option<Talk<'_>>,
    bills: Bills,
    context: ContextPack,
    world: World<'_>,
) -> Result<Outcome, Halt> {
    let ideas = write_ideas(brief, &haul.texts, world)?;
    let conversation = talk.map(|talk| talk.close(&ideas, world.files)).transpose()?;
    let conversation = conversation.unwrap_or_default();
    let (source, turns) = (brief.source, haul.turns);
    if ideas.is_empty() {
        let why = haul.why();
        return Ok(Outcome::ProposalFailed { source, why, turns, bills, conversation });
    }
    let repeats = haul.repeats;
    Ok(Outcome::Proposed(Proposal { source, ideas, repeats, turns, context, bills, conversation }))
}

/// What is said in each turn.
struct Shown {
    /// The context pack.
    pack: String,
    repo: String,
}

/// One more turn, unless a budget stops it.
fn ask(
    brief: &ForIdeas,
    shown: &Shown,
    haul: &mut Haul,
    talk: &mut Talk<'_>,
    agent: &Counted<'_>,
    world: World<'_>,
) -> Result<Option<BudgetKind>, Halt> {
    let key = path::idea_question(brief.source, brief.expansion, haul.turns + 1);
    let request = haul.request();
    let mut asked_as = key.clone();
    let (told, prompt, answered) = loop {
        sum_up(talk, &key, agent, world.files)?;
        let told = talk.told();
        let ask = Ask {
            key: asked_as.clone(),
            ..question(brief, shown, (&request, haul.turns), &told, world)
        };
        let prompt = ask.prompt.clone();
        world.files.write(&path::idea_prompt(brief.source.node(), &key), prompt.as_bytes())?;
        match agent.ask(ask) {
            Err(AgentError::Forgotten(why)) if told.continues.is_some() => {
                talk.forgot(&why);
                // Another question, whose answer does not take the place of what the first may have brought.
                asked_as = format!("{key}-replay");
            }
            answered => break (told, prompt, answered),
        }
    };
    let (asked, prompt) = (u32::try_from(request.count).unwrap_or(u32::MAX), &*prompt);
    let said = |reply, ideas| Said { key: &key, asked, prompt, reply, ideas };
    let reply = match answered {
        Ok(reply) => reply,
        Err(AgentError::Unanswered(why) | AgentError::OutOfTime(why)) => {
            haul.miss(why);
            talk.say(&told, &said(None, &[]));
            return Ok(None);
        }
        Err(AgentError::OverBudget { budget, .. }) => return Ok(Some(budget)),
        Err(error) => return Err(error.into()),
    };
    // What is kept of a reply is what is remembered of it.
    let reply = Reply { text: reply::cut(&reply.text, REPLY_BYTES).to_owned(), ..reply };
    let kept = path::idea_reply(brief.source.node(), &key);
    world.files.write(&kept, reply.text.as_bytes())?;
    let before = haul.texts.len();
    haul.hear(&reply.text, kept.as_str());
    let new: Vec<String> = haul.texts.iter().skip(before).map(|(_, text)| text.clone()).collect();
    talk.say(&told, &said(Some(&reply), &new));
    Ok(None)
}

/// The question of a turn, and what it goes on from.
fn question(
    brief: &ForIdeas,
    shown: &Shown,
    (request, round): (&Request, u32),
    told: &Told,
    world: World<'_>,
) -> Ask {
    let prompt = world.prompts.ideas(&prompt::ForIdeas {
        pack: &shown.pack,
        request,
        protect: &brief.told.protect,
        repo: &shown.repo,
        memory: &told.memory,
    });
    Ask {
        key: path::idea_question(brief.source, brief.expansion, round + 1),
        role: Role::Ideas,
        prompt: prompt.into(),
        round,
        place: Place::Node(brief.source.node()),
        node: brief.source.node(),
        continues: told.continues.clone(),
        within: None,
        until: None,
    }
}

/// What the generator is shown of the code.
fn repository(brief: &ForIdeas, pack: &str, world: World<'_>) -> Result<String, PortError> {
    let told = &brief.told;
    let (root, commit) = (&told.root_commit, &told.commit);
    let sight = Sight { root, commit, said: vec![pack], commands: &told.commands };
    let context = &world.prompts.of(Role::Ideas).context;
    outline(world.repo, context, world.prompts.context_max_chars, &sight)
}

fn write_context(brief: &ForIdeas, world: World<'_>) -> Result<(ContextPack, String), PortError> {
    let told = &brief.told;
    let since_root = match &told.parent_commit {
        None => String::new(),
        Some(_) => world.repo.diff_stat(&told.root_commit, &told.commit)?,
    };
    let since_parent = match &told.parent_commit {
        None => String::new(),
        Some(parent) if *parent == told.root_commit => since_root.clone(),
        Some(parent) => world.repo.diff_stat(parent, &told.commit)?,
    };
    let moved = moved_most(brief, world)?;
    let text =
        pack(told, &Seen { since_root, since_parent, moved }) + &listed(&world.prompts.listed);
    let path = path::prompt_context(brief.source, brief.expansion);
    world.files.write(&path, text.as_bytes())?;
    let digest = |idea: &Idea| FileDigest { path: idea.path.clone(), sha256: idea.sha256 };
    let idea_files = told.idea_files.iter().map(digest).collect();
    Ok((ContextPack { path, sha256: Sha256::of(text.as_bytes()), idea_files }, text))
}

/// What moved most against the root, as it was written down when the node's eval was scored; nothing where that is gone.
fn moved_most(brief: &ForIdeas, world: World<'_>) -> Result<Vec<String>, PortError> {
    let Some((eval, _)) = &brief.told.standing else { return Ok(Vec::new()) };
    let file = path::experiment(*eval).join(path::SCORING_ROOT);
    let bytes = world.files.find(&file, SCORING_BYTES)?.unwrap_or_default();
    Ok(moved(&serde_json::from_slice(&bytes).unwrap_or_default()))
}

fn write_ideas(
    brief: &ForIdeas,
    texts: &[(u32, String)],
    world: World<'_>,
) -> Result<Vec<Idea>, PortError> {
    let folder = path::ideas(brief.source);
    let mut ideas = Vec::with_capacity(texts.len());
    for (number, (turn, text)) in (brief.first_number..).zip(texts) {
        let title = idea::title(text);
        let path = folder.join(&idea::file_name(number, &title));
        world.files.write(&path, text.as_bytes())?;
        let sha256 = Sha256::of(text.as_bytes());
        let fingerprint = idea::fingerprint(text);
        let turn = brief.given.is_none().then_some(brief.turns_before + turn);
        ideas.push(Idea { path, sha256, fingerprint, title, turn });
    }
    Ok(ideas)
}
