//! Handles changes requested from a page, as the commands `pause`, `unpause`, `stop` and
//! `idea add`.

use super::Dashboard;
use super::form::FormFields;
use super::pages::{AdmittedRequest, PageRefusal, PageResponse};
use crate::command::{idea, steer};
use treebeam_core::event::UserRequest;
use treebeam_core::id::CodePlace;
use treebeam_run::port::UserIdea;
use treebeam_run::reply;
use treebeam_view::html::site;

pub(super) fn pause_run(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    post_wish(site, asked, UserRequest::Pause)
}

pub(super) fn unpause_run(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    post_wish(site, asked, UserRequest::Unpause)
}

pub(super) fn stop_run(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    post_wish(site, asked, UserRequest::Stop)
}

pub(super) fn stop_run_after_depth(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    post_wish(site, asked, UserRequest::StopAfterDepth)
}

fn post_wish(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
    wish: UserRequest,
) -> Result<PageResponse, PageRefusal> {
    let watched = site.watched_run(asked)?;
    let receipt = steer::steer_run(&site.requested_run(asked)?, wish)?;
    watched.recheck_runner();
    Ok(confirmation_page(asked, &receipt.text))
}

pub(super) fn add_idea(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let found = site.requested_run(asked)?;
    let given = idea::post_idea(&found, parse_idea_form(&FormFields::parse(&asked.request.body))?)?;
    Ok(confirmation_page(asked, &given.render_text()))
}

fn parse_idea_form(fields: &FormFields) -> Result<UserIdea, PageRefusal> {
    let text = reply::parse_user_idea(fields.get("text").unwrap_or_default())
        .map_err(|why| PageRefusal::new(400, format!("this is no idea: {why}")))?;
    let node = fields.get("node").map(str::trim).filter(|node| !node.is_empty());
    let node = match node.map(str::parse) {
        None => None,
        Some(Ok(CodePlace::Node(node))) => Some(node),
        Some(_) => return Err(PageRefusal::new(400, "the node has to be one such as n0003")),
    };
    Ok(UserIdea { node, text })
}

fn confirmation_page(asked: &AdmittedRequest<'_>, text: &str) -> PageResponse {
    match &asked.names.run {
        Some(run) => PageResponse::from_html_body(
            "Heard",
            &[],
            None,
            &site::render_request_result(run, text),
        ),
        None => PageResponse::from_html_body("Heard", &[], None, &site::render_refusal(text, None)),
    }
}
