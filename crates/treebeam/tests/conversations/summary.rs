//! Summaries of turns that no longer fit: requested when a turn is dropped, with the summary before
//! it, counted, and not requested twice; without an answer, each turn has its line.

use super::{memory, prompts};
use std::fs;
use std::path::PathBuf;
use treebeam_testkit::fault::Fault;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const IDEAS: &str = "for n in a b; do printf 'IDEA: try %s %s\\nRATIONALE: r\\nREQUIRED_CHANGES: c\\n' \"$TREEBEAM_NODE\" $n; done\n";
const CODER: &str =
    "printf -- '--- /dev/null\\n+++ b/g%s.txt\\n@@ -0,0 +1 @@\\n+1\\n' \"$TREEBEAM_EVAL\"\n";
const SWEEP: &str = "n=$(ls g*.txt 2>/dev/null | wc -l)\nprintf 'config_id,status,gain\\n0,ok,%s\\n' \"$((n + 1))\" > \"$AGENTIC_RESULTS_CSV\"\n";

/// Returns a path beside the repository, which no prompt shows.
fn beside(site: &Site, name: &str) -> PathBuf {
    site.repo.path().parent().expect("a folder").join(name)
}

/// Returns the nodes for which the planner was asked for a summary.
fn asked(site: &Site) -> Vec<String> {
    let text = fs::read_to_string(beside(site, "asked.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Creates a repository whose agents are scripts: the planner plans, and answers with this summary.
fn site(answer: &str) -> Site {
    let site = Site::new(super::BINARY);
    let (planner, asked) = (beside(&site, "planner.sh"), beside(&site, "asked.txt"));
    let script = format!(
        "case \"$(cat)\" in 'Sum up'*) echo \"$TREEBEAM_NODE\" >> '{}'; {answer};; *) echo 'PLAN: it';; esac\n",
        asked.display()
    );
    fs::write(&planner, script).expect("a file");
    for (name, text) in [("ideas", IDEAS), ("coder", CODER), ("sweep", SWEEP)] {
        site.repo.write(&format!("{name}.sh"), text).expect("a file");
    }
    site.repo.commit("scripts").expect("a commit");
    let agent = |role: &str, script: &str| {
        format!("[agents.{role}]\nprovider = 'command'\ncommand = ['sh', '{script}']\n")
    };
    let config = format!(
        "sweep_command = ['sh', 'sweep.sh']\nscore.primary = 'gain:higher'\nideas_per_node = 2\nmax_depth = 4\n\
         idea_history_window_turns = 1\n{}{}{}",
        agent("ideas", "ideas.sh"),
        agent("coder", "coder.sh"),
        agent("planner", &planner.display().to_string()),
    );
    site.repo.write("treebeam.toml", &config).expect("a file");
    site
}

const SAYS: &str = "echo \"SUMMED-UP-FOR-$TREEBEAM_NODE\"";
const WORDS: [&str; 6] =
    ["run", "--run-id", SITE_RUN_ID, "--quiet", "--yes", "--summary-agent=planner"];

fn question(site: &Site, node: &str, kind: &str) -> String {
    site.text(&format!("node_ideas/{node}/calls/ideas-n{node}-x1-a1{kind}_prompt.txt"))
}

#[test]
fn what_falls_out_is_summed_up_on_top_of_what_was_summed_up_before() {
    let site = site(SAYS);
    let _ = site.call(&WORDS).exits(0);
    assert_eq!(asked(&site), ["0002", "0003"], "nothing falls out of the others");
    let prompt = question(&site, "0003", "-summary");
    assert!(prompt.contains("SUMMARY SO FAR") && prompt.contains("SUMMED-UP-FOR-0002"), "{prompt}");
    assert!(prompt.contains("TURN c0001-t1") && prompt.contains("IDEA: try 0001 a"), "{prompt}");
    for other in ["c0000-t1", "c0002-t1"] {
        assert!(!prompt.contains(&format!("TURN {other}")), "{prompt}");
    }
    let question = question(&site, "0003", "");
    let told = memory(&question);
    assert!(told.contains("SUMMARY OF EARLIER TURNS\nSUMMED-UP-FOR-0003\n"), "{told}");
    assert!(told.contains("TURN c0002-t1: ") && !told.contains("- c000"), "{told}");
    let node = site.call(&["show", SITE_RUN_ID, "n0003", "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(node["llm_usage"]["roles"]["planner"]["calls"], 1, "{node:#}");
    let shown = site.call(&["show", SITE_RUN_ID, "conv", "3"]).exits(0).stdout;
    assert!(shown.contains("turns up to c0001-t1 summed up node_ideas/0003/calls/"), "{shown}");
    site.must_be_sound();
    // A lost summary is requested anew, from all turns.
    let kept = "node_ideas/0003/calls/ideas-n0003-x1-a1-summary.txt";
    fs::remove_file(site.path(kept)).expect("a summary");
    let _ = site.call(&["resume", SITE_RUN_ID, "--max-depth=5", "--quiet"]).exits(0);
    let prompt = self::question(&site, "0004", "-summary");
    assert!(prompt.contains("TURN c0000-t1") && !prompt.contains("SUMMED-UP"), "{prompt}");
    let shown = site.call(&["show", SITE_RUN_ID, "conv", "4"]).exits(0).stdout;
    assert!(shown.contains(&format!("note: the summary `{kept}` is lost")), "{shown}");
}

#[test]
fn killed_when_it_was_summed_up_nobody_is_asked_twice() {
    let (whole, site) = (site(SAYS), site(SAYS));
    let _ = whole.call(&WORDS).exits(0);
    for plan in ["kill after 1 rename a1-summary.txt", "kill before 1 journal.jsonl ideas_proposed"]
    {
        let said = site.call_with_fault(&Fault::plan(plan), &WORDS);
        assert_eq!(said.code, None, "{plan}: {}", said.stderr);
    }
    let _ = site.call(&WORDS).exits(0);
    assert_eq!(asked(&site), ["0002", "0003"]);
    assert_eq!(prompts(&site), prompts(&whole));
    site.must_be_sound();
}

#[test]
fn where_nobody_sums_up_each_turn_has_its_line() {
    let (failing, without) = (site("exit 1"), site(SAYS));
    let _ = failing.call(&WORDS).exits(0);
    let _ = without.call(&WORDS[..5]).exits(0);
    assert_eq!(asked(&without), Vec::<String>::new());
    for node in ["0002", "0003"] {
        let told = question(&failing, node, "");
        assert_eq!(told, question(&without, node, ""));
        assert!(memory(&told).contains("- c0000-t1: 2 asked for; 2 came: "), "{told}");
        let shown = failing.call(&["show", SITE_RUN_ID, &format!("c{node}")]).exits(0).stdout;
        assert!(shown.contains("note: older turns are told in a line each"), "{shown}");
    }
    failing.must_be_sound();
}

#[test]
fn who_sums_up_must_be_there_and_speak_in_words() {
    let site = site(SAYS);
    let _ = site.call(&["run", "--summary-agent=reviewer"]).exits(2).says([
        "`summary_agent` is `reviewer`, and no agent is set for that role",
        "hint: set `agents.reviewer` in `treebeam.toml`, or say `none`",
    ]);
    let _ = site.call(&["run", "--summary-agent=coder"]).exits(2).says(["not `coder`"]);
}
