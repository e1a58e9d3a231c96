//! Gives a sweep to the executor, and takes its results in when it has ended. The root's sweep must be sound, or nothing
//! is paid for; a candidate's failure is its own.

use crate::drive::Halt;
use crate::port::{Job, JobEnd, JobExit, PortError, World};
use treebeam_core::bill::Bills;
use treebeam_core::event::{EvalStage, Failure, FailureKind, Subject};
use treebeam_core::evidence::Artifact;
use treebeam_core::id::RunPath;
use treebeam_core::path;
use treebeam_core::plan::Outcome;
use treebeam_core::policy::Meaning;
use treebeam_core::sweep::{Sweep, SweepError};

/// The root has no worktree yet; that of a candidate whose sweep is repeated may be gone, or may have been touched; one that
/// a process before left is not believed.
pub(super) fn submit(job: &Job, world: World<'_>) -> Result<(), Halt> {
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

/// Takes in what an ended job left behind, at which attempt, counted from 1.
pub(crate) fn collect(
    end: &JobEnd,
    attempt: u32,
    meaning: &Meaning,
    world: World<'_>,
) -> Result<Outcome, Halt> {
    let failed = |kind, message: &str| match end.key.subject {
        Subject::Root => Outcome::RootRefused { why: message.to_owned() },
        Subject::Eval(eval) => {
            let failure = Failure { stage: EvalStage::Sweep, kind, message: message.to_owned() };
            Outcome::EvalFailed { eval, failure, bills: Bills::default() }
        }
    };
    keep_logs(end, attempt, world)?;
    match (end.key.subject, &end.exit) {
        (Subject::Root, JobExit::Done { results }) => root(results, end, meaning, world),
        (Subject::Eval(eval), JobExit::Done { results }) => {
            let results = take_in(results, end, attempt, world)?;
            Ok(Outcome::Swept { eval, results })
        }
        (_, JobExit::Failed { kind, message }) => Ok(failed(*kind, message)),
        (_, JobExit::Lost { message }) => Ok(failed(FailureKind::Sweep, message)),
    }
}

/// Links what the commands said to where it stays, whatever becomes of the submission.
fn keep_logs(end: &JobEnd, attempt: u32, world: World<'_>) -> Result<(), PortError> {
    let home = match end.key.subject {
        Subject::Root => path::of_subject(Subject::Root).join("experiment"),
        Subject::Eval(eval) => path::attempt(eval, attempt),
    };
    for log in &end.logs {
        let name = log.as_str().rsplit('/').next().unwrap_or_default();
        world.files.link(log, &home.join(name))?;
    }
    if end.logs.is_empty() { Ok(()) } else { world.files.settle() }
}

/// Links the accepted submission to its stable place, and copies its results to where decisions rest on them.
fn take_in(
    results: &RunPath,
    end: &JobEnd,
    attempt: u32,
    world: World<'_>,
) -> Result<Artifact, PortError> {
    let subject = end.key.subject;
    let submission = path::submission(subject, end.key.submission);
    let home = path::of_subject(subject);
    world.files.link(&submission.join(path::EVAL_RESULT), &home.join(path::EVAL_RESULT))?;
    let stable = home.join("experiment").join(path::RESULTS_CSV);
    world.files.link(results, &stable)?;
    let artifact = world.files.import(&stable, &path::artifact_name(subject, attempt))?;
    world.files.settle()?;
    Ok(artifact)
}

fn root(
    results: &RunPath,
    end: &JobEnd,
    meaning: &Meaning,
    world: World<'_>,
) -> Result<Outcome, Halt> {
    let own = take_in(results, end, 1, world)?;
    // Where the user names another one for the root, the sweep is what its candidates have as their parent's.
    let (baseline, parent) = match meaning.measure.root_baseline_csv {
        None => (own, None),
        Some(_) => {
            let named = path::submission(end.key.subject, end.key.submission);
            let named = named.join(path::ROOT_BASELINE_CSV);
            (world.files.import(&named, path::ROOT_BASELINE_CSV)?, Some(own))
        }
    };
    if let Some(Err(why)) = parent.as_ref().map(|own| rows_of(own, meaning, world)).transpose()? {
        return Ok(Outcome::RootRefused { why });
    }
    Ok(match rows_of(&baseline, meaning, world)? {
        Ok(rows) => Outcome::RootMeasured { baseline, rows, parent },
        Err(why) => Outcome::RootRefused { why },
    })
}

/// How many rows results have that can be compared with, or in words why they cannot.
fn rows_of(
    results: &Artifact,
    meaning: &Meaning,
    world: World<'_>,
) -> Result<Result<u32, String>, PortError> {
    let reader = world.files.open(results)?;
    let sweep = Sweep::read(reader, &results.source, meaning.limit(), &meaning.score);
    Ok(in_words(sweep)?.and_then(|sweep| sound(&sweep, meaning)))
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

/// How many rows the root's sweep has, if it can be compared with.
fn sound(sweep: &Sweep, meaning: &Meaning) -> Result<u32, String> {
    sweep.require(&meaning.score).map_err(|error| error.to_string())?;
    let rows = sweep.rows_used();
    let found = sweep.completeness(meaning.limit(), meaning.gate.min_rows.unwrap_or(rows));
    let complete = found.ok_count >= found.expected_count && found.error_count == 0;
    if !complete || meaning.limit().is_some_and(|limit| limit != rows) {
        return Err(format!(
            "the sweep of the root has {rows} rows, {} of {} configurations ok, {} not ok",
            found.ok_count, found.expected_count, found.error_count
        ));
    }
    let (ragged, repeated) = (sweep.ragged_rows(), sweep.duplicate_ids());
    if ragged > 0 || repeated > 0 {
        return Err(format!(
            "the sweep of the root has ragged rows: {ragged}, repeated ids: {repeated}"
        ));
    }
    let primary = &meaning.score.primary;
    let missing = || format!("the sweep of the root has no number in column `{primary}`");
    sweep.mean(primary).map(|_| rows).ok_or_else(missing)
}
