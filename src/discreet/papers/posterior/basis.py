"""The residual basis of counts: the Fourier basis of [002] for attributes of any number of levels.

For k levels, line j of the basis is 1 on the first j levels, −j on the next and 0 on the rest: integers, orthogonal to
each other and to the constant, with Σ_j |M[j, x]| = k − 1 in every column. For two levels it is (1, −1), the Fourier
basis of [002] without its factor 2^(−|I|/2). So one row moves all coefficients of a set S by Π_{a∈S}(k_a − 1) in
L1, which is how many there are, whatever the row: under add-remove the sensitivity is the number of coefficients.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.values.errors import TableError
from discreet.values.table import Table


def make_basis(levels: int) -> npt.NDArray[np.int64]:
    """The k − 1 integer lines that, with the constant, are an orthogonal basis of tables over one attribute."""
    if levels < 2:
        raise TableError(f"a basis needs an attribute of at least 2 levels, not {levels}")
    basis = np.tril(np.ones((levels - 1, levels), dtype=np.int64))
    basis[np.arange(levels - 1), np.arange(1, levels)] = -np.arange(1, levels)
    return basis


def make_inverse(levels: int) -> npt.NDArray[np.float64]:
    """The columns that turn coefficients back: M⁺ = Mᵀ/‖line‖², with ‖line j‖² = j(j + 1)."""
    j = np.arange(1, levels, dtype=np.float64)
    return np.asarray(make_basis(levels).T / (j * (j + 1)))


def close_downward(families: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Every subset of every family, the empty one first: the N_I of [002], with the child in it."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for family in families:
        for size in range(len(family) + 1):
            for members in itertools.combinations(family, size):
                found.setdefault(frozenset(members), members)
    return tuple(sorted(found.values(), key=len))


def count_coefficients(sets: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> int:
    """Σ_S Π_{a∈S}(k_a − 1); for binary attributes the number of sets, |N_I|."""
    return sum(math.prod(sizes[name] - 1 for name in members) for members in sets)


def reconstruct(
    coefficients: Sequence[Table], families: Sequence[Sequence[str]], sizes: Mapping[str, int]
) -> tuple[Table, ...]:
    """The table of each family from the coefficients of all its subsets [002, Thm. 2].

    h_F = Σ_{S⊆F} (⊗_{a∈S} M_a⁺ ⊗_{a∉S} 1/k_a) z_S. Tables of the same coefficients agree on all margins.
    """
    known = {frozenset(block.axes): block for block in coefficients}
    tables = []
    for family in families:
        total = np.zeros([sizes[name] for name in family])
        for size in range(len(family) + 1):
            for members in itertools.combinations(family, size):
                block = known.get(frozenset(members))
                if block is None:
                    raise TableError(f"the coefficients of {members} are missing for {tuple(family)}")
                total += _expand(block.arrange(members), family, sizes)
        tables.append(Table(tuple(family), total))
    return tuple(tables)


def bound_cells(sets: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> float:
    """Σ_S of the most that coefficients of size 1 add to a cell, in units of what a total of 1 adds to it.

    For binary attributes |N_I|; with it a total raised by 2t·scale·bound outweighs the noise [002, Cor. 3].
    """
    weights = {
        name: float((np.abs(make_inverse(size)).sum(axis=1) * size).max()) for name, size in sizes.items()
    }
    return math.fsum(math.prod(weights[name] for name in members) for members in sets)


def spread_variance(family: Sequence[str], sizes: Mapping[str, int]) -> float:
    """The variance of a cell of `reconstruct`, on average over cells, if each coefficient has variance 1.

    Π_a (1/k_a² + mean_x Σ_j M_a⁺[x, j]²): one factor for the attributes, each in a set or not.
    """
    return math.prod(
        1.0 / sizes[name] ** 2 + float((make_inverse(sizes[name]) ** 2).sum(axis=1).mean()) for name in family
    )


def _expand(block: Table, family: Sequence[str], sizes: Mapping[str, int]) -> npt.NDArray[np.float64]:
    values = np.asarray(block.values, dtype=np.float64)
    for axis, name in enumerate(block.axes):
        values = np.moveaxis(np.tensordot(make_inverse(sizes[name]), values, axes=(1, axis)), 0, axis)
    share = math.prod(sizes[name] for name in family if name not in block.axes)
    return np.asarray(Table(block.axes, values / share).spread(family))
