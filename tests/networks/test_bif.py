"""What a BIF file says is what is read, and what is written is read back to the last bit."""

from __future__ import annotations

import gzip
import importlib.util
import random
import re
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.networks import examples
from discreet.networks.formats.bif import format_bif, parse_bif, read_bif, write_bif
from discreet.networks.network import Network
from discreet.values.errors import NetworkError


def public_networks() -> list[Path]:
    spec = importlib.util.find_spec("pgmpy")  # finds the files without importing the package
    assert spec is not None
    assert spec.origin is not None
    return sorted((Path(spec.origin).parent / "utils" / "example_models").glob("*.bif.gz"))


def require_equal(one: Network, other: Network) -> None:
    assert one.schema == other.schema
    assert one.dag == other.dag
    for mine, theirs in zip(one.cpts, other.cpts, strict=True):
        assert mine.axes == theirs.axes
        np.testing.assert_array_equal(mine.values, theirs.values)


ODD = st.text(st.sampled_from(" ,;|\"\\{}()[]/*'\n\r\tab0.é漢\u2028\u00a0#"), max_size=6)
NAMES = st.text(st.sampled_from(" ,;|\"\\{}()[]/*'ab0.é漢\u00a0#"), min_size=1, max_size=6).filter(str.strip)
KEYWORDS = st.sampled_from(
    ["table", "default", "property", "variable", "probability", "//", "/*", "*/", "nan"]
)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    names = draw(st.lists(NAMES | KEYWORDS, min_size=1, max_size=5, unique=True))
    levels = {name: draw(st.lists(ODD | KEYWORDS, min_size=2, max_size=4, unique=True)) for name in names}
    order = draw(st.permutations(names))
    parents: dict[str, list[str]] = {}
    for i, name in enumerate(order):
        some = st.lists(st.sampled_from(order[:i]), max_size=3, unique=True) if i else st.just([])
        parents[name] = draw(some)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sparse = draw(st.booleans())
    cpts = {}
    for name in names:
        shape = [len(levels[member]) for member in (*parents[name], name)]
        values = rng.dirichlet(np.full(shape[-1], 0.01 if sparse else 1.0), size=shape[:-1])
        cpts[name] = values / values.sum(axis=-1, keepdims=True)
    return Network.build(levels, {name: parents[name] for name in names}, cpts)


def test_there_are_24_public_networks() -> None:
    assert len(public_networks()) == 24


@pytest.mark.parametrize("path", public_networks(), ids=lambda path: path.name.partition(".")[0])
def test_every_public_network_is_read_written_and_read_equal(path: Path, tmp_path: Path) -> None:
    started = time.process_time()
    network = read_bif(path)
    assert time.process_time() - started < 10  # 0.5 s as a rule
    write_bif(network, tmp_path / "again.bif")
    again = read_bif(tmp_path / "again.bif")
    require_equal(network, again)
    assert format_bif(again) == (tmp_path / "again.bif").read_text(encoding="utf-8")
    for cpt in network.cpts:
        np.testing.assert_allclose(cpt.values.sum(axis=-1), 1.0, rtol=0, atol=1e-12)


@settings(deadline=None, max_examples=150)
@given(network=networks())
def test_a_network_with_any_names_survives(network: Network) -> None:
    text = format_bif(network)
    again = parse_bif(text)
    require_equal(network, again)
    assert format_bif(again) == text


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(["asia", "sachs", "child"]))
def test_the_order_of_rows_and_blocks_carries_no_meaning(seed: int, name: str) -> None:
    network = examples.load(name)
    shuffler = random.Random(seed)
    head, *blocks = re.findall(r"^\w.*?^}\n", format_bif(network), re.MULTILINE | re.DOTALL)
    mixed = []
    for block in blocks:
        first, *rows, last = block.splitlines(keepends=True)
        mixed.append("".join([first, *shuffler.sample(rows, len(rows)), last]))
    variables = [block for block in mixed if block.startswith("variable")]
    others = [block for block in mixed if block.startswith("probability")]
    shuffler.shuffle(others)
    require_equal(network, parse_bif("".join([*others, head, *variables])))


def test_packed_and_marked_files_are_read(tmp_path: Path) -> None:
    network = examples.asia()
    write_bif(network, tmp_path / "asia.bif.gz")
    packed = (tmp_path / "asia.bif.gz").read_bytes()
    assert gzip.decompress(packed).decode() == format_bif(network)
    require_equal(network, read_bif(tmp_path / "asia.bif.gz"))
    write_bif(network, tmp_path / "asia.bif.gz")
    assert (tmp_path / "asia.bif.gz").read_bytes() == packed
    (tmp_path / "windows.bif").write_bytes(
        b"\xef\xbb\xbf" + format_bif(network).replace("\n", "\r\n").encode()
    )
    require_equal(network, read_bif(tmp_path / "windows.bif"))


TWO = """
variable p { type discrete [ 2 ] { a, b }; }
variable q { type discrete [ 3 ] { u, v, w }; }
variable c { type discrete [ 2 ] { x, y }; }
probability ( p ) { table 0.25, 0.75; }
probability ( q ) { table 0.5, 0.25, 0.25; }
"""


def child_table(block: str) -> list[float]:
    network = parse_bif(TWO + block)
    assert network.dag.parents_of("c") == ("p", "q")
    return [float(value) for value in network.cpt("c").values[..., 0].ravel()]


def test_a_flat_table_counts_the_child_slowest_and_the_last_parent_fastest() -> None:
    block = "probability ( c | p, q ) { table .01 .02 .03 .04 .05 .06 .99 .98 .97 .96 .95 .94; }"
    assert child_table(block) == [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]


def test_default_fills_the_rows_that_are_not_listed() -> None:
    block = "probability ( c | p, q ) { (b, v) 0.5, 0.5; default 1, 0; (a w) 2.5e-1 75E-2; }"
    assert child_table(block) == [1, 1, 0.25, 1, 0.5, 1]
    assert child_table("probability ( c | p, q ) { default 0, 1; }") == [0] * 6


def test_the_dialects_of_other_writers() -> None:
    """JavaBayes quotes, leaves out commas and bars, and writes properties; all of them comment."""
    text = """// a dog
    network "Dog; problem" { property "made by {hand}"; /* two
       lines */ property version 1.0 ; }
    variable "light on" { //2 values
      type discrete[2] { "true" "fal\\"se" };
      property "position = (218, 195)" ; }
    variable hear-bark { type discrete[ 3 ] {"a, b" 12+ <5}; } /* the end */
    probability ( "light on" ) { property x = 1; table 0.6 0.4 ; }
    probability ( hear-bark "light on" ) { ( "true" ) 0.1 0.2 0.7; ( "fal\\"se" ) 1e-1 2e-1 +.7; }
    """
    network = parse_bif(text)
    assert network.nodes == ("light on", "hear-bark")
    assert network.schema["light on"].levels == ("true", 'fal"se')
    assert network.schema["hear-bark"].levels == ("a, b", "12+", "<5")
    assert network.dag.parents_of("hear-bark") == ("light on",)
    np.testing.assert_array_equal(network.cpt("hear-bark").values, [[0.1, 0.2, 0.7]] * 2)


@settings(deadline=None, max_examples=60)
@given(
    weights=st.lists(st.floats(0.01, 1), min_size=2, max_size=6),
    drift=st.floats(-9e-4, 9e-4),
)
def test_rows_within_tolerance_are_normalised_once(weights: list[float], drift: float) -> None:
    row = np.array(weights) / sum(weights)
    row[row.argmax()] += drift
    states = ", ".join(f"s{i}" for i in range(len(row)))
    text = f"variable v {{ type discrete [ {len(row)} ] {{ {states} }}; }} probability ( v ) {{ table "
    network = parse_bif(text + " ".join(map(repr, row.tolist())) + "; }")
    values = network.cpts[0].values
    assert abs(values.sum() - 1) <= 1e-12
    np.testing.assert_allclose(values, row / row.sum(), rtol=1e-11)
    require_equal(network, parse_bif(format_bif(network)))


def test_thirds_with_three_digits_are_accepted() -> None:
    text = "variable v { type discrete [ 3 ] { a, b, c }; } probability ( v ) { table .333 .333 .333; }"
    np.testing.assert_allclose(parse_bif(text).cpts[0].values, 1 / 3, rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "counts"),
    [("asia", (8, 8, 18)), ("sachs", (11, 17, 178)), ("child", (20, 25, 230)), ("alarm", (37, 46, 509))],
)
def test_the_examples_have_the_published_size(name: str, counts: tuple[int, int, int]) -> None:
    network = examples.load(name)
    dag = network.dag
    assert (len(dag), len(dag.edges()), dag.complexity(network.schema.sizes)) == counts
    require_equal(network, getattr(examples, name)())
    twin = next(path for path in public_networks() if path.name == f"{name}.bif.gz")
    require_equal(network, read_bif(twin))


def test_an_unknown_example_is_refused() -> None:
    assert examples.names() == ("asia", "sachs", "child", "alarm")
    with pytest.raises(
        NetworkError, match=r"unknown example '\.\./asia'; there are asia, sachs, child, alarm"
    ):
        examples.load("../asia")


def test_child_keeps_its_slash() -> None:
    assert "Asy/Patch" in examples.child().schema["ChestXray"].levels
    assert "Asy/Patch" in format_bif(examples.child())
