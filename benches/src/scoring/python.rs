//! Creates the Python environment of the data-frame libraries, once, below the target directory.
//!
//! The versions are in `benches/requirements.txt`. It installs nothing elsewhere.

use crate::{Outcome, must};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY_REQUIREMENTS: &str = include_str!("../../requirements.txt");
/// Script that uses the libraries.
pub(crate) const SCORING_SCRIPT_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scoring.py");

/// Returns a Python with the libraries, installing them if necessary.
pub(crate) fn with_libraries(folder: &Path) -> Outcome<PathBuf> {
    let home = folder.join("python");
    let (python, installed) = (home.join("bin/python"), home.join("requirements.txt"));
    if fs::read_to_string(&installed).is_ok_and(|text| text == LIBRARY_REQUIREMENTS) {
        return Ok(python);
    }
    must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
    let wanted = folder.join("requirements.txt");
    fs::write(&wanted, LIBRARY_REQUIREMENTS)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    must(Command::new(&python).args(pip).arg(&wanted))?;
    must(Command::new(&python).args(["-c", "import duckdb, pandas, polars"]))?;
    fs::rename(wanted, installed)?;
    Ok(python)
}

/// Returns the libraries with their versions, as one line.
pub(crate) fn versions() -> String {
    LIBRARY_REQUIREMENTS.lines().map(|line| line.replace("==", " ")).collect::<Vec<_>>().join(", ")
}
