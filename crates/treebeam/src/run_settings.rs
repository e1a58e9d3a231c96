//! Applies the configuration to an existing run: fixed settings must stay, run limits may change.
//!
//! The keys are defined in [`mod@crate::config`].

use crate::config::origin::SettingOrigin;
use crate::config::{Config, SettingChange};
use crate::dotenv::Dotenv;
use crate::failure::CommandFailure;
use crate::preflight;
use crate::role_agents;
use crate::terminal;
use serde_json::Value;
use std::path::Path;
use treebeam_core::event::{Event, WorldKind};
use treebeam_core::facts::Facts;
use treebeam_core::policy::{RecordedAgents, RunLimits};

/// Refuses a configuration that would change the fixed settings of a run.
pub(crate) fn must_keep_fixed_settings(config: &Config, run: &Facts) -> Result<(), CommandFailure> {
    let mut settings = run.settings.clone();
    if run.user_ideas.is_some() {
        // For an eval run this depends on flags too, and a baseline is measured whatever existed
        // before: the recorded settings count.
        settings.measure.baseline_csv =
            config.fixed_settings(settings.clone())?.measure.baseline_csv;
    }
    let Some(SettingChange { key, origin, before, asked }) =
        config.first_fixed_change(&settings)?
    else {
        return Ok(());
    };
    let (subject, hint) = match &origin {
        SettingOrigin::Flag(flag) => (format!("`{flag} {asked}`"), "leave the flag out"),
        SettingOrigin::Variable(_) if key.chooses_metrics() => {
            (format!("{origin}: {asked}"), "unset the variable")
        }
        SettingOrigin::Variable(name) => (format!("`{name}={asked}`"), "unset the variable"),
        SettingOrigin::File(_) | SettingOrigin::Default => {
            (format!("{origin}: {asked}"), "set the key back")
        }
    };
    let what =
        format!("{subject} would change what the results of this run mean: it began with {before}");
    let flag = match (&origin, key.flag_name()) {
        (SettingOrigin::Flag(_), _) | (_, None) => String::new(),
        (_, Some(flag)) => format!(" or repeat `{flag} {}`", flag_value(&before)),
    };
    Err(CommandFailure::usage(what).with_hint(format!("{hint}{flag}, or start another run")))
}

/// Returns the recorded values that the configuration would change now, by key, as far as flags can
/// keep them.
pub(crate) fn flags_to_keep(config: &Config, run: &Facts) -> Result<Value, CommandFailure> {
    let settings = config.fixed_changes(&run.settings)?;
    let changes = settings.into_iter().chain(config.limit_changes(&run.limits));
    let with_flag = changes.filter(|change| change.key.flag_name().is_some());
    let value =
        |change: SettingChange| (change.key.name.to_owned(), flag_value(&change.before).into());
    Ok(Value::Object(with_flag.map(value).collect()))
}

/// Converts a formatted value to the text that a flag takes.
fn flag_value(value: &str) -> &str {
    if value == "all" { "none" } else { value }
}

/// Returns the events to record before a run goes on: changed limits, changed agents, both or
/// neither.
pub(crate) fn settings_events(
    config: &Config,
    top: &Path,
    run: &Facts,
) -> Result<Vec<Event>, CommandFailure> {
    let (limits, agents) =
        (update_run_limits(config, &run.limits), recorded_agents(config, top, run.world)?);
    if run.user_ideas.is_none() {
        must_keep_conversations(config, top, run.world, &limits)?;
    }
    let limits = (limits != run.limits).then_some(Event::SettingsChanged { reach: limits });
    let roles = with_key_variables(&run.agents, &agents).changed_roles(&agents);
    for role in &roles {
        terminal::print_note(&format!("`agents.{role}` is another one from now on"));
    }
    let agents = (!roles.is_empty()).then_some(Event::AgentsChanged { agents });
    Ok(limits.into_iter().chain(agents).collect())
}

/// Returns the recorded agents with the key variables of the configured ones where older versions
/// did not record them, so that they count as unchanged.
fn with_key_variables(recorded: &RecordedAgents, asked: &RecordedAgents) -> RecordedAgents {
    let mut recorded = recorded.clone();
    for (role, words) in &mut recorded.0 {
        if let Some(variable) =
            asked.0.get(role).and_then(|asked| asked.get(role_agents::KEY_VARIABLE_FIELD))
        {
            words
                .entry(role_agents::KEY_VARIABLE_FIELD.to_owned())
                .or_insert_with(|| variable.clone());
        }
    }
    recorded
}

fn must_keep_conversations(
    config: &Config,
    top: &Path,
    world: WorldKind,
    limits: &RunLimits,
) -> Result<(), CommandFailure> {
    let mode = limits.idea_conversation_mode;
    match world {
        WorldKind::Dry { .. } => preflight::must_keep_conversations(mode, &[]),
        WorldKind::Real => {
            let dotenv = Dotenv::load(top, config)?;
            let role_agents = role_agents::list_role_agents(config, &dotenv);
            preflight::must_keep_conversations(mode, &role_agents)?;
            preflight::must_have_summary_agent(limits.summary_agent, &role_agents)
        }
    }
}

/// Returns the agents of a world in their recorded form.
pub(crate) fn recorded_agents(
    config: &Config,
    top: &Path,
    world: WorldKind,
) -> Result<RecordedAgents, CommandFailure> {
    match world {
        WorldKind::Dry { .. } => Ok(RecordedAgents::default()),
        WorldKind::Real => {
            let dotenv = Dotenv::load(top, config)?;
            let mut agents = role_agents::keyless_role_agents(config, &dotenv)?.describe_agents();
            role_agents::record_key_variables(config, &mut agents);
            config.load_prompts(top)?.add_to_record(&mut agents);
            Ok(agents)
        }
    }
}

/// Returns the limits that a run goes on with, and prints a note for each change.
fn update_run_limits(config: &Config, run: &RunLimits) -> RunLimits {
    for SettingChange { key, origin, before, asked } in config.limit_changes(run) {
        let name = key.name;
        terminal::print_note(&format!(
            "`{name}` is {asked} from now on, it was {before}: {}",
            origin.describe_briefly()
        ));
    }
    config.run_limits(run)
}
