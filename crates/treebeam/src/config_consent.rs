//! Asks for consent to programs, paths, variables and addresses from an uncommitted configuration
//! file.
//!
//! A candidate can write such a file, so an existing run takes them from it only where the user
//! accepts it. Environment, flags and files outside of the repository are the user's own.
//! [`mod@crate::config::config_key`] lists the keys concerned.

use crate::config::Config;
use crate::config::config_file::ConfigFile;
use crate::config::config_key::{CONFIG_KEYS, ConfigKey};
use crate::config::origin::SettingOrigin;
use crate::failure::CommandFailure;
use crate::role_agents::KEY_VARIABLE_FIELD;
use crate::run_location::{RepoHome, normalize_path};
use crate::run_settings;
use crate::terminal;
use std::path::{Component, Path};
use treebeam_core::facts::Facts;
use treebeam_core::policy::RecordedAgents;
use treebeam_run::port::AgentRole;
use treebeam_store::user_state::UserState;

/// Recorded fields of an agent that name a program, variable or address, as in its table.
const NAMING_FIELDS: [&str; 6] =
    ["provider", "command", "args", "base_url", KEY_VARIABLE_FIELD, "extra"];

/// Consent to take programs, paths, variables and addresses from an uncommitted file on resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigConsent {
    /// Given by `--accept-config`.
    Given,
    /// Not yet given: the user is asked if there is a terminal.
    Open,
}

/// A configured value that differs from the recorded one.
#[derive(Debug, PartialEq, Eq)]
struct NamingChange {
    key: String,
    before: String,
    asked: String,
}

/// Refuses to resume a run if an uncommitted file changes what it runs, reads, sends or calls,
/// unless the user accepts it.
pub(crate) fn must_accept_config(
    config: &Config,
    home: &RepoHome,
    run: &Facts,
    consent: ConfigConsent,
) -> Result<(), CommandFailure> {
    if let Some(file) = config.file() {
        let changes = naming_changes(config, home, run)?;
        if !changes.is_empty() && !is_trusted_file(file, home)? {
            confirm_changes(file, &changes, consent)?;
        }
    }
    home.remember_runs_root();
    Ok(())
}

fn naming_changes(
    config: &Config,
    home: &RepoHome,
    run: &Facts,
) -> Result<Vec<NamingChange>, CommandFailure> {
    let is_from_file = |name: &str| {
        let key: Option<&ConfigKey> =
            CONFIG_KEYS.iter().find(|key| key.name == name && key.is_naming());
        key.is_some_and(|key| matches!(config.origin(key), SettingOrigin::File(_)))
    };
    let mut changes = Vec::new();
    if is_from_file("runs_root") {
        changes.extend(runs_root_change(home));
    }
    let asked = run_settings::recorded_agents(config, &home.repo.toplevel, run.world)?;
    for role in AgentRole::ALL {
        if is_from_file(&format!("agents.{role}")) {
            changes.extend(agent_changes(role, &run.agents, &asked));
        }
        if is_from_file(&format!("prompts.{role}")) {
            changes.extend(file_names_change(
                role,
                "prompt",
                format!("prompts.{role}"),
                &run.agents,
                &asked,
            ));
        }
    }
    if is_from_file("ideas_context_files") {
        let key = "ideas_context_files".to_owned();
        // Files outside of the repository are recorded by their last name: only their content
        // distinguishes them.
        changes.extend(if config.has_outside_context_files() {
            word_change(AgentRole::Ideas, "context_files", key, &run.agents, &asked)
        } else {
            file_names_change(AgentRole::Ideas, "context_files", key, &run.agents, &asked)
        });
    }
    Ok(changes)
}

/// Returns the folder of runs as a change if treebeam never used it for this user.
fn runs_root_change(home: &RepoHome) -> Option<NamingChange> {
    let is_known = UserState::find().is_ok_and(|state| state.knows_runs_root(&home.runs_root));
    (!is_known).then(|| NamingChange {
        key: "runs_root".to_owned(),
        before: "never used before".to_owned(),
        asked: home.runs_root.display().to_string(),
    })
}

fn agent_changes<'a>(
    role: AgentRole,
    before: &'a RecordedAgents,
    asked: &'a RecordedAgents,
) -> impl Iterator<Item = NamingChange> + 'a {
    let is_recorded = move |name: &str| {
        // Older versions did not record from which variable a key is read.
        let words = before.0.get(role.name());
        name != KEY_VARIABLE_FIELD || words.is_none_or(|words| words.contains_key(name))
    };
    let recorded = NAMING_FIELDS.into_iter().filter(move |name| is_recorded(name));
    recorded.filter_map(move |name| {
        word_change(role, name, format!("agents.{role}.{name}"), before, asked)
    })
}

/// Returns the change of one recorded field of an agent, if it differs and is set now.
fn word_change(
    role: AgentRole,
    name: &str,
    key: String,
    before: &RecordedAgents,
    asked: &RecordedAgents,
) -> Option<NamingChange> {
    let of = |agents: &RecordedAgents| agents.0.get(role.name())?.get(name).cloned();
    let (before, asked) = (of(before), of(asked)?);
    let changed = before.as_ref() != Some(&asked) && asked != "none";
    let before = before.unwrap_or_else(|| "none".to_owned());
    changed.then_some(NamingChange { key, before, asked })
}

/// Returns the change of an agent's list of files, compared by their names alone: their content may
/// change.
fn file_names_change(
    role: AgentRole,
    name: &str,
    key: String,
    before: &RecordedAgents,
    asked: &RecordedAgents,
) -> Option<NamingChange> {
    let without_digests = |agents: &RecordedAgents| {
        let mut agents = agents.clone();
        if let Some(files) = agents.0.get_mut(role.name()).and_then(|words| words.get_mut(name)) {
            let name = |file: &str| file.split(" sha256 ").next().unwrap_or(file).to_owned();
            *files = files.split(", ").map(name).collect::<Vec<_>>().join(", ");
        }
        agents
    };
    word_change(role, name, key, &without_digests(before), &without_digests(asked))
}

/// Returns true if a file lies outside of the repository, or is committed with its present content.
fn is_trusted_file(file: &ConfigFile, home: &RepoHome) -> Result<bool, CommandFailure> {
    let top = home.repo.toplevel.canonicalize()?;
    let absolute = normalize_path(&std::path::absolute(file.path())?);
    let real = absolute.canonicalize()?;
    let folder = absolute.parent().unwrap_or(&absolute).canonicalize()?;
    let named = folder.join(absolute.file_name().unwrap_or_default());
    if ![&absolute, &real, &named].iter().any(|path| path.starts_with(&top)) {
        return Ok(true);
    }
    // The target of a symbolic link can change at any time.
    let Some(name) = real.strip_prefix(&top).ok().filter(|_| real == named).and_then(git_path)
    else {
        return Ok(false);
    };
    Ok(home.repo.has_committed(&name, file.text())?)
}

/// Converts a path below the top of the repository to git's notation.
fn git_path(path: &Path) -> Option<String> {
    let part = |part: Component<'_>| match part {
        Component::Normal(part) => part.to_str().map(str::to_owned),
        Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
            None
        }
    };
    Some(path.components().map(part).collect::<Option<Vec<_>>>()?.join("/"))
}

fn confirm_changes(
    file: &ConfigFile,
    changes: &[NamingChange],
    consent: ConfigConsent,
) -> Result<(), CommandFailure> {
    let name = file.name();
    if consent == ConfigConsent::Given || terminal::is_attended() {
        terminal::print_note(&format!(
            "`{name}` is not committed as it is, and this run takes from it:"
        ));
        for change in changes {
            terminal::print_note(&change.describe_change());
        }
        if consent == ConfigConsent::Given || terminal::confirm("go on with that?") {
            return Ok(());
        }
    }
    let mut what = format!(
        "`{name}` is not committed as it is, and names other programs, paths, variables or addresses than the run has on record:"
    );
    for change in changes {
        what.push_str(&format!("\n  {}", change.describe_change()));
    }
    Err(CommandFailure::usage(what)
        .with_hint("commit the file or set these keys back; `--accept-config` goes on with them"))
}

impl NamingChange {
    fn describe_change(&self) -> String {
        let printable = |text: &str| -> String {
            let escaped = |c: char| {
                if c.is_control() { c.escape_debug().collect::<Vec<_>>() } else { vec![c] }
            };
            text.chars().flat_map(escaped).collect()
        };
        let Self { key, before, asked } = self;
        format!("`{key}`: {} → {}", printable(before), printable(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn agents(role: AgentRole, words: &[(&str, &str)]) -> RecordedAgents {
        let words = words.iter().map(|(name, word)| ((*name).to_owned(), (*word).to_owned()));
        RecordedAgents(BTreeMap::from([(role.to_string(), words.collect())]))
    }

    #[test]
    fn what_names_something_counts_and_numbers_and_switches_do_not() {
        let before = agents(
            AgentRole::Coder,
            &[("provider", "command"), ("command", "./a.sh"), ("api_key_env", "none")],
        );
        let check = |words: &[(&str, &str)], expect: &[&str]| {
            let found: Vec<_> =
                agent_changes(AgentRole::Coder, &before, &agents(AgentRole::Coder, words))
                    .map(|it| it.key)
                    .collect();
            assert_eq!(found, expect, "{words:?}");
        };
        let same = [("provider", "command"), ("command", "./a.sh"), ("api_key_env", "none")];
        check(&same, &[]);
        check(&[&same[..], &[("timeout_sec", "9"), ("edits", "in_place")]].concat(), &[]);
        check(
            &[("provider", "command"), ("command", "./b.sh"), ("api_key_env", "K")],
            &["agents.coder.command", "agents.coder.api_key_env"],
        );
        check(
            &[("provider", "ollama"), ("model", "m"), ("base_url", "http://x")],
            &["agents.coder.provider", "agents.coder.base_url"],
        );
        let older = agents(AgentRole::Coder, &[("provider", "command"), ("command", "./a.sh")]);
        let asked = agents(AgentRole::Coder, &[("provider", "command"), ("api_key_env", "K")]);
        assert_eq!(agent_changes(AgentRole::Coder, &older, &asked).count(), 0);
        assert_eq!(agent_changes(AgentRole::Coder, &RecordedAgents::default(), &asked).count(), 2);
    }

    #[test]
    fn files_count_by_their_names() {
        let recorded = |prompt: &str| agents(AgentRole::Coder, &[("prompt", prompt)]);
        let check = |asked: &str, expect: Option<(&str, &str)>| {
            let before = recorded("a.md sha256 12ab, b.md sha256 34cd");
            let found = file_names_change(
                AgentRole::Coder,
                "prompt",
                "k".to_owned(),
                &before,
                &recorded(asked),
            );
            let found = found.as_ref().map(|it| (it.before.as_str(), it.asked.as_str()));
            assert_eq!(found, expect);
        };
        check("a.md sha256 12ab, b.md sha256 34cd", None);
        check("a.md sha256 99ff, b.md sha256 34cd", None);
        check("a.md sha256 12ab, c.md sha256 34cd", Some(("a.md, b.md", "a.md, c.md")));
    }

    #[test]
    fn a_change_is_told_on_one_line() {
        let change = NamingChange {
            key: "agents.coder.command".to_owned(),
            before: "none".to_owned(),
            asked: "sh -c a\nb\u{1b}[2J".to_owned(),
        };
        assert_eq!(
            change.describe_change(),
            "`agents.coder.command`: none → sh -c a\\nb\\u{1b}[2J"
        );
    }
}
