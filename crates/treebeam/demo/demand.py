"""Made-up data: how many bikes are hired each day at five stations. The same on every machine.

A day's count is a level that wanders, times the weekday's share of it, times luck, and now and then something
happens (a storm, a street festival) that says nothing about the next day.
"""

import random

STATIONS = ("harbour", "market", "campus", "park", "terminus")
SEARCH_DAYS = 1100  # what the search may look at
HOLDOUT_DAYS = 800  # the days after these, which it never sees
DAYS = SEARCH_DAYS + HOLDOUT_DAYS


def counts(station):
    """The hires of every day at a station, from its first day on."""
    chance = random.Random(f"bikes at {station}")
    level, drift = chance.uniform(150, 400), 0.0
    week = [1.0 + chance.uniform(-0.35, 0.35) for _ in range(7)]
    hires = []
    for day in range(DAYS):
        drift = 0.97 * drift + 0.001 * luck(chance)
        level = max(60.0, level * (1.0 + drift + 0.008 * luck(chance)))
        week[day % 7] = clamp(week[day % 7] * (1.0 + 0.03 * luck(chance)), 0.4, 1.8)
        count = level * week[day % 7] * (1.0 + 0.07 * luck(chance))
        if chance.random() < 0.04:
            count = count * chance.choice((0.2, 0.3, 1.9, 2.4))
        hires.append(max(0, int(count)))
    return hires


def luck(chance):
    """A number like those of a normal distribution, made with sums alone: equal to the last bit everywhere."""
    return sum(chance.random() for _ in range(12)) - 6.0


def clamp(value, low, high):
    return max(low, min(high, value))
