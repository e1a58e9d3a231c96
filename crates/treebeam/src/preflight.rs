//! What must hold before a run may ask an agent anything, in this order: agents that are complete, keys that are there, a
//! clean working tree, and a user who knows what it may cost. Nothing here asks an agent.

use crate::config::Config;
use crate::config::agents::Line;
use crate::crew::{self, Seat};
use crate::estimate::{Asked, Estimate, Known};
use crate::failure::Failure;
use crate::terminal;
use treebeam_core::conversation::Mode;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_edge::agent::crew::Crew;
use treebeam_edge::agent::price::Price;
use treebeam_edge::agent::settings::{MAX_TOKENS, MAX_TOKENS_CLI};
use treebeam_run::port::{Cost, Role};

/// Whether the user was asked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// By `--yes`.
    Given,
    /// It is to be asked for, where there is somebody to ask.
    Open,
}

impl Consent {
    /// What `--yes` says.
    pub(crate) const fn of(yes: bool) -> Self {
        if yes { Self::Given } else { Self::Open }
    }
}

/// Those who do the work, if all that are needed are set and have their keys.
pub(crate) fn agents(seats: &[Seat<'_>], needed: &[Role]) -> Result<Crew, Failure> {
    for role in needed {
        if !seats.iter().any(|seat| seat.role == *role) {
            let what = format!("a run needs an agent for the role `{role}`, and none is set");
            let hint = format!("set `agents.{role}` in `treebeam.toml`");
            return Err(Failure::usage(what).hint(hint));
        }
    }
    crew::crew(seats)
}

/// Refuses `native` conversations with an idea generator that remembers nothing.
pub(crate) fn must_remember(mode: Mode, seats: &[Seat<'_>]) -> Result<(), Failure> {
    let ideas = seats.iter().find(|seat| seat.role == Role::Ideas);
    if mode != Mode::Native || ideas.is_some_and(Seat::continues) {
        return Ok(());
    }
    let who = ideas.map_or("the dry world".to_owned(), |seat| format!("`{}`", seat.provider()));
    let what = format!(
        "`idea_conversation_mode` is `native`, and {who} keeps no conversations of its own"
    );
    Err(Failure::usage(what).hint("say `auto` or `replay`"))
}

/// Refuses a summary by somebody who is not there. The dry world has its own agents.
pub(crate) fn must_sum_up(who: Option<Role>, seats: &[Seat<'_>]) -> Result<(), Failure> {
    match who.filter(|role| !seats.iter().any(|seat| seat.role == *role)) {
        None => Ok(()),
        Some(role) => {
            let what = format!("`summary_agent` is `{role}`, and no agent is set for that role");
            let hint = format!("set `agents.{role}` in `treebeam.toml`, or say `none`");
            Err(Failure::usage(what).hint(hint))
        }
    }
}

/// What a run as it is configured may take.
pub(crate) fn estimate(
    config: &Config,
    meaning: &Meaning,
    reach: &Reach,
    seats: &[Seat<'_>],
) -> Estimate {
    let prices = config.prices();
    let price = |model: &str| prices.of(model).map(|(price, _)| price);
    let asked = |seat: &Seat<'_>| {
        let (known, max_tokens, price) = match &seat.agent.line {
            Line::Model(model) => {
                let most = model.max_tokens.unwrap_or(MAX_TOKENS);
                (Known::Before, Some(most), price(&model.name))
            }
            Line::Cli(cli) => {
                let most = cli.max_tokens.unwrap_or(MAX_TOKENS_CLI);
                (Known::After, Some(most), cli.model.as_deref().and_then(price))
            }
            Line::Command(_) => (Known::Never, None, None),
            Line::Tuner => (Known::Nothing, None, Some(Price::NOTHING)),
        };
        let shown_chars = config.shown_chars(seat.role);
        Asked { role: seat.role, shown_chars, max_tokens, price, known }
    };
    let asked: Vec<Asked> = seats.iter().map(asked).collect();
    Estimate::new(meaning, reach, &asked)
}

/// Shows what a run may cost, and asks where that is much and somebody is there to say no. A script goes on.
pub(crate) fn consent(
    estimate: &Estimate,
    above: Option<Cost>,
    consent: Consent,
) -> Result<(), Failure> {
    terminal::note(&format!("a run as configured: {estimate}"));
    let much =
        above.is_some_and(|above| estimate.likely_cost() > above || estimate.is_open_ended());
    if consent == Consent::Given || !much || !terminal::is_attended() {
        return Ok(());
    }
    if terminal::confirm("start it?") {
        return Ok(());
    }
    Err(Failure::usage("not started: nothing was asked and nothing was paid for")
        .hint("`--yes` starts it without asking; `max_cost_usd` bounds what it may cost"))
}
