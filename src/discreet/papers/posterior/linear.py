"""Integer statistics in product form, such as Fourier coefficients of counts, and how far one row moves them all.

A row x adds ⊗_{a∈S} M_a[:, x_a] to the block of each attribute set S. All blocks share one noise, so what counts is
the joint L1 distance that one row makes over all of them; it is found exactly, by maximising over rows.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discreet.core.counter import TrueCounts
from discreet.core.mechanism import AdditiveNoise, Noise, calibrate_moves, covers
from discreet.core.noise import add_noise
from discreet.values.budget import Budget, Finite, budget_from_json
from discreet.values.errors import FormatError, MechanismError
from discreet.values.measurement import Law, Measurement
from discreet.values.table import Table, count_cells
from discreet.values.text import require_keys
from discreet.values.unit import Unit

Integers = npt.NDArray[np.int64]

MOST_STATES = 2**22
"""The largest table that the search for the worst row makes; beyond it a coarser bound is charged."""
MOST_LEVELS = 64
"""The most levels of an attribute whose pairs of levels are all compared."""
MOST_MOVE = 2**28
"""The most that one row may move all blocks: so neither they, over 2^31 rows, nor the search leave an int64."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductStatistics:
    """The sets S, and for each attribute a an integer matrix M_a with one column for each of its levels."""

    sets: tuple[tuple[str, ...], ...]
    matrices: Mapping[str, Integers]

    def __post_init__(self) -> None:
        if not self.sets:
            raise MechanismError("nothing to measure: the list is empty")
        if len({frozenset(members) for members in self.sets}) != len(self.sets):
            raise MechanismError("an attribute set is asked for twice")
        for name in sorted({name for members in self.sets for name in members}):
            matrix = self.matrices.get(name)
            if matrix is None or matrix.ndim != 2 or not np.issubdtype(matrix.dtype, np.integer):
                raise MechanismError(
                    f"attribute {name!r} needs an integer matrix with a column for each level"
                )

        moves = 2 * sum(self._bound_blocks())
        if moves > MOST_MOVE:
            raise MechanismError(
                f"one row might move the statistics by {moves:,} in L1; at most {MOST_MOVE:,} is allowed, "
                "so that nothing leaves 64 bits"
            )
        kept = {name: np.array(matrix, dtype=np.int64) for name, matrix in self.matrices.items()}
        for matrix in kept.values():
            matrix.flags.writeable = False  # what was priced is what is measured
        object.__setattr__(self, "matrices", MappingProxyType(kept))

    @property
    def maximal(self) -> tuple[tuple[str, ...], ...]:
        """The sets that no other contains: their tables are all that has to be counted."""
        members = [frozenset(found) for found in self.sets]
        return tuple(
            found
            for found, mine in zip(self.sets, members, strict=True)
            if not any(mine < other for other in members)
        )

    def require_sizes(self, sizes: Mapping[str, int]) -> None:
        """Refuse a matrix whose columns are not the levels of its attribute."""
        for name in sorted({name for members in self.sets for name in members}):
            if name in sizes and self.matrices[name].shape[1] != sizes[name]:
                columns = self.matrices[name].shape[1]
                raise MechanismError(f"the matrix of {name!r} has {columns} columns for {sizes[name]} levels")

    def evaluate(self, tables: Sequence[Table]) -> list[Table]:
        """The exact blocks, from tables of counts over the maximal sets; axes are named as the attributes."""
        blocks = []
        for members in self.sets:
            source = next(table for table in tables if set(members) <= set(table.axes))
            values = source.project(members).values
            for axis, name in enumerate(members):
                values = np.moveaxis(np.tensordot(self.matrices[name], values, axes=(1, axis)), 0, axis)
            blocks.append(Table(members, np.asarray(values, dtype=np.int64)))
        return blocks

    def l1(self, unit: Unit) -> int:
        """The most by which one row moves all blocks together: exact, or the sum of each block's bound.

        max over rows x, or pairs of rows x, y, of Σ_S ‖⊗M_a[:, x_a] − ⊗M_a[:, y_a]‖₁, where y is no row at all under
        add-remove. It is a sum of functions of few attributes, so the maximum is found by eliminating one at a time.
        """
        exact = self._maximise(unit)
        if exact is not None:
            return exact * unit.reach
        bounds = self._bound_blocks()
        if not unit.fixes_rows:
            return sum(bounds) * unit.reach
        return 2 * sum(bound for members, bound in zip(self.sets, bounds, strict=True) if members)

    def _bound_blocks(self) -> list[int]:
        """For each block the product of its matrices' largest columns in L1; in whole numbers that cannot overflow."""
        used = {name for members in self.sets for name in members}
        norms = {
            name: max((sum(map(abs, column)) for column in self.matrices[name].T.tolist()), default=0)
            for name in used
        }
        return [math.prod(norms[name] for name in members) for members in self.sets]

    def digest(self) -> str:
        """What tells two requests over the same sets apart."""
        used = sorted({name for members in self.sets for name in members})
        parts = [f"{name} {self.matrices[name].tolist()}" for name in used]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _maximise(self, unit: Unit) -> int | None:
        names = list(dict.fromkeys(name for members in self.sets for name in members))
        if any(self.matrices[name].shape[1] > MOST_LEVELS for name in names):
            return None
        rays = {name: _find_rays(self.matrices[name], unit) for name in names}
        factors = []
        for members in self.sets:
            states = count_cells(rays[name].shape[0] for name in members)
            if states * count_cells(rays[name].shape[1] for name in members) > MOST_STATES:
                return None
            factors.append((members, _distance(members, rays, unit)))
        return _eliminate(factors, {name: rays[name].shape[0] for name in names})


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """One block of integers for each attribute set, all with noise of the same law, which were paid for together."""

    blocks: tuple[Table, ...]
    """The axes carry the names of attributes; a block has as many entries along one as its matrix has lines."""
    law: Law
    unit: Unit
    cost: Budget
    """What all blocks cost together."""

    def to_json(self) -> dict[str, Any]:
        """The whole release; each block is written as a measured table is."""
        return {
            "blocks": [Measurement(block, self.law, self.unit, self.cost).to_json() for block in self.blocks],
            "law": self.law.to_json(),
            "unit": self.unit.value,
            "cost": self.cost.to_json(),
        }

    @classmethod
    def from_json(cls, document: object) -> Coefficients:
        """The coefficients that `to_json` wrote; anything malformed is refused."""
        given = require_keys(document, "the coefficients", ("blocks", "law", "unit", "cost"))
        if not isinstance(given["blocks"], list) or not given["blocks"]:
            raise FormatError("coefficients need a list of at least one block")
        found = [Measurement.from_json(block) for block in given["blocks"]]
        if any(block.law != found[0].law or block.unit != found[0].unit for block in found):
            raise FormatError("the blocks of coefficients share one law and one unit")
        tables = tuple(block.noisy for block in found)
        return cls(tables, found[0].law, found[0].unit, budget_from_json(given["cost"]))


@dataclass(frozen=True, slots=True)
class LinearStatistics:
    """Integer linear statistics of the counts, with one discrete Laplace noise calibrated to all of them together."""

    statistics: ProductStatistics
    mechanism: AdditiveNoise

    def __post_init__(self) -> None:
        self.mechanism.unit.require_rows("a linear statistic")
        moved = self.statistics.l1(self.mechanism.unit)
        if not covers(self.mechanism, (moved,)):
            raise MechanismError(
                f"one unit moves the statistics by {moved} in L1, more than the {self.mechanism.l1} paid for"
            )

    @classmethod
    def price(
        cls,
        statistics: ProductStatistics,
        cost: Finite,
        *,
        unit: Unit,
        sizes: Mapping[str, int],
        sensitivity: int | None = None,
    ) -> Self:
        """The narrowest noise that the cost pays for; a stated sensitivity may be wider than the exact one."""
        statistics.require_sizes(sizes)
        exact = statistics.l1(unit)
        stated = exact if sensitivity is None else sensitivity
        if stated < exact:
            raise MechanismError(
                f"one row moves the statistics by {exact} in L1, more than the stated {stated}"
            )
        if not stated:
            raise MechanismError(f"no row moves the statistics under {unit}: they are public already")
        name = f"{len(statistics.sets)} blocks of linear statistics"
        (found,) = calibrate_moves([name], [(stated,)], cost, unit=unit, noise=Noise.LAPLACE)
        return cls(statistics, found)

    @property
    def cost(self) -> Finite:
        """What all blocks cost together."""
        return self.mechanism.cost

    @property
    def unit(self) -> Unit:
        """The unit for which the sensitivity holds."""
        return self.mechanism.unit

    def describe(self) -> dict[str, Any]:
        """The sets, the matrices by their digest, and the noise."""
        return {
            "verb": "measure linear",
            "sets": [list(members) for members in self.statistics.sets],
            "matrices": self.statistics.digest(),
            "sensitivity": self.mechanism.l1,
            "noise": self.mechanism.noise.value,
            "scales": [self.mechanism.scale.hex()],
        }

    def check(self, rows: TrueCounts) -> None:
        """Refuse sets that cannot be counted."""
        rows.counter.check(self.statistics.sets)

    def draw(self, rows: TrueCounts) -> list[Any]:
        """The blocks, with noise in every entry."""
        blocks = self.statistics.evaluate(rows.counter.count(self.statistics.maximal))
        noisy = tuple(Table(block.axes, add_noise(block.values, self.mechanism)) for block in blocks)
        return [Coefficients(noisy, self.mechanism.law, self.unit, self.cost).to_json()]

    def rehearse(self, rows: int, sizes: Mapping[str, int]) -> list[Any]:
        """The blocks of rows that are spread evenly, without noise."""
        tables = []
        for members in self.statistics.maximal:
            shape = [sizes[name] for name in members]
            tables.append(Table(members, np.full(shape, round(rows / count_cells(shape)), dtype=np.int64)))
        return [
            Coefficients(
                tuple(self.statistics.evaluate(tables)), self.mechanism.law, self.unit, self.cost
            ).to_json()
        ]

    def require_answer(self, stored: list[Any]) -> None:
        """Refuse what cannot have been drawn: other blocks, another noise, another price."""
        found = self.read(stored)
        shapes = [
            (members, tuple(len(self.statistics.matrices[name]) for name in members))
            for members in self.statistics.sets
        ]
        if [(block.axes, block.values.shape) for block in found.blocks] != shapes:
            raise FormatError("the coefficients are not those of the subsets of the graph's families")
        if (found.law, found.unit, found.cost) != (self.mechanism.law, self.unit, self.cost):
            raise FormatError(
                f"the coefficients should have {self.mechanism.law} and cost {self.cost}, "
                f"not {found.law} and {found.cost}"
            )

    def read(self, stored: list[Any]) -> Coefficients:
        """The noisy coefficients."""
        (document,) = stored
        return Coefficients.from_json(document)


def _find_rays(matrix: Integers, unit: Unit) -> Integers:
    """The kinds of pairs of columns (u, v) that differ in effect, each as rows (weight, u, v) padded with zeros.

    In the L1 norm of a product only the direction of each entry (u_j, v_j) and the total weight on it matter, and not
    its sign, so most pairs of levels are of few kinds: for two levels, equal and different.
    """
    columns = matrix.T.tolist()
    pairs: Iterable[tuple[Any, Any]]
    if not unit.fixes_rows:
        pairs = ((column, [0] * len(column)) for column in columns)
    else:
        pairs = itertools.product(columns, repeat=2)
    kinds: dict[tuple[tuple[tuple[int, int], int], ...], None] = {}
    for first, second in pairs:
        weights: dict[tuple[int, int], int] = {}
        for u, v in zip(first, second, strict=True):
            if u or v:
                scale = math.gcd(u, v) * (1 if (u, v) > (0, 0) else -1)
                ray = (u // scale, v // scale)
                weights[ray] = weights.get(ray, 0) + abs(scale)
        kinds[tuple(sorted(weights.items()))] = None
    longest = max(1, *(len(kind) for kind in kinds)) if len(kinds) > 1 else max(1, len(next(iter(kinds))))
    found = np.zeros((len(kinds), longest, 3), dtype=np.int64)
    for i, kind in enumerate(kinds):
        for j, ((u, v), weight) in enumerate(kind):
            found[i, j] = weight, u, v
    return found


def _distance(members: Sequence[str], rays: Mapping[str, Integers], unit: Unit) -> Integers:
    """Σ weight·|Πu − Πv| for every choice of one kind per attribute; without a second row Πv is 0."""
    weight, u, v = (np.ones((1, 1), dtype=np.int64) for _ in range(3))
    if not unit.fixes_rows:
        v = np.zeros_like(v)
    for name in members:
        found = rays[name]
        weight, u, v = (
            (mine[:, None, :, None] * found[None, :, None, :, part]).reshape(
                mine.shape[0] * found.shape[0], mine.shape[1] * found.shape[1]
            )
            for part, mine in enumerate((weight, u, v))
        )
    distances = (weight * np.abs(u - v)).sum(axis=1)
    return np.asarray(distances.reshape([rays[name].shape[0] for name in members]), dtype=np.int64)


def _eliminate(factors: Sequence[tuple[Sequence[str], Integers]], states: Mapping[str, int]) -> int | None:
    """max over all states of the sum of the factors; None if a table on the way gets too large."""
    pool = [Table(tuple(members), values) for members, values in factors]
    left = dict(states)
    while left:
        scopes = {name: _join_scopes(pool, name) for name in left}
        name = min(left, key=lambda found: count_cells(states[other] for other in scopes[found]))
        scope = scopes[name]
        if count_cells(states[other] for other in scope) > MOST_STATES:
            return None
        total = np.zeros([states[other] for other in scope], dtype=np.int64)
        for table in pool:
            if name in table.axes:
                total += table.spread(scope)
        pool = [table for table in pool if name not in table.axes]
        pool.append(Table(scope[1:], total.max(axis=0)))
        del left[name]
    return int(sum(int(table.values[()]) for table in pool))


def _join_scopes(pool: Sequence[Table], name: str) -> tuple[str, ...]:
    """The attribute and all that share a table with it, itself first."""
    near = dict.fromkeys(other for table in pool if name in table.axes for other in table.axes)
    return (name, *(other for other in near if other != name))
