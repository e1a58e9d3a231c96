//! Which runs `treebeam clean` is about, and where they lie.

use crate::cli::CleanArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::wiring::{self, Home};
use std::path::Path;
use treebeam_core::id::RunId;
use treebeam_edge::git;
use treebeam_edge::store::{Claim, Force, RunDir};

/// Where runs lie, and how they may be taken.
pub(super) struct Scope {
    pub(super) home: Option<Home>,
    pub(super) about: About,
    pub(super) claim: Claim,
}

pub(super) enum About {
    /// All runs of the repository.
    All,
    /// One, whose directory is there.
    Run(RunDir, RunId),
    /// One that has no directory.
    Missing(RunDir, RunId),
}

impl Scope {
    pub(super) const fn is_about_one(&self) -> bool {
        !matches!(self.about, About::All)
    }

    pub(super) fn find(here: &Path, args: &CleanArgs) -> Result<Self, Failure> {
        let config = Config::load(here, args.config.config.as_deref())?;
        let mut claim = Claim::from(if args.force { Force::Yes } else { Force::No });
        if let Some(silent) = config.lock_stale_after() {
            claim.stale_after = silent;
        }
        let (home, about) = match args.run.as_deref() {
            None => (Some(Home::open(here, &config)?), About::All),
            Some(path) if path.contains(['/', '\\']) => at(here, path)?,
            Some(name) => {
                let (home, id) = (Home::open(here, &config)?, name.parse()?);
                let about = About::of(home.named(&id), id);
                (Some(home), about)
            }
        };
        Ok(Self { home, about, claim })
    }
}

/// A run by its path; it lies in a repository, or was put away.
fn at(here: &Path, path: &str) -> Result<(Option<Home>, About), Failure> {
    let run = RunDir::new(here.join(path));
    let name = run.root().file_name().unwrap_or_default().to_string_lossy();
    let id: RunId = name.parse()?;
    let home = run.root().parent().and_then(home_of);
    Ok((home, About::of(run, id)))
}

/// The repository whose runs lie in this folder.
fn home_of(runs_root: &Path) -> Option<Home> {
    let repo = git::open(runs_root).ok()?;
    let config = Config::load(&repo.toplevel, None).ok()?;
    let real = |path: &Path| path.canonicalize().ok();
    let same = real(&wiring::runs_root(&repo, &config)) == Some(real(runs_root)?);
    same.then(|| Home { repo, runs_root: runs_root.to_owned() })
}

impl About {
    fn of(run: RunDir, id: RunId) -> Self {
        if run.root().symlink_metadata().is_ok() {
            Self::Run(run, id)
        } else {
            Self::Missing(run, id)
        }
    }
}
