//! Lists all runs in short, cached by the state of their files.
//!
//! An unchanged run is not read again, however many pages request the list. Ages are computed each
//! time.

use super::hub::lock_mutex;
use crate::command::list;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;
use treebeam_core::id::RunId;
use treebeam_store::{RunDir, lease};
use treebeam_view::list::{ListedRun, RunDigest};

/// Cached digests of the runs that could be read.
#[derive(Default)]
pub(super) struct RunListingCache(Mutex<BTreeMap<RunId, CachedDigest>>);

struct CachedDigest {
    sources: DigestSources,
    began: Option<Timestamp>,
    digest: RunDigest,
}

/// State of the files that a digest depends on, as visible without reading them.
#[derive(PartialEq, Eq)]
struct DigestSources {
    journal: Option<FileMark>,
    manifest: Option<FileMark>,
    runner: Option<String>,
}

/// Length and modification time of a file.
type FileMark = (u64, SystemTime);

impl RunListingCache {
    /// Lists the given runs as they are now.
    pub(super) fn list_runs(
        &self,
        runs: Vec<(RunId, RunDir)>,
        now: Timestamp,
    ) -> Vec<(RunId, ListedRun)> {
        // Locked while runs are read: concurrent requests wait for the result. Entries of runs that
        // are gone are dropped.
        let mut known = lock_mutex(&self.0);
        let mut before = std::mem::take(&mut *known);
        let listed = runs.into_iter().map(|(id, run)| {
            let (began, found) = match load_digest(&run, before.remove(&id)) {
                Ok(found) => {
                    let listing = (found.began, Ok(found.digest.clone()));
                    known.insert(id.clone(), found);
                    listing
                }
                Err(why) => (treebeam_store::run_start_time(&run), Err(why)),
            };
            let listed =
                ListedRun { run: id.to_string(), age: list::run_age(began, now), digest: found };
            (id, listed)
        });
        listed.collect()
    }
}

/// Returns the cached digest of a run, or reads it.
fn load_digest(run: &RunDir, known: Option<CachedDigest>) -> Result<CachedDigest, String> {
    // Taken before the run is read, so that later writes differ from it the next time.
    let made_from = DigestSources::from_run(run);
    if let Some(known) = known.filter(|known| known.sources == made_from) {
        return Ok(known);
    }
    let digest = list::load_run_digest(run, made_from.runner.clone())?;
    Ok(CachedDigest { sources: made_from, began: treebeam_store::run_start_time(run), digest })
}

impl DigestSources {
    fn from_run(run: &RunDir) -> Self {
        let (journal, manifest) =
            (read_file_mark(&run.journal_path()), read_file_mark(&run.manifest_path()));
        Self { journal, manifest, runner: lease::describe_owner(run) }
    }
}

fn read_file_mark(path: &Path) -> Option<FileMark> {
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
        let (listing, now) = (RunListingCache::default(), Timestamp::now());
        let listed = |now| {
            let mut all = listing.list_runs(vec![(id.clone(), run.clone())], now);
            all.pop().unwrap().1
        };
        let first = listed(now);
        assert_eq!(first.status_word(), "resumable");
        // Same length and time: the damage is invisible without reading the file.
        let journal = run.journal_path();
        let (text, seen) = (fs::read(&journal).unwrap(), read_file_mark(&journal).unwrap());
        fs::write(&journal, "x".repeat(text.len())).unwrap();
        File::options().append(true).open(&journal).unwrap().set_modified(seen.1).unwrap();
        let second = listed(now + 1.hour());
        assert_eq!(second.status_word(), "resumable", "it was read again");
        assert_eq!(second.age, first.age.map(|age| age + Duration::from_hours(1)));
        fs::write(&journal, "x".repeat(text.len() + 1)).unwrap();
        assert_eq!(listed(now).status_word(), "unreadable");
        // An unreadable run is tried each time.
        fs::write(&journal, &text).unwrap();
        assert_eq!(listed(now).status_word(), "resumable");
        assert!(listing.list_runs(Vec::new(), now).is_empty() && lock_mutex(&listing.0).is_empty());
    }
}
