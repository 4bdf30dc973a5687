"""A schema survives its file, bins follow their definition, and taxonomies nest."""

from __future__ import annotations

import json
import math
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from discreet.values.errors import DataError
from discreet.values.schema import Attribute, Bins, Group, Schema, Taxonomy
from discreet.values.schema.formats.toml import parse_toml, write_toml

laws = settings(deadline=None, max_examples=80)

labels = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12).filter(
    lambda name: name.strip() != ""
)
numbers = st.floats(allow_nan=False, allow_infinity=False)
small = st.integers(-20, 20).map(float) | st.floats(-20, 20)


@st.composite
def bins(draw: Any, edge: Any = numbers, open_ends: bool = True) -> Bins:
    edges = sorted(draw(st.sets(edge.map(lambda x: x + 0.0), min_size=3, max_size=8)))
    if open_ends and draw(st.booleans()):
        edges = [-math.inf, *edges]
    if open_ends and draw(st.booleans()):
        edges = [*edges, math.inf]
    return Bins(tuple(edges), draw(st.sampled_from(["left", "right"])))


@st.composite
def taxonomies(draw: Any, levels: tuple[str, ...]) -> Taxonomy:
    """Join neighbours at random; group labels cannot be levels because these are shorter."""
    row: list[str | Group] = list(levels)
    for i in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(row) - 1))
        stop = draw(st.integers(start + 1, len(row)))
        row[start:stop] = [Group(f"the group with the number {i} {draw(names)}", tuple(row[start:stop]))]
    return Taxonomy(tuple(row))


@st.composite
def attributes(draw: Any, name: str) -> Attribute:
    missing = draw(st.none() | labels)
    if draw(st.booleans()):
        cut = draw(bins())
        assume(missing is None or (missing not in cut.labels and not _is_number(missing)))
        taxonomy = draw(st.none() | taxonomies(cut.labels))
        return Attribute.binned(name, cut, missing=missing, taxonomy=taxonomy)
    levels = tuple(draw(st.lists(labels, min_size=2, max_size=6, unique=True)))
    assume(missing not in levels)
    taxonomy = draw(st.none() | taxonomies(levels))
    return Attribute.of(name, levels, ordered=draw(st.booleans()), missing=missing, taxonomy=taxonomy)


@st.composite
def schemas(draw: Any) -> Schema:
    found = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    return Schema(tuple(draw(attributes(name)) for name in found))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@laws
@given(schemas())
def test_a_schema_survives_toml_json_and_pickle(schema: Schema) -> None:
    assert parse_toml(write_toml(schema)) == schema
    assert (
        Schema.from_json(json.loads(json.dumps(schema.to_json(), sort_keys=True, allow_nan=False))) == schema
    )
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert hash(parse_toml(write_toml(schema))) == hash(schema)
    assert parse_toml(write_toml(schema)).names == schema.names


@laws
@given(schemas(), st.data())
def test_encoding_undoes_decoding(schema: Schema, data: Any) -> None:
    rows = data.draw(st.integers(0, 20))
    codes = {
        attribute.name: np.array(
            data.draw(st.lists(st.integers(0, attribute.size - 1), min_size=rows, max_size=rows)),
            dtype=attribute.dtype,
        )
        for attribute in schema
    }
    back = schema.encode(schema.decode(codes))
    assert list(back) == list(schema.names)
    for name in codes:
        np.testing.assert_array_equal(back[name], codes[name])
        assert back[name].dtype == schema[name].dtype


def find_bin(cut: Bins, value: float) -> int | None:
    """The bin by its definition, one interval at a time."""
    last = len(cut) - 1
    for i in range(len(cut)):
        low, high = cut.edges[i], cut.edges[i + 1]
        inside = low <= value < high if cut.closed == "left" else low < value <= high
        if inside or (i == 0 and value == low) or (i == last and value == high):
            return i
    return None


@laws
@given(bins(small), st.data())
def test_bins_agree_with_their_definition(cut: Bins, data: Any) -> None:
    attribute = Attribute.binned("x", cut)
    value = data.draw(st.sampled_from(cut.edges) | small | st.sampled_from([math.inf, -math.inf]))
    expected = find_bin(cut, value)
    assert cut.holds(value) == (expected is not None)
    forms = [
        [value],
        np.array([value]),
        [repr(value)],
        [Decimal(value)],
        pa.array([value]),
        pa.array([repr(value)]),
    ]
    if math.isfinite(value) and value == int(value):
        forms += [[int(value)], np.array([int(value)], dtype=np.int8), [str(int(value))]]
    for column in forms:
        if expected is None:
            with pytest.raises(DataError, match=r"'x', row 1: .* is beyond the edges; allowed are"):
                attribute.encode(column)
        else:
            assert attribute.encode(column).tolist() == [expected]


@laws
@given(bins(open_ends=False), st.integers(0, 2**32))
@example(
    Bins((1.0, 1.0 + 2**-52, 1.0 + 2**-51)), 1
)  # no float between the edges: every second draw rounds up
@example(Bins((1.0, 1.0 + 2**-52, 1.0 + 2**-51), "right"), 1)
def test_draws_lie_in_their_bin(cut: Bins, seed: int) -> None:
    attribute = Attribute.binned("x", cut, missing="none")
    codes = np.repeat(np.arange(attribute.size), 5)
    drawn = attribute.decode(codes, rng=seed)
    assert np.isnan(drawn[-5:]).all()
    assert not np.isnan(drawn[:-5]).any()
    np.testing.assert_array_equal(attribute.encode(drawn), codes)


def test_draws_are_uniform_and_repeat_with_the_seed() -> None:
    attribute = Attribute.binned("x", [0, 10, 30, math.inf])
    codes = np.ones(20_000, dtype=np.uint8)
    drawn = attribute.decode(codes, rng=5)
    heights = np.histogram(drawn, bins=20, range=(10, 30))[0]
    assert heights.sum() == 20_000
    assert abs(heights - 1_000).max() < 5 * math.sqrt(1_000)
    np.testing.assert_array_equal(drawn, attribute.decode(codes, rng=np.random.default_rng(5)))
    wide = Attribute.binned("x", [-1.7e308, 1.7e308, 1.75e308]).decode(
        codes * 0, rng=5
    )  # wider than any float
    assert 0.45 < np.mean(wide > 0) < 0.55
    both = Schema((attribute, Attribute.of("y", ["a", "b"]))).decode({"x": [0, 1], "y": [1, 0]}, rng=1)
    assert both["x"].dtype == np.float64
    assert both["y"].tolist() == ["b", "a"]


def test_bin_labels_say_which_edges_belong() -> None:
    assert Bins((0, 18, 40.5, 65)).labels == ("[0, 18)", "[18, 40.5)", "[40.5, 65]")
    assert Bins((0, 18, 40.5, 65), "right").labels == ("[0, 18]", "(18, 40.5]", "(40.5, 65]")
    assert Bins((-math.inf, -0.0, math.inf)).labels == ("(-inf, 0)", "[0, inf)")
    assert Bins((-math.inf, 1e300, math.inf), "right").labels == ("(-inf, 1e+300]", "(1e+300, inf)")


@laws
@given(st.data())
def test_generalisation_nests(data: Any) -> None:
    levels = tuple(data.draw(st.lists(labels, min_size=2, max_size=8, unique=True)))
    tree = data.draw(taxonomies(levels))
    attribute = Attribute.of("a", levels, missing="the missing level", taxonomy=tree)
    finer: list[int] | None = None
    for depth in range(attribute.height):
        groups, mapping = attribute.generalise(depth)
        assert len(set(groups)) == len(groups)
        assert sorted(set(mapping.tolist())) == list(range(len(groups)))
        assert len(mapping) == attribute.size
        assert groups[mapping[-1]] == "the missing level"
        assert (mapping == mapping[-1]).sum() == 1
        if finer is None:
            assert groups == attribute.levels
        else:  # codes that were together stay together
            assert len(set(zip(finer, mapping.tolist(), strict=True))) == len(set(finer))
        finer = mapping.tolist()


def test_a_taxonomy_is_cut_at_one_distance_from_the_root() -> None:
    schema = parse_toml("""
        [attributes.country]
        levels = ["se", "no", "it", "us", "other"]
        missing = "?"
        taxonomy = [{ europe = { north = ["se", "no"], south = ["it"] } }, { america = ["us"] }, "other"]
    """)
    country = schema["country"]
    assert country.height == 3
    assert country.generalise(0)[0] == country.levels
    groups, mapping = country.generalise(1)
    assert [groups[i] for i in mapping] == ["north", "north", "south", "us", "other", "?"]
    groups, mapping = country.generalise(2)
    assert [groups[i] for i in mapping] == ["europe", "europe", "europe", "america", "other", "?"]


@pytest.mark.parametrize("size", [3, 4, 5, 7, 8, 16])
def test_halving_joins_neighbours(size: int) -> None:
    attribute = Attribute.of(
        "a", range(size), ordered=True, taxonomy=Taxonomy.halve([str(i) for i in range(size)])
    )
    assert attribute.height == math.ceil(math.log2(size))
    for depth in range(attribute.height):
        assert attribute.generalise(depth)[1].tolist() == [i >> depth for i in range(size)]


def test_what_a_schema_offers() -> None:
    age = Attribute.binned("age", [0, 18, math.inf], missing="?")
    schema = Schema.of({"age": age, "smoke": ["yes", "no"], "pay": Bins((0, 1, 2), "right"), "n": [0, True]})
    assert schema.names == ("age", "smoke", "pay", "n")
    assert schema.sizes == {"age": 3, "smoke": 2, "pay": 2, "n": 2}
    assert schema["n"].levels == ("0", "true")
    assert [name in schema for name in ("age", "Age", 3)] == [True, False, False]
    assert [attribute.name for attribute in schema] == list(schema.names)
    assert (len(schema), len(age)) == (4, 3)
    assert list(age) == ["[0, 18)", "[18, inf)", "?"]
    assert "?" in age
    assert schema.select(["smoke", "age"]).names == ("smoke", "age")
    assert repr(schema) == "Schema(4 attributes: age[3], smoke[2], pay[2], n[2])"
    assert repr(age) == "Attribute('age', 2 bins: '[0, 18)', '[18, inf)', '?')"
    assert len(repr(Schema.of({f"a{i}": range(5_000) for i in range(20)}))) < 200


def test_names_of_numpy_are_plain_texts() -> None:
    """What is written down of a search would differ from what was read back."""
    schema = Schema.of({np.str_("a"): ["x", "y"], np.str_("b"): range(3)})
    assert [type(name) for name in schema.names] == [str, str]
