"""The unit of privacy: what may differ between two neighbouring tables."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from typing import ClassVar

from discreet.values.errors import BudgetError

MOST_ROWS_OF_A_PERSON = 1000
"""More would need so much noise that nothing is left to publish."""
MOST_AVERAGED = 10
"""People's averages are counted in parts of 1/lcm(1, …, k): 1/12 for k = 4, 1/2520 for k = 10."""
MOST_WEIGHT = 10**6
"""The most that a row with a weight may count."""
AUTO = 0
"""The `at_most` of people before it is chosen, privately, from how many rows they have."""

_BOUNDED = re.compile(
    r'(person|row weighing) ("(?:[^"\\]|\\.)*"), (?:at most ([1-9][0-9]{0,6})|(at most auto))(, averaged)?'
)


@dataclass(frozen=True, slots=True)
class Unit:
    """One row that is added or removed, one that is replaced, one person who is added or removed, or one weighted row.

    A person is all rows with one value in the column `person`; of these at most `at_most` count, chosen by a secret
    that depends on that person's rows alone. Rows without a value there are left out. With `average`, each of the j
    rows of a person that count weighs 1/j, so that tables speak of people. A row with a `weight` counts that often, and
    at most `at_most` times. Two tables are neighbours if they differ in one such unit, so one unit moves a table of
    counts by `moves`.
    """

    relation: str
    person: str = ""
    at_most: int = 1
    weight: str = ""
    average: bool = False

    ADD_REMOVE: ClassVar[Unit]
    REPLACE_ONE: ClassVar[Unit]

    def __post_init__(self) -> None:
        if self.relation not in ("add-remove", "replace-one"):
            raise BudgetError(f"the unit of privacy is add-remove or replace-one, not {self.relation!r}")
        if self.person and self.weight:
            raise BudgetError("give a person or a weight, not both")
        if self.average and not self.person:
            raise BudgetError("--per-person needs --person, the column with people's ids")
        most = MOST_WEIGHT if self.weight else MOST_AVERAGED if self.average else MOST_ROWS_OF_A_PERSON
        least = AUTO if self.person else 1
        if type(self.at_most) is not int or not least <= self.at_most <= most:
            why = " with --per-person average" if self.average else ""
            raise BudgetError(f"--at-most must be a number from 1 to {most:,}{why}, not {self.at_most!r}")
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
        column, most = json.loads(found[2]), AUTO if found[4] else int(found[3])
        if found[1] == "person":
            return cls("add-remove", column, most, average=bool(found[5]))
        return cls("add-remove", at_most=most, weight=column, average=bool(found[5]))

    @classmethod
    def choose(
        cls,
        unit: Unit | str | None = None,
        person: str | None = None,
        at_most: int | str | None = None,
        per_person: str | None = None,
    ) -> Unit | None:
        """The unit that --unit, or --person with --at-most, stands for; None if nothing is said."""
        if person is None and at_most is None and per_person is None:
            return None if unit is None else cls.read(unit)
        if unit is not None and cls.read(unit) != cls("add-remove"):
            raise BudgetError(f"give --person or --unit, not both: {person!r} and {unit}")
        if person is None:
            option = "--at-most" if at_most is not None else "--per-person"
            raise BudgetError(f"{option} needs --person, the column with people's ids")
        if not person or not person.strip():
            raise BudgetError("--person needs the name of the column that holds people's ids; it is empty")
        if at_most is None:
            raise BudgetError(
                f"--person {person} needs --at-most, how many rows of each person count, such as --at-most 4 "
                "(in Python at_most=4)"
            )
        if per_person not in (None, "rows", "average"):
            raise BudgetError(f"--per-person is rows or average, not {per_person!r}")
        return cls("add-remove", person, _read_at_most(at_most), average=per_person == "average")

    @property
    def is_open(self) -> bool:
        """Whether it is still to be chosen how many rows of a person count."""
        return bool(self.person) and self.at_most == AUTO

    def fix(self, at_most: int) -> Unit:
        """The unit once it is chosen how many rows of a person count."""
        return replace(self, at_most=at_most)

    def require_rows(self, what: str) -> None:
        """Refuse a mechanism whose answer would mean something else if people were averaged."""
        if self.average:
            raise BudgetError(
                f"{what} counts rows, not people's averages; open an account without --per-person average"
            )

    @property
    def grain(self) -> int:
        """How many parts one person is counted in: lcm(1, …, k) where rows weigh 1/j each, else 1."""
        return math.lcm(*range(1, self.at_most + 1)) if self.average else 1

    @property
    def reach(self) -> int:
        """How many rows of weight 1 the rows of one unit are worth at most, in parts of the grain.

        A row of weight w in a table of whole numbers is w equal rows, so all that holds for at most k rows of a person
        holds for people's averages with k = grain.
        """
        return self.grain if self.average else self.at_most

    @property
    def value(self) -> str:
        """The unit as one line of text, the same for the same unit."""
        if not (self.person or self.weight):
            return self.relation
        what, column = ("person", self.person) if self.person else ("row weighing", self.weight)
        most = "auto" if self.is_open else self.at_most
        averaged = ", averaged" if self.average else ""
        return f"{what} {json.dumps(column, ensure_ascii=False)}, at most {most}{averaged}"

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
        if self.is_open:
            raise BudgetError(f"how many rows count of each {self.person!r} is not chosen yet")
        return (1, 1) if self.fixes_rows else (self.reach,)

    @property
    def hidden(self) -> str:
        """What a promise hides, in words."""
        if self.average:
            return (
                "whether any one person is in the table or not (each counts once, as the average of at most "
                f"{self.at_most} of their rows)"
            )
        if self.person:
            rows = "row counts" if self.at_most == 1 else f"{self.at_most} rows count"
            return f"whether any one person is in the table or not (of each person at most {rows})"
        if self.fixes_rows:
            return "what any one row of the table says"
        if self.weight:
            return f"whether any one row is in the table or not (a row counts at most {self.at_most} times)"
        return "whether any one row is in the table or not"


def _read_at_most(value: int | str) -> int:
    if isinstance(value, str):
        if value.strip() == "auto":
            return AUTO
        if not re.fullmatch(r"[1-9][0-9]{0,6}", value.strip()):
            raise BudgetError(f"--at-most must be a number, such as 4, or auto, not {value!r}")
        return int(value)
    if value == AUTO:
        raise BudgetError(f"--at-most must be a number from 1 to {MOST_ROWS_OF_A_PERSON:,}, not {value!r}")
    return value


Unit.ADD_REMOVE = Unit("add-remove")
Unit.REPLACE_ONE = Unit("replace-one")

ROW_UNITS = (Unit.ADD_REMOVE, Unit.REPLACE_ONE)
"""The units of tables in which nobody has more than one row."""
