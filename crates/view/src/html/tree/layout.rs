//! A tidy layout: children in their order, a parent in the middle of them, subtrees as near to each other as their outlines
//! allow. Linear in the number of items, and no recursion, whatever the depth. Knows nothing of runs.

/// One thing to be placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutItem {
    /// Its parent's place in the list, which comes before its own; none for the root.
    pub(super) parent: Option<usize>,
    /// How much room it needs across, before its own place and after it.
    pub(super) room: (f64, f64),
}

/// Where something lies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LayoutSpot {
    /// How many steps from the root.
    pub(super) level: usize,
    /// Across.
    pub(super) across: f64,
}

/// The outline of a subtree, the deepest level first: where it begins and ends there, less the shift.
#[derive(Debug, Default)]
struct SubtreeOutline {
    levels: Vec<(f64, f64)>,
    shift: f64,
}

impl SubtreeOutline {
    /// From the root down.
    fn levels_down(&self) -> impl Iterator<Item = (f64, f64)> {
        self.levels.iter().rev().map(|(low, high)| (low + self.shift, high + self.shift))
    }

    /// How far another one has to be moved to lie beyond this one on every level.
    fn shift_beyond(&self, next: &Self) -> f64 {
        let overlaps =
            self.levels_down().zip(next.levels_down()).map(|((_, high), (low, _))| high - low);
        overlaps.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Takes in one that lies beyond. Costs as many steps as the shallower of the two has levels.
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

/// What is known of an item before its own place: its children, put beside each other in a frame of their own.
#[derive(Debug, Default)]
struct ChildrenFrame {
    outline: SubtreeOutline,
    /// Where the first and the last child lie in it.
    ends: Option<(f64, f64)>,
    /// How far it has to be moved to lie in its parent's frame.
    shift: f64,
}

impl ChildrenFrame {
    /// Where the parent lies: in the middle.
    fn parent_position(&self) -> f64 {
        self.ends.map_or(0.0, |(first, last)| f64::midpoint(first, last))
    }

    /// Puts one more child, which lies there in its own frame, beyond those that are there; gives how far it was moved.
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

/// Places every item; what lies first across begins at 0.
pub(super) fn layout_tree(items: &[LayoutItem]) -> Vec<LayoutSpot> {
    let mut broods: Vec<ChildrenFrame> = items.iter().map(|_| ChildrenFrame::default()).collect();
    // From the last to the first, so that children are done before their parents. The last child is placed first: the
    // drawing is made from its far side, and turned round in the end.
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

/// From each one's own frame to that of all.
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

/// The other way round, beginning at 0.
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
        // A child without children may stand above those of its neighbour.
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
