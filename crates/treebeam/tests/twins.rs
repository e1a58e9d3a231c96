//! Two ideas that lead to the same files in another order, by the real program: one sweep, one
//! place, and a message.

#![cfg(test)]
#![cfg(unix)]

use serde_json::json;
use std::fs;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// Agent that proposes each missing part, and adds the one that the idea names.
const AGENT: &str = r#"prompt=$(cat)
if [ "$TREEBEAM_ROLE" = ideas ]; then
    for part in a b; do
        [ -e "$part" ] || printf 'IDEA: part %s on %s\nRATIONALE: to see\nREQUIRED_CHANGES: %s\n\n' \
            "$part" "$TREEBEAM_NODE" "$part"
    done
    exit
fi
part=$(printf '%s\n' "$prompt" | sed -n 's/^IDEA: part \([ab]\) on .*$/\1/p' | head -n 1)
printf '%s\n' "diff --git a/$part b/$part" 'new file mode 100644' '--- /dev/null' "+++ b/$part" \
    '@@ -0,0 +1 @@' '+here'
"#;

/// Sweep in which each part improves the score, and which logs its calls beside the repository.
const SWEEP: &str = r#"echo "$TREEBEAM_EVAL" >> "$1/swept"
value=10
[ -e a ] && value=$((value + 2))
[ -e b ] && value=$((value + 1))
{
    echo config_id,status,a
    for id in 0 1 2; do echo "$id,ok,$((value + id))"; done
} > "$AGENTIC_RESULTS_CSV"
"#;

fn site() -> Site {
    let site = Site::new(BINARY);
    let config = format!(
        "sweep_command = ['sh', 'sweep.sh', '{}']\n[score]\nprimary = 'a:higher'\n\
         metrics = [{{ column = 'a', direction = 'higher', weight = 1.0 }}]\n\
         [agents.ideas]\nprovider = 'command'\ncommand = ['sh', 'agent.sh']\n\
         [agents.coder]\nprovider = 'command'\ncommand = ['sh', 'agent.sh']\n",
        site.repo.beside("").display()
    );
    for (name, text) in
        [("treebeam.toml", config.as_str()), ("agent.sh", AGENT), ("sweep.sh", SWEEP)]
    {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a state").expect("a commit");
    site
}

#[test]
fn a_then_b_and_b_then_a_are_swept_once_and_have_one_place() {
    let site = site();
    let extent = ["--ideas-per-node=2", "--beam-width=2", "--max-depth=2"];
    let start = ["run", "--quiet", "--run-id", SITE_RUN_ID, "--max-parallel-evals=1"];
    let _ = site.call(&[&start[..], &extent].concat()).exits(0);
    site.must_be_sound();
    let swept = fs::read_to_string(site.repo.beside("swept")).expect("a list");
    assert_eq!(swept, "\n0001\n0002\n0003\n", "the root, and each code once");
    let manifest = site.manifest();
    let (first, twin) = (&manifest["evaluations"]["0003"], &manifest["evaluations"]["0004"]);
    assert_eq!(twin["same_code_as"], json!({"eval": "0003"}), "{twin}");
    assert_eq!(first["candidate_tree"], twin["candidate_tree"]);
    assert_eq!(first["candidate_results_csv_path"], twin["candidate_results_csv_path"]);
    assert_eq!(twin["decision"]["passed_gate"], json!(true), "{twin}");
    let nodes = manifest["nodes"].as_object().expect("nodes").len();
    assert_eq!(nodes, 4, "the root, two, and one of the two that are the same");
    let words = "same code as e0003";
    for call in [&["show", SITE_RUN_ID, "e0004"][..], &["log", SITE_RUN_ID]] {
        let said = site.call(call).exits(0).stdout;
        assert!(said.contains(words), "{said}");
    }
    let shown =
        site.call(&["show", SITE_RUN_ID, "e0004", "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(shown["same_code_as"], json!("e0003"), "{shown}");
    for report in ["TREE_SUMMARY.md", "results.tsv", "report.html"] {
        assert!(site.text(report).contains(words), "{report}");
    }
}
