//! Translates the error messages of the TOML and JSON parsers for users.

use super::unknown_key;
use treebeam_core::nearest::nearest_names;

/// Describes an error at a key, given by its full name.
pub(super) fn describe_key_error(path: &str, message: &str) -> String {
    let message = message.replace('\n', ", ");
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return parse_unknown_key(path, rest);
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    if let Some(key) = message.strip_prefix("duplicate field ") {
        return format!("the key {key} stands twice");
    }
    let kinds = ["invalid type: ", "invalid value: ", "unknown variant "];
    let value = kinds.iter().find_map(|kind| message.strip_prefix(kind));
    match value.and_then(|value| value.rsplit_once(", expected ")) {
        Some((value, expected)) => {
            format!("it must be {}, not {}", describe_expected(expected), describe_value(value))
        }
        None => describe_syntax_error(message),
    }
}

/// Translates the parsers' name of an expected type.
fn describe_expected(expected: &str) -> &str {
    match expected {
        "f64" => "a number",
        "i64" => "a whole number",
        "a boolean" => "`true` or `false`",
        "a string" => "a text in quotes",
        "a sequence" => "a list",
        "a map" => "a table",
        other => other,
    }
}

/// Translates the parsers' name of a value of the wrong type, such as `string "a"` or `map`.
fn describe_value(value: &str) -> String {
    match value {
        "map" => return "a table".to_owned(),
        "sequence" => return "a list".to_owned(),
        "null" | "unit value" => return "`null`".to_owned(),
        _ => {}
    }
    let kinds = [
        ("integer ", "the number "),
        ("floating point ", "the number "),
        ("string ", "the text "),
        ("boolean ", ""),
    ];
    let known = kinds.iter().find_map(|(kind, word)| Some((value.strip_prefix(kind)?, word)));
    known.map_or_else(|| value.to_owned(), |(value, word)| format!("{word}{value}"))
}

/// Translates a syntax error.
fn describe_syntax_error(message: String) -> String {
    let known = [
        ("EOF while parsing", "the text ends here, and something is still open"),
        ("trailing characters", "there is more text after the end"),
        (
            "control character",
            "a text goes over the end of its line, or has a control character in it",
        ),
        ("trailing comma", "nothing comes after the comma"),
        ("expected value", "there is no value here"),
        ("expected ident", "a text must be in quotes"),
        ("key must be a string", "a key must be a text in quotes"),
        ("string values must be quoted", "a text must be in quotes"),
    ];
    let words = known.iter().find(|(start, _)| message.starts_with(start));
    words.map_or(message, |(_, words)| (*words).to_owned())
}

/// Parses the message about an unknown key, which has that key and all known ones in backticks.
fn parse_unknown_key(path: &str, message: &str) -> String {
    let known: Vec<&str> = message.split('`').skip(1).step_by(2).skip(1).collect();
    unknown_key::describe_unknown_key(path, &known)
}

/// Returns the nearest known name, or all of them, as the end of a sentence.
pub(super) fn suggest_nearest(wanted: &str, known: &[&str]) -> String {
    match (nearest_names(wanted, known).first(), known) {
        (_, []) => String::new(),
        (Some(best), _) => format!("; nearest: `{best}`"),
        (None, _) => format!("; known: `{}`", known.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints() {
        for (said, expect) in [
            ("invalid type: map, expected a string", "it must be a text in quotes, not a table"),
            ("invalid type: sequence, expected f64", "it must be a number, not a list"),
            ("invalid type: string \"2\", expected f64", "it must be a number, not the text \"2\""),
            (
                "invalid type: floating point `1.5`, expected i64",
                "it must be a whole number, not the number `1.5`",
            ),
            ("invalid type: boolean `true`, expected a sequence", "it must be a list, not `true`"),
            ("invalid type: null, expected a map", "it must be a table, not `null`"),
            (
                "unknown variant `up`, expected `higher` or `lower`",
                "it must be `higher` or `lower`, not `up`",
            ),
            ("duplicate field `a`", "the key `a` stands twice"),
            ("unknown field `z`, there are no fields", "there is no such key"),
            ("expected `,` or `}`", "expected `,` or `}`"),
        ] {
            assert_eq!(describe_key_error("z", said), expect, "{said}");
        }
    }
}
