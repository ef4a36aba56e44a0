import json
import math

from kinfold.evaluation.rates import Rates


def test_rates_are_shares_of_their_own_kind_of_pair():
    rates = Rates(0.5, n_true_accepts=3, n_positive=4, n_false_accepts=10, n_negative=1000)
    assert (rates.tar, rates.far, rates.accuracy) == (0.75, 0.01, 993 / 1004)
    assert str(rates) == "FAR 1 %, TAR 75 %"


def test_small_rates_keep_their_digits_and_an_infinite_threshold_survives_json():
    rates = Rates(math.inf, 0, 4, 3, 2_000_000)
    assert str(rates) == "FAR 0.00015 %, TAR 0 %"
    assert json.loads(json.dumps(rates.to_dict()))["threshold"] is None
