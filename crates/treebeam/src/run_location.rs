//! Finds the user's repository and its runs.

use crate::config::Config;
use crate::failure::CommandFailure;
use crate::terminal;
use std::path::{Component, Path, PathBuf};
use treebeam_core::facts::Facts;
use treebeam_core::id::RunId;
use treebeam_core::plan::{self, RedoKind};
use treebeam_git::UserRepo;
use treebeam_store::RunDir;
use treebeam_store::lease::{self, RunPresence};
use treebeam_store::user_state::{InboxSecret, UserState, UserStateError};

/// The user's repository and the folder of its runs.
pub(crate) struct RepoHome {
    pub(crate) repo: UserRepo,
    pub(crate) runs_root: PathBuf,
}

impl RepoHome {
    /// Finds the repository that a folder is in, and its runs by the nearest configuration.
    pub(crate) fn find(directory: &Path) -> Result<Self, CommandFailure> {
        Self::open(directory, &Config::load(directory, None)?)
    }

    /// Finds the repository that a folder is in, and its runs by the given configuration.
    pub(crate) fn open(directory: &Path, config: &Config) -> Result<Self, CommandFailure> {
        let repo = treebeam_git::open_repo(directory)?;
        if let Some(outer) = outer_repository(&repo) {
            let what = format!("`{}` is a worktree of a run", repo.toplevel.display());
            return Err(
                CommandFailure::usage(what).with_hint(format!("use `-C {}`", outer.display()))
            );
        }
        let runs_root = find_runs_root(&repo, config);
        Ok(Self { repo, runs_root })
    }

    /// Creates the folder of all runs, which git ignores.
    pub(crate) fn make_runs_root(&self) -> Result<&Path, CommandFailure> {
        let top = &self.repo.toplevel;
        if self.runs_root == treebeam_store::runs_root(top) {
            treebeam_store::make_runs_root(top)?;
        } else if top.starts_with(&self.runs_root)
            || self.runs_root.starts_with(&self.repo.common_dir)
            || !treebeam_store::make_named_runs_root(&self.runs_root)?
        {
            let root = self.runs_root.display();
            let what = format!("`runs_root`: `{root}` is no folder for runs alone");
            return Err(CommandFailure::usage(what)
                .with_hint("name a folder that is empty, or not there yet"));
        }
        self.remember_runs_root();
        Ok(&self.runs_root)
    }

    /// Remembers an unusual folder of runs for the user. If that cannot be written, a resume asks
    /// again.
    pub(crate) fn remember_runs_root(&self) {
        if self.runs_root != treebeam_store::runs_root(&self.repo.toplevel)
            && let Ok(state) = UserState::find()
        {
            drop(state.remember_runs_root(&self.runs_root));
        }
    }

    /// Finds the run of that name, or the latest readable one that is unfinished or has something
    /// to redo for these kinds.
    pub(crate) fn find_unfinished_run(
        &self,
        name: Option<&str>,
        wishes: &[RedoKind],
    ) -> Result<RunDir, CommandFailure> {
        if let Some(path) = name.filter(|name| is_run_path(name)) {
            return Ok(RunDir::new(path));
        }
        if let Some(name) = name {
            return Ok(self.run_dir(&name.parse()?));
        }
        let runs = treebeam_store::list_runs(&self.runs_root)?;
        for id in runs.iter().rev() {
            let run = self.run_dir(id);
            match treebeam_store::open_to_read(&run) {
                Ok(opened) if can_resume(&opened.state, wishes) => {
                    terminal::print_note(&format!("this is run `{id}`"));
                    return Ok(run);
                }
                Ok(_) => {}
                Err(error) => terminal::print_note(&format!("run `{id}` is passed over: {error}")),
            }
        }
        Err(no_run_failure(if runs.is_empty() {
            "there is no run in this repository"
        } else {
            "there is no unfinished run in this repository"
        }))
    }

    /// Returns the runs that a process holds now, the latest one last.
    pub(crate) fn list_running(&self) -> Result<Vec<RunId>, CommandFailure> {
        let mut runs = treebeam_store::list_runs(&self.runs_root)?;
        runs.retain(|id| lease::run_presence(&self.run_dir(id)) != RunPresence::Nobody);
        Ok(runs)
    }

    /// Refuses a run directory that has the name of another run: it would act on that run's refs.
    pub(crate) fn must_match_name(run: &RunDir, id: &RunId) -> Result<(), CommandFailure> {
        let name = run.root().file_name().unwrap_or_default().to_string_lossy();
        if name == id.as_str() {
            return Ok(());
        }
        let what = format!("the directory `{name}` holds the run `{id}`");
        Err(CommandFailure::usage(what).with_hint(format!("rename it to `{id}` to go on with it")))
    }

    pub(crate) fn run_dir(&self, id: &RunId) -> RunDir {
        RunDir::from_run_id(&self.runs_root, id)
    }
}

/// Loads the secret that messages to a run are signed with. It lies outside of the run and of its
/// repository.
pub(crate) fn inbox_secret(
    run: &RunDir,
    repo: Option<&UserRepo>,
) -> Result<InboxSecret, UserStateError> {
    let folders = repo.iter().flat_map(|repo| [&*repo.toplevel, &*repo.common_dir]);
    let folders: Vec<&Path> = folders.chain([run.root()]).collect();
    UserState::find()?.inbox_secret(&folders)
}

/// Returns the folder of a repository's runs.
pub(crate) fn find_runs_root(repo: &UserRepo, config: &Config) -> PathBuf {
    match config.runs_root() {
        None => treebeam_store::runs_root(&repo.toplevel),
        Some(named) => normalize_path(&repo.toplevel.join(named)),
    }
}

/// Removes `.` and `..` from a path without following links: the path need not exist.
pub(crate) fn normalize_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Returns the repository whose run made this worktree, which lies at `<runs>/<run>/wt/<node>` or
/// `<runs>/<run>/cand/<eval>`.
fn outer_repository(repo: &UserRepo) -> Option<&Path> {
    let kind = repo.toplevel.parent()?;
    let run = kind.parent().filter(|_| kind.ends_with("wt") || kind.ends_with("cand"))?;
    let outer = run.parent()?.parent()?.parent()?;
    if run.parent()? == treebeam_store::runs_root(outer) {
        return Some(outer);
    }
    let is_run = RunDir::new(run).journal_path().is_file();
    repo.common_dir.parent().filter(|_| is_run)
}

fn can_resume(facts: &Facts, wishes: &[RedoKind]) -> bool {
    let sent = || plan::send_back(facts, wishes, &|_| true, facts.created_at);
    facts.stop_reason().is_none() || sent().is_some()
}

fn no_run_failure(what: &str) -> CommandFailure {
    CommandFailure::usage(what).with_hint("start one with `treebeam run --dry-run`, or name one")
}

/// A run to be read, and its repository; an archived run has none.
pub(crate) struct RunLocation {
    pub(crate) run: RunDir,
    pub(crate) repo: Option<UserRepo>,
}

impl RunLocation {
    /// Finds the run with that name or at that path, or the latest one of the repository.
    pub(crate) fn find(directory: &Path, name: Option<&str>) -> Result<Self, CommandFailure> {
        if let Some(path) = name.filter(|name| is_run_path(name)) {
            let run = RunDir::new(directory.join(path));
            let repo =
                treebeam_git::open_repo(run.root()).ok().filter(|repo| is_run_of_repo(&run, repo));
            return Ok(Self { run, repo });
        }
        let home = RepoHome::find(directory)?;
        let id = match name {
            Some(name) => name.parse()?,
            None => treebeam_store::list_runs(&home.runs_root)?
                .pop()
                .ok_or_else(|| no_run_failure("there is no run in this repository"))?,
        };
        Ok(Self { run: home.run_dir(&id), repo: Some(home.repo) })
    }
}

/// A run to be resumed that is named by its path.
pub(crate) struct RunPathHome {
    /// Absolute path of the run directory.
    pub(crate) run: String,
    /// Top of the run's repository, where that is not the current one.
    pub(crate) toplevel: Option<PathBuf>,
}

impl RunPathHome {
    /// Finds the run at a path, relative to a folder, with its repository; `None` if the run is
    /// named by its id.
    pub(crate) fn find(
        directory: &Path,
        name: Option<&str>,
    ) -> Result<Option<Self>, CommandFailure> {
        let Some(path) = name.filter(|name| is_run_path(name)) else { return Ok(None) };
        let RunLocation { run, repo } = RunLocation::find(directory, Some(path))?;
        let Some(repo) = repo else {
            treebeam_store::open_to_read(&run)?;
            let what =
                format!("`{}` is not where the runs of a repository are", run.root().display());
            return Err(CommandFailure::usage(what).with_hint(
                "a run goes on in its repository: move it back, to `.treebeam/runs/` there",
            ));
        };
        let is_here =
            treebeam_git::open_repo(directory).is_ok_and(|here| here.toplevel == repo.toplevel);
        let toplevel = (!is_here).then_some(repo.toplevel);
        Ok(Some(Self { run: run.root().to_string_lossy().into_owned(), toplevel }))
    }
}

/// Returns true if a run is named by its path and not by its id.
fn is_run_path(name: &str) -> bool {
    name.contains(['/', '\\'])
}

/// Returns true if a run directory lies in the folder of a repository's runs.
fn is_run_of_repo(run: &RunDir, repo: &UserRepo) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let config = Config::load(&repo.toplevel, None).unwrap_or_default();
    let runs_root = real(&find_runs_root(repo, &config));
    let parent = real(run.root()).and_then(|root| root.parent().map(Path::to_owned));
    runs_root.is_some() && parent == runs_root
}
