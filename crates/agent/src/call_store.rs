//! The recorded calls of a run on disk, which together are the ledger of its spending.
//!
//! - `<key>.json` is an answer.
//! - `<key>.pending` is the worst-case cost of a call under way.
//! - `<key>.lost-<n>` is what was spent on a call without an answer.
//! - `<key>.old-<n>` is the answer to a question that is no longer asked.
//! - `<key>.forgotten` says that the provider does not know the answer to continue; it costs
//!   nothing.
//! - `<key>.raw` is what came in place of an answer.
//!
//! Limits and prices are not known here.

mod call_sums;

use super::question::AgentQuestion;
use super::server_id::ServerId;
use super::settings::AgentSettings;
use call_sums::CallSums;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use treebeam_core::event::FileDigest;
use treebeam_core::id::{CodePlace, Sha256};
use treebeam_core::path;
use treebeam_run::port::{AgentReply, AgentRole, Continuation, Cost, PortError};
use treebeam_store::record_file::{self, RecordKind};
use treebeam_store::{DigestWriter, RunDir, atomic_file};

/// The longest key.
const MAX_CALL_KEY_BYTES: usize = 100;

/// The place where calls are kept.
#[derive(Clone, Debug)]
pub enum CallStore {
    /// In the folders of a run's nodes and evals.
    Run(RunDir),
    /// All in one folder.
    Folder(PathBuf),
}

/// An amount of money and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallAmount {
    /// The money, as far as prices are known.
    pub cost: Cost,
    /// The tokens.
    pub tokens: u64,
}

impl CallAmount {
    /// Subtracts an amount, down to zero.
    pub(super) const fn saturating_sub(self, other: Self) -> Self {
        let tokens = self.tokens.saturating_sub(other.tokens);
        Self { tokens, cost: self.cost.saturating_sub(other.cost) }
    }
}

impl AddAssign for CallAmount {
    fn add_assign(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost = self.cost + other.cost;
    }
}

/// Result of asking for the turn to reserve from a shared budget.
#[derive(Debug)]
pub(super) enum BudgetTurn {
    /// No other process reserves here.
    Undisputed,
    /// This process has the turn, until the file is dropped.
    Ours(#[expect(dead_code, reason = "held for its lock")] File),
    /// Another process has the turn.
    Later,
}

/// The stored result for a question.
#[derive(Debug)]
pub(super) enum StoredAnswer {
    /// No answer is stored.
    None,
    /// The answer to the question.
    Reply(AgentReply),
    /// The provider has forgotten the answer to continue from; with its message.
    Forgotten(String),
    /// The answer to another question of that key.
    Other(AgentReply),
    /// The stored answer is unreadable, for this reason.
    Damaged(String),
}

/// Returns true if a key can name a file.
#[must_use]
pub fn is_call_key(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !key.is_empty() && key.len() <= MAX_CALL_KEY_BYTES && key.chars().all(plain)
}

/// The stored message of a provider that has forgotten the answer to continue from.
#[derive(Deserialize)]
struct ForgottenAnswer {
    digest: Sha256,
    why: String,
}

/// The stored document of an answered call. It borrows all texts, because they can be long.
#[derive(Serialize)]
struct CallDocument<'a> {
    /// The first field, so that it is in the head of the file.
    amount: CallAmount,
    answered_at: Timestamp,
    asked_at: Timestamp,
    digest: Sha256,
    key: &'a str,
    reply: &'a AgentReply,
    request: CallRequest<'a>,
    role: AgentRole,
    round: u32,
    schema: &'static str,
    sha256: Sha256,
}

#[derive(Serialize)]
struct CallRequest<'a> {
    #[serde(flatten)]
    settings: Value,
    prompt: &'a str,
    continues: Option<&'a Continuation>,
}

/// The part of a stored call that is read again.
#[derive(Deserialize)]
struct StoredReply {
    digest: Sha256,
    reply: AgentReply,
    sha256: Sha256,
}

impl CallStore {
    /// Returns the folder of a question's files.
    fn folder_of(&self, question: &AgentQuestion) -> PathBuf {
        match (self, question.place) {
            (Self::Folder(folder), _) => folder.clone(),
            (Self::Run(run), Some(CodePlace::Node(id))) => {
                run.file_path(&path::node_ideas_folder(id).join("calls"))
            }
            (Self::Run(run), Some(CodePlace::Candidate(id))) => {
                run.file_path(&path::eval_folder(id).join("calls"))
            }
            (Self::Run(run), None) => run.root().join("calls"),
        }
    }

    fn file_of(&self, question: &AgentQuestion, kind: &str) -> PathBuf {
        self.folder_of(question).join(format!("{}.{kind}", question.key))
    }

    /// Looks up the stored result for a question.
    pub(super) fn find_answer(&self, question: &AgentQuestion) -> Result<StoredAnswer, PortError> {
        let file = self.file_of(question, "json");
        let bytes = match read_call_file(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.find_forgotten(question);
            }
            Err(error) => return Err(io_error("read", &file)(error)),
            Ok(bytes) => bytes,
        };
        let record: StoredReply = match serde_json::from_slice(&bytes) {
            Ok(record) => record,
            Err(error) => return Ok(StoredAnswer::Damaged(error.to_string())),
        };
        Ok(if record.sha256 != reply_digest(&record.reply) {
            StoredAnswer::Damaged("its checksum is wrong".to_owned())
        } else if record.digest == question.digest() {
            let kept_as = self.file_digest(&file, Sha256::hash_bytes(&bytes));
            StoredAnswer::Reply(AgentReply { kept_as, ..record.reply })
        } else {
            StoredAnswer::Other(record.reply)
        })
    }

    /// Looks up a "forgotten" record. An unreadable one counts as none: asking again is free.
    fn find_forgotten(&self, question: &AgentQuestion) -> Result<StoredAnswer, PortError> {
        let file = self.file_of(question, "forgotten");
        let bytes = match read_call_file(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StoredAnswer::None),
            Err(error) => return Err(io_error("read", &file)(error)),
            Ok(bytes) => bytes,
        };
        let known = serde_json::from_slice(&bytes).ok();
        let known = known.filter(|known: &ForgottenAnswer| known.digest == question.digest());
        Ok(known.map_or(StoredAnswer::None, |known| StoredAnswer::Forgotten(known.why)))
    }

    /// Records that a provider has forgotten the answer to continue from, with its message.
    pub(super) fn keep_forgotten(
        &self,
        question: &AgentQuestion,
        why: &str,
    ) -> Result<(), PortError> {
        let (key, from) = (&question.key, question.continues_from());
        let digest = question.digest();
        let document = json!({ "key": key, "continues": from, "digest": digest, "why": why });
        self.write_document(question, "forgotten", &document).map(drop)
    }

    /// Returns the digest of a file with its path in the run. None outside of a run.
    fn file_digest(&self, file: &Path, sha256: Sha256) -> Option<FileDigest> {
        let Self::Run(run) = self else { return None };
        let parts = file.strip_prefix(run.root()).ok()?.iter().map(OsStr::to_str);
        let path = parts.collect::<Option<Vec<_>>>()?.join("/").parse().ok()?;
        Some(FileDigest { path, sha256 })
    }

    /// Stores an answer durably, its name included. Returns the digest of its file.
    pub(super) fn keep_reply(
        &self,
        question: &AgentQuestion,
        settings: &AgentSettings,
        reply: &AgentReply,
        asked_at: Timestamp,
    ) -> Result<Option<FileDigest>, PortError> {
        let tokens = reply.usage.map_or(0, |usage| usage.total_tokens());
        let call = CallDocument {
            amount: CallAmount { tokens, cost: reply.cost.unwrap_or_default() },
            answered_at: Timestamp::now(),
            asked_at,
            digest: question.digest(),
            key: &question.key,
            reply,
            request: CallRequest {
                settings: settings.to_document(),
                prompt: &question.prompt,
                continues: question.continues.as_ref(),
            },
            role: question.role,
            round: question.round,
            schema: "treebeam.call/1",
            sha256: reply_digest(reply),
        };
        let sha256 = self.write_document(question, "json", &call)?;
        Ok(self.file_digest(&self.file_of(question, "json"), sha256))
    }

    /// Stores what came in place of an answer, and returns the path to show.
    pub(super) fn keep_raw(
        &self,
        question: &AgentQuestion,
        raw: &[u8],
    ) -> Result<String, PortError> {
        let file = self.file_of(question, "raw");
        self.write_call_file(question, "raw", |file| file.write_all(raw))?;
        let above = match self {
            Self::Run(run) => Some(run.root()),
            Self::Folder(folder) => folder.parent().and_then(Path::parent),
        };
        let shown = above.and_then(|above| file.strip_prefix(above).ok()).unwrap_or(&file);
        let parts = shown.iter().map(|part| part.to_string_lossy());
        Ok(parts.collect::<Vec<_>>().join("/"))
    }

    /// Renames the stored answer to the next free `old` name.
    pub(super) fn set_aside(&self, question: &AgentQuestion) -> Result<(), PortError> {
        self.rename_numbered(question, "json", "old")
    }

    /// Reserves the worst-case cost of a call. An earlier reservation of that key counts as lost.
    pub(super) fn reserve(
        &self,
        question: &AgentQuestion,
        worst: CallAmount,
    ) -> Result<(), PortError> {
        self.mark_lost(question)?;
        self.write_document(question, "pending", &json!({ "amount": worst })).map(drop)
    }

    /// Removes the reservation: nothing was spent, or the spending is recorded elsewhere.
    pub(super) fn release(&self, question: &AgentQuestion) -> Result<(), PortError> {
        let file = self.file_of(question, "pending");
        atomic_file::remove_if_present(&file).map_err(io_error("remove", &file))
    }

    /// Turns the reservation into spending for good.
    pub(super) fn mark_lost(&self, question: &AgentQuestion) -> Result<(), PortError> {
        self.rename_numbered(question, "pending", "lost")
    }

    /// Records what was spent on a call without an answer.
    pub(super) fn mark_amount_lost(
        &self,
        question: &AgentQuestion,
        spent: CallAmount,
    ) -> Result<(), PortError> {
        self.write_document(question, "pending", &json!({ "amount": spent }))?;
        self.mark_lost(question)
    }

    /// Tries to get the turn to reserve. A run belongs to one process: there it is undisputed.
    pub(super) fn try_take_turn(&self) -> Result<BudgetTurn, PortError> {
        let Self::Folder(folder) = self else { return Ok(BudgetTurn::Undisputed) };
        let path = folder.join("lock");
        let open = || {
            create_synced_dir(folder)?;
            record_file::open_lock(&path)
        };
        let file = open().map_err(io_error("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(BudgetTurn::Ours(file)),
            Err(TryLockError::WouldBlock) => Ok(BudgetTurn::Later),
            Err(TryLockError::Error(error)) => Err(io_error("lock", &path)(error)),
        }
    }

    /// Returns all that was spent so far, and may have been spent on unanswered calls.
    ///
    /// # Errors
    /// When a folder cannot be listed.
    pub fn total_spent(&self) -> Result<CallAmount, PortError> {
        let CallSums { mut answered, unanswered } = self.sum_spending()?;
        answered += unanswered;
        Ok(answered)
    }

    /// Returns the spending on calls without an answer: cut off, failed, or under way.
    ///
    /// # Errors
    /// When a folder cannot be listed.
    pub fn spent_unanswered(&self) -> Result<CallAmount, PortError> {
        Ok(self.sum_spending()?.unanswered)
    }

    /// Returns true if this run has a recorded answer of this server. Skips unreadable files.
    pub(super) fn has_answer_of(&self, server: &ServerId) -> bool {
        let Self::Run(_) = self else { return false };
        let gave = |file: &Path| read_server(file).as_ref() == Some(server);
        let folders = self.all_folders().unwrap_or_default();
        folders.iter().any(|folder| {
            let names = list_file_names(folder).unwrap_or_default();
            names.iter().any(|name| is_answer_file(name) && gave(&folder.join(name)))
        })
    }

    /// Returns all folders that have calls.
    fn all_folders(&self) -> Result<Vec<PathBuf>, PortError> {
        let run = match self {
            Self::Folder(folder) => return Ok(vec![folder.clone()]),
            Self::Run(run) => run,
        };
        let mut folders = vec![run.root().join("calls")];
        for parent in ["node_ideas", "eval"] {
            let parent = run.root().join(parent);
            let below = list_file_names(&parent).map_err(io_error("list", &parent))?;
            folders.extend(below.into_iter().map(|name| parent.join(name).join("calls")));
        }
        Ok(folders)
    }

    fn sum_spending(&self) -> Result<CallSums, PortError> {
        let mut sums = CallSums::default();
        for folder in self.all_folders()? {
            sums.add_folder(&folder).map_err(io_error("list", &folder))?;
        }
        Ok(sums)
    }

    /// Renames `<key>.<from>`, if it exists, to the first free `<key>.<to>-<n>`.
    fn rename_numbered(
        &self,
        question: &AgentQuestion,
        from: &str,
        to: &str,
    ) -> Result<(), PortError> {
        let old = self.file_of(question, from);
        if !old.exists() {
            return Ok(());
        }
        let free = (1_u32..).map(|n| self.file_of(question, &format!("{to}-{n}")));
        let Some(new) = free.into_iter().find(|file| !file.exists()) else { return Ok(()) };
        let folder = self.folder_of(question);
        let moved = fs::rename(&old, &new).and_then(|()| atomic_file::sync_dir(&folder));
        moved.map_err(io_error("rename", &old))
    }

    fn write_document(
        &self,
        question: &AgentQuestion,
        kind: &str,
        document: &impl Serialize,
    ) -> Result<Sha256, PortError> {
        let mut sha256 = None;
        self.write_call_file(question, kind, |file| {
            let mut file = BufWriter::new(DigestWriter::new(file));
            serde_json::to_writer(&mut file, document)?;
            let written = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            sha256 = Some(written.finish());
            Ok(())
        })?;
        sha256.ok_or_else(|| PortError::new(format!("cannot write the {kind} of a call")))
    }

    fn write_call_file(
        &self,
        question: &AgentQuestion,
        kind: &str,
        content: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), PortError> {
        let (folder, file) = (self.folder_of(question), self.file_of(question, kind));
        let write = || {
            create_synced_dir(&folder)?;
            let begun_in = match self {
                Self::Run(run) => run.root(),
                Self::Folder(folder) => folder,
            };
            atomic_file::replace_from(begun_in, &file, content)?;
            atomic_file::sync_dir(&folder)
        };
        write().map_err(io_error("write", &file))
    }
}

/// Creates a folder durably: its name survives a power cut.
fn create_synced_dir(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.is_dir()).collect();
    fs::create_dir_all(folder)?;
    missing
        .into_iter()
        .filter_map(Path::parent)
        .filter(|parent| !parent.as_os_str().is_empty())
        .try_for_each(atomic_file::sync_dir)
}

/// Computes the digest of an answer as it is written.
fn reply_digest(reply: &AgentReply) -> Sha256 {
    Sha256::hash_bytes(json!(reply).to_string().as_bytes())
}

fn read_call_file(file: &Path) -> io::Result<Vec<u8>> {
    record_file::read_record(file, RecordKind::RecordedCall)
}

fn list_file_names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().into_string().ok());
    let names: io::Result<Vec<Option<String>>> = entries.map(name).collect();
    Ok(names?.into_iter().flatten().collect())
}

/// Returns true if a file of this name holds an answer.
fn is_answer_file(name: &str) -> bool {
    let kind = name.split_once('.').map(|(_, kind)| kind);
    kind.is_some_and(|kind| kind == "json" || kind.starts_with("old-"))
}

/// Reads the server that gave the answer in a file.
fn read_server(file: &Path) -> Option<ServerId> {
    #[derive(Deserialize)]
    struct RecordedCall {
        request: Value,
    }
    let call: RecordedCall = serde_json::from_slice(&read_call_file(file).ok()?).ok()?;
    Some(ServerId::from_document(&call.request))
}

fn io_error(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> PortError {
    let what = format!("cannot {doing} `{}`", path.display());
    move |error| PortError::new(what).with_cause(error)
}
