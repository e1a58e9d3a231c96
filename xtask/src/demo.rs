//! `cargo xtask demo`: a whole search on a small repository that it makes itself, without key or
//! network. The repository is real, and so is what is done to it; only the models and the sweep are
//! a dry world.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::workspace::{Workspace, step};

const FILES: [(&str, &str); 5] = [
    ("README.md", include_str!("../demo/README.md")),
    ("prices.py", include_str!("../demo/prices.py")),
    ("strategy.py", include_str!("../demo/strategy.py")),
    ("sweep.py", include_str!("../demo/sweep.py")),
    ("test_strategy.py", include_str!("../demo/test_strategy.py")),
];

const SEARCH: &str = "run --dry-run --ideas-per-node 5 --max-depth 3 --beam-width 2 \
    --sweep-config-limit 10 --max-parallel-evals 2";

/// The commit's author, committer and time: the same repository, byte for byte, on every machine.
const SIGNATURE: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "treebeam demo"),
    ("GIT_AUTHOR_EMAIL", "demo@treebeam.invalid"),
    ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "treebeam demo"),
    ("GIT_COMMITTER_EMAIL", "demo@treebeam.invalid"),
    ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
];

pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<()> {
    step("build", workspace.cargo().args(["build", "--package", "treebeam"]))?;
    let repo = workspace.target.join("demo").join("strategy");
    make_repo(&repo).with_context(|| format!("could not make `{}`", repo.display()))?;
    let program =
        workspace.target.join("debug").join(format!("treebeam{}", std::env::consts::EXE_SUFFIX));
    step("search", workspace.command(program).args(SEARCH.split(' ')).arg("-C").arg(&repo))?;
    say_where_to_look(&repo)
}

/// A fresh repository with one commit; the one of the demo before is removed.
fn make_repo(repo: &Path) -> anyhow::Result<()> {
    if repo.exists() {
        fs::remove_dir_all(repo)?;
    }
    fs::create_dir_all(repo)?;
    for (name, text) in FILES {
        fs::write(repo.join(name), text)?;
    }
    git(repo, &["init", "--quiet", "--initial-branch=main"])?;
    git(repo, &["config", "core.autocrlf", "false"])?;
    // For treebeam's own commits, on a machine where git has no identity yet.
    git(repo, &["config", "user.name", "treebeam demo"])?;
    git(repo, &["config", "user.email", "demo@treebeam.invalid"])?;
    git(repo, &["add", "--all"])?;
    git(
        repo,
        &["commit", "--quiet", "--message", "strategy: a moving-average crossover and its sweep"],
    )
}

/// Runs git in `repo` without the caller's configuration or `GIT_` variables.
fn git(repo: &Path, args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command.envs(SIGNATURE).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    let status =
        command.arg("-C").arg(repo).args(args).status().context("could not start `git`")?;
    anyhow::ensure!(status.success(), "`git {}` ended with {status}", args.join(" "));
    Ok(())
}

fn say_where_to_look(repo: &Path) -> anyhow::Result<()> {
    let run = only_run(repo)?;
    println!("\nThe search is done. Where to look:");
    println!("  what was tried and kept   {}", run.join("TREE_SUMMARY.md").display());
    println!("  the tree as a picture     {}", run.join("TREE_GRAPH.md").display());
    println!("  every kept code state     git -C {} log --graph --oneline --all", repo.display());
    Ok(())
}

/// The directory of the one run that a fresh repository has.
fn only_run(repo: &Path) -> anyhow::Result<PathBuf> {
    let runs = repo.join(".treebeam").join("runs");
    for entry in
        fs::read_dir(&runs).with_context(|| format!("could not read `{}`", runs.display()))?
    {
        let run = entry?.path();
        if run.join("TREE_SUMMARY.md").is_file() {
            return Ok(run);
        }
    }
    anyhow::bail!("the search left no `TREE_SUMMARY.md` below `{}`", runs.display())
}
