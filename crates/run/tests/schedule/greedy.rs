//! A greedy list schedule in the order of ids, as a reference for the loop, without the plan.

use crate::virtual_time::Length;

/// Limits on parallel work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    pub(crate) evals: usize,
    pub(crate) per_node: Option<usize>,
    pub(crate) sweeps: Option<usize>,
}

/// The state of an eval.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Queue,
    Implementing(u64),
    Waiting,
    Sweeping(u64),
    End,
}

/// An eval of a depth: its node, and how long it takes.
pub(crate) type Work = (usize, Length);

/// Returns the duration of a depth if, whenever something ends, the first eval that can go on does.
pub(crate) fn makespan(work: &[Work], lanes: Lanes) -> u64 {
    let mut at = vec![At::Queue; work.len()];
    let mut now = 0;
    loop {
        for state in &mut at {
            if matches!(*state, At::Implementing(end) if end <= now) {
                *state = At::Waiting;
            } else if matches!(*state, At::Sweeping(end) if end <= now) {
                *state = At::End;
            }
        }
        while begin(work, &mut at, lanes, now) {}
        let ends = at.iter().filter_map(|state| match state {
            At::Implementing(end) | At::Sweeping(end) => Some(*end),
            At::Queue | At::Waiting | At::End => None,
        });
        let Some(next) = ends.min() else { return now };
        now = next;
    }
}

/// Advances the first eval that can go on, sweeps before the beginnings of evals.
fn begin(work: &[Work], at: &mut [At], lanes: Lanes, now: u64) -> bool {
    let count = |wanted: &dyn Fn(usize) -> bool| (0..work.len()).filter(|n| wanted(*n)).count();
    let is_sweeping = |n: usize| matches!(at[n], At::Sweeping(_));
    let is_begun = |n: usize| !matches!(at[n], At::Queue | At::End);
    if lanes.sweeps.is_none_or(|most| count(&is_sweeping) < most)
        && let Some(next) = at.iter().position(|state| *state == At::Waiting)
    {
        at[next] = At::Sweeping(now + work[next].1.sweep);
        return true;
    }
    if count(&is_begun) >= lanes.evals {
        return false;
    }
    let has_room = |node| {
        let busy = count(&|n: usize| is_begun(n) && work[n].0 == node);
        lanes.per_node.is_none_or(|most| busy < most)
    };
    let Some(next) = (0..work.len()).find(|n| at[*n] == At::Queue && has_room(work[*n].0)) else {
        return false;
    };
    at[next] = At::Implementing(now + work[next].1.implement);
    true
}
