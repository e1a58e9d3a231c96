//! Reads and writes `refs/treebeam/<run>`, a blob that names the last line of a run's journal. The
//! blob is written when a depth closes and when the run stops. The ref is outside of `refs/heads`,
//! is in no commit, and is removed with the run. It reveals a journal that was cut at a line end or
//! rebuilt by anything that does not write this ref too.

use super::refs::journal_ref;
use super::{GitRepo, gc};
use serde::{Deserialize, Serialize};
use treebeam_core::id::{RunId, Sha256};
use treebeam_process::ChildInput;
use treebeam_run::port::{JournalTip, PortError};

/// Maximum size of the blob, in bytes.
const MAX_BLOB_BYTES: usize = 4 << 10;

/// Content of the ref's blob, as JSON.
#[derive(Serialize, Deserialize)]
struct JournalBlob {
    run: RunId,
    seq: u64,
    digest: Sha256,
}

impl GitRepo {
    /// Points the run's journal ref at this line; a repetition changes nothing. If a gc of the
    /// user's deletes the blob meanwhile, it is written again: a dangling ref would break the
    /// repository.
    pub(super) fn set_journal_ref(&self, tip: &JournalTip) -> Result<(), PortError> {
        for _ in 0..gc::MAX_GC_REPEATS {
            self.user.await_gc();
            let lull = self.user.pack_state();
            match self.point_journal_ref(tip) {
                Err(error) if gc::is_gc_loss(&error.full_text()) => continue,
                Err(error) => return Err(error),
                Ok(()) if self.user.is_gc_free_since(lull) => return Ok(()),
                Ok(()) => self.user.await_gc(),
            }
            if self.journal_tip().ok().flatten().as_ref() == Some(tip) {
                return Ok(());
            }
        }
        let what = format!("`{}` is lost to a `git gc` again and again", journal_ref(&self.run));
        Err(PortError::new(what).with_hint("let the other git end, then go on"))
    }

    fn point_journal_ref(&self, tip: &JournalTip) -> Result<(), PortError> {
        let JournalTip { seq, digest } = *tip;
        let blob = JournalBlob { run: self.run.clone(), seq, digest };
        let mut text = serde_json::to_vec(&blob)
            .map_err(|error| PortError::new("cannot write the journal's ref").with_cause(error))?;
        text.push(b'\n');
        let git = &self.user.git;
        let write = git.sealed_call(&self.shared_target(), &["hash-object", "-w", "--stdin"]);
        let object: String = write
            .with_subject(&self.run)
            .input(ChildInput::from_bytes(text))
            .run_checked()?
            .parse_word()?;
        let name = journal_ref(&self.run);
        let set =
            git.sealed_call(&self.shared_target(), &["update-ref", "--no-deref", &name, &object]);
        set.with_subject(&self.run).with_locks([self.ref_lock(&name)]).run_checked().map(drop)
    }

    /// Returns the line that the run's journal ref names; `None` without such a ref.
    ///
    /// # Errors
    /// When git fails, or the ref points at something else.
    pub fn journal_tip(&self) -> Result<Option<JournalTip>, PortError> {
        let name = journal_ref(&self.run);
        let question = ChildInput::from_bytes(format!("contents {name}\n").into_bytes());
        let call =
            self.user.git.sealed_call(&self.shared_target(), &["cat-file", "--batch-command"]);
        let call = call.with_subject(&self.run).input(question).keep_stdout(MAX_BLOB_BYTES);
        let text = call.run_checked()?.full_text()?;
        let Some((head, content)) = text.split_once('\n') else { return Ok(None) };
        if head.ends_with(" missing") {
            return Ok(None);
        }
        let wrong = || PortError::new(format!("`{name}` does not name a line of a journal"));
        let blob: JournalBlob =
            serde_json::from_str(content).map_err(|error| wrong().with_cause(error))?;
        let JournalBlob { run, seq, digest } = blob;
        if run == self.run { Ok(Some(JournalTip { seq, digest })) } else { Err(wrong()) }
    }

    /// Returns true if the run has a journal ref.
    ///
    /// # Errors
    /// When git fails.
    pub fn has_journal_ref(&self) -> Result<bool, PortError> {
        let name = journal_ref(&self.run);
        let call = self
            .user
            .git
            .sealed_call(&self.shared_target(), &["show-ref", "--verify", "--quiet", &name]);
        let answer = call.with_subject(&self.run).run()?;
        match answer.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            Some(_) | None => Err(answer.to_error()),
        }
    }

    /// Removes the run's journal ref; a missing one is no error.
    ///
    /// # Errors
    /// When it still exists afterwards.
    pub fn remove_journal_ref(&self) -> Result<(), PortError> {
        let name = journal_ref(&self.run);
        let call = self
            .user
            .git
            .sealed_call(&self.shared_target(), &["update-ref", "--no-deref", "-d", &name]);
        let call = call.with_subject(&self.run).with_locks([self.ref_lock(&name)]);
        self.user.packed_refs.run_with_lock(&self.user.common_dir, call)
    }
}
