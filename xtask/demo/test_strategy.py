"""What must hold whatever an idea changes."""

import unittest

from prices import history
from strategy import positions, returns


class StrategyTest(unittest.TestCase):
    def test_it_waits_until_it_knows_enough(self):
        self.assertEqual(positions(history(30), short=3, long=20)[:20], [0] * 20)

    def test_it_holds_when_prices_rise(self):
        self.assertEqual(positions(list(range(1, 40)), short=3, long=20)[-1], 1)

    def test_it_does_not_see_the_future(self):
        prices = history(100)
        held = positions(prices, short=5, long=20)
        self.assertEqual(held[:60], positions(prices[:60], short=5, long=20))

    def test_a_day_out_of_the_market_returns_nothing(self):
        self.assertEqual(returns([1.0, 2.0, 3.0], [0, 0, 0]), [0.0, 0.0])


if __name__ == "__main__":
    unittest.main()
