"""What the airlock remembers of exact tables between choices: always the same scores, never more cells than allowed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from discreet.core import counter
from discreet.core.scores import ModelError
from discreet.values.table import Table

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}
PAIRS = list(itertools.combinations(SIZES, 2))
RNG = np.random.default_rng(1)
TABLES = {pair: RNG.integers(0, 100, [SIZES[name] for name in pair]) for pair in PAIRS}


class Recounter:
    """An engine that says which tables it was asked for, and how many cells were remembered meanwhile."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.held: list[int] = []
        self.rows: counter.TrueCounts | None = None

    def count(self, sets: Sequence[tuple[str, ...]]) -> list[Table]:
        assert self.rows is not None
        self.asked += sets
        self.held.append(sum(table.cells for table in self.rows._tables.values()))
        return [Table(members, TABLES[members]) for members in sets]


def score(rows: counter.TrueCounts, pairs: Sequence[tuple[str, ...]]) -> None:
    models = tuple(np.ones(TABLES[pair].shape) for pair in pairs)
    found = rows.evaluate(pairs, ModelError(models))
    assert found.tolist() == [float(np.abs(TABLES[pair] - 1).sum()) for pair in pairs]


@pytest.mark.parametrize(("limit", "counted"), [(1_000, 6), (40, 8), (5, 11)])
def test_scores_are_exact_whatever_is_remembered(
    limit: int, counted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter, "MOST_CELLS", limit)
    engine = Recounter()
    engine.rows = rows = counter.TrueCounts(engine, SIZES)  # type: ignore[arg-type]
    for pairs in (PAIRS[:2], PAIRS[:1], PAIRS[1:4], PAIRS[3:], PAIRS[5:], PAIRS[1:2]):
        score(rows, pairs)
        assert sum(table.cells for table in rows._tables.values()) <= limit
    assert max(engine.held) <= limit  # while others are counted, too
    assert len(engine.asked) == counted, engine.asked


def test_more_tables_than_are_compared_at_once() -> None:
    models = [np.full(shape, 0.5) for shape in itertools.islice(itertools.cycle([(2,), (3, 2), (1, 1)]), 200)]
    tables = [Table(tuple("xy"[: m.ndim]), np.arange(m.size).reshape(m.shape)) for m in models]
    found = ModelError(tuple(models), handicaps=tuple(float(i) for i in range(200))).evaluate(tables)
    expected = [np.abs(t.values - 0.5).sum() - i for i, t in enumerate(tables)]
    assert found.tolist() == expected
