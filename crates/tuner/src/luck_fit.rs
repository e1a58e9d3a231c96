//! Separation of luck and effect by least squares: one parabola per constant, one offset per node.
//! A node that was kept for its luck makes everything tried on it look worse.

/// Weight of the prior on a parabola, relative to one outcome.
const PARABOLA_PRIOR: f64 = 0.05;
/// Weight of the prior on a node's luck.
const LUCK_PRIOR: f64 = 1.0;

/// Outcome of one change: constant, node, positions and gain of the score.
#[derive(Clone, Copy, Debug)]
pub(super) struct FitSample {
    pub(super) constant: usize,
    pub(super) node: usize,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) gain: f64,
}

/// Estimated effects and luck.
#[derive(Clone, Debug)]
pub(super) struct LuckFit {
    /// Slope and bend of each constant's parabola.
    pub(super) parabolas: Vec<[f64; 2]>,
    /// Excess of each node's measured score over its true one.
    pub(super) luck: Vec<f64>,
}

/// Fits the parabolas of all constants and the luck of all nodes.
pub(super) fn fit_luck(samples: &[FitSample], constants: usize, nodes: usize) -> LuckFit {
    let size = 2 * constants + nodes;
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for (at, row) in matrix.iter_mut().enumerate() {
        if let Some(cell) = row.get_mut(at) {
            *cell = if at < 2 * constants { PARABOLA_PRIOR } else { LUCK_PRIOR };
        }
    }
    for sample in samples {
        let FitSample { from, to, gain, .. } = *sample;
        let parts = [
            (2 * sample.constant, to - from),
            (2 * sample.constant + 1, to * to - from * from),
            (2 * constants + sample.node, -1.0),
            (size, gain),
        ];
        for (row, factor) in parts.iter().take(3) {
            for (column, other) in &parts {
                if let Some(cell) = matrix.get_mut(*row).and_then(|row| row.get_mut(*column)) {
                    *cell += factor * other;
                }
            }
        }
    }
    let solved = solve_linear_system(matrix);
    let parabolas = solved.chunks_exact(2).take(constants);
    let parabolas = parabolas
        .map(|pair| [pair.first().copied().unwrap_or(0.0), pair.last().copied().unwrap_or(0.0)]);
    LuckFit {
        parabolas: parabolas.collect(),
        luck: solved.iter().skip(2 * constants).copied().collect(),
    }
}

/// Solves a linear system whose last column is its right side. Priors keep its diagonal from 0.
fn solve_linear_system(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    for at in 0..matrix.len() {
        let Some(pivot) = matrix.get(at).cloned() else { continue };
        let Some(head) = pivot.get(at).copied() else { continue };
        for (number, row) in matrix.iter_mut().enumerate() {
            let factor = row.get(at).copied().unwrap_or(0.0) / head;
            if number != at && factor != 0.0 {
                for (cell, above) in row.iter_mut().zip(&pivot) {
                    *cell -= factor * above;
                }
            }
        }
    }
    let value = |(at, row): (usize, &Vec<f64>)| Some(row.last()? / row.get(at)?);
    matrix.iter().enumerate().map(|pair| value(pair).unwrap_or(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luck_and_effect_are_told_apart() {
        // Three constants, each highest at 1; the second node was measured 0.3 too high.
        let height = |place: f64| 0.2 * place - 0.1 * place * place;
        let mut samples = Vec::new();
        for constant in 0..3 {
            for (node, luck) in [(0, 0.0), (1, 0.3)] {
                for to in [-1.0, 1.0, 2.0] {
                    let gain = height(to) - luck;
                    samples.push(FitSample { constant, node, from: 0.0, to, gain });
                }
            }
        }
        let LuckFit { parabolas, luck } = fit_luck(&samples, 3, 2);
        let near = |a: f64, b: f64| (a - b).abs() < 0.06;
        assert!(matches!(luck[..], [none, some] if near(none, 0.0) && near(some, 0.3)), "{luck:?}");
        for [slope, bend] in parabolas {
            assert!(near(slope, 0.2) && near(bend, -0.1), "{slope} {bend}");
        }
        assert!(fit_luck(&[], 0, 0).parabolas.is_empty());
    }
}
