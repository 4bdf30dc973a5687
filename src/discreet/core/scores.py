"""Scores of candidate families: the value and how far one row can move it, in one object.

A candidate is a table of counts whose LAST axis is the child X; all other axes together are the parents Π.
The sensitivity is worked out from shapes, unit and the public number of rows alone, before any row is read. A unit of
at most k rows is k rows added one after the other, so it moves a score by at most k times what one row does.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from discreet.core.score_f import score_tables
from discreet.values.budget import round_up
from discreet.values.errors import MechanismError
from discreet.values.table import Array, Table, count_cells
from discreet.values.unit import Unit

Floats = npt.NDArray[np.float64]
Shape = tuple[int, ...]

MOST_ROWS = 2**31 - 1
"""Beyond it n·count no longer fits an int64, and the scores would not be exact."""


class Score(Protocol):
    """What `select` needs of a score."""

    @property
    def name(self) -> str:
        """How the ledger and a release call it."""

    @property
    def has_model(self) -> bool:
        """Whether the score depends on more than the table: then every choice has its own values."""

    @property
    def digest(self) -> str:
        """What tells two scores of one name apart: of the model that they compare with, if any."""

    def sensitivity(self, shapes: Sequence[Shape], unit: Unit, rows: int | None = None) -> Fraction:
        """How far one row can move it, for candidates of these shapes."""

    def evaluate(self, tables: Sequence[Table]) -> Floats:
        """The value for each candidate's table of counts."""


class _OfTheTable:
    """What scores share that depend on the table of counts alone: no model, and the digest of nothing."""

    __slots__ = ()
    has_model, digest = False, hashlib.sha256().hexdigest()


@dataclass(frozen=True, slots=True)
class MutualInformation(_OfTheTable):
    """I(X; Π) in bits [004, Eq. 5], for replace-one only.

    Sensitivity [004, Lemma 1], with log to the base 2 as in the value:
    (1/n)·log n + ((n−1)/n)·log(n/(n−1)) if X or Π has two levels,
    (2/n)·log((n+1)/2) + ((n−1)/n)·log((n+1)/(n−1)) otherwise. Under add-remove it is refused: a row in an
    empty row and column of the table moves n·I by log(n+1) + n·log((n+1)/n), and n is private.
    """

    name: str = "mutual information"

    def sensitivity(self, shapes: Sequence[Shape], unit: Unit, rows: int | None = None) -> Fraction:
        """Lemma 1, rounded up, plus what the float logarithms of two tables may be off by."""
        if not unit.fixes_rows:
            raise MechanismError(f"{self.name} has no bounded sensitivity under add-remove; use R or F")
        if rows is None or not 2 <= rows <= MOST_ROWS:
            raise MechanismError(
                f"{self.name} needs the public number of rows, from 2 to {MOST_ROWS:,}, not {rows}"
            )
        n, below = float(rows), float(rows - 1)
        two_levels = math.log2(n) / n + below / n * math.log2(n / below)
        more_levels = 2 / n * math.log2((n + 1) / 2) + below / n * math.log2((n + 1) / below)
        lemma = max(two_levels if 2 in (x, pi) else more_levels for pi, x in _fold_all(shapes))
        # Four sums of c·log c, each to 32 units of 2^-53, in two tables: 256·2^-53·log n, below 2^-44·log n.
        return round_up(lemma + 2.0**-44 * math.log2(n))

    def evaluate(self, tables: Sequence[Table]) -> Floats:
        """I = (Σ c·log c − Σ c_x·log c_x − Σ c_π·log c_π + n·log n)/n for each candidate."""
        return _evaluate(tables, _information)


@dataclass(frozen=True, slots=True)
class MaximumDistance(_OfTheTable):
    """n·F(X, Π) [004, Eq. 7]: minus the rows to move until Π decides a uniform X; a child of two levels.

    −n·F is the least over all ways to give each level of Π to X=0 or X=1 of (n/2 − a)₊ + (n/2 − b)₊, with
    a and b the rows that X=0 and X=1 got. Replacing a row moves the table by 2 in L1, so n·F by 1
    [004, Thm. 2]. Adding one raises n/2 by ½ and at most one of a and b by 1, so every way's sum, and hence
    the least, changes by −½ to 1.
    """

    name: str = "F"

    def sensitivity(self, shapes: Sequence[Shape], unit: Unit, rows: int | None = None) -> Fraction:
        """1 for each row of a unit; values are halves of integers, so nothing is rounded."""
        for pi, x in _fold_all(shapes):
            if x != 2 or pi < 2:
                raise MechanismError(
                    f"F needs a child of 2 levels and parents of 2 or more, not {x} and {pi}"
                )
        return Fraction(unit.reach)

    def evaluate(self, tables: Sequence[Table]) -> Floats:
        """n·F for each candidate, by dynamic programming."""
        return score_tables([_flatten(table) for table in tables])


@dataclass(frozen=True, slots=True)
class IndependenceDistance(_OfTheTable):
    """n·R(X, Π), R = ½‖P[X,Π] − P[X]P[Π]‖₁ (the journal version of 004): rows to move until X ⊥ Π.

    With D = c − c_x⊗c_π/n, u and v the changes of c_x and c_π, q' the new P[Π] and p the old P[X]:
    replace-one: D' − D = w − u⊗q' − p⊗v with ‖w‖, ‖u‖, ‖v‖ ≤ 2 and ‖p‖ = ‖q'‖ = 1, so n·R moves by at most 3
    (the printed 3 + 2/n splits off u⊗v, which q' absorbs). If X or Π has two levels, by at most 2: for X in
    {0, 1} and a row moved from (x₀, π₀) to (x₁, π₁), ½‖D' − D‖ = |p₀ − q₁| + |p₁ − q₀| + 1 − q₀ − q₁ ≤ 2.
    add-remove: D' − D = (n·e⊗e + c_x⊗c_π/n − c_x⊗e − e⊗c_π)/(n+1), so at most ½·4n/(n+1) < 2.
    """

    name: str = "R"

    def sensitivity(self, shapes: Sequence[Shape], unit: Unit, rows: int | None = None) -> Fraction:
        """2 or 3 for each row of a unit, plus the rounding of the one division in each of two values."""
        folded = _fold_all(shapes)
        wide = unit.fixes_rows and any(2 not in shape for shape in folded)
        return unit.reach * ((3 if wide else 2) + Fraction(1, 2**20))

    def evaluate(self, tables: Sequence[Table]) -> Floats:
        """Σ|n·c − c_x·c_π|/(2n) for each candidate, exact up to the division."""
        return _evaluate(tables, _independence)


@dataclass(frozen=True, slots=True)
class TreeGain:
    """Whether the best tree of links is worth its price, of all candidates together: s for yes, −s for no.

    s = max Σ (n·R_e − h_e)/(Δ_e·k) − t over all sets of at most k candidates e that close no cycle, each being a link
    from its first attribute to its last. Adding or replacing a row moves n·R_e by at most Δ_e, 2 if X or Π has two
    levels and 3 otherwise (`IndependenceDistance`), hence every such sum, and the largest of them, by at most 1. That
    one is found greedily [Kruskal 1956]. The handicaps h_e, the number k of links and the threshold t are public.
    """

    handicaps: tuple[float, ...]
    links: int
    threshold: float
    name: str = "gain of the best tree"
    has_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "handicaps", tuple(map(float, self.handicaps)))
        amounts = (*self.handicaps, self.threshold)
        if type(self.links) is not int or self.links < 1 or not all(abs(x) <= MOST_ROWS for x in amounts):
            raise MechanismError(f"{self.name}: it needs a link or more, and amounts of at most 2^31 rows")

    @property
    def digest(self) -> str:
        """SHA-256 of the public numbers."""
        return hashlib.sha256(repr((self.handicaps, self.links, self.threshold)).encode()).hexdigest()

    def sensitivity(self, shapes: Sequence[Shape], unit: Unit, rows: int | None = None) -> Fraction:
        """1 for each row of a unit, plus the roundings in each of two values, which stay below 2^-19."""
        if len(shapes) != len(self.handicaps) or not _fold_all(shapes):
            raise MechanismError(f"{self.name}: {len(shapes)} candidates need as many handicaps")
        return unit.reach * (1 + Fraction(1, 2**18))

    def evaluate(self, tables: Sequence[Table]) -> Floats:
        """The two values s and −s."""
        gains = IndependenceDistance().evaluate(tables) - np.array(self.handicaps)
        gains = gains / [2.0 if 2 in _fold(table.values.shape) else 3.0 for table in tables]
        group = {name: name for table in tables for name in table.axes}
        found: list[float] = []
        for i in np.argsort(-gains, kind="stable"):
            one, other = group[tables[i].axes[0]], group[tables[i].axes[-1]]
            if gains[i] > 0 and one != other and len(found) < self.links:
                found.append(float(gains[i]))
                group = {name: one if held == other else held for name, held in group.items()}
        gain = math.fsum(found) / self.links - self.threshold
        return np.array([gain, -gain])


@dataclass(frozen=True, slots=True, eq=False)
class ModelError:
    """‖c − m‖₁ against what a model expects: it moves with the table, by 1 (add-remove) or 2 (replace-one).

    The expected counts m are public and rounded to multiples of 2^-16, on which float64 adds without error.
    So are the handicaps, public amounts that are taken off the error: what measuring a candidate would cost in noise.
    """

    expected: tuple[Array, ...]
    name: str = "L1 error of the model"
    handicaps: tuple[float, ...] = ()
    has_model: ClassVar[bool] = True
    counts: Floats = field(init=False)
    """What is compared with: the expected counts, rounded, of all candidates one after the other."""

    def __post_init__(self) -> None:
        if not (_measure(self.expected) <= MOST_ROWS).all():
            raise MechanismError(f"{self.name}: expected counts must be finite and sum to at most 2^31")
        object.__setattr__(self, "counts", _round(_join(self.expected)))
        self.counts.flags.writeable = False  # what was priced is what is compared with
        parts = np.split(self.counts, np.cumsum([model.size for model in self.expected])[:-1])
        object.__setattr__(self, "expected", tuple(map(np.reshape, parts, [m.shape for m in self.expected])))
        known = len(self.handicaps) in (0, len(self.expected))
        if not known or not all(abs(amount) <= MOST_ROWS for amount in self.handicaps):
            raise MechanismError(f"{self.name}: handicaps must be one for each model, and at most 2^31")
        object.__setattr__(self, "handicaps", tuple(_round(np.array(self.handicaps)).tolist()))

    @property
    def digest(self) -> str:
        """SHA-256 of the expected counts and the handicaps."""
        found = hashlib.sha256(self.counts.data)
        found.update("".join(amount.hex() for amount in self.handicaps).encode())
        return found.hexdigest()

    def sensitivity(self, shapes: Sequence[Shape], unit: Unit, rows: int | None = None) -> Fraction:
        """As far as a unit moves a table of counts in L1."""
        if list(_require(shapes)) != [model.shape for model in self.expected]:
            raise MechanismError(f"{self.name}: the candidates have other shapes than the model's tables")
        return Fraction(sum(unit.moves))

    def evaluate(self, tables: Sequence[Table]) -> Floats:
        """The L1 distance for each candidate; each table must have the shape of its model's."""
        errors = _measure([table.values for table in tables], self.expected)
        return np.asarray(errors - np.array(self.handicaps or 0.0))


def _measure(tables: Sequence[Array], models: Sequence[Array] = ()) -> Floats:
    """‖c‖₁ of each table, or ‖c − m‖₁ with models, of 64 at once: of all, every cell would be held twice."""
    found = [np.zeros(0)]
    for few, others in ((tables[i : i + 64], models[i : i + 64]) for i in range(0, len(tables), 64)):
        cells = np.abs(_join(few) - _join(others) if others else _join(few))
        found.append(np.add.reduceat(cells, np.cumsum([0, *map(np.size, few)])[:-1]))
    return np.concatenate(found)


def _join(tables: Sequence[Array]) -> Floats:
    """The cells of all tables, one after the other: they may be ten thousand small ones."""
    return np.concatenate([np.zeros(0), *(table.reshape(-1) for table in tables)])


def _round(amounts: Floats) -> Floats:
    """Multiples of 2^-16, in place: all tables together may have four million cells."""
    return np.divide(np.rint(np.multiply(amounts, 2.0**16, out=amounts), out=amounts), 2.0**16, out=amounts)


def _require(shapes: Sequence[Shape]) -> Sequence[Shape]:
    if not shapes:
        raise MechanismError("a choice needs at least one candidate")
    return shapes


def _fold(shape: Shape) -> tuple[int, int]:
    """The sizes of Π and of X."""
    if len(shape) < 2:
        raise MechanismError("a candidate needs at least one parent beside the child")
    return count_cells(shape[:-1]), shape[-1]


def _fold_all(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """The sizes of Π and of X of all candidates, each pair of sizes once: there are few among many candidates."""
    return sorted(set(map(_fold, set(_require(shapes)))))


def _flatten(table: Table) -> npt.NDArray[np.int64]:
    """The counts as a matrix: a line for each joint level of Π, a column for each level of X."""
    values = table.values
    if not np.issubdtype(values.dtype, np.integer):
        raise MechanismError(f"a score is computed from whole counts, not from {values.dtype}")
    counts = np.ascontiguousarray(values, dtype=np.int64).reshape(_fold(values.shape))
    if int(counts.sum()) > MOST_ROWS:
        raise MechanismError(f"a score takes at most {MOST_ROWS:,} rows")
    return counts


def _evaluate(tables: Sequence[Table], score: Callable[[npt.NDArray[np.int64]], Floats]) -> Floats:
    """Score all candidates, those of equal shape at once."""
    flat = [_flatten(table) for table in tables]
    groups: dict[Shape, list[int]] = {}
    for i, counts in enumerate(flat):
        groups.setdefault(counts.shape, []).append(i)
    values = np.empty(len(flat), dtype=np.float64)
    for shape, members in groups.items():
        step = max(1, 2**22 // count_cells(shape))  # a few dozen megabytes at a time
        for start in range(0, len(members), step):
            batch = members[start : start + step]
            values[batch] = score(np.stack([flat[i] for i in batch]))
    return values


def _information(counts: npt.NDArray[np.int64]) -> Floats:
    rows = counts.sum(axis=(1, 2))
    joint = _weigh(counts).sum(axis=(1, 2))
    parents, child = _weigh(counts.sum(axis=2)).sum(axis=1), _weigh(counts.sum(axis=1)).sum(axis=1)
    return np.asarray((joint - parents - child + _weigh(rows)) / np.maximum(rows, 1))


def _weigh(counts: npt.NDArray[np.int64]) -> Floats:
    """c·log₂ c, and 0 for 0."""
    return np.asarray(counts * np.log2(np.maximum(counts, 1)))


def _independence(counts: npt.NDArray[np.int64]) -> Floats:
    rows = counts.sum(axis=(1, 2))
    product = counts.sum(axis=2)[:, :, None] * counts.sum(axis=1)[:, None, :]
    apart = np.abs(rows[:, None, None] * counts - product).sum(axis=(1, 2))
    return np.asarray(apart / (2.0 * np.maximum(rows, 1)))
