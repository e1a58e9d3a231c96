//! Formats one line of `treebeam log`: time, subject and description of an event. A line needs only
//! its event, so that a long journal can be shown without its state.

use crate::figure::format_change;
use crate::lookup;
use crate::safe_text::{MAX_SHOWN_REASON_CHARS, format_failure, one_line, shorten_text};
use crate::words::{self, format_count};
use jiff::Timestamp;
use treebeam_core::conversation::Turn;
use treebeam_core::event::{
    Approval, ArtifactsRestored, EvalFailure, EvalRerun, Event, IdeaAdded, IdeasProposed, Leftover,
    LeftoverKind, MessageId, PaidStep, RunStarted, SentBack, SweepSubject, UserRequest,
};
use treebeam_core::evidence::{Artifact, CandidateScore};
use treebeam_core::gate::GateVerdict;
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{CodePlace, EvalId, NodeId};
use treebeam_core::policy::RunLimits;
use treebeam_core::root_checks::RootChecks;

/// Formats an event with its time of recording on one line.
#[must_use]
pub fn format_log_line(at: Timestamp, event: &Event) -> String {
    format!("{at:.0}  {}\n", brief_event(event))
}

/// Formats an event without its time: its subject and its description.
pub(crate) fn brief_event(event: &Event) -> String {
    let what = shorten_text(&one_line(&describe_event(event)), MAX_SHOWN_REASON_CHARS);
    format!("{:<6}  {what}", event_subject(event))
}

/// Returns the subject of an event: a node, an eval, a depth or the run.
fn event_subject(event: &Event) -> String {
    let node = |id: NodeId| CodePlace::Node(id).to_string();
    let eval = |id: EvalId| CodePlace::Candidate(id).to_string();
    match event {
        Event::RunStarted(_)
        | Event::SettingsChanged { .. }
        | Event::AgentsChanged { .. }
        | Event::RulesChanged { .. }
        | Event::RemovalAsked { .. }
        | Event::LockTakenOver { .. }
        | Event::JournalRestored { .. }
        | Event::Asked { .. }
        | Event::DeadlinePassed { .. }
        | Event::FilesRecorded(_)
        | Event::ArtifactsRestored(_)
        | Event::IdeaRefused { .. }
        | Event::Stopped { .. } => "run".to_owned(),
        Event::RootMeasured { .. } | Event::RootRefused { .. } => node(NodeId::ROOT),
        Event::IdeasProposed(proposed) => lookup::source_name(proposed.source),
        Event::StepStarted { step: PaidStep::Propose(source), .. }
        | Event::BudgetReached { step: PaidStep::Propose(source), .. }
        | Event::ProposalFailed { source, .. } => lookup::source_name(*source),
        Event::NodeAdded { node: id, .. } => node(*id),
        Event::SweepSubmitted { subject, .. } => subject.code_place().to_string(),
        Event::IdeaAdded(added) => eval(added.eval),
        Event::StepStarted { step: PaidStep::Implement(id), .. }
        | Event::BudgetReached { step: PaidStep::Implement(id), .. }
        | Event::Implemented { eval: id, .. }
        | Event::Swept { eval: id, .. }
        | Event::Scored { eval: id, .. }
        | Event::EvalFailed { eval: id, .. }
        | Event::AttemptFailed { eval: id, .. }
        | Event::PromotionFailed { eval: id, .. } => eval(*id),
        Event::DepthClosed { .. } | Event::SentBack(_) => "depth".to_owned(),
        Event::Discarded { leftover } | Event::DiscardDeferred { leftover, .. } => {
            leftover.place.to_string()
        }
    }
}

fn describe_event(event: &Event) -> String {
    match event {
        Event::RunStarted(started) => describe_run_start(started),
        Event::StepStarted { step: PaidStep::Propose(IdeaSource::Node(_)), attempt, .. } => {
            format!("asked for ideas{}", try_suffix(*attempt))
        }
        Event::StepStarted { step: PaidStep::Propose(IdeaSource::Control), attempt, .. } => {
            format!("asked for ideas to try on the root for comparison{}", try_suffix(*attempt))
        }
        Event::StepStarted { step: PaidStep::Implement(_), attempt, .. } => {
            format!("being implemented{}", try_suffix(*attempt))
        }
        Event::RootMeasured { baseline, rows, parent, checks, .. } => {
            let root = describe_root(&format_count(*rows, "row"), baseline, parent.as_ref());
            root + &rewritten_files_note(checks.as_deref())
        }
        Event::RootRefused { why } => {
            format_failure("root cannot be compared with", why, MAX_SHOWN_REASON_CHARS)
        }
        Event::IdeasProposed(proposed) => describe_ideas(proposed),
        Event::ProposalFailed { why, conversation, .. } => {
            let failure = format_failure("no ideas", why, MAX_SHOWN_REASON_CHARS);
            failure + &describe_turns(conversation)
        }
        Event::Implemented { commit, files_changed, rounds, approval, .. } => {
            let (files, rounds) =
                (format_count(*files_changed, "file"), format_count(*rounds, "round"));
            let word = approval_words(*approval);
            format!("committed as {}: {files} changed, {rounds}{word}", commit.short_name())
        }
        Event::SweepSubmitted { subject: SweepSubject::Root, submission } => {
            format!("results of the root asked for{}", try_suffix(*submission))
        }
        Event::SweepSubmitted { subject: SweepSubject::Eval(_), submission } => {
            format!("given to the sweep{}", try_suffix(*submission))
        }
        Event::Swept { results, .. } => format!("swept: {}", results.path),
        Event::Scored { scored, same_code_as: None, .. } => describe_scores(scored),
        Event::Scored { scored, same_code_as: Some(original), .. } => {
            format!("{}, {}", describe_scores(scored), words::describe_same_code(*original))
        }
        Event::EvalFailed { failure, .. } => {
            let EvalFailure { stage, kind, message } = failure;
            format_failure(&format!("failed at {stage} ({kind})"), message, MAX_SHOWN_REASON_CHARS)
        }
        Event::AttemptFailed { attempt, failure, .. } => {
            let EvalFailure { stage, kind, message } = failure;
            let what = format!("attempt {attempt} failed at {stage} ({kind}), tried again");
            format_failure(&what, message, MAX_SHOWN_REASON_CHARS)
        }
        Event::BudgetReached { budget, .. } => {
            format!("stopped before its end: {} reached", words::budget_key(*budget))
        }
        Event::DeadlinePassed { at } => {
            format!("the time is over at {at}: nothing more begins at this depth")
        }
        Event::SentBack(sent) => describe_sent_back(sent),
        Event::ArtifactsRestored(restored) => self::describe_restored(restored),
        Event::FilesRecorded(recorded) => format!("digests of files: {}", recorded.files.len()),
        Event::DepthClosed { depth, verdicts, beam, cut_short } => {
            let cut = if *cut_short { ", cut short by the budget" } else { "" };
            format!("depth {depth} closed{cut}: {}", describe_closing(verdicts, beam))
        }
        Event::NodeAdded { from, .. } => format!("made from {}", CodePlace::Candidate(*from)),
        Event::PromotionFailed { why, .. } => format!("not promoted yet: {why}"),
        Event::Discarded { leftover } => format!("{leftover} removed"),
        Event::DiscardDeferred { leftover, why, .. } => {
            format!("{leftover} not removed yet: {why}")
        }
        Event::RemovalAsked { leftovers } => {
            format!("to be removed: {}", count_leftovers(leftovers))
        }
        Event::SettingsChanged { reach: limits } => {
            format!("goes on with other settings: {}", describe_limits(limits))
        }
        Event::AgentsChanged { agents } => format!("goes on with other agents: {agents}"),
        Event::RulesChanged { rules_version } => {
            format!("goes on with version {} of the rules of scoring", u32::from(*rules_version))
        }
        Event::LockTakenOver { from: Some(from), because, .. } => {
            format!("taken over from process {} on `{}`, {because}", from.pid, from.hostname)
        }
        Event::LockTakenOver { from: None, because, .. } => {
            format!("taken over from a process that is not known, {because}")
        }
        Event::JournalRestored { .. } => {
            "journal put back: it had been removed or renamed while the run went on".to_owned()
        }
        Event::Asked { wish, message, .. } => request_words(*wish, message.as_ref()).to_owned(),
        Event::IdeaAdded(added) => {
            let IdeaAdded { node, idea, .. } = &**added;
            format!("idea of the user's added to {}: {}", CodePlace::Node(*node), idea.title)
        }
        Event::IdeaRefused { title, why, .. } => {
            format!("idea of the user's refused, {why}: {title}")
        }
        Event::Stopped { reason, .. } => {
            format!("stopped: {} ({reason})", words::describe_stop(*reason))
        }
    }
}

/// Describes the source of the root's results: its sweep, or a file of the user's.
#[must_use]
pub fn describe_root(rows: &str, baseline: &Artifact, parent: Option<&Artifact>) -> String {
    let Some(file) = baseline.user_source() else { return format!("root measured: {rows}") };
    let parent = parent.and_then(Artifact::user_source);
    let parent = parent.map(|file| format!(", those of the parent from `{file}`"));
    format!("root not measured: {rows} taken from `{file}`{}", parent.unwrap_or_default())
}

/// Names the tracked files that the root's own sweep rewrites.
#[must_use]
pub fn rewritten_files_note(checks: Option<&RootChecks>) -> String {
    let rewritten = checks.map_or(&[][..], |checks| &checks.rewritten);
    let names: Vec<String> = rewritten.iter().map(|path| format!("`{path}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        names => {
            format!("; its sweep rewrites tracked files, which are restored: {}", names.join(", "))
        }
    }
}

fn request_words(wish: UserRequest, message: Option<&MessageId>) -> &'static str {
    match (wish, message) {
        (UserRequest::Pause, _) => "paused by the user",
        (UserRequest::Unpause, Some(_)) => "goes on, as the user wants",
        (UserRequest::Unpause, None) => "goes on: resumed",
        (UserRequest::Stop, _) => "left by the user: can be resumed",
        (UserRequest::StopAfterDepth, _) => "to stop after this depth, as the user wants",
    }
}

/// Describes the reviewer's decision.
const fn approval_words(approval: Approval) -> &'static str {
    match approval {
        Approval::Unreviewed => "",
        Approval::Approved => ", approved",
        Approval::LetThrough => ", rejected and let through",
    }
}

fn describe_run_start(started: &RunStarted) -> String {
    let RunStarted { run, world, root, meaning: settings, reach: limits, .. } = started;
    let (ideas, beam) = (settings.ideas_per_node, settings.beam_width);
    let root = root.short_name();
    let world = words::describe_world(*world);
    let control =
        settings.control.map_or_else(String::new, |control| format!(", control {control}"));
    let shape = format!("K {ideas}, B {beam}, {}{control}", describe_limits(limits));
    format!("run {run} started at {root}: {shape}; {world}")
}

fn describe_limits(limits: &RunLimits) -> String {
    let most = limits.max_total_idea_evals;
    let most =
        most.map_or_else(|| "no limit of evals".to_owned(), |n| format!("at most {n} evals"));
    let spending = words::describe_spending_limits(limits)
        .map_or_else(String::new, |most| format!(", {most}"));
    format!("D {}, {most}{spending}, {} at once", limits.max_depth, limits.max_parallel_evals)
}

/// Returns a note on the number of the try; empty for the first.
fn try_suffix(number: u32) -> String {
    if number > 1 { format!(", try {number}") } else { String::new() }
}

fn describe_ideas(proposed: &IdeasProposed) -> String {
    let IdeasProposed { queued, untried, repeats, conversation, .. } = proposed;
    let talk = describe_turns(conversation);
    let ids = match (queued.first(), queued.last()) {
        (Some(first), Some(last)) => {
            let (first, last) = (CodePlace::Candidate(first.eval), CodePlace::Candidate(last.eval));
            format!(" ({first} to {last})")
        }
        _ => String::new(),
    };
    let (queued, repeats) =
        (format_count(queued.len(), "idea"), format_count(repeats.len(), "repeat"));
    format!("{queued}{ids}, {repeats} skipped, {} left untried{talk}", untried.len())
}

/// Describes the turns of a conversation: how the history was provided, and notes on problems.
fn describe_turns(turns: &[Turn]) -> String {
    let Some(last) = turns.last() else { return String::new() };
    let notes: String = turns
        .iter()
        .filter_map(|turn| turn.note.as_ref())
        .map(|note| format!("; {note}"))
        .collect();
    format!(", {}, {}{notes}", format_count(turns.len(), "turn"), last.way)
}

/// Counts worktrees, refs and sweep outputs.
fn count_leftovers(leftovers: &[Leftover]) -> String {
    let of = |kind| leftovers.iter().filter(|leftover| leftover.kind == kind).count();
    let kinds = [
        (of(LeftoverKind::Worktree), "worktree"),
        (of(LeftoverKind::Branch), "ref"),
        (of(LeftoverKind::Dir), "sweep output"),
    ];
    let there = kinds.iter().filter(|(number, _)| *number > 0);
    there.map(|(number, name)| format_count(*number, name)).collect::<Vec<_>>().join(", ")
}

fn describe_scores(scored: &CandidateScore) -> String {
    let CandidateScore { vs_parent, vs_root, completeness, .. } = scored;
    let grade = vs_parent.recommendation.grade;
    let (parent, root) = (
        format_change(lookup::comparison_score(vs_parent)),
        format_change(lookup::comparison_score(vs_root)),
    );
    let (ok, all) = (completeness.ok_count, completeness.expected_count);
    format!(
        "scored: {grade}, {parent} against its parent, {root} against the root, {ok} of {all} ok"
    )
}

/// Describes artifacts that were changed on disk, and the evals that were swept meanwhile.
fn describe_restored(restored: &ArtifactsRestored) -> String {
    let ArtifactsRestored { artifacts, suspects, .. } = restored;
    let paths: Vec<_> = artifacts.iter().map(|path| format!("`{path}`")).collect();
    let suspects: Vec<_> =
        suspects.iter().map(|id| CodePlace::Candidate(*id).to_string()).collect();
    let paths = paths.join(", ");
    match suspects.join(", ") {
        none if none.is_empty() => format!("changed on disk, restored: {paths}"),
        suspects => {
            format!("changed on disk, restored: {paths}; swept meanwhile, suspect: {suspects}")
        }
    }
}

/// Describes the work that is done again, with its evals or nodes.
fn describe_sent_back(sent: &SentBack) -> String {
    let evals = |ids: &[EvalId]| join_items(ids.iter().copied().map(CodePlace::Candidate));
    let rerun = sent.rerun.iter().map(|EvalRerun { of, eval }| {
        format!("{} as {}", CodePlace::Candidate(*of), CodePlace::Candidate(*eval))
    });
    let parts = [
        ("failed evals tried again", evals(&sent.retried)),
        ("of these swept as committed", evals(&sent.swept)),
        ("evals done again", join_items(rerun)),
        ("set aside", evals(&sent.set_aside)),
        ("asked for ideas again", join_items(sent.asked.iter().copied().map(CodePlace::Node))),
    ];
    let parts = parts.into_iter().filter(|(_, items)| !items.is_empty());
    let parts = parts.map(|(name, items)| format!("{name}: {items}"));
    let reopened = sent.reopened.map(|depth| format!("depth {depth} is open again"));
    reopened.into_iter().chain(parts).collect::<Vec<_>>().join("; ")
}

fn join_items<T: ToString>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

fn describe_closing(verdicts: &[(EvalId, GateVerdict)], beam: &[EvalId]) -> String {
    let passed = verdicts.iter().filter(|(_, verdict)| verdict.has_passed()).count();
    let beam: Vec<_> = beam.iter().map(|id| CodePlace::Candidate(*id).to_string()).collect();
    let beam = if beam.is_empty() { "nothing".to_owned() } else { beam.join(", ") };
    format!("{passed} of {} scored passed the gate, to promote: {beam}", verdicts.len())
}
