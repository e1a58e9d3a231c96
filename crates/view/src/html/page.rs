//! What stands around every page: its head, with style and script inside or as files, and its landmarks.

use super::asset::{PAGE_SCRIPT, PAGE_STYLE, content_security_policy};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Where a page has its style and its script from.
#[derive(Clone, Copy, Debug)]
pub enum PageAssets<'a> {
    /// From itself: it is one file, and lets in nothing else.
    Embedded,
    /// From these addresses; the policy is the server's business.
    Linked {
        /// The style.
        style: &'a str,
        /// The script.
        script: &'a str,
    },
}

/// A page with this title and these sections, each with a name to lead to it.
#[must_use]
pub fn render_page(
    title: &str,
    assets: PageAssets<'_>,
    sections: &[(&str, &str)],
    body: &Markup,
) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                @if let PageAssets::Embedded = assets { meta http-equiv="Content-Security-Policy" content=(content_security_policy()); }
                title { (title) }
                (render_style(assets))
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    p.brand { "treebeam" }
                    nav aria-label="Sections" { @for (id, name) in sections { a href={ "#" (id) } { (name) } } }
                }
                main #main { h1 { (title) } (body) }
                (render_script(assets))
            }
        }
    }
}

/// The style and the script of a page that does not carry them itself; the script waits for the page.
pub(super) fn render_style_and_script(assets: PageAssets<'_>) -> Markup {
    html! { (render_style(assets)) (render_script(assets)) }
}

fn render_style(assets: PageAssets<'_>) -> Markup {
    match assets {
        PageAssets::Embedded => html! { style { (PreEscaped(PAGE_STYLE)) } },
        PageAssets::Linked { style, .. } => html! { link rel="stylesheet" href=(style); },
    }
}

fn render_script(assets: PageAssets<'_>) -> Markup {
    match assets {
        PageAssets::Embedded => html! { script { (PreEscaped(PAGE_SCRIPT)) } },
        PageAssets::Linked { script, .. } => html! { script src=(script) defer {} },
    }
}
