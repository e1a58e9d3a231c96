//! A run on disk: the journal that is the truth, the manifest that is a short cut to it, the lease that says whose it is.
//! Nothing here decides anything about the search; it only keeps what was decided.
//!
//! # Layout
//! [`layout`] names the files, [`opening`] creates and opens runs, `loading` makes a state of what is on disk, [`journal`] appends and reads events, [`manifest`]
//! writes and reads the whole state, [`lease`] keeps a second runner out and lets go of a lost run, [`files`] are the run's other files,
//! [`fence`] keeps one that has lost its run from everything else, [`removal`] takes whole runs away and finds what was never finished.
//! [`following`] keeps up with a run that another process runs, [`inbox`] is how other processes talk to the one that runs a run.
//! [`record_file`] is the door to all files of a run, `journal_guard` notices a journal that is damaged while its run goes on, [`chain`] is how far lines are chained.
//! `agreement` compares journal and manifest, `unnamed` is a run that is being made, `wire` owns the shapes on disk and their versions, `durable` the order of writing, syncing and renaming.

mod agreement;
pub mod chain;
pub(crate) mod durable;
mod error;
pub mod fence;
pub mod files;
pub mod following;
mod healing;
pub mod inbox;
pub mod journal;
mod journal_guard;
pub mod layout;
pub mod lease;
mod loading;
pub mod manifest;
mod note;
pub mod opening;
#[cfg(unix)]
#[path = "unix.rs"]
mod os;
#[cfg(not(unix))]
#[path = "windows.rs"]
mod os;
pub mod probe;
pub mod record_file;
mod recorded;
pub mod removal;
mod unnamed;
mod wire;

pub use agreement::disagreement;
pub(crate) use durable::sync_dir;
pub use error::{StoreError, Whereabouts, cure};
pub use fence::Fenced;
pub(crate) use files::{DigestWriter, copy_and_digest};
pub use files::{RunFiles, copy_out, digest};
pub use layout::{
    RunDir, began, is_runs_root, make_named_runs_root, make_runs_root, runs, runs_root,
};
pub use lease::Claim;
pub use note::Note;
pub use opening::{Force, OpenStats, Opened, Store, open_to_read, replay_journal};
pub use recorded::{RecordedDigests, recorded_digests};
