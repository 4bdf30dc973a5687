"""Credal inference against every combination of vertices: outer bounds contain the truth, inner ones are inside."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.compute.bounds.bracket import bound
from discreet.compute.bounds.exact import Branching, divide
from discreet.compute.bounds.inner import Elimination
from discreet.compute.bounds.milp import Model, bound_cells
from discreet.compute.bounds.outer import Induction, bound_below
from discreet.compute.bounds.problem import list_orders, list_vertices, pose
from discreet.networks import examples
from discreet.values.errors import ImpossibleEvidence
from discreet.values.graph import DAG
from discreet.values.table import Table

COMBINATIONS = 3000
CLOSE = 1e-8


@st.composite
def credal_networks(draw: st.DrawFn) -> tuple[DAG, list[Table], list[Table]]:
    """Two to five nodes of two to four levels; rows from counts, boxes, vacuous or precise; few vertices."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(2, 5))
    names = [f"n{i}" for i in range(count)]
    sizes = {name: draw(st.sampled_from([2, 2, 2, 3, 4])) for name in names}
    parents: dict[str, tuple[str, ...]] = {}
    for i, name in enumerate(names):
        limit = min(i, 2)
        chosen = draw(st.lists(st.sampled_from(names[:i]), max_size=limit, unique=True)) if i else []
        parents[name] = tuple(chosen)
    dag = DAG.build(parents)
    kinds = draw(st.lists(st.sampled_from(["idm", "box", "vacuous", "zeros"]), min_size=1, max_size=3))
    lower, upper, left = [], [], COMBINATIONS
    for name in dag.nodes:
        family = dag.family(name)
        shape = tuple(sizes[member] for member in family)
        low, high = np.empty(shape), np.empty(shape)
        for row in np.ndindex(*shape[:-1]):
            low[row], high[row] = make_row(rng, kinds[int(rng.integers(len(kinds)))], shape[-1])
            vertices = list_vertices(low[row], high[row])
            if len(vertices) > left:
                low[row] = high[row] = vertices[int(rng.integers(len(vertices)))]
            else:
                left //= len(vertices)
        lower.append(Table(family, low))
        upper.append(Table(family, high))
    return dag, lower, upper


def make_row(rng: np.random.Generator, kind: str, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of one row."""
    if kind == "vacuous":
        return np.zeros(levels), np.ones(levels)
    if kind == "idm":
        counts = rng.integers(0, 12, levels)
        return counts / (counts.sum() + 1), (counts + 1) / (counts.sum() + 1)
    point = rng.dirichlet(np.ones(levels))
    if kind == "zeros":
        point = np.where(rng.random(levels) < 0.4, 0.0, point)
        point = point / point.sum() if point.any() else np.eye(levels)[0]
    width = rng.random(levels) * rng.choice([0.02, 0.3])
    return np.maximum(point - width, 0.0), np.minimum(point + width * (point > 0), 1.0)


def enumerate_joints(dag: DAG, lower: list[Table], upper: list[Table]) -> np.ndarray:
    """The joint distribution of every combination of vertices, by multiplying it out."""
    rows = [
        (i, row, list_vertices(low.values[row], high.values[row]))
        for i, (low, high) in enumerate(zip(lower, upper, strict=True))
        for row in np.ndindex(*low.values.shape[:-1])
    ]
    sizes = [table.values.shape[-1] for table in lower]
    combinations = list(product(*(range(len(vertices)) for _, _, vertices in rows)))
    picks = np.array(combinations, dtype=int).reshape(len(combinations), len(rows))
    joint = np.ones((len(picks), *sizes))
    for i, name in enumerate(dag.nodes):
        table = np.empty((len(picks), *lower[i].values.shape))
        for k, (node, row, vertices) in enumerate(rows):
            if node == i:
                table[(slice(None), *row)] = vertices[picks[:, k]]
        axes = [dag.index(member) for member in dag.family(name)]
        order = np.argsort(axes)
        spread = table.transpose(0, *(1 + order))
        joint = joint * spread.reshape(
            len(picks), *(size if k in axes else 1 for k, size in enumerate(sizes))
        )
    return joint


def truth(
    joint: np.ndarray, dag: DAG, targets: list[str], functions: np.ndarray, evidence: dict[str, list[int]]
) -> tuple[np.ndarray, np.ndarray] | None:
    """The least and the greatest E[f | e] over all vertex networks that allow the evidence."""
    mask = np.ones(joint.shape[1:])
    for name, codes in evidence.items():
        axis = dag.index(name)
        keep = np.isin(np.arange(mask.shape[axis]), codes)
        mask = mask * keep.reshape([-1 if k == axis else 1 for k in range(mask.ndim)])
    posterior = joint * mask
    known = posterior.reshape(len(joint), -1).sum(axis=1)
    axes = [dag.index(name) for name in targets]
    order = np.argsort(axes)
    shape = [size if k in axes else 1 for k, size in enumerate(joint.shape[1:])]
    values = []
    for function in functions:
        spread = function.transpose(order).reshape(shape)
        values.append((posterior * spread).reshape(len(joint), -1).sum(axis=1))
    possible = known > 1e-300
    if not possible.any():
        return None
    ratio = np.array(values)[:, possible] / known[possible]
    return ratio.min(axis=1), ratio.max(axis=1)


@st.composite
def questions(
    draw: st.DrawFn, dag: DAG, sizes: dict[str, int]
) -> tuple[list[str], np.ndarray, dict[str, list[int]]]:
    """A marginal, a joint event or an expectation, given levels or sets of levels of some other nodes."""
    targets = draw(st.lists(st.sampled_from(dag.nodes), min_size=1, max_size=2, unique=True))
    shape = tuple(sizes[name] for name in targets)
    if draw(st.booleans()):
        functions = np.eye(prod(shape)).reshape(-1, *shape)
    else:
        functions = np.random.default_rng(draw(st.integers(0, 999))).normal(size=(2, *shape))
    evidence = {}
    for name in draw(st.lists(st.sampled_from(dag.nodes), max_size=3, unique=True)):
        codes = draw(st.lists(st.integers(0, sizes[name] - 1), min_size=1, max_size=sizes[name], unique=True))
        evidence[name] = codes
    return targets, functions, evidence


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_outer_contains_and_inner_is_contained(data: st.DataObject) -> None:
    """On random small networks, any levels, any rows, any evidence: outer ⊇ exact ⊇ inner, and inner ⊆ outer."""
    dag, lower, upper = data.draw(credal_networks())
    sizes = {name: table.values.shape[-1] for name, table in zip(dag.nodes, lower, strict=True)}
    targets, functions, evidence = data.draw(questions(dag, sizes))
    exact = truth(enumerate_joints(dag, lower, upper), dag, targets, functions, evidence)
    if exact is None:
        with pytest.raises(ImpossibleEvidence):
            bound(dag, lower, upper, targets, functions, evidence)
        return
    found = bound(dag, lower, upper, targets, functions, evidence)
    assert found.inner_lower is not None
    assert found.inner_upper is not None
    scale = functions.max() - functions.min()
    assert (found.lower <= exact[0] + CLOSE * scale).all()
    assert (found.upper >= exact[1] - CLOSE * scale).all()
    assert (found.inner_lower >= exact[0] - CLOSE * scale).all()
    assert (found.inner_upper <= exact[1] + CLOSE * scale).all()
    assert (found.lower <= found.inner_lower).all()
    assert (found.inner_upper <= found.upper).all()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_exact_is_exact(data: st.DataObject) -> None:
    """Given the time it needs, the search ends at what enumeration finds."""
    dag, lower, upper = data.draw(credal_networks())
    sizes = {name: table.values.shape[-1] for name, table in zip(dag.nodes, lower, strict=True)}
    targets, functions, evidence = data.draw(questions(dag, sizes))
    exact = truth(enumerate_joints(dag, lower, upper), dag, targets, functions[:2], evidence)
    if exact is None:
        return
    found = bound(
        dag, lower, upper, targets, functions[:2], evidence, method="exact", seconds=60, precision=1e-6
    )
    scale = functions.max() - functions.min()
    assert np.abs(found.lower - exact[0]).max() <= 2e-6 * scale
    assert np.abs(found.upper - exact[1]).max() <= 2e-6 * scale


def test_a_search_that_never_had_a_turn_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine time can be over before the first look: then the bounds are those from before."""
    child = examples.load("child")
    lower = [Table(found.axes, np.clip(found.values - 0.03, 0.0, 1.0)) for found in child.cpts]
    upper = [Table(found.axes, np.clip(found.values + 0.03, 0.0, 1.0)) for found in child.cpts]
    evidence = {"XrayReport": [0], "GruntingReport": [0], "CO2Report": [0]}
    question = (child.dag, lower, upper, ["Disease"], np.eye(6)[1:2], evidence)
    before = bound(*question)
    monkeypatch.setattr(Branching, "run", lambda search, seconds: None)
    starved = bound(*question, method="exact", seconds=0.01)
    assert (starved.lower <= before.lower + CLOSE).all()
    assert (starved.upper >= before.upper - CLOSE).all()
    assert (starved.lower < starved.inner_lower).all()


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_the_program_knows_how_likely_a_cell_can_be(data: st.DataObject) -> None:
    """P(targets, evidence) of any network lies in its bounds, and these within the products of interval ends."""
    dag, lower, upper = data.draw(credal_networks())
    sizes = {name: table.values.shape[-1] for name, table in zip(dag.nodes, lower, strict=True)}
    targets, functions, evidence = data.draw(questions(dag, sizes))
    problem = pose(dag, lower, upper, targets, functions, evidence)
    if problem.settled:
        return
    low, high = bound_cells(problem, range(len(problem.locals)), problem.targets) or (None, None)
    assert low is not None and high is not None
    elimination = Elimination(problem)
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    drawn = [local.sets.choose(rng.random((20, *local.sets.lower.shape[1:]))) for local in problem.locals]
    joint = elimination.run([elimination.factor(i, found) for i, found in enumerate(drawn)])[0]
    assert (low - CLOSE <= joint).all() and (joint <= high + CLOSE).all()
    model = Model(problem)
    assert model.least <= joint.reshape(20, -1).sum(axis=1).min() + CLOSE
    assert (model.units <= high + CLOSE).all()


def test_a_bound_is_divided_by_the_least_probability_of_the_evidence() -> None:
    """Of two networks with P(e) = 0.1 and 0.9 and E[1_e·(f − ½)] = −0.04 and −0.05, the first has E[f | e] = 0.1."""
    assert divide(0.5, -0.05, 0.1) <= 0.1 < divide(0.5, -0.05, 0.9)
    assert divide(0.5, -0.05, 0.0) == -np.inf


def chain() -> tuple[DAG, list[Table], list[Table]]:
    """a → b with P(a1) ∈ [.5, .6], P(b1|a0) ∈ [.3, .4], P(b1|a1) ∈ [.7, .8]."""
    dag = DAG.build({"a": (), "b": ("a",)})
    lower = [Table(("a",), np.array([0.4, 0.5])), Table(("a", "b"), np.array([[0.6, 0.3], [0.2, 0.7]]))]
    upper = [Table(("a",), np.array([0.5, 0.6])), Table(("a", "b"), np.array([[0.7, 0.4], [0.3, 0.8]]))]
    return dag, lower, upper


def test_the_chain_that_loopy_propagation_gets_wrong() -> None:
    """Upper P(a1 | b1) is .6·.8/(.6·.8 + .4·.3) = .8, lower .5·.7/(.5·.7 + .5·.4) = 7/11; not .7241."""
    found = bound(*chain(), ["a"], np.array([[0.0, 1.0]]), {"b": [1]})
    assert found.upper[0] == pytest.approx(0.8, abs=1e-8)
    assert found.lower[0] == pytest.approx(7 / 11, abs=1e-8)
    assert found.met().all()


def test_evidence_that_leaves_several_levels_open() -> None:
    """All levels are no evidence; a set of levels is the event that one of them occurs."""
    dag, lower, upper = chain()
    functions = np.array([[0.0, 1.0]])
    nothing = bound(dag, lower, upper, ["b"], functions, {})
    everything = bound(dag, lower, upper, ["b"], functions, {"a": [0, 1]})
    assert nothing.lower == pytest.approx(everything.lower)
    assert nothing.upper == pytest.approx(everything.upper)
    assert nothing.upper[0] == pytest.approx(0.6 * 0.8 + 0.4 * 0.4, abs=1e-8)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_bounds_hold_in_any_order_with_hardly_any_room(data: st.DataObject) -> None:
    """Products that do not fit are replaced by their worst values; what is left still contains the truth."""
    dag, lower, upper = data.draw(credal_networks())
    sizes = {name: table.values.shape[-1] for name, table in zip(dag.nodes, lower, strict=True)}
    targets, functions, evidence = data.draw(questions(dag, sizes))
    exact = truth(enumerate_joints(dag, lower, upper), dag, targets, functions, evidence)
    problem = pose(dag, lower, upper, targets, functions, evidence)
    if exact is None or problem.settled:
        return
    both = np.concatenate([problem.functions, -problem.functions])
    start = both.reshape(len(both), -1).max(axis=1)
    room = max(local.sets.lower.size for local in problem.locals)
    scale = functions.max() - functions.min()
    for order in list_orders(problem, 6):
        for limit in (room, 2 * room):
            values, _ = bound_below(problem, both, start, [Induction(problem, order, limit)])
            assert (values <= np.concatenate([exact[0], -exact[1]]) + CLOSE * scale).all()


def test_a_dense_graph_gets_coarser_bounds_that_still_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any room the bounds are wider, and contain those that had room."""
    rng = np.random.default_rng(3)
    names = [f"x{i}" for i in range(12)]
    dag = DAG.build({name: tuple(names[i - k] for k in (1, 3, 6) if i >= k) for i, name in enumerate(names)})
    lower, upper = [], []
    for name in names:
        shape = (2,) * len(dag.family(name))
        point = rng.dirichlet(np.ones(2), size=shape[:-1]).reshape(shape)
        lower.append(Table(dag.family(name), 0.95 * point))
        upper.append(Table(dag.family(name), 0.95 * point + 0.05))
    functions = np.array([[1.0, 0.0]])
    roomy = bound(dag, lower, upper, ["x11"], functions, {"x2": [0]})
    monkeypatch.setattr("discreet.compute.bounds.outer.CELLS", 2)
    monkeypatch.setattr("discreet.compute.bounds.outer.LEAST", 2**4)
    tight = bound(dag, lower, upper, ["x11"], functions, {"x2": [0]}, method="outer")
    assert tight.coarse
    assert tight.lower[0] <= roomy.lower[0] + CLOSE
    assert tight.upper[0] >= roomy.upper[0] - CLOSE
