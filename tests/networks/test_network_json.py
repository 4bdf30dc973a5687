"""The JSON of a network keeps everything, and takes nothing that a network could not have written."""

from __future__ import annotations

import copy
import gzip
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.networks import examples
from discreet.networks.formats.documents import load_strictly
from discreet.networks.formats.release import parse_network, read_network, write_network
from discreet.networks.network import NETWORK, Network
from discreet.values.errors import DiscreetError, FormatError, TooLarge
from discreet.values.graph import DAG
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.bins import Bins
from discreet.values.schema.taxonomy import Group, Taxonomy
from discreet.values.table import Table

LABELS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1).filter(str.strip)
EDGES = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=5, unique=True).map(sorted)


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Attribute:
    missing = draw(st.none() | st.just("a missing value"))
    if draw(st.booleans()):
        edges = draw(EDGES)
        if draw(st.booleans()):
            edges = [-math.inf, *edges, math.inf]
        return Attribute.binned(
            name, Bins(tuple(edges), draw(st.sampled_from(["left", "right"]))), missing=missing
        )
    levels = draw(st.lists(LABELS, min_size=3, max_size=5, unique=True))
    inner = Group("an inner group", tuple(levels[:2]))
    taxonomy = Taxonomy((Group("an outer group", (inner, levels[2])), *levels[3:]))
    if draw(st.booleans()):
        taxonomy = None
    return Attribute.of(name, levels, ordered=draw(st.booleans()), missing=missing, taxonomy=taxonomy)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    schema = Schema(tuple(draw(attributes(name)) for name in names))
    order = draw(st.permutations(names))
    parents = {
        name: draw(st.lists(st.sampled_from(order[:i]), max_size=2, unique=True)) if i else []
        for i, name in enumerate(order)
    }
    dag = DAG.build({name: parents[name] for name in names})
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    tables = []
    for name in names:
        shape = [schema[member].size for member in dag.family(name)]
        tables.append(Table(dag.family(name), rng.dirichlet(np.full(shape[-1], 0.5), size=shape[:-1])))
    return Network(schema, dag, tuple(tables))


def format_network(network: Network) -> str:
    return NETWORK.format_text(network.to_json())


def require_equal(one: Network, other: Network) -> None:
    assert one.schema == other.schema
    assert one.dag == other.dag
    for mine, theirs in zip(one.cpts, other.cpts, strict=True):
        assert mine.axes == theirs.axes
        np.testing.assert_array_equal(mine.values, theirs.values)


@settings(deadline=None, max_examples=100)
@given(network=networks())
def test_every_network_survives_to_the_last_bit(network: Network) -> None:
    text = format_network(network)
    again = parse_network(text)
    require_equal(network, again)
    assert format_network(again) == text
    assert json.loads(text) == network.to_json()


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_files_are_written_and_read(suffix: str, tmp_path: Path) -> None:
    for name in examples.names():
        path = tmp_path / f"{name}{suffix}"
        write_network(examples.load(name), path)
        assert (path.read_bytes()[:2] == b"\x1f\x8b") == (suffix == ".json.gz")
        require_equal(examples.load(name), read_network(path))


def test_conditionals_are_not_touched() -> None:
    off = Network.build({"a": ["x", "y"]}, {"a": []}, {"a": [0.5 + 4e-7, 0.5]})
    require_equal(off, parse_network(format_network(off)))


def change(path: list[Any], value: object) -> Callable[[Any], None]:
    def apply(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        if value is DELETED:
            del document[path[-1]]
        else:
            document[path[-1]] = value

    return apply


DELETED = object()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change(["format"], "pickle"), "the key 'format' must be 'discreet-network'"),
        (change(["format"], DELETED), "the key 'format' must be 'discreet-network'"),
        (change(["version"], 2), "version 2 was written by a newer discreet; this one reads up to 1"),
        (change(["version"], 0), "version 0 is not a whole number above 0"),
        (change(["version"], True), "version True is not a whole number"),
        (change(["version"], "1"), "version '1' is not a whole number"),
        (change(["version"], DELETED), "version None is not a whole number"),
        (change(["extra"], 1), "a network has the unknown key 'extra'"),
        (change(["cpts"], DELETED), "a network lacks the key 'cpts'"),
        (change(["schema"], []), "a schema must be a table"),
        (change(["schema", "format"], 9), "schema format 9 is not known"),
        (change(["schema", "attributes", 1, "levels"], ["one"]), "1 levels; at least 2"),
        (change(["schema", "attributes", 1, "levels", 1], "yes"), "'yes' is declared twice"),
        (change(["parents"], {}), "parents must be an array"),
        (change(["parents", 7], DELETED), "parents has 7 entries for 8 attributes"),
        (
            change(["parents", 1], ["asia", []]),
            r"found \['asia', \[\]\] where \['tub', \[\.\.\.\]\] should be",
        ),
        (change(["parents", 1], "tub"), "found 'tub' where"),
        (change(["parents", 1, 1], "asia"), "the parents of 'tub' must be an array"),
        (change(["parents", 1, 1], [3]), "the parents of 'tub' must be at most 63 names"),
        (change(["parents", 1, 1], ["asia"] * 64), "the parents of 'tub' must be at most 63 names"),
        (change(["parents", 1, 1], ["nobody"]), "unknown parent 'nobody'"),
        (change(["parents", 1, 1], ["asia", "asia"]), "lists a parent twice"),
        (change(["parents", 0, 1], ["tub"]), "the graph has a cycle"),
        (change(["cpts"], 3), "cpts must be an array"),
        (change(["cpts", 7], DELETED), "cpts has 7 tables for 8 nodes"),
        (change(["cpts", 0], 0.5), "the table of 'asia' must be an array"),
        (change(["cpts", 0], [0.5]), "the table of 'asia' has 1 numbers; it needs 2"),
        (change(["cpts", 0], [[0.5, 0.5]]), "the table of 'asia' has 1 numbers; it needs 2"),
        (change(["cpts", 0], [[0.5], [0.5]]), r"the table of 'asia' holds \[0.5\], which is not a number"),
        (change(["cpts", 0], ["0.5", "0.5"]), "the table of 'asia' holds '0.5', which is not a number"),
        (change(["cpts", 0], [True, False]), "the table of 'asia' holds True, which is not a number"),
        (change(["cpts", 0], [None, 1]), "the table of 'asia' holds None, which is not a number"),
        (change(["cpts", 0], [-0.5, 1.5]), "the table of 'asia' holds -0.5, which is not between 0 and 1"),
        (change(["cpts", 0], [10**400, 0]), "the table of 'asia' holds 1000"),
        (change(["cpts", 0], [0.5, 0.6]), "sums to 1.1; it must sum to 1"),
    ],
)
def test_each_fault_is_named(edit: Callable[[Any], None], message: str) -> None:
    document = copy.deepcopy(examples.asia().to_json())
    edit(document)
    with pytest.raises(FormatError, match=message) as refused:
        parse_network(json.dumps(document), "clinic.json")
    assert str(refused.value).startswith("clinic.json: ")
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: not JSON"),
        ("{", "line 1: not JSON"),
        ("[]", "the key 'format' must be"),
        ("null", "the key 'format' must be"),
        ('{"format": "discreet-network",\n "version": 1,}', "line 2: not JSON"),
        ('{"format": "a", "format": "discreet-network"}', "the key 'format' is given twice"),
        ('{"a": NaN}', "NaN is not a number that JSON allows"),
        ('{"a": -Infinity}', "-Infinity is not a number"),
        ("[" * 100_000 + "]" * 100_000, "nested"),
        ("[" * 500 + "]" * 500, "nested more than 100 deep"),
        ('{"a":' * 300 + "1" + "}" * 300, "nested more than 100 deep"),
        ('{"a": ' + "9" * 5000 + "}", "not a document of discreet"),
        ("\0", "not JSON"),
    ],
    ids=range(13),
)
def test_hostile_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_network(text)


def test_infinite_and_huge_numbers_are_refused() -> None:
    text = format_network(examples.asia())
    with pytest.raises(FormatError, match="larger than any number"):
        parse_network(text.replace("[0.01, 0.99]", "[1e999, 0.99]"))


def test_forty_parents_are_counted_before_anything_is_allocated() -> None:
    names = [f"v{i}" for i in range(41)]
    document = {
        "format": "discreet-network",
        "version": 1,
        "schema": {"attributes": [{"name": name, "levels": ["0", "1"]} for name in names]},
        "parents": [[name, []] for name in names[:40]] + [[names[40], names[:40]]],
        "cpts": [[0.5, 0.5]] * 41,
    }
    started = time.process_time()
    with pytest.raises(FormatError, match="has 2 numbers; it needs 2,199,023,255,552"):
        Network.from_json(document)
    assert time.process_time() - started < 5


def test_long_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * 10**6))
    with pytest.raises(TooLarge, match="more than 1,000 bytes unpacked"):
        read_network(path, max_bytes=1000)


TEXT = format_network(examples.asia())


@settings(deadline=None, max_examples=200)
@given(
    at=st.integers(0, len(TEXT) - 1),
    length=st.integers(0, 30),
    extra=st.sampled_from(["", "[", "]", "{", '"', ",", "-", "1", "null", "1e9", "\\", "\ud800", "\0"]),
)
def test_a_damaged_text_is_read_or_refused(at: int, length: int, extra: str) -> None:
    damaged = TEXT[:at] + extra + TEXT[at + length :]
    try:
        found = parse_network(damaged)
    except DiscreetError:
        return
    require_equal(found, parse_network(format_network(found)))


def test_strict_loading_keeps_what_json_allows() -> None:
    assert load_strictly('{"a": [1, 0.5, null, true, {"b": "é"}]}') == {"a": [1, 0.5, None, True, {"b": "é"}]}
