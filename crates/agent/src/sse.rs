//! Splits server-sent events. The wire formats interpret them.

/// One server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SseEvent {
    pub(super) data: String,
}

/// Parses the events of a text, including a last one that is cut off.
pub(super) fn parse_events(text: &str) -> Vec<SseEvent> {
    let mut events = Vec::new();
    let mut data: Option<String> = None;
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    for line in text.split('\n') {
        if line.is_empty() {
            events.extend(data.take().map(|data| SseEvent { data }));
        } else if let Some(value) = line.strip_prefix("data:") {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut data {
                None => data = Some(value.to_owned()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            }
        }
    }
    events.extend(data.map(|data| SseEvent { data }));
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_whatever_the_line_ends() {
        let check = |text: &str, expect: &[&str]| {
            let found: Vec<String> =
                parse_events(text).into_iter().map(|event| event.data).collect();
            assert_eq!(found, expect, "{text:?}");
        };
        check("", &[]);
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\ndata: b\r\rdata: c\r", &["a\nb", "c"]);
        check("event: x\r\ndata: a\r\n\r\n: ping\r\n\r\ndata:b\r\n\r\n", &["a", "b"]);
        check("\u{feff}data: a\ndata: b\n\nid: 3\n\n", &["a\nb"]);
        check("data: a\n\ndata: {\"cut", &["a", "{\"cut"]);
        check("data: [DONE]", &["[DONE]"]);
        check("data:\n\n", &[""]);
    }
}
