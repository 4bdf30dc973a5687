"""Between independence and a model: what noise explains is left out, what it does not is kept; planted rules differ."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from discreet.compute.cliques import blending
from discreet.compute.cliques.blending import blend, weigh_models
from discreet.compute.cliques.entropy import estimate_margins, fit_margins
from discreet.compute.cliques.model import CliqueModel
from discreet.values.table import Table

ROWS = 5_000
NAMES = tuple("abcdef")
SIZES = dict.fromkeys(NAMES, 2)
SETS = (("a", "b", "c", "d"), ("a", "b", "e", "f"), ("c", "d", "e", "f"))
"""They hold every pair."""
DRAWS = 4

Rows = dict[str, np.ndarray]


def draw_rows(rng: np.random.Generator, kept: float) -> Rows:
    """Each attribute is the one before with the probability `kept`, and else drawn anew."""
    columns = {"a": rng.integers(0, 2, ROWS)}
    for above, name in itertools.pairwise(NAMES):
        columns[name] = np.where(rng.random(ROWS) < kept, columns[above], rng.integers(0, 2, ROWS))
    return columns


def count(columns: Rows, members: Sequence[str]) -> np.ndarray:
    shape = [2] * len(members)
    index = np.ravel_multi_index([columns[name] for name in members], shape)
    return np.bincount(index, minlength=2 ** len(members)).reshape(shape).astype(float)


def add_noise(columns: Rows, rng: np.random.Generator, scale: float) -> list[Table]:
    return [
        Table(members, count(columns, members) + rng.laplace(0, scale, [2] * len(members)))
        for members in SETS
    ]


def estimate(noisy: Sequence[Table], scale: float) -> list[Table]:
    return estimate_margins(noisy, [2 * scale**2] * len(noisy), dict.fromkeys(NAMES, 0), float(ROWS))[0]


def mix(noisy: Sequence[Table], scale: float) -> CliqueModel:
    variances = [2 * scale**2] * len(noisy)
    return blend(SIZES, noisy, variances, float(ROWS), lambda tables: estimate(tables, scale))


def miss(model: CliqueModel, columns: Rows) -> float:
    """The mean L1 distance of all pairs."""
    pairs = list(itertools.combinations(NAMES, 2))
    return float(
        np.mean([np.abs(t.values - count(columns, t.axes) / ROWS).sum() for t in model.margins(pairs)])
    )


def compare(kept: float, scale: float) -> tuple[float, float, float]:
    """The mean errors of the mixture, of the model of all tables, and of independence with the same margins."""
    errors = []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        columns = draw_rows(rng, kept)
        noisy = add_noise(columns, rng, scale)
        margins = estimate(noisy, scale)
        singles = [next(t for t in margins if name in t.axes).project([name]) for name in NAMES]
        models = (mix(noisy, scale), fit_margins(SIZES, margins), fit_margins(SIZES, singles))
        errors.append([miss(model, columns) for model in models])
    mixed, full, apart = np.mean(errors, axis=0)
    return float(mixed), float(full), float(apart)


def test_without_dependence_most_of_the_noise_goes() -> None:
    mixed, full, apart = compare(0.0, 150.0)
    assert apart < 0.85 * full, "the setting tells the two apart"
    assert mixed < apart + 0.4 * (full - apart)


def test_where_dependence_stands_out_it_is_kept() -> None:
    mixed, full, apart = compare(0.8, 60.0)
    assert full < 0.5 * apart
    assert mixed < 1.02 * full


def test_in_between_the_mixture_is_as_good_as_the_better_of_both() -> None:
    mixed, full, apart = compare(0.3, 120.0)
    assert mixed < 1.05 * min(full, apart)


def test_the_same_tables_give_the_same_model() -> None:
    """A release is made again from its tables: disturbances are no chance."""
    rng = np.random.default_rng(3)
    noisy = add_noise(draw_rows(rng, 0.3), rng, 120.0)
    first, again = mix(noisy, 120.0), mix(noisy, 120.0)
    for one, other in zip(first.beliefs, again.beliefs, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_a_rule_that_forgets_what_the_estimate_owes_to_noise_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: without Stein's term all tables are believed, and the law of the first test sees it."""
    monkeypatch.setattr(blending, "PROBES", 1)
    monkeypatch.setattr(
        blending, "_draw_signs", lambda source, shape: np.zeros(shape)
    )  # nothing is disturbed
    mixed, full, apart = compare(0.0, 150.0)
    assert mixed > apart + 0.8 * (full - apart)


def test_weights_are_the_best_of_the_simplex() -> None:
    """Against a grid: no w ≥ 0 with Σw ≤ 1 has less of w·A·w − 2·g·w."""
    rng = np.random.default_rng(0)
    steps = [np.array(w) / 10 for w in itertools.product(range(11), repeat=3) if sum(w) <= 10]
    for _ in range(20):
        rows, gains = rng.normal(size=(3, 5)), rng.normal(size=3)
        products = rows @ rows.T
        found = np.array(weigh_models(products, gains))
        assert (found >= 0).all()
        assert found.sum() <= 1 + 1e-9
        value = found @ products @ found - 2 * gains @ found
        assert value <= min(w @ products @ w - 2 * gains @ w for w in steps) + 1e-3  # weights are 4096ths


def test_weights_do_not_hang_on_the_last_digits_nor_on_models_that_are_the_same() -> None:
    """Two of three models are one, or nearly: another processor rounds otherwise, and must find the same release."""
    rng = np.random.default_rng(1)
    for apart in (0.0, 1e-13, 1e-7):
        for _ in range(40):
            one, other = 300 * rng.normal(size=(2, 50))
            rows = np.array([one, one * (1 + apart), other])
            products, gains = rows @ rows.T, rows @ (rng.random(3) @ rows) * rng.random()
            found = weigh_models(products, gains)
            for _ in range(3):
                noise = 1 + 1e-13 * rng.normal(size=(3, 3))
                moved = weigh_models(
                    products * (noise + noise.T) / 2, gains * (1 + 1e-13 * rng.normal(size=3))
                )
                assert moved == found
