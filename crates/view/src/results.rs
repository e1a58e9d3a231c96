//! `results.tsv`: one row per eval, for programs. Numbers are exact, a missing one is empty, nothing is quoted.

use crate::figure::exact;
use crate::line::one_line;
use crate::outcome::{Outcome, reason};
use crate::read;
use treebeam_core::evidence::Scored;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::group::Group;

/// The columns, in order. Grade and `should_explore` are against the parent.
pub const COLUMNS: [&str; 21] = [
    "eval",
    "parent",
    "depth",
    "status",
    "reason",
    "grade",
    "should_explore",
    "parent_score",
    "root_score",
    "rank_score",
    "primary_delta_parent",
    "primary_delta_root",
    "ok",
    "expected",
    "rows_used",
    "files_changed",
    "commit",
    "node",
    "idea",
    "attempt",
    "group",
];

/// All evals as tab-separated values, in the order of their ids.
#[must_use]
pub fn results_tsv(facts: &Facts) -> String {
    let mut text = COLUMNS.join("\t");
    text.push('\n');
    for eval in facts.evals.iter() {
        text.push_str(&row(&eval).join("\t"));
        text.push('\n');
    }
    text
}

const fn group(group: Group) -> &'static str {
    match group {
        Group::Tree => "tree",
        Group::Control => "control",
    }
}

fn row(eval: &Eval) -> [String; 21] {
    let scored = read::scored(eval);
    let work = eval.work();
    let of = |text: &dyn Fn(&Scored) -> String| scored.as_ref().map(text).unwrap_or_default();
    [
        read::eval_name(eval),
        read::node_name(eval.parent),
        eval.depth.to_string(),
        Outcome::of(eval).to_string(),
        reason(eval),
        of(&|s| s.vs_parent.recommendation.grade.to_string()),
        of(&|s| s.vs_parent.recommendation.should_explore.to_string()),
        of(&|s| exact(read::score(&s.vs_parent))),
        of(&|s| exact(read::score(&s.vs_root))),
        exact(read::rank_score(eval)),
        of(&|s| exact(s.vs_parent.primary_delta)),
        of(&|s| exact(s.vs_root.primary_delta)),
        of(&|s| s.completeness.ok_count.to_string()),
        of(&|s| s.completeness.expected_count.to_string()),
        of(&|s| s.vs_parent.candidate_rows_used.to_string()),
        work.as_ref().map(|work| work.files_changed.to_string()).unwrap_or_default(),
        work.map(|work| work.commit.to_string()).unwrap_or_default(),
        read::promoted_to(eval).map(read::node_name).unwrap_or_default(),
        one_line(&eval.idea.title),
        eval.attempt.to_string(),
        group(eval.group).to_owned(),
    ]
}
