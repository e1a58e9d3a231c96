//! `treebeam ideas`: fills a folder with ideas, outside of any run. What is there is kept or set aside, never lost; whoever
//! was killed is called again, and goes on.

mod memory;
mod outcome;
mod there;
mod workplace;

use super::{Output, begin};
use crate::cli::IdeasArgs;
use crate::config::Config;
use crate::crew::{self, Seat};
use crate::failure::{Exit, Failure};
use crate::interrupt::CtrlC;
use crate::preflight::{self, Consent};
use crate::progress::Onlooker;
use crate::progress::now::{Lines, SeenAgent};
use crate::terminal;
use crate::wiring::Home;
use jiff::Timestamp;
use memory::Memory;
use outcome::Outcome;
use serde_json::json;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use there::There;
use treebeam_core::idea;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_edge::agent::bucket::Limits;
use treebeam_edge::agent::budgeted::Budget;
use treebeam_edge::agent::calls::Calls;
use treebeam_edge::agent::command::Surroundings;
use treebeam_edge::agent::retrying::Patience;
use treebeam_edge::agent::{Door, Plan};
use treebeam_edge::ideas_dir::{Aside, Batch, IdeasDir, NewFile, SET_ASIDE};
use treebeam_edge::{input, store};
use treebeam_run::alone::{self, Brought, End, Ports, Wanted};
use treebeam_run::port::Role;
use workplace::Workplace;

/// The longest text about the baseline that is read; how much of it is told is said elsewhere.
const BASELINE_BYTES: u64 = 16 << 20;

pub(super) fn run(here: &Path, args: &IdeasArgs, output: Output) -> Result<Exit, Failure> {
    let config = config(here, args)?;
    let home = Home::open(here, &config)?;
    config.prompts(&home.repo.toplevel)?;
    let meaning = config.meaning(Meaning::default())?;
    let own = store::make_runs_root(&home.repo.toplevel)?.with_file_name("ideas");
    let dir = IdeasDir::open(&here.join(&args.ideas_dir), &own)?;
    let finished = dir.finish()?;
    let there = There::look(&dir, here, args, &home, meaning.ideas_context_strategy)?;
    let count = usize::try_from(meaning.ideas_per_node.get()).unwrap_or(usize::MAX);
    let manner = Manner::of(args, finished.as_ref(), &there);
    let kept = match manner {
        Manner::Replace => 0,
        Manner::Add => there.own.len(),
    };
    // What was begun may have been writing what is read here.
    let memory = Memory::open(here, args, &config.reach(&Reach::default()))?;
    let begun = finished.map(|batch| Outcome::of(&dir, batch));
    let missing = u32::try_from(count.saturating_sub(kept)).ok().and_then(NonZeroU32::new);
    let Some(missing) = missing else {
        memory.hand_on()?;
        return begun.unwrap_or_else(|| Outcome::nothing(&dir)).tell(&there, count, output);
    };
    let added = baseline(here, args)?;
    let asked = Asked { home: &home, config: &config, meaning: &meaning, missing, dir: &dir };
    let (added, consent) = (added.as_deref(), Consent::of(args.yes));
    let brought = match asked.propose(&there, &memory, added, consent) {
        Err(Halted::Interrupted) => {
            terminal::say("interrupted: the same command goes on from here");
            return Ok(Exit::Interrupted);
        }
        Err(Halted::Failed(failure)) => return Err(*failure),
        Ok(brought) => brought,
    };
    if brought.ideas.is_empty() {
        return Err(nothing_came(&dir, &brought.end)?);
    }
    let batch = Batch {
        conversation: memory.file(brought.conversation.as_ref())?,
        ..batch(&dir, &there, &brought, manner)
    };
    dir.put(&batch)?;
    Outcome::of(&dir, batch).and_before(begun).with(brought).tell(&there, count, output)
}

/// The folder and the conversation stay as they were. Whoever calls again asks again, but for what a budget has cut off:
/// that goes on.
fn nothing_came(dir: &IdeasDir, end: &End) -> Result<Failure, Failure> {
    if !matches!(end, End::OverBudget(_)) {
        dir.put(&Batch { edition: dir.edition() + 1, ..Batch::default() })?;
    }
    let why = end.why().unwrap_or_default();
    Ok(Failure::failed(format!("no idea came: {why}")).hint(
        "what is in the folder is as it was; `treebeam agents check` asks the agent something",
    ))
}

/// What becomes of the ideas that are there.
#[derive(Clone, Copy)]
enum Manner {
    /// They stay, and others come beside them.
    Add,
    /// They are set aside, and others take their place.
    Replace,
}

impl Manner {
    /// What a call before this one had begun to regenerate is what this one was to.
    const fn of(args: &IdeasArgs, finished: Option<&Batch>, there: &There) -> Self {
        let regenerated = matches!(finished, Some(Batch { aside: Some(_), .. }));
        if args.force_regenerate_ideas && !regenerated && !there.own.is_empty() {
            return Self::Replace;
        }
        Self::Add
    }
}

/// The configuration with these flags over it.
fn config(here: &Path, args: &IdeasArgs) -> Result<Config, Failure> {
    let config = Config::load(here, args.config.config.as_deref())?;
    let own = json!({
        "ideas_per_node": args.count,
        "ideas_context_strategy": args.context_strategy,
        "idea_conversation_mode": args.conversation_mode,
        "ideas_context_files": args.ideas_context_files,
    });
    Ok(config.with_flags(&[serde_json::to_value(&args.spending)?, own])?)
}

fn baseline(here: &Path, args: &IdeasArgs) -> Result<Option<String>, Failure> {
    let Some(file) = &args.baseline_context else { return Ok(None) };
    Ok(Some(input::text(&here.join(file), &file.display().to_string(), BASELINE_BYTES)?))
}

/// Why nothing came that is no agent's answer.
enum Halted {
    Interrupted,
    Failed(Box<Failure>),
}

impl<E: Into<Failure>> From<E> for Halted {
    fn from(error: E) -> Self {
        let failure = error.into();
        if failure.is_interruption() { Self::Interrupted } else { Self::Failed(Box::new(failure)) }
    }
}

/// What is asked, and of whom.
struct Asked<'a> {
    home: &'a Home,
    config: &'a Config,
    meaning: &'a Meaning,
    missing: NonZeroU32,
    dir: &'a IdeasDir,
}

impl Asked<'_> {
    fn propose(
        &self,
        there: &There,
        memory: &Memory,
        added: Option<&str>,
        consent: Consent,
    ) -> Result<Brought, Halted> {
        let Self { home, config, meaning, missing, dir } = self;
        let seats = begin::seats(home, config, &[Role::Ideas])?;
        begin::must_be_able(&seats, &[Role::Ideas])?;
        preflight::must_remember(memory.before.mode, &seats)?;
        let asked = Meaning { ideas_per_node: *missing, control: None, ..(*meaning).clone() };
        let once = Reach { max_depth: 1, ..config.reach(&Reach::default()) };
        begin::must_be_affordable(config, &asked, &once, &seats, consent)?;
        let told = config.prompts(&home.repo.toplevel)?;
        let workplace = Workplace::make(home, dir, &seats)?;
        let plan = self.plan(&seats, &workplace)?;
        let onlooker = Onlooker::new(None);
        let agent = SeenAgent { agent: Door::open(&plan, &onlooker)?, lines: Lines::None };
        let wanted = Wanted {
            count: missing.get(),
            scope: meaning.dedupe_scope,
            commit: &home.repo.head,
            there: &there.known(),
            added,
            protect: &meaning.protected(),
            commands: &meaning.commands(),
            edition: dir.edition(),
            before: &memory.before,
        };
        let (repo, prompts) = (&workplace.repo, &told.prompts);
        let brought =
            alone::propose(&wanted, Ports { repo, agent: &agent, interrupt: &CtrlC, prompts });
        workplace.leave();
        Ok(brought?)
    }

    /// Who answers, and within which bounds: as for any question outside of a run.
    fn plan(&self, seats: &[Seat<'_>], workplace: &Workplace) -> Result<Plan, Failure> {
        let top = &self.home.repo.toplevel;
        let reach = self.config.reach(&Reach::default());
        Ok(Plan {
            crew: crew::crew(seats)?,
            prices: self.config.prices(),
            budget: Budget::from(&reach),
            limits: Limits::from(&reach),
            patience: Patience::BRIEF,
            calls: Calls::Folder(store::make_runs_root(top)?.with_file_name("calls")),
            replays: None,
            surroundings: Surroundings::Folder(workplace.folder.clone()),
        })
    }
}

/// What is to be done with what came.
fn batch(dir: &IdeasDir, there: &There, brought: &Brought, manner: Manner) -> Batch {
    let first = match manner {
        Manner::Replace => 1,
        Manner::Add => there.next_number(),
    };
    let files = (first..).zip(&brought.ideas).map(|(number, text)| NewFile {
        name: idea::file_name(number, &idea::title(text)),
        text: text.clone(),
    });
    let names = || there.own.iter().map(|file| file.name.clone()).collect();
    let aside = match manner {
        Manner::Replace => Some(Aside { folder: free(dir.folder()), names: names() }),
        Manner::Add => None,
    };
    let edition = dir.edition() + 1;
    Batch { aside, files: files.collect(), conversation: None, edition }
}

/// A folder that is not there yet, by the time.
fn free(folder: &Path) -> String {
    let now = Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let named = |name: String| PathBuf::from(SET_ASIDE).join(name).display().to_string();
    let mut name = named(now.to_string());
    let mut number = 2;
    while folder.join(&name).exists() {
        name = named(format!("{now}-{number}"));
        number += 1;
    }
    name
}
