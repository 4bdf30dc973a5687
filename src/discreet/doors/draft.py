"""A draft of a schema, by looking at rows or for a part of the budget: one door for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.values.errors import BudgetError

if TYPE_CHECKING:
    from discreet.doors.private_draft import PrivateDraft
    from discreet.rows.draft import Draft


def draft(
    data: Any, *, at_least: int = 10, levels: int = 50, person: str | None = None, **paid: Any
) -> Draft | PrivateDraft:
    """A schema for a file or a frame, to be reviewed; with `epsilon` or `rho`, one that is paid for.

    By looking, it writes nothing that fewer than `at_least` rows hold, or people, if `person` names the column of their
    ids; its guesses are marked, and `release` refuses them until they are reviewed or accepted. With a cost it looks at
    noisy counts only: then `delta`, `ledger`, `account`, `budget`, `at_most`, `create` and `request` are those of
    `release`, and nothing is left to review but what you know better.
    """
    if paid.get("epsilon") is not None or paid.get("rho") is not None:
        from discreet.doors.private_draft import draft_privately

        return draft_privately(data, person=person, **paid)
    if paid:
        raise BudgetError(
            f"{next(iter(paid))} goes with a cost only: give epsilon, epsilon with delta, or rho"
        )
    from discreet.rows.draft import draft_schema

    return draft_schema(data, most_levels=levels, least=at_least, person=person)
