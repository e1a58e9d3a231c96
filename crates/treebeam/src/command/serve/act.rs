//! What can be asked for from a page: the same as by the commands `pause`, `unpause`, `stop` and `idea add`, in the same way.

use super::Dashboard;
use super::form::Fields;
use super::pages::{Asked, Page, Refusal};
use crate::command::{idea, steer};
use treebeam_core::event::Wish;
use treebeam_core::id::Place;
use treebeam_run::port::OwnIdea;
use treebeam_run::reply;
use treebeam_view::html::site;

pub(super) fn pause(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    wish(site, asked, Wish::Pause)
}

pub(super) fn unpause(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    wish(site, asked, Wish::Unpause)
}

pub(super) fn stop(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    wish(site, asked, Wish::Stop)
}

pub(super) fn stop_after_depth(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    wish(site, asked, Wish::StopAfterDepth)
}

fn wish(site: &Dashboard, asked: &Asked<'_>, wish: Wish) -> Result<Page, Refusal> {
    let watched = site.watched(asked)?;
    let told = steer::tell(&site.found(asked)?, wish)?;
    watched.doubt();
    Ok(said(asked, &told.text))
}

pub(super) fn idea(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let found = site.found(asked)?;
    let given = idea::give(&found, read(&Fields::read(&asked.request.body))?)?;
    Ok(said(asked, &given.text()))
}

fn read(fields: &Fields) -> Result<OwnIdea, Refusal> {
    let text = reply::own_idea(fields.get("text").unwrap_or_default())
        .map_err(|why| Refusal::new(400, format!("this is no idea: {why}")))?;
    let node = fields.get("node").map(str::trim).filter(|node| !node.is_empty());
    let node = match node.map(str::parse) {
        None => None,
        Some(Ok(Place::Node(node))) => Some(node),
        Some(_) => return Err(Refusal::new(400, "the node has to be one such as n0003")),
    };
    Ok(OwnIdea { node, text })
}

fn said(asked: &Asked<'_>, text: &str) -> Page {
    match &asked.names.run {
        Some(run) => Page::html("Heard", &[], None, &site::told(run, text)),
        None => Page::html("Heard", &[], None, &site::refused(text, None)),
    }
}
