//! The close of a depth: what becomes of its evals, the nodes that the best of them become, and the next depth.

use super::{State, Unexpected, wrong};
use crate::event::LeftoverKind;
use crate::facts::{ClosedDepth, Eval, Fate, Node, Origin, Phase, Removal, Stage};
use crate::gate::{Verdict, Word};
use crate::group::Group;
use crate::id::{Depth, EvalId, NodeId};
use jiff::Timestamp;

impl State {
    pub(super) fn depth_closed(
        &mut self,
        depth: Depth,
        verdicts: &[(EvalId, Verdict)],
        beam: &[EvalId],
        cut_short: bool,
    ) -> Result<(), Unexpected> {
        let searching = matches!(self.facts.phase, Phase::Searching);
        if !searching || depth != self.facts.depth || self.is_open() {
            return wrong(format!("depth {depth} closes while it is not at its end"));
        }
        let judged = verdicts.iter().map(|(eval, _)| *eval);
        if !self.scored(Group::Tree).eq(judged)
            || !beam.iter().all(|id| verdicts.iter().any(|(of, _)| of == id))
        {
            return wrong(format!("depth {depth} closes without a verdict on each of its evals"));
        }
        for (eval, verdict) in verdicts {
            let chosen = beam.contains(eval);
            let fate = if chosen { Fate::Chosen } else { Fate::Dropped };
            self.decide(*eval, verdict, fate)?;
            if !chosen {
                self.let_go(*eval);
            }
        }
        for eval in self.scored(Group::Control).collect::<Vec<_>>() {
            self.let_go(eval);
        }
        self.leave_unfinished()?;
        let failed = |eval: &&Eval| matches!(eval.stage, Stage::Failed { .. });
        let failed = self.facts.open_evals().iter().filter(failed).count();
        self.facts.closed.push(ClosedDepth {
            expanded: self.facts.expanded_at_open_depth().collect(),
            evals_end: self.facts.next_eval(),
            failed: u32::try_from(failed).unwrap_or(u32::MAX),
            beam: beam.to_vec(),
            cut_short,
        });
        self.facts.phase = Phase::Promoting { left: beam.to_vec() };
        self.facts.history.suspects.clear();
        self.go_deeper();
        Ok(())
    }

    /// Those of a group that are compared and not judged at the open depth.
    fn scored(&self, group: Group) -> impl Iterator<Item = EvalId> {
        let scored =
            move |eval: &&Eval| eval.group == group && matches!(eval.stage, Stage::Scored(_));
        self.facts.open_evals().iter().filter(scored).map(|eval| eval.id)
    }

    fn decide(&mut self, eval: EvalId, verdict: &Verdict, fate: Fate) -> Result<(), Unexpected> {
        let stage = std::mem::replace(&mut self.eval_mut(eval)?.stage, Stage::Queued);
        let Stage::Scored(measured) = stage else {
            return wrong(format!("eval {eval} is judged without a score"));
        };
        let word = Word::of(verdict, &measured, &self.facts.meaning);
        self.eval_mut(eval)?.stage = Stage::Decided(measured, word, fate);
        Ok(())
    }

    pub(super) fn node_added(
        &mut self,
        id: NodeId,
        from: EvalId,
        at: Timestamp,
    ) -> Result<(), Unexpected> {
        let Phase::Promoting { left } = &mut self.facts.phase else {
            return wrong(format!("eval {from} is promoted out of turn"));
        };
        if left.first() != Some(&from) || id != self.facts.next_node() {
            return wrong(format!("eval {from} is promoted out of turn"));
        }
        let parent = self.eval_mut(from)?.parent;
        let Stage::Decided(measured, _, fate) = &mut self.eval_mut(from)?.stage else {
            return wrong(format!("eval {from} is promoted without a verdict"));
        };
        *fate = Fate::Promoted(id);
        let commit = measured.work.commit.clone();
        let parent = self.node_mut(parent)?;
        let origin = Origin::Promoted { parent: parent.id, from, forked_at: parent.latest_turn() };
        let depth = parent.depth.next();
        let node = Node { id, origin, depth, commit, created_at: at, expansions: Vec::new() };
        self.facts.nodes.push(node);
        if let Phase::Promoting { left } = &mut self.facts.phase {
            left.remove(0);
        }
        self.leave_behind(from, LeftoverKind::Branch, Removal::Due);
        self.release(from);
        self.go_deeper();
        Ok(())
    }

    /// Opens the next depth once all of the beam are nodes. A beam of none leaves the frontier as it is.
    fn go_deeper(&mut self) {
        if self.facts.phase != (Phase::Promoting { left: Vec::new() }) {
            return;
        }
        self.facts.frontier = self.facts.standing_frontier();
        self.facts.depth = self.facts.depth.next();
        self.facts.phase = Phase::Searching;
        self.facts.settle();
    }
}
