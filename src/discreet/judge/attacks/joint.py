"""The linear attack on all noisy tables together, which knows that the same people fill them.

Let φ(x) be the 0-1 vector of the cells that a person is in, over all tables, with mean μ and covariance C in
the population, and D the variances of the noise. The noisy counts y of n strangers have mean nμ and
covariance nC + D; a member x moves the mean by φ(x) − μ. Among all scores that are linear in y, Fisher's
tells the two apart best:

    score(x) = (φ(x) − μ)ᵀ (nC + D)⁻¹ (y − nμ).

C is that of the reference rows, so the system is no larger than their number (Woodbury).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.judge.attacks.cells import Codes, Floats, count_rows, flatten_codes, take_rows
from discreet.values.measurement import Measurement

MOST_REFERENCES = 1500
"""Reference rows that the covariance is taken from, evenly spread over all."""
LEAST_VARIANCE = 0.25
"""Stands for no noise at all, so that exact tables do not make the system singular."""


def score_jointly(measurements: Sequence[Measurement], reference: Codes, rows: int, codes: Codes) -> Floats:
    """Fisher's linear score of every row of codes, from all noisy tables of a release."""
    tables = [found for found in measurements if found.axes and found.rate == 1]
    score = np.zeros(count_rows(codes))
    for table, weights in zip(tables, weigh_tables(tables, reference, rows), strict=True):
        score += weights[flatten_codes(codes, table.axes, table.noisy.values.shape)]
    return score


def weigh_tables(tables: Sequence[Measurement], reference: Codes, rows: int) -> list[Floats]:
    """(nC + D)⁻¹ (y − nμ), cut into the cells of each table.

    With Z the centred φ of R reference rows, C = ZᵀZ/R, and the inverse is
    D⁻¹ − D⁻¹Zᵀ ((R/n)·I + Z D⁻¹ Zᵀ)⁻¹ Z D⁻¹, where Z D⁻¹ Zᵀ only asks which two people share a cell.
    """
    every = count_rows(reference)
    chosen = np.linspace(0, every - 1, min(every, MOST_REFERENCES)).astype(np.int64)
    some = take_rows(reference, chosen)
    size = len(chosen)
    kernel, projected = np.zeros((size, size), dtype=np.float32), np.zeros(size)
    surplus: list[Floats] = []
    places = []
    for table in tables:
        shape = table.noisy.values.shape
        place = flatten_codes(some, table.axes, shape)
        mean = np.bincount(flatten_codes(reference, table.axes, shape), minlength=table.cells) / every
        noise = max(table.law.variance, LEAST_VARIANCE)
        excess = (table.noisy.values.ravel() - rows * mean) / noise
        kernel += np.equal(place[:, None], place).astype(np.float32) / np.float32(noise)
        projected += excess[place]
        surplus.append(excess)
        places.append(place)
    kernel -= kernel.mean(axis=0)
    kernel -= kernel.mean(axis=1, keepdims=True)
    kernel[np.diag_indices(size)] += np.float32(size / rows)
    weights = np.linalg.solve(kernel.astype(np.float64), projected - projected.mean())
    weights -= weights.mean()
    return [
        excess - np.bincount(place, weights, table.cells) / max(table.law.variance, LEAST_VARIANCE)
        for table, place, excess in zip(tables, places, surplus, strict=True)
    ]
