//! Promises of a search about its candidates, with real commands: which pass the gate, how often
//! each is tried, and what is kept of them. Agents and sweep are scripts; the idea selects their
//! behaviour.

#![cfg(test)]
#![cfg(unix)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// Agent that proposes the ideas in a file, and implements them.
const AGENT: &str = r#"prompt=$(cat)
if [ "$TREEBEAM_ROLE" = ideas ]; then
    for mode in $(cat MODES); do
        printf 'IDEA: mode %s\nRATIONALE: to see\nREQUIRED_CHANGES: model.txt\n\n' "$mode"
    done
    exit
fi
mode=$(printf '%s\n' "$prompt" | sed -n 's/^IDEA: mode \([a-z]*\)$/\1/p' | head -n 1)
case $mode in
cheat) printf '%s\n' '--- a/judge.txt' '+++ b/judge.txt' '@@ -1 +1 @@' '-fair' '+kind' ;;
idle) printf '%s\n' '--- a/notes.txt' '+++ b/notes.txt' '@@ -1 +1 @@' '-a note' '+another note' ;;
*) printf '%s\n' '--- a/model.txt' '+++ b/model.txt' '@@ -1 +1 @@' '-root' "+$mode" ;;
esac
"#;

/// Sweep that measures `model.txt`. Files beside the repository distinguish a first try from a
/// second.
const SWEEP: &str = r#"mode=$(cat model.txt)
value=10 seed=7
case $mode in
good) value=12 ;;
worse) value=5 ;;
reseed) value=20 seed=8 ;;
fails) echo 'it always does'; exit 3 ;;
flaky) value=11; mkdir "$1/tried" 2> /dev/null && exit 4 ;;
late) value=20; echo kind > judge.txt ;;
esac
{
    echo config_id,status,a,seed
    for id in 0 1 2; do echo "$id,ok,$((value + id)),$seed"; done
} > "$AGENTIC_RESULTS_CSV"
"#;

/// Creates a repository in which ideas of these modes would be tried.
fn site(modes: &str) -> Site {
    let site = Site::new(BINARY);
    let beside = site.repo.beside("");
    let config = format!(
        "sweep_command = ['sh', 'sweep.sh', '{}']\nprotect = ['judge.txt', '*.sh']\n\
         [score]\nprimary = 'a:higher'\ninvariant_columns = ['seed']\n\
         metrics = [{{ column = 'a', direction = 'higher', weight = 1.0 }}]\n\
         [agents.ideas]\nprovider = 'command'\ncommand = ['sh', 'agent.sh']\n\
         [agents.coder]\nprovider = 'command'\ncommand = ['sh', 'agent.sh']\n",
        beside.display()
    );
    for (name, text) in [
        ("treebeam.toml", config.as_str()),
        ("agent.sh", AGENT),
        ("sweep.sh", SWEEP),
        ("MODES", modes),
        ("model.txt", "root\n"),
        ("judge.txt", "fair\n"),
        ("notes.txt", "a note\n"),
    ] {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a state").expect("a commit");
    site
}

/// Makes a run of one depth in which ideas of these modes are tried, all at once.
fn run(modes: &str, flags: &[&str]) -> Site {
    let site = site(modes);
    let count = modes.split(' ').count().to_string();
    let extent = ["--ideas-per-node", &count, "--max-depth=1", "--max-parallel-evals=4"];
    let start = ["run", "--quiet", "--run-id", SITE_RUN_ID];
    let _ = site.call(&[&start[..], &extent, flags].concat()).exits(0);
    site.must_be_sound();
    site
}

/// Returns the eval of a mode, and its id.
fn eval(site: &Site, mode: &str) -> (String, Value) {
    let manifest = site.manifest();
    let evals = manifest["evaluations"].as_object().expect("evals");
    let is_it = |eval: &Value| {
        let id = eval["idea_id"].as_str().expect("an idea");
        id.ends_with(&format!("mode_{mode}"))
    };
    let found = evals.iter().find(|(_, eval)| is_it(eval));
    let (id, eval) = found.unwrap_or_else(|| panic!("no eval of {mode}"));
    (id.clone(), eval.clone())
}

/// Returns the last attempt of an eval, and the reason of its end.
fn fate(site: &Site, mode: &str) -> (u64, String) {
    let (_, eval) = eval(site, mode);
    let reason = eval["decision"]["promotion_reason"].as_str().expect("a reason");
    let reason = reason.split(':').next().expect("a word");
    let failed = eval["error"]["kind"].as_str();
    (eval["attempt"].as_u64().expect("a number"), failed.unwrap_or(reason).to_owned())
}

fn is_swept(site: &Site, mode: &str) -> bool {
    let id = eval(site, mode).0;
    site.path(&format!("eval/{id}/experiment/sweep.log")).exists()
}

#[test]
fn each_candidate_ends_as_it_must() {
    let site = run("good worse idle reseed cheat late fails flaky", &["--eval-retries=1"]);
    for (mode, attempt, fate_is) in [
        ("good", 1, "passed"),
        ("worse", 1, "not_promising"),
        ("idle", 1, "no_effect"),
        ("reseed", 1, "malformed"),
        ("late", 1, "protected"),
        ("fails", 2, "sweep"),
        ("flaky", 2, "passed"),
    ] {
        assert_eq!(fate(&site, mode), (attempt, fate_is.to_owned()), "{mode}");
    }
    assert!(!is_swept(&site, "cheat"), "what touches the judge is never measured");
    let fails = eval(&site, "fails").0;
    let told = site.text(&format!("eval/{fails}/experiment/attempt_2/coder_prompt_round_0.txt"));
    let failure = "failed at sweep: sweep\nthe sweep exited 3:\nit always does\n";
    assert!(told.contains(failure) && told.contains("+fails\n"), "{told}");
    let cheat = eval(&site, "cheat").0;
    let told = site.text(&format!("eval/{cheat}/experiment/coder_prompt_round_1.txt"));
    assert!(told.contains("`judge.txt` is protected"), "{told}");
    let nodes = site.manifest()["nodes"].as_object().expect("nodes").len();
    assert_eq!((nodes, site.names("cand")), (2, Vec::new()), "the best is a node, nothing is left");
}

/// Returns the evals that still have a worktree, a ref, or the raw output of their sweep.
fn kept(site: &Site) -> [BTreeSet<String>; 3] {
    let refs = site.refs();
    let of_candidate = |line: &str| line.rsplit_once("/e").map(|(_, id)| id.to_owned());
    let has_output = |id: &String| site.path(&format!("eval/{id}/s1")).exists();
    [
        site.names("cand").into_iter().collect(),
        refs.lines().filter_map(of_candidate).collect(),
        site.names("eval").into_iter().filter(has_output).filter(|id| id != "root").collect(),
    ]
}

#[test]
fn each_flag_keeps_what_it_says_and_nothing_else() {
    let ids = |site: &Site, modes: &[&str]| -> BTreeSet<String> {
        modes.iter().map(|mode| eval(site, mode).0).collect()
    };
    for (flag, candidates, output) in [
        ("--keep-rejected-worktrees=false", &[][..], &["good", "worse"][..]),
        ("--keep-rejected-worktrees", &["worse"], &["good", "worse"]),
        ("--keep-failed-artifacts", &["fails"], &["good", "worse", "fails"]),
    ] {
        let site = run("good worse fails", &[flag]);
        let candidates = ids(&site, candidates);
        let expect = [candidates.clone(), candidates, ids(&site, output)];
        assert_eq!(kept(&site), expect, "{flag}");
    }
}

#[test]
fn what_failed_where_nothing_was_promoted_can_be_tried_again() {
    let site = run("flaky worse", &[]);
    assert_eq!(fate(&site, "flaky"), (1, "sweep".to_owned()));
    let hint = format!("resume {SITE_RUN_ID} --retry-failed` tries again what failed at depth 0\n");
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet"]).exits(0).says([hint.as_str()]);
    let again = ["resume", SITE_RUN_ID, "--quiet", "--retry-failed"];
    let _ = site.call(&again).exits(0).says([
        "note: depth 0 is open again: nothing was promoted from it\n",
        "note: `--retry-failed`: implemented again: e0001\n",
        "best node: n0001\n",
    ]);
    site.must_be_sound();
    assert_eq!(fate(&site, "flaky"), (2, "passed".to_owned()));
    assert_eq!(fate(&site, "worse"), (1, "not_promising".to_owned()));
    let log = site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    assert!(log.contains("depth 0 is open again; failed evals tried again: e0001"), "{log}");
    let _ = site.call(&again).exits(0).says(["depth 0 is closed, and closed depths stand\n"]);
    let _ =
        site.call(&["run", "--replay", SITE_RUN_ID]).exits(1).says(["work of it was done again"]);
}

/// If no sweep succeeds, that is hardly the fault of all candidates: the coder is not asked for
/// others.
#[test]
fn candidates_are_swept_again_as_they_are_where_nothing_was_measured() {
    let site = site("flaky fails");
    let start = ["run", "--quiet", "--run-id", SITE_RUN_ID, "--ideas-per-node=2", "--max-depth=1"];
    let _ = site.call(&start).exits(1);
    let failed = eval(&site, "flaky").1;
    let again = ["resume", SITE_RUN_ID, "--quiet", "--retry-failed"];
    let _ = site.call(&again).exits(0).says([
        "note: `--retry-failed`: swept again as committed: e0001, e0002\n",
        "best node: n0001\n",
    ]);
    site.must_be_sound();
    assert_eq!(fate(&site, "flaky"), (2, "passed".to_owned()));
    assert_eq!(fate(&site, "fails"), (2, "sweep".to_owned()));
    let (id, eval) = eval(&site, "flaky");
    assert_eq!(eval["candidate_commit"], failed["candidate_commit"], "swept again as it was");
    assert_eq!(eval["made_in_attempt"], 1);
    let shown = site.call(&["show", SITE_RUN_ID, &format!("e{id}")]).exits(0).stdout;
    assert!(shown.contains("attempt 2, which measures the candidate of attempt 1"), "{shown}");
    let second = site.path(&format!("eval/{id}/experiment/attempt_2"));
    assert!(second.join("sweep.log").exists() && !second.join("coder_prompt_round_0.txt").exists());
    let summary: Value =
        serde_json::from_str(&site.text(&format!("eval/{id}/experiment/summary.json")))
            .expect("a page");
    assert_eq!(summary["candidate_commit"], eval["candidate_commit"], "{summary}");
    assert_eq!((&summary["coder_rounds"], &summary["attempt"]), (&1.into(), &2.into()));
    let log = site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    assert!(log.contains("tried again: e0001, e0002; of these swept as committed: e0001, e0002"));
}

#[test]
fn given_ideas_that_failed_can_be_tried_again() {
    let site = site("none");
    let idea =
        |mode| format!("IDEA: mode {mode}\nRATIONALE: to see\nREQUIRED_CHANGES: model.txt\n");
    let file = site.repo.beside("ideas.md");
    fs::write(&file, ["flaky", "good"].map(idea).join("\n")).expect("ideas");
    let file = file.display().to_string();
    let asked = ["eval", "--run-id", SITE_RUN_ID, "--quiet", "--idea", &file];
    let hint = format!("resume {SITE_RUN_ID} --retry-failed` tries again what failed at depth 0\n");
    let _ = site.call(&asked).exits(0).says([hint.as_str()]);
    let good = eval(&site, "good").1;
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet", "--retry-failed"]).exits(0);
    site.must_be_sound();
    assert_eq!(fate(&site, "flaky"), (2, "passed".to_owned()));
    assert_eq!(eval(&site, "good").1, good, "what was judged stays judged");
}

#[test]
fn a_run_whose_branches_were_removed_says_how_to_go_on_from_them() {
    let site = run("good", &[]);
    let _ = site.call(&["clean", SITE_RUN_ID, "--refs", "--yes"]).exits(0);
    let deeper = ["resume", SITE_RUN_ID, "--quiet", "--max-depth=2"];
    let said =
        site.call(&deeper).exits(4).says(["/n0001` is gone, and the run goes on from n0001"]);
    let (_, hint) = said.stderr.split_once("hint: `git ").expect("a hint");
    let (command, _) = hint.split_once('`').expect("a command");
    let words: Vec<&str> = command.split(' ').collect();
    let _ = site.repo.git_in(site.repo.path(), &words).expect("a branch");
    let _ = site.call(&deeper).exits(0);
}
