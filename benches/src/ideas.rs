//! Measures prompts of idea generators, and their file lookups, late in a long run against early.
//!
//! Neither may grow with the run.

use crate::search::{Shape, started};
use crate::world::{Cleanup, ThinWorld, Told};
use crate::{Outcome, gauge, row};
use treebeam_core::event::RunStarted;
use treebeam_core::policy::{ContextStrategy, FixedSettings, RunLimits};
use treebeam_store::RunStore;

/// 2,000 evals on 50 depths.
const IDEAS_RUN_SHAPE: Shape = Shape { ideas: 40, beam: 1, cleanup: Cleanup::Works };
const IDEAS_RUN_DEPTHS: u32 = 50;
/// Index of an early node: deep enough for all full and short parts of a prompt.
const EARLY_NODE_INDEX: usize = 20;

/// Prints the length of the deepest node's question, and the number of file lookups for it.
pub(crate) fn ideas() -> Outcome<()> {
    for strategy in [ContextStrategy::NodePlusAncestors, ContextStrategy::GlobalPriorIdeas] {
        let told = search(strategy)?;
        let (early, late) = (told.get(EARLY_NODE_INDEX), told.last());
        let (Some(early), Some(late)) = (early, late) else {
            return Err(format!("{strategy}: the run ended after {} nodes", told.len()).into());
        };
        let name = format!("{strategy}, 50 depths of 40 ideas");
        let ratio = f64::from(late.chars) / f64::from(early.chars);
        row(&format!("{name}: nodes that were asked"), &told.len().to_string());
        row(
            &format!("{name}: question of the deepest node"),
            &format!("{} characters", late.chars),
        );
        row(&format!("{name}: the same against depth {EARLY_NODE_INDEX}"), &format!("{ratio:.2}"));
        row(
            &format!("{name}: what was said before, in it"),
            &format!(
                "{} characters, at most {}",
                late.memory,
                RunLimits::default().idea_history_max_chars
            ),
        );
        row(
            &format!("{name}: files looked at for it, and at depth {EARLY_NODE_INDEX}"),
            &format!("{} and {}", late.looked, early.looked),
        );
    }
    Ok(())
}

fn search(strategy: ContextStrategy) -> Outcome<Vec<Told>> {
    let folder = gauge::in_memory()?;
    let world = ThinWorld::new(IDEAS_RUN_SHAPE.cleanup);
    let begun = started(IDEAS_RUN_SHAPE)?;
    let meaning = FixedSettings { ideas_context_strategy: strategy, ..begun.meaning };
    let reach = RunLimits { max_depth: IDEAS_RUN_DEPTHS, ..begun.reach };
    let begun = RunStarted { meaning, reach, ..begun };
    let (mut store, state) = RunStore::create(folder.path(), &begun)?;
    treebeam_run::drive_run(state, world.ports(), &mut store, &mut |_, _| {})?;
    Ok(world.told())
}
