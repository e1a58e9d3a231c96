//! All ports of a run together, with its prompts.

use crate::port::{Agent, Clock, Executor, FileStore, Inbox, InputFiles, Interrupt, Repo};
use crate::prompt::PromptSet;

/// All ports together, with the prompts of the run.
#[derive(Clone, Copy)]
pub struct RunPorts<'a> {
    /// The user's repository.
    pub repo: &'a dyn Repo,
    /// The agents that answer.
    pub agent: &'a dyn Agent,
    /// The executor of sweeps.
    pub executor: &'a dyn Executor,
    /// The run's files.
    pub files: &'a dyn FileStore,
    /// The user's own files that sweeps read.
    pub inputs: &'a dyn InputFiles,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Requests to leave the run.
    pub interrupt: &'a dyn Interrupt,
    /// Messages of the user.
    pub inbox: &'a dyn Inbox,
    /// The prompts for all roles.
    pub prompts: &'a PromptSet,
}
