"""The private search: what it may look at, what it spends, and what people may know beforehand."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.compute.cliques import entropy
from discreet.compute.cliques.entropy import fit_margins
from discreet.compute.cliques.model import CliqueModel, ModelTree
from discreet.compute.inference import Engine
from discreet.compute.triangulation import cliques_of, interaction_graph
from discreet.core.airlock import Airlock
from discreet.entrance import open_airlock
from discreet.learning.adaptive import adaptive
from discreet.learning.greedy import greedy
from discreet.learning.parent_sets import (
    Bounds,
    Knowledge,
    choose_degree,
    choose_room,
    fixed_sets,
    limit_degree,
    list_candidates,
    maximal_sets,
)
from discreet.learning.privbayes import privbayes
from discreet.learning.searching import attribute_sets
from discreet.learning.searching.attribute_sets import CANDIDATE_CELLS, expect_noise, list_pairs
from discreet.learning.searching.prices import Prices
from discreet.networks import examples
from discreet.networks.network import Network
from discreet.values.budget import ZCDP, PureDP
from discreet.values.errors import (
    BudgetError,
    DiscreetError,
    GraphError,
    MechanismError,
    TableError,
    TooLarge,
)
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Table, count_cells

NAMES = ("a", "b", "c", "d", "e")


def _open(network: Network, rows: int, budget: PureDP | ZCDP, unit: str = "add-remove") -> Airlock:
    return open_airlock(network.sample(rows, rng=5).arrow(), network.schema, budget=budget, unit=unit)


@pytest.fixture(scope="module")
def asia() -> Network:
    return examples.asia()


@given(
    sizes=st.lists(st.integers(2, 6), min_size=0, max_size=6),
    room=st.integers(0, 80),
    degree=st.integers(0, 6),
)
@settings(deadline=None, max_examples=150)
def test_maximal_sets_are_exactly_those_to_which_nothing_can_be_added(
    sizes: list[int], room: int, degree: int
) -> None:
    by_name = {f"x{i}": size for i, size in enumerate(sizes)}
    pool = list(by_name)

    def fits(members: tuple[str, ...]) -> bool:
        return len(members) <= degree and count_cells(by_name[name] for name in members) <= room

    expected = {
        members
        for k in range(len(pool) + 1)
        for members in itertools.combinations(pool, k)
        if fits(members) and not any(fits((*members, other)) for other in pool if other not in members)
    }
    found = list(maximal_sets(pool, (), by_name, room, degree))
    assert len(found) == len(set(found))
    assert set(found) == (expected or {()})


def test_fixed_sets_hold_what_is_needed() -> None:
    assert list(fixed_sets(["a", "b", "c"], (), 2)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert list(fixed_sets(["a", "b", "c"], ("c",), 2)) == [("a", "c"), ("b", "c")]
    assert list(fixed_sets(["a"], (), 3)) == [("a",)]


def test_degree_is_that_of_lemma_3() -> None:
    """nε/((d−k)·2^(k+3)) ≥ θ with ε halved between graph and tables; none is 0."""
    rows, epsilon, attributes, theta = 21_574, 1.0, 16, 4
    noise = {k: 2 * (attributes - k) / (epsilon / 2) for k in range(1, attributes)}
    printed = [k for k in range(1, attributes) if rows * epsilon / ((attributes - k) * 2 ** (k + 3)) >= theta]
    assert choose_degree(rows, noise, theta) == max(printed)
    assert choose_degree(10, noise, theta) == 0
    assert choose_room(45_222, 2 * 15 / 0.5, 4) == math.floor(45_222 * 0.5 / (2 * 15 * 4))


def test_too_many_candidates_are_refused_before_counting() -> None:
    many = tuple(f"x{i}" for i in range(60))
    assert limit_degree(60, 8) == 3
    with pytest.raises(TooLarge, match="set a smaller k"):
        list_candidates(many[:40], Knowledge(many), dict.fromkeys(many, 2), Bounds(6, None), most=1000)
    schema = Schema.of({name: ["0", "1"] for name in many})
    rows = {name: ["0", "1"] for name in many}
    airlock = open_airlock(rows, schema, budget=PureDP(1))
    with pytest.raises(TooLarge, match="k can be at most 3"):
        greedy(airlock, spend=1, k=5)
    assert airlock.remaining == PureDP(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "G"}, "R, I or F"),
        ({"score": "I"}, "add-remove"),
        ({"k": -1}, "from 0 to 63"),
        ({"theta": 0}, "θ"),
        ({"required": [("smoke", "nobody")]}, "'nobody'"),
        ({"required": [("smoke", "lung")], "forbidden": [("smoke", "lung")]}, "both required and forbidden"),
        ({"required": [("smoke", "lung"), ("lung", "smoke")]}, "cycle"),
        ({"order": ["smoke"]}, "every attribute of the schema once"),
        ({"start": DAG.build({"nobody": ()})}, "'nobody'"),
        ({"beta": 1}, "β"),
        ({"estimation": "wild"}, "'wild'"),
    ],
)
def test_a_bad_question_is_refused_and_costs_nothing(asia: Network, options: dict, message: str) -> None:
    airlock = _open(asia, 50, PureDP(1))
    with pytest.raises((MechanismError, GraphError, BudgetError), match=message):
        privbayes(airlock, spend=1, **options)
    assert airlock.remaining == PureDP(1)


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ([3000] * 4, {"k": 2}, "27,000,000,000 cells"),
        ([300] * 6, {"k": 3}, "8,100,000,000 cells"),
        ([2] * 40, {"k": 39}, "1,099,511,627,776 cells"),
        ([50] * 8, {"required": [(f"a{i}", "a7") for i in range(7)]}, "39,062,500,000,000 cells"),
        ([2] * 3, {"selection": "best"}, "'best'"),
        ([2] * 3, {"required": ["a0a1"]}, "'a0a1'"),
        ([2] * 3, {"start": {"a0": []}}, "a DAG, not a dict"),
        ([2] * 3, {"rows": -1}, "-1"),
        ([2] * 3, {"rows": "many"}, "'many'"),
    ],
)
def test_what_cannot_be_counted_or_meant_is_refused_before_it_costs(
    sizes: list[int], options: dict, message: str
) -> None:
    schema = Schema.of({f"a{i}": range(size) for i, size in enumerate(sizes)})
    airlock = open_airlock({name: [0, 1] for name in schema.names}, schema, budget=PureDP(1))
    with pytest.raises(DiscreetError, match=message):
        privbayes(airlock, spend=1, **options)
    assert airlock.remaining == PureDP(1)


@pytest.mark.parametrize(
    "options", [{"width": "x"}, {"width": 2.5}, {"width": 1}, {"rates": "x"}, {"sets": [("a",)]}]
)
def test_a_bad_option_of_the_adaptive_search_costs_nothing(asia: Network, options: dict) -> None:
    airlock = _open(asia, 100, PureDP(1))
    with pytest.raises(DiscreetError):
        adaptive(airlock, spend=1, **options)
    assert airlock.remaining == PureDP(1)


def test_a_known_number_of_rows_is_not_paid_for(asia: Network) -> None:
    network = privbayes(_open(asia, 500, PureDP(1)), spend=1, rows=500)
    assert () not in {found.axes for found in network.provenance.measurements}


def test_f_is_refused_on_wider_attributes() -> None:
    schema = Schema.of({"a": list("xyz"), "b": list("01")})
    airlock = open_airlock({"a": ["x", "y"], "b": ["0", "1"]}, schema, budget=PureDP(1))
    with pytest.raises(MechanismError, match="'a' has 3"):
        greedy(airlock, spend=1, score="F", k=1)


@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [PureDP("7/3"), ZCDP("1/9")])
@pytest.mark.parametrize("k", [None, 0, 1, 3])
def test_the_budget_is_spent_exactly(asia: Network, unit: str, budget: PureDP | ZCDP, k: int | None) -> None:
    airlock = _open(asia, 400, budget, unit)
    network = privbayes(airlock, spend=budget, k=k, rng=3)
    assert airlock.remaining.is_zero
    assert network.provenance is not None
    if k is not None:
        assert max(map(len, network.dag.parents)) == min(k, 7)
    if k == 0:
        assert network.dag.edges() == ()
        costs = [found.cost for found in network.provenance.measurements]
        assert costs == [budget / 8] * 8  # all of it, not the half that is left after a search


@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [PureDP("5/7"), ZCDP("1/9")])
@pytest.mark.parametrize("rows", [1, 50, 400, 5000])  # no dependence is looked for, greedy search, adaptive
def test_the_adaptive_search_spends_exactly_its_budget(
    asia: Network, unit: str, budget: PureDP | ZCDP, rows: int
) -> None:
    airlock = _open(asia, rows, budget, unit)
    network = adaptive(airlock, spend=budget)
    assert airlock.remaining.is_zero
    assert network.nodes == asia.nodes


def test_where_noise_drowns_the_rows_attributes_are_left_independent() -> None:
    child = examples.child()
    for unit, public in (("add-remove", 0), ("replace-one", 1)):
        airlock = _open(child, 1000, PureDP("1/10"), unit)
        network = adaptive(airlock, spend="1/10")
        assert network.dag.edges() == ()
        assert airlock.remaining.is_zero
        assert (
            len(network.provenance.measurements) == len(child.nodes) + 1 - public
        )  # each once, and the rows
    assert adaptive(_open(examples.asia(), 20_000, PureDP(1)), spend=1).dag.edges()


def test_the_noise_in_margins_is_that_of_all_tables_together() -> None:
    airlock = open_airlock(
        {"a": [0, 1], "b": [0, 2]}, Schema.of({"a": [0, 1], "b": [0, 1, 2]}), budget=PureDP(9)
    )
    measured = [*airlock.measure([("a",)], spend=1), *airlock.measure([("a", "b")], spend=2)]
    single, pair = (found.law.variance for found in measured)
    noisy, variances = [found.noisy for found in measured], [found.law.variance for found in measured]
    expected = expect_noise(noisy, variances, {"a": 2, "b": 3})
    assert expected["a"] == pytest.approx(0.75 * 2 / math.sqrt(1 / single + 1 / (3 * pair)))
    assert expected["b"] == pytest.approx(0.75 * 3 * math.sqrt(2 * pair))


def test_a_budget_without_any_noise_is_no_fault(asia: Network) -> None:
    network = adaptive(_open(asia, 1000, PureDP(10**6)), spend=10**6)
    assert network.dag.edges()


def test_the_default_of_theta_allows_more_parents_only_where_tables_agree(asia: Network) -> None:
    def find(**options: object) -> float:
        airlock = _open(asia, 2000, PureDP(1))
        return privbayes(airlock, spend=1, rng=0, **options).provenance.details["structure"]["theta"]  # type: ignore[arg-type]

    assert (find(), find(estimation="printed"), find(theta=5)) == (3, 4, 5)
    airlock = _open(examples.child(), 2000, PureDP(1))
    assert privbayes(airlock, spend=1, rng=0).provenance.details["structure"]["theta"] == 4


def test_as_printed_only_the_tables_from_k_plus_1_on_are_measured(asia: Network) -> None:
    """d − k tables with Lap(2(d−k)/ε₂) on counts; the first k + 1 conditionals come out of one [004, Alg. 1]."""
    airlock = _open(asia, 400, PureDP(1), "replace-one")
    network = privbayes(
        airlock, spend=1, beta="1/2", k=2, score="F", selection="exponential", estimation="printed", rng=0
    )
    tables = network.provenance.measurements
    assert len(tables) == 8 - 2
    assert all(float(table.law.scale) == pytest.approx(2 * (8 - 2) / 0.5, rel=1e-12) for table in tables)
    order = network.provenance.details["structure"]["order"]
    assert [len(network.dag.parents_of(name)) for name in order] == [0, 1, 2, 2, 2, 2, 2, 2]
    third = network.dag.family(order[2])
    assert all(set(network.dag.family(name)) <= set(third) for name in order[:3])


@pytest.mark.parametrize("learn", [privbayes, adaptive])
@pytest.mark.parametrize("attributes", [1, 2])
def test_one_and_two_attributes(learn, attributes: int) -> None:
    schema = Schema.of({"a": ["x", "y", "z"], "b": ["0", "1"]}).select(["a", "b"][:attributes])
    rows = {"a": ["x", "y"] * 200, "b": ["0", "1"] * 200}
    airlock = open_airlock({name: rows[name] for name in schema.names}, schema, budget=PureDP(50))
    network = learn(airlock, spend=50)
    assert airlock.remaining.is_zero
    assert network.query("a").table.values == pytest.approx([0.5, 0.5, 0.0], abs=0.05)
    if attributes == 2:
        assert network.probability({"a": "x"}, {"b": "0"}) == pytest.approx(1.0, abs=0.1)


def test_knowledge_is_kept(asia: Network) -> None:
    airlock = _open(asia, 400, PureDP(10))
    order = ["xray", *(name for name in asia.nodes if name != "xray")]
    found = greedy(
        airlock, spend=1, k=2, order=order, required=[("xray", "lung")], forbidden=[("asia", "tub")]
    )
    assert found.order == tuple(order)
    assert "xray" in found.dag.parents_of("lung")
    assert "asia" not in found.dag.parents_of("tub")
    assert all(order.index(parent) < order.index(child) for parent, child in found.dag.edges())
    start = DAG.build({"smoke": (), "lung": ("smoke",)})
    grown = greedy(airlock, spend=1, k=1, start=start)
    assert grown.dag.parents_of("lung") == ("smoke",) and grown.order[:2] == ("smoke", "lung")
    assert greedy(airlock, spend=1, k=1, start=asia.dag).dag == asia.dag


def test_a_whole_given_graph_costs_nothing(asia: Network) -> None:
    found = greedy(_open(asia, 50, PureDP(1)), spend=1, start=asia.dag)
    assert found.cost.is_zero and found.dag == asia.dag


def test_a_repeated_request_pays_once_and_finds_the_same(asia: Network) -> None:
    for learn in (privbayes, adaptive):
        airlock = _open(asia, 300, PureDP(2))
        first = learn(airlock, spend=1, request="r")
        again = learn(airlock, spend=1, request="r")
        assert airlock.remaining == PureDP(1)
        assert first.close_to(again)


def test_with_much_budget_the_search_finds_a_chain() -> None:
    """X1 → X2 → X3 → X4, each a noisy copy: neighbours in the chain are neighbours in the graph."""
    rng = np.random.default_rng(2)
    columns = {"a": rng.integers(0, 2, 4000)}
    for left, right in itertools.pairwise("abcd"):
        columns[right] = np.where(rng.random(4000) < 0.9, columns[left], 1 - columns[left])
    schema = Schema.of({name: [0, 1] for name in "abcd"})
    for score in ("R", "F", "I"):
        airlock = open_airlock(columns, schema, budget=PureDP(1000), unit="replace-one")
        found = greedy(airlock, spend=500, k=1, score=score, rng=1)
        assert {frozenset(edge) for edge in found.dag.edges()} == {frozenset(p) for p in ("ab", "bc", "cd")}
    airlock = open_airlock(columns, schema, budget=PureDP(1000))
    network = adaptive(airlock, spend=1000)
    for pair in itertools.combinations("abcd", 2):
        exact = np.histogram2d(*(columns[name] for name in pair), bins=2)[0] / 4000
        assert network.query(list(pair)).table.values == pytest.approx(exact, abs=0.01)


def test_a_model_that_would_not_fit_is_limited_before_it_is_made() -> None:
    schema = Schema.of({f"x{i}": list(range(40)) for i in range(6)})
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(0, 40, 300) for name in schema.names}
    airlock = open_airlock(rows, schema, budget=PureDP(1000))
    with pytest.raises(TooLarge, match="64,120"):
        adaptive(airlock, spend=100, sets=[("x0", "x1", "x2")], model_cells=50_000)
    assert airlock.remaining == PureDP(1000)
    network = adaptive(airlock, spend=100, model_cells=10_000)
    assert network.provenance.details["model cells"] <= 10_000
    assert airlock.remaining == PureDP(900)


@given(seed=st.integers(0, 10_000), edges=st.integers(0, 8))
@settings(deadline=None, max_examples=40)
def test_the_fit_has_the_margins_and_the_network_is_the_model(seed: int, edges: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = dict(zip(NAMES, rng.integers(2, 4, len(NAMES)).tolist(), strict=True))
    joint = Table(NAMES, rng.dirichlet(np.ones(count_cells(sizes.values()))).reshape(list(sizes.values())))
    pairs = list(itertools.combinations(NAMES, 2))
    sets = [(name,) for name in NAMES] + [pairs[i] for i in rng.permutation(len(pairs))[:edges]]
    model = fit_margins(sizes, [joint.project(found) for found in sets], sweeps=400, tolerance=1e-10)
    dag, cpts = model.network()
    engine = Engine(dag, cpts)
    for found in sets:
        assert engine.joint(found, {}).close_to(joint.project(found), 1e-6)
    for table in model.pairs():
        assert engine.joint(table.axes, {}).close_to(table, 1e-9)
    assert len(list(model.pairs())) == len(pairs)
    wide = [tuple(rng.permutation(NAMES)[:size].tolist()) for size in (1, 2, 3, 3, 4, 5)]
    margins = list(model.margins(wide))
    assert [table.axes for table in margins] == wide
    for table in margins:
        assert engine.joint(table.axes, {}).close_to(table, 1e-9)


def test_wide_sets_are_candidates_across_cliques_where_levels_are_few() -> None:
    """Of attributes that nothing links yet, all triples that are allowed; of many attributes, those inside cliques."""
    ones = {name: np.array([0.3, 0.7]) for name in NAMES}
    model = fit_margins(dict.fromkeys(NAMES, 2), [Table((name,), ones[name]) for name in NAMES])
    found = attribute_sets.list_candidates(
        model, [NAMES[:3]], 3, frozenset(), lambda _, cells: cells <= 8, model_sizes(model)
    )
    assert set(found) == {*itertools.combinations(NAMES, 3)} - {NAMES[:3]}
    assert found[NAMES[1:4]] == pytest.approx(np.einsum("a,b,c->abc", *[ones["a"]] * 3))
    many = {f"x{i}": 2 for i in range(80)}
    even = np.full((2, 2, 2), 1 / 8)
    wide = Table(("x0", "x1", "x2"), even)
    model = fit_margins(many, [wide, *(Table((name,), np.array([0.5, 0.5])) for name in list(many)[3:])])
    assert list(attribute_sets.list_candidates(model, [], 3, frozenset(), lambda *_: True, many)) == [
        ("x0", "x1", "x2")
    ]
    (table,) = model.margins([("x79", "x1", "x60")])
    assert table.values == pytest.approx(even), "einsum alone knows no more than 52 axes"


def model_sizes(model: CliqueModel) -> dict[str, int]:
    """The levels of each attribute of a model."""
    return dict(zip(model.tree.names, model.tree.sizes, strict=True))


@pytest.mark.parametrize("seed", [4775, 5807, 2457])
def test_a_fit_does_not_take_a_plateau_for_a_contradiction(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs of a joint that is nearly a few points, which agree: a walk may bring nothing, and later ones much."""
    rng = np.random.default_rng(seed)
    names = tuple(NAMES[: rng.integers(3, 6)])
    shape = [int(rng.integers(2, 5))] * len(names)
    if seed % 3 == 0:
        values = rng.random(shape) ** rng.integers(2, 20)
    elif seed % 3 == 1:
        values = np.full(shape, 10.0 ** -rng.integers(3, 8))
        for _ in range(int(rng.integers(2, 6))):
            values[tuple(rng.integers(0, shape[0], len(shape)))] += rng.random()
    else:
        values = rng.random(shape) * (rng.random(shape) < 0.15) + 1e-7
    joint = Table(names, values / values.sum())
    margins = [joint.project(pair) for pair in itertools.combinations(names, 2)]

    def fit() -> float:
        model = fit_margins(joint.sizes, margins)
        holders = [next(b for b in model.beliefs if {*found.axes} <= {*b.axes}) for found in margins]
        return max(
            np.abs(holder.project(found.axes).values - found.values).sum()
            for holder, found in zip(holders, margins, strict=True)
        )

    error = fit()
    monkeypatch.setattr(entropy, "STALL", math.inf)
    assert error <= 2 * fit()


@given(seed=st.integers(0, 10_000), edges=st.integers(0, 9))
@settings(deadline=None, max_examples=40)
def test_the_bound_on_pairs_is_that_of_a_junction_tree(seed: int, edges: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = {f"x{i}": int(rng.integers(2, 7)) for i in range(7)}
    every = list(itertools.combinations(sizes, 2))
    tree = ModelTree.plan(sizes, [every[i] for i in rng.permutation(len(every))[:edges]])
    bounds = tree.bound_pairs()
    assert bounds.keys() == set(every)
    for pair in every:
        grown = [found for ends in (pair, pair[::-1]) for found in _join_ends(tree, *ends)]
        if grown:
            best = min(grown, key=lambda cliques: sum(count_cells(sizes[n] for n in c) for c in cliques))
            assert bounds[pair] == sum(count_cells(sizes[name] for name in clique) for clique in best)
        else:  # nothing links them
            best = [*tree.cliques, pair]
            assert bounds[pair] == tree.cells + sizes[pair[0]] * sizes[pair[1]]
        assert ModelTree.plan(sizes, best).cells <= bounds[pair]


def _join_ends(tree: ModelTree, one: str, other: str) -> list[list[tuple[str, ...]]]:
    """The cliques with `one` added on the way from one that has it to one that has the other, for all such ways."""
    cliques, parent = tree.cliques, tree.joined.parent
    found = []
    for i, j in itertools.product(range(len(cliques)), repeat=2):
        if one in cliques[i] and other in cliques[j]:
            path = _find_path(parent, i, j)
            steps = [max(step) for step in itertools.pairwise(path)]
            if all(tree.separator(step) for step in steps):
                found.append(
                    [
                        (one, *clique) if k in path and one not in clique else clique
                        for k, clique in enumerate(cliques)
                    ]
                )
    return found


def _find_path(parent: tuple[int, ...], i: int, j: int) -> list[int]:
    up, down = [i], [j]
    while up[-1] != down[-1]:
        longer = up if up[-1] > down[-1] else down  # a parent comes before its children
        longer.append(parent[longer[-1]])
    return up + down[-2::-1]


def test_wide_attributes_are_looked_at_within_a_bound_on_memory() -> None:
    """All pairs of 40 × 300 levels would have 70 million cells."""
    sizes = {f"x{i}": 300 if i else 5 for i in range(40)}
    pairs = list_pairs(sizes, 1e9)
    assert sum(sizes[one] * sizes[other] for one, other in pairs) <= CANDIDATE_CELLS
    assert {pair for pair in itertools.combinations(sizes, 2) if "x0" in pair} <= pairs
    assert not list_pairs(sizes, 1000)
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, size, 200) for name, size in sizes.items()}
    schema = Schema.of({name: range(size) for name, size in sizes.items()})
    tracemalloc.start()
    adaptive(open_airlock(columns, schema, budget=PureDP(1000)), spend=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**30


def test_independent_margins_stay_independent() -> None:
    """The largest entropy adds no dependence of its own."""
    ones = {name: np.array([0.3, 0.7]) for name in NAMES}
    model = fit_margins(dict.fromkeys(NAMES, 2), [Table((name,), ones[name]) for name in NAMES])
    for table in model.pairs():
        assert table.values == pytest.approx(np.outer([0.3, 0.7], [0.3, 0.7]))


def test_a_fit_refuses_what_it_cannot_use() -> None:
    with pytest.raises(TableError, match="'b'"):
        fit_margins({"a": 2, "b": 2}, [Table(("a",), np.ones(2))])
    with pytest.raises(TooLarge, match="allowed are 10"):
        fit_margins({"a": 4, "b": 4}, [Table(("a", "b"), np.ones((4, 4)))], max_cells=10)
    with pytest.raises(TableError, match="non-negative"):
        fit_margins({"a": 2}, [Table(("a",), np.array([-1.0, 2.0]))])


@given(
    seed=st.integers(0, 1000),
    edges=st.integers(0, 9),
)
@settings(deadline=None, max_examples=60)
def test_the_bound_on_cells_is_never_below_the_same_elimination(seed: int, edges: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = {f"x{i}": int(rng.integers(2, 9)) for i in range(7)}
    pairs = list(itertools.combinations(sizes, 2))
    order = rng.permutation(len(pairs))
    sets = [pairs[i] for i in order[:edges]]
    tree, new = ModelTree.plan(sizes, sets), pairs[order[edges]]
    place = {name: i for i, name in enumerate(sizes)}
    graph = interaction_graph([[place[name] for name in found] for found in [*sets, new]], len(sizes))
    cliques = cliques_of(graph, tree.order)
    exact = sum(count_cells(tree.sizes[v] for v in clique) for clique in cliques)
    every = sum(
        count_cells(tree.sizes[v] for v in {*around, u}) for u, around in _eliminate(graph, tree.order)
    )
    assert exact <= tree.bound_cells(new) <= every


def _eliminate(graph: list[set[int]], order: tuple[int, ...]) -> list[tuple[int, set[int]]]:
    left, found = [set(around) for around in graph], []
    for v in order:
        found.append((v, set(left[v])))
        for u in left[v]:
            left[u] = (left[u] | left[v]) - {u, v}
    return found


@given(cells=st.floats(2, 1e5), noise=st.floats(1, 1e5), gaussian=st.booleans())
@settings(deadline=None)
def test_prices_buy_the_noise_that_they_say(cells: float, noise: float, gaussian: bool) -> None:
    prices = Prices(gaussian, 2, 4, 0.5, unit=0.3)
    assert prices.noise(cells, prices.afford(cells, noise)) == pytest.approx(noise)
    assert prices.reach(prices.table(cells)) == pytest.approx(cells)


def test_shares_of_the_exact_budget_are_fractions(asia: Network) -> None:
    """No part of a float: the ledger's entries sum to the whole as fractions."""
    airlock = _open(asia, 200, PureDP(1))
    adaptive(airlock, spend="1/3")
    assert airlock.remaining.epsilon == Fraction(2, 3)


def test_a_target_and_a_workload_are_measured_without_a_choice() -> None:
    """What the rows are for comes first; unknown names and senseless efforts are refused before anything is spent."""
    rng = np.random.default_rng(3)
    schema = Schema.of({name: ["0", "1"] for name in "abcde"})
    rows = {name: rng.integers(0, 2, 3000).astype(str) for name in "abcde"}
    airlock = open_airlock(rows, schema, budget=PureDP(30))
    for wrong in ({"target": "z"}, {"effort": 0}, {"effort": True}, {"sets": [("a", "z")]}):
        with pytest.raises((GraphError, MechanismError)):
            adaptive(airlock, spend=1, **wrong)
    assert airlock.remaining == PureDP(30)
    network = adaptive(airlock, spend=10, target="c", sets=[("a", "b", "d")], effort=2)
    first = {frozenset(found) for found in network.provenance.details["batches"][0]}
    assert first == {*(frozenset(("c", name)) for name in "abde"), frozenset("abd")}
    assert airlock.remaining == PureDP(20)
