//! Resume with an uncommitted configuration: a candidate can write such a file, and its commands
//! would run with the user's rights. Agents and sweep are scripts; the run is one idea on one node.

#![cfg(test)]
#![cfg(unix)]

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

const AGENT: &str = r#"cat > prompt.txt.tmp; rm prompt.txt.tmp
if [ "$TREEBEAM_ROLE" = ideas ]; then
    printf 'IDEA: more than %s\nRATIONALE: to see\nREQUIRED_CHANGES: model.txt\n' "$(cat model.txt)"
    exit
fi
value=$(cat model.txt)
printf '%s\n' '--- a/model.txt' '+++ b/model.txt' '@@ -1 +1 @@' "-$value" "+$((value + 1))"
"#;

const SWEEP: &str =
    r#"printf 'config_id,status,a\n0,ok,%s\n' "$(cat model.txt)" > "$AGENTIC_RESULTS_CSV""#;

const CONFIG: &str = "sweep_command = ['sh', 'sweep.sh']\nprotect = ['*.sh']\n\
    [score]\nprimary = 'a:higher'\nmetrics = [{ column = 'a', direction = 'higher', weight = 1.0 }]\n";

fn agents(coder: &str) -> String {
    format!(
        "[agents.ideas]\nprovider = 'command'\ncommand = ['sh', 'agent.sh']\n\
         [agents.coder]\nprovider = 'command'\n{coder}\n"
    )
}

const CODER: &str = "command = ['sh', 'agent.sh']";
/// Returns a command as an attacking candidate might configure it.
fn evil_command(site: &Site) -> String {
    format!("command = ['sh', '-c', 'touch {}; exec sh agent.sh']", evil(site).display())
}

/// A run of one depth, whose configuration is not committed.
fn site() -> Site {
    let site = Site::new(BINARY);
    for (name, text) in [("agent.sh", AGENT), ("sweep.sh", SWEEP), ("model.txt", "1\n")] {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a state").expect("a commit");
    configure(&site, &agents(CODER));
    let start = ["run", "--quiet", "--run-id", SITE_RUN_ID, "--ideas-per-node=1", "--max-depth=1"];
    let _ = site.call(&start).exits(0);
    site
}

fn configure(site: &Site, agents: &str) {
    site.repo.write("treebeam.toml", &format!("{CONFIG}{agents}")).expect("a file");
}

fn deeper(site: &Site, more: &[&str]) -> Said {
    site.call(
        &[&["resume", SITE_RUN_ID, "--quiet", "--ideas-per-node=1", "--max-depth=2"], more]
            .concat(),
    )
}

/// Returns the file that the evil command leaves behind, beside the repository.
fn evil(site: &Site) -> PathBuf {
    site.repo.beside("evil")
}

#[test]
fn a_resume_does_not_run_a_command_that_an_uncommitted_file_has_changed() {
    let site = site();
    let journal = site.text("journal.jsonl");
    configure(&site, &agents(&evil_command(&site)));
    let told = format!(
        "`agents.coder.command`: sh agent.sh → sh -c touch {}; exec",
        evil(&site).display()
    );
    let hint = "hint: commit the file or set these keys back; `--accept-config` goes on";
    for words in [&["resume", SITE_RUN_ID, "--max-depth=2"][..], &["run", "--run-id", SITE_RUN_ID]]
    {
        let said = site.call(&[words, &["--ideas-per-node=1"]].concat()).exits(2);
        let what = "error: `treebeam.toml` is not committed as it is, and names other programs";
        let _ = said.says([what, &told, hint]);
    }
    assert_eq!(site.text("journal.jsonl"), journal);
    assert!(!evil(&site).exists());
    // All naming keys are listed at once, without numbers and switches.
    let other = "edits = 'diff'\ntimeout_sec = 9\napi_key_env = 'PATH'\ncommand = ['./x']";
    configure(&site, &agents(other));
    let said = deeper(&site, &[]).exits(2);
    let said = said.says(["`agents.coder.command`: sh agent.sh → ./x"]);
    let said = said.says(["`agents.coder.api_key_env`: none → PATH", hint]);
    assert!(!said.stderr.contains("timeout_sec"), "{}", said.stderr);
    // The user accepts it.
    configure(&site, &agents(&evil_command(&site)));
    let said = deeper(&site, &["--accept-config"]).exits(0);
    let _ = said.says(["is not committed as it is, and this run takes from it", &told]);
    assert!(evil(&site).exists());
    // The accepted value is on record now.
    let _ = site.call(&["resume", SITE_RUN_ID, "--ideas-per-node=1"]).exits(0);
}

/// A baseline calls no agent, but its configuration may name agents, and is rarely committed.
#[test]
fn a_baseline_that_did_not_end_goes_on_with_the_configuration_that_it_began_with() {
    let site = Site::new(BINARY);
    let flag = site.repo.beside("prices");
    let sweep = format!("cat '{}' && {SWEEP}", flag.display());
    for (name, text) in [("agent.sh", AGENT), ("sweep.sh", &sweep), ("model.txt", "1\n")] {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a state").expect("a commit");
    configure(&site, &agents(CODER));
    let baseline = ["baseline", "--quiet", "--run-id", SITE_RUN_ID];
    let _ = site.call(&baseline).exits(4).says(["No such file"]);
    fs::write(&flag, "1\n").expect("a file");
    let said = site.call(&["resume", SITE_RUN_ID]).exits(0);
    assert!(!said.stderr.contains("agents.coder"), "{}", said.stderr);
}

#[test]
fn what_is_committed_outside_of_the_repository_or_said_by_the_user_is_taken() {
    let site = site();
    configure(&site, &agents("command = ['sh', 'agent.sh']\ntimeout_sec = 9"));
    let _ = site.call(&["resume", SITE_RUN_ID, "--ideas-per-node=1"]).exits(0);
    let other = |site: &Site, number: u32| {
        configure(site, &agents(&format!("command = ['sh', 'agent.sh', '{number}']")));
    };
    // A variable takes precedence over the file.
    other(&site, 1);
    let variable: OsString = "{ provider = 'command', command = ['sh', 'agent.sh', '2'] }".into();
    let variables = site.repo.variables().into_iter();
    let variables = variables.chain([("TREEBEAM_AGENTS_CODER".into(), variable)]).collect();
    let resume = ["resume", SITE_RUN_ID, "--ideas-per-node=1"];
    let _ = site.call_with(site.repo.path(), variables, &resume).exits(0);
    // A file outside of the repository is trusted.
    let outside = site.repo.beside("mine.toml");
    fs::rename(site.repo.path().join("treebeam.toml"), &outside).expect("a file");
    let named = format!("--config={}", outside.display());
    let _ = site.call(&[&resume[..], &[&named]].concat()).exits(0);
    // A link to it from inside is not: its target may change.
    other(&site, 3);
    fs::rename(site.repo.path().join("treebeam.toml"), &outside).expect("a file");
    std::os::unix::fs::symlink(&outside, site.repo.path().join("treebeam.toml")).expect("a link");
    let _ = site.call(&resume).exits(2).says(["`agents.coder.command`"]);
    fs::remove_file(site.repo.path().join("treebeam.toml")).expect("to remove it");
    // Committed as it is, and then changed once more.
    other(&site, 4);
    site.repo.commit("my configuration").expect("a commit");
    let _ = site.call(&resume).exits(0);
    other(&site, 5);
    let _ = site.call(&resume).exits(2).says(["sh agent.sh 4 → sh agent.sh 5"]);
}

#[test]
fn prompts_listed_files_and_the_folder_of_runs_are_asked_for_too() {
    let site = site();
    for name in ["a.md", "b.md"] {
        site.repo.write(name, "{{IDEA_COUNT}} ideas\n").expect("a file");
    }
    site.repo
        .write(
            "treebeam.toml",
            &format!("ideas_context_files = ['a.md']\n{CONFIG}{}", agents(CODER)),
        )
        .expect("a file");
    let resume = ["resume", SITE_RUN_ID, "--ideas-per-node=1"];
    let _ = site.call(&resume).exits(2).says(["`ideas_context_files`: none → a.md"]);
    let _ = site.call(&[&resume[..], &["--ideas-context-files=a.md"]].concat()).exits(0);
    site.repo.write("a.md", "other words\n").expect("a file");
    let _ = site.call(&resume).exits(0);
    configure(&site, &agents(CODER));
    // A folder of runs where treebeam never ran for this user.
    fs::create_dir(site.repo.path().join("elsewhere")).expect("a folder");
    fs::rename(site.path(""), site.repo.path().join("elsewhere").join(SITE_RUN_ID)).expect("a run");
    let elsewhere = format!("runs_root = 'elsewhere'\n{CONFIG}{}", agents(CODER));
    site.repo.write("treebeam.toml", &elsewhere).expect("a file");
    let _ = site.call(&resume).exits(2).says(["`runs_root`: never used before → "]);
    let _ = site.call(&[&resume[..], &["--accept-config"]].concat()).exits(0);
    let _ = site.call(&resume).exits(0);
}
