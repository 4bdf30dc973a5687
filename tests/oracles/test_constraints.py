"""Constraints hold in every synthetic row, and the rows follow the network given that they hold, exactly."""

from __future__ import annotations

import itertools
import math
from datetime import date

import numpy as np
import pytest
from scipy.stats import chisquare

import discreet as dc
from chance import SURE
from discreet.compute.constrained import decompose_constrained, require_narrow
from discreet.networks.network import Network
from discreet.values.errors import ImpossibleEvidence, SchemaError
from discreet.values.graph import DAG
from discreet.values.schema import Attribute, Follows, Implied, Listed, Ordered, Schema
from discreet.values.schema.constraints import tabulate

SCHEMA = Schema(
    (
        Attribute.binned("first", [0, 3, 6, 9], type="integer", missing="?"),
        Attribute.binned("last", [0, 2, 5, 9], type="integer"),
        Attribute.binned("end", [1, 4, 8, 12], type="integer", missing="?"),
        Attribute.of("child", ["yes", "no"]),
        Attribute.of("married", ["yes", "no"], missing="?"),
    ),
    (
        Ordered("first", "<=", "last"),
        Ordered("last", "<", "end"),
        Implied((("child", ("yes",)),), (("married", ("!= yes",)), ("first", ("< 3", "?")))),
        Listed(("child", "end"), (("yes", "[1, 4)"), ("yes", "[4, 8)"), ("no", "[8, 12]"), ("no", "?"))),
    ),
    (Follows("adult", ("child",), (("yes", "false"), ("no", "true"))),),
)
PARENTS = {
    "first": ("married",),
    "last": ("first", "child"),
    "end": ("last",),
    "child": (),
    "married": ("child",),
}


def make_network(seed: int = 5) -> Network:
    rng = np.random.default_rng(seed)
    sizes = SCHEMA.sizes
    tables = {
        name: rng.dirichlet(np.ones(sizes[name]), [sizes[parent] for parent in parents])
        for name, parents in PARENTS.items()
    }
    return Network.build(SCHEMA, PARENTS, tables)


def enumerate_joint(network: Network) -> dict[tuple[int, ...], float]:
    """The probability of every combination that fulfils the constraints, by hand: some values of it must."""
    found = {}
    ranges = {
        "first": [(0, 2), (3, 5), (6, 9)],
        "last": [(0, 1), (2, 4), (5, 9)],
        "end": [(1, 3), (4, 7), (8, 12)],
    }
    for codes in itertools.product(*(range(one.size) for one in SCHEMA)):
        row = dict(zip(SCHEMA.names, codes, strict=True))
        spans = {name: ranges[name][row[name]] for name in ranges if row[name] < 3}
        fits = (
            any(
                first <= last and (end is None or last < end)
                for first in range(spans["first"][0], spans["first"][1] + 1)
                if "first" in spans
                for last in range(spans["last"][0], spans["last"][1] + 1)
                for end in (range(spans["end"][0], spans["end"][1] + 1) if "end" in spans else [None])
            )
            if "first" in spans
            else "end" not in spans or spans["last"][0] < spans["end"][1]
        )
        child = row["child"] == 0
        fits &= not child or (row["married"] != 0 and row["first"] in (0, 3))
        fits &= row["end"] in ((0, 1) if child else (2, 3))
        if fits:
            found[codes] = math.prod(
                network.cpt(name).values[tuple(row[one] for one in network.dag.family(name))]
                for name in SCHEMA.names
            )
    total = sum(found.values())
    return {codes: value / total for codes, value in found.items()}


def test_rows_are_exact_draws_from_the_constrained_network() -> None:
    network = make_network()
    wanted = enumerate_joint(network)
    drawn = network.sample(40_000, rng=3, balanced=False).codes()
    rows = list(zip(*(drawn[name].tolist() for name in SCHEMA.names), strict=True))
    counts = dict.fromkeys(wanted, 0)
    for row in rows:
        assert row in wanted
        counts[row] += 1
    common = [codes for codes, share in wanted.items() if share * len(rows) > 5]
    rest = len(rows) - sum(counts[codes] for codes in common)
    expected = [wanted[codes] * len(rows) for codes in common]
    observed = [counts[codes] for codes in common]
    assert chisquare([*observed, rest], [*expected, len(rows) - sum(expected)]).pvalue > 1 - SURE


def test_values_fulfil_what_holds_between_columns() -> None:
    frame = make_network().sample(5000, rng=1).pandas()
    known = frame[frame["first"].notna()]
    assert (known["first"] <= known["last"]).all()
    known = frame[frame["end"].notna()]
    assert (known["last"] < known["end"]).all()
    child = frame[frame["child"] == "yes"]
    assert len(child) and not (child["married"] == "yes").any() and not child["adult"].any()
    assert frame[frame["child"] == "no"]["adult"].all()


def test_evidence_and_constraints_go_together() -> None:
    network = make_network()
    rows = network.sample(500, rng=1, given={"child": "yes"}).pandas()
    assert set(rows["child"]) == {"yes"} and "yes" not in set(rows["married"])
    with pytest.raises(ImpossibleEvidence):
        network.sample(5, rng=1, given={"child": "yes", "married": "yes"})


def test_a_network_that_rules_out_what_can_be_gives_rows_all_the_same() -> None:
    """After the payment there is no refusal: an even share of 10⁻⁹ is mixed in."""
    schema = Schema(
        (Attribute.of("a", ["x", "y"]), Attribute.of("b", ["x", "y"])), (Listed(("a", "b"), (("x", "y"),)),)
    )
    network = Network.build(schema, {"a": (), "b": ()}, {"a": [0.0, 1.0], "b": [1.0, 0.0]})
    drawn = network.sample(9, rng=1).codes()
    assert set(zip(drawn["a"].tolist(), drawn["b"].tolist(), strict=True)) == {(0, 1)}


def test_what_cannot_be_done_is_refused_beforehand() -> None:
    attributes = tuple(Attribute.of(name, ["x", "y"]) for name in "abc")
    contradiction = tuple(
        Listed((left, right), (("x", "y"), ("y", "x"))) for left, right in ("ab", "bc", "ca")
    )
    with pytest.raises(SchemaError, match="no row fulfils all of them"):
        require_narrow(Schema(attributes, contradiction), None)
    with pytest.raises(SchemaError, match="no row fulfils all of them"):
        dc.plan(Schema(attributes, contradiction), {"b": ["a"]}, epsilon=1)
    with pytest.raises(SchemaError, match="no row fulfils all of them"):
        dc.agree(["north", "south"], Schema(attributes, contradiction), {"b": ["a"]}, epsilon=1)
    days = {"first": date(2000, 1, 1), "last": date(2009, 12, 31), "by": "week"}
    wide = tuple(Attribute.dated(name, **days) for name in "abcd")
    ring = (Ordered("a", "<=", "b"), Ordered("c", "<=", "d"))
    parents = {"a": (), "b": (), "c": ("a",), "d": ("b", "c")}
    require_narrow(Schema(wide, ring), None)
    with pytest.raises(SchemaError, match=r"too wide|cells"):
        require_narrow(Schema(wide, ring), DAG.build(parents))
    with pytest.raises(SchemaError, match="circle"):
        Schema(wide, (Ordered("a", "<=", "b"), Ordered("b", "<", "a")))


def test_without_constraints_the_decomposition_is_the_network() -> None:
    network = make_network()
    free = Schema(SCHEMA.attributes)
    assert tabulate(free) == []
    chain = decompose_constrained(free, network.dag, network.cpts, {}, {})
    assert {found.axes[-1] for found in chain} == set(SCHEMA.names)
