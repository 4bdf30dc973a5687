"""The one way in from outside: rows, ledgers and airlocks are opened here, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.airlock import Airlock
from discreet.core.book import Account, spell
from discreet.core.counter import Counter
from discreet.core.ledger import Ledger, require_line
from discreet.rows.limits import MAX_ROWS, Limits, read_memory
from discreet.stores.memory import MemoryLedger
from discreet.values.budget import ApproxDP, Finite, PureDP, read_budget
from discreet.values.errors import AirlockError, BudgetError, DataError, LedgerError, Overspent
from discreet.values.schema import Schema
from discreet.values.unit import Unit


def open_counter(
    data: Any,
    schema: Schema,
    *,
    memory: int | str | None = None,
    weight: str | None = None,
    numbers: Sequence[str] = (),
    unit: Unit = Unit.ADD_REMOVE,
    max_rows: int = MAX_ROWS,
    threads: int | None = None,
) -> Counter:
    """The engine for this data, with every row already checked against the schema.

    Read here and counted from codes: a file (CSV, Parquet, Arrow), a pandas or Polars frame, a mapping of
    columns, an Arrow table or dataset, a `(connection, table)` pair of DuckDB or SQLite, or a text such as
    "clinic.duckdb::visits". Counted where it is, so that only tables come back: an Ibis table, a Spark frame,
    or a text such as "postgresql://host/db::visits".

    `weight` names a column of non-negative integers for rows that were aggregated before; a table then sums the
    weights, each of them cut off at what the `unit` allows, if it is one of rows with weights.
    `numbers` names columns that may be summed, each a number in every row. Of each person of the `unit` at most so many
    rows count as it says.
    """
    limits = Limits(read_memory(memory), max_rows, threads)
    if isinstance(numbers, str):
        raise DataError(f"numbers must be a list of column names, not the text {numbers!r}")
    if weight is not None and weight in schema:
        raise DataError(
            f"column {weight!r} cannot be the weight and an attribute of the schema; take it out of one"
        )
    if unit.person and unit.person in schema:
        raise DataError(
            f"column {unit.person!r} holds people's ids and cannot be an attribute; take it out of the schema"
        )
    if unit.person and (weight is not None or numbers):
        raise DataError("--person cannot be combined with weights or with columns to be summed")
    if _lives_elsewhere(data):
        from discreet.rows.engines.pushdown import PushdownCounter

        return PushdownCounter.open(data, schema, weight=weight, limits=limits, unit=unit)
    from discreet.rows.engines.coded import CodedCounter

    return CodedCounter.open(data, schema, weight=weight, limits=limits, numbers=numbers, unit=unit)


def read_codes(data: Any, schema: Schema) -> dict[str, npt.NDArray[Any]]:
    """The codes of all rows of a file or table, for the custodian's own audit: outside of the airlock, and unpaid."""
    from discreet.rows.readers.duck import open_reader

    # With one thread rows come in the order of the file, so that a seed gives the same audit every time.
    reader = open_reader(data, schema, None, Limits(threads=1))
    try:
        batches = [batch.codes for batch in reader.read(schema.names)]
    finally:
        reader.close()
    if not batches:
        raise DataError(f"{reader.label}: no rows; at least 1 is needed")
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    return dict(zip(schema.names, columns, strict=True))


def open_ledger(place: str | os.PathLike[str], *, create: bool = False, patience: float = 30.0) -> Ledger:
    """Open the ledger at a path, or at a postgresql:// address; `create` makes it if it is not there.

    `patience` is how many seconds to wait for another writer. A missing ledger is an error unless `create` is
    asked for, because a mistyped name would otherwise come with a fresh budget.
    """
    text = os.fspath(place)
    if _is_address(text):
        from discreet.stores.postgres import PostgresStore

        return Ledger(PostgresStore(text, create=create, patience=patience))
    from discreet.stores.sqlite import SqliteStore

    return Ledger(SqliteStore(Path(text), create=create, patience=patience))


def open_airlock(
    data: Any,
    schema: Schema,
    *,
    budget: Finite | str | None = None,
    unit: Unit | str | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    account: str | None = None,
    create: bool = False,
    spend: Finite | None = None,
    request: str = "",
    sets: Sequence[Sequence[str]] = (),
    memory: int | str | None = None,
    numbers: Sequence[str] = (),
) -> Airlock:
    """Read and check every row, and open the account that pays for what is asked of them.

    `ledger` is an open ledger or the place of one; without it spends are kept in memory only, which is for tests and
    simulations. `account` names the dataset in the ledger (the file's name by default). With `create`, a ledger or an
    account that is not there is made, with `budget` or else just the `spend`; without it, a mistyped name is refused
    and does not come with a fresh budget. `unit` is that of the account, and add-remove for a new one.

    `spend`, `request` and `sets` say what is about to be asked: the account must be able to pay all that is missing
    for it, since a learner of several stages must not pay for the first and fail at the second.
    The others are those of `open_counter`.
    """
    wanted = read_budget(budget) if isinstance(budget, str) else budget
    protected = None if unit is None else Unit.read(unit)
    name = account or _name_data(data, durable=ledger is not None and not isinstance(ledger, MemoryLedger))
    require_line("an account name", name)
    if spend is not None:
        require_line("a request id", request, most=180)  # stages add to it
        if wanted is not None:
            read_kind(spend, wanted)
    with ExitStack() as stack:
        book = _find_ledger(ledger, stack, create)
        if book is not None:
            known = {found.name: found for found in book.accounts()}.get(name)
            if known is not None:  # refused if another budget or unit is wanted
                book.open_account(name, wanted or known.budget, protected or known.unit)
                protected = known.unit
                if spend is not None:
                    _check_funds(book, known, spend, request)
            elif book.durable and not create:
                book.account(name)  # refused, with the names there are
        protected = protected or Unit.ADD_REMOVE
        counter = open_counter(
            data, schema, memory=memory, weight=protected.weight or None, numbers=numbers, unit=protected
        )
        stack.callback(counter.close)
        counter.check(list(sets))
        if book is None:
            assert isinstance(ledger, str | os.PathLike)
            book = stack.enter_context(open_ledger(ledger, create=True))
        opened = {found.name: found for found in book.accounts()}.get(name)
        whole = wanted or (spend if opened is None else opened.budget)
        if whole is None:
            raise BudgetError(f"account {name!r} is not open in the ledger yet; give its budget")
        # Refused if somebody has opened it meanwhile with another unit: the rows were read for this one.
        opened = book.open_account(name, whole, protected)
        return Airlock(counter, schema, book, opened, stack.pop_all().close)


def has_account(ledger: str | os.PathLike[str], account: str) -> bool:
    """Whether there is a ledger with this account."""
    if not (_is_address(os.fspath(ledger)) or Path(ledger).exists()):
        return False
    with open_ledger(ledger) as opened:
        return any(found.name == account for found in opened.accounts())


def read_kind(spend: Finite, budget: Finite) -> Finite:
    """A spend in the kind of a budget: a pure ε is also an (ε, 0)."""
    if isinstance(spend, PureDP) and isinstance(budget, ApproxDP):
        return ApproxDP(spend.epsilon, 0)
    if type(spend) is not type(budget):
        raise BudgetError(f"a cost of {spend} is of another kind than the account's budget, {budget}")
    return spend


def _find_ledger(
    ledger: Ledger | str | os.PathLike[str] | None, stack: ExitStack, create: bool
) -> Ledger | None:
    """The ledger, if there is one already; None if it is still to be made, once the rows are found to be sound."""
    if ledger is None:
        return MemoryLedger()
    if isinstance(ledger, Ledger):
        return ledger
    if _is_address(os.fspath(ledger)) or Path(ledger).exists():  # a server is asked only when it is opened
        return stack.enter_context(open_ledger(ledger))
    if create:
        return None
    raise LedgerError(
        f"no ledger at {os.fspath(ledger)}; make it with `discreet budget init`, or add --create-ledger"
    )


def _check_funds(ledger: Ledger, account: Account, spend: Finite, request: str) -> None:
    missing = read_kind(spend, account.budget)
    for entry in ledger.entries(account.name):
        if (entry.request == request or entry.request.startswith(f"{request}/")) and entry.cost <= missing:
            missing -= entry.cost
    if not missing <= account.remaining:
        raise Overspent(
            f"account {account.name!r} cannot pay: the release costs {spell(missing)}; "
            f"remaining {spell(account.remaining)}"
        )


def _name_data(data: Any, *, durable: bool) -> str:
    if isinstance(data, str | os.PathLike):
        return Path(os.fspath(data).rpartition("::")[2] or os.fspath(data)).name
    if durable:
        raise AirlockError("data that is not a file needs a name in the ledger; give `account`")
    return "simulation"


def _is_address(text: str) -> bool:
    return text.startswith(("postgresql://", "postgres://"))


def _lives_elsewhere(data: Any) -> bool:
    if isinstance(data, str | os.PathLike):
        return os.fspath(data).startswith(("postgres://", "postgresql://"))
    # Told from the name, so that neither package is imported here.
    home = type(data).__module__.partition(".")[0]
    return home in ("ibis", "pyspark")
