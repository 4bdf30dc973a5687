"""What anybody can do with a release, and what a custodian does before one; the commands call exactly these."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from discreet.doors.release import SchemaLike, read_dag, read_schema
from discreet.networks.formats.release import Release as Document
from discreet.values.budget import choose_budget

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger
    from discreet.judge.preview import Preview
    from discreet.judge.verification import Verification
    from discreet.values.exact import Number
    from discreet.values.unit import Unit


def plan(
    schema: SchemaLike,
    graph: Any = None,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    rows: int = 10_000,
    unit: Unit | str = "add-remove",
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
    return rehearse(declared, dag, spend=spend, unit=unit, learner=learner, rows=rows, options=options)


def verify(
    release: Document | str | os.PathLike[str], ledger: Ledger | str | os.PathLike[str] | None = None
) -> Verification:
    """Derive everything again that can be derived, and say what does not add up; needs no rows."""
    from discreet.entrance import open_ledger
    from discreet.judge.verify import verify as check
    from discreet.judge.verify import verify_file

    with ExitStack() as stack:
        opened = stack.enter_context(open_ledger(ledger)) if isinstance(ledger, str | os.PathLike) else ledger
        return check(release, opened) if isinstance(release, Document) else verify_file(release, opened)
