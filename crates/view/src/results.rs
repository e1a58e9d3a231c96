//! Renders `results.tsv`: one row per eval, for programs. Numbers are exact, a missing one is
//! empty, nothing is quoted.

use crate::figure::format_exact;
use crate::lookup;
use crate::outcome::{EvalStatus, eval_reason};
use crate::safe_text::one_line;
use treebeam_core::evidence::CandidateScore;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::group::EvalGroup;

/// Columns in order. Grade and `should_explore` are against the parent.
pub const RESULT_COLUMNS: [&str; 21] = [
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

/// Renders all evals as tab-separated values, in the order of their ids.
#[must_use]
pub fn render_results_tsv(facts: &Facts) -> String {
    let mut text = RESULT_COLUMNS.join("\t");
    text.push('\n');
    for eval in facts.evals.iter() {
        text.push_str(&result_row(&eval).join("\t"));
        text.push('\n');
    }
    text
}

const fn group_name(group: EvalGroup) -> &'static str {
    match group {
        EvalGroup::Tree => "tree",
        EvalGroup::Control => "control",
    }
}

fn result_row(eval: &Eval) -> [String; 21] {
    let scored = lookup::candidate_score(eval);
    let work = eval.candidate();
    let of =
        |text: &dyn Fn(&CandidateScore) -> String| scored.as_ref().map(text).unwrap_or_default();
    [
        lookup::eval_name(eval),
        lookup::node_name(eval.parent),
        eval.depth.to_string(),
        EvalStatus::from_eval(eval).to_string(),
        eval_reason(eval),
        of(&|s| s.vs_parent.recommendation.grade.to_string()),
        of(&|s| s.vs_parent.recommendation.should_explore.to_string()),
        of(&|s| format_exact(lookup::comparison_score(&s.vs_parent))),
        of(&|s| format_exact(lookup::comparison_score(&s.vs_root))),
        format_exact(lookup::rank_score(eval)),
        of(&|s| format_exact(s.vs_parent.primary_delta)),
        of(&|s| format_exact(s.vs_root.primary_delta)),
        of(&|s| s.completeness.ok_count.to_string()),
        of(&|s| s.completeness.expected_count.to_string()),
        of(&|s| s.vs_parent.candidate_rows_used.to_string()),
        work.as_ref().map(|work| work.files_changed.to_string()).unwrap_or_default(),
        work.map(|work| work.commit.to_string()).unwrap_or_default(),
        lookup::promoted_to(eval).map(lookup::node_name).unwrap_or_default(),
        one_line(&eval.idea.title),
        eval.attempt.to_string(),
        group_name(eval.group).to_owned(),
    ]
}
