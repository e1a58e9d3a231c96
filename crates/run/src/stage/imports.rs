//! Finds new Python files of a candidate that would shadow imports of protected files. The
//! protected files are read only if a candidate adds a Python module.

use crate::brief::ImplementBrief;
use crate::port::{PortError, RepoFile};
use crate::run_ports::RunPorts;
use treebeam_core::protect::{
    PathChange, PathKind, ProtectedImports, ProtectedPaths, is_python_module,
};

/// Largest file whose imports are checked, in bytes.
const MAX_SOURCE_BYTES: u64 = 1 << 20;

/// Describes the changes that shadow an import, one line each.
pub(super) fn find_shadowing(
    changes: &[PathChange],
    protected: &ProtectedPaths,
    brief: &ImplementBrief,
    world: RunPorts<'_>,
) -> Result<Vec<String>, PortError> {
    let added = changes.iter().filter(|change| change.is_new && change.to == PathKind::File);
    let modules: Vec<&str> =
        added.map(|change| change.path.as_str()).filter(|path| is_python_module(path)).collect();
    if modules.is_empty() {
        return Ok(Vec::new());
    }
    let files = world.repo.list_files(&brief.about.parent_commit)?;
    let folders: Vec<&str> = brief.command_folders.iter().map(String::as_str).collect();
    let paths = files.iter().map(|file| file.path.as_str());
    let mut imports = ProtectedImports::new(paths, &folders);
    let is_source = |file: &&RepoFile| {
        is_python_module(&file.path)
            && file.bytes <= MAX_SOURCE_BYTES
            && protected.covers(&file.path)
    };
    let sources: Vec<RepoFile> = files.iter().filter(is_source).cloned().collect();
    for (file, text) in sources.iter().zip(world.repo.read_texts(&sources)?) {
        imports.add_protected(&file.path, text.as_deref().unwrap_or_default());
    }
    Ok(modules.into_iter().filter_map(|path| imports.find_violation(path)).collect())
}
