//! Close of a depth: the fate of its evals, the promotion of its best to nodes, and the next depth.

use super::{State, StateError, state_error};
use crate::event::LeftoverKind;
use crate::facts::{
    CandidateFate, ClosedDepth, Eval, Node, NodeOrigin, RemovalState, RunPhase, Stage,
    StoredVerdict,
};
use crate::gate::GateVerdict;
use crate::group::EvalGroup;
use crate::id::{Depth, EvalId, NodeId};
use jiff::Timestamp;

impl State {
    pub(super) fn depth_closed(
        &mut self,
        depth: Depth,
        verdicts: &[(EvalId, GateVerdict)],
        beam: &[EvalId],
        cut_short: bool,
    ) -> Result<(), StateError> {
        let searching = matches!(self.facts.phase, RunPhase::Searching);
        if !searching || depth != self.facts.depth || self.is_depth_open() {
            return state_error(format!("depth {depth} closes while it is not at its end"));
        }
        let judged = verdicts.iter().map(|(eval, _)| *eval);
        if !self.scored_evals(EvalGroup::Tree).eq(judged)
            || !beam.iter().all(|id| verdicts.iter().any(|(of, _)| of == id))
        {
            return state_error(format!(
                "depth {depth} closes without a verdict on each of its evals"
            ));
        }
        for (eval, verdict) in verdicts {
            let chosen = beam.contains(eval);
            let fate = if chosen { CandidateFate::Chosen } else { CandidateFate::Dropped };
            self.decide_eval(*eval, verdict, fate)?;
            if !chosen {
                self.release_candidate(*eval);
            }
        }
        for eval in self.scored_evals(EvalGroup::Control).collect::<Vec<_>>() {
            self.release_candidate(eval);
        }
        self.close_unfinished()?;
        let failed = |eval: &&Eval| matches!(eval.stage, Stage::Failed { .. });
        let failed = self.facts.open_evals().iter().filter(failed).count();
        self.facts.closed.push(ClosedDepth {
            expanded: self.facts.expanded_at_open_depth().collect(),
            evals_end: self.facts.next_eval_id(),
            failed: u32::try_from(failed).unwrap_or(u32::MAX),
            beam: beam.to_vec(),
            cut_short,
        });
        self.facts.phase = RunPhase::Promoting { left: beam.to_vec() };
        self.facts.history.suspects.clear();
        self.open_next_depth();
        Ok(())
    }

    /// Returns the evals of a group that are scored and not judged at the open depth.
    fn scored_evals(&self, group: EvalGroup) -> impl Iterator<Item = EvalId> {
        let scored =
            move |eval: &&Eval| eval.group == group && matches!(eval.stage, Stage::Scored(_));
        self.facts.open_evals().iter().filter(scored).map(|eval| eval.id)
    }

    fn decide_eval(
        &mut self,
        eval: EvalId,
        verdict: &GateVerdict,
        fate: CandidateFate,
    ) -> Result<(), StateError> {
        let stage = std::mem::replace(&mut self.eval_mut(eval)?.stage, Stage::Queued);
        let Stage::Scored(measured) = stage else {
            return state_error(format!("eval {eval} is judged without a score"));
        };
        let word = StoredVerdict::from_verdict(verdict, &measured, &self.facts.settings);
        self.eval_mut(eval)?.stage = Stage::Decided(measured, word, fate);
        Ok(())
    }

    pub(super) fn node_added(
        &mut self,
        id: NodeId,
        from: EvalId,
        at: Timestamp,
    ) -> Result<(), StateError> {
        let RunPhase::Promoting { left } = &mut self.facts.phase else {
            return state_error(format!("eval {from} is promoted out of turn"));
        };
        if left.first() != Some(&from) || id != self.facts.next_node_id() {
            return state_error(format!("eval {from} is promoted out of turn"));
        }
        let parent = self.eval_mut(from)?.parent;
        let Stage::Decided(measured, _, fate) = &mut self.eval_mut(from)?.stage else {
            return state_error(format!("eval {from} is promoted without a verdict"));
        };
        *fate = CandidateFate::Promoted(id);
        let commit = measured.work.commit.clone();
        let parent = self.node_mut(parent)?;
        let origin =
            NodeOrigin::Promoted { parent: parent.id, from, forked_at: parent.latest_turn() };
        let depth = parent.depth.next();
        let node = Node { id, origin, depth, commit, created_at: at, expansions: Vec::new() };
        self.facts.nodes.push(node);
        if let RunPhase::Promoting { left } = &mut self.facts.phase {
            left.remove(0);
        }
        self.add_leftover(from, LeftoverKind::Branch, RemovalState::Due);
        self.release_worktree(from);
        self.open_next_depth();
        Ok(())
    }

    /// Opens the next depth once the beam is promoted. An empty beam leaves the frontier unchanged.
    fn open_next_depth(&mut self) {
        if self.facts.phase != (RunPhase::Promoting { left: Vec::new() }) {
            return;
        }
        self.facts.frontier = self.facts.promoted_frontier();
        self.facts.depth = self.facts.depth.next();
        self.facts.phase = RunPhase::Searching;
        self.facts.pack_closed_depths();
    }
}
