//! Objectives with six parameters of different sizes. All are smooth; lower is better; the root is
//! not the optimum.

use rand_pcg::Lcg64Xsh32;
use rand_pcg::rand_core::Rng as _;

/// Range of random search: a factor of 10 either way from the root, as a logarithm.
pub(crate) const RANGE: f64 = std::f64::consts::LN_10;
/// A factor of 5 either way.
const NEAR: f64 = 1.609_438;
/// Values of the root. None is close below 1, where the tuner would have a smaller range than
/// random search: it keeps fractions below 1.
pub(crate) const ROOT: [&str; 6] = ["1e-4", "0.01", "1.5", "8.0", "120.0", "1.0e+04"];

/// Function to minimise.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Objective {
    /// All parameters have the same weight.
    Bowl,
    /// Some parameters have 25 times the weight of others.
    Uneven,
    /// The best value of each depends on its neighbour's, as in Rosenbrock's function.
    Valley,
    /// Two parameters have no effect.
    TwoIdle,
}

/// Distance of the optimum from the root.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Optimum {
    /// At most a factor of 5 from the root, as if its values had been chosen.
    Near,
    /// Anywhere in the range of random search.
    Anywhere,
}

impl Objective {
    pub(crate) const ALL: [Self; 4] = [Self::Bowl, Self::Uneven, Self::Valley, Self::TwoIdle];

    pub(crate) fn world(self, optimum: Optimum, seed: u64, noise: f64) -> World {
        let mut dice = Dice::new(seed, 17);
        let far = match optimum {
            Optimum::Near => NEAR,
            Optimum::Anywhere => RANGE,
        };
        let target = [0; 6].map(|_| dice.between(-far, far));
        World { objective: self, target, noise }
    }
}

/// Objective with its optimum and noise.
pub(crate) struct World {
    objective: Objective,
    target: [f64; 6],
    noise: f64,
}

impl World {
    /// True loss at a place, given as logarithms of factors from the root.
    pub(crate) fn loss(&self, x: &[f64; 6]) -> f64 {
        let off: Vec<f64> = x.iter().zip(self.target).map(|(x, t)| x - t).collect();
        let squares = |weights: [f64; 6]| -> f64 {
            off.iter().zip(weights).map(|(off, weight)| weight * off * off).sum()
        };
        0.1 + match self.objective {
            Objective::Bowl => squares([1.0; 6]),
            Objective::Uneven => squares([5.0, 0.2, 1.0, 3.0, 0.5, 1.5]),
            Objective::TwoIdle => squares([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]),
            Objective::Valley => off
                .windows(2)
                .map(|pair| {
                    2.0 * (pair[1] - 0.5 * pair[0] * pair[0]).powi(2) + 0.5 * pair[0] * pair[0]
                })
                .sum(),
        }
    }

    /// Loss as a sweep measures it, with noise.
    pub(crate) fn measured(&self, x: &[f64; 6], root: f64, dice: &mut Dice) -> f64 {
        self.loss(x) + self.noise * root * dice.normal()
    }
}

/// Reproducible random numbers.
pub(crate) struct Dice(Lcg64Xsh32);

impl Dice {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(Lcg64Xsh32::new(seed, stream))
    }
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * f64::from(self.0.next_u32()) / f64::from(u32::MAX)
    }
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.between(0.0, 1.0)).sum::<f64>() - 6.0
    }
}
