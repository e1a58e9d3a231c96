//! Renders the frame of every page: head, landmarks, and style and script, embedded or linked.

use super::asset::{PAGE_SCRIPT, PAGE_STYLE, content_security_policy};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Source of a page's style and script.
#[derive(Clone, Copy, Debug)]
pub enum PageAssets<'a> {
    /// Embedded in the page: it is one file, and allows nothing else.
    Embedded,
    /// Linked by these addresses; the server sets the policy.
    Linked {
        /// Address of the style.
        style: &'a str,
        /// Address of the script.
        script: &'a str,
    },
}

/// Renders a page with this title and navigation links to these sections (id and name).
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

/// Renders links to style and script, or both themselves; a linked script is deferred.
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
