//! `treebeam diff`: what a node or an eval changed, as git prints it; where its commit is gone, as it was recorded.
//! Reads only.

use super::Output;
use super::chosen::Chosen;
use crate::cli::DiffArgs;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::wiring::Found;
use serde_json::json;
use std::borrow::Cow;
use treebeam_core::facts::{Eval, Facts, Node, Origin, Stage};
use treebeam_core::id::{Commit, NodeId, Place, RunPath};
use treebeam_core::path::{self, CANDIDATE_DIFF, CANDIDATE_DIFF_BYTES};
use treebeam_edge::git::{GitRepo, Paint};
use treebeam_edge::store::RunFiles;
use treebeam_run::port::Files as _;
use treebeam_view::score::Colour;

/// The longest recorded diff that is read.
const MOST_RECORDED: usize = 64 << 20;

pub(super) fn run(found: &Found, args: &DiffArgs, output: Output) -> Result<Exit, Failure> {
    let Chosen { state, place } = Chosen::find(found, &args.item.id)?;
    let asked = Asked::new(&state, place, args.root)?;
    let paint = match (output, terminal::colour()) {
        (Output::Text, Colour::On) => Paint::Coloured,
        (Output::Text | Output::Json, _) => Paint::Plain,
    };
    let diff = match made_by_git(found, &state, &asked, paint)? {
        Some(diff) => diff,
        None => recorded(found, &asked)?,
    };
    match output {
        Output::Json => terminal::json(&json!({
            "schema": "treebeam.diff/1",
            "run_id": state.run,
            "id": place,
            "against": Place::Node(asked.against.id),
            "commit": asked.commit,
            "diff": String::from_utf8_lossy(&diff),
        }))?,
        Output::Text => terminal::offer(&diff).map(drop)?,
    }
    Ok(Exit::Done)
}

/// Two code states, and the eval that made one from the other, if it was one eval.
struct Asked<'a> {
    place: Place,
    commit: Commit,
    against: &'a Node,
    made_by: Option<Cow<'a, Eval>>,
}

impl<'a> Asked<'a> {
    fn new(facts: &'a Facts, place: Place, root: bool) -> Result<Self, Failure> {
        let (commit, parent, made_by) = match place {
            Place::Node(id) => of_node(facts, id)?,
            Place::Candidate(id) => of_eval(facts, facts.eval(id).ok_or_else(|| gone(place))?)?,
        };
        let against = if root { Some(NodeId::ROOT) } else { parent };
        let against = against.ok_or_else(|| {
            Failure::usage(format!("`{place}` is the root: it has no parent"))
                .hint("name another node, or an eval")
        })?;
        let against = facts.node(against).ok_or_else(|| gone(Place::Node(against)))?;
        let made_by = made_by.filter(|eval| eval.parent == against.id);
        Ok(Self { place, commit, against, made_by })
    }
}

type CodeState<'a> = (Commit, Option<NodeId>, Option<Cow<'a, Eval>>);

fn of_node(facts: &Facts, id: NodeId) -> Result<CodeState<'_>, Failure> {
    let node = facts.node(id).ok_or_else(|| gone(Place::Node(id)))?;
    let made_by = match node.origin {
        Origin::Root => None,
        Origin::Promoted { from, .. } => facts.eval(from),
    };
    Ok((node.commit.clone(), node.parent(), made_by))
}

fn of_eval<'a>(facts: &Facts, eval: Cow<'a, Eval>) -> Result<CodeState<'a>, Failure> {
    let place = Place::Candidate(eval.id);
    if let Some(work) = eval.work() {
        return Ok((work.commit, Some(eval.parent), Some(eval)));
    }
    Err(match &eval.stage {
        Stage::Failed { failure, .. } => {
            let message = failure.message.lines().next().unwrap_or_default();
            let what = format!("`{place}` has no diff: it failed at {}: {message}", failure.stage);
            let answers = path::attempt(eval.id, eval.drafted_in());
            Failure::failed(what)
                .hint(format!("what the coder answered lies in `{answers}` of the run directory"))
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
        | Stage::SetAside => Failure::failed(format!("`{place}` has no diff yet"))
            .hint(format!("`treebeam show {} {place}` says how it stands", facts.run)),
    })
}

fn gone(place: Place) -> Failure {
    Failure::usage(format!("there is no `{place}`"))
}

/// What git makes of it; none where there is no repository, or not both commits.
fn made_by_git(
    found: &Found,
    facts: &Facts,
    asked: &Asked<'_>,
    paint: Paint,
) -> Result<Option<Vec<u8>>, Failure> {
    let Some(user) = &found.repo else { return Ok(None) };
    let repo = GitRepo::new(user.clone(), found.run.root(), facts.run.clone())?;
    let from = &asked.against.commit;
    if !repo.has(from)? || !repo.has(&asked.commit)? {
        return Ok(None);
    }
    Ok(Some(repo.shown_diff(from, &asked.commit, paint)?))
}

/// What was kept of it, with a word on where that is from.
fn recorded(found: &Found, asked: &Asked<'_>) -> Result<Vec<u8>, Failure> {
    let (place, short) = (asked.place, asked.commit.short());
    let missing =
        format!("`{place}` cannot be compared: its commit {short} is not in the repository");
    let work = asked.made_by.as_deref().and_then(|eval| Some((eval, eval.work()?)));
    let Some((eval, work)) = work else {
        let hint = "what was recorded is against its parent: leave `--root` out";
        return Err(Failure::failed(missing).hint(hint));
    };
    let (files, folder) =
        (RunFiles::new(found.run.clone()), path::attempt(eval.id, eval.drafted_in()));
    let whole = folder.join(CANDIDATE_DIFF);
    if let Some(diff) = files.find(&whole, MOST_RECORDED)? {
        terminal::note(&format!("commit {short} is gone; this is `{whole}`, the whole change"));
        // It is cut between two characters.
        if diff.len() + 4 > CANDIDATE_DIFF_BYTES {
            terminal::note(&format!("it was cut at {} MiB", CANDIDATE_DIFF_BYTES >> 20));
        }
        return Ok(diff);
    }
    let file = round(&folder, work.rounds.saturating_sub(1));
    let diff = files.read(&file, MOST_RECORDED).map_err(|error| {
        Failure::failed(format!("{missing}, and no diff is recorded: {}", error.in_full()))
    })?;
    terminal::note(&format!("commit {short} is gone; this is `{file}`, as the coder wrote it"));
    if work.rounds > 1 {
        let first = round(&folder, 0);
        terminal::note(&format!(
            "what earlier rounds changed is not in it: they begin with `{first}`"
        ));
    }
    Ok(diff)
}

/// What the coder wrote in one round.
fn round(folder: &RunPath, number: u32) -> RunPath {
    folder.join(&format!("patch_round_{number}.diff"))
}
