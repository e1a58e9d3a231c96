//! Turns an idea into a commit: notes of the coordinator, a plan, rounds of coder and reviewer.
//! Problems of a round go back to the coder, in the same worktree. A role without agent is skipped.

use crate::brief::ImplementBrief;
use crate::error::RunHalt;
use crate::metered_agent::MeteredAgent;
use crate::outline::{OutlineInput, render_outline};
use crate::port::{
    AgentError, AgentReply, AgentRequest, AgentRole, ApplyResult, BinaryDiff, CommitNote,
    CommittedTree, PortError, RecordedMoment, StagedChanges,
};
use crate::prompt::{EarlierAttempts, PromptInput};
use crate::review::{self, ReviewVerdict};
use crate::run_ports::RunPorts;
use crate::summary::{ChangeDraft, EvalAttempt, EvalSummary, ReviewRound};
use crate::{patch, reply};
use treebeam_core::bill::RoleBills;
use treebeam_core::event::{Approval, BudgetKind, EvalFailure, EvalStage, FailureKind, PaidStep};
use treebeam_core::facts::Candidate;
use treebeam_core::id::{CodePlace, RunPath};
use treebeam_core::path::{self, CANDIDATE_DIFF_FILE, MAX_CANDIDATE_DIFF_BYTES};
use treebeam_core::plan::StepOutcome;
use treebeam_core::protect::{PathChange, ProtectedPaths};

/// Largest idea file that is read, in bytes.
const MAX_IDEA_FILE_BYTES: usize = 1 << 20;
/// Largest change that a coder or reviewer is shown, in bytes.
const MAX_SHOWN_DIFF_BYTES: usize = 256 << 10;

pub(super) fn implement_idea(
    brief: &ImplementBrief,
    world: RunPorts<'_>,
) -> Result<StepOutcome, RunHalt> {
    let eval = brief.about.eval;
    let idea = read_idea(brief, world)?;
    world.files.write_file(&path::experiment_folder(eval).join("idea.md"), idea.as_bytes())?;
    if let Some(candidate) = reuse_candidate(brief, world)? {
        return Ok(candidate);
    }
    world.repo.checkout_worktree(CodePlace::Candidate(eval), &brief.about.parent_commit)?;
    let mut session = ImplementSession::new(brief, world, idea)?;
    let done = session.make_change();
    let bills = session.agent.bills();
    let page = || {
        EvalSummary::from_draft(
            &brief.about,
            &session.draft,
            &[&brief.before, &bills].into_iter().collect(),
        )
    };
    match done {
        Ok(AcceptedChange { files_changed, rounds, approval }) => {
            let CommittedTree { commit, tree } = commit_candidate(brief, world)?;
            page().with_commit(&commit, approval).write(&brief.about, world.files)?;
            Ok(StepOutcome::Implemented {
                eval,
                commit,
                tree,
                files_changed,
                rounds,
                approval,
                bills,
            })
        }
        Err(ImplementError::Problem(AnswerProblem { kind, message })) => {
            let failure = EvalFailure { stage: EvalStage::Implement, kind, message };
            page().with_failure(&failure).write(&brief.about, world.files)?;
            Ok(StepOutcome::EvalFailed { eval, failure, bills })
        }
        Err(ImplementError::OverBudget(budget)) => {
            Ok(StepOutcome::OverBudget { step: PaidStep::Implement(eval), budget, bills })
        }
        Err(ImplementError::Halt(halt)) => Err(halt),
    }
}

/// Reuses an earlier candidate that is to be measured again, if it still exists.
fn reuse_candidate(
    brief: &ImplementBrief,
    world: RunPorts<'_>,
) -> Result<Option<StepOutcome>, PortError> {
    let Some(work) = &brief.reused else { return Ok(None) };
    if !world.repo.commit_exists(&work.commit)? {
        return Ok(None);
    }
    let (eval, commit) = (brief.about.eval, work.commit.clone());
    world.repo.set_place_ref(CodePlace::Candidate(eval), &commit)?;
    EvalSummary::from_candidate(&brief.about, work, world.files)?
        .write(&brief.about, world.files)?;
    let Candidate { files_changed, rounds, approval, .. } = *work;
    let tree = work.tree.clone().map_or_else(|| world.repo.git_tree(&commit), Ok)?;
    let bills = RoleBills::default();
    Ok(Some(StepOutcome::Implemented {
        eval,
        commit,
        tree,
        files_changed,
        rounds,
        approval,
        bills,
    }))
}

/// Commits the change in the worktree, and keeps its diff: the commit may be removed.
fn commit_candidate(
    brief: &ImplementBrief,
    world: RunPorts<'_>,
) -> Result<CommittedTree, PortError> {
    let EvalAttempt { eval, parent_commit, .. } = &brief.about;
    let made = world.repo.commit_staged(CodePlace::Candidate(*eval), &commit_note(brief, world))?;
    let (commit, limit) = (&made.commit, MAX_CANDIDATE_DIFF_BYTES);
    let diff = world.repo.diff_commits(parent_commit, commit, BinaryDiff::InFull, limit)?;
    world.files.write_file(&attempt_file(brief, CANDIDATE_DIFF_FILE), diff.as_bytes())?;
    Ok(made)
}

/// A change that may be committed.
struct AcceptedChange {
    files_changed: u32,
    rounds: u32,
    approval: Approval,
}

/// A problem of an answer, in words that go back to the coder and into the record.
struct AnswerProblem {
    kind: FailureKind,
    message: String,
}

impl AnswerProblem {
    fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Returns true if another round can solve the problem. A coder without an answer was asked as
    /// often as makes sense, and without time left no round is possible.
    const fn can_be_answered(&self) -> bool {
        !matches!(self.kind, FailureKind::Agent | FailureKind::Timeout)
    }

    /// Returns true if the problem is about the change that is in the worktree.
    const fn is_about_worktree(&self) -> bool {
        matches!(self.kind, FailureKind::Rejected | FailureKind::Protected)
    }

    /// Combines this problem with the one of the rounds before: an answer that changed nothing
    /// leaves the older problem, which stays the reason.
    fn after_rounds(self, before: Option<Self>) -> Self {
        match before {
            Some(before) if before.is_about_worktree() && !self.is_about_worktree() => {
                let message =
                    format!("{}; and of the answer to that: {}", before.message, self.message);
                Self::new(before.kind, message)
            }
            Some(_) | None => self,
        }
    }
}

/// The end of a failed implementation: a problem of the answer, a budget, or a halt.
enum ImplementError {
    Problem(AnswerProblem),
    OverBudget(BudgetKind),
    Halt(RunHalt),
}

impl From<AnswerProblem> for ImplementError {
    fn from(problem: AnswerProblem) -> Self {
        Self::Problem(problem)
    }
}

impl From<PortError> for ImplementError {
    fn from(error: PortError) -> Self {
        Self::Halt(error.into())
    }
}

impl From<AgentError> for ImplementError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Unanswered(why) => AnswerProblem::new(FailureKind::Agent, why).into(),
            AgentError::OutOfTime(why) => AnswerProblem::new(FailureKind::Timeout, why).into(),
            AgentError::OverBudget { budget, .. } => Self::OverBudget(budget),
            other @ (AgentError::Forgotten(_)
            | AgentError::Interrupted
            | AgentError::Unavailable(_)) => Self::Halt(other.into()),
        }
    }
}

/// The shared data of the rounds of an eval.
struct ImplementSession<'a> {
    brief: &'a ImplementBrief,
    world: RunPorts<'a>,
    agent: MeteredAgent<'a>,
    place: CodePlace,
    idea: String,
    /// Change of the last attempt that had one, where this is not the first attempt.
    failed: Option<String>,
    draft: ChangeDraft,
}

impl<'a> ImplementSession<'a> {
    fn new(
        brief: &'a ImplementBrief,
        world: RunPorts<'a>,
        idea: String,
    ) -> Result<Self, PortError> {
        let failed = failed_change(&brief.about, world)?;
        let place = CodePlace::Candidate(brief.about.eval);
        let agent =
            MeteredAgent::new(world.agent, brief.timeout).with_deadline(brief.until, world.clock);
        Ok(Self { brief, world, agent, place, idea, failed, draft: ChangeDraft::default() })
    }

    /// Turns the idea into a change that is accepted, with time left to measure it.
    fn make_change(&mut self) -> Result<AcceptedChange, ImplementError> {
        self.ask_preparers()?;
        let candidate = self.run_rounds()?;
        self.agent.remaining_step_time("the tests and the sweep")?;
        Ok(candidate)
    }

    /// Asks for notes and a plan.
    fn ask_preparers(&mut self) -> Result<(), ImplementError> {
        self.draft.notes = self.ask_optional_role(AgentRole::Coordinator, "coordinator.md")?;
        self.draft.plan = self.ask_optional_role(AgentRole::Planner, "plan.md")?;
        Ok(())
    }

    /// Asks a role for a text that later roles are shown, if the role has an agent.
    fn ask_optional_role(
        &self,
        role: AgentRole,
        file: &str,
    ) -> Result<Option<String>, ImplementError> {
        if !self.agent.can_answer(role) {
            return Ok(None);
        }
        let ask = self.render_prompt(role, self.prompt_input())?;
        self.write_attempt_file(&format!("{role}_prompt.txt"), &ask)?;
        let reply = self.ask_role(role, 0, "", ask)?;
        self.write_attempt_file(file, &reply.text)?;
        Ok(Some(reply.text))
    }

    /// Returns the prompt input with everything known so far.
    fn prompt_input(&self) -> PromptInput<'_> {
        PromptInput {
            idea: &self.idea,
            earlier: EarlierAttempts {
                failures: &self.brief.failures,
                change: self.failed.as_deref(),
            },
            notes: self.draft.notes.as_deref(),
            plan: self.draft.plan.as_deref(),
            protect: &self.brief.protect,
            ..PromptInput::default()
        }
    }

    /// Renders the prompt of a role, with an outline of the repository.
    fn render_prompt(&self, role: AgentRole, input: PromptInput<'_>) -> Result<String, PortError> {
        let prompts = self.world.prompts;
        let said = [Some(input.idea), input.plan, input.notes, input.change];
        let sight = OutlineInput {
            root: &self.brief.root_commit,
            commit: &self.brief.about.parent_commit,
            texts: said.into_iter().flatten().collect(),
            commands: &self.brief.commands,
        };
        let context = &prompts.for_role(role).context;
        let repo = render_outline(self.world.repo, context, prompts.context_max_chars, &sight)?;
        let edits = self.world.agent.edit_mode(role);
        Ok(prompts.render_role_prompt(role, &PromptInput { repo: &repo, edits, ..input }))
    }

    /// Runs rounds of coder and reviewer until the change is accepted.
    fn run_rounds(&mut self) -> Result<AcceptedChange, ImplementError> {
        let mut problem: Option<AnswerProblem> = None;
        // Later reviews check only the issues of the first one: otherwise there is no end.
        let mut issues: Option<String> = None;
        let mut files_changed = 0;
        for round in 0..=self.brief.max_review_rounds {
            self.draft.rounds = round + 1;
            files_changed = match self.run_coder_round(round, problem.as_ref()) {
                Ok(files) => files,
                Err(ImplementError::Problem(found)) if found.can_be_answered() => {
                    problem = Some(found.after_rounds(problem));
                    continue;
                }
                Err(other) => return Err(other),
            };
            let rounds = round + 1;
            let approval = match self.review_change(round, issues.as_deref())? {
                None => Approval::Unreviewed,
                Some(ReviewVerdict::Approved) => Approval::Approved,
                Some(ReviewVerdict::Rejected { issues: found }) => {
                    problem = Some(AnswerProblem::new(FailureKind::Rejected, &found));
                    issues.get_or_insert(found);
                    continue;
                }
            };
            return Ok(AcceptedChange { files_changed, rounds, approval });
        }
        let rounds = self.brief.max_review_rounds + 1;
        match problem {
            Some(AnswerProblem { kind: FailureKind::Rejected, .. })
                if self.brief.proceed_on_max_review_rounds =>
            {
                Ok(AcceptedChange { files_changed, rounds, approval: Approval::LetThrough })
            }
            Some(problem) => Err(problem.into()),
            None => Err(AnswerProblem::new(FailureKind::Agent, "no round").into()),
        }
    }

    /// Runs one round of the coder, and returns how many files the change touches by now.
    fn run_coder_round(
        &mut self,
        round: u32,
        problem: Option<&AnswerProblem>,
    ) -> Result<u32, ImplementError> {
        let stands = problem.is_some_and(AnswerProblem::is_about_worktree);
        let so_far = stands
            .then(|| self.world.repo.staged_diff(self.place, MAX_SHOWN_DIFF_BYTES))
            .transpose()?;
        let ask = self.render_prompt(
            AgentRole::Coder,
            PromptInput {
                so_far: so_far.as_deref(),
                problem: problem.map(|problem| problem.message.as_str()),
                ..self.prompt_input()
            },
        )?;
        self.write_attempt_file(&format!("coder_prompt_round_{round}.txt"), &ask)?;
        let reply = self.ask_role(AgentRole::Coder, round, &format!("-r{round}"), ask)?;
        let diff = reply_diff(&reply)?;
        self.write_attempt_file(&format!("patch_round_{round}.diff"), &diff)?;
        if let ApplyResult::Refused(why) = self.apply_diff(&diff)? {
            let message = format!("the diff does not apply: {why}");
            return Err(AnswerProblem::new(FailureKind::Patch, message).into());
        }
        self.draft.applied = true;
        let files = self.check_change()?;
        self.draft.files_changed = Some(files);
        Ok(files)
    }

    /// Applies a diff to the worktree. Agents write `\n`, also for files with other line ends.
    fn apply_diff(&self, diff: &str) -> Result<ApplyResult, PortError> {
        let refused = match self.world.repo.apply_to_worktree(self.place, diff)? {
            ApplyResult::Cleanly => return Ok(ApplyResult::Cleanly),
            refused @ ApplyResult::Refused(_) => refused,
        };
        match self.world.repo.apply_to_worktree(self.place, &patch::with_carriage_returns(diff))? {
            ApplyResult::Cleanly => Ok(ApplyResult::Cleanly),
            ApplyResult::Refused(_) => Ok(refused),
        }
    }

    /// Checks the staged change before any review, and returns the number of its files.
    fn check_change(&self) -> Result<u32, ImplementError> {
        let StagedChanges { changes, unwanted } = self.world.repo.staged_changes(self.place)?;
        if changes.is_empty() {
            return Err(
                AnswerProblem::new(FailureKind::NoChange, "the diff changes nothing").into()
            );
        }
        let violations: Vec<String> =
            self.find_violations(&changes)?.into_iter().chain(unwanted).collect();
        match Some(violations.join("; ")).filter(|violations| !violations.is_empty()) {
            None => Ok(u32::try_from(changes.len()).unwrap_or(u32::MAX)),
            Some(violations) => Err(AnswerProblem::new(FailureKind::Protected, violations).into()),
        }
    }

    /// Describes the protected paths and imports that these changes touch.
    fn find_violations(&self, changes: &[PathChange]) -> Result<Option<String>, PortError> {
        let protected = ProtectedPaths::new(&self.brief.protect)
            .map_err(|error| PortError::new("cannot read `protect`").with_cause(error))?;
        let mut violations = protected.list_violations(changes);
        violations
            .extend(super::imports::find_shadowing(changes, &protected, self.brief, self.world)?);
        Ok((!violations.is_empty()).then(|| violations.join("; ")))
    }

    /// Asks the reviewer for a verdict, if there is one.
    fn review_change(
        &mut self,
        round: u32,
        issues: Option<&str>,
    ) -> Result<Option<ReviewVerdict>, ImplementError> {
        if !self.agent.can_answer(AgentRole::Reviewer) {
            return Ok(None);
        }
        let diff = self.world.repo.staged_diff(self.place, MAX_SHOWN_DIFF_BYTES)?;
        let input = PromptInput { change: Some(&diff), issues, ..self.prompt_input() };
        let ask = self.render_prompt(AgentRole::Reviewer, input)?;
        self.write_attempt_file(&format!("reviewer_prompt_round_{round}.txt"), &ask)?;
        let reply = self.ask_role(AgentRole::Reviewer, round, &format!("-r{round}"), ask)?;
        self.write_attempt_file(&format!("review_round_{round}.md"), &reply.text)?;
        let review = review::parse_review(&reply.text);
        let issues = match &review {
            ReviewVerdict::Approved => None,
            ReviewVerdict::Rejected { issues } => Some(issues.clone()),
        };
        self.draft.review = Some(ReviewRound { round, issues });
        Ok(Some(review))
    }

    fn ask_role(
        &self,
        role: AgentRole,
        round: u32,
        end: &str,
        prompt: String,
    ) -> Result<AgentReply, AgentError> {
        let key = format!("{role}-e{}-a{}{end}", self.brief.about.eval, self.brief.about.attempt);
        let (place, node, continues) = (self.place, self.brief.about.parent, None);
        let prompt = prompt.into();
        let (within, until) = (None, None);
        self.agent.ask(AgentRequest {
            key,
            role,
            round,
            prompt,
            place,
            node,
            continues,
            within,
            until,
        })
    }

    fn write_attempt_file(&self, name: &str, text: &str) -> Result<(), PortError> {
        self.world.files.write_file(&attempt_file(self.brief, name), text.as_bytes())
    }
}

/// Returns the change of an answer as a diff: the edits that were made, or the diff in the text.
fn reply_diff(reply: &AgentReply) -> Result<String, AnswerProblem> {
    match &reply.edits {
        Some(edits) if edits.is_empty() => {
            let said = reply::one_line_excerpt(&reply.text);
            let message = format!("the agent changed nothing, and said: {said}");
            Err(AnswerProblem::new(FailureKind::NoChange, message))
        }
        Some(edits) => Ok(edits.clone()),
        None => patch::find_patch(&reply.text)
            .map_err(|why| AnswerProblem::new(FailureKind::Patch, why)),
    }
}

fn read_idea(brief: &ImplementBrief, world: RunPorts<'_>) -> Result<String, PortError> {
    let bytes = world.files.read_file(&brief.about.idea.path, MAX_IDEA_FILE_BYTES)?;
    String::from_utf8(bytes).map_err(|error| {
        PortError::new(format!("`{}` is not UTF-8", brief.about.idea.path)).with_cause(error)
    })
}

/// Returns the change of the last earlier attempt that was committed.
fn failed_change(about: &EvalAttempt, world: RunPorts<'_>) -> Result<Option<String>, PortError> {
    for attempt in (1..about.attempt).rev() {
        let diff = path::attempt_folder(about.eval, attempt).join(CANDIDATE_DIFF_FILE);
        if let Some(diff) = world.files.find_file(&diff, 4 * MAX_CANDIDATE_DIFF_BYTES)? {
            return Ok(Some(String::from_utf8_lossy(&diff).into_owned()));
        }
    }
    Ok(None)
}

fn commit_note(brief: &ImplementBrief, world: RunPorts<'_>) -> CommitNote {
    let mut trailers = vec![
        ("Treebeam-Run", brief.run.to_string()),
        ("Treebeam-Eval", brief.about.eval.to_string()),
        ("Treebeam-Idea", brief.about.idea.sha256.to_string()),
    ];
    // The ref of a failed attempt's commit may still exist; it must not be taken for this one.
    if brief.about.attempt > 1 {
        trailers.push(("Treebeam-Attempt", brief.about.attempt.to_string()));
    }
    CommitNote {
        title: brief.about.idea.title.clone(),
        trailers,
        at: world.clock.recorded_time(RecordedMoment::Eval(
            brief.about.eval,
            EvalStage::Implement,
            brief.about.attempt,
        )),
    }
}

fn attempt_file(brief: &ImplementBrief, name: &str) -> RunPath {
    path::attempt_folder(brief.about.eval, brief.about.attempt).join(name)
}
