"""The way into the airlock from outside: rows first, then the ledger, so that bad rows leave nothing behind."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.core.airlock import Airlock
from discreet.core.ledger import Ledger, open_ledger, require_line, spell
from discreet.rows.opening import open_counter
from discreet.values.budget import ApproxDP, Finite, PureDP, Unit
from discreet.values.errors import BudgetError, LedgerError, Overspent
from discreet.values.schema import Schema


@contextmanager
def enter(
    data: Any,
    schema: Schema,
    *,
    ledger: str | os.PathLike[str],
    account: str,
    spend: Finite,
    request: str,
    budget: Finite | None = None,
    unit: Unit | str | None = None,
    create: bool = False,
    sets: Sequence[Sequence[str]] = (),
    memory: int | str | None = None,
) -> Iterator[Airlock]:
    """An airlock over rows that are checked, with an account that is open; both are closed at the end.

    With `create`, a ledger or an account that is not there is made, with `budget` or else just the `spend`. Before
    that, the rows and the attribute `sets` that will be asked for are checked. The account must be able to pay all
    that is missing for `request`: a learner of several stages must not pay for the first and fail at the second.
    """
    require_line("an account name", account)
    require_line("a request id", request, most=180)  # stages add to it
    wanted = None if unit is None else Unit(unit)
    if budget is not None:
        read_kind(spend, budget)
    exists = _exists(ledger)
    if not exists and not create:
        raise LedgerError(
            f"there is no ledger at {os.fspath(ledger)}; make it with `discreet budget init`, or add --create-ledger"
        )
    if exists:
        with open_ledger(ledger) as opened:
            _check_account(opened, account, spend, request, wanted, create)
    counter = open_counter(data, schema, memory=memory)
    try:
        counter.check(list(sets))
        with open_ledger(ledger, create=create) as opened:
            known = {found.name: found for found in opened.accounts()}.get(account)
            entered = known or opened.open_account(account, budget or spend, wanted or Unit.ADD_REMOVE)
            with Airlock(counter, schema, opened, entered) as airlock:
                yield airlock
    finally:
        counter.close()


def read_kind(spend: Finite, budget: Finite) -> Finite:
    """A spend in the kind of a budget: a pure ε is also an (ε, 0)."""
    if isinstance(spend, PureDP) and isinstance(budget, ApproxDP):
        return ApproxDP(spend.epsilon, 0)
    if type(spend) is not type(budget):
        raise BudgetError(
            f"the account is kept in another kind: its budget is {budget}, the spend is {spend}"
        )
    return spend


def _exists(place: str | os.PathLike[str]) -> bool:
    text = os.fspath(place)
    return text.startswith(("postgresql://", "postgres://")) or Path(text).exists()


def _check_account(
    ledger: Ledger, name: str, spend: Finite, request: str, unit: Unit | None, create: bool
) -> None:
    known = {found.name: found for found in ledger.accounts()}
    if name not in known:
        if create:
            return
        there = ", ".join(sorted(known)[:8]) or "none yet"
        raise LedgerError(
            f"no account {name!r} in this ledger (it has: {there}); open it with `discreet budget init`"
        )
    account = known[name]
    if unit is not None and account.unit is not unit:
        raise BudgetError(f"account {name!r} protects {account.unit}, not {unit}")
    missing = read_kind(spend, account.budget)
    for entry in ledger.entries(name):
        if (entry.request == request or entry.request.startswith(f"{request}/")) and entry.cost <= missing:
            missing -= entry.cost
    if not missing <= account.remaining:
        raise Overspent(
            f"account {name!r} cannot pay: the release needs {spell(missing)}; remaining {spell(account.remaining)}"
        )
