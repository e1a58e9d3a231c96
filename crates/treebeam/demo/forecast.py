"""How many bikes will be hired? Level, trend and weekday, corrected a little by each day's surprise.

The constants are guesses, and bad ones: they are what the search is about.
"""

LEVEL_RATE = 0.6  # how much of a surprise goes into the level
TREND_RATE = 0.1  # how much of the level's change goes into the trend
TREND_FADE = 0.98  # what is left of the trend a day later
WEEKDAY_RATE = 0.02  # how much of a surprise goes into the weekday's share
SURPRISE_LIMIT = 9.0  # no surprise counts for more than so many usual ones
USUAL_RATE = 0.01  # how fast it changes what a usual surprise is
FAIR_DAY = 125  # when in the year the fair begins: then more is expected for two weeks


class Forecast:
    """What is believed about a station."""

    def __init__(self, first):
        self.level, self.trend = max(1.0, float(first)), 0.0
        self.weekday = [1.0] * 7
        self.usual = 0.2 * self.level

    def expect(self, day, ahead):
        """The hires to expect on a day, so many days ahead of the last one that was learnt."""
        trend, faded = 0.0, self.trend
        for _ in range(ahead):
            faded = faded * TREND_FADE
            trend = trend + faded
        expected = max(0.0, self.level + trend) * self.weekday[day % 7]
        return 1.2 * expected if (day - FAIR_DAY) % 365 < 14 else expected

    def learn(self, day, count):
        """Takes in what a day has brought."""
        surprise = count - self.expect(day, 1)
        limit = SURPRISE_LIMIT * self.usual
        surprise = max(-limit, min(limit, surprise))
        self.usual = max(1.0, self.usual + USUAL_RATE * (abs(surprise) - self.usual))
        share = self.weekday[day % 7]
        before, self.trend = self.level, self.trend * TREND_FADE
        self.level = max(1.0, self.level + self.trend + LEVEL_RATE * surprise / share)
        self.trend = self.trend + TREND_RATE * (self.level - before - self.trend)
        self.weekday[day % 7] = max(0.1, share + WEEKDAY_RATE * surprise / self.level)
