"""Makes reference.csv: what SciPy says, for tests/it/reference.rs.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scipy
    /tmp/venv/bin/python crates/stats/tests/reference/make.py > crates/stats/tests/reference/reference.csv

One line for each value: function, arguments separated by spaces (lists separated by `|`), value.
"""

import random
import sys

import numpy as np
import scipy
from scipy import optimize, stats

DF = [1, 2, 3, 5, 7, 11, 29, 119, 1000, 2.5, 17.3]
P = [1e-6, 0.001, 0.005, 0.025, 0.05, 0.3, 0.5, 0.8, 0.95, 0.975, 0.999]
T = [-40.0, -6.5, -2.0, -0.1, 0.0, 0.03, 1.0, 2.5, 9.0]
LEVELS = [0.9, 0.95, 0.99]
COUNTS = [(0, 1), (1, 1), (0, 10), (1, 10), (5, 10), (10, 10), (0, 300), (3, 300), (52, 1000), (999, 1000)]


FAMILIES = [[0.04], [0.01, 0.02, 0.03], [0.9, 0.001, 0.04, 0.04, 0.2], [0.5, 0.5], [1e-9, 0.06, 0.05, 1.0, 0.011, 0.3]]
SPENDING = [
    ([0.5, 1.0], [0.003, 0.05]),
    ([0.25, 0.5, 0.75, 1.0], [8.9e-5, 0.00557, 0.02362, 0.05]),
    ([0.25, 0.5, 0.75], [0.0028125, 0.01125, 0.0253125]),
    ([0.4, 0.45, 1.0], [0.02, 0.021, 0.025]),
]


def holm(p):
    """Holm 1979, step down: SciPy has none."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    highest = 0.0
    for rank, at in enumerate(order):
        highest = max(highest, min(1.0, p[at] * (len(p) - rank)))
        adjusted[at] = highest
    return adjusted


def nominal(fractions, spent, two_sided):
    """Boundaries by the joint normal distribution of all looks, one root at a time."""
    bounds = []
    for k, total in enumerate(spent):
        t = np.array(fractions[: k + 1])
        covariance = np.sqrt(np.minimum.outer(t, t) / np.maximum.outer(t, t))

        def crossed(z):
            upper = np.array([*bounds, z])
            lower = -upper if two_sided else np.full(k + 1, -np.inf)
            stay = stats.multivariate_normal.cdf(
                upper, cov=covariance, lower_limit=lower, abseps=1e-10, releps=1e-10, maxpts=4_000_000,
                rng=np.random.default_rng(1))
            return 1.0 - stay - total

        bounds.append(optimize.brentq(crossed, 0.5, 8.0, xtol=1e-10))
    return [(2 if two_sided else 1) * stats.norm.sf(z) for z in bounds]


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
        difference = stats.ttest_1samp(values, 0.0, alternative="greater") if np.std(values) > 0 else None
        if difference is not None:
            line("t_test_above_p", text(values), difference.pvalue)
    for z in [-3.0, 0.0, 0.1, 1.0, 1.96, 5.0, 12.0, 30.0]:
        line("normal_tail", f"{z!r}", stats.norm.sf(z))
    for p in [1e-12, *P]:
        line("normal_quantile", f"{p!r}", stats.norm.ppf(p))
    for df in [1, 2, 5, 11, 23, 119, 2.5]:
        for p in P:
            line("chi_square_quantile", f"{p!r}|{df!r}", stats.chi2.ppf(p, df))
    for p in FAMILIES:
        line("benjamini_hochberg", text(p), *stats.false_discovery_control(p, method="bh"))
        line("holm", text(p), *holm(p))
    for first, second in [(0, 0), (1, 0), (3, 3), (9, 1), (2, 17), (60, 40)]:
        p = stats.binomtest(first, first + second).pvalue if first + second else 1.0
        line("symmetry_p", f"{first}|{second}", p)
    for fractions, spent in SPENDING:
        for two_sided in (0, 1):
            levels = nominal(fractions, spent, two_sided)
            line("nominal_levels", f"{text(fractions)}|{text(spent)}|{two_sided}", *levels)
    for values in listed:
        if len(values) >= 6:
            rest = stats.theilslopes(values).slope * len(values)
            line("theil_sen", text(values), rest)
    for k, n in COUNTS:
        for level in LEVELS:
            interval = stats.binomtest(k, n).proportion_ci(level, method="exact")
            line("clopper_pearson", f"{k}|{n}|{level!r}", interval.low, interval.high)


main()
