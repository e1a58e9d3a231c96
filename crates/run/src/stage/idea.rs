//! Asks for a node's ideas: writes the context pack, asks, takes the reply apart, skips repeats and asks again for those.
//! Where the user gave them, nobody is asked.

use crate::brief::ForIdeas;
use crate::counted::Counted;
use crate::drive::Halt;
use crate::outline::{Sight, outline};
use crate::port::{AgentError, Ask, PortError, Role, World};
use crate::prompt::{self, pack};
use crate::reply;
use std::collections::BTreeSet;
use treebeam_core::bill::Bills;
use treebeam_core::event::{BudgetKind, ContextPack, FileDigest, Idea, Intent, Repeat};
use treebeam_core::id::{Place, Sha256};
use treebeam_core::plan::{Outcome, Proposal};
use treebeam_core::policy::DedupeScope;
use treebeam_core::{idea, path};

/// How often a node is asked for ideas before it has to do with what came.
const ASKS: u32 = 3;

pub(super) fn propose(brief: &ForIdeas, world: World<'_>) -> Result<Outcome, Halt> {
    let (context, pack) = write_context(brief, world)?;
    let agent = Counted::new(world.agent, None);
    let mut haul = Haul { seen: brief.tried.clone(), ..Haul::default() };
    if let Some(given) = &brief.given {
        for text in given {
            take(text.clone(), given.len(), brief.scope, &mut haul);
        }
        return collected(brief, haul, context, world);
    }
    let wanted = usize::try_from(brief.count).unwrap_or(usize::MAX);
    let repo = repository(brief, &pack, world)?;
    let shown = Shown { pack, repo, wanted };
    while haul.texts.len() < wanted && haul.turns < ASKS {
        if let Some(budget) = ask(brief, &shown, &mut haul, &agent, world)? {
            if haul.texts.is_empty() {
                let (step, bills) = (Intent::Propose(brief.node), agent.bills());
                return Ok(Outcome::OverBudget { step, budget, bills });
            }
            // What came before is paid for; whether there is enough to try it is asked when it is tried.
            break;
        }
        haul.turns += 1;
    }
    haul.bills = agent.bills();
    collected(brief, haul, context, world)
}

fn collected(
    brief: &ForIdeas,
    haul: Haul,
    context: ContextPack,
    world: World<'_>,
) -> Result<Outcome, Halt> {
    if haul.texts.is_empty() {
        let (node, turns) = (brief.node, haul.turns);
        let why = haul.why.unwrap_or_else(|| "every idea was a repeat".to_owned());
        return Ok(Outcome::ProposalFailed { node, why, turns, bills: haul.bills });
    }
    let ideas = write_ideas(brief, &haul.texts, world)?;
    let Haul { repeats, turns, bills, .. } = haul;
    let node = brief.node;
    Ok(Outcome::Proposed(Proposal { node, ideas, repeats, turns, context, bills }))
}

/// What is said in each turn.
struct Shown {
    /// The context pack.
    pack: String,
    repo: String,
    /// How many ideas there are to be in the end.
    wanted: usize,
}

/// What the asking has brought so far.
#[derive(Default)]
struct Haul {
    seen: BTreeSet<Sha256>,
    /// New ideas, each with the turn that brought it.
    texts: Vec<(u32, String)>,
    repeats: Vec<Repeat>,
    /// How many turns are over.
    turns: u32,
    why: Option<String>,
    /// What the answers took.
    bills: Bills,
}

/// One more turn, unless a budget stops it.
fn ask(
    brief: &ForIdeas,
    shown: &Shown,
    haul: &mut Haul,
    agent: &Counted<'_>,
    world: World<'_>,
) -> Result<Option<BudgetKind>, Halt> {
    let repeated: Vec<_> = haul.repeats.iter().map(|repeat| repeat.title.clone()).collect();
    let key = format!("ideas-n{}-x{}-a{}", brief.node, brief.expansion, haul.turns + 1);
    let prompt = world.prompts.ideas(&prompt::ForIdeas {
        pack: &shown.pack,
        count: shown.wanted - haul.texts.len(),
        repeated: &repeated,
        protect: &brief.told.protect,
        repo: &shown.repo,
    });
    let ask = Ask {
        key: key.clone(),
        role: Role::Ideas,
        prompt,
        round: haul.turns,
        place: Place::Node(brief.node),
        node: brief.node,
        continues: None,
        within: None,
    };
    let reply = match agent.ask(ask) {
        Ok(reply) => reply,
        Err(AgentError::Unanswered(why) | AgentError::OutOfTime(why)) => {
            haul.why = Some(why);
            return Ok(None);
        }
        Err(AgentError::OverBudget { budget, .. }) => return Ok(Some(budget)),
        Err(error) => return Err(error.into()),
    };
    let kept = path::node_ideas(brief.node).join("calls").join(&format!("{key}.txt"));
    world.files.write(&kept, reply.text.as_bytes())?;
    let ideas = reply::ideas(&reply.text);
    if ideas.is_empty() {
        haul.why = Some(format!("the reply has no `IDEA:` (kept as `{kept}`)"));
    }
    for text in ideas {
        take(text, shown.wanted, brief.scope, haul);
    }
    Ok(None)
}

fn take(text: String, wanted: usize, scope: DedupeScope, haul: &mut Haul) {
    let fingerprint = idea::fingerprint(&text);
    if !haul.seen.insert(fingerprint) && scope != DedupeScope::None {
        haul.repeats.push(Repeat { fingerprint, title: idea::title(&text) });
    } else if haul.texts.len() < wanted {
        haul.texts.push((haul.turns + 1, text));
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
    let text = pack(told, &since_root, &since_parent);
    let path = path::prompt_context(brief.node, brief.expansion);
    world.files.write(&path, text.as_bytes())?;
    let digest = |idea: &Idea| FileDigest { path: idea.path.clone(), sha256: idea.sha256 };
    let idea_files = told.idea_files.iter().map(digest).collect();
    Ok((ContextPack { path, sha256: Sha256::of(text.as_bytes()), idea_files }, text))
}

fn write_ideas(
    brief: &ForIdeas,
    texts: &[(u32, String)],
    world: World<'_>,
) -> Result<Vec<Idea>, PortError> {
    let folder = path::node_ideas(brief.node);
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
