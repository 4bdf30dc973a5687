"""How the cells of a column are read: spellings of missing, aliases, what is ignored, and what is outside.

Each rule looks at one cell alone. So a record that is added or removed adds or removes at most one record of what is
counted, also where records are left out, and every sensitivity holds as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from discreet.values.errors import SchemaError
from discreet.values.schema.dates import Order
from discreet.values.text import require_label, show

Outside = Literal["refuse", "nearest", "missing", "leave out"]
Ignored = Literal["case", "blanks"]

BLANKS = " \t\n\r\f\v"
"""What is cut off at both ends of a text whose blanks are ignored, in every engine."""

_LETTERS = [chr(i) for i in range(0x0530) if chr(i).lower() != chr(i) and len(chr(i).lower()) == 1]
UPPER = "".join(_LETTERS)
"""The capital letters that are ignored: Latin, Greek and Cyrillic ones with one small letter each, in every engine."""
LOWER = "".join(letter.lower() for letter in _LETTERS)

_SMALL = str.maketrans(UPPER, LOWER)


@dataclass(frozen=True, slots=True)
class Reading:
    """How one column is read; without any rule a cell is what it says, and what is not declared is refused.

    `nulls` are texts and whole numbers that mean a missing value, `aliases` other spellings with their levels. `order`
    says how dates such as 1/2/2020 are meant. `outside` says what becomes of everything else: the nearest bin, the
    missing level, or the record is left out.
    """

    nulls: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    ignore: tuple[Ignored, ...] = ()
    outside: Outside = "refuse"
    order: Order | None = None

    def __post_init__(self) -> None:
        if self.outside not in get_args(Outside):
            raise SchemaError(f"outside {show(self.outside)}; allowed are {', '.join(get_args(Outside))}")
        for what in self.ignore:
            if what not in get_args(Ignored):
                raise SchemaError(f"ignore {show(what)}; allowed are {', '.join(get_args(Ignored))}")
        if self.order not in (None, *get_args(Order)):
            raise SchemaError(f"order {show(self.order)}; allowed are {', '.join(get_args(Order))}")
        for spelling in (*self.nulls, *(alias for alias, _ in self.aliases)):
            require_label("spelling", spelling)
        object.__setattr__(self, "ignore", tuple(sorted(set(self.ignore))))

    @classmethod
    def of(
        cls,
        *,
        nulls: Iterable[object] = (),
        aliases: Mapping[str, Iterable[object]] | None = None,
        ignore: Iterable[Ignored] = (),
        outside: Outside = "refuse",
        order: Order | None = None,
    ) -> Reading:
        """A reading from plain values: `aliases` maps each level to its other spellings."""
        pairs = [
            (_write(alias), level) for level, listed in (aliases or {}).items() for alias in _list(listed)
        ]
        return cls(tuple(map(_write, _list(nulls))), tuple(pairs), tuple(_list(ignore)), outside, order)  # type: ignore[arg-type]

    def fold(self, text: str) -> str:
        """A text without what is ignored of it."""
        if "blanks" in self.ignore:
            text = text.strip(BLANKS)
        return text.translate(_SMALL) if "case" in self.ignore else text


AS_WRITTEN = Reading()
"""Every cell is what it says, and what is not declared is refused."""


def _list(values: Iterable[object] | str) -> list[object]:
    return [values] if isinstance(values, str) else list(values)


def _write(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise SchemaError(
            f"spelling {show(value)} is a {type(value).__name__}; it must be text or a whole number"
        )
    return value
