//! `treebeam score`: compares two results CSVs as a run would, and shows the score.
//!
//! Reads only, starts no process, and needs no repository.

use super::OutputFormat;
use crate::cli::ScoreArgs;
use crate::config::Config;
use crate::config::score::{PresetName, PrimaryMetric};
use crate::failure::{CommandExit, CommandFailure};
use crate::terminal;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::panic;
use std::path::Path;
use std::thread;
use treebeam_core::gate::{self, GateVerdict};
use treebeam_core::policy::{ChosenBy, FixedSettings};
use treebeam_core::rank;
use treebeam_run::figures;
use treebeam_score::compare::{ScoringDetails, score_candidate};
use treebeam_score::sweep_csv::{ColumnRole, RowSelection, Sweep, SweepError};
use treebeam_store::input;
use treebeam_view::score::{ScoreReport, SweepSide};

pub(super) fn run_score(
    here: &Path,
    args: &ScoreArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let limit = args.limit.as_deref().map(parse_limit).transpose()?;
    let config = load_score_config(here, args)?;
    let settings = FixedSettings {
        sweep_config_limit: limit.and_then(NonZeroU32::new),
        ..config.fixed_settings(FixedSettings::default())?
    };
    let primary = config.primary.as_ref();
    let read = |file: &Path| read_sweep(here, file, limit, &settings);
    let (baseline, candidate) = run_both(|| read(&args.baseline), || read(&args.candidate))?;
    baseline
        .require_columns(&settings.score)
        .map_err(|error| explain_sweep_error(error, primary))?;
    if settings.score.primary_chosen_by == ChosenBy::User {
        candidate
            .require_primary(&settings.score)
            .map_err(|error| explain_sweep_error(error, primary))?;
    }
    let judgement =
        score_candidate(&baseline, &baseline, &candidate, &settings, baseline.rows_used())?;
    let verdict = GateVerdict {
        checks: gate::check_results(&judgement.scored, &settings),
        rank_score: rank::rank_score(&judgement.scored.vs_root),
    };
    let scoring = ScoreReport {
        baseline: SweepSide::from_sweep(&baseline, &settings.score),
        candidate: SweepSide::from_sweep(&candidate, &settings.score),
        limit,
        policy: &settings.score,
        judgement: &judgement,
        verdict: &verdict,
    };
    match output {
        OutputFormat::Json => terminal::print_json(&render_score_json(&scoring))?,
        OutputFormat::Text => {
            terminal::print_text(&treebeam_view::score::render_score(
                &scoring,
                terminal::stdout_colour(),
            ))?;
        }
    }
    if let Some(note) = treebeam_view::score::pairing_note(&scoring) {
        terminal::print_note(&note);
    }
    if let Some(hint) = treebeam_view::score::column_hint(&scoring) {
        terminal::print_hint(&hint);
    }
    Ok(CommandExit::Done)
}

/// Parses the value of `--limit`.
fn parse_limit(text: &str) -> Result<u32, CommandFailure> {
    text.parse().map_err(|_| {
        let what = format!("`--limit {text}`: it must be a whole number from 0 to {}", u32::MAX);
        CommandFailure::failed(what).with_hint("leave it out to compare all rows")
    })
}

/// Loads the configuration with the flags about metrics over it.
fn load_score_config(here: &Path, args: &ScoreArgs) -> Result<Config, CommandFailure> {
    let mut config = Config::load(here, args.config.config.as_deref())?;
    let flag = |name: &str, value: &str, why: String| {
        CommandFailure::usage(format!("`--{name} {value}`: {why}"))
    };
    if let Some(file) = &args.metrics {
        config = config.with_metrics_file(here, file)?;
    }
    let mut said = Vec::new();
    if let Some(name) = &args.preset {
        name.parse::<PresetName>().map_err(|why| flag("preset", name, why))?;
        config = config.without_score();
        said.push(json!({ "score": { "preset": name } }));
    }
    if let Some(text) = &args.primary {
        let primary = text.parse().map_err(|why| flag("primary", text, why))?;
        config.primary = Some(primary);
    }
    Ok(config.with_flags(&said)?)
}

fn read_sweep(
    here: &Path,
    file: &Path,
    limit: Option<u32>,
    settings: &FixedSettings,
) -> Result<Sweep, CommandFailure> {
    if file == Path::new("-") {
        let failure = CommandFailure::usage("`-`: standard input is not read");
        return Err(failure.with_hint("write it to a file first; a file of that name is `./-`"));
    }
    let name = file.display().to_string();
    let reader = input::open_input(&here.join(file), &name)?;
    Ok(Sweep::read_csv(reader, &name, limit, &settings.score)?)
}

/// Adds a hint to a missing primary column. A column's name may contain a colon: a mistyped
/// direction shows only where there is no such column.
fn explain_sweep_error(error: SweepError, primary: Option<&PrimaryMetric>) -> CommandFailure {
    let no_primary = matches!(error, SweepError::NoColumn { role: ColumnRole::Primary, .. });
    let failure = CommandFailure::from(error);
    if no_primary && primary.is_some_and(PrimaryMetric::has_bad_direction) {
        return failure.with_hint("a direction after `:` is only `higher` or `lower`");
    }
    failure
}

/// Runs two functions concurrently: a large pair of files takes the time of one.
fn run_both<T: Send>(
    one: impl FnOnce() -> Result<T, CommandFailure>,
    other: impl FnOnce() -> Result<T, CommandFailure> + Send,
) -> Result<(T, T), CommandFailure> {
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, other)?;
        let one = one();
        let other = other.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        Ok((one?, other?))
    })
}

fn render_score_json(scoring: &ScoreReport<'_>) -> Value {
    let ScoreReport { baseline, candidate, limit, policy, judgement, verdict } = scoring;
    let ScoringDetails { scored, vs_parent, .. } = judgement;
    let mut document = figures::comparison_json(vs_parent);
    document["schema"] = json!("treebeam.score/1");
    document["baseline"] = json!(baseline.name);
    document["candidate"] = json!(candidate.name);
    document["baseline_form"] = render_form_json(baseline);
    document["candidate_form"] = render_form_json(candidate);
    document["limit"] = json!(limit);
    document["primary"] = json!({
        "column": policy.primary,
        "direction": policy.primary_direction(),
    });
    document["completeness"] = json!(scored.completeness);
    document["gate"] = figures::verdict_json(verdict);
    document
}

fn render_form_json(side: &SweepSide<'_>) -> Value {
    let selection = match side.selection {
        RowSelection::All => "all",
        RowSelection::First(_) => "first",
        RowSelection::ById(_) => "by_id",
    };
    json!({
        "has_ids": side.has_ids,
        "selection": selection,
        "ragged_rows": side.ragged_rows,
        "duplicate_ids": side.duplicate_ids,
        "rows_not_ok": side.rows_not_ok,
    })
}
