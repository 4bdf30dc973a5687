"""What a release says about privacy: the account as it stood when the release's last answer had been stored.

Not as it stands now: a release that is written again after a crash, or a year later, must say the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.core.book import Account, Entry
from discreet.core.chain import Anchor
from discreet.core.ledger import Ledger
from discreet.values.statement import Debit, Statement


def make_statement(
    ledger: Ledger, name: str, requests: Sequence[str] = (), rows: int | None = None
) -> Statement:
    """The budget, what was spent of it, each debit of these requests, and the ledger's head after the last of them.

    Without requests it is the account as it stands now. `rows` is their number where that is public.
    """
    listed = {entry.request: entry for entry in ledger.entries(name)} if requests else {}
    entries = sorted((listed[request] for request in set(requests)), key=lambda entry: entry.seq)
    account, head = _recall(ledger, name, entries)
    return Statement(
        account.name,
        account.unit,
        account.budget,
        account.spent,
        account.loss,
        _agree(entries, "schema"),
        _agree(entries, "purpose"),
        tuple(map(describe_debit, entries)),
        ledger.id,
        ledger.durable,
        head.count,
        head.hash,
        rows,
    )


def describe_debit(entry: Entry) -> Debit:
    """One debit as a release lists it."""
    verb = str(entry.description.get("verb", ""))
    tables = len(entry.description.get("sets", ())) if verb == "measure" else 0
    return Debit(entry.request, entry.time, verb, tables, entry.cost, entry.digest or "")


def _agree(entries: Sequence[Entry], mark: str) -> str:
    found = {str(entry.description.get(mark, "")) for entry in entries}
    return found.pop() if len(found) == 1 else ""


def _recall(ledger: Ledger, name: str, entries: Sequence[Entry]) -> tuple[Account, Anchor]:
    head = ledger.head()
    last = max((entry.answer_seq or head.count for entry in entries), default=head.count)
    if last == head.count:
        return ledger.account(name), head
    then = ledger.recall(last)
    return then.account(name), then.anchor
