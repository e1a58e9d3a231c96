//! Compares the best node with the root on held-out results, if they exist. Decides nothing.

use crate::failure::CommandFailure;
use treebeam_core::facts::Facts;
use treebeam_core::id::{NodeId, RunPath};
use treebeam_core::path;
use treebeam_score::compare::{ComparisonDetails, compare_sweeps};
use treebeam_score::sweep_csv::Sweep;
use treebeam_store::RunDir;
use treebeam_store::input;

/// Comparisons of root and best node, on seen and on held-out results.
pub(in crate::command) struct HoldoutComparison {
    pub(in crate::command) seen: ComparisonDetails,
    pub(in crate::command) unseen: ComparisonDetails,
}

impl HoldoutComparison {
    /// Loads the held-out results of a run; `None` if its best node has none.
    pub(in crate::command) fn load(
        run: &RunDir,
        facts: &Facts,
    ) -> Result<Option<Self>, CommandFailure> {
        let nodes = [NodeId::ROOT, facts.best_node()];
        let unseen = nodes.map(path::holdout_file);
        if facts.best_node() == NodeId::ROOT || !unseen.iter().all(|file| has_run_file(run, file)) {
            return Ok(None);
        }
        let artifact = |id| Some(facts.baseline_of(facts.node(id)?)?.path.clone());
        let [Some(root), Some(best)] = nodes.map(artifact) else { return Ok(None) };
        let seen = compare_results(run, facts, &[root, best])?;
        Ok(Some(Self { seen, unseen: compare_results(run, facts, &unseen)? }))
    }
}

fn has_run_file(run: &RunDir, file: &RunPath) -> bool {
    run.root().join(file.as_str()).is_file()
}

/// Compares the second results with the first.
fn compare_results(
    run: &RunDir,
    facts: &Facts,
    [root, best]: &[RunPath; 2],
) -> Result<ComparisonDetails, CommandFailure> {
    let settings = &facts.settings;
    let read = |file: &RunPath| {
        let reader = input::open_input(&run.root().join(file.as_str()), file.as_str())?;
        Ok::<_, CommandFailure>(Sweep::read_csv(
            reader,
            file.as_str(),
            settings.config_limit(),
            &settings.score,
        )?)
    };
    Ok(compare_sweeps(&read(root)?, &read(best)?, &settings.score)?)
}
