//! Checks the git objects of each node's commit, and candidates' commits for protected changes.

use std::collections::{BTreeMap, BTreeSet};
use treebeam_core::audit::{self, AuditFinding};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::{Facts, Node, RootBaseline};
use treebeam_core::id::{CodePlace, Commit, EvalId};
use treebeam_git::{GitRepo, MissingObjects};
use treebeam_run::port::PortError;

/// Returns the findings about the commits of a run.
///
/// # Errors
/// When git cannot be run.
pub(super) fn check_commits(repo: &GitRepo, facts: &Facts) -> Result<Vec<AuditFinding>, PortError> {
    let kept = facts.nodes.iter().filter(|node| has_kept_commit(facts, node));
    let kept: BTreeSet<Commit> = kept.map(|node| node.commit.clone()).collect();
    let missing = repo.missing_objects(&kept)?;
    let of_node = |node: &Node| Some(missing_objects_finding(node, missing.get(&node.commit)?));
    let mut found: Vec<AuditFinding> = facts.nodes.iter().filter_map(of_node).collect();
    found.extend(audit::check_protection(facts));
    let whole: BTreeSet<&Commit> =
        kept.iter().filter(|commit| !missing.contains_key(*commit)).collect();
    match check_protected_changes(repo, facts, &whole, &missing) {
        Ok(changes) => found.extend(changes),
        Err(error) => {
            let what = format!("what candidates change cannot be read: {}", error.full_text());
            let advice = "git lacks something of their commits: restore it from a copy";
            found.push(AuditFinding::new(what, "git", advice));
        }
    }
    Ok(found)
}

/// Returns true if a node has a ref that keeps its commit.
fn has_kept_commit(facts: &Facts, node: &Node) -> bool {
    let branch = Leftover { place: CodePlace::Node(node.id), kind: LeftoverKind::Branch };
    let measured = matches!(facts.baseline, RootBaseline::Measured { .. });
    measured && facts.has_leftover(branch) && !facts.leftovers.contains_key(&branch)
}

fn missing_objects_finding(node: &Node, missing: &MissingObjects) -> AuditFinding {
    let what = match missing {
        MissingObjects::Commit => {
            format!("its commit {} is gone from git", node.commit.short_name())
        }
        MissingObjects::Parts(count, first) => {
            let commit = node.commit.short_name();
            format!("git lacks {count} objects of its commit {commit}, the first is {first}")
        }
        MissingObjects::Unreadable(why) => {
            format!("git cannot read its commit {}: {why}", node.commit.short_name())
        }
    };
    let advice = "fetch the objects from a copy of the repository, or restore `.git` from a backup";
    AuditFinding::new(what, format!("node {}", node.id), advice)
}

/// Returns findings about candidates that change protected files. A candidate that was not kept and
/// is gone cannot be checked.
fn check_protected_changes(
    repo: &GitRepo,
    facts: &Facts,
    whole: &BTreeSet<&Commit>,
    missing: &BTreeMap<Commit, MissingObjects>,
) -> Result<Vec<AuditFinding>, PortError> {
    let candidates: Vec<(EvalId, Commit, Commit)> = facts
        .evals
        .iter()
        .filter_map(|eval| {
            let parent = &facts.node(eval.parent)?.commit;
            let commit = eval.candidate()?.commit;
            let readable = whole.contains(parent) && !missing.contains_key(&commit);
            readable.then(|| (eval.id, parent.clone(), commit))
        })
        .collect();
    let commits = candidates.iter().map(|(_, _, commit)| commit.clone()).collect();
    let there = repo.existing_commits(&commits)?;
    let there: Vec<_> =
        candidates.into_iter().filter(|(_, _, commit)| there.contains(commit)).collect();
    let pairs: Vec<_> =
        there.iter().map(|(_, parent, commit)| (parent.clone(), commit.clone())).collect();
    let all = repo.changes_between(&pairs)?;
    let found = there.iter().zip(&all);
    let found =
        found.filter_map(|((id, ..), changes)| audit::check_protected_changes(facts, *id, changes));
    Ok(found.collect())
}
