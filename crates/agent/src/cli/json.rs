//! Finds JSON objects in the output of agents, which write warnings between their lines.

use serde_json::{Deserializer, Value};

/// Parses the objects of a text that begin at the start of a line. Anything else is skipped.
pub(super) fn parse_objects(text: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let line = rest.find('\n').map_or(rest.len(), |end| end + 1);
        at += line;
        if rest.starts_with('{') {
            let mut stream = Deserializer::from_str(rest).into_iter::<Value>();
            if let Some(Ok(value)) = stream.next() {
                at += stream.byte_offset().saturating_sub(line);
                objects.push(value);
            }
        }
    }
    objects
}

/// Returns the text in a value, if it is one.
pub(super) fn string_value(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Returns the count in a value; anything else counts as 0.
pub(super) fn count_value(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_among_anything() {
        let check = |text: &str, expect: &[i64]| {
            let found: Vec<_> =
                parse_objects(text).iter().filter_map(|one| one["a"].as_i64()).collect();
            assert_eq!(found, expect, "{text:?}");
        };
        check("", &[]);
        check("warning\n{\"a\":1}\n{\"a\":2}", &[1, 2]);
        check("{broken\n{\n  \"a\": 3,\n  \"b\": {\n \"a\": 4 }\n}trailing\n{\"a\":5}\n", &[3, 5]);
        check("text {\"a\":6}\n{\"a\":7", &[]);
        check("ü{\n{\"a\":8}", &[8]);
    }
}
