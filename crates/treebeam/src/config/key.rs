//! The keys that there are: one table, for file, environment, `treebeam config`, `treebeam init` and the documents. Their
//! values are read by the tables of [`super::Tables`]; a test keeps the two alike.

/// A configuration key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Its full name: `score.thresholds.clamp`.
    pub(crate) name: &'static str,
    pub(crate) scope: Scope,
    pub(crate) form: Form,
    /// What it is, on one line.
    pub(crate) about: &'static str,
}

/// What a key decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What the results of a run mean: fixed when it starts.
    Meaning,
    /// How far and how fast it goes.
    Reach,
    /// How this process treats a run: not recorded.
    Process,
    /// Where runs are.
    Place,
}

/// How a variable's text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is.
    Text,
    /// As a value of TOML, where it is one.
    Toml,
}

const fn key(name: &'static str, scope: Scope, form: Form, about: &'static str) -> Key {
    Key { name, scope, form, about }
}

/// Every key, in the order in which they are shown.
pub(crate) const KEYS: [Key; 82] = {
    use Form::{Text, Toml};
    use Scope::{Meaning, Place, Process, Reach};
    [
        key("ideas_per_node", Meaning, Toml, "K: how many ideas are tried on each node, 1 to 1000"),
        key(
            "beam_width",
            Meaning,
            Toml,
            "B: how many candidates of a depth are promoted, 1 to 1000",
        ),
        key(
            "sweep_config_limit",
            Meaning,
            Toml,
            "N: how many configurations of the sweep count, 1 to 1000000, or \"none\" for all",
        ),
        key(
            "dedupe_scope",
            Meaning,
            Text,
            "among which ideas a repeated one is looked for: \"node_plus_ancestors\", \"global\" or \"none\"",
        ),
        key(
            "ideas_context_strategy",
            Meaning,
            Text,
            "of which earlier ideas a generator is told: \"node_plus_ancestors\", \"node_only\" or \"global_prior_ideas\"",
        ),
        key(
            "protect",
            Meaning,
            Toml,
            "globs of paths that no candidate may change; treebeam's own files always are among them",
        ),
        key(
            "control",
            Meaning,
            Text,
            "what the tree is compared with: \"best-of-n\" tries a quarter of all evals on the root alone, \"best-of-n=0.4\" another part; or \"none\"",
        ),
        key(
            "setup_command",
            Meaning,
            Toml,
            "what is run first in each worktree: a text for the shell or a list, or \"none\"",
        ),
        key("test_command", Meaning, Toml, "what must succeed before the sweep, likewise"),
        key(
            "test_cwd",
            Meaning,
            Toml,
            "where the tests run, below the worktree, or \"none\" for its top",
        ),
        key(
            "sweep_command",
            Meaning,
            Toml,
            "what measures a code state and writes its results CSV, likewise",
        ),
        key(
            "sweep_cwd",
            Meaning,
            Toml,
            "where the sweep runs, below the worktree, or \"none\" for its top",
        ),
        key(
            "sweep_config_limit_flag",
            Meaning,
            Toml,
            "the flag that tells the sweep the limit N, such as \"--sweep-config-limit\", or \"none\"",
        ),
        key(
            "results_csv",
            Meaning,
            Toml,
            "where a sweep writes its results that heeds no variable, below the worktree, or \"none\"",
        ),
        key(
            "baseline_csv",
            Meaning,
            Toml,
            "results of the root that are there already, seen from the repository's top: its sweep is not run then; or \"none\"",
        ),
        key(
            "pass_env",
            Meaning,
            Toml,
            "names of further variables that the commands get, from `.env` too",
        ),
        key(
            "inputs",
            Meaning,
            Toml,
            "paths that git does not track, linked into each worktree: data, a virtual environment",
        ),
        key("max_depth", Reach, Toml, "D: nodes of the depths 0 to D-1 are expanded"),
        key(
            "max_total_idea_evals",
            Reach,
            Toml,
            "the most evals that a run may create, or \"none\"",
        ),
        key(
            "stop_on_empty_frontier",
            Reach,
            Toml,
            "whether a depth that promotes nothing ends the run; if not, its nodes are expanded again",
        ),
        key("strict_fail_depth", Reach, Toml, "whether a failed eval ends the run after its depth"),
        key(
            "eval_retries",
            Reach,
            Toml,
            "how often an eval that fails is tried again by itself, unless it changes nothing, or what is protected",
        ),
        key(
            "eval_timeout_seconds",
            Reach,
            Toml,
            "how long one attempt of an eval may take, answers, setup, tests and sweep together, without the waiting for a slot or a rate limit, 1 to 2592000, or \"none\"",
        ),
        key("max_parallel_evals", Reach, Toml, "how many evals are under way at once, 1 to 256"),
        key(
            "max_parallel_per_node",
            Reach,
            Toml,
            "how many of them on one node, 1 to 256, or \"none\" for no limit",
        ),
        key(
            "sweep_max_parallel",
            Reach,
            Toml,
            "how many sweeps run at once, 1 to 256, or \"none\" for no limit",
        ),
        key(
            "max_review_rounds",
            Reach,
            Toml,
            "how often a patch may go back to the coder after its first round",
        ),
        key(
            "proceed_on_max_review_rounds",
            Reach,
            Toml,
            "whether a candidate that the reviewer rejects to the end goes on all the same",
        ),
        key(
            "keep_rejected_worktrees",
            Reach,
            Toml,
            "whether candidates that were not promoted keep worktree and ref",
        ),
        key(
            "keep_failed_artifacts",
            Reach,
            Toml,
            "whether failed evals keep worktree, ref and raw sweep output",
        ),
        key(
            "lock_stale_seconds",
            Process,
            Toml,
            "how long a run's owner on another host may be silent before it counts as dead, in seconds",
        ),
        key(
            "ideas_file",
            Process,
            Text,
            "where `eval` finds its ideas if nothing else is said: a file or a folder, seen from the repository's top",
        ),
        key(
            "base_on_working_tree",
            Process,
            Toml,
            "whether `eval` starts from what is in the working tree, and not from its commit",
        ),
        key(
            "keep_worktrees",
            Process,
            Toml,
            "whether the candidates of `eval` keep their worktrees",
        ),
        key(
            "max_new_file_kib",
            Process,
            Toml,
            "how large a new file of a candidate may be, in KiB, 1 to 1048576",
        ),
        key("runs_root", Place, Text, "the folder of all runs, relative to the repository's root"),
        key(
            "max_cost_usd",
            Reach,
            Toml,
            "the most that answers of agents may cost in all, in dollars, or \"none\"",
        ),
        key(
            "max_tokens_total",
            Reach,
            Toml,
            "the most tokens that answers of agents may take in all, or \"none\"",
        ),
        key(
            "deadline",
            Reach,
            Text,
            "until when something may begin: \"07:00\", \"8h\", a moment, \"none\"",
        ),
        key(
            "llm_max_inflight",
            Reach,
            Toml,
            "how many questions to agents are under way at once, 1 to 256",
        ),
        key(
            "llm_rate_limit",
            Reach,
            Toml,
            "how many requests and tokens per minute: \"60rpm,100000tpm\", either of them, or \"none\"",
        ),
        key(
            "outage_patience",
            Process,
            Text,
            "how long a run waits for the server of an agent that is gone or overloaded: \"90m\"; \"auto\" is 6h, or 30m where it has not answered in this run",
        ),
        key(
            "idea_conversation_mode",
            Reach,
            Text,
            "how idea generators know what was said before: \"off\", \"auto\", \"native\" or \"replay\"",
        ),
        key("idea_history_window_turns", Reach, Toml, "the most turns told again, 1 to 1000"),
        key("idea_history_max_chars", Reach, Toml, "the most characters of them, 1 to 2000000"),
        key(
            "summary_agent",
            Reach,
            Text,
            "whose agent sums up the turns that no longer fit, a question each time: \"coordinator\", \"planner\", \"reviewer\", \"ideas\", or \"none\" for a line each",
        ),
        key(
            "confirm_above_usd",
            Process,
            Toml,
            "what a new run may be expected to cost before a terminal is asked, in dollars, or \"none\" to never ask",
        ),
        key(
            "prices",
            Process,
            Toml,
            "what models cost: tables by model with `input`, `output` and `cached`, in dollars per million tokens",
        ),
        key(
            "context_max_chars",
            Process,
            Toml,
            "the most that a prompt shows of the repository, in characters, 1 to 2000000",
        ),
        key("ideas_context_files", Process, Toml, "files that a generator of ideas is told"),
        key(
            "agents.coordinator",
            Process,
            Toml,
            "who says what to watch out for: a table, see below",
        ),
        key("agents.planner", Process, Toml, "who plans an idea's implementation"),
        key("agents.coder", Process, Toml, "who implements it"),
        key("agents.reviewer", Process, Toml, "who looks it over"),
        key("agents.ideas", Process, Toml, "who proposes ideas"),
        key(
            "prompts.coordinator",
            Process,
            Text,
            "a file with what the coordinator is told, or \"none\" for the built-in prompt",
        ),
        key("prompts.planner", Process, Text, "the same for the planner"),
        key("prompts.coder", Process, Text, "the same for the coder"),
        key("prompts.reviewer", Process, Text, "the same for the reviewer"),
        key("prompts.ideas", Process, Text, "the same for the generator of ideas"),
        key(
            "context.coordinator",
            Process,
            Toml,
            "what the coordinator is shown of the repository: \"auto\", \"outline\", \"none\" or a list of globs",
        ),
        key("context.planner", Process, Toml, "what the planner is shown of it"),
        key("context.coder", Process, Toml, "what the coder is shown of it"),
        key("context.reviewer", Process, Toml, "what the reviewer is shown of it"),
        key("context.ideas", Process, Toml, "what the generator of ideas is shown of it"),
        key(
            "tuner.files",
            Process,
            Toml,
            "globs of the files whose constants the tuner changes; with none it looks for itself",
        ),
        key("tuner.seed", Process, Toml, "what the tuner's choices among equals follow from"),
        key(
            "score.preset",
            Meaning,
            Text,
            "a built-in list of metrics with its primary: \"trading\"",
        ),
        key(
            "score.primary",
            Meaning,
            Text,
            "the metric that may not get worse: \"COL\", \"COL:higher\" or \"COL:lower\"",
        ),
        key(
            "score.metrics",
            Meaning,
            Toml,
            "what counts: tables with `column`, `direction`, `weight` and `guard`",
        ),
        key("score.id_column", Meaning, Text, "the column that names a configuration"),
        key("score.status_column", Meaning, Text, "the column that says `ok`"),
        key(
            "score.invariant_columns",
            Meaning,
            Toml,
            "columns that must equal the root's in every configuration",
        ),
        key(
            "score.thresholds.primary_regression",
            Meaning,
            Toml,
            "the primary has regressed when it is worse by more than this part of the baseline",
        ),
        key("score.thresholds.risk_regression", Meaning, Toml, "the same for a guarded metric"),
        key(
            "score.thresholds.clamp",
            Meaning,
            Toml,
            "a relative improvement counts as at most this, either way",
        ),
        key("score.thresholds.strong", Meaning, Toml, "scores from here up are `strong`"),
        key(
            "score.thresholds.promising",
            Meaning,
            Toml,
            "scores from here up are `promising`, and worth exploring",
        ),
        key(
            "score.thresholds.mixed",
            Meaning,
            Toml,
            "scores from here up are `mixed`; below, `weak`",
        ),
        key(
            "gate.primary_tolerance",
            Meaning,
            Toml,
            "how far the primary may fall below the parent's, in its own unit",
        ),
        key(
            "gate.min_rows",
            Meaning,
            Toml,
            "without a limit N: the fewest rows that will do, or \"none\" for as many as the root has",
        ),
        key(
            "gate.min_ok_rate",
            Meaning,
            Toml,
            "without a limit N: the smallest part of the rows that must be ok, 0 to 1",
        ),
    ]
};

/// Keys at the top that `run` and `resume` have no flags for.
const WITHOUT_FLAG: [&str; 21] = [
    "outage_patience",
    "max_new_file_kib",
    "context_max_chars",
    "protect",
    "runs_root",
    "max_review_rounds",
    "proceed_on_max_review_rounds",
    "prices",
    "setup_command",
    "test_command",
    "test_cwd",
    "sweep_command",
    "sweep_cwd",
    "sweep_config_limit_flag",
    "results_csv",
    "baseline_csv",
    "pass_env",
    "inputs",
    "ideas_file",
    "base_on_working_tree",
    "keep_worktrees",
];

/// Keys whose values name a program, a path, a variable or an address, or hold such names. A run that is there takes a new
/// value of theirs from a file that is not committed only where the user accepts it.
const NAMING: [&str; 23] = [
    "setup_command",
    "test_command",
    "test_cwd",
    "sweep_command",
    "sweep_cwd",
    "sweep_config_limit_flag",
    "results_csv",
    "baseline_csv",
    "pass_env",
    "inputs",
    "ideas_file",
    "runs_root",
    "ideas_context_files",
    "agents.coordinator",
    "agents.planner",
    "agents.coder",
    "agents.reviewer",
    "agents.ideas",
    "prompts.coordinator",
    "prompts.planner",
    "prompts.coder",
    "prompts.reviewer",
    "prompts.ideas",
];

/// How the names of variables begin.
pub(crate) const PREFIX: &str = "TREEBEAM_";

impl Key {
    /// The variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }

    /// The flag of `run` and `resume` that sets it, if there is one.
    pub(crate) fn flag(&self) -> Option<String> {
        let flag = !WITHOUT_FLAG.contains(&self.name) && !self.name.contains('.');
        flag.then(|| format!("--{}", self.name.replace('_', "-")))
    }

    /// Whether its value names a program, a path, a variable or an address.
    pub(crate) fn is_naming(&self) -> bool {
        NAMING.contains(&self.name)
    }

    /// Whether it says, together with others, which metrics count and which of them is the primary.
    pub(crate) fn chooses_metrics(&self) -> bool {
        ["score.preset", "score.primary", "score.metrics"].contains(&self.name)
    }
}
