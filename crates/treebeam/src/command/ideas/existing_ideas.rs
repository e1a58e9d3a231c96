//! Loads the existing ideas for `treebeam ideas`: of its folder, context folders, and runs.

use crate::cli::IdeasArgs;
use crate::failure::CommandFailure;
use crate::run_location::RepoHome;
use crate::user_ideas::{self, IdeaFile};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use treebeam_core::policy::ContextStrategy;
use treebeam_run::standalone_ideas::ExistingIdea;
use treebeam_store::ideas_dir::IdeasDir;

/// Maximum number of ideas from runs, the newest.
const MAX_RUN_IDEAS: usize = 600;

/// Ideas that exist before the call.
pub(super) struct ExistingIdeas {
    /// Ideas in the folder itself, in the order of their names.
    pub(super) own: Vec<IdeaFile>,
    /// Ideas from elsewhere, in the order of the prompt.
    pub(super) context: Vec<ExistingIdea>,
}

impl ExistingIdeas {
    pub(super) fn load(
        dir: &IdeasDir,
        here: &Path,
        args: &IdeasArgs,
        home: &RepoHome,
        strategy: ContextStrategy,
    ) -> Result<Self, CommandFailure> {
        let own = user_ideas::load_idea_folder(dir.folder(), &args.ideas_dir)?;
        let mut context = Vec::new();
        if strategy == ContextStrategy::GlobalPriorIdeas {
            context.extend(load_run_ideas(home)?);
        }
        if strategy != ContextStrategy::NodeOnly {
            for folder in &args.context_ideas_dir {
                for file in user_ideas::load_idea_folder(&here.join(folder), folder)? {
                    let name = portable_name(&folder_name(folder), &file.name);
                    context.push(ExistingIdea { name, text: file.text });
                }
            }
        }
        Ok(Self { own, context })
    }

    /// Returns all ideas, those of the folder last.
    pub(super) fn known_ideas(&self) -> Vec<ExistingIdea> {
        let own = self.own.iter();
        let own = own.map(|file| ExistingIdea { name: file.name.clone(), text: file.text.clone() });
        self.context.iter().cloned().chain(own).collect()
    }

    /// Returns the number of the next file.
    pub(super) fn next_number(&self) -> u32 {
        let number = |file: &IdeaFile| {
            file.name.split_once('_').and_then(|(number, _)| number.parse::<u32>().ok())
        };
        let most = self.own.iter().filter_map(number).max().unwrap_or(0);
        most.saturating_add(1)
    }
}

/// Returns the last part of a folder's path: a prompt has no absolute path.
fn folder_name(folder: &Path) -> String {
    let name = folder.components().next_back().map(|part| part.as_os_str().to_string_lossy());
    name.map_or_else(|| "context".to_owned(), Cow::into_owned)
}

fn portable_name(folder: &str, name: &str) -> String {
    format!("{folder}/{name}")
}

/// Loads the newest ideas of the repository's runs, the newest last.
fn load_run_ideas(home: &RepoHome) -> Result<Vec<ExistingIdea>, CommandFailure> {
    let mut found: Vec<ExistingIdea> = Vec::new();
    for run in treebeam_store::list_runs(&home.runs_root)?.iter().rev() {
        let nodes = home.run_dir(run).root().join("node_ideas");
        for node in list_folders(&nodes).iter().rev() {
            let Some(name) = node.file_name().map(|name| name.to_string_lossy()) else { continue };
            // Errors are ignored: a run changed by hand must not fail this command.
            let files = user_ideas::load_idea_folder(node, node).unwrap_or_default();
            let ideas =
                files.into_iter().rev().filter(|file| file.name.strip_suffix(".md").is_some());
            found.extend(ideas.map(|file| ExistingIdea {
                name: portable_name(&portable_name(run.as_str(), &name), &file.name),
                text: file.text,
            }));
            if found.len() >= MAX_RUN_IDEAS {
                break;
            }
        }
    }
    found.truncate(MAX_RUN_IDEAS);
    found.reverse();
    Ok(found)
}

fn list_folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}
