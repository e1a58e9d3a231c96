//! Defines the flags of `treebeam demo`.

use clap::Args;
use std::path::PathBuf;

pub(super) const DEMO_HELP: &str = "\
Needs git and python3. The folder is a repository of its own, with a README that says how it is set up; nothing else is \
touched, and nothing that is there is overwritten. Ctrl-C pauses as in `treebeam run`; naming the folder of a demo goes on \
with it.

Exit code: 4 where git or python3 is missing.

Example: treebeam demo bikes";

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The folder that is made [default: `treebeam-demo`, or `treebeam-demo-2` and so on where that is there]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}
