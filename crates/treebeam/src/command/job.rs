//! `treebeam job SPEC`, hidden: the process that executes one job of the `local` executor.
//!
//! It outlives the process that started it. Standard error goes to a file of the job.

use crate::failure::{CommandExit, CommandFailure};
use std::path::Path;
use std::process;
use treebeam_agent::forbid_inspection;
use treebeam_executor::job::{ClaimedJob, become_job_process};
use treebeam_process::interrupt;

pub(super) fn run_job(spec: &Path) -> Result<CommandExit, CommandFailure> {
    // The job's commands must not inspect or trace this process. If it cannot be shielded it is as
    // open as any other program.
    drop(forbid_inspection());
    become_job_process()?;
    let job = ClaimedJob::claim(spec)?;
    let mut end = job.termination_handler();
    interrupt::listen_for_interrupts(move || {
        end();
        #[expect(
            clippy::exit,
            reason = "a job that was ended has no result, and nothing may be concluded"
        )]
        process::exit(CommandExit::Interrupted.code().into())
    })?;
    job.perform()?;
    Ok(CommandExit::Done)
}
