//! Builds the addresses of the site, and redirects the links of a report to them. A report has one
//! page with anchors; on the site each node and eval has its own page.

use maud::{Markup, PreEscaped, Render};
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, EvalId, RunId};

/// An address of the site. Names are safe in an address; text typed by a user is encoded.
#[derive(Clone, Copy, Debug)]
pub enum SiteAddress<'a> {
    /// Page of a run.
    Run(&'a RunId),
    /// Event stream of a run.
    Events(&'a RunId),
    /// Part of the page of a run, a node or an eval.
    Part(&'a RunId, &'a str),
    /// List of a run's evals.
    Evals(&'a RunId),
    /// List of found evals before this one.
    Older(&'a RunId, &'a str, EvalId),
    /// List of found evals, before this one if given, as a part of its page.
    Found(&'a RunId, &'a str, Option<EvalId>),
    /// Page of a node or an eval.
    Place(&'a RunId, CodePlace),
    /// Log of a place's commands.
    Log(&'a RunId, CodePlace),
    /// Event stream of a log.
    LogEvents(&'a RunId, CodePlace),
    /// Page to compare two places, the first of which may be given.
    Compare(&'a RunId, Option<CodePlace>),
    /// Comparison of two places, as a part of its page.
    Both(&'a RunId, [CodePlace; 2]),
    /// Findings of a validation.
    Checks(&'a RunId),
    /// Target of a request to the runner.
    Wish(&'a RunId, &'a str),
    /// File of a run.
    File(&'a RunId, &'a str),
}

impl std::fmt::Display for SiteAddress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run(run) => write!(f, "/runs/{run}"),
            Self::Events(run) => write!(f, "/runs/{run}/events"),
            Self::Part(run, name) => write!(f, "/runs/{run}/part/{name}"),
            Self::Evals(run) => write!(f, "/runs/{run}/evals"),
            Self::Older(run, find, before) => {
                write!(f, "/runs/{run}/evals?find={}&before={before}", encode_query(find))
            }
            Self::Found(run, find, before) => {
                write!(f, "/runs/{run}/evals/list?find={}", encode_query(find))?;
                before.map_or(Ok(()), |before| write!(f, "&before={before}"))
            }
            Self::Place(run, place) => write!(f, "/runs/{run}/at/{place}"),
            Self::Log(run, place) => write!(f, "/runs/{run}/at/{place}/log"),
            Self::LogEvents(run, place) => write!(f, "/runs/{run}/at/{place}/log/events"),
            Self::Compare(run, None) => write!(f, "/runs/{run}/compare"),
            Self::Compare(run, Some(first)) => write!(f, "/runs/{run}/compare?first={first}"),
            Self::Both(run, [first, second]) => {
                write!(f, "/runs/{run}/compare/both?first={first}&second={second}")
            }
            Self::Checks(run) => write!(f, "/runs/{run}/validation"),
            Self::Wish(run, wish) => write!(f, "/runs/{run}/{wish}"),
            Self::File(run, path) => write!(f, "/runs/{run}/file?path={}", encode_query(path)),
        }
    }
}

impl Render for SiteAddress<'_> {
    fn render_to(&self, html: &mut String) {
        self.to_string().render_to(html);
    }
}

/// Encodes text for a query: everything but letters, digits and a few more as `%41`.
fn encode_query(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Redirects the links of a markup to pages of the site. Quotes in foreign text are escaped, so
/// each `href="` is ours.
#[must_use]
pub fn link_to_site(markup: &Markup, facts: &Facts) -> Markup {
    const HREF_START: &str = " href=\"";
    let mut pieces = markup.0.split(HREF_START);
    let mut html = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (target, rest) = piece.split_once('"').unwrap_or((piece, ""));
        if let Some(to) = site_target(target, &facts.run) {
            html.push_str(&format!("{HREF_START}{}\"", to.render().0));
        }
        html.push_str(rest);
    }
    PreEscaped(html)
}

fn site_target(target: &str, run: &RunId) -> Option<String> {
    if target.starts_with('/') {
        return Some(target.replace("&amp;", "&"));
    }
    Some(match target.strip_prefix('#') {
        Some(name) => match name.parse::<CodePlace>() {
            Ok(place) => SiteAddress::Place(run, place).to_string(),
            Err(_) => target.to_owned(),
        },
        // A folder has no page.
        None if target.ends_with('/') => return None,
        // A report is stored beside the files of its run, and links them by relative paths.
        None => SiteAddress::File(run, &decode_percent(target)?).to_string(),
    })
}

/// Decodes the percent signs in a report's link.
fn decode_percent(target: &str) -> Option<String> {
    let (first, rest) = target.split_once('%').unwrap_or((target, ""));
    let mut bytes = first.as_bytes().to_vec();
    for piece in rest.split('%').filter(|_| target.contains('%')) {
        let (digits, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_a_report_leads_to_a_page() {
        let run: RunId = "t".parse().unwrap();
        let check = |target: &str, to: Option<&str>| {
            assert_eq!(site_target(target, &run).as_deref(), to, "{target}");
        };
        check("#e0012", Some("/runs/t/at/e0012"));
        check("#n0000", Some("/runs/t/at/n0000"));
        check("#overview", Some("#overview"));
        check("eval/0001/a%20b.txt", Some("/runs/t/file?path=eval/0001/a%20b.txt"));
        check("artifacts/%C3%BC", Some("/runs/t/file?path=artifacts/%C3%BC"));
        check("a%2", None);
        check("eval/0001/", None);
        check("/runs/t/evals?find=a&amp;before=0001", Some("/runs/t/evals?find=a&before=0001"));
    }
}
