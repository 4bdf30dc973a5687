"""Mechanisms broken in well-known ways: the check that passes the sound twin must catch the broken one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from chance import SURE, within_attempts
from discreet.core.mechanism import AdditiveNoise, calibrate_counts
from discreet.core.noise import add_noise
from discreet.core.scores import MutualInformation
from discreet.judge.experiments.empirical_epsilon import empirical_epsilon
from discreet.judge.noise_fit import fit_law
from discreet.values.budget import PureDP
from discreet.values.measurement import DiscreteLaplace
from discreet.values.table import Table
from discreet.values.text import float_below
from discreet.values.unit import Unit

Tables = Sequence[np.ndarray]
Release = Callable[[Tables], np.ndarray]
"""From tables with one run in each row to the outputs, one run in each row."""

CLAIM = 1
ABSENT = -(10**6)

# A row in otherwise empty cells, in different cells of two tables; without it; and replaced by another.
WITH = (np.array([1, 5]), np.array([4, 1]))
WITHOUT = (np.array([0, 5]), np.array([4, 0]))
ONE_WITH, ONE_REPLACED = (np.array([1, 5]),), (np.array([0, 6]),)


@dataclass(frozen=True)
class Plant:
    """A check, something sound that it must pass, and something broken that it must catch."""

    check: Callable[[Any], None]
    sound: Any
    broken: Any


def _audit(
    before: Tables,
    after: Tables,
    *,
    claim: float = CLAIM,
    trials: int = 5000,
    features: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Callable[[Release], None]:
    """A check by experiment that a release keeps its claim on this pair of neighbours."""

    def check(release: Release) -> None:
        sides = [
            lambda n, tables=tables: release([np.tile(table.astype(np.int64), (n, 1)) for table in tables])
            for tables in (before, after)
        ]
        evidence = empirical_epsilon(*sides, trials=trials, confidence=SURE, features=features)
        assert not evidence.contradicts(claim), str(evidence)

    return check


def _calibrate(
    tables: int, epsilon: int | str = CLAIM, unit: Unit = Unit.ADD_REMOVE
) -> tuple[AdditiveNoise, ...]:
    return calibrate_counts([(f"t{i}",) for i in range(tables)], PureDP(epsilon), unit=unit)


def _release(mechanisms: Sequence[AdditiveNoise]) -> Release:
    def release(tables: Tables) -> np.ndarray:
        return np.concatenate([add_noise(t, m) for t, m in zip(tables, mechanisms, strict=True)], axis=1)

    return release


def _draw_noise(release: Release) -> np.ndarray:
    tables = [np.zeros((20_000, 2), dtype=np.int64)]
    return release(tables)


def _check_fit(release: Release) -> None:
    assert fit_law(_draw_noise(release), DiscreteLaplace(1)) > 1e-6


def _leave_zeros(tables: Tables) -> np.ndarray:
    noisy = _release(_calibrate(len(tables)))(tables)
    return np.where(np.concatenate(tables, axis=1) == 0, 0, noisy)


def _with_noisy_total(tables: Tables) -> np.ndarray:
    noisy = _release(_calibrate(len(tables)))(tables)
    return np.concatenate([noisy, noisy[:, :2].sum(axis=1, keepdims=True)], axis=1)


def _with_exact_total(tables: Tables) -> np.ndarray:
    noisy = _release(_calibrate(len(tables)))(tables)
    return np.concatenate([noisy, tables[0].sum(axis=1, keepdims=True)], axis=1)


def _only_seen_levels(tables: Tables) -> np.ndarray:
    noisy = _release(_calibrate(len(tables)))(tables)
    return np.where(np.concatenate(tables, axis=1) > 0, noisy, ABSENT)


def _seeded(tables: Tables) -> np.ndarray:
    """Every run starts the generator afresh, as a script with a fixed seed does."""
    q = np.exp(-CLAIM / len(tables))
    exact = np.concatenate(tables, axis=1)
    rng = np.random.default_rng(2024)
    return exact + rng.geometric(1 - q, exact.shape[1]) - rng.geometric(1 - q, exact.shape[1])


def _reused(tables: Tables) -> np.ndarray:
    """The same noise on both tables."""
    (mechanism, _) = _calibrate(2)
    noise = add_noise(np.zeros_like(tables[0]), mechanism)
    return np.concatenate([table + noise for table in tables], axis=1)


def _float_laplace(tables: Tables) -> np.ndarray:
    exact = np.concatenate(tables, axis=1)
    return exact + np.random.default_rng().laplace(scale=10.0, size=exact.shape)


def _lowest_bit(outputs: np.ndarray) -> np.ndarray:
    """The exponent of the last bit that is set in each output; 0 for the number 0."""
    mantissa, exponent = np.frexp(np.asarray(outputs, dtype=np.float64))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1)).astype(np.int64)
    return np.where(whole == 0, 0, lowest + exponent - 53)


def _check_whole(release: Release) -> None:
    outputs = _draw_noise(release)
    assert np.array_equal(outputs, np.rint(outputs)), "counts left with fractions"


def _check_paid(scale: float) -> None:
    """The exact loss of noise of this scale on one table of counts is within ε = 3/10."""
    assert 1 / Fraction(scale) <= Fraction(3, 10)


def _information(counts: np.ndarray) -> float:
    return float(MutualInformation().evaluate([Table(("p", "x"), counts)])[0])


def _normalised_information(counts: np.ndarray) -> float:
    def entropy(margin: np.ndarray) -> float:
        p = margin[margin > 0] / margin.sum()
        return float(-(p * np.log2(p)).sum())

    least = min(entropy(counts.sum(axis=0)), entropy(counts.sum(axis=1)))
    return _information(counts) / least if least > 0 else 0.0


def _check_sensitivity(score: Callable[[np.ndarray], float]) -> None:
    """Lemma 1 of 004 bounds how far one replaced row moves the score, on all 2×2 tables of 6 rows."""
    stated = float(MutualInformation().sensitivity([(2, 2)], Unit.REPLACE_ONE, 6))
    for cells in itertools.product(range(7), repeat=4):
        if sum(cells) != 6:
            continue
        for source, target in itertools.permutations(range(4), 2):
            if cells[source]:
                moved = list(cells)
                moved[source] -= 1
                moved[target] += 1
                before, after = (np.array(each).reshape(2, 2) for each in (cells, moved))
                assert abs(score(after) - score(before)) <= stated


BOTH = _audit(WITH, WITHOUT)
NARROW = calibrate_counts([("a",)], PureDP("3/10"), unit=Unit.ADD_REMOVE)[0].scale

PLANTS = {
    "half the scale, by experiment": Plant(BOTH, _release(_calibrate(2)), _release(_calibrate(2, 2))),
    "half the scale, by its law": Plant(_check_fit, _release(_calibrate(1)), _release(_calibrate(1, 2))),
    "the whole ε for each table": Plant(BOTH, _release(_calibrate(2)), _release(_calibrate(1) * 2)),
    "no noise on empty cells, by experiment": Plant(BOTH, _release(_calibrate(2)), _leave_zeros),
    "no noise on empty cells, by its law": Plant(_check_fit, _release(_calibrate(1)), _leave_zeros),
    "the exact number of rows": Plant(BOTH, _with_noisy_total, _with_exact_total),
    "levels read from the rows": Plant(BOTH, _release(_calibrate(2)), _only_seen_levels),
    "replace-one charged as add-remove": Plant(
        _audit(ONE_WITH, ONE_REPLACED),
        _release(_calibrate(1, unit=Unit.REPLACE_ONE)),
        _release(_calibrate(1, unit=Unit.ADD_REMOVE)),
    ),
    "a seeded generator, by experiment": Plant(BOTH, _release(_calibrate(2)), _seeded),
    "a seeded generator, by its law": Plant(_check_fit, _release(_calibrate(1)), _seeded),
    "one draw of noise for two tables": Plant(BOTH, _release(_calibrate(2)), _reused),
    "float noise, by its last bits": Plant(
        _audit(ONE_WITH, (np.array([0, 5]),), claim=0.1, trials=20_000, features=_lowest_bit),
        _release(_calibrate(1, "1/10")),
        _float_laplace,
    ),
    "float noise, by its law": Plant(_check_whole, _release(_calibrate(1, "1/10")), _float_laplace),
    "a scale cut to two digits": Plant(_check_paid, NARROW, 3.33),
    "a scale rounded down to a float": Plant(_check_paid, NARROW, float_below(Fraction(10, 3))),
    "normalised mutual information": Plant(_check_sensitivity, _information, _normalised_information),
}


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_the_check_passes_the_sound_one_and_catches_the_broken_one(plant: Plant) -> None:
    def is_caught() -> bool:
        try:
            plant.check(plant.broken)
        except AssertionError:
            return True
        return False

    plant.check(plant.sound)
    assert within_attempts(is_caught)


def test_one_row_moves_normalised_information_from_nothing_to_everything() -> None:
    """At n = 10 000, where Lemma 1 allows less than two thousandths."""
    before, after = np.array([[0, 0], [0, 10_000]]), np.array([[1, 0], [0, 9_999]])
    assert _normalised_information(after) - _normalised_information(before) == pytest.approx(1.0)
    assert MutualInformation().sensitivity([(2, 2)], Unit.REPLACE_ONE, 10_000) < Fraction(2, 1000)
