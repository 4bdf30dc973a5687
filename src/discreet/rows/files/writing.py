"""How numbers are written in a file: decimal commas, thousands, units beside them; each cell is read by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from discreet.values.errors import DataError
from discreet.values.text import show

LONGEST_UNIT = 10
UNITS = (
    "€", "EUR", "$", "USD", "£", "GBP", "CHF", "Fr.", "¥", "%", "kg", "g", "mg", "km", "m", "cm", "mm", "l", "ml", "h",
    "min", "s", "°C", "mmHg", "mg/dl", "mmol/l",
)  # fmt: skip
"""What stands beside numbers: a public list."""
DECIMAL_COMMA = r"[+-]?([0-9]{1,3}([.][0-9]{3})+|[0-9]+),[0-9]+"
"""Texts that are numbers with a decimal comma, with or without points between thousands."""
THOUSANDS = r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+([.][0-9]+)?"
"""Texts that are numbers with commas between thousands; 2,466 is one only where a decimal point is said."""
SPACE, DIGITS = "[ \u00a0]*", "[+-]?[0-9][0-9.,]*"
SMALL_COMMA = r".*[0-9],([0-9]{1,2}|[0-9]{4,})([^0-9].*)?"
"""Texts with a comma that stands between no thousands."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How numbers are written."""

    decimal: str = "."
    units: tuple[str, ...] = ()
    """What stands before or behind numbers: €, kg, %."""
    grouped: bool = False
    """Whether commas stand between thousands, because a decimal point is said."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of a file behind its name, to say more of it."""

    name: str
    options: tuple[tuple[str, str], ...] = ()
    decimal: str = "."
    """The decimal sign where none is said."""

    def add(self, more: str) -> str:
        """What to type: the name with its options and these; a unit joins others, anything else replaces its like."""
        added = [tuple(part.split("=", 1)) for part in more.split("&")]
        known = dict(self.options).get("decimal", self.decimal)
        added = [part for part in added if part != ("decimal", ",") or known != ","]
        replaced = {name for name, _ in added if name != "unit"}
        kept = [
            (name, part)
            for name, value in self.options
            if name not in replaced
            for part in (value.split("&") if name == "unit" else [value])
        ]
        said = "&".join(f"{name}={value}" for name, value in dict.fromkeys([*kept, *added]))
        return f"'{self.name}{'?' if said else ''}{said}'"


def read_options(label: str, text: str) -> dict[str, str]:
    """What is said behind a question mark; several units are joined by &, anything else is said once."""
    found: dict[str, str] = {}
    for part in text.split("&"):
        name, _, value = part.partition("=")
        if name in found and name != "unit":
            raise DataError(
                f"{label}: {name}={found[name]} and {name}={value} contradict each other; say one"
            )
        found[name] = f"{found[name]}&{value}" if name in found else value
    return found


def read_writing(label: str, said: Mapping[str, str], usual: str) -> Writing:
    """The decimal sign, and the units that stand beside numbers, if some are said; several are separated by &."""
    decimal = said.get("decimal", usual)
    if decimal not in (",", "."):
        raise DataError(f"{label}: decimal {show(decimal)}; allowed are , and .")
    units = tuple(unit.strip() for unit in said["unit"].split("&")) if "unit" in said else ()
    for unit in units:
        if not 0 < len(unit) <= LONGEST_UNIT or re.search(r"[0-9+\-]", unit):
            raise DataError(
                f"{label}: unit {show(unit)}; allowed are 1 to {LONGEST_UNIT} characters without digits and signs"
            )
        parts = [part.strip() for part in re.split(r",|(?<=[€$£¥%])(?=[€$£¥%])", unit) if part.strip()]
        if len(parts) > 1 or "," in unit:
            each = "&".join(f"unit={part}" for part in parts)
            raise DataError(f"{label}: unit {show(unit)}; say each by itself: {each or 'unit=%'}")
    return Writing(decimal, units, "decimal" in said and decimal == ".")


def write_numbers(scan: str, columns: int, writing: Writing) -> str:
    """The scan with numbers as they are written everywhere: a point, no thousands, no unit."""
    if writing.decimal == "." and not writing.units and not writing.grouped:
        return scan
    names = [f"c{i}" for i in range(columns)]
    cells = [f"CASE {_write_cases(name, writing)} ELSE {name} END AS {name}" for name in names]
    return f"(SELECT {', '.join(cells)} FROM {scan} AS written({', '.join(names)}))"


def _write_cases(cell: str, writing: Writing) -> str:
    cases = []
    decimal, group = writing.decimal, "." if writing.decimal == "," else ","
    if writing.units:
        mark = "|".join(map(re.escape, writing.units)).replace("'", "''")
        whole = f"([0-9]{{1,3}}([{group}][0-9]{{3}})+|[0-9]+)([{decimal}][0-9]+)?"
        number = f"(({mark}){SPACE}[+-]?{whole}|[+-]?{whole}{SPACE}({mark}))"
        bare = f"regexp_replace({cell}, '^({mark}){SPACE}|{SPACE}({mark})$', '')"
        cases.append(
            f"WHEN regexp_full_match({cell}, '{number}') THEN replace(replace({bare}, '{group}', ''), '{decimal}', '.')"
        )
    if decimal == ",":
        plain = f"replace(replace({cell}, '.', ''), ',', '.')"
        cases.append(f"WHEN regexp_full_match({cell}, '{DECIMAL_COMMA}') THEN {plain}")
    if writing.grouped:
        cases.append(f"WHEN regexp_full_match({cell}, '{THOUSANDS}') THEN replace({cell}, ',', '')")
    return " ".join(cases)


def write_unit(units: tuple[str, ...]) -> str:
    """The pattern of numbers with one of these units before or behind them."""
    listed = "|".join(map(re.escape, units))
    return f"(?:{listed}){SPACE}{DIGITS}|{DIGITS}{SPACE}(?:{listed})"


def name_writing(text: str) -> str:
    """What to say of a file so that this text is read as the number that it writes; nothing if it is none."""
    if re.fullmatch(THOUSANDS, text):
        return "decimal=."
    if re.fullmatch(DECIMAL_COMMA, text):
        return "decimal=,"
    unit = next((unit for unit in UNITS if re.fullmatch(write_unit((unit,)), text)), None)
    if unit is None:
        return ""
    return f"unit={unit}&decimal=," if re.fullmatch(SMALL_COMMA, text) else f"unit={unit}"


def describe_writing(writing: str) -> str:
    """What such numbers have, in words."""
    if "unit=" in writing:
        return "a unit"
    return "a decimal comma" if writing == "decimal=," else "commas between thousands"
