"""Rows of codes from a chain of conditional tables, the same rows however they are drawn; and how likely rows are.

Every attribute has a random stream of its own, and row r takes number r of each stream. So a row depends on
the seed and on r alone: not on how many are drawn, in which slices, by how many threads, compiled or not.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import DataError, TableError
from discreet.values.graph import DAG
from discreet.values.table import Array, Table, count_cells, require_cells
from discreet.values.text import show

Seed = int | np.random.SeedSequence | np.random.Generator
"""What a caller may give as `rng`; there is no default, because unrepeatable rows should be a choice."""

TILE = 16_384
"""Rows drawn at a time by one thread: the numbers of one column then stay in the second-level cache."""

COMPILED_FROM = 2**24
"""Cells from which the compiled loops pay for loading the compiler; below, numpy draws the same rows."""

THREADED_FROM = 2**20
"""Cells from which a second thread pays for itself."""

BLOCK = 2**16
"""Rows scored at a time, so that the indices of a block stay in the second-level cache."""

SCANNED = 8
"""Up to so many thresholds a plain scan beats a binary search, because it has no branch to mispredict."""

MOST_ROWS = 10**13
"""More rows than a disk holds; beyond it somebody mistyped."""

MAX_LEVELS = 2**16
"""What a 16-bit code can tell apart."""

_ROWS_KEY = 0x726F7773
"""Sets our streams apart from those that a caller may spawn from the same seed."""

_RESTART_KEY = 0x61676169
"""Sets the streams of a restart apart from the first ones."""


@dataclass(frozen=True, slots=True, eq=False)
class AttributeDraw:
    """How one attribute is drawn: where its parents are, and the cumulated probabilities of each conditional."""

    name: str
    given: tuple[int, ...]
    strides: tuple[int, ...]
    thresholds: npt.NDArray[np.float64]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the codes: uint8 up to 256 levels, else uint16."""
        return np.dtype(np.uint8 if self.thresholds.shape[1] < 256 else np.uint16)


@dataclass(frozen=True, slots=True, eq=False)
class Sampler:
    """An endless table of rows, of which any slice can be drawn by itself."""

    draws: tuple[AttributeDraw, ...]
    root: np.random.SeedSequence

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes, in the order in which they are drawn."""
        return tuple(found.name for found in self.draws)

    def count_cells(self, rows: int) -> int:
        """The number of cells in so many rows."""
        return rows * len(self.draws)

    def restart(self, number: int) -> Sampler:
        """Another table of rows by the same law, one for each number, independent of this one."""
        key = (*self.root.spawn_key, _RESTART_KEY, number)
        return Sampler(self.draws, np.random.SeedSequence(self.root.entropy, spawn_key=key))

    def draw(
        self, start: int, stop: int, *, threads: int | None = None, compiled: bool | None = None
    ) -> dict[str, Array]:
        """The codes of rows start … stop − 1 by attribute; `threads` and `compiled` change the speed only."""
        cells = self.count_cells(stop - start)
        use_kernels = cells >= COMPILED_FROM if compiled is None else compiled
        if use_kernels:
            _compile()  # once, before several threads would
        workers = threads or (min(os.cpu_count() or 1, 4) if cells >= THREADED_FROM else 1)
        codes = [np.empty(max(stop - start, 0), dtype=found.dtype) for found in self.draws]
        cuts = [start + (stop - start) * i // workers for i in range(workers + 1)]
        jobs = [
            (low, high, [column[low - start : high - start] for column in codes])
            for low, high in itertools.pairwise(cuts)
            if high > low
        ]
        if len(jobs) == 1:
            self._fill(*jobs[0], use_kernels)
        elif jobs:
            with ThreadPoolExecutor(len(jobs)) as pool:
                for done in [pool.submit(self._fill, *job, use_kernels) for job in jobs]:
                    done.result()
        return dict(zip(self.names, codes, strict=True))

    def _fill(self, start: int, stop: int, codes: list[Array], compiled: bool) -> None:
        streams = [open_stream(self.root, (_ROWS_KEY, i), start) for i in range(len(self.draws))]
        buffer = np.empty(min(TILE, stop - start))
        for low in range(0, stop - start, TILE):
            tile = slice(low, min(low + TILE, stop - start))
            uniform = buffer[: tile.stop - tile.start]
            for found, stream, column in zip(self.draws, streams, codes, strict=True):
                stream.random(out=uniform)
                given = [codes[i][tile] for i in found.given]
                pass_thresholds(found, uniform, given, column[tile], compiled=compiled)


def prepare(factors: Sequence[Table], rng: Seed) -> Sampler:
    """A sampler of Π P(child | given), one factor for each attribute; a table's last axis is its child.

    Every given attribute must be the child of an earlier table. A level is drawn in proportion to its value
    in the conditional; one of zeros, which nothing should lead to, counts as uniform.
    """
    sizes: dict[str, int] = {}
    draws: list[AttributeDraw] = []
    for factor in factors:
        if not factor.axes:
            raise TableError("a table without axes has no attribute to draw")
        *given, child = factor.axes
        if child in sizes:
            raise TableError(f"attribute {child!r} is drawn by two tables; one is allowed")
        for name in given:
            if name not in sizes:
                raise TableError(f"table of {child!r} is given {name!r}, which no earlier table draws")
            if sizes[name] != factor.sizes[name]:
                raise TableError(
                    f"{name!r} has {sizes[name]} levels, but {factor.sizes[name]} in the table of {child!r}"
                )
        shape = factor.values.shape
        require_cells(f"the table of {child!r}", shape)
        if shape[-1] > MAX_LEVELS:
            raise TableError(
                f"attribute {child!r} has {shape[-1]:,} levels; at most {MAX_LEVELS:,} are allowed"
            )
        sizes[child] = shape[-1]
        positions = {name: i for i, name in enumerate(sizes)}
        draws.append(
            AttributeDraw(
                child,
                tuple(positions[name] for name in given),
                tuple(count_cells(shape[axis + 1 : -1]) for axis in range(len(given))),
                _cumulate(child, factor.values.reshape(-1, shape[-1])),
            )
        )
    return Sampler(tuple(draws), read_seed(rng))


def log_likelihood(
    dag: DAG, cpts: Sequence[Table], codes: Mapping[str, npt.NDArray[np.integer]]
) -> npt.NDArray[np.float64]:
    """log P(row) = Σ log P(x_i | pa_i) for each row of codes; -inf for a row that the network rules out."""
    with np.errstate(divide="ignore"):
        logs = [np.log(cpt.values).ravel() for cpt in cpts]
    shapes = [cpt.values.shape for cpt in cpts]
    rows = len(next(iter(codes.values())))
    total = np.zeros(rows)
    for start in range(0, rows, BLOCK):
        part = slice(start, start + BLOCK)
        for name, log_values, shape in zip(dag.nodes, logs, shapes, strict=True):
            index = np.zeros(len(total[part]), dtype=np.int64)
            for member, size in zip(dag.family(name), shape, strict=True):
                index *= size
                index += codes[member][part]
            total[part] += log_values[index]
    return total


def cut_rows(n: int, size: int) -> Iterator[tuple[int, int]]:
    """The bounds of consecutive slices of at most `size` rows."""
    if require_rows(size) == 0:
        raise DataError("a chunk must have at least 1 row")
    return ((start, min(start + size, n)) for start in range(0, n, size))


def require_rows(n: object) -> int:
    """A number of rows, or `DataError` if it is not a non-negative whole number."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise DataError(f"number of rows {n!r} is a {type(n).__name__}; it must be a whole number, 0 or more")
    if not 0 <= n <= MOST_ROWS:
        raise DataError(f"number of rows {show(n)}: it must be 0 or more and at most {MOST_ROWS:,}")
    return int(n)


def read_seed(rng: object) -> np.random.SeedSequence:
    """The root of all streams; a generator gives 128 fresh bits, so using it twice gives different rows."""
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence([int(word) for word in rng.integers(0, 2**32, size=4, dtype=np.uint32)])
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer):
        raise DataError(
            f"rng {rng!r} is a {type(rng).__name__}; give a whole number, a SeedSequence or a Generator"
        )
    if rng < 0:
        raise DataError(f"rng {rng} is negative; a seed is a whole number, 0 or more")
    return np.random.SeedSequence(int(rng))


def open_stream(root: np.random.SeedSequence, key: tuple[int, ...], position: int) -> np.random.Generator:
    """The stream under this key, as if `position` uniform numbers had been drawn from it already."""
    child = np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key), pool_size=root.pool_size)
    bits = np.random.PCG64DXSM(child)
    bits.advance(position)
    return np.random.Generator(bits)


def _cumulate(child: str, conditionals: Array) -> npt.NDArray[np.float64]:
    """Thresholds such that the level of u in [0, 1) is the number of thresholds at most u.

    Adding 0 leaves a sum as it is, so the threshold of an impossible level equals the one before it and no u
    falls between; from the last possible level on they are exactly 1, which no u reaches, however sums round.
    """
    values = np.asarray(conditionals, dtype=np.float64)
    if not np.isfinite(values.sum(axis=1)).all() or (values < 0).any():
        raise TableError(
            f"table of {child!r} holds a value that is negative or not finite; nothing can be drawn from it"
        )
    sums = np.cumsum(np.where(values.any(axis=1, keepdims=True), values, 1.0), axis=1)
    shares = sums / sums[:, -1:]
    shares[sums == sums[:, -1:]] = 1.0
    return np.ascontiguousarray(shares[:, :-1])


@cache
def _compile() -> tuple[Callable[..., None], Callable[..., None]]:
    """The compiled inner loops, made only for jobs that are worth waiting for a compiler."""
    import numba

    @numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
    def add_parent(index: Any, codes: Any, stride: int) -> None:
        """Add the share of one parent to the index of the conditional of every draw."""
        for i in range(len(index)):
            index[i] += codes[i] * stride

    @numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
    def count_passed(levels: Any, index: Any, uniform: Any, thresholds: Any) -> None:
        """The level of every draw: how many thresholds of its conditional are at most its uniform number."""
        width = thresholds.shape[1]
        flat = thresholds.ravel()
        if width == 1:
            for i in range(len(levels)):
                levels[i] = uniform[i] >= flat[index[i]]
        elif width == 2:
            for i in range(len(levels)):
                first = index[i] * 2
                levels[i] = np.uint8(uniform[i] >= flat[first]) + np.uint8(uniform[i] >= flat[first + 1])
        elif width <= SCANNED:
            for i in range(len(levels)):
                first = index[i] * width
                passed = 0
                for k in range(width):
                    passed += uniform[i] >= flat[first + k]
                levels[i] = passed
        else:
            leap = 1
            while leap * 2 <= width:
                leap *= 2
            for i in range(len(levels)):
                first = index[i] * width
                passed = 0
                jump = leap
                while jump:
                    if passed + jump <= width and uniform[i] >= flat[first + passed + jump - 1]:
                        passed += jump
                    jump //= 2
                levels[i] = passed

    return add_parent, count_passed


def pass_thresholds(
    found: AttributeDraw, uniform: Array, given: list[Array], levels: Array, *, compiled: bool
) -> None:
    """Write the level of every row: how many thresholds of its conditional are at most its uniform number."""
    (_pass_compiled if compiled else _pass_plain)(found, uniform, given, levels)


def _pass_compiled(found: AttributeDraw, uniform: Array, given: list[Array], levels: Array) -> None:
    add_parent, count_passed = _compile()
    index = np.zeros(len(levels), dtype=np.int32)  # enough, since `prepare` refuses a table of 2²⁸ cells
    for codes, stride in zip(given, found.strides, strict=True):
        add_parent(index, codes, stride)
    count_passed(levels, index, uniform, found.thresholds)


def _pass_plain(found: AttributeDraw, uniform: Array, given: list[Array], levels: Array) -> None:
    index = np.zeros(len(levels), dtype=np.intp)
    for codes, stride in zip(given, found.strides, strict=True):
        index += codes.astype(np.intp) * stride
    width = found.thresholds.shape[1]
    flat = found.thresholds.ravel()
    index *= width
    passed = np.zeros(len(levels), dtype=np.intp)
    for bit in reversed(range(width.bit_length())):  # binary search, all rows at once
        probe = passed + (1 << bit)
        within = np.minimum(probe, width)
        passed = np.where((probe <= width) & (uniform >= flat[index + within - 1]), probe, passed)
    levels[:] = passed
