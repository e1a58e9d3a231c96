//! `treebeam export`: creates a branch of a path of nodes, one commit for each idea.
//!
//! The checkout is not touched.

use super::{OutputFormat, chosen_place};
use crate::cli::ExportArgs;
use crate::failure::{CommandExit, CommandFailure};
use crate::resume_command;
use crate::run_location::RunLocation;
use crate::terminal;
use serde_json::json;
use std::borrow::Cow;
use treebeam_core::facts::{Eval, Facts, Node, NodeOrigin, ScoredCandidate};
use treebeam_core::id::{CodePlace, Commit, NodeId};
use treebeam_git::{BranchCommit, ExportError, GitRepo};
use treebeam_run::port::FileStore as _;
use treebeam_store::RunFiles;
use treebeam_view::figure::format_change;
use treebeam_view::primary::primary_change;

/// Maximum size of an idea that a commit quotes, in bytes.
const MAX_QUOTED_IDEA_BYTES: usize = 1 << 20;

pub(super) fn run_export(
    found: &RunLocation,
    args: &ExportArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let opened = treebeam_store::open_to_read(&found.run)?;
    terminal::print_notes(&opened.notes);
    let facts: &Facts = &opened.state;
    let end = match args.node.as_deref().map(chosen_place::parse_node_id).transpose()? {
        Some(NodeId::ROOT) => return Err(root_not_exportable()),
        Some(node) => node,
        None => facts.best_node(),
    };
    let steps = find_export_path(facts, end)?;
    let repo = open_repository(found, facts)?;
    let root = facts.node(NodeId::ROOT).ok_or_else(|| missing_node(NodeId::ROOT))?;
    must_have_commits(&repo, facts, root, &steps)?;
    let files = RunFiles::new(found.run.clone());
    let chapters: Vec<_> = steps.iter().map(|step| step.build_chapter(facts, &files)).collect();
    let commits =
        repo.export_branch(&args.branch, &root.commit, &chapters).map_err(explain_export_error)?;
    show_export(facts, end, &args.branch, &steps, &commits, output)
}

/// A node of the path, with the eval that produced it.
struct ExportStep<'a> {
    node: &'a Node,
    eval: Cow<'a, Eval>,
    measured: ScoredCandidate,
}

/// Returns the nodes on the path to a node, without the root.
fn find_export_path(facts: &Facts, end: NodeId) -> Result<Vec<ExportStep<'_>>, CommandFailure> {
    if facts.node(end).is_none() {
        let what = format!("run `{}` has no `{}`", facts.run, CodePlace::Node(end));
        return Err(CommandFailure::usage(what).with_hint("`treebeam status` names its nodes"));
    }
    let step = |node| ExportStep::from_node(facts, node);
    let mut steps: Vec<_> = facts.lineage(end).filter_map(step).collect();
    steps.reverse();
    if steps.is_empty() {
        let what =
            format!("run `{}` has nothing to export: no node is better than the root", facts.run);
        return Err(CommandFailure::failed(what)
            .with_hint("name another node with `--node`, or let the run go on"));
    }
    Ok(steps)
}

fn root_not_exportable() -> CommandFailure {
    let what =
        format!("`{}` is the root: it has no change to export", CodePlace::Node(NodeId::ROOT));
    CommandFailure::usage(what)
        .with_hint("name another node with `--node`; `treebeam status` names them")
}

fn open_repository(found: &RunLocation, facts: &Facts) -> Result<GitRepo, CommandFailure> {
    let user = found.repo.clone().ok_or_else(|| {
        CommandFailure::failed(format!("run `{}` lies in no repository", facts.run))
            .with_hint("its diffs are in its own files: `treebeam diff` shows them")
    })?;
    Ok(GitRepo::new(user, found.run.root(), facts.run.clone())?)
}

/// Refuses a path with missing commits: recorded diffs may not apply any more.
fn must_have_commits(
    repo: &GitRepo,
    facts: &Facts,
    root: &Node,
    steps: &[ExportStep<'_>],
) -> Result<(), CommandFailure> {
    for node in [root].into_iter().chain(steps.iter().map(|step| step.node)) {
        if !repo.has_commit(&node.commit)? {
            let (place, short) = (CodePlace::Node(node.id), node.commit.short_name());
            let what = format!("the commit {short} of `{place}` is not in the repository any more");
            let hint = format!("`treebeam diff {} {place}` shows what was recorded", facts.run);
            return Err(CommandFailure::failed(what).with_hint(hint));
        }
    }
    Ok(())
}

impl<'a> ExportStep<'a> {
    fn from_node(facts: &'a Facts, node: &'a Node) -> Option<Self> {
        let NodeOrigin::Promoted { from, .. } = node.origin else { return None };
        let eval = facts.eval(from)?;
        Some(Self { node, measured: eval.scored_candidate()?, eval })
    }

    fn build_chapter(&self, facts: &Facts, files: &RunFiles) -> BranchCommit {
        let quoted = files.read_file(&self.eval.idea.path, MAX_QUOTED_IDEA_BYTES).ok();
        let idea = quoted.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
        let parts = [
            Some(self.commit_title()),
            idea,
            Some(self.describe_gain(facts)),
            Some(self.commit_trailers(facts)),
        ];
        let message = parts.into_iter().flatten().filter(|part| !part.is_empty());
        BranchCommit {
            code: self.node.commit.clone(),
            message: message.collect::<Vec<_>>().join("\n\n"),
            at: self.node.created_at,
        }
    }

    fn commit_title(&self) -> String {
        let title: String =
            self.eval.idea.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let title = title.trim();
        if title.is_empty() { format!("idea of eval {}", self.eval.id) } else { title.to_owned() }
    }

    fn describe_gain(&self, facts: &Facts) -> String {
        let (parent, root) = (&self.measured.scored.vs_parent, &self.measured.scored.vs_root);
        let policy = &facts.settings.score;
        format!(
            "Against its parent: {primary} {}.\nAgainst the root: {primary} {}.\nScore: {} against its parent, {} against the root.",
            primary_change(policy, parent),
            primary_change(policy, root),
            format_change(Some(parent.recommendation.score)),
            format_change(Some(root.recommendation.score)),
            primary = policy.primary,
        )
    }

    fn commit_trailers(&self, facts: &Facts) -> String {
        format!("Treebeam-Run: {}\nTreebeam-Eval: {}\n", facts.run, self.eval.id)
    }
}

fn show_export(
    facts: &Facts,
    end: NodeId,
    branch: &str,
    steps: &[ExportStep<'_>],
    commits: &[Commit],
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let made = || steps.iter().zip(commits);
    match output {
        OutputFormat::Json => {
            let commits: Vec<_> = made()
                .map(|(step, commit)| {
                    json!({
                        "commit": commit,
                        "node": CodePlace::Node(step.node.id),
                        "eval": CodePlace::Candidate(step.eval.id),
                        "title": step.commit_title(),
                    })
                })
                .collect();
            terminal::print_json(&json!({
                "schema": "treebeam.export/1",
                "run_id": facts.run,
                "node": CodePlace::Node(end),
                "branch": branch,
                "commits": commits,
            }))?;
        }
        OutputFormat::Text => {
            let lines: String = made()
                .map(|(step, commit)| format!("{} {}\n", commit.short_name(), step.commit_title()))
                .collect();
            terminal::print_bytes(lines.as_bytes()).map(drop)?;
            let log = format!(
                "{} log -p {}",
                resume_command::git_command(),
                resume_command::shell_word(branch)
            );
            terminal::print_note(&format!("`{log}` shows them; your checkout is as it was"));
        }
    }
    Ok(CommandExit::Done)
}

fn explain_export_error(error: ExportError) -> CommandFailure {
    match error {
        ExportError::Name(_) | ExportError::Taken(_) => {
            CommandFailure::usage(error.to_string()).with_hint("give another name with `--branch`")
        }
        ExportError::Port(error) => error.into(),
    }
}

fn missing_node(node: NodeId) -> CommandFailure {
    CommandFailure::failed(format!("the record has no `{}`", CodePlace::Node(node)))
}
