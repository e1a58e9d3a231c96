//! Lists a hundred texts that try to be more than text where they are shown.
//!
//! They target HTML, SVG, scripts, Markdown, Mermaid, terminals, paths and CSVs. As an idea, a
//! branch, a file name, a log or a cell they must stay plain text.

/// Markup, scripts and their delimiters.
const MARKUP_TEXTS: [&str; 33] = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</ScRiPt><ScRiPt>alert(1)</sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg/onload=alert(1)//",
    "</svg><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</template><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</pre></code><script>alert(1)</script>",
    "</details></section></main><h1>gone</h1>",
    "<!-- <script>alert(1)</script>",
    "--><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "]]><script>alert(1)</script>",
    "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><x>&e;</x>",
    "\"><script>alert(1)</script>",
    "'><script>alert(1)</script>",
    "\" onmouseover=\"alert(1)",
    "' onfocus='alert(1)' autofocus='",
    "` onclick=alert(1) `",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "<a href=\"javascript:alert(1)\">here</a>",
    "<iframe srcdoc=\"&lt;script&gt;alert(1)&lt;/script&gt;\"></iframe>",
    "<base href=//elsewhere.invalid/>",
    "<meta http-equiv=refresh content=\"0;url=//elsewhere.invalid\">",
    "<link rel=stylesheet href=//elsewhere.invalid/x.css>",
    "&lt;script&gt; &amp; &#60;b&#62; &quot;",
];

/// Strings and code of scripts, styles, shells, queries and templates.
const CODE_TEXTS: [&str; 14] = [
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "\";alert(1);//",
    "'-alert(1)-'",
    "${alert(1)} {{7*7}} {% raw %} <%= 1 %> #{1}",
    "__proto__",
    "constructor",
    "};alert(1);{\"a\":\"",
    "expression(alert(1)); background:url(//elsewhere.invalid/x)",
    "*{display:none}",
    "$(touch gone) `touch gone` ; touch gone | touch gone",
    "'; DROP TABLE runs; --",
    "%s%n%x {} {0} %%",
    "=HYPERLINK(\"//elsewhere.invalid\",\"x\")",
    "=1+1,@SUM(A1),+cmd|' /C calc'!A0",
];

/// Syntax of Markdown and Mermaid.
const MARKDOWN_TEXTS: [&str; 21] = [
    "a | b | c",
    "| --- | --- |",
    "`code` ``two`` ```three```",
    "```\nnot in the block\n```",
    "~~~\n# not a heading\n~~~",
    "# not a heading",
    "\n\n# not a heading\n\n",
    "- [ ] not a list\n1. not one either",
    "**bold** __bold__ *it* _it_ ~~gone~~",
    "[here](javascript:alert(1))",
    "![x](//elsewhere.invalid/x.png)",
    "[x]: //elsewhere.invalid\n[x]",
    "<https://elsewhere.invalid>",
    "> quoted\n---\n===",
    "\\| \\` \\\\ \\",
    "$x^2$ $$\\input{/etc/passwd}$$",
    "\"]:::best --> n0000[\"gone",
    "end subgraph graph TD click n0000 \"javascript:alert(1)\"",
    "%%{init: {\"securityLevel\": \"loose\"}}%%",
    "#quot;#lt;script#gt;#35;",
    "n0000 --> e0001; style n0000 fill:red\n```",
];

/// Terminal controls, and deceptive characters.
const CONTROL_TEXTS: [&str; 21] = [
    "\u{1b}[31mred\u{1b}[0m",
    "\u{1b}[2J\u{1b}[Hcleared",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]8;;//elsewhere.invalid\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{9b}31mred\u{90}x\u{9c}",
    "over\rwritten",
    "back\u{8}\u{8}\u{8}\u{8}gone",
    "a\u{0}b",
    "\u{7f}\u{1}\u{2}\u{1f}",
    "tab\tbell\u{7}feed\u{c}vertical\u{b}",
    "one\r\ntwo\rthree\u{85}four\u{2028}five\u{2029}six",
    "\u{202e}gnp.exe\u{202c}",
    "\u{2066}isolate\u{2069} \u{200f}rtl\u{200e} \u{61c}arabic",
    "שלום \u{202b}(abc)\u{202c} مرحبا",
    "zero\u{200b}width\u{200d}joined\u{2060}\u{feff}",
    "Z\u{351}\u{36b}\u{343}a\u{313}\u{34a}l\u{30b}\u{342}g\u{300}\u{301}o",
    "👩‍👩‍👧‍👦 🏴‍☠️ ﷽ 𝒳",
    "ｆｕｌｌ　ｗｉｄｔｈ 漢字",
    "＜script＞alert(1)＜/script＞",
    "\u{fffd}\u{fffe}\u{10ffff}\u{e000}",
    "tag\u{e0041}\u{e0042}\u{e007f} soft\u{ad}hyphen",
];

/// Names that lead elsewhere.
const ESCAPING_PATHS: [&str; 6] = [
    "../../../../etc/passwd",
    "..\\..\\windows\\win.ini",
    "//elsewhere.invalid/share",
    "file:///etc/passwd",
    "CON.txt:stream",
    "-rf --help",
];

/// Length of a long text.
const LONG_TEXT_BYTES: usize = 1 << 20;

/// Returns all hundred texts.
#[must_use]
pub fn all() -> Vec<String> {
    let lists: [&[&str]; 5] =
        [&MARKUP_TEXTS, &CODE_TEXTS, &MARKDOWN_TEXTS, &CONTROL_TEXTS, &ESCAPING_PATHS];
    let short = lists.into_iter().flatten().map(|text| (*text).to_owned());
    short.chain(long()).collect()
}

/// Returns the texts that are short enough to be shown a hundred times.
#[must_use]
pub fn short() -> Vec<String> {
    let mut all = all();
    all.retain(|text| text.len() < LONG_TEXT_BYTES);
    all
}

/// Returns texts of a megabyte: one word, characters that grow most when escaped, and sequences
/// that begin and never end.
fn long() -> [String; 5] {
    let (reversed, begun) =
        ("\u{202e}".repeat(LONG_TEXT_BYTES / 3 + 1), "\u{1b}]".repeat(LONG_TEXT_BYTES / 2));
    [
        "x".repeat(LONG_TEXT_BYTES),
        "<".repeat(LONG_TEXT_BYTES),
        reversed,
        begun,
        "a\n".repeat(LONG_TEXT_BYTES / 2),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_a_hundred_and_no_two_are_alike() {
        let mut all = all();
        assert_eq!((all.len(), short().len()), (100, 95));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 100);
    }
}
