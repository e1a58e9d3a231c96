//! Defines the command line: names, defaults and help texts.
//!
//! The effect of the flags on a run is in [`mod@crate::run_settings`].

mod agents;
mod demo;
mod eval;
mod export;
mod ideas;
mod run;
mod serve;

pub(crate) use agents::{
    AgentsArgs, AgentsAskArgs, AgentsCheckArgs, AgentsCommand, ConversationFlags, SpendingFlags,
};
pub(crate) use demo::DemoArgs;
pub(crate) use eval::{BaselineArgs, EvalArgs};
pub(crate) use export::ExportArgs;
pub(crate) use ideas::{ContextStrategyFlag, IdeasArgs};
pub(crate) use run::{FixedSettingsFlags, RedoFlags, ResumableFlags, ResumeArgs, RunArgs};
pub(crate) use serve::ServeArgs;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;
use treebeam_core::event::UserRequest;

/// A beam search over code states that runs by itself overnight.
#[derive(Debug, Parser)]
#[command(name = "treebeam", version, about, long_about = None, max_term_width = 100)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CliArgs {
    /// Work in this folder instead of the current one
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Print JSON on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 the run is locked by \
another process, 4 the environment lacks something, 5 validation found issues, 130 interrupted (resumable)";

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Show the whole job on a small example repository that it makes, with no key and no network
    #[command(after_help = demo::DEMO_HELP)]
    Demo(DemoArgs),
    /// Start a run, or go on with the one named by `--run-id`, until a stop condition
    #[command(
        after_help = "Example: treebeam run --dry-run --ideas-per-node 5 --max-depth 3 --beam-width 2"
    )]
    Run(Box<RunArgs>),
    /// Go on with a run: the latest unfinished one, or the one named
    #[command(after_help = "Example: treebeam resume --max-parallel-evals 4")]
    Resume(Box<ResumeArgs>),
    /// Try given ideas: implement, test and sweep each, and say how it compares
    #[command(after_help = eval::EVAL_HELP)]
    Eval(Box<EvalArgs>),
    /// Measure the root: run the sweep at a commit, and keep its results
    #[command(after_help = eval::BASELINE_HELP)]
    Baseline(Box<BaselineArgs>),
    /// Fill a folder with ideas, outside of any run
    #[command(after_help = ideas::IDEAS_HELP)]
    Ideas(Box<IdeasArgs>),
    /// Score one results CSV against another, and say what the gate would
    #[command(
        after_help = "Example: treebeam score baseline.csv candidate.csv --limit 10 --primary loss:lower",
        after_long_help = SCORE_HELP
    )]
    Score(ScoreArgs),
    /// Write a commented `treebeam.toml` for this repository
    #[command(after_help = "Example: treebeam init --results results.csv")]
    Init(InitArgs),
    /// Check git, repository, configuration and disk, and say what to do about each problem
    #[command(after_help = "Example: treebeam doctor && treebeam run --dry-run")]
    Doctor(ConfigFlag),
    /// Show every setting, its value and where that is from
    #[command(after_help = "Example: treebeam config --json")]
    Config(ConfigFlag),
    /// Show who answers in each role, with which key and at what price; check them, or ask one
    #[command(after_help = "Example: treebeam agents --json")]
    Agents(AgentsArgs),
    /// Let a run that somebody runs start nothing new, until `treebeam unpause`
    #[command(
        after_help = "What is running ends first, and is recorded; the process stays and keeps the run.\n\nExit code: 1 where nobody runs the run, or it is over.\n\nExample: treebeam pause"
    )]
    Pause(SteerArgs),
    /// Let a paused run go on, or one that is to stop after this depth
    #[command(
        after_help = "Exit code: 1 where nobody runs the run, or it is over.\n\nExample: treebeam unpause"
    )]
    Unpause(SteerArgs),
    /// Ask whoever runs a run to leave it, as Ctrl-C does, or after this depth: it can be resumed
    #[command(
        after_help = "What is running ends first, and is recorded; then that process ends with exit code 130. With `--after-depth` the depth that is open is tried to its end, judged and promoted before; `treebeam unpause` takes that back.\n\nExit code: 1 where nobody runs the run, or it is over.\n\nExample: treebeam stop 20260131-220000 --after-depth"
    )]
    Stop(StopArgs),
    /// Give a run an idea of your own
    #[command(after_help = "Example: treebeam idea add 20260131-220000 wider-window.md")]
    Idea {
        #[command(subcommand)]
        command: IdeaCommand,
    },
    /// Show how a run stands: the latest one, or the one named
    #[command(after_help = "Example: treebeam status --json")]
    Status(RunNameArgs),
    /// Watch a run on the terminal: the one that is running, the latest one, or the one named
    #[command(after_help = WATCH_HELP)]
    Watch(WatchArgs),
    /// Show the path to the best node, and what each idea on it brought
    #[command(after_help = "Example: treebeam best 20260131-220000")]
    Best(RunNameArgs),
    /// List the runs of this repository, the newest first
    #[command(
        after_help = "Exit code: 0 also where a run cannot be opened; its line says why.\n\nExample: treebeam list"
    )]
    List,
    /// Show all that is on record about a node, an eval or a conversation
    #[command(
        after_help = "The conversation of node `n0003` is `c0003`.\n\nExit code: 2 for a node or an eval that is not there, or a number that is both.\n\nExample: treebeam show e0012",
        override_usage = "treebeam show [OPTIONS] [RUN] [conv] <ID>"
    )]
    Show(ShowArgs),
    /// Show what a node or an eval changed, as git prints it
    #[command(
        after_help = "Where the commit is gone, the recorded diff is shown, and that is said.\n\nExit code: 1 where there is nothing to show, 2 for a node or an eval that is not there.\n\nExample: treebeam diff n0003 --root",
        allow_missing_positional = true
    )]
    Diff(DiffArgs),
    /// Make a branch of a path of nodes, one commit for each idea, ready to review
    #[command(after_help = export::EXPORT_HELP)]
    Export(ExportArgs),
    /// Print a run's journal in words, one line for each event
    #[command(
        after_help = "With `--json` each event is printed as the run itself does, and a last line of type `end`.\n\nExample: treebeam log --follow"
    )]
    Log(LogArgs),
    /// Show the runs of this repository in a browser, live, and steer them from there
    #[command(after_help = serve::SERVE_HELP)]
    Serve(ServeArgs),
    /// Validate a run and rewrite its reports; runs nothing
    #[command(after_help = "Example: treebeam report 20260131-220000")]
    Report(RunNameArgs),
    /// Check a run's integrity and write `VALIDATION_REPORT.md`
    #[command(after_help = "Example: treebeam validate && echo sound")]
    Validate(RunNameArgs),
    /// Work off deferred cleanup; on request, remove worktrees, refs or a whole run, after saying what goes
    #[command(after_help = CLEAN_HELP)]
    Clean(CleanArgs),
    /// Do one job of a run: its tests and its sweep
    #[command(hide = true, after_help = "Example: treebeam job s1/job.json")]
    Job {
        /// The file that says what is to be done
        #[arg(value_name = "SPEC")]
        spec: PathBuf,
    },
    /// Print a script that completes commands and flags in a shell
    #[command(
        after_help = "Example: treebeam completions bash > ~/.local/share/bash-completion/completions/treebeam"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands into a folder
    #[command(after_help = "Example: treebeam man ~/.local/share/man/man1")]
    Man {
        /// Where the pages go; it is made if need be
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Print a JSON Schema of what treebeam writes or prints, or list them
    #[command(after_help = "Example: treebeam schema manifest")]
    Schema {
        /// Which one
        name: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum IdeaCommand {
    /// Add an idea to the open depth of a run, beside those that are asked for
    #[command(after_help = IDEA_HELP, allow_missing_positional = true)]
    Add(IdeaArgs),
}

const WATCH_HELP: &str = "\
The tree, what is going on and for how long, the last events, the best path, what was spent and how long it may still \
take. Enter opens a node or an eval, `l` its logs, `/` filters, `?` lists all keys, `q` leaves. Nothing changes the run.

Exit code: 130 after Ctrl-C, 4 where there is no terminal; `treebeam status` and `treebeam log --follow` need none.

Example: treebeam watch 20260131-220000";

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The run: its id, or the path of its directory; the one that is running, or else the latest one, if it is left out
    pub(crate) run: Option<String>,
}

const IDEA_HELP: &str = "\
The file is Markdown: `IDEA:`, `RATIONALE:` and `REQUIRED_CHANGES:`, or plain text whose first line is the title. The \
idea is tried once the nodes of the open depth have their own ideas; where nobody runs the run, it waits for a resume.

Exit code: 2 for an idea that cannot be tried: a repeat, a node that is not in the frontier, a run that is over or has \
no budget left; and where a run is named and no file.

Example: treebeam idea add 20260131-220000 wider-window.md --node n0003";

#[derive(Debug, Args)]
pub(crate) struct IdeaArgs {
    /// The run: its id, or the path of its directory; the latest one if it is left out
    pub(crate) run: Option<String>,
    /// The idea, or `-` to read it from standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The node to try it on, such as `n0003` [default: the first of the frontier]
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SteerArgs {
    /// The run: its id, or the path of its directory; the one that is running if it is left out
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(crate) steer: SteerArgs,
    /// Go on until the depth that is open is at its end, its promotions included
    #[arg(long)]
    pub(crate) after_depth: bool,
}

impl StopArgs {
    /// Returns the request to send: stop now, or after the open depth.
    pub(crate) fn user_request(&self) -> UserRequest {
        if self.after_depth { UserRequest::StopAfterDepth } else { UserRequest::Stop }
    }
}

const SCORE_HELP: &str = "\
Which metrics count: those of `--metrics`, or of `--preset`, or of `[score]` in the configuration file, or of the preset \
`trading`. Each key of `[score]` and of `[gate]` can also be set by a variable such as `TREEBEAM_SCORE_PRIMARY`, over the \
file and below the flags. `--primary` chooses the primary among them; where nothing lists any, it is the only metric.

Exit code: 0 whatever the verdict, 1 for files that cannot be compared, 2 for a wrong configuration.

Example: treebeam score baseline.csv candidate.csv --limit 10 --primary loss:lower";

#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    /// The results CSV to compare with
    #[arg(value_name = "BASE")]
    pub(crate) baseline: PathBuf,
    /// The results CSV to be judged
    #[arg(value_name = "CAND")]
    pub(crate) candidate: PathBuf,
    /// Only configurations with an id below N count; 0 selects nothing [default: all]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) limit: Option<String>,
    /// A TOML or JSON file with the keys of `[score]`, in a table of that name or at the top
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    pub(crate) metrics: Option<PathBuf>,
    /// A built-in list of metrics: `trading` [default: `trading`]
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// The metric that may not get worse, and which way it is better [default: the preset's, or the first metric]
    #[arg(long, value_name = "COL[:higher|lower]")]
    pub(crate) primary: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
}

/// Where the configuration is.
#[derive(Debug, Default, Args)]
pub(crate) struct ConfigFlag {
    /// The configuration file, `.toml` or `.json` [default: the nearest `treebeam.toml` up to the repository's root]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Take over an old configuration, `agent_config.json`
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Propose columns from a results CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,
    /// Write the built-in prompts to `treebeam-prompts/` too, to be changed
    #[arg(long)]
    pub(crate) prompts: bool,
    /// Overwrite the `treebeam.toml` that is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunNameArgs {
    /// The run: its id, or the path of its directory; the latest one if it is left out
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A node such as `n0003` or an eval such as `e0012`, where a number will do if only one of the two has it; or a
    /// conversation, `c0003` or `conv 3`. Before it the run: its id, or the path of its directory; the latest one if it is
    /// left out
    #[arg(required = true, num_args = 1..=3, value_name = "ID")]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ItemNameArgs {
    /// The run: its id, or the path of its directory; the latest one if it is left out
    pub(crate) run: Option<String>,
    /// A node such as `n0003` or an eval such as `e0012`; a number will do if only one of the two has it
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) item: ItemNameArgs,
    /// Compare with the root, not with the parent
    #[arg(long)]
    pub(crate) root: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub(crate) run: RunNameArgs,
    /// Wait for more, until the run has stopped and nobody runs it
    #[arg(long, short)]
    pub(crate) follow: bool,
}

const CLEAN_HELP: &str = "\
What could not be removed earlier is tried again, and what nobody owns goes: runs that were never finished making, files \
that were never finished writing, and what git still knows of worktrees that are gone. Anything more has to be asked for, \
and confirmed on a terminal or by `--yes`.

Exit code: 0 when nothing is left of what was to go, 1 when something is, 2 when it was not confirmed.

Example: treebeam clean 20260131-220000 --worktrees --dry-run";

#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// The run: its id, or the path of its directory; all runs of the repository if it is left out
    pub(crate) run: Option<String>,
    /// Also the worktrees of nodes and of kept candidates; the run stays readable and can be resumed
    #[arg(long)]
    pub(crate) worktrees: bool,
    /// Also the refs of the named run, even where its directory is gone; git may collect its commits then
    #[arg(long, requires = "run")]
    pub(crate) refs: bool,
    /// The whole named run: worktrees, refs and directory
    #[arg(long, requires = "run", conflicts_with_all = ["worktrees", "refs"])]
    pub(crate) delete: bool,
    /// Also worktrees in which somebody has changed or committed something
    #[arg(long)]
    pub(crate) discard_changes: bool,
    /// Only say what would be removed
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Take the run from an owner on another host; a living owner on this host keeps the run
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
}
