//! Constants of TOML and YAML: lines with only a name and a value, prefixed by tables or
//! indentation. Nested values (inline tables, flow mappings, lists) are skipped.

use super::named_span::{NamedSpan, lines_with_offsets, span_of_part};

/// Finds every value with a name in a TOML text whose comments are blank.
pub(super) fn find_in_toml(mask: &str) -> Vec<NamedSpan> {
    let mut found = Vec::new();
    let mut table = String::new();
    for (start, line) in lines_with_offsets(mask) {
        let text = line.trim();
        if let Some(header) = text.strip_prefix('[') {
            if let Some(name) =
                header.trim_start_matches('[').trim_end_matches(']').split('=').next()
            {
                table = strip_quotes(name);
            }
            continue;
        }
        let Some((name, value)) = text.split_once('=') else { continue };
        let around = if table.is_empty() { String::new() } else { format!("{table}.") };
        if let Some(span) = span_of_part(start, line, value.trim()) {
            found.push(NamedSpan { name: around + &strip_quotes(name), span });
        }
    }
    found
}

/// Strips quotes and surrounding blanks from a name.
fn strip_quotes(name: &str) -> String {
    let part = |part: &str| part.trim().trim_matches(['"', '\'']).to_owned();
    name.split('.').map(part).collect::<Vec<_>>().join(".")
}

/// Finds every value with a name in a YAML text.
pub(super) fn find_in_yaml(mask: &str) -> Vec<NamedSpan> {
    let mut found = Vec::new();
    let mut around: Vec<(usize, String)> = Vec::new();
    let mut prose: Option<usize> = None;
    for (start, line) in lines_with_offsets(mask) {
        let text = strip_comment(line);
        if text.trim().is_empty() {
            continue;
        }
        // Text after `- ` belongs to an item, and is indented further than the dash.
        let body = text.trim_start_matches([' ', '-']);
        let indent = text.len() - body.len();
        let outer = text.len() - text.trim_start_matches(' ').len();
        if prose.is_some_and(|above| outer > above) {
            continue;
        }
        prose = None;
        if matches!(text.trim(), "---" | "...") {
            around.clear();
            continue;
        }
        around.retain(|(depth, _)| *depth < indent);
        let Some((name, value)) = split_key_value(body) else { continue };
        if value.starts_with(['|', '>', '"', '\'']) {
            prose = Some(indent);
        }
        let names = around.iter().map(|(_, name)| name.as_str());
        let name = strip_quotes(name);
        let whole = names.chain([name.as_str()]).collect::<Vec<_>>().join(".");
        match span_of_part(start, line, value) {
            Some(span) => found.push(NamedSpan { name: whole, span }),
            None => around.push((indent, name)),
        }
    }
    found
}

fn split_key_value(body: &str) -> Option<(&str, &str)> {
    let (name, value) = body.split_once(':')?;
    let is_key = value.is_empty() || value.starts_with([' ', '\t']);
    let plain = !name.starts_with(['{', '[', '#', '&', '*', '!', '?', '|', '>', '%', '@']);
    (is_key && plain).then_some((name, value.trim()))
}

/// Strips the comment of a line, which follows a blank.
fn strip_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.find(" #").and_then(|at| line.get(..at)).unwrap_or(line)
}
