//! What stands around every page: its head, with style and script inside or as files, and its landmarks.

use super::asset::{SCRIPT, STYLE, policy};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Where a page has its style and its script from.
#[derive(Clone, Copy, Debug)]
pub enum Assets<'a> {
    /// From itself: it is one file, and lets in nothing else.
    Inside,
    /// From these addresses; the policy is the server's business.
    At {
        /// The style.
        style: &'a str,
        /// The script.
        script: &'a str,
    },
}

/// A page with this title and these sections, each with a name to lead to it.
#[must_use]
pub fn page(title: &str, assets: Assets<'_>, sections: &[(&str, &str)], body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                @if let Assets::Inside = assets { meta http-equiv="Content-Security-Policy" content=(policy()); }
                title { (title) }
                (style(assets))
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    p.brand { "treebeam" }
                    nav aria-label="Sections" { @for (id, name) in sections { a href={ "#" (id) } { (name) } } }
                }
                main #main { h1 { (title) } (body) }
                (script(assets))
            }
        }
    }
}

/// The style and the script of a page that does not carry them itself; the script waits for the page.
pub(super) fn style_and_script(assets: Assets<'_>) -> Markup {
    html! { (style(assets)) (script(assets)) }
}

fn style(assets: Assets<'_>) -> Markup {
    match assets {
        Assets::Inside => html! { style { (PreEscaped(STYLE)) } },
        Assets::At { style, .. } => html! { link rel="stylesheet" href=(style); },
    }
}

fn script(assets: Assets<'_>) -> Markup {
    match assets {
        Assets::Inside => html! { script { (PreEscaped(SCRIPT)) } },
        Assets::At { script, .. } => html! { script src=(script) defer {} },
    }
}
