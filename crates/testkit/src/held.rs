//! Provides a git that blocks before it applies a patch, to catch a run in the middle of a step.

use crate::program::{Call, Site};
use crate::repo::script;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time that a test holds git.
const MAX_HOLD_TIME: Duration = Duration::from_mins(1);

/// A git that blocks before it applies a patch, while it is held.
#[derive(Debug)]
pub struct HeldGit {
    hold: PathBuf,
    arrived: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

impl HeldGit {
    /// Creates a held git for the program at this site.
    #[must_use]
    pub fn new(site: &Site) -> Self {
        let bin = site.repo.beside("bin");
        fs::create_dir_all(&bin).expect("a folder");
        let (hold, arrived) = (bin.join("hold"), bin.join("arrived"));
        let path = std::env::var_os("PATH").expect("a PATH");
        let git = std::env::split_paths(&path).map(|folder| folder.join("git"));
        let git = git.into_iter().find(|git| git.is_file()).expect("git");
        let text = format!(
            "#!/bin/sh\ncase \" $* \" in *' apply '*)\necho $$ >> '{arrived}'\nn=0\n\
             while [ -e '{hold}' ] && [ $n -lt 6000 ]; do sleep 0.02; n=$((n + 1)); done\n\
             ;; esac\nexec '{git}' \"$@\"\n",
            hold = hold.display(),
            arrived = arrived.display(),
            git = git.display(),
        );
        script(&bin.join("git"), &text).expect("a script");
        let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path)));
        let mut variables = site.repo.variables();
        variables.retain(|(name, _)| name != "PATH");
        variables.push(("PATH".into(), path.expect("a PATH")));
        let git = Self { hold, arrived, variables };
        git.hold();
        git
    }

    /// Starts a call, and waits until it is blocked in git.
    #[must_use]
    #[track_caller]
    pub fn begin(&self, site: &Site, arguments: &[&str]) -> Call {
        let call = site.begin_with(self.variables.clone(), arguments);
        self.await_arrival();
        call
    }

    /// Waits until a call is blocked in git.
    #[track_caller]
    pub fn await_arrival(&self) {
        let begun = Instant::now();
        while !self.arrived.exists() {
            assert!(begun.elapsed() < MAX_HOLD_TIME, "nothing was applied");
            thread::sleep(Duration::from_millis(3));
        }
    }

    /// Makes git block from now on.
    pub fn hold(&self) {
        drop(fs::remove_file(&self.arrived));
        fs::write(&self.hold, "").expect("a file");
    }

    /// Releases git.
    pub fn let_go(&self) {
        drop(fs::remove_file(&self.hold));
    }
}

impl Drop for HeldGit {
    fn drop(&mut self) {
        self.let_go();
    }
}
