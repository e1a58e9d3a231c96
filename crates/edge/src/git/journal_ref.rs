//! `refs/treebeam/<run>`: a blob that names the last line of a run's journal, written when a depth closes and when the run
//! stops. It lies outside of `refs/heads`, is in no commit, and is removed with the run. It finds a journal that was cut at
//! a line end or rebuilt by anything that does not write this ref too.

use super::{GitRepo, gc};
use crate::process::Input;
use serde::{Deserialize, Serialize};
use treebeam_core::id::{RunId, Sha256};
use treebeam_run::port::{JournalTip, PortError};

/// The most that is read of what the ref points at.
const MAX_BLOB_BYTES: usize = 4 << 10;

/// Content of the blob.
#[derive(Serialize, Deserialize)]
struct JournalBlob {
    run: RunId,
    seq: u64,
    digest: Sha256,
}

/// Name of the ref that names the last line of this run's journal.
#[must_use]
pub fn journal_ref(run: &RunId) -> String {
    format!("refs/treebeam/{run}")
}

impl GitRepo {
    /// Lets the run's journal ref name this line. Said twice, it stays as it is. What a gc of the
    /// user's takes away meanwhile is written again: a ref to nothing would break the repository.
    pub(super) fn set_journal_ref(&self, tip: &JournalTip) -> Result<(), PortError> {
        for _ in 0..gc::REPEATS {
            self.user.outlast_gc();
            let lull = self.user.lull();
            match self.point_journal_ref(tip) {
                Err(error) if gc::is_loss(&error.in_full()) => continue,
                Err(error) => return Err(error),
                Ok(()) if self.user.lasts(lull) => return Ok(()),
                Ok(()) => self.user.outlast_gc(),
            }
            if self.journal_tip().ok().flatten().as_ref() == Some(tip) {
                return Ok(());
            }
        }
        let what = format!("`{}` is lost to a `git gc` again and again", journal_ref(&self.run));
        Err(PortError::new(what).hint("let the other git end, then go on"))
    }

    fn point_journal_ref(&self, tip: &JournalTip) -> Result<(), PortError> {
        let JournalTip { seq, digest } = *tip;
        let blob = JournalBlob { run: self.run.clone(), seq, digest };
        let mut text = serde_json::to_vec(&blob)
            .map_err(|error| PortError::new("cannot write the journal's ref").caused_by(error))?;
        text.push(b'\n');
        let git = &self.user.git;
        let write = git.sealed(&self.seat(), &["hash-object", "-w", "--stdin"]);
        let object: String = write.about(&self.run).input(Input::bytes(text)).done()?.word()?;
        let name = journal_ref(&self.run);
        let set = git.sealed(&self.seat(), &["update-ref", "--no-deref", &name, &object]);
        set.about(&self.run).locking([self.ref_lock(&name)]).done().map(drop)
    }

    /// The line that the run's journal ref names; none where there is no such ref.
    ///
    /// # Errors
    /// When git cannot tell, or the ref points at something else.
    pub fn journal_tip(&self) -> Result<Option<JournalTip>, PortError> {
        let name = journal_ref(&self.run);
        let question = Input::bytes(format!("contents {name}\n").into_bytes());
        let call = self.user.git.sealed(&self.seat(), &["cat-file", "--batch-command"]);
        let call = call.about(&self.run).input(question).keep(MAX_BLOB_BYTES);
        let text = call.done()?.whole()?;
        let Some((head, content)) = text.split_once('\n') else { return Ok(None) };
        if head.ends_with(" missing") {
            return Ok(None);
        }
        let wrong = || PortError::new(format!("`{name}` does not name a line of a journal"));
        let blob: JournalBlob =
            serde_json::from_str(content).map_err(|error| wrong().caused_by(error))?;
        let JournalBlob { run, seq, digest } = blob;
        if run == self.run { Ok(Some(JournalTip { seq, digest })) } else { Err(wrong()) }
    }

    /// Whether the run has a journal ref.
    ///
    /// # Errors
    /// When git cannot tell.
    pub fn has_journal_ref(&self) -> Result<bool, PortError> {
        let name = journal_ref(&self.run);
        let call = self.user.git.sealed(&self.seat(), &["show-ref", "--verify", "--quiet", &name]);
        let answer = call.about(&self.run).answer()?;
        match answer.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            Some(_) | None => Err(answer.failure()),
        }
    }

    /// Removes the run's journal ref. One that is not there is removed already.
    ///
    /// # Errors
    /// When it is still there afterwards.
    pub fn remove_journal_ref(&self) -> Result<(), PortError> {
        let name = journal_ref(&self.run);
        let call = self.user.git.sealed(&self.seat(), &["update-ref", "--no-deref", "-d", &name]);
        let call = call.about(&self.run).locking([self.ref_lock(&name)]);
        self.user.packed_refs.change(&self.user.common_dir, call)
    }
}
