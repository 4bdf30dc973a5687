"""A learner run again without rows: it gets the published answers where the airlock would draw new ones.

If the published network is what the learner makes of the published answers, the second run asks the same questions,
for the same amounts and with the same noise, and ends at the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.learning.publication import WITH_GRAPH, WITHOUT_GRAPH, find_learner
from discreet.learning.rehearsal import Rehearsal
from discreet.models.network import Network
from discreet.models.provenance import Provenance
from discreet.privacy.budget import Finite, Infinite, Unit, budget_from_json
from discreet.privacy.mechanism import AdditiveNoise
from discreet.vocabulary.errors import AirlockError, BudgetError, DiscreetError
from discreet.vocabulary.measurement import Measurement

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
        choices = provenance.details.get("choices", ())
        self._choices = (
            list(choices) if isinstance(choices, Sequence) and not isinstance(choices, str) else []
        )

    @property
    def rows(self) -> int:
        """The public number of rows, which a release under replace-one states."""
        if self.unit is not Unit.REPLACE_ONE or self._rows < 1:
            raise AirlockError("the release does not state the number of rows")
        return self._rows

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
        """The candidate that is in the published graph, the one next in the published order first."""
        self.read_spend(spend)
        if self._choices:  # a search that is not over families states the index of every choice
            index = self._choices.pop(0)
            if type(index) is not int or not 0 <= index < len(candidates):
                raise Mismatch(f"choice {index!r} is not one of {len(candidates)} candidates")
            self.asked += (request or "",)
            return index
        dag = self._network.dag
        fitting = {
            family[-1]: i
            for i, family in enumerate(candidates)
            if set(family[:-1]) == set(dag.parents_of(family[-1]))
        }
        chosen = [name for name in (*self._order, *dag.nodes) if name in fitting]
        if not chosen:
            raise Mismatch("a family of the published graph was not among those to choose from")
        self.asked += (request or "",)
        return fitting[chosen[0]]

    def statement(self, since: int | None = None) -> Mapping[str, Any]:
        """The published statement."""
        return self._provenance.statement

    def finish(self) -> None:
        """Refuse tables that the learner never asked for."""
        if self._left:
            raise Mismatch(
                f"the learner has no use for {len(self._left)} of the tables, such as the one over "
                f"({', '.join(self._left[0].axes)})"
            )


def can_replay(provenance: Provenance) -> bool:
    """Whether the learner can be followed without rows and the release says how it was called."""
    return provenance.learner in REPLAYED and "options" in provenance.details


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
