//! Tests the keys of prompts and context, and the messages for wrong ones. No agent is called.

use super::*;
use crate::config::config_file::{ConfigError, ConfigFile};
use std::fs;

const NEEDED: &str = "{{answer}}\n{{idea}}\n{{change_so_far}}\n{{problem}}\n";

fn config(text: &str) -> Result<Config, ConfigError> {
    Config::from_sources(Some(ConfigFile::new("c.toml", || Ok(text.to_owned()))?), [])
}

fn check(top: &Path, text: &str, expect: &str) {
    let told = config(text).and_then(|config| Ok(config.load_prompts(top)?));
    let said = told.map_or_else(|error| error.to_string(), |_| "good".to_owned());
    assert_eq!(said, expect, "{text}");
}

#[test]
fn what_is_wrong_is_said_with_both_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let top = folder.path();
    fs::create_dir(top.join("p")).expect("a folder");
    fs::write(top.join("p/good.md"), NEEDED).expect("a file");
    fs::write(top.join("p/bad.md"), format!("\n\nDo {{{{ida}}}}\n{NEEDED}")).expect("a file");
    fs::write(top.join("p/odd.md"), b"a\n\xff").expect("a file");
    fs::write(top.join("p/long.md"), "x".repeat(MAX_TEMPLATE_BYTES + 1)).expect("a file");
    let check = |text: &str, expect: &str| check(top, text, expect);
    check("", "good");
    check("[prompts]\ncoder = 'p/good.md'", "good");
    check("[prompts]\ncoder = 'none'", "good");
    check(
        "\n[prompts]\ncoder = 'p/bad.md'",
        "`c.toml`, line 3: `prompts.coder`: `p/bad.md`, line 3: there is no placeholder `{{ida}}`; nearest: `{{idea}}`",
    );
    check(
        "prompts.ideas = 'p/good.md'",
        "`c.toml`, line 1: `prompts.ideas`: `p/good.md`, line 2: `{{idea}}` is for `coordinator`, `planner`, `coder`, `reviewer`, not for `ideas`",
    );
    check(
        "prompts.coder = 'no.md'",
        "`c.toml`, line 1: `prompts.coder`: there is no file `no.md`; its path begins at the root of the repository",
    );
    check("prompts.coder = 'p'", "`c.toml`, line 1: `prompts.coder`: `p` is a folder, not a file");
    check(
        "prompts.coder = 'p/odd.md'",
        "`c.toml`, line 1: `prompts.coder`: `p/odd.md`, line 2: not UTF-8",
    );
    check(
        "prompts.coder = 'p/long.md'",
        "`c.toml`, line 1: `prompts.coder`: `p/long.md` is longer than 65536 bytes",
    );
    check(
        "prompts.coder = ' '",
        "`c.toml`, line 1: `prompts.coder`: \" \" is not the path of a file",
    );
    check(
        "prompts.codr = 'x'",
        "`c.toml`, line 1: `prompts.codr`: there is no such key; nearest: `coder`",
    );
    check("context.coder = ['src/**']", "good");
    check("context.coder = []", "good");
    let must = "it must be \"auto\", \"outline\", \"none\" or a list of globs";
    check(
        "context.coder = 'all'",
        &format!("`c.toml`, line 1: `context.coder`: {must}, not \"all\""),
    );
    check("context.coder = 3", &format!("`c.toml`, line 1: `context.coder`: {must}"));
    check(
        "context.coder = ['a[']",
        "`c.toml`, line 1: `context.coder`: \"a[\" is not a glob, such as `src/**/*.py`",
    );
    check(
        "context_max_chars = 0",
        "`c.toml`, line 1: `context_max_chars`: it must be a whole number from 1 to 2000000, not 0",
    );
    let tuner = "agents.coder = { provider = 'tuner' }";
    let only = "the `tuner` reads its built-in prompt and the worktree, and nothing else";
    check(
        &format!("{tuner}\nprompts.coder = 'p/good.md'"),
        &format!("`c.toml`, line 2: `prompts.coder`: {only}"),
    );
    check(
        &format!("{tuner}\ncontext.coder = 'outline'"),
        &format!("`c.toml`, line 2: `context.coder`: {only}"),
    );
    check(&format!("{tuner}\ncontext.coder = 'none'"), "good");
}

#[test]
fn what_is_shown_suits_the_agent() {
    let shown = |text: &str| {
        let told =
            config(text).expect("a configuration").load_prompts(Path::new(".")).expect("prompts");
        format!("{:?}", told.prompts.for_role(AgentRole::Coder).context)
            .split('(')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(shown(""), "Nothing");
    assert_eq!(shown("agents.coder = { provider = 'ollama', model = 'm' }"), "Outline");
    assert_eq!(shown("agents.coder = { provider = 'command', command = 'x' }"), "Outline");
    assert_eq!(shown("agents.coder = { provider = 'claude' }"), "Nothing");
    assert_eq!(shown("agents.coder = { provider = 'tuner' }"), "Nothing");
    let claude = "agents.coder = { provider = 'claude' }\ncontext.coder =";
    assert_eq!(shown(&format!("{claude} 'auto'")), "Nothing");
    assert_eq!(shown(&format!("{claude} 'outline'")), "Outline");
    assert_eq!(shown(&format!("{claude} ['a']")), "Files");
    assert_eq!(
        shown("agents.coder = { provider = 'ollama', model = 'm' }\ncontext.coder = 'none'"),
        "Nothing"
    );
}

#[test]
fn what_agents_are_told_is_recorded_with_them() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("coder.md"), NEEDED).expect("a file");
    let text = "context_max_chars = 9\nprompts.coder = 'coder.md'\ncontext.coder = ['a', 'b/**']\ncontext.ideas = 'outline'";
    let told = config(text).expect("a configuration").load_prompts(folder.path()).expect("prompts");
    let mut agents = RecordedAgents::default();
    agents.0.insert("coder".to_owned(), [("provider".to_owned(), "x".to_owned())].into());
    told.add_to_record(&mut agents);
    let words: Vec<String> =
        agents.0["coder"].iter().map(|(name, word)| format!("{name}: {word}")).collect();
    let digest = Sha256::hash_bytes(NEEDED.as_bytes());
    assert_eq!(
        words,
        [
            "context: a, b/**, at most 9 characters".to_owned(),
            format!("prompt: coder.md sha256 {digest}"),
            "provider: x".to_owned(),
        ]
    );
    // The role `ideas` has no agent.
    assert_eq!(agents.0.len(), 1);
}

#[test]
fn prompt_files_are_named_as_git_does() {
    let text =
        "[prompts]\ncoder = './p//a.md'\nplanner = '../b.md'\nreviewer = '/c.md'\nideas = 'none'";
    assert_eq!(config(text).expect("a configuration").repo_prompt_files(), ["p/a.md"]);
}
