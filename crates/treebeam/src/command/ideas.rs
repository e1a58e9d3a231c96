//! `treebeam ideas`: fills a folder with ideas, outside of any run.
//!
//! Existing ideas are kept or set aside, never lost. After a kill, the next call completes the
//! interrupted one.

mod dir_conversation;
mod existing_ideas;
mod outcome;
mod workplace;

use super::{OutputFormat, run_start};
use crate::cli::IdeasArgs;
use crate::config::Config;
use crate::failure::{CommandExit, CommandFailure};
use crate::interrupt::CtrlC;
use crate::preflight::{self, CostConsent};
use crate::progress::RunObserver;
use crate::progress::activity::{LineReporting, ObservedAgent};
use crate::role_agents::{self, RoleAgent};
use crate::run_location::RepoHome;
use crate::terminal;
use dir_conversation::IdeasDirConversation;
use existing_ideas::ExistingIdeas;
use jiff::Timestamp;
use outcome::IdeasDirOutcome;
use serde_json::json;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use treebeam_agent::bucket::AgentLimits;
use treebeam_agent::budget_layer::Budget;
use treebeam_agent::call_store::CallStore;
use treebeam_agent::command::AgentWorkspace;
use treebeam_agent::retry_layer::RetryPolicy;
use treebeam_agent::{AgentDoor, DoorPlan};
use treebeam_core::idea;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_run::port::AgentRole;
use treebeam_run::standalone_ideas::{
    self, ProposalEnd, StandaloneIdeas, StandalonePorts, StandaloneRequest,
};
use treebeam_store::ideas_dir::{
    IdeasDir, IdeasDirBatch, NewIdeaFile, SET_ASIDE_FOLDER, SetAsideFiles,
};
use treebeam_store::input;
use workplace::AgentWorkplace;

/// Maximum size of a text about the baseline; how much of it is used is limited elsewhere.
const MAX_BASELINE_TEXT_BYTES: u64 = 16 << 20;

pub(super) fn run_ideas(
    here: &Path,
    args: &IdeasArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let config = load_ideas_config(here, args)?;
    let home = RepoHome::open(here, &config)?;
    config.load_prompts(&home.repo.toplevel)?;
    let settings = config.fixed_settings(FixedSettings::default())?;
    let own = treebeam_store::make_runs_root(&home.repo.toplevel)?.with_file_name("ideas");
    let dir = IdeasDir::open(&here.join(&args.ideas_dir), &own)?;
    let finished = dir.finish_recorded()?;
    let there = ExistingIdeas::load(&dir, here, args, &home, settings.ideas_context_strategy)?;
    let count = usize::try_from(settings.ideas_per_node.get()).unwrap_or(usize::MAX);
    let manner = IdeasDirMode::from_args(args, finished.as_ref(), &there);
    let kept = match manner {
        IdeasDirMode::Replace => 0,
        IdeasDirMode::Add => there.own.len(),
    };
    // The completed batch may have been writing the file that is read here.
    let memory = IdeasDirConversation::open(here, args, &config.run_limits(&RunLimits::default()))?;
    let begun = finished.map(|batch| IdeasDirOutcome::from_batch(&dir, batch));
    let missing = u32::try_from(count.saturating_sub(kept)).ok().and_then(NonZeroU32::new);
    let Some(missing) = missing else {
        memory.write_unchanged()?;
        return begun
            .unwrap_or_else(|| IdeasDirOutcome::empty(&dir))
            .show_and_exit(&there, count, output);
    };
    let added = read_baseline_text(here, args)?;
    let asked =
        IdeasDirRequest { home: &home, config: &config, settings: &settings, missing, dir: &dir };
    let (added, consent) = (added.as_deref(), CostConsent::from_yes_flag(args.yes));
    let brought = match asked.propose(&there, &memory, added, consent) {
        Err(IdeasDirHalt::Interrupted) => {
            terminal::print_line("interrupted: the same command goes on from here");
            return Ok(CommandExit::Interrupted);
        }
        Err(IdeasDirHalt::Failed(failure)) => return Err(*failure),
        Ok(brought) => brought,
    };
    if brought.ideas.is_empty() {
        return Err(record_empty_batch(&dir, &brought.end)?);
    }
    let batch = IdeasDirBatch {
        conversation: memory.state_file(brought.conversation.as_ref())?,
        ..build_batch(&dir, &there, &brought, manner)
    };
    dir.record_and_apply(&batch)?;
    IdeasDirOutcome::from_batch(&dir, batch)
        .with_earlier(begun)
        .with_ideas(brought)
        .show_and_exit(&there, count, output)
}

/// Records a batch without ideas: folder and conversation stay as they were. The next call asks
/// again, except after an exhausted budget: then it continues.
fn record_empty_batch(dir: &IdeasDir, end: &ProposalEnd) -> Result<CommandFailure, CommandFailure> {
    if !matches!(end, ProposalEnd::OverBudget(_)) {
        dir.record_and_apply(&IdeasDirBatch {
            edition: dir.read_edition() + 1,
            ..IdeasDirBatch::default()
        })?;
    }
    let why = end.shortfall_reason().unwrap_or_default();
    Ok(CommandFailure::failed(format!("no idea came: {why}")).with_hint(
        "what is in the folder is as it was; `treebeam agents check` asks the agent something",
    ))
}

/// Treatment of existing ideas.
#[derive(Clone, Copy)]
enum IdeasDirMode {
    /// Keep them, and add others.
    Add,
    /// Set them aside, and put others in their place.
    Replace,
}

impl IdeasDirMode {
    /// Chooses the mode. If completing an interrupted call has regenerated the ideas already, that
    /// is not repeated.
    const fn from_args(
        args: &IdeasArgs,
        finished: Option<&IdeasDirBatch>,
        there: &ExistingIdeas,
    ) -> Self {
        let regenerated = matches!(finished, Some(IdeasDirBatch { aside: Some(_), .. }));
        if args.force_regenerate_ideas && !regenerated && !there.own.is_empty() {
            return Self::Replace;
        }
        Self::Add
    }
}

/// Loads the configuration with these flags over it.
fn load_ideas_config(here: &Path, args: &IdeasArgs) -> Result<Config, CommandFailure> {
    let config = Config::load(here, args.config.config.as_deref())?;
    let own = json!({
        "ideas_per_node": args.count,
        "ideas_context_strategy": args.context_strategy,
        "idea_conversation_mode": args.conversation_mode,
        "ideas_context_files": args.ideas_context_files,
    });
    Ok(config.with_flags(&[serde_json::to_value(&args.spending)?, own])?)
}

fn read_baseline_text(here: &Path, args: &IdeasArgs) -> Result<Option<String>, CommandFailure> {
    let Some(file) = &args.baseline_context else { return Ok(None) };
    Ok(Some(input::read_text(
        &here.join(file),
        &file.display().to_string(),
        MAX_BASELINE_TEXT_BYTES,
    )?))
}

/// Reason for no ideas other than an agent's answer.
enum IdeasDirHalt {
    Interrupted,
    Failed(Box<CommandFailure>),
}

impl<E: Into<CommandFailure>> From<E> for IdeasDirHalt {
    fn from(error: E) -> Self {
        let failure = error.into();
        if failure.is_interruption() { Self::Interrupted } else { Self::Failed(Box::new(failure)) }
    }
}

/// Input of a request for ideas.
struct IdeasDirRequest<'a> {
    home: &'a RepoHome,
    config: &'a Config,
    settings: &'a FixedSettings,
    missing: NonZeroU32,
    dir: &'a IdeasDir,
}

impl IdeasDirRequest<'_> {
    fn propose(
        &self,
        there: &ExistingIdeas,
        memory: &IdeasDirConversation,
        added: Option<&str>,
        consent: CostConsent,
    ) -> Result<StandaloneIdeas, IdeasDirHalt> {
        let Self { home, config, settings, missing, dir } = self;
        let role_agents = run_start::role_agents(home, config, &[AgentRole::Ideas])?;
        run_start::must_have_agents(&role_agents, &[AgentRole::Ideas])?;
        preflight::must_keep_conversations(memory.before.mode, &role_agents)?;
        let asked =
            FixedSettings { ideas_per_node: *missing, control: None, ..(*settings).clone() };
        let once = RunLimits { max_depth: 1, ..config.run_limits(&RunLimits::default()) };
        run_start::must_be_affordable(config, &asked, &once, &role_agents, consent)?;
        let loaded_prompts = config.load_prompts(&home.repo.toplevel)?;
        let workplace = AgentWorkplace::create(home, dir, &role_agents)?;
        let plan = self.build_agent_plan(&role_agents, &workplace)?;
        let onlooker = RunObserver::new(None);
        let agent =
            ObservedAgent { agent: AgentDoor::open(&plan, &onlooker)?, lines: LineReporting::None };
        let wanted = StandaloneRequest {
            count: missing.get(),
            scope: settings.dedupe_scope,
            commit: &home.repo.head,
            existing: &there.known_ideas(),
            added,
            protect: &settings.protected_globs(),
            commands: &settings.command_lines(),
            edition: dir.read_edition(),
            history: &memory.before,
        };
        let (repo, prompts) = (&workplace.repo, &loaded_prompts.prompts);
        let brought = standalone_ideas::propose_standalone(
            &wanted,
            StandalonePorts { repo, agent: &agent, interrupt: &CtrlC, prompts },
        );
        workplace.remove();
        Ok(brought?)
    }

    /// Builds the plan of the agent door: agents and limits, as for any question outside of a run.
    fn build_agent_plan(
        &self,
        role_agents: &[RoleAgent<'_>],
        workplace: &AgentWorkplace,
    ) -> Result<DoorPlan, CommandFailure> {
        let top = &self.home.repo.toplevel;
        let run_limits = self.config.run_limits(&RunLimits::default());
        Ok(DoorPlan {
            role_agents: role_agents::installed_role_agents(role_agents)?,
            prices: self.config.model_prices(),
            budget: Budget::from(&run_limits),
            limits: AgentLimits::from(&run_limits),
            patience: RetryPolicy::ATTENDED_COMMAND,
            calls: CallStore::Folder(treebeam_store::make_runs_root(top)?.with_file_name("calls")),
            replays: None,
            surroundings: AgentWorkspace::Folder(workplace.folder.clone()),
        })
    }
}

/// Builds the batch of changes for the new ideas.
fn build_batch(
    dir: &IdeasDir,
    there: &ExistingIdeas,
    brought: &StandaloneIdeas,
    manner: IdeasDirMode,
) -> IdeasDirBatch {
    let first = match manner {
        IdeasDirMode::Replace => 1,
        IdeasDirMode::Add => there.next_number(),
    };
    let files = (first..).zip(&brought.ideas).map(|(number, text)| NewIdeaFile {
        name: idea::idea_file_name(number, &idea::idea_title(text)),
        text: text.clone(),
    });
    let names = || there.own.iter().map(|file| file.name.clone()).collect();
    let aside = match manner {
        IdeasDirMode::Replace => {
            Some(SetAsideFiles { folder: free_folder_name(dir.folder()), names: names() })
        }
        IdeasDirMode::Add => None,
    };
    let edition = dir.read_edition() + 1;
    IdeasDirBatch { aside, files: files.collect(), conversation: None, edition }
}

/// Returns a folder name by the time that is not taken.
fn free_folder_name(folder: &Path) -> String {
    let now = Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let named = |name: String| PathBuf::from(SET_ASIDE_FOLDER).join(name).display().to_string();
    let mut name = named(now.to_string());
    let mut number = 2;
    while folder.join(&name).exists() {
        name = named(format!("{now}-{number}"));
        number += 1;
    }
    name
}
