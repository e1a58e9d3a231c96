"""A made-up price history, the same on every machine."""

import random


def history(days, seed=7):
    """Daily prices: a slow drift, a slower wave, and noise."""
    noise = random.Random(seed)
    price, prices = 100.0, []
    for day in range(days):
        wave = 0.002 if (day // 60) % 2 == 0 else -0.0012
        price *= 1.0 + wave + noise.gauss(0.0, 0.01)
        prices.append(price)
    return prices
