//! `treebeam diff`: shows the changes of a node or an eval, by git or as recorded. Reads only.
//!
//! The recorded diff is used where the commit is gone.

use super::OutputFormat;
use super::chosen_place::ChosenPlace;
use crate::cli::DiffArgs;
use crate::failure::{CommandExit, CommandFailure};
use crate::run_location::RunLocation;
use crate::terminal;
use serde_json::json;
use std::borrow::Cow;
use treebeam_core::facts::{Eval, Facts, Node, NodeOrigin, Stage};
use treebeam_core::id::{CodePlace, Commit, NodeId, RunPath};
use treebeam_core::path::{self, CANDIDATE_DIFF_FILE, MAX_CANDIDATE_DIFF_BYTES};
use treebeam_git::{DiffColour, GitRepo};
use treebeam_run::port::FileStore as _;
use treebeam_store::RunFiles;
use treebeam_view::score::ColourMode;

/// Maximum size of a recorded diff.
const MAX_RECORDED_DIFF_BYTES: usize = 64 << 20;

pub(super) fn run_diff(
    found: &RunLocation,
    args: &DiffArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let ChosenPlace { state, place } = ChosenPlace::find(found, &args.item.id)?;
    let asked = DiffRequest::new(&state, place, args.root)?;
    let paint = match (output, terminal::stdout_colour()) {
        (OutputFormat::Text, ColourMode::On) => DiffColour::Coloured,
        (OutputFormat::Text | OutputFormat::Json, _) => DiffColour::Plain,
    };
    let diff = match diff_by_git(found, &state, &asked, paint)? {
        Some(diff) => diff,
        None => read_recorded_diff(found, &asked)?,
    };
    match output {
        OutputFormat::Json => terminal::print_json(&json!({
            "schema": "treebeam.diff/1",
            "run_id": state.run,
            "id": place,
            "against": CodePlace::Node(asked.against.id),
            "commit": asked.commit,
            "diff": String::from_utf8_lossy(&diff),
        }))?,
        OutputFormat::Text => terminal::print_bytes(&diff).map(drop)?,
    }
    Ok(CommandExit::Done)
}

/// Two code states, and the eval between them, if it is a single one.
struct DiffRequest<'a> {
    place: CodePlace,
    commit: Commit,
    against: &'a Node,
    made_by: Option<Cow<'a, Eval>>,
}

impl<'a> DiffRequest<'a> {
    fn new(facts: &'a Facts, place: CodePlace, root: bool) -> Result<Self, CommandFailure> {
        let (commit, parent, made_by) = match place {
            CodePlace::Node(id) => node_code_state(facts, id)?,
            CodePlace::Candidate(id) => {
                eval_code_state(facts, facts.eval(id).ok_or_else(|| no_such_place(place))?)?
            }
        };
        let against = if root { Some(NodeId::ROOT) } else { parent };
        let against = against.ok_or_else(|| {
            CommandFailure::usage(format!("`{place}` is the root: it has no parent"))
                .with_hint("name another node, or an eval")
        })?;
        let against = facts.node(against).ok_or_else(|| no_such_place(CodePlace::Node(against)))?;
        let made_by = made_by.filter(|eval| eval.parent == against.id);
        Ok(Self { place, commit, against, made_by })
    }
}

type CodeState<'a> = (Commit, Option<NodeId>, Option<Cow<'a, Eval>>);

fn node_code_state(facts: &Facts, id: NodeId) -> Result<CodeState<'_>, CommandFailure> {
    let node = facts.node(id).ok_or_else(|| no_such_place(CodePlace::Node(id)))?;
    let made_by = match node.origin {
        NodeOrigin::Root => None,
        NodeOrigin::Promoted { from, .. } => facts.eval(from),
    };
    Ok((node.commit.clone(), node.parent(), made_by))
}

fn eval_code_state<'a>(
    facts: &Facts,
    eval: Cow<'a, Eval>,
) -> Result<CodeState<'a>, CommandFailure> {
    let place = CodePlace::Candidate(eval.id);
    if let Some(work) = eval.candidate() {
        return Ok((work.commit, Some(eval.parent), Some(eval)));
    }
    Err(match &eval.stage {
        Stage::Failed { failure, .. } => {
            let message = failure.message.lines().next().unwrap_or_default();
            let what = format!("`{place}` has no diff: it failed at {}: {message}", failure.stage);
            let answers = path::attempt_folder(eval.id, eval.candidate_attempt());
            CommandFailure::failed(what).with_hint(format!(
                "what the coder answered lies in `{answers}` of the run directory"
            ))
        }
        Stage::Queued
        | Stage::Implementing(_)
        | Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..)
        | Stage::Scored(_)
        | Stage::Decided(..)
        | Stage::Unfinished { .. }
        | Stage::Superseded(..)
        | Stage::SetAside => CommandFailure::failed(format!("`{place}` has no diff yet"))
            .with_hint(format!("`treebeam show {} {place}` says how it stands", facts.run)),
    })
}

fn no_such_place(place: CodePlace) -> CommandFailure {
    CommandFailure::usage(format!("there is no `{place}`"))
}

/// Returns git's diff; `None` without a repository or with a missing commit.
fn diff_by_git(
    found: &RunLocation,
    facts: &Facts,
    asked: &DiffRequest<'_>,
    paint: DiffColour,
) -> Result<Option<Vec<u8>>, CommandFailure> {
    let Some(user) = &found.repo else { return Ok(None) };
    let repo = GitRepo::new(user.clone(), found.run.root(), facts.run.clone())?;
    let from = &asked.against.commit;
    if !repo.has_commit(from)? || !repo.has_commit(&asked.commit)? {
        return Ok(None);
    }
    Ok(Some(repo.render_diff(from, &asked.commit, paint)?))
}

/// Returns the recorded diff, and prints a note on its source.
fn read_recorded_diff(
    found: &RunLocation,
    asked: &DiffRequest<'_>,
) -> Result<Vec<u8>, CommandFailure> {
    let (place, short) = (asked.place, asked.commit.short_name());
    let missing =
        format!("`{place}` cannot be compared: its commit {short} is not in the repository");
    let work = asked.made_by.as_deref().and_then(|eval| Some((eval, eval.candidate()?)));
    let Some((eval, work)) = work else {
        let hint = "what was recorded is against its parent: leave `--root` out";
        return Err(CommandFailure::failed(missing).with_hint(hint));
    };
    let (files, folder) =
        (RunFiles::new(found.run.clone()), path::attempt_folder(eval.id, eval.candidate_attempt()));
    let whole = folder.join(CANDIDATE_DIFF_FILE);
    if let Some(diff) = files.find_file(&whole, MAX_RECORDED_DIFF_BYTES)? {
        terminal::print_note(&format!(
            "commit {short} is gone; this is `{whole}`, the whole change"
        ));
        // The diff is cut between two characters, which have up to 4 bytes.
        if diff.len() + 4 > MAX_CANDIDATE_DIFF_BYTES {
            terminal::print_note(&format!("it was cut at {} MiB", MAX_CANDIDATE_DIFF_BYTES >> 20));
        }
        return Ok(diff);
    }
    let file = round_diff_path(&folder, work.rounds.saturating_sub(1));
    let diff = files.read_file(&file, MAX_RECORDED_DIFF_BYTES).map_err(|error| {
        CommandFailure::failed(format!("{missing}, and no diff is recorded: {}", error.full_text()))
    })?;
    terminal::print_note(&format!(
        "commit {short} is gone; this is `{file}`, as the coder wrote it"
    ));
    if work.rounds > 1 {
        let first = round_diff_path(&folder, 0);
        terminal::print_note(&format!(
            "what earlier rounds changed is not in it: they begin with `{first}`"
        ));
    }
    Ok(diff)
}

/// Returns the path of the coder's diff of one round.
fn round_diff_path(folder: &RunPath, number: u32) -> RunPath {
    folder.join(&format!("patch_round_{number}.diff"))
}
