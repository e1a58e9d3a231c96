"""What must hold whatever an idea changes. Run before each sweep."""

import unittest

from forecast import Forecast


def taught(hires):
    forecast = Forecast(hires[0])
    for day, count in enumerate(hires):
        forecast.learn(day, count)
    return forecast


class ForecastTest(unittest.TestCase):
    def test_what_never_changes_is_expected_again(self):
        forecast = taught([200] * 400)
        for ahead in (1, 7, 14):
            self.assertAlmostEqual(forecast.expect(400 + ahead, ahead), 200, delta=50)

    def test_a_rise_is_followed(self):
        before, after = taught([200] * 300), taught([200] * 200 + [400] * 100)
        self.assertGreater(after.expect(300, 1), before.expect(300, 1) + 100)

    def test_nothing_below_zero_is_expected(self):
        forecast = taught([500] * 50 + [0] * 50)
        self.assertTrue(all(forecast.expect(100 + ahead, ahead) >= 0 for ahead in range(1, 30)))


if __name__ == "__main__":
    unittest.main()
