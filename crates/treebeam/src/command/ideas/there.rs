//! The ideas that are there when `treebeam ideas` is called: in its folder, in the context folders, in the repository's runs.

use crate::cli::IdeasArgs;
use crate::failure::Failure;
use crate::given::{self, IdeaFile};
use crate::wiring::Home;
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use treebeam_core::policy::ContextStrategy;
use treebeam_edge::ideas_dir::IdeasDir;
use treebeam_edge::store;
use treebeam_run::alone::Known;

/// The most ideas of runs that are told, the newest.
const OF_RUNS: usize = 600;

/// What is there.
pub(super) struct There {
    /// In the folder itself, in the order of their names.
    pub(super) own: Vec<IdeaFile>,
    /// Elsewhere, what is told first.
    pub(super) context: Vec<Known>,
}

impl There {
    pub(super) fn look(
        dir: &IdeasDir,
        here: &Path,
        args: &IdeasArgs,
        home: &Home,
        strategy: ContextStrategy,
    ) -> Result<Self, Failure> {
        let own = given::in_folder(dir.folder(), &args.ideas_dir)?;
        let mut context = Vec::new();
        if strategy == ContextStrategy::GlobalPriorIdeas {
            context.extend(of_runs(home)?);
        }
        if strategy != ContextStrategy::NodeOnly {
            for folder in &args.context_ideas_dir {
                for file in given::in_folder(&here.join(folder), folder)? {
                    let name = portable(&folder_name(folder), &file.name);
                    context.push(Known { name, text: file.text });
                }
            }
        }
        Ok(Self { own, context })
    }

    /// All of them, those of the folder last.
    pub(super) fn known(&self) -> Vec<Known> {
        let own = self.own.iter();
        let own = own.map(|file| Known { name: file.name.clone(), text: file.text.clone() });
        self.context.iter().cloned().chain(own).collect()
    }

    /// The number of the next file.
    pub(super) fn next_number(&self) -> u32 {
        let number = |file: &IdeaFile| {
            file.name.split_once('_').and_then(|(number, _)| number.parse::<u32>().ok())
        };
        let most = self.own.iter().filter_map(number).max().unwrap_or(0);
        most.saturating_add(1)
    }
}

/// A prompt has no absolute path: the folder's own name will do.
fn folder_name(folder: &Path) -> String {
    let name = folder.components().next_back().map(|part| part.as_os_str().to_string_lossy());
    name.map_or_else(|| "context".to_owned(), Cow::into_owned)
}

fn portable(folder: &str, name: &str) -> String {
    format!("{folder}/{name}")
}

/// The newest ideas of the repository's runs, the newest last.
fn of_runs(home: &Home) -> Result<Vec<Known>, Failure> {
    let mut found: Vec<Known> = Vec::new();
    for run in store::runs(&home.runs_root)?.iter().rev() {
        let nodes = home.named(run).root().join("node_ideas");
        for node in folders(&nodes).iter().rev() {
            let Some(name) = node.file_name().map(|name| name.to_string_lossy()) else { continue };
            // What is in a run that somebody has changed by hand is not worth a failure.
            let files = given::in_folder(node, node).unwrap_or_default();
            let ideas =
                files.into_iter().rev().filter(|file| file.name.strip_suffix(".md").is_some());
            found.extend(ideas.map(|file| Known {
                name: portable(&portable(run.as_str(), &name), &file.name),
                text: file.text,
            }));
            if found.len() >= OF_RUNS {
                break;
            }
        }
    }
    found.truncate(OF_RUNS);
    found.reverse();
    Ok(found)
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}
