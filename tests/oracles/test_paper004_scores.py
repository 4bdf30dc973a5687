"""The searches of Figure 2 [004], drawn from scores that are worked out once, beside the search of the library."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from _paper004_data import Data
from _paper004_scores import ScoredTable
from discreet.core.scores import MutualInformation
from discreet.entrance import open_airlock
from discreet.learning.greedy import greedy
from discreet.values.budget import PureDP
from discreet.values.graph import DAG
from discreet.values.schema import Attribute, Schema


def make_data(levels: int) -> Data:
    """Five attributes that follow each other, 300 rows."""
    rng = np.random.default_rng(levels)
    first = rng.integers(0, levels, 300)
    codes = {"a": first}
    for name, share in zip("bcde", (0.8, 0.7, 0.6, 0.5), strict=True):
        kept = rng.random(300) < share
        codes[name] = np.where(kept, codes[chr(ord(name) - 1)], rng.integers(0, levels, 300))
    schema = Schema(tuple(Attribute.of(name, [str(i) for i in range(levels)]) for name in codes))
    return Data("chain", schema, {name: values.astype(np.uint8) for name, values in codes.items()})


def search(data: Data, k: int, score: str, epsilon: str, firsts: Sequence[str]) -> list[float]:
    """ΣI(X, Π) by the airlock, from each of these attributes."""
    found = []
    with open_airlock(data.columns, data.schema, budget=PureDP("1e9"), unit="replace-one") as airlock:
        for first in firsts:
            graph = greedy(
                airlock, spend=PureDP(epsilon) / 2, k=k, score=score, selection="exponential",
                start=DAG.build({first: []}),
            ).dag  # type: ignore[arg-type]  # fmt: skip
            families = [family for family in graph.families() if len(family) > 1]
            found.append(
                float(MutualInformation().evaluate([data.count(family) for family in families]).sum())
            )
    return found


@pytest.mark.parametrize(("levels", "score"), [(2, "F"), (2, "I"), (3, "I"), (3, "R")])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_without_noise_both_find_the_same(levels: int, score: str, k: int) -> None:
    """Families of equal score are drawn at random, so that one of twenty searches is the library's."""
    data = make_data(levels)
    table = ScoredTable.of(data, k, ("F", "I", "R") if levels == 2 else ("I", "R"))
    for place, theirs in enumerate(search(data, k, score, "10000000", data.schema.names)):
        ours = [table.search(k, score, 1e7, seed, first=place) for seed in range(20)]
        assert np.abs(np.array(ours) - theirs).min() < 1e-9
        assert len({round(value, 9) for value in ours}) < 10


def test_with_noise_both_find_as_much_on_average() -> None:
    """At an ε where noise decides about half: within six standard errors of 60 and 600 searches."""
    data = make_data(3)
    table = ScoredTable.of(data, 1, ("I", "R"))
    ours = [table.search(1, "R", 1.0, seed, first=0) for seed in range(600)]
    theirs = search(data, 1, "R", "1", ["a"] * 60)
    error = np.hypot(np.std(ours) / 600**0.5, np.std(theirs) / 60**0.5)
    assert abs(np.mean(ours) - np.mean(theirs)) < 6 * error
    best, nothing = table.search(1, "R", 1e7, 0, first=0), table.search(1, "R", 1e-9, 0, first=0)
    assert nothing < np.mean(ours) - error < np.mean(ours) + error < best
