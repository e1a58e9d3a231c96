//! Place of a source file in the tree of its crate's modules, from its path alone.

/// Module that a file is the source of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModulePlace {
    /// Folder of the package, such as `crates/core` or `xtask`.
    pub folder: String,
    /// Names of the modules from the crate's root down; empty for the root itself.
    pub modules: Vec<String>,
    /// Folder in which the files of the module's children lie.
    children: String,
}

impl ModulePlace {
    /// Reads the place from a path such as `crates/core/src/event/kind.rs`.
    ///
    /// Files outside the `src/` folders of `crates/*`, `xtask` and `benches` have no place.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        let (folder, inside) = path.split_once("/src/")?;
        let known = matches!(folder, "xtask" | "benches")
            || folder.strip_prefix("crates/").is_some_and(|name| !name.contains('/'));
        let stem = inside.strip_suffix(".rs").filter(|_| known)?;
        let mut modules: Vec<String> = stem.split('/').map(str::to_owned).collect();
        let is_folder_file =
            modules.last().is_some_and(|last| last == "mod") || matches!(stem, "lib" | "main");
        if is_folder_file {
            modules.pop();
        }
        let mut children = format!("{folder}/src");
        for module in &modules {
            children.push('/');
            children.push_str(module);
        }
        Some(Self { folder: folder.to_owned(), modules, children })
    }

    /// Name of the top-level module that the file belongs to, or `None` for the crate's root.
    #[must_use]
    pub fn top_module(&self) -> Option<&str> {
        self.modules.first().map(String::as_str)
    }

    /// Path without `.rs` at which the file of a child module is looked for.
    #[must_use]
    pub fn child_stem(&self, name: &str) -> String {
        format!("{}/{name}", self.children)
    }

    /// Path of the module in which files for one platform count as one.
    ///
    /// `unix.rs` and `windows.rs` beside each other define the same items twice.
    #[must_use]
    pub fn without_platform(&self) -> String {
        let names = self.modules.iter().map(|name| match name.as_str() {
            "unix" | "windows" => "platform",
            name => name,
        });
        std::iter::once(self.folder.as_str()).chain(names).collect::<Vec<_>>().join("/")
    }

    /// Tells if the file is `tests.rs` or lies in a folder `tests/`.
    #[must_use]
    pub fn is_named_tests(&self) -> bool {
        self.modules.iter().any(|name| name == "tests")
    }
}
