"""The judge: forecasts with every configuration, and writes one row for each into the results CSV.

A configuration is a station and how many days ahead the forecast looks; each is tried from several first days.
`--holdout` judges the days after those that the search looks at.
"""

import argparse
import csv
import os

from demand import DAYS, SEARCH_DAYS, STATIONS, counts
from forecast import Forecast

AHEAD = (1, 2, 4, 7, 14)
WARM_UP = 100  # days to learn from before the first one that counts
STARTS = range(0, 84, 7)  # on which days forecasts begin: a lucky first day shall not count


def errors(hires, ahead, days):
    """How far off the forecasts of each of these days were on average, and what the day brought."""
    runs = [errors_from(start, hires, ahead, days) for start in STARTS]
    return [(sum(off) / len(off), hires[day]) for day, *off in zip(days, *runs)]


def errors_from(start, hires, ahead, days):
    """How far off a forecast was that began on this day."""
    forecast, expected, off = Forecast(hires[start]), {}, []
    for day in range(start, days.stop):
        if day in days:
            off.append(abs(expected[day] - hires[day]))
        forecast.learn(day, hires[day])
        expected[day + ahead] = forecast.expect(day + ahead, ahead)
    return off


def row(config_id, station, ahead, off):
    hires = sum(count for _, count in off)
    weeks = [off[start : start + 7] for start in range(0, len(off) - 6, 7)]
    return {
        "config_id": config_id,
        "status": "ok",
        "station": station,
        "days_ahead": ahead,
        "days": len(off),
        "error_pct": 100.0 * sum(error for error, _ in off) / hires,
        "bad_days_pct": 100.0 * sum(error > 0.3 * count for error, count in off) / len(off),
        "worst_week_pct": 100.0 * max(sum(e for e, _ in week) / sum(c for _, c in week) for week in weeks),
    }


def main():
    arguments = argparse.ArgumentParser(description="Try every configuration; one row each.")
    arguments.add_argument("--holdout", action="store_true", help="judge the days that the search never sees")
    arguments.add_argument("--out", default=os.environ.get("AGENTIC_RESULTS_CSV", "results.csv"))
    asked = arguments.parse_args()
    days = range(SEARCH_DAYS, DAYS) if asked.holdout else range(WARM_UP, SEARCH_DAYS)
    rows = []
    for station in STATIONS:
        hires = counts(station)
        for ahead in AHEAD:
            rows.append(row(len(rows), station, ahead, errors(hires, ahead, days)))
    with open(asked.out, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
