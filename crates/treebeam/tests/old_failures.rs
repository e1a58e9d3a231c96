//! Known failures of the runner before this one. Each test has the name of such a failure, and
//! shows its absence.

#![cfg(test)]
#![cfg(unix)]

use serde_json::Value;
use treebeam_testkit::hostile;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

fn searched(flags: &[&str]) -> Site {
    let site = Site::new(BINARY);
    site.run(&[&["--quiet", "--ideas-per-node=5", "--beam-width=2"], flags].concat());
    site
}

fn evals(site: &Site) -> Vec<Value> {
    let manifest = site.manifest();
    let evals = manifest["evaluations"].as_object().expect("evals");
    evals.values().cloned().collect()
}

#[test]
fn resume_loses_depth_0() {
    let whole = searched(&["--max-depth=2"]);
    let site = searched(&["--max-depth=1"]);
    let before = evals(&site);
    site.resume(&["--quiet", "--max-depth=2"]);
    let after = evals(&site);
    assert!(!before.is_empty() && after.len() > before.len());
    for (then, now) in before.iter().zip(&after) {
        for field in ["idea", "candidate_commit", "decision", "parent_relative", "root_relative"] {
            assert_eq!(then[field], now[field], "{field}");
        }
    }
    whole.must_equal(&site);
}

#[test]
fn budget_stop_discards_the_depth() {
    let site = searched(&["--max-depth=3", "--max-total-idea-evals=3"]);
    let status = site.call(&["status", "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(status["stop_reason"], "max_total_idea_evals_reached");
    let evals = evals(&site);
    assert_eq!(evals.len(), 3);
    assert_eq!(status["nodes"], 3, "what finished was judged, and the best of it are nodes");
    let untried = site.text("TREE_SUMMARY.md").contains("untried");
    assert!(untried, "the ideas that were not tried are listed");
}

#[test]
fn rejected_branches_leak() {
    let site = searched(&["--max-depth=2"]);
    let refs = site.refs();
    let nodes = site.manifest()["nodes"].as_object().expect("nodes").len();
    assert_eq!(refs.lines().filter(|line| line.contains("/n")).count(), nodes, "{refs}");
    assert_eq!(refs.lines().filter(|line| line.contains("/e")).count(), 0, "{refs}");
    assert_eq!(site.names("cand"), Vec::<String>::new(), "no worktree of a candidate is left");
}

#[test]
fn unrankable_promoted() {
    let site = searched(&["--max-depth=2"]);
    let unrankable = |eval: &&Value| eval["root_relative"]["primary_delta"].is_null();
    let evals = evals(&site);
    let scored = evals.iter().filter(|eval| !eval["root_relative"].is_null());
    let all: Vec<_> = scored.filter(unrankable).collect();
    assert!(!all.is_empty(), "the dry world has candidates without a primary");
    for eval in all {
        assert_eq!(eval["decision"]["passed_gate"], Value::Bool(false), "{eval}");
        assert_eq!(eval["decision"]["promoted_to_node_id"], Value::Null, "{eval}");
    }
}

#[test]
fn report_differs_on_each_writing() {
    let site = searched(&["--max-depth=2"]);
    let reports =
        || ["TREE_SUMMARY.md", "TREE_GRAPH.md", "results.tsv"].map(|name| site.text(name));
    let first = reports();
    for _ in 0..2 {
        let _ = site.call(&["report", SITE_RUN_ID]).exits(0);
        assert_eq!(reports(), first);
    }
}

/// Creates a site that makes one change; the test provides the sweep.
fn measured_by(sweep: &str, more: &str) -> Site {
    let site = Site::new(BINARY);
    let config = format!(
        "{more}sweep_command = ['python3', 'sweep.py']\n[score]\nprimary = 'a'\n\
         [agents.coder]\nprovider = 'command'\ncommand = ['cat', 'change.diff']\n"
    );
    let change = "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n";
    for (name, text) in [
        ("treebeam.toml", config.as_str()),
        ("change.diff", change),
        ("base.csv", "config_id,status,a\n0,ok,1\n1,ok,2\n"),
        ("sweep.py", sweep),
    ] {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a state").expect("a commit");
    std::fs::write(site.repo.beside("idea.txt"), "Try it\n").expect("an idea");
    site
}

fn tried(site: &Site) -> Value {
    let idea = site.repo.beside("idea.txt").display().to_string();
    let eval = [
        "eval",
        "--quiet",
        "--json",
        "--baseline=base.csv",
        "--run-id",
        SITE_RUN_ID,
        "--idea",
        &idea,
    ];
    site.call(&eval).json_lines().remove(0)
}

/// Columns of settings that the given results lack were found only when candidates were compared,
/// if at all.
#[test]
fn a_metric_that_the_given_results_lack_is_found_late() {
    let site = measured_by("open('ran', 'w')\n", "");
    let config = "sweep_command = ['python3', 'sweep.py']\nbaseline_csv = 'base.csv'\n[score]\n\
                  metrics = [{ column = 'a' }, { column = 'statu' }, { column = 'zzzzzzzz' }]\n";
    let refused = |config: &str, expect: &str| {
        site.repo.write("treebeam.toml", config).expect("a file");
        site.repo.commit("settings").expect("a commit");
        let said = site.call(&["run", "--quiet", "--run-id", SITE_RUN_ID, "--max-depth=1"]);
        assert!(said.code != Some(0) && said.stderr.contains(expect), "{}", said.stderr);
        assert!(!site.path("journal.jsonl").exists(), "nothing has begun");
    };
    refused(config, "`base.csv` has no column `statu`, a metric; nearest: `status`");
    let other = config.replace("{ column = 'statu' }, ", "");
    let columns = "`config_id`, `status`, `a`";
    let lacks = format!("`base.csv` has no column `zzzzzzzz`, a metric; its columns: {columns}");
    refused(&other, &lacks);
    refused(
        "sweep_command = ['true']\nbaseline_csv = 'base.csv'\n",
        &format!("the primary metric; its columns: {columns}"),
    );
}

/// The sweep of the root shows which columns there are: a metric that it lacks is refused before
/// any agent is asked.
#[test]
fn a_metric_that_the_roots_own_results_lack_is_found_before_any_agent_is_asked() {
    let sweep = "import os\nopen(os.environ['AGENTIC_RESULTS_CSV'], 'w').write(\
                 'config_id,status,gain\\n0,ok,1\\n1,ok,2\\n')\n";
    for (score, expect) in [
        ("[score]\nprimary = 'gian'\n", "nearest: `gain`"),
        ("[score]\nprimary = 'zzzzzzzz'\n", "its columns: `config_id`, `status`, `gain`"),
        ("", "the primary metric; its columns: `config_id`, `status`, `gain`"),
    ] {
        let site = measured_by(sweep, "");
        let asked = site.repo.beside("asked").display().to_string();
        let agents: String = ["coder", "ideas"]
            .map(|role| {
                format!("[agents.{role}]\nprovider = 'command'\ncommand = 'touch {asked}'\n")
            })
            .concat();
        let config = format!("sweep_command = ['python3', 'sweep.py']\n{score}{agents}");
        site.repo.write("treebeam.toml", &config).expect("a file");
        let _ = site.call(&["run", "--quiet", "--run-id", SITE_RUN_ID]).exits(4).says([expect]);
        assert!(!site.repo.beside("asked").exists(), "an agent was asked");
    }
}

#[test]
fn minus_infinity_in_the_manifest() {
    let sweep = "import os\nopen(os.environ['AGENTIC_RESULTS_CSV'], 'w').write(\
                 'config_id,status,a\\n0,ok,-inf\\n1,ok,nan\\n')\n";
    let site = measured_by(sweep, "");
    let document = tried(&site);
    assert_eq!(document["evals"].as_array().map(Vec::len), Some(1), "{document}");
    let manifest = site.text("manifest.json");
    let _: Value = serde_json::from_str(&manifest).expect("plain JSON");
    for word in ["Infinity", "NaN", "inf,", "nan,"] {
        assert!(!manifest.contains(word), "{word}");
    }
    let eval = evals(&site).remove(0);
    assert!(eval["root_relative"]["primary_delta"].is_null(), "{eval}");
    assert_eq!(eval["decision"]["passed_gate"], Value::Bool(false), "{eval}");
}

#[test]
#[cfg(target_os = "linux")]
fn timeout_leaves_grandchildren() {
    let word = format!("old-timeout-{}", std::process::id());
    let sweep = format!(
        "import sys\nsys.argv = ['tree', '{word}', 'wait']\n{}",
        hostile::PROCESS_TREE_SCRIPT
    );
    let site = measured_by(&sweep, "eval_timeout_seconds = 3\n");
    let document = tried(&site);
    assert!(document.to_string().contains("timeout"), "{document}");
    assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
}
