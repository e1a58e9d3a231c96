"""Try every configuration and write one row for each into the results CSV."""

import csv
import math
import os

from prices import history
from strategy import mean, positions, returns

CONFIGURATIONS = [(short, long) for short in (3, 5, 8, 13) for long in (20, 30, 40, 60, 90)]


def sharpe(values):
    average = mean(values)
    spread = math.sqrt(mean([(value - average) ** 2 for value in values]))
    return average / spread * math.sqrt(252) if spread else 0.0


def max_drawdown(values):
    """The deepest fall below an earlier peak, as a negative fraction."""
    equity, peak, worst = 1.0, 1.0, 0.0
    for value in values:
        equity *= 1.0 + value
        peak = max(peak, equity)
        worst = min(worst, equity / peak - 1.0)
    return worst


def row(config_id, short, long, prices):
    daily = returns(prices, positions(prices, short, long))
    return {
        "config_id": config_id,
        "status": "ok",
        "mean_topN_avg_return_per_trade_pct_oos": 100.0 * mean(daily),
        "core_topN_sharpe": sharpe(daily),
        "core_topN_max_drawdown": max_drawdown(daily),
    }


def main():
    limit = int(os.environ.get("AGENTIC_SWEEP_CONFIG_LIMIT", len(CONFIGURATIONS)))
    path = os.environ.get("AGENTIC_RESULTS_CSV", "results.csv")
    prices = history(days=750)
    rows = [row(i, short, long, prices) for i, (short, long) in enumerate(CONFIGURATIONS[:limit])]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
