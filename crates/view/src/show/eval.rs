//! One eval: what was tried on what, how it came out and why, and where its files lie.

use super::{artifact, ended_at, place_in_beam, started_at, title};
use crate::figure::change;
use crate::line::{REASON_CHARS, failed, field, list, one_line};
use crate::outcome::{Outcome, reason};
use crate::primary::primary_change;
use crate::read;
use crate::score::{Colour, completeness, verdict};
use crate::words::{self, age, bills, count};
use std::time::Duration;
use treebeam_core::event::{Failure, Leftover, LeftoverKind};
use treebeam_core::evidence::{Comparison, Recommendation};
use treebeam_core::facts::{Eval, Facts, Fate, Stage, Work};
use treebeam_core::group::Group;
use treebeam_core::id::Place;
use treebeam_core::path;
use treebeam_core::policy::ScorePolicy;

pub(super) fn lines(facts: &Facts, eval: &Eval) -> Vec<String> {
    let mut lines = vec![
        field(
            "eval",
            &format!("{}, depth {}, run {}", read::eval_name(eval), eval.depth, facts.run),
        ),
        field("idea", &title(eval)),
        field("", &idea_file(eval)),
        field("parent", &read::node_name(eval.parent)),
        field("outcome", &outcome(eval)),
    ];
    if eval.group == Group::Control {
        lines.insert(
            4,
            field("group", "control: tried on the root for comparison, and no part of the tree"),
        );
    }
    lines.extend(failure(eval));
    lines.extend(list("before", earlier(eval)));
    lines.extend(list("time", times(eval)));
    lines.extend(list("answers", bills(&eval.spent())));
    if let Some(scored) = read::scored(eval) {
        let policy = &facts.meaning.score;
        lines.extend(comparison("vs parent", &scored.vs_parent, policy));
        lines.extend(comparison("vs root", &scored.vs_root, policy));
        lines.push(field("complete", &completeness(scored.completeness, facts.meaning.limit())));
    }
    lines.extend(gate(eval));
    lines.extend(rank(facts, eval));
    if let Some(work) = eval.work() {
        lines.extend(code(facts, eval, &work));
    }
    lines.extend(list("files", files(eval)));
    lines
}

fn idea_file(eval: &Eval) -> String {
    let turn = if eval.turn().is_some() { "turn " } else { "" };
    format!("{} ({turn}{})", eval.idea.path, read::idea_source(eval))
}

fn outcome(eval: &Eval) -> String {
    let outcome = Outcome::of(eval);
    if outcome == Outcome::Failed {
        return outcome.to_string();
    }
    format!("{outcome}: {}", reason(eval).trim_start_matches("passed: "))
}

/// Where it failed, and the whole message.
fn failure(eval: &Eval) -> Vec<String> {
    let Stage::Failed { failure, .. } = &eval.stage else { return Vec::new() };
    let said = failure.message.lines().map(one_line).filter(|line| !line.is_empty());
    let head = format!("at {}, of kind {}:", failure.stage, failure.kind);
    list("failure", std::iter::once(head).chain(said))
}

/// Why the attempts before this one failed.
fn earlier(eval: &Eval) -> impl Iterator<Item = String> {
    (1..).zip(&eval.failures).map(|(attempt, Failure { stage, kind, message })| {
        let what = format!("attempt {attempt} failed at {stage}, of kind {kind}");
        failed(&what, message, REASON_CHARS)
    })
}

fn times(eval: &Eval) -> Vec<String> {
    let of = match eval.drafted_in() {
        made if made == eval.attempt => String::new(),
        made => format!(", which measures the candidate of attempt {made} again"),
    };
    let mut times = vec![format!("queued at {:.0}, attempt {}{of}", eval.queued_at, eval.attempt)];
    let Some(begun) = started_at(eval) else { return times };
    times.push(format!("begun at {begun:.0}"));
    if let Some(ended) = ended_at(eval) {
        let took = Duration::try_from(ended.duration_since(begun)).unwrap_or_default();
        times.push(format!("ended at {ended:.0}, after {}", age(took)));
    }
    times
}

fn comparison(name: &str, comparison: &Comparison, policy: &ScorePolicy) -> Vec<String> {
    let Comparison { baseline_rows_used, candidate_rows_used, recommendation, .. } = comparison;
    let Recommendation { should_explore, grade, positive_signals, negative_signals, .. } =
        recommendation;
    let explore = if *should_explore { "worth exploring" } else { "not worth exploring" };
    let reasons: Vec<_> = recommendation.reasons.iter().map(ToString::to_string).collect();
    let score = change(read::score(comparison));
    let used = count(recommendation.metrics_used, "metric");
    let (own, gain) = (primary_change(policy, comparison), change(comparison.primary_delta));
    let mut lines = list(
        name,
        [
            format!("{grade}, score {score}: {explore} ({})", one_line(&reasons.join("; "))),
            format!("of {used} {positive_signals} got better and {negative_signals} got worse"),
            format!("primary {own}; gain {gain}"),
            format!("rows used: {candidate_rows_used}, baseline {baseline_rows_used}"),
        ],
    );
    lines.extend(verdict::paired(comparison.paired));
    lines
}

fn gate(eval: &Eval) -> Vec<String> {
    let Some(found) = eval.verdict() else { return Vec::new() };
    let mut lines = vec![field("gate", &one_line(&found.reason()))];
    lines.extend(verdict::checks(&found, Colour::Off));
    lines
}

fn rank(facts: &Facts, eval: &Eval) -> Option<String> {
    read::scored(eval)?;
    let score = change(read::rank_score(eval));
    let place = place_in_beam(facts, eval);
    let place = place.map_or_else(String::new, |place| format!(", number {place} in the beam"));
    let node = read::promoted_to(eval).map(read::node_name);
    let node = node.map_or_else(String::new, |node| format!(", promoted to {node}"));
    Some(field("rank", &format!("rank score {score}{place}{node}")))
}

fn code(facts: &Facts, eval: &Eval, work: &Work) -> Vec<String> {
    let place = Place::Candidate(eval.id);
    let kept = |kind| if is_there(facts, eval, kind) { "" } else { " (removed)" };
    let (files, rounds) = (count(work.files_changed, "file"), count(work.rounds, "round"));
    let twin = work.same_code_as.map(|original| {
        field("twin", &format!("{}, whose results these are", words::same_code(original)))
    });
    let lines = vec![
        field("commit", work.commit.as_str()),
        field("ref", &format!("{}{}", place.ref_name(&facts.run), kept(LeftoverKind::Branch))),
        field("worktree", &format!("{}{}", place.worktree(), kept(LeftoverKind::Worktree))),
        field("changes", &format!("{files}, in {rounds} of the coder")),
    ];
    lines.into_iter().chain(twin).collect()
}

/// Whether something of a candidate's is needed, wanted, or could not be removed yet.
fn is_there(facts: &Facts, eval: &Eval, kind: LeftoverKind) -> bool {
    let leftover = Leftover { place: Place::Candidate(eval.id), kind };
    let in_use = match eval.stage {
        Stage::Implementing(_) | Stage::Implemented(_) | Stage::Sweeping(_) | Stage::Swept(..) => {
            true
        }
        Stage::Scored(_) | Stage::Decided(_, _, Fate::Chosen) => kind == LeftoverKind::Branch,
        Stage::Queued
        | Stage::Decided(_, _, Fate::Dropped | Fate::Promoted(_))
        | Stage::Failed { .. }
        | Stage::Unfinished { .. }
        | Stage::Superseded(..)
        | Stage::SetAside => false,
    };
    in_use || facts.leftovers.contains_key(&leftover)
}

fn files(eval: &Eval) -> Vec<String> {
    let Some(experiment) = read::experiment(eval) else { return vec!["none yet".to_owned()] };
    let results = eval.results().map(|results| format!("{} (results)", artifact(&results)));
    let experiment = format!("{experiment} (prompts, replies, diffs, scores)");
    [format!("{} (all of it)", path::eval(eval.id)), experiment]
        .into_iter()
        .chain(results)
        .collect()
}
