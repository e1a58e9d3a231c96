//! Tests in tables what keys mean and how wrong ones are reported. Precedence of origins is in
//! [`layers`].

mod layers;

use super::origin::ConfigPosition;
use super::*;
use treebeam_core::policy::{ChosenBy, Metric, ScorePolicy};

fn file(name: &str, text: &str) -> ConfigFile {
    ConfigFile::new(name, || Ok(text.to_owned())).unwrap()
}

fn config(name: &str, text: &str) -> Result<Config, ConfigError> {
    Config::from_sources(Some(file(name, text)), [])
}

fn toml(text: &str) -> Result<FixedSettings, ConfigError> {
    Ok(config("c.toml", text)?.fixed_settings(FixedSettings::default())?)
}

/// Formats a policy as `loss:lower by user: loss ↓1, acc ↑2!`.
fn metrics(policy: &ScorePolicy) -> String {
    let metric = |metric: &Metric| {
        let guard = if metric.guard { "!" } else { "" };
        format!("{} {} {}{guard}", metric.column, metric.direction, metric.weight)
    };
    let by = match policy.primary_chosen_by {
        ChosenBy::User => "user",
        ChosenBy::Preset => "preset",
    };
    let metrics: Vec<_> = policy.metrics.iter().take(3).map(metric).collect();
    let count = policy.metrics.len();
    format!("{} by {by}, {count}: {}", policy.primary, metrics.join(", "))
}

const TRADING: &str = "15: mean_topN_avg_return_per_trade_pct_oos higher 3, core_topN_cagr higher 2, core_topN_sharpe higher 1.5";

#[test]
fn which_metrics_count() {
    let check = |text: &str, expect: &str| {
        let policy = toml(&format!("[score]\n{text}")).unwrap().score;
        assert_eq!(metrics(&policy), expect.replace("TRADING", TRADING), "{text}");
    };
    let preset = "mean_topN_avg_return_per_trade_pct_oos by preset, TRADING";
    check("", preset);
    check("preset = 'trading'", preset);
    check("id_column = 'seed'", preset);
    check("primary = 'loss:lower'", "loss by user, 1: loss lower 1");
    check("primary = 'loss'", "loss by user, 1: loss higher 1");
    check("primary = 'a:b'", "a:b by user, 1: a:b higher 1");
    check("primary = 'a:lower:higher'", "a:lower by user, 1: a:lower higher 1");
    check("metrics = [{column = 'a'}]", "a by user, 1: a higher 1");
    check(
        "preset = 'trading'\nmetrics = [{column = 'a', direction = 'lower', weight = 2.5, guard = true}, {column = 'b'}]",
        "a by user, 2: a lower 2.5!, b higher 1",
    );
    let listed = "metrics = [{column = 'a'}, {column = 'b', direction = 'lower'}]";
    check(&format!("primary = 'b'\n{listed}"), "b by user, 2: a higher 1, b lower 1");
    check(&format!("primary = 'b:lower'\n{listed}"), "b by user, 2: a higher 1, b lower 1");
    check(
        &format!("primary = 'c:lower'\n{listed}"),
        "c by user, 3: c lower 1, a higher 1, b lower 1",
    );
    let chosen = "preset = 'trading'\nprimary = 'core_topN_cagr'";
    check(chosen, "core_topN_cagr by user, TRADING");
}

#[test]
fn a_flag_chooses_among_the_metrics_of_the_file() {
    let check = |text: &str, flag: &str, expect: &str| {
        let mut config = config("c.toml", &format!("[score]\n{text}")).unwrap();
        config.primary = Some(flag.parse().unwrap());
        let said = config.fixed_settings(FixedSettings::default());
        let said = said.map_or_else(|error| error.to_string(), |settings| metrics(&settings.score));
        assert_eq!(said, expect, "{text} {flag}");
    };
    check("", "loss", "loss by user, 1: loss higher 1");
    check("primary = 'loss:lower'", "loss", "loss by user, 1: loss lower 1");
    check("primary = 'loss:lower'", "acc", "acc by user, 2: acc higher 1, loss lower 1");
    let listed = "primary = 'loss:lower'\nmetrics = [{column = 'mem', direction = 'lower'}]";
    check(listed, "mem", "mem by user, 2: loss lower 1, mem lower 1");
    check(
        listed,
        "mem:higher",
        "`--primary mem:higher`: `mem` is to be higher, but among the metrics it is lower",
    );
    check("id_column = 'x'", "x", "`--primary x`: `x` cannot be both a metric and the id column");
    check(
        "primary = 'status'",
        "loss",
        "`c.toml`, line 2: `score.primary`: `status` cannot be both a metric and the status column",
    );
}

#[test]
fn a_key_that_is_not_set_keeps_its_value() {
    let text = "[score]\nstatus_column = 'state'\ninvariant_columns = ['seed']\n\
        [score.thresholds]\nclamp = 3\n[gate]\nmin_ok_rate = 0.5\n";
    let (before, after) = (FixedSettings::default(), toml(text).unwrap());
    assert_eq!(after.score.id_column, "config_id");
    assert_eq!(after.score.status_column, "state");
    assert_eq!(after.score.invariant_columns, ["seed"]);
    assert_eq!(after.score.thresholds.strong, before.score.thresholds.strong);
    assert!((after.score.thresholds.clamp.get() - 3.0).abs() < 1e-9);
    assert_eq!(after.gate.primary_tolerance, before.gate.primary_tolerance);
    assert_eq!(after.gate.min_rows, None);
    assert!((after.gate.min_ok_rate.get() - 0.5).abs() < 1e-9);
}

/// Checks the error message for a wrong file.
#[track_caller]
fn check(text: &str, expect: &str) {
    let said = toml(text).map_or_else(|error| error.to_string(), |_| "good".to_owned());
    assert_eq!(said, format!("`c.toml`, {expect}"), "{text}");
}

#[test]
fn wrong_keys_at_the_top() {
    check(
        "test_command = 1",
        "line 1: `test_command`: it must be a text for the shell, or a list of a program and its arguments",
    );
    check(
        "holdout_command = 1",
        "line 1: `holdout_command`: this version of treebeam does not have this key yet",
    );
    check("\n[agents.coder]\nmodel = 'm'", "line 2: `agents.coder`: the key `provider` is missing");
    check(
        "ideas_per_nod = 1",
        "line 1: `ideas_per_nod`: there is no such key; nearest: `ideas_per_node`",
    );
    check("min_rows = 1", "line 1: `min_rows`: there is no such key; nearest: `gate.min_rows`");
    check(
        "[gate]\nbeam_width = 1",
        "line 2: `gate.beam_width`: there is no such key; nearest: `beam_width`",
    );
    check(
        "ideas_per_node = 0",
        "line 1: `ideas_per_node`: it must be a whole number from 1 to 1000, not 0",
    );
    check(
        "\nbeam_width = 1001",
        "line 2: `beam_width`: it must be a whole number from 1 to 1000, not 1001",
    );
    check(
        "sweep_config_limit = 1000001",
        "line 1: `sweep_config_limit`: it must be a whole number from 1 to 1000000, not 1000001",
    );
    check(
        "sweep_config_limit = 'all'",
        "line 1: `sweep_config_limit`: it must be a whole number or `\"none\"`, not the text \"all\"",
    );
    check(
        "max_parallel_evals = 257",
        "line 1: `max_parallel_evals`: it must be a whole number from 1 to 256, not 257",
    );
    check(
        "max_parallel_evals = 'none'",
        "line 1: `max_parallel_evals`: it must be a whole number, not the text \"none\"",
    );
    check(
        "max_parallel_per_node = 0",
        "line 1: `max_parallel_per_node`: it must be a whole number from 1 to 256, not 0",
    );
    check(
        "sweep_max_parallel = true",
        "line 1: `sweep_max_parallel`: it must be a whole number or `\"none\"`, not `true`",
    );
    check(
        "lock_stale_seconds = 0",
        "line 1: `lock_stale_seconds`: it must be a whole number from 1 to 4294967295, not 0",
    );
    check(
        "max_new_file_kib = 0",
        "line 1: `max_new_file_kib`: it must be a whole number from 1 to 1048576, not 0",
    );
    for deadline in ["1000000000h", "0s", "-8h", "9999-12-30T22:00:00Z"] {
        let said = toml(&format!("beam_width = 2\ndeadline = '{deadline}'")).map(drop).unwrap_err();
        assert!(said.to_string().starts_with("`c.toml`, line 2: `deadline`: it must "), "{said}");
    }
    check(
        "max_depth = -1",
        "line 1: `max_depth`: it must be a whole number from 0 to 4294967295, not -1",
    );
    check(
        "max_total_idea_evals = 1.5",
        "line 1: `max_total_idea_evals`: it must be a whole number or `\"none\"`, not the number `1.5`",
    );
    check(
        "max_review_rounds = 'x'",
        "line 1: `max_review_rounds`: it must be a whole number, not the text \"x\"",
    );
    check(
        "stop_on_empty_frontier = 1",
        "line 1: `stop_on_empty_frontier`: it must be `true` or `false`, not the number `1`",
    );
    check(
        "dedupe_scope = 'all'",
        "line 1: `dedupe_scope`: it must be one of `node_plus_ancestors`, `global`, `none`, not `all`",
    );
    check("protect = 'a'", "line 1: `protect`: it must be a list, not the text \"a\"");
    check("protect = ['a', ' ']", "line 1: `protect`: a glob cannot be empty");
    check(
        "protect = ['a', 'b[']",
        "line 1: `protect`: `protect` has a pattern that is no glob: error parsing glob 'b[': unclosed character class; missing ']'",
    );
    check("runs_root = ''", "line 1: `runs_root`: the path of a folder cannot be empty");
}

#[test]
fn wrong_keys_and_values() {
    check("[scor]", "line 1: `scor`: there is no such key; nearest: `score`");
    check("score = 1", "line 1: `score`: it must be a table, not the number `1`");
    check("[score\n", "line 1: unclosed table, expected `]`");
    check("beam_width = 1\nbeam_width = 2", "line 2: `beam_width` is set twice");
    check("[score]\n\n[gate]\n[score]\n", "line 4: `score` is set twice");
    check(
        "[gate]\n\nmin_row = 1",
        "line 3: `gate.min_row`: there is no such key; nearest: `min_rows`",
    );
    check(
        "[gate]\nmin_rows = -1",
        "line 2: `gate.min_rows`: it must be a whole number from 0 to 4294967295, not -1",
    );
    check(
        "[gate]\nmin_rows = 'a'",
        "line 2: `gate.min_rows`: it must be a whole number or `\"none\"`, not the text \"a\"",
    );
    check(
        "[gate]\nmin_ok_rate = 1.5",
        "line 2: `gate.min_ok_rate`: it must be from 0 to 1, not 1.5",
    );
    check(
        "[gate]\nprimary_tolerance = -1",
        "line 2: `gate.primary_tolerance`: it must be 0 or more, not -1",
    );
    check(
        "[score]\npreset = 'trade'",
        "line 2: `score.preset`: there is no preset `trade`; nearest: `trading`",
    );
    check(
        "[score]\nprimary = ' :lower'",
        "line 2: `score.primary`: a column's name cannot be empty",
    );
    check("[score]\nid_column = ''", "line 2: `score.id_column`: a column's name cannot be empty");
    check("[score]\nmetrics = []", "line 2: `score.metrics`: there must be at least one metric");
    check(
        "[score]\nmetrics = [\n{column = 'a'},\n{column = 'a'}]",
        "line 2: `score.metrics`: the column `a` stands twice among the metrics",
    );
    check(
        "[score]\nmetrics = [\n{column = 'a', wight = 1}]",
        "line 3: `score.metrics[0].wight`: there is no such key; nearest: `weight`",
    );
    check("score = ['trading']", "line 1: `score`: it must be a table, not a list");
    check(
        "[score]\nmetrics = [['a', 'lower', 2.0, true]]",
        "line 2: `score.metrics[0]`: it must be a table, not a list",
    );
    check(
        "[score]\nthresholds = [0.1]",
        "line 2: `score.thresholds`: it must be a table, not a list",
    );
    check(
        "[score]\nprimary = {}",
        "line 2: `score.primary`: it must be a text in quotes, not a table",
    );
    check("[score]\nprimary = loss", "line 2: a text must be in quotes");
    check("[score]\nmetrics = [{}]", "line 2: `score.metrics[0]`: the key `column` is missing");
    for weight in ["0", "-1", "1e7", "nan", "inf"] {
        let text = format!("[[score.metrics]]\ncolumn = 'a'\nweight = {weight}\n");
        let said = toml(&text).unwrap_err().to_string();
        let expect = "`c.toml`, line 3: `score.metrics[0].weight`: it must be more than 0 and at most 1000000";
        assert!(said.starts_with(expect), "{said}");
    }
    check(
        "[score.thresholds]\nrisk_regression = -0.1",
        "line 2: `score.thresholds.risk_regression`: it must be 0 or more, not -0.1",
    );
    check(
        "[score.thresholds]\nstrong = 1\nmixed = 0.5",
        "line 3: `score.thresholds.mixed`: `mixed` ≤ `promising` ≤ `strong` must hold, but they are 0.5, 0.03 and 1",
    );
    check(
        "[score]\nprimary = 'a:lower'\nmetrics = [{column = 'a'}]",
        "line 2: `score.primary`: `a` is to be lower, but among the metrics it is higher",
    );
    check(
        "[score]\nprimary = 'a'\nstatus_column = 'a'",
        "line 3: `score.status_column`: `a` cannot be both a metric and the status column",
    );
    check(
        "[score]\nmetrics = [{column = 'a'}]\nprimary = 'config_id'",
        "line 3: `score.primary`: `config_id` cannot be both a metric and the id column",
    );
    check(
        "[score]\npreset = 'trading'\nstatus_column = 'config_id'",
        "line 3: `score.status_column`: `config_id` cannot be both the id column and the status column",
    );
    check(
        "[score]\nid_column = 'status'",
        "line 2: `score.id_column`: `status` cannot be both the id column and the status column",
    );
}

#[test]
fn json_is_read_too() {
    let check = |text: &str, expect: &str| {
        let said = config("c.json", text)
            .and_then(|config| Ok(config.fixed_settings(FixedSettings::default())?));
        let said = said.map_or_else(|error| error.to_string(), |settings| metrics(&settings.score));
        assert_eq!(said, expect, "{text}");
    };
    check(r#"{"score": {"primary": "loss:lower"}}"#, "loss by user, 1: loss lower 1");
    check(
        "{\"score\": {\n\"primry\": 1}}",
        "`c.json`, line 2: `score.primry`: there is no such key; nearest: `primary`",
    );
    check(
        "{\"gate\": {\n\n\"min_rows\": \"x\"}}",
        "`c.json`, line 3: `gate.min_rows`: it must be a whole number or `\"none\"`, not the text \"x\"",
    );
    check(
        "{\"gate\": {\"min_rows\": 1},\n \"score\": {\"metrics\": [{\"column\": \"a\"}],\n\n  \"primary\":\n \"a:lower\"}}",
        "`c.json`, line 4: `score.primary`: `a` is to be lower, but among the metrics it is higher",
    );
    check("{\"gate\": {}} x", "`c.json`, line 1: there is more text after the end");
    check(
        "{\"gate\": ",
        "`c.json`, line 1: `gate`: the text ends here, and something is still open",
    );
    check(
        "{\"score\": {\n\"primary\": \"a\",}}",
        "`c.json`, line 2: `score`: nothing comes after the comma",
    );
    check("{primary: 1}", "`c.json`, line 1: a key must be a text in quotes");
    check("[{}]", "`c.json`, line 1: it must be a table, not a list");
    let other = ConfigFile::new("c.yaml", || Ok(String::new())).unwrap_err();
    assert_eq!(other.to_string(), "`c.yaml` is neither a `.toml` nor a `.json` file");
}

#[test]
fn a_file_of_metrics_has_its_keys_in_a_table_or_at_the_top() {
    let check = |name: &str, text: &str, expect: &str| {
        let before = config("c.toml", "[score]\nid_column = 'x'\n[gate]\nmin_rows = 7");
        let config = before.and_then(|config| config.with_score_from(file(name, text)));
        let said = config.and_then(|config| Ok(config.fixed_settings(FixedSettings::default())?));
        let said = said.map_or_else(
            |error| error.to_string(),
            |FixedSettings { score, gate, .. }| {
                format!("{} {} {:?}", metrics(&score), score.id_column, gate.min_rows)
            },
        );
        assert_eq!(said, expect, "{text}");
    };
    let good = "a by user, 1: a higher 1 config_id Some(7)";
    check("m.toml", "primary = 'a'", good);
    check("m.toml", "[score]\nprimary = 'a'\n", good);
    let gate =
        "`gate`: a file of metrics has no gate: `[gate]` belongs into the configuration file";
    check(
        "m.toml",
        "[score]\nprimary = 'a'\n[gate]\nmin_rows = 3",
        &format!("`m.toml`, line 3: {gate}"),
    );
    check("m.json", r#"{"gate": {}, "primary": "a"}"#, &format!("`m.json`, line 1: {gate}"));
    check("m.json", r#" [{"column": "a"}]"#, good);
    check(
        "m.json",
        "[{\"column\": \"a\",\n\"wight\": 1}]",
        "`m.json`, line 2: `[0].wight`: there is no such key; nearest: `weight`",
    );
    check(
        "m.json",
        r#"[{"column": "status"}]"#,
        "`m.json`: `status` cannot be both a metric and the status column",
    );
    check("m.json", r#"{"primary": "a"}"#, good);
    check("m.json", r#"{"score": {"primary": "a"}}"#, good);
    check(
        "m.toml",
        "\nprimry = 1",
        "`m.toml`, line 2: `primry`: there is no such key; nearest: `primary`",
    );
    check(
        "m.toml",
        "metrics = [{column = 'a'}]\nprimary = 'a:lower'",
        "`m.toml`, line 2: `primary`: `a` is to be lower, but among the metrics it is higher",
    );
}

#[test]
fn only_what_a_file_sets_is_compared_with_a_run() {
    let run =
        toml("[score]\nmetrics = [{column = 'a'}, {column = 'b'}]\n[gate]\nmin_rows = 3").unwrap();
    let check = |text: &str, expect: &str| {
        let changed = config("c.toml", text).unwrap().first_fixed_change(&run).unwrap();
        let row =
            |SettingChange { key, before, asked, .. }| format!("{} | {before} | {asked}", key.name);
        assert_eq!(changed.map_or("nothing".to_owned(), row), expect, "{text}");
    };
    check("", "nothing");
    check("[score]\nprimary = 'a'", "nothing");
    check("[score.thresholds]\nclamp = 2\n[gate]\nmin_rows = 3", "nothing");
    check("[score]\nmetrics = [{column = 'a', weight = 1}, {column = 'b'}]", "nothing");
    check("[score]\nprimary = 'b'", "score.primary | a:higher | b:higher");
    check("[score]\nprimary = 'a:lower'", "score.primary | a:higher | a:lower");
    check("[score]\nmetrics = [{column = 'a'}]", "score.metrics | b (higher, 1) | no b");
    check(
        "[score]\nmetrics = [{column = 'a', weight = 2, guard = true}, {column = 'c'}, {column = 'b'}]",
        "score.metrics | a (higher, 1), no c | a (higher, 2, guarded), c (higher, 1)",
    );
    check(
        "[score]\nmetrics = [{column = 'b'}, {column = 'a'}]",
        "score.metrics | the primary a:higher | the primary b:higher",
    );
    check("[score]\nprimary = 'a'\nmetrics = [{column = 'b'}, {column = 'a'}]", "nothing");
    // A primary that was not in the list changes the list too: the message names the primary.
    check(
        "[score]\nprimary = 'c:lower'\nmetrics = [{column = 'a'}, {column = 'b'}]",
        "score.primary | a:higher | c:lower",
    );
    check(
        "[score]\nprimary = 'a'\npreset = 'trading'",
        "score.preset | b (higher, 1), no mean_topN_avg_return_per_trade_pct_oos, no core_topN_cagr, and 13 more \
        | no b, mean_topN_avg_return_per_trade_pct_oos (higher, 3), core_topN_cagr (higher, 2), and 13 more",
    );
    check("[score.thresholds]\nclamp = 3", "score.thresholds.clamp | 2 | 3");
    check("[score]\nid_column = 'x'", "score.id_column | config_id | x");
    check("[gate]\nmin_rows = 4", "gate.min_rows | 3 | 4");
    let changed = config("c.toml", "[score]\npreset = 'trading'").unwrap().first_fixed_change(&run);
    assert_eq!(changed.unwrap().unwrap().key.name, "score.preset");
}

#[test]
fn every_key_is_documented() {
    let page = include_str!("../../../../docs/scoring.md");
    for table in ["[score]", "[score.thresholds]", "[[score.metrics]]\ncolumn = 'a'", "[gate]"] {
        let said = toml(&format!("{table}\nzzzzz = 1")).unwrap_err().to_string();
        let (_, known) = said.split_once("; known: ").expect("the known keys");
        for key in known.split(", ") {
            assert!(
                page.contains(&format!("| {key} |")),
                "{key} of {table} is not in docs/scoring.md"
            );
        }
    }
}
