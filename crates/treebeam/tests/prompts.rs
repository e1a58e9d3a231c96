//! Prompt files with the real program: they are written, used, recorded, and checked before any
//! agent is called.

#![cfg(test)]

use std::fs;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const ROLES: [&str; 5] = ["coordinator", "planner", "coder", "reviewer", "ideas"];

fn read(site: &Site, file: &str) -> String {
    fs::read_to_string(site.repo.path().join(file))
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn prompt(role: &str) -> String {
    format!("treebeam-prompts/{role}.md")
}

#[test]
fn the_built_in_prompts_are_written_out_and_load() {
    let site = Site::new(BINARY);
    let said = site.call(&["init", "--prompts"]).exits(0);
    let said = said.says([
        "wrote `treebeam.toml`",
        "set: prompts.coder",
        "wrote `treebeam-prompts/ideas.md`",
    ]);
    drop(said);
    let text = read(&site, "treebeam.toml");
    for role in ROLES {
        assert!(text.contains(&format!("\n{role} = \"{}\"\n", prompt(role))), "{text}");
        assert!(read(&site, &prompt(role)).contains("{{answer}}"), "{role}");
    }
    // The prompt files belong to the user from now on, and neither they nor the configuration make
    // the working tree dirty.
    let _ = site.call(&["config"]).exits(0);
    let args = ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--ideas-per-node=1", "--max-depth=1"];
    let _ = site.call(&args).exits(0);
    site.repo.write("treebeam-prompts/other.md", "x").expect("a file");
    let _ = site.call(&["run", "--dry-run"]).exits(4).says(["treebeam-prompts/"]);
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let site = Site::new(BINARY);
    site.repo.write("treebeam.toml", "max_depth = 2\n").expect("a file");
    site.repo.write(&prompt("coder"), "mine").expect("a file");
    let _ = site.call(&["init", "--prompts"]).exits(0).says([
        "kept `treebeam-prompts/coder.md`, which was there",
        "wrote `treebeam-prompts/planner.md`",
        "`treebeam.toml` is as it was; to use these prompts it needs:",
        "[prompts]\n",
        "reviewer = \"treebeam-prompts/reviewer.md\"",
    ]);
    assert_eq!(read(&site, "treebeam.toml"), "max_depth = 2\n");
    let said = site.call(&["init", "--prompts", "--force", "--json"]).exits(0);
    let document = &said.json_lines()[0];
    assert_eq!(document["file"], "treebeam.toml");
    assert_eq!(document["prompts"].as_array().map(Vec::len), Some(5));
    assert!(
        document["prompts"].as_array().expect("a list").iter().all(|file| file["written"] == false)
    );
    assert_eq!(read(&site, &prompt("coder")), "mine");
    let again = site.call(&["init", "--prompts", "--json"]).exits(0);
    assert!(again.json_lines()[0]["file"].is_null());
}

#[test]
fn a_wrong_placeholder_is_found_before_anything_is_asked() {
    let site = Site::new(BINARY);
    let _ = site.call(&["init", "--prompts"]).exits(0);
    let good = read(&site, &prompt("coder"));
    let line = 1 + good.lines().position(|line| line == "{{plan}}").expect("a plan");
    site.repo.write(&prompt("coder"), &good.replace("{{plan}}", "{{plann}}")).expect("a file");
    let says = [
        "error: `treebeam.toml`, line ",
        &format!(
            "`prompts.coder`: `treebeam-prompts/coder.md`, line {line}: there is no placeholder `{{{{plann}}}}`; nearest: `{{{{plan}}}}`"
        ),
    ];
    for command in [&["config"][..], &["run", "--dry-run"], &["run"], &["resume"]] {
        let _ = site.call(command).exits(2).says(says);
    }
    assert!(!site.repo.path().join(".treebeam/runs").exists(), "no run was begun");
    let doctor = site.call(&["doctor"]).exits(4);
    assert!(doctor.stdout.contains("there is no placeholder `{{plann}}`"), "{}", doctor.stdout);
    // Commands that only read a run still work.
    let _ = site.call(&["list"]).exits(0);
}

/// A coder that keeps its prompt, and answers with a diff.
#[cfg(unix)]
const CODER: &str = "cat > \"$TREEBEAM_WORKTREE/../../heard-$TREEBEAM_ROUND\"; echo new > new.txt; printf '%s\\n' 'diff --git a/new.txt b/new.txt' 'new file mode 100644' '--- /dev/null' '+++ b/new.txt' '@@ -0,0 +1 @@' '+new'";
#[cfg(unix)]
const SWEEP: &str = "printf 'config_id,status,loss\\n0,ok,1\\n' > $AGENTIC_RESULTS_CSV";

/// In the real world: the user's template is in the agent's prompt, with the repository, and is on
/// record.
#[cfg(unix)]
#[test]
fn a_real_agent_hears_the_users_template() {
    let site = Site::new(BINARY);
    site.repo.write("model.py", "WINDOW = 10\n").expect("a file");
    site.repo.commit("a model").expect("a commit");
    let template =
        "My own words.\n{{answer}}\n{{idea}}\n{{repo}}\n{{change_so_far}}\n{{problem}}\n";
    site.repo.write("my prompts/coder.md", template).expect("a file");
    let config = |extra: &str, edits: &str| {
        let text = format!(
            "sweep_command = {SWEEP:?}\nprompts.coder = 'my prompts/coder.md'\nscore.primary = 'loss:lower'\n{extra}\n\
             [agents.coder]\nprovider = 'command'\ncommand = ['/bin/sh', '-c', {CODER:?}]\n{edits}\n"
        );
        site.repo.write("treebeam.toml", &text).expect("a file");
    };
    config("", "");
    let idea = site.repo.beside("idea.md");
    fs::write(&idea, "IDEA: Widen WINDOW of model.py\n").expect("an idea");
    let idea = idea.to_str().expect("UTF-8");
    let _ = site.call(&["eval", "--idea", idea, "--run-id", SITE_RUN_ID]).exits(0);
    let run = site.repo.path().join(".treebeam/runs").join(SITE_RUN_ID);
    let heard = fs::read_to_string(run.join("heard-0")).expect("a prompt");
    assert!(heard.starts_with("My own words.\nAnswer with one unified diff"), "{heard}");
    assert!(heard.contains("=== FILE model.py ===\n```\nWINDOW = 10\n```\n"), "{heard}");
    let kept = run.join("eval/0001/experiment/coder_prompt_round_0.txt");
    assert_eq!(fs::read_to_string(kept).expect("a prompt"), heard);
    let journal = fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
    let first = journal.lines().next().expect("an event");
    assert!(first.contains("\"prompt\":\"my prompts/coder.md sha256 "), "{first}");
    assert!(first.contains("\"context\":\"outline, at most 60000 characters\""), "{first}");

    // An agent that edits is instructed so by the same template.
    config("context.coder = 'none'", "edits = 'in_place'");
    let _ = site.call(&["eval", "--idea", idea, "--run-id", "second"]).exits(0);
    let heard = run.with_file_name("second").join("heard-0");
    let heard = fs::read_to_string(heard).expect("a prompt");
    assert!(heard.starts_with("My own words.\nEdit the files in this folder yourself"), "{heard}");
    assert!(!heard.contains("=== FILE"), "{heard}");
}
