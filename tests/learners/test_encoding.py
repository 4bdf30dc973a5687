"""Encodings: bits and groups follow from declared levels, are counted from the same rows, and lead back to them."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from chance import SURE, within_attempts
from discreet.doors.cli.commands import app
from discreet.doors.release import release as make_release_of_rows
from discreet.entrance import open_airlock, open_ledger
from discreet.judge.experiments.empirical_epsilon import empirical_epsilon
from discreet.judge.verify import verify
from discreet.learning.greedy import greedy
from discreet.learning.parent_sets import limit_degree, maximal_sets
from discreet.learning.privbayes import privbayes
from discreet.networks.formats.release import format_release, parse_release
from discreet.networks.network import Network
from discreet.rows.engines.kernels import Tally, count_packed, pack
from discreet.values.budget import ZCDP, PureDP
from discreet.values.errors import (
    AirlockError,
    DataError,
    GraphError,
    LedgerError,
    SchemaError,
    TableError,
)
from discreet.values.schema import Attribute, Group, Schema, Taxonomy
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Table

LEVELS = tuple("uvwxyz")
TREE = Taxonomy((Group("low", ("u", Group("vw", ("v", "w")))), Group("high", ("x", "y", "z"))))
SCHEMA = Schema.of(
    {
        "six": Attribute.of("six", LEVELS, taxonomy=TREE),
        "two": ["no", "yes"],
        "five": Attribute.of("five", range(5), taxonomy=Taxonomy.halve("01234")),
        "three": range(3),
    }
)
BINARY, GROUPED = (Encoding.of(kind, SCHEMA) for kind in ("binary", "hierarchical"))


def _draw(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Rows in which six decides much of five, and five of two; three is on its own."""
    rng = np.random.default_rng(seed)
    six = rng.choice(6, rows, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    five = np.where(rng.random(rows) < 0.8, np.minimum(six, 4), rng.integers(0, 5, rows))
    two = (rng.random(rows) < np.where(five < 2, 0.9, 0.2)).astype(int)
    codes = {"six": six, "two": two, "five": five, "three": rng.integers(0, 3, rows)}
    return {name: np.array(SCHEMA[name].levels)[codes[name]] for name in SCHEMA.names}


def _recode(encoding: Encoding, codes: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the view should show, level by level from the declaration."""
    found = {}
    for name in encoding.view.names:
        derived = encoding.find(name)
        if derived is None:
            found[name] = codes[name]
        elif encoding.kind == "binary":
            width = math.ceil(math.log2(SCHEMA[derived.source].size))
            place = int(name.rpartition("_bit")[2])
            found[name] = np.array(
                [int(f"{code:0{width}b}"[place - 1]) for code in codes[derived.source]], dtype=int
            )
        else:
            names = SCHEMA[derived.source].taxonomy.cut(int(name.rpartition("_group")[2]))
            labels = list(encoding.view[name].levels)
            levels = SCHEMA[derived.source].levels
            found[name] = np.array([labels.index(names[levels[code]]) for code in codes[derived.source]])
    return found


def test_bits_are_the_natural_code() -> None:
    assert BINARY.view.names == (
        "six_bit1", "six_bit2", "six_bit3", "two", "five_bit1", "five_bit2", "five_bit3", "three_bit1", "three_bit2",
    )  # fmt: skip
    assert set(BINARY.view.sizes.values()) == {2}
    for level in range(6):
        bits = [BINARY.find(f"six_bit{i}").codes[level] for i in (1, 2, 3)]
        assert int("".join(map(str, bits)), 2) == level


def test_groups_are_the_cuts_of_the_taxonomy() -> None:
    assert GROUPED.parts("six") == ("six_group1", "six_group2")
    assert GROUPED.view["six_group2"].levels == ("low", "high")
    assert GROUPED.view["six_group1"].levels == ("u", "vw", "x", "y", "z")
    assert GROUPED.parts("three") == GROUPED.parts("two") == ()


@pytest.mark.parametrize(
    ("kind", "schema", "message"),
    [
        ("gray", SCHEMA, "vanilla, binary, hierarchical, not 'gray'"),
        ("hierarchical", Schema.of({"a": range(5)}), "needs an attribute with a taxonomy"),
        ("binary", Schema.of({"a": range(5), "a_bit2": range(2)}), "'a_bit2', which is also an attribute"),
    ],
)
def test_an_encoding_that_cannot_be_made_is_refused(kind: str, schema: Schema, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Encoding.of(kind, schema)


@pytest.mark.parametrize("memory", [None, 2000])
@pytest.mark.parametrize("encoding", [BINARY, GROUPED], ids=lambda found: found.kind)
def test_the_airlock_counts_what_the_view_says(encoding: Encoding, memory: int | None) -> None:
    """Held or read again, packed or not: all tables of up to three attributes equal those by brute force."""
    rows = _draw(700)
    codes = _recode(encoding, SCHEMA.encode(rows))
    sets = [found for k in (1, 2, 3) for found in itertools.combinations(encoding.view.names, k)]
    with open_airlock(rows, SCHEMA, budget=PureDP(1), memory=memory) as airlock:
        view = airlock.encode(encoding)
        for table in view.reveal(sets, reason="oracle"):
            shape = [encoding.view[name].size for name in table.axes]
            exact = np.zeros(shape, dtype=int)
            np.add.at(exact, tuple(codes[name].astype(int) for name in table.axes), 1)
            assert (table.noisy.values == exact).all()


def test_rows_that_live_in_an_engine_are_encoded_there() -> None:
    ibis = pytest.importorskip("ibis")
    with open_airlock(ibis.memtable(_draw(20)), SCHEMA, budget=PureDP(1)) as airlock:
        made = privbayes(airlock, spend=1, encoding="binary")
        assert airlock.remaining.is_zero and set(made.schema.names) >= {"two", "six_bit1"}


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 300), width=st.integers(1, 5))
@settings(deadline=None, max_examples=30)
def test_packed_counts_are_those_of_the_kernels(seed: int, rows: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    columns = [(rng.random(rows) < rng.random()).astype(np.uint8) for _ in range(6)]
    sets = list(itertools.permutations(range(6), width))[:80]
    tally = Tally([2] * 6, sets)
    tally.add(columns)
    expected = tally.finish()
    found = count_packed([pack(column) for column in columns], rows, sets)
    assert all((one == other).all() for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("encoding", [BINARY, GROUPED], ids=lambda found: found.kind)
def test_one_row_moves_a_table_of_the_view_by_one_cell(encoding: Encoding) -> None:
    """Each level, hence each row, falls into exactly one cell of any table of the view: L1 1, or 2 if replaced."""
    for k in (1, 2, 3, 4):
        for axes in itertools.combinations(encoding.view.names, k):
            cells: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
            sources = sorted({encoding.source(name) for name in axes})
            for levels in itertools.product(*(range(SCHEMA[name].size) for name in sources)):
                row = dict(zip(sources, levels, strict=True))
                cell = tuple(
                    row[name] if (found := encoding.find(name)) is None else found.codes[row[found.source]]
                    for name in axes
                )
                cells.setdefault(cell, set()).add(levels)
            possible = encoding.possible(axes)
            assert {tuple(cell) for cell in np.argwhere(possible)} == set(cells)
            assert sum(map(len, cells.values())) == math.prod(SCHEMA[name].size for name in sources)


def test_bits_lead_back_to_the_level_and_stray_ones_to_a_near_level() -> None:
    for name in ("six", "five", "three"):
        bits = BINARY.parts(name)
        table = BINARY.link(name, (*bits, name))
        assert table.values.sum(axis=-1) == pytest.approx(1.0)
        for cell in itertools.product((0, 1), repeat=len(bits)):
            code = int("".join(map(str, cell)), 2)
            row = table.values[cell]
            if code < SCHEMA[name].size:
                assert row[code] == 1.0
                continue
            shared = [
                len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(cell, other, strict=True))))
                for level in range(SCHEMA[name].size)
                if (other := tuple(BINARY.find(bit).codes[level] for bit in bits))
            ]
            best = [level for level, length in enumerate(shared) if length == max(shared)]
            assert row == pytest.approx([1 / len(best) if level in best else 0 for level in range(len(row))])


def test_rows_whose_bits_spell_no_level_are_drawn_again() -> None:
    """Bits that are fair coins spell 5, 6 and 7 of five levels in 3/8 of rows; drawn again, all five are as likely.

    Without drawing again the last level, which is what stray bits are nearest to, would have half of the rows.
    """
    schema = Schema.of({"five": range(5)})
    with open_airlock({"five": ["0", "4"]}, schema, budget=PureDP(1)) as airlock:
        learned = privbayes(airlock, spend=1, encoding="binary", k=0)
    bits = Encoding.of("binary", schema).parts("five")
    cpts = tuple(
        learned.cpt(name) if name == "five" else Table((name,), np.array([0.5, 0.5]))
        for name in learned.nodes
    )
    network = replace(learned, cpts=cpts)
    assert learned.provenance.details["bits"] == {"five": list(bits)}
    assert network.query("five").table.values == pytest.approx([0.125] * 4 + [0.5])
    rows = network.sample(100_000, rng=3)
    counts = np.bincount(rows.codes()["five"], minlength=5)
    # Of 3/8 of rows, 8 tries leave (3/8)^9 to the last level; 6 standard deviations are below 1e-8 for each level.
    left = 0.375**9
    expected = 100_000 * (np.full(5, (1 - left) / 5) + left * np.eye(5)[4])
    assert np.abs(counts - expected).max() < 6 * math.sqrt(100_000 * 0.16)
    pieces = [piece["five"] for piece in rows.chunks(777)]
    assert (np.concatenate(pieces) == rows.codes()["five"]).all()


def test_a_coarser_table_follows_from_a_finer_one() -> None:
    codes = _recode(GROUPED, SCHEMA.encode(_draw(500)))

    def count(axes: tuple[str, ...]) -> Table:
        exact = np.zeros([GROUPED.view[name].size for name in axes], dtype=int)
        np.add.at(exact, tuple(codes[name].astype(int) for name in axes), 1)
        return Table(axes, exact)

    fine = count(("two", "six_group1", "five"))
    for axes in (("six_group2", "five"), ("five_group1", "two", "six_group1"), ("six_group2", "five_group2")):
        assert GROUPED.coarsen(fine, axes).close_to(count(axes))
    with pytest.raises(TableError, match="'six' does not follow"):
        GROUPED.coarsen(fine, ("six",))


@given(
    heights=st.lists(st.lists(st.integers(2, 9), min_size=1, max_size=3, unique=True), max_size=4),
    room=st.integers(0, 120),
    degree=st.integers(0, 4),
)
@settings(deadline=None, max_examples=120)
def test_maximal_sets_take_no_version_that_could_be_finer(
    heights: list[list[int]], room: int, degree: int
) -> None:
    ladders = [sorted(sizes, reverse=True) for sizes in heights]
    sizes = {f"x{i}_{j}": size for i, ladder in enumerate(ladders) for j, size in enumerate(ladder)}
    pool = [f"x{i}_0" for i in range(len(ladders))]
    coarser = {
        f"x{i}_0": tuple(f"x{i}_{j}" for j in range(1, len(ladder))) for i, ladder in enumerate(ladders)
    }

    def fits(depths: tuple[int, ...]) -> bool:
        """Depth −1 leaves an attribute out."""
        taken = [ladders[i][depth] for i, depth in enumerate(depths) if depth >= 0]
        return len(taken) <= degree and math.prod(taken) <= room

    def step_up(depths: tuple[int, ...], i: int) -> tuple[int, ...] | None:
        above = len(ladders[i]) - 1 if depths[i] < 0 else depths[i] - 1
        return None if depths[i] == 0 else (*depths[:i], above, *depths[i + 1 :])

    every = [d for d in itertools.product(*(range(-1, len(ladder)) for ladder in ladders)) if fits(d)]
    expected = {
        tuple(f"x{i}_{depth}" for i, depth in enumerate(depths) if depth >= 0)
        for depths in every
        if not any((finer := step_up(depths, i)) is not None and fits(finer) for i in range(len(ladders)))
    }
    found = list(maximal_sets(pool, (), sizes, room, degree, coarser))
    assert len(found) == len(set(found)) and set(found) == (expected or {()})


def test_versions_count_when_candidates_are_limited() -> None:
    assert limit_degree(15, 8, 2**16) == 8
    assert limit_degree(15, 8, 2**16, [4] * 15) == 3
    assert limit_degree(15, 8, 4 * math.comb(11, 3) * 4**3, [4] * 15) == 3
    assert limit_degree(15, 8, 4 * math.comb(11, 3) * 4**3 - 1, [4] * 15) == 2


@pytest.mark.parametrize("budget", [PureDP("7/3"), ZCDP("1/9")])
@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
@pytest.mark.parametrize("options", [{}, {"k": 2}, {"estimation": "printed"}, {"k": 0}])
@pytest.mark.parametrize("kind", ["binary", "hierarchical"])
def test_the_budget_is_spent_exactly_and_rows_have_declared_labels(
    kind: str, options: dict[str, Any], unit: str, budget: PureDP | ZCDP
) -> None:
    with open_airlock(_draw(600), SCHEMA, budget=budget, unit=unit) as airlock:
        network = privbayes(airlock, spend=budget, encoding=kind, rng=1, **options)
        assert airlock.remaining.is_zero
    assert network.declared == SCHEMA
    assert network.nodes[: len(SCHEMA)] == SCHEMA.names
    table = network.sample(200, rng=1).arrow(labels=True)
    assert tuple(table.column_names) == SCHEMA.names
    for name in SCHEMA.names:
        assert set(table[name].to_pylist()) <= set(SCHEMA[name].levels)
    given = network.sample(50, rng=1, given={"two": "yes"})
    assert set(given.arrow(labels=True)["two"].to_pylist()) == {"yes"}


@pytest.mark.parametrize(("kind", "score"), [("binary", "R"), ("binary", "F"), ("hierarchical", "R")])
def test_with_much_budget_the_pairs_are_those_of_the_rows(kind: str, score: str) -> None:
    rows = _draw(4000, seed=3)
    codes = SCHEMA.encode(rows)
    with open_airlock(rows, SCHEMA, budget=PureDP(4000)) as airlock:
        network = privbayes(airlock, spend=4000, encoding=kind, score=score, rng=2)
    for pair in (("six", "five"), ("five", "two"), ("six", "two"), ("three", "two")):
        exact = np.zeros([SCHEMA[name].size for name in pair])
        np.add.at(exact, tuple(codes[name].astype(int) for name in pair), 1 / 4000)
        found = network.engine.joint(pair, {}).arrange(pair).values
        assert np.abs(found - exact).sum() / 2 < 0.06
    if kind == "hierarchical":
        groups = [name for name in network.nodes if "_group" in name]
        assert all(network.dag.parents_of(name) == (GROUPED.source(name),) for name in groups)


def test_generalised_parents_make_room_where_levels_do_not_fit() -> None:
    """With a room of 12 cells, six cannot be a parent of five, but its two groups can."""
    with open_airlock(_draw(600), SCHEMA, budget=PureDP(10), unit="replace-one") as airlock:
        order = ["six", "five", "two", "three"]
        plain = greedy(airlock, spend=1, tables=1, theta=6, order=order)
        coarse = greedy(airlock, spend=1, tables=1, theta=6, order=order, encoding="hierarchical")
    assert plain.bounds.cells == coarse.bounds.cells and plain.bounds.cells < 30
    assert plain.dag.parents_of("five") == ()
    assert coarse.dag.parents_of("five") == ("six_group2",)
    assert ("six_group2", "five") in coarse.families()


def test_what_people_know_is_kept_among_bits() -> None:
    with open_airlock(_draw(300), SCHEMA, budget=PureDP(9)) as airlock:
        order = ["three", "two", "six", "five"]
        found = greedy(
            airlock, spend=1, k=3, encoding="binary", order=order, forbidden=[("six", "five")], rng=0
        )
        assert [BINARY.source(name) for name in found.order] == sorted(
            [BINARY.source(name) for name in found.order], key=order.index
        )
        assert not any(
            BINARY.source(parent) == "six" and BINARY.source(child) == "five"
            for parent, child in found.dag.edges()
        )
        left = airlock.remaining
        with pytest.raises(GraphError, match="no required edge"):
            greedy(airlock, spend=1, encoding="binary", required=[("six", "five")])
        assert airlock.remaining == left


def test_a_view_is_another_question_on_the_same_account(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ledger", create=True) as ledger:
        airlock = open_airlock(
            _draw(50), SCHEMA, budget=PureDP(1), ledger=ledger, account="clinic", create=True
        )
        view = airlock.encode(BINARY)
        first = view.measure([("two",)], spend="1/4", request="r")
        assert view.remaining == airlock.remaining == PureDP("3/4")
        assert airlock.asked == view.asked == ("r",)
        assert (
            airlock.encode(BINARY).measure([("two",)], spend="1/4", request="r")[0].to_json()
            == first[0].to_json()
        )
        with pytest.raises(LedgerError):  # the same words, but not the same question
            airlock.measure([("two",)], spend="1/4", request="r")
        with pytest.raises(DataError, match="another schema"):
            airlock.encode(Encoding.of("binary", SCHEMA.select(["six"])))
        assert airlock.remaining == PureDP("3/4")
        airlock.close()
        with pytest.raises(AirlockError, match="closed"):
            view.measure([("two",)], spend="1/4")


@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ["binary", "hierarchical"])
def test_a_release_is_verified_like_any_other(tmp_path: Path, kind: str, unit: str) -> None:
    release = make_release_of_rows(
        _draw(400), SCHEMA, None, epsilon=2, ledger=tmp_path / "ledger", account="clinic", unit=unit,
        learner="privbayes", options={"encoding": kind}, create=True,
    )  # fmt: skip
    read = parse_release(format_release(release))
    with open_ledger(tmp_path / "ledger") as ledger:
        found = verify(read, ledger)
    assert found.sound and all(check.holds for check in found.checks), found.checks
    assert read.network.declared == SCHEMA
    assert tuple(read.network.sample(5, rng=0).arrow().column_names) == SCHEMA.names


def test_the_commands_take_an_encoding(tmp_path: Path) -> None:
    import pyarrow.csv

    network = Network.build(
        SCHEMA, dict.fromkeys(SCHEMA.names, ()), {n: np.full(s, 1 / s) for n, s in SCHEMA.sizes.items()}
    )
    pyarrow.csv.write_csv(network.sample(300, rng=0).arrow(), tmp_path / "rows.csv")
    SCHEMA.write(tmp_path / "schema.toml")
    start = [
        "release",
        str(tmp_path / "rows.csv"),
        "--schema",
        str(tmp_path / "schema.toml"),
        "--epsilon",
        "1",
    ]
    rest = ["--ledger", str(tmp_path / "ledger"), "--account", "a", "--create-ledger", "--encoding", "binary"]
    runner = CliRunner()
    refused = runner.invoke(app, [*start, *rest, "--out", str(tmp_path / "out.json")])
    assert refused.exit_code != 0 and not (tmp_path / "ledger").exists()
    made = runner.invoke(app, [*start, *rest, "--learner", "privbayes", "--out", str(tmp_path / "out.json")])
    assert made.exit_code == 0, made.output
    assert parse_release((tmp_path / "out.json").read_text("utf-8")).network.declared == SCHEMA
    plan = ["plan", *start[2:], "--learner", "privbayes", "--encoding", "hierarchical"]
    assert "six" in runner.invoke(app, [*plan, "--json"]).output


def _publish(rows: list[tuple[str, str]], kind: str, spend: int) -> Any:
    schema = Schema.of(
        {"a": Attribute.of("a", list("xyz"), taxonomy=Taxonomy((Group("g", ("x", "y")), "z"))), "b": range(2)}
    )
    columns = {"a": [row[0] for row in rows], "b": [row[1] for row in rows]}

    def draw(trials: int) -> np.ndarray:
        found = []
        for _ in range(trials):
            with open_airlock(columns, schema, budget=PureDP(spend)) as airlock:
                network = privbayes(airlock, spend=spend, encoding=kind, order=["b", "a"], theta="1/100")
            tables = sorted(network.provenance.measurements, key=lambda table: (len(table.axes), table.axes))
            values = np.concatenate([table.noisy.values.ravel() for table in tables])
            padded = np.full(24, -(10.0**6))
            padded[: len(values)] = values
            found.append(np.append(padded, len(network.dag.edges())))
        return np.array(found)

    return draw


@pytest.mark.parametrize("trials", [60, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["binary", "hierarchical"])
def test_the_pipeline_keeps_its_claim_and_one_that_overspends_is_caught(kind: str, trials: int) -> None:
    plain = [("x", "0")] * 3
    before, after = [*plain, ("z", "1")], plain
    sides = [_publish(rows, kind, 1) for rows in (before, after)]
    assert not empirical_epsilon(*sides, trials=trials, confidence=SURE).contradicts(1.0)
    loose = [_publish(rows, kind, 200) for rows in (before, after)]
    assert within_attempts(lambda: empirical_epsilon(*loose, trials=60, confidence=0.99).contradicts(1.0))
