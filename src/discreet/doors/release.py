"""Rows in, a release out: one call opens the airlock, learns, and states what was paid."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.learning.learner import WITHOUT_GRAPH, choose_learner, find_learner
from discreet.networks.formats.release import Release as Document
from discreet.networks.formats.release import make_release, write_release
from discreet.networks.formats.release import read as read_file
from discreet.values.budget import Infinite, choose_budget, read_budget
from discreet.values.errors import FormatError, SchemaError
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.unit import Unit

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger
    from discreet.judge.verify import Verification
    from discreet.learning.greedy import Progress
    from discreet.networks.answer import Answer, Explanation
    from discreet.networks.credal import CredalNetwork
    from discreet.networks.evidence import Given
    from discreet.networks.network import Network
    from discreet.networks.posterior import Posterior
    from discreet.networks.synthetic import Rows
    from discreet.values.budget import Finite
    from discreet.values.text import Number

SchemaLike = Schema | str | os.PathLike[str] | Mapping[str, Sequence[str]]
"""A schema, the path of its TOML file, or the levels of each attribute by name."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Under which request id the release can be had again, and what was paid for it just now."""

    request: str
    paid: bool
    revealed: bool
    """Whether somebody has looked at the rows without noise, before or since."""


@dataclass(frozen=True, slots=True, eq=False)
class Release(Document):
    """A published network with its promise; everything it offers is public and costs nothing."""

    receipt: Receipt | None = None
    """Set if it was made just now, and not read from a file."""

    def __repr__(self) -> str:
        return f"<Release of {len(self.network.nodes)} attributes: {self.promise}>"

    def query(
        self, target: str | Sequence[str], given: Given | None = None, *, intervals: str | None = None
    ) -> Answer:
        """P(target | given); `intervals` are "guaranteed", "calibrated" or "none", by default those that are quick."""
        return self.network.query(target, given, intervals=intervals)

    def most_probable(
        self, given: Given | None = None, *, targets: str | Sequence[str] | None = None
    ) -> Explanation:
        """The most probable levels of all attributes that were not observed, or of the targets."""
        return self.network.most_probable(given, targets=targets)

    def sample(self, n: int, *, rng: int, given: Given | None = None) -> Rows:
        """n synthetic rows; the same `rng` always gives the same ones."""
        return self.network.sample(n, rng=rng, given=given)

    def write(self, out: str | os.PathLike[str]) -> dict[str, Path]:
        """Write what may be published into a folder: the document, the network as BIF, a report; or one .json file."""
        paths = plan_files(Path(out))
        if "report" in paths:
            from discreet.judge.report import write_report

            paths["release"].parent.mkdir(exist_ok=True)
            self.network.write_bif(paths["network"])
            write_report(self, paths["report"])
        # The document comes last, so that where it is, the rest is.
        write_release(self, paths["release"])
        return paths

    def verify(self, ledger: Ledger | str | os.PathLike[str] | None = None) -> Verification:
        """Derive everything again that can be derived, also from the ledger if that is given."""
        from discreet.doors.library import verify

        return verify(self, ledger)


def release(
    data: Any,
    schema: SchemaLike,
    graph: Any = None,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    account: str | None = None,
    budget: Finite | str | None = None,
    unit: Unit | str | None = None,
    person: str | None = None,
    at_most: int | None = None,
    create: bool = False,
    learner: str | None = None,
    options: Mapping[str, Any] | None = None,
    request: str | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Release:
    """Learn a network from private rows for ε, (ε, δ) or ρ, and make the release of it.

    `data` is a file (CSV, Parquet, Arrow), a frame, a mapping of columns, or a table in a database. `graph` says what
    depends on what (a DAG, a network, the path of one, parents by name, or (parent, child) pairs); without one it is
    learned privately. The `ledger` is debited before a row is counted; asking again gives the same release for nothing.
    With `create`, a ledger or account that is not there is made, with `budget` or just what this release costs.
    `person` names a column of people's ids: then the promise is about people, of whom `at_most` rows count each; an
    account keeps its unit for good. Without a ledger nothing remembers what was spent: for simulations only.
    `learner` and its `options` are those of `discreet.learn`; `progress` is told how far a search for the graph is.
    """
    from discreet.entrance import open_airlock, read_kind

    spend = choose_budget(epsilon=epsilon, delta=delta, rho=rho)
    declared = read_schema(schema)
    dag = None if graph is None else read_dag(graph, declared)
    name = choose_learner(learner, dag)
    learn = find_learner(name)
    key = request or name_request(account, declared, dag, spend, name, options or {})
    with open_airlock(
        data,
        declared,
        ledger=ledger,
        account=account,
        spend=spend,
        request=key,
        budget=read_budget(budget) if isinstance(budget, str) else budget,
        unit=Unit.choose(unit, person, at_most),
        create=create,
        sets=() if dag is None else dag.families(),
        memory=memory,
    ) as airlock:
        before = airlock.remaining
        arguments = {"spend": read_kind(spend, airlock.budget), "request": key, **(options or {})}
        if name in WITHOUT_GRAPH:
            arguments["progress"] = progress
        network = learn(airlock, **arguments) if dag is None else learn(airlock, dag, **arguments)
        made = make_release(network)
        receipt = Receipt(key, airlock.remaining != before, isinstance(airlock.loss, Infinite))
        return Release(made.network, made.promise, made.software, receipt)


def read(path: str | os.PathLike[str]) -> Release | Network | CredalNetwork | Posterior:
    """Whatever a file holds: a release, a network (also BIF), a credal network, a posterior; told by its content."""
    found = read_file(find_document(path))
    if isinstance(found, Document):
        return Release(found.network, found.promise, found.software)
    return found


def find_document(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The file that is meant: of a folder that `Release.write` made, the document in it."""
    inside = Path(path) / "release.json"
    return inside if Path(path).is_dir() and inside.exists() else path


def read_schema(schema: SchemaLike) -> Schema:
    """The schema that is meant."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, Mapping):
        return Schema.of(schema)
    if isinstance(schema, str | os.PathLike):
        return Schema.read(schema)
    raise SchemaError(
        f"the schema must be a Schema, the path of a .toml file or levels by name, not a {type(schema).__name__}"
    )


def read_dag(graph: Any, schema: Schema) -> DAG:
    """The graph that is meant, its nodes in the order of the schema."""
    from discreet.networks.formats.release import read_graph
    from discreet.networks.network import Network

    if isinstance(graph, str | os.PathLike):
        return read_graph(graph, schema)
    if isinstance(graph, Network):
        return graph.dag
    if isinstance(graph, DAG):
        return graph
    if isinstance(graph, Mapping):
        return DAG.build({name: graph.get(name, ()) for name in dict.fromkeys([*schema.names, *graph])})
    return DAG.from_edges(list(graph), schema.names)


def plan_files(out: Path) -> dict[str, Path]:
    """Where each part of a release goes; a place that cannot be written is refused before anything is spent."""
    single = "".join(out.suffixes[-2:]).endswith((".json", ".json.gz"))
    parent = out.parent if single or not out.exists() else out
    if single and out.is_dir():
        raise FormatError(f"{out} is a folder; choose a file, or a folder whose name does not end in .json")
    if not single and out.exists() and not out.is_dir():
        raise FormatError(f"{out} is a file; choose a folder, or a file whose name ends in .json")
    if not parent.is_dir():
        raise FormatError(f"{parent}: no such folder")
    if not os.access(parent, os.W_OK):
        raise FormatError(f"{parent}: you may not write files there")
    if single:
        return {"release": out}
    return {"release": out / "release.json", "network": out / "network.bif", "report": out / "report.html"}


def name_request(
    account: str | None,
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
