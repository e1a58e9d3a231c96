//! Submits a sweep to the executor, and collects its results when it has ended. The root's sweep
//! must be sound, otherwise the run halts before anything is paid for; the failure of a candidate's
//! sweep is recorded for its eval only.

use super::inputs;
use crate::brief::{CollectBrief, JobWatch, SweepBounds, SweepBrief};
use crate::error::RunHalt;
use crate::port::{JobEnd, JobExit, JobKey, PortError, TouchedFiles};
use crate::run_ports::RunPorts;
use crate::summary::{EvalAttempt, EvalSummary};
use treebeam_core::bill::RoleBills;
use treebeam_core::event::{EvalFailure, EvalStage, FailureKind, SweepSubject};
use treebeam_core::evidence::{Artifact, SweepCompleteness};
use treebeam_core::gate::GateLimits;
use treebeam_core::id::{Commit, RunPath, Sha256};
use treebeam_core::measure::WorktreePath;
use treebeam_core::path;
use treebeam_core::plan::{SUSPECT_SWEEP_MESSAGE, StepOutcome};
use treebeam_core::policy::FixedSettings;
use treebeam_core::protect::{ProtectedPaths, folded_path};
use treebeam_core::root_checks::{InputScope, RootChecks};
use treebeam_score::sweep_csv::{Sweep, SweepError};

/// Submits a sweep in a fresh or renewed worktree. The root has no worktree yet; that of a repeated
/// sweep may be gone or changed; that of an earlier process is not trusted.
pub(super) fn submit_sweep(brief: &SweepBrief, world: RunPorts<'_>) -> Result<(), RunHalt> {
    let SweepBrief { job, inputs } = brief;
    inputs::require_unchanged(inputs, job.key.subject, world)?;
    let place = job.key.subject.code_place();
    if job.key.subject == SweepSubject::Root {
        world.repo.set_place_ref(place, &job.commit)?;
    }
    if job.key.subject == SweepSubject::Root || job.key.submission > 1 {
        world.repo.checkout_worktree(place, &job.commit)?;
    } else {
        world.repo.renew_worktree(place, &job.commit)?;
    }
    Ok(world.executor.submit_job(job)?)
}

/// Collects the results of an ended job. Returns `None` for an adopted job in whose worktree a file
/// differs from the commit: its sweep is run again in a worktree that this process makes.
pub(crate) fn collect_sweep(
    end: &JobEnd,
    brief: &CollectBrief,
    world: RunPorts<'_>,
) -> Result<Option<StepOutcome>, RunHalt> {
    match brief {
        CollectBrief::Root { commit, settings, watch } => {
            collect_root(end, commit, settings, *watch, world)
        }
        CollectBrief::Eval { about, commit, bounds, watch } => {
            collect_eval(end, about, SweptCommit { commit, bounds, watch: *watch }, world)
        }
    }
}

/// Path of the results of a job, or the kind and reason of its failure.
type FoundResults<'a> = Result<&'a RunPath, (FailureKind, String)>;

/// A code state that was swept, and the files that the sweep must not change.
#[derive(Clone, Copy)]
struct SweptCommit<'a> {
    commit: &'a Commit,
    bounds: &'a SweepBounds,
    watch: JobWatch,
}

impl SweptCommit<'_> {
    /// Returns the results of a job, or why there are none: a failed job may have changed its
    /// inputs, too. Returns `None` if the sweep has to be run again.
    fn find_results<'a>(
        self,
        end: &'a JobEnd,
        world: RunPorts<'_>,
    ) -> Result<Option<FoundResults<'a>>, PortError> {
        let (results, failed) = match &end.exit {
            JobExit::Done { results } => (Ok(results), None),
            JobExit::Failed { kind, message } => (Err((*kind, message.clone())), Some(message)),
            JobExit::Lost { message } => {
                (Err((FailureKind::Sweep, message.clone())), Some(message))
            }
        };
        let failed = failed.map(String::as_str);
        let changed = world.files.find_changed_artifacts(&self.bounds.artifacts)?;
        if self.bounds.is_suspect || !changed.is_empty() {
            return Ok(Some(Err((FailureKind::Artifacts, suspect_message(failed)))));
        }
        if let Some(why) = inputs::explain_void_result(&self.bounds.inputs, failed, world)? {
            return Ok(Some(Err((FailureKind::Inputs, why))));
        }
        let why = match failed {
            None => self.check_worktree(end.key.subject, world)?,
            Some(_) => None,
        };
        Ok(match (why, self.watch) {
            (Some(_), JobWatch::Adopted) => None,
            (why, _) => Some(why.map_or(results, Err)),
        })
    }

    /// Finds defects of the worktree after a sweep; restores files that the root's sweep rewrites.
    fn check_worktree(
        self,
        subject: SweepSubject,
        world: RunPorts<'_>,
    ) -> Result<Option<(FailureKind, String)>, PortError> {
        let SweepBounds { protect, results_csv, checks, .. } = self.bounds;
        let touched = find_touched(subject, self.commit, protect, world)?;
        if !touched.protected.is_empty() {
            return Ok(Some((FailureKind::Protected, describe_protected(&touched))));
        }
        // The journal of an older run does not record what its root's sweep rewrites.
        let Some(checks) = checks else { return Ok(None) };
        let other = without_results(touched.other, results_csv.as_ref());
        let is_usual = |path: &String| checks.rewritten.contains(path);
        let (usual, unusual): (Vec<String>, Vec<String>) = other.into_iter().partition(is_usual);
        if !unusual.is_empty() {
            return Ok(Some((FailureKind::Sweep, self.describe_unusual(&unusual))));
        }
        if !usual.is_empty() {
            world.repo.restore_paths(subject.code_place(), self.commit, &usual)?;
        }
        Ok(None)
    }

    /// Explains why results do not count after a sweep that changed these tracked files.
    fn describe_unusual(self, files: &[String]) -> String {
        let names = inputs::name_first_files(files);
        let what = "tests and sweep left files other than committed";
        let why = "what is measured must be what is committed";
        let advice = if self.bounds.root_was_swept {
            ""
        } else {
            "; with `baseline_csv` it is not known what the root's own sweep rewrites: leave \
             `baseline_csv` out, or take the files out of git"
        };
        format!("{what}: {names}; {why}{advice}")
    }
}

/// Explains why the results of a suspect sweep do not count; `failed` is the job's own message of
/// its failure. The changed artifacts are on record beside it.
fn suspect_message(failed: Option<&str>) -> String {
    let said = failed.map_or_else(String::new, |said| format!("; the job itself: {said}"));
    format!("{SUSPECT_SWEEP_MESSAGE}{said}")
}

fn find_touched(
    subject: SweepSubject,
    commit: &Commit,
    protect: &[String],
    world: RunPorts<'_>,
) -> Result<TouchedFiles, PortError> {
    let protected = ProtectedPaths::new(protect)
        .map_err(|error| PortError::new("cannot read `protect`").with_cause(error))?;
    world.repo.find_touched_files(subject.code_place(), commit, &protected)
}

fn describe_protected(touched: &TouchedFiles) -> String {
    let names = inputs::name_first_files(&touched.protected);
    format!("the sweep left protected files other than committed: {names}")
}

/// Removes the results CSV from these paths: a sweep may write it where the user says that it does.
fn without_results(mut paths: Vec<String>, results_csv: Option<&WorktreePath>) -> Vec<String> {
    let results = results_csv.map(|results| folded_path(results.as_str()));
    paths.retain(|path| results.as_ref() != Some(&folded_path(path)));
    paths
}

fn collect_root(
    end: &JobEnd,
    commit: &Commit,
    settings: &FixedSettings,
    watch: JobWatch,
    world: RunPorts<'_>,
) -> Result<Option<StepOutcome>, RunHalt> {
    keep_logs(end, &path::subject_folder(SweepSubject::Root).join("experiment"), world)?;
    let results = match &end.exit {
        JobExit::Done { results } => results,
        JobExit::Failed { message: why, .. } | JobExit::Lost { message: why } => {
            return Ok(Some(StepOutcome::RootRefused { why: why.clone() }));
        }
    };
    let touched = find_touched(SweepSubject::Root, commit, &settings.protect, world)?;
    if watch == JobWatch::Adopted && !touched.is_empty() {
        return Ok(None);
    }
    if !touched.protected.is_empty() {
        // A root's sweep that changes protected files would make every candidate fail.
        return Ok(Some(StepOutcome::RootRefused { why: describe_protected(&touched) }));
    }
    let rewritten = without_results(touched.other, settings.measure.results_csv.as_ref());
    if !rewritten.is_empty() {
        world.repo.restore_paths(SweepSubject::Root.code_place(), commit, &rewritten)?;
    }
    let checks = RootChecks { rewritten, inputs: InputScope::All };
    accept_root(results, end, commit, settings, checks, world).map(Some)
}

fn collect_eval(
    end: &JobEnd,
    about: &EvalAttempt,
    swept: SweptCommit<'_>,
    world: RunPorts<'_>,
) -> Result<Option<StepOutcome>, RunHalt> {
    let EvalAttempt { eval, attempt, .. } = *about;
    keep_logs(end, &path::attempt_folder(eval, attempt), world)?;
    let summary = EvalSummary::open_page(about, world.files)?.with_job_end(end);
    let found = match swept.find_results(end, world)? {
        None => return Ok(None),
        Some(Ok(results)) => import_results(results, end, attempt, world)?,
        Some(Err(failed)) => Err(failed),
    };
    let outcome = match found {
        Ok(results) => {
            summary.write(about, world.files)?;
            StepOutcome::Swept { eval, results }
        }
        Err((kind, message)) => {
            let failure = EvalFailure { stage: EvalStage::Sweep, kind, message };
            summary.with_failure(&failure).write(about, world.files)?;
            StepOutcome::EvalFailed { eval, failure, bills: RoleBills::default() }
        }
    };
    world.files.sync_files()?;
    Ok(Some(outcome))
}

/// Links the output of the commands to its stable place, which outlives the submission.
fn keep_logs(end: &JobEnd, home: &RunPath, world: RunPorts<'_>) -> Result<(), PortError> {
    for log in &end.logs {
        let name = log.as_str().rsplit('/').next().unwrap_or_default();
        world.files.link_file(log, &home.join(name))?;
    }
    if end.logs.is_empty() { Ok(()) } else { world.files.sync_files() }
}

/// Links the accepted submission to its stable place, and imports its results as an artifact.
/// Results that have changed since the job's processes were gone are refused.
fn import_results(
    results: &RunPath,
    end: &JobEnd,
    attempt: u32,
    world: RunPorts<'_>,
) -> Result<Result<Artifact, (FailureKind, String)>, PortError> {
    let subject = end.key.subject;
    let submission = path::submission_folder(subject, end.key.submission);
    let home = path::subject_folder(subject);
    world
        .files
        .link_file(&submission.join(path::EVAL_RESULT_FILE), &home.join(path::EVAL_RESULT_FILE))?;
    let stable = home.join("experiment").join(path::RESULTS_CSV);
    world.files.link_file(results, &stable)?;
    let artifact = world.files.import_artifact(&stable, &path::artifact_name(subject, attempt))?;
    world.files.sync_files()?;
    if end.results_sha256.is_some_and(|sha256| sha256 != artifact.sha256) {
        let why = "the results were changed after all processes of the sweep were gone";
        return Ok(Err((FailureKind::Results, why.to_owned())));
    }
    Ok(Ok(match &end.user_baseline {
        Some(file) => artifact.with_user_source(file),
        None => artifact,
    }))
}

fn accept_root(
    results: &RunPath,
    end: &JobEnd,
    commit: &Commit,
    settings: &FixedSettings,
    checks: RootChecks,
    world: RunPorts<'_>,
) -> Result<StepOutcome, RunHalt> {
    let own = match import_results(results, end, 1, world)? {
        Ok(own) => own,
        Err((_, why)) => return Ok(StepOutcome::RootRefused { why }),
    };
    // With a user's root baseline, the sweep's results are the parent baseline of its candidates.
    let (baseline, parent) = match &settings.measure.root_baseline_csv {
        None => (own, None),
        Some(file) => {
            let named = path::submission_folder(end.key.subject, end.key.submission);
            let named = named.join(path::ROOT_BASELINE_CSV);
            let named = world.files.import_artifact(&named, path::ROOT_BASELINE_CSV)?;
            (named.with_user_source(file), Some(own))
        }
    };
    if let Some(Err(why)) =
        parent.as_ref().map(|own| count_rows(own, settings, world)).transpose()?
    {
        return Ok(StepOutcome::RootRefused { why });
    }
    Ok(match count_rows(&baseline, settings, world)? {
        Ok(rows) => {
            let protected_inputs = keep_inputs(end.key, world)?;
            let (checks, tree) = (Box::new(checks), world.repo.git_tree(commit)?);
            StepOutcome::RootMeasured { baseline, rows, parent, protected_inputs, tree, checks }
        }
        Err(why) => StepOutcome::RootRefused { why },
    })
}

/// Writes the list of inputs, for later processes, and returns its digest.
fn keep_inputs(key: JobKey, world: RunPorts<'_>) -> Result<Option<Sha256>, PortError> {
    let job = path::submission_folder(key.subject, key.submission);
    let Some(list) = world.inputs.list_inputs(&job)? else { return Ok(None) };
    world.files.write_file(&path::root_inputs_file(), &list.bytes)?;
    world.files.sync_files()?;
    Ok(Some(list.sha256))
}

/// Returns the number of comparable rows of results, or why they cannot be compared.
fn count_rows(
    results: &Artifact,
    settings: &FixedSettings,
    world: RunPorts<'_>,
) -> Result<Result<u32, String>, PortError> {
    let reader = world.files.open_artifact(results)?;
    let name = results.user_source().unwrap_or(&results.source);
    let whose = results.user_source().map(|file| format!("`{file}`"));
    let whose = whose.as_deref().unwrap_or("the sweep of the root");
    let sweep = Sweep::read_csv(reader, name, settings.config_limit(), &settings.score);
    Ok(split_sweep_error(sweep)?.and_then(|sweep| check_root_rows(&sweep, whose, settings)))
}

/// Splits errors of reading results: defects become a text, errors of the disk a port error.
pub(super) fn split_sweep_error(
    read: Result<Sweep, SweepError>,
) -> Result<Result<Sweep, String>, PortError> {
    match read {
        Err(error @ SweepError::Io { .. }) => {
            Err(PortError::new("results cannot be read").with_cause(error))
        }
        read => Ok(read.map_err(|error| error.to_string())),
    }
}

/// Returns the number of rows of the root's results, by the rule for candidates.
fn check_root_rows(sweep: &Sweep, whose: &str, settings: &FixedSettings) -> Result<u32, String> {
    sweep
        .require_primary(&settings.score)
        .and_then(|()| sweep.require_columns(&settings.score))
        .map_err(|error| error.to_string())?;
    let rows = sweep.rows_used();
    let found = sweep.completeness(settings.config_limit(), settings.gate.min_rows.unwrap_or(rows));
    if !GateLimits::from_settings(settings).are_rows_complete(rows, found) {
        let SweepCompleteness { expected_count, ok_count, error_count } = found;
        let all = expected_count.max(rows);
        let figures = format!("{ok_count} of {all} configurations ok, {error_count} not ok");
        let rule = match settings.config_limit() {
            Some(_) => String::new(),
            None if rows < expected_count => format!("; `gate.min_rows` is {expected_count}"),
            None => format!("; `gate.min_ok_rate` is {}", settings.gate.min_ok_rate),
        };
        return Err(format!("{whose} has {rows} rows, {figures}{rule}"));
    }
    let (ragged, repeated) = (sweep.ragged_rows(), sweep.duplicate_ids());
    if ragged > 0 || repeated > 0 {
        return Err(format!("{whose} has ragged rows: {ragged}, repeated ids: {repeated}"));
    }
    let primary = &settings.score.primary;
    let missing = || format!("{whose} has no number in column `{primary}`");
    sweep.column_mean(primary).map(|_| rows).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;
    use treebeam_core::num::Finite;

    #[test]
    fn the_root_is_held_to_what_candidates_are() {
        let primary = &FixedSettings::default().score.primary;
        let whole = "0,ok,1\n1,ok,2\n2,ok,3\n";
        let failing = "0,ok,1\n1,error,\n2,ok,3\n";
        let check = |rows: &str, limit, (min_rows, rate), expect: Result<u32, &str>| {
            let mut settings = FixedSettings {
                sweep_config_limit: NonZeroU32::new(limit),
                ..FixedSettings::default()
            };
            settings.gate.min_rows = min_rows;
            settings.gate.min_ok_rate = Finite::new(rate).expect("a number");
            let text = format!("config_id,status,{primary}\n{rows}");
            let sweep =
                Sweep::read_csv(text.as_bytes(), "a.csv", settings.config_limit(), &settings.score);
            let found = check_root_rows(&sweep.expect("a sweep"), "it", &settings);
            assert_eq!(found, expect.map_err(str::to_owned), "{rows}");
        };
        check(whole, 0, (None, 1.0), Ok(3));
        check(whole, 3, (None, 1.0), Ok(3));
        check(whole, 4, (None, 1.0), Err("it has 3 rows, 3 of 4 configurations ok, 0 not ok"));
        check(failing, 3, (None, 0.5), Err("it has 3 rows, 2 of 3 configurations ok, 1 not ok"));
        check(failing, 0, (None, 0.5), Ok(3));
        check(failing, 0, (Some(2), 0.5), Ok(3));
        let few = "it has 3 rows, 2 of 3 configurations ok, 1 not ok; `gate.min_ok_rate` is 0.7";
        check(failing, 0, (Some(2), 0.7), Err(few));
        let short = "it has 3 rows, 3 of 5 configurations ok, 0 not ok; `gate.min_rows` is 5";
        check(whole, 0, (Some(5), 0.5), Err(short));
    }
}
