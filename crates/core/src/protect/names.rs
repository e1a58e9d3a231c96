//! File names that no candidate may add, and the folding of paths for comparison. Independent of
//! the user's globs.

use unicode_normalization::UnicodeNormalization as _;

/// Folds a path as file systems do that ignore case and normalise Unicode.
#[must_use]
pub fn folded_path(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    // Through upper case, so that all forms of a letter become equal.
    path.nfc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

/// Returns true if a file at this path controls git.
pub(super) fn controls_git(path: &str) -> bool {
    let path = folded_path(path);
    let mut parts = path.split('/');
    // `git~1` is the short name of `.git` on Windows.
    parts.any(|part| matches!(part, ".git" | "git~1"))
        || matches!(path.rsplit('/').next(), Some(".gitattributes" | ".gitmodules"))
}

/// Returns the reason why a new file at this path is refused, if it is.
pub(super) fn refused_new_path(path: &str) -> Option<&'static str> {
    let path = folded_path(path);
    let name = path.rsplit('/').next().unwrap_or(&path);
    let runs_unasked = |part: &str| {
        let module = part.split('.').next().unwrap_or(part);
        matches!(module, "sitecustomize" | "usercustomize")
    };
    if has_ending(name, &["pth"]) || name == "conftest.py" || path.split('/').any(runs_unasked) {
        Some("Python runs such files without being asked")
    } else if has_ending(name, &["pyc", "pyo"]) || path.split('/').any(|part| part == "__pycache__")
    {
        Some("compiled code is not what can be read")
    } else if path.split('/').any(is_reserved_by_windows) {
        Some("Windows has no such file names")
    } else {
        None
    }
}

/// Returns true if the text after the last dot is one of `endings`.
pub(super) fn has_ending(name: &str, endings: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
}

/// Returns true if a part of a path names a device on Windows, or cannot be written there.
fn is_reserved_by_windows(part: &str) -> bool {
    let device = part.split('.').next().unwrap_or(part).trim_end();
    let number = ["com", "lpt"].iter().find_map(|kind| device.strip_prefix(kind));
    let is_port = number.is_some_and(|number| {
        let mut digits = number.chars();
        let digit =
            digits.next().is_some_and(|digit| "123456789\u{b9}\u{b2}\u{b3}".contains(digit));
        digit && digits.next().is_none()
    });
    is_port
        || matches!(device, "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
        || part.ends_with(['.', ' '])
        || part.contains([':', '\\'])
}
