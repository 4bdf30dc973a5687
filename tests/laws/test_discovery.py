"""Values that nobody declared: the exact (ε, δ) of what is told, over all tiny tables and all rows of one unit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pytest

from discreet.core.mechanism import Noise
from discreet.core.queries import Discovery, find_threshold
from discreet.entrance import open_airlock, open_counter
from discreet.values.budget import ZCDP, ApproxDP, Finite, PureDP, allow, keep_delta
from discreet.values.errors import AirlockError, BudgetError, DataError, LedgerError, Overspent
from discreet.values.schema import Schema
from discreet.values.unit import Unit

VALUES = 3
PEOPLE = {k: Unit("add-remove", "id", k) for k in (2, 3)}
UNITS = [Unit.ADD_REMOVE, Unit.REPLACE_ONE, *PEOPLE.values()]


def tell(count: int, query: Discovery, reach: int) -> np.ndarray:
    """The exact law of what is told of one value: nothing, or each noisy count from the threshold on."""
    if not count:
        return np.concatenate([[1.0], np.zeros(reach + 1)])
    law, threshold = query.mechanism.law, query.threshold
    told = np.exp(law.log_pmf(np.arange(threshold, threshold + reach + 1) - count))
    return np.concatenate([[max(0.0, 1.0 - told.sum())], told])


def fail(alone: tuple[int, ...], query: Discovery) -> float:
    """The exact probability that any of the values is told that one unit alone holds."""
    law, threshold = query.mechanism.law, query.threshold
    kept = [1.0 - float(law.survival(threshold - count - 1)) for count in alone if count]
    return 1.0 - math.prod(kept)


def diverge(
    before: tuple[int, ...], after: tuple[int, ...], query: Discovery, order: float, reach: int
) -> float:
    """The Rényi divergence of what is told of values that are in both tables, which adds up over them."""
    total = 0.0
    for one, other in zip(before, after, strict=True):
        if one and other and one != other:
            first, second = tell(one, query, reach), tell(other, query, reach)
            with np.errstate(all="ignore"):
                ratio = np.where(first > 0, first**order * second ** (1 - order), 0.0)
            total += math.log(ratio.sum()) / (order - 1)
    return total


def neighbours(unit: Unit) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs of tiny tables that differ in one unit; counts up to 6 reach the thresholds of this test."""
    for counts in itertools.product(range(0, 7, 2), repeat=VALUES):
        if unit.fixes_rows:
            for i, j in itertools.permutations(range(VALUES), 2):
                if counts[i]:
                    yield counts, tuple(n - (at == i) + (at == j) for at, n in enumerate(counts))
            continue
        for rows in range(1, unit.at_most + 1):
            for held in itertools.combinations_with_replacement(range(VALUES), rows):
                yield counts, tuple(n + held.count(at) for at, n in enumerate(counts))


def worst(query: Discovery) -> tuple[float, float]:
    """Over all pairs: the largest probability of failure, and the largest divergence over its order."""
    failure = loss = 0.0
    for pair in neighbours(query.unit):
        for before, after in (pair, pair[::-1]):
            failure = max(failure, fail(tuple(n for n, m in zip(before, after, strict=True) if not m), query))
            for order in (1.1, 2.0, 8.0):
                loss = max(loss, diverge(before, after, query, order, 120) / order)
    return failure, loss


def break_threshold(query: Discovery, threshold: int) -> Discovery:
    """A twin with another threshold, made round the check that refuses it."""
    twin = object.__new__(Discovery)
    for name in Discovery.__slots__:
        object.__setattr__(twin, name, getattr(query, name))
    object.__setattr__(twin, "threshold", threshold)
    return twin


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_unit_is_told_more_often_than_delta_nor_loses_more_than_rho(unit: Unit, noise: Noise) -> None:
    query = Discovery.price(["x"], ZCDP("1/4"), "1/50", unit=unit, noise=noise)
    failure, loss = worst(query)
    assert failure <= 0.02 and loss <= 0.25 * (1 + 1e-9)
    # A threshold that is one lower fails too often: it is the least, up to the union over k values.
    assert worst(break_threshold(query, query.threshold - 1))[0] > 0.97 * 0.02


def test_without_a_threshold_a_single_row_is_told() -> None:
    """The planted twin: what is there is told, whatever its count."""
    query = Discovery.price(["x"], ZCDP(1), "1/50", unit=Unit.ADD_REMOVE)
    with pytest.raises(AirlockError, match="of single units"):
        replace(query, threshold=1)
    assert worst(break_threshold(query, -30))[0] > 0.99


def test_a_discovery_that_costs_too_little_cannot_be_made() -> None:
    query = Discovery.price(["x", "y"], ZCDP(1), "1e-6", unit=Unit.ADD_REMOVE)
    with pytest.raises(AirlockError, match="together"):
        replace(query, cost=ZCDP("1/2"))
    with pytest.raises(AirlockError, match="not made for"):
        replace(query, unit=PEOPLE[2])
    with pytest.raises(AirlockError, match="together"):
        replace(query, columns=("x", "y", "z"))
    with pytest.raises(AirlockError, match="of single units"):
        replace(query, delta=query.delta / 100)
    for cost in (PureDP(1), ApproxDP(1, "1e-6")):
        with pytest.raises(BudgetError, match="need an account with an ε and a δ"):
            Discovery.price(["x"], cost, "1e-6", unit=Unit.ADD_REMOVE)
    with pytest.raises(BudgetError, match="δ"):
        Discovery.price(["x"], ZCDP(1), 0, unit=Unit.ADD_REMOVE)


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("k", [1, 2, 7, 1000])
@pytest.mark.parametrize("rho", ["1/200", "1", "30"])
def test_the_threshold_is_the_least_over_all_ways_to_spread_rows(k: int, rho: str, noise: Noise) -> None:
    """Every way to spread k rows over values, as a knapsack: the best sum of probabilities for each number of rows."""
    mechanism = Discovery.price(
        ["x"], ZCDP(rho), "1e-6", unit=Unit("add-remove", "id", k), noise=noise
    ).mechanism
    threshold = find_threshold(mechanism, Fraction("1e-6"))

    def told(least: int) -> float:
        alone = [0.0, *(float(p) for p in mechanism.law.survival(least - np.arange(1, k + 1) - 1))]
        best = [0.0] * (k + 1)
        for rows in range(1, k + 1):
            tried = range(1, rows + 1) if k <= 7 else (1, rows)
            best[rows] = max(best[rows - size] + alone[size] for size in tried)
        return best[k]

    assert told(threshold) <= 1e-6 * (1 + 1e-6)
    assert threshold == k + 1 or told(threshold - 1) > 1e-6 * (1 - 1e-6)


def test_an_account_adds_up_what_may_fail_and_keeps_to_its_part_of_delta() -> None:
    budget = ApproxDP(9, "1/1000")
    kept = keep_delta(budget)
    assert 0 < kept < budget.delta
    with _open(ROWS) as airlock:  # type: ignore[attr-defined]
        first = Discovery.price(["x"], ZCDP("1/10"), kept * 2 / 3, unit=Unit.ADD_REMOVE)
        airlock.ask(first, request="first")
        before = airlock.remaining
        with pytest.raises(Overspent, match="left for values nobody declared"):
            airlock.ask(first, request="second")
        assert airlock.remaining == before
        airlock.ask(replace(first, delta=kept / 3, threshold=10**6), request="second")
    for plain in (PureDP(1), ZCDP(1)):
        assert keep_delta(plain) == 0
    whole: Finite = allow(budget)
    assert isinstance(whole, ZCDP)


def _open(rows: dict[str, list[str]], **more: object) -> object:
    import pyarrow as pa

    schema = Schema.of({"z": ["0", "1"]})
    return open_airlock(pa.table(rows), schema, budget="epsilon=9, delta=1/1000", texts=["x"], **more)  # type: ignore[arg-type]


ROWS = {
    "x": ["often"] * 300 + ["Jane Doe", "", "NA"],
    "z": ["0"] * 303,
    "id": [f"p{i // 3}" for i in range(303)],
}


def test_a_frequent_value_is_told_and_a_rare_one_is_not() -> None:
    """The rare one is told with probability δ, so δ is one that no run of the tests ever sees."""
    query = Discovery.price(["x"], ZCDP("1/2"), "1e-9", unit=Unit.ADD_REMOVE)
    with _open(ROWS) as airlock:  # type: ignore[attr-defined]
        (found,) = airlock.ask(query, request="once")
        assert set(found) == {"often"} and abs(found["often"] - 300) < 20
        assert airlock.ask(query, request="once") == [found], "the same request gets the same bytes"
        other = Discovery.price(["x"], ZCDP("1/2"), "1e-8", unit=Unit.ADD_REMOVE)
        with pytest.raises(LedgerError, match="once"):
            airlock.ask(other, request="once")
        before = airlock.remaining
        with pytest.raises(DataError, match="columns opened for that"):
            airlock.ask(Discovery.price(["z"], ZCDP("1/9"), "1/99999", unit=Unit.ADD_REMOVE))
        assert airlock.remaining == before


def test_of_a_person_no_more_rows_count_than_the_unit_says() -> None:
    unit = Unit("add-remove", "id", 1)
    query = Discovery.price(["x"], ZCDP(1), "1/100000", unit=unit)
    with _open(ROWS, unit=unit) as airlock:  # type: ignore[attr-defined]
        (found,) = airlock.ask(query)
        assert abs(found["often"] - 100) < 12


@pytest.mark.parametrize("person", [None, "p"])
def test_a_collation_does_not_hand_out_the_spelling_of_one_row(person: str | None) -> None:
    """Where texts that differ are equal in SQL, a group must not be told under the name that one row gives it."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x VARCHAR COLLATE NOCASE, p VARCHAR, f VARCHAR)")
    connection.execute("INSERT INTO t VALUES ('sMiTh', 'one', 'a')")
    connection.execute("INSERT INTO t SELECT 'smith', 'p' || range, 'a' FROM range(500)")
    unit = None if person is None else Unit("add-remove", person, 1)
    counter = open_counter(
        (connection, "t"), Schema.of({"f": ["a", "b"]}), texts=["x"], unit=unit or Unit.ADD_REMOVE
    )
    assert counter.count_values(["x"]) == [{"smith": 500, "sMiTh": 1}]
