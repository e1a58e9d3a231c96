//! Checks the hash chain of a journal, and its end against the run's journal ref.
//!
//! Finds a journal that was cut at a line end, or rebuilt without that ref, but not one that was
//! rewritten together with it. A resume checks the end too, and only prints a note.

use super::{add_journal_damage, error_chain_text};
use crate::failure::CommandFailure;
use crate::run_location::RepoHome;
use crate::terminal;
use treebeam_core::audit::AuditFinding;
use treebeam_core::facts::Facts;
use treebeam_git::{GitRepo, UserRepo, journal_ref};
use treebeam_run::port::{Journal as _, JournalTip};
use treebeam_store::journal_chain::{self, ChainSurvey};
use treebeam_store::{RunDir, RunStore};

/// Name of the file in findings.
const JOURNAL_FILE: &str = "journal.jsonl";

/// Adds findings about the chain. This is the only check that reads all lines of a journal that
/// does not begin with the run's first event.
pub(super) fn check_chain(
    run: &RunDir,
    repo: Option<&UserRepo>,
    facts: &Facts,
    findings: &mut Vec<AuditFinding>,
) -> Result<(), CommandFailure> {
    let repo = repo.map(|repo| GitRepo::new(repo.clone(), run.root(), facts.run.clone()));
    let repo = repo.transpose()?;
    let tip = match repo.as_ref().map(GitRepo::journal_tip).transpose() {
        Ok(tip) => tip.flatten(),
        Err(error) => {
            let advice = "the next stop of the run writes it anew";
            findings.push(
                AuditFinding::new(error.full_text(), journal_ref(&facts.run), advice)
                    .into_warning(),
            );
            None
        }
    };
    let survey = match journal_chain::survey_chain(run, tip.map(|tip| tip.seq)) {
        Ok(survey) => survey,
        Err(error) => {
            add_journal_damage(&error, findings);
            return Ok(());
        }
    };
    note_older_lines(&survey);
    findings.extend(survey.unchained.first().map(|event| unchained_finding(*event)));
    match (&repo, tip) {
        (Some(_), Some(tip)) => {
            let what = find_tip_difference(&survey, tip, facts);
            let advice = "restore the journal from a backup";
            findings.extend(what.map(|what| AuditFinding::new(what, JOURNAL_FILE, advice)));
        }
        (Some(_), None) => findings.extend(missing_ref_finding(&survey, facts)),
        (None, _) => {
            terminal::print_note(
                "the end of the journal is not checked: its ref is in the repository",
            );
        }
    }
    Ok(())
}

/// Prints a note about unchained lines of an older version, which are no damage.
fn note_older_lines(survey: &ChainSurvey) {
    let last_unchained = match survey.chained_from {
        None => survey.last,
        Some(from) => from.saturating_sub(1).max(survey.first.saturating_sub(1)),
    };
    if survey.first > 0 && last_unchained >= survey.first {
        let first = survey.first;
        terminal::print_note(&format!(
            "events {first} to {last_unchained} of the journal are not chained: an older treebeam wrote them"
        ));
    }
}

fn unchained_finding(event: u64) -> AuditFinding {
    let what = format!("event {event} is not chained to the one before it, as earlier events are");
    let advice = "none is needed where an older treebeam went on with the run at that time";
    AuditFinding::new(what, JOURNAL_FILE, advice).into_warning()
}

/// Prints a note on how the journal of a resumed run differs from its ref: the next stop of the run
/// writes the ref anew, and the difference cannot be found any more.
pub(in crate::command) fn note_tip_difference(
    home: &RepoHome,
    store: &RunStore,
    facts: &Facts,
) -> Result<(), CommandFailure> {
    let repo = GitRepo::new(home.repo.clone(), store.run_dir().root(), facts.run.clone())?;
    let named = match repo.journal_tip() {
        Ok(named) => named.filter(|named| store.last_line() != Some(*named)),
        Err(error) => {
            terminal::print_note(&error.full_text());
            None
        }
    };
    let Some(named) = named else { return Ok(()) };
    match journal_chain::survey_chain(store.run_dir(), Some(named.seq)) {
        Ok(survey) => {
            if let Some(what) = find_tip_difference(&survey, named, facts) {
                let next = "the run goes on, and its next stop writes the ref anew";
                terminal::print_note(&format!("`{JOURNAL_FILE}`: {what}; {next}"));
            }
        }
        Err(error) => terminal::print_note(&error_chain_text(&error)),
    }
    Ok(())
}

/// Describes how the journal differs from the line that the ref names, which must be in it
/// unchanged.
fn find_tip_difference(survey: &ChainSurvey, tip: JournalTip, facts: &Facts) -> Option<String> {
    let name = journal_ref(&facts.run);
    let JournalTip { seq, digest } = tip;
    let is_before = survey.first > seq || (survey.first == 0 && survey.last >= seq);
    if is_before {
        terminal::print_note(&format!(
            "the journal begins after event {seq}, which `{name}` names: the run went on from its manifest alone"
        ));
        return None;
    }
    if survey.last < seq {
        let last = survey.last;
        return Some(format!(
            "it ends at event {last}, but `{name}` names event {seq}: it was cut"
        ));
    }
    (survey.digest != Some(digest))
        .then(|| format!("its event {seq} is not the one that `{name}` names: it was rewritten"))
}

/// Returns a finding if a depth was closed, or the run stopped, and the ref for it is missing.
fn missing_ref_finding(survey: &ChainSurvey, facts: &Facts) -> Option<AuditFinding> {
    let event = survey.sealed_from?;
    let name = journal_ref(&facts.run);
    let what = format!("`{name}` is missing, which is written after event {event}");
    let advice = "none is needed where the repository was cloned or the ref was removed on purpose: \
                  the next stop of the run writes it anew; the end of the journal is not checked";
    Some(AuditFinding::new(what, JOURNAL_FILE, advice).into_warning())
}
