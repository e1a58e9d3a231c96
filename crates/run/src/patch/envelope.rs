//! Translates patches between `*** Begin Patch` and `*** End Patch`, as some models write them,
//! into git's form. They have no line numbers: git finds the place by the lines around it.

use super::{FilePatch, PatchHunk, is_fence};

const BEGIN_PATCH_LINE: &str = "*** Begin Patch";

pub(super) fn is_envelope(lines: &[&str]) -> bool {
    lines.iter().any(|line| line.trim_end() == BEGIN_PATCH_LINE)
}

/// Parses all files of all patches among these lines.
pub(super) fn parse_envelope(lines: &[&str]) -> Result<Vec<FilePatch>, String> {
    let mut files: Vec<FilePatch> = Vec::new();
    let mut inside = false;
    for line in lines {
        let bare = line.trim_end();
        match bare.strip_prefix("*** ") {
            Some("Begin Patch") => inside = true,
            Some("End Patch") => inside = false,
            Some(head) if inside && head != "End of File" => add_file_head(head, &mut files)?,
            None if inside && !is_fence(line) => add_content_line(line, &mut files),
            Some(_) | None => {}
        }
    }
    if inside && !files.is_empty() {
        return Err(
            "the patch was cut off: it has no `*** End Patch`; answer with the whole patch"
                .to_owned(),
        );
    }
    for file in &mut files {
        file.hunks.retain(PatchHunk::has_changes);
    }
    Ok(files)
}

fn add_file_head(head: &str, files: &mut Vec<FilePatch>) -> Result<(), String> {
    let (kind, path) = head.split_once(": ").unwrap_or((head, ""));
    let path = path.trim();
    let lines = match kind {
        "Update File" => vec![
            format!("diff --git a/{path} b/{path}"),
            format!("--- a/{path}"),
            format!("+++ b/{path}"),
        ],
        "Add File" => vec![
            format!("diff --git a/{path} b/{path}"),
            "new file mode 100644".to_owned(),
            "--- /dev/null".to_owned(),
            format!("+++ b/{path}"),
        ],
        other => {
            return Err(format!(
                "`*** {other}` is not understood: answer with a unified diff, as `git diff` writes it"
            ));
        }
    };
    if path.is_empty() {
        return Err(format!("`*** {kind}` names no file"));
    }
    files.push(FilePatch { head: lines, ..FilePatch::default() });
    Ok(())
}

fn add_content_line(line: &str, files: &mut [FilePatch]) {
    let Some(file) = files.last_mut() else { return };
    if line.starts_with("@@") || file.hunks.is_empty() {
        file.hunks.push(PatchHunk::default());
    }
    if line.starts_with("@@") {
        return;
    }
    if let Some(hunk) = file.hunks.last_mut() {
        match line.chars().next() {
            None => hunk.lines.push(" ".to_owned()),
            Some(' ' | '+' | '-') => hunk.lines.push(line.to_owned()),
            Some(_) => {}
        }
    }
}
