//! Resolves the runs that `treebeam clean` acts on, and their places.

use crate::cli::CleanArgs;
use crate::config::Config;
use crate::failure::CommandFailure;
use crate::run_location::{self, RepoHome};
use std::path::Path;
use treebeam_core::id::RunId;
use treebeam_store::{ForcePolicy, RunClaim, RunDir};

/// Runs to clean, their repository, and how their leases are claimed.
pub(super) struct CleanScope {
    pub(super) home: Option<RepoHome>,
    pub(super) target: CleanTarget,
    pub(super) claim: RunClaim,
}

pub(super) enum CleanTarget {
    /// All runs of the repository.
    All,
    /// One run, whose directory exists.
    Run(RunDir, RunId),
    /// One run without a directory.
    Missing(RunDir, RunId),
}

impl CleanScope {
    pub(super) const fn is_single_run(&self) -> bool {
        !matches!(self.target, CleanTarget::All)
    }

    pub(super) fn find(here: &Path, args: &CleanArgs) -> Result<Self, CommandFailure> {
        let config = Config::load(here, args.config.config.as_deref())?;
        let mut claim = RunClaim::from(if args.force { ForcePolicy::Yes } else { ForcePolicy::No });
        if let Some(silent) = config.lock_stale_after() {
            claim.stale_after = silent;
        }
        let (home, about) = match args.run.as_deref() {
            None => (Some(RepoHome::open(here, &config)?), CleanTarget::All),
            Some(path) if path.contains(['/', '\\']) => locate_by_path(here, path)?,
            Some(name) => {
                let (home, id) = (RepoHome::open(here, &config)?, name.parse()?);
                let about = CleanTarget::from_run(home.run_dir(&id), id);
                (Some(home), about)
            }
        };
        Ok(Self { home, target: about, claim })
    }
}

/// Finds a run by its path, in a repository or archived.
fn locate_by_path(
    here: &Path,
    path: &str,
) -> Result<(Option<RepoHome>, CleanTarget), CommandFailure> {
    let run = RunDir::new(here.join(path));
    let name = run.root().file_name().unwrap_or_default().to_string_lossy();
    let id: RunId = name.parse()?;
    let home = run.root().parent().and_then(find_home);
    Ok((home, CleanTarget::from_run(run, id)))
}

/// Returns the repository whose runs lie in this folder.
fn find_home(runs_root: &Path) -> Option<RepoHome> {
    let repo = treebeam_git::open_repo(runs_root).ok()?;
    let config = Config::load(&repo.toplevel, None).ok()?;
    let real = |path: &Path| path.canonicalize().ok();
    let same = real(&run_location::find_runs_root(&repo, &config)) == Some(real(runs_root)?);
    same.then(|| RepoHome { repo, runs_root: runs_root.to_owned() })
}

impl CleanTarget {
    fn from_run(run: RunDir, id: RunId) -> Self {
        if run.root().symlink_metadata().is_ok() {
            Self::Run(run, id)
        } else {
            Self::Missing(run, id)
        }
    }
}
