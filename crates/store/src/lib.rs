//! A run on disk: its journal, the manifest as a short cut to it, and the lease that gives it to
//! one process. Decides nothing about the search; it only stores what was decided.
//!
//! # Layout
//! - Files: [`layout`] names them, [`mod@files`] reads and writes those of a run, [`record_file`]
//!   opens them safely, [`atomic_file`] writes them whole, [`mod@artifact_copies`] finds copies of
//!   artifacts.
//! - Record: [`journal`] appends and reads events, [`manifest`] writes and reads the whole state,
//!   [`mod@disk_format`] has their formats and versions, [`transition`] lists every step that
//!   changes the disk.
//! - Runs: [`opening`] creates and opens them, [`mod@loading`] builds the state from disk,
//!   [`mod@open_note`] tells how a run was opened, [`mod@unnamed_run`] handles a run that is being
//!   made, [`run_follower`] follows one that another process runs, [`removal`] removes runs and
//!   finds unfinished ones.
//! - Ownership: [`lease`] keeps a second process out, [`fence`] stops one that has lost its run.
//! - Checks: [`mod@journal_guard`] notices damage of a journal while its run goes on,
//!   [`journal_chain`] surveys its digests, [`mod@manifest_check`] compares it with the manifest,
//!   [`mod@recorded_digests`] reads the digests of recorded files, [`probe`] tests a folder.
//! - User's files: [`inbox`] carries messages to a run, [`user_state`] keeps the secret that signs
//!   them, [`ideas_dir`] writes ideas, [`input`] and [`env_file`] read what the user provides.

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
pub use lease::{ForcePolicy, RunClaim};
pub use loading::OpenStats;
pub use manifest_check::find_manifest_mismatch;
pub use open_note::OpenNote;
pub use opening::{OpenedRun, RunStore, open_to_read, replay_journal};
pub use recorded_digests::{RecordedDigests, read_recorded_digests};
