//! Defines the flags of `treebeam serve`.

use clap::Args;
use std::net::IpAddr;

pub(super) const SERVE_HELP: &str = "\
Prints the address to open, with a token in it: whoever has it can look at all runs, pause and stop a running one, and give \
it an idea. Only this machine reaches it, unless `--host` says otherwise. The pages follow the journal by themselves; runs \
are not disturbed. Ctrl-C ends it.

Each start has a token of its own. `TREEBEAM_SERVE_TOKEN`, 20 or more letters and digits, sets it beforehand: with `--port` \
open pages find the server again after a restart.

Exit code: 130 after Ctrl-C, 4 where the port is taken.

Example: treebeam serve --port 8321";

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The run whose page is opened first: its id, or the path of its directory [default: the list of all]
    pub(crate) run: Option<String>,
    /// The port; 0 for one that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// The address of this machine to be reached at; what is said is not encrypted
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
}
