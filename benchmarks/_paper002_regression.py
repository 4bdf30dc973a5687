"""Figure 2 of paper 002: mean squared error against the prior's precision, on made-up rows and on a real table.

The real one is RAND's health insurance experiment (20 190 rows, from statsmodels): visits to the doctor, in logarithms,
from nine features. The paper's census extract is not to be had.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from discreet.papers.estimators.ball_draw import bound_record
from discreet.papers.estimators.regression import GRAIN, PrivateLinearRegression
from discreet.values.unit import Unit

FEATURES, NOISE = 14, 0.1
PRECISIONS = [10.0**k for k in (1, 2, 3, 4, 5)]
HEADER = ("table", "precision", "radius", "method", "epsilon", "mse", "standard_error", "repeats")
Trial = Callable[[int], tuple[np.ndarray, np.ndarray]]


def make_census(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Fourteen features in [−1, 1], some correlated, some yes or no, and an income that is almost linear in them."""
    hidden = rng.normal(size=(rows, 3))
    mixed = hidden @ rng.normal(size=(3, 9)) * 0.25 + rng.normal(size=(rows, 9)) * 0.25
    bits = np.where(rng.random((rows, 5)) < 1 / (1 + np.exp(-hidden @ rng.normal(size=(3, 5)))), 1.0, -1.0)
    X = np.clip(np.column_stack([mixed, bits]), -1.0, 1.0)
    weights = rng.normal(size=FEATURES) * 0.08
    y = X @ weights + 0.05 * X[:, 0] * X[:, 1] + rng.normal(scale=NOISE, size=rows)
    return X, np.clip(y, -1.0, 1.0)


def make_trials(rows: int, seed: int) -> Trial:
    """Made-up rows for each repeat, the same for every precision."""
    return lambda repeat: make_census(rows, np.random.default_rng([seed, repeat]))


def shuffle_visits(seed: int) -> Trial:
    """The real table in another order for each repeat; the bounds that scale it to [−1, 1] are public knowledge."""
    import statsmodels.api as sm

    data = sm.datasets.randhie.load_pandas().data
    highest = {"lncoins": 4.6, "idp": 1, "lpi": 7.2, "fmde": 8.3, "physlm": 1, "disea": 60}
    names = [*highest, "hlthg", "hlthf", "hlthp"]
    X = np.column_stack([2 * np.clip(data[name] / highest.get(name, 1), 0, 1) - 1 for name in names])
    y = 2 * np.log1p(np.clip(data["mdvis"].to_numpy(), 0, 80)) / math.log(81) - 1

    def shuffle(repeat: int) -> tuple[np.ndarray, np.ndarray]:
        order = np.random.default_rng([seed, repeat]).permutation(len(y))
        return X[order], y[order]

    return shuffle


def sweep(table: str, trial: Trial, repeats: int, share: float = 0.1) -> list[tuple[object, ...]]:
    """Train on a tenth, test on the rest: ridge, the sampler as printed (whatever its ε), both methods at ε = 1."""
    lines: list[tuple[object, ...]] = []
    features = trial(0)[0].shape[1]
    for precision in PRECISIONS:
        radius = 10.0 / math.sqrt(precision)
        # As printed: the noise variance is the data's, so ε is what the bound on the norm makes it.
        record = float(bound_record(features + 1, radius, GRAIN, Unit.REPLACE_ONE))
        implied = record / NOISE**2 * (1 + 1e-9)
        errors: dict[tuple[str, float], list[float]] = {}
        for repeat in range(repeats):
            X, y = trial(repeat)
            cut = int(share * len(y))
            train, test = slice(None, cut), slice(cut, None)
            errors.setdefault(("ridge", math.inf), []).append(
                fit_ridge(X[train], y[train], X[test], y[test], precision)
            )
            for method, epsilon, ridge in [
                ("sample", implied, precision),
                ("sample", 1.0, precision),
                ("statistics", 1.0, precision * NOISE**2),
            ]:
                model = PrivateLinearRegression(
                    epsilon=epsilon, method=method, precision=ridge, radius=radius, unit="replace-one"
                ).fit(X[train], y[train])
                errors.setdefault((method, epsilon), []).append(
                    float(np.mean((y[test] - model.predict(X[test])) ** 2))
                )
        for (method, epsilon), found in errors.items():
            error = float(np.std(found, ddof=1) / math.sqrt(len(found))) if len(found) > 1 else math.nan
            lines.append(
                (table, precision, radius, method, epsilon, float(np.mean(found)), error, len(found))
            )
    return lines


def fit_ridge(X: np.ndarray, y: np.ndarray, test: np.ndarray, labels: np.ndarray, precision: float) -> float:
    """The posterior mean without privacy."""
    full = np.column_stack([np.ones(len(X)), X])
    gram = full.T @ full + precision * NOISE**2 * np.eye(full.shape[1])
    weights = np.linalg.solve(gram, full.T @ y)
    return float(np.mean((labels - np.column_stack([np.ones(len(test)), test]) @ weights) ** 2))
