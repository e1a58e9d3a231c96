//! Making a candidate's commit. The same parent, tree, words, time and identity give the same commit on every machine.
//! It does not look at what is in the commit.

use super::worktree::Worktree;
use super::{GitRepo, gc, lock};
use crate::process::Input;
use treebeam_core::id::{Commit, GitTree, Place};
use treebeam_run::port::{CommitNote, CommittedTree, PortError};

impl GitRepo {
    /// Commits the index of a worktree. Where objects are lost to a gc meanwhile, all of it is done again.
    pub(super) fn make_commit(
        &self,
        place: Place,
        note: &CommitNote,
    ) -> Result<CommittedTree, PortError> {
        for _ in 0..gc::REPEATS {
            match self.try_commit(place, note) {
                Ok(Some(made)) => return Ok(made),
                Err(error) if !gc::is_loss(&error.in_full()) => return Err(error),
                Ok(None) | Err(_) => {}
            }
            self.user.outlast_gc();
            self.make_again(place)?;
        }
        self.try_commit(place, note)?.ok_or_else(|| {
            PortError::new(format!("objects of {place} are deleted again and again"))
                .hint("let `git gc --prune=now` end before you resume the run")
        })
    }

    /// The commit, unless some of it was deleted before it could be kept.
    fn try_commit(
        &self,
        place: Place,
        note: &CommitNote,
    ) -> Result<Option<CommittedTree>, PortError> {
        let worktree = self.find(place)?;
        self.user.outlast_gc();
        let lull = self.user.lull();
        let message = message(note);
        let tree = self.user.git.sealed(&worktree.seat, &["write-tree"]).about(place);
        let tree: GitTree = tree.input(lock::held(&worktree.seat.git_dir, &[])?).done()?.word()?;
        let name = tree.to_string();
        let commit = self.write_commit(place, &worktree, &name, &message, note)?;
        // A ref to something that is not whole would make the user's next gc fail.
        if !self.user.lasts(lull) && !self.is_whole(place, &worktree.base, &commit)? {
            return Ok(None);
        }
        let wanted =
            Content { tree: &name, parent: Some(worktree.base.as_str()), message: &message };
        let commit = self.keep_commit(place, &worktree, &commit, &wanted)?;
        let made = CommittedTree { commit, tree };
        if self.user.lasts(lull) {
            return Ok(Some(made));
        }
        self.user.outlast_gc();
        Ok(self.is_whole(place, &worktree.base, &made.commit)?.then_some(made))
    }

    /// Lets the place's ref point at this commit, or leaves it where it points at one with the same content.
    fn keep_commit(
        &self,
        place: Place,
        worktree: &Worktree,
        commit: &Commit,
        wanted: &Content<'_>,
    ) -> Result<Commit, PortError> {
        let reference = self.reference(place);
        let first = self.point(place, worktree, &format!("create {reference} {commit}"), commit);
        let Err(error) = first else { return Ok(commit.clone()) };
        // The ref is there already, or git cannot write: only the first can be told by reading it.
        let Some(standing) = self.standing(place)? else { return Err(error) };
        let same = standing.content().as_ref() == Some(wanted);
        let kept = if same { &standing.commit } else { commit };
        let change = format!("update {reference} {kept} {}", standing.commit);
        self.point(place, worktree, &change, kept)?;
        Ok(kept.clone())
    }

    fn write_commit(
        &self,
        place: Place,
        worktree: &Worktree,
        tree: &str,
        message: &str,
        note: &CommitNote,
    ) -> Result<Commit, PortError> {
        let date = format!("@{} +0000", note.at.as_second().max(0));
        let arguments = ["commit-tree", tree, "-p", worktree.base.as_str(), "-F", "-"];
        let call = self.user.git.sealed(&worktree.seat, &arguments).about(place);
        let call = call.envs(self.user.identity.variables());
        let call = call.envs([("GIT_AUTHOR_DATE", &*date), ("GIT_COMMITTER_DATE", &*date)]);
        call.input(Input::bytes(message.as_bytes().to_vec())).done()?.word()
    }

    /// Changes the place's ref and the worktree's own `HEAD` together, or neither.
    fn point(
        &self,
        place: Place,
        worktree: &Worktree,
        change: &str,
        commit: &Commit,
    ) -> Result<(), PortError> {
        let transaction = format!("start\n{change}\nupdate HEAD {commit}\nprepare\ncommit\n");
        let arguments = ["update-ref", "--no-deref", "--stdin"];
        let call = self.user.git.sealed(&worktree.seat, &arguments).about(place);
        let input = lock::held(&worktree.seat.git_dir, transaction.as_bytes())?;
        let call = call.locking([self.ref_lock(&self.reference(place))]);
        call.input(input).done().map(drop)
    }

    /// What the place's ref points at.
    fn standing(&self, place: Place) -> Result<Option<Standing>, PortError> {
        let question = Input::bytes(format!("contents {}\n", self.reference(place)).into_bytes());
        let call = self.user.git.sealed(&self.seat(), &["cat-file", "--batch-command"]);
        let text = call.about(place).input(question).keep(1 << 20).done()?.whole()?;
        let Some((head, content)) = text.split_once('\n') else { return Ok(None) };
        let commit = head.split(' ').next().and_then(|name| name.parse().ok());
        Ok(commit.map(|commit| Standing { commit, text: content.to_owned() }))
    }
}

/// A commit that a ref points at.
struct Standing {
    commit: Commit,
    text: String,
}

impl Standing {
    fn content(&self) -> Option<Content<'_>> {
        let (head, message) = self.text.split_once("\n\n")?;
        let mut parents = head.lines().filter_map(|line| line.strip_prefix("parent "));
        let tree = head.lines().find_map(|line| line.strip_prefix("tree "))?;
        let parent = parents.next();
        let message = message.strip_suffix('\n').unwrap_or(message);
        parents.next().is_none().then_some(Content { tree, parent, message })
    }
}

/// What makes two commits the same for us: not who made them, nor when.
#[derive(PartialEq, Eq)]
struct Content<'a> {
    tree: &'a str,
    parent: Option<&'a str>,
    message: &'a str,
}

/// The title, a blank line, the trailers.
pub(super) fn message(note: &CommitNote) -> String {
    let title = Some(one_line(&note.title)).filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| "(no title)".to_owned());
    let trailer = |(key, value): &(&str, String)| format!("{key}: {}\n", one_line(value));
    let trailers: String = note.trailers.iter().map(trailer).collect();
    if trailers.is_empty() { format!("{title}\n") } else { format!("{title}\n\n{trailers}") }
}

/// A text without line ends and other control characters, which could end a title early or forge a trailer.
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
        assert_eq!(message(&note(" a\nb ")), "a b\n\nRun: r\nEval: 0001 Run: x\n");
        assert!(message(&note("\n")).starts_with("(no title)\n\n"));
    }
}
