//! Renders one eval: idea, parent, status with reason, scores, and the paths of its files.

use super::{ended_at, eval_title, format_artifact, place_in_beam, started_at};
use crate::figure::format_change;
use crate::lookup;
use crate::outcome::{EvalStatus, eval_reason};
use crate::primary::primary_change;
use crate::safe_text::{
    MAX_SHOWN_REASON_CHARS, field_lines, format_failure, format_field, one_line,
};
use crate::score::{ColourMode, format_completeness, verdict};
use crate::words::{self, describe_bills, format_age, format_count};
use std::time::Duration;
use treebeam_core::event::{EvalFailure, Leftover, LeftoverKind};
use treebeam_core::evidence::{Comparison, Recommendation};
use treebeam_core::facts::{Candidate, CandidateFate, Eval, Facts, Stage};
use treebeam_core::group::EvalGroup;
use treebeam_core::id::CodePlace;
use treebeam_core::path;
use treebeam_core::policy::ScorePolicy;

pub(super) fn eval_lines(facts: &Facts, eval: &Eval) -> Vec<String> {
    let mut lines = vec![
        format_field(
            "eval",
            &format!("{}, depth {}, run {}", lookup::eval_name(eval), eval.depth, facts.run),
        ),
        format_field("idea", &eval_title(eval)),
        format_field("", &idea_file(eval)),
        format_field("parent", &lookup::node_name(eval.parent)),
        format_field("outcome", &format_status(eval)),
    ];
    if eval.group == EvalGroup::Control {
        lines.insert(
            4,
            format_field(
                "group",
                "control: tried on the root for comparison, and no part of the tree",
            ),
        );
    }
    lines.extend(failure_lines(eval));
    lines.extend(field_lines("before", earlier_failures(eval)));
    lines.extend(field_lines("time", time_lines(eval)));
    lines.extend(field_lines("answers", describe_bills(&eval.total_spend())));
    if let Some(scored) = lookup::candidate_score(eval) {
        let policy = &facts.settings.score;
        lines.extend(comparison_lines("vs parent", &scored.vs_parent, policy));
        lines.extend(comparison_lines("vs root", &scored.vs_root, policy));
        lines.push(format_field(
            "complete",
            &format_completeness(scored.completeness, facts.settings.config_limit()),
        ));
    }
    lines.extend(gate_lines(eval));
    lines.extend(rank_line(facts, eval));
    if let Some(work) = eval.candidate() {
        lines.extend(code_lines(facts, eval, &work));
    }
    lines.extend(field_lines("files", eval_files(eval)));
    lines
}

fn idea_file(eval: &Eval) -> String {
    let turn = if eval.turn_id().is_some() { "turn " } else { "" };
    format!("{} ({turn}{})", eval.idea.path, lookup::idea_source(eval))
}

fn format_status(eval: &Eval) -> String {
    let outcome = EvalStatus::from_eval(eval);
    if outcome == EvalStatus::Failed {
        return outcome.to_string();
    }
    format!("{outcome}: {}", eval_reason(eval).trim_start_matches("passed: "))
}

/// Returns the failed stage and the whole message as lines.
fn failure_lines(eval: &Eval) -> Vec<String> {
    let Stage::Failed { failure, .. } = &eval.stage else { return Vec::new() };
    let said = failure.message.lines().map(one_line).filter(|line| !line.is_empty());
    let head = format!("at {}, of kind {}:", failure.stage, failure.kind);
    field_lines("failure", std::iter::once(head).chain(said))
}

/// Describes why earlier attempts failed.
fn earlier_failures(eval: &Eval) -> impl Iterator<Item = String> {
    (1..).zip(&eval.failures).map(|(attempt, EvalFailure { stage, kind, message })| {
        let what = format!("attempt {attempt} failed at {stage}, of kind {kind}");
        format_failure(&what, message, MAX_SHOWN_REASON_CHARS)
    })
}

fn time_lines(eval: &Eval) -> Vec<String> {
    let of = match eval.candidate_attempt() {
        made if made == eval.attempt => String::new(),
        made => format!(", which measures the candidate of attempt {made} again"),
    };
    let mut times = vec![format!("queued at {:.0}, attempt {}{of}", eval.queued_at, eval.attempt)];
    let Some(begun) = started_at(eval) else { return times };
    times.push(format!("begun at {begun:.0}"));
    if let Some(ended) = ended_at(eval) {
        let took = Duration::try_from(ended.duration_since(begun)).unwrap_or_default();
        times.push(format!("ended at {ended:.0}, after {}", format_age(took)));
    }
    times
}

fn comparison_lines(name: &str, comparison: &Comparison, policy: &ScorePolicy) -> Vec<String> {
    let Comparison { baseline_rows_used, candidate_rows_used, recommendation, .. } = comparison;
    let Recommendation { should_explore, grade, positive_signals, negative_signals, .. } =
        recommendation;
    let explore = if *should_explore { "worth exploring" } else { "not worth exploring" };
    let reasons: Vec<_> = recommendation.reasons.iter().map(ToString::to_string).collect();
    let score = format_change(lookup::comparison_score(comparison));
    let used = format_count(recommendation.metrics_used, "metric");
    let (own, gain) = (primary_change(policy, comparison), format_change(comparison.primary_delta));
    let mut lines = field_lines(
        name,
        [
            format!("{grade}, score {score}: {explore} ({})", one_line(&reasons.join("; "))),
            format!("of {used} {positive_signals} got better and {negative_signals} got worse"),
            format!("primary {own}; gain {gain}"),
            format!("rows used: {candidate_rows_used}, baseline {baseline_rows_used}"),
        ],
    );
    lines.extend(verdict::paired_lines(comparison.paired));
    lines
}

fn gate_lines(eval: &Eval) -> Vec<String> {
    let Some(found) = eval.gate_verdict() else { return Vec::new() };
    let mut lines = vec![format_field("gate", &one_line(&found.reason()))];
    lines.extend(verdict::check_lines(&found, ColourMode::Off));
    lines
}

fn rank_line(facts: &Facts, eval: &Eval) -> Option<String> {
    lookup::candidate_score(eval)?;
    let score = format_change(lookup::rank_score(eval));
    let place = place_in_beam(facts, eval);
    let place = place.map_or_else(String::new, |place| format!(", number {place} in the beam"));
    let node = lookup::promoted_to(eval).map(lookup::node_name);
    let node = node.map_or_else(String::new, |node| format!(", promoted to {node}"));
    Some(format_field("rank", &format!("rank score {score}{place}{node}")))
}

fn code_lines(facts: &Facts, eval: &Eval, work: &Candidate) -> Vec<String> {
    let place = CodePlace::Candidate(eval.id);
    let kept = |kind| if is_present(facts, eval, kind) { "" } else { " (removed)" };
    let (files, rounds) =
        (format_count(work.files_changed, "file"), format_count(work.rounds, "round"));
    let twin = work.same_code_as.map(|original| {
        format_field(
            "twin",
            &format!("{}, whose results these are", words::describe_same_code(original)),
        )
    });
    let lines = vec![
        format_field("commit", work.commit.as_str()),
        format_field(
            "ref",
            &format!("{}{}", place.ref_name(&facts.run), kept(LeftoverKind::Branch)),
        ),
        format_field(
            "worktree",
            &format!("{}{}", place.worktree_path(), kept(LeftoverKind::Worktree)),
        ),
        format_field("changes", &format!("{files}, in {rounds} of the coder")),
    ];
    lines.into_iter().chain(twin).collect()
}

/// Returns true if a worktree or ref of a candidate is in use, wanted, or could not be removed yet.
fn is_present(facts: &Facts, eval: &Eval, kind: LeftoverKind) -> bool {
    let leftover = Leftover { place: CodePlace::Candidate(eval.id), kind };
    let in_use = match eval.stage {
        Stage::Implementing(_) | Stage::Implemented(_) | Stage::Sweeping(_) | Stage::Swept(..) => {
            true
        }
        Stage::Scored(_) | Stage::Decided(_, _, CandidateFate::Chosen) => {
            kind == LeftoverKind::Branch
        }
        Stage::Queued
        | Stage::Decided(_, _, CandidateFate::Dropped | CandidateFate::Promoted(_))
        | Stage::Failed { .. }
        | Stage::Unfinished { .. }
        | Stage::Superseded(..)
        | Stage::SetAside => false,
    };
    in_use || facts.leftovers.contains_key(&leftover)
}

fn eval_files(eval: &Eval) -> Vec<String> {
    let Some(experiment) = lookup::experiment_folder(eval) else {
        return vec!["none yet".to_owned()];
    };
    let results = eval.results().map(|results| format!("{} (results)", format_artifact(&results)));
    let experiment = format!("{experiment} (prompts, replies, diffs, scores)");
    [format!("{} (all of it)", path::eval_folder(eval.id)), experiment]
        .into_iter()
        .chain(results)
        .collect()
}
