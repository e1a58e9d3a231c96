//! `treebeam validate`: checks that a run's record, files, refs and decisions hold together, and writes what it found.

pub(super) mod chain;
mod commits;
mod digests;

use super::Output;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::wiring::Found;
use serde_json::json;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use treebeam_core::audit::{self, Finding, Severity};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::evidence::{Artifact, Scored};
use treebeam_core::facts::{Baseline, Eval, Facts, Measured, Stage};
use treebeam_core::id::{Commit, Place, RunPath, Sha256};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::score;
use treebeam_core::state::State;
use treebeam_core::sweep::Sweep;
use treebeam_edge::git::{GitRepo, UserRepo};
use treebeam_edge::store::{self, Note, RunDir, RunFiles, StoreError};
use treebeam_run::port::Files as _;

/// What was found, for people, in the run's directory.
const REPORT: &str = "VALIDATION_REPORT.md";

/// A run and what is wrong with it.
pub(super) struct Checked {
    pub(super) state: State,
    pub(super) findings: Vec<Finding>,
}

pub(super) fn run(found: &Found, output: Output) -> Result<Exit, Failure> {
    let checked = check(found)?;
    if output == Output::Json {
        let findings = checked.findings.iter().map(|finding| {
            json!({
                "what": finding.what,
                "where": finding.place,
                "severity": finding.severity.to_string(),
                "advice": finding.advice,
            })
        });
        terminal::json(&json!({
            "schema": "treebeam.validate/1",
            "run_id": checked.state.run,
            "ok": checked.errors() == 0,
            "findings": findings.collect::<Vec<_>>(),
        }))?;
    }
    Ok(checked.exit(output))
}

impl Checked {
    /// Says what was found, and what that means for a script.
    pub(super) fn exit(&self, output: Output) -> Exit {
        if output == Output::Text {
            for finding in &self.findings {
                let Finding { severity, place, what, .. } = finding;
                terminal::say(&format!("{severity}: {place}: {what}"));
            }
            let (run, errors) = (&self.state.run, self.errors());
            let warnings = self.findings.len() - errors;
            terminal::say(&match (errors, warnings) {
                (0, 0) => format!("run {run} is sound"),
                (0, _) => format!("run {run} is sound; warnings: {warnings}"),
                _ => format!("run {run} has issues: {errors}; warnings: {warnings}"),
            });
            if !self.findings.is_empty() {
                terminal::hint(&format!("`{REPORT}` says what to do about each"));
            }
        }
        if self.errors() > 0 { Exit::Invalid } else { Exit::Done }
    }

    fn errors(&self) -> usize {
        let serious = |finding: &&Finding| finding.severity == Severity::Error;
        self.findings.iter().filter(serious).count()
    }
}

/// Checks a run and writes `VALIDATION_REPORT.md`.
pub(super) fn check(found: &Found) -> Result<Checked, Failure> {
    if found.repo.is_none() {
        terminal::note("the run lies in no repository: refs and worktrees are not checked");
    }
    let checked = look(found)?;
    let text = treebeam_view::validation::report(checked.state.run.as_str(), &checked.findings);
    let path: RunPath = REPORT.parse()?;
    if let Err(error) = RunFiles::new(found.run.clone()).write(&path, text.as_bytes()) {
        terminal::note(&error.in_full());
    }
    Ok(checked)
}

/// Checks a run, and writes nothing.
pub(super) fn look(found: &Found) -> Result<Checked, Failure> {
    let run = &found.run;
    let mut findings = Vec::new();
    let state = record(run, &mut findings)?;
    findings.extend(audit::structure(&state));
    findings.extend(audit::beams(&state));
    files(run, &state, &mut findings);
    if let Some(repo) = &found.repo {
        places(repo, run, &state, &mut findings)?;
    }
    chain::check(run, found.repo.as_ref(), &state, &mut findings)?;
    decisions(run, &state, &mut findings);
    Ok(Checked { state, findings })
}

/// Reads the record, and compares its two forms.
fn record(run: &RunDir, findings: &mut Vec<Finding>) -> Result<State, Failure> {
    let opened = store::open_to_read(run)?;
    findings.extend(opened.notes.iter().map(of_note));
    match store::disagreement(run) {
        Ok(what) => findings.extend(what.map(|what| {
            let advice = "the journal is the truth; restore the run directory from a copy";
            Finding::new(what, "manifest.json", advice)
        })),
        Err(error) => add_journal_damage(&error, findings),
    }
    if opened.state.stop_reason().is_some() && !run.manifest().is_file() {
        let advice = "`treebeam resume` writes it anew";
        findings.push(Finding::new("the manifest is missing", "manifest.json", advice));
    }
    Ok(opened.state)
}

/// Adds why the journal cannot be read. Several checks read it: the same damage is one finding.
fn add_journal_damage(error: &StoreError, findings: &mut Vec<Finding>) {
    let advice = error.hint().unwrap_or_default();
    let found = Finding::new(in_full(error), "journal.jsonl", advice);
    if !findings.contains(&found) {
        findings.push(found);
    }
}

/// What is wrong and why, in one line.
fn in_full(error: &(dyn Error + 'static)) -> String {
    let words: Vec<_> = anyhow::Chain::new(error).map(ToString::to_string).collect();
    words.join(": ")
}

fn of_note(note: &Note) -> Finding {
    let what = note.to_string();
    match note {
        Note::Torn { .. } => {
            let advice = "none is needed: `treebeam resume` goes on from the line before";
            Finding::new(what, "journal.jsonl", advice).warning()
        }
        Note::TakenOver { .. } => {
            Finding::new(what, "journal.jsonl", "none is needed: reading takes nothing over")
                .warning()
        }
        Note::Damaged { .. } | Note::Late { .. } | Note::ManifestAlone { .. } => {
            Finding::new(what, "manifest.json", "`treebeam resume` writes it anew")
        }
    }
}

fn files(run: &RunDir, facts: &Facts, findings: &mut Vec<Finding>) {
    let recorded = digests::recorded(run, findings);
    findings.extend(digests::note(facts, &recorded));
    for reference in digests::references(facts, &recorded) {
        let (path, by) = (&reference.path, &reference.by);
        let finding = match (store::digest(&run.path(path)), reference.sha256) {
            (Err(_), Some(recorded)) if digests::is_set_aside(run, path, recorded) => None,
            (Err(error), _) => {
                Some((format!("`{path}` cannot be read: {error}"), "restore the file"))
            }
            (Ok(found), Some(recorded)) if found != recorded => {
                let advice = "restore the file; decisions rest on it";
                Some((format!("`{path}` has sha256 {found}, recorded is {recorded}"), advice))
            }
            (Ok(_), _) => None,
        };
        findings.extend(finding.map(|(what, advice)| Finding::new(what, by.as_str(), advice)));
    }
}

/// Every node's commit must be what its ref points at, and its worktree should be there.
fn places(
    repo: &UserRepo,
    run: &RunDir,
    facts: &Facts,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let repo = GitRepo::new(repo.clone(), run.root(), facts.run.clone())?;
    findings.extend(commits::check(&repo, facts)?);
    let refs: BTreeMap<String, Commit> = repo.refs()?.into_iter().collect();
    for node in &facts.nodes {
        let planted = matches!(facts.baseline, Baseline::Measured { .. });
        let name = Place::Node(node.id).ref_name(&facts.run);
        let needs = |kind| {
            let part = Leftover { place: Place::Node(node.id), kind };
            planted && facts.has(part) && !facts.leftovers.contains_key(&part)
        };
        if needs(LeftoverKind::Branch) && refs.get(&name) != Some(&node.commit) {
            let what = format!("its commit {} is not reachable by `{name}`", node.commit.short());
            let advice = format!("`git branch -f {name} {}` if the commit exists", node.commit);
            findings.push(Finding::new(what, format!("node {}", node.id), advice));
        }
        let worktree = Place::Node(node.id).worktree();
        if needs(LeftoverKind::Worktree) && !run.path(&worktree).is_dir() {
            let what = format!("its worktree `{worktree}` is gone");
            let advice = "none is needed: its commit is kept by its ref";
            findings.push(Finding::new(what, format!("node {}", node.id), advice).warning());
        }
    }
    Ok(())
}

/// Scores every candidate again from the artifacts.
fn decisions(run: &RunDir, facts: &Facts, findings: &mut Vec<Finding>) {
    let files = RunFiles::new(run.clone());
    let (mut sweeps, mut today) = (BTreeMap::new(), BTreeMap::new());
    for eval in facts.evals.iter().filter(|eval| eval.measured().is_some()) {
        match again(facts, &eval, &files, &mut sweeps) {
            Ok(Rescored { recorded, latest }) => {
                findings.extend(audit::decision(facts, &eval, &recorded));
                today.extend(latest.map(|scored| (eval.id, scored)));
            }
            Err(why) => {
                let what = format!("it cannot be scored again: {why}");
                let advice = "its artifacts are not what was scored";
                findings.push(Finding::new(what, format!("eval {}", eval.id), advice));
            }
        }
    }
    findings.extend(audit::changed_by_rules(facts, &today));
}

/// The figures of an eval, computed again from its artifacts.
struct Rescored {
    /// By the rules that it was scored by.
    recorded: Scored,
    /// By the latest rules, where these are others and the eval was decided.
    latest: Option<Scored>,
}

fn again(
    facts: &Facts,
    eval: &Eval,
    files: &RunFiles,
    baselines: &mut BTreeMap<Sha256, Sweep>,
) -> Result<Rescored, String> {
    let read = |artifact: &Artifact| {
        let reader = files.open(artifact).map_err(|error| in_full(&error))?;
        let (name, meaning) = (artifact.path.as_str(), &facts.meaning);
        Sweep::read(reader, name, meaning.limit(), &meaning.score).map_err(|error| in_full(&error))
    };
    let missing = || "the record names no artifact".to_owned();
    let Baseline::Measured { results: root, rows, .. } = &facts.baseline else {
        return Err(missing());
    };
    let parent = facts.node(eval.parent).and_then(|node| facts.baseline_of(node));
    let parent = parent.ok_or_else(missing)?;
    let Measured { results, scored, .. } = eval.measured().ok_or_else(missing)?;
    for artifact in [root, &parent] {
        if let Entry::Vacant(free) = baselines.entry(artifact.sha256) {
            free.insert(read(artifact)?);
        }
    }
    let (Some(parent), Some(root)) = (baselines.get(&parent.sha256), baselines.get(&root.sha256))
    else {
        return Err(missing());
    };
    let candidate = read(&results)?;
    let by = |rules| {
        score::judge_by(rules, [parent, root], &candidate, &facts.meaning, *rows)
            .map(|judgement| judgement.scored)
            .map_err(|error| error.to_string())
    };
    let decided_by_older =
        !scored.rules_version.is_latest() && matches!(eval.stage, Stage::Decided(..));
    Ok(Rescored {
        recorded: by(scored.rules_version)?,
        latest: decided_by_older.then(|| by(RulesVersion::LATEST)).transpose()?,
    })
}
