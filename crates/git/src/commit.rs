//! Makes a candidate's commit, reproducibly, and sets its ref. The same parent, tree, message, time
//! and identity give the same commit on every machine. Does not look at the files of the commit.

use super::worktree::Worktree;
use super::{GitRepo, gc, lock};
use treebeam_core::id::{CodePlace, Commit, GitTree};
use treebeam_process::ChildInput;
use treebeam_run::port::{CommitNote, CommittedTree, PortError};

impl GitRepo {
    /// Commits the index of a worktree. Starts over if a gc deletes objects meanwhile.
    pub(super) fn make_commit(
        &self,
        place: CodePlace,
        note: &CommitNote,
    ) -> Result<CommittedTree, PortError> {
        for _ in 0..gc::MAX_GC_REPEATS {
            match self.try_commit(place, note) {
                Ok(Some(made)) => return Ok(made),
                Err(error) if !gc::is_gc_loss(&error.full_text()) => return Err(error),
                Ok(None) | Err(_) => {}
            }
            self.user.await_gc();
            self.remake_worktree(place)?;
        }
        self.try_commit(place, note)?.ok_or_else(|| {
            PortError::new(format!("objects of {place} are deleted again and again"))
                .with_hint("let `git gc --prune=now` end before you resume the run")
        })
    }

    /// Makes the commit once; returns `None` if a gc deleted objects of it before a ref kept them.
    fn try_commit(
        &self,
        place: CodePlace,
        note: &CommitNote,
    ) -> Result<Option<CommittedTree>, PortError> {
        let worktree = self.find_worktree(place)?;
        self.user.await_gc();
        let lull = self.user.pack_state();
        let message = render_commit_message(note);
        let tree = self.user.git.sealed_call(&worktree.target, &["write-tree"]).with_subject(place);
        let tree: GitTree = tree
            .input(lock::write_locked_input(&worktree.target.git_dir, &[])?)
            .run_checked()?
            .parse_word()?;
        let name = tree.to_string();
        let commit = self.write_commit(place, &worktree, &name, &message, note)?;
        // A ref to an incomplete commit would make the user's next gc fail.
        if !self.user.is_gc_free_since(lull)
            && !self.is_commit_whole(place, &worktree.base, &commit)?
        {
            return Ok(None);
        }
        let wanted =
            CommitContent { tree: &name, parent: Some(worktree.base.as_str()), message: &message };
        let commit = self.keep_commit(place, &worktree, &commit, &wanted)?;
        let made = CommittedTree { commit, tree };
        if self.user.is_gc_free_since(lull) {
            return Ok(Some(made));
        }
        self.user.await_gc();
        Ok(self.is_commit_whole(place, &worktree.base, &made.commit)?.then_some(made))
    }

    /// Points the ref of the place at the commit, or keeps a ref whose commit has the same content.
    fn keep_commit(
        &self,
        place: CodePlace,
        worktree: &Worktree,
        commit: &Commit,
        wanted: &CommitContent<'_>,
    ) -> Result<Commit, PortError> {
        let reference = self.full_ref_name(place);
        let first = self.update_ref_and_head(
            place,
            worktree,
            &format!("create {reference} {commit}"),
            commit,
        );
        let Err(error) = first else { return Ok(commit.clone()) };
        // Either the ref exists already or git cannot write: reading the ref tells which.
        let Some(standing) = self.read_ref_commit(place)? else { return Err(error) };
        let same = standing.parse_content().as_ref() == Some(wanted);
        let kept = if same { &standing.commit } else { commit };
        let change = format!("update {reference} {kept} {}", standing.commit);
        self.update_ref_and_head(place, worktree, &change, kept)?;
        Ok(kept.clone())
    }

    fn write_commit(
        &self,
        place: CodePlace,
        worktree: &Worktree,
        tree: &str,
        message: &str,
        note: &CommitNote,
    ) -> Result<Commit, PortError> {
        let date = format!("@{} +0000", note.at.as_second().max(0));
        let arguments = ["commit-tree", tree, "-p", worktree.base.as_str(), "-F", "-"];
        let call = self.user.git.sealed_call(&worktree.target, &arguments).with_subject(place);
        let call = call.envs(self.user.identity.variables());
        let call = call.envs([("GIT_AUTHOR_DATE", &*date), ("GIT_COMMITTER_DATE", &*date)]);
        call.input(ChildInput::from_bytes(message.as_bytes().to_vec())).run_checked()?.parse_word()
    }

    /// Changes the ref of the place and the `HEAD` of the worktree in one transaction.
    fn update_ref_and_head(
        &self,
        place: CodePlace,
        worktree: &Worktree,
        change: &str,
        commit: &Commit,
    ) -> Result<(), PortError> {
        let transaction = format!("start\n{change}\nupdate HEAD {commit}\nprepare\ncommit\n");
        let arguments = ["update-ref", "--no-deref", "--stdin"];
        let call = self.user.git.sealed_call(&worktree.target, &arguments).with_subject(place);
        let input = lock::write_locked_input(&worktree.target.git_dir, transaction.as_bytes())?;
        let call = call.with_locks([self.ref_lock(&self.full_ref_name(place))]);
        call.input(input).run_checked().map(drop)
    }

    /// Returns the commit that the ref of the place points at.
    fn read_ref_commit(&self, place: CodePlace) -> Result<Option<RefCommit>, PortError> {
        let question = ChildInput::from_bytes(
            format!("contents {}\n", self.full_ref_name(place)).into_bytes(),
        );
        let call =
            self.user.git.sealed_call(&self.shared_target(), &["cat-file", "--batch-command"]);
        let text = call
            .with_subject(place)
            .input(question)
            .keep_stdout(1 << 20)
            .run_checked()?
            .full_text()?;
        let Some((head, content)) = text.split_once('\n') else { return Ok(None) };
        let commit = head.split(' ').next().and_then(|name| name.parse().ok());
        Ok(commit.map(|commit| RefCommit { commit, text: content.to_owned() }))
    }
}

/// A commit that a ref points at, with its raw text.
struct RefCommit {
    commit: Commit,
    text: String,
}

impl RefCommit {
    fn parse_content(&self) -> Option<CommitContent<'_>> {
        let (head, message) = self.text.split_once("\n\n")?;
        let mut parents = head.lines().filter_map(|line| line.strip_prefix("parent "));
        let tree = head.lines().find_map(|line| line.strip_prefix("tree "))?;
        let parent = parents.next();
        let message = message.strip_suffix('\n').unwrap_or(message);
        parents.next().is_none().then_some(CommitContent { tree, parent, message })
    }
}

/// The parts of a commit that count when two are compared: not its author, committer or dates.
#[derive(PartialEq, Eq)]
struct CommitContent<'a> {
    tree: &'a str,
    parent: Option<&'a str>,
    message: &'a str,
}

/// Returns the commit message: title, blank line, trailers.
pub(super) fn render_commit_message(note: &CommitNote) -> String {
    let title = Some(one_line(&note.title)).filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| "(no title)".to_owned());
    let trailer = |(key, value): &(&str, String)| format!("{key}: {}\n", one_line(value));
    let trailers: String = note.trailers.iter().map(trailer).collect();
    if trailers.is_empty() { format!("{title}\n") } else { format!("{title}\n\n{trailers}") }
}

/// Replaces line ends and other control characters by spaces: they could end a title early or forge
/// a trailer.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_title_and_trailers() {
        let note = |title: &str| CommitNote {
            title: title.to_owned(),
            trailers: vec![("Run", "r".to_owned()), ("Eval", "0001\nRun: x".to_owned())],
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        assert_eq!(render_commit_message(&note(" a\nb ")), "a b\n\nRun: r\nEval: 0001 Run: x\n");
        assert!(render_commit_message(&note("\n")).starts_with("(no title)\n\n"));
    }
}
