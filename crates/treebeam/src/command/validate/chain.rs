//! Checks the chain of a journal's lines, and its end against the run's journal ref: finds a journal that was cut at a line
//! end, or rebuilt without that ref. Whoever rewrites both is not found.

use crate::failure::Failure;
use crate::terminal;
use treebeam_core::audit::Finding;
use treebeam_core::facts::Facts;
use treebeam_edge::git::{GitRepo, UserRepo, journal_ref};
use treebeam_edge::store::RunDir;
use treebeam_edge::store::chain::{self, ChainSurvey};
use treebeam_run::port::JournalTip;

/// Name of the file in findings.
const JOURNAL: &str = "journal.jsonl";

/// Adds what is wrong with the chain. A journal that cannot be read was found before.
pub(super) fn check(
    run: &RunDir,
    repo: Option<&UserRepo>,
    facts: &Facts,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let repo = repo.map(|repo| GitRepo::new(repo.clone(), run.root(), facts.run.clone()));
    let repo = repo.transpose()?;
    let tip = match repo.as_ref().map(GitRepo::journal_tip).transpose() {
        Ok(tip) => tip.flatten(),
        Err(error) => {
            let advice = "the next stop of the run writes it anew";
            findings.push(Finding::new(error.in_full(), journal_ref(&facts.run), advice).warning());
            None
        }
    };
    let Ok(survey) = chain::survey(run, tip.map(|tip| tip.seq)) else { return Ok(()) };
    tell_of_older_lines(&survey);
    findings.extend(survey.unchained.first().map(|event| not_chained(*event)));
    match (&repo, tip) {
        (Some(_), Some(tip)) => findings.extend(compared_with_ref(&survey, tip, facts)),
        (Some(_), None) => findings.extend(without_ref(&survey, facts)),
        (None, _) => {
            terminal::note("the end of the journal is not checked: its ref is in the repository");
        }
    }
    Ok(())
}

/// Lines of an older treebeam are no damage.
fn tell_of_older_lines(survey: &ChainSurvey) {
    let last_unchained = match survey.chained_from {
        None => survey.last,
        Some(from) => from.saturating_sub(1).max(survey.first.saturating_sub(1)),
    };
    if survey.first > 0 && last_unchained >= survey.first {
        let first = survey.first;
        terminal::note(&format!(
            "events {first} to {last_unchained} of the journal are not chained: an older treebeam wrote them"
        ));
    }
}

fn not_chained(event: u64) -> Finding {
    let what = format!("event {event} is not chained to the one before it, as earlier events are");
    let advice = "none is needed where an older treebeam went on with the run at that time";
    Finding::new(what, JOURNAL, advice).warning()
}

/// The line that the ref names must be in the journal, as it was.
fn compared_with_ref(survey: &ChainSurvey, tip: JournalTip, facts: &Facts) -> Option<Finding> {
    let name = journal_ref(&facts.run);
    let JournalTip { seq, digest } = tip;
    let is_before = survey.first > seq || (survey.first == 0 && survey.last >= seq);
    if is_before {
        terminal::note(&format!(
            "the journal begins after event {seq}, which `{name}` names: the run went on from its manifest alone"
        ));
        return None;
    }
    let (what, advice) = if survey.last < seq {
        let last = survey.last;
        let what = format!("it ends at event {last}, but `{name}` names event {seq}: it was cut");
        (what, "restore the journal from a backup")
    } else if survey.digest != Some(digest) {
        let what = format!("its event {seq} is not the one that `{name}` names: it was rewritten");
        (what, "restore the journal from a backup")
    } else {
        return None;
    };
    Some(Finding::new(what, JOURNAL, advice))
}

/// A depth was closed, or the run stopped, and nothing in the repository says so.
fn without_ref(survey: &ChainSurvey, facts: &Facts) -> Option<Finding> {
    let event = survey.sealed_from?;
    let name = journal_ref(&facts.run);
    let what = format!("`{name}` is missing, which is written after event {event}");
    let advice = "none is needed where the repository was cloned or the ref was removed on purpose: \
                  the next stop of the run writes it anew; the end of the journal is not checked";
    Some(Finding::new(what, JOURNAL, advice).warning())
}
