//! Every answer is on disk before it is used, and one that is there is not asked for again. Nor is a question whose
//! provider is known to have forgotten what it was to go on from.

use super::calls::{Calls, Kept};
use super::crew::Crew;
use super::question::{Answer, Meter, Question, Trouble};
use super::wait::Observer;
use jiff::Timestamp;
use treebeam_run::port::Reply;

/// A layer that remembers.
pub(super) struct Recorded<'a, A> {
    pub(super) inner: A,
    pub(super) calls: &'a Calls,
    pub(super) crew: &'a Crew,
    pub(super) observer: &'a dyn Observer,
}

impl<A: Answer> Answer for Recorded<'_, A> {
    fn answer(&self, question: &Question, meter: &dyn Meter) -> Result<Reply, Trouble> {
        let key = &question.key;
        match self.calls.find(question)? {
            Kept::Reply(reply) => return Ok(reply),
            Kept::Forgotten(why) => return Err(Trouble::Forgotten(why)),
            Kept::None => {}
            Kept::Other(_) => self.calls.set_aside(question)?,
            Kept::Damaged(why) => {
                self.observer.note(&format!("the answer `{key}` is asked for again: {why}"));
                self.calls.set_aside(question)?;
            }
        }
        let settings = self.crew.settings(question.role)?;
        let asked_at = Timestamp::now();
        let reply = match self.inner.answer(question, meter) {
            Err(Trouble::Forgotten(why)) => {
                self.calls.keep_forgotten(question, &why)?;
                return Err(Trouble::Forgotten(why));
            }
            Err(Trouble::Unreadable { why, raw, spent }) => {
                let file = self.calls.keep_raw(question, &raw)?;
                let why = format!("{why} (kept as `{file}`)");
                return Err(Trouble::Unanswered { why, spent });
            }
            answered => answered?,
        };
        let kept_as = self.calls.keep(question, settings, &reply, asked_at)?;
        self.calls.release(question)?;
        Ok(Reply { kept_as, ..reply })
    }
}
