"""Graphs as lines of arrows: what is written is read back, and what cannot be read is named with its line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.networks.formats.edges import parse_arrows, parse_edges
from discreet.networks.formats.release import read_graph
from discreet.values.errors import DiscreetError, GraphError
from discreet.values.graph import DAG
from discreet.values.schema import Schema

NAMES = st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=8).filter(
    lambda name: name.strip() != ""
)


def write_name(name: str) -> str:
    """A name as it stands in a list of arrows: in quotes where it must."""
    plain = name == name.strip() and not re.search(r'->|→|[#"]', name)
    return name if plain else json.dumps(name, ensure_ascii=False)


def write_edges(dag: DAG) -> str:
    """A line for each arrow, and for each node without one."""
    lines = []
    for name in dag.nodes:
        above = dag.parents_of(name)
        lines += [f"{write_name(parent)} -> {write_name(name)}" for parent in above]
        if not above and not dag.children_of(name):
            lines.append(write_name(name))
    return "\n".join(lines) + "\n"


@given(names=st.lists(NAMES, min_size=1, max_size=6, unique=True), data=st.data())
@settings(deadline=None, max_examples=80)
def test_arrows_survive_being_written(names: list[str], data: st.DataObject) -> None:
    """Any names, any graph: quotes, arrows and signs inside names included."""
    schema = Schema.of({name: ["a", "b"] for name in names})
    parents = {
        name: data.draw(st.lists(st.sampled_from(names[:i]), unique=True) if i else st.just([]))
        for i, name in enumerate(names)
    }
    dag = DAG.build(parents)
    assert parse_edges(write_edges(dag), schema) == dag


def test_chains_comments_and_lone_names() -> None:
    schema = Schema.of({name: ["x", "y"] for name in ("a", "b b", "c", "d")})
    found = parse_edges('# why\n\na -> b b → c  # a chain\nd\n"a" -> c\n', schema)
    assert found.parents == ((), ("a",), ("b b", "a"), ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a -> z", "line 1: 'z' is not an attribute"),
        ("a -> b\na -> b", "line 2: the arrow a -> b is there twice"),
        ("a ->", "line 1: the arrow after 'a' leads nowhere"),
        ("-> a", "line 1: cannot read"),
        ("a -> -> b", "line 1: cannot read"),
        ('"a" "b"', "line 1: cannot read"),
        ('"a', "line 1: cannot read"),
        ("a -> b\nb -> a", "cycle through a, b"),
        ("a -> a", "cycle through a"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, told: str) -> None:
    with pytest.raises(GraphError, match=told):
        parse_edges(text, Schema.of({"a": ["x", "y"], "b": ["x", "y"]}))


def test_a_graph_is_told_by_its_content(tmp_path: Path) -> None:
    """BIF, network and arrows under any name; the order is that of the schema."""
    asia = dc.examples.asia()
    turned = Schema(asia.schema.attributes[::-1])
    asia.write_bif(tmp_path / "one.txt")
    asia.write(tmp_path / "two.txt")
    (tmp_path / "three.bif").write_text(write_edges(asia.dag), "utf-8")
    for name in ("one.txt", "two.txt", "three.bif"):
        found = read_graph(tmp_path / name, turned)
        assert found.nodes == turned.names
        assert all(set(found.parents_of(node)) == set(asia.dag.parents_of(node)) for node in found.nodes)
    with pytest.raises(DiscreetError, match="in the graph, but not in the schema"):
        read_graph(tmp_path / "one.txt", asia.schema.select(["lung", "smoke"]))


def test_arrows_of_an_option_are_read_as_those_of_a_file() -> None:
    schema = Schema.of({name: [0, 1] for name in ("a", "b c", "d")})
    assert parse_arrows(['a -> "b c" → d', "a->d", "a -> d"], schema, "--require") == [
        ("a", "b c"), ("b c", "d"), ("a", "d"),
    ]  # fmt: skip
    assert parse_arrows([], schema, "--require") == []
    for text, told in (("a -> e", "'e'"), ("a", "no arrow"), ("", "no arrow"), ("a -> -> d", "cannot read")):
        with pytest.raises(GraphError, match=told):
            parse_arrows([text], schema, "--require")
