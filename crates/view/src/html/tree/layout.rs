//! Computes a tidy tree layout: children in order, parents centred, subtrees as close as outlines
//! allow. Linear in the number of items, and without recursion, whatever the depth. Knows nothing
//! of runs.

/// An item to be placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutItem {
    /// Index of the parent, which is smaller than its own; `None` for the root.
    pub(super) parent: Option<usize>,
    /// Space that it needs before and after its position.
    pub(super) room: (f64, f64),
}

/// Position of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LayoutSpot {
    /// Number of steps from the root.
    pub(super) level: usize,
    /// Position across the levels.
    pub(super) across: f64,
}

/// Outline of a subtree, deepest level first: start and end on each level, without the shift.
#[derive(Debug, Default)]
struct SubtreeOutline {
    levels: Vec<(f64, f64)>,
    shift: f64,
}

impl SubtreeOutline {
    /// Iterates over the levels from the root down.
    fn levels_down(&self) -> impl Iterator<Item = (f64, f64)> {
        self.levels.iter().rev().map(|(low, high)| (low + self.shift, high + self.shift))
    }

    /// Returns how far `next` has to be moved to be beyond this outline on every level.
    fn shift_beyond(&self, next: &Self) -> f64 {
        let overlaps =
            self.levels_down().zip(next.levels_down()).map(|((_, high), (low, _))| high - low);
        overlaps.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Merges an outline that is beyond this one. Takes as many steps as the shallower of the two
    /// has levels.
    fn merge_with(&mut self, next: Self) {
        let shared = self.levels.len().min(next.levels.len());
        if next.levels.len() > self.levels.len() {
            let before = std::mem::replace(self, next);
            let moved = before.shift - self.shift;
            let pairs = self.levels.iter_mut().rev().zip(before.levels.iter().rev());
            pairs.take(shared).for_each(|(level, (low, _))| level.0 = low + moved);
        } else {
            let moved = next.shift - self.shift;
            let pairs = self.levels.iter_mut().rev().zip(next.levels.iter().rev());
            pairs.take(shared).for_each(|(level, (_, high))| level.1 = high + moved);
        }
    }
}

/// Children of an item, placed beside each other in their own frame.
#[derive(Debug, Default)]
struct ChildrenFrame {
    outline: SubtreeOutline,
    /// Positions of the first and the last child in the frame.
    ends: Option<(f64, f64)>,
    /// Offset of the frame in that of the item's parent.
    shift: f64,
}

impl ChildrenFrame {
    /// Returns the position of the parent: the middle of its children.
    fn parent_position(&self) -> f64 {
        self.ends.map_or(0.0, |(first, last)| f64::midpoint(first, last))
    }

    /// Places a child, at `at` in its own frame, beyond the present ones; returns how far it was
    /// moved.
    fn add_child(&mut self, mut child: SubtreeOutline, at: f64) -> f64 {
        let Some((first, _)) = self.ends else {
            child.shift -= at;
            (self.outline, self.ends) = (child, Some((0.0, 0.0)));
            return -at;
        };
        let shift = self.outline.shift_beyond(&child);
        child.shift += shift;
        self.outline.merge_with(child);
        self.ends = Some((first, at + shift));
        shift
    }
}

/// Places all items; the smallest extent across is 0.
pub(super) fn layout_tree(items: &[LayoutItem]) -> Vec<LayoutSpot> {
    let mut broods: Vec<ChildrenFrame> = items.iter().map(|_| ChildrenFrame::default()).collect();
    // The last item is placed first, so that children precede their parents. As this also places
    // the last child first, the result is mirrored and flipped at the end.
    for (at, item) in items.iter().enumerate().rev() {
        let Some((before, [brood, ..])) = broods.split_at_mut_checked(at) else { continue };
        let middle = brood.parent_position();
        let mut outline = std::mem::take(&mut brood.outline);
        let here = middle - outline.shift;
        outline.levels.push((here - item.room.1, here + item.room.0));
        if let Some(parent) = item.parent.and_then(|parent| before.get_mut(parent)) {
            brood.shift = parent.add_child(outline, middle);
        }
    }
    flip_across(items, &absolute_spots(items, &broods))
}

/// Converts positions from each item's own frame to a common one.
fn absolute_spots(items: &[LayoutItem], broods: &[ChildrenFrame]) -> Vec<LayoutSpot> {
    let mut frames: Vec<(usize, f64)> = Vec::with_capacity(items.len());
    let mut spots = Vec::with_capacity(items.len());
    for (item, brood) in items.iter().zip(broods) {
        let above = item.parent.and_then(|parent| frames.get(parent));
        let (level, frame) = above.map_or((0, 0.0), |(level, frame)| (level + 1, *frame));
        let frame = frame + brood.shift;
        frames.push((level, frame));
        spots.push(LayoutSpot { level, across: frame + brood.parent_position() });
    }
    spots
}

/// Mirrors the positions, with the smallest extent at 0.
fn flip_across(items: &[LayoutItem], spots: &[LayoutSpot]) -> Vec<LayoutSpot> {
    let ends = items.iter().zip(spots).map(|(item, spot)| spot.across + item.room.0);
    let most = ends.fold(f64::NEG_INFINITY, f64::max);
    spots.iter().map(|spot| LayoutSpot { across: most - spot.across, ..*spot }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(parents: &[usize]) -> Vec<LayoutItem> {
        let root = LayoutItem { parent: None, room: (5.0, 5.0) };
        let child = |parent: &usize| LayoutItem { parent: Some(*parent), room: (5.0, 5.0) };
        std::iter::once(root).chain(parents.iter().map(child)).collect()
    }

    fn across(parents: &[usize]) -> Vec<f64> {
        layout_tree(&tree(parents)).iter().map(|spot| spot.across).collect()
    }

    #[test]
    fn children_stand_in_order_and_their_parent_in_the_middle() {
        assert_eq!(across(&[]), [5.0]);
        assert_eq!(across(&[0, 0, 0]), [15.0, 5.0, 15.0, 25.0]);
        // A child without children may be placed above those of its neighbour.
        assert_eq!(across(&[0, 0, 2, 2, 2]), [10.0, 5.0, 15.0, 5.0, 15.0, 25.0]);
        let levels: Vec<_> = layout_tree(&tree(&[0, 1, 2])).iter().map(|spot| spot.level).collect();
        assert_eq!(levels, [0, 1, 2, 3]);
    }

    #[test]
    fn nothing_overlaps_in_trees_of_all_kinds() {
        let mut number = 7_usize;
        for size in 1..200 {
            let mut random = |below: usize| {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (number >> 33) % below
            };
            let mut parents: Vec<usize> = (1..=size).map(|at| random(at).max(at / 3)).collect();
            parents.sort_unstable();
            let items = tree(&parents);
            let spots = layout_tree(&items);
            for (at, spot) in spots.iter().enumerate() {
                for other in &spots[..at] {
                    let apart = (other.across - spot.across).abs() >= 9.999;
                    assert!(other.level != spot.level || apart, "{parents:?}\n{spots:?}");
                }
            }
        }
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_takes_no_stack_and_no_time() {
        let parents: Vec<usize> = (0..100_000).flat_map(|at| [at * 2, at * 2]).collect();
        let chain: Vec<usize> = parents.iter().map(|at| at.saturating_sub(at % 2)).collect();
        assert_eq!(layout_tree(&tree(&chain)).len(), 200_001);
    }
}
