//! Renders the context pack of a node: the facts about its branch for the idea generator. Pure and
//! bounded; the run keeps the pack as it was used.

use crate::section::{bullet_list, plain_section};
use serde_json::Value;
use treebeam_core::event::Idea;
use treebeam_core::id::{Commit, EvalId, NodeId};
use treebeam_core::num::Finite;

/// Largest text of one kind, in characters.
const MAX_PACK_PART_CHARS: usize = 16_000;
/// Number of short idea lines that fit into such a text, whatever their titles.
const SHORT_LINES_PER_PART: usize = 75;

/// Largest length of a metric's name, in characters.
const MAX_METRIC_NAME_CHARS: usize = 100;
/// Number of metrics with the largest gains, and of those with the largest losses.
const MAX_MOVED_METRICS: usize = 5;

/// The facts about a node's branch that the idea generator is shown.
pub(crate) struct IdeaContext {
    pub(crate) node: NodeId,
    pub(crate) root_commit: Commit,
    pub(crate) commit: Commit,
    pub(crate) parent_commit: Option<Commit>,
    /// The eval that became the node, with its figures; `None` for the root.
    pub(crate) node_eval: Option<(EvalId, String)>,
    /// The ideas that led to the node, each with its figures.
    pub(crate) chain: Vec<String>,
    /// Older outcomes, in short.
    pub(crate) earlier: Vec<String>,
    /// Other ideas of the branch, with their outcomes.
    pub(crate) outcomes: Vec<String>,
    /// Files of all ideas that are shown in full.
    pub(crate) idea_files: Vec<Idea>,
    pub(crate) protect: Vec<String>,
    /// The commands that measure the code.
    pub(crate) commands: Vec<String>,
}

/// Changes of a node's branch, from git and from its scoring file.
pub(crate) struct BranchChanges {
    /// `git diff --stat` since the root.
    pub(crate) since_root: String,
    /// `git diff --stat` since the parent.
    pub(crate) since_parent: String,
    /// Metrics that moved most against the root.
    pub(crate) moved: Vec<String>,
}

/// Renders the context pack of a node.
pub(crate) fn render_context_pack(context: &IdeaContext, seen: &BranchChanges) -> String {
    let constraints = [
        "one self-contained change per idea, implementable as a patch".to_owned(),
        "the sweep's grid of configurations stays as it is".to_owned(),
        format!("do not touch: {}", context.protect.join(", ")),
    ];
    let files =
        context.idea_files.iter().map(|idea| format!("{} sha256 {}", idea.path, idea.sha256));
    let earlier = context.earlier.chunks(SHORT_LINES_PER_PART).map(|part| {
        ("OTHER IDEAS THAT WERE TRIED BEFORE THE NEXT ONES, IN SHORT", newest_lines(part))
    });
    let standing: Vec<String> =
        context.node_eval.iter().map(|(_, line)| line).chain(&seen.moved).cloned().collect();
    let before = [
        ("CHANGED SINCE THE ROOT", seen.since_root.clone()),
        ("CHANGED SINCE THE PARENT", seen.since_parent.clone()),
        ("WHERE THIS STANDS AGAINST THE ROOT", bullet_list(&standing)),
        ("IDEAS THAT LED HERE, OLDEST FIRST", newest_lines(&context.chain)),
    ];
    let after = [
        ("OTHER IDEAS THAT WERE TRIED ON THE WAY", newest_lines(&context.outcomes)),
        ("CONSTRAINTS", bullet_list(&constraints)),
        ("IDEA FILES", bullet_list(&files.collect::<Vec<_>>())),
    ];
    let parts = before.into_iter().chain(earlier).chain(after);
    let sections =
        parts.map(|(head, text)| format!("\n{}", plain_section(head, &text, MAX_PACK_PART_CHARS)));
    // The pack is long: `concat` allocates exactly its length.
    std::iter::once(format!("NODE n{}\n", context.node))
        .chain(sections)
        .collect::<Vec<_>>()
        .concat()
}

/// Returns the largest gains, then the largest losses, of a stored comparison.
pub(crate) fn most_moved_metrics(comparison: &Value) -> Vec<String> {
    let metrics = comparison["recommendation"]["metrics_used"].as_object().into_iter().flatten();
    let figure = |metric: &Value, name: &str| metric[name].as_f64().and_then(Finite::new);
    let mut all: Vec<(Finite, String)> = metrics
        .filter_map(|(column, metric)| {
            let relative = figure(metric, "relative_improvement")?;
            let [before, after] = ["baseline_mean", "candidate_mean"]
                .map(|name| figure(metric, name).map_or("n/a".to_owned(), Finite::to_short_string));
            let percent = Finite::new(relative.get() * 100.0)?.to_short_string();
            let column: String = column.chars().take(MAX_METRIC_NAME_CHARS).collect();
            Some((relative, format!("{column}: {before} at the root, {after} here ({percent} %)")))
        })
        .collect();
    all.sort_by(|a, b| b.0.get().total_cmp(&a.0.get()).then_with(|| a.1.cmp(&b.1)));
    let (gains, losses): (Vec<_>, Vec<_>) =
        all.into_iter().filter(|(by, _)| by.get() != 0.0).partition(|(by, _)| by.get() > 0.0);
    let gains =
        gains.into_iter().take(MAX_MOVED_METRICS).map(|(_, line)| format!("gained: {line}"));
    let losses =
        losses.into_iter().rev().take(MAX_MOVED_METRICS).map(|(_, line)| format!("lost: {line}"));
    gains.chain(losses).collect()
}

/// Renders as many of the last lines as there is room for: the oldest are left out.
fn newest_lines(lines: &[String]) -> String {
    let mut room = MAX_PACK_PART_CHARS;
    let fits = |line: &&String| {
        let length = line.chars().count() + "- \n".len();
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    let count = lines.iter().rev().take_while(fits).count();
    bullet_list(lines.get(lines.len() - count..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn context(lines: &[String]) -> IdeaContext {
        let commit = || "1".repeat(40).parse().expect("a commit");
        IdeaContext {
            node: NodeId::new(3),
            root_commit: commit(),
            commit: commit(),
            parent_commit: None,
            node_eval: None,
            chain: lines.to_vec(),
            earlier: lines.to_vec(),
            outcomes: lines.to_vec(),
            idea_files: Vec::new(),
            protect: lines.to_vec(),
            commands: Vec::new(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_pack_is_bounded_and_the_same_each_time(line in "(a|ü|\n|`|=){0,300}", count in 0_usize..660) {
            let context = context(&vec![line.clone(); count]);
            let (since_root, since_parent) = (line.repeat(100), line.repeat(100));
            let seen = BranchChanges { since_root, since_parent, moved: vec![line.clone(); 2 * MAX_MOVED_METRICS] };
            let text = render_context_pack(&context, &seen);
            // Seven parts and the short ones, each with its heading.
            let parts = 7 + count.div_ceil(SHORT_LINES_PER_PART);
            prop_assert!(text.chars().count() <= parts * (MAX_PACK_PART_CHARS + 100) + 100);
            prop_assert_eq!(text, render_context_pack(&context, &seen));
        }
    }

    #[test]
    fn what_moved_most_is_told_first() {
        let metric = |by: f64| json!({ "baseline_mean": 2.0, "candidate_mean": 2.0 + by, "relative_improvement": by / 2.0 });
        let mut metrics = serde_json::Map::new();
        for (name, by) in [("a", 1.0), ("b", -1.0), ("c", 2.0), ("d", 0.0), ("e", -0.5)] {
            metrics.insert(name.to_owned(), metric(by));
        }
        metrics.insert("odd".to_owned(), json!(null));
        let comparison = json!({ "recommendation": { "metrics_used": metrics } });
        assert_eq!(
            most_moved_metrics(&comparison),
            [
                "gained: c: 2 at the root, 4 here (100 %)",
                "gained: a: 2 at the root, 3 here (50 %)",
                "lost: b: 2 at the root, 1 here (-50 %)",
                "lost: e: 2 at the root, 1.5 here (-25 %)",
            ]
        );
        assert!(most_moved_metrics(&json!([1])).is_empty());
    }

    #[test]
    fn where_there_is_too_much_the_oldest_goes() {
        let lines: Vec<String> = (0..100).map(|n| format!("{n} {}", "ü".repeat(300))).collect();
        let kept = newest_lines(&lines);
        assert!(kept.chars().count() <= MAX_PACK_PART_CHARS);
        assert!(!kept.contains("- 0 ") && kept.contains("- 99 "), "{kept}");
        assert_eq!(newest_lines(&lines[..2]), bullet_list(&lines[..2]));
        assert_eq!(newest_lines(&[]), "");
    }
}
