//! Graph of a crate's top-level modules, and the cycles in it.

use std::collections::{BTreeMap, BTreeSet};

use super::{FileSurvey, ModuleReference};

/// Top-level modules of one crate that all reach each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleCycle {
    /// Folder of the crate.
    pub folder: String,
    /// Names of the modules, sorted.
    pub modules: Vec<String>,
    /// Dependences among them, sorted.
    pub edges: Vec<ModuleEdge>,
}

/// Dependence of one top-level module on another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleEdge {
    /// Module that depends on the other.
    pub from: String,
    /// Module that is depended on.
    pub to: String,
    /// Number of mentions.
    pub mentions: usize,
    /// First mention, as `path:line`.
    pub example: String,
}

/// Modules that a module depends on, with the mentions of each as `path:line`.
type ModuleGraph<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Vec<String>>>;

/// Finds the cycles between top-level modules of each crate among `files`.
#[must_use]
pub fn module_cycles<'a>(files: impl IntoIterator<Item = &'a FileSurvey>) -> Vec<ModuleCycle> {
    let mut crates: BTreeMap<&str, Vec<&FileSurvey>> = BTreeMap::new();
    for file in files {
        crates.entry(&file.place.folder).or_default().push(file);
    }
    crates.iter().flat_map(|(folder, files)| crate_cycles(folder, files)).collect()
}

/// Finds the cycles of one crate.
fn crate_cycles(folder: &str, files: &[&FileSurvey]) -> Vec<ModuleCycle> {
    let graph = crate_graph(files);
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (*module, reachable_from(&graph, module))).collect();
    let mut cycles = Vec::new();
    let mut placed = BTreeSet::new();
    for (module, targets) in &reached {
        let mutual = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(module));
        let modules: Vec<&str> = targets.iter().filter(mutual).copied().collect();
        if modules.len() > 1 && placed.insert(modules.clone()) {
            cycles.push(cycle_among(folder, &graph, &modules));
        }
    }
    cycles
}

/// Builds the graph of one crate from the names that its files mention.
fn crate_graph<'a>(files: &[&'a FileSurvey]) -> ModuleGraph<'a> {
    let modules: BTreeSet<&str> = files.iter().filter_map(|file| file.place.top_module()).collect();
    let aliases: BTreeMap<&str, &str> = files
        .iter()
        .flat_map(|file| &file.aliases)
        .map(|alias| (alias.name.as_str(), alias.module.as_str()))
        .collect();
    let module_of = |reference: &'a ModuleReference| -> Option<&'a str> {
        let name = reference.name.as_str();
        let target = if modules.contains(name) { Some(name) } else { aliases.get(name).copied() };
        target.filter(|target| modules.contains(target))
    };
    let mut graph: ModuleGraph<'a> = modules.iter().map(|name| (*name, BTreeMap::new())).collect();
    for file in files {
        let Some(from) = file.place.top_module() else { continue };
        for reference in &file.references {
            let Some(to) = module_of(reference).filter(|to| *to != from) else { continue };
            let mention = format!("{}:{}", file.path, reference.line);
            graph.entry(from).or_default().entry(to).or_default().push(mention);
        }
    }
    graph
}

/// Modules that can be reached from `start` along at least one edge.
fn reachable_from<'a>(graph: &ModuleGraph<'a>, start: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(module) = open.pop() {
        for target in graph.get(module).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(*target) {
                open.push(target);
            }
        }
    }
    reached
}

/// Describes the cycle that `modules` form.
fn cycle_among(folder: &str, graph: &ModuleGraph<'_>, modules: &[&str]) -> ModuleCycle {
    let mut edges = Vec::new();
    for from in modules {
        for (to, mentions) in graph.get(from).into_iter().flatten() {
            if modules.contains(to) {
                edges.push(ModuleEdge {
                    from: (*from).to_owned(),
                    to: (*to).to_owned(),
                    mentions: mentions.len(),
                    example: mentions.first().cloned().unwrap_or_default(),
                });
            }
        }
    }
    let modules = modules.iter().map(|module| (*module).to_owned()).collect();
    ModuleCycle { folder: folder.to_owned(), modules, edges }
}
