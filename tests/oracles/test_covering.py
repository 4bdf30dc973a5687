"""Tables as margins of wide ones are those that counting gives, whatever is asked of whatever sizes."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.rows.engines import covering
from discreet.rows.engines.covering import cover, take_margins
from discreet.rows.engines.kernels import PRIVATE_CELLS, Tally

MANY = 10**9
"""So many rows that wide tables are always worth it."""


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, ...]]]:
    """Sizes of columns, and sets of them in any order, some of them twice."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 5, 17, 300]), min_size=1, max_size=9))
    columns = st.lists(st.integers(0, len(sizes) - 1), unique=True, max_size=4).map(tuple)
    return sizes, draw(st.lists(columns, min_size=1, max_size=40))


@settings(deadline=None, max_examples=25)
@given(requests(), st.sampled_from([1, 64, 4096, covering.WIDE_CELLS]), st.integers(0, 2**32), st.booleans())
def test_margins_of_wide_tables_are_the_tables(
    request: tuple[list[int], list[tuple[int, ...]]], wide_cells: int, seed: int, weighted: bool
) -> None:
    """Every cell, axes in the order asked, against numpy's count of the rows themselves."""
    sizes, sets = request
    sets = [members for members in sets if math.prod(sizes[i] for i in members) <= 2**18] or [()]
    rng = np.random.default_rng(seed)
    rows = 50
    codes = [rng.integers(0, size, rows).astype(np.uint16 if size > 256 else np.uint8) for size in sizes]
    weights = rng.integers(0, 5, rows) if weighted else np.ones(rows, dtype=np.int64)

    def count(members: tuple[int, ...]) -> np.ndarray:
        found = np.zeros([sizes[i] for i in members], dtype=np.int64)
        np.add.at(found, tuple(codes[i] for i in members), weights if members else weights.sum())
        return found

    wide = cover(sizes, sets, MANY, 2**20, wide_cells)
    assert len(wide) <= len({frozenset(members) for members in sets})
    for members, found in zip(sets, take_margins(wide, [count(one) for one in wide], sets), strict=True):
        np.testing.assert_array_equal(found, count(members), strict=True)
        assert found.flags.c_contiguous
    tally = Tally(sizes, sets, weighted=weighted, rows=MANY, threads=1)
    tally.add(codes, weights if weighted else None)
    for members, found in zip(sets, tally.finish(), strict=True):
        np.testing.assert_array_equal(found, count(members), strict=True)


def test_the_number_of_rows_is_a_table_without_axes_beside_others() -> None:
    for rows, threads in itertools.product((0, MANY), (1, 2)):
        tally = Tally([2, 3], [(), (0, 1), (1,)], rows=rows, threads=threads)
        tally.add([np.array([0, 1, 1], dtype=np.uint8), np.array([2, 0, 0], dtype=np.uint8)])
        for _ in range(2):  # what was counted can be asked for again
            whole, both, one = tally.finish()
            assert whole.shape == () and whole == 3 and one.tolist() == [2, 0, 1]
            assert both.tolist() == [[0, 0, 1], [2, 0, 0]]


@settings(deadline=None, max_examples=40)
@given(requests(), st.sampled_from([0, 10**3, 10**5, 10**7]))
def test_the_cells_are_bounded_before_anything_is_counted(
    request: tuple[list[int], list[tuple[int, ...]]], most_cells: int
) -> None:
    """Wide tables stay within the room that there is, unless those asked for take more by themselves."""
    sizes, sets = request
    asked = sum(math.prod(sizes[i] for i in members) for members in {tuple(sorted(one)) for one in sets})
    wide = cover(sizes, sets, MANY, most_cells)
    assert sum(math.prod(sizes[i] for i in members) for members in wide) <= max(most_cells, asked)
    assert wide == cover(sizes, sets[::-1], MANY, most_cells), "the order asked must not matter"


def test_the_candidates_of_a_search_are_few_wide_tables() -> None:
    """All sets of two and three of twenty attributes, and many of four: a hundred times fewer tables."""
    sizes = [2, 2, 3, 3, 5, 2, 2, 3, 3, 2, 5, 6, 2, 3, 2, 3, 4, 3, 3, 2]
    sets = [members for width in (2, 3) for members in itertools.combinations(range(20), width)]
    sets += list(itertools.combinations(range(20), 4))[::2]
    wide = cover(sizes, sets, 10**6, PRIVATE_CELLS)
    assert 50 * len(wide) <= len(sets)
    assert all(math.prod(sizes[i] for i in members) <= covering.WIDE_CELLS for members in wide)


def test_looking_for_wide_tables_takes_less_time_than_counting() -> None:
    """All triples of forty attributes: what there is no time for is counted by itself."""
    sets, rows = list(itertools.combinations(range(40), 3)), covering.WORTH_COVERING
    start = time.process_time()
    wide = cover([4] * 40, sets, rows, 2**30)
    assert time.process_time() - start < rows * len(sets) * 1e-9
    held = [frozenset(members) for members in wide]
    assert all(any(found.issuperset(members) for found in held) for members in sets)
    assert len(wide) < len(sets) / 2
