//! Contains style and script of every page, and the policy that allows nothing else to run.

use treebeam_core::id::Sha256;

/// Style sheet of every page.
pub const PAGE_STYLE: &str = include_str!("report.css");
/// Script of every page.
pub const PAGE_SCRIPT: &str = include_str!("report.js");

/// Returns a content security policy that allows only this style and this script, by their digests.
pub(crate) fn content_security_policy() -> String {
    let source = |text: &str| {
        format!("'sha256-{}'", encode_base64(Sha256::hash_bytes(text.as_bytes()).as_bytes()))
    };
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        source(PAGE_STYLE),
        source(PAGE_SCRIPT)
    )
}

/// Encodes bytes in base 64, with padding.
fn encode_base64(bytes: &[u8]) -> String {
    const BASE64_DIGITS: &[u8; 64] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap_or_default();
            let digit = BASE64_DIGITS.get(digit).copied().filter(|_| place <= three.len());
            text.push(char::from(digit.unwrap_or(b'=')));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_base_64() {
        let check = |bytes: &str, text| assert_eq!(encode_base64(bytes.as_bytes()), text);
        check("", "");
        check("f", "Zg==");
        check("fo", "Zm8=");
        check("foo", "Zm9v");
        check("foobar", "Zm9vYmFy");
        assert_eq!(encode_base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn neither_ends_itself() {
        assert!(
            !PAGE_STYLE.contains("</")
                && !PAGE_SCRIPT.contains("</")
                && !PAGE_SCRIPT.contains("<!--")
        );
    }
}
