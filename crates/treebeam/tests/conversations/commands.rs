//! The commands of `docs/conversations.md`: each succeeds, and the generator's prompts contain what
//! the page says.

use super::{MEMORY, prompts};
use std::fs;
use std::path::Path;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

/// Returns the commands of the page, split into arguments.
fn commands() -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conversations.md");
    let page = fs::read_to_string(page).expect("the page");
    let lines = page.lines().filter_map(|line| line.strip_prefix("$ treebeam run "));
    lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// Makes the run of a command, under the name that the tests use.
fn run(flags: &[String]) -> Site {
    let site = Site::new(super::BINARY);
    let flags = flags.iter().map(String::as_str);
    let words: Vec<&str> =
        ["run", "--run-id", SITE_RUN_ID, "--quiet"].into_iter().chain(flags).collect();
    let _ = site.call(&words).exits(0);
    site
}

#[test]
fn each_command_of_the_page_does_what_the_page_says() {
    let commands = commands();
    let mut modes = Vec::new();
    for flags in &commands {
        let at = flags.iter().position(|flag| flag == "--idea-conversation-mode");
        let mode = flags[at.expect("a mode") + 1].as_str();
        let site = run(flags);
        let (prompts, manifest) = (prompts(&site), site.manifest());
        let told = prompts.values().filter(|prompt| prompt.contains(MEMORY)).count();
        let root = &manifest["conversations"]["c0000"]["mode"];
        // The dry world keeps no conversation: `auto` is `replay` there.
        let (expected, remembers) = if mode == "off" { ("off", false) } else { ("replay", true) };
        assert_eq!((root.as_str(), told > 0), (Some(expected), remembers), "{flags:?}");
        assert_eq!(site.names("conversations").is_empty(), !remembers, "{flags:?}");
        assert_eq!(manifest["conversation_config"]["mode"], mode);
        site.must_be_sound();
        modes.push(mode);
    }
    assert_eq!(modes, ["off", "auto", "replay"]);
}
