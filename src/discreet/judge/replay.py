"""A learner run again without rows: it gets the published answers where the airlock would draw new ones.

If the published network is what the learner makes of the published answers, the second run asks the same questions,
for the same amounts and with the same noise, and ends at the same numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from discreet.core.mechanism import AdditiveNoise
from discreet.learn.learner import UNWRITTEN
from discreet.learn.rehearsal import Rehearsal
from discreet.learners import WITH_GRAPH, WITHOUT_GRAPH, find_learner
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.budget import Finite, Infinite, Unit, budget_from_json
from discreet.values.errors import AirlockError, BudgetError, DiscreetError
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.wording import show

REPLAYED = WITH_GRAPH + WITHOUT_GRAPH
"""Learners whose choices can be read off what they publish."""


class Mismatch(DiscreetError):
    """A question of the second run that the release does not answer as it says."""


class Replay(Rehearsal):
    """What a learner sees of an airlock, answered from a release; it counts nothing and draws nothing."""

    def __init__(self, network: Network, provenance: Provenance) -> None:
        stated = provenance.statement.get("rows")
        rows = stated if type(stated) is int else 0
        super().__init__(network.declared, provenance.unit, read_finite(json.loads(provenance.cost)), rows)
        self._network, self._provenance = network, provenance
        self._left = list(provenance.measurements)
        structure = provenance.details.get("structure")
        self._order = list(structure.get("order", ())) if isinstance(structure, Mapping) else []
        self._choices = _list(provenance.details.get("choices"))
        self._spends = _list(provenance.statement.get("spends"))
        self._listed = bool(self._spends)
        self._purpose: str | None = None

    @property
    def rows(self) -> int:
        """The public number of rows, which a release under replace-one states."""
        if self.unit is not Unit.REPLACE_ONE or self._rows < 1:
            raise AirlockError("the release does not state the number of rows")
        return self._rows

    @contextmanager
    def mark(self, purpose: str) -> Iterator[None]:
        """Refuse a learner, options or a graph that are not those that were paid for."""
        if self._purpose is None:  # within another learner, the outer one's stands
            self._purpose = purpose
            if self._listed and self._provenance.statement.get("purpose") != purpose:
                raise Mismatch("the learner, its options or its graph are not those that were paid for")
        yield

    def toss(self, names: Sequence[str], *, request: str | None = None) -> str:
        """The attribute with which the published order begins."""
        if not self._order or self._order[0] not in names:
            raise Mismatch("the release does not say with which attribute the search began")
        return str(self._order[0])

    def measure(
        self, sets: Sequence[Sequence[str]], *, spend: Any, request: str | None = None, **options: Any
    ) -> list[Measurement]:
        """The next published tables, if the next spend of the release is for so many of them."""
        found = super().measure(sets, spend=spend, request=request, **options)
        paid = self._settle("measure", self.read_spend(spend), request)
        if paid is not None and paid["tables"] != len(found):
            raise Mismatch(f"{show(paid['request'])} is for {show(paid['tables'])} tables, not {len(found)}")
        return found

    def answer(
        self,
        sets: Sequence[tuple[str, ...]],
        mechanisms: Sequence[AdditiveNoise],
        costs: Sequence[Finite],
        rate: Fraction,
    ) -> list[Measurement]:
        """The next published tables, if they are those that would have been measured."""
        found = self._left[: len(sets)]
        del self._left[: len(sets)]  # in place: a view through an encoding shares the list
        if len(found) < len(sets):
            raise Mismatch(f"{len(sets) - len(found)} tables are missing that the learner needs")
        for members, mechanism, cost, table in zip(sets, mechanisms, costs, found, strict=True):
            what = f"the table over ({', '.join(members)})"
            if table.axes != members:
                raise Mismatch(f"{what} should come next; it is one over ({', '.join(table.axes)})")
            if table.law != mechanism.law:
                raise Mismatch(f"{what} should have {mechanism.law}, not {table.law}")
            if budget_from_json(json.loads(table.cost)) != cost or table.rate != rate:
                raise Mismatch(f"{what} should cost {cost} and count a share of {rate} of the rows")
        return found

    def select(
        self, candidates: Sequence[Sequence[str]], score: Any, *, spend: Any, request: str | None = None, **_: Any
    ) -> int:  # fmt: skip
        """The published choice, if it is the one that was drawn and stored."""
        index = self._choose(candidates)
        paid = self._settle("select", self.read_spend(spend), request)
        stored = json.dumps([index]).encode()
        if paid is not None and paid["digest"] != hashlib.sha256(stored).hexdigest():
            raise Mismatch(f"the choice of {show(paid['request'])} is not the one that was drawn and stored")
        self.asked += (request or "",)
        return index

    def statement(self, since: int | None = None) -> Mapping[str, Any]:
        """The published statement."""
        return self._provenance.statement

    def finish(self) -> None:
        """Refuse tables and spends that the learner never asked for."""
        if self._left:
            raise Mismatch(
                f"the learner has no use for {len(self._left)} of the tables, such as the one over "
                f"({', '.join(self._left[0].axes)})"
            )
        if self._spends:
            raise Mismatch(f"the learner has no use for the answer to {show(self._spends[0]['request'])}")

    def _choose(self, candidates: Sequence[Sequence[str]]) -> int:
        """The candidate that is in the published graph, the one next in the published order first."""
        if self._choices:  # a search that is not over families states the index of every choice
            index = self._choices.pop(0)
            if type(index) is not int or not 0 <= index < len(candidates):
                raise Mismatch(f"choice {index!r} is not one of {len(candidates)} candidates")
            return index
        dag = self._network.dag
        fitting = {
            family[-1]: i
            for i, family in enumerate(candidates)
            if family and set(family[:-1]) == set(dag.parents_of(family[-1]))
        }
        chosen = [name for name in (*self._order, *dag.nodes) if name in fitting]
        if not chosen:
            raise Mismatch("a family of the published graph was not among those to choose from")
        return fitting[chosen[0]]

    def _settle(self, verb: str, cost: Finite, request: str | None) -> Mapping[str, Any] | None:
        """The next spend of the release, if it is for such a question; None where the release lists no spends."""
        if not self._listed:
            return None
        if not self._spends:
            raise Mismatch("the learner asks more than the release has paid for")
        paid: Mapping[str, Any] = self._spends.pop(0)
        if paid["verb"] != verb or (request is not None and paid["request"] != request):
            raise Mismatch(
                f"{show(request or verb)} should be paid for next; it is {show(paid['request'])} "
                f"({show(paid['verb'])})"
            )
        if budget_from_json(paid["cost"]) != cost:
            raise Mismatch(f"{show(paid['request'])} should cost {cost}")
        return paid


def find_obstacle(provenance: Provenance) -> str | None:
    """Why the learner cannot be followed without rows, in words; None if it can."""
    if provenance.learner not in REPLAYED:
        return f"the learner {show(provenance.learner)} cannot be run again from here"
    if "options" not in provenance.details:
        raise Mismatch(f"the release does not say how the learner {provenance.learner} was called")
    for name, value in provenance.details["options"].items():
        if isinstance(value, Mapping) and UNWRITTEN in value:
            return (
                f"the option {show(name)} has no exact form in a document, so the learner cannot be run again"
            )
    return None


def replay(network: Network) -> Network:
    """What a release's learner makes of the published measurements; `Mismatch` if it would have asked otherwise."""
    provenance = network.provenance
    assert provenance is not None
    stand_in = Replay(network, provenance)
    learn = find_learner(provenance.learner)
    arguments = {
        **provenance.details["options"],
        "spend": stand_in.budget,
        "request": provenance.details.get("request"),
    }
    if isinstance(start := arguments.get("start"), Mapping):
        arguments["start"] = DAG.build(start)
    graph = [network.dag] if provenance.learner in WITH_GRAPH else []
    found = learn(stand_in, *graph, **arguments)
    stand_in.finish()
    return found


def read_finite(document: object) -> Finite:
    """A finite amount from its JSON values."""
    found = budget_from_json(document)
    if isinstance(found, Infinite):
        raise BudgetError("an infinite amount where a finite one should be")
    return found


def _list(document: object) -> list[Any]:
    return list(document) if isinstance(document, list | tuple) else []
