//! What the configuration makes of a run that is there: its meaning stays as it is, its reach takes what was said anew.
//! What the keys are is said in `config`.

use crate::config::origin::Origin;
use crate::config::{Change, Config};
use crate::crew;
use crate::dotenv::Dotenv;
use crate::failure::Failure;
use crate::preflight;
use crate::terminal;
use serde_json::Value;
use std::path::Path;
use treebeam_core::event::{Event, WorldKind};
use treebeam_core::facts::Facts;
use treebeam_core::policy::{Agents, Reach};

/// Refuses a configuration that would change what the results of a run mean.
pub(crate) fn same_meaning(config: &Config, run: &Facts) -> Result<(), Failure> {
    let mut meaning = run.meaning.clone();
    if run.given.is_some() {
        // Of an eval that is a matter of flags too, and a baseline is measured whatever was there: what is on record counts.
        meaning.measure.baseline_csv = config.meaning(meaning.clone())?.measure.baseline_csv;
    }
    let Some(Change { key, origin, before, asked }) = config.other_meaning(&meaning)? else {
        return Ok(());
    };
    let (subject, hint) = match &origin {
        Origin::Flag(flag) => (format!("`{flag} {asked}`"), "leave the flag out"),
        Origin::Variable(_) if key.chooses_metrics() => {
            (format!("{origin}: {asked}"), "unset the variable")
        }
        Origin::Variable(name) => (format!("`{name}={asked}`"), "unset the variable"),
        Origin::File(_) | Origin::Default => (format!("{origin}: {asked}"), "set the key back"),
    };
    let what =
        format!("{subject} would change what the results of this run mean: it began with {before}");
    let flag = match (&origin, key.flag()) {
        (Origin::Flag(_), _) | (_, None) => String::new(),
        (_, Some(flag)) => format!(" or repeat `{flag} {}`", as_flag(&before)),
    };
    Err(Failure::usage(what).hint(format!("{hint}{flag}, or start another run")))
}

/// The values of a run that the configuration would change now, by key, as far as flags keep them.
pub(crate) fn kept(config: &Config, run: &Facts) -> Result<Value, Failure> {
    let meaning = config.all_other_meaning(&run.meaning)?;
    let changes = meaning.into_iter().chain(config.other_reach(&run.reach));
    let with_flag = changes.filter(|change| change.key.flag().is_some());
    let value = |change: Change| (change.key.name.to_owned(), as_flag(&change.before).into());
    Ok(Value::Object(with_flag.map(value).collect()))
}

/// A value as a flag takes it.
fn as_flag(value: &str) -> &str {
    if value == "all" { "none" } else { value }
}

/// What is to be recorded before a run goes on: another reach, other agents, both or neither.
pub(crate) fn changes(config: &Config, top: &Path, run: &Facts) -> Result<Vec<Event>, Failure> {
    let (reach, agents) = (reach(config, &run.reach), agents(config, top, run.world)?);
    if run.given.is_none() {
        must_remember(config, top, run.world, &reach)?;
    }
    let reach = (reach != run.reach).then_some(Event::SettingsChanged { reach });
    let roles = with_key_variables(&run.agents, &agents).other_roles(&agents);
    for role in &roles {
        terminal::note(&format!("`agents.{role}` is another one from now on"));
    }
    let agents = (!roles.is_empty()).then_some(Event::AgentsChanged { agents });
    Ok(reach.into_iter().chain(agents).collect())
}

/// What is recorded of agents. An older treebeam did not record from which variable a key is read: that counts as unchanged.
fn with_key_variables(recorded: &Agents, asked: &Agents) -> Agents {
    let mut recorded = recorded.clone();
    for (role, words) in &mut recorded.0 {
        if let Some(variable) = asked.0.get(role).and_then(|asked| asked.get(crew::KEY_WORD)) {
            words.entry(crew::KEY_WORD.to_owned()).or_insert_with(|| variable.clone());
        }
    }
    recorded
}

fn must_remember(
    config: &Config,
    top: &Path,
    world: WorldKind,
    reach: &Reach,
) -> Result<(), Failure> {
    let mode = reach.idea_conversation_mode;
    match world {
        WorldKind::Dry { .. } => preflight::must_remember(mode, &[]),
        WorldKind::Real => {
            let dotenv = Dotenv::load(top, config)?;
            let seats = crew::seats(config, &dotenv);
            preflight::must_remember(mode, &seats)?;
            preflight::must_sum_up(reach.summary_agent, &seats)
        }
    }
}

/// Who does the work in a world, as it is recorded.
pub(crate) fn agents(config: &Config, top: &Path, world: WorldKind) -> Result<Agents, Failure> {
    match world {
        WorldKind::Dry { .. } => Ok(Agents::default()),
        WorldKind::Real => {
            let dotenv = Dotenv::load(top, config)?;
            let mut agents = crew::without_keys(config, &dotenv)?.in_words();
            crew::describe_keys(config, &mut agents);
            config.prompts(top)?.describe(&mut agents);
            Ok(agents)
        }
    }
}

/// The reach that a run goes on with; what is new about it is said.
fn reach(config: &Config, run: &Reach) -> Reach {
    for Change { key, origin, before, asked } in config.other_reach(run) {
        let name = key.name;
        terminal::note(&format!(
            "`{name}` is {asked} from now on, it was {before}: {}",
            origin.brief()
        ));
    }
    config.reach(run)
}
