"""Undoing a credal network: the plain network and the counts behind its intervals [003, Lemmas 3 and 4].

An interval from counts hides neither ratios nor, once one number is known, the counts. Intervals around noisy
counts do: nothing here recovers more than the noise let out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import TableError
from discreet.values.table import Table

Floats = npt.NDArray[np.float64]

EVEN = 1e-6
"""How much the widths within a conditional may differ, relative to the widest, if they are to come from one S."""


@dataclass(frozen=True, slots=True, eq=False)
class Recovery:
    """What intervals give away, one table for each node, child last."""

    cpts: tuple[Table, ...]
    """The conditional probabilities; those of parents that nobody had are uniform."""
    seen: tuple[Table, ...]
    """1.0 where somebody had these parents, 0.0 where nobody had: whoever has them is no member."""
    counts: tuple[Table, ...] | None = None
    """The counts n_ij, if S was given; else their ratios to S, n_ij/S, if the widths allow it."""
    rows: float | None = None
    """|T|, or |T|/S where the counts are ratios."""

    @property
    def possible(self) -> tuple[Table, ...]:
        """The conditional probabilities with those of parents that nobody had set to 0: who is out for certain."""
        return tuple(
            Table(cpt.axes, cpt.values * seen.values) for cpt, seen in zip(self.cpts, self.seen, strict=True)
        )


def recover_ratios(lower: Sequence[Table]) -> Recovery:
    """n_ij/n_j from the lower ends alone, for any S and even another one in every conditional.

    An IDM interval begins at n_ij/(n_j + S), so S cancels when a conditional is divided by its sum; a contaminated one
    begins at (1 − ε)·p, so ε does. Where the lower ends are all 0, nobody had these parents.
    """
    sums = [np.asarray(table.values, dtype=np.float64).sum(axis=-1, keepdims=True) for table in lower]
    _require_lower(lower)
    cpts = tuple(table.normalise(table.axes[-1]) for table in lower)
    seen = tuple(
        Table(table.axes, np.broadcast_to(total > 0, table.values.shape).astype(np.float64))
        for table, total in zip(lower, sums, strict=True)
    )
    return Recovery(cpts, seen)


def recover_contamination(lower: Sequence[Table]) -> tuple[Recovery, tuple[Table, ...]]:
    """Lemma 4: p = lower/Σlower and ε = 1 − Σlower, for each conditional by itself [003, Lemma 4]."""
    found = recover_ratios(lower)
    epsilons = tuple(
        Table(table.axes[:-1], 1.0 - np.asarray(table.values, dtype=np.float64).sum(axis=-1))
        for table in lower
    )
    return found, epsilons


def recover_counts(lower: Sequence[Table], upper: Sequence[Table], strength: float | None = None) -> Recovery:
    """Lemma 3: with S known, the counts themselves; without, all of them in units of S [003, Lemma 3].

    All intervals of a conditional have the width w = S/(n_j + S), so n_ij = S·lower/w, and |T| = Σ_j n_j.
    """
    if strength is not None and not (math.isfinite(strength) and strength > 0):
        raise TableError(f"the S of an imprecise Dirichlet model is a positive number, not {strength}")
    found = recover_ratios(lower)
    counts: list[Table] = []
    for table, above in zip(lower, upper, strict=True):
        low = np.asarray(table.values, dtype=np.float64)
        width = np.asarray(above.arrange(table.axes).values, dtype=np.float64) - low
        widest = width.max(axis=-1, keepdims=True)
        if widest.min() <= 0 or (width.min(axis=-1, keepdims=True) < widest * (1.0 - EVEN)).any():
            raise TableError(
                f"the intervals of {table.axes[-1]!r} are not those of an imprecise Dirichlet model: "
                "within a conditional they all have the width S/(n + S), above 0"
            )
        counts.append(Table(table.axes, low / widest * (1.0 if strength is None else strength)))
    totals = [table.total() for table in counts]
    return Recovery(found.cpts, found.seen, tuple(counts), float(np.median(totals)))


def describe_recovery(
    lower: Sequence[Table], upper: Sequence[Table], strength: float | None = None
) -> tuple[Recovery, dict[str, Any]]:
    """What intervals give away, and what that says about how they were made, in words and as plain values."""
    found = recover_ratios(lower)
    nobody = int(sum((1.0 - seen.values[..., 0]).sum() for seen in found.seen))
    gaps = np.concatenate([(1.0 - np.asarray(table.values).sum(axis=-1)).ravel() for table in lower])
    told: dict[str, Any] = {"conditionals": int(gaps.size), "nobody had": nobody}
    words = [
        f"{gaps.size:,} conditionals recovered from their lower ends; of {nobody:,} nobody had the parents"
    ]
    if strength is None and float(gaps.max() - gaps.min()) < EVEN:
        told["contamination"] = float(gaps.mean())
        words.append(
            f"all intervals are {gaps.mean():.6g} wide, as if another network had been mixed in with this share"
        )
    else:
        try:
            found = recover_counts(lower, upper, strength)
        except TableError as error:
            if strength is not None:
                raise
            words.append(f"no counts: {error}")
        else:
            totals = [table.total() for table in found.counts or ()]
            if max(totals) > min(totals) * (1.0 + EVEN):
                words.append(
                    "no counts: the widths do not agree on one number of rows, as those of one S would"
                )
                return recover_ratios(lower), {**told, "words": words}
            unit = "" if strength is not None else " times S"
            told["rows"] = found.rows
            words.append(
                f"the widths are those of an imprecise Dirichlet model of {found.rows:.6g}{unit} rows"
            )
    return found, {**told, "words": words}


def _require_lower(lower: Sequence[Table]) -> None:
    for table in lower:
        values = np.asarray(table.values, dtype=np.float64)
        if not np.isfinite(values).all() or values.min() < 0 or (values.sum(axis=-1) > 1 + 1e-9).any():
            raise TableError(
                f"the lower ends of {table.axes[-1]!r} are not at least 0 with a sum of at most 1 in every conditional"
            )
