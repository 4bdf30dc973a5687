"""How often a value that one person alone holds is told: never more than δ, as far as thousands of draws can tell."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from chance import SURE, within_attempts
from discreet.core.mechanism import Noise
from discreet.core.queries import Discovery
from discreet.judge.experiments.empirical_epsilon import empirical_epsilon
from discreet.judge.tails import bound_share_below
from discreet.values.budget import ZCDP
from discreet.values.unit import Unit

DRAWS = 1500
PERSON = Unit("add-remove", "id", 3)


def share_told(counts: Mapping[str, int], query: Discovery, threshold: int) -> int:
    """In how many draws any of the values that start with 'only' is told."""
    twin = object.__new__(Discovery)
    for name in Discovery.__slots__:
        object.__setattr__(twin, name, threshold if name == "threshold" else getattr(query, name))
    drawn = (twin.tell(counts) for _ in range(DRAWS))
    return sum(any(value.startswith("only") for value, _ in told) for told in drawn)


@pytest.mark.parametrize(
    "counts",
    [{"all": 40, "only": 3}, {"all": 40, "only 1": 1, "only 2": 1, "only 3": 1}],
    ids=["one", "three"],
)
def test_values_of_one_person_are_told_with_probability_delta_at_most(counts: dict[str, int]) -> None:
    query = Discovery.price(["x"], ZCDP("1/4"), "1/20", noise=Noise.LAPLACE, unit=PERSON)
    told = share_told(counts, query, query.threshold)
    assert bound_share_below(told, DRAWS, 1 - SURE) <= 0.05
    # The planted twin stops two scales short of the threshold, and is found out.
    low = query.threshold - int(2 * query.mechanism.scale)
    assert within_attempts(lambda: bound_share_below(share_told(counts, query, low), DRAWS, 1e-3) > 0.05)


def test_counts_of_values_that_others_hold_lose_no_more_than_their_noise() -> None:
    """Above the threshold the noisy count is that of a Laplace mechanism: one unit moves it by 1."""
    query = Discovery.price(["x"], ZCDP("1/4"), "1/20", noise=Noise.LAPLACE, unit=Unit.ADD_REMOVE)

    def draw_from(held: int):  # type: ignore[no-untyped-def]
        def draw(trials: int) -> np.ndarray:
            told = (dict(query.tell({"a": held, "b": 30})) for _ in range(trials))
            return np.array([[found.get("a", 0), found.get("b", 0)] for found in told])

        return draw

    found = empirical_epsilon(draw_from(12), draw_from(13), trials=2500, confidence=SURE)
    assert found.epsilon <= 1 / query.mechanism.scale
