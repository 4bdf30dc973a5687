"""The learners by name: `discreet.learning.planned(airlock, dag, spend="1")`; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.values.errors import MechanismError
from discreet.values.graph import DAG

if TYPE_CHECKING:
    from discreet.learning.adaptive import adaptive
    from discreet.learning.plan import plan
    from discreet.learning.planned import planned
    from discreet.learning.privbayes import privbayes
    from discreet.networks.network import Network
    from discreet.papers.dependent import dependent
    from discreet.papers.independent import independent

__all__ = ["adaptive", "dependent", "independent", "plan", "planned", "privbayes"]

_HOMES = {
    "planned": "discreet.learning.planned",
    "independent": "discreet.papers.independent",
    "dependent": "discreet.papers.dependent",
    "adaptive": "discreet.learning.adaptive",
    "privbayes": "discreet.learning.privbayes",
    "plan": "discreet.learning.plan",
}
WITH_GRAPH = ("planned", "independent", "dependent")
"""Learners of the tables of a public graph, best first."""
WITHOUT_GRAPH = ("adaptive", "privbayes")
"""Learners that find the graph, too, best first."""


def choose_learner(name: str | None, dag: DAG | None) -> str:
    """The learner of this name, or the best there is for what is given; refused if it needs or finds a graph."""
    fitting = WITHOUT_GRAPH if dag is None else WITH_GRAPH
    if name is None:
        return fitting[0]
    if name not in WITH_GRAPH + WITHOUT_GRAPH:
        raise MechanismError(f"a learner is {', '.join(WITH_GRAPH + WITHOUT_GRAPH)}, not {name!r}")
    if name not in fitting:
        needs = "needs a graph" if dag is None else "finds the graph itself"
        raise MechanismError(f"the learner {name} {needs}; without one there is adaptive, with one planned")
    return name


def find_learner(name: str) -> Callable[..., Network]:
    """The function of a learner; its module has the same name."""
    found: Callable[..., Network] = getattr(import_module(_HOMES[name]), name)
    return found


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"no learner {name!r}; there are {', '.join(__all__)}")
        return getattr(import_module(_HOMES[name]), name)
