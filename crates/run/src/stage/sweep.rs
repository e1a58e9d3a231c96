//! Gives a sweep to the executor, and takes its results in when it has ended. The root's sweep must be sound, or nothing
//! is paid for; a candidate's failure is its own.

use super::inputs;
use crate::brief::{ForCollecting, ForSweep, JobWatch, SweepBounds};
use crate::drive::Halt;
use crate::port::{JobEnd, JobExit, JobKey, PortError, TouchedFiles, World};
use crate::summary::{About, Summary};
use treebeam_core::bill::Bills;
use treebeam_core::event::{EvalStage, Failure, FailureKind, Subject};
use treebeam_core::evidence::{Artifact, Completeness};
use treebeam_core::gate::Rules;
use treebeam_core::id::{Commit, RunPath, Sha256};
use treebeam_core::measure::WorktreePath;
use treebeam_core::path;
use treebeam_core::plan::{Outcome, SUSPECT_SWEEP};
use treebeam_core::policy::Meaning;
use treebeam_core::protect::{Protected, folded_path};
use treebeam_core::root_checks::{InputScope, RootChecks};
use treebeam_core::sweep::{Sweep, SweepError};

/// The root has no worktree yet; that of a candidate whose sweep is repeated may be gone, or may have been touched; one that
/// a process before left is not believed.
pub(super) fn submit(brief: &ForSweep, world: World<'_>) -> Result<(), Halt> {
    let ForSweep { job, inputs } = brief;
    inputs::require(inputs, job.key.subject, world)?;
    let place = job.key.subject.place();
    if job.key.subject == Subject::Root {
        world.repo.keep(place, &job.commit)?;
    }
    if job.key.subject == Subject::Root || job.key.submission > 1 {
        world.repo.checkout(place, &job.commit)?;
    } else {
        world.repo.renew(place, &job.commit)?;
    }
    Ok(world.executor.submit(job)?)
}

/// Takes in what an ended job left behind. Nothing comes of an adopted job in whose worktree a file
/// is other than committed: its sweep is run again in a worktree that this process makes.
pub(crate) fn collect(
    end: &JobEnd,
    brief: &ForCollecting,
    world: World<'_>,
) -> Result<Option<Outcome>, Halt> {
    match brief {
        ForCollecting::Root { commit, meaning, watch } => {
            of_root(end, commit, meaning, *watch, world)
        }
        ForCollecting::Eval { about, commit, bounds, watch } => {
            of_eval(end, about, Swept { commit, bounds, watch: *watch }, world)
        }
    }
}

/// Where the results of a job lie, or what kind of failure it is, and why.
type Found<'a> = Result<&'a RunPath, (FailureKind, String)>;

/// A code state that was swept, and what may not be another than it has it.
#[derive(Clone, Copy)]
struct Swept<'a> {
    commit: &'a Commit,
    bounds: &'a SweepBounds,
    watch: JobWatch,
}

impl Swept<'_> {
    /// The results of a job, or why there are none: one that failed may have changed what it was
    /// given too. Nothing where the sweep has to be run again.
    fn results<'a>(
        self,
        end: &'a JobEnd,
        world: World<'_>,
    ) -> Result<Option<Found<'a>>, PortError> {
        let (results, failed) = match &end.exit {
            JobExit::Done { results } => (Ok(results), None),
            JobExit::Failed { kind, message } => (Err((*kind, message.clone())), Some(message)),
            JobExit::Lost { message } => {
                (Err((FailureKind::Sweep, message.clone())), Some(message))
            }
        };
        let failed = failed.map(String::as_str);
        let changed = world.files.changed(&self.bounds.artifacts)?;
        if self.bounds.is_suspect || !changed.is_empty() {
            return Ok(Some(Err((FailureKind::Artifacts, suspect(failed)))));
        }
        if let Some(why) = inputs::look_over(&self.bounds.inputs, failed, world)? {
            return Ok(Some(Err((FailureKind::Inputs, why))));
        }
        let why = match failed {
            None => self.look_over(end.key.subject, world)?,
            Some(_) => None,
        };
        Ok(match (why, self.watch) {
            (Some(_), JobWatch::Adopted) => None,
            (why, _) => Some(why.map_or(results, Err)),
        })
    }

    /// What is wrong with the worktree that a sweep has left, in words. What the root's own sweep rewrites too is restored.
    fn look_over(
        self,
        subject: Subject,
        world: World<'_>,
    ) -> Result<Option<(FailureKind, String)>, PortError> {
        let SweepBounds { protect, results_csv, checks, .. } = self.bounds;
        let touched = touched(subject, self.commit, protect, world)?;
        if !touched.protected.is_empty() {
            return Ok(Some((FailureKind::Protected, protected_in_words(&touched))));
        }
        // An older run does not say what its root's sweep rewrites.
        let Some(checks) = checks else { return Ok(None) };
        let other = but_results(touched.other, results_csv.as_ref());
        let is_usual = |path: &String| checks.rewritten.contains(path);
        let (usual, unusual): (Vec<String>, Vec<String>) = other.into_iter().partition(is_usual);
        if !unusual.is_empty() {
            return Ok(Some((FailureKind::Sweep, self.unusual_in_words(&unusual))));
        }
        if !usual.is_empty() {
            world.repo.restore(subject.place(), self.commit, &usual)?;
        }
        Ok(None)
    }

    /// Why results do not count whose sweep left these tracked files other than committed.
    fn unusual_in_words(self, files: &[String]) -> String {
        let names = inputs::named(files);
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

/// Why the results of a suspect sweep do not count; `failed` is what the job says itself of its
/// failure. Which artifacts were changed is on record beside it.
fn suspect(failed: Option<&str>) -> String {
    let said = failed.map_or_else(String::new, |said| format!("; the job itself: {said}"));
    format!("{SUSPECT_SWEEP}{said}")
}

fn touched(
    subject: Subject,
    commit: &Commit,
    protect: &[String],
    world: World<'_>,
) -> Result<TouchedFiles, PortError> {
    let protected = Protected::new(protect)
        .map_err(|error| PortError::new("cannot read `protect`").caused_by(error))?;
    world.repo.touched(subject.place(), commit, &protected)
}

fn protected_in_words(touched: &TouchedFiles) -> String {
    let names = inputs::named(&touched.protected);
    format!("the sweep left protected files other than committed: {names}")
}

/// A sweep may write its results where the user says that it does.
fn but_results(mut paths: Vec<String>, results_csv: Option<&WorktreePath>) -> Vec<String> {
    let results = results_csv.map(|results| folded_path(results.as_str()));
    paths.retain(|path| results.as_ref() != Some(&folded_path(path)));
    paths
}

fn of_root(
    end: &JobEnd,
    commit: &Commit,
    meaning: &Meaning,
    watch: JobWatch,
    world: World<'_>,
) -> Result<Option<Outcome>, Halt> {
    keep_logs(end, &path::of_subject(Subject::Root).join("experiment"), world)?;
    let results = match &end.exit {
        JobExit::Done { results } => results,
        JobExit::Failed { message: why, .. } | JobExit::Lost { message: why } => {
            return Ok(Some(Outcome::RootRefused { why: why.clone() }));
        }
    };
    let touched = touched(Subject::Root, commit, &meaning.protect, world)?;
    if watch == JobWatch::Adopted && !touched.is_empty() {
        return Ok(None);
    }
    if !touched.protected.is_empty() {
        // Where the sweep itself does that, it would fail every candidate.
        return Ok(Some(Outcome::RootRefused { why: protected_in_words(&touched) }));
    }
    let rewritten = but_results(touched.other, meaning.measure.results_csv.as_ref());
    if !rewritten.is_empty() {
        world.repo.restore(Subject::Root.place(), commit, &rewritten)?;
    }
    let checks = RootChecks { rewritten, inputs: InputScope::All };
    root(results, end, commit, meaning, checks, world).map(Some)
}

fn of_eval(
    end: &JobEnd,
    about: &About,
    swept: Swept<'_>,
    world: World<'_>,
) -> Result<Option<Outcome>, Halt> {
    let About { eval, attempt, .. } = *about;
    keep_logs(end, &path::attempt(eval, attempt), world)?;
    let summary = Summary::open(about, world.files)?.swept(end);
    let found = match swept.results(end, world)? {
        None => return Ok(None),
        Some(Ok(results)) => take_in(results, end, attempt, world)?,
        Some(Err(failed)) => Err(failed),
    };
    let outcome = match found {
        Ok(results) => {
            summary.write(about, world.files)?;
            Outcome::Swept { eval, results }
        }
        Err((kind, message)) => {
            let failure = Failure { stage: EvalStage::Sweep, kind, message };
            summary.failed(&failure).write(about, world.files)?;
            Outcome::EvalFailed { eval, failure, bills: Bills::default() }
        }
    };
    world.files.settle()?;
    Ok(Some(outcome))
}

/// Links what the commands said to where it stays, whatever becomes of the submission.
fn keep_logs(end: &JobEnd, home: &RunPath, world: World<'_>) -> Result<(), PortError> {
    for log in &end.logs {
        let name = log.as_str().rsplit('/').next().unwrap_or_default();
        world.files.link(log, &home.join(name))?;
    }
    if end.logs.is_empty() { Ok(()) } else { world.files.settle() }
}

/// Links the accepted submission to its stable place, and copies its results to where decisions rest on them. Results that
/// are no longer what they were when the job's processes were gone are refused.
fn take_in(
    results: &RunPath,
    end: &JobEnd,
    attempt: u32,
    world: World<'_>,
) -> Result<Result<Artifact, (FailureKind, String)>, PortError> {
    let subject = end.key.subject;
    let submission = path::submission(subject, end.key.submission);
    let home = path::of_subject(subject);
    world.files.link(&submission.join(path::EVAL_RESULT), &home.join(path::EVAL_RESULT))?;
    let stable = home.join("experiment").join(path::RESULTS_CSV);
    world.files.link(results, &stable)?;
    let artifact = world.files.import(&stable, &path::artifact_name(subject, attempt))?;
    world.files.settle()?;
    if end.results_sha256.is_some_and(|sha256| sha256 != artifact.sha256) {
        let why = "the results were changed after all processes of the sweep were gone";
        return Ok(Err((FailureKind::Results, why.to_owned())));
    }
    Ok(Ok(match &end.given {
        Some(file) => artifact.taken_from(file),
        None => artifact,
    }))
}

fn root(
    results: &RunPath,
    end: &JobEnd,
    commit: &Commit,
    meaning: &Meaning,
    checks: RootChecks,
    world: World<'_>,
) -> Result<Outcome, Halt> {
    let own = match take_in(results, end, 1, world)? {
        Ok(own) => own,
        Err((_, why)) => return Ok(Outcome::RootRefused { why }),
    };
    // Where the user names another one for the root, the sweep is what its candidates have as their parent's.
    let (baseline, parent) = match &meaning.measure.root_baseline_csv {
        None => (own, None),
        Some(file) => {
            let named = path::submission(end.key.subject, end.key.submission);
            let named = named.join(path::ROOT_BASELINE_CSV);
            let named = world.files.import(&named, path::ROOT_BASELINE_CSV)?;
            (named.taken_from(file), Some(own))
        }
    };
    if let Some(Err(why)) = parent.as_ref().map(|own| rows_of(own, meaning, world)).transpose()? {
        return Ok(Outcome::RootRefused { why });
    }
    Ok(match rows_of(&baseline, meaning, world)? {
        Ok(rows) => {
            let protected_inputs = keep_inputs(end.key, world)?;
            let (checks, tree) = (Box::new(checks), world.repo.tree(commit)?);
            Outcome::RootMeasured { baseline, rows, parent, protected_inputs, tree, checks }
        }
        Err(why) => Outcome::RootRefused { why },
    })
}

/// Writes down what the inputs are, for processes that come later: the digest of the list.
fn keep_inputs(key: JobKey, world: World<'_>) -> Result<Option<Sha256>, PortError> {
    let job = path::submission(key.subject, key.submission);
    let Some(list) = world.inputs.list(&job)? else { return Ok(None) };
    world.files.write(&path::root_inputs(), &list.bytes)?;
    world.files.settle()?;
    Ok(Some(list.sha256))
}

/// How many rows results have that can be compared with, or in words why they cannot.
fn rows_of(
    results: &Artifact,
    meaning: &Meaning,
    world: World<'_>,
) -> Result<Result<u32, String>, PortError> {
    let reader = world.files.open(results)?;
    let name = results.given().unwrap_or(&results.source);
    let whose = results.given().map(|file| format!("`{file}`"));
    let whose = whose.as_deref().unwrap_or("the sweep of the root");
    let sweep = Sweep::read(reader, name, meaning.limit(), &meaning.score);
    Ok(in_words(sweep)?.and_then(|sweep| sound(&sweep, whose, meaning)))
}

/// What is wrong with results is said in words; that they cannot be read is nobody's fault but the disk's.
pub(super) fn in_words(
    read: Result<Sweep, SweepError>,
) -> Result<Result<Sweep, String>, PortError> {
    match read {
        Err(error @ SweepError::Io { .. }) => {
            Err(PortError::new("results cannot be read").caused_by(error))
        }
        read => Ok(read.map_err(|error| error.to_string())),
    }
}

/// How many rows the root's results have, if they can be compared with: by the rule that candidates are judged by.
fn sound(sweep: &Sweep, whose: &str, meaning: &Meaning) -> Result<u32, String> {
    sweep
        .require_primary(&meaning.score)
        .and_then(|()| sweep.require(&meaning.score))
        .map_err(|error| error.to_string())?;
    let rows = sweep.rows_used();
    let found = sweep.completeness(meaning.limit(), meaning.gate.min_rows.unwrap_or(rows));
    if !Rules::of(meaning).are_complete(rows, found) {
        let Completeness { expected_count, ok_count, error_count } = found;
        let all = expected_count.max(rows);
        let figures = format!("{ok_count} of {all} configurations ok, {error_count} not ok");
        let rule = match meaning.limit() {
            Some(_) => String::new(),
            None if rows < expected_count => format!("; `gate.min_rows` is {expected_count}"),
            None => format!("; `gate.min_ok_rate` is {}", meaning.gate.min_ok_rate),
        };
        return Err(format!("{whose} has {rows} rows, {figures}{rule}"));
    }
    let (ragged, repeated) = (sweep.ragged_rows(), sweep.duplicate_ids());
    if ragged > 0 || repeated > 0 {
        return Err(format!("{whose} has ragged rows: {ragged}, repeated ids: {repeated}"));
    }
    let primary = &meaning.score.primary;
    let missing = || format!("{whose} has no number in column `{primary}`");
    sweep.mean(primary).map(|_| rows).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;
    use treebeam_core::num::Finite;

    #[test]
    fn the_root_is_held_to_what_candidates_are() {
        let primary = &Meaning::default().score.primary;
        let whole = "0,ok,1\n1,ok,2\n2,ok,3\n";
        let failing = "0,ok,1\n1,error,\n2,ok,3\n";
        let check = |rows: &str, limit, (min_rows, rate), expect: Result<u32, &str>| {
            let mut meaning =
                Meaning { sweep_config_limit: NonZeroU32::new(limit), ..Meaning::default() };
            meaning.gate.min_rows = min_rows;
            meaning.gate.min_ok_rate = Finite::new(rate).expect("a number");
            let text = format!("config_id,status,{primary}\n{rows}");
            let sweep = Sweep::read(text.as_bytes(), "a.csv", meaning.limit(), &meaning.score);
            let found = sound(&sweep.expect("a sweep"), "it", &meaning);
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
