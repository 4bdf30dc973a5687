"""The one way in from outside: rows, ledgers and airlocks are opened here, and nowhere else."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.core.airlock import Airlock
from discreet.core.book import Account, spell
from discreet.core.contributions import choose_bound, list_bounds
from discreet.core.counter import Counter
from discreet.core.ledger import Ledger, require_line
from discreet.rows.limits import MAX_ROWS, Limits, read_memory
from discreet.stores.fingerprint import mark_source, mark_words
from discreet.stores.memory import MemoryLedger
from discreet.values.budget import Finite, price, read_budget
from discreet.values.errors import (
    AirlockError,
    BudgetError,
    DataError,
    DiscreetError,
    LedgerError,
    Overspent,
    PromiseWarning,
    TooLarge,
)
from discreet.values.schema import Schema
from discreet.values.unit import Unit

if TYPE_CHECKING:
    from discreet.core.chain import Store
    from discreet.stores.salvage import Salvage

MOST_BESIDE = 20
"""Ledger files of the same folder that are looked into."""
BOUND_SHARE = Fraction(1, 20)
"""What it costs of a release to choose how many rows of a person count."""


def open_counter(
    data: Any,
    schema: Schema,
    *,
    memory: int | str | None = None,
    weight: str | None = None,
    numbers: Sequence[str] = (),
    texts: Sequence[str] = (),
    unit: Unit = Unit.ADD_REMOVE,
    max_rows: int = MAX_ROWS,
    threads: int | None = None,
    codes: str | os.PathLike[str] | None = None,
) -> Counter:
    """The engine for this data, with every row already checked against the schema.

    Read here and counted from codes: a file (CSV, Parquet, Arrow), a pandas or Polars frame, a mapping of
    columns, an Arrow table or dataset, a `(connection, table)` pair of DuckDB or SQLite, or a text such as
    "clinic.duckdb::visits". Counted where it is, so that only tables come back: an Ibis table, a Spark frame,
    or a text such as "postgresql://host/db::visits".

    `weight` names a column of non-negative integers for rows that were aggregated before; a table then sums the
    weights, each of them cut off at what the `unit` allows, if it is one of rows with weights.
    `numbers` names columns that may be summed, each a number in every row; `texts` names those whose values, which
    nobody has declared, may be found through a threshold. Of each person of the `unit` at most so many
    rows count as it says. `codes` is a folder that keeps the codes of a file, as private as its rows.
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
    if unit.is_open:
        raise DataError(
            f"how many rows count of each {unit.person!r} is not chosen yet; give --at-most 4, say"
        )
    if unit.person and (weight is not None or numbers):
        raise DataError("--person cannot be combined with weights or with columns to be summed")
    leaving = next((found.name for found in schema if found.leaves_out), None)
    if leaving is not None and (unit == Unit.REPLACE_ONE or numbers):
        why = "the number of rows is public under replace-one" if not numbers else "columns are to be summed"
        raise DataError(
            f"attribute {leaving!r} leaves records out, but {why}; declare another level, the missing one or the "
            "nearest bin for values outside"
        )
    if _lives_elsewhere(data):
        from discreet.rows.engines.pushdown import PushdownCounter

        if codes is not None:
            raise DataError("codes can be kept only of files, not of an engine's rows: leave out --codes")
        return PushdownCounter.open(data, schema, weight=weight, limits=limits, numbers=numbers, unit=unit)
    from discreet.rows.engines.coded import CodedCounter

    return CodedCounter.open(
        data, schema, weight=weight, limits=limits, numbers=numbers, texts=texts, unit=unit, codes=codes
    )


@dataclass(frozen=True, slots=True, eq=False)
class ReadRows:
    """All rows of a table as codes; with whose they are, or how often each counts, if a unit of privacy asks for it."""

    codes: dict[str, npt.NDArray[Any]]
    people: npt.NDArray[np.uint64] | None = None
    """A keyed hash of each row's person in two words, both 0 where there is none."""
    weights: npt.NDArray[np.int64] | None = None


def read_codes(data: Any, schema: Schema) -> dict[str, npt.NDArray[Any]]:
    """The codes of all rows of a file or table, for the custodian's own audit: outside of the airlock, and unpaid."""
    return read_rows(data, schema).codes


def read_rows(data: Any, schema: Schema, unit: Unit | None = None, key: bytes = b"") -> ReadRows:
    """The same with people or weights; tables that are read with one `key` can be compared by their people."""
    from discreet.rows.readers.duck import open_reader

    weight = None if unit is None else unit.weight or None
    # With one thread rows come in the order of the file, so that a seed gives the same audit every time.
    reader: Any = open_reader(
        data, schema, weight, Limits(threads=1), person="" if unit is None else unit.person
    )
    try:
        if unit is not None and unit.person and key:
            reader = replace(reader, key=key)
        batches = list(reader.read(schema.names))
    finally:
        reader.close()
    if not batches:
        raise DataError(f"{reader.label}: no rows; at least 1 is needed")
    columns = [np.concatenate(parts) for parts in zip(*(batch.codes for batch in batches), strict=True)]
    codes = dict(zip(schema.names, columns, strict=True))
    if unit is not None and unit.person:
        return ReadRows(codes, np.concatenate([batch.people for batch in batches]))
    if unit is not None and unit.weight:
        return ReadRows(codes, None, np.concatenate([batch.weights for batch in batches]))
    return ReadRows(codes)


def open_ledger(place: str | os.PathLike[str], *, create: bool = False, patience: float = 30.0) -> Ledger:
    """Open the ledger at a path, or at a postgresql:// address; `create` makes it if it is not there.

    `patience` is how many seconds to wait for another writer. A missing ledger is an error unless `create` is
    asked for, because a mistyped name would otherwise come with a fresh budget.
    """
    return Ledger(_open_store(place, create=create, patience=patience))


def salvage_ledger(place: str | os.PathLike[str], new: str | os.PathLike[str]) -> Salvage:
    """Take over into a new ledger what is sound of one that was spoilt, and give nothing back that was spent."""
    from discreet.stores.salvage import split_events, take_over

    with closing(_open_store(place)) as old:
        sound, rest, fault = split_events(old)
        if not sound:
            raise LedgerError(f"nothing of the ledger {old.place} is sound: {fault or 'it is empty'}")
        if not _is_address(os.fspath(new)) and Path(new).exists():
            raise LedgerError(f"{os.fspath(new)} already exists; what is salvaged goes into a new ledger")
        with closing(_open_store(new, create=True, first=sound[0])) as made:
            return take_over(old, made, sound, rest, fault)


def _open_store(place: str | os.PathLike[str], **options: Any) -> Store:
    text = os.fspath(place)
    if _is_address(text):
        from discreet.stores.postgres import PostgresStore

        return PostgresStore(text, **options)
    from discreet.stores.sqlite import SqliteStore

    return SqliteStore(Path(text), **options)


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
    codes: str | os.PathLike[str] | None = None,
    numbers: Sequence[str] = (),
    texts: Sequence[str] = (),
    words: Mapping[str, Any] | None = None,
    inspect: Callable[[Ledger], None] = lambda book: None,
) -> Airlock:
    """Read and check every row, and open the account that pays for what is asked of them.

    `ledger` is an open ledger or the place of one; without it spends are kept in memory only, which is for tests and
    simulations. `account` names the dataset in the ledger (the file's name by default). With `create`, a ledger or an
    account that is not there is made, with `budget` or else just the `spend`; without it, a mistyped name is refused
    and does not come with a fresh budget. `unit` is that of the account, and add-remove for a new one.

    `spend`, `request` and `sets` say what is about to be asked: the account must be able to pay all that is missing
    for it, since a learner of several stages must not pay for the first and fail at the second. `words` are what
    the release of that request will say besides; a ledger that lasts remembers a keyed digest of them. `inspect` is
    shown the ledger before anything is spent, and may refuse it.
    The others are those of `open_counter`.
    """
    wanted = read_budget(budget) if isinstance(budget, str) else budget
    protected = None if unit is None else Unit.read(unit)
    name = account or name_data(data, durable=ledger is not None and not isinstance(ledger, MemoryLedger))
    require_line("an account name", name)
    if spend is not None:
        require_line("a request id", request, most=180)  # stages add to it
        if wanted is not None:
            price(spend, wanted)
    with ExitStack() as stack:
        book = _find_ledger(ledger, stack, create)
        if book is not None:
            inspect(book)
            known = {found.name: found for found in book.accounts()}.get(name)
            if known is not None:  # refused if another budget or unit is wanted
                book.open_account(name, wanted or known.budget, protected or known.unit)
                protected = known.unit
                if spend is not None:
                    _check_funds(book, known, spend, request)
            elif book.durable and not create:
                book.account(name)  # refused, with the names there are
        protected = protected or Unit.ADD_REMOVE
        if protected.is_open:
            true_people = _count_people(data, schema, protected, sets, memory)
            book = book or _make_ledger(ledger, stack, inspect)
            protected = _choose_bound(book, name, wanted or spend, protected, true_people, spend, request)
        counter = open_counter(
            data,
            schema,
            memory=memory,
            weight=protected.weight or None,
            numbers=numbers,
            texts=texts,
            unit=protected,
            codes=codes,
        )
        stack.callback(counter.close)
        counter.check(list(sets))
        book = book or _make_ledger(ledger, stack, inspect)
        opened = {found.name: found for found in book.accounts()}.get(name)
        whole = wanted or (spend if opened is None else opened.budget)
        if whole is None:
            raise BudgetError(f"account {name!r} is not open in the ledger yet; give its budget")
        # Refused if somebody has opened it meanwhile with another unit: the rows were read for this one.
        opened = book.open_account(name, whole, protected)
        if book.durable:
            _remember_source(book, name, data, () if words is None else mark_words(request, words, book.key))
        return Airlock(counter, schema, book, opened, stack.pop_all().close)


def _count_people(
    data: Any, schema: Schema, unit: Unit, sets: Sequence[Sequence[str]], memory: int | str | None
) -> npt.NDArray[np.int64]:
    """How many rows people have; all are read as the widest choice would count them, before anything is paid."""
    most = list_bounds(unit)[-1]
    widest = open_counter(data, schema, memory=memory, unit=unit.fix(most))
    try:
        widest.check(list(sets))
    finally:
        widest.close()
    return count_rows_of_people(data, schema, unit.person, most, memory=memory)


def _choose_bound(
    book: Ledger,
    name: str,
    budget: Finite | None,
    unit: Unit,
    true_people: npt.NDArray[np.int64],
    spend: Finite | None,
    request: str,
) -> Unit:
    """How many rows of a person count, paid for from the account with a twentieth of what is about to be spent."""
    known = {found.name: found for found in book.accounts()}.get(name)
    whole = budget if known is None else known.budget
    if whole is None:
        raise BudgetError(f"account {name!r} is not open in the ledger yet; give its budget")
    account = book.open_account(name, whole, unit)
    cost = price(spend or whole, whole) * BOUND_SHARE
    return choose_bound(book, account, true_people, cost=cost, request=name_bound(request)).unit


def name_bound(request: str) -> str:
    """The request id under which a release has the number of rows of a person chosen."""
    return f"{request}/at-most" if request else "at-most"


def count_rows_of_people(
    data: Any, schema: Schema, person: str, most: int, *, memory: int | str | None = None
) -> npt.NDArray[np.int64]:
    """How many people have 1, 2, … up to `most` rows, and last how many have more; true, and so never to be shown."""
    limits = Limits(read_memory(memory))
    if _lives_elsewhere(data):
        from discreet.rows.engines.ibis_people import count_people_there

        return count_people_there(data, person, most)
    from discreet.rows.people import count_people
    from discreet.rows.readers.duck import open_reader

    reader = open_reader(data, schema, None, limits, (), person)
    try:
        found: list[npt.NDArray[np.uint64]] = []
        for batch in reader.read(()):
            assert batch.people is not None
            found.append(batch.people)
            if 32 * sum(map(len, found)) > limits.memory:
                raise TooLarge(
                    f"{reader.label}: counting each person's rows takes more than the memory limit; raise it "
                    "(--memory), or give --at-most a number"
                )
    finally:
        reader.close()
    return count_people(np.concatenate([np.empty((0, 2), dtype=np.uint64), *found]), most)


def find_repeated_id(data: Any, known: Collection[str]) -> str | None:
    """A column outside the schema that is called like an id and repeats: its people may have several rows each."""
    if _lives_elsewhere(data):
        from discreet.rows.engines.ibis_people import find_repeated_there

        return find_repeated_there(data, known)
    from discreet.rows.readers.duck import find_repeated

    return find_repeated(data, known)


def has_account(ledger: Ledger | str | os.PathLike[str], account: str) -> bool:
    """Whether there is a ledger with this account."""
    return find_unit(ledger, account) is not None


def find_unit(ledger: Ledger | str | os.PathLike[str], account: str) -> Unit | None:
    """What an account protects; None if there is no such ledger or account."""
    with ExitStack() as stack:
        if not isinstance(ledger, Ledger):
            if not (_is_address(os.fspath(ledger)) or Path(ledger).exists()):
                return None
            ledger = stack.enter_context(open_ledger(ledger))
        return next((found.unit for found in ledger.accounts() if found.name == account), None)


def _remember_source(book: Ledger, account: str, data: Any, beside: Sequence[str]) -> None:
    """Warn if this table was opened under another account, here or in a ledger file beside this one; remember it."""
    marks = mark_source(data, book.key)
    others = [repr(name) for name in book.find_source(marks) if name != account]
    others += [f"{name!r} of {path}" for path, name in _look_beside(book, data)]
    if others:
        mine = f" of {Path(book.place).name}" if Path(book.place).is_file() else ""
        warnings.warn(
            f"this table was opened before under the account {', '.join(others[:3])}; what that account promises holds "
            f"only together with {account!r}{mine}: use one account for the same people",
            PromiseWarning,
            stacklevel=4,
        )
    book.remember_source(account, [*marks, *beside])


def _look_beside(book: Ledger, data: Any) -> Iterator[tuple[str, str]]:
    """The ledger files in the same folder, and their accounts, that know the table."""
    place = Path(book.place)
    if not place.is_file():
        return
    folder = sorted(place.resolve().parent.iterdir())
    beside = [found for found in folder if found.resolve() != place.resolve()]
    from discreet.stores.sqlite import is_ledger

    for found in [found for found in beside if found.is_file() and is_ledger(found)][:MOST_BESIDE]:
        try:
            with open_ledger(found, patience=1.0) as other:
                names = other.find_source(mark_source(data, other.key))
        except DiscreetError:  # somebody else's, or damaged: then it has nothing to tell
            continue
        yield from ((found.name, name) for name in names)


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


def _make_ledger(
    ledger: Ledger | str | os.PathLike[str] | None, stack: ExitStack, inspect: Callable[[Ledger], None]
) -> Ledger:
    """The ledger that is still to be made, now that the rows are found to be sound."""
    assert isinstance(ledger, str | os.PathLike)
    made = stack.enter_context(open_ledger(ledger, create=True))
    inspect(made)
    return made


def _check_funds(ledger: Ledger, account: Account, spend: Finite, request: str) -> None:
    missing = price(spend, account.budget)
    for entry in ledger.entries(account.name):
        if (entry.request == request or entry.request.startswith(f"{request}/")) and entry.cost <= missing:
            missing -= entry.cost
    if not missing <= account.remaining:
        raise Overspent(
            f"account {account.name!r} cannot pay: the release costs {spell(missing)}; "
            f"remaining {spell(account.remaining)}"
        )


def name_data(data: Any, *, durable: bool) -> str:
    """The account of data that nobody names: the file's name."""
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
