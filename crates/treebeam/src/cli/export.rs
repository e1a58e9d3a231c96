//! Defines the flags of `treebeam export`.

use clap::Args;

pub(super) const EXPORT_HELP: &str = "\
The branch begins at the commit that the run began with. Your checkout stays as it is, and so does a branch that is there.

Exit code: 1 where there is nothing to export or its commits are gone, 2 for a branch that is there or cannot be, and for the root, which has no change.

Example: treebeam export --branch faster-model && git log -p main..faster-model";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The run: its id, or the path of its directory; the latest one if it is left out
    pub(crate) run: Option<String>,
    /// The node that the path ends in, such as `n0003` [default: the best one]
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// The name of the new branch
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: String,
}
