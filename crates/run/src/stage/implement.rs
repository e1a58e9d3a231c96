//! Turns an idea into a commit: asks the coder for a diff, applies it, checks what it touches, and lets the coder mend what
//! went wrong, in the same worktree.

use crate::brief::ForCoder;
use crate::drive::Halt;
use crate::port::{AgentError, Applied, Ask, CommitNote, Moment, PortError, Role, World};
use crate::{patch, prompt};
use treebeam_core::event::{EvalStage, Failure, FailureKind};
use treebeam_core::id::{Place, RunPath};
use treebeam_core::path;
use treebeam_core::plan::Outcome;
use treebeam_core::protect::Protected;

/// The longest idea file that is read.
const IDEA_BYTES: usize = 1 << 20;

pub(super) fn implement(brief: &ForCoder, world: World<'_>) -> Result<Outcome, Halt> {
    let place = Place::Candidate(brief.eval);
    let idea = read_idea(brief, world)?;
    world.files.write(&path::experiment(brief.eval).join("idea.md"), idea.as_bytes())?;
    world.repo.checkout(place, &brief.parent_commit)?;
    let mut problem: Option<Problem> = None;
    for round in 0..=brief.max_review_rounds {
        match try_round(brief, &idea, round, problem.as_ref(), world)? {
            Ok(files_changed) => {
                let commit = world.repo.commit(place, &note(brief, world))?;
                let (eval, rounds) = (brief.eval, round + 1);
                return Ok(Outcome::Implemented { eval, commit, files_changed, rounds });
            }
            Err(found) => problem = Some(found),
        }
    }
    let Problem { kind, message } = problem
        .unwrap_or_else(|| Problem { kind: FailureKind::Agent, message: "no round".to_owned() });
    let failure = Failure { stage: EvalStage::Implement, kind, message };
    Ok(Outcome::EvalFailed { eval: brief.eval, failure })
}

/// What is wrong with the coder's answer, in words that go back to the coder and into the record.
struct Problem {
    kind: FailureKind,
    message: String,
}

impl Problem {
    fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// One round: how many files the change touches, or what is wrong with it.
fn try_round(
    brief: &ForCoder,
    idea: &str,
    round: u32,
    problem: Option<&Problem>,
    world: World<'_>,
) -> Result<Result<u32, Problem>, Halt> {
    let place = Place::Candidate(brief.eval);
    let issue = problem.map(|problem| problem.message.as_str());
    let prompt = prompt::coder(idea, issue, &brief.protect);
    let prompt_file = file(brief, &format!("coder_prompt_round_{round}.txt"));
    world.files.write(&prompt_file, prompt.as_bytes())?;
    let key = format!("coder-e{}-a{}-r{round}", brief.eval, brief.attempt);
    let ask = Ask { key, role: Role::Coder, round, prompt, place, continues: None };
    let reply = match world.agent.ask(&ask) {
        Ok(reply) => reply.text,
        Err(AgentError::Unanswered(why)) => return Ok(Err(Problem::new(FailureKind::Agent, why))),
        Err(error) => return Err(error.into()),
    };
    let diff = match patch::find(&reply) {
        Ok(diff) => diff,
        Err(why) => return Ok(Err(Problem::new(FailureKind::Patch, why))),
    };
    world.files.write(&file(brief, &format!("patch_round_{round}.diff")), diff.as_bytes())?;
    if let Applied::Refused(why) = apply(place, &diff, world)? {
        let message = format!("the diff does not apply: {why}");
        return Ok(Err(Problem::new(FailureKind::Patch, message)));
    }
    Ok(look_over(brief, world)?)
}

/// Puts a diff into the worktree. Agents write `\n`, whatever the lines of a file end with.
fn apply(place: Place, diff: &str, world: World<'_>) -> Result<Applied, PortError> {
    match world.repo.apply(place, diff)? {
        Applied::Cleanly => Ok(Applied::Cleanly),
        refused @ Applied::Refused(_) => {
            match world.repo.apply(place, &patch::with_carriage_returns(diff))? {
                Applied::Cleanly => Ok(Applied::Cleanly),
                Applied::Refused(_) => Ok(refused),
            }
        }
    }
}

/// Whether the change may stand.
fn look_over(brief: &ForCoder, world: World<'_>) -> Result<Result<u32, Problem>, PortError> {
    let changes = world.repo.changes(Place::Candidate(brief.eval))?;
    if changes.is_empty() {
        return Ok(Err(Problem::new(FailureKind::NoChange, "the diff changes nothing")));
    }
    let protected = Protected::new(&brief.protect)
        .map_err(|error| PortError::new("cannot read `protect`").caused_by(error))?;
    let violations = protected.violations(&changes);
    if violations.is_empty() {
        return Ok(Ok(u32::try_from(changes.len()).unwrap_or(u32::MAX)));
    }
    Ok(Err(Problem::new(FailureKind::Protected, violations.join("; "))))
}

fn read_idea(brief: &ForCoder, world: World<'_>) -> Result<String, PortError> {
    let bytes = world.files.read(&brief.idea.path, IDEA_BYTES)?;
    String::from_utf8(bytes).map_err(|error| {
        PortError::new(format!("`{}` is not UTF-8", brief.idea.path)).caused_by(error)
    })
}

fn note(brief: &ForCoder, world: World<'_>) -> CommitNote {
    let mut trailers = vec![
        ("Treebeam-Run", brief.run.to_string()),
        ("Treebeam-Eval", brief.eval.to_string()),
        ("Treebeam-Idea", brief.idea.sha256.to_string()),
    ];
    // The commit of an attempt that failed may still have its ref, or not: it must not be taken for this one.
    if brief.attempt > 1 {
        trailers.push(("Treebeam-Attempt", brief.attempt.to_string()));
    }
    CommitNote {
        title: brief.idea.title.clone(),
        trailers,
        at: world.clock.at(Moment::Eval(brief.eval, EvalStage::Implement, brief.attempt)),
    }
}

fn file(brief: &ForCoder, name: &str) -> RunPath {
    path::attempt(brief.eval, brief.attempt).join(name)
}
