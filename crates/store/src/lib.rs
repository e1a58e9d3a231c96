//! A run on disk: the journal that is the truth, the manifest that is a short cut to it, the lease that says whose it is.
//! Nothing here decides anything about the search; it only keeps what was decided.
//!
//! # Layout
//! [`layout`] names the files, [`opening`] creates and opens runs, `loading` makes a state of what
//! is on disk, [`journal`] appends and reads events, [`manifest`] writes and reads the whole state,
//! [`lease`] keeps a second runner out and lets go of a lost run, [`files`] are the run's other
//! files, [`fence`] keeps one that has lost its run from everything else, [`removal`] takes whole
//! runs away and finds what was never finished. [`run_follower`] keeps up with a run that another
//! process runs, [`inbox`] is how other processes talk to the one that runs a run. [`record_file`]
//! is the door to all files of a run, `journal_guard` notices a journal that is damaged while its
//! run goes on, [`journal_chain`] is how far lines are chained. `manifest_check` compares journal
//! and manifest, `unnamed_run` is a run that is being made, `disk_format` owns the shapes on disk
//! and their versions, `atomic_file` the order of writing, syncing and renaming.

mod artifact_copies;
pub mod atomic_file;
pub mod clock;
mod disk_format;
pub mod env_file;
mod error;
pub mod fence;
pub mod files;
pub mod ideas_dir;
pub mod inbox;
pub mod input;
pub mod journal;
pub mod journal_chain;
mod journal_guard;
pub mod layout;
pub mod lease;
mod loading;
pub mod manifest;
mod manifest_check;
mod open_note;
pub mod opening;
#[cfg(unix)]
#[path = "unix.rs"]
mod os;
#[cfg(not(unix))]
#[path = "windows.rs"]
mod os;
pub mod probe;
pub mod record_file;
mod recorded_digests;
pub mod removal;
pub mod run_follower;
pub mod transition;
mod unnamed_run;
pub mod user_state;

pub use atomic_file::sync_dir;
pub use error::{OwnerLocation, StoreError, hint_for_io_error};
pub use fence::FencedPort;
pub use files::{DigestWriter, copy_and_digest};
pub use files::{RunFiles, copy_out, digest_file};
pub use layout::{
    RunDir, is_runs_root, list_runs, make_named_runs_root, make_runs_root, run_start_time,
    runs_root,
};
pub use lease::RunClaim;
pub use manifest_check::find_manifest_mismatch;
pub use open_note::OpenNote;
pub use opening::{ForcePolicy, OpenStats, OpenedRun, RunStore, open_to_read, replay_journal};
pub use recorded_digests::{RecordedDigests, read_recorded_digests};
