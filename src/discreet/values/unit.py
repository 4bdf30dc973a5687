"""The unit of privacy: what may differ between two neighbouring tables."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import ClassVar

from discreet.values.errors import BudgetError

MOST_ROWS_OF_A_PERSON = 1000
"""More would need so much noise that nothing is left to publish."""
MOST_WEIGHT = 10**6
"""The most that a row with a weight may count."""

_BOUNDED = re.compile(r'(person|row weighing) ("(?:[^"\\]|\\.)*"), at most ([1-9][0-9]{0,6})')


@dataclass(frozen=True, slots=True)
class Unit:
    """One row that is added or removed, one that is replaced, one person who is added or removed, or one weighted row.

    A person is all rows with one value in the column `person`; of these at most `at_most` count, chosen by a secret
    that depends on that person's rows alone. Rows without a value there are left out. A row with a `weight` counts that
    often, and at most `at_most` times. Two tables are neighbours if they
    differ in one such unit, so one unit moves a table of counts by `moves`.
    """

    relation: str
    person: str = ""
    at_most: int = 1
    weight: str = ""

    ADD_REMOVE: ClassVar[Unit]
    REPLACE_ONE: ClassVar[Unit]

    def __post_init__(self) -> None:
        if self.relation not in ("add-remove", "replace-one"):
            raise BudgetError(f"the unit of privacy is add-remove or replace-one, not {self.relation!r}")
        if self.person and self.weight:
            raise BudgetError("give a person or a weight, not both")
        most = MOST_WEIGHT if self.weight else MOST_ROWS_OF_A_PERSON
        if type(self.at_most) is not int or not 1 <= self.at_most <= most:
            raise BudgetError(f"--at-most must be a number from 1 to {most:,}, not {self.at_most!r}")
        if (self.person or self.weight) and self.relation == "replace-one":
            raise BudgetError(
                "people and weighted rows go with add-remove only: replacing one changes the number of rows"
            )
        if self.at_most > 1 and not (self.person or self.weight):
            raise BudgetError(
                "--at-most needs --person, the column with people's ids, such as --person patient_id"
            )

    @classmethod
    def read(cls, value: Unit | str) -> Unit:
        """The unit that is meant by its text, as it stands in ledgers and releases."""
        if isinstance(value, Unit):
            return value
        found = _BOUNDED.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            return cls(value)
        column, most = json.loads(found[2]), int(found[3])
        if found[1] == "person":
            return cls("add-remove", column, most)
        return cls("add-remove", at_most=most, weight=column)

    @classmethod
    def choose(
        cls, unit: Unit | str | None = None, person: str | None = None, at_most: int | None = None
    ) -> Unit | None:
        """The unit that --unit, or --person with --at-most, stands for; None if nothing is said."""
        if person is None and at_most is None:
            return None if unit is None else cls.read(unit)
        if unit is not None and cls.read(unit) != cls("add-remove"):
            raise BudgetError(f"give --person or --unit, not both: {person!r} and {unit}")
        if not person or not person.strip():
            raise BudgetError("--person needs the name of the column that holds people's ids; it is empty")
        if at_most is None:
            raise BudgetError(
                f"--person {person} needs --at-most, how many rows of each person count, such as --at-most 4"
            )
        return cls("add-remove", person, at_most)

    @property
    def value(self) -> str:
        """The unit as one line of text, the same for the same unit."""
        if not (self.person or self.weight):
            return self.relation
        what, column = ("person", self.person) if self.person else ("row weighing", self.weight)
        return f"{what} {json.dumps(column, ensure_ascii=False)}, at most {self.at_most}"

    def __str__(self) -> str:
        return self.value

    @property
    def fixes_rows(self) -> bool:
        """Whether neighbouring tables have the same number of rows, so that this number is public."""
        return self.relation == "replace-one"

    @property
    def moves(self) -> tuple[int, ...]:
        """How one unit moves a table of counts at most: the change of each cell that it touches.

        A row that is added moves one cell by 1, one that is replaced two cells by 1 each. All k rows of a person may
        fall into one cell, which is the worst case in L1 (k) as in L2 (k).
        """
        return (1, 1) if self.fixes_rows else (self.at_most,)

    @property
    def hidden(self) -> str:
        """What a promise hides, in words."""
        if self.person:
            rows = "row counts" if self.at_most == 1 else f"{self.at_most} rows count"
            return f"whether any one person is in the table or not (of each person at most {rows})"
        if self.fixes_rows:
            return "what any one row of the table says"
        if self.weight:
            return f"whether any one row is in the table or not (a row counts at most {self.at_most} times)"
        return "whether any one row is in the table or not"


Unit.ADD_REMOVE = Unit("add-remove")
Unit.REPLACE_ONE = Unit("replace-one")

ROW_UNITS = (Unit.ADD_REMOVE, Unit.REPLACE_ONE)
"""The units of tables in which nobody has more than one row."""
