//! From configuration and flags to what a run means and how far it goes. A resumed run keeps its meaning; its reach takes what was said anew.

use crate::cli::{MeaningFlags, ReachFlags, Scope};
use crate::config::{Compared, Config};
use crate::failure::Failure;
use treebeam_core::policy::{DedupeScope, Meaning, Reach};

/// The meaning of a new run.
pub(crate) fn meaning(flags: &MeaningFlags, config: &Config) -> Result<Meaning, Failure> {
    Ok(said(flags, config.meaning(Meaning::default())?))
}

/// What the flags make of a meaning.
fn said(flags: &MeaningFlags, before: Meaning) -> Meaning {
    Meaning {
        ideas_per_node: flags.ideas_per_node.unwrap_or(before.ideas_per_node),
        beam_width: flags.beam_width.unwrap_or(before.beam_width),
        sweep_config_limit: flags.sweep_config_limit.or(before.sweep_config_limit),
        dedupe_scope: flags.dedupe_scope.map_or(before.dedupe_scope, Into::into),
        ..before
    }
}

/// Refuses flags and a configuration that would change what the results of a run mean.
pub(crate) fn same_meaning(
    flags: &MeaningFlags,
    config: &Config,
    run: &Meaning,
) -> Result<(), Failure> {
    same_flags(flags, run)?;
    same_config(config, run)
}

fn same_config(config: &Config, run: &Meaning) -> Result<(), Failure> {
    let Some(origin) = &config.origin else { return Ok(()) };
    let Some(Compared { key, run, asked }) = config.changed(run)? else { return Ok(()) };
    let place = origin.place_of(&key);
    let what = format!(
        "{place}: {asked} would change what the results of this run mean: it began with {run}"
    );
    Err(Failure::usage(what).hint("set the key back, or start another run"))
}

fn same_flags(flags: &MeaningFlags, run: &Meaning) -> Result<(), Failure> {
    let asked = said(flags, run.clone());
    let limit = |meaning: &Meaning| {
        meaning.sweep_config_limit.map_or("all".to_owned(), |limit| limit.to_string())
    };
    let rows = [
        ("--ideas-per-node", run.ideas_per_node.to_string(), asked.ideas_per_node.to_string()),
        ("--beam-width", run.beam_width.to_string(), asked.beam_width.to_string()),
        ("--sweep-config-limit", limit(run), limit(&asked)),
        ("--dedupe-scope", run.dedupe_scope.to_string(), asked.dedupe_scope.to_string()),
    ];
    let changed = rows.into_iter().find(|(_, run, asked)| run != asked);
    changed.map_or(Ok(()), |(flag, run, asked)| {
        let what = format!(
            "`{flag} {asked}` would change what the results of this run mean: it began with {run}"
        );
        Err(Failure::usage(what).hint("leave the flag out, or start another run"))
    })
}

/// The reach that the flags make of another one.
pub(crate) fn reach(flags: &ReachFlags, before: &Reach) -> Reach {
    Reach {
        max_depth: flags.max_depth.unwrap_or(before.max_depth),
        max_total_idea_evals: flags.max_total_idea_evals.or(before.max_total_idea_evals),
        stop_on_empty_frontier: flags
            .stop_on_empty_frontier
            .unwrap_or(before.stop_on_empty_frontier),
        strict_fail_depth: flags.strict_fail_depth.unwrap_or(before.strict_fail_depth),
        max_parallel_evals: flags.max_parallel_evals.unwrap_or(before.max_parallel_evals),
        max_parallel_per_node: flags.max_parallel_per_node.or(before.max_parallel_per_node),
        sweep_max_parallel: flags.sweep_max_parallel.or(before.sweep_max_parallel),
        max_review_rounds: before.max_review_rounds,
        keep_rejected_worktrees: flags
            .keep_rejected_worktrees
            .unwrap_or(before.keep_rejected_worktrees),
        keep_failed_artifacts: flags.keep_failed_artifacts.unwrap_or(before.keep_failed_artifacts),
    }
}

impl From<Scope> for DedupeScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::NodePlusAncestors => Self::NodePlusAncestors,
            Scope::Global => Self::Global,
            Scope::None => Self::None,
        }
    }
}
