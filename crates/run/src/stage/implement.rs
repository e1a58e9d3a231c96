//! Turns an idea into a commit: notes of the coordinator, a plan, the coder's diff or edits, the reviewer's word. What is wrong with a
//! round goes back to the coder, in the same worktree. A role that nobody fills is left out.

use crate::brief::ForCoder;
use crate::counted::Counted;
use crate::drive::Halt;
use crate::outline::{Sight, outline};
use crate::port::{
    AgentError, Applied, Ask, Binaries, CommitNote, CommittedTree, Moment, PortError, Reply, Role,
    StagedChanges, World,
};
use crate::prompt::{Earlier, Matter};
use crate::review::{self, Review};
use crate::summary::{About, Draft, Summary, Verdict};
use crate::{patch, reply};
use treebeam_core::bill::Bills;
use treebeam_core::event::{Approval, BudgetKind, EvalStage, Failure, FailureKind, Intent};
use treebeam_core::facts::Work;
use treebeam_core::id::{Place, RunPath};
use treebeam_core::path::{self, CANDIDATE_DIFF, CANDIDATE_DIFF_BYTES};
use treebeam_core::plan::Outcome;
use treebeam_core::protect::{Change, Protected};

/// The longest idea file that is read.
const IDEA_BYTES: usize = 1 << 20;
/// The longest change that a coder or reviewer is shown.
const SHOWN_BYTES: usize = 256 << 10;

pub(super) fn implement(brief: &ForCoder, world: World<'_>) -> Result<Outcome, Halt> {
    let eval = brief.about.eval;
    let idea = read_idea(brief, world)?;
    world.files.write(&path::experiment(eval).join("idea.md"), idea.as_bytes())?;
    if let Some(candidate) = made_before(brief, world)? {
        return Ok(candidate);
    }
    world.repo.checkout(Place::Candidate(eval), &brief.about.parent_commit)?;
    let mut desk = Desk::new(brief, world, idea)?;
    let done = desk.work();
    let bills = desk.agent.bills();
    let page = || {
        Summary::drafted(&brief.about, &desk.draft, &[&brief.before, &bills].into_iter().collect())
    };
    match done {
        Ok(Candidate { files_changed, rounds, approval }) => {
            let CommittedTree { commit, tree } = commit(brief, world)?;
            page().committed(&commit, approval).write(&brief.about, world.files)?;
            Ok(Outcome::Implemented { eval, commit, tree, files_changed, rounds, approval, bills })
        }
        Err(Setback::Problem(Problem { kind, message })) => {
            let failure = Failure { stage: EvalStage::Implement, kind, message };
            page().failed(&failure).write(&brief.about, world.files)?;
            Ok(Outcome::EvalFailed { eval, failure, bills })
        }
        Err(Setback::OverBudget(budget)) => {
            Ok(Outcome::OverBudget { step: Intent::Implement(eval), budget, bills })
        }
        Err(Setback::Halt(halt)) => Err(halt),
    }
}

/// A candidate of before, where that is to be measured and is still there: nobody is asked for another.
fn made_before(brief: &ForCoder, world: World<'_>) -> Result<Option<Outcome>, PortError> {
    let Some(work) = &brief.again else { return Ok(None) };
    if !world.repo.has(&work.commit)? {
        return Ok(None);
    }
    let (eval, commit) = (brief.about.eval, work.commit.clone());
    world.repo.keep(Place::Candidate(eval), &commit)?;
    Summary::taken_over(&brief.about, work, world.files)?.write(&brief.about, world.files)?;
    let Work { files_changed, rounds, approval, .. } = *work;
    let tree = work.tree.clone().map_or_else(|| world.repo.tree(&commit), Ok)?;
    let bills = Bills::default();
    Ok(Some(Outcome::Implemented { eval, commit, tree, files_changed, rounds, approval, bills }))
}

/// Commits the change that is in the worktree, and keeps all of it as one diff: the candidate may be removed.
fn commit(brief: &ForCoder, world: World<'_>) -> Result<CommittedTree, PortError> {
    let About { eval, parent_commit, .. } = &brief.about;
    let made = world.repo.commit(Place::Candidate(*eval), &note(brief, world))?;
    let (commit, limit) = (&made.commit, CANDIDATE_DIFF_BYTES);
    let diff = world.repo.diff(parent_commit, commit, Binaries::InFull, limit)?;
    world.files.write(&file(brief, CANDIDATE_DIFF), diff.as_bytes())?;
    Ok(made)
}

/// A change that may be committed.
struct Candidate {
    files_changed: u32,
    rounds: u32,
    approval: Approval,
}

/// What is wrong with an answer, in words that go back to the coder and into the record.
struct Problem {
    kind: FailureKind,
    message: String,
}

impl Problem {
    fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Whether the coder can do better when it is told. One that gave no answer was asked as often as makes sense, and with
    /// no time left nobody is.
    const fn can_be_answered(&self) -> bool {
        !matches!(self.kind, FailureKind::Agent | FailureKind::Timeout)
    }

    /// Whether it is about the change that is in the worktree.
    const fn stands(&self) -> bool {
        matches!(self.kind, FailureKind::Rejected | FailureKind::Protected)
    }

    /// The same after the rounds before: an answer that changed nothing leaves what is wrong with them, and that is the
    /// reason still.
    fn after(self, before: Option<Self>) -> Self {
        match before {
            Some(before) if before.stands() && !self.stands() => {
                let message =
                    format!("{}; and of the answer to that: {}", before.message, self.message);
                Self::new(before.kind, message)
            }
            Some(_) | None => self,
        }
    }
}

/// Why something did not work out: on account of the answer, of a budget, or of the world.
enum Setback {
    Problem(Problem),
    OverBudget(BudgetKind),
    Halt(Halt),
}

impl From<Problem> for Setback {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<PortError> for Setback {
    fn from(error: PortError) -> Self {
        Self::Halt(error.into())
    }
}

impl From<AgentError> for Setback {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Unanswered(why) => Problem::new(FailureKind::Agent, why).into(),
            AgentError::OutOfTime(why) => Problem::new(FailureKind::Timeout, why).into(),
            AgentError::OverBudget { budget, .. } => Self::OverBudget(budget),
            other @ (AgentError::Forgotten(_)
            | AgentError::Interrupted
            | AgentError::Unavailable(_)) => Self::Halt(other.into()),
        }
    }
}

/// What the rounds of an eval have in common.
struct Desk<'a> {
    brief: &'a ForCoder,
    world: World<'a>,
    agent: Counted<'a>,
    place: Place,
    idea: String,
    /// The change of the last attempt that had any, where this is not the first.
    failed: Option<String>,
    draft: Draft,
}

impl<'a> Desk<'a> {
    fn new(brief: &'a ForCoder, world: World<'a>, idea: String) -> Result<Self, PortError> {
        let failed = failed_change(&brief.about, world)?;
        let place = Place::Candidate(brief.about.eval);
        let agent = Counted::new(world.agent, brief.timeout).until(brief.until, world.clock);
        Ok(Self { brief, world, agent, place, idea, failed, draft: Draft::default() })
    }

    /// From the idea to a change that may stand, with time left to measure it.
    fn work(&mut self) -> Result<Candidate, Setback> {
        self.prepare()?;
        let candidate = self.rounds()?;
        self.agent.left_for("the tests and the sweep")?;
        Ok(candidate)
    }

    /// Asks for notes and a plan.
    fn prepare(&mut self) -> Result<(), Setback> {
        self.draft.notes = self.handed_on(Role::Coordinator, "coordinator.md")?;
        self.draft.plan = self.handed_on(Role::Planner, "plan.md")?;
        Ok(())
    }

    /// What a role says that the next ones are told, where somebody fills it.
    fn handed_on(&self, role: Role, file: &str) -> Result<Option<String>, Setback> {
        if !self.agent.answers(role) {
            return Ok(None);
        }
        let ask = self.prompt(role, self.matter())?;
        self.write(&format!("{role}_prompt.txt"), &ask)?;
        let reply = self.ask(role, 0, "", ask)?;
        self.write(file, &reply.text)?;
        Ok(Some(reply.text))
    }

    /// What is known by now.
    fn matter(&self) -> Matter<'_> {
        Matter {
            idea: &self.idea,
            earlier: Earlier { failures: &self.brief.failures, change: self.failed.as_deref() },
            notes: self.draft.notes.as_deref(),
            plan: self.draft.plan.as_deref(),
            protect: &self.brief.protect,
            ..Matter::default()
        }
    }

    /// What somebody is told, with what there is to see of the repository.
    fn prompt(&self, role: Role, matter: Matter<'_>) -> Result<String, PortError> {
        let prompts = self.world.prompts;
        let said = [Some(matter.idea), matter.plan, matter.notes, matter.change];
        let sight = Sight {
            root: &self.brief.root_commit,
            commit: &self.brief.about.parent_commit,
            said: said.into_iter().flatten().collect(),
            commands: &self.brief.commands,
        };
        let context = &prompts.of(role).context;
        let repo = outline(self.world.repo, context, prompts.context_max_chars, &sight)?;
        let edits = self.world.agent.edits(role);
        Ok(prompts.about(role, &Matter { repo: &repo, edits, ..matter }))
    }

    /// Lets coder and reviewer go on until the change may stand.
    fn rounds(&mut self) -> Result<Candidate, Setback> {
        let mut problem: Option<Problem> = None;
        // What the first review found is all that later ones look at: otherwise there is no end.
        let mut issues: Option<String> = None;
        let mut files_changed = 0;
        for round in 0..=self.brief.max_review_rounds {
            self.draft.rounds = round + 1;
            files_changed = match self.code(round, problem.as_ref()) {
                Ok(files) => files,
                Err(Setback::Problem(found)) if found.can_be_answered() => {
                    problem = Some(found.after(problem));
                    continue;
                }
                Err(other) => return Err(other),
            };
            let rounds = round + 1;
            let approval = match self.review(round, issues.as_deref())? {
                None => Approval::Unreviewed,
                Some(Review::Approved) => Approval::Approved,
                Some(Review::Rejected { issues: found }) => {
                    problem = Some(Problem::new(FailureKind::Rejected, &found));
                    issues.get_or_insert(found);
                    continue;
                }
            };
            return Ok(Candidate { files_changed, rounds, approval });
        }
        let rounds = self.brief.max_review_rounds + 1;
        match problem {
            Some(Problem { kind: FailureKind::Rejected, .. })
                if self.brief.proceed_on_max_review_rounds =>
            {
                Ok(Candidate { files_changed, rounds, approval: Approval::LetThrough })
            }
            Some(problem) => Err(problem.into()),
            None => Err(Problem::new(FailureKind::Agent, "no round").into()),
        }
    }

    /// One round of the coder: how many files the change touches by now.
    fn code(&mut self, round: u32, problem: Option<&Problem>) -> Result<u32, Setback> {
        let stands = problem.is_some_and(Problem::stands);
        let so_far = stands.then(|| self.world.repo.staged(self.place, SHOWN_BYTES)).transpose()?;
        let ask = self.prompt(
            Role::Coder,
            Matter {
                so_far: so_far.as_deref(),
                problem: problem.map(|problem| problem.message.as_str()),
                ..self.matter()
            },
        )?;
        self.write(&format!("coder_prompt_round_{round}.txt"), &ask)?;
        let reply = self.ask(Role::Coder, round, &format!("-r{round}"), ask)?;
        let diff = change(&reply)?;
        self.write(&format!("patch_round_{round}.diff"), &diff)?;
        if let Applied::Refused(why) = self.apply(&diff)? {
            let message = format!("the diff does not apply: {why}");
            return Err(Problem::new(FailureKind::Patch, message).into());
        }
        self.draft.applied = true;
        let files = self.look_over()?;
        self.draft.files_changed = Some(files);
        Ok(files)
    }

    /// Puts a diff into the worktree. Agents write `\n`, whatever the lines of a file end with.
    fn apply(&self, diff: &str) -> Result<Applied, PortError> {
        let refused = match self.world.repo.apply(self.place, diff)? {
            Applied::Cleanly => return Ok(Applied::Cleanly),
            refused @ Applied::Refused(_) => refused,
        };
        match self.world.repo.apply(self.place, &patch::with_carriage_returns(diff))? {
            Applied::Cleanly => Ok(Applied::Cleanly),
            Applied::Refused(_) => Ok(refused),
        }
    }

    /// Whether the change may stand, whoever reviews it.
    fn look_over(&self) -> Result<u32, Setback> {
        let StagedChanges { changes, unwanted } = self.world.repo.staged_changes(self.place)?;
        if changes.is_empty() {
            return Err(Problem::new(FailureKind::NoChange, "the diff changes nothing").into());
        }
        let violations: Vec<String> =
            self.violations(&changes)?.into_iter().chain(unwanted).collect();
        match Some(violations.join("; ")).filter(|violations| !violations.is_empty()) {
            None => Ok(u32::try_from(changes.len()).unwrap_or(u32::MAX)),
            Some(violations) => Err(Problem::new(FailureKind::Protected, violations).into()),
        }
    }

    /// What these changes touch that they may not, in words.
    fn violations(&self, changes: &[Change]) -> Result<Option<String>, PortError> {
        let protected = Protected::new(&self.brief.protect)
            .map_err(|error| PortError::new("cannot read `protect`").caused_by(error))?;
        let mut violations = protected.violations(changes);
        violations.extend(super::imports::shadowing(changes, &protected, self.brief, self.world)?);
        Ok((!violations.is_empty()).then(|| violations.join("; ")))
    }

    /// The reviewer's word, where there is one.
    fn review(&mut self, round: u32, issues: Option<&str>) -> Result<Option<Review>, Setback> {
        if !self.agent.answers(Role::Reviewer) {
            return Ok(None);
        }
        let diff = self.world.repo.staged(self.place, SHOWN_BYTES)?;
        let matter = Matter { change: Some(&diff), issues, ..self.matter() };
        let ask = self.prompt(Role::Reviewer, matter)?;
        self.write(&format!("reviewer_prompt_round_{round}.txt"), &ask)?;
        let reply = self.ask(Role::Reviewer, round, &format!("-r{round}"), ask)?;
        self.write(&format!("review_round_{round}.md"), &reply.text)?;
        let review = review::read(&reply.text);
        let issues = match &review {
            Review::Approved => None,
            Review::Rejected { issues } => Some(issues.clone()),
        };
        self.draft.review = Some(Verdict { round, issues });
        Ok(Some(review))
    }

    fn ask(&self, role: Role, round: u32, end: &str, prompt: String) -> Result<Reply, AgentError> {
        let key = format!("{role}-e{}-a{}{end}", self.brief.about.eval, self.brief.about.attempt);
        let (place, node, continues) = (self.place, self.brief.about.parent, None);
        let prompt = prompt.into();
        let (within, until) = (None, None);
        self.agent.ask(Ask { key, role, round, prompt, place, node, continues, within, until })
    }

    fn write(&self, name: &str, text: &str) -> Result<(), PortError> {
        self.world.files.write(&file(self.brief, name), text.as_bytes())
    }
}

/// What an answer changes, as a diff: the edits that were made, or what the text says.
fn change(reply: &Reply) -> Result<String, Problem> {
    match &reply.edits {
        Some(edits) if edits.is_empty() => {
            let said = reply::brief(&reply.text);
            let message = format!("the agent changed nothing, and said: {said}");
            Err(Problem::new(FailureKind::NoChange, message))
        }
        Some(edits) => Ok(edits.clone()),
        None => patch::find(&reply.text).map_err(|why| Problem::new(FailureKind::Patch, why)),
    }
}

fn read_idea(brief: &ForCoder, world: World<'_>) -> Result<String, PortError> {
    let bytes = world.files.read(&brief.about.idea.path, IDEA_BYTES)?;
    String::from_utf8(bytes).map_err(|error| {
        PortError::new(format!("`{}` is not UTF-8", brief.about.idea.path)).caused_by(error)
    })
}

/// The change of the last attempt before this one that was committed.
fn failed_change(about: &About, world: World<'_>) -> Result<Option<String>, PortError> {
    for attempt in (1..about.attempt).rev() {
        let diff = path::attempt(about.eval, attempt).join(CANDIDATE_DIFF);
        if let Some(diff) = world.files.find(&diff, 4 * CANDIDATE_DIFF_BYTES)? {
            return Ok(Some(String::from_utf8_lossy(&diff).into_owned()));
        }
    }
    Ok(None)
}

fn note(brief: &ForCoder, world: World<'_>) -> CommitNote {
    let mut trailers = vec![
        ("Treebeam-Run", brief.run.to_string()),
        ("Treebeam-Eval", brief.about.eval.to_string()),
        ("Treebeam-Idea", brief.about.idea.sha256.to_string()),
    ];
    // The commit of an attempt that failed may still have its ref, or not: it must not be taken for this one.
    if brief.about.attempt > 1 {
        trailers.push(("Treebeam-Attempt", brief.about.attempt.to_string()));
    }
    CommitNote {
        title: brief.about.idea.title.clone(),
        trailers,
        at: world.clock.at(Moment::Eval(
            brief.about.eval,
            EvalStage::Implement,
            brief.about.attempt,
        )),
    }
}

fn file(brief: &ForCoder, name: &str) -> RunPath {
    path::attempt(brief.about.eval, brief.about.attempt).join(name)
}
