"""One call from rows to a release: open the airlock, learn, state what was paid."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.learners import WITHOUT_GRAPH, choose_learner, find_learner
from discreet.networks.formats.release import Release, make_release
from discreet.values.graph import DAG
from discreet.values.schema import Schema

if TYPE_CHECKING:
    from discreet.learn.greedy import Progress
    from discreet.values.budget import Finite
    from discreet.values.unit import Unit


@dataclass(frozen=True, slots=True, eq=False)
class Publication:
    """A release, the request id under which it can be had again, and whether it was paid for just now."""

    release: Release
    request: str
    paid: bool
    revealed: bool
    """Whether somebody has looked at the rows without noise, before or since."""


def publish(
    data: Any,
    schema: Schema,
    dag: DAG | None,
    *,
    spend: Finite,
    ledger: str | os.PathLike[str],
    account: str,
    learner: str | None = None,
    options: Mapping[str, Any] | None = None,
    request: str | None = None,
    budget: Finite | None = None,
    unit: Unit | str | None = None,
    create: bool = False,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Publication:
    """Learn a network from private rows and make the release of it; asking again gives the same release for nothing.

    `progress` is told how far a search for the graph is, and what it has decided last.
    """
    from discreet.entrance import open_airlock, read_kind

    name = choose_learner(learner, dag)
    learn = find_learner(name)
    sets = () if dag is None else dag.families()
    key = request or name_request(account, schema, dag, spend, name, options or {})
    with open_airlock(
        data, schema, ledger=ledger, account=account, spend=spend, request=key, budget=budget, unit=unit,
        create=create, sets=sets, memory=memory,
    ) as airlock:  # fmt: skip
        cost = read_kind(spend, airlock.budget)
        before = airlock.remaining
        arguments = {"spend": cost, "request": key, **(options or {})}
        if name in WITHOUT_GRAPH:
            arguments["progress"] = progress
        network = learn(airlock, **arguments) if dag is None else learn(airlock, dag, **arguments)
        return Publication(
            make_release(network),
            key,
            airlock.remaining != before,
            airlock.loss.to_json() == {"epsilon": "infinite"},
        )


def name_request(
    account: str,
    schema: Schema,
    dag: DAG | None,
    spend: Finite,
    learner: str,
    options: Mapping[str, Any],
) -> str:
    """A request id that follows from the question, so that whoever asks the same again gets the same answer."""
    graph = None if dag is None else [[name, list(dag.parents_of(name))] for name in dag.nodes]
    question = [account, schema.to_json(), graph, spend.to_json(), learner, dict(options)]
    text = json.dumps(question, sort_keys=True, default=str)
    return f"release-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
