//! `cargo xtask campaign`: the usual tests with many more rounds, for a night or before a
//! release.

use crate::workspace::{Workspace, step};

/// Tests that do more rounds where `TREEBEAM_CAMPAIGN` is set.
#[derive(Debug, PartialEq)]
pub(crate) struct Campaign {
    name: &'static str,
    what: &'static str,
    takes: &'static str,
    cargo: &'static [&'static str],
}

const ALL_CAMPAIGNS: &[Campaign] = &[
    Campaign {
        name: "agents",
        what: "hundreds of calls to a model, each killed at another moment; 2,000 kills amid a hundred calls",
        takes: "about 10 minutes on 2 cores",
        cargo: &[
            "test",
            "-p",
            "treebeam",
            "-p",
            "treebeam-agent",
            "--test",
            "agents",
            "--test",
            "kill_calls",
        ],
    },
    Campaign {
        name: "conversations",
        what: "a run killed at 50 places, resumed, and the turns of its conversations compared",
        takes: "about 2 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam", "--test", "conversations"],
    },
    Campaign {
        name: "corruption",
        what: "journal and manifest cut at every byte and with flipped bits, over more runs",
        takes: "about 1 minute on 2 cores",
        cargo: &["test", "-p", "treebeam-store", "--test", "corruption"],
    },
    Campaign {
        name: "edits",
        what: "50 kills while an agent edits a worktree",
        takes: "about 2 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam-agent", "--test", "in_place"],
    },
    Campaign {
        name: "evals",
        what: "60 kills of `treebeam eval` at random moments and around each event; 2 GiB of output",
        takes: "about 3 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam", "--test", "eval"],
    },
    Campaign {
        name: "ideas",
        what: "`treebeam ideas` killed before each of its operations on files",
        takes: "about 2 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam", "--test", "ideas"],
    },
    Campaign {
        name: "jobs",
        what: "a hundred trees of processes that do not want to end, 20 at a time, each at its timeout",
        takes: "about 1 minute on 2 cores",
        cargo: &["test", "-p", "treebeam", "--test", "job"],
    },
    Campaign {
        name: "kills",
        what: "a thousand kills of the real program at random operations, resumed and compared",
        takes: "about 3 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam", "--test", "kill", "random"],
    },
    Campaign {
        name: "many-runs",
        what: "five runs in one repository, each killed 40 times, resumed and compared",
        takes: "about 3 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam", "--test", "many_runs", "--", "--nocapture"],
    },
    Campaign {
        name: "matrix",
        what: "the real program killed before, amid and after each of its operations on files",
        takes: "about 20 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam", "--test", "kill", "matrix"],
    },
    Campaign {
        name: "switches",
        what: "a switch of the user's checkout killed before and amid each operation, and at each git",
        takes: "about 2 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam-git", "--test", "switch"],
    },
    Campaign {
        name: "worktrees",
        what: "600 kills while git makes a worktree; two runs and a user in one repository, for longer",
        takes: "about 15 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam", "--test", "worktrees", "--test", "beside"],
    },
    Campaign {
        name: "cycles",
        what: "2,000 cycles of checkout, commit and removal, 8 at a time, in a repository of 2,000 files",
        takes: "about 40 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam-git", "--test", "git_stress"],
    },
    Campaign {
        name: "disk-full",
        what: "a disk in memory that is full at every page of a run",
        takes: "about 1 minute",
        cargo: &["test", "-p", "treebeam", "--test", "disk_full"],
    },
    Campaign {
        name: "faults",
        what: "ENOSPC, EIO and EMFILE at every file operation of a small run",
        takes: "about 20 minutes on 2 cores",
        cargo: &["test", "-p", "treebeam", "--test", "disk_faults"],
    },
    Campaign {
        name: "power-cut",
        what: "the power cut 50 times while a run goes on, on an ext4 image (needs root and loop devices)",
        takes: "about 1 minute",
        cargo: &["test", "-p", "treebeam", "--test", "power"],
    },
    Campaign {
        name: "reader",
        what: "a million damaged results files, each read at once and in pieces",
        takes: "about 3 minutes, on 1 core",
        cargo: &["test", "-p", "treebeam-core", "--test", "reader"],
    },
    Campaign {
        name: "tuner",
        what: "the tuner against random search on four objectives, as a table",
        takes: "about 3 minutes, on 1 core",
        cargo: &["test", "-p", "treebeam-core", "--test", "tuner", "--", "--nocapture"],
    },
];

pub(crate) fn campaigns() -> &'static [Campaign] {
    ALL_CAMPAIGNS
}

pub(crate) fn list() {
    for Campaign { name, what, takes, .. } in campaigns() {
        println!("{name}: {what} ({takes})");
    }
}

pub(crate) fn named(name: &str) -> Option<&'static [Campaign]> {
    campaigns().iter().find(|campaign| campaign.name == name).map(std::slice::from_ref)
}

pub(crate) fn run(workspace: &Workspace, chosen: &[Campaign]) -> anyhow::Result<()> {
    for campaign in chosen {
        eprintln!("==> {} takes {}", campaign.name, campaign.takes);
        step(campaign.name, workspace.cargo().args(campaign.cargo).env("TREEBEAM_CAMPAIGN", "1"))?;
    }
    Ok(())
}
