"""A request id stands for one question: whatever else is asked under it is refused, not answered with old bytes."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet as dc
from discreet.papers.estimators.ball_draw import BallPosterior
from discreet.papers.estimators.sums import BoundedColumn
from discreet.values.budget import PureDP
from discreet.values.errors import LedgerError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.encoding import Derived, Encoding

SCHEMA = Schema.of({"a": ["0", "1", "2"]})
ROWS = {"a": ["0", "1", "2"], "x": [0.5, 0.25, -1.0], "y": [0.25, 0.25, 1.0]}
GRAIN = Fraction(1, 2**20)


def encode(codes: tuple[int, ...], levels: tuple[str, str] = ("0", "1")) -> Encoding:
    bit = Attribute.of("b", levels)
    return Encoding("binary", SCHEMA, Schema((bit,)), (Derived(bit, "a", codes),))


def test_another_encoding_is_another_question() -> None:
    with dc.open_airlock(ROWS, SCHEMA, budget="100") as airlock:
        with airlock.encode(encode((0, 0, 1))) as view:
            first = view.measure([("b",)], spend="1", request="e")[0]
        with airlock.encode(encode((0, 0, 1))) as view:
            again = view.measure([("b",)], spend="1", request="e")[0]
            assert again.to_json() == first.to_json()
        for other in (encode((1, 1, 0)), encode((0, 0, 1), ("no", "yes"))):
            with airlock.encode(other) as view, pytest.raises(LedgerError, match="another question"):
                view.measure([("b",)], spend="1", request="e")
        assert airlock.account.spent == PureDP(1)


def test_a_view_of_another_view_is_another_question() -> None:
    """The same last step after another first one."""
    first = encode((0, 0, 1)), encode((1, 1, 0))
    again = Encoding.of("vanilla", first[0].view)
    with dc.open_airlock(ROWS, SCHEMA, budget="100") as airlock:
        with airlock.encode(first[0]) as outer, outer.encode(again) as view:
            view.measure([("b",)], spend="1", request="e")
        with (
            airlock.encode(first[1]) as outer,
            outer.encode(again) as view,
            pytest.raises(LedgerError, match="another question"),
        ):
            view.measure([("b",)], spend="1", request="e")


def draw(
    lower: int | str = -1, name: str = "x", products: tuple[tuple[int, int], ...] = ((0, 1),),
    features: int = 1, grain: Fraction = GRAIN,
) -> BallPosterior:  # fmt: skip
    column = BoundedColumn(name, lower, 1, grain)
    return BallPosterior(
        products, (column,), features, Fraction(1, 64), 1.0, 1.0, PureDP(1), dc.Unit("add-remove")
    )


@pytest.mark.parametrize(
    "other",
    [
        draw(lower=0),
        draw(name="y"),
        draw(products=((1, 1),)),
        draw(features=2),
        draw(grain=GRAIN / 2),
    ],
)
def test_other_bounds_or_products_are_another_draw(other: BallPosterior) -> None:
    with dc.open_airlock(ROWS, SCHEMA, budget="100", numbers=["x", "y"]) as airlock:
        first = airlock.ask(draw(), request="q")
        assert airlock.ask(draw(), request="q") == first
        with pytest.raises(LedgerError, match="another question"):
            airlock.ask(other, request="q")
        assert airlock.account.spent == PureDP(1)


def test_a_mark_is_part_of_the_question_and_the_outer_one_stands() -> None:
    with dc.open_airlock(ROWS, SCHEMA, budget="100") as airlock:
        with airlock.mark("one"), airlock.mark("two"):
            airlock.measure([("a",)], spend="1", request="m")
        with airlock.mark("one"):
            airlock.measure([("a",)], spend="1", request="m")
        with airlock.mark("two"), pytest.raises(LedgerError, match="another question"):
            airlock.measure([("a",)], spend="1", request="m")
        with pytest.raises(LedgerError, match="another question"):
            airlock.measure([("a",)], spend="1", request="m")
        assert airlock.statement(since=0).purpose == "one"


def test_a_toss_follows_the_request_id() -> None:
    names = ("a", "b", "c", "d")
    with dc.open_airlock(ROWS, SCHEMA, budget="1") as airlock:
        assert len({airlock.toss(names, request="r") for _ in range(20)}) == 1
        assert {airlock.toss(names, request=str(i)) for i in range(60)} == set(names)
        assert len({airlock.toss(names) for _ in range(60)}) > 1  # all the same: once in 4^59
        assert airlock.asked == () and airlock.account.spent == PureDP.zero()
