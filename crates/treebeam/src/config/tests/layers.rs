//! Tests the precedence of built-in values, file, environment and flags, key by key.

use super::*;
use proptest::prelude::*;

/// Three valid values of each key in variable syntax: for the file, the environment and the flags.
const VALUES: [(&str, [&str; 3]); CONFIG_KEYS.len()] = [
    ("ideas_per_node", ["1", "2", "3"]),
    ("beam_width", ["1", "2", "1000"]),
    ("sweep_config_limit", ["1", "none", "1000000"]),
    ("dedupe_scope", ["global", "none", "node_plus_ancestors"]),
    ("ideas_context_strategy", ["node_only", "global_prior_ideas", "node_plus_ancestors"]),
    ("protect", ["['a/**']", "['b', 'c']", "['d']"]),
    ("control", ["best-of-n=0.25", "none", "best-of-n=0.4"]),
    ("setup_command", ["'make'", "none", "['make', 'x']"]),
    ("test_command", ["'a | b'", "['a', 'b']", "none"]),
    ("test_cwd", ["'a'", "none", "'b/c'"]),
    ("sweep_command", ["['a']", "'b'", "['c', 'd']"]),
    ("sweep_cwd", ["'a'", "'b'", "none"]),
    ("sweep_config_limit_flag", ["'--a'", "none", "'--b'"]),
    ("results_csv", ["none", "'a.csv'", "'b/c.csv'"]),
    ("baseline_csv", ["none", "'a.csv'", "'b/c.csv'"]),
    ("pass_env", ["['A']", "[]", "['B', 'C']"]),
    ("inputs", ["['a']", "['b/c']", "[]"]),
    ("max_depth", ["0", "1", "2"]),
    ("max_total_idea_evals", ["7", "8", "none"]),
    ("stop_on_empty_frontier", ["false", "true", "false"]),
    ("strict_fail_depth", ["true", "false", "true"]),
    ("eval_retries", ["0", "1", "2"]),
    ("eval_timeout_seconds", ["1", "none", "2592000"]),
    ("max_parallel_evals", ["2", "3", "256"]),
    ("max_parallel_per_node", ["none", "3", "4"]),
    ("sweep_max_parallel", ["2", "none", "4"]),
    ("max_review_rounds", ["0", "1", "3"]),
    ("proceed_on_max_review_rounds", ["true", "false", "true"]),
    ("keep_rejected_worktrees", ["true", "false", "true"]),
    ("keep_failed_artifacts", ["true", "false", "true"]),
    ("lock_stale_seconds", ["1", "2", "4294967295"]),
    ("ideas_file", ["a", "none", "d.md"]),
    ("base_on_working_tree", ["false", "true", "true"]),
    ("keep_worktrees", ["false", "true", "true"]),
    ("max_new_file_kib", ["1", "2", "1048576"]),
    ("runs_root", ["a", "../b", "c"]),
    ("max_cost_usd", ["1", "none", "2.5"]),
    ("max_tokens_total", ["1", "none", "3"]),
    ("deadline", ["8h", "none", "2026-01-31T06:00:00Z"]),
    ("llm_max_inflight", ["1", "2", "256"]),
    ("llm_rate_limit", ["'1rpm'", "'2tpm'", "'3rpm,4tpm'"]),
    ("outage_patience", ["90m", "auto", "0s"]),
    ("idea_conversation_mode", ["off", "native", "replay"]),
    ("idea_history_window_turns", ["1", "2", "1000"]),
    ("idea_history_max_chars", ["1", "2", "2000000"]),
    ("summary_agent", ["planner", "none", "ideas"]),
    ("confirm_above_usd", ["1", "0", "2.5"]),
    ("prices", ["{a = {input = 1, output = 2}}", "{b = {input = 1, output = 2}}", "{}"]),
    ("context_max_chars", ["1", "2", "2000000"]),
    ("ideas_context_files", ["['a.md']", "[]", "['b', 'c.txt']"]),
    ("agents.coordinator", ["{provider = 'ollama', model = 'a'}", AGENT, AGENT]),
    ("agents.planner", [AGENT, "{provider = 'command', command = 'x'}", AGENT]),
    ("agents.coder", [AGENT, AGENT, "{provider = 'command', command = ['x']}"]),
    ("agents.reviewer", [AGENT, AGENT, AGENT]),
    ("agents.ideas", [AGENT, "{provider = 'tuner'}", AGENT]),
    ("prompts.coordinator", ["a.md", "none", "b/c.md"]),
    ("prompts.planner", ["a.md", "b.md", "none"]),
    ("prompts.coder", ["a.md", "b.md", "c.md"]),
    ("prompts.reviewer", ["none", "b.md", "c.md"]),
    ("prompts.ideas", ["a.md", "b.md", "c.md"]),
    ("context.coordinator", ["'auto'", "'outline'", "none"]),
    ("context.planner", ["none", "['a/**']", "'outline'"]),
    ("context.coder", ["['a']", "['b', 'c']", "[]"]),
    ("context.reviewer", ["'outline'", "none", "'auto'"]),
    ("context.ideas", ["['a']", "'outline'", "['b']"]),
    ("tuner.files", ["['a/*.py']", "[]", "['b.toml', 'c']"]),
    ("tuner.seed", ["1", "0", "4294967295"]),
    ("score.preset", ["trading", "trading", "trading"]),
    ("score.primary", ["p:lower", "q:higher", "r:lower"]),
    ("score.metrics", ["[{column = 'a'}]", "[{column = 'b', weight = 2}]", "[{column = 'c'}]"]),
    ("score.id_column", ["i", "j", "k"]),
    ("score.status_column", ["s", "t", "u"]),
    ("score.invariant_columns", ["['x']", "[]", "['y', 'z']"]),
    ("score.thresholds.primary_regression", ["0", "0.5", "1"]),
    ("score.thresholds.risk_regression", ["0", "0.5", "1"]),
    ("score.thresholds.clamp", ["1", "2.5", "3"]),
    ("score.thresholds.strong", ["0.5", "0.6", "0.7"]),
    ("score.thresholds.promising", ["0.1", "0.05", "0.07"]),
    ("score.thresholds.mixed", ["-0.1", "-0.2", "0"]),
    ("gate.primary_tolerance", ["1", "2", "0"]),
    ("gate.min_rows", ["1", "none", "3"]),
    ("gate.min_ok_rate", ["0.1", "0.2", "0.3"]),
];

const AGENT: &str = "{provider = 'openai', model = 'm', timeout_sec = 5}";

/// Converts the text of a variable to TOML.
fn as_toml(key: &ConfigKey, text: &str) -> String {
    let quoted = key.form == config_key::VariableForm::Text || text == "none";
    if quoted { format!("'{text}'") } else { text.to_owned() }
}

/// Builds a configuration in which the bits 1, 2 and 4 of each mask select whether file,
/// environment and flags set a key.
fn layered(masks: &[u8]) -> Config {
    let (mut text, mut variables, mut flags) = (String::new(), Vec::new(), Vec::new());
    for ((key, (_, [in_file, in_variable, in_flag])), mask) in
        CONFIG_KEYS.iter().zip(VALUES).zip(masks)
    {
        if mask & 1 > 0 {
            text.push_str(&format!("{} = {}\n", key.name, as_toml(key, in_file)));
        }
        if mask & 2 > 0 {
            variables.push((key.variable_name().into(), in_variable.into()));
        }
        if mask & 4 > 0 {
            let toml = format!("{} = {}\n", key.name, as_toml(key, in_flag));
            flags.push(toml::from_str(&toml).unwrap());
        }
    }
    Config::from_sources(Some(file("c.toml", &text)), variables)
        .unwrap()
        .with_flags(&flags)
        .unwrap()
}

proptest! {
    #[test]
    fn the_highest_origin_counts(masks in prop::collection::vec(0_u8..8, CONFIG_KEYS.len())) {
        let config = layered(&masks);
        let (values, built_in) = (config.all_values().unwrap(), Config::default().all_values().unwrap());
        let mut line = 0;
        for ((key, (name, texts)), mask) in CONFIG_KEYS.iter().zip(VALUES).zip(masks) {
            prop_assert_eq!(key.name, name);
            line += usize::from(mask & 1);
            let place = || ConfigPosition { file: "c.toml".into(), line: Some(line), key: Some(name.into()) };
            let (origin, text) = match mask {
                4.. => (SettingOrigin::from_flag(key), Some(texts[2])),
                2.. => (SettingOrigin::Variable(key.variable_name()), Some(texts[1])),
                1 => (SettingOrigin::File(place()), Some(texts[0])),
                0 => (SettingOrigin::Default, None),
            };
            prop_assert_eq!(config.origin(key), origin);
            let value = get_value(&values, name);
            let Some(text) = text else {
                // Values that follow from other keys may differ.
                let follows = name.starts_with("score.") && !name.contains("thresholds.");
                prop_assert!(follows || value == get_value(&built_in, name), "{name}: {value}");
                continue;
            };
            let table: Value = toml::from_str(&format!("v = {}", as_toml(key, text))).unwrap();
            let said = &table["v"];
            match name {
                "protect" => prop_assert!(format_value(name, value).contains(format_value(name, said).trim_matches(['[', ']']))),
                "score.metrics" => prop_assert!(format_value(name, value).contains(said[0]["column"].as_str().unwrap())),
                _ if text == "none" && name != "dedupe_scope" => prop_assert!(value.is_null()),
                _ => prop_assert_eq!(format_value(name, value), format_value(name, said)),
            }
        }
    }
}

#[test]
fn every_key_has_a_row_and_a_field() {
    let page = include_str!("../../../../../docs/configuration.md");
    let built_in = Config::default().all_values().unwrap();
    for key in &CONFIG_KEYS {
        let default = format_value(key.name, get_value(&built_in, key.name));
        let default = if key.name == "score.metrics" {
            "the preset's".to_owned()
        } else {
            format!("`{default}`")
        };
        let row = format!("| `{}` | {default} |", key.name);
        assert!(page.contains(&row), "docs/configuration.md lacks `{row}`");
        assert!(page.contains(key.about), "docs/configuration.md lacks `{}`", key.about);
    }
    let mut fields = Vec::new();
    for table in ["", "agents", "prompts", "context", "tuner", "score", "score.thresholds", "gate"]
    {
        let said =
            toml(&format!("[{table}]\nzzzzz = 1").replace("[]\n", "")).unwrap_err().to_string();
        let (_, known) = said.split_once("; known: ").expect("the known keys");
        let names = known.split(", ").map(|name| name.trim_matches('`'));
        let full =
            |name: &str| if table.is_empty() { name.into() } else { format!("{table}.{name}") };
        fields.extend(names.map(full));
    }
    let tables = ["agents", "prompts", "context", "tuner", "score", "score.thresholds", "gate"];
    fields.retain(|name| !tables.contains(&name.as_str()));
    let (mut fields, mut keys) = (fields, CONFIG_KEYS.map(|key| key.name.to_owned()));
    fields.sort();
    keys.sort();
    assert_eq!(fields, keys);
}

#[test]
fn wrong_variables() {
    let check = |name: &str, value: &str, expect: &str| {
        let said = Config::from_sources(None, [(name.into(), value.into())])
            .and_then(|config| Ok(config.all_values()?));
        let said = said.map_or_else(|error| error.to_string(), |_| "good".to_owned());
        assert_eq!(said, expect, "{name}={value}");
    };
    check("TREEBEAM_IDEAS_PER_NODE", "5", "good");
    check("TREEBEAM_IDEAS_PER_NODE", "", "good");
    check("TREEBEAM_SCORE_PRIMARY", "loss:lower", "good");
    check("TREEBEAM_PROTECT", "['eval/**']", "good");
    check("TREEBEAM_MAX_TOTAL_IDEA_EVALS", "none", "good");
    check("TREEBEAM_MAX_TOTAL_IDEA_EVALS", "\"none\"", "good");
    for name in ["ROLE", "ROUND", "RUN", "NODE", "EVAL", "WORKTREE", "MARK"] {
        check(&format!("TREEBEAM_{name}"), "x", "good");
    }
    check("PATH_OF_TREEBEAM", "x", "good");
    check(
        "TREEBEAM_IDEAS_PER_NOD",
        "5",
        "`TREEBEAM_IDEAS_PER_NOD`: no configuration key has this variable; nearest: `TREEBEAM_IDEAS_PER_NODE`",
    );
    check(
        "TREEBEAM_GATE",
        "5",
        "`TREEBEAM_GATE`: no configuration key has this variable; nearest: `TREEBEAM_GATE_PRIMARY_TOLERANCE`",
    );
    check(
        "TREEBEAM_AGENTS_CODER_MODEL",
        "x",
        "`TREEBEAM_AGENTS_CODER_MODEL`: no configuration key has this variable; nearest: `TREEBEAM_AGENTS_CODER`",
    );
    check("TREEBEAM_AGENTS_CODER", "{ provider = 'ollama', model = 'm' }", "good");
    check("TREEBEAM_SWEEP_COMMAND", "python sweep.py | tee log", "good");
    check("TREEBEAM_SWEEP_COMMAND", "['python', 'sweep.py']", "good");
    check("TREEBEAM_SWEEP_COMMAND", "[]", "`TREEBEAM_SWEEP_COMMAND`: a command cannot be empty");
    check(
        "TREEBEAM_RESULTS_CSV",
        "../a.csv",
        "`TREEBEAM_RESULTS_CSV`: \"../a.csv\" is not a path inside the worktree, such as `out/results.csv`",
    );
    check(
        "TREEBEAM_PASS_ENV",
        "['A-B']",
        "`TREEBEAM_PASS_ENV`: \"A-B\" is not the name of a variable",
    );
    check("TREEBEAM_EVAL_TIMEOUT_SECONDS", "none", "good");
    check("TREEBEAM_LLM_RATE_LIMIT", "60rpm", "good");
    check("TREEBEAM_MAX_COST_USD", "2.5", "good");
    check(
        "TREEBEAM_AGENTS_CODER",
        "{ provider = 'ollama' }",
        "`TREEBEAM_AGENTS_CODER`: `model` is missing: `ollama` has many",
    );
    check(
        "TREEBEAM_IDEAS_PER_NODE",
        "many",
        "`TREEBEAM_IDEAS_PER_NODE`: it must be a whole number, not the text \"many\"",
    );
    check(
        "TREEBEAM_IDEAS_PER_NODE",
        "5\nbeam_width = 3",
        "`TREEBEAM_IDEAS_PER_NODE`: it must be a whole number, not the text \"5\\nbeam_width = 3\"",
    );
    check(
        "TREEBEAM_GATE_MIN_OK_RATE",
        "2",
        "`TREEBEAM_GATE_MIN_OK_RATE`: it must be from 0 to 1, not 2",
    );
    check(
        "TREEBEAM_SCORE_STATUS_COLUMN",
        "config_id",
        "`TREEBEAM_SCORE_STATUS_COLUMN`: `config_id` cannot be both the id column and the status column",
    );
}

#[test]
fn what_changes_a_run_is_named_with_its_origin() {
    let config = layered(&[7; CONFIG_KEYS.len()]);
    let change = config.first_fixed_change(&FixedSettings::default()).unwrap().unwrap();
    let SettingChange { key, origin, before, asked } = change;
    assert_eq!((key.name, before.as_str(), asked.as_str()), ("ideas_per_node", "7", "3"));
    assert_eq!(origin, SettingOrigin::Flag("--ideas-per-node".to_owned()));
    let config = Config::from_sources(None, [("TREEBEAM_MAX_DEPTH".into(), "9".into())]).unwrap();
    assert!(config.first_fixed_change(&FixedSettings::default()).unwrap().is_none());
    let rows: Vec<String> = config
        .limit_changes(&RunLimits::default())
        .into_iter()
        .map(|change| format!("{} {} {}", change.origin, change.before, change.asked))
        .collect();
    assert_eq!(rows, ["`TREEBEAM_MAX_DEPTH` 3 9"]);
    let config =
        Config::from_sources(None, [("TREEBEAM_LOCK_STALE_SECONDS".into(), "9".into())]).unwrap();
    assert_eq!(config.lock_stale_after(), Some(Duration::from_secs(9)));
    assert!(config.first_fixed_change(&FixedSettings::default()).unwrap().is_none());
    assert!(config.limit_changes(&RunLimits::default()).is_empty());
}
