//! Parses the fields of a form or a query. Their values are not trusted.

/// Names and values, in their order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Parses `name=value&name=value`. Fields that are not UTF-8 are skipped.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let pairs = bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
        let read = |pair: &[u8]| {
            let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            let (name, value) = pair.split_at(at);
            Some((decode_field(name)?, decode_field(value.strip_prefix(b"=").unwrap_or(value))?))
        };
        Self(pairs.filter_map(read).collect())
    }

    /// Returns the first value of that name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Decodes `%41` to a letter, `+` to a space.
fn decode_field(bytes: &[u8]) -> Option<String> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        text.push(match byte {
            b'+' => b' ',
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            byte => *byte,
        });
    }
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_one_by_one() {
        let fields = FormFields::parse(b"a=1&b=x+y%2Fz%C3%BC&&c&d=&a=2&odd=%zz&e=%4");
        let check = |name, value| assert_eq!(fields.get(name), value, "{name}");
        check("a", Some("1"));
        check("b", Some("x y/zü"));
        check("c", Some(""));
        check("d", Some(""));
        check("odd", None);
        check("e", None);
        assert_eq!(FormFields::parse(b""), FormFields::default());
    }
}
