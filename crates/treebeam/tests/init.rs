//! `treebeam init`: the written file, the source of its values, and that it overwrites nothing.

#![cfg(test)]

use treebeam_testkit::program::{SITE_RUN_ID, Site};
use treebeam_testkit::repo::TempRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// An old configuration with present, planned and unknown keys, a wrong value and a secret.
const OLD: &str = r#"{
  "agents": {
    "planner": {"provider": "openai", "model": "m-1", "api_key_env": "OPENAI_API_KEY", "max_tokens": 4096},
    "coder": {"provider": "command", "command": ["./agent.sh", "--fast"], "api_key": "sk-12345"}
  },
  "prompts": {"coder": "prompts/coder.txt"},
  "max_review_rounds": 3,
  "beam_width": 0,
  "test_command": "pytest -q \"tests/unit\"",
  "test_cwd": null,
  "sweep_command": ["python", "sweep.py"],
  "keep_worktrees": false,
  "deadline": "06:00",
  "my notes": {"a": {"b": [1, 2.5]}, "c": true},
  "OPENAI_API_KEY": "sk-12345"
}"#;

const RESULTS: &str = "seed,state,window,model,loss,accuracy,note\n\
    0,ok,10,m,1.5,0.5,a\n1,ok,20,m,1.25,nan,b\n2,error,30,m,,0.75,c\n";

macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $text);
        })
    };
}

fn read(site: &Site) -> String {
    std::fs::read_to_string(site.repo.path().join("treebeam.toml")).expect("treebeam.toml")
}

#[test]
fn the_file_loads_and_changes_nothing() {
    let site = Site::new(BINARY);
    let before = site.call(&["config"]).exits(0).stdout;
    let _ = site
        .call_in(&site.repo.path().join("src"), &["init"])
        .exits(0)
        .says(["wrote `treebeam.toml`"]);
    snapshot!("init", read(&site));
    assert_eq!(site.call(&["config"]).exits(0).stdout, before);
    let _ = site
        .call(&["run", "--dry-run", "--run-id", SITE_RUN_ID, "--ideas-per-node=1", "--max-depth=1"])
        .exits(0);
    // Uncommenting every line changes nothing: the built-in values are shown correctly.
    let key = |line: &str| {
        let rest = line.strip_prefix("# ").filter(|rest| {
            rest.split_once(" = ").is_some_and(|(name, _)| {
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            })
        });
        let example = |rest: &&str| rest.starts_with("metrics") || rest.contains("= { ");
        rest.filter(|rest| !example(rest)).unwrap_or(line).to_owned() + "\n"
    };
    let bare: String = read(&site).lines().map(key).collect();
    site.repo.write("treebeam.toml", &bare).expect("a file");
    let values = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.split("  ").take(1).chain(line.split_whitespace().nth(1)).collect())
            .collect()
    };
    assert_eq!(values(&site.call(&["config"]).exits(0).stdout), values(&before));
}

#[test]
fn nothing_is_overwritten_without_force() {
    let site = Site::new(BINARY);
    site.repo.write("treebeam.toml", "max_depth = 9\n").expect("a file");
    let _ = site
        .call(&["init"])
        .exits(2)
        .says(["error: there is a `treebeam.toml` already", "hint: add `--force` to overwrite it"]);
    assert_eq!(read(&site), "max_depth = 9\n");
    let said = site.call(&["init", "--force", "--json"]).exits(0);
    assert_eq!(said.json_lines()[0]["schema"], "treebeam.init/1");
    assert!(read(&site).contains("# max_depth = 3\n"));
    let plain = Site::from_repo(TempRepo::folder("plain").expect("a folder"), BINARY);
    let _ = plain.call(&["init"]).exits(4).says(["is not in a git repository", "hint: "]);
}

#[test]
fn an_old_configuration_is_taken_over() {
    let site = Site::new(BINARY);
    site.repo.write("agent_config.json", OLD).expect("a file");
    let _ = site
        .call(&["init", "--from", "agent_config.json"])
        .exits(0)
        .says(["set: max_review_rounds"]);
    let text = read(&site);
    assert!(!text.contains("sk-12345"), "{text}");
    let (_, kept) = text.split_once("# ---- from").expect("what is kept");
    snapshot!("init_from", kept);
    for line in [
        "# from `agent_config.json`\nmax_review_rounds = 3\n",
        "# from `agent_config.json`\nplanner = { api_key_env = \"OPENAI_API_KEY\", max_tokens = 4096, model = \"m-1\", provider = \"openai\" }\n",
        "# api_key: left out, it looks like a secret; keep it in `.env`\ncoder = { command = [\"./agent.sh\", \"--fast\"], provider = \"command\" }\n",
        "# from `agent_config.json`\nsweep_command = [\"python\", \"sweep.py\"]\n",
        "# from `agent_config.json`\ntest_command = \"pytest -q \\\"tests/unit\\\"\"\n",
        "# `agent_config.json` had none\n# test_cwd = \"none\"\n",
        "predecessor did it\nsweep_config_limit_flag = \"--sweep-config-limit\"\n",
        "# `agent_config.json` had \"prompts/coder.txt\": rewrite it with the placeholders of docs/prompts.md first\n# coder = \"none\"\n",
        "# `agent_config.json` had 0, which is not taken: it must be a whole number from 1 to 1000, not 0\n# beam_width = 1\n",
    ] {
        assert!(text.contains(line), "no {line:?} in:\n{text}");
    }
    let shown = site.call(&["config"]).exits(0).stdout;
    assert!(shown.contains("max_review_rounds                    3 "), "{shown}");
    for (wrong, said) in
        [("[1]", "`old.json`, line 1: it is no table in JSON"), ("{\n,", "`old.json`, line 2: ")]
    {
        site.repo.write("old.json", wrong).expect("a file");
        let _ = site.call(&["init", "--force", "--from", "old.json"]).exits(2).says([said]);
    }
    let _ = site
        .call(&["init", "--force", "--from", "none.json"])
        .exits(2)
        .says(["there is no file `none.json`"]);
    assert_eq!(read(&site), text);
}

/// Returns the `protect` list that is set, without built-in and default entries.
fn protected(site: &Site) -> Vec<String> {
    let text = read(site);
    let value = text.lines().find_map(|line| line.strip_prefix("protect = "));
    let all: Vec<String> =
        value.map(|list| serde_json::from_str(list).expect("a list")).unwrap_or_default();
    let Some((last, added)) = all.split_first_chunk::<6>() else { return all };
    assert_eq!(last[5], "tests/**", "what is built in stays");
    added.to_vec()
}

#[test]
fn the_evaluator_is_proposed_for_protection() {
    let site = Site::new(BINARY);
    let _ = site.call(&["init"]).exits(0);
    assert_eq!(protected(&site), [""; 0], "nothing looks like one");
    for name in ["sweep.py", "backtest.py", "scripts/run_eval.sh", "evaluate.md", "data/a b.csv"] {
        site.repo.write(name, "x\n").expect("a file");
    }
    site.repo.write("eval.py/readme", "a folder\n").expect("a file");
    let said = site.call(&["init", "--force"]).exits(0);
    let _ = said.says(["set: protect", "`sweep.py`"]);
    assert_eq!(protected(&site), ["backtest.py", "scripts/run_eval.sh", "sweep.py"]);
    assert!(read(&site).contains("take out what ideas may change\nprotect = "), "{}", read(&site));
    let _ = site.call(&["config"]).exits(0);

    // Files in a command are found anywhere in the repository, and none outside of it.
    for name in ["lib/judge.py", "lib/pkg/main.py", "lib/pkg/__main__.py", "lib/[odd].py"] {
        site.repo.write(name, "x\n").expect("a file");
    }
    let outside = site.repo.beside("outside.py");
    std::fs::write(&outside, "x\n").expect("a file");
    let check = |command: &str, cwd: &str, expect: &[&str]| {
        let old = format!(r#"{{"sweep_command": {command}, "sweep_cwd": {cwd}}}"#);
        site.repo.write("old.json", &old).expect("a file");
        let _ = site.call(&["init", "--force", "--from", "old.json"]).exits(0);
        let common = ["backtest.py", "scripts/run_eval.sh", "sweep.py"];
        let mut expect: Vec<&str> = [expect, &common].concat();
        expect.sort_unstable();
        assert_eq!(protected(&site), expect, "{command}");
    };
    check(
        r#"["python3", "lib/judge.py", "--data", "data/a b.csv"]"#,
        "null",
        &["data/a b.csv", "lib/judge.py"],
    );
    check(r#""X=1 python3 'lib/judge.py' --out=data; true""#, "null", &["lib/judge.py"]);
    check(r#"["python3", "-m", "pkg.main"]"#, r#""lib""#, &["lib/pkg/main.py"]);
    check(r#""python3 -m pkg ../sweep.py""#, r#""lib""#, &["lib/pkg/__main__.py"]);
    check(
        r#"["python3", "./lib/judge.py", "../outside.py", "/etc/passwd", "lib/[odd].py"]"#,
        "null",
        &["lib/judge.py"],
    );
}

#[test]
fn columns_are_proposed() {
    let site = Site::new(BINARY);
    site.repo.write("results.csv", RESULTS).expect("a file");
    let _ = site.call(&["init", "--results", "results.csv"]).exits(0);
    let text = read(&site);
    for line in [
        "# from `results.csv`\nid_column = \"seed\"\n",
        "# from `results.csv`\nstatus_column = \"state\"\n",
        "# for example \"loss:higher\"\n",
        "# `results.csv` has these columns of numbers; choose: [\"loss\",\"accuracy\"]\n",
        "# `results.csv` has these columns that are constant or whole numbers; choose: [\"window\",\"model\"]\n",
    ] {
        assert!(text.contains(line), "no {line:?} in:\n{text}");
    }
    let _ = site.call(&["config"]).exits(0);
    site.repo.write("results.csv", "a,b\n1,x\n1,y\n").expect("a file");
    let _ = site.call(&["init", "--force", "--results", "results.csv"]).exits(0);
    assert!(read(&site).contains(
        "# `results.csv` has no column that looks like it\n# id_column = \"config_id\"\n"
    ));
}
