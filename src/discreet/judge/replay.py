"""A learner run again without rows: it gets the published answers where the airlock would draw new ones.

If the published network is what the learner makes of the published answers, the second run asks the same queries,
for the same amounts and with the same noise, and ends at the same numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from warnings import catch_warnings, simplefilter

from discreet.core.queries import Choice, Keeper, Query, Tables
from discreet.learning.learner import (
    NOT_OPTIONS,
    OF_POSTERIORS,
    UNWRITTEN,
    WITH_GRAPH,
    WITHOUT_GRAPH,
    find_learner,
)
from discreet.learning.rehearsal import Rehearsal
from discreet.networks.formats.documents import require_list
from discreet.networks.network import Network
from discreet.networks.posterior import Posterior
from discreet.networks.provenance import Provenance
from discreet.papers.posterior.grid_draws import PosteriorDraw
from discreet.papers.posterior.linear import LinearStatistics
from discreet.values.budget import require_finite
from discreet.values.errors import AirlockError, DataError, DiscreetError, FormatError, SearchWarning
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.patience import require_time
from discreet.values.statement import Debit, Statement
from discreet.values.text import list_some, show

REPLAYED = WITH_GRAPH + WITHOUT_GRAPH
"""Learners whose choices can be read off what they publish."""


class Mismatch(DiscreetError):
    """A query of the second run that the release does not answer as it says."""


class Replay(Rehearsal):
    """Answers queries from a release; it counts nothing and draws nothing."""

    def __init__(self, network: Network, provenance: Provenance) -> None:
        said = provenance.statement
        rows = said.rows or 0 if said is not None else 0
        super().__init__(network.declared, provenance.unit, require_finite(provenance.cost), rows)
        self._network, self._said = network, said
        self._left = list(provenance.measurements)
        self._details = provenance.details
        structure = provenance.details.get("structure")
        self._order = list(structure.get("order", ())) if isinstance(structure, Mapping) else []
        choices = provenance.details.get("choices")
        self._choices = list(choices) if isinstance(choices, list | tuple) else []
        self._debits = [] if said is None else list(said.debits)
        self._listed = bool(self._debits)
        self._purpose: str | None = None

    @property
    def rows(self) -> int:
        """The public number of rows, which a release under replace-one states."""
        if not self.unit.fixes_rows or self._rows < 1:
            raise AirlockError("the release does not state the number of rows")
        return self._rows

    @contextmanager
    def mark(self, purpose: str) -> Iterator[None]:
        """Refuse a learner, options or a graph that are not those that were paid for."""
        if self._purpose is None:  # within another learner, the outer one's stands
            self._purpose = purpose
            if self._listed and self._said is not None and self._said.purpose != purpose:
                raise Mismatch("the learner, its options or its graph are not those that were paid for")
        yield

    def toss(self, names: Sequence[str], *, request: str | None = None) -> str:
        """The attribute with which the published order begins."""
        if not self._order or self._order[0] not in names:
            raise Mismatch("the release does not say with which attribute the search began")
        return str(self._order[0])

    def answer(self, query: Query[Any], request: str | None) -> list[Any]:
        """The next published answer, if it is the one to this query and the next debit paid for it."""
        require_time()
        match query:
            case Tables():
                found = self._take(query)
                paid = self._settle("measure", query, request)
                if paid is not None and paid.tables != len(found):
                    raise Mismatch(f"{show(paid.request)} is for {paid.tables} tables, not {len(found)}")
                return [table.to_json() for table in found]
            case Choice():
                answer = [self._choose(query.candidates)]
                paid = self._settle("select", query, request)
                if (
                    paid is not None
                    and paid.digest != hashlib.sha256(json.dumps(answer).encode()).hexdigest()
                ):
                    raise Mismatch(
                        f"the choice of {show(paid.request)} is not the one that was drawn and stored"
                    )
                return answer
            case LinearStatistics() | PosteriorDraw():
                return self._recall(query, request)
        raise Mismatch(f"a {type(query).__name__} is not among what a release publishes")

    def _recall(self, query: LinearStatistics | PosteriorDraw, request: str | None) -> list[Any]:
        """The coefficients or points that a posterior was made of, if they are those that were drawn and stored."""
        if isinstance(query, LinearStatistics):
            stored = [self._details.get("coefficients")]
        else:
            stored = list(require_list(self._details.get("points drawn"), "the points drawn"))
        query.require_answer(stored)
        paid = self._settle(query.describe()["verb"], query, request)
        if paid is not None and paid.digest != hashlib.sha256(json.dumps(stored).encode()).hexdigest():
            raise Mismatch(f"the answer to {show(paid.request)} is not the one that was drawn and stored")
        return stored

    def statement(self, since: int | None = None) -> Statement | None:
        """The published statement."""
        return self._said

    def finish(self) -> None:
        """Refuse tables and debits that the learner never asked for."""
        if self._left:
            raise Mismatch(
                f"the learner has no use for {len(self._left)} of the tables, such as the one over "
                f"({', '.join(self._left[0].axes)})"
            )
        if self._debits:
            raise Mismatch(f"the learner has no use for the answer to {show(self._debits[0].request)}")

    def _take(self, query: Tables) -> list[Measurement]:
        """The next published tables, if they are those that would have been measured."""
        found = self._left[: len(query.sets)]
        del self._left[: len(query.sets)]  # in place: a view through an encoding shares the list
        if len(found) < len(query.sets):
            raise Mismatch(f"{len(query.sets) - len(found)} tables are missing that the learner needs")
        for members, mechanism, charge, table in zip(
            query.sets, query.mechanisms, query.charges, found, strict=True
        ):
            what = f"the table over ({', '.join(members)})"
            if table.axes != members:
                raise Mismatch(f"{what} should come next; it is one over ({', '.join(table.axes)})")
            if table.law != mechanism.law:
                raise Mismatch(f"{what} should have {mechanism.law}, not {table.law}")
            if table.cost != charge or table.rate != query.rate:
                raise Mismatch(f"{what} should cost {charge} and count a share of {query.rate} of the rows")
        return found

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

    def _settle(self, verb: str, query: Query[Any], request: str | None) -> Debit | None:
        """The next debit of the release, if it is for such a query; None where the release lists no debits."""
        if not self._listed:
            return None
        if not self._debits:
            raise Mismatch("the learner asks more than the release has paid for")
        paid = self._debits.pop(0)
        if paid.verb != verb or (request is not None and paid.request != request):
            raise Mismatch(
                f"{show(request or verb)} should be paid for next; it is {show(paid.request)} ({show(paid.verb)})"
            )
        if paid.cost != query.cost:
            raise Mismatch(f"{show(paid.request)} should cost {query.cost}")
        return paid


def find_obstacle(provenance: Provenance) -> str | None:
    """Why the learner cannot be followed without rows, in words; None if it can."""
    if provenance.learner not in REPLAYED:
        return f"the learner {show(provenance.learner)} cannot be run again from here"
    if "options" not in provenance.details:
        raise Mismatch(f"the release does not say how the learner {provenance.learner} was called")
    if not isinstance(provenance.details["options"], Mapping):
        raise Mismatch("the options of the learner are malformed: they must be named")
    for name, value in provenance.details["options"].items():
        if isinstance(value, Mapping) and UNWRITTEN in value:
            return (
                f"the option {show(name)} has no exact form in a document, so the learner cannot be run again"
            )
    return None


def replay(network: Network, stand_in: Replay | None = None) -> Network:
    """What a release's learner makes of the published measurements; `Mismatch` if it would have asked otherwise.

    A `stand_in` of one's own can look at the queries on their way.
    """
    provenance = network.provenance
    assert provenance is not None
    stand_in = stand_in or Replay(network, provenance)
    with catch_warnings():
        simplefilter("ignore", SearchWarning)  # whoever learned it was told
        found = _call(network, provenance, stand_in)
    stand_in.finish()
    return found.network() if isinstance(found, Posterior) else found


def replay_posterior(network: Network) -> Posterior:
    """The posterior that a release holds the means of, from its published answers."""
    provenance = network.provenance
    if provenance is None or provenance.learner not in OF_POSTERIORS:
        learner = "nobody" if provenance is None else provenance.learner
        raise FormatError(f"this was learned by {show(learner)}; {list_some(OF_POSTERIORS)} make posteriors")
    found = _call(network, provenance, Replay(network, provenance))
    assert isinstance(found, Posterior)
    return found


def call_again(network: Network, keeper: Keeper) -> Network:
    """What the learner of a release makes of other rows, for the same amount and with the same options."""
    provenance = network.provenance
    assert provenance is not None
    obstacle = find_obstacle(provenance)
    if obstacle is None and provenance.details["options"].get("encoding") == "hierarchical":
        obstacle = "groups of levels are not known to numbered levels"
    if obstacle is not None:
        raise DataError(f"no release like this one can be made again: {obstacle}")
    found = _call(network, provenance, keeper)
    return found.network() if isinstance(found, Posterior) else found


def _call(network: Network, provenance: Provenance, keeper: Keeper) -> Network | Posterior:
    learn = find_learner(provenance.learner)
    chosen = provenance.details["options"]
    if not isinstance(chosen, Mapping) or not NOT_OPTIONS.isdisjoint(chosen):
        raise Mismatch("the options hold something that is not the learner's to choose")
    arguments = {
        **chosen,
        "spend": require_finite(provenance.cost),
        "request": provenance.details.get("request"),
    }
    if isinstance(start := arguments.get("start"), Mapping):
        arguments["start"] = DAG.build(start)
    graph = [network.dag] if provenance.learner in WITH_GRAPH else []
    learned: Network | Posterior = learn(keeper, *graph, **arguments)
    return learned
