//! Implements the repository of the world in memory: refs, worktrees and commits by name.

use super::{Disk, MemoryWorld, SAID_BY, commit};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{CodePlace, Commit, GitTree, NodeId, Sha256};
use treebeam_core::protect::{PathChange, PathKind, ProtectedPaths};
use treebeam_run::port::{
    ApplyResult, BinaryDiff, CommitNote, CommittedTree, PortError, Repo, RepoFile, TouchedFiles,
};

impl Disk {
    /// Returns a commit with its tree, which is the changes that led to it.
    fn committed(&self, name: &str) -> CommittedTree {
        let changes = self.commits.get(name).map_or(&[][..], Vec::as_slice);
        let digest = Sha256::hash_bytes(changes.join("\n").as_bytes());
        let tree = digest.to_string().parse().expect("a tree name");
        CommittedTree { commit: commit(name), tree }
    }
}

impl Repo for MemoryWorld {
    fn checkout_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        let mut disk = self.lock();
        disk.torn.remove(&place.to_string());
        disk.worktrees.insert(place.to_string(), (commit.to_string(), None));
        Ok(())
    }

    fn renew_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        let (disk, name) = (self.lock(), place.to_string());
        let is_whole = disk.worktrees.contains_key(&name) && !disk.torn.contains(&name);
        drop(disk);
        if is_whole { Ok(()) } else { self.checkout_worktree(place, commit) }
    }

    fn apply_to_worktree(&self, place: CodePlace, diff: &str) -> Result<ApplyResult, PortError> {
        let change = diff.lines().find_map(|line| line.strip_prefix("+do ")).unwrap_or_default();
        let change = change.split(SAID_BY).next().unwrap_or_default();
        if change.contains("never-applies") {
            return Ok(ApplyResult::Refused("it never does".to_owned()));
        }
        let mut disk = self.lock();
        let worktree = disk.worktrees.get_mut(&place.to_string());
        worktree.ok_or_else(|| PortError::new("no worktree"))?.1 = Some(change.to_owned());
        Ok(ApplyResult::Cleanly)
    }

    fn staged_paths(&self, _: CodePlace) -> Result<Vec<PathChange>, PortError> {
        Ok(vec![PathChange { path: "model.py".to_owned(), is_new: false, to: PathKind::File }])
    }

    fn staged_diff(&self, place: CodePlace, _: usize) -> Result<String, PortError> {
        let disk = self.lock();
        let change = disk.worktrees.get(&place.to_string()).and_then(|(_, change)| change.clone());
        Ok(format!("+do {}\n", change.unwrap_or_default()))
    }

    fn commit_staged(
        &self,
        place: CodePlace,
        note: &CommitNote,
    ) -> Result<CommittedTree, PortError> {
        let mut disk = self.lock();
        let worktree = disk.worktrees.get(&place.to_string()).cloned();
        let (parent, change) = worktree.ok_or_else(|| PortError::new("no worktree"))?;
        let change = change.unwrap_or_default();
        let content = format!("{parent} {change} {} {:?}", note.title, note.trailers);
        if let Some(standing) = disk.refs.get(&place.to_string())
            && disk.contents.get(standing) == Some(&content)
        {
            return Ok(disk.committed(standing));
        }
        let text = format!("{content} {}", note.at);
        let name: String =
            Sha256::hash_bytes(text.as_bytes()).to_string().chars().take(40).collect();
        disk.contents.insert(name.clone(), content);
        let mut changes = disk.commits.get(&parent).cloned().unwrap_or_default();
        changes.push(change);
        if self.same_code {
            // Each part occurs once, whatever the order.
            changes.sort_unstable();
            changes.dedup();
        }
        disk.commits.insert(name.clone(), changes);
        disk.refs.insert(place.to_string(), name.clone());
        Ok(disk.committed(&name))
    }

    fn git_tree(&self, commit: &Commit) -> Result<GitTree, PortError> {
        Ok(self.lock().committed(commit.as_str()).tree)
    }

    fn find_touched_files(
        &self,
        place: CodePlace,
        _: &Commit,
        protected: &ProtectedPaths,
    ) -> Result<TouchedFiles, PortError> {
        let [by_root, by_candidates] = &self.rewritten;
        let is_root = place == CodePlace::Node(NodeId::ROOT);
        let rewritten = if is_root { by_root } else { by_candidates };
        let is_torn = self.lock().torn.contains(&place.to_string());
        let torn = is_torn.then(|| "model.py".to_owned());
        let touched = rewritten.iter().cloned().chain(torn);
        let (protected, other) = touched.partition(|path| protected.covers(path));
        Ok(TouchedFiles { protected, other })
    }

    fn restore_paths(&self, _: CodePlace, _: &Commit, _: &[String]) -> Result<(), PortError> {
        Ok(())
    }

    fn set_place_ref(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        self.lock().refs.insert(place.to_string(), commit.to_string());
        Ok(())
    }

    fn commit_exists(&self, commit: &Commit) -> Result<bool, PortError> {
        Ok(self.lock().commits.contains_key(commit.as_str()))
    }

    fn diff_commits(
        &self,
        from: &Commit,
        to: &Commit,
        _: BinaryDiff,
        _: usize,
    ) -> Result<String, PortError> {
        Ok(format!("{from}..{to}\n"))
    }

    fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError> {
        Ok(format!("{from}..{to}\n"))
    }

    fn list_files(&self, _: &Commit) -> Result<Vec<RepoFile>, PortError> {
        let file = |path: &str| RepoFile {
            path: path.to_owned(),
            bytes: 20,
            object: Sha256::hash_bytes(path.as_bytes()).to_string(),
        };
        Ok(["README.md", "model.py"].map(file).into())
    }

    fn read_texts(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        Ok(files.iter().map(|file| Some(format!("this is {}\n", file.path))).collect())
    }

    fn discard_leftover(&self, leftover: Leftover, attempt: u32) -> Result<(), PortError> {
        std::thread::sleep(self.discard_takes);
        let name = leftover.place.to_string();
        if attempt == 1 && self.draw(&name).is_multiple_of(3) {
            return Err(PortError::new("in use"));
        }
        let mut disk = self.lock();
        match leftover.kind {
            LeftoverKind::Worktree => drop(disk.worktrees.remove(&name)),
            LeftoverKind::Branch => drop(disk.refs.remove(&name)),
            LeftoverKind::Dir => {}
        }
        Ok(())
    }
}
