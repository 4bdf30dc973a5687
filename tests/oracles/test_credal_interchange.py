"""pyAgrum's credal networks keep their rows when they come to discreet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.networks.credal import CredalNetwork
from discreet.networks.formats.interchange import from_pyagrum_credal
from discreet.values.errors import NetworkError

gum = pytest.importorskip("pyagrum")


def make(sizes: dict[str, int], arrows: list[tuple[str, str]], lower: Any, upper: Any) -> Any:
    """pyAgrum's credal network with these ends, which lie over (parents in the order of the arrows, child)."""
    ends = []
    for given in (lower, upper):
        graph = gum.BayesNet()
        for name, size in sizes.items():
            graph.add(gum.LabelizedVariable(name, name, [f"{name}{k}" for k in range(size)]))
        for arrow in arrows:
            graph.addArc(*arrow)
        for name, values in given.items():
            parents = [above for above, below in arrows if below == name]
            for codes in np.ndindex(*values.shape[:-1]):
                place = dict(zip(parents, map(int, codes), strict=True))
                graph.cpt(name)[place] = [float(value) for value in values[codes]]
        ends.append(graph)
    found = gum.CredalNet(*ends)
    found.intervalToCredal()
    return found


def test_every_row_arrives_at_its_place() -> None:
    """Parents of different sizes, three levels: the ends are those that went in."""
    rng = np.random.default_rng(1)
    sizes, arrows = {"a": 2, "b": 3, "c": 3}, [("a", "c"), ("b", "c"), ("a", "b")]
    families = {"a": ("a",), "b": ("a", "b"), "c": ("a", "b", "c")}
    points = {
        name: rng.dirichlet(5 * np.ones(sizes[name]), size=[sizes[member] for member in family[:-1]])
        for name, family in families.items()
    }
    lower = {name: 0.9 * point for name, point in points.items()}
    upper = {name: 0.9 * point + 0.1 for name, point in points.items()}
    credal = from_pyagrum_credal(make(sizes, arrows, lower, upper))
    assert credal.schema["b"].levels == ("b0", "b1", "b2")
    for name, family in families.items():
        low, high = credal.ends(name)
        assert np.allclose(low.arrange(family).values, lower[name], atol=1e-6)
        assert np.allclose(high.arrange(family).values, upper[name], atol=1e-6)


def test_the_chain_is_answered_right_after_the_exchange() -> None:
    """Upper P(a1 | b1) is .8; pyAgrum's own loopy engine says .7241."""
    lower = {"a": np.array([0.4, 0.5]), "b": np.array([[0.6, 0.3], [0.2, 0.7]])}
    upper = {"a": np.array([0.5, 0.6]), "b": np.array([[0.7, 0.4], [0.3, 0.8]])}
    theirs = make({"a": 2, "b": 2}, [("a", "b")], lower, upper)
    credal = from_pyagrum_credal(theirs)
    assert isinstance(credal, CredalNetwork)
    assert credal.query("a", {"b": "b1"}).interval("a1") == pytest.approx((7 / 11, 0.8), abs=1e-6)


def test_another_object_is_refused() -> None:
    """A Bayesian network is not a credal one."""
    with pytest.raises(NetworkError, match="not a credal network of pyAgrum"):
        from_pyagrum_credal(gum.fastBN("a->b"))


def test_pyagrum_reads_a_list_with_the_first_parent_running_fastest() -> None:
    """Counts that are listed with the last parent running fastest land in other rows: a fault behind [003, Fig. 1]."""
    network = gum.fastBN("a->c<-b")
    counts = np.arange(8.0).reshape(2, 2, 2)  # by a, b and c
    network.cpt("c").fillWith(counts.ravel().tolist())
    assert network.cpt("c").names == ("c", "a", "b")
    assert [*network.cpt("c")[{"a": 1, "b": 0}]] == [*counts[0, 1]] != [*counts[1, 0]]
