//! The best node against the root on results that the search never saw, as far as they were judged there. Decides nothing.

use crate::failure::Failure;
use treebeam_core::facts::Facts;
use treebeam_core::id::{NodeId, RunPath};
use treebeam_core::path;
use treebeam_core::score::{Details, compare};
use treebeam_core::sweep::Sweep;
use treebeam_edge::input;
use treebeam_edge::store::RunDir;

/// Root and best, on what the search saw and on what it did not.
pub(in crate::command) struct Holdout {
    pub(in crate::command) seen: Details,
    pub(in crate::command) unseen: Details,
}

impl Holdout {
    /// What is kept with a run; none where its best node was never judged.
    pub(in crate::command) fn read(run: &RunDir, facts: &Facts) -> Result<Option<Self>, Failure> {
        let nodes = [NodeId::ROOT, facts.best()];
        let unseen = nodes.map(path::holdout);
        if facts.best() == NodeId::ROOT || !unseen.iter().all(|file| is_there(run, file)) {
            return Ok(None);
        }
        let artifact = |id| Some(facts.baseline_of(facts.node(id)?)?.path.clone());
        let [Some(root), Some(best)] = nodes.map(artifact) else { return Ok(None) };
        let seen = details(run, facts, &[root, best])?;
        Ok(Some(Self { seen, unseen: details(run, facts, &unseen)? }))
    }
}

fn is_there(run: &RunDir, file: &RunPath) -> bool {
    run.root().join(file.as_str()).is_file()
}

/// The second against the first.
fn details(run: &RunDir, facts: &Facts, [root, best]: &[RunPath; 2]) -> Result<Details, Failure> {
    let meaning = &facts.meaning;
    let read = |file: &RunPath| {
        let reader = input::open(&run.root().join(file.as_str()), file.as_str())?;
        Ok::<_, Failure>(Sweep::read(reader, file.as_str(), meaning.limit(), &meaning.score)?)
    };
    Ok(compare(&read(root)?, &read(best)?, &meaning.score)?)
}
