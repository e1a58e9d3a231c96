//! `treebeam export`: a path of nodes as a branch of the user's own, one commit for each idea. The checkout is not touched.

use super::{Output, chosen};
use crate::cli::ExportArgs;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::way_on;
use crate::wiring::Found;
use serde_json::json;
use std::borrow::Cow;
use treebeam_core::facts::{Eval, Facts, Measured, Node, Origin};
use treebeam_core::id::{Commit, NodeId, Place};
use treebeam_edge::git::{Chapter, ExportError, GitRepo};
use treebeam_edge::store::{self, RunFiles};
use treebeam_run::port::Files as _;
use treebeam_view::figure::change;
use treebeam_view::primary::primary_change;

/// The longest idea that a commit quotes, in bytes.
const MOST_QUOTED: usize = 1 << 20;

pub(super) fn run(found: &Found, args: &ExportArgs, output: Output) -> Result<Exit, Failure> {
    let opened = store::open_to_read(&found.run)?;
    terminal::notes(&opened.notes);
    let facts: &Facts = &opened.state;
    let end = match args.node.as_deref().map(chosen::node).transpose()? {
        Some(NodeId::ROOT) => return Err(is_root()),
        Some(node) => node,
        None => facts.best(),
    };
    let steps = path_to(facts, end)?;
    let repo = repository(found, facts)?;
    let root = facts.node(NodeId::ROOT).ok_or_else(|| gone(NodeId::ROOT))?;
    must_be_there(&repo, facts, root, &steps)?;
    let files = RunFiles::new(found.run.clone());
    let chapters: Vec<_> = steps.iter().map(|step| step.chapter(facts, &files)).collect();
    let commits = repo.export(&args.branch, &root.commit, &chapters).map_err(explained)?;
    show(facts, end, &args.branch, &steps, &commits, output)
}

/// A node of the path, and what made it.
struct Step<'a> {
    node: &'a Node,
    eval: Cow<'a, Eval>,
    measured: Measured,
}

/// The nodes that lead to one, without the root.
fn path_to(facts: &Facts, end: NodeId) -> Result<Vec<Step<'_>>, Failure> {
    if facts.node(end).is_none() {
        let what = format!("run `{}` has no `{}`", facts.run, Place::Node(end));
        return Err(Failure::usage(what).hint("`treebeam status` names its nodes"));
    }
    let step = |node| Step::of(facts, node);
    let mut steps: Vec<_> = facts.lineage(end).filter_map(step).collect();
    steps.reverse();
    if steps.is_empty() {
        let what =
            format!("run `{}` has nothing to export: no node is better than the root", facts.run);
        return Err(
            Failure::failed(what).hint("name another node with `--node`, or let the run go on")
        );
    }
    Ok(steps)
}

fn is_root() -> Failure {
    let what = format!("`{}` is the root: it has no change to export", Place::Node(NodeId::ROOT));
    Failure::usage(what).hint("name another node with `--node`; `treebeam status` names them")
}

fn repository(found: &Found, facts: &Facts) -> Result<GitRepo, Failure> {
    let user = found.repo.clone().ok_or_else(|| {
        Failure::failed(format!("run `{}` lies in no repository", facts.run))
            .hint("its diffs are in its own files: `treebeam diff` shows them")
    })?;
    Ok(GitRepo::new(user, found.run.root(), facts.run.clone())?)
}

/// Without its commits a path is a list of recorded diffs, which may not apply any more.
fn must_be_there(
    repo: &GitRepo,
    facts: &Facts,
    root: &Node,
    steps: &[Step<'_>],
) -> Result<(), Failure> {
    for node in [root].into_iter().chain(steps.iter().map(|step| step.node)) {
        if !repo.has(&node.commit)? {
            let (place, short) = (Place::Node(node.id), node.commit.short());
            let what = format!("the commit {short} of `{place}` is not in the repository any more");
            let hint = format!("`treebeam diff {} {place}` shows what was recorded", facts.run);
            return Err(Failure::failed(what).hint(hint));
        }
    }
    Ok(())
}

impl<'a> Step<'a> {
    fn of(facts: &'a Facts, node: &'a Node) -> Option<Self> {
        let Origin::Promoted { from, .. } = node.origin else { return None };
        let eval = facts.eval(from)?;
        Some(Self { node, measured: eval.measured()?, eval })
    }

    fn chapter(&self, facts: &Facts, files: &RunFiles) -> Chapter {
        let quoted = files.read(&self.eval.idea.path, MOST_QUOTED).ok();
        let idea = quoted.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
        let parts = [Some(self.title()), idea, Some(self.gain(facts)), Some(self.trailers(facts))];
        let message = parts.into_iter().flatten().filter(|part| !part.is_empty());
        Chapter {
            code: self.node.commit.clone(),
            message: message.collect::<Vec<_>>().join("\n\n"),
            at: self.node.created_at,
        }
    }

    fn title(&self) -> String {
        let title: String =
            self.eval.idea.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let title = title.trim();
        if title.is_empty() { format!("idea of eval {}", self.eval.id) } else { title.to_owned() }
    }

    fn gain(&self, facts: &Facts) -> String {
        let (parent, root) = (&self.measured.scored.vs_parent, &self.measured.scored.vs_root);
        let policy = &facts.meaning.score;
        format!(
            "Against its parent: {primary} {}.\nAgainst the root: {primary} {}.\nScore: {} against its parent, {} against the root.",
            primary_change(policy, parent),
            primary_change(policy, root),
            change(Some(parent.recommendation.score)),
            change(Some(root.recommendation.score)),
            primary = policy.primary,
        )
    }

    fn trailers(&self, facts: &Facts) -> String {
        format!("Treebeam-Run: {}\nTreebeam-Eval: {}\n", facts.run, self.eval.id)
    }
}

fn show(
    facts: &Facts,
    end: NodeId,
    branch: &str,
    steps: &[Step<'_>],
    commits: &[Commit],
    output: Output,
) -> Result<Exit, Failure> {
    let made = || steps.iter().zip(commits);
    match output {
        Output::Json => {
            let commits: Vec<_> = made()
                .map(|(step, commit)| {
                    json!({
                        "commit": commit,
                        "node": Place::Node(step.node.id),
                        "eval": Place::Candidate(step.eval.id),
                        "title": step.title(),
                    })
                })
                .collect();
            terminal::json(&json!({
                "schema": "treebeam.export/1",
                "run_id": facts.run,
                "node": Place::Node(end),
                "branch": branch,
                "commits": commits,
            }))?;
        }
        Output::Text => {
            let lines: String = made()
                .map(|(step, commit)| format!("{} {}\n", commit.short(), step.title()))
                .collect();
            terminal::offer(lines.as_bytes()).map(drop)?;
            let log = format!("{} log -p {}", way_on::git(), way_on::word(branch));
            terminal::note(&format!("`{log}` shows them; your checkout is as it was"));
        }
    }
    Ok(Exit::Done)
}

fn explained(error: ExportError) -> Failure {
    match error {
        ExportError::Name(_) | ExportError::Taken(_) => {
            Failure::usage(error.to_string()).hint("give another name with `--branch`")
        }
        ExportError::Port(error) => error.into(),
    }
}

fn gone(node: NodeId) -> Failure {
    Failure::failed(format!("the record has no `{}`", Place::Node(node)))
}
