//! All runs in short, for the page that lists them. What was told of a run is remembered with what it was made from: a run that
//! did not change is not read again, however many pages ask. Ages are told anew each time.

use super::hub::lock;
use crate::command::list;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;
use treebeam_core::id::RunId;
use treebeam_edge::store::{self, RunDir, lease};
use treebeam_view::list::{Digest, Listed};

/// The runs that could be read.
#[derive(Default)]
pub(super) struct Listing(Mutex<BTreeMap<RunId, Known>>);

struct Known {
    made_from: MadeFrom,
    began: Option<Timestamp>,
    digest: Digest,
}

/// All that a digest follows from, seen from outside.
#[derive(PartialEq, Eq)]
struct MadeFrom {
    journal: Option<Outside>,
    manifest: Option<Outside>,
    runner: Option<String>,
}

/// How long a file is, and since when it is as it is.
type Outside = (u64, SystemTime);

impl Listing {
    /// These runs, as they are now.
    pub(super) fn of(&self, runs: Vec<(RunId, RunDir)>, now: Timestamp) -> Vec<(RunId, Listed)> {
        // Held while runs are read: whoever asks meanwhile waits for what is found. Runs that are gone are forgotten.
        let mut known = lock(&self.0);
        let mut before = std::mem::take(&mut *known);
        let listed = runs.into_iter().map(|(id, run)| {
            let (began, found) = match look(&run, before.remove(&id)) {
                Ok(found) => {
                    let told = (found.began, Ok(found.digest.clone()));
                    known.insert(id.clone(), found);
                    told
                }
                Err(why) => (store::began(&run), Err(why)),
            };
            let listed = Listed { run: id.to_string(), age: list::age(began, now), found };
            (id, listed)
        });
        listed.collect()
    }
}

/// What is known of a run, or else what is found in it.
fn look(run: &RunDir, known: Option<Known>) -> Result<Known, String> {
    // Looked at before the run is read: what is written meanwhile makes a difference the next time.
    let made_from = MadeFrom::of(run);
    if let Some(known) = known.filter(|known| known.made_from == made_from) {
        return Ok(known);
    }
    let digest = list::digest(run, made_from.runner.clone())?;
    Ok(Known { made_from, began: store::began(run), digest })
}

impl MadeFrom {
    fn of(run: &RunDir) -> Self {
        let (journal, manifest) = (outside(&run.journal()), outside(&run.manifest()));
        Self { journal, manifest, runner: lease::runner(run) }
    }
}

fn outside(path: &Path) -> Option<Outside> {
    let found = fs::metadata(path).ok()?;
    Some((found.len(), found.modified().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::hub::tests::begun;
    use super::*;
    use jiff::ToSpan as _;
    use std::fs::File;
    use std::time::Duration;

    #[test]
    fn a_run_is_read_again_when_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (id, run) = begun(folder.path());
        let (listing, now) = (Listing::default(), Timestamp::now());
        let listed = |now| {
            let mut all = listing.of(vec![(id.clone(), run.clone())], now);
            all.pop().unwrap().1
        };
        let first = listed(now);
        assert_eq!(first.word(), "resumable");
        // Nothing of it can be seen from outside: whoever reads it finds it spoilt.
        let journal = run.journal();
        let (text, seen) = (fs::read(&journal).unwrap(), outside(&journal).unwrap());
        fs::write(&journal, "x".repeat(text.len())).unwrap();
        File::options().append(true).open(&journal).unwrap().set_modified(seen.1).unwrap();
        let second = listed(now + 1.hour());
        assert_eq!(second.word(), "resumable", "it was read again");
        assert_eq!(second.age, first.age.map(|age| age + Duration::from_hours(1)));
        fs::write(&journal, "x".repeat(text.len() + 1)).unwrap();
        assert_eq!(listed(now).word(), "unreadable");
        // One that cannot be read is tried each time.
        fs::write(&journal, &text).unwrap();
        assert_eq!(listed(now).word(), "resumable");
        assert!(listing.of(Vec::new(), now).is_empty() && lock(&listing.0).is_empty());
    }
}
