"""What holds between columns by their nature, declared by people: it costs nothing, and holds in every synthetic row.

A constraint is the set of combinations of levels that can be, as a table of truth values; what is left open by levels
that are bins is settled when values are drawn inside them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.values.errors import SchemaError
from discreet.values.schema.types import Type, find_ranges, infer_type, read_value
from discreet.values.table import Table, require_cells
from discreet.values.text import list_some, require_label, require_name, show

if TYPE_CHECKING:
    from discreet.values.schema import Attribute, Schema

Choice = tuple[tuple[str, tuple[str, ...]], ...]
"""Attributes, each with the levels, or the comparisons such as '< 16', of which one must be true."""

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Ordered:
    """One column is never above another: `left <= right`, or `left < right`; missing values are not compared."""

    left: str
    sign: Literal["<", "<="]
    right: str

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it is about."""
        return self.left, self.right

    def require(self, schema: Schema) -> None:
        """Refuse columns that cannot be compared."""
        if self.sign not in ("<", "<="):
            raise SchemaError(f"constraint {self}: the sign is {show(self.sign)}; allowed are < and <=")
        left, right = _take(schema, self.names, str(self))
        if left.name == right.name:
            raise SchemaError(f"constraint {self}: a column is compared with itself")
        weekday = any(found.dates is not None and found.dates.by == "weekday" for found in (left, right))
        steps = [(found.type, found.decimals) for found in (left, right)]
        alike = not weekday and steps[0] == steps[1] and left.type not in ("text", "boolean")
        ranked = left.ordered and right.ordered and left.values == right.values and left.type == "text"
        if not alike and not ranked:
            raise SchemaError(
                f"constraint {self}: {_describe(left)} and {_describe(right)} cannot be compared; allowed are two "
                "columns of one type and precision, or ordered ones with the same levels"
            )
        if self.sign == "<" and left.type == "decimal" and left.decimals is None:
            raise SchemaError(
                f"constraint {self}: numbers without a precision are compared by <=; declare `decimals` for <"
            )
        _require_possible(self, schema)

    def table(self, schema: Schema) -> Table:
        """Which pairs of levels hold values of which the first is not above the second."""
        left, right = (schema[name] for name in self.names)
        (low, _), (_, high) = find_ranges(left), find_ranges(right)
        possible = np.ones((left.size, right.size), dtype=bool)
        compare = _COMPARE[self.sign]
        possible[: len(low), : len(high)] = compare(low[:, None], high[None, :])
        return Table(self.names, possible)

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


@dataclass(frozen=True, slots=True)
class Implied:
    """If all of some attributes are as said, then all of some others are as said, too."""

    when: Choice
    then: Choice

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it is about."""
        return tuple(name for name, _ in (*self.when, *self.then))

    def require(self, schema: Schema) -> None:
        """Refuse unknown attributes and levels, and comparisons that cut a bin in two."""
        if not self.when or not self.then:
            raise SchemaError(f"constraint {self}: both `if` and `then` need at least one attribute")
        if len(set(self.names)) != len(self.names):
            raise SchemaError(f"constraint {self}: an attribute is named twice")
        _take(schema, self.names, str(self))
        _require_possible(self, schema)

    def table(self, schema: Schema) -> Table:
        """Which combinations of levels can be."""
        sizes = [schema[name].size for name in self.names]
        require_cells(f"constraint {self}", sizes)
        when, then = np.ones(sizes, dtype=bool), np.ones(sizes, dtype=bool)
        for i, (name, wanted) in enumerate((*self.when, *self.then)):
            chosen = choose_levels(schema[name], wanted)
            along = chosen.reshape([-1 if axis == i else 1 for axis in range(len(sizes))])
            part = when if i < len(self.when) else then
            part &= along
        return Table(self.names, ~when | then)

    def __str__(self) -> str:
        return f"if {_spell(self.when)} then {_spell(self.then)}"


@dataclass(frozen=True, slots=True)
class Listed:
    """Only these combinations of levels can be, a public list."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def require(self, schema: Schema) -> None:
        """Refuse unknown attributes and levels."""
        if len(self.names) < 2 or len(set(self.names)) != len(self.names):
            raise SchemaError(f"{self}: at least 2 different columns are needed")
        found = _take(schema, self.names, str(self))
        for row in self.rows:
            if len(row) != len(self.names):
                raise SchemaError(f"{self}: {show(row)} has {len(row)} levels for {len(self.names)} columns")
            for attribute, level in zip(found, row, strict=True):
                attribute.code(level)
        _require_possible(self, schema)

    def table(self, schema: Schema) -> Table:
        """Which combinations of levels can be."""
        found = [schema[name] for name in self.names]
        require_cells(str(self), [attribute.size for attribute in found])
        possible = np.zeros([attribute.size for attribute in found], dtype=bool)
        for row in self.rows:
            possible[tuple(one.code(level) for one, level in zip(found, row, strict=True))] = True
        return Table(self.names, possible)

    def __str__(self) -> str:
        return f"combinations of {', '.join(self.names)}"


Constraint = Ordered | Implied | Listed


@dataclass(frozen=True, slots=True)
class Follows:
    """A column that follows from others by a public map; combinations of levels that it leaves out give no value."""

    name: str
    sources: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """For each combination of levels of the sources, these levels and then the value."""
    type: Type = ""  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if len(self.type) == 0:
            object.__setattr__(self, "type", self.inferred_type)

    @property
    def values(self) -> tuple[str, ...]:
        """The different values, in the order of the map."""
        return tuple(dict.fromkeys(row[-1] for row in self.rows))

    @property
    def inferred_type(self) -> Type:
        """The type that all the values write."""
        return infer_type(self.values, False)

    def require(self, schema: Schema) -> None:
        """Refuse unknown sources and levels, and a map that gives two values."""
        require_name("column", self.name)
        what = f"column {show(self.name)}, which follows from others"
        if not self.sources or len(set(self.sources)) != len(self.sources) or not self.rows:
            raise SchemaError(f"{what}: it needs different columns to follow from, and a map")
        if self.type not in ("text", self.inferred_type):
            raise SchemaError(
                f"{what}: type {show(self.type)}; its values allow text" + f" or {self.inferred_type}"
            )
        found = _take(schema, self.sources, what)
        known: dict[tuple[str, ...], str] = {}
        for row in self.rows:
            if len(row) != len(self.sources) + 1:
                raise SchemaError(f"{what}: {show(row)} needs {len(self.sources)} levels and a value")
            for attribute, level in zip(found, row[:-1], strict=True):
                attribute.code(level)
            require_label("value", row[-1])
            if known.setdefault(row[:-1], row[-1]) != row[-1]:
                raise SchemaError(f"{what}: {show(row[:-1])} has two values")
        require_cells(what, [attribute.size for attribute in found])

    def lookup(self, schema: Schema) -> npt.NDArray[np.int32]:
        """The position of the value for each combination of codes of the sources, -1 where there is none."""
        found = [schema[name] for name in self.sources]
        place = {value: i for i, value in enumerate(self.values)}
        codes = np.full([attribute.size for attribute in found], -1, dtype=np.int32)
        for row in self.rows:
            codes[tuple(one.code(level) for one, level in zip(found, row[:-1], strict=True))] = place[row[-1]]
        return codes


def close_order(schema: Schema) -> list[tuple[str, str, int]]:
    """Every pair of columns of which one is never above the other, also by way of others, and by how many steps.

    With all these pairs, values fit a whole order of columns if and only if they fit each pair of it: give each column
    the greatest of the least values below it. The pairs come in the order of their left column.
    """
    steps: dict[tuple[str, str], int] = {}
    for one in schema.constraints:
        if isinstance(one, Ordered):
            gap = int(one.sign == "<")
            steps[one.left, one.right] = max(gap, steps.get((one.left, one.right), 0))
    names = list(dict.fromkeys(name for pair in steps for name in pair))
    for middle in names:
        for left in names:
            for right in names:
                if (left, middle) in steps and (middle, right) in steps:
                    longer = steps[left, middle] + steps[middle, right]
                    steps[left, right] = max(longer, steps.get((left, right), 0))
    circle = next((name for name in names if (name, name) in steps), None)
    if circle is not None:
        raise SchemaError(f"constraints: the order of {show(circle)} and others goes round in a circle")
    above = {name: sum(left == name for left, _ in steps) for name in names}
    pairs = sorted(steps, key=lambda pair: -above[pair[0]])
    return [(left, right, steps[left, right]) for left, right in pairs]


def tabulate(schema: Schema) -> list[Table]:
    """What can be, as tables of truth values, one for each constraint; an order of columns as all its pairs."""
    found = [one.table(schema) for one in schema.constraints if not isinstance(one, Ordered)]
    for left, right, gap in close_order(schema):
        (low, _), (_, high) = find_ranges(schema[left]), find_ranges(schema[right])
        possible = np.ones((schema[left].size, schema[right].size), dtype=bool)
        possible[: len(low), : len(high)] = (low[:, None] + gap if gap else low[:, None]) <= high[None, :]
        found.append(Table((left, right), possible))
    return found


def choose_levels(attribute: Attribute, wanted: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which levels are meant: each text is a level, or a comparison such as '< 16', '>= III' or '!= married'."""
    chosen = np.zeros(attribute.size, dtype=bool)
    for text in wanted:
        sign, _, operand = text.partition(" ")
        if text in attribute:
            chosen[attribute.code(text)] = True
        elif sign == "!=" and operand:
            chosen |= np.arange(attribute.size) != attribute.code(operand)
        elif sign in _COMPARE and operand:
            chosen |= _compare_levels(attribute, sign, operand)
        else:
            attribute.code(text)  # refuses it
    return chosen


def _compare_levels(attribute: Attribute, sign: str, operand: str) -> npt.NDArray[np.bool_]:
    what = f"{attribute.name} {sign} {operand}"
    value = read_value(attribute, operand)
    if value is None:
        hint = "; write a whole date, such as 2024-01-31" if attribute.type in ("date", "datetime") else ""
        raise SchemaError(
            f"constraint on {show(what)}: {_describe(attribute)} has no such value or order{hint}"
        )
    low, high = find_ranges(attribute)
    compare = _COMPARE[sign]
    first, last = compare(low, value), compare(high, value)
    cut = np.flatnonzero(first != last)
    if cut.size:
        level = attribute.levels[cut[0]]
        ends = ("<=", ">") if attribute.bins is not None and attribute.bins.closed == "right" else ("<", ">=")
        whole = ends[sign in (">", ">=")]
        near = " or ".join(f"{attribute.name} {whole} {edge}" for edge in level.strip("[]()").split(", "))
        if ", " not in level:
            near = f"{attribute.name} {whole} the first day of a level"
        raise SchemaError(
            f"constraint on {show(what)}: it cuts the level {show(level)} in two; write {near}, or add an edge"
        )
    chosen = np.zeros(attribute.size, dtype=bool)
    chosen[: len(low)] = first
    return chosen


def _require_possible(constraint: Constraint, schema: Schema) -> None:
    sizes = [schema[name].size for name in constraint.names]
    require_cells(f"constraint {constraint}", sizes)
    if not constraint.table(schema).values.any():
        raise SchemaError(f"constraint {constraint}: no combination of levels fulfils it")


def _take(schema: Schema, names: Sequence[str], what: str) -> list[Attribute]:
    for name in names:
        if name not in schema:
            raise SchemaError(
                f"{what}: unknown attribute {show(name)}; the schema has {list_some(schema.names, name)}"
            )
    return [schema[name] for name in names]


def _describe(attribute: Attribute) -> str:
    precision = "" if attribute.decimals is None else f" with {attribute.decimals} decimals"
    return f"{show(attribute.name)} ({attribute.type}{precision})"


def _spell(choice: Choice) -> str:
    return " and ".join(f"{name} = {' or '.join(wanted)}" for name, wanted in choice)
