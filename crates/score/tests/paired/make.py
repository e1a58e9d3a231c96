"""Makes `pairs.json`: pairs of numbers and what scipy says of their differences.

    python3 make.py > pairs.json        (numpy 2.4, scipy 1.17)

The ends of a bootstrap interval are quantiles of resample means. An end that rests on 1,000 resamples lies where a
share p of all resample means is below it, and p is 2.5 % only on average: its standard error is
sqrt(0.025 * 0.975 / 1000). scipy's own end has the same error over its 100,000 resamples. So for each end `within`
names the quantiles of scipy's bootstrap distribution at 2.5 % minus and plus Z joint standard errors; no density has to
be guessed, and ties do no harm.
"""

import json
from fractions import Fraction

import numpy as np
from scipy import stats

RESAMPLES, OURS, Z = 100_000, 1_000, 4.5
CUT = 0.025
REACH = Z * (CUT * (1 - CUT) * (1 / OURS + 1 / RESAMPLES)) ** 0.5

# name, number of pairs, direction, how the differences are drawn
SETS = [
    ("two", 2, "higher", lambda r, n: r.normal(1, 1, n)),
    ("two of opposite sign", 2, "lower", lambda r, n: np.array([-1.0, 3.0])),
    ("three", 3, "higher", lambda r, n: r.normal(0, 2, n)),
    ("five", 5, "lower", lambda r, n: r.normal(0.5, 1, n)),
    ("normal, 10", 10, "higher", lambda r, n: r.normal(0.1, 1, n)),
    ("normal, 30", 30, "lower", lambda r, n: r.normal(0, 1, n)),
    ("normal, 100", 100, "higher", lambda r, n: r.normal(-0.2, 3, n)),
    ("normal, 300", 300, "higher", lambda r, n: r.normal(5, 1, n)),
    ("skewed, 12", 12, "higher", lambda r, n: r.exponential(1, n)),
    ("skewed, 60", 60, "lower", lambda r, n: -r.lognormal(0, 1.2, n)),
    ("skewed, 250", 250, "higher", lambda r, n: r.gamma(0.3, 2, n) - 0.6),
    ("heavy-tailed, 20", 20, "higher", lambda r, n: r.standard_t(1.5, n)),
    ("heavy-tailed, 150", 150, "lower", lambda r, n: r.standard_cauchy(n)),
    ("ties, 15", 15, "higher", lambda r, n: r.integers(-1, 2, n).astype(float)),
    ("ties, 80", 80, "higher", lambda r, n: r.integers(0, 4, n) / 4),
    ("constant, 25", 25, "lower", lambda r, n: np.full(n, 0.75)),
    ("all zero but one", 40, "higher", lambda r, n: np.eye(1, n, 7)[0]),
    ("mixed signs and sizes", 50, "higher", lambda r, n: r.choice([-1, 1], n) * 10.0 ** r.uniform(-3, 3, n)),
    ("tiny", 35, "higher", lambda r, n: r.normal(1, 2, n) * 1e-200),
    ("huge", 45, "lower", lambda r, n: r.normal(-1, 2, n) * 1e200),
]


def pairs(rng, draw, size, direction):
    wanted = draw(rng, size)
    scale = np.max(np.abs(wanted)) or 1.0
    before = np.round(rng.uniform(-2, 2, size) * 16) / 16 * 2.0 ** np.floor(np.log2(scale))
    after = before + wanted if direction == "higher" else before - wanted
    return before, after, (after - before if direction == "higher" else before - after)


def one(seed, name, size, direction, draw):
    rng = np.random.default_rng([2026, seed])
    before, after, better = pairs(rng, draw, size, direction)
    found = stats.bootstrap(
        (better,), np.mean, n_resamples=RESAMPLES, confidence_level=0.95, method="percentile", batch=10_000, rng=rng
    )
    quantiles = lambda share: [float(q) for q in np.quantile(found.bootstrap_distribution, [share - REACH, share + REACH])]
    return {
        "name": name,
        "direction": direction,
        "before": before.tolist(),
        "after": after.tolist(),
        "mean": float(sum(Fraction(d) for d in better.tolist()) / size),
        "wins": int(np.sum(better > 0)),
        "losses": int(np.sum(better < 0)),
        "low": float(found.confidence_interval.low),
        "high": float(found.confidence_interval.high),
        "low_within": quantiles(CUT),
        "high_within": quantiles(1 - CUT),
    }


if __name__ == "__main__":
    sets = [json.dumps(one(seed, *entry)) for seed, entry in enumerate(SETS)]
    print("[\n" + ",\n".join(sets) + "\n]")
