"""In pure ε a batch whose noise needs all that is left gets it: the same ε in two tables says less than in one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from discreet.entrance import open_airlock
from discreet.learning.adaptive import adaptive
from discreet.learning.searching.prices import Prices, Rates, price_choice
from discreet.networks.network import Network
from discreet.values.schema import Schema

NAMES = [f"x{i}" for i in range(6)]


def search(budget: str, rates: Rates) -> Network:
    """A search of a table where the first three attributes are the same and the others depend on nothing."""
    schema = Schema.of({name: ["0", "1", "2"] for name in NAMES})
    codes = np.arange(3**5 * 100)
    rows = {name: np.array(["0", "1", "2"])[codes // 3 ** max(0, i - 2) % 3] for i, name in enumerate(NAMES)}
    with open_airlock(rows, schema, budget=budget, unit="replace-one") as airlock:
        return adaptive(airlock, spend=budget, rates=rates)


def count_tables(found: Network) -> Counter[frozenset[str]]:
    """How often each set was measured."""
    assert found.provenance is not None
    return Counter(frozenset(table.axes) for table in found.provenance.measurements)


def test_the_last_batch_is_measured_once_with_all_that_is_left() -> None:
    """Whatever is chosen: there is one batch, none of its sets is measured again, and nothing is left of ε."""
    found = search("1", Rates(covered=0.0, signal=0.0, noise=1e-6))
    known = found.provenance
    assert known is not None and len(known.details["batches"]) <= 1
    times = count_tables(found)
    assert all(times[frozenset(members)] == 1 for members in known.details["sets"])
    linked = {name for members in known.details["sets"] for name in members}
    assert all(times[frozenset({name})] == (1 if name in linked else 2) for name in NAMES)
    assert len(linked) >= 2  # a third of all rows are off where equal columns are taken for independent


def test_where_rows_are_many_the_rest_pays_for_further_choices() -> None:
    """What was chosen is measured again at the end: the noise aimed at took less than there was."""
    found = search("1", Rates(covered=0.0, signal=0.0, most_pure=12.0))
    known = found.provenance
    assert known is not None
    assert max(count_tables(found)[frozenset(members)] for members in known.details["sets"]) >= 2


@pytest.mark.parametrize("gaussian", [False, True])
def test_a_choice_costs_a_part_of_a_pair(gaussian: bool) -> None:
    """Of few rows a choice would cost more than what is chosen; of many, a tenth of it is enough."""
    prices = Prices(gaussian, 2, 2, 1.0, unit=0.01)
    pair, rates = prices.table(16), Rates()
    few, many = (float(price_choice(prices, 16, rows, rates)) for rows in (20, 10**7))
    assert few == pytest.approx(pair if gaussian else rates.dearest * pair, abs=1e-6)
    assert many == pytest.approx(pair / 10, abs=1e-6)
