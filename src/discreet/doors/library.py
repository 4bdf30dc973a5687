"""What anybody can do with a release, and what a custodian does before one; the commands call exactly these."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.doors.release import SchemaLike, find_document, read_dag, read_schema
from discreet.networks.formats.release import Release as Document
from discreet.values.budget import choose_budget
from discreet.values.errors import DataError
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.unit import Unit

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger
    from discreet.judge.attacks.published import Published
    from discreet.judge.audit import Audit
    from discreet.judge.preview import Preview
    from discreet.judge.verify import Verification
    from discreet.values.budget import Finite
    from discreet.values.text import Number


def plan(
    schema: SchemaLike,
    graph: Any = None,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    rows: int = 10_000,
    unit: Unit | str | None = None,
    person: str | None = None,
    at_most: int | None = None,
    learner: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Preview:
    """What a release would measure, with which noise, and how wrong it would be; nothing is read or spent.

    `rows` is your guess of how many there are; everything else is what `release` takes.
    """
    from discreet.judge.preview import rehearse

    declared = read_schema(schema)
    dag = None if graph is None else read_dag(graph, declared)
    spend = choose_budget(epsilon=epsilon, delta=delta, rho=rho)
    return rehearse(
        declared,
        dag,
        spend=spend,
        unit=Unit.choose(unit, person, at_most) or Unit.ADD_REMOVE,
        learner=learner,
        rows=rows,
        options=options,
    )


def verify(
    release: Document | str | os.PathLike[str], ledger: Ledger | str | os.PathLike[str] | None = None
) -> Verification:
    """Derive everything again that can be derived, and say what does not add up; needs no rows."""
    from discreet.entrance import open_ledger
    from discreet.judge.verify import verify as check
    from discreet.judge.verify import verify_file

    with ExitStack() as stack:
        opened = stack.enter_context(open_ledger(ledger)) if isinstance(ledger, str | os.PathLike) else ledger
        if isinstance(release, Document):
            return check(release, opened)
        return verify_file(find_document(release), opened)


def audit(
    release: Any,
    *,
    members: Any,
    reference: Any,
    schema: Schema | str | os.PathLike[str] | None = None,
    graph: DAG | str | os.PathLike[str] | None = None,
    promise: Finite | None = None,
    complete: bool = False,
    errors: Sequence[float] = (0.001, 0.01, 0.05, 0.1),
    confidence: float = 0.95,
    rng: int = 0,
) -> Audit:
    """Attack a release with rows behind it and rows of other people, and compare with its promise.

    A release is a file or an object: a release, a network, a credal network, or synthetic rows with their `schema`
    and, if it is known, their `graph`. `members` and `reference` are files or tables. `promise` is for a release that
    does not say what it cost. `complete` says that the members are all the rows behind the release; then its noise
    is checked as well. The members are private and no budget pays for the result: it is for the custodian only.
    """
    from discreet.entrance import read_codes
    from discreet.judge.audit import audit_codes

    published = _open_published(release, schema=schema, graph=graph).promising(promise)
    if complete and published.unit is not None and (published.unit.person or published.unit.weight):
        raise DataError(
            f"{published.name} counts only some rows, chosen in secret ({published.unit}): its noise cannot be checked "
            "against all of them; leave out --complete"
        )
    return audit_codes(
        published,
        read_codes(members, published.schema),
        read_codes(reference, published.schema),
        complete=complete,
        errors=errors,
        confidence=confidence,
        rng=rng,
    )


def _open_published(
    release: Any,
    *,
    schema: Schema | str | os.PathLike[str] | None = None,
    graph: DAG | str | os.PathLike[str] | None = None,
) -> Published:
    """What a release shows: a file or object that holds a network, told by its content, or synthetic rows.

    Rows, in a file or any table, need the `schema` that says what their columns may hold, and may have a `graph`.
    """
    from discreet.entrance import read_codes
    from discreet.judge.attacks.published import Published
    from discreet.networks.credal import CredalNetwork
    from discreet.networks.formats.release import Release, read, read_graph
    from discreet.networks.network import Network
    from discreet.networks.posterior import Posterior
    from discreet.networks.synthetic import Rows

    name = "the release"
    if isinstance(release, Published):
        return release
    if isinstance(release, str | os.PathLike):
        name = Path(release).name
        if not _holds_rows(name):
            release = read(release)
    if isinstance(release, Release):
        release = release.network
    if isinstance(release, Posterior):
        release = release.network()
    if isinstance(release, Network):
        return Published.of_network(release, name)
    if isinstance(release, CredalNetwork):
        return Published.of_credal(release, name)
    if schema is None and isinstance(release, Rows):
        schema = release.schema
    if schema is None:
        raise DataError(f"{name}: synthetic rows do not say what their columns may hold; give their schema")
    declared = schema if isinstance(schema, Schema) else Schema.read(schema)
    dag = graph if graph is None or isinstance(graph, DAG) else read_graph(graph, declared)
    return Published.of_rows(
        declared,
        read_codes(release.arrow() if isinstance(release, Rows) else release, declared),
        dag=dag,
        name=name,
    )


def _holds_rows(name: str) -> bool:
    from discreet.rows.readers.sources import ARROW_ENDINGS, CSV_ENDINGS, PARQUET_ENDINGS, find_ending

    return find_ending(name) in {*CSV_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS} or "::" in name
