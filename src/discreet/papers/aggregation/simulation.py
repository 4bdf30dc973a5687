"""Several custodians on one machine, each a process of its own with its own rows, airlock and ledger.

Every two of them share a channel, over which they exchange masks that nobody else sees; what each publishes is its
masked tables. It shows what the protocol costs and what comes out; real channels need encryption and authentication,
which is not simulated.
"""

from __future__ import annotations

import multiprocessing
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from discreet.learning.custodians.agreement import Agreement
from discreet.papers.aggregation.masked import MaskedTables, Words, draw_mask
from discreet.values.errors import DiscreetError, FormatError
from discreet.values.measurement import Measurement
from discreet.values.table import count_cells

PRELOADED = (
    "discreet.entrance",
    "discreet.core.airlock",
    "discreet.rows.engines.kernels",
    "duckdb",
    "opendp.prelude",
)
"""Imported once, before the parties are made from one process."""
PATIENCE = 600.0
"""Seconds after which a party that says nothing has dropped out."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What one party is told: the plan and its own rows; nothing of the others but their number."""

    number: int
    agreement: Agreement
    honest: int
    round: str
    rows: Any
    ledger: str


def share_noise(
    tables: Mapping[str, Any],
    agreement: Agreement,
    *,
    honest: int | None = None,
    folder: Path,
    absent: Sequence[str] = (),
) -> list[Measurement]:
    """The sums of all custodians' tables with noise as of one table, measured by processes that share masks.

    `tables` has each custodian's rows by name, `honest` is how many of them are trusted to add their noise (all, if
    nobody says), and ledgers are kept in `folder`. Those who are `absent` exchange masks and then drop out.
    """
    names = agreement.custodians
    missing = [name for name in names if name not in tables]
    if missing or len(tables) != len(names):
        raise FormatError(f"the plan is for {', '.join(names)}; there are tables of {', '.join(tables)}")
    trusted = len(names) if honest is None else honest
    query = price_shares(agreement, trusted, secrets.token_hex(8))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *PRELOADED])
    channels = _connect(len(names), context)
    processes, answers = [], {}
    try:
        for i, name in enumerate(names):
            mine, theirs = context.Pipe()
            task = _Task(i, agreement, trusted, query.round, tables[name], str(folder / f"{name}.ledger"))
            process = context.Process(
                target=_take_part, args=(task, channels[i], theirs, name in absent), daemon=True
            )
            process.start()
            theirs.close()
            processes.append((process, mine, name))
        for _, mine, name in processes:
            try:
                found = mine.recv() if mine.poll(PATIENCE) else None
            except EOFError:  # it ended without a word
                found = None
            if isinstance(found, str):
                raise FormatError(f"{name}: {found}")
            if found is not None:
                answers[name] = found
    finally:
        for process, mine, _ in processes:
            mine.close()
            process.join(5)
            if process.is_alive():
                process.terminate()
    return query.unmask(answers, agreement.schema.sizes)


def price_shares(agreement: Agreement, honest: int, round: str) -> MaskedTables:
    """What every party asks its own airlock, but for the masks."""
    return MaskedTables.price(
        agreement.tables,
        agreement.cost,
        unit=agreement.unit,
        parties=len(agreement.custodians),
        honest=honest,
        round=round,
        shares=agreement.shares,
    )


def _connect(count: int, context: Any) -> list[dict[int, Connection]]:
    """A channel between every two parties: for each party, its ends by the number of the other."""
    ends: list[dict[int, Connection]] = [{} for _ in range(count)]
    for i in range(count):
        for j in range(i + 1, count):
            ends[i][j], ends[j][i] = context.Pipe()
    return ends


def _take_part(task: _Task, channels: dict[int, Connection], out: Connection, leaves: bool) -> None:
    """One party: exchange masks with every other, then publish what the airlock says."""
    from dataclasses import replace

    from discreet.entrance import open_airlock

    try:
        agreement = task.agreement
        query = price_shares(agreement, task.honest, task.round)
        sizes = [
            count_cells(agreement.schema.sizes[name] for name in members) for members in agreement.tables
        ]
        masks = [np.zeros(size, dtype=np.uint64) for size in sizes]
        # Pairs take turns in one order for all, so that two who wait for each other never close a circle.
        for other, channel in sorted(channels.items()):
            sent = [draw_mask(size) for size in sizes]
            if task.number < other:
                channel.send(sent)
                received = channel.recv()
            else:
                received = channel.recv()
                channel.send(sent)
            masks = [mask + out_ - in_ for mask, out_, in_ in zip(masks, sent, received, strict=True)]
        if leaves:
            return
        name = agreement.custodians[task.number]
        with open_airlock(
            task.rows,
            agreement.schema,
            ledger=task.ledger,
            account=name,
            spend=agreement.cost,
            request=task.round,
            unit=agreement.unit,
            create=True,
        ) as airlock:
            answer: list[Words] = airlock.ask(replace(query, masks=tuple(masks)), request=task.round)
        out.send(answer)
    except DiscreetError as error:
        out.send(str(error))
    finally:
        out.close()
