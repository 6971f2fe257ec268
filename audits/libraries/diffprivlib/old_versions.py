"""What old versions of diffprivlib answer, in Python 3.8: `python old_versions.py mean` or `linear_regression`.

It reads one line of JSON with `data`, `runs` and `seed`, and prints an output a run: the form of `dpaudit.command`. The
library owns its randomness.
"""

import json
import sys
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
from diffprivlib import __version__, tools  # noqa: E402
from diffprivlib.models import LinearRegression  # noqa: E402

BEFORE_BOUNDS = __version__.split(".") < ["0", "4"]  # what 0.4 calls `bounds` was `range`, the width alone


def mean(values):
    """The mean of values of which the caller says that they lie in [0, 1]."""
    if BEFORE_BOUNDS:
        return float(tools.mean(np.array(values), epsilon=1.0, range=1))
    return float(tools.mean(np.array(values), epsilon=1.0, bounds=(0, 1)))


def linear_regression(records):
    """The slope of y on x, through the origin, for records (x, y) with x in [0, 10] and y in [0, 10]."""
    x, y = np.array([[x] for x, _ in records]), np.array([y for _, y in records])
    if BEFORE_BOUNDS:
        model = LinearRegression(epsilon=1.0, data_norm=15.0, range_X=10.0, range_y=10.0, fit_intercept=False)
    else:
        model = LinearRegression(epsilon=1.0, bounds_X=(0.0, 10.0), bounds_y=(0.0, 10.0), fit_intercept=False)
    return float(np.ravel(model.fit(x, y).coef_)[0])


if __name__ == "__main__":
    request = json.loads(sys.stdin.readline())
    mechanism = {"mean": mean, "linear_regression": linear_regression}[sys.argv[1]]
    for _ in range(request["runs"]):
        print(json.dumps(mechanism(request["data"])))
