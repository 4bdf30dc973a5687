"""What anybody can do with a release, and what a custodian does before one; the commands call exactly these."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.doors.release import SchemaLike, read_dag, read_schema
from discreet.networks.formats.release import Release as Document
from discreet.networks.formats.release import find_document
from discreet.values.budget import choose_budget, require_finite
from discreet.values.errors import BudgetError, DataError, FormatError
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.unit import Unit

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger
    from discreet.judge.attacks.published import Published
    from discreet.judge.attacks.units import Units
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
    at_most: int | str | None = None,
    per_person: str | None = None,
    learner: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Preview:
    """What a release would measure, with which noise, and how wrong it would be; nothing is read or spent.

    `rows` is your guess of how many there are; everything else is what `release` takes.
    """
    from discreet.doors.feasible import read_options, require_meaningful, require_possible
    from discreet.judge.preview import rehearse

    declared = read_schema(schema)
    dag = None if graph is None else read_dag(graph, declared)
    require_possible(declared, dag)
    spend = choose_budget(epsilon=epsilon, delta=delta, rho=rho)
    require_meaningful(spend)
    protected = Unit.choose(unit, person, at_most, per_person) or Unit.ADD_REMOVE
    if protected.is_open:
        raise BudgetError("a plan reads no rows, so it cannot choose how many count; give --at-most a number")
    return rehearse(
        declared,
        dag,
        spend=spend,
        unit=protected,
        learner=learner,
        rows=rows,
        options=read_options(options, declared, dag),
    )


def buy_width(
    width: float,
    question: str,
    schema: SchemaLike,
    graph: Any = None,
    *,
    kind: str = "epsilon",
    rows: int = 10_000,
    unit: Unit | str | None = None,
    person: str | None = None,
    at_most: int | str | None = None,
    per_person: str | None = None,
    learner: str | None = None,
    options: Mapping[str, Any] | None = None,
    intervals: str = "guaranteed",
) -> Fraction | None:
    """The ε, or with `kind="rho"` the ρ, whose intervals for a question would be no wider; None if none in reach is.

    Nothing is read or spent; `rows` is your guess of how many there are, and shares are taken to be even.
    """
    from discreet.judge.widths import find_budget
    from discreet.networks.intervals import Intervals

    def rehearse(amount: Fraction) -> Preview:
        return plan(
            schema,
            graph,
            rows=rows,
            unit=unit,
            person=person,
            at_most=at_most,
            per_person=per_person,
            learner=learner,
            options=options,
            **{kind: amount},
        )

    if kind not in ("epsilon", "rho"):
        raise BudgetError(f"a width is bought with epsilon or rho, not with {kind!r}")
    return find_budget(width, question, rehearse, Intervals.read(intervals) or Intervals.GUARANTEED)


def verify(
    release: Document | str | os.PathLike[str],
    ledger: Ledger | str | os.PathLike[str] | None = None,
    *,
    key: str | os.PathLike[str] | None = None,
) -> Verification:
    """Derive everything again that can be derived, and say what does not add up; needs no rows.

    Of a folder that a release was written into, also the files beside the document: network, pages, synthetic rows.
    `key` is the file of the custodian's public key: then the signature beside a release's file is checked, too.
    """
    from discreet.entrance import open_ledger
    from discreet.judge.verify import verify as check
    from discreet.judge.verify import verify_file

    with ExitStack() as stack:
        opened = stack.enter_context(open_ledger(ledger)) if isinstance(ledger, str | os.PathLike) else ledger
        if isinstance(release, Document):
            if key is not None:
                raise FormatError("a signature is for the bytes of a file; give the path of the release")
            return check(release, opened)
        found = verify_file(find_document(release), opened, key)
        if not Path(release).is_dir():
            return found
        from discreet.judge.trust.folder import check_folder

        return check_folder(Path(release), found)


def sign(
    release: str | os.PathLike[str],
    key: str | os.PathLike[str],
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
) -> Path:
    """Sign the file of a release with the private `key`, and give the path of the signature beside it.

    A release that does not add up is refused; with the `ledger`, one that it did not pay for as it stands.
    """
    from discreet.entrance import open_ledger
    from discreet.judge.verify import sign_file

    with ExitStack() as stack:
        opened = stack.enter_context(open_ledger(ledger)) if isinstance(ledger, str | os.PathLike) else ledger
        return sign_file(find_document(release), key, opened)


def audit(
    release: Any,
    *,
    members: Any = None,
    reference: Any = None,
    split: Any = None,
    schema: Schema | str | os.PathLike[str] | None = None,
    graph: DAG | str | os.PathLike[str] | None = None,
    promise: Finite | None = None,
    person: str | None = None,
    at_most: int | None = None,
    complete: bool = False,
    errors: Sequence[float] = (0.001, 0.01, 0.05, 0.1),
    confidence: float = 0.95,
    rng: int = 0,
) -> Audit:
    """Attack a release with rows behind it and rows of other people, and compare with its promise.

    A release is a file or an object: a release, a network, a credal network, or synthetic rows with their `schema`
    and, if it is known, their `graph`. `members` and `reference` are files or tables. Whoever has only one table gives
    it as `split`: a trial release is made of one half of it as this one was, and the other half is the reference.
    `promise`, and `person` with `at_most`, are for a release that does not say what it promises, and to whom.
    `complete` says that the members are all the rows behind the release; then its noise is checked as well. The
    members are private and no budget pays for the result: it is for the custodian only.
    """
    from discreet.entrance import read_rows
    from discreet.judge.attacks.overlap import refuse_shared
    from discreet.judge.attacks.units import Units
    from discreet.judge.audit import audit_codes
    from discreet.rows.people import draw_key

    published = _open_published(release, schema=schema, graph=graph).promising(promise)
    published = published.protecting(Unit.choose(None, person, at_most))
    if split is not None:
        if members is not None or reference is not None:
            raise DataError("give one table to be split, or members and a reference, not both")
        published, inside, outside = _try_out(release, published, split, rng)
        complete = bool(published.measurements)
    else:
        if members is None or reference is None:
            raise DataError(
                "an audit needs members and a reference (--members, --reference), or one table to be split (--split)"
            )
        key = draw_key()
        read = [read_rows(rows, published.declared, published.unit, key) for rows in (members, reference)]
        if read[0].people is not None and read[1].people is not None:
            refuse_shared(read[0].people, read[1].people)
        inside, outside = (Units.of(found, published.unit) for found in read)
    return audit_codes(
        published, inside, outside, complete=complete, errors=errors, confidence=confidence, rng=rng
    )


def _try_out(release: Any, published: Published, table: Any, rng: int) -> tuple[Published, Units, Units]:
    """A trial release of one half of a table, made as a release was, that half, and the other one."""
    import numpy as np

    from discreet.entrance import open_airlock, read_rows
    from discreet.judge.attacks.published import Published
    from discreet.judge.attacks.units import Units
    from discreet.judge.replay import call_again
    from discreet.networks.formats.release import Release, read
    from discreet.networks.network import Network

    opened = read(release) if isinstance(release, str | os.PathLike) else release
    network = opened.network if isinstance(opened, Release) else opened
    known = network.provenance if isinstance(network, Network) else None
    if known is None or not isinstance(network, Network):
        raise DataError(
            f"{published.name} does not say how it was learned, so nothing like it can be made of a half; "
            "give --members and --reference"
        )
    rows = read_rows(table, network.declared, known.unit)
    every = Units.of(rows, known.unit)
    mixed = np.random.default_rng(rng).permutation(every.require("the table", 80))
    inside, outside = every.take(mixed[: len(mixed) // 2]), every.take(mixed[len(mixed) // 2 :])
    # Mechanisms see codes only, so the levels may as well be numbers.
    coded = Schema.of({name: range(size) for name, size in network.declared.sizes.items()})
    columns: dict[str, Any] = {name: codes.astype(np.int64) for name, codes in inside.codes.items()}
    if inside.owners is not None:
        columns[known.unit.person] = inside.owners
    if inside.weights is not None:
        columns[known.unit.weight] = inside.weights
    with open_airlock(columns, coded, budget=require_finite(known.cost), unit=known.unit) as airlock:
        trial = call_again(network, airlock)
    return Published.of_network(trial, f"a trial release like {published.name}"), inside, outside


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
        read_codes(release.arrow(labels=True) if isinstance(release, Rows) else release, declared),
        dag=dag,
        name=name,
    )


def _holds_rows(name: str) -> bool:
    from discreet.rows.readers.sources import ROW_ENDINGS, find_ending

    return find_ending(name) in ROW_ENDINGS or "::" in name
