"""What a release says about privacy: the account as it stood when the release's last answer had been stored.

Not as it stands now: a release that is written again after a crash, or a year later, must say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.core.ledger import Account, Anchor, Entry, Ledger


def make_statement(ledger: Ledger, name: str, requests: Sequence[str] = ()) -> dict[str, Any]:
    """The budget, what was spent of it, each spend of these requests, and the ledger's head after the last of them.

    Without requests it is the account as it stands now. `schema` and `purpose` are the fingerprints that each debit was
    made with: of the schema, and of how the learner was called; empty if the debits differ in it.
    """
    listed = {entry.request: entry for entry in ledger.entries(name)} if requests else {}
    spends = sorted((listed[request] for request in set(requests)), key=lambda entry: entry.seq)
    account, head = _recall(ledger, name, spends)
    return {
        "account": account.name,
        "unit": account.unit.value,
        "budget": account.budget.to_json(),
        "spent": account.spent.to_json(),
        "loss": account.loss.to_json(),
        "schema": _agree(spends, "schema"),
        "purpose": _agree(spends, "purpose"),
        "spends": [describe_spend(entry) for entry in spends],
        "ledger": {"id": ledger.id, "durable": ledger.durable, "events": head.count, "head": head.hash},
    }


def describe_spend(entry: Entry) -> dict[str, Any]:
    """One spend as a release lists it; the digest is that of the stored answer, so nobody can swap the answer later."""
    tables = len(entry.description.get("sets", ())) if entry.description.get("verb") == "measure" else 0
    return {
        "request": entry.request,
        "time": entry.time,
        "verb": str(entry.description.get("verb", "")),
        "tables": tables,
        "cost": entry.cost.to_json(),
        "digest": entry.digest or "",
    }


def _agree(spends: Sequence[Entry], mark: str) -> str:
    found = {str(entry.description.get(mark, "")) for entry in spends}
    return found.pop() if len(found) == 1 else ""


def _recall(ledger: Ledger, name: str, spends: Sequence[Entry]) -> tuple[Account, Anchor]:
    head = ledger.head()
    last = max((entry.answer_seq or head.count for entry in spends), default=head.count)
    if last == head.count:
        return ledger.account(name), head
    then = ledger.recall(last)
    return then.account(name), then.anchor
