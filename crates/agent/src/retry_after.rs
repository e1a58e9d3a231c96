//! Reads the wait that a server states: in a header as seconds, as milliseconds or as a date, or in
//! the body. How far it is respected is decided elsewhere.

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest wait that is read; a longer one is as good as never.
const MAX_WAIT_SECONDS: f64 = 366.0 * 24.0 * 3600.0;

/// Returns the wait that the server states, if any.
pub(super) fn stated_wait(
    headers: &BTreeMap<String, String>,
    body: &Value,
    now: Timestamp,
) -> Option<Duration> {
    let header = |name: &str| headers.get(name).map(|text| text.trim());
    let milliseconds = header("retry-after-ms").and_then(|text| Some(parse_finite(text)? / 1000.0));
    let seconds = || {
        header("retry-after")
            .and_then(|text| parse_finite(text).or_else(|| seconds_until_date(text, now)))
    };
    let in_body = || wait_in_body(body, now);
    milliseconds.or_else(seconds).or_else(in_body).map(to_duration)
}

fn parse_finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn seconds_until_date(text: &str, now: Timestamp) -> Option<f64> {
    static DATE_PARSER: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
    Some(seconds_until(DATE_PARSER.parse_timestamp(text).ok()?, now))
}

fn seconds_until(then: Timestamp, now: Timestamp) -> f64 {
    then.duration_since(now).max(SignedDuration::ZERO).as_secs_f64()
}

/// Reads the wait in the body: Google's `retryDelay`, or the time at which a quota is full again.
fn wait_in_body(body: &Value, now: Timestamp) -> Option<f64> {
    let error = &body["error"];
    let details = error["details"].as_array().into_iter().flatten();
    let delay = details.into_iter().find_map(|detail| detail["retryDelay"].as_str());
    let delay = delay.and_then(|text| parse_finite(text.strip_suffix('s')?));
    let resets_at = || {
        let then = Timestamp::from_second(error["resets_at"].as_i64()?).ok()?;
        Some(seconds_until(then, now))
    };
    delay.or_else(|| error["resets_in_seconds"].as_f64()).or_else(resets_at)
}

fn to_duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.clamp(0.0, MAX_WAIT_SECONDS)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn in_all_its_forms() {
        let now: Timestamp = "2026-01-31T22:00:00Z".parse().unwrap();
        let check = |headers: &[(&str, &str)], body: Value, expect: Option<f64>| {
            let headers = headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let found = stated_wait(&headers, &body, now).map(|length| length.as_secs_f64());
            assert_eq!(found, expect, "{headers:?} {body}");
        };
        let one = |text: &str, expect| check(&[("retry-after", text)], Value::Null, expect);
        check(&[], Value::Null, None);
        one("7", Some(7.0));
        one(" 1.5 ", Some(1.5));
        one("0", Some(0.0));
        one("-5", Some(0.0));
        one("1e300", Some(MAX_WAIT_SECONDS));
        one("99999999999999999999", Some(MAX_WAIT_SECONDS));
        one("NaN", None);
        one("inf", None);
        one("soon", None);
        one("", None);
        one("Sat, 31 Jan 2026 22:00:30 GMT", Some(30.0));
        one("Sat, 31 Jan 2026 21:00:00 GMT", Some(0.0));
        one("Fri, 31 Dec 9998 22:00:00 GMT", Some(MAX_WAIT_SECONDS));
        check(&[("retry-after-ms", "250"), ("retry-after", "9")], Value::Null, Some(0.25));
        check(&[], json!({"error": {"details": [{"x": 1}, {"retryDelay": "34.5s"}]}}), Some(34.5));
        check(&[], json!({"error": {"resets_in_seconds": 90}}), Some(90.0));
        check(&[], json!({"error": {"resets_at": now.as_second() + 60}}), Some(60.0));
        check(&[], json!({"error": "no"}), None);
    }
}
