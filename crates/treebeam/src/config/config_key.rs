//! Lists the configuration keys: one table for all layers, `config`, `init` and the documents.
//!
//! Their values are parsed by [`super::ConfigTables`]; a test keeps the two in step.

mod key_groups;

use key_groups::{KEYS_WITHOUT_FLAG, NAMING_KEYS};

/// A configuration key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigKey {
    /// Full name, such as `score.thresholds.clamp`.
    pub(crate) name: &'static str,
    pub(crate) scope: KeyScope,
    pub(crate) form: VariableForm,
    /// Description on one line.
    pub(crate) about: &'static str,
}

/// Scope of a key's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyScope {
    /// Changes what the results of a run mean: fixed at its start.
    FixedSetting,
    /// Changes how far and how fast a run goes.
    RunLimit,
    /// Changes how this process treats a run: not recorded.
    Process,
    /// Changes where runs are.
    Place,
}

/// Syntax of a key's environment variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableForm {
    /// Plain text.
    Text,
    /// A TOML value if it parses as one, else plain text.
    Toml,
}

const fn new_key(
    name: &'static str,
    scope: KeyScope,
    form: VariableForm,
    about: &'static str,
) -> ConfigKey {
    ConfigKey { name, scope, form, about }
}

/// All keys, in the order in which they are shown.
pub(crate) const CONFIG_KEYS: [ConfigKey; 82] = {
    use KeyScope::{FixedSetting, Place, Process, RunLimit};
    use VariableForm::{Text, Toml};
    [
        new_key(
            "ideas_per_node",
            FixedSetting,
            Toml,
            "K: how many ideas are tried on each node, 1 to 1000",
        ),
        new_key(
            "beam_width",
            FixedSetting,
            Toml,
            "B: how many candidates of a depth are promoted, 1 to 1000",
        ),
        new_key(
            "sweep_config_limit",
            FixedSetting,
            Toml,
            "N: how many configurations of the sweep count, 1 to 1000000, or \"none\" for all",
        ),
        new_key(
            "dedupe_scope",
            FixedSetting,
            Text,
            "among which ideas a repeated one is looked for: \"node_plus_ancestors\", \"global\" or \"none\"",
        ),
        new_key(
            "ideas_context_strategy",
            FixedSetting,
            Text,
            "of which earlier ideas a generator is told: \"node_plus_ancestors\", \"node_only\" or \"global_prior_ideas\"",
        ),
        new_key(
            "protect",
            FixedSetting,
            Toml,
            "globs of paths that no candidate may change; treebeam's own files always are among them",
        ),
        new_key(
            "control",
            FixedSetting,
            Text,
            "what the tree is compared with: \"best-of-n\" tries a quarter of all evals on the root alone, \"best-of-n=0.4\" another part; or \"none\"",
        ),
        new_key(
            "setup_command",
            FixedSetting,
            Toml,
            "what is run first in each worktree: a text for the shell or a list, or \"none\"",
        ),
        new_key("test_command", FixedSetting, Toml, "what must succeed before the sweep, likewise"),
        new_key(
            "test_cwd",
            FixedSetting,
            Toml,
            "where the tests run, below the worktree, or \"none\" for its top",
        ),
        new_key(
            "sweep_command",
            FixedSetting,
            Toml,
            "what measures a code state and writes its results CSV, likewise",
        ),
        new_key(
            "sweep_cwd",
            FixedSetting,
            Toml,
            "where the sweep runs, below the worktree, or \"none\" for its top",
        ),
        new_key(
            "sweep_config_limit_flag",
            FixedSetting,
            Toml,
            "the flag that tells the sweep the limit N, such as \"--sweep-config-limit\", or \"none\"",
        ),
        new_key(
            "results_csv",
            FixedSetting,
            Toml,
            "where a sweep writes its results that heeds no variable, below the worktree, or \"none\"",
        ),
        new_key(
            "baseline_csv",
            FixedSetting,
            Toml,
            "results of the root that are there already, seen from the repository's top: its sweep is not run then; or \"none\"",
        ),
        new_key(
            "pass_env",
            FixedSetting,
            Toml,
            "names of further variables that the commands get, from `.env` too",
        ),
        new_key(
            "inputs",
            FixedSetting,
            Toml,
            "paths that git does not track, linked into each worktree: data, a virtual environment",
        ),
        new_key("max_depth", RunLimit, Toml, "D: nodes of the depths 0 to D-1 are expanded"),
        new_key(
            "max_total_idea_evals",
            RunLimit,
            Toml,
            "the most evals that a run may create, or \"none\"",
        ),
        new_key(
            "stop_on_empty_frontier",
            RunLimit,
            Toml,
            "whether a depth that promotes nothing ends the run; if not, its nodes are expanded again",
        ),
        new_key(
            "strict_fail_depth",
            RunLimit,
            Toml,
            "whether a failed eval ends the run after its depth",
        ),
        new_key(
            "eval_retries",
            RunLimit,
            Toml,
            "how often an eval that fails is tried again by itself, unless it changes nothing, or what is protected",
        ),
        new_key(
            "eval_timeout_seconds",
            RunLimit,
            Toml,
            "how long one attempt of an eval may take, answers, setup, tests and sweep together, without the waiting for a slot or a rate limit, 1 to 2592000, or \"none\"",
        ),
        new_key(
            "max_parallel_evals",
            RunLimit,
            Toml,
            "how many evals are under way at once, 1 to 256",
        ),
        new_key(
            "max_parallel_per_node",
            RunLimit,
            Toml,
            "how many of them on one node, 1 to 256, or \"none\" for no limit",
        ),
        new_key(
            "sweep_max_parallel",
            RunLimit,
            Toml,
            "how many sweeps run at once, 1 to 256, or \"none\" for no limit",
        ),
        new_key(
            "max_review_rounds",
            RunLimit,
            Toml,
            "how often a patch may go back to the coder after its first round",
        ),
        new_key(
            "proceed_on_max_review_rounds",
            RunLimit,
            Toml,
            "whether a candidate that the reviewer rejects to the end goes on all the same",
        ),
        new_key(
            "keep_rejected_worktrees",
            RunLimit,
            Toml,
            "whether candidates that were not promoted keep worktree and ref",
        ),
        new_key(
            "keep_failed_artifacts",
            RunLimit,
            Toml,
            "whether failed evals keep worktree, ref and raw sweep output",
        ),
        new_key(
            "lock_stale_seconds",
            Process,
            Toml,
            "how long a run's owner on another host may be silent before it counts as dead, in seconds",
        ),
        new_key(
            "ideas_file",
            Process,
            Text,
            "where `eval` finds its ideas if nothing else is said: a file or a folder, seen from the repository's top",
        ),
        new_key(
            "base_on_working_tree",
            Process,
            Toml,
            "whether `eval` starts from what is in the working tree, and not from its commit",
        ),
        new_key(
            "keep_worktrees",
            Process,
            Toml,
            "whether the candidates of `eval` keep their worktrees",
        ),
        new_key(
            "max_new_file_kib",
            Process,
            Toml,
            "how large a new file of a candidate may be, in KiB, 1 to 1048576",
        ),
        new_key(
            "runs_root",
            Place,
            Text,
            "the folder of all runs, relative to the repository's root",
        ),
        new_key(
            "max_cost_usd",
            RunLimit,
            Toml,
            "the most that answers of agents may cost in all, in dollars, or \"none\"",
        ),
        new_key(
            "max_tokens_total",
            RunLimit,
            Toml,
            "the most tokens that answers of agents may take in all, or \"none\"",
        ),
        new_key(
            "deadline",
            RunLimit,
            Text,
            "until when something may begin: \"07:00\", \"8h\", a moment, \"none\"",
        ),
        new_key(
            "llm_max_inflight",
            RunLimit,
            Toml,
            "how many questions to agents are under way at once, 1 to 256",
        ),
        new_key(
            "llm_rate_limit",
            RunLimit,
            Toml,
            "how many requests and tokens per minute: \"60rpm,100000tpm\", either of them, or \"none\"",
        ),
        new_key(
            "outage_patience",
            Process,
            Text,
            "how long a run waits for the server of an agent that is gone or overloaded: \"90m\"; \"auto\" is 6h, or 30m where it has not answered in this run",
        ),
        new_key(
            "idea_conversation_mode",
            RunLimit,
            Text,
            "how idea generators know what was said before: \"off\", \"auto\", \"native\" or \"replay\"",
        ),
        new_key(
            "idea_history_window_turns",
            RunLimit,
            Toml,
            "the most turns told again, 1 to 1000",
        ),
        new_key(
            "idea_history_max_chars",
            RunLimit,
            Toml,
            "the most characters of them, 1 to 2000000",
        ),
        new_key(
            "summary_agent",
            RunLimit,
            Text,
            "whose agent sums up the turns that no longer fit, a question each time: \"coordinator\", \"planner\", \"reviewer\", \"ideas\", or \"none\" for a line each",
        ),
        new_key(
            "confirm_above_usd",
            Process,
            Toml,
            "what a new run may be expected to cost before a terminal is asked, in dollars, or \"none\" to never ask",
        ),
        new_key(
            "prices",
            Process,
            Toml,
            "what models cost: tables by model with `input`, `output` and `cached`, in dollars per million tokens",
        ),
        new_key(
            "context_max_chars",
            Process,
            Toml,
            "the most that a prompt shows of the repository, in characters, 1 to 2000000",
        ),
        new_key("ideas_context_files", Process, Toml, "files that a generator of ideas is told"),
        new_key(
            "agents.coordinator",
            Process,
            Toml,
            "who says what to watch out for: a table, see below",
        ),
        new_key("agents.planner", Process, Toml, "who plans an idea's implementation"),
        new_key("agents.coder", Process, Toml, "who implements it"),
        new_key("agents.reviewer", Process, Toml, "who looks it over"),
        new_key("agents.ideas", Process, Toml, "who proposes ideas"),
        new_key(
            "prompts.coordinator",
            Process,
            Text,
            "a file with what the coordinator is told, or \"none\" for the built-in prompt",
        ),
        new_key("prompts.planner", Process, Text, "the same for the planner"),
        new_key("prompts.coder", Process, Text, "the same for the coder"),
        new_key("prompts.reviewer", Process, Text, "the same for the reviewer"),
        new_key("prompts.ideas", Process, Text, "the same for the generator of ideas"),
        new_key(
            "context.coordinator",
            Process,
            Toml,
            "what the coordinator is shown of the repository: \"auto\", \"outline\", \"none\" or a list of globs",
        ),
        new_key("context.planner", Process, Toml, "what the planner is shown of it"),
        new_key("context.coder", Process, Toml, "what the coder is shown of it"),
        new_key("context.reviewer", Process, Toml, "what the reviewer is shown of it"),
        new_key("context.ideas", Process, Toml, "what the generator of ideas is shown of it"),
        new_key(
            "tuner.files",
            Process,
            Toml,
            "globs of the files whose constants the tuner changes; with none it looks for itself",
        ),
        new_key("tuner.seed", Process, Toml, "what the tuner's choices among equals follow from"),
        new_key(
            "score.preset",
            FixedSetting,
            Text,
            "a built-in list of metrics with its primary: \"trading\"",
        ),
        new_key(
            "score.primary",
            FixedSetting,
            Text,
            "the metric that may not get worse: \"COL\", \"COL:higher\" or \"COL:lower\"",
        ),
        new_key(
            "score.metrics",
            FixedSetting,
            Toml,
            "what counts: tables with `column`, `direction`, `weight` and `guard`",
        ),
        new_key("score.id_column", FixedSetting, Text, "the column that names a configuration"),
        new_key("score.status_column", FixedSetting, Text, "the column that says `ok`"),
        new_key(
            "score.invariant_columns",
            FixedSetting,
            Toml,
            "columns that must equal the root's in every configuration",
        ),
        new_key(
            "score.thresholds.primary_regression",
            FixedSetting,
            Toml,
            "the primary has regressed when it is worse by more than this part of the baseline",
        ),
        new_key(
            "score.thresholds.risk_regression",
            FixedSetting,
            Toml,
            "the same for a guarded metric",
        ),
        new_key(
            "score.thresholds.clamp",
            FixedSetting,
            Toml,
            "a relative improvement counts as at most this, either way",
        ),
        new_key("score.thresholds.strong", FixedSetting, Toml, "scores from here up are `strong`"),
        new_key(
            "score.thresholds.promising",
            FixedSetting,
            Toml,
            "scores from here up are `promising`, and worth exploring",
        ),
        new_key(
            "score.thresholds.mixed",
            FixedSetting,
            Toml,
            "scores from here up are `mixed`; below, `weak`",
        ),
        new_key(
            "gate.primary_tolerance",
            FixedSetting,
            Toml,
            "how far the primary may fall below the parent's, in its own unit",
        ),
        new_key(
            "gate.min_rows",
            FixedSetting,
            Toml,
            "without a limit N: the fewest rows that will do, or \"none\" for as many as the root has",
        ),
        new_key(
            "gate.min_ok_rate",
            FixedSetting,
            Toml,
            "without a limit N: the smallest part of the rows that must be ok, 0 to 1",
        ),
    ]
};

/// Prefix of the environment variables.
pub(crate) const VARIABLE_PREFIX: &str = "TREEBEAM_";

impl ConfigKey {
    /// Returns the name of the key's environment variable.
    pub(crate) fn variable_name(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }

    /// Returns the flag of `run` and `resume` for the key, if there is one.
    pub(crate) fn flag_name(&self) -> Option<String> {
        let flag = !KEYS_WITHOUT_FLAG.contains(&self.name) && !self.name.contains('.');
        flag.then(|| format!("--{}", self.name.replace('_', "-")))
    }

    /// Returns true if the key's value names a program, a path, a variable or an address.
    pub(crate) fn is_naming(&self) -> bool {
        NAMING_KEYS.contains(&self.name)
    }

    /// Returns true if the key is one of those that together choose the metrics and the primary.
    pub(crate) fn chooses_metrics(&self) -> bool {
        ["score.preset", "score.primary", "score.metrics"].contains(&self.name)
    }
}
