//! `treebeam job SPEC`, which no help shows: the process that does one job of the `local` executor. It outlives whoever
//! started it. Standard error goes to a file of the job.

use crate::failure::{Exit, Failure};
use std::path::Path;
use std::process;
use treebeam_edge::agent::shield;
use treebeam_edge::executor::job::{Job, settle_in};
use treebeam_edge::interrupt;

pub(super) fn run(spec: &Path) -> Result<Exit, Failure> {
    // Its commands must not look into it or trace it. Where it cannot be shielded it is as open as any other program.
    drop(shield());
    settle_in()?;
    let job = Job::take(spec)?;
    let mut end = job.ending();
    interrupt::listen(move || {
        end();
        #[expect(
            clippy::exit,
            reason = "a job that was ended has no result, and nothing may be concluded"
        )]
        process::exit(Exit::Interrupted.code().into())
    })?;
    job.perform()?;
    Ok(Exit::Done)
}
