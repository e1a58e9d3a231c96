//! `treebeam score`: compares two results CSVs as a run would, and shows what it makes of them. Reads only, starts no
//! process, and needs no repository.

use super::Output;
use crate::cli::ScoreArgs;
use crate::config::Config;
use crate::config::score::{Preset, Primary};
use crate::failure::{Exit, Failure};
use crate::terminal;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::panic;
use std::path::Path;
use std::thread;
use treebeam_core::gate::{self, Verdict};
use treebeam_core::policy::{ChosenBy, Meaning};
use treebeam_core::rank;
use treebeam_core::score::{Judgement, judge};
use treebeam_core::sweep::{Role, Selection, Sweep, SweepError};
use treebeam_edge::input;
use treebeam_run::figures;
use treebeam_view::score::{Scoring, Side};

pub(super) fn run(here: &Path, args: &ScoreArgs, output: Output) -> Result<Exit, Failure> {
    let limit = args.limit.as_deref().map(limit).transpose()?;
    let config = config(here, args)?;
    let meaning = Meaning {
        sweep_config_limit: limit.and_then(NonZeroU32::new),
        ..config.meaning(Meaning::default())?
    };
    let primary = config.primary.as_ref();
    let read = |file: &Path| read(here, file, limit, &meaning);
    let (baseline, candidate) = side_by_side(|| read(&args.baseline), || read(&args.candidate))?;
    baseline.require(&meaning.score).map_err(|error| unread(error, primary))?;
    if meaning.score.primary_chosen_by == ChosenBy::User {
        candidate.require_primary(&meaning.score).map_err(|error| unread(error, primary))?;
    }
    let judgement = judge(&baseline, &baseline, &candidate, &meaning, baseline.rows_used())?;
    let verdict = Verdict {
        checks: gate::results(&judgement.scored, &meaning),
        rank_score: rank::score(&judgement.scored.vs_root),
    };
    let scoring = Scoring {
        baseline: Side::of(&baseline, &meaning.score),
        candidate: Side::of(&candidate, &meaning.score),
        limit,
        policy: &meaning.score,
        judgement: &judgement,
        verdict: &verdict,
    };
    match output {
        Output::Json => terminal::json(&document(&scoring))?,
        Output::Text => {
            terminal::show(&treebeam_view::score::score(&scoring, terminal::colour()))?;
        }
    }
    if let Some(note) = treebeam_view::score::note(&scoring) {
        terminal::note(&note);
    }
    if let Some(hint) = treebeam_view::score::hint(&scoring) {
        terminal::hint(&hint);
    }
    Ok(Exit::Done)
}

/// N, if it is one.
fn limit(text: &str) -> Result<u32, Failure> {
    text.parse().map_err(|_| {
        let what = format!("`--limit {text}`: it must be a whole number from 0 to {}", u32::MAX);
        Failure::failed(what).hint("leave it out to compare all rows")
    })
}

/// The configuration with what the flags say about the metrics.
fn config(here: &Path, args: &ScoreArgs) -> Result<Config, Failure> {
    let mut config = Config::load(here, args.config.config.as_deref())?;
    let flag =
        |name: &str, value: &str, why: String| Failure::usage(format!("`--{name} {value}`: {why}"));
    if let Some(file) = &args.metrics {
        config = config.with_metrics(here, file)?;
    }
    let mut said = Vec::new();
    if let Some(name) = &args.preset {
        name.parse::<Preset>().map_err(|why| flag("preset", name, why))?;
        config = config.without_score();
        said.push(json!({ "score": { "preset": name } }));
    }
    if let Some(text) = &args.primary {
        let primary = text.parse().map_err(|why| flag("primary", text, why))?;
        config.primary = Some(primary);
    }
    Ok(config.with_flags(&said)?)
}

fn read(here: &Path, file: &Path, limit: Option<u32>, meaning: &Meaning) -> Result<Sweep, Failure> {
    if file == Path::new("-") {
        let failure = Failure::usage("`-`: standard input is not read");
        return Err(failure.hint("write it to a file first; a file of that name is `./-`"));
    }
    let name = file.display().to_string();
    let reader = input::open(&here.join(file), &name)?;
    Ok(Sweep::read(reader, &name, limit, &meaning.score)?)
}

/// A column's name may have a colon in it: that a direction was meant shows only where there is no such column.
fn unread(error: SweepError, primary: Option<&Primary>) -> Failure {
    let no_primary = matches!(error, SweepError::NoColumn { role: Role::Primary, .. });
    let failure = Failure::from(error);
    if no_primary && primary.is_some_and(Primary::has_no_direction_after_its_colon) {
        return failure.hint("a direction after `:` is only `higher` or `lower`");
    }
    failure
}

/// Does two things at once: a large pair of files takes the time of one.
fn side_by_side<T: Send>(
    one: impl FnOnce() -> Result<T, Failure>,
    other: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<(T, T), Failure> {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        let other = other.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        Ok((one?, other?))
    })
}

fn document(scoring: &Scoring<'_>) -> Value {
    let Scoring { baseline, candidate, limit, policy, judgement, verdict } = scoring;
    let Judgement { scored, vs_parent, .. } = judgement;
    let mut document = figures::details(vs_parent);
    document["schema"] = json!("treebeam.score/1");
    document["baseline"] = json!(baseline.name);
    document["candidate"] = json!(candidate.name);
    document["baseline_form"] = form(baseline);
    document["candidate_form"] = form(candidate);
    document["limit"] = json!(limit);
    document["primary"] = json!({
        "column": policy.primary,
        "direction": policy.primary_direction(),
    });
    document["completeness"] = json!(scored.completeness);
    document["gate"] = figures::verdict(verdict);
    document
}

fn form(side: &Side<'_>) -> Value {
    let selection = match side.selection {
        Selection::All => "all",
        Selection::First(_) => "first",
        Selection::ById(_) => "by_id",
    };
    json!({
        "has_ids": side.has_ids,
        "selection": selection,
        "ragged_rows": side.ragged_rows,
        "duplicate_ids": side.duplicate_ids,
        "rows_not_ok": side.rows_not_ok,
    })
}
