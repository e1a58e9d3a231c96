"""Hold while the short average of the price lies above the long one."""


def mean(values):
    return sum(values) / len(values)


def positions(prices, short, long):
    """1 for a day on which the strategy holds, else 0; a day sees only the days before it."""
    held = []
    for day in range(len(prices)):
        past = prices[:day]
        if len(past) < long:
            held.append(0)
        else:
            held.append(1 if mean(past[-short:]) > mean(past[-long:]) else 0)
    return held


def returns(prices, held):
    """The strategy's return on each day after the first."""
    changes = [today / before - 1.0 for before, today in zip(prices, prices[1:])]
    return [change * hold for change, hold in zip(changes, held[1:])]
