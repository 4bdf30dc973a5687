"""The unit of privacy: what may differ between two neighbouring tables."""

from __future__ import annotations

from enum import StrEnum

from discreet.values.errors import BudgetError


class Unit(StrEnum):
    """A record that is added or removed, or one that is replaced; each has its own sensitivities."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise BudgetError(f"the unit of privacy is add-remove or replace-one, not {value!r}")

    @property
    def fixes_rows(self) -> bool:
        """Whether neighbouring tables have the same number of rows, so that this number is public."""
        return self is Unit.REPLACE_ONE
