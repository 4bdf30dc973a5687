"""A search in pure ε asks first whether it is worth it, where public numbers leave that open."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from chance import within_attempts
from discreet.core.queries import Choice
from discreet.core.scores import TreeGain
from discreet.entrance import open_airlock
from discreet.judge.experiments.likelihood import Listener, read_loss
from discreet.judge.preview import rehearse
from discreet.judge.replay import replay
from discreet.learning.adaptive import adaptive
from discreet.learning.rehearsal import Rehearsal
from discreet.learning.searching.prices import Rates
from discreet.networks.network import Network
from discreet.values.budget import PureDP
from discreet.values.errors import MechanismError, TooLarge
from discreet.values.schema import Schema
from discreet.values.schema.bins import Bins
from discreet.values.unit import Unit

NAMES = tuple("abcdefghijkl")
SCHEMA = Schema.of({name: range(4) for name in NAMES})
ROWS = 1560
"""65 for each unit of noise at ε = 1: more than where nothing is searched, and fewer than where all is."""

Codes = dict[str, np.ndarray]


def draw(alike: float, rows: int = ROWS) -> Codes:
    """Rows of which each attribute is that before it with this chance, and any other besides."""
    rng = np.random.default_rng(3)
    codes = {NAMES[0]: rng.integers(0, 4, rows)}
    for above, name in pairwise(NAMES):
        codes[name] = np.where(rng.random(rows) < alike, codes[above], rng.integers(0, 4, rows))
    return codes


def learn(codes: Codes, unit: str = "replace-one") -> Network:
    columns = {name: [str(code) for code in column] for name, column in codes.items()}
    with open_airlock(columns, SCHEMA, budget="1", unit=unit) as airlock:
        network = adaptive(airlock, spend=1, request="r")
        assert airlock.remaining.is_zero
        assert airlock.cost_of("r/worth") == PureDP("1/25")
    assert network.provenance is not None and network.provenance.cost == PureDP(1)
    return network


def read_answer(network: Network) -> tuple[int, bool]:
    """The answer to the first question, and whether anything was searched after it."""
    assert network.provenance is not None
    details = network.provenance.details
    return details["choices"][0], bool(details["batches"])


@pytest.mark.parametrize(("alike", "expected"), [(0.9, (0, True)), (0.0, (1, False))])
def test_rows_decide_where_public_numbers_do_not(alike: float, expected: tuple[int, bool]) -> None:
    """In one of forty runs, at the most, the answer is the other one; a release with either is followed by a replay."""
    codes = draw(alike)
    assert within_attempts(lambda: read_answer(learn(codes)) == expected)
    network = learn(codes)
    again = replay(network)
    assert again.dag == network.dag
    assert all(
        (one.values == other.values).all() for one, other in zip(again.cpts, network.cpts, strict=True)
    )


def test_independent_columns_follow_a_no_with_all_that_is_left() -> None:
    networks = (learn(draw(0.0)) for _ in range(20))
    network = next(found for found in networks if read_answer(found) == (1, False))
    assert network.provenance is not None
    assert {table.axes for table in network.provenance.measurements} == {(name,) for name in NAMES}
    paid = sum((table.cost for table in network.provenance.measurements), PureDP.zero())
    assert paid == PureDP("24/25")


def test_an_attacker_who_knows_both_tables_hears_the_answer() -> None:
    codes = draw(0.9)
    other = {name: np.append(column[:-1], 3 - column[-1]) for name, column in codes.items()}
    loss = read_loss(learn(codes), Listener((codes, other)))
    assert loss.steps[0].is_choice
    assert abs(loss.steps[0].loss) <= 1 / 25 and abs(loss.whole) <= 1


def test_a_plan_counts_the_question_among_the_choices() -> None:
    preview = rehearse(SCHEMA, None, spend=PureDP(1), unit="replace-one", rows=ROWS)
    assert preview.choices[0] == PureDP("1/25")
    assert len(preview.choices) > 2 and "private choices" in preview.explain()


def count_questions(rows: int, rates: Rates | None = None) -> int:
    """How often it would be asked whether a search is worth it, with so many rows."""
    asked = []

    class Stage(Rehearsal):
        def answer(self, query, request):  # type: ignore[no-untyped-def]
            asked.append(isinstance(query, Choice) and isinstance(query.score, TreeGain))
            return super().answer(query, request)

    adaptive(Stage(SCHEMA, Unit.REPLACE_ONE, PureDP(1), rows), spend=1, rates=rates)
    return sum(asked)


def test_the_question_is_asked_only_where_it_is_open() -> None:
    """Not with 30 rows for each unit of noise, nor with 80; with a pair that is nearly drowned in any case."""
    assert [count_questions(24 * spread) for spread in (30, 65, 80)] == [0, 1, 0]
    assert [count_questions(24 * 80, Rates(hopeless=share)) for share in (0.1, 0.3)] == [1, 0]
    assert count_questions(24 * 80, Rates(hopeless=0.1, lost=0.1)) == 0


@pytest.mark.parametrize("numbers", [True, False])
def test_numbers_are_searched_where_names_of_as_many_levels_are_given_up(numbers: bool) -> None:
    """Six nearly equal columns of twenty levels: of numbers the line is seen, of names noise drowns every cell."""
    names = [f"level {k}" for k in range(20)]
    schema = Schema.of({name: Bins(tuple(map(float, range(21)))) if numbers else names for name in NAMES[:6]})
    rng = np.random.default_rng(8)
    line = rng.integers(0, 20, 1_000)
    near = {name: np.clip(line + rng.integers(-1, 2, 1_000), 0, 19).tolist() for name in NAMES[:6]}
    columns = near if numbers else {name: [names[k] for k in column] for name, column in near.items()}

    def search() -> bool:
        with open_airlock(columns, schema, budget="2") as airlock:
            found = adaptive(airlock, spend=2)
        assert found.provenance is not None
        return bool(found.provenance.details["batches"]) == numbers

    assert within_attempts(search, 3)


@pytest.mark.parametrize("levels", [2050, 1500])
def test_where_no_two_pairs_can_be_looked_at_together_nothing_is_asked(levels: int) -> None:
    """A question without candidates, or with one, would be refused after rows were paid for, or not replay."""
    schema = Schema.of({name: Bins(tuple(map(float, range(levels + 1)))) for name in NAMES[:3]})
    codes = np.arange(levels * 80) % levels
    with open_airlock(dict.fromkeys(NAMES[:3], codes.tolist()), schema, budget="30") as airlock:
        found = adaptive(airlock, spend=30, request="r")
        assert airlock.remaining.is_zero and airlock.cost_of("r/worth") is None
    replay(found)


def test_pairs_beyond_the_memory_limit_are_refused_before_rows_are_paid_for() -> None:
    schema = Schema.of({name: [str(k) for k in range(40)] for name in NAMES})
    rows = {name: [str(k % 40) for k in range(1_000)] for name in NAMES}
    with open_airlock(rows, schema, budget="30", memory="1MB") as airlock:
        with pytest.raises(TooLarge, match="memory limit"):
            adaptive(airlock, spend=30)
        assert airlock.remaining == PureDP(30)


@pytest.mark.parametrize("links", [0, 1.5, float("nan"), True])
def test_a_tree_has_a_whole_number_of_links(links: float) -> None:
    with pytest.raises(MechanismError, match="a link or more"):
        TreeGain((0.0,), links, 0.0)  # type: ignore[arg-type]


def test_what_was_priced_of_a_tree_cannot_be_changed() -> None:
    given = [1.0, 2.0]
    score = TreeGain(given, 1, 0.0)  # type: ignore[arg-type]
    before = score.digest
    given[0] = 1e9
    assert score.handicaps == (1.0, 2.0) and score.digest == before
