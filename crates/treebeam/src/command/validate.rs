//! `treebeam validate`: checks a run's record, files, refs and decisions, and reports findings.

pub(super) mod chain;
mod commits;
mod digests;

use super::OutputFormat;
use crate::failure::{CommandExit, CommandFailure};
use crate::run_location::RunLocation;
use crate::terminal;
use serde_json::json;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use treebeam_core::audit::{self, AuditFinding, FindingSeverity};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::evidence::{Artifact, CandidateScore};
use treebeam_core::facts::{Eval, Facts, RootBaseline, ScoredCandidate, Stage};
use treebeam_core::id::{CodePlace, Commit, RunPath, Sha256};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_git::{GitRepo, UserRepo};
use treebeam_run::port::FileStore as _;
use treebeam_score::compare;
use treebeam_score::sweep_csv::Sweep;
use treebeam_store::{OpenNote, RunDir, RunFiles, StoreError};

/// Name of the report in the run's directory.
const REPORT_FILE: &str = "VALIDATION_REPORT.md";

/// A run's state, and the findings about it.
pub(super) struct ValidatedRun {
    pub(super) state: State,
    pub(super) findings: Vec<AuditFinding>,
}

pub(super) fn run_validate(
    found: &RunLocation,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let checked = validate_and_report(found)?;
    if output == OutputFormat::Json {
        let findings = checked.findings.iter().map(|finding| {
            json!({
                "what": finding.what,
                "where": finding.place,
                "severity": finding.severity.to_string(),
                "advice": finding.advice,
            })
        });
        terminal::print_json(&json!({
            "schema": "treebeam.validate/1",
            "run_id": checked.state.run,
            "ok": checked.error_count() == 0,
            "findings": findings.collect::<Vec<_>>(),
        }))?;
    }
    Ok(checked.show_and_exit(output))
}

impl ValidatedRun {
    /// Prints the findings, and returns the exit code for them.
    pub(super) fn show_and_exit(&self, output: OutputFormat) -> CommandExit {
        if output == OutputFormat::Text {
            for finding in &self.findings {
                let AuditFinding { severity, place, what, .. } = finding;
                terminal::print_line(&format!("{severity}: {place}: {what}"));
            }
            let (run, errors) = (&self.state.run, self.error_count());
            let warnings = self.findings.len() - errors;
            terminal::print_line(&match (errors, warnings) {
                (0, 0) => format!("run {run} is sound"),
                (0, _) => format!("run {run} is sound; warnings: {warnings}"),
                _ => format!("run {run} has issues: {errors}; warnings: {warnings}"),
            });
            if !self.findings.is_empty() {
                terminal::print_hint(&format!("`{REPORT_FILE}` says what to do about each"));
            }
        }
        if self.error_count() > 0 { CommandExit::Invalid } else { CommandExit::Done }
    }

    fn error_count(&self) -> usize {
        let serious = |finding: &&AuditFinding| finding.severity == FindingSeverity::Error;
        self.findings.iter().filter(serious).count()
    }
}

/// Checks a run and writes `VALIDATION_REPORT.md`.
pub(super) fn validate_and_report(found: &RunLocation) -> Result<ValidatedRun, CommandFailure> {
    if found.repo.is_none() {
        terminal::print_note("the run lies in no repository: refs and worktrees are not checked");
    }
    let checked = validate_run(found)?;
    let text = treebeam_view::validation::render_validation_report(
        checked.state.run.as_str(),
        &checked.findings,
    );
    let path: RunPath = REPORT_FILE.parse()?;
    if let Err(error) = RunFiles::new(found.run.clone()).write_file(&path, text.as_bytes()) {
        terminal::print_note(&error.full_text());
    }
    Ok(checked)
}

/// Checks a run, and writes nothing.
pub(super) fn validate_run(found: &RunLocation) -> Result<ValidatedRun, CommandFailure> {
    let run = &found.run;
    let mut findings = Vec::new();
    let state = check_record(run, &mut findings)?;
    findings.extend(audit::check_structure(&state));
    findings.extend(audit::check_beams(&state));
    check_files(run, &state, &mut findings);
    if let Some(repo) = &found.repo {
        check_refs(repo, run, &state, &mut findings)?;
    }
    chain::check_chain(run, found.repo.as_ref(), &state, &mut findings)?;
    check_decisions(run, &state, &mut findings);
    Ok(ValidatedRun { state, findings })
}

/// Reads the record, and compares journal and manifest.
fn check_record(run: &RunDir, findings: &mut Vec<AuditFinding>) -> Result<State, CommandFailure> {
    let opened = treebeam_store::open_to_read(run)?;
    findings.extend(opened.notes.iter().map(finding_from_note));
    match treebeam_store::find_manifest_mismatch(run) {
        Ok(what) => findings.extend(what.map(|what| {
            let advice = "the journal is the truth; restore the run directory from a copy";
            AuditFinding::new(what, "manifest.json", advice)
        })),
        Err(error) => add_journal_damage(&error, findings),
    }
    if opened.state.stop_reason().is_some() && !run.manifest_path().is_file() {
        let advice = "`treebeam resume` writes it anew";
        findings.push(AuditFinding::new("the manifest is missing", "manifest.json", advice));
    }
    Ok(opened.state)
}

/// Adds the reason why the journal cannot be read. Several checks read it: the same damage is one
/// finding.
fn add_journal_damage(error: &StoreError, findings: &mut Vec<AuditFinding>) {
    let advice = error.hint().unwrap_or_default();
    let found = AuditFinding::new(error_chain_text(error), "journal.jsonl", advice);
    if !findings.contains(&found) {
        findings.push(found);
    }
}

/// Formats an error with its causes in one line.
fn error_chain_text(error: &(dyn Error + 'static)) -> String {
    let words: Vec<_> = anyhow::Chain::new(error).map(ToString::to_string).collect();
    words.join(": ")
}

fn finding_from_note(note: &OpenNote) -> AuditFinding {
    let what = note.to_string();
    match note {
        OpenNote::Torn { .. } => {
            let advice = "none is needed: `treebeam resume` goes on from the line before";
            AuditFinding::new(what, "journal.jsonl", advice).into_warning()
        }
        OpenNote::TakenOver { .. } => {
            AuditFinding::new(what, "journal.jsonl", "none is needed: reading takes nothing over")
                .into_warning()
        }
        OpenNote::Damaged { .. } | OpenNote::Late { .. } | OpenNote::ManifestAlone { .. } => {
            AuditFinding::new(what, "manifest.json", "`treebeam resume` writes it anew")
        }
    }
}

fn check_files(run: &RunDir, facts: &Facts, findings: &mut Vec<AuditFinding>) {
    let recorded = digests::load_recorded_digests(run, findings);
    findings.extend(digests::note_missing_digests(facts, &recorded));
    for reference in digests::list_references(facts, &recorded) {
        let (path, by) = (&reference.path, &reference.by);
        let finding = match (treebeam_store::digest_file(&run.file_path(path)), reference.sha256) {
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
        findings.extend(finding.map(|(what, advice)| AuditFinding::new(what, by.as_str(), advice)));
    }
}

/// Checks that every node's ref points at its commit, and that its worktree exists.
fn check_refs(
    repo: &UserRepo,
    run: &RunDir,
    facts: &Facts,
    findings: &mut Vec<AuditFinding>,
) -> Result<(), CommandFailure> {
    let repo = GitRepo::new(repo.clone(), run.root(), facts.run.clone())?;
    findings.extend(commits::check_commits(&repo, facts)?);
    let refs: BTreeMap<String, Commit> = repo.list_refs()?.into_iter().collect();
    for node in &facts.nodes {
        let planted = matches!(facts.baseline, RootBaseline::Measured { .. });
        let name = CodePlace::Node(node.id).ref_name(&facts.run);
        let needs = |kind| {
            let part = Leftover { place: CodePlace::Node(node.id), kind };
            planted && facts.has_leftover(part) && !facts.leftovers.contains_key(&part)
        };
        if needs(LeftoverKind::Branch) && refs.get(&name) != Some(&node.commit) {
            let what =
                format!("its commit {} is not reachable by `{name}`", node.commit.short_name());
            let advice = format!("`git branch -f {name} {}` if the commit exists", node.commit);
            findings.push(AuditFinding::new(what, format!("node {}", node.id), advice));
        }
        let worktree = CodePlace::Node(node.id).worktree_path();
        if needs(LeftoverKind::Worktree) && !run.file_path(&worktree).is_dir() {
            let what = format!("its worktree `{worktree}` is gone");
            let advice = "none is needed: its commit is kept by its ref";
            findings
                .push(AuditFinding::new(what, format!("node {}", node.id), advice).into_warning());
        }
    }
    Ok(())
}

/// Scores every candidate again from the artifacts.
fn check_decisions(run: &RunDir, facts: &Facts, findings: &mut Vec<AuditFinding>) {
    let files = RunFiles::new(run.clone());
    let (mut sweeps, mut today) = (BTreeMap::new(), BTreeMap::new());
    for eval in facts.evals.iter().filter(|eval| eval.scored_candidate().is_some()) {
        match rescore_eval(facts, &eval, &files, &mut sweeps) {
            Ok(RescoredEval { recorded, latest }) => {
                findings.extend(audit::check_decision(facts, &eval, &recorded));
                today.extend(latest.map(|scored| (eval.id, scored)));
            }
            Err(why) => {
                let what = format!("it cannot be scored again: {why}");
                let advice = "its artifacts are not what was scored";
                findings.push(AuditFinding::new(what, format!("eval {}", eval.id), advice));
            }
        }
    }
    findings.extend(audit::decisions_changed_by_rules(facts, &today));
}

/// The score of an eval, computed again from its artifacts.
struct RescoredEval {
    /// By the rules that it was scored with.
    recorded: CandidateScore,
    /// By the latest rules, if these are others and the eval was decided.
    latest: Option<CandidateScore>,
}

fn rescore_eval(
    facts: &Facts,
    eval: &Eval,
    files: &RunFiles,
    baselines: &mut BTreeMap<Sha256, Sweep>,
) -> Result<RescoredEval, String> {
    let read = |artifact: &Artifact| {
        let reader = files.open_artifact(artifact).map_err(|error| error_chain_text(&error))?;
        let (name, settings) = (artifact.path.as_str(), &facts.settings);
        Sweep::read_csv(reader, name, settings.config_limit(), &settings.score)
            .map_err(|error| error_chain_text(&error))
    };
    let missing = || "the record names no artifact".to_owned();
    let RootBaseline::Measured { results: root, rows, .. } = &facts.baseline else {
        return Err(missing());
    };
    let parent = facts.node(eval.parent).and_then(|node| facts.baseline_of(node));
    let parent = parent.ok_or_else(missing)?;
    let ScoredCandidate { results, scored, .. } = eval.scored_candidate().ok_or_else(missing)?;
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
        compare::score_candidate_by(rules, [parent, root], &candidate, &facts.settings, *rows)
            .map(|judgement| judgement.scored)
            .map_err(|error| error.to_string())
    };
    let decided_by_older =
        !scored.rules_version.is_latest() && matches!(eval.stage, Stage::Decided(..));
    Ok(RescoredEval {
        recorded: by(scored.rules_version)?,
        latest: decided_by_older.then(|| by(RulesVersion::LATEST)).transpose()?,
    })
}
