"""Makes reference.csv: what SciPy says, for tests/it/reference.rs.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scipy
    /tmp/venv/bin/python crates/stats/tests/reference/make.py > crates/stats/tests/reference/reference.csv

One line for each value: function, arguments separated by spaces (lists separated by `|`), value.
"""

import random
import sys

import numpy as np
import scipy
from scipy import stats

DF = [1, 2, 3, 5, 7, 11, 29, 119, 1000, 2.5, 17.3]
P = [1e-6, 0.001, 0.005, 0.025, 0.05, 0.3, 0.5, 0.8, 0.95, 0.975, 0.999]
T = [-40.0, -6.5, -2.0, -0.1, 0.0, 0.03, 1.0, 2.5, 9.0]
LEVELS = [0.9, 0.95, 0.99]
COUNTS = [(0, 1), (1, 1), (0, 10), (1, 10), (5, 10), (10, 10), (0, 300), (3, 300), (52, 1000), (999, 1000)]


def line(function, arguments, *values):
    for part, value in enumerate(values):
        name = function if len(values) == 1 else f"{function}.{part}"
        print(f"{name},{arguments},{float(value)!r}")


def text(values):
    return " ".join(repr(float(value)) for value in values)


def samples():
    random.seed(20240607)
    yield [0.0, 0.0]
    yield [1.0, 2.0]
    yield [-0.031, -0.027, -0.041, -0.022, -0.035, -0.03]
    for n in (3, 5, 8, 12, 20, 101):
        yield [round(random.gauss(0.01, 0.02), 6) for _ in range(n)]
    yield [round(random.lognormvariate(3, 2), 4) for _ in range(17)]
    yield [1e9 + x for x in (4.0, 7.0, 13.0, 16.0)]


def main():
    print(f"# scipy {scipy.__version__}, numpy {np.__version__}, python {sys.version.split()[0]}")
    for df in DF:
        for t in T:
            line("t_cdf", f"{t!r}|{df!r}", stats.t.cdf(t, df))
        for p in P:
            line("t_quantile", f"{p!r}|{df!r}", stats.t.ppf(p, df))
    listed = list(samples())
    for values in listed:
        line("mean", text(values), np.mean(values))
        line("sample_sd", text(values), np.std(values, ddof=1))
        line("median", text(values), np.median(values))
        for q in (0.0, 0.1, 0.25, 0.5, 0.77, 0.99, 1.0):
            line("quantile", f"{text(values)}|{q!r}", np.quantile(values, q))
        for share in (0.0, 0.1, 0.2, 0.25, 0.4):
            line("trimmed_mean", f"{text(values)}|{share!r}", stats.trim_mean(values, share))
        if min(values) > 0:
            line("geometric_mean", text(values), stats.gmean(values))
        if np.std(values) > 0:
            line("t_test_p", text(values), stats.ttest_1samp(values, 0.0).pvalue)
            for level in LEVELS:
                interval = stats.t.interval(level, len(values) - 1, np.mean(values), stats.sem(values))
                line("t_interval", f"{text(values)}|{level!r}", *interval)
    for first in listed[1:6]:
        for second in listed[1:6]:
            if first is not second:
                result = stats.ttest_ind(second, first, equal_var=False)
                interval = result.confidence_interval(0.95)
                difference = np.mean(second) - np.mean(first)
                line("welch", f"{text(first)}|{text(second)}|0.95",
                     difference, interval.low, interval.high, result.df, result.pvalue)
    for k, n in COUNTS:
        for level in LEVELS:
            interval = stats.binomtest(k, n).proportion_ci(level, method="exact")
            line("clopper_pearson", f"{k}|{n}|{level!r}", interval.low, interval.high)


main()
