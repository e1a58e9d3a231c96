//! The agent door against real counterparts: servers, types and a model that were not written for
//! treebeam. `cargo xtask test` installs them and runs these tests; on their own they are ignored.
//!
//! # Layout
//! [`door`] asks through the door with short timeouts. [`aimock`] and [`llmock`] are about servers
//! that imitate a provider and its errors, [`conversation`] about whole evals with them,
//! [`sessions`] about a search whose ideas come from real coding agents, [`oracle`] about the
//! requests that are sent, [`smollm2`] about a real model.

#![cfg(test)]

mod aimock;
mod conversation;
mod door;
mod llmock;
mod oracle;
mod sessions;
mod smollm2;
