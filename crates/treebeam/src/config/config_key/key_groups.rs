//! Lists groups of configuration keys: those without a flag, and those whose values name something.

/// Top-level keys that have no flag of `run` and `resume`.
pub(super) const KEYS_WITHOUT_FLAG: [&str; 21] = [
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

/// Keys whose values name a program, a path, a variable or an address, or hold such names. An
/// existing run takes a new value of these from an uncommitted file only where the user accepts it.
pub(super) const NAMING_KEYS: [&str; 23] = [
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
