"""Rows in, a release out: one call opens the airlock, learns, and states what was paid."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.learning.learner import CHOOSY, OF_POSTERIORS, WITHOUT_GRAPH, choose_learner, learn_network
from discreet.networks.formats.release import Release as Document
from discreet.networks.formats.release import describe_words, list_software, make_release, write_release
from discreet.networks.formats.release import read as read_file
from discreet.values.budget import Finite, Infinite, PureDP, choose_budget, price, read_budget
from discreet.values.errors import PromiseWarning, SchemaError
from discreet.values.files import read_text
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.schema.formats.toml import MAX_BYTES
from discreet.values.text import list_some
from discreet.values.unit import Unit

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger
    from discreet.judge.explorer.page import Frame
    from discreet.judge.trust.witness import Witness
    from discreet.judge.verify import Verification
    from discreet.learning.custodians.agreement import Agreement
    from discreet.learning.greedy import Progress
    from discreet.networks.answer import Answer, Decision, Explanation, Figure
    from discreet.networks.credal import CredalNetwork
    from discreet.networks.evidence import Given
    from discreet.networks.figures import Measure
    from discreet.networks.network import Network
    from discreet.networks.posterior import Posterior
    from discreet.networks.synthetic import Rows
    from discreet.values.about import About
    from discreet.values.text import Number

SchemaLike = Schema | str | os.PathLike[str] | Mapping[str, Sequence[str]] | Any
"""A schema, the path of its TOML file, the levels of each attribute by name, or a draft."""
GUESSED = "review: this is public"
"""How a draft marks what it could not know without a look at the rows."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Under which request id the release can be had again, and what was paid for it just now."""

    request: str
    paid: bool
    """Whether this run has paid; one that ran beside it, or before, may have."""
    revealed: bool
    """Whether somebody has looked at the rows without noise, before or since."""
    amount: Finite | None = None
    """What this run has paid, as the ledger has it."""


@dataclass(frozen=True, slots=True, eq=False)
class Release(Document):
    """A published network with its promise; everything it offers is public and costs nothing."""

    receipt: Receipt | None = None
    """Set if it was made just now, and not read from a file."""

    def __repr__(self) -> str:
        return f"<Release of {len(self.network.declared)} attributes: {self.promise}>"

    def query(
        self,
        target: str | Sequence[str],
        given: Given | None = None,
        *,
        intervals: str | None = None,
        of: str | None = None,
    ) -> Answer:
        """P(target | given); `intervals` are "guaranteed", "calibrated" or "none", by default those that are quick.

        They are `of` the "table", the "network" without the noise (the default on a given graph), or the "world".
        """
        return self.network.query(target, given, intervals=intervals, of=of)

    def ask(self, question: str, *, intervals: str | None = None, of: str | None = None) -> Any:
        """The answer to a written question, such as "P(lung | smoke=yes)", "mean(age)" or "count(lung=yes)"."""
        from discreet.networks.written import parse

        return parse(question).ask(self.network, intervals, of)

    def compare(
        self,
        event: Given,
        given: Given,
        other: Given,
        measure: Measure = "difference",
        *,
        intervals: str | None = None,
        of: str | None = None,
    ) -> Figure:
        """How much more probable an event is given one thing than given another: difference, ratio or odds ratio."""
        from discreet.networks import figures

        return figures.compare(self.network, event, given, other, measure, intervals=intervals, of=of)

    def mean(
        self, name: str, given: Given | None = None, *, intervals: str | None = None, of: str | None = None
    ) -> Figure:
        """The mean of a number, binned or not, among the rows that have one."""
        from discreet.networks import figures

        return figures.mean(self.network, name, given, intervals=intervals, of=of)

    def quantile(
        self,
        name: str,
        share: float = 0.5,
        given: Given | None = None,
        *,
        intervals: str | None = None,
        of: str | None = None,
    ) -> Figure:
        """The number below which a share of the rows lie; 0.5 is the median."""
        from discreet.networks import figures

        return figures.quantile(self.network, name, share, given, intervals=intervals, of=of)

    def count(self, event: Given, *, intervals: str | None = None) -> Figure:
        """How many rows of the table have these levels."""
        from discreet.networks import figures

        return figures.count(self.network, event, intervals=intervals)

    def decide(self, target: str, given: Given | None = None, *, of: str | None = None) -> Decision:
        """Which level is surely the most probable one, or which ones can be."""
        from discreet.networks import figures

        return figures.decide(self.network, target, given, of=of)

    def most_probable(
        self, given: Given | None = None, *, targets: str | Sequence[str] | None = None
    ) -> Explanation:
        """The most probable levels of all attributes that were not observed, or of the targets."""
        return self.network.most_probable(given, targets=targets)

    def sample(self, n: int, *, rng: int, given: Given | None = None, balanced: bool = True) -> Rows:
        """n synthetic rows, with counts as near to the network's as n rows can, or independent ones.

        The same `rng` always gives the same rows.
        """
        return self.network.sample(n, rng=rng, given=given, balanced=balanced)

    def ensemble(self, count: int, *, rng: int) -> tuple[Network, ...]:
        """So many plausible networks of the population; what tables drawn from them say is pooled by `dc.pool`."""
        from discreet.networks.ensemble import draw_networks

        return draw_networks(self.network, count, rng=rng)

    def write(self, out: str | os.PathLike[str]) -> dict[str, Path]:
        """Write what may be published into a folder: document, network as BIF, report, explorer; or one .json file."""
        from discreet.doors.feasible import plan_files

        paths = plan_files(Path(out))
        if "report" in paths:
            from discreet.judge.explorer.page import write_explorer
            from discreet.judge.report import write_report
            from discreet.networks.formats.made_from import digest_release

            paths["release"].parent.mkdir(exist_ok=True)
            doubt = self._find_doubt()
            self.network.write_bif(paths["network"], digest_release(self))
            write_report(self, paths["report"], doubt=doubt)
            write_explorer(self, paths["explorer"], report=paths["report"].name, doubt=doubt)
            if self.provenance.learner in OF_POSTERIORS:
                paths["posterior"] = paths["release"].parent / "posterior.json"
                self.posterior().write(paths["posterior"])
        # The document comes last, so that where it is, the rest is.
        write_release(self, paths["release"])
        return paths

    def explore(self, height: int = 680) -> Frame:
        """The explorer in a notebook: click a bar, and every other bar moves; `height` is in pixels."""
        from discreet.judge.explorer.page import Frame, make_explorer

        return Frame(make_explorer(self, doubt=self._find_doubt()), height)

    def _find_doubt(self) -> str:
        """Why the promise may not be shown; what was made just now came out of the airlock, and needs no check."""
        from discreet.judge.trust.doubt import find_doubt

        return "" if self.receipt is not None else find_doubt(self, "the release")

    def describe_graph(self) -> str:
        """How many arrows there are, which attributes have none, and the error that was expected, in a sentence."""
        error = self.provenance.predicted_error
        arrows = self.network.list_arrows()
        linked = {name for arrow in arrows for name in arrow}
        alone = [name for name in self.network.declared.names if name not in linked]
        if arrows:
            count = len(arrows)
            words = f"{count} {'arrow' if count == 1 else 'arrows'} between {len(linked)} attributes; "
            words += (
                f"{len(alone)} left independent: {list_some(alone)}" if alone else "none left independent"
            )
        elif len(alone) == 1:
            words = "no arrows: there is one attribute"
        else:
            words = f"no arrows: each of {len(alone)} attributes is published as independent of the others"
        if error:
            mean = sum(error.values()) / len(error)
            words += f"; noise is expected to change a conditional by {mean:.3f} on average (L1, at most 2)"
        return words

    def posterior(self) -> Posterior:
        """The Dirichlet posterior that the learners laplace and fourier release; the network holds its means."""
        from discreet.judge.replay import replay_posterior
        from discreet.networks.formats.digits import round_posterior

        return round_posterior(replay_posterior(self.network))

    def verify(self, ledger: Ledger | str | os.PathLike[str] | None = None) -> Verification:
        """Derive everything again that can be derived, also from the ledger if that is given."""
        from discreet.doors.library import verify

        return verify(self, ledger)


def release(
    data: Any,
    schema: SchemaLike = None,
    graph: Any = None,
    *,
    plan: Agreement | str | os.PathLike[str] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    account: str | None = None,
    budget: Finite | Number | None = None,
    unit: Unit | str | None = None,
    person: str | None = None,
    at_most: int | str | None = None,
    per_person: str | None = None,
    create: bool = False,
    learner: str | None = None,
    options: Mapping[str, Any] | None = None,
    request: str | None = None,
    memory: int | str | None = None,
    codes: str | os.PathLike[str] | None = None,
    accept_guesses: bool = False,
    progress: Progress | None = None,
    about: About | Mapping[str, str] | str | os.PathLike[str] | None = None,
    witness: str | os.PathLike[str] | None = None,
    beside: str | os.PathLike[str] | None = None,
) -> Release:
    """Learn a network from private rows for ε, (ε, δ) or ρ, and make the release of it.

    `data` is a file (CSV, Parquet, Arrow, Excel), a frame, a mapping of columns, or a table in a database. `graph` says
    what depends on what (a DAG, a network, the path of one, parents by name, or (parent, child) pairs); without one it
    is learned privately. The `ledger` is debited before a row is counted; asking again gives the same release for
    nothing. With `create`, a ledger or account that is not there is made, with `budget` or what this release costs.
    `person` names a column of people's ids: then the promise is about people, of whom `at_most` rows count each ("auto"
    has their number chosen privately), or with `per_person="average"` the average of so many. An account keeps its unit
    for good. Without a ledger nothing remembers what was spent.
    A draft whose guesses nobody has reviewed is refused, unless `accept_guesses` says that what it took from the rows
    may be published. `learner` and its `options` are those of `discreet.learn`; `progress` is told how far a search for
    the graph is. A `plan` that custodians share (`discreet.agree`) stands for schema, graph, unit and cost; then
    the account is a custodian of it, and the release a part for `discreet.combine`. In the folder `codes` those of the
    rows are kept for the next time, private like the rows.
    `about` is what you say of it yourself (title, description, population, period, collection, contact,
    licence): a mapping, or the path of a TOML file. It is published with the release.
    A `witness` is a file or folder elsewhere with releases or anchors of the ledger: one that was rolled back behind
    them is refused before anything is spent, and the new anchor is added to it. Releases in the folder `beside` which
    this one will lie are looked at in the same way.
    """
    from discreet.doors import feasible
    from discreet.entrance import find_unit, name_bound, open_airlock

    words = None
    if about is not None:
        from discreet.values.about import About

        words = About.read(about)
    witnesses: list[Witness] = []
    if witness is not None or beside is not None:
        from discreet.judge.trust.witness import find_witnesses, note_anchor, require_latest

        witnesses = find_witnesses(witness, beside)
    own = (epsilon, delta, rho) != (None, None, None)
    if plan is not None:
        from discreet.doors.publishing import read_plan

        agreed = read_plan(plan, account, schema, graph, learner, unit or person)
        schema, graph, learner, unit = agreed.schema, agreed.dag, "planned", agreed.unit
        options = {"agreed": agreed.describe(), **({} if own else {"noise": agreed.noise})}
    spend = choose_budget(epsilon=epsilon, delta=delta, rho=rho) if own or plan is None else agreed.cost
    feasible.require_meaningful(spend)
    declared = read_schema(schema) if accept_guesses else read_reviewed(schema)
    dag = None if graph is None else read_dag(graph, declared)
    name = choose_learner(learner, dag)
    options = feasible.read_options(options, declared, dag)
    feasible.require_possible(declared, dag)
    protected, whole_budget = Unit.choose(unit, person, at_most, per_person), read_whole(budget)
    if create or name in CHOOSY:
        # A bound on a person's rows may be paid for first, so a unit that the learner refuses is refused before that.
        asked = protected or (None if ledger is None or account is None else find_unit(ledger, account))
        feasible.require_startable(declared, dag, name, options, spend=spend, budget=whole_budget, unit=asked)
    if create and protected is None and getattr(ledger, "durable", ledger is not None):
        feasible.warn_of_people(data, declared.names, ledger, account)
    key = request or name_request(account, declared, dag, spend, name, options)
    if name == "adaptive" and not options.get("sets"):
        feasible.warn_of_noise(declared, spend, whole_budget, protected)
    books: list[Ledger] = []

    def inspect(book: Ledger) -> None:
        books.append(book)
        if witnesses:
            require_latest(book, witnesses)

    with open_airlock(
        data,
        declared,
        ledger=ledger,
        account=account,
        spend=spend,
        request=key,
        budget=whole_budget,
        unit=protected,
        create=create,
        sets=() if dag is None else dag.families(),
        memory=memory,
        codes=codes,
        words=describe_words(words, list_software()),
        inspect=inspect,
    ) as airlock:
        whole = price(spend, airlock.budget)
        rest = whole if (paid := airlock.cost_of(name_bound(key))) is None else whole - paid
        arguments = {"spend": rest, "request": key, **options}
        if name in WITHOUT_GRAPH:
            arguments["progress"] = progress
        network = learn_network(name, airlock, *([] if dag is None else [dag]), **arguments)
        if network.provenance and network.provenance.statement and not network.provenance.statement.durable:
            warnings.warn(
                "no ledger remembers what this release cost, so the same rows can be asked again for nothing: give a "
                "ledger if they are real ones",
                PromiseWarning,
                stacklevel=2,
            )
        made = make_release(network, words)
        if witness is not None:
            note_anchor(witness, made.provenance.statement)
        amount = feasible.add_debits(books[-1], airlock.account.name)
        receipt = Receipt(key, amount is not None, isinstance(airlock.loss, Infinite), amount)
        return Release(made.network, made.promise, made.software, words, receipt)


def read(path: str | os.PathLike[str]) -> Release | Network | CredalNetwork | Posterior:
    """Whatever a file holds: a release, a network (also BIF), a credal network, a posterior; told by its content."""
    found = read_file(path)
    if isinstance(found, Document):
        return Release(found.network, found.promise, found.software, found.about)
    return found


def read_whole(budget: Finite | Number | None) -> Finite | None:
    """The whole budget of an account as people write it: 2, "epsilon=2", "rho=1/8", PureDP(2)."""
    if budget is None or isinstance(budget, Finite):
        return budget
    return read_budget(budget) if isinstance(budget, str) else PureDP(budget)


def read_schema(schema: SchemaLike) -> Schema:
    """The schema that is meant."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, Mapping):
        return Schema.of(schema)
    if isinstance(schema, str | os.PathLike):
        return Schema.read(schema)
    drafted = getattr(schema, "schema", None)
    if isinstance(drafted, Schema):
        return drafted
    raise SchemaError(
        f"the schema must be a Schema, the path of a .toml file or levels by name, not a {type(schema).__name__}"
    )


def read_reviewed(schema: SchemaLike) -> Schema:
    """The schema that is meant; refused if it is a draft that nobody has reviewed."""
    declared = read_schema(schema)
    guesses = count_guesses(schema)
    if guesses:
        where = os.fspath(schema) if isinstance(schema, str | os.PathLike) else "the draft"
        raise SchemaError(
            f"{where} still has {guesses} guess{'es' * (guesses > 1)} taken from the rows that would be published: "
            "review each line marked `review` and delete its comment, or accept them all (--accept-guesses, in "
            "Python accept_guesses=True)"
        )
    return declared


def count_guesses(schema: SchemaLike) -> int:
    """How many guesses of a draft are still marked in a schema file, or in a draft."""
    if isinstance(schema, str | os.PathLike):
        return read_text(schema, MAX_BYTES).count(GUESSED)
    return int(getattr(schema, "guesses", 0))


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
    # An array as its numbers: as text, a long one would be cut short, and two priors would be one question.
    text = json.dumps(
        question, sort_keys=True, default=lambda found: getattr(found, "tolist", found.__str__)()
    )
    return f"release-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
