"""Credal networks refuse what does not hold together, by name: ends, files, questions, measurements."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.networks import examples
from discreet.networks.credal import CredalNetwork, calibrated, contaminate, from_noise, idm, parse_credal
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.budget import PureDP
from discreet.values.errors import (
    FormatError,
    ImpossibleEvidence,
    NetworkError,
    QueryError,
    TableError,
)
from discreet.values.measurement import DiscreteLaplace, Measurement
from discreet.values.table import Table
from discreet.values.unit import Unit


def build(lower: Any, upper: Any) -> CredalNetwork:
    """One binary node with these ends."""
    return CredalNetwork.build({"a": ["x", "y"]}, {"a": []}, {"a": lower}, {"a": upper})


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [
        ([0.6, 0.1], [0.5, 0.9], "above the upper end"),
        ([-0.1, 0.1], [0.5, 0.9], "between 0 and 1"),
        ([0.1, 0.1], [0.5, 1.1], "between 0 and 1"),
        ([0.6, 0.6], [0.7, 0.7], "lower ends sum to 1.2"),
        ([0.1, 0.1], [0.4, 0.4], "upper ends to 0.8"),
        ([np.nan, 0.1], [0.5, 0.9], "not a finite number"),
        ([0.1, 0.1, 0.1], [0.5, 0.9, 0.9], "the schema says"),
        ([[0.1, 0.1]], [[0.5, 0.9]], "dimensions"),
    ],
)
def test_ends_that_leave_no_distribution_are_refused(lower: Any, upper: Any, said: str) -> None:
    """The message names the node and what is wrong."""
    with pytest.raises(NetworkError, match=said):
        build(lower, upper)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda found: found.update(format="discreet-network"), "format"),
        (lambda found: found.update(version=2), "newer"),
        (lambda found: found.update(version=True), "whole number"),
        (lambda found: found.update(extra=1), "unknown"),
        (lambda found: found.pop("upper"), "lacks the key 'upper'"),
        (lambda found: found.update(meaning=3), "text"),
        (lambda found: found["lower"].pop(), "tables"),
        (lambda found: found["lower"][0].append(0.5), "numbers"),
        (lambda found: found["upper"][0].__setitem__(0, -1), "between 0 and 1"),
        (lambda found: found["lower"][0].__setitem__(0, "0.1"), "not a number"),
        (lambda found: found["lower"][0].__setitem__(0, 1.0), "above the upper end"),
        (lambda found: found["parents"].pop(), "entries"),
    ],
)
def test_a_file_that_was_tampered_with_is_refused(spoil: Callable[[dict[str, Any]], Any], said: str) -> None:
    """Every refusal is a FormatError that says what is wrong."""
    document = copy.deepcopy(contaminate(examples.asia(), 0.1).to_json())
    spoil(document)
    with pytest.raises(FormatError, match=said):
        parse_credal(json.dumps(document))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": NaN}', "[" * 5000])
def test_what_is_no_document_is_refused(text: str) -> None:
    """Neither broken JSON nor another document gets through."""
    with pytest.raises(FormatError):
        parse_credal(text)


def test_questions_that_cannot_be_answered_are_refused() -> None:
    """Unknown names and levels, empty sets, an empty event, an unknown method."""
    credal = contaminate(examples.asia(), 0.1)
    with pytest.raises(QueryError, match="unknown attribute"):
        credal.query("nose")
    with pytest.raises(QueryError, match="no such level"):
        credal.query("lung", {"smoke": ["yes", "perhaps"]})
    with pytest.raises(QueryError, match="allows no level"):
        credal.query("lung", {"smoke": []})
    with pytest.raises(QueryError, match="event is empty"):
        credal.probability({})
    with pytest.raises(QueryError, match="the method must be"):
        credal.query("lung", method="loopy")  # type: ignore[arg-type]


def test_impossible_evidence_is_refused_by_its_labels() -> None:
    """Evidence that no network of the set allows, also where it is far from the target."""
    credal = CredalNetwork.build(
        {"a": ["x", "y"], "b": ["x", "y"]},
        {"a": [], "b": []},
        {"a": [1.0, 0.0], "b": [0.2, 0.2]},
        {"a": [1.0, 0.0], "b": [0.8, 0.8]},
    )
    for target in ("a", "b"):
        with pytest.raises(ImpossibleEvidence, match="a=y"):
            credal.query(target, {"a": "y"})
    with pytest.raises(ImpossibleEvidence, match="a=y"):
        credal.decide("b", {"a": "y"})


def test_counts_that_do_not_fit_are_refused() -> None:
    """Noise, missing families, negative counts, a wrong S."""
    asia = examples.asia()
    noisy = Measurement(
        Table(("asia",), np.array([1, 2], dtype=np.int64)),
        DiscreteLaplace(Fraction(2)),
        Unit.ADD_REMOVE,
        PureDP(1),
    )
    with pytest.raises(TableError, match="has noise in it"):
        idm([noisy], asia.dag, asia.schema)
    with pytest.raises(TableError, match="no table of counts contains"):
        idm([], asia.dag, asia.schema)
    whole = [Table(cpt.axes, np.ones(cpt.values.shape)) for cpt in asia.cpts]
    with pytest.raises(TableError, match="not negative"):
        idm([Table(table.axes, -table.values) for table in whole], asia.dag, asia.schema)
    for strength in (-1.0, float("nan"), {"lung": 1.0}, {name: np.ones(7) for name in asia.nodes}):
        with pytest.raises(TableError, match="S for"):
            idm(whole, asia.dag, asia.schema, strength)
    with pytest.raises(NetworkError, match="between 0 and 1"):
        contaminate(asia, 1.5)


def test_noise_intervals_need_measurements() -> None:
    """A plain network, one whose families were not measured, a sample of the rows, a coverage of 1."""
    asia = examples.asia()
    for make in (from_noise, lambda network: calibrated(network, rng=1)):
        with pytest.raises(NetworkError, match="does not say what was measured"):
            make(asia)
    law = DiscreteLaplace(Fraction(2))
    part = Measurement(Table(("asia",), np.array([9, 90], dtype=np.int64)), law, Unit.ADD_REMOVE, PureDP(1))
    learned = Network(
        asia.schema, asia.dag, asia.cpts, provenance=Provenance("test", Unit.ADD_REMOVE, PureDP(1), (part,))
    )
    with pytest.raises(NetworkError, match="was measured that contains"):
        from_noise(learned)
    answer = learned.query("lung")
    assert answer.lower is None
    assert answer.meaning.startswith("No intervals: no table over all rows was measured that contains")
    with pytest.raises(NetworkError, match="strictly between 0 and 1"):
        from_noise(learned, 1.0)
    tables = tuple(
        Measurement(
            Table(cpt.axes, np.ones(cpt.values.shape, dtype=np.int64)),
            law,
            "add-remove",
            "{}",
            Fraction(1, 10),
        )
        for cpt in asia.cpts
    )
    sampled = Network(
        asia.schema, asia.dag, asia.cpts, provenance=Provenance("test", Unit.ADD_REMOVE, PureDP(1), tables)
    )
    with pytest.raises(NetworkError, match="over all rows"):
        from_noise(sampled)
