"""The methods that paper 004 compares with: marginals by Laplace, Fourier, Contingency and Uniform; PrivateERM.

They are baselines of an experiment, so their noise comes from a seeded generator; nothing here may be released.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from _paper004_data import Data
from discreet.papers.posterior.basis import count_coefficients, make_basis, reconstruct
from discreet.values.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def count(data: Data, members: tuple[str, ...]) -> np.ndarray:
    """The exact counts of a marginal."""
    shape = [data.schema[name].size for name in members]
    index = np.ravel_multi_index([data.codes[name].astype(np.intp) for name in members], shape)
    return np.bincount(index, minlength=math.prod(shape)).reshape(shape).astype(float)


def mend(counts: np.ndarray) -> np.ndarray:
    """Negative counts set to 0, the rest rescaled to 1, as the paper does for its baselines."""
    kept = np.maximum(counts, 0.0)
    return kept / kept.sum() if kept.sum() > 0 else np.full(kept.shape, 1 / kept.size)


def measure_error(data: Data, ways: int, estimate: dict[tuple[str, ...], np.ndarray]) -> float:
    """The mean total variation of estimated marginals."""
    sets = data.marginals(ways)
    return float(
        np.mean([np.abs(count(data, found) / data.rows - estimate[found]).sum() / 2 for found in sets])
    )


def by_laplace(data: Data, ways: int, epsilon: float, rng: np.random.Generator) -> float:
    """Noise on every cell of all marginals: Lap(2·(number of marginals)/ε) for replaced rows."""
    scale = 2 * math.comb(len(data.schema), ways) / epsilon
    sets = data.marginals(ways)
    return measure_error(
        data,
        ways,
        {found: mend((c := count(data, found)) + rng.laplace(0, scale, c.shape)) for found in sets},
    )


def by_uniform(data: Data, ways: int) -> float:
    """Every cell alike."""
    sets = data.marginals(ways)
    return measure_error(
        data, ways, {found: np.full((c := count(data, found)).shape, 1 / c.size) for found in sets}
    )


def by_contingency(data: Data, ways: int, epsilon: float, rng: np.random.Generator) -> float:
    """One noisy table over all attributes, then its margins; only where that table is small."""
    names = data.schema.names
    full = count(data, names)
    noisy = mend(full + rng.laplace(0, 2 / epsilon, full.shape))
    axes = {name: i for i, name in enumerate(names)}
    estimate = {
        found: noisy.sum(axis=tuple(i for name, i in axes.items() if name not in found))
        for found in data.marginals(ways)
    }
    return measure_error(data, ways, estimate)


def by_mended_margins(data: Data, ways: int, epsilon: float, rng: np.random.Generator) -> float:
    """The same with each margin mended instead of the whole table: noise cancels in sums, once cut off it does not."""
    names = data.schema.names
    full = count(data, names)
    noisy = full + rng.laplace(0, 2 / epsilon, full.shape)
    axes = {name: i for i, name in enumerate(names)}
    estimate = {
        found: mend(noisy.sum(axis=tuple(i for name, i in axes.items() if name not in found)))
        for found in data.marginals(ways)
    }
    return measure_error(data, ways, estimate)


def by_fourier(data: Data, ways: int, epsilon: float, rng: np.random.Generator) -> float:
    """Noise on all Fourier coefficients up to this order, which all marginals share.

    For attributes of more levels the coefficients are those of the residual basis: one row moves all of them by their
    number in L1, as with bits, so that the scale is 2·(their number)/ε.
    """
    sizes = data.schema.sizes
    sets = [found for k in range(ways + 1) for found in itertools.combinations(data.schema.names, k)]
    scale = 2 * count_coefficients(sets, sizes) / epsilon
    wanted = {
        part
        for found in data.marginals(ways)
        for k in range(ways + 1)
        for part in itertools.combinations(found, k)
    }
    blocks = []
    for found in sorted(wanted, key=lambda members: (len(members), members)):
        values = count(data, found) if found else np.array(float(data.rows))
        for axis, name in enumerate(found):
            values = np.moveaxis(np.tensordot(make_basis(sizes[name]), values, axes=(1, axis)), 0, axis)
        blocks.append(Table(found, values + rng.laplace(0, scale, values.shape) if found else values))
    tables = reconstruct(blocks, data.marginals(ways), sizes)
    return measure_error(
        data,
        ways,
        {found: mend(table.values) for found, table in zip(data.marginals(ways), tables, strict=True)},
    )


def one_hot(data: Data, target: str) -> csr_matrix:
    """All attributes but the target as indicators, one entry for each, scaled so that no row is longer than 1."""
    from scipy.sparse import csr_matrix

    names = [name for name in data.schema.names if name != target]
    starts = np.cumsum([0, *(data.schema[name].size for name in names)])
    places = np.stack([data.codes[name] + start for name, start in zip(names, starts, strict=False)], axis=1)
    ends = np.arange(0, places.size + 1, len(names))
    values = np.full(places.size, 1 / math.sqrt(len(names)))
    return csr_matrix((values, places.ravel(), ends), shape=(data.rows, int(starts[-1])))


def train_privately(
    features: csr_matrix, labels: np.ndarray, epsilon: float, rng: np.random.Generator, penalty: float = 1e-3
) -> np.ndarray:
    """Objective perturbation with the Huber loss, h = 0.5 (Chaudhuri, Monteleoni and Sarwate 2011, Alg. 2)."""
    from scipy.optimize import minimize

    rows, width = features.shape
    h, bound = 0.5, 1.0
    curvature = 1 / (2 * h)
    left = epsilon - math.log(1 + 2 * curvature / (rows * penalty) + (curvature / (rows * penalty)) ** 2)
    extra = 0.0
    if left <= 0:
        extra = curvature / (rows * (math.exp(epsilon / 4) - 1)) - penalty
        left = epsilon / 2
    direction = rng.normal(size=width)
    noise = direction / np.linalg.norm(direction) * rng.gamma(width, 2 * bound / left)

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = labels * (features @ w)
        soft = np.abs(1 - margin) <= h
        loss = np.where(margin > 1 + h, 0.0, np.where(soft, (1 + h - margin) ** 2 / (4 * h), 1 - margin))
        slope = np.where(margin > 1 + h, 0.0, np.where(soft, -(1 + h - margin) / (2 * h), -1.0))
        value = loss.mean() + (penalty + extra) / 2 * w @ w + noise @ w / rows
        gradient = features.T @ (slope * labels) / rows + (penalty + extra) * w + noise / rows
        return value, gradient

    return np.asarray(minimize(objective, np.zeros(width), jac=True, method="L-BFGS-B").x)
